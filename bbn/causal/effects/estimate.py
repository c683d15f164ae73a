"""Numbers that know their intervals, the question that an effect answers, and its estimate by one estimator."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.model.variable import State, Variable
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.posterior import Posterior


class Number(float):
    """A float that also has an interval, from `low` to `high`; these are NaN if there is none.

    >>> Number(0.25, 0.1, 0.4)
    0.25 (0.1 to 0.4)
    """

    __slots__ = ("high", "low")

    low: float
    high: float

    def __new__(cls, value: float, low: float = math.nan, high: float = math.nan) -> Number:
        """Make the number; a float cannot be set later."""
        made = super().__new__(cls, value)
        made.low, made.high = low, high
        return made

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        return self.low, self.high

    def __repr__(self) -> str:
        if math.isnan(self.low):
            return float.__repr__(self)
        return f"{float(self):.6g} ({self.low:.6g} to {self.high:.6g})"

    def __getnewargs__(self) -> tuple[float, float, float]:  # type: ignore[override]  # three, where a float has one
        return float(self), self.low, self.high


class EffectQuestion(NamedTuple):
    """What is compared with what."""

    treatment: Variable
    outcome: Variable
    treated: State | float
    control: State | float
    event: State | None
    """The state of the outcome that is counted; None where numbers are averaged."""

    @property
    def scores(self) -> Array:
        """What each state of the outcome counts."""
        states = self.outcome.states
        return np.array([float(s) if self.event is None else float(s == self.event) for s in states])

    @property
    def has_ratio(self) -> bool:
        """Whether the outcome is a probability, so that a ratio of risks means something."""
        return self.event is not None

    @property
    def measure(self) -> str:
        """What is compared, in a few words."""
        y = self.outcome.name
        return f"mean of {y}" if self.event is None else f"P({y} = {self.event})"

    def value(self, answer: Posterior | MixturePosterior) -> float:
        """What a distribution of the outcome counts."""
        if isinstance(answer, Posterior):
            return float(answer.values @ self.scores)
        return answer.mean


class Estimate(NamedTuple):
    """The outcome under both treatments by one estimator, and how far off it may be."""

    treated: Number
    control: Number
    covariance: Array | None = None
    """(2, 2): of the two, where it has a formula."""
    average_effect: Number = Number(math.nan)
    risk_ratio: Number | None = None
    freedom: tuple[float, float] = (math.inf, math.inf)
    """Degrees of freedom of the two variances."""
    sizes: tuple[float, float] = (math.nan, math.nan)
    """How many rows of equal weight would tell as much of each."""

    def with_intervals(self, level: float, ratio: bool) -> Estimate:
        """The same with intervals from the covariance, if there is one.

        Those of means are Student's t, those of probabilities have pseudo-rows (see `_with_pseudo_rows`), and those of
        their ratio are on the scale of logarithms.
        """
        one, other = float(self.treated), float(self.control)
        share = one / other if other else math.nan
        if self.covariance is None or math.isnan(one - other):
            return self._replace(
                average_effect=Number(one - other), risk_ratio=Number(share) if ratio else None
            )
        if ratio:
            return self._with_pseudo_rows(level, share)
        v = self.covariance
        by_freedom = [float(v[k, k]) ** 2 / self.freedom[k] for k in (0, 1)]
        total = float(v[0, 0] + v[1, 1])
        freedom = total**2 / sum(by_freedom) if sum(by_freedom) > 0 else math.inf
        return self._replace(
            treated=_around(one, one, v[0, 0], level, self.freedom[0]),
            control=_around(other, other, v[1, 1], level, self.freedom[1]),
            average_effect=_around(one - other, one - other, total - 2 * v[0, 1], level, freedom),
        )

    def _with_pseudo_rows(self, level: float, share: float) -> Estimate:
        """Intervals of probabilities: pseudo-rows of both kinds are added to each arm, as many as the level asks for.

        z²/2 of each for one probability (Agresti and Coull 1998), z²/4 for a difference of two (Agresti and Caffo
        2000), with n* = p (1 − p) / variance in place of the number of rows (Korn and Graubard 1998).
        """
        from scipy.special import ndtri

        assert self.covariance is not None
        v = self.covariance
        z2 = float(ndtri((1 + level) / 2)) ** 2
        values = [float(self.treated), float(self.control)]

        def smoothed(k: int, added: float) -> tuple[float, float]:
            p = min(1.0, max(0.0, values[k]))
            n = p * (1 - p) / float(v[k, k]) if v[k, k] > 0 else 0.0
            n = n if n > 0 else self.sizes[k]
            centre = (n * p + added) / (n + 2 * added)
            return centre, centre * (1 - centre) / (n + 2 * added)

        wide, narrow = ([smoothed(k, z2 / part) for k in (0, 1)] for part in (2, 4))
        ends = [_around(values[k], *wide[k], level, math.inf) for k in (0, 1)]
        (p, vp), (q, vq) = narrow
        difference = _around(values[0] - values[1], p - q, vp + vq - 2 * v[0, 1], level, math.inf)
        logs = _around(
            math.nan, math.log(p / q), vp / p**2 + vq / q**2 - 2 * v[0, 1] / (p * q), level, math.inf
        )
        risk = Number(share)
        if not math.isnan(share):
            risk = Number(share, min(share, math.exp(logs.low)), max(share, math.exp(logs.high)))
        return self._replace(treated=ends[0], control=ends[1], average_effect=difference, risk_ratio=risk)

    def with_draws(self, treated: Array, control: Array, level: float, ratio: bool) -> Estimate:
        """The same with intervals between quantiles of draws, stretched where needed to hold the estimate.

        Draws never reach 0 or 1, but estimates do where all of the rows agree; Brown, Cai and DasGupta (2001, section
        4.1) stretch the interval there.
        """
        ends = [(1 - level) / 2, (1 + level) / 2]

        def around(value: float, draws: Array) -> Number:
            known = draws[np.isfinite(draws)]  # resamples without the treatment tell nothing
            if math.isnan(value) or not len(known):
                return Number(value)
            low, high = np.quantile(known, ends).tolist()
            return Number(value, min(low, value), max(high, value))

        one, other = float(self.treated), float(self.control)
        risk = None
        if ratio:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = treated / control
            risk = Number(one / other if other else math.nan)
            if np.isfinite(ratios).all():
                risk = around(float(risk), ratios)
        return Estimate(
            around(one, treated), around(other, control), None, around(one - other, treated - control), risk
        )


def _around(value: float, centre: float, variance: float, level: float, freedom: float) -> Number:
    """A value with an interval of this level, stretched where needed to hold the value."""
    from scipy.special import ndtri, stdtrit

    share = (1 + level) / 2
    quantile = float(ndtri(share) if math.isinf(freedom) else stdtrit(freedom, share))
    half = quantile * math.sqrt(max(float(variance), 0.0))
    if math.isnan(value):
        return Number(value, centre - half, centre + half)
    return Number(value, min(value, centre - half), max(value, centre + half))
