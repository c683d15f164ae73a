"""The climb that EM and gradient ascent share: steps from one or more starts until a step gains too little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from bbn.core.errors import DataError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.core.progress import parts_like, progress_bar
from bbn.core.threads import REASONS, STOPS, reason_of
from bbn.data.error_places import located
from bbn.kernels.watch import check
from bbn.learning.incomplete.checkpoint import Checkpoint, ClimbTrace, malformed
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.incomplete.problem import Point, Problem
from bbn.learning.structure.constraints import ranked, tie_of


class Climber(Protocol):
    """A method: how to go from a point to the next, with whatever memory it needs as an array."""

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """The next point."""

    def memory_shape(self, size: int) -> tuple[int, ...] | None:
        """The shape of the memory where a point has `size` numbers; None if the method keeps none."""


Stop = Callable[[Point, Point], bool]
"""Whether a step from one point to the next gained too little to go on."""


def climb(
    problem: Problem,
    climber: Climber,
    stop: Stop,
    *,
    method: str,
    restarts: int,
    max_iter: int,
    seed: int | np.random.Generator | None,
    checkpoint: Any,
    progress: bool | None,
    starts: Sequence[Array] | None = None,
) -> FitResult:
    """Climb from each start in turn and keep the best: the given network first, then tables drawn at random.

    Of those that tie the first is kept. One that ends with a variance at its floor, where a likelihood means little, is
    kept only if they all do.
    """
    if restarts < 1 or max_iter < 0:
        raise ValueError(
            f"restarts is {restarts} and max_iter {max_iter}; expected at least 1 and at least 0"
        )
    if starts is None:
        generator = np.random.default_rng(seed)
        first = problem.start_tables() if problem.given else problem.random_tables(generator)
        starts = [first, *(problem.random_tables(generator) for _ in range(restarts - 1))]
    fingerprint = problem.fingerprint(method, seed if isinstance(seed, int) else None)
    saved = Checkpoint(checkpoint, fingerprint, len(starts[0]), climber.memory_shape(len(starts[0])))
    traces = saved.traces[:restarts]
    _check_saved(problem, traces, saved.path)
    with parts_like(progress), progress_bar(progress, restarts * max_iter, method, "step") as advance:
        for k in range(restarts):
            before = traces[k] if k < len(traces) else None
            if before is not None and before.reason == "converged":
                continue
            try:
                trace = _climb_once(
                    problem,
                    climber,
                    stop,
                    before or ClimbTrace(starts[k]),
                    max_iter,
                    lambda trace: saved.save([*traces[:k], trace, *traces[k + 1 :]]),  # noqa: B023
                    advance,
                )
            except STOPS as stop:  # before the first look at the data from this start
                reason = reason_of(stop)
                if not traces:
                    raise
                traces[-1] = traces[-1]._replace(reason=reason)
                break
            traces[k : k + 1] = [trace]
            saved.save(traces, now=True)
            if trace.reason in REASONS:
                break
    sound = [trace for trace in traces if not problem.collapsed(trace.tables)] or traces
    reached = np.array([trace.objectives[-1] for trace in sound])
    best = sound[int(ranked(reached, tie_of(problem.source.total))[0])]
    reason = traces[-1].reason if traces[-1].reason in REASONS else best.reason
    finals = [trace.objectives[-1] for trace in traces]
    return FitResult(problem.network(best.tables), best.log_likelihoods, best.objectives, reason, finals)


def _climb_once(
    problem: Problem,
    climber: Climber,
    stop: Stop,
    trace: ClimbTrace,
    max_iter: int,
    save: Callable[[ClimbTrace], None],
    advance: Callable[..., object],
) -> ClimbTrace:
    """Climb on from where a trace ends."""
    point = problem.evaluate(trace.tables)
    if not trace.objectives:
        trace = trace.on(point, None)
    try:
        while trace.n_steps < max_iter:
            check()
            previous = point
            point, memory = climber.step(problem, point, trace.memory)
            trace = trace.on(point, memory)
            advance(1, log_likelihood=f"{point.log_likelihood:.9g}")
            if stop(previous, point):
                return trace._replace(reason="converged")
            save(trace)
    except STOPS as stop:
        return trace._replace(reason=reason_of(stop))
    return trace._replace(reason="max_iter")


def _check_saved(problem: Problem, traces: Sequence[ClimbTrace], path: Any) -> None:
    """DataError if the climbs of a checkpoint are not at tables, or not at what these data give."""
    for trace in traces:
        tables, gaussians = problem.split(trace.tables)
        numbers = [] if problem.gaussians is None else problem.gaussians.numbers(gaussians)
        with located(str(path)):
            if (tables < 0).any() or (abs(problem.row_sums(tables) - 1) > 1e-6).any():
                raise malformed("a table", "a row that is not a distribution", "numbers that add up to 1")
            if not all((own.variances > 0).all() for own in numbers):
                raise malformed("a Gaussian", "a variance of 0 or less", "a positive one")
    for trace in traces[-1:]:
        told = trace.log_likelihoods[-1]
        try:
            found = problem.evaluate(trace.tables).log_likelihood
        except ImpossibleEvidenceError:
            found = -np.inf
        if not (found == told or abs(found - told) <= 1e-9 * abs(told) + 1e-9):
            raise DataError(
                f"{path}: the checkpoint says that the log-likelihood is {told!r}, but these data give {found!r}: "
                "it was written for other data; remove it to start anew"
            )
