"""Runtime prediction: how long a plan will run, told before it starts, and shown while it does.

A tape says how many cells each of its steps goes through, and a machine goes through cells at a steady rate, which is
measured once, when it is first asked for. Past ten predicted seconds a run shows its progress (on a terminal or in a
notebook), and one that is predicted to take far longer than its time limit leaves is refused before it starts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import numpy as np

from bbn.core.errors import TimeLimitError
from bbn.core.progress import progress_bar
from bbn.inference.exact.elimination_orders import HOPELESS
from bbn.inference.exact.problem import INSTEAD, Factors, Question
from bbn.inference.exact.tree_plan import largest_clique, plan_tree, program_of
from bbn.kernels.contracts.tape import MARGINALS, SWEEP, Layout
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import Watch, time_left, watched_by

TOLD = 10.0
"""Predicted seconds past which progress is shown, and a time limit is looked at before the start."""
FAR = 3.0
"""How many times the time that is left a run must be predicted to take to be refused."""
POLLED = 4_000_000
"""The cells after which a compiled loop asks whether to go on."""
USUAL = 2.0
"""How many times longer than in the run that is measured a cell usually takes: between 1 and 4, in real networks."""
ROWS_FROM = 1e7
"""Rows times the size of their plan from which it is worth the while to work out how long they take."""
MEASURED = 17
"""The two-state variables of each of the two cliques whose run is measured."""


def tape_cells(tape: Ints) -> float:
    """The cells that the sweeps of a tape go through, counted once for each step of a sweep."""
    words, at, cells = tape.tolist(), 0, 0
    while at < len(words):
        if words[at] == SWEEP:
            cells += words[at + 3] * words[at + 8]
        at += words[at + 1]
    return float(cells)


def predicted_seconds(layout: Layout) -> float:
    """How long a plan takes the first time, about."""
    return (tape_cells(layout.once) + tape_cells(layout.run)) * rate()


@cache
def rate() -> float:
    """Seconds for each cell of a step, from the quickest of three runs of some milliseconds."""
    n = 2 * MEASURED - 8
    scope = np.concatenate([np.arange(MEASURED), np.arange(n - MEASURED, n)]).astype(np.int64)
    ends = np.array([0, MEASURED, 2 * MEASURED], np.int64)
    size = 2**MEASURED
    model = Factors(
        tuple(map(str, range(n))),
        {str(v): v for v in range(n)},
        np.full(n, 2, np.int64),
        ends,
        scope,
        np.array([0, size, 2 * size], np.int64),
        np.full(2 * size, 1 / size),
        np.full(2, -1, np.int64),
        2,
    )
    plan = plan_tree(model, Question(masked=True, goal=MARGINALS), "min-fill")
    program = program_of(plan)
    took = []
    for code in (0, 1, 0):
        start = time.perf_counter()
        program.run([(0, code)])
        took.append(time.perf_counter() - start)
    return USUAL * min(took) / tape_cells(plan.layout.run)  # type: ignore[union-attr]


class _Progress(Watch):
    """Stops nothing: tells how much was done each time that a compiled loop asks."""

    def __init__(self, advance: Callable[..., object]) -> None:
        super().__init__()
        self._advance = advance

    def check(self) -> None:
        """Note the cells since the last time."""
        self._advance(POLLED)


@contextmanager
def predicted_run(tape: Ints) -> Iterator[None]:
    """Refuse to run a tape that would take far too long, and show the progress of one that takes long."""
    with predicted_cells(tape_cells(tape)):
        yield


@contextmanager
def predicted_rows(layout: Layout, n_rows: int, threads: int) -> Iterator[None]:
    """The same for a plan that is run on many rows, by several threads."""
    if n_rows * float(layout.run.size + layout.whole_size) < ROWS_FROM:
        yield
        return
    with predicted_cells(n_rows * tape_cells(layout.run), max(threads, 1)):
        yield


@contextmanager
def predicted_cells(
    cells: float,
    threads: int = 1,
    each: float = 1.0,
    what: str = "the run",
    instead: str = INSTEAD,
) -> Iterator[None]:
    """The same for a number of cells, shared by some threads; each takes so many times longer than one of a run.

    `what` and `instead` begin and end the message of the error.
    """
    seconds = each * cells * rate() / threads
    if seconds <= TOLD:
        yield
        return
    refuse_far(seconds, what, instead)
    with (
        progress_bar(None, cells, f"exact inference, about {spoken(seconds)}", "cells") as advance,
        watched_by(_Progress(advance)),
    ):
        yield


def refuse_far(seconds: float, what: str, instead: str, done: str = "it was not started") -> None:
    """Raise TimeLimitError where work is predicted to take over TOLD seconds, and over FAR times those that are left.

    `what`, `done` and `instead` begin and end the message.
    """
    left = time_left()
    if seconds > max(TOLD, FAR * left):
        raise TimeLimitError(
            f"{what} would take about {spoken(seconds)}, {seconds / max(left, 1e-3):,.0f} times the "
            f"{left:.3g} seconds that time_limit leaves; {done}: allow more time, {instead}"
        )


def spoken(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> spoken(12.3), spoken(600), spoken(2e4), spoken(1e7)
    ('12 seconds', '10 minutes', '5.6 hours', '116 days')
    """
    for unit, length, most in (("seconds", 1, 120), ("minutes", 60, 120), ("hours", 3600, 48)):
        if seconds < most * length:
            return (
                f"{seconds / length:.2g} {unit}"
                if seconds < 99 * length
                else f"{seconds / length:.0f} {unit}"
            )
    return f"{seconds / 86400:,.0f} days"


class Stats(NamedTuple):
    """The size of a junction tree: what inference without evidence costs.

    Attributes
    ----------
    treewidth
        The number of variables of the largest clique, less one.
    cliques, total_cells
        How many cliques there are, and the cells of all of them.
    largest_clique, largest_cells
        The variables of the clique with most cells, and how many it has.
    predicted_bytes
        The memory of the engine's tables, of the potentials that are stored, and of the answer.
    orders_tried
        How many elimination orders, and pieces of them, were worked out to find this one; more where a run is long.
    greedy_cells
        What `total_cells` would be with the best order that a rule gives without a search.
    predicted_seconds
        About how long the first run takes on this machine, which is measured once.
    """

    treewidth: int
    cliques: int
    total_cells: int
    largest_clique: tuple[str, ...]
    largest_cells: int
    predicted_bytes: int
    orders_tried: int = 1
    greedy_cells: int = 0
    predicted_seconds: float = 0.0


def tree_stats(model: Factors, order: str, limit: int | float | str | None = None) -> Stats:
    """The size of a model's tree without evidence, as a rule of elimination, or "auto", makes it."""
    question = Question(goal=MARGINALS)
    plan = plan_tree(model, question, order, HOPELESS if order == "auto" else math.inf, limit=limit)
    if order == "auto" and plan.cells > HOPELESS:  # they were given up: the quickest rule gives a whole tree
        plan = plan_tree(model, question, "min-neighbours", math.inf, limit=limit)
    names, cells, cliques = largest_clique(plan)
    width = int(np.diff(plan.elimination[1]).max(initial=0))
    return Stats(
        width,
        cliques,
        int(plan.cells),
        tuple(names),
        int(cells),
        int(plan.bytes),
        plan.order.tried,
        int(plan.order.greedy),
        math.inf if plan.layout is None else predicted_seconds(plan.layout),
    )
