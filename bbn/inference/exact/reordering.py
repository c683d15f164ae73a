"""Reordering: a search for a better elimination that goes on while an elimination is used.

A question that is asked again and again pays for a longer search than a first one does. The search is put aside and
continued, a burst at a time: pieces of the elimination are ordered anew (`kernels.pieces`); once that finds little,
the biases of the rules climb from the start (`orders.Climb`), and the pieces of what that finds are ordered anew too.
What a burst costs is counted in nominal seconds, so the same questions in the same order have the same trees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bbn import kernels
from bbn.inference.exact.elimination_orders import Climb, step_cost
from bbn.inference.exact.prices import PIECE
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

PIECES, STEPS = 64, 4
"""The pieces, or the steps of the climb, of a burst."""
BURSTS, LITTLE = 16, 0.995
"""Pieces end when so many bursts of them leave a larger share of the cells than this."""
IDLE_STEPS = 100
"""The climb ends when so many steps in a row have found nothing better."""


class OrderSearch:
    """A search that is put aside and continued.

    Parameters
    ----------
    samples
        The states of each variable, as they may be; what counts is the mean number of cells.
    ptr, scope
        The scopes as offsets and members.
    elimination
        Where to begin.
    """

    def __init__(self, samples: list[Ints], ptr: Ints, scope: Ints, elimination: Elimination) -> None:
        self._samples, self._ptr, self._scope = samples, ptr, scope
        self._pieces = self._of(elimination)
        self._climb: Climb | None = None
        self._climbed = False
        self._idle = self._bursts = 0
        self._before = self._pieces.cells()
        self._step_cost = step_cost(elimination)
        self.elimination = elimination
        """The best so far."""
        self.cells = self._before
        """The mean number of its cells."""
        self.ended = False
        """Whether there is nothing more to look for."""

    @property
    def cost(self) -> float:
        """What the next burst costs."""
        if self._climb is None:
            return PIECES * PIECE
        return STEPS * self._step_cost

    def burst(self) -> bool:
        """Go on for a while; whether there is a better elimination by now."""
        if self.ended:
            return False
        if self._climb is not None:
            self._continue(self._climb)
            return False
        pieces = self._pieces
        pieces.improve(PIECES)
        self._bursts += 1
        if self._bursts % BURSTS == 0:
            if pieces.cells() > LITTLE * self._before:
                self._next()
            self._before = pieces.cells()
        if not pieces.cells() < self.cells:
            return False
        self.elimination, self.cells = pieces.elimination(), pieces.cells()
        return True

    def _continue(self, climb: Climb) -> None:
        """Some steps of the climb; its best is where pieces begin anew when it ends."""
        for _ in range(STEPS):
            self._idle = 0 if climb.step() else self._idle + 1
        if self._idle >= IDLE_STEPS:
            self._pieces = self._of(climb.best.elimination)
            self._before = self._pieces.cells()
            self._climb = None

    def _next(self) -> None:
        """The climb comes after the first pieces, nothing after the second."""
        self.ended, self._climbed = self._climbed, True
        if not self.ended:
            self._climb = Climb(self._samples, self._ptr, self._scope)

    def _of(self, elimination: Elimination) -> Any:
        return kernels.pieces.Pieces(
            np.array(self._samples, np.float64), self._ptr, self._scope, *elimination
        )
