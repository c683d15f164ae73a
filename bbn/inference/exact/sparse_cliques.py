"""Bands: the program of a plan without the cells that are zero whatever is observed.

Large tables are mostly zeros, and so are the cliques that they are multiplied into. A support of each clique (the
cells that can be other than zero for some value of what is observed) goes up and down the tree once. Along a good axis
it is a band in most rows, since what depends on quantities is mostly zero far from what is expected. A clique for which
that costs less then goes from band to band by lists; bands that are zero in a run are left out on its way up, and so on
its way down. Where the tables that a clique reads are sliced by what is observed, bands may differ by the value of one
such variable. The cost is a few passes over a byte for each cell, and is paid once a plan has run several times.
"""

from __future__ import annotations

import math

import numpy as np

from bbn import kernels
from bbn.inference.exact.clique_supports import Cliques, Flags, Step, supports_by_value, supports_of
from bbn.inference.exact.sparse_tape import Cut, Part, Writer, filled
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import Layout
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
AGAIN = 2048
"""Of cliques with more cells that can be other than zero a run stores nothing, but makes them again on its way down."""
DIFFER = 0.8
"""The bands of a run differ by the value of a variable where that takes less than this share."""

RUNS, SMALL_RUNS = 24, 3_000_000
"""Runs of MARGINALS after which bands are worth looking for: RUNS, and as many more as go through SMALL_RUNS cells."""
FEWEST_CELLS = 8192
"""Plans of fewer cells are left as they are."""
MOST_SET = 0.9
"""Tables of which a larger share is not zero are not looked at."""


def runs_before(layout: Layout, goal: int) -> int:
    """The runs after which bands are looked for, 0 for never: so where there are no compiled kernels.

    A run that goes up the tree alone takes about half of one of MARGINALS, so that twice as many must be worth it.
    """
    if not kernels.COMPILED or not layout.run.size:
        return 0
    cells = layout.whole_size
    runs = RUNS + SMALL_RUNS // cells if FEWEST_CELLS <= cells <= MOST_CELLS else 0
    return runs if goal == t.MARGINALS else 2 * runs


def building_bytes(layout: Layout) -> int:
    """The memory that looking for bands takes."""
    return 2 * layout.whole_size


def in_bands(
    cards: Ints, tables: Floats, layout: Layout, collected: bool = False
) -> tuple[Layout, Bands] | None:
    """The layout with BANDS in place of sweeps over cliques where they pay; None if there are none.

    `collected` says that cliques are kept to be read, so that of those in bands the rows must be made again.
    """
    if np.count_nonzero(tables) > MOST_SET * tables.size:
        return None
    tree = Cliques(cards, layout)
    cuts: dict[int, Cut] = {}
    ids = 0
    if layout.run.size and sum(map(math.prod, tree.dims)) <= MOST_CELLS:
        supports = supports_of(tree, tables)
        for c in tree.run:
            cut = None if c in tree.stepwise else _cut(tree, tables, c, supports[c], len(cuts), ids)
            if cut is not None:
                cuts[c] = cut
                ids += cut.most if len(tree.run[c]) > 1 else 0
    if not cuts:
        return None
    return Writer(tree, cuts, ids, collected).written()


def more_bytes(layout: Layout, thin: Layout, bands: Bands) -> int:
    """The memory that a program with bands and its workspace take beyond one without."""
    lists = 4 * (bands.lists.size + bands.n_ids) + 8 * (bands.slots + bands.packed + bands.remade.size)
    cells = [own.once.size + own.run.size + own.base_size + own.work_size for own in (layout, thin)]
    return lists + 8 * (cells[1] - cells[0])


def _cut(tree: Cliques, tables: Floats, c: int, support: Flags, slot: int, ids: int) -> Cut | None:
    """The bands along the axis for which they take least; None if whole sweeps are about as good."""
    sweeps = tree.run[c]
    dense = sum(len(own.steps) * (PER_CELL * support.size + PER_SLAB * own.slabs) for own in sweeps)
    stored = len(sweeps) > 1 and sweeps[1].left == t.WORK
    again = not stored or bool(np.count_nonzero(support) > AGAIN)
    made = [own.steps for own in sweeps]
    if stored and again:
        made[1:] = [sweeps[0].factors + steps for steps in made[1:]]
    if support.size < SMALLEST or max(map(len, made)) > t.BAND_STEPS:
        return None
    best, axis = _best([support], made)
    if best > dense:
        return None
    whole, observed = _along(support, axis), -1
    parts: tuple[Part, ...] = (whole,)
    for v in sorted({v for own in sweeps for step in own.steps if step.reads_a_table for v in step.observed}):
        supports = list(supports_by_value(tree, tables, c, support, v))
        took, other = _best(supports, made)
        if took < DIFFER * best:
            best, axis, observed = took, other, v
            whole = _along(support, axis)
            parts = tuple(_along(own, axis, whole) for own in supports)
    cells = int(filled(whole.widths).sum())
    return Cut(slot, ids, axis, whole, observed, parts, cells, again) if cells <= support.size else None


def _best(supports: list[Flags], sweeps: list[list[Step]]) -> tuple[float, int]:
    """What bands along the best axis are predicted to take, on average over these supports, and that axis."""
    shape = supports[0].shape
    best = math.inf, 0
    for axis, size in enumerate(shape):
        if size > 1:
            took = sum(_took(support, axis, sweeps) for support in supports) / len(supports)
            best = min(best, (took, axis))
    return best


def _took(support: Flags, axis: int, sweeps: list[list[Step]]) -> float:
    """What bands along an axis are predicted to take."""
    n, cells = np.count_nonzero(support.any(axis=axis)), np.count_nonzero(support)
    vectors = max(n, cells / t.BAND_LANES + n / 2)
    took = 0.0
    for steps in sweeps:
        took += PER_SWEEP + n * (PER_BAND + PER_PLACE * len(steps))
        took += PER_VECTOR * vectors * (1 + sum(step.strides[axis] > 0 for step in steps))
        took += PER_PACKED * sum(_size(step, support.shape) for step in steps if step.strides[axis] > 1)
    return took


def _size(step: Step, shape: tuple[int, ...]) -> int:
    """The cells of a step's operand."""
    return math.prod(size for size, stride in zip(shape, step.strides, strict=True) if stride)


def _along(support: Flags, axis: int, whole: Part | None = None) -> Part:
    """The bands along an axis; with `whole`, they begin with a vector of its bands."""
    last = np.moveaxis(support, axis, -1)
    alive = last.any(axis=-1)
    rows = last[alive]
    first = rows.argmax(axis=1)
    ends = rows.shape[1] - rows[:, ::-1].argmax(axis=1)
    places = np.nonzero(alive) if alive.ndim else ()
    if whole is None:
        padded = filled(ends - first)
        return Part(places, first, np.cumsum(padded) - padded, ends - first)
    of: Ints = np.zeros(len(first), np.int64)
    if places:
        rows_of_whole, rows_of_own = (
            np.ravel_multi_index(own, alive.shape) for own in (whole.places, places)
        )
        of = np.searchsorted(rows_of_whole, rows_of_own)
    first = first - (first - whole.first[of]) % t.BAND_LANES
    return Part(places, first, whole.starts[of] + first - whole.first[of], ends - first)
