"""Plan improvement: a plan that is run again and again gets a better order.

A first question pays for a short search for an order. When its plan has been run some dozens of times, and then each
time that it has been run four times as often, a tenth of what the runs have cost, counted in cells, goes on with that
search (`order_search`), and a tree that is clearly smaller is laid out in place of the one there is.
"""

from __future__ import annotations

import threading

from bbn.inference.exact.flat_model import FlatModel
from bbn.inference.exact.long_runs import tape_cells
from bbn.inference.exact.order_search import OrderSearch
from bbn.inference.exact.pricing import Price, Question, laid_out, read_targets, reduced
from bbn.kernels.contracts.tape import Layout

SHARE = 0.1
"""What may be spent on a search, beside all that the runs have cost."""
SMALLER = 0.95
"""The share of its cells that a tree must at most have to be laid out in place of another."""


class PlanImprovement:
    """The search for a better order of a plan; safe between threads.

    Parameters
    ----------
    model, question, cost
        What the plan was made of.
    slab
        The most cells of a slab; see `pricing.slab_of`.
    """

    def __init__(self, model: FlatModel, question: Question, cost: Price, slab: int) -> None:
        self._model, self._question, self._slab = model, question, slab
        self._elimination, self._cells = cost.elimination, cost.cells
        self._search: OrderSearch | None = None
        self._spent = 0.0
        self._lock = threading.Lock()

    def layout(self, known: Layout, most: int, runs: int) -> Layout | None:
        """A better layout than the one that is known, after so many runs; None if there is none.

        A plan of it takes no more than `most` bytes. None too if another thread is looking for one.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            cost = self._looked(runs)
            if cost is None or cost.layout is None or cost.bytes - self._model.tables.nbytes > most:
                return None
            # what evidence cannot change is computed once, so fewer cells may still be more in each run
            return cost.layout if tape_cells(cost.layout.run) <= SMALLER * tape_cells(known.run) else None
        finally:
            self._lock.release()

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to look for."""
        return self._search is not None and self._search.ended

    def _looked(self, runs: int) -> Price | None:
        model, question = self._model, self._question
        targets = read_targets(model, question)
        role, factors, ptr, scope = reduced(model, question, targets)
        search = self._search
        if search is None:
            search = self._search = OrderSearch([model.cards], ptr, scope, self._elimination)
        earned = SHARE * runs * self._cells
        while not search.ended and self._spent + search.cost <= earned:
            self._spent += search.cost
            search.burst()
        if search.cells > SMALLER * self._cells:
            return None
        self._cells = search.cells
        found = search.elimination, search.cells, 1, search.cells
        return laid_out(model, question.goal, targets, role, factors, found, False, self._slab)
