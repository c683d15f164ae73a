"""Evaluation of expressions: on a network's engine, or on counts of data, sums of products on the compiled engine.

Each probability P(a | b) is asked of the network, or counted; a sum of products is run as the factor graph that it is.
A conditional probability given something of probability 0 is undefined, which is NaN here. Multiplied by 0 it counts
as 0; otherwise the result is NaN too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from bbn.causal.identification.expression import Expression, Probability, Product, Quotient, Sum, as_text
from bbn.causal.identification.gaussian_evaluation import Normal, normal_of_data, normal_of_network
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError, ModelError, nearest
from bbn.core.frozen import Array
from bbn.data import as_source, complete_data, continuous_columns
from bbn.data.column_rules import FEW_STATES, NUMBER
from bbn.data.column_states import holds_fractions
from bbn.data.columns import read_table
from bbn.data.describe import describe
from bbn.data.number_columns import plain_array
from bbn.data.source import is_source
from bbn.data.streams.readers import is_many
from bbn.model.factor import Factor, aligned
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable

FEW_CELLS = 4096
"""The most cells of a product that is written out; beyond, the engine orders the sums."""


FEW_ROWS = 5
"""Fewer rows than this do not tell what a level of a treatment does."""


class Measured(Protocol):
    """Where probabilities of measured variables come from."""

    def variable(self, name: str) -> Variable:
        """The variable of this name."""

    def joint(self, names: tuple[str, ...]) -> Factor:
        """P(names), axes in that order."""


def measured_by(
    source: Any,
    names: tuple[str, ...],
    options: Mapping[str, Any],
    memory_limit: int | float | str | None = None,
) -> Measured | Normal:
    """A network, or data with columns for these names, as a source of their probabilities."""
    own = tuple(dict.fromkeys(names))
    if isinstance(source, BayesianNetwork):
        if all(isinstance(source.variable(name), Continuous) for name in own):
            return normal_of_network(source, own)
        return _Network(source, memory_limit)
    options = {key: value for key, value in options.items() if value is not None}
    listed = options.pop("continuous", None)
    declared = options.get("states") or {}
    undeclared = [name for name in own if name not in declared]
    numeric = numeric_columns(source, undeclared) if listed is None else list(listed)
    if all(name in numeric for name in own):
        return normal_of_data(_complete(source, own, {**options, "continuous": list(own)}), own)
    mixed = next((name for name in own if name in numeric), None)
    if mixed is not None:
        raise DataError(_NO_NUMBERS.format(mixed))
    return _Data(source, own, options)


def numeric_columns(
    data: Any, names: Iterable[str], kinds: Mapping[str, str] | None = None, missing: Any = ()
) -> list[str]:
    """The columns among some that are numbers, by the rules of `bbn.describe`; data that are coded say which they are.

    Whole numbers of few values are states, and so is text unless `kinds` says otherwise.
    """
    wanted = list(dict.fromkeys(names))
    told = {name: kind for name, kind in (kinds or {}).items() if name in wanted}
    if is_source(data):
        return [name for name in continuous_columns(data) if name in wanted]
    if is_many(data):
        return [name for name, kind in told.items() if kind == "number"]
    table = read_table(data)
    columns = {name: table.column(name) for name in wanted if name in table.names}
    numeric = {name: array for name, array in _arrays(columns).items() if array.dtype.kind in "iuf"}
    looked_at = {name: columns[name] for name in columns if name in numeric or name in told}
    lines = describe(looked_at, told, missing=missing) if looked_at else ()
    return [
        line.name
        for line in lines
        if line.use == NUMBER
        or (line.name not in told and (line.kind == "identifier" or holds_fractions(numeric[line.name])))
    ]


def has_thin_levels(data: Any, name: str) -> bool:
    """Whether a column is whole numbers, more than a handful, some of which hardly any row has: a number, rounded."""
    if is_source(data) or is_many(data):
        return False
    table = read_table(data)
    array = _arrays({name: table.column(name)} if name in table.names else {}).get(name)
    if array is None or array.dtype.kind not in "iuf" or holds_fractions(array):
        return False
    levels, rows = np.unique(array[np.isfinite(array)], return_counts=True)
    return len(levels) > FEW_STATES and int(rows.min()) < FEW_ROWS


def _arrays(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that are plain, as arrays."""
    found = {}
    for name, column in columns.items():
        array = plain_array(column)
        if array is None and isinstance(column, list | tuple):
            kinds = {type(value) for value in column}
            array = np.asarray(column) if len(kinds) == 1 or kinds == {int, float} else None
        if array is not None:
            found[name] = array
    return found


def _complete(data: Any, names: tuple[str, ...], options: Mapping[str, Any]) -> Any:
    """The columns of these names, coded; DataError if a value is missing."""
    return complete_data(
        as_source(data, names=list(names), extra="ignore", **options),
        names,
        "column {} has missing values",
        "bbn.fit_em learns from incomplete data; drop those rows",
    )


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

    def __init__(self, data: Any, names: tuple[str, ...], options: Mapping[str, Any]) -> None:
        self.source = _complete(data, names, options)
        self.own = {v.name: v for v in self.source.variables}

    def variable(self, name: str) -> Variable:
        if name not in self.own:
            raise EvidenceError(f"the data have no column {name!r}{nearest(name, self.own)}")
        variable: Variable = self.own[name]
        return variable

    def joint(self, names: tuple[str, ...]) -> Factor:
        (counts,) = self.source.counts([names])
        shares = np.asarray(counts, dtype=np.float64) / self.source.total
        return Factor.trusted(tuple(self.own[name] for name in names), shares)


_NO_NUMBERS = (
    "{!r} is continuous beside variables with states, and this formula is evaluated over states alone or over numbers "
    "alone; bbn.discretize cuts numbers into intervals"
)


class Evaluation:
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
        joint = self.joints[key]
        return joint.permute((*(name for name in joint.names if name not in names), *names))


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
    cards = {v.name: v.card for f in factors for v in f.variables}
    summed = [name for name in cards if name in gone]
    if not summed or math.prod(cards.values()) <= FEW_CELLS:  # the plain product is quicker than a plan
        whole = math.prod(factors[1:], start=factors[0]) if factors else Factor.trusted((), np.ones(()))
        return whole.sum_out(summed) if summed else whole
    model = FactorGraph(factors)
    try:
        if not kept:
            return Factor.trusted((), np.array(math.exp(model.log_partition())))
        found = model.query([v.name for v in kept])
    except ImpossibleEvidenceError:
        return Factor.trusted(kept, np.zeros([v.card for v in kept]))
    return Factor.trusted(found.variables, np.asarray(found.values * math.exp(found.log_evidence)))
