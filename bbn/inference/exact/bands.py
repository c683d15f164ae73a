"""Bands: the program of a plan without the cells that are zero whatever is observed.

Large tables are mostly zeros, and so are the cliques that they are multiplied into. A support of each clique (the cells
that can be other than zero for some value of what is observed) goes up and down the tree once. Along a good axis it is a
band in most rows, since what depends on quantities is mostly zero far from what is expected. A clique for which that
costs less then goes from band to band by lists; rows that are zero in a run are left out on its way up, and so on its
way down. The cost is a few passes over a byte for each cell, and is paid once a plan has run several times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import Layout, instructions, operand
from bbn.kernels.contracts.types import Floats, Ints

SMALLEST = 64
"""Cliques of fewer cells are left as they are."""
MOST_CELLS = 1 << 25
"""Plans of more cells are left as they are: a byte for each would be needed, and offsets are of 32 bits."""
PER_CELL, PER_SLAB = 0.22, 10.0
"""What a step of a sweep takes for each cell, and for each slab: nanoseconds of a usual machine, as all that follow."""
PER_SWEEP, PER_BAND, PER_PLACE, PER_VECTOR = 60.0, 3.0, 1.0, 0.45
"""What a BANDS takes, what each band takes, and what each step takes for each band and for each vector of one."""
PER_PACKED = 1.0
"""What it takes to lay a cell of an operand out anew."""
GAIN = 1.25
"""How many times less bands must take."""

Flags = NDArray[np.bool_]


class Step(NamedTuple):
    """A step of a sweep over a clique, with one stride for each axis."""

    kind: int
    buffer: int
    offset: int
    moves: tuple[int, ...]
    strides: tuple[int, ...]


class Cut(NamedTuple):
    """A clique cut into bands along an axis."""

    slot: int
    ids: int
    axis: int
    places: tuple[NDArray[np.intp], ...]
    """For each other axis, the state of each band."""
    first: Ints
    starts: Ints
    widths: Ints
    cells: int
    """The cells of all bands, filled up."""


def in_bands(cards: Ints, tables: Floats, layout: Layout) -> tuple[Layout, Bands] | None:
    """The layout of all marginals with BANDS in place of the sweeps over cliques where they pay; None if none is."""
    tree = _Tree(cards, layout)
    cuts: dict[int, Cut] = {}
    ids = 0
    if layout.run.size and sum(map(math.prod, tree.dims)) <= MOST_CELLS:
        supports = _supports(tree, tables)
        for c, sweeps in tree.run.items():
            cut = _cut(supports[c], sweeps, tree, len(cuts), ids)
            if cut is not None:
                cuts[c] = cut
                ids += len(cut.starts)
    if not cuts:
        return None
    return _Writer(tree, cuts).written()


class _Tree:
    """The cliques of a layout: their axes, where their messages lie, and the sweeps over them."""

    def __init__(self, cards: Ints, layout: Layout) -> None:
        self.cards, self.layout = cards, layout
        self.parent, self.separator = layout.parent.tolist(), layout.separator.tolist()
        bounds = layout.axes_ptr.tolist()
        self.axes = [layout.axes[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)]
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


def _supports(tree: _Tree, tables: Floats) -> list[Flags]:
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
            sent = supports[c].any(axis=tuple(range(tree.separator[c], supports[c].ndim)))
            supports[tree.parent[c]] &= _spread(
                sent, tree.axes[c][: tree.separator[c]], tree.axes[tree.parent[c]]
            )
    for c, parent in enumerate(tree.parent):
        if parent >= 0:
            shared = tree.axes[c][: tree.separator[c]]
            above = tree.axes[parent]
            back = supports[parent].any(axis=tuple(k for k, v in enumerate(above) if v not in shared))
            supports[c] &= _spread(back, [v for v in above if v in shared], tree.axes[c])
    return supports


def _spread(flags: Flags, own: list[int], axes: list[int]) -> Flags:
    """Flags over some variables as an array that broadcasts over a clique's axes."""
    ordered = flags.transpose([own.index(v) for v in axes if v in own])
    dims = iter(ordered.shape)
    return ordered.reshape([next(dims) if v in own else 1 for v in axes])


def _cut(
    support: Flags, sweeps: list[tuple[int, list[Step]]], tree: _Tree, slot: int, ids: int
) -> Cut | None:
    """The bands along the axis for which they take least; None if whole sweeps are about as good."""
    shape = support.shape
    steps = [step for _, own in sweeps for step in own]
    dense = sum(len(own) * (PER_CELL * support.size + PER_SLAB * slabs) for slabs, own in sweeps)
    if support.size < SMALLEST or max(len(own) for _, own in sweeps) > t.BAND_STEPS:
        return None
    cells = np.count_nonzero(support)
    best = None
    for axis in range(support.ndim):
        n = np.count_nonzero(support.any(axis=axis)) if shape[axis] > 1 else 0
        if n:
            vectors = max(n, cells / t.BAND_LANES + n / 2)
            packed = sum(_size(step, shape) for step in steps if step.strides[axis] > 1)
            took = PER_SWEEP * len(sweeps) + n * (PER_BAND * len(sweeps) + PER_PLACE * len(steps))
            took += PER_VECTOR * vectors * sum(
                1 + sum(step.strides[axis] > 0 for step in own) for _, own in sweeps
            )
            took += PER_PACKED * packed
            if best is None or took < best[0]:
                best = took, axis
    if best is None or GAIN * best[0] > dense:
        return None
    return _along(support, best[1], slot, ids)


def _size(step: Step, shape: tuple[int, ...]) -> int:
    """The cells of a step's operand."""
    return math.prod(size for size, stride in zip(shape, step.strides, strict=True) if stride)


def _along(support: Flags, axis: int, slot: int, ids: int) -> Cut | None:
    """The bands along an axis; None if they would not fit the memory of the clique."""
    last = np.moveaxis(support, axis, -1)
    alive = last.any(axis=-1)
    rows = last[alive]
    first = rows.argmax(axis=1)
    widths = rows.shape[1] - rows[:, ::-1].argmax(axis=1) - first
    padded = -(-widths // t.BAND_LANES) * t.BAND_LANES
    starts = np.cumsum(padded) - padded
    cells = int(padded.sum())
    if cells > support.size:
        return None
    return Cut(slot, ids, axis, np.nonzero(alive), first, starts, widths, cells)


class _Writer:
    """The layout with BANDS, its cliques closer together, and their lists."""

    def __init__(self, tree: _Tree, cuts: dict[int, Cut]) -> None:
        self.tree, self.cuts = tree, cuts
        self.lists: list[Ints] = []
        self.used = self.packed = 0
        self.room = 0
        self.known: dict[Any, int] = {}

    def written(self) -> tuple[Layout, Bands] | None:
        layout, tree = self.tree.layout, self.tree
        moved, at, work_size = {}, tree.clear, layout.work_size
        for offset, c in sorted(tree.stored.items()):
            if offset == layout.work_size:
                work_size = at
            moved[offset] = at
            at += self.cuts[c].cells if c in self.cuts else math.prod(tree.dims[c])
        if layout.base_size == layout.work_size:
            work_size = at
        once, run = (self._tape(tape, moved) for tape in (layout.once, layout.run))
        lists = np.concatenate(self.lists).astype(np.int32)
        n_ids = sum(len(cut.starts) for cut in self.cuts.values())
        clique = np.array([moved.get(offset, offset) for offset in layout.clique.tolist()], np.int64)
        thin = layout._replace(once=once, run=run, clique=clique, work_size=work_size, base_size=at)
        return thin, Bands(lists, n_ids, len(self.cuts), self.packed)

    def _tape(self, tape: Ints, moved: dict[int, int]) -> Ints:
        words: list[int] = []
        for op, f in instructions(tape):
            if op in (t.SWEEP, t.RESCALE):
                found = self.tree.sweep(f) if op == t.SWEEP else None
                if f[0] in moved:
                    f[0] = moved[f[0]]
                if found is not None and found[0] in self.cuts:
                    op, f = t.BANDS, self._bands(f, *found)
            words += [op, len(f) + 2, *f]
        return np.array(words, np.int64)

    def _bands(self, f: list[int], c: int, steps: list[Step]) -> list[int]:
        cut = self.cuts[c]
        n = len(cut.starts)
        starts = self._list((c, "starts"), cut.starts)
        fields = [cut.slot, cut.ids, n, starts, self._list((c, "widths"), cut.widths), f[0], f[2], f[3], len(steps)]
        self.room = 0
        for step in steps:
            fields += self._step(c, cut, step)
        return fields

    def _step(self, c: int, cut: Cut, step: Step) -> list[int]:
        kind, buffer, offset, moves, strides = step
        dims = self.tree.dims[c]
        along = strides[cut.axis]
        others = [k for k in range(len(dims)) if k != cut.axis]
        outer = [strides[k] for k in others]
        at, shape, steps = 0, [], []
        if along and (along > 1 or kind == t.LIKELY or buffer == t.OUT or self._ends(c, cut, step)):
            held = [k for k in others if strides[k]]
            shape, steps = [dims[k] for k in (*held, cut.axis)], [strides[k] for k in (*held, cut.axis)]
            size = dims[cut.axis]
            outer = [0] * len(others)
            for k in reversed(held):
                outer[others.index(k)] = size
                size *= dims[k]
            at, along = self.room, 1
            self.room += size + t.BAND_LANES  # what lies behind is read, and is zero
            self.packed = max(self.packed, self.room)
        where = self._list((c, along, *outer), self._places(cut, outer, along))
        fields = [buffer, offset, len(moves) // 2, along, where, at, len(shape), *moves, *shape, *steps]
        return [kind, len(fields) + 2, *fields]

    def _places(self, cut: Cut, outer: list[int], along: int) -> Ints:
        """Where each band begins in an operand."""
        places: Ints = along * cut.first
        for own, stride in zip(cut.places, outer, strict=True):
            places = places + stride * own
        return places

    def _ends(self, c: int, cut: Cut, step: Step) -> bool:
        """Whether whole vectors would reach past the tables, or past the messages."""
        outer = [stride for k, stride in enumerate(step.strides) if k != cut.axis]
        padded = -(-cut.widths // t.BAND_LANES) * t.BAND_LANES
        end = step.offset + int((self._places(cut, outer, 1) + padded).max())
        if step.buffer != t.TABLES:
            return end > self.tree.clear
        pairs = zip(step.moves[::2], step.moves[1::2], strict=True)
        return end + sum(int(self.tree.cards[v] - 1) * stride for v, stride in pairs) > len_tables(self.tree)

    def _list(self, key: Any, values: Ints) -> int:
        """Where a list begins; one that is known is not written again."""
        if key not in self.known:
            self.known[key] = self.used
            self.lists.append(values)
            self.used += len(values)
        return self.known[key]


def len_tables(tree: _Tree) -> int:
    return tree.layout.tables_size
