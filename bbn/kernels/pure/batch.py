"""Run a tape for many rows of evidence at once, in numpy: each potential is an array (cells, rows)."""

from __future__ import annotations

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import check_length, check_rows, check_shape
from bbn.kernels.contracts.tape import Layout, instructions, operand
from bbn.kernels.contracts.types import Floats, Int32s, Ints
from bbn.kernels.watch import check

BLOCK = 256
"""Rows that are worked on at a time."""


def run_rows(
    tables: Floats,
    layout: Layout,
    base: Floats,
    once_out: Floats,
    once_log: float,
    cards: Ints,
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
    cards : int64 array (n,)
        The number of states of each variable.
    columns : int64 array (k,)
        The variables observed, each sliced or a likelihood in the layout.
    codes : int32 array (rows, k)
        Their codes. Where the variable is a likelihood, the code ``card`` says nothing; a sliced one always has a
        slice to pick.
    out : float64 array (rows, out_size)
        Filled with the normalised marginals; NaN where the row is impossible.
    logs : float64 array (rows,)
        Filled with the logs of the totals; -inf where the row is impossible; NaN where the row, or another of its
        block, left the range of a double, and has no answer yet.
    """
    check_rows(columns, codes, cards)
    check_length(len(layout.out), len(cards), "the layout's variables")
    check_length(tables.size, layout.tables_size, "tables")
    check_shape("out", out, len(codes), layout.out_size)
    check_shape("logs", logs, len(codes))
    for start in range(0, len(codes), BLOCK):
        rows = slice(start, start + BLOCK)
        observed = dict(zip(columns.tolist(), codes[rows].T, strict=True))
        block = _RowBlock(tables, layout, base, cards, observed, len(codes[rows]))
        block.out[:] = once_out[: layout.out_size, None]
        check()
        try:
            block.execute()
        except FloatingPointError:
            block.logs[:] = np.nan
        out[rows] = block.out.T
        logs[rows] = once_log + block.logs


class _RowBlock:
    def __init__(
        self,
        tables: Floats,
        layout: Layout,
        base: Floats,
        cards: Ints,
        codes: dict[int, Int32s],
        n: int,
    ) -> None:
        self.tables, self.layout, self.base, self.cards, self.codes = tables, layout, base, cards, codes
        self.n = n
        self.work: Floats = np.empty((layout.work_size, self.n))
        self.out: Floats = np.empty((layout.out_size, self.n))
        self.logs: Floats = np.zeros(self.n)

    def execute(self) -> None:
        steps = (
            self.clear,
            self.scalar,
            self.sweep,
            self.rescale,
            self.norm,
            self.total,
            self.ratio,
            self.finish,
        )
        with np.errstate(under="raise", over="raise", divide="ignore", invalid="ignore"):
            for op, fields in instructions(self.layout.run):
                steps[op](fields)

    def clear(self, f: list[int]) -> None:
        self.work[f[0] : f[0] + f[1]] = 0.0

    def scalar(self, f: list[int]) -> None:
        self.logs += np.log(self.tables[f[0] + self.shift(f[2:])])

    def sweep(self, f: list[int]) -> None:
        region, size, left, keep, _, n_o, n_ops = f[:7]
        outer, at = f[7 : 7 + n_o], 7 + n_o
        cells: Floats = np.ones((size, self.n))
        if left == t.BASE:
            cells *= self.base[region : region + size, None]
        elif left == t.WORK:
            cells *= self.work[region : region + size]
        for _ in range(n_ops):
            kind, (buffer, offset, moves, dims, strides) = f[at], operand(f[at + 2 : at + f[at + 1]], outer)
            at += f[at + 1]
            walk = _walk(dims, strides)
            if kind == t.LIKELY:
                codes = self.codes[offset]
                cells *= (codes == walk[:, None]) | (codes == self.cards[offset])
            elif kind == t.MUL:
                if moves:
                    cells *= self.tables[offset + walk[:, None] + self.shift(moves)]
                elif buffer == t.WORK:
                    cells *= self.work[offset + walk]
                else:
                    cells *= (self.tables if buffer == t.TABLES else self.base)[offset + walk, None]
            else:
                summed = tuple(k for k, stride in enumerate(strides) if stride == 0)
                total = np.add.reduce(cells.reshape(*dims, self.n), summed)
                kept = [k for k, stride in enumerate(strides) if stride]
                into = _walk([dims[k] for k in kept], [strides[k] for k in kept])
                (self.work if buffer == t.WORK else self.out)[offset + into] += total.reshape(-1, self.n)
        if keep:
            self.work[region : region + size] = cells

    def rescale(self, f: list[int]) -> None:
        cells = self.work[f[0] : f[0] + f[1]]
        largest = cells.max(0)
        cells /= _divisor(largest)
        self.logs += np.log(largest)

    def norm(self, f: list[int]) -> None:
        message = self.work[f[0] : f[0] + f[1]]
        total = message.sum(0)
        message /= _divisor(total)
        self.logs += np.log(total)

    def total(self, f: list[int]) -> None:
        self.logs += np.log(self.work[f[0]])

    def ratio(self, f: list[int]) -> None:
        fresh, message = self.work[f[0] : f[0] + f[2]], self.work[f[1] : f[1] + f[2]]
        old = self.base[f[1] : f[1] + f[2], None] if f[3] == t.BASE else message
        total = fresh.sum(0)
        wild = (total > 0.0) & ~((total > 2.0**-200) & (total < 2.0**200))
        if wild.any():  # scales grow from clique to clique on the way down
            np.ldexp(fresh, np.where(wild, -np.frexp(total)[1], 0), fresh)
        ratio = fresh / _divisor(old)
        message[:] = fresh
        fresh[:] = ratio

    def finish(self, f: list[int]) -> None:
        part = self.out[f[0] : f[0] + f[1]]
        total = part.sum(0)
        part /= np.where(total > 0.0, total, np.nan)

    def shift(self, moves: list[int]) -> Ints:
        at = np.zeros(self.n, np.int64)
        for v, stride in zip(moves[::2], moves[1::2], strict=True):
            at += self.codes[v] * stride
        return at


def _divisor(totals: Floats) -> Floats:
    return np.where(totals > 0.0, totals, np.inf)


def _walk(dims: list[int], strides: list[int]) -> Ints:
    at = np.zeros(1, np.int64)
    for dim, stride in zip(dims, strides, strict=True):
        at = (at[:, None] + stride * np.arange(dim)).reshape(-1)
    return at
