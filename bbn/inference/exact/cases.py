"""Cases: a question too large for the memory is answered for each state of a variable, one after another.

A case has a smaller plan. As further states cannot occur in it and more variables fix each other, it is often smaller
by more than the number of cases. With ``w[s]``, the weight of all evidence with state s, the answer is the mean of
those of the cases weighted by ``w``, and the weight of the evidence is the sum of ``w`` (cutset conditioning: Pearl
1986). The best assignments are the best of those of all cases.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple, Protocol

import numpy as np

from bbn import kernels
from bbn.inference.exact.flat_model import FlatModel
from bbn.inference.exact.plan import Ranking
from bbn.kernels.contracts.types import Floats, Ints
from bbn.model.graphs import Elimination

DEEPEST = 8
"""The most variables that are taken case by case."""
BEARABLE = 3e11
"""The most cells of all cases, as foreseen on an order that was looked for briefly: mostly some minutes."""
TRIED = 24
"""The variables that are tried: those in the largest cliques."""


class Answer(Protocol):
    """The answer of a case."""

    @property
    def log_evidence(self) -> float:
        """ln of the weight of the evidence with this state."""

    def joint(self, targets: Sequence[int]) -> Floats:
        """The joint of the targets over all their states, flat."""

    def marginals(self) -> Floats:
        """The marginals of all variables over all their states, one after another."""

    def best(self) -> Ranking:
        """The best assignments, and ln of their ratio to the best."""


class CaseAnswer(NamedTuple):
    """The answer of all cases together."""

    values: Floats
    """Of the one kind that was asked for: the joint of the targets, or the marginals of all variables."""
    log_evidence: float
    """ln of the weight of the evidence; of a maximum, of the best assignment."""
    found: Ranking
    """Of a maximum: the best assignments."""

    def joint(self, targets: Sequence[int]) -> Floats:
        """The joint of the targets over all their states, flat."""
        return self.values

    def marginals(self) -> Floats:
        """The marginals of all variables over all their states, one after another."""
        return self.values

    def best(self) -> Ranking:
        """The best assignments, and ln of their ratio to the best."""
        return self.found


def together(cases: Iterable[Answer], read: Callable[[Answer], Floats]) -> CaseAnswer:
    """The answer of all cases; each is read, and let go, before the next is answered."""
    values, total = np.empty(0), -math.inf
    for case in cases:
        log, own = case.log_evidence, read(case)
        del case  # and its plan with it
        both = float(np.logaddexp(total, log))
        if total == -math.inf:
            values = own
        elif log > -math.inf:
            values = math.exp(total - both) * values + math.exp(log - both) * own
        total = both
    return CaseAnswer(values, total, [])


def best_together(cases: Iterable[Answer], k: int) -> CaseAnswer:
    """The k best assignments of all cases."""
    found: Ranking = []
    for case in cases:
        log, own = case.log_evidence, case.best()
        del case
        found = heapq.nlargest(
            k, [*found, *((codes, log + ratio) for codes, ratio in own)], key=itemgetter(1)
        )
    top = found[0][1] if found else -math.inf
    return CaseAnswer(np.empty(0), top, [(codes, log - top) for codes, log in found])


def case_variable(
    model: FlatModel, elimination: Elimination, left: Callable[[int, int], Ints | None]
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
