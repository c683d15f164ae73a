"""Supports: which cells of the cliques of a plan can be other than zero, whatever value is observed.

A clique's support is the product of the supports of its tables (for some value of what is observed of each), and then
goes up and down the tree once, as messages do. The tables of a clique are read off the tapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.tape import Layout, instructions, operand
from bbn.kernels.contracts.types import Floats, Ints

Flags = NDArray[np.bool_]


class Step(NamedTuple):
    """A step of a sweep over a clique, with one stride for each axis."""

    kind: int
    buffer: int
    offset: int
    moves: tuple[int, ...]
    strides: tuple[int, ...]


class Cliques:
    """The cliques of a layout: their axes, where their messages lie, and the sweeps over them."""

    def __init__(self, cards: Ints, layout: Layout) -> None:
        self.cards, self.layout = cards, layout
        self.parent, self.separator = layout.parent.tolist(), layout.separator.tolist()
        bounds = layout.axes_ptr.tolist()
        self.axes = [layout.axes[a:b].tolist() for a, b in pairwise(bounds)]
        self.dims = [tuple(cards[axes].tolist()) for axes in self.axes]
        rows = [math.prod(dims[:k]) for dims, k in zip(self.dims, self.separator, strict=True)]
        self.message: dict[int, int] = {}
        self.fresh: dict[int, int] = {}
        self.clear = 0
        for c, size in enumerate(rows):
            self.message[self.clear] = c
            self.clear += size
        for c, size in enumerate(rows):
            if self.parent[c] >= 0:
                self.fresh[self.clear] = c
                self.clear += size
        self.stored = {offset: c for c, offset in enumerate(layout.clique.tolist()) if offset >= self.clear}
        self.rescaled = {
            self.stored[f[0]]
            for tape in (layout.once, layout.run)
            for op, f in instructions(tape)
            if op == t.RESCALE
        }
        self.run: dict[int, list[tuple[int, list[Step]]]] = {}
        """The sweeps of a run by clique: the slabs of each, and its steps."""
        for c, f, steps in self.sweeps(layout.run):
            self.run.setdefault(c, []).append((f[4], steps))

    def sweeps(self, tape: Ints) -> Iterator[tuple[int, list[int], list[Step]]]:
        """The sweeps over cliques: the clique, the fields, and the steps."""
        for op, f in instructions(tape):
            found = self.sweep(f) if op == t.SWEEP else None
            if found is not None:
                yield found[0], f, found[1]

    def sweep(self, f: list[int]) -> tuple[int, list[Step]] | None:
        """The clique that a sweep goes over and its steps; None for a sweep over a message."""
        region, _, left, keep, _, n_o, n_ops = f[:7]
        if (keep or left) and region < self.clear:
            return None
        raw, at = [], 7 + n_o
        for _ in range(n_ops):
            raw.append((f[at], operand(f[at + 2 : at + f[at + 1]], f[7 : 7 + n_o])))
            at += f[at + 1]
        c = self.stored[region] if keep or left else self._by_message(raw)
        return c, [
            Step(kind, buffer, offset, tuple(moves), _apart(self.dims[c], dims, strides))
            for kind, (buffer, offset, moves, dims, strides) in raw
        ]

    def _by_message(self, raw: list[Any]) -> int:
        """The clique whose message is sent, or whose fresh marginal is multiplied in."""
        for kind, known in ((t.ADD, self.message), (t.MUL, self.fresh)):
            for own, (buffer, offset, *_) in raw:
                if own == kind and buffer == t.WORK and offset in known:
                    return known[offset]
        raise AssertionError("a sweep belongs to no clique")


def _apart(own: tuple[int, ...], dims: list[int], strides: list[int]) -> tuple[int, ...]:
    """The stride of each axis, given those of axes that the tape has joined, or left out where they have one state."""
    found = []
    joined = list(zip(dims, strides, strict=True))[::-1]
    for size in reversed(own):
        while joined and joined[0][0] == 1:
            joined.pop(0)
        if size == 1:
            found.append(0)
            continue
        dim, stride = joined[0]
        found.append(stride)
        joined[0] = dim // size, stride * size
    return tuple(reversed(found))


def supports_of(tree: Cliques, tables: Floats) -> list[Flags]:
    """Which cells of each clique can be other than zero for some value of what is observed."""
    some = tables != 0.0
    supports = [np.ones(dims, bool) for dims in tree.dims]
    for tape in (tree.layout.once, tree.layout.run):
        for c, _, steps in tree.sweeps(tape):
            for step in steps:
                if step.kind == t.MUL and step.buffer == t.TABLES:
                    observed = step.moves[::2]
                    shape = (*(int(tree.cards[v]) for v in observed), *tree.dims[c])
                    view = as_strided(some[step.offset :], shape, (*step.moves[1::2], *step.strides))
                    free = tuple(slice(None) if stride else slice(1) for stride in step.strides)
                    supports[c] &= view[(..., *free)].any(axis=tuple(range(len(observed))))
    for c in reversed(range(len(supports))):
        if tree.parent[c] >= 0:
            sent: Any = supports[c].any(axis=tuple(range(tree.separator[c], supports[c].ndim)))
            supports[tree.parent[c]] &= _spread(
                sent, tree.axes[c][: tree.separator[c]], tree.axes[tree.parent[c]]
            )
    for c, parent in enumerate(tree.parent):
        if parent >= 0:
            shared = tree.axes[c][: tree.separator[c]]
            above = tree.axes[parent]
            back: Any = supports[parent].any(axis=tuple(k for k, v in enumerate(above) if v not in shared))
            supports[c] &= _spread(back, [v for v in above if v in shared], tree.axes[c])
    return supports


def _spread(flags: Flags, own: list[int], axes: list[int]) -> Flags:
    """Flags over some variables as an array that broadcasts over a clique's axes."""
    ordered = flags.transpose([own.index(v) for v in axes if v in own])
    dims = iter(ordered.shape)
    return ordered.reshape([next(dims) if v in own else 1 for v in axes])
