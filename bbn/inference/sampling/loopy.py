"""Loopy belief propagation: messages between factors and variables until they settle.

Pearl 1988; Murphy, Weiss and Jordan 1999; Kschischang, Frey and Loeliger 2001, equations 5 and 6:

    factor f to variable x:   μ(x) = Σ over f's other variables y of f(x, y) ∏ ν(y)
    variable x to factor f:   ν(x) = ∏ μ(x) over x's other factors

On a graph without loops the answer is exact after one pass there and back. With loops it is an approximation with
no known error, and it may not settle; damping, μ ← (1 − d) μ_new + d μ_old, helps. ln P(evidence) is the Bethe
approximation. One iteration costs the size of the tables times their number of axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from bbn.core.budget import Ledger
from bbn.core.errors import ConvergenceWarning, warn_user
from bbn.core.frozen import Array
from bbn.inference.exact.flat_model import factored
from bbn.inference.exact.relevant_factors import ancestral_factors, merged_factors, observed_factors
from bbn.inference.sampling.approximate import Approximate, Estimate
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork
from bbn.model.options import LoopyOptions
from bbn.results.sampling_report import SamplingReport

LOOP_DAMPING = 0.2
"""The damping of a graph with loops, where none is given."""
SCHEDULES = ("sequential", "flooding")


class LoopyBeliefPropagation(Approximate):
    """Loopy belief propagation, on networks and factor graphs: exact on trees, elsewhere without a known error.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    max_iter : int, default 500
        Iterations after which to give up.
    tol : float, default 1e-12
        Messages have settled when none changes by more than this.
    damping : float, optional
        The share of the old message that is kept, from 0 up to but not including 1; by default 0 on a tree and
        LOOP_DAMPING elsewhere.
    schedule : {"sequential", "flooding"}, default "sequential"
        "sequential": the factors in order, then in reverse, each from the newest messages; "flooding": all at once.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond.
    time_limit : float, optional
        The most seconds that one question may take; TimeLimitError beyond, as messages that have not settled may be far
        off. By default BBN_TIME_LIMIT, or any time.

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
    }

    def __init__(self, model: Model, **options: Unpack[LoopyOptions]) -> None:
        super().__init__(model, **options)
        self._chained: Model = factored(model) if isinstance(model, BayesianNetwork) else model

    def _estimate(
        self, groups: Sequence[tuple[str, ...]], findings: Findings, options: Mapping[str, Any]
    ) -> Estimate:
        wanted = {name for group in groups for name in group}
        relevant = ancestral_factors(self._chained, wanted | {*findings.hard, *findings.likelihood})
        self._require_memory(groups, relevant, findings, options)
        ones = [Factor.trusted((v,), np.ones(v.card)) for v in map(self.model.variable, sorted(wanted))]
        factors, log_scale = merged_factors([*observed_factors(self._chained, findings, relevant), *ones])
        messages = Messages(factors, options)
        n_iter, converged = messages.settle() if log_scale > -math.inf else (0, True)
        log_evidence = log_scale + messages.log_total()
        if log_evidence == -math.inf:
            size = sum(math.prod(self.model.variable(name).card for name in group) for group in groups)
            return Estimate(
                np.zeros(size), log_evidence, SamplingReport(None, None, n_iter, converged=converged)
            )
        parts = []
        for group in groups:
            part, settled = self._group(group, messages, findings, options)
            parts.append(part.reshape(-1))
            converged = converged and settled
        report = SamplingReport(None, None, n_iter, converged=converged)
        return Estimate(np.concatenate(parts), log_evidence, report)

    def _require_memory(
        self,
        groups: Sequence[tuple[str, ...]],
        factors: Sequence[Factor],
        findings: Findings,
        options: Mapping[str, Any],
    ) -> None:
        """BudgetError if the tables, sliced and merged, what weighs one of them, and the answers would not fit."""
        ledger = Ledger(options["memory_limit"])
        cells = [math.prod(v.card for v in f.variables if v.name not in findings.hard) for f in factors]
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
        within = messages.belief(group)
        if within is not None:
            return within, True
        first, rest = group[0], group[1:]
        marginal = messages.belief((first,))
        assert marginal is not None  # a variable is always within a factor
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


class Messages:
    """The factors of a model and the messages between them and their variables, each summing to 1."""

    def __init__(self, factors: Sequence[Factor], options: Mapping[str, Any]) -> None:
        self.factors = factors
        self.to_variable = [[np.full(v.card, 1 / v.card) for v in f.variables] for f in self.factors]
        self.around: dict[str, list[tuple[int, int]]] = {}
        for f, factor in enumerate(self.factors):
            for axis, name in enumerate(factor.names):
                self.around.setdefault(name, []).append((f, axis))
        self.max_iter, self.tol = int(options["max_iter"]), float(options["tol"])
        self.flooding = _schedule(options["schedule"]) == "flooding"
        self.damping = _damping(options["damping"], self._has_loops())

    def settle(self) -> tuple[int, bool]:
        """Pass messages until they change no more; the number of iterations, and whether they settled."""
        there = range(len(self.factors))
        order = list(there) if self.flooding else [*there, *reversed(there)]
        for n_iter in range(1, self.max_iter + 1):
            change = 0.0
            pending = []
            for f in order:
                check()
                new = self._outgoing(f)
                change = max(
                    change, *(np.abs(a - b).max() for a, b in zip(new, self.to_variable[f], strict=True))
                )
                if self.flooding:
                    pending.append((f, new))
                else:
                    self.to_variable[f] = new
            for f, new in pending:
                self.to_variable[f] = new
            if change <= self.tol:
                return n_iter, True
        return self.max_iter, False

    def belief(self, names: tuple[str, ...]) -> Array | None:
        """The belief in the joint states of variables that share a factor; None if no factor holds them all."""
        if len(names) == 1:
            return _normalised(self._product(names[0]))
        for f, factor in enumerate(self.factors):
            if set(names) <= set(factor.names):
                weighed = Factor.trusted(factor.variables, self._weighed(f, self._incoming(f)))
                rest = [name for name in factor.names if name not in names]
                return _normalised(weighed.sum_out(rest).permute(names).values)
        return None

    def log_total(self) -> float:
        """The Bethe approximation of ln Σ ∏ factors: Σ_f ln Z_f + Σ_x ln Z_x − Σ_fx ln Z_fx; −inf if it is zero."""
        added, taken = [], []
        for f in range(len(self.factors)):
            incoming = self._incoming(f)
            added.append(float(self._weighed(f, incoming).sum()))
            taken += [float(a @ b) for a, b in zip(incoming, self.to_variable[f], strict=True)]
        log_total = 0.0
        for name in self.around:
            scaled, log_scale = self._scaled_product(name)
            added.append(float(scaled.sum()))
            log_total += log_scale
        if min([*added, *taken], default=1.0) <= 0:
            return -math.inf
        return log_total + math.fsum(map(math.log, added)) - math.fsum(map(math.log, taken))

    def _outgoing(self, f: int) -> list[Array]:
        """The messages of a factor to its variables."""
        incoming = self._incoming(f)
        new = []
        for axis, old in enumerate(self.to_variable[f]):
            weighed = self._weighed(f, incoming, without=axis)
            others = tuple(a for a in range(weighed.ndim) if a != axis)
            message = _normalised(weighed.sum(axis=others))
            new.append((1 - self.damping) * message + self.damping * old if self.damping else message)
        return new

    def _incoming(self, f: int) -> list[Array]:
        """The messages of a factor's variables to it."""
        return [_normalised(self._product(name, without=f)) for name in self.factors[f].names]

    def _weighed(self, f: int, incoming: list[Array], without: int = -1) -> Array:
        """A factor times the messages to it, but for those along one axis."""
        values = self.factors[f].values
        for axis, message in enumerate(incoming):
            if axis != without:
                values = values * message.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        return values

    def _product(self, name: str, without: int = -1) -> Array:
        return self._scaled_product(name, without)[0]

    def _scaled_product(self, name: str, without: int = -1) -> tuple[Array, float]:
        """The product of the messages to a variable, scaled to a maximum of 1, and the ln of the scale."""
        messages = [self.to_variable[f][axis] for f, axis in self.around[name] if f != without]
        if not messages:
            f, axis = self.around[name][0]
            return np.ones(len(self.to_variable[f][axis])), 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(np.stack(messages)).sum(axis=0)
        highest = float(logs.max())
        return (np.exp(logs - highest), highest) if highest > -math.inf else (np.zeros(len(logs)), 0.0)

    def _has_loops(self) -> bool:
        """Whether the graph of factors and variables has more edges than a forest of its size."""
        import networkx as nx

        graph = nx.Graph(
            (("factor", f), ("variable", name)) for name, at in self.around.items() for f, _ in at
        )
        return len(graph) > 0 and not nx.is_forest(graph)


def _normalised(values: Array) -> Array:
    """The values divided by their sum; zeros stay zeros."""
    total = values.sum()
    return np.asarray(values / total) if total > 0 else values


def _schedule(schedule: Any) -> str:
    if schedule not in SCHEDULES:
        raise ValueError(f"no schedule {schedule!r}; expected one of {', '.join(map(repr, SCHEDULES))}")
    return str(schedule)


def _damping(damping: Any, loops: bool) -> float:
    if damping is None:
        return LOOP_DAMPING if loops else 0.0
    if not 0 <= damping < 1:
        raise ValueError(f"damping must lie from 0 up to but not including 1, found {damping!r}")
    return float(damping)
