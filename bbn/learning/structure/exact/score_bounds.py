"""Bounds that save counting parent sets: they hold for a set S and all sets that contain it.

N rows, r the child's number of states, pen the penalty of a score:

- bic, mdl, aic: adding y to Π gains at most N min(H(x | Π), H(y | Π)) and costs (r_y − 1) pen(Π), so S ∋ y is useless
  if the cost is no less (de Campos, Scanagatta, Corani & Zaffalon 2018, theorem 4); and S scores at most −pen(S);
- bdeu, bds, k2: the first row of each setting that was seen has probability 1/r, so S scores at most −K(S) ln r, where
  K(S) is the number of settings of S that were seen (de Campos & Ji 2011; Cussens 2012).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.learning.structure.constraints import Constraints, members
from bbn.learning.structure.exact.levels import Ints, Level
from bbn.learning.structure.neighbours import MAX_CELLS
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import Continuous, Variable


class Bound:
    """No bound: every set may be useful."""

    def useless(self, level: Level, larger: Level, constraints: Constraints) -> NDArray[np.bool_]:
        """Which sets, and all that contain them, score no higher than `top` or than one of their subsets.

        `level` holds the sets of one member less, with their scores.
        """
        return np.zeros(len(larger.child), dtype=bool)


class _PenaltyBound(Bound):
    """For scores that are a likelihood less `unit` per free parameter."""

    def __init__(self, cards: Sequence[int], unit: float) -> None:
        self.cards, self.unit = np.array(cards, dtype=np.float64), unit

    def useless(self, level: Level, larger: Level, constraints: Constraints) -> NDArray[np.bool_]:
        """See `Bound`."""
        fixed = np.array([math.prod(self.cards[list(members(m))].tolist()) for m in constraints.required])
        free = not any(constraints.required)  # a set then means the same for every child
        penalty = self._penalty(fixed, larger.child, larger.members)
        result = -penalty <= larger.top
        for position in range(larger.members.shape[1]):
            added = larger.members[:, position]
            smaller = larger.without(position)
            own = penalty / self.cards[added]
            gain = -(level.score[level.find(larger.child, smaller)] + own)
            if free:
                other = level.find(added, smaller)
                likelihood = level.score[other] + self._penalty(fixed, added, smaller)
                gain = np.where(other >= 0, np.minimum(gain, -likelihood), gain)
            result |= gain <= own * (self.cards[added] - 1)
        return result

    def _penalty(self, fixed: Array, child: Ints, members: Ints) -> Array:
        return np.asarray(
            self.unit * (self.cards[child] - 1) * fixed[child] * self.cards[members].prod(axis=1)
        )


class _FirstRowBound(Bound):
    """For scores that give the first row of every setting seen the probability 1/r."""

    def __init__(self, cache: ScoreCache, cards: Sequence[int]) -> None:
        self.cache, self.cards = cache, cards
        self.seen: dict[int, int] = {0: 1}

    def useless(self, level: Level, larger: Level, constraints: Constraints) -> NDArray[np.bool_]:
        """See `Bound`."""
        if not len(larger.child):
            return np.zeros(0, dtype=bool)
        masks = level.masks(constraints.required)
        self._count(dict.fromkeys(masks))
        seen = np.array([self.seen.get(mask, 1) for mask in masks])
        least = np.ones(len(larger.child))
        for position in range(larger.members.shape[1]):
            at = level.find(larger.child, larger.without(position))
            least = np.maximum(least, seen[at])
        return np.asarray(-least * np.log(np.array(self.cards))[larger.child] <= larger.top)

    def _count(self, masks: Iterable[int]) -> None:
        """Count the settings of sets that were seen; those of a set too large to count are taken as one."""
        batch: list[int] = []
        cells = 0
        for mask in [*(m for m in masks if m not in self.seen), None]:
            size = math.prod(self.cards[p] for p in members(mask)) if mask else 0
            if batch and (mask is None or cells + size > MAX_CELLS):
                names = [tuple(self.cache.names[p] for p in members(m)) for m in batch]
                tables = self.cache.source.counts(names)
                self.seen.update((m, int(np.count_nonzero(t))) for m, t in zip(batch, tables, strict=True))
                batch, cells = [], 0
            if mask is not None and size <= MAX_CELLS:
                batch.append(mask)
                cells += size


PENALTIES = ("bic", "mdl", "aic")
FIRST_ROW = ("bdeu", "bds", "k2")


def bound_of(cache: ScoreCache, variables: Sequence[Variable], score: Any) -> Bound:
    """The bound that a score has."""
    if any(isinstance(v, Continuous) for v in variables):
        return Bound()
    cards = [v.card for v in variables]
    if score in PENALTIES:
        total = cache.source.total
        return _PenaltyBound(cards, 1.0 if score == "aic" else 0.5 * math.log(total) if total > 0 else 0.0)
    whole = all(not (t % 1).any() for t in cache.source.counts([(v.name,) for v in variables]))
    if whole and (score in FIRST_ROW or hasattr(score, "equivalent_sample_size")):
        return _FirstRowBound(cache, cards)
    return Bound()
