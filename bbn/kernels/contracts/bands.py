"""Bands: what a tape keeps beside its words for cliques that are mostly zeros, and whether it all fits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import DEEPEST
from bbn.kernels.contracts.tape import Layout
from bbn.kernels.contracts.types import Ints


class Bands(NamedTuple):
    """The bands of cliques of which few cells can be other than zero, whatever is observed.

    A band is the cells of a row along one axis of a clique, from the first to the last that can be other than zero. A
    clique's region holds its n bands: band i has ``lists[widths + i]`` cells from ``lists[starts + i]`` on, filled up
    with zeros to a multiple of BAND_LANES. A run notes which of them are not zero, by number, from `ids` on, and how
    many, by `slot`; a BANDS that starts from WORK goes through those alone.

    A step of BANDS is ``[kind, length, buffer, offset, n_e, along, list, packed, n_d, (v, stride)…, dims…, strides…]``:
    the operand's part for band i begins at ``lists[list + i]``, and is one number (``along`` 0) or as many as the band
    has cells (1). If there are dims, the operand is first laid out by them, C order, at `packed`, and a sum is made
    there and then added up.

    Attributes
    ----------
    lists : int32 array
        Where bands begin, their widths, and their places in operands.
    n_ids, slots, packed : int
        The bands of all cliques, the cliques, and the cells for operands that are laid out anew.
    """

    lists: NDArray[np.int32]
    n_ids: int
    slots: int
    packed: int


def check_bands(cards: Ints, layout: Layout, bands: Bands, maximise: bool) -> None:
    """Raise TypeError or ValueError unless every band lies within its region and its operands."""
    lists = bands.lists
    if not isinstance(lists, np.ndarray) or lists.dtype != np.int32 or not lists.flags.c_contiguous:
        raise TypeError("bands: expected lists of int32 in C order")
    if maximise:
        raise ValueError("bands: a maximum goes through whole cliques")
    for tape, size in ((layout.once, layout.base_size), (layout.run, layout.work_size)):
        for op, f in t.instructions(tape):
            if op == t.BANDS:
                _check(cards, layout, bands, f, size)


def _check(cards: Ints, layout: Layout, bands: Bands, f: list[int], size: int) -> None:
    slot, ids, n, starts, widths, region, left, keep, n_ops = f[:9]
    if (
        not 0 <= slot < bands.slots
        or not 0 <= ids <= ids + n <= bands.n_ids
        or not 0 <= n_ops <= t.BAND_STEPS
    ):
        raise ValueError("bands: more of them, or of their steps, than there is room for")
    width = _part(bands, widths, n)
    padded = -(-width // t.BAND_LANES) * t.BAND_LANES
    last = region + int((_part(bands, starts, n) + padded).max(initial=0))
    if (keep and last > size) or (left and last > (layout.base_size if left == t.BASE else size)):
        raise ValueError("bands: their region ends before they do")
    at = 9
    for _ in range(n_ops):
        kind, length, buffer, offset, n_e, along, where, packed, n_d = f[at : at + 9]
        moves = f[at + 9 : at + 9 + 2 * n_e]
        end = int((_part(bands, where, n) + (padded if along else 1)).max(initial=0))
        room = {t.TABLES: layout.tables_size, t.BASE: layout.base_size, t.WORK: size, t.OUT: layout.out_size}[
            buffer
        ]
        if n_d:
            offset, room = packed, bands.packed
        elif kind == t.LIKELY:
            offset, room = 0, int(cards[offset])
        else:
            offset += sum(
                int(cards[v] - 1) * stride for v, stride in zip(moves[::2], moves[1::2], strict=True)
            )
        if offset < 0 or offset + end > room or n_d > DEEPEST:
            raise ValueError("bands: an operand ends before they do")
        at += length


def _part(bands: Bands, start: int, n: int) -> NDArray[np.int32]:
    part = bands.lists[start : start + n]
    if start < 0 or len(part) != n or (n and part.min() < 0):
        raise ValueError("bands: a list ends before they do")
    return part
