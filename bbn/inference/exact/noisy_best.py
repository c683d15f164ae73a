"""The most probable explanations of networks with NoisyMax conditionals of many parents, without their tables.

A maximum over states may not be taken through the chain of effects, which have to be summed. But for a state y of the
child, with α = P(≤ y | x) and β = P(< y | x), both products over the parents,

    ln P(y | x) = ln α + g(T),   g(T) = ln(1 − e^T),   T = ln β − ln α = a sum over the parents,

and g is concave, so for every s ≥ 0 a line bounds it: g(T) ≤ c(s) − s T with c(s) = s ln s − (1 + s) ln(1 + s)
(Jaakkola and Jordan 1999). The bound is a product of tables of a parent and the child. The best explanations under it,
in their order, come from one maximised junction forest; each s is moved to where the bound is lowest, and where the
bound and P still differ, the states of a parent are told apart, each with bounds of its own. The answer is proved: no
explanation that is left has a bound above it. The weakest state needs no bound, as β = 0.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.exact.explanations import MaximisedForest
from bbn.inference.exact.plan import FlatModel, Plan, Question, make_plan, price
from bbn.kernels.contracts.tape import COLLECTED
from bbn.model import expansion
from bbn.model.evidence import Findings
from bbn.model.expansion import noisy, table_cells
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax

NODES = 20_000
"""The most parts of the space of explanations that are looked at."""
CERTAIN = -40.0
"""T is never taken lower: e^T is beyond the digits of 1 − e^T there."""
FLAT, STEEP = 1e-18, 1e6
"""The least and the largest slope of a line."""
CLOSE = 1e-11
"""Logarithms that differ by no more are equal."""
TINY = 1e-290
"""Entries beside a largest of 1 are never taken lower, which a bound may do, unless they are 0."""


def bounded(net: BayesianNetwork) -> list[NoisyMax]:
    """The conditionals whose tables are too large for a maximum over them."""
    return [c for c in noisy(net) if table_cells(c) > expansion.TABLE_CELLS]


class _Noisy(NamedTuple):
    """A NoisyMax that is bounded: numbers of its variables, and ln α and T of each cause, all per child's state."""

    child: int
    parents: list[int]
    log_alpha: list[Array]
    """Per parent, shape (states of the parent, states of the child); the leak's, with one row, last."""
    shift: list[Array]
    """T, likewise."""
    factors: list[int]
    """Where the table of each parent and the child begins among the flat tables; the child's own is last."""


class _Part(NamedTuple):
    """Explanations with some states fixed, best bounds first."""

    fixed: dict[int, int]
    slopes: list[Array]
    ranked: Iterator[tuple[dict[int, int], float]]
    top: float
    """The highest bound."""


class NoisyBest:
    """The best explanations of one network, for findings of one shape.

    Parameters
    ----------
    net : BayesianNetwork
        The network.
    findings : Findings
        What is observed.
    options : mapping
        The engine's: memory_limit and order.
    """

    def __init__(self, net: BayesianNetwork, findings: Findings, options: Mapping[str, Any]) -> None:
        self.net, self.findings = net, findings
        self.number = {v.name: i for i, v in enumerate(net.variables)}
        self.hard = [(self.number[name], code) for name, code in findings.hard.items()]
        self.observed = dict(self.hard)
        self.likelihood = [(self.number[name], values) for name, values in findings.likelihood.items()]
        self.noisy: list[_Noisy] = []
        self.model = self._flat()
        self.question = Question(
            frozenset(self.observed), frozenset(v for v, _ in self.likelihood), goal=COLLECTED, maximise=True
        )
        self.cost = price(self.model, self.question, options["order"])
        make_plan(self.model, self.question, self.cost, options["memory_limit"])  # refuses what does not fit

    def best(self, k: int) -> list[tuple[dict[str, int], float]]:
        """The k best explanations as codes and ln P, best first; fewer where fewer are possible."""
        found: dict[tuple[int, ...], tuple[float, dict[int, int]]] = {}
        least: list[float] = []  # a heap of the k highest ln P
        heap: list[tuple[float, int, dict[int, int], _Part]] = []
        made = 0

        def offer(part: _Part | None) -> None:
            nonlocal made
            if part is not None:
                self._push(heap, made, part)
                made += 1

        offer(self._part({}, [_slopes(own.shift[-1][0]) for own in self.noisy], 30))
        while heap:
            negative, _, states, part = heapq.heappop(heap)
            if len(least) == k and -negative <= least[0] + CLOSE:
                break
            whole = {**states, **self.observed}
            key = tuple(whole[i] for i in range(len(self.number)))
            if key not in found:
                value = self._log_probability(whole)
                found[key] = value, states
                if value > -math.inf:
                    heapq.heappush(least, value)
                    if len(least) > k:
                        heapq.heappop(least)
            where = None if -negative <= found[key][0] + CLOSE else self._widest(part, whole)
            if where is None:
                offer(part)
                continue
            for code in range(int(self.model.cards[where])):
                offer(self._part({**part.fixed, where: code}, part.slopes, 6))
            if made > NODES:
                raise BudgetError(
                    f"the most probable explanation was not proved within {NODES:,} parts of the search, "
                    f"for the many parents of {', '.join(repr(c.name) for c in bounded(self.net))}; observe more "
                    "variables, or ask for the states of fewer with `map`"
                )
        ranking = sorted(
            ((value, key) for key, (value, _) in found.items() if value > -math.inf),
            key=lambda pair: (-pair[0], pair[1]),
        )
        names = self.net.names
        return [
            ({name: key[self.number[name]] for name in names if name not in self.findings.hard}, value)
            for value, key in ranking[:k]
        ]

    def _flat(self) -> FlatModel:
        large = {c.name for c in bounded(self.net)}
        members: list[int] = []
        tables: list[Array] = []
        places: list[tuple[NoisyMax, list[int]]] = []
        for conditional in self.net.conditionals:
            child = self.number[conditional.variable.name]
            if conditional.variable.name not in large:
                members += [self.number[v.name] for v in conditional.parents] + [child]
                tables.append(conditional.table)  # type: ignore[attr-defined]
                continue
            assert isinstance(conditional, NoisyMax)
            first = len(tables)
            for parent in conditional.parents:
                members += [self.number[parent.name], child]
                tables.append(np.ones((parent.card, conditional.variable.card)))
            members.append(child)
            tables.append(np.ones(conditional.variable.card))
            places.append((conditional, list(range(first, len(tables)))))
        cards = [v.card for v in self.net.variables]
        packed = kernels.layout.pack_factors(cards, members, tables, False)
        model = FlatModel(tuple(self.number), self.number, *packed, max(cards))
        starts = model.table_ptr.tolist()
        self.noisy = [self._terms(own, [starts[f] for f in factors]) for own, factors in places]
        return model

    def _terms(self, own: NoisyMax, factors: list[int]) -> _Noisy:
        rises = own.strongest == own.variable.states[-1]
        log_alpha, shift = [], []
        for link in (*own.links, own.leak[None]):
            ordered = link if rises else link[:, ::-1]
            alpha = np.cumsum(ordered, axis=1)
            alpha[:, -1] = 1.0
            beta = np.concatenate([np.zeros((len(link), 1)), alpha[:, :-1]], axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs, terms = np.log(alpha), np.maximum(np.log(beta) - np.log(alpha), CERTAIN)
            terms[~(alpha > 0)] = 0.0
            log_alpha.append(logs if rises else logs[:, ::-1])
            shift.append(terms if rises else terms[:, ::-1])
        return _Noisy(
            self.number[own.name], [self.number[v.name] for v in own.parents], log_alpha, shift, factors
        )

    def _part(self, fixed: dict[int, int], slopes: Sequence[Array], rounds: int) -> _Part | None:
        """The explanations with these states, under bounds moved as low as `rounds` steps move them."""
        slopes = [own.copy() for own in slopes]
        best: _Part | None = None
        for r in range(rounds):
            tables, log_scale = self._tables(fixed, slopes)
            plan = self._plan(tables)
            work, base, log_bound, logs = plan.collect(self.hard, self.likelihood)
            if log_bound == -math.inf:
                return None
            forest = MaximisedForest(plan.layout, self.model.cards, work, base, logs)
            top = log_bound + log_scale
            if best is None or top < best.top:
                best = _Part(fixed, [own.copy() for own in slopes], forest.ranked(), top)
            whole = {**forest.best(), **self.observed}
            moved = 0.0
            for own, slope in zip(self.noisy, slopes, strict=True):
                y = whole[own.child]
                wanted = _slope(self._shift(own, whole, y))
                change = (math.log(wanted) - math.log(slope[y])) / (1 + r / 4)
                slope[y] = min(max(slope[y] * math.exp(change), FLAT), STEEP)
                moved = max(moved, abs(change))
            if moved < 1e-9:
                break
        return best

    def _plan(self, tables: Array) -> Plan:
        assert self.cost.layout is not None
        model = self.model._replace(tables=tables)
        return Plan(
            model, self.question, self.cost.layout, int(self.cost.bytes), 2 * int(self.cost.bytes) + 2**40
        )

    def _tables(self, fixed: Mapping[int, int], slopes: Sequence[Array]) -> tuple[Array, float]:
        """The flat tables with these bounds, each scaled to a largest entry of 1, and ln of all scales."""
        tables = self.model.tables.copy()
        log_scale = 0.0
        known = {**fixed, **self.observed}
        for own, slope in zip(self.noisy, slopes, strict=True):
            certain = all(v in known for v in own.parents)
            for v, start, logs, shift in zip(
                [*own.parents, -1], own.factors, own.log_alpha, own.shift, strict=True
            ):
                values = logs - slope * shift
                if v < 0:
                    values = values + _conjugate(slope)
                    if certain:  # nothing is left to be bounded: the last table holds all
                        values = self._row(own, known)[None]
                    if own.child in fixed:
                        values[:, np.arange(values.shape[1]) != fixed[own.child]] = -np.inf
                elif certain:
                    values = np.zeros(values.shape)
                if v in fixed:
                    values[np.arange(len(values)) != fixed[v]] = -np.inf
                highest = float(values.max())
                if highest == -math.inf:
                    tables[start : start + values.size] = 0.0
                    continue
                scaled = np.exp(values - highest)
                scaled[(scaled < TINY) & (values > -np.inf)] = TINY
                tables[start : start + values.size] = scaled.ravel()
                log_scale += highest
        return tables, log_scale

    def _row(self, own: _Noisy, whole: Mapping[int, int]) -> Array:
        """ln P(child | these states of its parents)."""
        row = self._conditional(own).row_at([whole[v] for v in own.parents])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(row))

    def _conditional(self, own: _Noisy) -> NoisyMax:
        found = self.net[self.net.variables[own.child].name]
        assert isinstance(found, NoisyMax)
        return found

    def _shift(self, own: _Noisy, whole: Mapping[int, int], y: int) -> float:
        """T of an explanation."""
        terms = [float(shift[whole[v], y]) for v, shift in zip(own.parents, own.shift, strict=False)]
        return sum(terms) + float(own.shift[-1][0, y])

    def _log_probability(self, whole: Mapping[int, int]) -> float:
        logs = 0.0
        for conditional in self.net.conditionals:
            codes = [whole[self.number[v.name]] for v in conditional.parents]
            p = float(conditional.row_at(codes)[whole[self.number[conditional.variable.name]]])  # type: ignore[attr-defined]
            if p <= 0.0:
                return -math.inf
            logs += math.log(p)
        for v, values in self.likelihood:
            if values[whole[v]] <= 0.0:
                return -math.inf
            logs += math.log(float(values[whole[v]]))
        return logs

    def _widest(self, part: _Part, whole: Mapping[int, int]) -> int | None:
        """The variable to tell the states of apart: of the loosest bound the child, or the parent that says most."""
        gaps: list[tuple[float, int]] = []
        known = {**part.fixed, **self.observed}
        for j, (own, slope) in enumerate(zip(self.noisy, part.slopes, strict=True)):
            y = whole[own.child]
            if own.child in known and all(v in known for v in own.parents):
                continue
            shift = self._shift(own, whole, y)
            bound = _conjugate(slope[y]) - slope[y] * shift
            truth = math.log(-math.expm1(shift)) if shift < 0 else -math.inf
            gaps.append((bound - truth, -j))
        for _, j in sorted(gaps, reverse=True):
            own = self.noisy[-j]
            if own.child not in known:
                return own.child
            y = whole[own.child]
            free = [
                (float(np.ptp(shift[:, y])), -v)
                for v, shift in zip(own.parents, own.shift, strict=False)
                if v not in known and len(shift) > 1
            ]
            if free:
                return -max(free)[1]
        return None

    def _push(self, heap: list[Any], number: int, part: _Part) -> None:
        following = next(part.ranked, None)
        if following is not None:
            states, log_ratio = following
            heapq.heappush(heap, (-(part.top + log_ratio), number, states, part))


def _conjugate(slope: Any) -> Any:
    """c(s), the highest of g(T) + s T."""
    return slope * np.log(slope) - (1 + slope) * np.log1p(slope)


def _slopes(shifts: Array) -> Array:
    """Those of the leak alone, per state of the child: almost 0 for the weakest, whose bound is P itself."""
    return np.array([_slope(shift) for shift in shifts.tolist()])


def _slope(shift: float) -> float:
    """The s of the line that touches g at T."""
    chance = math.exp(min(shift, -1e-9))
    return min(max(chance / -math.expm1(min(shift, -1e-9)), FLAT), STEEP)
