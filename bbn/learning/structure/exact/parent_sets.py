"""The parent sets that can be part of a best structure, with their scores: what exact searches start from.

A set is of no use if one of its subsets scores as high: putting the subset in its place makes no cycle and loses
nothing. Sets are scored size by size; a bound on a set and all that contain it spares most of the counting
(`score_bounds`). Without a bound n variables with at most u parents cost O(n^(u+1)) families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.learning.structure.constraints import Constraints
from bbn.learning.structure.exact.levels import Ints, Level
from bbn.learning.structure.exact.local_scores import Sets
from bbn.learning.structure.exact.score_bounds import bound_of
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import Variable

BATCH = 50_000
"""Families that are asked for at a time."""


def useful_sets(
    cache: ScoreCache,
    constraints: Constraints,
    variables: Sequence[Variable],
    score: Any,
    advance: Callable[..., object],
    check: Callable[[], None],
    kept: list[Sets] | None = None,
) -> list[Sets]:
    """For each variable the sets of allowed parents that score higher than all their subsets.

    `advance` is called with the number of families scored, `check` between batches, and it may raise; what was found
    by then is in `kept`, if a list is given.
    """
    n = len(variables)
    kept = [] if kept is None else kept
    kept[:] = ({} for _ in range(n))
    bound = bound_of(cache, variables, score)
    level = Level.first(n)
    while len(level.child):
        values = np.empty(len(level.child))
        for first in range(0, len(values), BATCH):
            check()
            batch = level.only(np.s_[first : first + BATCH])
            values[first : first + BATCH] = cache.once(batch.families(cache.names, constraints.required))
            advance(len(batch.child))
        better = values > level.top
        good = level.only(better)
        for i, mask, value in zip(
            good.child.tolist(), good.masks(constraints.required), values[better].tolist(), strict=True
        ):
            kept[i][mask] = value
        level = level.scored(values)
        larger = level.larger(constraints)
        level = larger.only(~bound.useless(level, larger, constraints))
    return kept


def bare_sets(cache: ScoreCache, constraints: Constraints) -> list[Sets]:
    """For each variable its required parents alone."""
    values = cache.once(Level.first(len(cache.names)).families(cache.names, constraints.required))
    return [{mask: float(value)} for mask, value in zip(constraints.required, values, strict=True)]


class ScoredSets(NamedTuple):
    """Parent sets of every variable and their scores, end to end, as kernels take them; best first."""

    ptr: Ints
    masks: Ints
    scores: Array


def all_sets(
    cache: ScoreCache, constraints: Constraints, advance: Callable[..., object], check: Callable[[], None]
) -> ScoredSets:
    """Every set of allowed parents of every variable, with its score; for at most 62 variables."""
    n = len(cache.names)
    level = Level.first(n)
    children, sets, values = [], [], []
    while len(level.child):
        for first in range(0, len(level.child), BATCH):
            check()
            batch = level.only(np.s_[first : first + BATCH])
            values.append(cache.once(batch.families(cache.names, constraints.required)))
            advance(len(batch.child))
        children.append(level.child)
        sets.append(np.array(level.masks(constraints.required), dtype=np.int64))
        level = level.larger(constraints)
    child, mask, value = np.concatenate(children), np.concatenate(sets), np.concatenate(values)
    order = np.lexsort((mask, -value, child))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=n))])
    return ScoredSets(ptr.astype(np.int64), mask[order], value[order])
