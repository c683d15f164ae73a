"""Bands: the program of a plan without the cells that are zero whatever is observed.

Large tables are mostly zeros, and so are the cliques that they are multiplied into. A support of each clique (the
cells that can be other than zero for some value of what is observed) goes up and down the tree once. Along a good axis
it is a band in most rows, since what depends on quantities is mostly zero far from what is expected. A clique for which
that costs less then goes from band to band by lists; bands that are zero in a run are left out on its way up, and so on
its way down. The cost is a few passes over a byte for each cell, and is paid once a plan has run several times.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.inference.exact.clique_supports import Cliques, Flags, Step, supports_of
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import Layout, instructions
from bbn.kernels.contracts.types import Floats, Ints

SMALLEST = 64
"""Cliques of fewer cells are left as they are."""
MOST_CELLS = 1 << 25
"""Plans of more cells are left as they are: a byte for each would be needed, and offsets are of 32 bits."""
PER_CELL, PER_SLAB = 0.22, 10.0
"""What a step of a sweep takes for each cell, and for each slab: nanoseconds of a usual machine, as all that follow."""
PER_SWEEP, PER_BAND, PER_PLACE, PER_VECTOR = 30.0, 1.5, 0.5, 0.22
"""What a BANDS takes, what each band takes, and what each step takes for each band and for each vector of one; about
half of what is measured where no band is zero, since in most runs many are."""
PER_PACKED = 0.5
"""What it takes to lay a cell of an operand out anew, likewise."""

RUNS, SMALL_RUNS = 24, 3_000_000
"""Runs after which it is worth looking for bands: RUNS, and as many more as go through SMALL_RUNS cells."""
FEWEST_CELLS = 8192
"""Plans of fewer cells are left as they are."""
MOST_SET = 0.9
"""Tables of which a larger share is not zero are not looked at."""


def runs_before(layout: Layout) -> int:
    """The runs of all marginals after which bands are looked for, 0 for never: the twins in numpy gain nothing."""
    cells = layout.whole_size
    if not kernels.COMPILED:
        return 0
    return RUNS + SMALL_RUNS // cells if layout.run.size and FEWEST_CELLS <= cells <= MOST_CELLS else 0


def building_bytes(layout: Layout) -> int:
    """The memory that looking for bands takes."""
    return 2 * layout.whole_size


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
    """The layout of all marginals with BANDS in place of sweeps over cliques where they pay; None if there are none.

    It takes no more memory than the layout as it was.
    """
    if np.count_nonzero(tables) > MOST_SET * tables.size:
        return None
    tree = Cliques(cards, layout)
    cuts: dict[int, Cut] = {}
    ids = 0
    if layout.run.size and sum(map(math.prod, tree.dims)) <= MOST_CELLS:
        supports = supports_of(tree, tables)
        for c, sweeps in tree.run.items():
            cut = None if c in tree.rescaled else _cut(supports[c], sweeps, len(cuts), ids)
            if cut is not None:
                cuts[c] = cut
                ids += len(cut.starts)
    if not cuts:
        return None
    thin, bands = _Writer(tree, cuts).written()
    return (thin, bands) if _cells(thin, bands) <= _cells(layout) else None


def _cells(layout: Layout, bands: Bands | None = None) -> float:
    """What a program and its workspace take, in numbers of 8 bytes."""
    lists = 0.0 if bands is None else bands.lists.size / 2 + bands.n_ids / 2 + bands.slots + bands.packed
    return layout.once.size + layout.run.size + layout.base_size + layout.work_size + lists


def _cut(support: Flags, sweeps: list[tuple[int, list[Step]]], slot: int, ids: int) -> Cut | None:
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
            took += (
                PER_VECTOR
                * vectors
                * sum(1 + sum(step.strides[axis] > 0 for step in own) for _, own in sweeps)
            )
            took += PER_PACKED * packed
            if best is None or took < best[0]:
                best = took, axis
    if best is None or best[0] > dense:
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
    places = np.nonzero(alive) if alive.ndim else ()
    return Cut(slot, ids, axis, places, first, starts, widths, cells)


class _Writer:
    """The layout with BANDS, its cliques closer together, and their lists."""

    def __init__(self, tree: Cliques, cuts: dict[int, Cut]) -> None:
        self.tree, self.cuts = tree, cuts
        self.lists: list[Ints] = []
        self.used = self.packed = 0
        self.room = 0
        self.known: dict[Any, int] = {}

    def written(self) -> tuple[Layout, Bands]:
        """The layout and the lists."""
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
        fields = [
            cut.slot,
            cut.ids,
            n,
            starts,
            self._list((c, "widths"), cut.widths),
            f[0],
            f[2],
            f[3],
            len(steps),
        ]
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
        return (
            end + sum(int(self.tree.cards[v] - 1) * stride for v, stride in pairs)
            > self.tree.layout.tables_size
        )

    def _list(self, key: Any, values: Ints) -> int:
        """Where a list begins; one that is known is not written again."""
        if key not in self.known:
            self.known[key] = self.used
            self.lists.append(values)
            self.used += len(values)
        return self.known[key]
