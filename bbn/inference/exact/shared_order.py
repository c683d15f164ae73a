"""Shared orders: one elimination for all values of a question whose states that cannot occur are left out.

An induced part of a triangulated graph is triangulated, so one elimination of the graph of all states serves whatever
states are left. Which elimination is best depends on how many are, and that differs little from value to value. The
tree of the plan for all values comes first; the second question chooses another by the states that it and the first
leave, if that is smaller; and while the shape is asked about again and again, a share of what its answers have cost is
spent on a search (`reordering`) over the states that some questions left.
"""

from __future__ import annotations

import threading

import numpy as np

from bbn import kernels
from bbn.inference.exact.elimination_orders import HUGE, Order, step_cost, triangulate
from bbn.inference.exact.problem import Factors, Question, Relevant
from bbn.inference.exact.reordering import OrderSearch
from bbn.inference.exact.tree_plan import TreePlan, plan_on, plan_tree
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

SHARE = 0.15
"""What may be spent on a search, beside all that the answers have cost."""
SAMPLES, WAITED = 8, 16
"""The questions whose numbers of states are taken for those to come: the first that differ, of so many at most."""
FAR = 2.0
"""How many times the cells that an order is known to have make it worth looking for another for one question alone."""
ALONE, LOOKING = 1.5, 8.0
"""How many times more a long question may cost on the order that all share than on one of its own, beside what looking
for one costs: so many steps of a climb."""


class SharedOrder:
    """The elimination of a shape, which improves while it is used; safe between threads.

    Parameters
    ----------
    elimination
        That of the plan for all values; None if it was given up.
    needed
        What the question needs.
    cards
        How many states of each variable the first question leaves.
    """

    def __init__(self, elimination: Elimination | None, needed: Relevant, cards: Ints) -> None:
        self.elimination = elimination
        """None where each question has a tree of its own."""
        self._needed = needed
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

    def plan(
        self, model: Factors, question: Question, order: str, making: float, limit: int | float | str | None
    ) -> TreePlan:
        """The plan of a question about the states that are left, on this order or, where that is far off, on its own.

        `making` is what each question costs beside its run.
        """
        self._choose(model.cards, order)
        known = self.elimination
        if known is None:
            return plan_tree(model, question, order, once=True, limit=limit)
        plan = self.plan_on(model, question, known)
        if plan.cells > max(HUGE, FAR * self.cells):
            own = plan_tree(model, question, order, once=True, limit=limit)
            if self.cells == 0.0:
                self.cells = plan.cells
                if own.seconds * ALONE + LOOKING * step_cost(known) < plan.seconds:
                    self.elimination = None
            plan = own if own.cells < plan.cells else plan
        self._used(model.cards, plan.seconds + making)
        return plan

    def plan_on(self, model: Factors, question: Question, elimination: Elimination) -> TreePlan:
        """The plan on an order of all states, without the variables that have one left; those read or weighed stay."""
        stay = [*question.targets, *question.likelihood]
        smaller = kernels.triangulate.induced(model.cards, stay, *elimination)
        cells = kernels.triangulate.total_cells(model.cards, *smaller)
        needed = self._needed._replace(factors=np.arange(len(model.heads)))
        return plan_on(model, question, needed, Order(smaller, cells, 1, cells), store=True)

    def _choose(self, cards: Ints, order: str) -> None:
        """At the second question, take another elimination if it has fewer cells for it and the first together.

        One for the second alone may be far worse for the first, so one for the more states of the two is tried too.
        """
        known = self.elimination
        if self.chosen or known is None:
            return
        self.chosen = True
        both = [*self._samples[:1], cards]
        found = (
            triangulate(left, self._needed.ptr, self._needed.scope, order)
            for left in (cards, np.maximum(*both))
        )
        candidates = [known, *(each.elimination for each in found)]
        totals = [sum(kernels.triangulate.total_cells(left, *each) for left in both) for each in candidates]
        self.elimination = candidates[totals.index(min(totals))]
        self._ended = order != "auto"

    def _used(self, cards: Ints, seconds: float) -> None:
        """Note a question that left these numbers of states and what it cost; search where that was enough."""
        known = self.elimination
        if self._ended or known is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._earned += SHARE * seconds
            self._asked += 1
            search = self._search
            if search is None:
                if not any((cards == seen).all() for seen in self._samples):
                    self._samples.append(cards)
                if len(self._samples) < SAMPLES and self._asked < WAITED:
                    return
                search = OrderSearch(self._samples, self._needed.ptr, self._needed.scope, known)
                self._search, self.cells = search, search.cells
            if self._spent + search.cost <= self._earned:
                self._spent += search.cost
                if search.burst():
                    self.elimination, self.cells = search.elimination, search.cells
                if search.ended:
                    self._ended, self._search, self._samples = True, None, []
        finally:
            self._lock.release()
