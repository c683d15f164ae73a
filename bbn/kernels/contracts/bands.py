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

    A band is the cells of a row along one axis of a clique, from the first to the last that can be other than zero. The
    ``lists[counts]`` bands of a clique have ``lists[widths + i]`` cells each. Where bands differ by the value k of an
    observed variable `v` (-1: they do not), they are counted by ``lists[counts + k]``, and each of the other lists has
    `most` places for each value. What is stored of a clique (where `left` or `keep` says so) are its bands:
    band i lies from ``lists[starts + i]`` on in its region, filled up with zeros to a multiple of BAND_LANES. A run
    notes which bands are not zero, by number, from `ids` on, and how many, by `slot` (`noted` is NOTED); a BANDS in
    which it is READ goes through those alone. A maximum notes nothing.

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
    remade: Ints
    """Of a program that maximises and collects: how the rows of cliques in bands are made, see `remade`."""


def check_bands(cards: Ints, layout: Layout, bands: Bands, maximise: bool) -> None:
    """Raise TypeError or ValueError unless every band lies within its region and its operands."""
    lists = bands.lists
    if not isinstance(lists, np.ndarray) or lists.dtype != np.int32 or not lists.flags.c_contiguous:
        raise TypeError("bands: expected lists of int32 in C order")
    for tape, size in ((layout.once, layout.base_size), (layout.run, layout.work_size)):
        for op, f in t.instructions(tape):
            if op == t.BANDS:
                v = f[3]
                if maximise and f[10] != t.NOTHING:
                    raise ValueError("bands: a maximum notes none of them")
                if not -1 <= v < len(cards):
                    raise ValueError(f"bands: variable {v} is not known")
                for code in range(1 if v < 0 else int(cards[v])):
                    _check(cards, layout, bands, f, size, code)


def _check(cards: Ints, layout: Layout, bands: Bands, f: list[int], size: int, code: int) -> None:
    slot, ids, most, _, counts, starts, widths, region, left, keep, noted, n_ops = f[:12]
    n = int(_part(bands, counts + code, 1)[0])
    if (
        not 0 <= slot < bands.slots
        or not n <= most
        or (noted and not 0 <= ids <= ids + most <= bands.n_ids)
        or not 0 <= n_ops <= t.BAND_STEPS
    ):
        raise ValueError("bands: more of them, or of their steps, than there is room for")
    width = _part(bands, widths + code * most, n)
    padded = -(-width // t.BAND_LANES) * t.BAND_LANES
    last = region + int((_part(bands, starts + code * most, n) + padded).max(initial=0))
    if (keep and last > size) or (left and last > (layout.base_size if left == t.BASE else size)):
        raise ValueError("bands: their region ends before they do")
    at = 12
    for _ in range(n_ops):
        kind, length, buffer, offset, n_e, along, where, packed, n_d = f[at : at + 9]
        moves = f[at + 9 : at + 9 + 2 * n_e]
        end = int((_part(bands, where + code * most, n) + (padded if along else 1)).max(initial=0))
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


def _part(bands: Bands, start: int, n: int) -> Ints:
    part = bands.lists[start : start + n].astype(np.int64)
    if start < 0 or len(part) != n or (n and part.min() < 0):
        raise ValueError("bands: a list ends before they do")
    return part
