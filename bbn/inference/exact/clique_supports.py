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

    @property
    def observed(self) -> tuple[int, ...]:
        """The variables whose values move it."""
        return self.moves[::2]

    @property
    def reads_a_table(self) -> bool:
        """Whether it multiplies by one of the model's tables."""
        return self.kind == t.MUL and self.buffer == t.TABLES


class Sweep(NamedTuple):
    """A sweep of a run over a clique."""

    slabs: int
    left: int
    """What it starts from; see `tape`."""
    steps: list[Step]

    @property
    def factors(self) -> list[Step]:
        """The steps that make the clique's cells."""
        return [step for step in self.steps if step.kind != t.ADD]


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
        cleared = next(iter(instructions(layout.once)))[1][1]
        for c, size in enumerate(rows):
            if self.parent[c] >= 0 and self.clear < cleared:  # where nothing is distributed, there are none
                self.fresh[self.clear] = c
                self.clear += size
        self.stored = {offset: c for c, offset in enumerate(layout.clique.tolist()) if offset >= self.clear}
        self.stepwise = {
            self.stored.get(f[0], -1)
            for tape in (layout.once, layout.run)
            for op, f in instructions(tape)
            if op == t.RESCALE or (op == t.SWEEP and f[3] and f[2] == t.WORK)
        }
        """Cliques that are made in several sweeps."""
        self.constant: dict[int, tuple[int, tuple[int, ...]]] = {}
        """By where it lies, the product of what evidence cannot change: of which clique, and its strides there."""
        for op, f in instructions(layout.run):
            if op == t.SWEEP and not f[2] and not f[3]:
                self._note_constant(f)
        self.run: dict[int, list[Sweep]] = {}
        """The sweeps of a run by clique: up, down, or both."""
        for c, f, steps in self.sweeps(layout.run):
            self.run.setdefault(c, []).append(Sweep(f[4], f[2], steps))

    def sweeps(self, tape: Ints) -> Iterator[tuple[int, list[int], list[Step]]]:
        """The sweeps over cliques: the clique, the fields, and the steps."""
        for op, f in instructions(tape):
            found = self.sweep(f) if op == t.SWEEP else None
            if found is not None:
                yield found[0], f, found[1]

    def sweep(self, f: list[int]) -> tuple[int, list[Step]] | None:
        """The clique that a sweep goes over and its steps; None for a sweep over a message."""
        region, _, left, keep = f[:4]
        if (keep or left) and region < self.clear:
            return None
        raw = self._steps(f)
        if region in self.constant and keep:
            c, strides = self.constant[region]
            dims = tuple(size for size, stride in zip(self.dims[c], strides, strict=True) if stride)
            steps = []
            for kind, (buffer, offset, moves, *walk) in raw:
                own = iter(_apart(dims, *walk))
                whole = tuple(next(own) if stride else 0 for stride in strides)
                steps.append(Step(kind, buffer, offset, tuple(moves), whole))
            return c, steps
        c = self.stored[region] if keep or left else self._by_message(raw)
        return c, [
            Step(kind, buffer, offset, tuple(moves), _apart(self.dims[c], dims, strides))
            for kind, (buffer, offset, moves, dims, strides) in raw
        ]

    def _steps(self, f: list[int]) -> list[Any]:
        """Kind and operand of each step of a sweep."""
        raw, at = [], 7 + f[5]
        for _ in range(f[6]):
            raw.append((f[at], operand(f[at + 2 : at + f[at + 1]], f[7 : 7 + f[5]])))
            at += f[at + 1]
        return raw

    def _note_constant(self, f: list[int]) -> None:
        """Note the constant part of a clique that a run makes anew, if it has one."""
        for kind, (buffer, offset, _, dims, strides) in self._steps(f):
            if kind == t.MUL and buffer == t.BASE and offset in self.stored:
                c = self.stored[offset]
                self.constant[offset] = c, _apart(self.dims[c], dims, strides)

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
    supports = [np.ones(dims, bool) for dims in tree.dims]
    for tape in (tree.layout.once, tree.layout.run):
        for c, _, steps in tree.sweeps(tape):
            for step in steps:
                if step.reads_a_table:
                    supports[c] &= _by_value(tree, c, step, tables).any(axis=tuple(range(len(step.observed))))
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


def supports_by_value(tree: Cliques, tables: Floats, c: int, support: Flags, v: int) -> Iterator[Flags]:
    """The support of a clique for each value of an observed variable, as far as its own tables tell."""
    tabled = []
    for sweep in tree.run[c]:
        for step in sweep.steps:
            if step.reads_a_table and v in step.observed:
                some = np.moveaxis(_by_value(tree, c, step, tables), step.observed.index(v), 0)
                tabled.append(np.asarray(some.any(axis=tuple(range(1, len(step.observed))))))
    for code in range(int(tree.cards[v])):
        allowed = support.copy()
        for each in tabled:
            allowed &= each[code]
        yield allowed


def _by_value(tree: Cliques, c: int, step: Step, tables: Floats) -> Flags:
    """Where a table is not zero: an axis for each variable observed, then those of the clique, of one state if free."""
    shape = [*(int(tree.cards[v]) for v in step.observed)]
    shape += [size if stride else 1 for size, stride in zip(tree.dims[c], step.strides, strict=True)]
    strides = [8 * stride for stride in (*step.moves[1::2], *step.strides)]
    return as_strided(tables[step.offset :], shape, strides) != 0.0  # type: ignore[no-any-return]


def _spread(flags: Flags, own: list[int], axes: list[int]) -> Flags:
    """Flags over some variables as an array that broadcasts over a clique's axes."""
    ordered = flags.transpose([own.index(v) for v in axes if v in own])
    dims = iter(ordered.shape)
    return ordered.reshape([next(dims) if v in own else 1 for v in axes])
