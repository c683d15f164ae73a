"""Cutset conditioning: a question too large for the memory is answered for each state of a variable, one by one.

A case has a smaller plan. As further states cannot occur in it and more variables fix each other, it is often smaller
by more than the number of cases. With ``w[s]``, the weight of all evidence with state s, the answer is the mean of
those of the cases weighted by ``w``, and the weight of the evidence is the sum of ``w`` (Pearl 1986). The best
assignments are the best of those of all cases.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from operator import itemgetter

import numpy as np

from bbn import kernels
from bbn.inference.exact.problem import IMPOSSIBLE, Answer, Factors
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

DEEPEST = 8
"""The most variables that are taken case by case."""
TRIED = 24
"""The variables that are tried: those in the largest cliques."""


def together(cases: Iterable[Answer], k: int) -> Answer:
    """The answer of all cases, of a maximum the k best; each is let go before the next is answered."""
    whole = IMPOSSIBLE
    for case in cases:
        whole = _best(whole, case, k) if case.ranking else _mixed(whole, case)
    return whole


def _mixed(one: Answer, other: Answer) -> Answer:
    """The mean of two answers, by their weights."""
    if one.log == -math.inf or other.log == -math.inf:
        return other if one.log == -math.inf else one
    log = float(np.logaddexp(one.log, other.log))
    values = math.exp(one.log - log) * one.values + math.exp(other.log - log) * other.values
    return other._replace(values=values, log=log)


def _best(one: Answer, other: Answer, k: int) -> Answer:
    """The k best assignments of two answers."""
    listed = [(codes, own.log + ratio) for own in (one, other) for codes, ratio in own.ranking]
    best = heapq.nlargest(k, listed, key=itemgetter(1))
    top = best[0][1]
    return Answer(np.empty(0), top, None, [(codes, log - top) for codes, log in best])


def case_variable(
    model: Factors, elimination: Elimination, left: Callable[[int, int], Ints | None]
) -> tuple[int, float]:
    """The variable whose cases have the fewest cells together, as foreseen on this elimination, and these cells.

    Only a variable that some table of the question tells of divides the weight of the evidence among its states: each
    case of another would have all of it. `left` says how many states of each variable a state of one leaves, None if it
    cannot occur.
    """
    order, ptr, near = elimination
    weights = np.full(len(model.cards), -1.0)
    weights[model.scope] = 0.0
    for k, cells in enumerate(kernels.triangulate.cells(model.cards, *elimination).tolist()):
        weights[order[k]] += cells
        weights[near[ptr[k] : ptr[k + 1]]] += cells
    best, fewest = -1, math.inf
    for v in np.argsort(-weights, kind="stable")[:TRIED].tolist():
        if model.cards[v] < 2 or weights[v] < 0.0:
            continue
        total = 0.0
        for state in range(int(model.cards[v])):
            cards = left(v, state)
            if cards is not None:
                smaller = kernels.triangulate.induced(cards, [], *elimination)
                total += kernels.triangulate.total_cells(cards, *smaller)
        if total < fewest:
            best, fewest = v, total
    return best, fewest
