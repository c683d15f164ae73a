"""Plans: what a question about a model compiles to, and runs of it.

A plan is made for a question's shape (which variables are observed, which are asked for), not for the states observed.
Every plan is priced before anything large is allocated (`pricing`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from sys import maxsize
from typing import TYPE_CHECKING, Any, TypeAlias

from bbn import kernels
from bbn.core.budget import Room, memory_limit, require_memory
from bbn.core.errors import BudgetError
from bbn.inference.exact.bands import building_bytes, in_bands, more_bytes, runs_before
from bbn.inference.exact.flat_model import SMALL_BYTES, FlatModel
from bbn.inference.exact.orders import PORTFOLIO, SHARE_OF_LIMIT
from bbn.inference.exact.pricing import INSTEAD, Price, Question, largest_clique
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import COLLECTED, Layout
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.watch import time_left

if TYPE_CHECKING:
    from bbn.inference.exact.plan_cache import PlanCache
    from bbn.inference.exact.plan_improvement import PlanImprovement

MANY_THREADS = 64
"""Where MANY_THREADS runs fit the limit together, they do not wait for one another."""
LONG = 1e8
"""Cells from which it is worth predicting how long a run takes."""
UNLOCKED = nullcontext()
"""In place of the lock of a plan whose program is made with it."""
Ranking: TypeAlias = list[tuple[Ints, float]]
"""Assignments, best first: the codes of all variables, and ln of the ratio to the best."""


class Plan:
    """A compiled question: the layout of its junction forest, and the program that runs it.

    Runs of a plan that is large beside the limit take turns with those of other threads, and its program is made when
    it is its turn, so that a waiting thread holds no memory.

    Parameters
    ----------
    model, question, layout
        What it runs.
    size
        Its bytes, with one run of it.
    limit
        The bytes that it and its runs may take.
    room
        Shared with other plans.
    """

    kept = 0
    """The bytes that it is kept with, 0 if it is not."""
    more = 0
    """The bytes that leaving out cells that are always zero takes beyond `bytes`."""
    untried: Price | None = None
    """What it cost, where it was not tried whether its question is cheaper without states that cannot occur."""
    improvement: PlanImprovement | None = None
    """The search for a better order that goes on while it is run."""
    _thin: tuple[Layout, Bands] | None = None
    """The layout without the cells that are always zero, once it has run so often that this is worth finding."""
    _improved = False
    """Whether that was looked for."""

    def __init__(
        self,
        model: FlatModel,
        question: Question,
        layout: Layout,
        size: int,
        limit: int,
        room: Room | None = None,
    ) -> None:
        self.question = question
        self.tables = model.tables
        self.layout = layout
        self.bytes = size
        self.limit = limit
        self._cards = model.cards
        self._room = room
        self._large = room is not None and MANY_THREADS * self.bytes > self.limit
        self._making: AbstractContextManager[Any] = threading.Lock() if self._large else UNLOCKED
        self._program: Any = None if self._large else self._make()
        self._wide: kernels.wide.WideProgram | None = None
        self._until = self._runs = runs_before(layout, question.goal)
        self._explainer: tuple[Layout, kernels.explain.Explainer] | None = None

    @property
    def wide_bytes(self) -> int:
        """The memory of its program for wide numbers."""
        logs = 1 if self.question.goal == COLLECTED else 0
        return self.tables.nbytes + (2 + logs) * self.bytes

    @property
    def program(self) -> Any:
        """The program that goes through whole cliques; a plan asked for it has no bands from then on."""
        self._until = 0
        if self._thin is not None:
            self._thin = None
            self._program = None if self._large else self._make()
        return self._made()

    def _made(self) -> Any:
        """The program that runs it."""
        made = self._program
        if made is None:
            with self._making:
                made = self._program
                if made is None:
                    made = self._program = self._make()
        return made

    def _make(self) -> Any:
        if self._thin is not None:
            layout, bands = self._thin
            return kernels.propagate.Program(self._cards, self.tables, layout, self.question.maximise, bands)
        return kernels.propagate.Program(self._cards, self.tables, self.layout, self.question.maximise)

    @property
    def whole_size(self) -> int:
        """The cells that a run goes through."""
        return (self.layout if self._thin is None else self._thin[0]).whole_size

    def runs_to_come(self, runs: int) -> bool:
        """Note that it will be run so often; whether it leaves out the cells that are zero whatever is observed."""
        if self._until > 0:
            self._until = max(0, self._until - runs)
            if self._until == 0:
                self._improve()
        return self._thin is not None

    def _improve(self) -> None:
        """Take a better order, and leave out the cells that are zero whatever is observed, where that pays.

        There must be room for it. If there may be a better order still, it is looked for again later.
        """
        search = self.improvement
        better = None if search is None else search.layout(self.layout, self.bytes, self._runs)
        layout = self.layout if better is None else better
        thin, more = None, 0
        if (better is not None or not self._improved) and self.bytes + building_bytes(layout) <= self.limit:
            thin = in_bands(self._cards, self.tables, layout, self.question.goal == COLLECTED)
        if thin is not None:
            more = max(0, more_bytes(layout, *thin))
            if more and (self._large or self.bytes + more > self._left()):
                thin, more = None, 0
        if self._until != 0 or self._thin is not None:  # another thread was first
            return
        self._improved = True
        if thin is not None or layout is not self.layout:
            self.layout, self._thin, self.more = layout, thin, more
            self._program = None if self._large else self._make()
            self._keep_more(more)
        if search is not None and thin is None and not search.ended:
            self._until = 3 * self._runs
            self._runs *= 4

    def _keep_more(self, size: int) -> None:
        """Note that a plan that is kept takes so many bytes more."""
        if self._room is not None and self.kept:
            self.kept += size
            self._room.kept += size

    def run(self, hard: Pairs = (), likelihoods: Vectors = (), held: bool = False) -> tuple[Floats, float]:
        """The normalised marginals that the layout reads, and ln of the total; -inf: impossible evidence.

        `held` says that the caller's `turn` counts this run already.
        """
        if self._until > 0 and not held:
            self.runs_to_come(1)
        if not self._large:
            out, log = self._program.run(hard, likelihoods)
        elif held:
            out, log = self._made().run(hard, likelihoods)
        else:
            with self.turn():
                out, log = self._made().run(hard, likelihoods)
        if log != log:  # NaN: a number left the range of a double
            with self._widely(held) as wide:
                out, log = wide.run(hard, likelihoods)
            if log != log:
                raise ArithmeticError(
                    "the answer is not a distribution; please report this network and evidence"
                )
        return out, log

    def collect(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, Floats, float, bool]:
        """The collected potentials of dynamic and of static cliques, ln of the total, and whether they are logs."""
        with self.turn() if self._large else nullcontext():
            work, base, log = self.program.collect(hard, likelihoods)
        if log != log:
            with self._widely() as wide:
                return *wide.collect(hard, likelihoods), True
        return work, base, log, False

    @property
    def reader(self) -> kernels.explain.Explainer:
        """What reads the best assignments from what `collect` gives."""
        return kernels.explain.Explainer(self._cards, self.tables, self.layout)

    def explain(self, hard: Pairs = (), likelihoods: Vectors = (), k: int = 1) -> tuple[Ranking, float]:
        """Of a maximum: the k best assignments with ln of their ratio to the best, and ln of the best."""
        if self._until > 0:
            self.runs_to_come(1)
        found: Ranking = []
        with self.turn() if self._large else UNLOCKED:
            program = self._made()
            workspace, log = program.hold(hard, likelihoods)
            if log > -math.inf:
                reader = self._reader_of(program)
                found = list(islice(reader.ranked(workspace.work, program.base, hard, likelihoods), k))
            program.release(workspace)
        if log != log:
            with self._widely() as wide:
                work, base, log = wide.collect(hard, likelihoods)
            if log > -math.inf:
                found = list(islice(self.reader.ranked(work, base, hard, likelihoods, True), k))
        return found, log

    def _reader_of(self, program: Any) -> kernels.explain.Explainer:
        """What reads the best assignments from the runs of a program, made once."""
        known = self._explainer
        if known is None or known[0] is not program.layout:
            remade = None if program.bands is None else program.bands.remade
            made = kernels.explain.Explainer(self._cards, self.tables, program.layout, remade)
            known = self._explainer = program.layout, made
        return known[1]

    @contextmanager
    def turn(self, size: int | None = None) -> Iterator[None]:
        """Wait until there is room for a run, or for `size` bytes. Not to be nested."""
        size = self.bytes if size is None else size
        if self._room is None or MANY_THREADS * size <= self.limit:
            yield
            return
        with self._room.hold(size, self._left):
            self._room.clear(self.limit - size + self.kept)
            try:
                yield
            finally:
                if self._large and not self.kept:
                    self._program = None
                elif self._large and self._program is not None:
                    del self._program.pool[1:]  # of idle workspaces one is enough

    @contextmanager
    def _widely(self, held: bool = False) -> Iterator[kernels.wide.WideProgram]:
        """The program for numbers of any size, made when it is first needed; of a large plan one run at a time."""
        needed = self.bytes + (0 if self._wide else self.wide_bytes)
        require_memory(needed, "potentials beyond the range of a double", INSTEAD, self.limit)
        with nullcontext() if held else self.turn(needed), self._making:
            wide = self._wide
            if wide is None:
                wide = kernels.wide.WideProgram(self._cards, self.tables, self.layout, self.question.maximise)
                if not self._large:
                    self._wide = wide
                    self._keep_more(self.wide_bytes)
            yield wide

    def _left(self) -> int:
        """The bytes that runs may hold beside the other plans that are kept."""
        kept = self._room.kept if self._room is not None else 0
        return self.limit - kept + self.kept

    def drop(self) -> None:
        """Note that it is no longer kept; a large plan gives its memory back as soon as no run needs it."""
        self.kept = 0
        if self._large:
            self._program = None


def make_plan(
    model: FlatModel,
    question: Question,
    cost: Price,
    limit: int | float | str | None = None,
    cache: PlanCache | None = None,
    beside: int = 0,
) -> Plan:
    """The plan of a question; BudgetError if it would need more memory than allowed. `cache` makes room for it.

    `beside` are bytes of the limit that others take.
    """
    if limit is None and cost.layout is not None and cost.bytes <= SMALL_BYTES and cost.cells <= LONG:
        return Plan(model, question, cost.layout, int(cost.bytes), maxsize)
    allowed, room = memory_limit(limit), None
    require(model, cost._replace(bytes=cost.bytes + beside), allowed)
    if cost.layout is None:
        raise BudgetError(f"the junction tree would have {cost.cells:.3g} cells; {INSTEAD}")
    if cache is not None:
        cache.make_room(allowed - int(cost.bytes) - beside)
        room = cache.room
    shared = 0 if model.padded else model.tables.nbytes
    others = shared + beside
    made: type[Plan] = Plan
    if cost.cells > LONG:
        from bbn.inference.exact.long_runs import LongPlan as made
    return made(model, question, cost.layout, int(cost.bytes) - shared, max(1, allowed - others), room)


def require(model: FlatModel, cost: Price, limit: int) -> None:
    """Raise BudgetError, naming the largest clique, if the potentials would not fit."""
    if cost.bytes > limit:
        names, cells, cliques = largest_clique(model, cost)
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        largest = f"of {cells:.3g} cells over {len(names)} variables: {shown}"
        what = (
            f"the junction tree ({cost.cells:.3g} cells in {cliques} cliques, the largest {largest})"
            if cost.layout is not None
            else f"a part of the junction tree (a clique {largest}; the whole was not worked out)"
        )
        instead = INSTEAD
        if cost.tried > len(PORTFOLIO) and time_left() == math.inf:
            instead += (
                "; an order with smaller cliques was looked for briefly: with time_limit=600 it is for up to "
                f"{2 * SHARE_OF_LIMIT * 600:.0f} seconds"
            )
        require_memory(int(min(cost.bytes, 1e300)), what, instead, limit)
