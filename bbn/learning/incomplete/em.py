"""Expectation maximisation: tables from data with missing values and with variables that nobody has seen.

    E: N_jk = Σ_d P(x = k, parents = j | d)        M: θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

(Dempster, Laird and Rubin 1977; Lauritzen 1995). Each step raises ln P(data) + Σ α ln θ or leaves it. A step costs one
pass over the distinct rows, each of which visits the cells of the junction tree that agree with it.

Gaussians are learned along: their responsibilities are the expected counts of the settings of their parents, and the
M step is that of `fit` on expected moments (a mixture of Gaussians is the smallest such network).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import limited
from bbn.data.reading import Reading
from bbn.learning.incomplete.climbing import Stop, climb
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.incomplete.links import with_links
from bbn.learning.incomplete.problem import Point, Problem
from bbn.learning.tables.extrapolation import extrapolated
from bbn.learning.tables.fit import sequences_for
from bbn.learning.tables.priors import NormalInverseGamma, Prior
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.variable import State

INSTEAD = "or give fewer rows or a simpler structure"
"""What a caller may do where time is too short."""


@keywords_checked
@limited(INSTEAD)
def fit_em(
    structure: Any,
    data: Any,
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None = None,
    prior: Prior | None = None,
    *,
    continuous: str | Iterable[str] = (),
    gaussian_prior: NormalInverseGamma | None = None,
    tied_variance: bool | str | Iterable[str] = False,
    fixed_variance: float | Mapping[str, Any] | None = None,
    restarts: int = 1,
    max_iter: int = 1000,
    tol: float | None = None,
    seed: int | np.random.Generator | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    fixed: Iterable[str] = (),
    tied: Iterable[Iterable[str]] = (),
    accelerate: bool = False,
    checkpoint: Any = None,
    progress: bool | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Sequence[int] | None = None,
) -> FitResult:
    """Learn the tables and the Gaussians of a structure from incomplete data by EM.

    Parameters
    ----------
    structure
        A networkx DiGraph, a list of arcs, or a network, whose tables are then the starting point.
    data
        Any table, or a data source; values may be missing anywhere.
    hidden
        Variables that were never observed, with their states (a list of names is enough where the states are known).
    prior
        None, or `MEstimate`, `Dirichlet` or `BDeu`: pseudo-counts that are added in each step (MAP-EM).
    continuous, gaussian_prior, tied_variance, fixed_variance
        As in `fit`. With a prior each step is MAP-EM too.
    restarts
        How many starts to climb from; the best is kept. All but a network that was given are drawn at random, each row
        uniformly from the simplex, which breaks the symmetry between states of a hidden variable. Gaussians below a
        hidden variable start at rows of the data that lie far from each other (k-means++).
    max_iter, tol
        A climb stops when a step gains less than `tol` of the objective's size (1e-8), or after `max_iter` steps. Where
        there are Gaussians, the log-likelihood is that of a density and may be near 0: `tol` is then the gain per row
        (1e-6).
    seed
        An int or a Generator, for the random starts.
    states, weights, missing, unseen
        As in `fit`.
    fixed
        Names of tables of the given network that are kept as they are.
    tied
        Groups of names whose tables are one and the same, of one shape.
    accelerate
        Extrapolate from each two steps (SQUAREM; Varadhan and Roland 2008), and take the plain step where that would
        not raise the objective.
    checkpoint
        A path to save the state of the climb at now and then, and to go on from if it is there.
    progress
        True, False, or None for a bar where someone is looking.
    n_jobs
        Threads; the result does not depend on them.
    time_limit
        The most seconds; after them the best so far is given, with reason "time_limit". TimeLimitError where not even
        the first pass over the data ended in time, or would not by far, which is foreseen. None is BBN_TIME_LIMIT, or
        else any time.
    sequence, time, lengths
        Where the structure is a dynamic network, how the rows make sequences, as in `DynamicNetwork.filter`: this is
        then the algorithm of Baum and Welch. `weights` are one per sequence; data from `bbn.open_data` lie sorted by
        sequence. So may arcs over time be, such as ``[("Z[-1]", "Z"), ("Z", "X")]``; see `fit`.

    Returns
    -------
    FitResult

    >>> rows = {"Rain": ["yes", "no", None, "yes"], "Wet": ["yes", "no", "yes", None]}
    >>> result = fit_em([("Rain", "Wet")], rows, seed=0)
    >>> result.converged, result.network["Rain"].table.round(3)
    (True, array([0.25, 0.75]))
    """
    structure, hidden, fixed, read = with_links(structure, hidden, fixed)
    gaussian_options = {
        "prior": gaussian_prior,
        "tied_variance": tied_variance,
        "fixed_variance": fixed_variance,
    }
    problem = problem_of(
        structure,
        data,
        hidden,
        prior,
        Reading(states, weights, missing, unseen, continuous),
        fixed,
        tied,
        n_jobs,
        (sequence, time, lengths),
        gaussian_options,
    )
    problem.expectation.counts = True
    result = climb(
        problem,
        Squarem() if accelerate else EM(),
        gains_little(problem, tol),
        method="squarem" if accelerate else "em",
        restarts=restarts,
        max_iter=max_iter,
        seed=seed,
        checkpoint=checkpoint,
        progress=progress,
    )
    if problem.gaussians is not None:
        template = result.network.template if isinstance(result.network, DynamicNetwork) else result.network
        problem.gaussians.warn(problem.gaussians.read({n: template[n] for n in problem.gaussians.names}))
    return read(result)


def problem_of(
    structure: Any,
    data: Any,
    hidden: Any,
    prior: Prior | None,
    reading: Reading,
    fixed: Iterable[str],
    tied: Iterable[Iterable[str]],
    n_jobs: int | None,
    told: tuple[Any, Any, Any],
    gaussian_options: Mapping[str, Any] | None = None,
) -> Problem:
    """What is to be climbed; over sequences where the structure is one over time. `told`: sequence, time, lengths."""
    sequences = sequences_for(structure, data, told, reading, hidden)
    if sequences is None:
        return Problem(structure, data, hidden, prior, reading, fixed, tied, n_jobs, gaussian_options)
    from bbn.learning.time.baum_welch import SequenceProblem

    if tied:
        raise DataError(
            "tied= is for networks without slices; a dynamic network's families are tied over time"
        )
    given = isinstance(structure, DynamicNetwork)
    return SequenceProblem(sequences.dyn, sequences, hidden, prior, fixed, n_jobs, gaussian_options, given)


def gains_little(problem: Problem, tol: float | None) -> Stop:
    """When a climb stops: a share of the objective, or with Gaussians a gain per row."""
    mixed = problem.gaussians is not None
    least = (1e-6 if mixed else 1e-8) if tol is None else tol

    def stop(old: Point, new: Point) -> bool:
        size = problem.source.total if mixed else abs(old.objective)
        return new.objective - old.objective <= least * size

    return stop


def maximise(problem: Problem, point: Point) -> Array:
    """The M step: expected counts, which are θ times its gradient, plus pseudo-counts, normalised; `fit` on moments."""
    tables, numbers = problem.split(point.tables)
    gradient, moments = problem.split(point.statistics)
    counts = problem.tie(tables * gradient)
    new = problem.normalise(counts + problem.alpha, tables)
    return (
        new
        if problem.gaussians is None
        else problem.joined(new, problem.gaussians.maximise(numbers, moments))
    )


class EM:
    """Plain EM."""

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """The M step, and the E step at where it leads."""
        return problem.evaluate(maximise(problem, point)), None

    def memory_shape(self, size: int) -> None:
        """Nothing is remembered."""


class Squarem:
    """EM with squared extrapolation (see `extrapolated`).

    From θ0, two EM steps give θ1 and θ2, and these a point further on. The memory is θ0 when the last point was a θ1.
    """

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A plain step, then an extrapolated one, in turn."""
        after = maximise(problem, point)
        if memory is None:
            return problem.evaluate(after), point.tables
        guess, steps = extrapolated(memory, point.tables, after)
        if steps > 1.0:
            reached = problem.evaluate(self._inside(problem, guess, after))
            if reached.objective >= point.objective:
                return reached, None
        return problem.evaluate(after), None

    def memory_shape(self, size: int) -> tuple[int, ...]:
        """One point."""
        return (size,)

    def _inside(self, problem: Problem, guess: Array, after: Array) -> Array:
        """The guess, where it left what parameters may be, brought back near the plain step's."""
        (tables, numbers), (safe, known) = problem.split(guess), problem.split(after)
        inside = problem.normalise(np.where(safe > 0, np.maximum(tables, 0.01 * safe), 0.0), safe)
        return (
            inside
            if problem.gaussians is None
            else problem.joined(inside, problem.gaussians.repair(numbers, known))
        )
