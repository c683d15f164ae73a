"""The tail of importance weights: whether their variance, and with it every standard error, can be believed.

A generalised Pareto distribution is fitted to the largest weights (Zhang and Stephens 2009). Its shape k says how many
moments the weights have: above 0.5 their variance is infinite as far as the samples tell (Vehtari, Simpson, Gelman, Yao
and Gabry 2024), usually because states of large weight are hardly ever drawn; below 0 the weights have a largest one,
and it has been seen. Where almost all samples are wasted, anything above 0 is a bad sign.
"""

from __future__ import annotations

import numpy as np

from bbn.core.frozen import Array

HIGH_K = 0.5
WASTEFUL = 0.02
"""Below this effective share of the samples, an unbounded tail is too heavy whatever its k."""
TAIL = 1000
"""The most weights that make up the tail."""
LEAST_TAIL = 20
"""Fewer weights than this above all others do not make a tail."""


def largest(log_weights: Array) -> Array:
    """The log weights that can be in the tail."""
    if len(log_weights) <= TAIL:
        return log_weights
    return np.partition(log_weights, -TAIL)[-TAIL:]


def pareto_k(tail: Array, n: int) -> float | None:
    """The shape of the tail of n weights, the largest of which are given as logs; None if there is no tail."""
    m = int(min(0.2 * n, 3 * n**0.5, TAIL - 1))
    if m >= len(tail) or m < LEAST_TAIL:
        return None
    ordered = np.sort(tail)
    weights = np.exp(ordered[-m - 1 :] - ordered[-1])
    excess = weights[1:] - weights[0]
    excess = excess[excess > 0]
    return _shape(excess) if len(excess) >= LEAST_TAIL else None


def is_heavy(k: float | None, effective_share: float) -> bool:
    """Whether the tail of the weights is such that standard errors are too small."""
    return k is not None and (k > HIGH_K or (k > 0 and effective_share < WASTEFUL))


def _shape(x: Array) -> float:
    """The shape of a generalised Pareto distribution through ascending x: Zhang and Stephens' estimate.

    The profile likelihood of θ is averaged over a grid; k is then shrunk towards 0.5, as if by ten more samples.
    """
    n = len(x)
    m = 30 + int(n**0.5)
    theta = 1 / x[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * x[int(n / 4 + 0.5) - 1])
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_likelihood = n * (np.log(-theta / k) - k - 1)
    with np.errstate(over="ignore"):
        weights = 1 / np.exp(log_likelihood - log_likelihood[:, None]).sum(axis=1)
    mean = float((theta * weights).sum() / weights.sum())
    return float((n * np.log1p(-mean * x).mean() + 5) / (n + 10))
