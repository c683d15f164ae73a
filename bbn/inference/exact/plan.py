"""Plans: a model's factors as flat arrays, and what a question about them compiles to.

A plan is made for a question's shape (which variables are observed, which are asked for), not for the states observed:
barren factors are dropped, observed variables sliced out, what is left is triangulated and laid out. Every plan is
priced before anything large is allocated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import pairwise
from sys import maxsize
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import Room, memory_limit, require_memory
from bbn.core.errors import BudgetError
from bbn.inference.exact.bands import building_bytes, in_bands, more_bytes, runs_before
from bbn.inference.exact.orders import BEYOND, Order, triangulate
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import COLLECTED, QUERY, SLAB, THIN_SLAB, Layout
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.model.cpt import CPT
from bbn.model.evidence import Model
from bbn.model.graphs import Elimination
from bbn.model.network import BayesianNetwork

if TYPE_CHECKING:
    from bbn.inference.exact.plan_cache import PlanCache
    from bbn.inference.exact.plan_improvement import PlanImprovement

SMALL_BYTES = 131_072
"""Tables and plans of no more bytes are not worth asking for the limit, unless one is given."""
MANY_THREADS = 64
"""Where MANY_THREADS runs fit the limit together, they do not wait for one another."""
THIN_FROM, THIN, RUNS, RUN = 16_384, 0.15, 16, 64
"""Tables of at least THIN_FROM entries are thin if no more than the share THIN of what is looked at is not zero."""
LONG = 1e8
"""Cells from which it is worth predicting how long a run takes."""
UNLOCKED = nullcontext()
"""In place of the lock of a plan whose program is made with it."""
INSTEAD = (
    "observe more variables, ask for fewer targets, or choose a sampling method such as "
    'method="likelihood-weighting"'
)


class FlatModel(NamedTuple):
    """A model's factors as arrays; variables are numbered in the model's order.

    Factor f has the variables ``scope[scope_ptr[f]:scope_ptr[f + 1]]``, but for those of one state, and the table that
    starts at ``tables[table_ptr[f]]``, in C order. ``heads[f]`` is the variable it is the conditional table of, or -1.
    """

    names: tuple[str, ...]
    number: dict[str, int]
    cards: Ints
    scope_ptr: Ints
    scope: Ints
    table_ptr: Ints
    tables: Floats
    heads: Ints
    most_states: int = 1
    padded: frozenset[int] = frozenset()
    """Variables whose tables have one more slice; the tables are then a plan's own, not the engine's."""


def flatten(model: Model, limit: int | float | str | None = None, whole: bool = False) -> FlatModel:
    """The arrays of a model; BudgetError if its tables take more than the limit.

    A NoisyMax or Deterministic is a chain of small tables, with variables in between that the model does not have; with
    `whole` a NoisyMax is its full table.
    """
    directed = isinstance(model, BayesianNetwork)
    if directed:
        cpts: Any = model.conditionals  # type: ignore[attr-defined]
        if set(map(type, cpts)) != {CPT}:
            model = factored(model, certain=whole)  # type: ignore[arg-type]
            cpts = model.conditionals
            directed = all(isinstance(c, CPT) for c in cpts)
    variables = model.variables
    number = {v.name: i for i, v in enumerate(variables)}
    if directed:  # a conditional stands where its variable does
        members = [number[v.name] for cpt in cpts for v in cpt.parents]
        tables = [cpt.table for cpt in cpts]
    else:
        factors = model.factors()
        members = [number[v.name] for factor in factors for v in factor.variables]
        tables = [factor.values for factor in factors]
    size = 8 * sum([table.size for table in tables])
    if size > SMALL_BYTES or limit is not None:
        require_memory(size, "an engine's copy of the model's tables", "use smaller tables", limit)
    cards = [len(v.states) for v in variables]
    packed = kernels.layout.pack_factors(cards, members, tables, directed)
    return FlatModel(tuple(number), number, *packed, max(cards) if cards else 1)


def factored(model: BayesianNetwork, beyond: float = 0.0, certain: bool = False) -> BayesianNetwork:
    """The network with chains of small tables in place of full ones, see `chained`; itself if there are none."""
    if set(map(type, model.conditionals)) == {CPT}:
        return model
    from bbn.model.expansion import chained

    return chained(model, beyond, certain)


class Question(NamedTuple):
    """The shape of a question."""

    sliced: frozenset[int] = frozenset()
    """Variables whose observed code will pick a slice of each table."""
    likelihood: frozenset[int] = frozenset()
    """Variables that each run brings a likelihood for."""
    masked: bool = False
    """Whether each run may bring a likelihood or a code for any variable that is not sliced."""
    targets: tuple[int, ...] = ()
    """The variables whose joint is read; all in one clique then."""
    goal: int = QUERY
    """QUERY: the joint of the targets; MARGINALS: of each variable; COLLECTED: see `bbn.kernels.contracts.tape`."""
    maximise: bool = False
    """Whether the run takes maxima, not sums."""


class Price(NamedTuple):
    """A question pruned and triangulated, and what its plan would cost."""

    elimination: Elimination
    cells: float
    """The cells of all cliques."""
    layout: Layout | None
    """The plan's layout, unless its cliques are beyond any memory."""
    bytes: float
    """The memory of the plan with a run of it, and of the engine's tables."""
    tried: int = 1
    """How many elimination orders were worked out."""
    greedy: float = 0.0
    """The cells that the best order by a rule alone would have."""


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
        self._until = self._runs = 0 if question.maximise else runs_before(layout, question.goal)

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
            return kernels.propagate.Program(self._cards, self.tables, layout, False, bands)
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
            thin = in_bands(self._cards, self.tables, layout)
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


def plan_bytes(model: FlatModel, layout: Layout) -> int:
    """The memory that a plan takes with one run of it: its tapes, its potentials, an answer, tables of its own."""
    out, swept, run = layout.out_size, 0, layout.run.size
    if not kernels.COMPILED:
        swept = swept_cells(model, layout)
    cells = layout.once.size + run + layout.base_size + swept + 2 * (out + model.most_states)
    if run:
        cells += layout.work_size + swept + layout.scratch_size
    if model.padded:
        cells += model.tables.size
    return 8 * cells


def run_bytes(layout: Layout, swept: int = 0) -> int:
    """The memory that each run of a plan takes: its potentials, with `swept` cells, and its answer."""
    if not layout.run.size:
        return 8 * layout.out_size
    return 8 * (layout.work_size + swept + layout.scratch_size + layout.out_size)


def swept_cells(model: FlatModel, layout: Layout) -> int:
    """The cells of cliques that are not stored: none where they are made slab by slab, all in the twin in numpy."""
    if kernels.COMPILED:
        return 0
    return sum(cells_of(model, layout.axes[a:b].tolist()) for a, b in pairwise(layout.axes_ptr.tolist()))


def price(
    model: FlatModel,
    question: Question,
    order: str = "auto",
    most: float = BEYOND,
    once: bool = False,
    slab: int = SLAB,
    enough: Callable[[Order], bool] | None = None,
) -> Price:
    """Prune, triangulate, lay out, and so foresee the cost; nothing large is allocated.

    Elimination stops with a clique of over `most` cells, which are then all that is foreseen. `once` says that the plan
    will hardly be run again, so that less is spent on a good order. `slab` is the most cells of a slab; see `slab_of`.
    `enough` is asked before a search whether the order so far will do.
    """
    targets = question.targets
    if len(targets) > 1:
        targets = read_targets(model, question)
    role, factors, ptr, scope = reduced(model, question, targets)
    thorough = question.goal != QUERY and not once
    found = triangulate(model.cards, ptr, scope, order, thorough, most, enough)
    return laid_out(model, question.goal, targets, role, factors, found, False, slab)


def slab_of(model: FlatModel) -> int:
    """The most cells of a slab where one evidence is run at a time: fewer where the tables are mostly zeros.

    So it seems from RUNS runs of RUN neighbours: all of large tables would take as long as a first answer.
    """
    size = model.tables.size
    if size < THIN_FROM:
        return SLAB
    seen = model.tables[: size - size % RUNS].reshape(RUNS, -1)[:, :RUN]
    return THIN_SLAB if np.count_nonzero(seen) <= THIN * seen.size else SLAB


def lay_out(
    model: FlatModel, question: Question, role: Ints, elimination: Elimination, cells: float
) -> Price:
    """The cost of a question that is run once, so that large cliques are stored; all factors count.

    `role` is that of each variable, see `reduce_scopes`, and the elimination is given.
    """
    targets = read_targets(model, question)
    factors = np.arange(len(model.heads))
    return laid_out(model, question.goal, targets, role, factors, (elimination, cells, 1, cells), True)


def read_targets(model: FlatModel, question: Question) -> tuple[int, ...]:
    """The targets that are read: the joint is the same without those of one state, but one must be left to be read."""
    targets = question.targets
    if len(targets) > 1:
        targets = tuple(v for v in targets if model.cards[v] > 1) or targets[:1]
    return targets


def reduced(model: FlatModel, question: Question, targets: tuple[int, ...]) -> tuple[Ints, Ints, Ints, Ints]:
    """The role of each variable, the factors that a question needs, and their scopes; see `reduce_scopes`."""
    return kernels.layout.reduce_scopes(
        model.scope_ptr,
        model.scope,
        model.heads,
        len(model.cards),
        question.sliced,
        question.likelihood,
        question.masked,
        targets,
        question.goal != QUERY,
    )


def laid_out(
    model: FlatModel,
    goal: int,
    targets: tuple[int, ...],
    role: Ints,
    factors: Ints,
    found: tuple[Elimination, float, int, float],
    store: bool,
    slab: int = SLAB,
) -> Price:
    """The cost of a question with an elimination, its cells, the orders tried and the cells of the best by a rule."""
    elimination, cells, tried, greedy = found
    if cells > BEYOND:
        return Price(elimination, cells, None, 8 * cells, tried, greedy)
    layout = kernels.layout.lay_out(
        model.cards,
        model.scope_ptr,
        model.scope,
        model.table_ptr,
        factors,
        role,
        elimination,
        targets,
        goal,
        store,
        slab,
    )
    shared = 0 if model.padded else model.tables.nbytes
    return Price(elimination, cells, layout, shared + plan_bytes(model, layout), tried, greedy)


def make_plan(
    model: FlatModel,
    question: Question,
    cost: Price,
    limit: int | float | str | None = None,
    cache: PlanCache | None = None,
) -> Plan:
    """The plan of a question; BudgetError if it would need more memory than allowed. `cache` makes room for it."""
    if limit is None and cost.layout is not None and cost.bytes <= SMALL_BYTES and cost.cells <= LONG:
        return Plan(model, question, cost.layout, int(cost.bytes), maxsize)
    allowed, room = memory_limit(limit), None
    require(model, cost, allowed)
    if cost.layout is None:
        raise BudgetError(f"the junction tree would have {cost.cells:.3g} cells; {INSTEAD}")
    if cache is not None:
        cache.make_room(allowed - int(cost.bytes))
        room = cache.room
    shared = 0 if model.padded else model.tables.nbytes
    made: type[Plan] = Plan
    if cost.cells > LONG:
        from bbn.inference.exact.long_runs import LongPlan as made
    return made(model, question, cost.layout, int(cost.bytes) - shared, max(1, allowed - shared), room)


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
        require_memory(int(min(cost.bytes, 1e300)), what, INSTEAD, limit)


def largest_clique(model: FlatModel, cost: Price) -> tuple[list[str], float, int]:
    """The names and cells of the largest clique, and how many cliques there are."""
    cells = kernels.triangulate.cells(model.cards, *cost.elimination)
    if not cells.size:
        return [], 0.0, 0
    k = int(cells.argmax())
    order, ptr, near = cost.elimination
    members = [int(order[k]), *near[ptr[k] : ptr[k + 1]].tolist()]
    return [model.names[v] for v in sorted(members)], float(cells[k]), int((cells > 0).sum())


def cells_of(model: FlatModel, variables: Sequence[int]) -> int:
    """The cells of the joint of some variables."""
    return int(np.prod(model.cards[list(variables)], dtype=object)) if variables else 1
