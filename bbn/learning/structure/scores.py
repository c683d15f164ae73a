"""Scores: how well a structure explains data, as a sum of terms, one per family, each a function of its counts.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.data import DataSource
from bbn.data.counts import ContingencyTables
from bbn.data.reading import Reading
from bbn.learning.structure.constraints import members, require_complete
from bbn.learning.structure.structure import observe, read_structure
from bbn.model.variable import State

Ints = NDArray[np.int64]
Term = Callable[["FlatCounts"], Array]
"""A score: the terms of a batch of families from their counts."""


MANY = 2000
"""Sample sizes from which on the regret is taken from its asymptotic series."""
MAX_CELLS = 2**26
"""The most cells that a search asks for at a time."""


class FlatCounts(NamedTuple):
    """The counts of a batch of families, end to end: table f is ``cells[ptr[f]:ptr[f + 1]]``, the child's axis last."""

    cells: NDArray[Any]
    ptr: Ints
    cards: Ints
    """The child's number of states, r."""
    total: float
    """The number of rows of the data, N."""

    @property
    def free_parameters(self) -> Ints:
        """q (r − 1) of each family."""
        return np.diff(self.ptr) // self.cards * (self.cards - 1)


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
    alphas = equivalent_sample_size / np.diff(counts.ptr)
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


def as_term(score: Any) -> Term:
    """The function behind a score's name, or behind `bbn.BDeu(equivalent_sample_size)`; a function is itself."""
    if isinstance(score, str):
        if score not in SCORES:
            raise ValueError(
                f"unknown score {score!r}{nearest(score, SCORES)}; the scores are {', '.join(SCORES)}"
            )
        return SCORES[score]
    size = getattr(score, "equivalent_sample_size", None)
    if size is not None:
        return partial(bdeu, equivalent_sample_size=float(size))
    if callable(score):
        return score  # type: ignore[no-any-return]
    raise ValueError(f"score is {score!r}; expected one of {', '.join(SCORES)}, or bbn.BDeu(...)")


@keywords_checked
def score(
    structure: Any,
    data: Any,
    score: Any = "bic",
    *,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
) -> float:
    """How well a structure explains data: the sum of its families' terms.

    Parameters
    ----------
    structure
        A DiGraph, a list of (parent, child) arcs, or a network (only its structure and states count).
    data
        Anything tabular, without missing values.
    score
        "k2", "bdeu", "bds", "bic" (also "mdl"), "aic", "log-likelihood", "fnml", or `bbn.BDeu(10)` for another
        equivalent sample size than 1. Natural logs, higher is better.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers.

    >>> data = {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1]}
    >>> score([("A", "B")], data, "log-likelihood"), score([("A", "B")], data, "k2")
    (-2.772588722239781, -5.598421958998...)
    """
    terms = family_scores(
        structure,
        data,
        score,
        states=states,
        weights=weights,
        missing=missing,
        unseen=unseen,
        continuous=continuous,
    )
    return float(sum(terms.values()))


@keywords_checked
def family_scores(
    structure: Any,
    data: Any,
    score: Any = "bic",
    *,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
) -> dict[str, float]:
    """The terms of `bbn.score`, by child.

    Parameters
    ----------
    structure, data, score, states, weights, missing, unseen, continuous
        As in `bbn.score`.

    Returns
    -------
    dict
        Child to its term.

    >>> family_scores([("A", "B")], {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1]}, "log-likelihood")
    {'A': -2.772588722239781, 'B': 0.0}
    """
    parsed = read_structure(structure)
    _, source = observe(parsed, data, Reading(states, weights, missing, unseen, continuous))
    source = require_complete(source, "a score")
    families = parsed.families
    terms = count_and_score(source, families, as_term(score))
    return {family[-1]: float(term) for family, term in zip(families, terms, strict=True)}


def count_and_score(source: DataSource, families: Sequence[tuple[str, ...]], term: Term) -> Array:
    """The term of each family, written (*parents, child), from one request for counts."""
    if not families:
        return np.empty(0)
    return term(flatten(source.counts(families), source.total))


def count_and_score_large(source: DataSource, families: Sequence[tuple[str, ...]], term: Term) -> Array:
    """The same from several requests, so that no answer has more than `MAX_CELLS` cells.

    A family that has more by itself gets −∞: no data that fit in memory reach that many settings of the parents.
    """
    cards = {v.name: v.card for v in source.variables}
    scores = np.full(len(families), -np.inf)
    batch: list[int] = []
    cells = 0
    for f, family in enumerate(families):
        size = prod(cards[name] for name in family)
        if size > MAX_CELLS:
            continue
        if cells + size > MAX_CELLS:
            scores[batch] = count_and_score(source, [families[i] for i in batch], term)
            batch, cells = [], 0
        batch.append(f)
        cells += size
    scores[batch] = count_and_score(source, [families[i] for i in batch], term)
    return scores


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


KNOWN_BYTES = 180
"""What a family takes whose score is known, beside the bits of its parents."""


class ScoreCache:
    """The terms of families of one source, each counted once.

    Variables are their positions in `names`, the source's order unless given; a family is a child and the set of its
    parents as a bit mask, so that ``1 << p`` is set for parent p. `n_evaluated` is the number of families counted.
    """

    def __init__(self, source: DataSource, score: Any, names: Sequence[str] | None = None) -> None:
        self.source = source
        self.names = tuple(names) if names is not None else tuple(v.name for v in source.variables)
        self._largest_card = max((v.card for v in source.variables), default=1)
        self.term = as_term(score)
        self.n_evaluated = 0
        self._known: dict[tuple[int, int], float] = {}
        self._rests: dict[tuple[int, int], tuple[str, ...]] = {}

    def __getitem__(self, family: tuple[int, int]) -> float:
        return self.many([family])[0]

    def many(self, families: Sequence[tuple[int, int]], around: Sequence[int] | None = None) -> list[float]:
        """The term of each (child, parents' mask); those not known yet are counted in one batch.

        `around` are the parents' masks of the structure that a search is at. Families that differ from it in one
        parent are written so that what they share comes last, which is how batches are counted fast.
        """
        known = self._known
        new = list(dict.fromkeys(family for family in families if family not in known))
        if new:
            asked = [self._family(child, mask, around[child] if around else 0) for child, mask in new]
            size = (len(known) + len(new)) * (KNOWN_BYTES + len(self.names) // 4)
            require_memory(size, f"the scores of {len(known) + len(new):,} families", "use fewer variables")
            known.update(zip(new, self.once(asked).tolist(), strict=True))
        return [known[family] for family in families]

    def once(self, families: Sequence[tuple[str, ...]]) -> Array:
        """The term of each (*parents, child) by name, not kept: for what is asked a single time.

        Families that follow each other are counted fast where they differ in the first parent alone.
        """
        self.n_evaluated += len(families)
        most = self._largest_card ** max(map(len, families)) * len(families)
        ask = count_and_score if most <= MAX_CELLS else count_and_score_large
        return ask(self.source, families, self.term)

    def total(self, parents: Iterable[int]) -> float:
        """The score of the structure in which child i has the parents of the i-th mask."""
        return sum(self.many(list(enumerate(parents))))

    def _family(self, child: int, mask: int, shared: int) -> tuple[str, ...]:
        """(*parents, child) by name, parents in `shared` after the others."""
        names = self.names
        kept = mask & shared
        rest = self._rests.get((child, kept))
        if rest is None:
            rest = self._rests[child, kept] = (*(names[p] for p in members(kept)), names[child])
        first = mask ^ kept
        if first and not first & (first - 1):
            return (names[first.bit_length() - 1], *rest)
        return (*(names[p] for p in members(first)), *rest)
