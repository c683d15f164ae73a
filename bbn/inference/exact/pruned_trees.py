"""Pruned trees: the tree of a shape of question whose states that cannot occur are left out, value by value.

An induced part of a triangulated graph is triangulated, so one elimination of the graph of all states serves whatever
states are left. Which elimination is best depends on how many are, and that differs little from value to value. The
tree of the plan for all values comes first; the second question chooses another by the states left then, if that is
smaller; and while the shape is asked about again and again, a share of what its answers have cost is spent on a climb
(`orders.Climb`) over the states that some questions left. All of that is counted in cells, not in seconds, so the same
questions in the same order have the same trees.
"""

from __future__ import annotations

import threading

from bbn import kernels
from bbn.inference.exact.orders import PORTFOLIO, Climb, step_cost, triangulate
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

SHARE = 0.15
"""What may be spent on a climb, beside all that the answers have cost."""
SAMPLES = 8
"""The questions whose numbers of states are taken for those to come: the first that differ."""
BURST = 4
"""The steps that are taken at once."""
PATIENCE = 200
"""The climb ends when so many steps in a row have found nothing better."""


class PrunedTree:
    """The elimination of a shape, which improves while it is used; safe between threads.

    Parameters
    ----------
    elimination
        That of the plan for all values.
    """

    def __init__(self, elimination: Elimination) -> None:
        self.elimination = elimination
        self.chosen = False
        """Whether it was chosen by the states that are left."""
        self._samples: list[Ints] = []
        self._scopes: tuple[Ints, Ints] | None = None
        self._climb: Climb | None = None
        self._ended = False
        self._cells = 0.0
        self._spent = self._earned = 0.0
        self._idle = 0
        self._lock = threading.Lock()

    def choose(self, cards: Ints, scopes: tuple[Ints, Ints], order: str, thorough: bool) -> None:
        """Take the elimination of these scopes that has fewest cells with these numbers of states."""
        self.chosen = True
        found = triangulate(cards, *scopes, order, thorough)
        if found.cells < kernels.triangulate.total_cells(cards, *self.elimination):
            self.elimination = found.elimination
        self._scopes = scopes if order == "auto" else None

    def used(self, cards: Ints, cells: float) -> None:
        """Note a question that left these numbers of states and cost so many cells; climb where that was enough."""
        if self._ended or self._scopes is None or not self._lock.acquire(blocking=False):
            return
        try:
            self._earned += SHARE * cells
            room = self._climb is None and len(self._samples) < SAMPLES
            if room and not any((cards == known).all() for known in self._samples):
                self._samples.append(cards)
            cost = step_cost(self.elimination)
            steps = BURST if self._climb else BURST + len(PORTFOLIO)
            if self._spent + steps * cost <= self._earned:
                self._spent += steps * cost
                self._continue()
        finally:
            self._lock.release()

    def _continue(self) -> None:
        """Some more steps of the climb; its best elimination is taken if it is better than the one there is."""
        climb = self._climb
        if climb is None:
            assert self._scopes is not None
            climb = self._climb = Climb(self._samples, *self._scopes)
            self._cells = climb.cells(self.elimination)
        for _ in range(BURST):
            self._idle = 0 if climb.step() else self._idle + 1
        if climb.best.cells < self._cells:
            self.elimination, self._cells = climb.best.elimination, climb.best.cells
        if self._idle > PATIENCE:
            self._ended, self._climb, self._scopes, self._samples = True, None, None, []
