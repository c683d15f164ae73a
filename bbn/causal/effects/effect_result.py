"""Effect: what `bbn.effect` found, estimator by estimator, as numbers that know their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bbn.causal.effects.estimate import EffectQuestion, Estimate, Number
from bbn.causal.identification.estimand import Estimand
from bbn.core.display import Table, Tabular
from bbn.core.errors import CollapsedWarning, warn_user
from bbn.core.frozen import Array
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

    from bbn.causal.effects.effect_models import EffectPlan
    from bbn.causal.effects.outcome_regression import OutcomeRegression
    from bbn.results.mixture_posterior import MixturePosterior


POINT = 1e-9
"""An interval no wider than this, for outcomes of size 1, is but rounding."""


class Effect(Tabular):
    """The effect of a treatment on an outcome, as estimated from data.

    Attributes
    ----------
    treatment, outcome
        Names.
    treated, control
        The treatments that are compared.
    event
        The state of the outcome whose probability is compared; None where means are.
    estimates
        Estimator ("g-formula", "inverse weighting", "doubly robust") to its Estimate: `treated`, `control`,
        `average_effect` and `risk_ratio`, each a number with `low` and `high`.
    distributions
        Treatment to the distribution of the outcome if everyone had it, by the g-formula.
    adjusted
        The variables that are adjusted for, or that the treatment depends on; None where another formula is used.
    network
        The network that was fitted, arcs into the treatment cut; None where an estimand was evaluated.
    estimand
        That estimand; None where a network was fitted.

    See Also
    --------
    effect : Finds it.
    """

    def __init__(
        self,
        question: EffectQuestion,
        plan: EffectPlan,
        models: BayesianNetwork | Estimand | OutcomeRegression,
        source: Any = None,
        estimates: Mapping[str, Estimate] | None = None,
        level: float = 0.95,
    ) -> None:
        self._question, self._plan, self._models, self._source = question, plan, models, source
        self.level = level
        self.estimates: dict[str, Estimate] = dict(estimates or {})
        if "g-formula" not in self.estimates:
            one, other = (Number(value) for value in self.pair)
            first = Estimate(one, other).with_intervals(level, question.has_ratio)
            self.estimates = {"g-formula": first, **self.estimates}

    @property
    def treatment(self) -> str:
        """The name of the treatment."""
        return self._plan.treatment

    @property
    def outcome(self) -> str:
        """The name of the outcome."""
        return self._plan.outcome

    @property
    def treated(self) -> State | float:
        """The treatment that is compared with `control`."""
        return self._question.treated

    @property
    def control(self) -> State | float:
        """The treatment that it is compared with."""
        return self._question.control

    @property
    def event(self) -> State | None:
        """The state of the outcome whose probability is compared; None where means are."""
        return self._question.event

    @property
    def adjusted(self) -> frozenset[str] | None:
        """What is adjusted for, or what the treatment depends on; None where another formula is used."""
        return self._plan.adjusted

    @property
    def network(self) -> BayesianNetwork | None:
        """The network that was fitted, in which the treatment has no causes."""
        return self._models if isinstance(self._models, BayesianNetwork) else None

    @property
    def estimand(self) -> Estimand | None:
        """The formula that was evaluated where no network was fitted."""
        return self._models if isinstance(self._models, Estimand) else None

    @cached_property
    def distributions(self) -> dict[Any, Posterior | MixturePosterior]:
        """Treatment to the distribution of the outcome if everyone had it, by the g-formula."""
        x = self._question.treatment
        values: tuple[Any, ...] = x.states
        if isinstance(x, Continuous):
            values = (self.treated, self.control)
        return {value: self.under(value) for value in values}

    def under(self, value: State | float) -> Posterior | MixturePosterior:
        """The distribution of the outcome if everyone had this treatment, by the g-formula.

        Parameters
        ----------
        value : state or float
            The treatment.

        Returns
        -------
        Posterior or MixturePosterior
            Of the outcome.
        """
        name, models = self._plan.treatment, self._models
        if isinstance(models, Estimand):
            return models.evaluate(self._source, do={name: value})
        if not isinstance(models, BayesianNetwork):
            return models.under(value)
        answer: Posterior | MixturePosterior = models.query(self._plan.outcome, do={name: value})
        return answer

    @property
    def pair(self) -> tuple[float, float]:
        """The outcome under both treatments, by the g-formula."""
        one, other = (self._question.value(self.under(value)) for value in (self.treated, self.control))
        return one, other

    @property
    def average_effect(self) -> Number:
        """The outcome under `treated` minus that under `control`, by the g-formula, with its interval."""
        return self.estimates["g-formula"].average_effect

    @property
    def risk_ratio(self) -> Number | None:
        """The event's probability under `treated` over that under `control`; None where means are compared."""
        return self.estimates["g-formula"].risk_ratio

    def _with_estimate(self, method: str, estimate: Estimate) -> Effect:
        """The same with one more estimator."""
        done = estimate.with_intervals(self.level, self._question.has_ratio)
        return self._with({**self.estimates, method: done})

    def _with_draws(self, method: str, treated: Array, control: Array, level: float) -> Effect:
        """The same with intervals of one estimator from draws, at this level for all."""
        found = self._at_level(level)
        own = found.estimates[method].with_draws(treated, control, level, self._question.has_ratio)
        return found._with({**found.estimates, method: own})

    def _at_level(self, level: float) -> Effect:
        """The same with the intervals that have a formula at this level."""
        ratio = self._question.has_ratio
        done = {
            name: one if one.covariance is None else one.with_intervals(level, ratio)
            for name, one in self.estimates.items()
        }
        return self._with(done, level)

    def _without_empty_intervals(self) -> Effect:
        """The same with no interval, and a warning, where one would be a point: no data are as sure as that."""
        kept, empty = {}, []
        for method, one in self.estimates.items():
            size = max(abs(float(one.treated)), abs(float(one.control)))
            if _is_point(one.average_effect, size):
                bare = Estimate(Number(one.treated), Number(one.control))
                kept[method] = bare.with_intervals(self.level, self._question.has_ratio)
                empty.append(method)
                continue
            points: dict[str, Any] = {
                name: Number(number)
                for name in ("treated", "control", "risk_ratio")
                if (number := getattr(one, name)) is not None and _is_point(number, size)
            }
            kept[method] = one._replace(**points)
            empty += [f"{method} ({', '.join(name.replace('_', ' ') for name in points)})"] * bool(points)
        if not empty:
            return self
        warn_user(
            f"the rows leave no spread around the estimate, so there is no interval of {', '.join(empty)}: there are "
            f"too few rows, or {self.outcome!r} is a function of the others in all of them",
            CollapsedWarning,
        )
        return self._with(kept)

    def _with(self, estimates: Mapping[str, Estimate], level: float | None = None) -> Effect:
        return Effect(self._question, self._plan, self._models, self._source, estimates, level or self.level)

    def to_frame(self) -> pd.DataFrame:
        """One row per estimator: the outcome under both treatments, the effect and its interval, the risk ratio."""
        import pandas as pd

        rows = []
        for method, one in self.estimates.items():
            row: dict[str, Any] = {
                "estimator": method,
                "treated": float(one.treated),
                "control": float(one.control),
            }
            effect = one.average_effect
            row |= {"effect": float(effect), "low": effect.low, "high": effect.high}
            if one.risk_ratio is not None:
                ratio = one.risk_ratio
                row |= {
                    "risk_ratio": float(ratio),
                    "risk_ratio_low": ratio.low,
                    "risk_ratio_high": ratio.high,
                }
            rows.append(row)
        return pd.DataFrame(rows)

    def _table(self) -> Table:
        compared = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in (self.treated, self.control)]
        head = ["estimator", *compared, "effect", f"{self.level:.0%} interval"]
        if self._question.has_ratio:
            head.append("risk ratio")
        rows = []
        for method, one in self.estimates.items():
            effect = one.average_effect
            ends = "" if math.isnan(effect.low) else f"{effect.low:.4f} to {effect.high:.4f}"
            row = [method, f"{one.treated:.4f}", f"{one.control:.4f}", f"{effect:.4f}", ends]
            if self._question.has_ratio:
                row.append("" if one.risk_ratio is None else f"{one.risk_ratio:.4f}")
            rows.append(row)
        how = self._models.formula if isinstance(self._models, Estimand) else ""
        title = f"{self._question.measure} under do({self.treatment})"
        return Table(head, rows, title, how)

    def __repr__(self) -> str:
        return (
            f"<Effect of {self.treatment} ({self.treated} against {self.control}) on {self._question.measure}: "
            f"{self.average_effect!r}>"
        )


def _is_point(number: Number, size: float) -> bool:
    """Whether an interval is but rounding, for numbers of this size."""
    return number.high - number.low <= POINT * max(size, abs(float(number)))
