"""How far one mixture of Gaussians is from another: the divergence of Kullback and Leibler, by adaptive quadrature.

KL(a ‖ b) = Σ_k w_k ∫ φ(u) [ln a(x) − ln b(x)] du with x = m_k + s_k u, over the components (w, m, s) of a. Each
integral over ±`TAIL` is cut at the components that are narrower, and halved further until the rule on an interval and
the sum of those on its halves agree (Gander and Gautschi 2000, with Gauss-Legendre rules). The cost is that of the
density at each point: the points number some hundreds per component.
"""

from __future__ import annotations

import math

import numpy as np

from bbn.core.frozen import Array
from bbn.results.mixture_posterior import MixturePosterior

ERROR = 1e-9
"""The divergence is this close to the truth, in nats."""
TAIL = 9.0
"""What is further out, in standard deviations, has a probability of 2e-19."""
POINTS = 15
"""The points of the rule on an interval."""
ROUNDS = 60
"""An interval is halved no more often than this: rounding would never agree."""
EDGES = np.array([-TAIL, -5.0, -2.0, 0.0, 2.0, 5.0, TAIL])
"""Cut points of the integral over a component, and of those over wider ones near it, in standard deviations."""
CELLS = 1 << 20
"""The most pairs of points and components whose densities are computed at once."""


def mixture_divergence(after: MixturePosterior, before: MixturePosterior) -> float:
    """KL(after ‖ before) in nats, to an error of `ERROR`; components without a variance are left out."""
    a, b = _Mixture(after), _Mixture(before)
    nodes, weights = np.polynomial.legendre.leggauss(POINTS)

    def integrals(component: Array, low: Array, high: Array) -> Array:
        """∫ w φ(u) ln(a / b) du over an interval of each component."""
        half = 0.5 * (high - low)[:, None]
        u = 0.5 * (high + low)[:, None] + half * nodes
        centre, offset = a.means[component], a.deviations[component][:, None] * u
        ratio = a.log_pdf(centre, offset) - b.log_pdf(centre, offset)
        inner = np.exp(-0.5 * u**2) / math.sqrt(2 * math.pi) * ratio
        return np.asarray(a.weights[component] * ((inner * half) @ weights))

    component, low, high = _intervals(a, b)
    whole = integrals(component, low, high)
    allowed = ERROR / (4 * max(len(whole), 1))
    total = 0.0
    for _ in range(ROUNDS):
        middle = 0.5 * (low + high)
        left, right = integrals(component, low, middle), integrals(component, middle, high)
        apart = np.abs(left + right - whole) > allowed
        total += float((left + right)[~apart].sum())
        if not apart.any():
            return max(0.0, total)
        component = np.tile(component[apart], 2)
        low, high = np.append(low[apart], middle[apart]), np.append(middle[apart], high[apart])
        whole = np.append(left[apart], right[apart])
    return max(0.0, total + float(whole.sum()))


class _Mixture:
    """The components that have a weight and a variance, as arrays."""

    def __init__(self, mixture: MixturePosterior) -> None:
        inside = (mixture.weights > 0) & (mixture.variances > 0)
        self.weights, self.means = mixture.weights[inside], mixture.means[inside]
        self.deviations = np.sqrt(mixture.variances[inside])
        self.logs = np.log(self.weights) - np.log(self.deviations)

    def log_pdf(self, centre: Array, offset: Array) -> Array:
        """ln p(centre + offset) + ln √2π, (n, points); apart from each other, the two lose no digits of narrow ones."""
        found = np.empty(offset.shape)
        step = max(1, CELLS // (max(1, len(self.means)) * POINTS))
        for start in range(0, len(centre), step):
            rows = slice(start, start + step)
            from_means = centre[rows, None] - self.means
            z = (from_means[:, None, :] + offset[rows, :, None]) / self.deviations
            found[rows] = np.logaddexp.reduce(self.logs - 0.5 * z**2, axis=-1)
        return found


def _intervals(a: _Mixture, b: _Mixture) -> tuple[Array, Array, Array]:
    """The intervals to begin with: the component of `a` that each belongs to, and its ends, in deviations."""
    means, deviations = np.append(a.means, b.means), np.append(a.deviations, b.deviations)
    component, low, high = [], [], []
    for k, (mean, deviation) in enumerate(zip(a.means, a.deviations, strict=True)):
        narrow = deviations < 0.5 * deviation
        cuts = ((means[narrow, None] - mean) + deviations[narrow, None] * EDGES) / deviation
        cuts = np.unique(np.append(EDGES, cuts[np.abs(cuts) < TAIL]))
        component.append(np.full(len(cuts) - 1, k))
        low.append(cuts[:-1])
        high.append(cuts[1:])
    if not component:
        return np.empty(0, int), np.empty(0), np.empty(0)
    return np.concatenate(component), np.concatenate(low), np.concatenate(high)
