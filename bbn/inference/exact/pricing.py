"""Pricing: what a question compiles to, and what that costs, before anything large is allocated.

Barren factors are dropped, observed variables sliced out, what is left is triangulated and laid out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import memory_limit
from bbn.inference.exact.flat_model import FlatModel, cells_of
from bbn.inference.exact.orders import BEYOND, HOPELESS, PORTFOLIO, Order, triangulate
from bbn.kernels.contracts.tape import QUERY, SLAB, THIN_SLAB, Layout
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import Elimination

THIN_FROM, THIN, RUNS, RUN = 16_384, 0.15, 16, 64
"""Tables of at least THIN_FROM entries are thin if no more than the share THIN of what is looked at is not zero."""
INSTEAD = "observe more variables, ask for fewer targets, or choose a sampling method"


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


def price(
    model: FlatModel,
    question: Question,
    order: str = "auto",
    most: float = HOPELESS,
    once: bool = False,
    slab: int = SLAB,
    enough: Callable[[Order], bool] | None = None,
    limit: int | float | str | None = None,
) -> Price:
    """Prune, triangulate, lay out, and so foresee the cost; nothing large is allocated.

    Elimination stops with a clique of over `most` cells, which are then all that is foreseen. `once` says that the plan
    will hardly be run again, so that less is spent on a good order. `slab` is the most cells of a slab; see `slab_of`.
    `enough` is asked before a search whether the order so far will do. `limit` is the memory that the plan may take:
    where it does not fit, the search for an order is short.
    """
    targets = question.targets
    if len(targets) > 1:
        targets = read_targets(model, question)
    role, factors, ptr, scope = reduced(model, question, targets)
    thorough = question.goal != QUERY and not once
    needs = partial(_times_the_limit, (model, question.goal, targets, role, factors), slab, limit)
    found = triangulate(model.cards, ptr, scope, order, thorough, most, enough, needs)
    if found.cells > most:  # it may have been given up
        return Price(found.elimination, found.cells, None, 8 * found.cells, found.tried, found.greedy)
    return laid_out(model, question.goal, targets, role, factors, found, False, slab)


def _times_the_limit(
    problem: tuple[FlatModel, int, tuple[int, ...], Ints, Ints],
    slab: int,
    limit: int | float | str | None,
    found: Order,
) -> float:
    """How many times the memory limit the plan of an order takes."""
    return laid_out(*problem, found, False, slab).bytes / memory_limit(limit)


def cells_by_rule(model: FlatModel, question: Question, order: str, most: float = HOPELESS) -> float:
    """The cells of all cliques by one rule without a search; past `most` cells some number that is larger."""
    _, _, ptr, scope = reduced(model, question, read_targets(model, question))
    rule = PORTFOLIO[0] if order == "auto" else order
    return triangulate(model.cards, ptr, scope, rule, most=most).cells


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


def largest_clique(model: FlatModel, cost: Price) -> tuple[list[str], float, int]:
    """The names and cells of the largest clique, and how many cliques there are."""
    cells = kernels.triangulate.cells(model.cards, *cost.elimination)
    if not cells.size:
        return [], 0.0, 0
    k = int(cells.argmax())
    order, ptr, near = cost.elimination
    members = [int(order[k]), *near[ptr[k] : ptr[k + 1]].tolist()]
    return [model.names[v] for v in sorted(members)], float(cells[k]), int((cells > 0).sum())
