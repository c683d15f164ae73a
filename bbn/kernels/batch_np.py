"""Run a tape for many rows of evidence at once, in numpy: each potential is an array (cells, rows)."""

from __future__ import annotations

import numpy as np

from bbn.kernels import tape as t
from bbn.kernels.propagate_np import instructions
from bbn.kernels.tape import Layout
from bbn.kernels.types import Floats, Int32s, Ints

BLOCK = 256
"""Rows that are worked on at a time."""


def run_rows(
    tables: Floats,
    layout: Layout,
    base: Floats,
    once_out: Floats,
    once_log: float,
    columns: Ints,
    codes: Int32s,
    out: Floats,
    logs: Floats,
) -> None:
    """Answer each row of codes.

    Parameters
    ----------
    tables, layout, base, once_out, once_log
        A sum program's tables and layout, and what it worked out once.
    columns : int64 array (k,)
        The variables observed, each sliced or a likelihood in the layout.
    codes : int32 array (rows, k)
        Their codes. Where the variable is a likelihood, the code ``card`` says nothing; a sliced one always has a
        slice to pick.
    out : float64 array (rows, out_size)
        Filled with the normalised marginals; NaN where the row is impossible.
    logs : float64 array (rows,)
        Filled with the logs of the totals; -inf where the row is impossible.
    """
    for start in range(0, len(codes), BLOCK):
        rows = slice(start, start + BLOCK)
        block = _Block(
            tables, layout, base, dict(zip(columns.tolist(), codes[rows].T, strict=True)), len(codes[rows])
        )
        block.out[:] = once_out[: layout.out_size, None]
        block.execute()
        out[rows] = block.out.T
        logs[rows] = once_log + block.logs


class _Block:
    def __init__(
        self, tables: Floats, layout: Layout, base: Floats, codes: dict[int, Int32s], n: int
    ) -> None:
        self.tables, self.layout, self.base, self.codes, self.n = tables, layout, base, codes, n
        self.work: Floats = np.empty((layout.work_size, n))
        self.out: Floats = np.empty((layout.out_size, n))
        self.logs: Floats = np.zeros(n)

    def execute(self) -> None:
        steps = (
            self.scalar,
            self.ones,
            self.mul,
            self.likely,
            self.rescale,
            self.up,
            self.total,
            self.down,
            self.read,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            for op, fields in instructions(self.layout.run):
                steps[op](fields)

    def scalar(self, f: list[int]) -> None:
        self.logs += np.log(self.tables[f[0] + self.shift(f[2:])])

    def ones(self, f: list[int]) -> None:
        self.work[f[0] : f[0] + f[1]] = 1.0

    def mul(self, f: list[int]) -> None:
        clique, left, buffer, offset, moving, n_d = f[:6]
        dims = f[6 + 2 * moving : 6 + 2 * moving + n_d]
        at = _walk(dims, f[6 + 2 * moving + n_d :])
        target = self.work[clique : clique + at.size]
        source: Floats
        if moving:
            source = self.tables[offset + at[:, None] + self.shift(f[6 : 6 + 2 * moving])]
        elif buffer == t.WORK:
            source = self.work[offset + at]
        else:
            source = (self.tables if buffer == t.TABLES else self.base)[offset + at][:, None]
        if left == t.WORK:
            target *= source
        elif left == t.BASE:
            np.multiply(self.base[clique : clique + at.size, None], source, target)
        else:
            target[:] = source

    def likely(self, f: list[int]) -> None:
        v, clique, outer, card, inner = f
        cells = self.work[clique : clique + outer * card * inner].reshape(outer, card, inner, self.n)
        codes = self.codes[v]
        cells *= ((codes == np.arange(card)[:, None]) | (codes == card))[:, None, :]

    def rescale(self, f: list[int]) -> None:
        cells = self.work[f[0] : f[0] + f[1]]
        largest = cells.max(0)
        cells *= _inverse(largest)
        self.logs += np.log(largest)

    def up(self, f: list[int]) -> None:
        message, clique, rows, columns = f
        cells = self.work[clique : clique + rows * columns].reshape(rows, columns, self.n)
        target = self.work[message : message + rows]
        np.add.reduce(cells, 1, out=target)
        total = target.sum(0)
        target *= _inverse(total)
        self.logs += np.log(total)

    def total(self, f: list[int]) -> None:
        self.logs += np.log(self.work[f[0] : f[0] + f[1]].sum(0))

    def down(self, f: list[int]) -> None:
        message, clique, rows, columns, old, parent, scale, n_d = f[:8]
        dims, strides = f[8 : 8 + n_d], f[8 + n_d :]
        above = self.work[parent : parent + int(np.prod(dims))].reshape(*dims, self.n)
        summed = tuple(k for k, stride in enumerate(strides) if stride == 0)
        fresh = np.add.reduce(above, summed).reshape(rows, self.n)
        if scale:
            cells = self.work[clique : clique + rows * columns].reshape(rows, columns, self.n)
            if old == t.BASE:
                ratio = fresh * _inverse(self.base[message : message + rows, None])
                source = self.base[clique : clique + rows * columns].reshape(rows, columns, 1)
                np.multiply(source, ratio[:, None], cells)
            else:
                before = self.work[message : message + rows]
                cells *= np.where(before > 0.0, fresh / before, 0.0)[:, None]
        self.work[message : message + rows] = fresh

    def read(self, f: list[int]) -> None:
        out, region, outer, card, inner = f
        cells = self.work[region : region + outer * card * inner].reshape(outer, card, inner, self.n)
        marginal = cells.sum((0, 2))
        total = marginal.sum(0)
        self.out[out : out + card] = marginal / np.where(total > 0.0, total, np.nan)

    def shift(self, moves: list[int]) -> Ints:
        at = np.zeros(self.n, np.int64)
        for v, stride in zip(moves[::2], moves[1::2], strict=True):
            at += self.codes[v] * stride
        return at


def _inverse(values: Floats) -> Floats:
    return np.where(values > 0.0, 1.0 / values, 0.0)


def _walk(dims: list[int], strides: list[int]) -> Ints:
    at = np.zeros(1, np.int64)
    for dim, stride in zip(dims, strides, strict=True):
        at = (at[:, None] + stride * np.arange(dim)).reshape(-1)
    return at
