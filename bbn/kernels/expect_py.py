"""The gradient of the log-likelihood in every table entry, for many rows, in numpy.

One junction tree serves all rows. Messages are passed as by Shafer and Shenoy (1990): what a table or a message
receives is the product of everything else, never a quotient, so an entry of 0 has its gradient too. The compiled twin
visits, row by row, only the cells that agree with what is observed; here rows go side by side and the others are 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn.kernels.types import Floats, Int32s, Ints


class Tree(NamedTuple):
    """A junction tree with its cliques numbered parents first.

    Clique c has the axes ``axes[axes_ptr[c]:axes_ptr[c + 1]]``, those shared with its parent first, and streams
    ``stream_ptr[c]`` to ``stream_ptr[c + 1]``: its factors, its children's messages, then (but for a root) its own. A
    stream reads a flat array from ``base`` on, with one stride per axis of the clique from ``strides[stride_ptr]`` on.
    """

    cards: Ints
    axes_ptr: Ints
    axes: Ints
    separator: Ints
    """How many leading axes are shared with the parent; -1 for a root."""
    n_factors: Ints
    n_children: Ints
    stream_ptr: Ints
    base: Ints
    stride_ptr: Ints
    strides: Ints
    message_size: int
    """The cells of all messages."""


def gradient_rows(
    shared: Floats,
    codes: Int32s,
    weights: Floats,
    tree: Tree,
    gradient: Floats,
    logs: Floats,
    row_tables: Floats | None = None,
    row_gradient: Floats | None = None,
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
    """
    if row_tables is None or row_gradient is None:
        row_tables = row_gradient = np.empty((len(codes), 0))
    cliques = [_Clique(tree, c) for c in range(len(tree.n_factors))]
    widest = max([1, tree.message_size, *(clique.size for clique in cliques)])
    step = max(1, ROOM // widest)
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        entries = _Entries(shared, row_tables[rows], gradient, row_gradient[rows])
        logs[rows] = _add_rows(entries, codes[rows], weights[rows], tree, cliques)


ROOM = 1_000_000
"""Cells of rows times clique that are worked on at a time."""


class _Entries(NamedTuple):
    """The tables that all rows share and those of each row, end to end, and their gradients."""

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


class _Clique:
    """The cells of a clique: the state of each axis in each, and the index of each in each stream."""

    def __init__(self, tree: Tree, c: int) -> None:
        self.axes = tree.axes[tree.axes_ptr[c] : tree.axes_ptr[c + 1]].tolist()
        shape = [int(tree.cards[v]) for v in self.axes]
        self.size = int(np.prod(shape, dtype=np.int64))
        self.states = np.indices(shape, dtype=np.int32).reshape(len(shape), self.size)
        self.root = tree.separator[c] < 0
        self.runs = 1 if self.root else int(np.prod(shape[: tree.separator[c]], dtype=np.int64))
        self.factors, self.children = int(tree.n_factors[c]), int(tree.n_children[c])
        self.streams = []
        for s in range(int(tree.stream_ptr[c]), int(tree.stream_ptr[c + 1])):
            strides = tree.strides[tree.stride_ptr[s] : tree.stride_ptr[s + 1]]
            self.streams.append(tree.base[s] + strides @ self.states)

    def terms(self, entries: _Entries, up: Floats) -> list[Floats]:
        """The tables, each (1 or rows, cells), and the children's messages, each (rows, cells)."""
        tables = [entries.read(index) for index in self.streams[: self.factors]]
        return tables + [up[:, index] for index in self.streams[self.factors : self.factors + self.children]]

    def agrees(self, codes: Int32s, cards: Ints) -> Floats:
        """(rows, cells): 1 where the cell agrees with what the row observes."""
        agrees = np.ones((len(codes), self.size))
        for k, v in enumerate(self.axes):
            agrees *= (codes[:, v, None] == self.states[k]) | (codes[:, v, None] == cards[v])
        return agrees

    def own(self, messages: Floats) -> Floats:
        """The columns of the message to the parent, whose axes lead the clique's."""
        start = int(self.streams[-1][0])
        return messages[:, start : start + self.runs]


def _add_rows(
    entries: _Entries, codes: Int32s, weights: Floats, tree: Tree, cliques: list[_Clique]
) -> Floats:
    n = len(codes)
    up, down = np.zeros((n, tree.message_size)), np.zeros((n, tree.message_size))
    logs = np.zeros(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        for clique in reversed(cliques):
            cells = clique.agrees(codes, tree.cards)
            for term in clique.terms(entries, up):
                cells *= term
            sums = cells.reshape(n, clique.runs, -1).sum(axis=2)
            total = sums.sum(axis=1, keepdims=True)
            logs += np.log(total[:, 0])
            if not clique.root:
                clique.own(up)[:] = np.where(total > 0, sums / total, 0.0)
        counted = np.where(np.isneginf(logs), 0.0, weights)[:, None]
        for clique in cliques:
            before = clique.agrees(codes, tree.cards)
            if not clique.root:
                own = clique.own(down)
                own /= own.sum(axis=1, keepdims=True)
                before *= np.repeat(own, clique.size // clique.runs, axis=1)
            terms = clique.terms(entries, up)
            after = [np.ones((1, 1))]
            for term in reversed(terms):
                after.append(after[-1] * term)
            scale = np.where(counted > 0, counted / (before * after.pop()).sum(axis=1, keepdims=True), 0.0)
            for s, term in enumerate(terms):
                others = before * after.pop()
                index = clique.streams[s]
                if s < clique.factors:
                    entries.add(index, np.where(counted > 0, scale * others, 0.0))
                else:
                    np.add.at(down.T, index, others.T)
                before = before * term
    return logs
