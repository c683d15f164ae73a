"""Sums of numbers given by their logarithms. Large arrays go by in pieces, so that work on them can be stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from types import EllipsisType

import numpy as np

from bbn.kernels.contracts.types import Floats
from bbn.kernels.watch import check

PIECE = 1 << 22
"""The most cells that are worked on without asking whether to go on."""

Piece = tuple[slice | EllipsisType, ...]


def log_sum(logs: Floats, axes: tuple[int, ...] | int = 0) -> Floats:
    """ln Σ exp over these axes; -inf where all are."""
    if logs.size > PIECE:
        return _log_sum_of_pieces(logs, axes)
    highest = logs.max(axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        shares = np.asarray(logs - highest)
        np.exp(shares, out=shares)
        return np.asarray(np.log(shares.sum(axis=axes)) + highest.squeeze(axes))


def pieces(shape: tuple[int, ...]) -> Iterator[Piece]:
    """Indices that part an array of this shape along its leading axes, into at most PIECE cells each.

    >>> list(pieces((2, 3 << 20)))
    [(slice(0, 1, None), Ellipsis), (slice(1, 2, None), Ellipsis)]
    """
    cut = len(shape)
    while cut and math.prod(shape[cut - 1 :]) <= PIECE:
        cut -= 1
    step = max(PIECE // max(math.prod(shape[cut:]), 1), 1)
    for *codes, start in product(
        *map(range, shape[: max(cut - 1, 0)]), range(0, shape[cut - 1] if cut else 1, step)
    ):
        check()
        yield *(*(slice(i, i + 1) for i in codes), slice(start, start + step))[:cut], ...


def _log_sum_of_pieces(logs: Floats, axes: tuple[int, ...] | int) -> Floats:
    gone = {axis % logs.ndim for axis in ((axes,) if isinstance(axes, int) else axes)}
    axes = tuple(sorted(gone))
    shape = [1 if axis in gone else n for axis, n in enumerate(logs.shape)]
    highest, total = np.full(shape, -np.inf), np.zeros(shape)

    def kept(piece: Piece) -> Piece:
        return tuple(slice(None) if axis in gone else own for axis, own in enumerate(piece))

    for piece in pieces(logs.shape):
        most = highest[kept(piece)]
        np.maximum(most, logs[piece].max(axis=axes, keepdims=True), out=most)
    highest[~np.isfinite(highest)] = 0.0
    with np.errstate(divide="ignore", under="ignore"):
        for piece in pieces(logs.shape):
            shares = np.asarray(logs[piece] - highest[kept(piece)])
            np.exp(shares, out=shares)
            total[kept(piece)] += shares.sum(axis=axes, keepdims=True)
            del shares  # before the next are made
        np.log(total, out=total)
    total += highest
    return total.squeeze(axes)
