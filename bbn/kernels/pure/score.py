"""Family scores, in numpy.

A batch of contingency tables is one flat array `cells`: table f is ``cells[ptr[f]:ptr[f + 1]]``, rows of `cards[f]`
cells, one row per setting of the parents, the child's states running fastest. N_jk is a cell, N_j the sum of row j.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma, log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import (
    check_doubles,
    check_ints,
    check_length,
    check_numbers,
    check_offsets,
    check_shape,
)
from bbn.kernels.contracts.types import Floats, Ints


def log_likelihoods(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Floats:
    """Σ_jk N_jk ln(N_jk / N_j) of each table."""
    return np.array([_entropy(t) - _entropy(t.sum(axis=1)) for t in _tables(cells, ptr, cards)])


def log_dirichlets(cells: NDArray[Any], ptr: Ints, cards: Ints, alphas: Floats) -> Floats:
    """ln ∏_j B(N_j + α) / B(α) of each table, B the multivariate beta function, α the same for every cell.

    That is Σ_jk ln (α)_{N_jk} − Σ_j ln (rα)_{N_j}, where (a)_n = Γ(a + n) / Γ(a) and r is the child's card.
    """
    check_numbers("f", 1, alphas)
    return np.array(
        [
            _log_rising(t, a) - _log_rising(t.sum(axis=1), a * t.shape[1])
            for t, a in zip(_tables(cells, ptr, cards), alphas.tolist(), strict=True)
        ]
    )


def observed_rows(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Ints:
    """The number of rows with N_j > 0 of each table."""
    return np.array([np.count_nonzero(t.sum(axis=1)) for t in _tables(cells, ptr, cards)], dtype=np.int64)


def independence(
    cells: NDArray[Any], ptr: Ints, firsts: Ints, cards: Ints, pearson: bool
) -> tuple[Floats, Ints]:
    """How far each table is from independence of its first and last axis in every slice of the middle ones.

    Table f has shape (firsts[f], slices, cards[f]). The statistic is G² = 2 Σ n ln(n / e), or Pearson's
    X² = Σ (n − e)²/e, with e the product of a slice's row and column sum over its sum. Degrees of freedom are
    (rows − 1)(columns − 1) of those that have counts, added up over slices.
    """
    check_tables(cells, ptr, cards)
    check_length(len(firsts), len(cards), "firsts")
    for f, size in enumerate(np.diff(ptr).tolist()):
        if not 1 <= firsts[f] <= size or size % (firsts[f] * cards[f]):
            raise ValueError(f"table {f}: {size} cells are not slices of {firsts[f]} × {cards[f]}")
    statistics = np.zeros(len(cards))
    freedom = np.zeros(len(cards), dtype=np.int64)
    for f in range(len(cards)):
        table = cells[ptr[f] : ptr[f + 1]].reshape(firsts[f], -1, cards[f]).transpose(1, 0, 2)
        rows, columns, total = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
        expected = rows[:, :, None] * columns[:, None, :] / np.where(total > 0, total, 1)[:, None, None]
        seen = expected > 0
        n, e = table[seen], expected[seen]
        statistics[f] = (
            ((n - e) ** 2 / e).sum() if pearson else 2 * (n[n > 0] * np.log(n[n > 0] / e[n > 0])).sum()
        )
        spread = (np.count_nonzero(rows, axis=1) - 1) * (np.count_nonzero(columns, axis=1) - 1)
        freedom[f] = spread[total > 0].sum()
    return statistics, freedom


def residuals_around(
    scatter: Floats, child: int, own: tuple[int, ...], add: list[int], delete: list[int], collinear: float
) -> Floats:
    """What is left of a child's sum of squares by parents `own` and one of `add`, by `own` less one, and by `own`.

    Parameters
    ----------
    scatter : float64 array (n, n)
        Sums of products of deviations from the means.
    child, own, add, delete
        Variables: the child, its parents, further parents, and some of its parents.
    collinear
        A parent of which those before it leave less than this share is determined by them, and adds nothing.

    Returns
    -------
    array
        One number for each of `add`, then one for each of `delete`, then one for `own`.
    """
    check_doubles(scatter)
    n = len(scatter)
    check_shape("scatter", scatter, n, n)
    if not all(0 <= v < n for v in (child, *own, *add)) or not set(delete) <= set(own):
        raise ValueError(f"expected variables from 0 to {n - 1}, found {(child, own, add, delete)}")
    families = [
        *((*own, z, child) for z in add),
        *((*(p for p in own if p != z), child) for z in delete),
        (*own, child),
    ]
    return np.array([_residual(scatter[np.ix_(family, family)], collinear) for family in families])


def _residual(a: Floats, collinear: float) -> float:
    """What the other columns leave of the last one's sum of squares, by elimination."""
    whole = a.diagonal().copy()
    for k in range(len(a) - 1):
        if a[k, k] > collinear * whole[k]:
            a[k + 1 :, k + 1 :] -= np.outer(a[k, k + 1 :] / a[k, k], a[k, k + 1 :])
    return max(float(a[-1, -1]), 0.0)


def check_tables(cells: NDArray[Any], ptr: Ints, cards: Ints) -> None:
    """Refuse tables that are not rows of counts."""
    check_ints(ptr, cards)
    check_numbers("if", 1, cells)
    check_length(len(ptr), len(cards) + 1, "ptr")
    check_offsets(ptr, len(cells), "ptr")
    for f, (size, card) in enumerate(zip(np.diff(ptr).tolist(), cards.tolist(), strict=True)):
        if card < 1 or size % card:
            raise ValueError(f"table {f}: {size} cells are not rows of {card}")
    if not (cells >= 0).all():
        raise ValueError("cells: expected counts, found negative ones")


def _tables(cells: NDArray[Any], ptr: Ints, cards: Ints) -> Iterator[NDArray[Any]]:
    check_tables(cells, ptr, cards)
    for f in range(len(cards)):
        yield cells[ptr[f] : ptr[f + 1]].reshape(-1, cards[f])


def _entropy(counts: NDArray[Any]) -> float:
    seen = counts[counts > 0]
    return float(np.dot(seen, np.log(seen)))


def _log_rising(counts: NDArray[Any], a: float) -> float:
    seen, times = np.unique(counts[counts > 0], return_counts=True)
    if a < 16:
        return float(np.dot(times, [lgamma(a + n) - lgamma(a) for n in seen.tolist()]))
    # the difference of two large numbers written so that what they share is not in it
    return float(
        np.dot(
            times,
            [
                (a - 0.5) * log1p(n / a) + n * log(a + n) - n + (_stirling(a + n) - _stirling(a))
                for n in seen.tolist()
            ],
        )
    )


def _stirling(x: float) -> float:
    """ln Γ(x) − (x − ½) ln x + x − ½ ln 2π, exact to the last bits for x ≥ 16."""
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
