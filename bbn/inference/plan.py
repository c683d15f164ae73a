"""Plans: a model's factors as flat arrays, and what a question about them compiles to.

A plan is made for a question's shape (which variables are observed, which are asked for), not for the states observed:
barren factors are dropped, observed variables sliced out, what is left is triangulated and laid out. Every plan is
priced before anything large is allocated.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.budget import memory_limit, require_memory
from bbn.cpt import CPT
from bbn.errors import BudgetError
from bbn.evidence import Model
from bbn.graphs import ORDERS, Elimination, find_rule
from bbn.kernels.propagate_np import Pairs, Vectors
from bbn.kernels.tape import QUERY, Layout
from bbn.kernels.types import Floats, Ints
from bbn.network import BayesianNetwork

PORTFOLIO = ("min-fill", "weighted-min-fill", "min-weight")
"""The rules that "auto" tries: the first alone where its cliques are small, else all, and the cheapest is kept."""
BEYOND = 1e15
"""Cells past which no layout is made."""
SMALL = 100_000.0
"""Cells up to which the first rule of the portfolio is good enough."""
HUGE = 1_000_000.0
"""Cells from which ties are broken at random a few times more: by then elimination is quick beside a run."""
RESTARTS = 4
RESTARTED = ("min-fill", "weighted-min-fill")
"""The rules that are tried again, so many times."""
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


def flatten(model: Model) -> FlatModel:
    """The arrays of a model."""
    variables = model.variables
    number = {v.name: i for i, v in enumerate(variables)}
    directed = isinstance(model, BayesianNetwork)
    if directed:
        cpts: Any = model.conditionals  # type: ignore[attr-defined]
        directed = all(issubclass(kind, CPT) for kind in set(map(type, cpts)))
    if directed:
        members = [number[v.name] for cpt in cpts for v in (*cpt.parents, cpt.variable)]
        tables = [cpt.table for cpt in cpts]
    else:
        factors = model.factors()
        members = [number[v.name] for factor in factors for v in factor.variables]
        tables = [factor.values for factor in factors]
    packed = kernels.pack_factors([len(v.states) for v in variables], members, tables, directed)
    return FlatModel(tuple(number), number, *packed)


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
    """QUERY: the joint of the targets; MARGINALS: of each variable; COLLECTED: see `bbn.kernels.tape`."""
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
    """The memory of its potentials, counting all that a run goes through."""


class Plan:
    """A compiled question: the layout of its junction forest, and the program that runs it."""

    def __init__(self, model: FlatModel, question: Question, layout: Layout) -> None:
        self.question = question
        self.tables = model.tables
        self.layout = layout
        self.cards = model.cards
        self.program = kernels.Program(model.cards, model.tables, layout, question.maximise)
        self.bytes = 8 * (layout.base_size + layout.work_size)
        self._wide: kernels.WideProgram | None = None

    def run(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, float]:
        """The normalised marginals that the layout reads, and ln of the total; -inf: impossible evidence."""
        out, log = self.program.run(hard, likelihoods)
        if log != log:  # NaN: a number left the range of a double
            out, log = self.wide.run(hard, likelihoods)
            if log != log:
                raise ArithmeticError(
                    "the answer is not a distribution; please report this network and evidence"
                )
        return out, log

    def collect(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, Floats, float, bool]:
        """The collected potentials of dynamic and of static cliques, ln of the total, and whether they are logs."""
        work, base, log = self.program.collect(hard, likelihoods)
        if log != log:
            return *self.wide.collect(hard, likelihoods), True
        return work, base, log, False

    @property
    def wide(self) -> kernels.WideProgram:
        """The program for numbers of any size, made when it is first needed; it takes twice the memory."""
        if self._wide is None:
            require_memory(2 * self.bytes, "potentials beyond the range of a double", INSTEAD)
            self._wide = kernels.WideProgram(self.cards, self.tables, self.layout, self.question.maximise)
        return self._wide


def price(model: FlatModel, question: Question, order: str = "auto", most: float = BEYOND) -> Price:
    """Prune, triangulate, lay out, and so foresee the cost; nothing large is allocated.

    Elimination stops with a clique of over `most` cells, which are then all that is foreseen.
    """
    # the joint is the same without targets of one state, but one must be left to be read
    targets = question.targets
    if len(targets) > 1:
        targets = tuple(v for v in targets if model.cards[v] > 1) or targets[:1]
    role, factors, ptr, scope = kernels.reduce_scopes(
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
    elimination, cells = triangulate(model.cards, ptr, scope, order, question.goal != QUERY, most)
    if cells > BEYOND:
        return Price(elimination, cells, None, 8 * cells)
    layout = kernels.lay_out(
        model.cards,
        model.scope_ptr,
        model.scope,
        model.table_ptr,
        factors,
        role,
        elimination,
        targets,
        question.goal,
    )
    return Price(elimination, cells, layout, 8 * layout.whole_size * (2 if layout.run.size else 1))


def triangulate(
    cards: Ints, ptr: Ints, scope: Ints, order: str = "auto", thorough: bool = False, most: float = inf
) -> tuple[Elimination, float]:
    """An elimination of these scopes and the cells of its cliques; "auto" tries the portfolio.

    Where cliques are huge a thorough one breaks ties several ways. Each rule is given up with its first clique of more
    than `most` cells, and the elimination ends there if all are.
    """
    rules = PORTFOLIO if order == "auto" else (order,)
    elimination = find_rule(rules[0])(cards, ptr, scope, most=most)
    cells = kernels.total_cells(cards, *elimination)
    if cells > SMALL:
        for name in rules[1:]:
            other = ORDERS[name](cards, ptr, scope, most=min(cells, most))
            others = kernels.total_cells(cards, *other)
            if others < cells:
                elimination, cells = other, others
    if thorough and HUGE < cells <= BEYOND and order == "auto":
        return other_ties(cards, ptr, scope, elimination, cells)
    return elimination, cells


def other_ties(
    cards: Ints, ptr: Ints, scope: Ints, elimination: Elimination, cells: float
) -> tuple[Elimination, float]:
    """The best of this elimination and some whose ties fell otherwise: those of variables numbered at random."""
    rng = np.random.default_rng(0)
    for _ in range(RESTARTS):
        number = rng.permutation(len(cards))
        variable = np.argsort(number)
        for name in RESTARTED:
            taken, ends, near = ORDERS[name](cards[variable], ptr, number[scope], most=cells)
            other = (variable[taken], ends, variable[near])
            others = kernels.total_cells(cards, *other)
            if others < cells:
                elimination, cells = other, others
    return elimination, cells


def compile_plan(
    model: FlatModel, question: Question, order: str = "auto", limit: int | str | None = None
) -> Plan:
    """The plan of a question; BudgetError if it would need more memory than allowed."""
    cost = price(model, question, order)
    require(model, cost, limit)
    if cost.layout is None:
        raise BudgetError(f"the junction tree would have {cost.cells:.3g} cells; {INSTEAD}")
    return Plan(model, question, cost.layout)


def require(model: FlatModel, cost: Price, limit: int | str | None) -> None:
    """Raise BudgetError, naming the largest clique, if the potentials would not fit."""
    if cost.bytes > memory_limit(limit):
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
    cells = kernels.cells(model.cards, *cost.elimination)
    if not cells.size:
        return [], 0.0, 0
    k = int(cells.argmax())
    order, ptr, near = cost.elimination
    members = [int(order[k]), *near[ptr[k] : ptr[k + 1]].tolist()]
    return [model.names[v] for v in sorted(members)], float(cells[k]), int((cells > 0).sum())


class PlanCache:
    """Plans by key, the least recently used dropped past a number of plans or of bytes; safe between threads."""

    def __init__(self, plans: int = 512, size: int = 2**30) -> None:
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()
        self._most, self._size, self._used = plans, size, 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Plan | None:
        """The plan of this key, if it is here."""
        plan = self._plans.get(key)
        if plan is not None:
            with suppress(KeyError):  # another thread may have dropped it just now
                self._plans.move_to_end(key)
        return plan

    def put(self, key: Hashable, plan: Plan) -> None:
        """Keep a plan, dropping the oldest ones where there is no room; the newest always stays."""
        with self._lock:
            known = self._plans.pop(key, None)
            self._used += plan.bytes - (known.bytes if known else 0)
            self._plans[key] = plan
            while len(self._plans) > 1 and (len(self._plans) > self._most or self._used > self._size):
                self._used -= self._plans.popitem(last=False)[1].bytes


def cells_of(model: FlatModel, variables: Sequence[int]) -> int:
    """The cells of the joint of some variables."""
    return int(np.prod(model.cards[list(variables)], dtype=object)) if variables else 1
