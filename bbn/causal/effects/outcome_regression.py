"""The parametric g-formula for an outcome with states, some of whose causes are numbers (Robins 1986).

P(y | do(x)) = mean over the rows of P(y | x, z_i), where z suffices to adjust for and P(y | x, z) is a multinomial
logistic regression: states as columns of 0 and 1, numbers in units of their spread, no products. Coefficients have the
prior Normal(0, 2.5²) of Gelman et al. (2008), so that they exist where groups have one outcome alone. Variances are by
the delta method from the curvature at the mode, and from how the rows differ in z.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.causal.effects.estimate import EffectQuestion, Estimate, Number
from bbn.core.errors import ConvergenceWarning, DataError, warn_user
from bbn.core.frozen import Array
from bbn.data import CodedTable, DataSource
from bbn.model.variable import State, Variable
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    from bbn.causal.effects.effect_models import EffectPlan

PRIOR_SPREAD = 2.5
"""The standard deviation of a coefficient's prior."""
STEPS = 100
"""Steps of Newton's method at most."""


class OutcomeRegression:
    """P(outcome | treatment, covariates), fitted to rows, with the mean of its predictions over them.

    Parameters
    ----------
    plan : EffectPlan
        What to adjust for.
    source : DataSource
        Coded rows in memory.
    """

    def __init__(self, plan: EffectPlan, source: DataSource) -> None:
        if not isinstance(source, CodedTable):
            raise DataError(
                f"{plan.outcome!r} has states and causes that are numbers: its regression looks at rows, and so needs "
                "data in memory"
            )
        self.block = source.merged()
        self.variables = {v.name: v for v in source.variables}
        self.outcome: Variable = self.variables[plan.outcome]
        self.treatment = plan.treatment
        self.names = (*((plan.treatment,) if plan.acts else ()), *plan.predictors)
        self.weights = self.block.weights / self.block.weights.sum()
        self.n = source.total
        self.units = {name: self._unit(column) for name, column in self.block.numbers.items()}
        self.coefficients, self.covariance = self._fit()

    def _unit(self, column: Array) -> tuple[float, float]:
        centre = float(self.weights @ column)
        return centre, float(np.sqrt(self.weights @ (column - centre) ** 2)) or 1.0

    def under(self, value: State | float) -> Posterior:
        """The distribution of the outcome if everyone had a treatment.

        Parameters
        ----------
        value : state or float
            The treatment.
        """
        return Posterior((self.outcome,), np.array(self.weights @ self._shares(self._design(value))), 0.0)

    def estimate(self, question: EffectQuestion) -> Estimate:
        """What is asked under both treatments, and their covariance.

        Parameters
        ----------
        question : EffectQuestion
            What is compared.
        """
        means, slopes, values = [], [], []
        for value in (question.treated, question.control):
            design = self._design(value)
            shares = self._shares(design)
            mean = shares @ question.scores
            weight = self.weights[:, None] * shares[:, 1:] * (question.scores[1:] - mean[:, None])
            slopes.append((weight.T @ design).ravel())
            means.append(mean)
            values.append(Number(float(self.weights @ mean)))
        apart = np.column_stack(means) - [float(v) for v in values]
        between = (apart * self.weights[:, None]).T @ apart / self.n
        one, other = values
        return Estimate(one, other, np.array(slopes) @ self.covariance @ np.array(slopes).T + between)

    def _design(self, value: State | float | None = None) -> Array:
        """(rows, k): one, then the columns of each cause; the treatment as in the rows unless a value is given."""
        columns = [np.ones((len(self.weights), 1))]
        for name in self.names:
            variable = self.variables.get(name)
            told = value is not None and name == self.treatment
            if variable is None:
                numbers: Any = float(value) if told else self.block.numbers[name]  # type: ignore[arg-type]
                centre, spread = self.units[name]
                columns.append(np.broadcast_to((numbers - centre) / spread, (len(self.weights),))[:, None])
            else:
                codes = np.full(len(self.weights), variable.code(value)) if told else self.block.codes[name]
                columns.append(np.eye(variable.card)[codes][:, 1:])
        return np.column_stack(columns)

    def _shares(self, design: Array, coefficients: Array | None = None) -> Array:
        """(rows, states): the probabilities of the outcome."""
        own = self.coefficients if coefficients is None else coefficients
        logs = np.column_stack([np.zeros(len(design)), design @ own.T])
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def _fit(self) -> tuple[Array, Array]:
        """(states − 1, k) coefficients at the mode, by Newton's method with steps halved, and their covariance."""
        design = self._design()
        k, width = self.outcome.card - 1, design.shape[1]
        times = self.block.weights
        seen = np.eye(k + 1)[self.block.codes[self.outcome.name]]
        precision = np.full((k, width), PRIOR_SPREAD**-2)
        precision[:, 0] = 1e-4
        at = np.zeros((k, width))

        def loss(coefficients: Array) -> float:
            shares = self._shares(design, coefficients)
            likelihood = times @ np.log(np.maximum((shares * seen).sum(axis=1), 1e-300))
            return float(0.5 * (precision * coefficients**2).sum() - likelihood)

        for _ in range(STEPS):
            shares = self._shares(design, at)
            slope = precision * at - ((seen - shares)[:, 1:] * times[:, None]).T @ design
            curvature = _curvature(design, shares[:, 1:], times) + np.diag(precision.ravel())
            step = np.linalg.solve(curvature, slope.ravel()).reshape(k, width)
            size, before = 1.0, loss(at)
            if float((slope * step).sum()) < 1e-12 * (1 + before):  # what is left to gain, twice
                break
            while size > 1e-9 and loss(at - size * step) > before:
                size /= 2
            at = at - size * step
        else:
            warn_user(f"the regression of {self.outcome.name!r} did not converge", ConvergenceWarning)
        shares = self._shares(design, at)
        curvature = _curvature(design, shares[:, 1:], times) + np.diag(precision.ravel())
        return at, np.asarray(np.linalg.inv(curvature), dtype=np.float64)


def _curvature(design: Array, shares: Array, times: Array) -> Array:
    """Minus the second derivatives of the log-likelihood, coefficients of the first state first."""
    k, width = shares.shape[1], design.shape[1]
    found = np.empty((k, width, k, width))
    for a in range(k):
        for b in range(a, k):
            spread = times * shares[:, a] * ((a == b) - shares[:, b])
            found[a, :, b] = (design * spread[:, None]).T @ design
            found[b, :, a] = found[a, :, b].T
    return found.reshape(k * width, k * width)


def needs_regression(arcs: Sequence[tuple[str, str]], numbers: frozenset[str]) -> bool:
    """Whether a variable with states has a parent that is a number, so that no table can say what it does.

    Parameters
    ----------
    arcs
        The structure.
    numbers
        Its variables that are numbers.
    """
    return any(a in numbers and b not in numbers for a, b in arcs)
