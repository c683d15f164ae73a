"""Rows that are made again: the words for cliques that a maximum goes through without storing them.

The best states of a clique are read from one of its rows: the cells that agree with what is decided of the axes it
shares with its parent, which come first. Where a run stores no cells, such a row is the product of the same factors.
For each such clique there are the words ``[c, length, at, n, factors…]``: the row is made in WORK from `at` on. A
factor is ``[kind, length, buffer, offset, n_e, n_d, (v, stride)…, strides of the shared axes…, dims…, strides…]``, its
kind and its other words those of a step of a sweep (see `tape`), its dims those of the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import DEEPEST, check_ints
from bbn.kernels.contracts.tape import Layout
from bbn.kernels.contracts.types import Ints


class RowFactor(NamedTuple):
    """A factor of a row."""

    kind: int
    buffer: int
    offset: int
    moves: list[int]
    shared: list[int]
    """The stride of each shared axis."""
    dims: list[int]
    strides: list[int]


class RemadeRow(NamedTuple):
    """How the rows of a clique are made."""

    at: int
    factors: list[RowFactor]


def remade_rows(layout: Layout, remade: Ints) -> Iterator[tuple[int, RemadeRow]]:
    """Each clique with how its rows are made."""
    words, at = remade.tolist(), 0
    while at < len(words):
        c, length, place, n = words[at : at + 4]
        first, factors = at + 4, []
        shared = int(layout.separator[c])
        for _ in range(n):
            kind, size, buffer, offset, n_e, n_d = words[first : first + 6]
            rest = words[first + 6 : first + size]
            moves, rest = rest[: 2 * n_e], rest[2 * n_e :]
            own, rest = rest[:shared], rest[shared:]
            factors.append(RowFactor(kind, buffer, offset, moves, own, rest[:n_d], rest[n_d:]))
            first += size
        yield c, RemadeRow(place, factors)
        at += length


def check_remade(cards: Ints, layout: Layout, remade: Ints) -> None:
    """Raise TypeError or ValueError unless every row and its factors lie within their buffers."""
    check_ints(remade)
    _check_lengths(layout, remade.tolist())
    sizes = cards.tolist()
    rooms = {t.TABLES: layout.tables_size, t.BASE: layout.base_size, t.WORK: layout.work_size}
    for c, row in remade_rows(layout, remade):
        axes = layout.axes[layout.axes_ptr[c] : layout.axes_ptr[c + 1]].tolist()
        shared = axes[: layout.separator[c]]
        cells = math.prod(sizes[v] for v in axes[len(shared) :])
        if row.at < 0 or row.at + cells > layout.work_size:
            raise ValueError("a row that is made again ends behind its place")
        for f in row.factors:
            start, room, observed = f.offset, rooms.get(f.buffer, 0), f.moves[::2]
            if f.kind == t.LIKELY:
                observed = [*observed, f.offset]
            if any(not 0 <= v < len(sizes) for v in observed) or f.kind not in (t.MUL, t.LIKELY):
                raise ValueError("a row that is made again: a factor is of no variable")
            if f.kind == t.LIKELY:
                start, room = 0, sizes[f.offset]
            ends = [(sizes[v] - 1) * stride for v, stride in zip(f.moves[::2], f.moves[1::2], strict=True)]
            ends += [(sizes[v] - 1) * stride for v, stride in zip(shared, f.shared, strict=True)]
            ends += [(dim - 1) * stride for dim, stride in zip(f.dims, f.strides, strict=True)]
            outside = min(ends, default=0) < 0 or start < 0 or start + sum(ends) >= room
            if outside or min(f.dims, default=0) < 1 or math.prod(f.dims) != cells or len(f.dims) > DEEPEST:
                raise ValueError("a factor of a row that is made again does not fit it")


def _check_lengths(layout: Layout, words: list[int]) -> None:
    """Raise ValueError unless the words are those of cliques and their factors, one behind another."""
    at = 0
    while at < len(words):
        fits = (
            at + 4 <= len(words) and 0 <= words[at] < len(layout.parent) and 0 <= words[at + 3] <= len(words)
        )
        first = at + 4
        for _ in range(words[at + 3] if fits else 0):
            counts = words[first + 4 : first + 6]
            fits = fits and len(counts) == 2 and min(counts) >= 0 and max(counts) <= len(words)
            if not fits:
                break
            length = 6 + 2 * sum(counts) + int(layout.separator[words[at]])
            fits = words[first + 1] == length and first + length <= len(words)
            first += length
        if not fits or words[at + 1] != first - at:
            raise ValueError("rows that are made again: words that do not fit one another")
        at = first
