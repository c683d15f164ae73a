"""A sweep over the bands of a clique in numpy, all bands at once and cell by cell; see `contracts.bands`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.types import Floats


class Operand(NamedTuple):
    """What a step multiplies each cell by, or adds each cell to."""

    kind: int
    buffer: int
    offset: int
    moves: list[int]
    dims: list[int]
    strides: list[int]
    where: NDArray[np.intp]
    """Where each cell's number lies in the operand, laid out by the dims if there are any."""


class BandedClique:
    """A BANDS of a tape, for one value of what its bands depend on.

    Parameters
    ----------
    lists : int array
        Those of the tape's `Bands`.
    f : list of int
        The fields of the instruction.
    code : int
        The value, 0 if its bands depend on none.
    """

    def __init__(self, lists: NDArray[np.intp], f: list[int], code: int) -> None:
        _, _, most, _, counts, starts, widths, region, self.left, self.keep, _, n_ops = f[:12]
        n, shift = lists[counts + code], code * most
        width = lists[widths + shift : widths + shift + n]
        within = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
        self.places = region + np.repeat(lists[starts + shift : starts + shift + n], width) + within
        self.operands: list[Operand] = []
        at = 12
        for _ in range(n_ops):
            kind, length, buffer, offset, n_e, along, first, _, n_d = f[at : at + 9]
            rest = f[at + 9 : at + length]
            moves, dims = rest[: 2 * n_e], rest[2 * n_e : 2 * n_e + n_d]
            strides = [8 * stride for stride in rest[2 * n_e + n_d :]]
            where = np.repeat(lists[first + shift : first + shift + n], width) + along * within
            self.operands.append(Operand(kind, buffer, offset, moves, dims, strides, where))
            at += length

    def sweep(
        self,
        buffers: tuple[Floats, ...],
        out: Floats,
        shift: Callable[[list[int]], int],
        likelihood: Callable[[int], Floats | None],
        maximise: bool = False,
    ) -> None:
        """Go over the clique; `shift` and `likelihood` are those of the run."""
        cells = np.ones(len(self.places)) if self.left == t.NOTHING else buffers[self.left][self.places]
        for step in self.operands:
            if step.kind == t.ADD:
                continue
            if step.kind == t.LIKELY:
                found = likelihood(step.offset)
                if found is None:
                    continue
                view = found
            else:
                view = _view(buffers[step.buffer], step.offset + shift(step.moves), step)
            cells *= np.take(view, step.where)
        if self.keep:
            buffers[t.WORK][self.places] = cells
        for step in self.operands:
            if step.kind == t.ADD:
                view = _view(out if step.buffer == t.OUT else buffers[step.buffer], step.offset, step)
                size = view.size if step.dims else int(step.where.max(initial=-1)) + 1
                part = view if step.dims else view[:size]
                if maximise:
                    largest = np.zeros(size)
                    np.maximum.at(largest, step.where, cells)
                    np.maximum(part, largest.reshape(part.shape), out=part)
                else:
                    part += np.bincount(step.where, cells, size).reshape(part.shape)


def _view(flat: Floats, offset: int, step: Operand) -> Floats:
    """An operand from its first number on, or by its dims."""
    return np.ndarray(step.dims, np.float64, flat, 8 * offset, step.strides) if step.dims else flat[offset:]
