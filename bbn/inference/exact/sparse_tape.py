"""The layout of a plan with BANDS in place of sweeps over the cliques that were cut, and the lists of their bands.

Of a large clique that was cut, a run stores nothing: what it needs on its way down is made again from what it read on
its way up, since writing and reading memory takes longer. Only what evidence cannot change is stored, filled once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.inference.exact.clique_supports import Cliques, Step
from bbn.inference.exact.rematerialised_rows import Head, remade_words, with_heads
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import Layout, instructions
from bbn.kernels.contracts.types import Ints


class Part(NamedTuple):
    """Bands along an axis of a clique."""

    places: tuple[NDArray[np.intp], ...]
    """For each other axis, the state of each band."""
    first: Ints
    """The state in which each begins."""
    starts: Ints
    """Where each begins among the stored cells."""
    widths: Ints


class Cut(NamedTuple):
    """A clique cut into bands along an axis."""

    slot: int
    ids: int
    axis: int
    whole: Part
    """The bands for whatever is observed."""
    observed: int
    """The variable by whose value the bands of a run differ; -1 if they do not."""
    parts: tuple[Part, ...]
    """The bands of a run: one part, or one for each value."""
    cells: int
    """The cells of the whole's bands, filled up."""
    again: bool
    """Whether a run makes them again on its way down; otherwise it stores them."""

    @property
    def most(self) -> int:
        """The most bands that a run goes through."""
        return max(len(part.widths) for part in self.parts)


def apart(part: Part) -> Part:
    """The same bands in four interleaved parts.

    Neighbours mostly add to the same few numbers of a sum; each would wait for the one before it.
    """
    n = len(part.widths)
    order = np.concatenate([np.arange(k, n, -(-n // 4)) for k in range(-(-n // 4))]) if n else np.arange(0)
    return Part(
        tuple(own[order] for own in part.places), part.first[order], part.starts[order], part.widths[order]
    )


def filled(widths: Ints) -> Ints:
    """The cells of bands, filled up to whole vectors."""
    return -(-widths // t.BAND_LANES) * t.BAND_LANES


class Writer:
    """Writes the layout and the lists.

    Parameters
    ----------
    tree
        The cliques of the plan.
    cuts
        Those that were cut.
    n_ids
        How many bands there are in those that a run goes up and down.
    collected
        Whether the cliques are kept to be read.
    """

    def __init__(self, tree: Cliques, cuts: dict[int, Cut], n_ids: int, collected: bool) -> None:
        self.collected = collected
        self.tree, self.cuts, self.n_ids = tree, cuts, n_ids
        self.lists: list[Ints] = []
        self.used = self.packed = 0
        self.room = 0
        self.known: dict[Any, int] = {}
        self.moved: dict[int, int] = {}
        self.heads: dict[int, Head] = {}
        self.noted: set[int] = set()
        self.base_size = 0

    def written(self) -> tuple[Layout, Bands]:
        """The layout and the lists."""
        layout, tree = self.tree.layout, self.tree
        cut = self.cuts if self.collected else ()
        remade = remade_words(tree, cut, self._place(tree.clear, True))
        self.heads = remade.heads
        self.base_size = self._place(remade.end, False)
        once, run = self._tape(layout.once, False), self._tape(layout.run, True)
        lists = np.concatenate(self.lists).astype(np.int32)
        clique = np.array([self.moved.get(offset, offset) for offset in layout.clique.tolist()], np.int64)
        gone = sum(math.prod(tree.dims[c]) - cut.cells for c, cut in self.cuts.items())
        thin = layout._replace(
            once=once,
            run=run,
            clique=clique,
            work_size=remade.end,
            base_size=self.base_size,
            whole_size=layout.whole_size - gone,
        )
        bands = Bands(lists, self.n_ids, len(self.cuts), self.packed, remade.words)
        return with_heads(thin, remade.heads), bands

    def _place(self, at: int, in_work: bool) -> int:
        """Place the cliques that a run stores, or those that are stored in BASE alone; where they end."""
        layout, tree = self.tree.layout, self.tree
        for offset, c in sorted(tree.stored.items()):
            cut = self.cuts.get(c)
            if in_work == (offset < layout.work_size and (cut is None or not cut.again)):
                self.moved[offset] = at
                if offset in tree.constant:
                    strides = tree.constant[offset][1]
                    at += math.prod(size for size, own in zip(tree.dims[c], strides, strict=True) if own)
                elif cut is None:
                    at += math.prod(tree.dims[c])
                elif in_work or tree.run[c][0].left == t.BASE:
                    at += cut.cells
        return at

    def _tape(self, tape: Ints, running: bool) -> Ints:
        words: list[int] = []
        for op, f in instructions(tape):
            if op in (t.SWEEP, t.RESCALE):
                found = self.tree.sweep(f) if op == t.SWEEP else None
                whole = op != t.SWEEP or not f[3] or f[0] not in self.tree.constant
                if f[0] in self.moved:
                    f[0] = self.moved[f[0]]
                if op == t.SWEEP:
                    self._move_steps(f)
                if found is not None and found[0] in self.cuts and whole:
                    op, f = t.BANDS, self._bands(f, *found, running)
            words += [op, len(f) + 2, *f]
        return np.array(words, np.int64)

    def _move_steps(self, f: list[int]) -> None:
        """Let the steps of a sweep read the constant parts of cliques where these are now."""
        at = 7 + f[5]
        for _ in range(f[6]):
            if f[at] == t.MUL and f[at + 2] == t.BASE:
                f[at + 3] = self.moved.get(f[at + 3], f[at + 3])
            at += f[at + 1]

    def _bands(self, f: list[int], c: int, steps: list[Step], running: bool) -> list[int]:
        """The fields of a BANDS; those of `f`, a sweep, are region, cells, left, keep, …."""
        cut, left, keep, noted = self.cuts[c], f[2], f[3], t.NOTHING
        parts = tuple(map(apart, cut.parts if running else (cut.whole,)))
        if running and c in self.heads:
            steps = [*steps, self.heads[c].step(self.tree.dims[c])]
        if running and keep:
            keep, noted = int(not cut.again), t.NOTED if len(self.tree.run[c]) > 1 else t.NOTHING
        elif running and left == t.WORK:
            noted = t.READ
            if cut.again:
                up = self.tree.run[c][0]
                left, steps = up.left, up.factors + steps
        elif running and len(self.tree.run[c]) > 1:  # made in full both times
            noted = t.READ if c in self.noted else t.NOTED
            self.noted.add(c)
        observed = cut.observed if len(parts) > 1 else -1
        counts = self._list((c, running, "counts"), np.array([len(part.starts) for part in parts]))
        starts = self._lists((c, running, "starts"), [part.starts for part in parts])
        widths = self._lists((c, running, "widths"), [part.widths for part in parts])
        most = max(len(part.widths) for part in parts)
        fields = [
            cut.slot,
            cut.ids,
            most,
            observed,
            counts,
            starts,
            widths,
            f[0],
            left,
            keep,
            noted,
            len(steps),
        ]
        self.room = 0
        for step in steps:
            fields += self._step((c, running), cut.axis, parts, step)
        return fields

    def _step(self, key: tuple[int, bool], axis: int, parts: tuple[Part, ...], step: Step) -> list[int]:
        if step.kind == t.MUL and step.buffer == t.BASE:
            step = step._replace(offset=self.moved.get(step.offset, step.offset))
        kind, buffer, offset, moves, strides = step
        dims = self.tree.dims[key[0]]
        along = strides[axis]
        others = [k for k in range(len(dims)) if k != axis]
        outer = [strides[k] for k in others]
        at, shape, steps = 0, [], []
        if along and (along > 1 or kind == t.LIKELY or buffer == t.OUT or self._ends(parts, outer, step)):
            held = [k for k in others if strides[k]]
            shape, steps = [dims[k] for k in (*held, axis)], [strides[k] for k in (*held, axis)]
            size = dims[axis]
            outer = [0] * len(others)
            for k in reversed(held):
                outer[others.index(k)] = size
                size *= dims[k]
            at, along = self.room, 1
            self.room += size + t.BAND_LANES  # what lies behind is read, and is zero
            self.packed = max(self.packed, self.room)
        where = self._lists((*key, along, *outer), [_places(part, outer, along) for part in parts])
        fields = [buffer, offset, len(moves) // 2, along, where, at, len(shape), *moves, *shape, *steps]
        return [kind, len(fields) + 2, *fields]

    def _ends(self, parts: tuple[Part, ...], outer: list[int], step: Step) -> bool:
        """Whether whole vectors would reach past the tables, past the messages, or past the end of BASE."""
        ends = [(_places(part, outer, 1) + filled(part.widths)).max(initial=0) for part in parts]
        end = step.offset + int(max(ends))
        if step.buffer == t.BASE and step.offset >= self.tree.clear:
            return end > self.base_size
        if step.buffer != t.TABLES:
            return end > self.tree.clear
        pairs = zip(step.moves[::2], step.moves[1::2], strict=True)
        furthest = sum(int(self.tree.cards[v] - 1) * stride for v, stride in pairs)
        return end + furthest > self.tree.layout.tables_size

    def _lists(self, key: Any, lists: list[Ints]) -> int:
        """Where lists of a clique's parts begin, each filled up to the longest."""
        if key in self.known:
            return self.known[key]
        table = np.zeros((len(lists), max(map(len, lists))), np.int64)
        for row, own in zip(table, lists, strict=True):
            row[: len(own)] = own
        return self._list(key, table.ravel())

    def _list(self, key: Any, values: Ints) -> int:
        """Where a list begins; one that is known is not written again."""
        if key not in self.known:
            self.known[key] = self.used
            self.lists.append(values)
            self.used += len(values)
        return self.known[key]


def _places(part: Part, outer: list[int], along: int) -> Ints:
    """Where each band begins in an operand with these strides of the other axes."""
    places: Ints = along * part.first
    for own, stride in zip(part.places, outer, strict=True):
        places = places + stride * own
    return places
