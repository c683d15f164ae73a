"""Loopy belief propagation: messages between factors and variables until they settle.

Pearl 1988; Murphy, Weiss and Jordan 1999; Kschischang, Frey and Loeliger 2001, equations 5 and 6:

    factor f to variable x:   μ(x) = Σ over f's other variables y of f(x, y) ∏ ν(y)
    variable x to factor f:   ν(x) = ∏ μ(x) over x's other factors

On a graph without loops the answer is exact after one pass there and back. With loops it is an approximation with
no known error, and it may not settle; damping, μ ← (1 − d) μ_new + d μ_old, helps. ln P(evidence) is the Bethe
approximation. One iteration costs about twice the size of the tables, there and back (`bbn/kernels/pure/messages.py`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from bbn import kernels
from bbn.core.budget import Ledger
from bbn.core.errors import ConvergenceWarning, warn_user
from bbn.core.frozen import Array
from bbn.inference.exact.problem import factored
from bbn.inference.relevant_factors import ancestral_factors
from bbn.inference.sampling.approximate import Approximate, Estimate
from bbn.inference.sampling.draws import offsets
from bbn.kernels.contracts.messages import FactorGraphArrays
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork
from bbn.model.options import LoopyOptions
from bbn.model.variable import Variable
from bbn.results.sampling_report import SamplingReport

UNDAMPED = 100
"""The iterations after which messages that have not settled are damped, where no damping is given."""
LOOP_DAMPING = 0.5
TINY = 1e-300
SCHEDULES = ("sequential", "flooding")


class LoopyBeliefPropagation(Approximate):
    """Loopy belief propagation, on networks and factor graphs: exact on trees, elsewhere without a known error.

    That messages settle says nothing about how far off they are: where there are loops, an answer has no standard
    error, and its report says that it is not `reliable`.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    max_iter : int, default 500
        Iterations after which to give up.
    tol : float, default 1e-12
        Messages have settled when none changes by more than this.
    damping : float, optional
        The share of the old message that is kept, from 0 up to but not including 1; by default 0, and LOOP_DAMPING from
        iteration UNDAMPED on.
    schedule : {"sequential", "flooding"}, default "sequential"
        "sequential": the factors in order, then in reverse, each from the newest messages; "flooding": all at once.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond.
    time_limit : float, optional
        The most seconds that one question may take; TimeLimitError beyond, as messages that have not settled may be far
        off. By default BBN_TIME_LIMIT, or any time.
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.

    See Also
    --------
    JunctionTree : The exact engine.

    Examples
    --------
    >>> import bbn
    >>> p = bbn.example("burglary").query("Burglary", {"Alarm": "yes"}, method="loopy")
    >>> p.converged, p.std_error is None
    (True, True)
    """

    name = "loopy"
    defaults: Mapping[str, Any] = {  # type: ignore[misc]
        "max_iter": 500,
        "tol": 1e-12,
        "damping": None,
        "schedule": "sequential",
        "memory_limit": None,
        "time_limit": None,
        "budget": None,
    }

    def __init__(self, model: Model, **options: Unpack[LoopyOptions]) -> None:
        super().__init__(model, **options)

    def _prepare(self) -> None:
        self._chained: Model = factored(self.model) if isinstance(self.model, BayesianNetwork) else self.model

    def _estimate(
        self, groups: Sequence[tuple[str, ...]], findings: Findings, options: Mapping[str, Any]
    ) -> Estimate:
        wanted = {name for group in groups for name in group}
        relevant = ancestral_factors(self._chained, wanted | {*findings.hard, *findings.likelihood})
        self._require_memory(groups, relevant, findings, options)
        messages = Messages(relevant, map(self.model.variable, sorted(wanted)), findings)
        n_iter, converged = messages.settle(options)
        log_evidence = messages.log_total
        exact = not messages.has_loops
        if log_evidence == -math.inf:
            size = sum(math.prod(self.model.variable(name).card for name in group) for group in groups)
            return Estimate(np.zeros(size), log_evidence, _report(n_iter, converged, exact))
        parts = []
        for group in groups:
            part, settled = self._group(group, messages, findings, options)
            parts.append(part.reshape(-1))
            converged = converged and settled
        return Estimate(
            np.concatenate([*parts, np.empty(0)]), log_evidence, _report(n_iter, converged, exact)
        )

    def _require_memory(
        self,
        groups: Sequence[tuple[str, ...]],
        factors: Sequence[Factor],
        findings: Findings,
        options: Mapping[str, Any],
    ) -> None:
        """BudgetError if the tables, sliced and merged, what weighs one of them, and the answers would not fit."""
        ledger = Ledger(options["memory_limit"])
        hard = findings.hard
        cells = [
            factor.values.size
            if hard.keys().isdisjoint(factor.names)
            else math.prod(v.card for v in factor.variables if v.name not in hard)
            for factor in factors
        ]
        size = 8 * (3 * sum(cells) + 3 * max(cells, default=0))
        ledger.reserve(size, "the tables that messages are passed between", "observe more variables")
        answers = sum(math.prod(self.model.variable(name).card for name in group) for group in groups)
        ledger.reserve(24 * answers, f"a joint of {answers:,} cells", "ask for fewer targets at a time")

    def _group(
        self, group: tuple[str, ...], messages: Messages, findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, bool]:
        """The belief in the joint states of a group, and whether all messages behind it settled.

        A group within one factor is read from there; otherwise P(a, b) = P(a) P(b | a), the second from messages
        in which a is observed, state by state.
        """
        if not group:
            return np.ones(1), True
        if len(group) == 1:
            return messages.belief(group[0]), True
        within = messages.joint(group)
        if within is not None:
            return within, True
        first, rest = group[0], group[1:]
        marginal = messages.belief(first)
        shape = [self.model.variable(name).card for name in rest]
        joint, settled = np.zeros([len(marginal), *shape]), True
        for code in np.flatnonzero(marginal):
            given = Findings({**findings.hard, first: int(code)}, findings.likelihood, {})
            estimate = self._estimate([rest], given, options)
            if estimate.log_evidence > -math.inf:
                joint[code] = marginal[code] * estimate.values.reshape(shape)
            settled = settled and estimate.report.converged
        return joint / joint.sum(), settled

    def _warn(self, report: SamplingReport, options: Mapping[str, Any]) -> None:
        if not report.converged:
            warn_user(
                f"loopy: the messages did not settle in {report.n_samples} iterations, so the answer may be far off; "
                "try damping=0.5, or another method",
                ConvergenceWarning,
            )


def _report(n_iter: int, converged: bool, exact: bool) -> SamplingReport:
    return SamplingReport(None, None, n_iter, converged=converged, reliable=converged and exact)


class Messages:
    """The factors of a model given findings, and the messages between them and their variables, each summing to 1.

    Parameters
    ----------
    factors
        The factors; hard findings are sliced out of them.
    wanted
        Variables that are to have a belief, though no factor may hold them.
    findings
        The hard findings and the likelihoods.
    merged
        Whether factors over the same variables are multiplied; otherwise each of two variables or more stays apart.

    Attributes
    ----------
    scopes
        The variables of each factor that messages are passed to.
    place
        Where each of the factors given is among these, −1 if it is left of one variable at most.
    """

    def __init__(
        self,
        factors: Iterable[Factor],
        wanted: Iterable[Variable],
        findings: Findings,
        merged: bool = True,
    ) -> None:
        self.number: dict[str, int] = {}
        self.local: list[Array] = []
        self.log_scale = 0.0
        self.scopes: list[tuple[str, ...]] = []
        self.tables: list[Array] = []
        self.place: list[int] = []
        known: dict[frozenset[str], int] = {}
        for factor in factors:
            names, values = self._sliced(factor, findings.hard)
            if len(names) < 2:
                self._weigh(names, values)
                self.place.append(-1)
                continue
            scope = frozenset(names)
            at = known.get(scope) if merged else None
            self.place.append(len(self.scopes) if at is None else at)
            if at is None:
                known[scope] = len(self.scopes)
                self.scopes.append(names)
                self.tables.append(values)
            else:
                values = self.tables[at] * values.transpose([names.index(name) for name in self.scopes[at]])
                self.tables[at] = self._scaled(values)
        for name, likelihood in findings.likelihood.items():
            weights = np.asarray(likelihood, float)
            at = findings.hard.get(name)
            self._weigh(*(((name,), weights) if at is None else ((), weights[at])))
        for variable in wanted:
            self._numbered(variable)
        self.cards = [len(local) for local in self.local]
        edges = [[self.number[name] for name in scope] for scope in self.scopes]
        self.scope_ptr = offsets([len(scope) for scope in edges])
        self.graph = FactorGraphArrays(
            np.array(self.cards, np.int64),
            self.scope_ptr,
            np.array([v for scope in edges for v in scope], np.int64),
            np.concatenate([*(table.reshape(-1) for table in self.tables), np.empty(0)]),
            np.concatenate([*self.local, np.empty(0)]),
        )
        self.to_variable = np.concatenate(
            [*(np.full(self.cards[v], 1 / self.cards[v]) for scope in edges for v in scope), np.empty(0)]
        )
        self.starts = offsets([self.cards[v] for scope in edges for v in scope])
        self.owner = np.repeat(np.arange(len(edges)), [len(scope) for scope in edges])
        self.states = offsets(self.cards)
        self.beliefs = np.empty(len(self.graph.local))
        self.log_total = self.log_scale
        self.has_loops = _has_loops(edges, len(self.cards))

    def settle(self, options: Mapping[str, Any]) -> tuple[int, bool]:
        """Pass messages until they change no more, and read them: how many iterations, and whether they settled."""
        max_iter, tol = int(options["max_iter"]), float(options["tol"])
        flooding = _schedule(options["schedule"]) == "flooding"
        damping = _damping(options["damping"])
        n_iter, settled = 0, self.log_scale == -math.inf
        if not settled:
            first = min(max_iter, UNDAMPED) if damping is None and self.has_loops else max_iter
            n_iter, settled = self._passed(first, tol, damping or 0.0, flooding)
            if not settled and first < max_iter:
                more, settled = self._passed(max_iter - first, tol, LOOP_DAMPING, flooding)
                n_iter += more
            self.log_total += kernels.messages.beliefs(self.graph, self.to_variable, self.beliefs)
        return n_iter, settled

    def belief(self, name: str) -> Array:
        """The belief in the states of a variable."""
        v = self.number[name]
        return self.beliefs[self.states[v] : self.states[v + 1]]

    def without(self, name: str, factors: Collection[int]) -> Array:
        """The belief in the states of a variable but for the messages of these factors."""
        v = self.number[name]
        found = np.log(np.maximum(self.graph.local[self.states[v] : self.states[v + 1]], TINY))
        for edge in np.flatnonzero(self.graph.scope == v).tolist():
            if int(self.owner[edge]) not in factors:
                found += np.log(np.maximum(self.to_variable[self.starts[edge] : self.starts[edge + 1]], TINY))
        found = np.exp(found - found.max())
        return np.asarray(found / found.sum())

    def joint(self, names: tuple[str, ...]) -> Array | None:
        """The belief in the joint states of variables that share a factor; None if no factor holds them all."""
        for f, scope in enumerate(self.scopes):
            if set(names) <= set(scope):
                values = self.tables[f]
                for axis, message in enumerate(self.incoming(f)):
                    values = values * message.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
                values = values.sum(axis=tuple(a for a, name in enumerate(scope) if name not in names))
                left = [name for name in scope if name in names]
                return np.asarray(values.transpose([left.index(name) for name in names]) / values.sum())
        return None

    def incoming(self, f: int) -> list[Array]:
        """The messages of a factor's variables to it."""
        found = np.empty_like(self.to_variable)
        kernels.messages.incoming(self.graph, self.to_variable, found)
        return [
            found[self.starts[e] : self.starts[e + 1]]
            for e in range(self.scope_ptr[f], self.scope_ptr[f + 1])
        ]

    def _passed(self, max_iter: int, tol: float, damping: float, flooding: bool) -> tuple[int, bool]:
        check()
        return kernels.messages.settle(self.graph, self.to_variable, max_iter, tol, damping, flooding)

    def _sliced(self, factor: Factor, hard: Mapping[str, int]) -> tuple[tuple[str, ...], Array]:
        """A factor at the hard findings, without axes of one state."""
        values, variables = factor.values, factor.variables
        if not hard.keys().isdisjoint(factor.names):
            values = values[tuple(hard.get(v.name, slice(None)) for v in variables)]
            variables = tuple(v for v in variables if v.name not in hard)
            values = self._scaled(values)
        elif factor.values.size and not 1e-9 < factor.values.max() < 1e9:
            values = self._scaled(values)
        for variable in variables:
            self._numbered(variable)
        if min(values.shape, default=2) < 2:
            variables = tuple(v for v in variables if v.card > 1)
            values = values.reshape([v.card for v in variables])
        return tuple([v.name for v in variables]), values

    def _scaled(self, values: Array) -> Array:
        """The values divided by their largest, whose ln is added to the scale."""
        top = float(values.max())
        if top <= 0:
            self.log_scale = -math.inf
            return np.asarray(values)
        self.log_scale += math.log(top)
        return np.asarray(values / top)

    def _numbered(self, variable: Variable) -> int:
        number = self.number.setdefault(variable.name, len(self.local))
        if number == len(self.local):
            self.local.append(np.ones(variable.card))
        return number

    def _weigh(self, names: tuple[str, ...], values: Array) -> None:
        if not names:
            self.log_scale += math.log(values.item()) if values.item() > 0 else -math.inf
        else:
            number = self.number[names[0]]
            self.local[number] = self._scaled(self.local[number] * values)


def _has_loops(scopes: Sequence[Sequence[int]], n_variables: int) -> bool:
    """Whether the graph of factors and variables has a cycle: an edge within what is joined already."""
    above = list(range(n_variables))
    for scope in scopes:
        roots = []
        for v in scope:
            while above[v] != v:
                above[v] = above[above[v]]
                v = above[v]
            roots.append(v)
        if len(set(roots)) < len(roots):
            return True
        for root in roots:
            above[root] = roots[0]
    return False


def _schedule(schedule: Any) -> str:
    if schedule not in SCHEDULES:
        raise ValueError(f"no schedule {schedule!r}; expected one of {', '.join(map(repr, SCHEDULES))}")
    return str(schedule)


def _damping(damping: Any) -> float | None:
    if damping is not None and not 0 <= damping < 1:
        raise ValueError(f"damping must lie from 0 up to but not including 1, found {damping!r}")
    return None if damping is None else float(damping)
