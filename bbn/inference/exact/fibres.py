"""Fibres: the program of a plan, without the cells that are zero whatever is observed.

Large tables are mostly zeros, and so are the cliques they are multiplied into: on munin1 a sixth of the cells can ever hold
something. A support of each clique (which cells can, for some value of what is observed) goes up and down the tree once.
Where it is thin, a clique is cut into fibres, the cells that agree on all axes but a few, chosen so that few fibres hold
anything and those are full: tables that are sparse in some variables are dense in others. The sweeps over such a clique
then go from fibre to fibre by a list, at nearly the speed of a dense loop, and what evidence makes zero is dropped on the
way. The cost is a few passes over one byte per cell, paid once a plan has run often enough to be worth it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.tape import Fibres, Layout
from bbn.kernels.contracts.types import Floats, Ints

SMALLEST = 64
"""Cliques of fewer cells are left as they are."""
LONGEST = 256
"""The most cells of a fibre."""
PER_FIBRE = 6.0
"""What going to a fibre costs, in cells of a dense sweep."""
PER_TEST = 2.0
"""What it costs to see that a fibre is not there, in cells of a dense sweep."""
GAIN = 1.25
"""How many times less a thin clique must cost."""
REUSE = 2.5
"""How often a part of an operand must be used by fibres for it to be laid out as they are."""
MOST_CELLS = 2**31 - 1
"""What an offset of a list can reach."""

Flags = NDArray[np.bool_]
Step = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]
"""Kind, buffer, offset, moves, and the stride of each axis."""


class Cut(NamedTuple):
    """A clique cut into fibres."""

    slot: int
    ids: int
    places: tuple[NDArray[np.intp], ...]
    """For each axis that is not in a fibre, the state of each fibre."""
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    """The axes of a fibre."""
    length: int


def thinned(
    cards: Ints, tables: Floats, layout: Layout, samples: Sequence[NDArray[np.uint8]] = ()
) -> tuple[Layout, Fibres, float] | None:
    """The layout with FIBRES for the sweeps over thin cliques, and their lists; None if none is thin.

    Samples say which states were possible in some runs, by which cliques are cut into fibres.

    The last number is the cells that a run goes through then, fibres counted with what going to them costs.
    """
    tree = _Tree(cards, layout)
    if tree.n < 2 and not layout.run.size:
        return None
    supports = _supports(tree, tables)
    cuts: dict[int, Cut] = {}
    n_ids = 0
    cells = 0.0
    for c, support in enumerate(supports):
        dense = float(support.size)
        cells += dense
        if c in tree.rescaled or dense < SMALLEST or dense > MOST_CELLS:
            continue
        inner, cost = _best_fibres([support[box] for box in tree.boxes(c, samples)])
        if GAIN * cost > dense:
            continue
        outer = tuple(k for k in range(support.ndim) if k not in inner)
        places = np.nonzero(support.any(axis=inner)) if outer else (np.zeros(1, np.intp),)
        cost += PER_TEST * len(places[0])
        if GAIN * cost > dense:
            continue
        cells += cost - dense
        length = int(np.prod([support.shape[k] for k in inner]))
        cuts[c] = Cut(len(cuts), n_ids, places, outer, inner, length)
        n_ids += len(places[0])
    if not cuts:
        return None
    writer = _Writer(tree, cuts)
    once, run = writer.rewritten(layout.once, False), writer.rewritten(layout.run, True)
    # an offset is never more than a clique's cells, so 32 bits hold it
    lists = np.concatenate(writer.lists).astype(np.int32) if writer.lists else np.zeros(0, np.int32)
    return layout._replace(once=once, run=run), Fibres(lists, n_ids, len(cuts), writer.packed), cells


class _Tree:
    """The cliques of a layout: their axes, where their messages lie, and which clique a sweep goes over."""

    def __init__(self, cards: Ints, layout: Layout) -> None:
        self.cards, self.layout = cards, layout
        self.n = len(layout.parent)
        self.states = np.concatenate([[0], np.cumsum(cards)]).tolist()
        bounds = layout.axes_ptr.tolist()
        self.axes = [layout.axes[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)]
        self.dims = [tuple(cards[axes].tolist()) for axes in self.axes]
        self.rows = [
            int(np.prod(dims[:k], dtype=np.int64))
            for dims, k in zip(self.dims, layout.separator.tolist(), strict=True)
        ]
        self.message: dict[int, int] = {}
        self.fresh: dict[int, int] = {}
        at = 0
        for c, rows in enumerate(self.rows):
            self.message[at] = c
            at += rows
        for c, rows in enumerate(self.rows):
            if layout.parent[c] >= 0:
                self.fresh[at] = c
                at += rows
        self.clear = 0
        self.rescaled: set[int] = set()
        stored = layout.clique.tolist()
        for tape in (layout.once, layout.run):
            for op, f in _instructions(tape):
                if op == t.CLEAR:
                    self.clear = f[1]
        self.stored = {offset: c for c, offset in enumerate(stored) if offset >= self.clear}
        for tape in (layout.once, layout.run):
            for op, f in _instructions(tape):
                if op == t.RESCALE:
                    self.rescaled.add(self.stored[f[0]])

    def boxes(self, c: int, samples: Sequence[NDArray[np.uint8]]) -> list[tuple[Any, ...]]:
        """For each sample, the index of the states of clique c that were possible; of all states without one."""
        if not samples:
            return [(...,)]
        return [
            np.ix_(*(np.flatnonzero(own[self.states[v] : self.states[v + 1]]) for v in self.axes[c]))
            for own in samples
        ]

    def sweeps(self, tape: Ints) -> Iterator[tuple[int, list[int], list[Step]]]:
        """The sweeps over cliques: the clique, the fields before the steps, and the steps."""
        for op, f in _instructions(tape):
            if op == t.SWEEP:
                found = self.sweep(f)
                if found is not None:
                    yield found[0], f, found[1]

    def sweep(self, f: list[int]) -> tuple[int, list[Step]] | None:
        """The clique that a sweep goes over and its steps; None for a sweep over a message."""
        region, _, left, keep, _, n_o, n_ops = f[:7]
        raw = []
        at = 7 + n_o
        for _ in range(n_ops):
            raw.append(f[at : at + f[at + 1]])
            at += f[at + 1]
        if keep or left:
            if region < self.clear:
                return None
            c = self.stored[region]
        else:
            c = self._by_message(raw)
        return c, [self._step(step, c, n_o) for step in raw]

    def _by_message(self, raw: list[list[int]]) -> int:
        """The clique whose message is sent, or whose fresh marginal is multiplied in."""
        for kind, known in ((t.ADD, self.message), (t.MUL, self.fresh)):
            for step in raw:
                if step[0] == kind and step[2] == t.WORK and step[3] in known:
                    return known[step[3]]
        raise AssertionError("a sweep belongs to no clique")

    def _step(self, step: list[int], c: int, n_o: int) -> Step:
        """A step with one stride per axis of clique c; the tape has joined axes that one stride can walk."""
        kind, _, buffer, offset, n_e, depth = step[:6]
        at = 6 + 2 * n_e
        strides = step[at : at + n_o]
        dims, steps = step[at + n_o : at + n_o + depth], step[at + n_o + depth :]
        joined: list[int] = []
        k = 0
        for dim, stride in zip(dims, steps, strict=True):
            group = []
            size = 1
            while size < dim:
                own = self.dims[c][n_o + k]
                group.append(own)
                size *= own
                k += 1
            for i in range(len(group)):
                joined.append(stride * int(np.prod(group[i + 1 :], dtype=np.int64)))
        # axes of one state were left out
        whole = iter(joined)
        rest = [0 if own == 1 else next(whole, 0) for own in self.dims[c][n_o:]]
        return kind, buffer, offset, tuple(step[6:at]), (*strides, *rest)


def _supports(tree: _Tree, tables: Floats) -> list[Flags]:
    """Which cells of each clique can be other than zero for some value of what is observed."""
    layout, cards = tree.layout, tree.cards
    nonzero = tables != 0.0
    supports = [np.ones(dims, bool) for dims in tree.dims]
    for tape in (layout.once, layout.run):
        for c, _, steps in tree.sweeps(tape):
            for kind, buffer, offset, moves, strides in steps:
                if kind == t.MUL and buffer == t.TABLES:
                    observed = moves[::2]
                    shape = (*(int(cards[v]) for v in observed), *(tree.dims[c]))
                    view = as_strided(nonzero[offset:], shape, (*moves[1::2], *strides), writeable=False)
                    free = tuple(slice(None) if stride else slice(1) for stride in strides)
                    some = view[(..., *free)].any(axis=tuple(range(len(observed))))
                    supports[c] &= some
    parents, separators = layout.parent.tolist(), layout.separator.tolist()
    for c in range(tree.n - 1, -1, -1):
        if parents[c] >= 0:
            sent = supports[c].any(axis=tuple(range(separators[c], supports[c].ndim)))
            supports[parents[c]] &= _spread(sent, tree.axes[c][: separators[c]], tree.axes[parents[c]])
    for c in range(tree.n):
        if parents[c] >= 0:
            shared = tree.axes[c][: separators[c]]
            above = tree.axes[parents[c]]
            summed = tuple(k for k, v in enumerate(above) if v not in shared)
            back = supports[parents[c]].any(axis=summed)
            supports[c] &= _spread(back, [v for v in above if v in shared], tree.axes[c])
    return supports


def _spread(flags: Flags, own: list[int], axes: list[int]) -> Flags:
    """Flags over some variables as an array that broadcasts over a clique's axes."""
    order = [own.index(v) for v in axes if v in own]
    dims = iter(flags.transpose(order).shape)
    return flags.transpose(order).reshape([next(dims) if v in own else 1 for v in axes])


def _best_fibres(supports: list[Flags]) -> tuple[tuple[int, ...], float]:
    """The axes of the fibres that cost least, chosen one after another, and what they cost on average, in cells."""
    n_axes = supports[0].ndim
    dims = [max(own) for own in zip(*(support.shape for support in supports), strict=True)]
    inner: list[int] = []
    alive = supports
    length = 1
    cost = (PER_FIBRE + 1) * _mean_count(alive)
    while True:
        best = None
        for k in range(n_axes):
            longer = length * dims[k]
            if k not in inner and 1 < dims[k] and longer <= LONGEST:
                fewer = [own.any(axis=k, keepdims=True) for own in alive]
                own_cost = (PER_FIBRE + longer) * _mean_count(fewer)
                if best is None or own_cost < best[0]:
                    best = own_cost, k, fewer, longer
        if best is None or best[0] >= cost:
            return tuple(sorted(inner)), cost
        cost, k, alive, length = best
        inner.append(k)


def _mean_count(flags: list[Flags]) -> float:
    return sum(np.count_nonzero(own) for own in flags) / len(flags)


class _Writer:
    """Tapes with FIBRES in place of the sweeps over cliques that are cut."""

    def __init__(self, tree: _Tree, cuts: dict[int, Cut]) -> None:
        self.tree, self.cuts = tree, cuts
        self.lists: list[NDArray[Any]] = []
        self._size = 0
        self._used = self.packed = 0
        self._known: dict[tuple[int, tuple[int, ...], int], int] = {}

    def rewritten(self, tape: Ints, masked: bool) -> Ints:
        """The tape; `masked`: its runs may say which states are possible."""
        words: list[int] = []
        for op, f in _instructions(tape):
            found = self.tree.sweep(f) if op == t.SWEEP else None
            if found is None or found[0] not in self.cuts:
                words += [op, len(f) + 2, *f]
                continue
            c, steps = found
            cut = self.cuts[c]
            self._used = 0
            masks = self._masks(c, cut) if masked and f[2] != t.WORK else []
            n_ops = len(masks) + len(steps)
            fields = [cut.slot, cut.ids, len(cut.places[0]), cut.length, f[0], f[2], f[3], n_ops]
            for mask in masks:
                fields += mask
            for written in sorted((self._step(c, cut, step) for step in steps), key=_first):
                fields += written
            words += [t.FIBRES, len(fields) + 2, *fields]
        return np.array(words, np.int64)

    def _step(self, c: int, cut: Cut, step: Step) -> list[int]:
        kind, buffer, offset, moves, strides = step
        own = self.tree.dims[c]
        inner = _joined([own[k] for k in cut.inner], [strides[k] for k in cut.inner])
        outer = [strides[k] for k in cut.outer]
        at = 0
        packing: tuple[list[int], list[int]] = [], []
        if inner != ([1], [0]) and not (len(inner[0]) == 1 and inner[1][0] <= 1):
            held = [k for k in cut.outer if strides[k]]
            rows = int(np.prod([own[k] for k in held], dtype=np.int64))
            if REUSE * rows <= len(cut.places[0]):
                axes = [*held, *cut.inner]
                packing = _joined([own[k] for k in axes], [strides[k] for k in axes])
                inner = [cut.length], [1]
                outer = [0] * len(cut.outer)
                size = cut.length
                for k in reversed(held):
                    outer[cut.outer.index(k)] = size
                    size *= own[k]
                at = self._used
                self._used += size
                self.packed = max(self.packed, self._used)
        where = self._list(c, cut, tuple(outer))
        fields = [buffer, offset, len(moves) // 2, len(inner[0]), where, at, len(packing[0]), *moves]
        fields += [*inner[0], *inner[1], *packing[0], *packing[1]]
        return [kind, len(fields) + 2, *fields]

    def _masks(self, c: int, cut: Cut) -> list[list[int]]:
        """A step for each axis between fibres, which drops those of states that are not possible."""
        made = []
        for i, k in enumerate(cut.outer):
            if self.tree.dims[c][k] > 1:
                strides = tuple(int(i == j) for j in range(len(cut.outer)))
                where = self._list(c, cut, strides, self.tree.states[self.tree.axes[c][k]])
                made.append([t.MASK, 11, 0, 0, 0, 1, where, 0, 0, 1, 0])
        return made

    def _list(self, c: int, cut: Cut, strides: tuple[int, ...], first: int = 0) -> int:
        """Where the list of the fibres' places in an operand begins; `first` is added to each."""
        known = self._known.get((c, strides, first))
        if known is None:
            places = np.full(len(cut.places[0]), first, np.int64)
            for own, stride in zip(cut.places, strides, strict=False):
                places += stride * own
            known = self._known[c, strides, first] = self._size
            self.lists.append(places)
            self._size += len(places)
        return known


def _first(step: list[int]) -> int:
    """Steps that are the same all over a fibre come first, then other products, then sums."""
    if step[0] == t.ADD:
        return 2
    n_e, depth = step[4], step[5]
    return 0 if depth == 1 and step[10 + 2 * n_e] == 0 else 1


def _joined(dims: list[int], strides: list[int]) -> tuple[list[int], list[int]]:
    """Dims and strides with neighbours that one stride can walk made one, and those of one state left out."""
    joined: list[int] = []
    steps: list[int] = []
    for dim, stride in zip(dims, strides, strict=True):
        if dim == 1:
            continue
        if joined and steps[-1] == stride * dim:
            joined[-1], steps[-1] = joined[-1] * dim, stride
        else:
            joined.append(dim)
            steps.append(stride)
    return (joined, steps) if joined else ([1], [0])


def _instructions(tape: Ints) -> Iterator[tuple[int, list[int]]]:
    words = tape.tolist()
    at = 0
    while at < len(words):
        yield words[at], words[at + 2 : at + words[at + 1]]
        at += words[at + 1]
