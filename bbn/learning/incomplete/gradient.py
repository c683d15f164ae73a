"""Gradient ascent on the likelihood of incomplete data (Russell, Binder, Koller and Kanazawa 1995).

    ∂ ln P(D) / ∂ w_ijk = Σ_d P(x_i = j, parents_i = k | d) / w_ijk

The gradient is projected on the simplex (each row's mean is subtracted), a step of size η is taken, entries are clipped
at a small ε and each row is divided by its sum. Textbooks print the step and the division alone; that rule converges to
w ∝ √counts whatever η is, and is offered as `rule="textbook"` to show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import limited
from bbn.data import Block
from bbn.data.reading import Reading
from bbn.inference.rows.expected_counts import EntryGradient, Expectation
from bbn.inference.rows.row_plan import RowPlan
from bbn.learning.incomplete.climbing import climb
from bbn.learning.incomplete.em import INSTEAD, maximise, problem_of
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.incomplete.links import with_links
from bbn.learning.incomplete.problem import Point, Problem
from bbn.learning.structure.structure import read_structure, refuse_continuous
from bbn.learning.tables.priors import Prior
from bbn.learning.time.sequence_data import SequenceData
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

SMALLEST = 1e-12
"""The least that a step leaves of an entry."""
RULES = ("projected", "textbook")


@keywords_checked
@limited(INSTEAD)
def gradient(
    net: BayesianNetwork,
    data: Any,
    *,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    n_jobs: int | None = None,
    time_limit: float | None = None,
) -> dict[str, Array]:
    """∂ ln P(data) / ∂ entry for each entry of each table, every entry taken as free of the others.

    Parameters
    ----------
    net
        A network.
    data
        Any table; variables without a column are unobserved.
    weights, missing, unseen
        As in `fit`.
    n_jobs
        Threads.
    time_limit
        The most seconds, TimeLimitError beyond, and at once where it would take far longer; None is BBN_TIME_LIMIT, or
        else any time.

    Returns
    -------
    dict
        Name to an array like its table, or like the `rows` of a NoisyMax; a Deterministic has no entries and is left
        out. Not projected on the simplex, nor divided by the number of rows.

    >>> import bbn
    >>> coin = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])])
    >>> gradient(coin, {"Coin": ["heads", "heads", "tails"]})
    {'Coin': array([4., 2.])}
    """
    refuse_continuous(read_structure(net), "bbn.gradient")
    reading = Reading(None, weights, missing, unseen)
    source = reading.source(data, variables=net.variables, all_missing="allow", absent="allow")
    slopes = EntryGradient(net, n_jobs)
    return slopes.by_name(slopes.expectation(slopes.tables, source).statistics)


@keywords_checked
@limited(INSTEAD)
def fit_gradient(
    structure: Any,
    data: Any,
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None = None,
    prior: Prior | None = None,
    *,
    learning_rate: float | None = None,
    rule: str = "projected",
    batch_size: int | None = None,
    restarts: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-10,
    seed: int | np.random.Generator | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    fixed: Iterable[str] = (),
    tied: Iterable[Iterable[str]] = (),
    checkpoint: Any = None,
    progress: bool | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Sequence[int] | None = None,
) -> FitResult:
    """Learn the tables of a structure from incomplete data by gradient ascent.

    Parameters
    ----------
    structure, data, hidden, prior
        As in `fit_em`.
    learning_rate
        η, the factor of the whole data's gradient in each step; the likelihood may then fall. None finds a step for
        each row of each table by backtracking, such that the objective never falls.
    rule
        "projected", or "textbook" for the bare rule w ← (w + η g) / Σ (w + η g), which does not climb the likelihood.
    batch_size
        Rows that each step looks at, drawn at random (about that many); None looks at all. An iteration is then a pass
        over as many rows as there are, with steps that shrink as 1/√t, and the objective may fall.
    restarts, max_iter, tol, seed, states, weights, missing, unseen, fixed, tied, checkpoint, progress, n_jobs, \
time_limit
        As in `fit_em`. Where the likelihood may fall, a climb has converged when no
        entry moves by more than `tol`, or, in batches, when the objective moves by less than √tol of its size.
    sequence, time, lengths
        Where the structure is a dynamic network, how the rows make sequences, as in `fit_em`; all of them are looked
        at in each step.

    Returns
    -------
    FitResult

    >>> rows = {"Rain": ["yes", "no", "no", "yes"], "Wet": ["yes", "no", "yes", "yes"]}
    >>> fit_gradient([("Rain", "Wet")], rows, seed=0).network["Wet"].table.round(6)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}; expected one of {', '.join(RULES)}")
    if learning_rate is not None and not (np.isfinite(learning_rate) and learning_rate > 0):
        raise ValueError(f"learning_rate is {learning_rate!r}; expected a positive number")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size is {batch_size!r}; expected at least 1")
    dynamic = isinstance(structure, DynamicNetwork)
    refuse_continuous(read_structure(structure.template if dynamic else structure), "bbn.fit_gradient")
    structure, hidden, fixed, read = with_links(structure, hidden, fixed)
    reading = Reading(states, weights, missing, unseen)
    told = (sequence, time, lengths)
    problem = problem_of(structure, data, hidden, prior, reading, fixed, tied, n_jobs, told)
    if batch_size is not None and isinstance(problem.source, SequenceData):
        raise DataError(
            "batch_size= takes rows that do not depend on each other; leave it out with sequences"
        )
    climber: Any
    if rule == "textbook":
        climber = Textbook(learning_rate if learning_rate is not None else 1.0 / problem.source.total)
    elif batch_size is not None:
        climber = Minibatches(batch_size, learning_rate, int(np.random.default_rng(seed).integers(2**63)))
    elif learning_rate is not None:
        climber = FixedStep(learning_rate)
    else:
        climber = Backtracking()

    def stop(old: Point, new: Point) -> bool:
        if isinstance(climber, Backtracking):
            return new.objective - old.objective <= tol * abs(old.objective)
        if isinstance(climber, Minibatches):
            return abs(new.objective - old.objective) <= float(tol**0.5) * abs(old.objective)
        return float(np.abs(new.tables - old.tables).max()) <= tol

    result = climb(
        problem,
        climber,
        stop,
        method=f"gradient {rule} {learning_rate} {batch_size}",
        restarts=restarts,
        max_iter=max_iter,
        seed=seed,
        checkpoint=checkpoint,
        progress=progress,
    )
    return read(result)


def ascent_direction(problem: Problem, point: Point) -> tuple[Array, Array]:
    """The objective's gradient, and its projection on the simplex: each row's mean subtracted."""
    with np.errstate(divide="ignore"):
        prior = np.where(problem.alpha > 0, problem.alpha / np.maximum(point.tables, SMALLEST), 0.0)
    raw = problem.tie(point.statistics + 0.0) + prior
    inside = np.ones(len(raw))
    for _ in range(2):  # entries at their least that would sink further take no part in the mean
        mean = problem.row_sums(raw * inside) / np.maximum(problem.row_sums(inside), 1.0)
        inside = np.where((point.tables <= 2 * SMALLEST) & (raw < mean), 0.0, 1.0)
    return raw, (raw - mean) * inside


def moved(problem: Problem, tables: Array, step: Array) -> Array:
    """Step, clip, renormalise; fixed tables stay."""
    return problem.normalise(np.maximum(tables + step, SMALLEST), tables)


class FixedStep:
    """The projected rule with the user's η."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A step along the projected gradient."""
        _, direction = ascent_direction(problem, point)
        return problem.evaluate(moved(problem, point.tables, self.learning_rate * direction)), None

    def memory_shape(self, size: int) -> None:
        """Nothing is remembered."""


class Textbook:
    """The rule that textbooks print: step along the bare gradient, then divide by the row's sum."""

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A step along the gradient itself."""
        raw, _ = ascent_direction(problem, point)
        return problem.evaluate(
            problem.normalise(point.tables + self.learning_rate * raw, point.tables)
        ), None

    def memory_shape(self, size: int) -> None:
        """Nothing is remembered."""


class Backtracking:
    """The projected rule with a step for each row of each table, along conjugate directions (Binder et al. 1997).

    At the point w with expected counts N the function Q = Σ N ln w lies below the likelihood, up to a constant that
    makes them touch, and has its gradient there. Q is a sum over rows, so each row's step can be found on its own,
    without another look at the data: as far as is best along its direction, then halved until Q rises. What raises Q
    raises the likelihood at least as much. The memory is the last projected gradient and the last direction.
    """

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A step along each row's direction."""
        _, projected = ascent_direction(problem, point)
        direction = projected
        if memory is not None:
            # Polak and Ribière's conjugate direction, row by row.
            size = problem.row_sums(memory[0] ** 2)
            beta = problem.row_sums(projected * (projected - memory[0])) / np.where(size > 0, size, 1.0)
            direction = projected + np.maximum(beta, 0.0) * memory[1]
            stuck = (point.tables <= 2 * SMALLEST) & (direction < 0)
            uphill = problem.row_sums(projected * direction) > 0
            direction = np.where(uphill & ~(problem.row_sums(stuck * 1.0) > 0), direction, projected)
        return problem.evaluate(climb_rows(problem, point, direction)), np.stack([projected, direction])

    def memory_shape(self, size: int) -> tuple[int, ...]:
        """A gradient and a direction."""
        return (2, size)


def climb_rows(problem: Problem, point: Point, direction: Array) -> Array:
    """New tables: every row moved along its direction to a higher Q = Σ (N + α) ln w."""
    counts = problem.tie(point.tables * point.statistics) + problem.alpha
    w = np.maximum(point.tables, SMALLEST)
    # Newton's step along the direction: Q' = Σ N d / w, Q'' = −Σ N (d / w)².
    relative = direction / w
    slope, bend = problem.row_sums(counts * relative), problem.row_sums(counts * relative**2)
    eta = np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), 0.0)
    start = problem.row_sums(counts * np.log(w))
    tables = point.tables
    rising = eta > 0
    for _ in range(60):
        tried = moved(problem, point.tables, np.where(rising, eta, 0.0) * direction)
        risen = problem.row_sums(counts * np.log(np.maximum(tried, SMALLEST))) >= start
        tables = np.where(rising & risen, tried, tables)
        rising = rising & ~risen
        if not rising.any():
            break
        eta = eta * 0.5
    unseen = problem.row_sums(counts) == 0
    return np.where(unseen, problem.normalise(counts, point.tables), tables)


class Minibatches:
    """Steps on random parts of the data, shrinking as 1/√t; the memory is the number of passes so far.

    Where no η is given a step goes part of the way to the part's expected frequencies, w ∘ (g − N) / N, which is the
    gradient in the simplex's own metric (Cappé and Moulines 2009): it cannot leave the simplex.
    """

    def __init__(self, size: int, learning_rate: float | None, seed: int) -> None:
        self.size, self.learning_rate, self.seed = size, learning_rate, int(seed)

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A pass in steps of `size` rows, then a look at all the data."""
        passed = 0 if memory is None else int(memory[0])
        steps = max(1, round(problem.source.n_rows / self.size))
        tables, expectation = point.tables, problem.expectation
        rows = expectation.rows_of(problem.source).share(1.0 / steps)
        for t in range(passed * steps, (passed + 1) * steps):
            plan = expectation.plan(tables, rows)
            part = Sampled(expectation, tables, plan, 1.0 / steps, (self.seed, t))
            slope = problem.source.reduce(part)[0]
            here = Point(tables, slope, 0.0, 0.0)
            shrink = (1.0 + t / steps) ** -0.5
            if self.learning_rate is None:
                tables = tables + 0.5 * shrink * (maximise(problem, here) - tables)
            else:
                _, direction = ascent_direction(problem, here)
                tables = moved(problem, tables, self.learning_rate * shrink * direction)
        return problem.evaluate(tables), np.array([passed + 1])

    def memory_shape(self, size: int) -> tuple[int, ...]:
        """A number."""
        return (1,)


class Sampled:
    """The gradient of a random part of each block, scaled up to all of it."""

    def __init__(
        self, expectation: Expectation, tables: Array, plan: RowPlan, share: float, seed: tuple[int, int]
    ) -> None:
        self.expectation, self.tables, self.plan = expectation, tables, plan
        self.share, self.seed = share, seed

    def __call__(self, block: Block) -> list[Array]:
        """The estimate of the block's gradient."""
        drawn = np.random.default_rng(self.seed).poisson(block.weights * self.share)
        chosen = drawn > 0
        part = Block(
            {name: column[chosen] for name, column in block.codes.items()}, drawn[chosen] / self.share
        )
        slope, logs = self.expectation.block(self.tables, part, self.plan)
        if np.isneginf(logs).any():
            raise DataError(
                "some rows have probability 0 under the tables at hand; a prior keeps tables positive"
            )
        return [slope]
