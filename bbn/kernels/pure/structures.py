"""Markov chains over structures, whose steps redraw a variable's parents or turn an arc round, in Python.

The parent sets of variable i are ``masks[ptr[i]:ptr[i + 1]]``, bit j set for parent j, best first, with the logarithms
of their weights in `scores`. A chain stands at a DAG, the mask of each variable's parents. It keeps the distribution
in which a DAG's probability is in proportion to the product of the weights of its parent sets:

- redraw: one variable's parents, among all its sets that close no cycle, in proportion to their weights;
- turn (Grzegorczyk & Husmeier 2008): an arc i → j is drawn, both ends lose their parents, i gets new ones with j among
  them, then j any that close no cycle. It is accepted with the ratio of what the draws there and back chose from.

Sets e^40 times less probable than the best that fits are passed over.
"""

from __future__ import annotations

import math

import numpy as np

from bbn.kernels import watch
from bbn.kernels.contracts.checks import check_walk
from bbn.kernels.contracts.types import Floats, Ints

NEGLIGIBLE = -40.0


def walk(
    ptr: Ints,
    masks: Ints,
    scores: Floats,
    parents: Ints,
    uniforms: Floats,
    reversals: float,
    every: int,
    arcs: Floats,
) -> None:
    """Walk as many steps as there are rows of five uniforms; `parents` is changed, arcs [parent, child] are added up.

    A step turns an arc with probability `reversals`. Arcs are counted at every `every`-th step, from the first.
    """
    check_walk(ptr, masks, scores, parents, uniforms, arcs)
    n = len(ptr) - 1
    for k, (kind, where, *rest) in enumerate(uniforms.tolist()):
        watch.check()
        if kind < reversals:
            _turn(ptr, masks, scores, parents, where, *rest)
        else:
            i = int(where * n)
            drawn, _ = _draw(ptr, masks, scores, i, _descendants(parents, i), 0, rest[0])
            if drawn >= 0:
                parents[i] = drawn
        if k % every == 0:
            arcs += parents[None, :] >> np.arange(n)[:, None] & 1


def _turn(
    ptr: Ints,
    masks: Ints,
    scores: Floats,
    parents: Ints,
    where: float,
    for_i: float,
    for_j: float,
    accept: float,
) -> None:
    n = len(parents)
    arcs = [(p, c) for c in range(n) for p in range(n) if parents[c] >> p & 1]
    if not arcs:
        return
    i, j = arcs[int(where * len(arcs))]
    before = parents.copy()
    parents[i] = parents[j] = 0
    new_i, there_i = _draw(ptr, masks, scores, i, _descendants(parents, i), 1 << j, for_i)
    _, back_j = _draw(ptr, masks, scores, j, _descendants(parents, j), 1 << i, 0.0)
    parents[j] = before[j]
    _, back_i = _draw(ptr, masks, scores, i, _descendants(parents, i), 0, 0.0)
    parents[j] = 0
    if new_i >= 0:
        parents[i] = new_i
        new_j, there_j = _draw(ptr, masks, scores, j, _descendants(parents, j), 0, for_j)
        if new_j >= 0:
            parents[j] = new_j
            after = int(np.bitwise_count(parents).sum())
            ratio = there_i + there_j - back_i - back_j + math.log(len(arcs) / after)
            if math.log(1.0 - accept) < ratio:
                return
    parents[:] = before


def _draw(
    ptr: Ints, masks: Ints, scores: Floats, i: int, without: int, having: int, uniform: float
) -> tuple[int, float]:
    """A parent set of i without some variables and having others, −1 if there is none, and ln of all their weights."""
    own = slice(ptr[i], ptr[i + 1])
    fitting = (masks[own] & without == 0) & (masks[own] & having == having)
    there, logs = masks[own][fitting], scores[own][fitting]
    if not len(logs) or logs[0] == -math.inf:
        return -1, -math.inf
    weights = np.exp(logs[logs >= logs[0] + NEGLIGIBLE] - logs[0])
    at = int(np.searchsorted(np.cumsum(weights), uniform * weights.sum(), side="right"))
    return int(there[min(at, len(weights) - 1)]), float(logs[0] + math.log(weights.sum()))


def _descendants(parents: Ints, i: int) -> int:
    """A variable and all that it leads to, as a mask."""
    found, before = 1 << i, 0
    while found != before:
        before = found
        for j in np.flatnonzero(parents & found).tolist():
            found |= 1 << j
    return found
