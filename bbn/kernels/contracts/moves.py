"""What the sampling kernels run: draws of one variable given others, as flat arrays.

A draw compares random bits with thresholds: where c_j is the probability of the states up to j, in units of the
bits' range, the state is the number of j with u > c_j − 1. Sums of 0 and of 1 are exact, so a state of probability
zero is never drawn. Bits are 31, two to a word of the generator, or 53, one to a word, where small
probabilities need them.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.types import Floats, Ints

Codes: TypeAlias = NDArray[Any]
"""uint8 or uint16, shape (columns, rows), each column contiguous."""
Thresholds: TypeAlias = NDArray[Any]
"""int32 (31 bits) or int64 (53 bits)."""

CHUNK = 1024
"""Rows that are drawn together, so that all that belongs to them stays in the nearest cache."""

SMALLEST_NARROW = 2.0**-20
"""31 bits serve where no positive probability is below this."""


class Moves(NamedTuple):
    """Draws in order: move i draws column ``member[i]`` given its parents' columns.

    Attributes
    ----------
    member : int64 array (n,)
        The column drawn, or −1 where the move only weighs.
    size : int64 array (n,)
        The number of its states; 1 where the move only weighs.
    parent_ptr, parents, strides : int64 arrays
        Row r of move i is the sum of ``codes[parents[k]] * strides[k]`` for k in ``parent_ptr[i]:parent_ptr[i + 1]``.
    table : int64 array (n,)
        Where its thresholds begin: ``size − 1`` per row.
    thresholds : int32 or int64 array
    weight : int64 array (n,)
        Where its log weights begin, ``size`` per row, or −1 if it has none.
    log_weights : float64 array
    """

    member: Ints
    size: Ints
    parent_ptr: Ints
    parents: Ints
    strides: Ints
    table: Ints
    thresholds: Thresholds
    weight: Ints
    log_weights: Floats


class Sweep(NamedTuple):
    """One pass of Gibbs sampling: move i draws the joint state of a block of columns given its Markov blanket.

    Attributes
    ----------
    member_ptr, members, decode_ptr, decode : int64 arrays
        Joint state j of block i gives column ``members[k]`` the code ``decode[decode_ptr[k] + j]``.
    size : int64 array (n,)
        The number of joint states, at least two.
    table : int64 array (n,)
        Where the thresholds of the block given its blanket begin, or −1 where that table would be too large and the
        factors are multiplied in each draw.
    parent_ptr, parents, strides : int64 arrays
        As in `Moves`, over the blanket, where there is a table.
    thresholds : int32 or int64 array
    factor_ptr, offset, shift : int64 arrays
        The factors k of block i, where there is no table: the entry for joint state j lies at ``offset[k]``, plus what
        the blanket's codes add, plus ``shifts[shift[k] + j]``.
    scope_ptr, scope, scope_strides : int64 arrays
        The columns of the blanket in factor k, and how they move its entry.
    shifts : int64 array
    values : float64 array
        The factors' entries.
    """

    member_ptr: Ints
    members: Ints
    decode_ptr: Ints
    decode: Ints
    size: Ints
    table: Ints
    parent_ptr: Ints
    parents: Ints
    strides: Ints
    thresholds: Thresholds
    factor_ptr: Ints
    offset: Ints
    shift: Ints
    scope_ptr: Ints
    scope: Ints
    scope_strides: Ints
    shifts: Ints
    values: Floats


class Groups(NamedTuple):
    """What is counted: joint states of groups of columns, each group's cells one after the other.

    Attributes
    ----------
    ptr, members, strides : int64 arrays
        The cell of group g is ``offset[g]`` plus the sum of ``codes[members[k]] * strides[k]``.
    offset : int64 array
    n_cells : int
    """

    ptr: Ints
    members: Ints
    strides: Ints
    offset: Ints
    n_cells: int


def thresholds(rows: Floats, wide: bool) -> Thresholds:
    """Rows of non-negative weights as thresholds, shape (n, states − 1); a row of zeros gives its first state."""
    sums = np.cumsum(rows, axis=1)
    total = sums[:, -1:]
    share = np.divide(sums[:, :-1], total, out=np.ones_like(sums[:, :-1]), where=total > 0)
    bits, kind = (53, np.int64) if wide else (31, np.int32)
    return np.asarray(np.rint(np.ldexp(share, bits)) - 1, dtype=kind)
