"""Risk: the distribution of the total utility under a policy, its quantiles, and its certainty equivalent.

The joint of all variables that a utility depends on is asked of the network in which the decisions follow the policy;
settings with the same total are then added up. Where that joint would not fit, `n_samples` draws from the network
instead; nothing is sampled unless asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError, ModelError, shown
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.threads import limited
from bbn.decisions.elimination import INSTEAD
from bbn.decisions.problem import terms
from bbn.decisions.solve import solve, with_policy
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence, as_mapping

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIGITS = 12
"""Totals that agree to this many digits count as one."""
SHOWN = 20
"""The most values that are printed."""


class RiskProfile(Tabular, Frozen):
    """The distribution of the total utility.

    Attributes
    ----------
    values
        The totals that can come out, ascending.
    probabilities
        How probable each is.
    n_samples
        How many draws it is estimated from; None where it is exact.

    >>> import bbn
    >>> profile = bbn.example("oil_wildcatter").risk_profile()
    >>> profile.values.tolist(), profile.probabilities.round(3).tolist()
    ([-80.0, -10.0, 40.0, 190.0], [0.2, 0.41, 0.21, 0.18])
    >>> round(profile.mean, 6), profile.quantile(0.5), round(profile.probability(below=0), 6)
    (22.5, -10.0, 0.61)
    """

    __slots__ = ("n_samples", "probabilities", "values")

    values: Array
    probabilities: Array
    n_samples: int | None

    def __init__(self, values: Array, probabilities: Array, n_samples: int | None = None) -> None:
        self._set(values=read_only(values), probabilities=read_only(probabilities), n_samples=n_samples)

    @property
    def mean(self) -> float:
        """The expected utility."""
        return float(self.values @ self.probabilities)

    @property
    def variance(self) -> float:
        """The variance of the total utility."""
        return float((self.values - self.mean) ** 2 @ self.probabilities)

    @property
    def std(self) -> float:
        """The standard deviation of the total utility."""
        return math.sqrt(self.variance)

    def probability(self, below: float = -math.inf, at_least: float = math.inf) -> float:
        """The probability of a total below one number, or of at least another.

        Parameters
        ----------
        below : float
            Count the totals below this number; `probability(below=0)` is the probability of a loss.
        at_least : float
            Count the totals of at least this number.

        Returns
        -------
        float
            The probability.
        """
        chosen = (self.values < below) | (self.values >= at_least)
        return float(self.probabilities[chosen].sum())

    def quantile(self, q: float) -> float:
        """The smallest total that is not exceeded with probability q or more.

        Parameters
        ----------
        q : float
            From 0 to 1.

        Returns
        -------
        float
            One of `values`.

        Raises
        ------
        ValueError
            `q` is not a probability.
        """
        if not 0 <= q <= 1:
            raise ValueError(f"q is {q!r}; expected a number from 0 to 1")
        reached = np.cumsum(self.probabilities)
        return float(self.values[min(int(np.searchsorted(reached, q - 1e-12)), len(self.values) - 1)])

    def certainty_equivalent(self, risk_tolerance: float) -> float:
        """The sure amount that is as good, under the utility function −exp(−u/R): −R ln E[exp(−u/R)].

        Parameters
        ----------
        risk_tolerance : float
            R; the smaller, the more risk is avoided. Below 0 it is sought.

        Returns
        -------
        float
            The certainty equivalent.

        Raises
        ------
        ValueError
            R is 0 or not finite.
        """
        if not math.isfinite(risk_tolerance) or risk_tolerance == 0:
            raise ValueError(f"risk_tolerance is {risk_tolerance!r}; expected a finite number that is not 0")
        exponents = -self.values / risk_tolerance
        peak = float(exponents.max())
        return -risk_tolerance * (peak + math.log(float(np.exp(exponents - peak) @ self.probabilities)))

    def plot(self, axes: Axes | None = None) -> Axes:
        """The probability of at least each total, as steps; the mean is marked.

        Parameters
        ----------
        axes : matplotlib Axes, optional
            Where to draw; new ones unless given.

        Returns
        -------
        matplotlib Axes
            Those drawn on.
        """
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(5.5, 3.2), layout="constrained")[1]
        at_least = np.append(self.probabilities[::-1].cumsum()[::-1], 0.0)
        span = (self.values[-1] - self.values[0]) * 0.05 or 1.0
        edges = np.concatenate([[self.values[0] - span], self.values, [self.values[-1] + span]])
        axes.stairs(np.minimum(at_least, 1.0), edges, baseline=None, color="#4878a8", linewidth=1.8)
        axes.axvline(self.mean, color="#1b1f24", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"mean {self.mean:.4g}", (self.mean, 1.0), (4, 2), textcoords="offset points", fontsize=8
        )
        axes.set_xlabel("total utility")
        axes.set_ylabel("P(at least this much)")
        axes.set_ylim(0, 1.1)
        return axes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RiskProfile):
            return NotImplemented
        return np.array_equal(self.values, other.values) and np.array_equal(
            self.probabilities, other.probabilities
        )

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.probabilities.tobytes()))

    def __repr__(self) -> str:
        return f"<RiskProfile of {len(self.values)} totals, mean {self.mean:.6g}, std {self.std:.6g}>"

    def _table(self) -> Table:
        order = np.argsort(-self.probabilities, kind="stable")[:SHOWN]
        rows: list[list[Cell]] = [
            [f"{self.values[i]:.6g}", f"{self.probabilities[i]:.6g}", Bar(float(self.probabilities[i]))]
            for i in sorted(order.tolist())
        ]
        left_out = len(self.values) - len(rows)
        note = f"mean {self.mean:.6g}, standard deviation {self.std:.6g}"
        if left_out:
            note += f"; {left_out} less probable totals are not shown"
        return Table(["total utility", "probability", ""], rows, "", note)

    def __reduce__(self) -> tuple[Any, ...]:
        return RiskProfile, (self.values, self.probabilities, self.n_samples)


@limited(INSTEAD)
def risk_profile(
    dn: DecisionNetwork,
    policy: Mapping[str, Any] | None = None,
    evidence: Evidence | None = None,
    *,
    n_samples: int | None = None,
    seed: Any = None,
    memory_limit: int | float | str | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> RiskProfile:
    """See `DecisionNetwork.risk_profile`; the options are those of `solve`, for the best policy."""
    if any(u.continuous_parents for u in dn.utilities):
        raise ModelError("a utility depends on a continuous variable; a risk profile needs discrete ones")
    evidence = dict(as_mapping(evidence))
    made = {d.name: evidence.pop(d.name) for d in dn.decisions if d.name in evidence}
    if policy is None:
        policy = solve(dn, {**evidence, **made}, memory_limit=memory_limit, **options).policy
    elif not isinstance(policy, Mapping):
        raise EvidenceError(f"a policy is a mapping from decision to rule, found {shown(policy)}")
    net = with_policy(dn, {**policy, **made})
    parts = terms(dn)
    variables = tuple(dict.fromkeys(v for axes, _ in parts for v in axes))
    if not variables:
        return RiskProfile(np.array([float(sum(t for _, t in parts))]), np.ones(1))
    names = [v.name for v in variables]
    if n_samples is not None:
        return _sampled(net, names, parts, evidence, n_samples, seed)
    joint = net.query(names, evidence, memory_limit=memory_limit)
    total = np.zeros([v.card for v in variables])
    for axes, table in parts:
        order = sorted(range(len(axes)), key=lambda i: variables.index(axes[i]))
        total = total + table.transpose(order).reshape([v.card if v in axes else 1 for v in variables])
    return _grouped(total.ravel(), joint.values.ravel())


def _sampled(
    net: Any, names: list[str], parts: Any, evidence: dict[str, Any], n_samples: int, seed: Any
) -> RiskProfile:
    rows = net.sample(n_samples, evidence, seed)
    codes = {name: rows[name].cat.codes.to_numpy() for name in names}
    total = np.zeros(n_samples)
    for axes, table in parts:
        total = total + table[tuple(codes[v.name] for v in axes)]
    found = _grouped(total, np.full(n_samples, 1.0 / n_samples))
    return RiskProfile(found.values, found.probabilities, n_samples)


def _grouped(totals: Array, weights: Array) -> RiskProfile:
    """The distinct totals, those that differ only by rounding put together, with their probabilities."""
    possible = weights > 0
    totals, weights = totals[possible], weights[possible]
    order = np.argsort(totals, kind="stable")
    totals, weights = totals[order], weights[order]
    close = 10.0**-DIGITS * max(1.0, float(np.abs(totals).max()))
    starts = np.flatnonzero(np.concatenate([[True], np.diff(totals) > close]))
    return RiskProfile(totals[starts].copy(), np.add.reduceat(weights, starts))
