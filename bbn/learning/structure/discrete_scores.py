"""Scores of discrete families: terms from their counts.

With N_jk the number of rows where the child is in state k and its parents in setting j, N_j = Σ_k N_jk, r the child's
number of states, q the number of settings and N the number of rows, the terms are, in natural logs, higher is better
and with no prior over structures:

================  ====================================================================  ==============================
log-likelihood    Σ_jk N_jk ln(N_jk / N_j)
aic               log-likelihood − q (r − 1)                                            Akaike 1974
bic, mdl          log-likelihood − ½ q (r − 1) ln N                                     Schwarz 1978, Rissanen 1978
k2                ln ∏_j (r − 1)! / (N_j + r − 1)! ∏_k N_jk!                            Cooper & Herskovits 1992, eq. 12
bdeu              ln ∏_j Γ(rα)/Γ(rα + N_j) ∏_k Γ(α + N_jk)/Γ(α), α = ess / (q r)        Heckerman et al. 1995, eq. 28
bds               bdeu with α = ess / (q̃ r), q̃ the number of settings that were seen    Scutari 2016
fnml              log-likelihood − Σ_j ln C(r, N_j), C the normaliser of the NML code   Silander et al. 2008
================  ====================================================================  ==============================

A batch costs one request for counts and one pass over the cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data.coded_table import CodedTable
from bbn.data.counts import ContingencyTables
from bbn.data.seen_settings import SeenSettings, seen_counts

Ints = NDArray[np.int64]
Term = Callable[["FlatCounts"], Array]
"""A score: the terms of a batch of families from their counts."""


MANY = 2000
"""Sample sizes from which on the regret is taken from its asymptotic series."""


class FlatCounts(NamedTuple):
    """The counts of a batch of families, end to end: table f is ``cells[ptr[f]:ptr[f + 1]]``, the child's axis last."""

    cells: NDArray[Any]
    ptr: Ints
    cards: Ints
    """The child's number of states, r."""
    total: float
    """The number of rows of the data, N."""
    n_settings: Array | None = None
    """The number of settings of the parents, q, where the tables hold only those that are seen."""

    @property
    def settings(self) -> Array:
        """q of each family."""
        return np.diff(self.ptr) / self.cards if self.n_settings is None else self.n_settings

    @property
    def free_parameters(self) -> Array:
        """q (r − 1) of each family."""
        return self.settings * (self.cards - 1)


def log_likelihood(counts: FlatCounts) -> Array:
    """The log-likelihood of the data under the tables that fit them best."""
    return kernels.score.log_likelihoods(counts.cells, counts.ptr, counts.cards)


def aic(counts: FlatCounts) -> Array:
    """Akaike's criterion."""
    return log_likelihood(counts) - counts.free_parameters


def bic(counts: FlatCounts) -> Array:
    """Schwarz' criterion, which is also the description length (with its sign turned)."""
    return np.asarray(log_likelihood(counts) - 0.5 * np.log(counts.total) * counts.free_parameters)


def k2(counts: FlatCounts) -> Array:
    """Cooper and Herskovits' ln P(data | structure) under uniform priors over tables."""
    return kernels.score.log_dirichlets(counts.cells, counts.ptr, counts.cards, np.ones(len(counts.cards)))


def bdeu(counts: FlatCounts, equivalent_sample_size: float = 1.0) -> Array:
    """The Bayesian Dirichlet score whose prior is worth `equivalent_sample_size` rows, spread evenly."""
    alphas = equivalent_sample_size / (counts.settings * counts.cards)
    return kernels.score.log_dirichlets(counts.cells, counts.ptr, counts.cards, alphas)


def bds(counts: FlatCounts, equivalent_sample_size: float = 1.0) -> Array:
    """The Bayesian Dirichlet sparse score: the prior is spread over the settings that were seen."""
    seen = kernels.score.observed_rows(counts.cells, counts.ptr, counts.cards)
    alphas = equivalent_sample_size / (np.maximum(seen, 1) * counts.cards)
    return kernels.score.log_dirichlets(counts.cells, counts.ptr, counts.cards, alphas)


def fnml(counts: FlatCounts) -> Array:
    """The factorised normalised maximum likelihood."""
    if counts.cells.dtype.kind == "f" and (counts.cells % 1).any():
        raise DataError(
            "the fnml score is defined for whole counts; with fractional weights use 'bic' or 'bdeu'"
        )
    regrets = np.empty(len(counts.cards))
    for card in np.unique(counts.cards).tolist():
        own = np.flatnonzero(counts.cards == card)
        settings = [
            counts.cells[counts.ptr[f] : counts.ptr[f + 1]].reshape(-1, card).sum(axis=1) for f in own
        ]
        sizes, which = np.unique(np.concatenate(settings).astype(np.int64), return_inverse=True)
        regret = log_regret(card, sizes)[which]
        starts = np.cumsum([0, *(len(rows) for rows in settings[:-1])])
        regrets[own] = np.add.reduceat(regret, starts)
    return log_likelihood(counts) - regrets


def log_regret(card: int, n: Ints) -> Array:
    """ln C(card, n): the normaliser of the multinomial NML code, for each of several sample sizes n.

    C(1, n) = 1, C(2, n) = 1 + Q(n) with Ramanujan's Q(n) = Σ_b n!/((n − b)! n^b) (Mononen & Myllymäki 2008), of
    large n by its asymptotic series (Flajolet et al. 1995), and C(r + 2, n) = C(r + 1, n) + n/r C(r, n) (Kontkanen &
    Myllymäki 2007).

    >>> np.exp(log_regret(2, np.array([0, 1, 2])))
    array([1. , 2. , 2.5])
    """
    small = np.minimum(n, MANY)
    below, current = np.ones(len(n)), np.ones(len(n))
    term = np.ones(len(n))
    for b in range(int(small.max(initial=0))):
        term = term * (small - b) / np.maximum(small, 1)
        current = current + term
        if not (term > 1e-18 * current).any():
            break
    m = np.maximum(n, MANY).astype(np.float64)
    root = np.sqrt(np.pi / 2)
    series = [
        root * m**0.5,
        -1 / 3,
        root / 12 * m**-0.5,
        -4 / 135 / m,
        root / 288 * m**-1.5,
        8 / 2835 * m**-2.0,
    ]
    current = np.where(n > MANY, 1 + sum(series) - root * 139 / 51840 * m**-2.5, current)
    if card == 1:
        return np.zeros(len(n))
    for r in range(1, card - 1):
        below, current = current, current + n / r * below
    return np.asarray(np.log(current))


SCORES: dict[str, Term] = {
    "k2": k2,
    "bdeu": bdeu,
    "bds": bds,
    "bic": bic,
    "mdl": bic,
    "aic": aic,
    "log-likelihood": log_likelihood,
    "fnml": fnml,
}
"""The scores by name; each is called with FlatCounts and gives one term per family."""


MIXED = {
    "loglik-cg": "log-likelihood",
    "loglik-g": "log-likelihood",
    "aic-cg": "aic",
    "aic-g": "aic",
    "bic-cg": "bic",
    "bic-g": "bic",
}
"""The scores of numbers (-g), and of numbers and states together (-cg), with the score of discrete families in them."""


def as_term(score: Any) -> Term:
    """The function behind a score's name, or behind `bbn.BDeu(equivalent_sample_size)`; a function is itself."""
    if isinstance(score, str):
        if score not in SCORES:
            known = (*SCORES, *MIXED, "bge")
            raise ValueError(
                f"unknown score {score!r}{nearest(score, known)}; the scores are {', '.join(known)}"
            )
        return SCORES[score]
    size = getattr(score, "equivalent_sample_size", None)
    if size is not None:
        return partial(bdeu, equivalent_sample_size=float(size))
    if callable(score):
        return score  # type: ignore[no-any-return]
    raise ValueError(f"score is {score!r}; expected one of {', '.join(SCORES)}, or bbn.BDeu(...)")


def seen_alone(table: CodedTable, families: Iterable[tuple[SeenSettings, int]], total: float) -> FlatCounts:
    """The counts of (parents, child), with the settings alone that are seen."""
    cells, cards, settings = [], [], []
    for parents, child in families:
        cells.append(seen_counts(table, parents, child))
        cards.append(table.variables[child].card)
        settings.append(float(parents.n_settings))
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in cells])]).astype(np.int64)
    return FlatCounts(np.concatenate(cells), ptr, np.array(cards, np.int64), total, np.array(settings))


def flatten(tables: Sequence[NDArray[Any]], total: float) -> FlatCounts:
    """Contingency tables, child's axis last, end to end."""
    if isinstance(tables, ContingencyTables):
        return FlatCounts(tables.cells, tables.offsets, tables.last_lengths, total)
    sizes = np.array([table.size for table in tables])
    return FlatCounts(
        np.concatenate([table.reshape(-1) for table in tables]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array([table.shape[-1] for table in tables]),
        total,
    )
