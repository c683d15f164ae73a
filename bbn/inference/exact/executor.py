"""Executors: what runs a tree plan, with the memory that runs share.

A plan is arrays; its executor owns the program that the kernels run, and its workspaces. It may be dropped and made
again at any time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from sys import maxsize
from typing import Any, TypeAlias

from bbn import kernels
from bbn.core.budget import Room, memory_limit, require_memory
from bbn.inference.exact.problem import INSTEAD, SMALL_BYTES
from bbn.inference.exact.runtime_prediction import predicted_run, predicted_seconds, refuse_far
from bbn.inference.exact.tree_plan import TreePlan, program_of, require
from bbn.kernels.contracts.tape import COLLECTED, Layout
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors

MANY_THREADS = 64
"""Where MANY_THREADS runs fit the limit together, they do not wait for one another."""
LONG = 1e8
"""Cells from which it is worth predicting how long a run takes."""
UNLOCKED = nullcontext()
"""In place of the lock of an executor whose program is made with it."""
Ranking: TypeAlias = list[tuple[Ints, float]]
"""Assignments, best first: the codes of all variables, and ln of the ratio to the best."""


class Executor:
    """The program that runs a plan.

    Runs of a plan that is large beside the limit take turns with those of other threads, and its program is made when
    it is its turn, so that a waiting thread holds no memory.

    Parameters
    ----------
    plan
        What it runs.
    limit
        The bytes that it and its runs may take.
    room
        Shared with other executors.
    """

    kept = 0
    """The bytes that it is kept with, 0 if it is not."""

    def __init__(self, plan: TreePlan, limit: int, room: Room | None = None) -> None:
        assert plan.layout is not None
        self.plan = plan
        self.layout: Layout = plan.layout
        self.tables = plan.factors.tables
        self.bytes = int(plan.bytes) - plan.shared
        self.limit = limit
        self._maximise = plan.question.maximise
        self._cards = plan.factors.cards
        self._room = room
        self._large = room is not None and MANY_THREADS * self.bytes > limit
        self._making: AbstractContextManager[Any] = threading.Lock() if self._large else UNLOCKED
        self._program: Any = None if self._large else self._make()
        self._wide: Any = None
        self._explainer: Any = None

    def replaced(self, plan: TreePlan) -> Executor:
        """The executor of another plan for the same question, which takes the place of this one."""
        other = type(self)(plan, self.limit, self._room)
        if self._room is not None and self.kept:
            other.kept = other.bytes + plan.more
            self._room.kept += other.kept - self.kept
        self.drop()
        return other

    @property
    def large(self) -> bool:
        """Whether its runs take turns."""
        return self._large

    @property
    def wide_bytes(self) -> int:
        """The memory of its program for wide numbers."""
        logs = 1 if self.plan.question.goal == COLLECTED else 0
        return self.tables.nbytes + (2 + logs) * self.bytes

    @property
    def program(self) -> Any:
        """The program, made if it is not there."""
        made = self._program
        if made is None:
            with self._making:
                made = self._program
                if made is None:
                    made = self._program = self._make()
        return made

    def _make(self) -> Any:
        if kernels.COMPILED and self.plan.sparse is None:  # the usual, at no further call
            return kernels.propagate.Program(self._cards, self.tables, self.layout, self._maximise)
        return program_of(self.plan)

    def keep_more(self, size: int) -> None:
        """Note that an executor that is kept takes so many bytes more."""
        if self._room is not None and self.kept:
            self.kept += size
            self._room.kept += size

    def run(self, hard: Pairs = (), likelihoods: Vectors = (), held: bool = False) -> tuple[Floats, float]:
        """The normalised marginals that the layout reads, and ln of the total; -inf: impossible evidence.

        `held` says that the caller's `turn` counts this run already.
        """
        if not self._large:
            out, log = self._program.run(hard, likelihoods)
        elif held:
            out, log = self.program.run(hard, likelihoods)
        else:
            with self.turn():
                out, log = self.program.run(hard, likelihoods)
        if log != log:  # NaN: a number left the range of a double
            with self._widely(held) as wide:
                out, log = wide.run(hard, likelihoods)
            if log != log:
                raise ArithmeticError(
                    "the answer is not a distribution; please report this network and evidence"
                )
        return out, log

    def ranked(
        self, hard: Pairs = (), likelihoods: Vectors = ()
    ) -> tuple[Iterator[tuple[Ints, float]], float]:
        """Of a maximum: all assignments, best first, with ln of their ratio to the best, and ln of the best."""
        wide = False
        with self.turn() if self._large else nullcontext():
            work, base, log = self.program.collect(hard, likelihoods)
        if log != log:
            wide = True
            with self._widely() as program:
                work, base, log = program.collect(hard, likelihoods)
        if log == -math.inf:
            return iter(()), log
        reader = kernels.explain.Explainer(self._cards, self.tables, self.layout)
        return reader.ranked(work, base, hard, likelihoods, wide), log

    def explain(self, hard: Pairs = (), likelihoods: Vectors = (), k: int = 1) -> tuple[Ranking, float]:
        """Of a maximum: the k best assignments with ln of their ratio to the best, and ln of the best."""
        found: Ranking = []
        with self.turn() if self._large else UNLOCKED:
            program = self.program
            workspace, log = program.hold(hard, likelihoods)
            if log > -math.inf:
                reader = self._reader_of(program)
                found = list(islice(reader.ranked(workspace.work, program.base, hard, likelihoods), k))
            program.release(workspace)
        if log != log:
            with self._widely() as wide:
                work, base, log = wide.collect(hard, likelihoods)
            if log > -math.inf:
                reader = kernels.explain.Explainer(self._cards, self.tables, self.layout)
                found = list(islice(reader.ranked(work, base, hard, likelihoods, True), k))
        return found, log

    def _reader_of(self, program: Any) -> Any:
        """What reads the best assignments from the runs of a program, made once."""
        made = self._explainer
        if made is None:
            remade = None if program.bands is None else program.bands.remade
            made = kernels.explain.Explainer(self._cards, self.tables, program.layout, remade)
            self._explainer = made
        return made

    @contextmanager
    def turn(self, size: int | None = None) -> Iterator[None]:
        """Wait until there is room for a run, or for `size` bytes. Not to be nested."""
        size = self.bytes if size is None else size
        if self._room is None or MANY_THREADS * size <= self.limit:
            yield
            return
        with self._room.hold(size, self.left):
            self._room.clear(self.limit - size + self.kept)
            try:
                yield
            finally:
                if self._large and not self.kept:
                    self._program = None
                elif self._large and self._program is not None and kernels.COMPILED:
                    del self._program.pool[1:]  # of idle workspaces one is enough

    @contextmanager
    def _widely(self, held: bool = False) -> Iterator[Any]:
        """The program for numbers of any size, made when it is first needed; of a large plan one run at a time."""
        needed = self.bytes + (0 if self._wide else self.wide_bytes)
        require_memory(needed, "potentials beyond the range of a double", INSTEAD, self.limit)
        with nullcontext() if held else self.turn(needed), self._making:
            wide = self._wide
            if wide is None:
                wide = kernels.wide.WideProgram(self._cards, self.tables, self.layout, self._maximise)
                if not self._large:
                    self._wide = wide
                    self.keep_more(self.wide_bytes)
            yield wide

    def left(self) -> int:
        """The bytes that runs may hold beside the others that are kept."""
        kept = self._room.kept if self._room is not None else 0
        return self.limit - kept + self.kept

    def drop(self) -> None:
        """Note that it is no longer kept; a large plan gives its memory back as soon as no run needs it."""
        self.kept = 0
        if self._large:
            self._program = None


class LongExecutor(Executor):
    """The executor of a plan so large that the time of its runs is predicted."""

    def _make(self) -> Any:
        refuse_far(predicted_seconds(self.layout), "the run", INSTEAD)  # before the half that comes first
        with predicted_run(self.layout.once):
            return super()._make()

    def run(self, hard: Pairs = (), likelihoods: Vectors = (), held: bool = False) -> tuple[Floats, float]:
        """As of any; TimeLimitError at once if it would take far longer than the time that is left."""
        with predicted_run(self.layout.run):
            return super().run(hard, likelihoods, held)

    def ranked(
        self, hard: Pairs = (), likelihoods: Vectors = ()
    ) -> tuple[Iterator[tuple[Ints, float]], float]:
        """As of any; TimeLimitError at once if it would take far longer than the time that is left."""
        with predicted_run(self.layout.run):
            return super().ranked(hard, likelihoods)

    def explain(self, hard: Pairs = (), likelihoods: Vectors = (), k: int = 1) -> tuple[Ranking, float]:
        """As of any; TimeLimitError at once if it would take far longer than the time that is left."""
        with predicted_run(self.layout.run):
            return super().explain(hard, likelihoods, k)


class NumpyExecutor(Executor):
    """What runs a plan where there are no compiled kernels: the junction tree in numpy."""

    def ranked(
        self, hard: Pairs = (), likelihoods: Vectors = ()
    ) -> tuple[Iterator[tuple[Ints, float]], float]:
        """As of any."""
        with self.turn() if self._large else UNLOCKED:
            ranked: tuple[Iterator[tuple[Ints, float]], float] = self.program.ranked(hard, likelihoods)
            return ranked

    def explain(self, hard: Pairs = (), likelihoods: Vectors = (), k: int = 1) -> tuple[Ranking, float]:
        """As of any."""
        with self.turn() if self._large else UNLOCKED:
            ranked, log = self.program.ranked(hard, likelihoods)
            return list(islice(ranked, k)), log


class LongNumpyExecutor(LongExecutor, NumpyExecutor):
    """The same of a plan so large that the time of its runs is predicted."""


def executor_of(plan: TreePlan, limit: int, room: Room | None = None) -> Executor:
    """The executor of a plan that fits the limit."""
    if not kernels.COMPILED:
        return (LongNumpyExecutor if plan.cells > LONG else NumpyExecutor)(plan, limit, room)
    return (LongExecutor if plan.cells > LONG else Executor)(plan, limit, room)


def open_plan(
    plan: TreePlan,
    limit: int | float | str | None = None,
    room: Room | None = None,
    beside: int = 0,
) -> Executor:
    """The executor of a plan, for which what `room` keeps makes way; BudgetError if it would need too much memory.

    `beside` are bytes of the limit that others take.
    """
    if limit is None and plan.layout is not None and plan.bytes <= SMALL_BYTES and plan.cells <= LONG:
        return executor_of(plan, maxsize)
    allowed = memory_limit(limit)
    require(plan, allowed, beside)
    if room is not None:
        room.clear(allowed - int(plan.bytes) - beside)
    return executor_of(plan, max(1, allowed - plan.shared - beside), room)
