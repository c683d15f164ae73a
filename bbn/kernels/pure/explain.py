"""The best assignments, read from cliques that were maximised toward their roots.

Each clique's axes start with those it shares with its parent. Going from the roots down these are already decided;
they pick one row of the clique, and the largest cell of that row decides the others (Dawid 1992). Any other cell of
the row costs its ratio to the largest, and nothing else changes, as the cliques below then do their best with it. So
the next best assignments come from one collection (Nilsson 1998): each takes one clique's next cell, in the row that
the cliques before it decide, and the best below.

Cells that differ by less than the share TIE of the larger tie, and the first of them counts as the best; so the answer
does not depend on the order in which a run multiplied its numbers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import check_doubles, check_findings, check_ints, check_length
from bbn.kernels.contracts.remade import RemadeRow, check_remade, remade_rows
from bbn.kernels.contracts.tape import Layout
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.watch import check

TIE = 1e-12
DIGITS = 12
"""Losses that agree in so many decimals tie, and the departure that was offered first is taken first."""


class Explainer:
    """Reads the best assignments from runs of one program that maximises.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    tables : float64 array
        The model's tables.
    layout : Layout
        That of the program, its cliques parents first.
    remade : int64 array, optional
        How the rows of cliques that are not stored are made; see `contracts.remade`.
    """

    def __init__(self, cards: Ints, tables: Floats, layout: Layout, remade: Ints | None = None) -> None:
        check_ints(cards)
        check_doubles(tables)
        check_length(tables.size, layout.tables_size, "tables")
        self.tables, self.sizes = tables, (layout.work_size, layout.base_size)
        self.cards: list[int] = cards.tolist()
        if remade is not None:
            check_remade(cards, layout, remade)
        starts, axes = layout.axes_ptr.tolist(), layout.axes.tolist()
        self.axes = [axes[a:b] for a, b in pairwise(starts)]
        self.shared: list[int] = layout.separator.tolist()
        self.offset: list[int] = layout.clique.tolist()
        self.dynamic: list[bool] = (layout.dynamic != 0).tolist()
        self.columns = [
            math.prod(self.cards[v] for v in own[k:]) for own, k in zip(self.axes, self.shared, strict=True)
        ]
        self.remade: dict[int, RemadeRow] = {} if remade is None else dict(remade_rows(layout, remade))

    def ranked(
        self, work: Floats, base: Floats, hard: Pairs = (), likelihoods: Vectors = (), logs: bool = False
    ) -> Ranked:
        """The possible assignments, best first.

        Parameters
        ----------
        work, base : float64 arrays
            The collected potentials of dynamic and of static cliques. The run's own are written to.
        hard, likelihoods
            Those of the run.
        logs : bool
            Whether the potentials are logarithms; then all are stored.
        """
        return Ranked(self, work, base, hard, likelihoods, logs)


class Ranked:
    """All possible assignments, best first: the codes of the variables, and ln of the ratio to the best."""

    def __init__(
        self,
        plan: Explainer,
        work: Floats,
        base: Floats,
        hard: Pairs,
        likelihoods: Vectors,
        logs: bool,
    ) -> None:
        if work.size < plan.sizes[0] or base.size < plan.sizes[1]:
            raise ValueError("these are not the potentials of a run")
        self.plan, self.logs = plan, logs
        self.work, self.base = work, base
        self.hard = dict(hard)
        self.likelihoods = {v: np.array(values, np.float64) for v, values in likelihoods}
        check_findings(plan.cards, self.hard, self.likelihoods)
        self.answers = self._departures()

    def __iter__(self) -> Iterator[tuple[Ints, float]]:
        return self

    def __next__(self) -> tuple[Ints, float]:
        return next(self.answers)

    def _departures(self) -> Iterator[tuple[Ints, float]]:
        cliques = len(self.plan.axes)
        # key, number; what is departed from, where, which cell of the order, the loss, and that before the departure
        heap: list[tuple[float, int, Ints, int, int, float, float]] = []
        codes: Ints = np.full(len(self.plan.cards), -1, np.int64)
        for v, code in self.hard.items():
            codes[v] = code
        loss, first, made = 0.0, 0, 0
        self._complete(codes, 0)
        while True:
            check()
            yield codes.copy(), -loss
            for c in range(first, cliques):
                made += 1
                self._push(heap, made, codes, c, 1, loss)
            if not heap:
                return
            _, _, departed, c, rank, own, before = heapq.heappop(heap)
            loss = max(loss, own)
            made += 1
            self._push(heap, made, departed, c, rank + 1, before)
            codes = departed.copy()
            self._decide(codes, c, _order(*self._row(codes, c), rank)[rank])
            self._complete(codes, c + 1)
            first = c + 1

    def _push(
        self,
        heap: list[tuple[float, int, Ints, int, int, float, float]],
        number: int,
        codes: Ints,
        c: int,
        rank: int,
        before: float,
    ) -> None:
        """Offer the assignment that takes, at clique c, the cell of this rank."""
        row, logs = self._row(codes, c)
        order = _order(row, logs, rank)
        if rank < len(order):
            best, cell = (float(row[k]) if logs else math.log(row[k]) for k in (order[0], order[rank]))
            loss = before + best - cell
            heapq.heappush(heap, (round(loss, DIGITS), number, codes, c, rank, loss, before))

    def _complete(self, codes: Ints, first: int) -> None:
        """Decide the cliques from `first` on by their best cells."""
        for c in range(first, len(self.plan.axes)):
            row, logs = self._row(codes, c)
            floor = row.max() - TIE if logs else row.max() * (1 - TIE)
            self._decide(codes, c, int((row > floor).argmax()))

    def _decide(self, codes: Ints, c: int, cell: int) -> None:
        """Set the variables that clique c decides as in this cell of its row."""
        for v in reversed(self.plan.axes[c][self.plan.shared[c] :]):
            cell, codes[v] = divmod(cell, self.plan.cards[v])

    def _row(self, codes: Ints, c: int) -> tuple[Floats, bool]:
        """The cells of clique c that agree with what is decided of its separator, and whether they are logarithms."""
        plan = self.plan
        shared = plan.axes[c][: plan.shared[c]]
        if c in plan.remade and not self.logs:
            return self._made(plan.remade[c], [int(codes[v]) for v in shared], plan.columns[c])
        row = 0
        for v in shared:
            row = row * plan.cards[v] + int(codes[v])
        start = plan.offset[c] + row * plan.columns[c]
        return (self.work if plan.dynamic[c] else self.base)[start : start + plan.columns[c]], self.logs

    def _made(self, how: RemadeRow, shared: list[int], columns: int) -> tuple[Floats, bool]:
        parts = []
        for f in how.factors:
            buffer, at = (self.plan.tables, self.base, self.work)[f.buffer], f.offset
            if f.kind == t.LIKELY:
                if f.offset not in self.likelihoods:
                    continue
                buffer, at = self.likelihoods[f.offset], 0
            at += sum(self.hard[v] * stride for v, stride in zip(f.moves[::2], f.moves[1::2], strict=True))
            at += sum(code * stride for code, stride in zip(shared, f.shared, strict=True))
            view = np.ndarray(f.dims, np.float64, buffer, 8 * at, [8 * stride for stride in f.strides])
            parts.append(view.reshape(columns))
        try:
            with np.errstate(all="raise"):
                return np.asarray(np.prod(parts, axis=0)) * np.ones(columns), False
        except FloatingPointError:  # a product left the range of a double
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(parts).sum(axis=0)), True


def _order(row: Floats, logs: bool, rank: int) -> list[int]:
    """The possible cells of a row to this rank or further, best first; of those that tie, the first."""
    order: list[int] = []
    left = row > (-math.inf if logs else 0.0)
    while len(order) <= rank and left.any():
        best = row[left].max()
        tied = np.flatnonzero(left & (row > (best - TIE if logs else best * (1 - TIE))))
        order += tied.tolist()
        left[tied] = False
    return order
