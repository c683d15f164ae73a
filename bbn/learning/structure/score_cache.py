"""Scores: how well a structure explains data, as a sum of terms, one per family.

A family with a discrete child has a term of its counts (`discrete_scores`), one with a continuous child a term of its
moments (`gaussian_scores`). Either comes in batches, one request for each, and a search keeps every term that
it has seen in a `ScoreCache`, the one that all searches share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.data import CodedTable, DataSource, continuous_columns
from bbn.data.reading import Reading
from bbn.data.seen_settings import LEAST, SPARSE, seen_settings
from bbn.learning.gaussian.estimates import GaussianFamily
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.structure.constraints import all_variables, members, require_complete
from bbn.learning.structure.discrete_scores import MIXED, SCORES, Term, as_term, flatten, seen_alone
from bbn.learning.structure.gaussian_scores import SETTINGS, MomentScores, refuse_discrete
from bbn.learning.structure.neighbours import MAX_CELLS, Around, GaussianCounter, TableCounter
from bbn.learning.structure.structure import observe, read_structure
from bbn.model.variable import Continuous, State

CHUNK_CELLS = 2**22
"""The most cells around families that are counted at a time, where the data are in memory."""


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
    continuous: str | Iterable[str] | None = None,
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
        equivalent sample size than 1. Where columns are continuous: "bic-cg", "aic-cg" and "loglik-cg", which "bic",
        "aic" and "log-likelihood" then stand for, and if all of them are, also "bic-g", "aic-g", "loglik-g" and "bge".
        Natural logs, higher is better.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers.

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
    continuous: str | Iterable[str] | None = None,
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
    terms = family_scorer(source, score)(families)
    return {family[-1]: float(term) for family, term in zip(families, terms, strict=True)}


FamilyScorer = Callable[[Sequence[tuple[str, ...]]], Array]
"""The terms of families (*parents, child), from one request to a source."""


def family_scorer(source: DataSource, score: Any, searching: bool = False) -> FamilyScorer:
    """How to score the families of a source: from counts, from moments, or from both.

    Families that are too large to count score −∞ where a search asks for them; so do those whose Gaussians have no more
    rows than coefficients in some setting.
    """
    if not continuous_columns(source):
        if score == "bge" or (isinstance(score, str) and score.endswith("-g") and score in MIXED):
            refuse_discrete(source, score)
        term = as_term(MIXED.get(score, score) if isinstance(score, str) else score)
        return partial(count_and_score_large if searching else count_and_score, source, term=term)
    return MixedScorer(source, score, searching)


class MixedScorer:
    """The terms of families of a source with columns of numbers; see `gaussian_scores`."""

    def __init__(self, source: DataSource, score: Any, searching: bool) -> None:
        kinds = {"bic": "bic-cg", "mdl": "bic-cg", "aic": "aic-cg", "log-likelihood": "loglik-cg"}
        name = kinds.get(score, score) if isinstance(score, str) else score
        if name != "bge" and name not in MIXED:
            if isinstance(name, str):
                as_term(name)  # an unknown name has its own message
            raise DataError(
                f"score={score!r} takes discrete variables only, but {continuous_columns(source)[0]!r} holds numbers; "
                "with numbers the scores are 'bic', 'aic', 'log-likelihood' and, where there is nothing else, 'bge'"
            )
        if name == "bge" or name.endswith("-g"):
            refuse_discrete(source, name)
        self.source, self.name, self.searching = source, name, searching
        self.moments = MomentScores(source)
        self.numeric = frozenset(self.moments.names)
        self.term = None if name == "bge" else SCORES[MIXED[name]]

    def __call__(self, families: Sequence[tuple[str, ...]]) -> Array:
        """The term of each family (*parents, child)."""
        if self.term is None:
            return self.moments.bge(families)
        scores = np.full(len(families), -np.inf)
        counted = [f for f, family in enumerate(families) if family[-1] not in self.numeric]
        if counted:
            ask = count_and_score_large if self.searching else count_and_score
            scores[counted] = ask(self.source, [families[f] for f in counted], self.term)
        measured = [
            f
            for f, family in enumerate(families)
            if family[-1] in self.numeric and self.moments.settings(family) <= SETTINGS
        ]
        if measured:
            logs, parameters = self.moments.likelihoods([families[f] for f in measured], self.searching)
            scores[measured] = logs - self.penalty * parameters
        return scores

    @property
    def penalty(self) -> float:
        """What a free parameter costs."""
        kind = MIXED[self.name]
        return {"log-likelihood": 0.0, "aic": 1.0, "bic": 0.5 * float(np.log(self.source.total))}[kind]


def count_and_score(source: DataSource, families: Sequence[tuple[str, ...]], term: Term) -> Array:
    """The term of each family, written (*parents, child), from one request for counts."""
    if not len(families):
        return np.empty(0)
    return term(flatten(source.counts(families), source.total))


def count_and_score_large(source: DataSource, families: Sequence[tuple[str, ...]], term: Term) -> Array:
    """The same, from several requests if need be, so that no answer has more than `MAX_CELLS` cells.

    A family that has more by itself gets −∞: no data that fit in memory reach that many settings of the parents.
    """
    cards = {v.name: v.card for v in source.variables}
    if max(cards.values(), default=1) ** max(map(len, families), default=0) * len(families) <= LEAST:
        return count_and_score(source, families, term)
    scores = np.full(len(families), -np.inf)
    batch: list[int] = []
    cells = 0
    table = source if isinstance(source, CodedTable) else None
    place = {v.name: i for i, v in enumerate(source.variables)}
    for f, family in enumerate(families):
        size = prod(cards[name] for name in family)
        if size > MAX_CELLS:
            continue
        if table is not None and size > SPARSE * table.n_rows + LEAST:
            *parents, child = (place[name] for name in family)
            scores[f] = term(seen_alone(table, [(seen_settings(table, parents), child)], source.total))[0]
            continue
        if cells + size > MAX_CELLS:
            scores[batch] = count_and_score(source, [families[i] for i in batch], term)
            batch, cells = [], 0
        batch.append(f)
        cells += size
    scores[batch] = count_and_score(source, [families[i] for i in batch], term)
    return scores


def constant_columns(source: DataSource) -> frozenset[str]:
    """The columns with one state, or with the same number in all rows: no arc to or from them says anything.

    Numbers take a pass over the data, wherever these are.
    """
    still = {v.name for v in source.variables if v.card <= 1}
    names = continuous_columns(source)
    whole = moments_of([GaussianFamily(Continuous(name), ()) for name in names], source) if names else []
    for name, own in zip(names, whole, strict=True):
        variance, centre = own.scatter[0, 0, 0] / own.n[0], abs(own.means[0, 0])
        if variance <= (4 * np.finfo(float).eps * centre) ** 2:  # what rounding leaves
            still.add(name)
    return frozenset(still)


KNOWN_BYTES = 180
"""What a family takes whose score is known, beside the bits of its parents."""
PRICED = 1000
"""So many more families are kept before their memory is looked at again."""


class ScoreCache:
    """The terms of families of one source, each worked out once.

    Variables are their positions in `names`, the source's order unless given; a family is a child and the set of its
    parents as a bit mask, so that ``1 << p`` is set for parent p. `n_evaluated` is the number of families scored.
    """

    def __init__(self, source: DataSource, score: Any, names: Sequence[str] | None = None) -> None:
        self.source = source
        self.names = tuple(names) if names is not None else tuple(v.name for v in all_variables(source))
        self.scorer = family_scorer(source, score, searching=True)
        self.quick = _quick_scorer(self.scorer, source, self.names)
        self.n_evaluated = 0
        self._known: list[dict[int, float]] = [{} for _ in self.names]
        self._n_known = self._priced = 0

    def __getitem__(self, family: tuple[int, int]) -> float:
        return self.many([family])[0]

    def many(
        self, families: Sequence[tuple[int, int]], around: Mapping[int, int] | Sequence[int] | None = None
    ) -> list[float]:
        """The term of each (child, parents' mask); those not known yet are counted in one batch.

        `around` are the parents' masks of the structure that a search is at. Families that differ from it in one
        parent are written so that what they share comes last, which is how batches are counted fast.
        """
        known = self._known
        new = list(dict.fromkeys((c, mask) for c, mask in families if mask not in known[c]))
        if new:
            self._reserve(len(new))
            if isinstance(self.quick, GaussianCounter):
                self.n_evaluated += len(new)
                terms = self.quick.families(new)
            else:
                terms = self.once(
                    [self._family(child, mask, around[child] if around else 0) for child, mask in new]
                )
            for (child, mask), term in zip(new, terms.tolist(), strict=True):
                known[child][mask] = term
        return [known[child][mask] for child, mask in families]

    def near(self, wanted: Sequence[Around]) -> list[Array]:
        """The terms of the families around each of these, in the order of its masks; new ones come from few batches."""
        self._reserve(sum(len(around.add) for around in wanted), kept=False)
        if self.quick is None or len(wanted) == 1:
            return self._near(wanted)
        found: list[Array] = []
        start = cells = 0
        for stop, around in enumerate(wanted):
            own = self.quick.cells([around]) + len(around.add)
            if cells + own > CHUNK_CELLS and stop > start:
                found += self._near(wanted[start:stop])
                start, cells = stop, 0
            cells += own
        return found + self._near(wanted[start:])

    def _near(self, wanted: Sequence[Around]) -> list[Array]:
        """The same, from one batch."""
        results: list[Array | None] = []
        new: list[tuple[int, Around, list[int]]] = []
        for place, around in enumerate(wanted):
            masks = around.masks
            values = [*map(self._known[around.child].get, masks)]
            n_new = values.count(None)
            results.append(None if n_new else np.array(values))
            if n_new >= len(around.add):
                new.append((place, around, masks))
            elif n_new:
                fewer = self._unknown(around, values)
                new.append((place, fewer, fewer.masks))
        if not new:
            return results  # type: ignore[return-value]
        asked = [around for _, around, _ in new]
        if self.quick is not None and self.quick.cells(asked) <= MAX_CELLS:
            self._reserve(sum([len(masks) for _, _, masks in new]))
            for (place, around, masks), found in zip(new, self.quick(asked), strict=True):
                terms = self._known[around.child]
                before = len(terms)
                terms.update(zip(masks, found.tolist(), strict=True))
                self.n_evaluated += len(terms) - before
                if around is wanted[place]:
                    results[place] = found
        else:
            families = [(around.child, mask) for _, around, masks in new for mask in masks]
            self.many(families, {around.child: around.own for around in asked})
        return [
            found if found is not None else np.array([*map(self._known[around.child].get, around.masks)])
            for around, found in zip(wanted, results, strict=True)
        ]

    def _unknown(self, around: Around, values: Sequence[float | None]) -> Around:
        """The families around one that have no term yet, and the one itself."""
        child, own, add, delete = around
        return Around(
            child,
            own,
            [p for p, value in zip(add, values, strict=False) if value is None],
            [p for p, value in zip(delete, values[len(add) :], strict=False) if value is None],
        )

    def once(self, families: Sequence[tuple[str, ...]]) -> Array:
        """The term of each (*parents, child) by name, not kept: for what is asked a single time.

        Families that follow each other are counted fast where they differ in the first parent alone.
        """
        self.n_evaluated += len(families)
        return self.scorer(families)

    def total(self, parents: Iterable[int]) -> float:
        """The score of the structure in which child i has the parents of the i-th mask."""
        return sum(self.many(list(enumerate(parents))))

    def _reserve(self, count: int, kept: bool = True) -> None:
        """Refuse to keep, or only to list, more terms than fit in memory."""
        n_known = self._n_known + count
        if kept:
            self._n_known = n_known
        if n_known < self._priced:
            return
        self._priced = self._n_known + PRICED
        size = n_known * (KNOWN_BYTES + len(self.names) // 4)
        require_memory(size, f"the scores of {n_known:,} families", "use fewer variables")

    def _family(self, child: int, mask: int, shared: int) -> tuple[str, ...]:
        """(*parents, child) by name, parents in `shared` after the others."""
        names = self.names
        kept = mask & shared
        return (*(names[p] for p in members(mask ^ kept)), *(names[p] for p in members(kept)), names[child])


def _quick_scorer(
    scorer: FamilyScorer, source: DataSource, names: Sequence[str]
) -> TableCounter | GaussianCounter | None:
    """How to score the families around one without their names, where there is such a way."""
    if isinstance(scorer, MixedScorer):
        if scorer.term is None or source.variables:
            return None
        return GaussianCounter(scorer.moments, names, scorer.penalty)
    if isinstance(source, CodedTable) and isinstance(scorer, partial) and not source.incomplete:
        return TableCounter(source, names, scorer.keywords["term"])
    return None
