"""Run a tape one evidence at a time, in numpy: each instruction is a few array operations on views made once.

Collect and distribute with division (Jensen, Lauritzen and Olesen 1990). Each message is normalised and its log
counted, so products of any length stay in range; 0/0 is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bbn.kernels import tape as t
from bbn.kernels.tape import Layout
from bbn.kernels.types import Floats, Ints

Pairs = Iterable[tuple[int, int]]
Vectors = Iterable[tuple[int, Floats]]


class Program:
    """A layout with its tables, ready to run; safe to share between threads.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    tables : float64 array
        The model's tables, one after another.
    layout : Layout
        The tapes and their memory.
    maximise : bool
        Take maxima instead of sums.
    """

    def __init__(self, cards: Ints, tables: Floats, layout: Layout, maximise: bool = False) -> None:
        self.cards = cards.tolist()
        self.tables = tables
        self.layout = layout
        self.maximise = maximise
        self.base: Floats = np.empty(layout.work_size)
        self.once_out: Floats = np.zeros(layout.out_size)
        self.pool: list[_Workspace] = []
        self.once_log = _Workspace(self, self.base, layout.once).execute({}, {}, self.once_out)

    def run(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, float]:
        """The normalised marginals that the layout reads, and the log of the total; -inf: impossible evidence."""
        out = self.once_out.copy()
        if self.once_log == -math.inf or not self.layout.run.size:
            return out, self.once_log
        try:
            workspace = self.pool.pop()
        except IndexError:
            workspace = self.workspace()
        log = self.once_log + workspace.execute(dict(hard), dict(likelihoods), out)
        if not self.pool or self.layout.work_size < t.LARGE:
            self.pool.append(workspace)
        return out, log

    def collect(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, Floats, float]:
        """The collected potentials of dynamic and of static cliques, and the log of the total (or maximum)."""
        workspace = self.workspace()
        if self.once_log == -math.inf:
            return workspace.work, self.base, self.once_log
        log = self.once_log + workspace.execute(dict(hard), dict(likelihoods), self.once_out.copy())
        return workspace.work, self.base, log

    def workspace(self) -> _Workspace:
        """Memory for one run."""
        return _Workspace(self, np.empty(self.layout.work_size), self.layout.run)


class _Workspace:
    """A run's own memory, and the steps of the tape bound to it."""

    def __init__(self, program: Program, work: Floats, tape: Ints) -> None:
        self.work = work
        self.buffers = (program.tables, program.base, work)
        self.reduce: Any = np.maximum.reduce if program.maximise else np.add.reduce
        self.cards = program.cards
        self.hard: dict[int, int] = {}
        self.likelihoods: dict[int, Floats] = {}
        self.out: Floats = program.once_out
        self.steps = [self.bind(op, fields) for op, fields in instructions(tape)]

    def execute(self, hard: dict[int, int], likelihoods: dict[int, Floats], out: Floats) -> float:
        self.hard, self.likelihoods, self.out = hard, likelihoods, out
        log = 0.0
        for step in self.steps:
            scale = step()
            if scale is not None:
                if scale <= 0.0:
                    return -math.inf
                log += math.log(scale)
        return log

    def bind(self, op: int, f: list[int]) -> Callable[[], float | None]:
        return _BINDERS[op](self, f)

    def scalar(self, f: list[int]) -> Callable[[], float | None]:
        tables, moves = self.buffers[t.TABLES], f[2:]
        return lambda: float(tables[f[0] + self.shift(moves)])

    def ones(self, f: list[int]) -> Callable[[], float | None]:
        cells = self.work[f[0] : f[0] + f[1]]
        return lambda: cells.fill(1.0)

    def mul(self, f: list[int]) -> Callable[[], float | None]:
        clique, left, buffer, offset, moving, n_d = f[:6]
        moves = f[6 : 6 + 2 * moving]
        dims = f[6 + 2 * moving : 6 + 2 * moving + n_d]
        strides = [8 * stride for stride in f[6 + 2 * moving + n_d :]]
        target = np.ndarray(dims, np.float64, self.work, 8 * clique)
        source = np.ndarray(dims, np.float64, self.buffers[buffer], 8 * offset, strides)
        if moving:
            tables = self.buffers[buffer]

            def sliced() -> Floats:
                return np.ndarray(dims, np.float64, tables, 8 * (offset + self.shift(moves)), strides)

            if left == t.NOTHING:
                return lambda: np.copyto(target, sliced())
            other = np.ndarray(dims, np.float64, self.buffers[left], 8 * clique)

            def step() -> None:
                np.multiply(other, sliced(), target)

            return step
        if left == t.NOTHING:
            return lambda: np.copyto(target, source)
        factor = np.ndarray(dims, np.float64, self.buffers[left], 8 * clique)

        def plain() -> None:
            np.multiply(factor, source, target)

        return plain

    def likely(self, f: list[int]) -> Callable[[], float | None]:
        v, clique, outer, card, inner = f
        cells = np.ndarray((outer, card, inner), np.float64, self.work, 8 * clique)

        def step() -> None:
            if v in self.likelihoods:
                np.multiply(cells, self.likelihoods[v][:, None], cells)
            elif v in self.hard:
                code = self.hard[v]
                cells[:, :code] = 0.0
                cells[:, code + 1 :] = 0.0

        return step

    def rescale(self, f: list[int]) -> Callable[[], float | None]:
        cells = self.work[f[0] : f[0] + f[1]]

        def step() -> float:
            largest = float(cells.max())
            if largest > 0.0:
                np.divide(cells, largest, cells)
            return largest

        return step

    def up(self, f: list[int]) -> Callable[[], float | None]:
        message, clique, rows, columns = f
        cells = np.ndarray((rows, columns), np.float64, self.work, 8 * clique)
        target = self.work[message : message + rows]
        reduce = self.reduce

        def step() -> float:
            reduce(cells, 1, None, target)
            total = float(reduce(target))
            if total > 0.0:
                np.divide(target, total, target)
            return total

        return step

    def total(self, f: list[int]) -> Callable[[], float | None]:
        cells = self.work[f[0] : f[0] + f[1]]
        return lambda: float(self.reduce(cells))

    def down(self, f: list[int]) -> Callable[[], float | None]:
        message, clique, rows, columns, old, parent, scale, n_d = f[:8]
        dims, strides = f[8 : 8 + n_d], f[8 + n_d :]
        above = np.ndarray(dims, np.float64, self.work, 8 * parent)
        summed = tuple(k for k, stride in enumerate(strides) if stride == 0)
        kept = [dim for dim, stride in zip(dims, strides, strict=True) if stride]
        target = np.ndarray(kept, np.float64, self.work, 8 * message)
        if not scale:
            return lambda: np.copyto(target, above.sum(summed))
        before = self.buffers[old][message : message + rows]
        after = self.work[message : message + rows]
        source = np.ndarray((rows, columns), np.float64, self.buffers[old], 8 * clique)
        cells = np.ndarray((rows, columns), np.float64, self.work, 8 * clique)

        def step() -> None:
            fresh = np.add.reduce(above, summed).ravel()
            ratio = np.divide(fresh, before, np.zeros(rows), where=before != 0.0)
            np.multiply(source, ratio[:, None], cells)
            after[:] = fresh

        return step

    def read(self, f: list[int]) -> Callable[[], float | None]:
        out, region, outer, card, inner = f
        cells = np.ndarray((outer, card, inner), np.float64, self.work, 8 * region)

        def step() -> None:
            marginal = np.add.reduce(cells, (0, 2))
            np.divide(marginal, np.add.reduce(marginal), self.out[out : out + card])

        return step

    def shift(self, moves: list[int]) -> int:
        hard = self.hard
        return sum(hard[v] * stride for v, stride in zip(moves[::2], moves[1::2], strict=True))


_BINDERS: tuple[Callable[[_Workspace, list[int]], Callable[[], float | None]], ...] = (
    _Workspace.scalar,
    _Workspace.ones,
    _Workspace.mul,
    _Workspace.likely,
    _Workspace.rescale,
    _Workspace.up,
    _Workspace.total,
    _Workspace.down,
    _Workspace.read,
)


def instructions(tape: Ints) -> Iterable[tuple[int, list[int]]]:
    """The instructions of a tape: op and fields."""
    words = tape.tolist()
    at = 0
    while at < len(words):
        yield words[at], words[at + 2 : at + words[at + 1]]
        at += words[at + 1]
