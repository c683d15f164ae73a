"""EM of Gaussian emissions with one variance per state, shared by all columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbn.core.frozen import Array
from bbn.learning.gaussian.estimates import GaussianParameters
from bbn.learning.incomplete.em import EM, maximise
from bbn.learning.incomplete.problem import Point, Problem


class SphericalEM(EM):
    """EM in which all columns have one variance in a state."""

    def step(self, problem: Problem, point: Point, memory: Array | None) -> tuple[Point, Array | None]:
        """The M step with one variance per state: Σ scatter / Σ n over the columns, in their own units."""
        families = problem.gaussians
        assert families is not None
        tables, new = problem.split(maximise(problem, point))
        old, stats = families.numbers(problem.split(point.tables)[1]), problem.split(point.statistics)[1]
        moments = [families.moments(i, old[i], stats) for i in range(len(families.names))]
        scatter = sum(m.scatter[:, 0, 0] * families.scale[i] ** 2 for i, m in enumerate(moments))
        n = sum(m.n for m in moments)
        return problem.evaluate(problem.joined(tables, _one_variance(families, new, scatter, n))), None


def spread_evenly(problem: Problem, start: Array) -> Array:
    """A start with the mean variance of the columns in each state."""
    families = problem.gaussians
    assert families is not None
    tables, numbers = problem.split(start)
    own = families.numbers(numbers)
    variances = sum(own[i].variances * families.scale[i] ** 2 for i in range(len(own)))
    return problem.joined(
        tables, _one_variance(families, numbers, variances, np.full(len(own[0].variances), len(own)))
    )


def _one_variance(families: Any, numbers: Array, scatter: Any, n: Any) -> Array:
    made = []
    for i, own in enumerate(families.numbers(numbers)):
        floor = families.standard[i].floor
        shared = (
            np.divide(scatter, n, out=own.variances * families.scale[i] ** 2, where=n > 0)
            / families.scale[i] ** 2
        )
        made.append(GaussianParameters(own.means, own.weights, np.maximum(shared, floor)))
    flat: Array = families.flat(made)
    return flat
