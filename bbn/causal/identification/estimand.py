"""Estimand: an effect written in probabilities of what is measured, and its value on a network or on data.

Where the formula conditions on something that never occurs, the effect is not determined, which is an error and never a
guess. The value comes from the compiled engine: see `evaluation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.causal.identification.evaluation import Evaluation, Measured, measured_by
from bbn.causal.identification.expression import (
    Expression,
    Probability,
    as_latex,
    as_text,
    free,
    probabilities,
    tidy,
)
from bbn.causal.identification.gaussian_evaluation import Normal, evaluate_normal
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError, nearest
from bbn.core.frozen import Array, Frozen
from bbn.model.factor import Factor, aligned
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State
from bbn.results.mixture_posterior import MixturePosterior
from bbn.results.posterior import Posterior


class Estimand(Frozen):
    """P(outcome | do(treatment), given), as a function of the measured distribution.

    Attributes
    ----------
    outcome, do, given
        The variables of the question.
    expression
        The formula as a tree: see `bbn.causal.identification.expression`.

    See Also
    --------
    identify : Finds it.

    Examples
    --------
    >>> import bbn
    >>> print(bbn.identify([("Z", "X"), ("Z", "Y"), ("X", "Y")], "Y", do="X"))
    P(Y | do(X)) = Σ_Z P(Y | X, Z) P(Z)
    """

    __slots__ = ("do", "expression", "given", "outcome")

    outcome: tuple[str, ...]
    do: tuple[str, ...]
    given: tuple[str, ...]
    expression: Expression

    def __init__(
        self,
        outcome: tuple[str, ...],
        do: tuple[str, ...],
        given: tuple[str, ...],
        expression: Expression,
    ) -> None:
        self._set(outcome=outcome, do=do, given=given, expression=expression)

    @property
    def formula(self) -> str:
        """The effect and what it equals, as a line of text; an inner X that is summed over is written X′."""
        return f"{self._asked(' | ', 'do', str)} = {as_text(tidy(self.expression), self._roles)}"

    def latex(self) -> str:
        r"""The formula in LaTeX.

        >>> import bbn
        >>> print(bbn.identify([("X", "Y")], "Y", do="X").latex())
        P(Y \mid \mathrm{do}(X)) = P(Y \mid X)
        """
        left = self._asked(r" \mid ", r"\mathrm{do}", lambda name: as_latex(Probability((name,)))[2:-1])
        return f"{left} = {as_latex(tidy(self.expression), self._roles)}"

    @property
    def any_value(self) -> tuple[str, ...]:
        """Variables in the formula whose value makes no difference: the formula holds for every value."""
        return tuple(sorted(free(self.expression) - set(self._roles)))

    @property
    def variables(self) -> tuple[str, ...]:
        """The measured variables that the formula needs."""
        found = {name for p in probabilities(self.expression) for name in (*p.targets, *p.given)}
        return tuple(sorted(found))

    def evaluate(
        self,
        source: Any,
        do: Mapping[str, State | float] | None = None,
        given: Mapping[str, State | float] | None = None,
        *,
        states: Mapping[str, Sequence[State]] | None = None,
        continuous: str | Iterable[str] | None = None,
        weights: Any = None,
        missing: Any = (),
        memory_limit: int | float | str | None = None,
    ) -> Posterior | MixturePosterior:
        """The distribution of the outcome under an intervention.

        Parameters
        ----------
        source
            A network, whose hidden variables play no part; or any table of data, with complete columns for
            `variables`, in which the probabilities are counted. Where all of them are numbers they are taken as
            jointly normal, and the formula is one of means and covariances.
        do
            The state, or the number, of each variable that is set; data need no column for one that the formula does
            not hold.
        given
            The same of each variable observed after that.
        states, weights, missing
            How to read data, as in `bbn.fit`.
        continuous
            Columns of numbers; by default those with fractions, or of more whole numbers than could be states.
        memory_limit
            The most bytes that a table may take.

        Returns
        -------
        Posterior or MixturePosterior
            Over the outcome, axes in the order asked; a normal distribution where it is a number. Its `log_evidence`
            is 0, as the formula does not give it.

        Raises
        ------
        ImpossibleEvidenceError
            If the formula conditions on something that never occurs, so that the effect is not determined.
        EvidenceError, DataError, ModelError
            For values that do not fit, data that lack a column, a mix of numbers and states, and numbers that are
            linear functions of others.

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("campfire")
        >>> effect = bbn.identify(net, "ForestFire", do="Campfire")
        >>> p = effect.evaluate(net, do={"Campfire": "yes"})
        >>> abs(p["yes"] - net.do({"Campfire": "yes"}).query("ForestFire")["yes"]) < 1e-12
        True
        """
        numeric = [continuous] if isinstance(continuous, str) else continuous
        options = {"states": states, "weights": weights, "missing": missing, "continuous": numeric}
        measured = measured_by(source, (*self.variables, *self.outcome), options, memory_limit)
        values = {**self._states(do, self.do, "do"), **self._states(given, self.given, "given")}
        for name in [name for name in values if name not in self.variables]:  # it makes no difference
            value = values.pop(name)
            if isinstance(source, BayesianNetwork):
                own = source.variable(name)
                _ = own.number(value) if isinstance(own, Continuous) else own.code(value)
        if isinstance(measured, Normal):
            if len(self.outcome) > 1:
                raise EvidenceError(
                    f"{self.outcome[0]!r} is continuous, and has no joint posterior; ask for one outcome"
                )
            mean, variance = self.normal_on(measured, values)
            whole = (np.ones(1), mean.reshape(1), variance.reshape(1), 0.0)
            return MixturePosterior(Continuous(self.outcome[0]), (), *whole)
        answer = self.value_on(measured, values)
        variables = tuple(measured.variable(name) for name in self.outcome)
        return Posterior(variables, np.array(answer / answer.sum()), 0.0)

    def normal_on(self, normal: Normal, values: Mapping[str, Any]) -> tuple[Array, Array]:
        """The mean and the variance of the outcome, of variables that are jointly normal.

        Parameters
        ----------
        normal : Normal
            Their joint distribution, or one for each draw.
        values : mapping
            The number of each variable in `do` and `given`.
        """
        fixed = {name: normal.variable(name).number(value) for name, value in values.items()}
        return evaluate_normal(self.expression, normal, self.outcome[0], fixed)

    def value_on(self, measured: Measured, values: Mapping[str, Any], kept: tuple[str, ...] = ()) -> Array:
        """The distribution of the outcome as an array, with probabilities from any source of them.

        Parameters
        ----------
        measured : Measured
            What gives the variables and their joints: see `bbn.causal.identification.evaluation`.
        values : mapping
            The state of each variable in `do` and `given`.
        kept : tuple of str
            Further axes that `measured` gives, such as one for draws; they come first.

        Returns
        -------
        ndarray
            Axes: those in `kept`, then the outcome's.
        """
        fixed = {}
        for name, value in values.items():
            variable = measured.variable(name)
            fixed[name] = variable.states[variable.code(value)]
        evaluation = Evaluation(measured)
        found = self._averaged(evaluation, evaluation.value(self.expression, fixed), kept)
        if np.isnan(found.values).any():
            which = evaluation.undefined[0] if evaluation.undefined else "a conditional probability"
            raise ImpossibleEvidenceError(
                f"{self._asked(' | ', 'do', str)} is not determined: it needs {which}, which never occurs; ask for a "
                "treatment that does occur there, or merge states",
                dict(fixed),
            )
        return found.permute((*kept, *self.outcome)).values

    def _averaged(self, evaluation: Evaluation, found: Factor, kept: tuple[str, ...]) -> Factor:
        """The mean over what may have any value, where the formula is defined."""
        extra = [name for name in found.names if name not in self.outcome and name not in kept]
        if not extra:
            return found
        weights = evaluation.value(Probability(tuple(extra)), {})
        variables, values, shares = aligned(found, weights, "average")
        values, shares = np.broadcast_arrays(values, shares)
        axes = tuple(i for i, v in enumerate(variables) if v.name in extra)
        others = tuple(i for i in range(len(variables)) if i not in axes)
        hidden = tuple(i for i in others if variables[i].name not in kept)
        defined = ~np.isnan(values).any(axis=hidden, keepdims=True)
        shares = np.where(defined, shares, 0.0)
        with np.errstate(invalid="ignore"):
            mean = np.where(defined, values * shares, 0.0).sum(axis=axes) / shares.sum(axis=axes)
        return Factor.trusted(tuple(variables[i] for i in others), np.asarray(mean))

    @property
    def _roles(self) -> tuple[str, ...]:
        return (*self.outcome, *self.do, *self.given)

    def _asked(self, bar: str, do: str, written: Any) -> str:
        def listed(names: Iterable[str]) -> str:
            return ", ".join(map(written, names))

        conditions = [*([f"{do}({listed(self.do)})"] if self.do else []), *map(written, self.given)]
        return f"P({listed(self.outcome)}{bar + ', '.join(conditions) if conditions else ''})"

    def _states(self, values: Mapping[str, Any] | None, names: tuple[str, ...], what: str) -> dict[str, Any]:
        found = {} if values is None else values
        if not isinstance(found, Mapping):
            raise EvidenceError(f"{what} is a mapping from variable to state, found {values!r}")
        for name in found:
            if name not in names:
                raise EvidenceError(
                    f"{what} names {name!r}, which the estimand does not{nearest(name, names)}"
                )
        left = [name for name in names if name not in found]
        if left:
            raise EvidenceError(
                f"{what} needs a state of {', '.join(map(repr, left))}: {what}={{{left[0]!r}: …}}"
            )
        return dict(found)

    def __str__(self) -> str:
        return self.formula

    def __repr__(self) -> str:
        return f"<Estimand {self.formula}>"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"
