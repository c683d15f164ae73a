"""Expectation maximisation: tables from data with missing values and with variables that nobody has seen.

    E: N_jk = Σ_d P(x = k, parents = j | d)        M: θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

(Dempster, Laird and Rubin 1977; Lauritzen 1995). Each step raises ln P(data) + Σ α ln θ or leaves it. A step costs one
pass over the distinct rows, each of which visits the cells of the junction tree that agree with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.frozen import Array
from bbn.learning.ascent import Point, Problem, climb
from bbn.learning.priors import Prior
from bbn.learning.result import FitResult
from bbn.variable import State


def fit_em(
    structure: Any,
    data: Any,
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None = None,
    prior: Prior | None = None,
    *,
    restarts: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-8,
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
) -> FitResult:
    """Learn the tables of a structure from incomplete data by EM.

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
    restarts
        How many starts to climb from; the best is kept. All but a network that was given are drawn at random, each row
        uniformly from the simplex, which breaks the symmetry between states of a hidden variable.
    max_iter, tol
        A climb stops when a step gains less than `tol` of the objective's size, or after `max_iter` steps.
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

    Returns
    -------
    FitResult

    >>> rows = {"Rain": ["yes", "no", None, "yes"], "Wet": ["yes", "no", "yes", None]}
    >>> result = fit_em([("Rain", "Wet")], rows, seed=0)
    >>> result.converged, result.network["Rain"].table.round(3)
    (True, array([0.25, 0.75]))
    """
    problem = Problem(
        structure,
        data,
        hidden,
        prior,
        states,
        fixed,
        tied,
        n_jobs,
        weights=weights,
        missing=missing,
        unseen=unseen,
    )

    def stop(old: Point, new: Point) -> bool:
        return new.objective - old.objective <= tol * abs(old.objective)

    return climb(
        problem,
        Squarem() if accelerate else EM(),
        stop,
        method="squarem" if accelerate else "em",
        restarts=restarts,
        max_iter=max_iter,
        seed=seed,
        checkpoint=checkpoint,
        progress=progress,
    )


def maximise(problem: Problem, point: Point) -> Array:
    """The M step: expected counts, which are θ times its gradient, plus pseudo-counts, normalised."""
    counts = problem.tie(point.tables * point.gradient)
    return problem.normalise(counts + problem.alpha, point.tables)


class EM:
    """Plain EM."""

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """The M step, and the E step at where it leads."""
        return problem.look(maximise(problem, point)), None


class Squarem:
    """EM with squared extrapolation, scheme S3 of Varadhan and Roland (2008).

    From θ0, two EM steps give θ1 and θ2; with r = θ1 − θ0 and v = (θ2 − θ1) − r the extrapolated point is
    θ0 + 2 s r + s² v, s = |r| / |v|. The memory is θ0 when the last point was a θ1.
    """

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """A plain step, then an extrapolated one, in turn."""
        after = maximise(problem, point)
        if memory is None:
            return problem.look(after), point.tables
        r = point.tables - memory
        v = (after - point.tables) - r
        length = float(np.linalg.norm(v))
        s = max(1.0, float(np.linalg.norm(r)) / length) if length > 0 else 1.0
        if s > 1.0:
            guess = np.where(after > 0, np.maximum(memory + 2 * s * r + s * s * v, 0.01 * after), 0.0)
            reached = problem.look(problem.normalise(guess, after))
            if reached.objective >= point.objective:
                return reached, None
        return problem.look(after), None
