"""Family scores in numpy: the twin of `_structure` for where no compiler is.

A batch of contingency tables is one flat array `cells`: table f is ``cells[ptr[f]:ptr[f + 1]]``, rows of `cards[f]`
cells, one row per setting of the parents, the child's states running fastest. N_jk is a cell, N_j the sum of row j.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.types import Floats, Ints


def log_likelihoods(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Floats:
    """Σ_jk N_jk ln(N_jk / N_j) of each table."""
    return np.array([_entropy(t) - _entropy(t.sum(axis=1)) for t in _tables(cells, ptr, cards)])


def log_dirichlets(cells: NDArray[Any], ptr: Ints, cards: Ints, alphas: Floats) -> Floats:
    """ln ∏_j B(N_j + α) / B(α) of each table, B the multivariate beta function, α the same for every cell.

    That is Σ_jk ln (α)_{N_jk} − Σ_j ln (rα)_{N_j}, where (a)_n = Γ(a + n) / Γ(a) and r is the child's card.
    """
    return np.array(
        [
            _log_rising(t, a) - _log_rising(t.sum(axis=1), a * t.shape[1])
            for t, a in zip(_tables(cells, ptr, cards), alphas.tolist(), strict=True)
        ]
    )


def observed_rows(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Ints:
    """The number of rows with N_j > 0 of each table."""
    return np.array([np.count_nonzero(t.sum(axis=1)) for t in _tables(cells, ptr, cards)], dtype=np.int64)


def _tables(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Iterator[NDArray[Any]]:
    for f in range(len(cards)):
        yield cells[ptr[f] : ptr[f + 1]].reshape(-1, cards[f])


def _entropy(counts: NDArray[Any]) -> float:
    seen = counts[counts > 0]
    return float(np.dot(seen, np.log(seen)))


def _log_rising(counts: NDArray[Any], a: float) -> float:
    seen, times = np.unique(counts[counts > 0], return_counts=True)
    return float(np.dot(times, [lgamma(a + n) - lgamma(a) for n in seen.tolist()]))
