"""Estimand: an effect written in probabilities of what is measured, and its value on a network or on data.

Each probability P(a | b) is asked of the network's engine, or counted in the data; sums of products are run on the
same compiled engine, as the factor graph that they are. A conditional probability given something of probability 0 is
undefined: it may stand where it is multiplied by 0, and where it is not the effect is not determined, which is an error
and never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bbn.causal.expression import (
    Expression,
    Probability,
    Product,
    Quotient,
    Sum,
    as_latex,
    as_text,
    free,
    probabilities,
    tidy,
)
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError, ModelError, nearest
from bbn.core.frozen import Array, Frozen
from bbn.data import as_source, complete_data
from bbn.model.factor import Factor, aligned
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable
from bbn.results.posterior import Posterior


class Estimand(Frozen):
    """P(outcome | do(treatment), given), as a function of the measured distribution.

    Attributes
    ----------
    outcome, do, given
        The variables of the question.
    expression
        The formula as a tree: see `bbn.causal.expression`.

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
        """Variables in the formula whose value makes no difference: it holds for each."""
        return tuple(sorted(free(self.expression) - set(self._roles)))

    @property
    def variables(self) -> tuple[str, ...]:
        """The measured variables that the formula needs."""
        found = {name for p in probabilities(self.expression) for name in (*p.targets, *p.given)}
        return tuple(sorted(found))

    def evaluate(
        self,
        source: Any,
        do: Mapping[str, State] | None = None,
        given: Mapping[str, State] | None = None,
        *,
        states: Mapping[str, Sequence[State]] | None = None,
        weights: Any = None,
        missing: Any = (),
        memory_limit: int | float | str | None = None,
    ) -> Posterior:
        """The distribution of the outcome under an intervention.

        Parameters
        ----------
        source
            A network, whose hidden variables play no part; or any table of data, with complete columns for
            `variables`, in which the probabilities are counted.
        do
            The state of each variable that is set.
        given
            The state of each variable observed after that.
        states, weights, missing
            How to read data, as in `bbn.fit`.
        memory_limit
            The most bytes that a table may take.

        Returns
        -------
        Posterior
            Over the outcome, axes in the order asked. Its `log_evidence` is 0: the formula does not speak of it.

        Raises
        ------
        ImpossibleEvidenceError
            If the formula conditions on something that never occurs, so that the effect is not determined.
        EvidenceError, DataError, ModelError
            For values that do not fit, data that miss a column, and continuous variables (`bbn.effect` takes those).

        Examples
        --------
        >>> import bbn
        >>> net = bbn.example("campfire")
        >>> effect = bbn.identify(net, "ForestFire", do="Campfire")
        >>> p = effect.evaluate(net, do={"Campfire": "yes"})
        >>> abs(p["yes"] - net.do({"Campfire": "yes"}).query("ForestFire")["yes"]) < 1e-12
        True
        """
        told = _Network(source, memory_limit) if isinstance(source, BayesianNetwork) else None
        options = {"states": states, "weights": weights, "missing": missing}
        measured: Measured = told or _Data(source, self.variables, self.outcome, options)
        values = {**self._states(do, self.do, "do"), **self._states(given, self.given, "given")}
        fixed = {
            name: measured.variable(name).states[measured.variable(name).code(v)]
            for name, v in values.items()
        }
        evaluation = _Evaluation(measured)
        found = evaluation.value(self.expression, fixed)
        found = self._averaged(evaluation, found)
        if np.isnan(found.values).any():
            raise ImpossibleEvidenceError(evaluation.undetermined(self), dict(fixed))
        constant = [name for name in self.outcome if name not in found.names]
        for name in constant:  # an outcome that the formula does not restrict cannot be
            raise EvidenceError(f"the formula does not speak of {name!r}")
        answer = found.permute(self.outcome)
        return Posterior(answer.variables, np.array(answer.values / answer.values.sum()), 0.0)

    def _averaged(self, evaluation: _Evaluation, found: Factor) -> Factor:
        """The mean over what may have any value, where the formula is defined."""
        extra = [name for name in found.names if name not in self.outcome]
        if not extra:
            return found
        weights = evaluation.value(Probability(tuple(extra)), {})
        variables, values, shares = aligned(found, weights, "average")
        values, shares = np.broadcast_arrays(values, shares)
        axes = tuple(i for i, v in enumerate(variables) if v.name in extra)
        others = tuple(i for i in range(len(variables)) if i not in axes)
        defined = ~np.isnan(values).any(axis=others, keepdims=True)
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

    def _states(
        self, values: Mapping[str, State] | None, names: tuple[str, ...], what: str
    ) -> dict[str, State]:
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


class Measured(Protocol):
    """Where probabilities of measured variables come from."""

    def variable(self, name: str) -> Variable:
        """The variable of this name."""

    def joint(self, names: tuple[str, ...]) -> Factor:
        """P(names), axes in that order."""


class _Network:
    """Probabilities asked of a network."""

    def __init__(self, net: BayesianNetwork, memory_limit: int | float | str | None) -> None:
        self.net, self.options = net, {} if memory_limit is None else {"memory_limit": memory_limit}

    def variable(self, name: str) -> Variable:
        variable = self.net.variable(name)
        if isinstance(variable, Continuous):
            raise ModelError(_NO_NUMBERS.format(name))
        return variable

    def joint(self, names: tuple[str, ...]) -> Factor:
        for name in names:
            self.variable(name)
        found = self.net.query(list(names), **self.options)  # type: ignore[arg-type]
        return Factor.trusted(found.variables, found.values)


class _Data:
    """Probabilities counted in data."""

    def __init__(
        self, data: Any, names: tuple[str, ...], outcome: tuple[str, ...], options: dict[str, Any]
    ) -> None:
        options = {key: value for key, value in options.items() if value is not None}
        wanted = list(dict.fromkeys((*names, *outcome)))
        source = as_source(data, names=wanted, extra="ignore", **options)
        own = {v.name: v for v in source.variables}
        for name in wanted:
            if name not in own:
                raise DataError(_NO_NUMBERS.format(name))
        self.source = complete_data(
            source,
            wanted,
            "column {} has missing values",
            "bbn.fit_em learns from incomplete data; drop those rows",
        )
        self.own = own

    def variable(self, name: str) -> Variable:
        if name not in self.own:
            raise EvidenceError(f"the data have no column {name!r}{nearest(name, self.own)}")
        return self.own[name]

    def joint(self, names: tuple[str, ...]) -> Factor:
        (counts,) = self.source.counts([names])
        shares = np.asarray(counts, dtype=np.float64) / self.source.total
        return Factor.trusted(tuple(self.own[name] for name in names), shares)


_NO_NUMBERS = "{!r} is continuous, and an estimand is evaluated over states; bbn.effect takes numbers"


class _Evaluation:
    """The value of expressions; NaN where one conditions on what never occurs."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self.known: dict[tuple[int, tuple[str, ...]], Factor] = {}
        self.joints: dict[tuple[str, ...], Factor] = {}
        self.undefined: list[str] = []

    def value(self, expression: Expression, fixed: Mapping[str, State]) -> Factor:
        """The expression with some of its free variables fixed, as a factor over the others."""
        key = (id(expression), tuple(sorted(fixed)))
        if key not in self.known:
            self.known[key] = self._value(expression, fixed)
        return self.known[key]

    def _value(self, expression: Expression, fixed: Mapping[str, State]) -> Factor:
        if isinstance(expression, Probability):
            return self._probability(expression).restrict(fixed)
        if isinstance(expression, Sum):
            inner = {name: state for name, state in fixed.items() if name not in expression.over}
            body = expression.body
            factors = body.factors if isinstance(body, Product) else (body,)
            return _sum_product([self.value(factor, inner) for factor in factors], expression.over)
        if isinstance(expression, Quotient):
            return _divided(self.value(expression.top, fixed), self.value(expression.bottom, fixed))
        return _sum_product([self.value(factor, fixed) for factor in expression.factors], ())

    def _probability(self, asked: Probability) -> Factor:
        joint = self._joint((*asked.given, *asked.targets))
        if not asked.given:
            return joint
        conditional = _divided(joint, joint.sum_out(asked.targets))
        if np.isnan(conditional.values).any():
            index = np.argwhere(np.isnan(conditional.values))[0]
            cell = zip(conditional.variables, index, strict=True)
            states = [f"{v.name}={v.states[i]}" for v, i in cell if v.name in asked.given]
            self.undefined.append(f"{as_text(asked)} where {', '.join(states)}")
        return conditional

    def _joint(self, names: tuple[str, ...]) -> Factor:
        key = tuple(sorted(names))
        if key not in self.joints:
            self.joints[key] = self.measured.joint(key)
        return self.joints[key].permute(names)

    def undetermined(self, estimand: Estimand) -> str:
        """What to tell the user about an effect that depends on what never occurs."""
        which = self.undefined[0] if self.undefined else "a conditional probability"
        return (
            f"{estimand.formula.split(' = ')[0]} is not determined: it needs {which}, which never occurs; "
            "ask for a treatment that does occur there, or merge states"
        )


def _divided(top: Factor, bottom: Factor) -> Factor:
    """The quotient, NaN where the bottom is 0."""
    variables, left, right = aligned(top, bottom, "quotient")
    left, right = np.broadcast_arrays(left, right)
    quotient: Array = np.divide(left, right, out=np.full(left.shape, np.nan), where=right != 0)
    return Factor.trusted(variables, quotient)


def _sum_product(factors: list[Factor], over: Iterable[str]) -> Factor:
    """Σ over some variables of the product; undefined (NaN) times 0 is 0."""
    gone = set(over)
    if not any(np.isnan(factor.values).any() for factor in factors):
        return _run(factors, gone)
    least, most = (
        _run([Factor.trusted(f.variables, np.nan_to_num(f.values, nan=instead)) for f in factors], gone)
        for instead in (0.0, 1.0)
    )
    same = np.isclose(least.values, most.values, rtol=1e-9, atol=0.0)
    return Factor.trusted(least.variables, np.where(same, least.values, np.nan))


def _run(factors: list[Factor], gone: set[str]) -> Factor:
    """Σ over `gone` of the product, by the engine of the factor graph."""
    kept = tuple({v.name: v for f in factors for v in f.variables if v.name not in gone}.values())
    if not any(v.name in gone for f in factors for v in f.variables):
        return math.prod(factors[1:], start=factors[0]) if factors else Factor.trusted((), np.ones(()))
    model = FactorGraph(factors)
    try:
        if not kept:
            return Factor.trusted((), np.array(math.exp(model.log_partition())))
        found = model.query([v.name for v in kept])
    except ImpossibleEvidenceError:
        return Factor.trusted(kept, np.zeros([v.card for v in kept]))
    return Factor.trusted(found.variables, np.asarray(found.values * math.exp(found.log_evidence)))
