"""The words of a tape: the straight-line program that a plan compiles to and the interpreters run.

A tape is a flat int64 array of instructions, each ``[op, length, ...]``. Potentials live in one flat float64 buffer:
the message of each clique to its parent, the fresh marginal it gets back, and the clique's cells in C order of its
axes, the separator to its parent first. ``BASE`` is the buffer of what no evidence can change, filled once; ``WORK`` is
the run's own buffer with the same offsets; ``TABLES`` holds the model's factors; ``OUT`` is the answer.

========= =============================================================================================================
op        fields
========= =============================================================================================================
CLEAR     offset, n: zeros
SCALAR    offset, n_e, (v, stride)…: a factor with nothing left but observed variables
SWEEP     region, cells, left, keep, slabs, n_o, n_ops, outer dims…, steps…: go over a region slab by slab, so that a
          slab stays in the nearest cache while all steps are applied to it, or is skipped if one that is the same all
          over it is zero; start from ``left`` (NOTHING: ones; BASE or WORK: the region there); write the region back
          if ``keep``
RESCALE   region, n: divide by the largest cell, and count its log
NORM      region, n: divide a message by its sum (in a maximum: its largest cell), and count the log
TOTAL     region: count the log of a root's sum
RATIO     fresh, message, n, old: the message becomes the fresh marginal, and fresh becomes fresh over old message
          (of buffer ``old``), 0/0 being 0
FINISH    out, n: normalise a part of the answer
BANDS     slot, ids, most, v, counts, starts, widths, region, left, keep, noted, n_ops, steps…: a SWEEP over the bands
          of a clique; see `bands`
========= =============================================================================================================

A step of a sweep is ``[kind, length, buffer, offset, n_e, n_d, (v, stride)…, outer strides…, dims…, strides…]``: the
n_e pairs move the offset by the observed code of v; the strides walk the other operand while the slab is walked in C
order. MUL multiplies it in, LIKELY (its offset is v) does so with v's likelihood if the run has one, and ADD adds the
slab to it (in a maximum: takes the larger).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from bbn.kernels.contracts.types import Ints

CLEAR: Final = 0
SCALAR: Final = 1
SWEEP: Final = 2
RESCALE: Final = 3
NORM: Final = 4
TOTAL: Final = 5
RATIO: Final = 6
FINISH: Final = 7
BANDS: Final = 8

MUL: Final = 0
LIKELY: Final = 1
ADD: Final = 2

NOTHING: Final = 0
TABLES: Final = 0
BASE: Final = 1
WORK: Final = 2
OUT: Final = 3

FREE: Final = 0
SLICED: Final = 1
LIKELIHOOD: Final = 2
MASKED: Final = 3

QUERY: Final = 0
"""Collect only: the joint of the targets, or the evidence alone."""
MARGINALS: Final = 1
"""Collect and distribute: the marginal of each variable."""
COLLECTED: Final = 2
"""Collect, and keep the cliques to be read."""

NOTED: Final = 1
READ: Final = 2

RESCALE_EVERY: Final = 8
"""Sources of a clique after which its largest cell is made 1 again."""
SLAB: Final = 2048
"""Cells of a slab: it and its operands fit the nearest cache."""
THIN_SLAB: Final = 512
"""Cells of a slab where many slabs are zero, since those are skipped: short ones more often are."""
ORDERED: Final = 2048
"""The axes of larger cliques are ordered so that most messages walk them in long runs."""
RUN: Final = 64
"""Cells of a run that is long enough."""
STREAM: Final = 8192
"""A clique of more cells than this is not written to memory, but made slab by slab, where a run needs it only once."""
STREAM_AGAIN: Final = 4096
"""In trees of more than STREAM_TREE cells, cliques of more cells than this that evidence can change are never written
to memory either: a run makes them slab by slab on its way up, and again on its way down."""
STREAM_TREE: Final = 500_000
"""Smaller trees stay in the processor's own memory, where writing and reading a cell takes less than making it."""
MOST_SOURCES: Final = 32
"""Cliques of more sources than this (RESCALE_EVERY where evidence reaches them) are stored all the same, since their
products must be rescaled on the way."""
BAND_LANES: Final = 4
"""Bands are filled up with zeros to a multiple of this number of cells."""
BAND_STEPS: Final = 16
"""The most steps of a BANDS."""
LARGE: Final = 1_000_000
"""Of programs with more cells than this, at most one idle workspace is kept."""


class Layout(NamedTuple):
    """A junction forest laid out in memory, and the tapes that run it.

    Attributes
    ----------
    once, run : int64 arrays
        The tape of what evidence cannot change, and the tape of a run.
    axes_ptr, axes : int64 arrays
        The variables of clique c, in the order of its axes, are ``axes[axes_ptr[c]:axes_ptr[c + 1]]``. Cliques are
        numbered parents first.
    parent, separator, clique, dynamic : int64 arrays
        Per clique: its parent (-1 for a root), the number of leading axes it shares with the parent, the offset of
        its cells (if they are stored; otherwise, that of the product of what evidence cannot change, in BASE, over the
        axes that this has), and whether a run computes it (else it is in BASE).
    out : int64 array (n,)
        Where a variable's marginal lies in the answer, or -1.
    out_size, work_size, base_size, whole_size : int
        Numbers of float64: the answer; a run's potentials; those that are filled once (the same and more); and what
        either would be if each clique that a run goes through were stored, which is the measure of its work.
    scratch_size : int
        The largest slab.
    tables_size : int
        The numbers of all the model's tables.
    """

    once: Ints
    run: Ints
    axes_ptr: Ints
    axes: Ints
    parent: Ints
    separator: Ints
    clique: Ints
    dynamic: Ints
    out: Ints
    out_size: int
    work_size: int
    base_size: int
    whole_size: int
    scratch_size: int
    tables_size: int


def instructions(tape: Ints) -> Iterable[tuple[int, list[int]]]:
    """The instructions of a tape: op and fields."""
    words = tape.tolist()
    at = 0
    while at < len(words):
        yield words[at], words[at + 2 : at + words[at + 1]]
        at += words[at + 1]


def operand(f: list[int], outer: list[int]) -> tuple[int, int, list[int], list[int], list[int]]:
    """Buffer, offset, moves, whole dims and strides of a step of a sweep with these outer dims."""
    buffer, offset, n_e, n_d = f[:4]
    at = 4 + 2 * n_e
    dims = f[at + len(outer) : at + len(outer) + n_d]
    strides = f[at : at + len(outer)] + f[at + len(outer) + n_d :]
    return buffer, offset, f[4:at], [*outer, *dims], strides


def fused(dims: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    """Drop axes of one state and join neighbours that one stride can walk."""
    kept: list[list[int]] = []
    for dim, stride in zip(dims, strides, strict=True):
        if dim == 1:
            continue
        if kept and kept[-1][1] == stride * dim:
            kept[-1] = [kept[-1][0] * dim, stride]
        else:
            kept.append([dim, stride])
    if not kept:
        return [1], [0]
    return [dim for dim, _ in kept], [stride for _, stride in kept]
