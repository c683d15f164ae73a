"""The gradient of the log-likelihood in every table entry, for many rows, in numpy.

One junction tree serves all rows. Messages are passed as by Shafer and Shenoy (1990): what a table or a message
receives is the product of everything else, never a quotient, so an entry of 0 has its gradient too. The compiled twin
visits, row by row, only the cells that agree with what is observed; here rows go side by side and the others are 0.
Everything is a logarithm here, so no product is too small; the compiled twin takes wide numbers where it must.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import check_rows, check_shape
from bbn.kernels.contracts.tree import Tree
from bbn.kernels.contracts.types import Floats, Int32s, Ints
from bbn.kernels.logarithms import log_sum
from bbn.kernels.watch import check


def gradient_rows(
    shared: Floats,
    codes: Int32s,
    weights: Floats,
    tree: Tree,
    gradient: Floats,
    logs: Floats,
    row_tables: Floats | None = None,
    row_gradient: Floats | None = None,
    counts: bool = False,
) -> None:
    """Add each row's gradient, times its weight, to `gradient`, and write ln P(row) to `logs`.

    Parameters
    ----------
    shared : float64 array
        The tables that all rows share, flat.
    codes : int32 array (rows, variables)
        The code ``card`` means missing.
    weights : float64 array (rows,)
        A row of weight 0 adds nothing.
    tree
        The junction tree.
    gradient : float64 array like `shared`
        Receives Σ weight · ∂ ln P(row) / ∂ entry, each entry taken as free of the others.
    logs : float64 array (rows,)
        -inf where a row is impossible, which adds nothing to the gradient.
    row_tables, row_gradient : float64 arrays (rows, entries)
        Tables that each row has for itself, which lie after the shared ones, and their gradient, of zeros at first.
    counts : bool
        Whether only the gradient times the entry is asked for: the gradient of an entry of 0 may then be anything. The
        compiled twin leaves out cells of zero where they are many.
    """
    check_rows(np.arange(len(tree.cards)), codes, tree.cards)
    check_shape("weights", weights, len(codes))
    check_shape("logs", logs, len(codes))
    check_shape("gradient", gradient, len(shared))
    if row_tables is None or row_gradient is None:
        row_tables = row_gradient = np.empty((len(codes), 0))
    with np.errstate(divide="ignore"):
        logs_shared, logs_rows = np.log(shared), np.log(row_tables)
    cliques = [_Clique(tree, c) for c in range(len(tree.n_factors))]
    widest = max([1, tree.message_size, *(clique.size for clique in cliques)])
    step = max(1, ROOM // widest)
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        check()
        entries = _Entries(logs_shared, logs_rows[rows], gradient, row_gradient[rows])
        logs[rows] = _add_rows(entries, codes[rows], weights[rows], tree, cliques)


ROOM = 1_000_000
"""Cells of rows times clique that are worked on at a time."""


LARGEST = float(np.finfo(np.float64).max)


class _Entries(NamedTuple):
    """The logs of the tables that all rows share and of those of each row, end to end, and their gradients."""

    shared: Floats
    row_tables: Floats
    gradient: Floats
    row_gradient: Floats

    def read(self, index: Ints) -> Floats:
        """Some entries, (1 or rows, entries)."""
        n = len(self.shared)
        return self.shared[index][None] if index[0] < n else self.row_tables[:, index - n]

    def add(self, index: Ints, slopes: Floats) -> None:
        """Add the rows' slopes to the gradient of some entries."""
        n = len(self.shared)
        if index[0] < n:
            np.add.at(self.gradient, index, slopes.sum(axis=0))
        else:
            np.add.at(self.row_gradient.T, index - n, slopes.T)


class _Stream(NamedTuple):
    """A table or message as seen from a clique."""

    cells: Ints
    """Where each of the clique's cells is in it."""
    summed: tuple[int, ...]
    """The axes of (rows, *clique) that it does not have."""
    order: tuple[int, ...]
    """The axes that are left, rows first, in its own order."""


class _Clique:
    """The cells of a clique: the state of each axis in each, and the tables and messages that meet there."""

    def __init__(self, tree: Tree, c: int) -> None:
        self.axes = tree.axes[tree.axes_ptr[c] : tree.axes_ptr[c + 1]].tolist()
        self.shape = [int(tree.cards[v]) for v in self.axes]
        self.size = int(np.prod(self.shape, dtype=np.int64))
        self.states = np.indices(self.shape, dtype=np.int32).reshape(len(self.shape), self.size)
        self.root = tree.separator[c] < 0
        self.runs = 1 if self.root else int(np.prod(self.shape[: tree.separator[c]], dtype=np.int64))
        self.factors, self.children = int(tree.n_factors[c]), int(tree.n_children[c])
        self.streams = []
        for s in range(int(tree.stream_ptr[c]), int(tree.stream_ptr[c + 1])):
            strides = tree.strides[tree.stride_ptr[s] : tree.stride_ptr[s + 1]]
            kept = np.flatnonzero(strides)
            order = np.argsort(-strides[kept], kind="stable") + 1
            summed = tuple((np.flatnonzero(strides == 0) + 1).tolist())
            index = tree.base[s] + strides @ self.states
            self.streams.append(_Stream(index, summed, (0, *order.tolist())))

    def terms(self, entries: _Entries, up: Floats) -> list[Floats]:
        """The tables, each (1 or rows, cells), and the children's messages, each (rows, cells)."""
        tables = [entries.read(stream.cells) for stream in self.streams[: self.factors]]
        children = self.streams[self.factors : self.factors + self.children]
        return tables + [up[:, stream.cells] for stream in children]

    def agrees(self, codes: Int32s, cards: Ints) -> Floats:
        """(rows, cells): 0 where the cell agrees with what the row observes, else -inf."""
        agrees = np.ones((len(codes), self.size), bool)
        for k, v in enumerate(self.axes):
            agrees &= (codes[:, v, None] == self.states[k]) | (codes[:, v, None] == cards[v])
        return np.where(agrees, 0.0, -np.inf)

    def own(self, messages: Floats) -> Floats:
        """The columns of the message to the parent, whose axes lead the clique's."""
        start = int(self.streams[-1].cells[0])
        return messages[:, start : start + self.runs]

    def send(self, stream: _Stream, cells: Floats, messages: Floats) -> None:
        """Set a message to the sum of the cells over the axes that it does not have."""
        summed = log_sum(cells.reshape(len(cells), *self.shape), stream.summed) if stream.summed else cells
        kept = [len(cells), *(card for k, card in enumerate(self.shape, 1) if k not in stream.summed)]
        message = summed.reshape(kept).transpose(stream.order).reshape(len(cells), -1)
        start = int(stream.cells[0])
        messages[:, start : start + message.shape[1]] = message


def _add_rows(
    entries: _Entries, codes: Int32s, weights: Floats, tree: Tree, cliques: list[_Clique]
) -> Floats:
    n = len(codes)
    up, down = np.zeros((n, tree.message_size)), np.zeros((n, tree.message_size))
    logs = np.zeros(n)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
        for clique in reversed(cliques):
            cells = clique.agrees(codes, tree.cards)
            for term in clique.terms(entries, up):
                cells += term
            if clique.root:
                logs += log_sum(cells, 1)
            else:
                clique.own(up)[:] = log_sum(cells.reshape(n, clique.runs, -1), 2)
        counted = np.where(np.isneginf(logs), 0.0, weights)
        scale = np.log(counted)[:, None]
        for clique in cliques:
            before = clique.agrees(codes, tree.cards)
            if not clique.root:
                before += np.repeat(clique.own(down), clique.size // clique.runs, axis=1)
            terms = clique.terms(entries, up)
            after = [np.zeros((1, 1))]
            for term in reversed(terms):
                after.append(after[-1] + term)
            total = log_sum(before + after.pop(), 1)[:, None]
            for s, term in enumerate(terms):
                stream, others = clique.streams[s], before + after.pop()
                if s < clique.factors:
                    slopes = np.exp(scale + others - total)
                    entries.add(
                        stream.cells, np.where(counted[:, None] > 0, np.minimum(slopes, LARGEST), 0.0)
                    )
                else:
                    clique.send(stream, others, down)
                before = before + term
    return logs
