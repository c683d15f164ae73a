"""Counting batches of families, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.types import Floats, Ints

Bits = NDArray[np.uint64]


def bitmaps(codes: NDArray[np.uint8], radix: int) -> Bits:
    """For each code below `radix` the rows that hold it as bits, row i in bit i % 64 of word i // 64."""
    words = np.zeros((radix, (len(codes) + 63) // 64 * 8), dtype=np.uint8)
    for code in range(radix):
        packed = np.packbits(codes == code, bitorder="little")
        words[code, : len(packed)] = packed
    return words.view("<u8").astype(np.uint64)


def worth_bitmaps(ptr: Ints, members: Ints, radixes: Ints) -> Ints:
    """The columns whose bit maps would speed these families up: none, as `bincount` has no use for them."""
    return np.empty(0, dtype=np.int64)


def count_families(
    columns: list[NDArray[Any]],
    bits: list[Bits | None],
    radixes: Ints,
    ptr: Ints,
    members: Ints,
    offsets: Ints,
    weights: Floats | None,
) -> NDArray[Any]:
    """The contingency tables of several families, end to end.

    Parameters
    ----------
    columns
        Coded columns, uint8 or uint16, all of one length.
    bits
        For each column its bit maps, or None where it has none.
    radixes
        For each column, one more than the largest code it may hold.
    ptr, members
        Family f is the columns ``members[ptr[f]:ptr[f + 1]]``; the last one runs fastest in its table.
    offsets
        The table of family f goes to ``cells[offsets[f]:offsets[f + 1]]``.
    weights
        One weight per row, or None for one each.

    Returns
    -------
    array
        int64 counts, or float64 sums of weights.
    """
    n_rows = len(columns[0]) if columns else 0
    cells = np.zeros(offsets[-1], dtype=np.int64 if weights is None else np.float64)
    for f in range(len(ptr) - 1):
        index = np.zeros(n_rows, dtype=np.int64)
        for c in members[ptr[f] : ptr[f + 1]].tolist():
            index *= radixes[c]
            index += columns[c]
        size = int(offsets[f + 1] - offsets[f])
        cells[offsets[f] : offsets[f + 1]] = np.bincount(index, weights=weights, minlength=size)
    return cells
