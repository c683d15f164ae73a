"""The best assignments, read from cliques that were maximised toward their roots.

Each clique's axes start with those it shares with its parent. Going from the roots down these are already decided;
they pick one row of the clique, and the largest cell of that row decides the others (Dawid 1992). Any other cell of
the row costs its ratio to the largest, and nothing else changes, as the cliques below then do their best with it. So
the next best assignments come from one collection (Nilsson 1998): each takes one clique's next cell, in the row that
the cliques before it decide, and the best below.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bbn.kernels.contracts.tape import Layout
from bbn.kernels.contracts.types import Floats, Ints
from bbn.kernels.watch import check


class MaximisedForest:
    """The collected potentials of a maximised junction forest.

    Parameters
    ----------
    layout : Layout
        The forest, its cliques parents first.
    cards : int64 array (n,)
        The number of states of each variable.
    work, base : float64 arrays
        The collected potentials of dynamic and of static cliques.
    logs : bool
        Whether the potentials are logarithms.
    """

    def __init__(self, layout: Layout, cards: Ints, work: Floats, base: Floats, logs: bool = False) -> None:
        self.logs = logs
        self.cards: list[int] = cards.tolist()
        starts, axes = layout.axes_ptr.tolist(), layout.axes.tolist()
        self.axes = [axes[a:b] for a, b in pairwise(starts)]
        self.shared: list[int] = layout.separator.tolist()
        self.offset: list[int] = layout.clique.tolist()
        self.buffers = [work if dynamic else base for dynamic in layout.dynamic.tolist()]

    def best(self) -> dict[int, int]:
        """Variable number to code, of the best assignment."""
        states: dict[int, int] = {}
        self.complete(states, 0)
        return states

    def ranked(self) -> Iterator[tuple[dict[int, int], float]]:
        """All possible assignments, best first, each with the ln of its ratio to the best."""
        cliques = len(self.axes)
        made = 0
        # loss, number, the assignment that is departed from, where, which of the row's cells; loss before the departure
        heap: list[tuple[float, int, dict[int, int], int, int, float]] = []
        states, loss, first = self.best(), 0.0, 0
        while True:
            check()
            yield dict(states), -loss
            for c in range(first, cliques):
                made += 1
                self.push(heap, made, states, c, 1, loss)
            if not heap:
                return
            loss, _, departed, c, rank, before = heapq.heappop(heap)
            made += 1
            self.push(heap, made, departed, c, rank + 1, before)
            states = dict(departed)
            self.decide(states, c, int(self.order(states, c)[rank]))
            self.complete(states, c + 1)
            first = c + 1

    def push(
        self,
        heap: list[tuple[float, int, dict[int, int], int, int, float]],
        number: int,
        states: dict[int, int],
        c: int,
        rank: int,
        before: float,
    ) -> None:
        """Offer the assignment that takes, at clique c, the cell of this rank."""
        row = self.row(states, c)
        if rank >= len(row):
            return
        order = self.order(states, c)
        best, cell = self.log(row[order[0]]), self.log(row[order[rank]])
        if cell > -math.inf:
            heapq.heappush(heap, (before + best - cell, number, states, c, rank, before))

    def log(self, cell: float) -> float:
        """The logarithm of a cell."""
        if self.logs:
            return float(cell)
        return math.log(cell) if cell > 0.0 else -math.inf

    def complete(self, states: dict[int, int], first: int) -> None:
        """Decide the cliques from `first` on by their best cells."""
        for c in range(first, len(self.axes)):
            self.decide(states, c, int(self.row(states, c).argmax()))

    def decide(self, states: dict[int, int], c: int, cell: int) -> None:
        """Set the variables that clique c decides as in this cell of its row."""
        for v in reversed(self.axes[c][self.shared[c] :]):
            cell, states[v] = divmod(cell, self.cards[v])

    def row(self, states: dict[int, int], c: int) -> Floats:
        """The cells of clique c that agree with what is decided of its separator."""
        row, columns = 0, 1
        for v in self.axes[c][: self.shared[c]]:
            row = row * self.cards[v] + states[v]
        for v in self.axes[c][self.shared[c] :]:
            columns *= self.cards[v]
        start = self.offset[c] + row * columns
        return self.buffers[c][start : start + columns]

    def order(self, states: dict[int, int], c: int) -> Ints:
        """The cells of that row, best first."""
        return np.argsort(-self.row(states, c), kind="stable")
