"""Tree plans: the junction tree that a question compiles to, and what it costs, before anything large is allocated.

Barren leaves are dropped, observed variables sliced out, what is left is triangulated and laid out as a tape
(`kernels.layout`). Without compiled kernels there is no tape: the junction tree in numpy runs on the order alone. A
plan is made for a question's shape, not for the values observed. It is arrays and numbers, and never changes; an
`Executor` runs it.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import memory_limit, require_memory
from bbn.core.errors import BudgetError
from bbn.inference.exact.elimination_orders import (
    BEYOND,
    HOPELESS,
    PORTFOLIO,
    SHARE_OF_LIMIT,
    Order,
    greedy,
    searched,
)
from bbn.inference.exact.prices import CELL
from bbn.inference.exact.problem import INSTEAD, Factors, Question, Relevant, cells_of, read_targets, relevant
from bbn.inference.exact.sparse_cliques import building_bytes, in_bands, more_bytes
from bbn.kernels.contracts.bands import Bands
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS, QUERY, SLAB, SLICED, SWEEP, THIN_SLAB, Layout
from bbn.kernels.watch import time_left
from bbn.model.graphs import Elimination

THIN_FROM, THIN, RUNS, RUN = 16_384, 0.15, 16, 64
"""Tables of at least THIN_FROM entries are thin if no more than the share THIN of what is looked at is not zero."""


class TreePlan(NamedTuple):
    """A junction tree for a question, and what it takes."""

    factors: Factors
    question: Question
    needed: Relevant
    order: Order
    layout: Layout | None
    """None if its cliques are beyond any memory."""
    bytes: float
    """The memory of the plan with a run of it, and of the engine's tables."""
    slab: int = SLAB
    """The most cells of a slab."""
    sparse: tuple[Layout, Bands] | None = None
    """The layout that leaves out cells that are zero whatever is observed, where that pays."""
    more: int = 0
    """The bytes that this takes beyond the plan without."""

    @property
    def elimination(self) -> Elimination:
        """The order, with the neighbours of each variable at its turn."""
        return self.order.elimination

    @property
    def cells(self) -> float:
        """The cells of all cliques."""
        return self.order.cells

    @property
    def seconds(self) -> float:
        """What a run costs."""
        return CELL * self.order.cells

    @property
    def shared(self) -> int:
        """The bytes that it shares with others: the engine's tables."""
        return tables_bytes(self.factors)


def plan_tree(
    model: Factors,
    question: Question,
    order: str = "auto",
    most: float = HOPELESS,
    once: bool = False,
    slab: int = SLAB,
    limit: int | float | str | None = None,
) -> TreePlan:
    """The plan of a question by rules and a search.

    Parameters
    ----------
    model, question, order
        What is asked, and the rule of elimination, or "auto".
    most
        Elimination stops with a clique of more cells, which are then all that is foreseen.
    once
        Whether the plan will hardly be run again, so that less is spent on a good order.
    slab
        The most cells of a slab; see `slab_of`.
    limit
        The memory that the plan may take: where it does not fit, the search for an order is short.
    """
    needed = relevant(model, question)
    found = greedy(model.cards, needed.ptr, needed.scope, order, most)
    return search_plan(model, question, needed, found, most, once, slab, limit)


def search_plan(
    model: Factors,
    question: Question,
    needed: Relevant,
    found: Order,
    most: float = HOPELESS,
    once: bool = False,
    slab: int = SLAB,
    limit: int | float | str | None = None,
    often: bool = False,
) -> TreePlan:
    """The plan of a question whose order the rules have found, after a search for a better one where that pays."""
    if found.starts:
        needs = partial(_times_the_limit, model, question, needed, slab, limit)
        thorough = often or (question.goal != QUERY and not once)
        found = searched(model.cards, needed.ptr, needed.scope, found, thorough, needs)
    if found.cells > most:  # it may have been given up
        return TreePlan(model, question, needed, found, None, 8 * found.cells, slab)
    return plan_on(model, question, needed, found, False, slab)


def plan_on(
    model: Factors, question: Question, needed: Relevant, order: Order, store: bool = False, slab: int = SLAB
) -> TreePlan:
    """The plan of a question on an order that is known. With `store`, a run once stores large cliques."""
    if order.cells > BEYOND:
        return TreePlan(model, question, needed, order, None, 8 * order.cells, slab)
    if not kernels.COMPILED:
        sizes = _in_numpy(model, question, needed, order)
        held = tables_bytes(model) + 8 * sizes.work_size
        return TreePlan(model, question, needed, order, sizes, held, slab)
    layout: Layout = kernels.layout.lay_out(
        model.cards,
        model.scope_ptr,
        model.scope,
        model.table_ptr,
        needed.factors,
        needed.role,
        order.elimination,
        read_targets(model, question),
        question.goal,
        store,
        slab,
    )
    shared = 0 if model.padded else model.tables.nbytes
    size = shared + _own_bytes(model, layout, question.maximise)
    return TreePlan(model, question, needed, order, layout, size, slab)


def tables_bytes(model: Factors) -> int:
    """The memory of the engine's tables, which plans share."""
    return 0 if model.padded else model.tables.nbytes


def _in_numpy(model: Factors, question: Question, needed: Relevant, order: Order) -> Layout:
    """What is known of a run of the junction tree in numpy, which has no tape: its answer, its cells and its memory.

    In place of a tape, one sweep says how many cells a run goes through. It may hold the products of the tables twice,
    as numbers and as logarithms, the potentials of both sweeps, and what it is working on.
    """
    reads = question.goal == MARGINALS
    read = (needed.role != SLICED) & np.isin(np.arange(len(model.cards)), needed.scope) & reads
    ends = np.cumsum(np.where(read, model.cards, 0))
    out = np.where(read, ends - model.cards, -1)
    targets = read_targets(model, question)
    out_size = cells_of(model, targets) if targets else int(ends[-1]) if reads else 0
    cells, sweeps = int(order.cells), 4 if reads else 2
    held = 2 * cells + (2 if reads else 1) * cells + 2 * (out_size + int(model.tables.size))
    none = np.empty(0, np.int64)
    run = np.array([SWEEP, 9, 0, cells, 0, 0, 1, 0, sweeps], np.int64)
    size = int(model.table_ptr[-1])
    return Layout(none, run, none, none, none, none, none, none, out, out_size, held, 0, cells, 0, size)


def program_of(plan: TreePlan) -> Any:
    """The program that runs a plan: of its tape, or the junction tree in numpy."""
    model, question, layout = plan.factors, plan.question, plan.layout
    assert layout is not None
    if kernels.COMPILED:
        if plan.sparse is not None:
            return kernels.propagate.Program(
                model.cards, model.tables, plan.sparse[0], question.maximise, plan.sparse[1]
            )
        return kernels.propagate.Program(model.cards, model.tables, layout, question.maximise)
    return kernels.junction_tree.Program(
        model.cards,
        model.scope_ptr,
        model.scope,
        model.table_ptr,
        model.tables,
        plan.needed.factors,
        plan.needed.role,
        plan.elimination,
        read_targets(model, question),
        layout.out,
        question.maximise,
    )


def _times_the_limit(
    model: Factors,
    question: Question,
    needed: Relevant,
    slab: int,
    limit: int | float | str | None,
    found: Order,
) -> float:
    """How many times the memory limit the plan of an order takes."""
    return plan_on(model, question, needed, found, slab=slab).bytes / memory_limit(limit)


def without_zeros(plan: TreePlan, room: int) -> TreePlan | None:
    """The plan without the cells that are zero whatever is observed, where that pays; None where it does not.

    `room` are the bytes that it may take to find them.
    """
    layout = plan.layout
    if layout is None or building_bytes(layout) > room:
        return None
    found = in_bands(plan.factors.cards, plan.factors.tables, layout, plan.question.goal == COLLECTED)
    if found is None:
        return None
    more = max(0, more_bytes(layout, *found))
    return plan._replace(sparse=found, more=more)


def slab_of(model: Factors) -> int:
    """The most cells of a slab where one evidence is run at a time: fewer where the tables are mostly zeros.

    So it seems from RUNS runs of RUN neighbours: all of large tables would take as long as a first answer.
    """
    size = model.tables.size
    if size < THIN_FROM:
        return SLAB
    seen = model.tables[: size - size % RUNS].reshape(RUNS, -1)[:, :RUN]
    return THIN_SLAB if np.count_nonzero(seen) <= THIN * seen.size else SLAB


def _own_bytes(model: Factors, layout: Layout, held: bool) -> int:
    """The memory that a plan takes with one run of it: its tapes, its potentials, an answer, tables of its own.

    `held` says that a run's potentials are read, so that it takes them even where it has nothing left to do.
    """
    out, run = layout.out_size, layout.run.size
    cells = layout.once.size + run + layout.base_size + 2 * (out + model.most_states)
    if run or held:
        cells += layout.work_size
    if run:
        cells += layout.scratch_size
    if model.padded:
        cells += model.tables.size
    return 8 * cells


def run_bytes(layout: Layout) -> int:
    """The memory that each run of a plan takes: its potentials and its answer."""
    if not layout.run.size:
        return 8 * layout.out_size
    return 8 * (layout.work_size + layout.scratch_size + layout.out_size)


def largest_clique(plan: TreePlan) -> tuple[list[str], float, int]:
    """The names and cells of the largest clique, and how many cliques there are."""
    cells = kernels.triangulate.cells(plan.factors.cards, *plan.elimination)
    if not cells.size:
        return [], 0.0, 0
    k = int(cells.argmax())
    order, ptr, near = plan.elimination
    members = [int(order[k]), *near[ptr[k] : ptr[k + 1]].tolist()]
    return [plan.factors.names[v] for v in sorted(members)], float(cells[k]), int((cells > 0).sum())


def require(plan: TreePlan, limit: int, beside: int = 0) -> None:
    """Raise BudgetError, naming the largest clique, if the plan would not fit beside so many bytes of others."""
    if plan.bytes + beside > limit:
        names, cells, cliques = largest_clique(plan)
        shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        largest = f"of {cells:.3g} cells over {len(names)} variables: {shown}"
        what = (
            f"the junction tree ({plan.cells:.3g} cells in {cliques} cliques, the largest {largest})"
            if plan.layout is not None
            else f"a part of the junction tree (a clique {largest}; the whole was not worked out)"
        )
        instead = INSTEAD
        if plan.order.tried > len(PORTFOLIO) and time_left() == math.inf:
            instead += (
                "; an order with smaller cliques was looked for briefly: with time_limit=600 it is for up to "
                f"{2 * SHARE_OF_LIMIT * 600:.0f} seconds"
            )
        require_memory(int(min(plan.bytes + beside, 1e300)), what, instead, limit)
    if plan.layout is None:
        raise BudgetError(f"the junction tree would have {plan.cells:.3g} cells; {INSTEAD}")
