"""The k most probable assignments, from any procedure that finds the best one (Lawler 1972).

When x is the best assignment in a set, the rest of the set splits into parts, one per variable: those that
agree with x on the variables before it and differ from x on it. The next best overall is the best of the
bests of all parts. Agreeing and differing are likelihoods of zeros and ones, so the observed variables stay
the same and an engine's plan for them serves throughout. Each answer costs one call per variable at most.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model

Best = Callable[[Findings], tuple[dict[str, int], float]]
"""Findings to the best assignment of what they leave unobserved and its ln P, −inf if there is none."""


def k_best(best: Best, model: Model, findings: Findings, k: int) -> list[tuple[dict[str, int], float]]:
    """The k best assignments as (codes, ln P), best first; fewer where fewer are possible."""
    free = [v.name for v in model.variables if v.name not in findings.hard]
    heap: list[tuple[float, int, dict[str, int], Findings, int]] = []
    pushed = 0

    def push(part: Findings, n_fixed: int) -> None:
        nonlocal pushed
        codes, log_probability = best(part)
        if log_probability > -math.inf:
            heapq.heappush(heap, (-log_probability, pushed, codes, part, n_fixed))
            pushed += 1

    answers: list[tuple[dict[str, int], float]] = []
    push(findings, 0)
    while heap:
        check()
        negative, _, codes, part, n_fixed = heapq.heappop(heap)
        answers.append((codes, -negative))
        if len(answers) == k:
            break
        agreed = dict(part.likelihood)
        for i, name in enumerate(free[n_fixed:], start=n_fixed):
            allowed = agreed.get(name, np.ones(model.variable(name).card))
            same = np.zeros_like(allowed)
            same[codes[name]] = allowed[codes[name]]
            if (allowed != same).any():
                push(Findings(part.hard, {**agreed, name: allowed - same}, {}), i)
            agreed[name] = same
    return answers
