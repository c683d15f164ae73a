"""Risk tolerance in an elimination: each utility as a factor exp(−u/R), and the certainty equivalent that comes out."""

from __future__ import annotations

import math

import numpy as np

from bbn.core.frozen import Array
from bbn.decisions.elimination import MIN, MOST, Answer
from bbn.decisions.problem import DecisionProblem

WIDEST = 700.0
"""The largest range of the utilities, in risk tolerances: beyond it, exp(−u/R) is 0 in a double."""


def attitude(problem: DecisionProblem, scale: float | None) -> tuple[Array, float]:
    """The cells with each utility u as a factor, and the sum of what was taken out of them; as they are without risk.

    The factor is exp(−(u − m)/R), m the least utility (the greatest where risk is sought), so it is at most 1.
    """
    if scale is None:
        return problem.cells, 0.0
    cells, shift, width = problem.cells.copy(), 0.0, 0.0
    for tab in problem.utilities:
        part = cells[tab.start : tab.start + math.prod(problem.cards[v] for v in tab.scope)]
        base = part.min() if scale > 0 else part.max()
        width += float(part.max() - part.min())
        part[:] = np.exp((base - part) / scale)
        shift += float(base)
    if width > WIDEST * abs(scale):
        raise ValueError(
            f"risk_tolerance is {scale:g}, but the utilities range over {width:g}; "
            f"expected at least {width / WIDEST:.3g}"
        )
    return cells, shift


def goal_of(scale: float | None) -> int | None:
    """What decisions make of a product of factors: least where risk is avoided, greatest where it is sought."""
    return None if scale is None else MIN if scale > 0 else MOST


def objective(answer: Answer, scale: float | None, shift: float) -> float:
    """The expected value; with risk, the certainty equivalent without its part from P(evidence)."""
    if scale is None:
        return answer.value
    if not answer.weight > 0:
        return -math.inf
    return shift - scale * (math.log(answer.weight) + answer.log_scale)
