"""Pruned trees: the tree of a shape of question whose states that cannot occur are left out, value by value.

An induced part of a triangulated graph is triangulated, so one elimination of the graph of all states serves whatever
states are left. Which elimination is best depends on how many are, and that differs little from value to value. The
tree of the plan for all values comes first; the second question chooses another by the states that it and the first
leave, if that is smaller; and while the shape is asked about again and again, a share of what its answers have cost is
spent on a search (`order_search`) over the states that some questions left.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.inference.exact.order_search import OrderSearch
from bbn.inference.exact.orders import step_cost, triangulate
from bbn.inference.exact.pricing import Question
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

SHARE = 0.15
"""What may be spent on a search, beside all that the answers have cost."""
SAMPLES, WAITED = 8, 16
"""The questions whose numbers of states are taken for those to come: the first that differ, of so many at most."""
ALONE, LOOKING = 1.5, 8.0
"""How many times more cells than a tree of its own a long question may have on the tree that all share, beside what
looking for one costs: so many steps of a climb."""


class Shape(NamedTuple):
    """What all questions of a shape have in common."""

    question: Question
    """With the targets that are read; see `read_targets`."""
    role: Ints
    """Of each variable; see `reduce_scopes`."""
    needed: Ints
    """The factors that count."""
    ptr: Ints
    scope: Ints
    """Their scopes without what is observed, as offsets and members."""


class PrunedTree:
    """The elimination of a shape, which improves while it is used; safe between threads.

    Parameters
    ----------
    elimination
        That of the plan for all values; None if it was given up.
    shape
        What is asked.
    cards
        How many states of each variable the first question leaves.
    """

    def __init__(self, elimination: Elimination | None, shape: Shape, cards: Ints) -> None:
        self.elimination = elimination
        """None where each question has a tree of its own."""
        self.shape = shape
        self.chosen = False
        """Whether it was chosen by the states that are left."""
        self._samples: list[Ints] = [cards]
        self._search: OrderSearch | None = None
        self._ended = True
        """Whether there is nothing more to look for."""
        self.cells = 0.0
        """Those of its cliques, as far as they are known."""
        self._spent = self._earned = 0.0
        self._asked = 0
        self._lock = threading.Lock()

    def choose(self, cards: Ints, order: str) -> None:
        """At the second question, take another elimination if it has fewer cells for it and the first together.

        One for the second alone may be far worse for the first, so one for the more states of the two is tried too.
        """
        known = self.elimination
        if self.chosen or known is None:
            return
        self.chosen = True
        both = [*self._samples[:1], cards]
        found = (
            triangulate(left, self.shape.ptr, self.shape.scope, order) for left in (cards, np.maximum(*both))
        )
        candidates = [known, *(each.elimination for each in found)]
        totals = [sum(kernels.triangulate.total_cells(left, *each) for left in both) for each in candidates]
        self.elimination = candidates[totals.index(min(totals))]
        self._ended = order != "auto"

    def compare(self, cells: float, own: float) -> None:
        """Note how many cells a question has on this tree and on one of its own; it is given up if it is far worse."""
        if self.cells == 0.0:
            self.cells = cells
            known = self.elimination
            if known is not None and own * ALONE + LOOKING * step_cost(known) < cells:
                self.elimination = None

    def used(self, cards: Ints, cells: float) -> None:
        """Note a question that left these numbers of states and what it cost in cells; search where that was enough."""
        known = self.elimination
        if self._ended or known is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._earned += SHARE * cells
            self._asked += 1
            search = self._search
            if search is None:
                if not any((cards == seen).all() for seen in self._samples):
                    self._samples.append(cards)
                if len(self._samples) < SAMPLES and self._asked < WAITED:
                    return
                search = OrderSearch(self._samples, self.shape.ptr, self.shape.scope, known)
                self._search, self.cells = search, search.cells
            if self._spent + search.cost <= self._earned:
                self._spent += search.cost
                if search.burst():
                    self.elimination, self.cells = search.elimination, search.cells
                if search.ended:
                    self._ended, self._search, self._samples = True, None, []
        finally:
            self._lock.release()
