"""Bounds: what data tell about an effect that is not identified, by linear programming (Balke and Pearl 1997).

Hidden causes of a district matter only by choosing, for each of its variables, which function of its parents it is
(its response type). P(y | do(x)) = Σ ∏_S Q[D ∩ S] over the districts S, and each Q[D ∩ S] is linear in the
distribution of the response types of S, which the data bind by Q[S] = ∏_{v ∈ S} P(v | what precedes v). So if all
districts but one are identified, the least and the greatest effect are two linear programs, and the bounds are sharp
if one hidden variable may act on the whole district. Their size is ∏ |v|^(settings of v's parents): small variables
only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product as settings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.identification.estimand import Estimand
from bbn.causal.identification.evaluation import Evaluation, Measured, measured_by
from bbn.causal.identification.gaussian_evaluation import Normal
from bbn.causal.identification.identify import (
    Hedge,
    Kernel,
    interventional,
    kernel_of,
    measured_names,
    observed_kernel,
)
from bbn.core.budget import require_memory
from bbn.core.display import Table, Tabular
from bbn.core.errors import DataError, EvidenceError, ModelError
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.model.variable import State, Variable

Types = tuple[NDArray[np.intp], ...]
"""Response types, variable by variable: a row per function, a column per setting of the parents."""
SLACK = 1e-9
"""How far the data may be from what a model of the graph could give, for rounding."""


class Bounds(Tabular, Frozen):
    """The least and the greatest probability of each state of the outcome.

    Attributes
    ----------
    variable
        The outcome.
    low, high
        One entry per state; if `versus` was given, for the difference between the two treatments.

    >>> import bbn
    >>> rows = {"X": [0, 0, 1, 1], "Y": [0, 1, 1, 1]}
    >>> bow = bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")])
    >>> bbn.effect_bounds(bow, rows, "Y", do={"X": 1})[1]
    (0.5, 1.0)
    """

    __slots__ = ("difference", "high", "low", "variable")

    variable: Variable
    low: Array
    high: Array
    difference: bool

    def __init__(self, variable: Variable, low: Array, high: Array, difference: bool) -> None:
        self._set(variable=variable, low=read_only(low), high=read_only(high), difference=difference)

    def __getitem__(self, state: State) -> tuple[float, float]:
        """The least and the greatest probability, or difference, of a state."""
        code = self.variable.code(state)
        return float(self.low[code]), float(self.high[code])

    def to_dict(self) -> dict[State, tuple[float, float]]:
        """State to (least, greatest)."""
        return {state: self[state] for state in self.variable.states}

    def _table(self) -> Table:
        rows = [[str(s), f"{low:.6g}", f"{high:.6g}"] for s, (low, high) in self.to_dict().items()]
        return Table([self.variable.name, "least", "greatest"], rows)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{s}: {low:.4g} to {high:.4g}" for s, (low, high) in list(self.to_dict().items())[:8]
        )
        return f"<Bounds of {self.variable.name}: {shown}>"


@keywords_checked
def effect_bounds(
    graph: Any,
    source: Any,
    outcome: str,
    do: Mapping[str, State],
    versus: Mapping[str, State] | None = None,
    latent: str | Iterable[str] = (),
    *,
    states: Mapping[str, Any] | None = None,
    weights: Any = None,
    missing: Any = (),
    memory_limit: int | float | str | None = None,
) -> Bounds:
    """Bound an effect that hidden causes keep from being identified.

    Parameters
    ----------
    graph
        A `CausalGraph`, a DiGraph, a network or a list of arcs.
    source
        A network, or any table of data with complete columns.
    outcome
        The variable asked about.
    do
        The state of each variable that is set.
    versus
        Another setting of the same variables: bound the difference between the two instead. These bounds are tighter
        than the difference of two separate ones.
    latent
        Variables that are not measured, besides those that the graph says are hidden.
    states, weights, missing
        How to read data, as in `bbn.fit`.
    memory_limit
        The most bytes that the linear program may take.

    Returns
    -------
    Bounds
        ``bounds[state]`` is (least, greatest). Both are the effect itself where it is identified.

    Raises
    ------
    ModelError
        If several districts are not identified at once, so that the effect is not linear in what is unknown.
    DataError
        If no model of the graph could give the data: an instrumental inequality is violated.
    BudgetError
        If the variables have too many states, or parents.
    EvidenceError
        For a name or state that is unknown, hidden or in two roles.

    See Also
    --------
    identify : The effect itself, where it follows.
    instruments : Variables that make bounds tighter.

    References
    ----------
    Balke and Pearl (1997), Bounds on treatment effects from studies with imperfect compliance.

    Examples
    --------
    >>> import bbn
    >>> bow = bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")])
    >>> rows = {"X": ["no", "no", "yes", "yes"], "Y": ["ill", "well", "well", "well"]}
    >>> print(bbn.effect_bounds(bow, rows, "Y", do={"X": "yes"}))
    Y     least  greatest
    ----  -----  --------
    ill       0       0.5
    well    0.5         1
    """
    full = as_causal_graph(graph, latent)
    measured = full.projected()
    y, *more = measured_names(full, outcome, "outcome")
    if more:
        raise EvidenceError("bounds take one outcome at a time")
    if not isinstance(do, Mapping) or not do:
        raise EvidenceError(f"do is a mapping from variable to state, found {do!r}")
    treated = measured_names(full, do, "do")
    if y in treated:
        raise EvidenceError(f"{y!r} is both outcome and treatment")
    if versus is not None and (not isinstance(versus, Mapping) or set(versus) != set(do)):
        raise EvidenceError(f"versus sets the same variables as do, {', '.join(treated)}")
    near = measured.ancestors(y) | set(treated)
    options = {"states": states, "weights": weights, "missing": missing}
    told = measured_by(source, tuple(sorted(near)), options, memory_limit)
    if isinstance(told, Normal):
        raise DataError(f"{y!r} is continuous; bounds need variables with states, which bbn.discretize makes")
    program = _Program(measured, told, y, frozenset(treated), memory_limit)
    low, high = program.bounds(do, versus)
    return Bounds(told.variable(y), low, high, versus is not None)


class _District(NamedTuple):
    """The district whose part in the effect is not identified, as response types."""

    names: tuple[str, ...]
    inner: Names
    """Those of its variables that the effect runs through."""
    parents: dict[str, tuple[str, ...]]
    outside: tuple[str, ...]
    """Parents of its variables that are not in it."""


class _Program:
    """The linear program of one question."""

    def __init__(
        self,
        graph: CausalGraph,
        told: Measured,
        y: str,
        treated: Names,
        memory_limit: int | float | str | None,
    ) -> None:
        self.graph, self.told, self.y, self.treated = graph, told, y, treated
        self.memory_limit = memory_limit
        self.above = graph.ancestors(y)
        self.wanted = graph.ancestors(y, within=self.above - treated)
        self.kernel = observed_kernel(graph, self.above)
        self.known: list[Kernel] = []
        self.unknown: _District | None = None
        districts = [frozenset(part) for part in graph.districts(within=self.above)]
        for around in districts:
            parts = [frozenset(part) for part in graph.districts(within=self.wanted & around)]
            try:
                found = [kernel_of(graph, part, self.kernel.within(around)) for part in parts]
            except Hedge:
                self._take_unknown(around)
            else:
                self.known += found

    def _take_unknown(self, around: Names) -> None:
        if self.unknown is not None:
            raise ModelError(
                f"two districts are not identified, {{{', '.join(sorted(self.unknown.names))}}} and "
                f"{{{', '.join(sorted(around))}}}: the effect is not linear in what is unknown, and has no such bounds"
            )
        names = tuple(name for name in self.graph.nodes if name in around)
        parents = {name: tuple(p for p in self.graph.parents(name) if p in self.above) for name in names}
        outside = {p for own in parents.values() for p in own if p not in around}
        self.unknown = _District(
            names, self.wanted & around, parents, tuple(n for n in self.graph.nodes if n in outside)
        )

    def bounds(self, do: Mapping[str, State], versus: Mapping[str, State] | None) -> tuple[Array, Array]:
        """The least and the greatest probability of each state of the outcome, or difference of such."""
        variable = self.told.variable(self.y)
        if self.unknown is None:
            value = self._identified(do) - (0.0 if versus is None else self._identified(versus))
            return value, value
        types = self._types(self.unknown)
        matrix, rhs = self._constraints(self.unknown, types)
        objective = self._objective(self.unknown, types, do)
        if versus is not None:
            objective = objective - self._objective(self.unknown, types, versus)
        low, high = np.empty(variable.card), np.empty(variable.card)
        for code in range(variable.card):
            low[code] = self._solve(objective[code], matrix, rhs)
            high[code] = -self._solve(-objective[code], matrix, rhs)
        return low, high

    def _identified(self, do: Mapping[str, State]) -> Array:
        """The effect itself, where it is identified."""
        expression = interventional(self.graph, frozenset([self.y]), self.treated)
        treated = tuple(name for name in do if name in self.above)
        return Estimand((self.y,), treated, (), expression).value_on(
            self.told, {name: do[name] for name in treated}
        )

    def _card(self, name: str) -> int:
        return self.told.variable(name).card

    def _types(self, district: _District) -> Types:
        """For each variable of the district all functions of its parents, as rows of codes by their setting."""
        rows = {n: math.prod(self._card(p) for p in district.parents[n]) for n in district.names}
        size = math.prod(self._card(name) ** rows[name] for name in district.names)
        require_memory(
            100 * size * math.prod(self._card(name) for name in district.outside),
            f"the linear program over the response types of {', '.join(district.names)}",
            "merge states, or use fewer parents",
            self.memory_limit,
        )
        return tuple(
            np.array(list(settings(range(self._card(name)), repeat=rows[name])), dtype=np.intp).reshape(
                -1, rows[name]
            )
            for name in district.names
        )

    def _codes(
        self, district: _District, types: Types, known: Mapping[str, int], wanted: Names
    ) -> dict[str, NDArray[np.intp]]:
        """The code of each wanted variable for every combination of response types, some variables known."""
        shape = tuple(len(own) for own in types)
        codes: dict[str, NDArray[np.intp]] = {name: np.full(shape, code) for name, code in known.items()}
        for k, name in enumerate(district.names):
            if name not in wanted or name in known:
                continue
            setting = np.zeros(shape, dtype=np.intp)
            for parent in district.parents[name]:
                setting = setting * self._card(parent) + codes[parent]
            own = np.arange(shape[k]).reshape([-1 if i == k else 1 for i in range(len(shape))])
            codes[name] = types[k][np.broadcast_to(own, shape), setting]
        return codes

    def _constraints(self, district: _District, types: Types) -> tuple[Any, Array]:
        """Q[S] in every setting of what S depends on, each entry a sum over the response types that give it."""
        from scipy.sparse import csr_array, vstack

        kernel = self.kernel.within(district.names).expression
        told = Evaluation(self.told).value(kernel, {}).permute((*district.outside, *district.names)).values
        rows, rhs = [], []
        n = math.prod(len(own) for own in types)
        for outside in self._settings(district.outside):
            seen = told[tuple(outside.values())]
            if np.isnan(seen).any():  # a setting that never occurs binds nothing
                continue
            codes = self._codes(district, types, outside, frozenset(district.names))
            entry = np.ravel_multi_index(
                [codes[name].ravel() for name in district.names],
                [self._card(name) for name in district.names],
            )
            rows.append(csr_array((np.ones(n), (entry, np.arange(n))), shape=(seen.size, n)))
            rhs.append(seen.ravel())
        if not rows:
            raise DataError("no setting of what the district depends on has all that it needs in the data")
        return vstack(rows), np.concatenate(rhs)

    def _objective(self, district: _District, types: Types, do: Mapping[str, State]) -> Array:
        """(states of y, response types): what each combination of response types adds to the effect."""
        treated = {name: self.told.variable(name).code(state) for name, state in do.items()}
        states = {name: self.told.variable(name).states[code] for name, code in treated.items()}
        evaluation = Evaluation(self.told)
        known = [evaluation.value(kernel.expression, states) for kernel in self.known]
        shape = tuple(len(own) for own in types)
        added = np.zeros((self._card(self.y), *shape))
        free = tuple(n for n in self.graph.nodes if n in self.wanted and n not in district.names)
        for outside in self._settings(free):
            codes = self._codes(district, types, {**outside, **treated}, district.inner)
            weight = np.ones(shape)
            for factor in known:
                weight = (
                    weight
                    * factor.values[tuple(codes.get(n, np.zeros(shape, np.intp)) for n in factor.names)]
                )
            if np.isnan(weight).any():
                raise DataError("the effect depends on a setting that never occurs in the data")
            for code in range(self._card(self.y)):
                added[code] += np.where(codes[self.y] == code, weight, 0.0)
        return added.reshape(self._card(self.y), -1)

    def _settings(self, names: tuple[str, ...]) -> Iterator[dict[str, int]]:
        for codes in settings(*(range(self._card(name)) for name in names)):
            yield dict(zip(names, codes, strict=True))

    def _solve(self, objective: Array, matrix: Any, rhs: Array) -> float:
        from scipy.optimize import linprog

        answer: Any = linprog(objective, A_eq=matrix, b_eq=rhs, bounds=(0, None), method="highs")
        if answer.status == 2:
            answer = self._nearly(objective, matrix, rhs)
        if answer.status != 0:
            raise DataError(
                "no model of this graph gives these data (an instrumental inequality is violated): the graph is wrong, "
                "or the rows are too few"
            )
        return float(answer.fun)

    def _nearly(self, objective: Array, matrix: Any, rhs: Array) -> Any:
        """The same with slack, for constraints that contradict each other only by rounding."""
        from scipy.optimize import linprog
        from scipy.sparse import vstack

        return linprog(
            objective,
            A_ub=vstack([matrix, -matrix]),
            b_ub=np.concatenate([rhs + SLACK, SLACK - rhs]),
            bounds=(0, None),
            method="highs",
        )
