"""The words for rows that are made again, of cliques in bands: a run that collects stores none of their cells.

The one row of a root is the whole clique. A run notes the largest of its cells over its first axes, as if those were a
clique above it, so that what is made again is a row of fewer cells.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import NamedTuple

import numpy as np

from bbn.inference.exact.clique_supports import Cliques, Step
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.tape import Layout, fused
from bbn.kernels.contracts.types import Ints

SPLIT = 256
"""Roots of fewer cells are made again whole."""


class Head(NamedTuple):
    """The first axes of a root in bands, as a clique above it."""

    axes: int
    """How many."""
    offset: int
    """Where its cells lie."""
    cells: int

    def step(self, dims: tuple[int, ...]) -> Step:
        """What notes the largest cells, in a sweep over a root of these dims."""
        strides = [math.prod(dims[k + 1 : self.axes]) for k in range(self.axes)]
        shown = [stride if size > 1 else 0 for stride, size in zip(strides, dims, strict=False)]
        return Step(t.ADD, t.WORK, self.offset, (), (*shown, *[0] * (len(dims) - self.axes)))


class Remade(NamedTuple):
    """What replaces the cells of cliques in bands where they are kept to be read."""

    heads: dict[int, Head]
    words: Ints
    """See `bbn.kernels.contracts.remade`."""
    end: int
    """Where heads and rows end."""


def remade_words(tree: Cliques, cut: Container[int], at: int) -> Remade:
    """The heads of roots and the rows that are made again, which lie from `at` on; all rows share one place."""
    once = {c: steps for c, _, steps in tree.sweeps(tree.layout.once)}
    heads: dict[int, Head] = {}
    made: list[tuple[int, int, list[Step]]] = []
    for c, (sweep, *_) in tree.run.items():
        if c in cut:
            # what was filled once is in BASE
            still = [
                step._replace(buffer=t.BASE if step.buffer == t.WORK else step.buffer)
                for step in once.get(c, [])
            ]
            factors = [step for step in (*still, *sweep.steps) if step.kind != t.ADD]
            shared = tree.separator[c]
            dims = tree.dims[c]
            large = math.prod(dims) >= SPLIT and len(dims) > 1
            if large and tree.parent[c] < 0 and len(sweep.steps) < t.BAND_STEPS:
                shared = _first_axes(dims)
                heads[c] = Head(shared, at, math.prod(dims[:shared]))
                at += heads[c].cells
            made.append((c, shared, factors))
    words: list[int] = []
    for c, shared, factors in made:
        own = [word for step in factors for word in _factor(tree.dims[c], shared, step)]
        words += [c + sum(root <= c for root in heads), 4 + len(own), at, len(factors), *own]
    at += max((math.prod(tree.dims[c][shared:]) for c, shared, _ in made), default=0)
    return Remade(heads, np.array(words, np.int64), at)


def _first_axes(dims: tuple[int, ...]) -> int:
    """How many of a root's first axes are noted: so many that they and a row have few cells together."""
    return min(range(1, len(dims)), key=lambda k: math.prod(dims[:k]) + math.prod(dims[k:]))


def _factor(dims: tuple[int, ...], shared: int, step: Step) -> list[int]:
    joined, strides = fused(dims[shared:], step.strides[shared:])
    words = [step.buffer, step.offset, len(step.moves) // 2, len(joined)]
    words += [*step.moves, *step.strides[:shared], *joined, *strides]
    return [step.kind, len(words) + 2, *words]


def with_heads(layout: Layout, heads: dict[int, Head]) -> Layout:
    """The layout with a clique above each of these roots, and their cells set to zero before a run."""
    if not heads:
        return layout
    axes: list[list[int]] = []
    parent: list[int] = []
    separator: list[int] = []
    clique: list[int] = []
    dynamic: list[int] = []
    number: list[int] = []
    cleared = []
    for c, above in enumerate(layout.parent.tolist()):
        own = layout.axes[layout.axes_ptr[c] : layout.axes_ptr[c + 1]].tolist()
        if c in heads:
            axes.append(own[: heads[c].axes])
            parent.append(-1)
            separator.append(0)
            clique.append(heads[c].offset)
            dynamic.append(1)
            cleared += [t.CLEAR, 4, heads[c].offset, heads[c].cells]
        number.append(len(axes))
        axes.append(own)
        parent.append(len(axes) - 2 if c in heads else -1 if above < 0 else number[above])
        separator.append(heads[c].axes if c in heads else int(layout.separator[c]))
        clique.append(int(layout.clique[c]))
        dynamic.append(int(layout.dynamic[c]))
    return layout._replace(
        run=np.concatenate([np.array(cleared, np.int64), layout.run]),
        axes_ptr=np.cumsum([0, *map(len, axes)]),
        axes=np.array([v for own in axes for v in own], np.int64),
        parent=np.array(parent, np.int64),
        separator=np.array(separator, np.int64),
        clique=np.array(clique, np.int64),
        dynamic=np.array(dynamic, np.int64),
    )
