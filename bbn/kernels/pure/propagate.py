"""Run a tape one evidence at a time, in numpy: each instruction is a few array operations on views made once.

Collect and distribute with division (Jensen, Lauritzen and Olesen 1990). Each message is normalised and its log
counted, so most products stay in range; 0/0 is 0. Where one does not, the run stops and its log is NaN: the same tape
then goes through a `WideProgram`, which works on logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from bbn.kernels.banded_clique import BandedClique
from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.bands import Bands, check_bands
from bbn.kernels.contracts.checks import check_doubles, check_findings, check_ints, check_length
from bbn.kernels.contracts.tape import Layout, instructions, operand
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.logarithms import log_sum
from bbn.kernels.watch import check


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
    bands : Bands, optional
        The lists of a layout that has BANDS.
    """

    @property
    def workspaces(self) -> type[_Workspace]:
        """The kind of its workspaces."""
        return _Workspace

    def __init__(
        self,
        cards: Ints,
        tables: Floats,
        layout: Layout,
        maximise: bool = False,
        bands: Bands | None = None,
    ) -> None:
        check_ints(cards)
        check_doubles(tables)
        check_length(len(layout.out), len(cards), "the layout's variables")
        check_length(tables.size, layout.tables_size, "tables")
        if bands is not None:
            check_bands(cards, layout, bands, maximise)
        self.bands = bands
        self.cards = cards.tolist()
        self.layout = layout
        self.maximise = maximise
        kind = self.workspaces
        self.tables = kind.numbers(tables)
        self.base: Floats = np.empty(layout.base_size)
        self.once_out: Floats = np.full(layout.out_size, kind.zero)
        self.pool: list[_Workspace] = []
        self.once_log = kind(self, self.base, layout.once).execute({}, {}, self.once_out)

    def run(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, float]:
        """The normalised marginals that the layout reads, and the log of the total.

        The log is -inf if the evidence is impossible, and NaN, the marginals being of no use, if a number left the
        range of a double on the way.
        """
        out = self.once_out.copy()
        if not self.once_log > -math.inf or not self.layout.run.size:
            return out, self.once_log
        workspace = self._take()
        found, vectors = dict(hard), dict(likelihoods)
        check_findings(self.cards, found, vectors)
        log = self.once_log + workspace.execute(found, vectors, out)
        self.release(workspace)
        return out, log

    def _take(self) -> _Workspace:
        """A workspace that no run has."""
        try:
            return self.pool.pop()
        except IndexError:
            return self.workspace()

    def release(self, workspace: _Workspace) -> None:
        """Keep a workspace for other runs, of a large program at most one."""
        if not self.pool or self.layout.work_size < t.LARGE:
            self.pool.append(workspace)

    def hold(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[_Workspace, float]:
        """A workspace with the collected potentials, until it is released, and the log of the total (or maximum)."""
        workspace = self._take()
        if not self.once_log > -math.inf:
            return workspace, self.once_log
        found, vectors = dict(hard), dict(likelihoods)
        check_findings(self.cards, found, vectors)
        return workspace, self.once_log + workspace.execute(found, vectors, self.once_out.copy())

    def collect(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, Floats, float]:
        """The collected potentials of dynamic and of static cliques, and the log of the total (or maximum)."""
        workspace = self.workspace()
        if not self.once_log > -math.inf:
            return workspace.work, self.base, self.once_log
        found, vectors = dict(hard), dict(likelihoods)
        check_findings(self.cards, found, vectors)
        log = self.once_log + workspace.execute(found, vectors, self.once_out.copy())
        return workspace.work, self.base, log

    def workspace(self) -> _Workspace:
        """Memory for one run."""
        return self.workspaces(self, np.empty(self.layout.work_size), self.layout.run)


class WideProgram(Program):
    """The same for numbers of any size: potentials are logarithms, and so are those that `collect` gives."""

    @property
    def workspaces(self) -> type[_Workspace]:
        """The kind of its workspaces."""
        return _LogWorkspace


class _Workspace:
    """A run's own memory, and the steps of the tape bound to it."""

    one, zero = 1.0, 0.0
    times: Any = np.multiply
    faults: Literal["raise", "ignore"] = "raise"
    """What numbers that leave the range of a double do."""

    def __init__(self, program: Program, work: Floats, tape: Ints) -> None:
        self.work = work
        self.buffers = (program.tables, program.base, work)
        self.maximise = program.maximise
        self.reduce, self.gather = self.sums(program.maximise)
        self.hard: dict[int, int] = {}
        self.likelihoods: dict[int, Floats] = {}
        self.out: Floats = program.once_out
        self.cards = program.cards
        self.lists = None if program.bands is None else program.bands.lists.astype(np.intp)
        self.steps: list[Callable[[], float | None]] = []
        for op, fields in instructions(tape):
            getattr(self, _BINDERS[op])(fields)

    @staticmethod
    def numbers(values: Floats) -> Floats:
        """Probabilities as this workspace has them."""
        return values

    @staticmethod
    def sums(maximise: bool) -> tuple[Any, Any]:
        """What sums over axes, and what adds two arrays."""
        return (np.maximum.reduce, np.maximum) if maximise else (np.add.reduce, np.add)

    def execute(self, hard: dict[int, int], likelihoods: dict[int, Floats], out: Floats) -> float:
        self.hard, self.likelihoods, self.out = hard, likelihoods, out
        log = 0.0
        try:
            with np.errstate(all=self.faults, divide="ignore"):
                for step in self.steps:
                    check()
                    scale = step()
                    if scale is not None:
                        log += self.log(scale)
                        if log == -math.inf:
                            return log
        except FloatingPointError:
            return math.nan
        return log

    def log(self, scale: float) -> float:
        """The logarithm of a number of this workspace."""
        return math.log(scale) if scale > 0.0 else -math.inf

    def clear(self, f: list[int]) -> None:
        region = self.work[f[0] : f[0] + f[1]]
        self.steps.append(lambda: region.fill(self.zero))

    def scalar(self, f: list[int]) -> None:
        tables, moves = self.buffers[t.TABLES], f[2:]
        self.steps.append(lambda: float(tables[f[0] + self.shift(moves)]))

    def sweep(self, f: list[int]) -> None:
        """A sweep is taken whole: its slabs matter to caches alone."""
        region, size, left, keep, _, n_o, n_ops = f[:7]
        outer, at = f[7 : 7 + n_o], 7 + n_o
        target = self.work[region : region + size] if keep else np.empty(size)
        current: Floats | None = None if left == t.NOTHING else self.buffers[left][region : region + size]
        for _ in range(n_ops):
            kind, step = f[at], f[at + 2 : at + f[at + 1]]
            at += f[at + 1]
            if current is None and kind != t.MUL:
                self.steps.append(lambda: target.fill(self.one))
                current = target
            if kind == t.ADD:
                assert current is not None
                self.add(current, step, outer)
            else:
                if kind == t.LIKELY and current is not target:
                    self.copy(current, target)
                    current = target
                self.multiply(current, target, kind, step, outer)
                current = target
        if keep and current is not target:
            if current is None:
                self.steps.append(lambda: target.fill(self.one))
            else:
                self.copy(current, target)

    def copy(self, source: Floats | None, target: Floats) -> None:
        assert source is not None
        self.steps.append(lambda: np.copyto(target, source))

    def multiply(
        self, left: Floats | None, target: Floats, kind: int, f: list[int], outer: list[int]
    ) -> None:
        buffer, offset, moves, dims, strides = operand(f, outer)
        strides = [8 * stride for stride in strides]
        result = target.reshape(dims)
        factor = None if left is None else left.reshape(dims)
        if kind == t.LIKELY:
            self.steps.append(lambda: self.likely(result, offset, strides))
            return
        source = np.ndarray(dims, np.float64, self.buffers[buffer], 8 * offset, strides)
        tables = self.buffers[buffer]

        def sliced() -> Floats:
            at = 8 * (offset + self.shift(moves))
            return np.ndarray(dims, np.float64, tables, at, strides) if moves else source

        if factor is None:
            self.steps.append(lambda: np.copyto(result, sliced()))
        elif moves:

            def changing() -> None:
                self.times(factor, sliced(), result)

            self.steps.append(changing)
        else:

            def plain() -> None:
                self.times(factor, source, result)

            self.steps.append(plain)

    def likely(self, cells: Floats, v: int, strides: list[int]) -> None:
        vector = self.likelihood(v)
        if vector is not None:
            vector = self.numbers(vector)
            self.times(cells, np.ndarray(cells.shape, np.float64, vector, 0, strides), cells)

    def likelihood(self, v: int) -> Floats | None:
        """What the run knows of a variable, if anything."""
        if v in self.likelihoods:
            return np.array(self.likelihoods[v], np.float64)
        if v not in self.hard:
            return None
        vector = np.zeros(self.cards[v])
        vector[self.hard[v]] = 1.0
        return vector

    def add(self, current: Floats, f: list[int], outer: list[int]) -> None:
        buffer, offset, _, dims, strides = operand(f, outer)
        strides = [8 * stride for stride in strides]
        cells = current.reshape(dims)
        summed = tuple(k for k, stride in enumerate(strides) if stride == 0)
        kept = [dim for dim, stride in zip(dims, strides, strict=True) if stride]
        moving = [stride for stride in strides if stride]
        reduce, gather = self.reduce, self.gather
        if buffer == t.OUT:

            def to_out() -> None:
                target = np.ndarray(kept, np.float64, self.out, 8 * offset, moving)
                gather(target, reduce(cells, summed), out=target)

            self.steps.append(to_out)
            return
        target = np.ndarray(kept, np.float64, self.work, 8 * offset, moving)

        def to_work() -> None:
            gather(target, reduce(cells, summed), out=target)

        self.steps.append(to_work)

    def bands(self, f: list[int]) -> None:
        assert self.lists is not None
        observed = f[3]
        values = 1 if observed < 0 else int(self.cards[observed])
        banded = [BandedClique(self.lists, f, code) for code in range(values)]
        by = [observed, 1] if observed >= 0 else []
        maximise = self.maximise

        def step() -> None:
            banded[self.shift(by)].sweep(self.buffers, self.out, self.shift, self.likelihood, maximise)

        self.steps.append(step)

    def rescale(self, f: list[int]) -> None:
        cells = self.work[f[0] : f[0] + f[1]]

        def step() -> float:
            largest = float(cells.max())
            if largest > 0.0:
                np.divide(cells, largest, cells)
            return largest

        self.steps.append(step)

    def norm(self, f: list[int]) -> None:
        message = self.work[f[0] : f[0] + f[1]]
        reduce = self.reduce

        def step() -> float:
            total = float(reduce(message))
            if total > 0.0:
                np.divide(message, total, message)
            return total

        self.steps.append(step)

    def total(self, f: list[int]) -> None:
        self.steps.append(lambda: float(self.work[f[0]]))

    def ratio(self, f: list[int]) -> None:
        fresh = self.work[f[0] : f[0] + f[2]]
        message = self.work[f[1] : f[1] + f[2]]
        old = self.buffers[f[3]][f[1] : f[1] + f[2]]
        zeros = np.zeros(f[2])

        def step() -> None:
            total = float(fresh.sum())
            if (
                total > 0.0 and not 2.0**-200 < total < 2.0**200
            ):  # scales grow from clique to clique on the way down
                np.ldexp(fresh, -math.frexp(total)[1], fresh)
            ratio = np.divide(fresh, old, zeros.copy(), where=old > 0.0)
            message[:] = fresh
            fresh[:] = ratio

        self.steps.append(step)

    def finish(self, f: list[int]) -> None:
        part = slice(f[0], f[0] + f[1])

        def step() -> None:
            marginal = self.out[part]
            total = np.add.reduce(marginal)
            if not 0.0 < total < np.inf:
                raise FloatingPointError
            np.divide(marginal, total, marginal)

        self.steps.append(step)

    def shift(self, moves: list[int]) -> int:
        hard = self.hard
        return sum(hard[v] * stride for v, stride in zip(moves[::2], moves[1::2], strict=True))


class _LogWorkspace(_Workspace):
    """The same on logarithms; nothing needs to be scaled there."""

    one, zero = 0.0, -math.inf
    times: Any = np.add
    faults: Literal["raise", "ignore"] = "ignore"

    @staticmethod
    def numbers(values: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(values)

    @staticmethod
    def sums(maximise: bool) -> tuple[Any, Any]:
        return (np.maximum.reduce, np.maximum) if maximise else (log_sum, np.logaddexp)

    def log(self, scale: float) -> float:
        return scale

    def rescale(self, f: list[int]) -> None:
        pass

    def norm(self, f: list[int]) -> None:
        pass

    def ratio(self, f: list[int]) -> None:
        fresh = self.work[f[0] : f[0] + f[2]]
        message = self.work[f[1] : f[1] + f[2]]
        old = self.buffers[f[3]][f[1] : f[1] + f[2]]

        def step() -> None:
            ratio = np.where(old > -np.inf, fresh - old, -np.inf)
            message[:] = fresh
            fresh[:] = ratio

        self.steps.append(step)

    def finish(self, f: list[int]) -> None:
        part = slice(f[0], f[0] + f[1])

        def step() -> None:
            logs = self.out[part]
            shares = np.exp(logs - logs.max())
            self.out[part] = shares / shares.sum()

        self.steps.append(step)


_BINDERS = ("clear", "scalar", "sweep", "rescale", "norm", "total", "ratio", "finish", "bands")
"""By op, the method that binds it."""
