"""Counting batches of families, in numpy."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import (
    check_ints,
    check_length,
    check_numbers,
    check_offsets,
    check_range,
    check_shape,
)
from bbn.kernels.contracts.types import Floats, Ints

Bits = NDArray[np.uint64]
Near = tuple[int, tuple[int, ...], list[int], list[int]]
"""A child, its parents, those it may get and those it may lose."""
MOST_CELLS = 2.0**53
"""Cells of all tables that an offset can reach."""


def bitmaps(codes: NDArray[np.uint8], radix: int) -> Bits:
    """For each code below `radix` the rows that hold it as bits, row i in bit i % 64 of word i // 64."""
    check_numbers("u", 1, codes)
    if not 0 <= radix <= 256:
        raise ValueError(f"radix: expected a number from 0 to 256, found {radix}")
    check_range(codes, 0, radix, "column 0")
    words = np.zeros((radix, (len(codes) + 63) // 64 * 8), dtype=np.uint8)
    for code in range(radix):
        packed = np.packbits(codes == code, bitorder="little")
        words[code, : len(packed)] = packed
    return words.view("<u8").astype(np.uint64)


def check_families(ptr: Ints, members: Ints, n_columns: int) -> None:
    """Refuse families that are not of these columns."""
    check_ints(ptr, members)
    check_offsets(ptr, len(members), "ptr")
    check_range(members, 0, n_columns, "members")


def worth_bitmaps(ptr: Ints, members: Ints, radixes: Ints) -> Ints:
    """The columns whose bit maps would speed these families up: none, as `bincount` has no use for them."""
    check_families(ptr, members, len(radixes))
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
    return Columns(columns, bits, radixes).count(ptr, members, offsets, weights)


class Columns:
    """Columns of a table that families are counted in again and again, checked once.

    The parameters are those of `count_families`.
    """

    def __init__(self, columns: list[NDArray[Any]], bits: list[Bits | None], radixes: Ints) -> None:
        check_ints(radixes)
        check_range(radixes, 1, 2**62, "radixes")
        check_length(len(radixes), len(columns), "radixes")
        check_length(len(bits), len(columns), "bits")
        self.columns, self.radixes = columns, radixes
        self.n_rows = len(columns[0]) if columns else 0
        self.checked: set[int] = set()
        for c, column in enumerate(columns):
            check_numbers("u", 1, column)
            check_length(len(column), self.n_rows, f"column {c}")
            held = bits[c]
            if held is not None:
                check_shape("bits", held, int(radixes[c]), (self.n_rows + 63) // 64)

    def count(
        self,
        ptr: Ints,
        members: Ints,
        offsets: Ints,
        weights: Floats | None,
        first: int = 0,
        last: int | None = None,
    ) -> NDArray[Any]:
        """The contingency tables of several families in the rows from `first` to before `last`.

        `first` is a multiple of 64, and so is `last`, unless it is the number of rows, which None stands for. The other
        parameters, and what comes out, are those of `count_families`.
        """
        columns, radixes, n_rows = self.columns, self.radixes, self.n_rows
        stop = n_rows if last is None else last
        check_families(ptr, members, len(columns))
        check_ints(offsets)
        check_length(len(offsets), len(ptr), "offsets")
        check_offsets(offsets, int(offsets[-1]), "offsets")
        for f, found in enumerate(np.diff(offsets).tolist()):
            settings = prod(map(float, radixes[members[ptr[f] : ptr[f + 1]]]))
            if settings != found:
                raise ValueError(f"table {f}: expected {settings:.15g} cells, found {found}")
        if not 0 <= first <= stop <= n_rows or first % 64 or (stop % 64 and stop != n_rows):
            raise ValueError(
                f"rows: expected a range between multiples of 64 below {n_rows}, found {(first, stop)}"
            )
        for c in np.unique(members).tolist() if n_rows else ():
            if c not in self.checked:
                check_range(columns[c], 0, int(radixes[c]), f"column {c}")
                self.checked.add(c)
        if weights is not None:
            check_length(len(weights), n_rows, "weights")
            weights = weights[first:stop]
        cells = np.zeros(offsets[-1], dtype=np.int64 if weights is None else np.float64)
        for f in range(len(ptr) - 1):
            index = np.zeros(stop - first, dtype=np.int64)
            for c in members[ptr[f] : ptr[f + 1]].tolist():
                index *= radixes[c]
                index += columns[c][first:stop]
            size = int(offsets[f + 1] - offsets[f])
            cells[offsets[f] : offsets[f + 1]] = np.bincount(index, weights=weights, minlength=size)
        return cells

    def around(
        self, wanted: list[Near], place: Ints, weights: Floats | None, first: int = 0, last: int | None = None
    ) -> tuple[NDArray[Any], Ints, Ints]:
        """The tables of the families around each child and its parents, the child running fastest.

        Parameters
        ----------
        wanted
            Each a child, its parents, a list of further parents and a list of some of its parents. The families are
            those with one of the further parents more, which runs slowest, then those with one of the last list less,
            then the family itself.
        place
            The column of each variable.
        weights, first, last
            As in `count`.

        Returns
        -------
        cells, offsets, cards
            Table t is ``cells[offsets[t]:offsets[t + 1]]``, rows of ``cards[t]`` cells.
        """
        check_ints(place)
        parts: list[NDArray[Any]] = []
        cards: list[int] = []
        for child, own, add, delete in wanted:
            for v in (child, *own, *add):
                if not (0 <= v < len(place) and 0 <= place[v] < len(self.columns)):
                    raise ValueError(f"wanted: variable {v} has no column")
            absent = [v for v in delete if v not in own]
            if absent:
                raise ValueError(f"delete: {absent[0]} is not a parent of {child}")
            families = [place[[z, *own, child]] for z in add] or [place[[*own, child]]]
            shapes = [self.radixes[family] for family in families]
            sizes = [prod(map(float, shape)) for shape in shapes]
            if sum(sizes) > MOST_CELLS:
                raise ValueError(f"expected fewer cells than {MOST_CELLS:.3g}")
            offsets = np.cumsum([0, *sizes]).astype(np.int64)
            ptr = np.arange(len(families) + 1) * len(families[0])
            flat = self.count(ptr, np.concatenate(families), offsets, weights, first, last)
            tables = [flat[offsets[f] : offsets[f + 1]].reshape(shape) for f, shape in enumerate(shapes)]
            table = tables[0].sum(axis=0) if add else tables.pop()
            tables += [*(table.sum(axis=own.index(v)) for v in delete), table]
            parts += tables
            cards += [int(self.radixes[place[child]])] * len(tables)
        ends = np.cumsum([0, *(table.size for table in parts)])
        kind = np.int64 if weights is None else np.float64
        cells = np.concatenate([np.empty(0, dtype=kind), *(table.reshape(-1) for table in parts)])
        return cells, ends, np.array(cards, dtype=np.int64)
