"""The words of a tape: the straight-line program that a plan compiles to and the interpreters run.

A tape is a flat int64 array of instructions, each ``[op, length, ...]``. Potentials live in one flat float64 buffer:
cliques and separators at fixed offsets, a clique's cells in C order of its axes, the separator to its parent first.
``BASE`` is the buffer of what no evidence can change, filled once; ``WORK`` is the run's own buffer with the same
offsets; ``TABLES`` holds the model's factors. ``n_e`` pairs (v, stride) move a table's offset by the observed code
of v; ``dims`` and ``strides`` walk the source (or, in DOWN, the separator) while the clique is walked in C order.

======== ==============================================================================================================
op       fields
======== ==============================================================================================================
SCALAR   offset, n_e, (v, stride)…: a factor with nothing left but observed variables
ONES     clique, cells
MUL      clique, left, buffer, offset, n_e, n_d, (v, stride)…, dims…, strides…: clique = left · source, where left is
         NOTHING, BASE or WORK at the clique's own offset
LIKELY   v, clique, outer, card, inner: multiply the likelihood of v in, where the run has one
RESCALE  clique, cells: divide by the largest cell, and count its log
UP       separator, clique, rows, columns: sum the rows into the separator, normalise, count the log
TOTAL    clique, cells: count the log of the sum of a root
DOWN     separator, clique, rows, columns, old, parent, scale, n_d, dims…, strides…: the parent's marginal over the
         separator; if scale, the clique (read from ``old``, BASE or WORK) times new over old; the new stays
READ     out, region, outer, card, inner: a normalised marginal into the answer
======== ==============================================================================================================
"""

from __future__ import annotations

from typing import Final, NamedTuple

from bbn.kernels.types import Ints

SCALAR: Final = 0
ONES: Final = 1
MUL: Final = 2
LIKELY: Final = 3
RESCALE: Final = 4
UP: Final = 5
TOTAL: Final = 6
DOWN: Final = 7
READ: Final = 8

NOTHING: Final = 0
TABLES: Final = 0
BASE: Final = 1
WORK: Final = 2

FREE: Final = 0
SLICED: Final = 1
LIKELIHOOD: Final = 2
MASKED: Final = 3

RESCALE_EVERY: Final = 8
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
        its cells, and whether a run computes it (else it is in BASE).
    out : int64 array (n,)
        Where a variable's marginal lies in the answer, or -1.
    out_size, work_size, widest : int
        Numbers of float64: the answer, the buffer of potentials, the largest separator.
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
    widest: int
