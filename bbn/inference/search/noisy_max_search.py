"""The most probable explanations of networks with NoisyMax conditionals of many parents, without their tables.

A maximum over states may not be taken through the chain of effects, which have to be summed. But for a state y of the
child, with α = P(≤ y | x) and β = P(< y | x), both products over the parents,

    ln P(y | x) = ln α + g(T),   g(T) = ln(1 − e^T),   T = ln β − ln α = a sum over the parents,

and g is concave, so for every s ≥ 0 a line bounds it: g(T) ≤ c(s) − s T with c(s) = s ln s − (1 + s) ln(1 + s)
(Jaakkola and Jordan 1999). The bound is a product of tables of a parent and the child, or of a parent alone
(`variational_bounds`). The best explanations under it, in their order, come from one maximised forest; each s is
moved to where the bound is lowest, and where the bound and P still differ, the states of a parent are
told apart, each with bounds of its own. The answer is proved: no explanation that is left has a bound above it. The
weakest state needs no bound, as β = 0. Interchangeable variables are told apart by how many have each state.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import memory_limit
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.exact.elimination_orders import triangulate
from bbn.inference.exact.executor import Executor, executor_of
from bbn.inference.exact.problem import Factors, Question, relevant
from bbn.inference.exact.tree_plan import TreePlan, plan_tree, require, run_bytes
from bbn.inference.search.exchangeable_variables import classes, rearranged
from bbn.inference.search.pair_bounds import Pairs
from bbn.inference.search.variational_bounds import Codes, Lines, Span
from bbn.kernels.contracts.tape import COLLECTED
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import check
from bbn.model import expansion
from bbn.model.evidence import Findings, Model
from bbn.model.expansion import noisy, table_cells
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax

NODES = 20_000
"""The most parts of the space of explanations that are looked at."""
ARRAY_BYTES, PART_BYTES = 130, 3200
"""What an array takes beside its numbers, and what the rest of a part does: what ranks its explanations, mostly."""
WORK = 5e8
"""The most numbers that are looked at in all of them, by default."""
CLOSE = 1e-11
"""Logarithms that differ by no more are equal."""
OVERHEAD = 8000
"""What else a step costs, in numbers looked at."""
TINY = 1e-290
"""Entries beside a largest of 1 are never taken lower, which a bound may do, unless they are 0."""
FEW = 8.0
"""Tables of no more cells are not bounded, unless cliques do not fit."""
SINGLE = 4.0
"""Tables of no more cells, those of a cause of two states, are never bounded."""
LIGHT = 50_000.0
"""The cells of a junction forest that is collected in no time."""


def bounded(net: Model, beyond: float | None = None) -> list[NoisyMax]:
    """The conditionals whose tables are too large for a maximum over them."""
    if not isinstance(net, BayesianNetwork):
        return []
    most = expansion.TABLE_CELLS if beyond is None else beyond
    return [c for c in noisy(net) if table_cells(c) > most]


class _Part(NamedTuple):
    """Explanations whose codes lie between bounds, best first."""

    low: Codes
    high: Codes
    """The codes that each variable may have."""
    logs: Array
    """ln of the slopes of the lines."""
    pairs: list[Array]
    """The slopes of the pairs."""
    ranked: Iterator[tuple[Ints, float]]
    top: float
    """The highest bound."""
    span: Span
    """What the lines hold between."""


class NoisyBest:
    """The best explanations of one network, for findings of one shape.

    Parameters
    ----------
    net, findings
        What is asked about, and what is observed.
    options : mapping
        The engine's: memory_limit and order.
    k, work
        How many explanations will be asked for, and the most numbers that are looked at.
    """

    def __init__(
        self,
        net: BayesianNetwork,
        findings: Findings,
        options: Mapping[str, Any],
        k: int = 1,
        work: float = WORK,
    ) -> None:
        self.net, self.findings, self.k, self.work = net, findings, k, work
        self.most_bytes = memory_limit(options["memory_limit"])
        self._compile(self._most_cells(options))
        self.forest = self._first_that_fits(options)

    def _first_that_fits(self, options: Mapping[str, Any]) -> TreePlan:
        """The plan of a part's forest, with smaller and smaller tables bounded until it fits."""
        for beyond in (FEW, SINGLE):
            try:
                return self._forest(options)
            except BudgetError:
                if len(self.large) < len(bounded(self.net, beyond)):
                    self._compile(beyond)
        return self._forest(options)

    def _forest(self, options: Mapping[str, Any]) -> TreePlan:
        """The plan of a part's forest; BudgetError if it does not fit."""
        plan = plan_tree(self.model, self.question, options["order"], limit=options["memory_limit"])
        require(plan, self.most_bytes)
        return plan

    def _most_cells(self, options: Mapping[str, Any]) -> float:
        """The cells up to which full tables are made: bounds are looser than tables, but large cliques are slow."""
        most = float(expansion.TABLE_CELLS)
        while most > FEW:
            self._compile(most)
            needed = relevant(self.model, self.question)
            found = triangulate(self.model.cards, needed.ptr, needed.scope, options["order"], most=LIGHT)
            if found.cells <= LIGHT:
                return most
            sizes = [table_cells(c) for c in noisy(self.net)]
            most = max((size for size in sizes if size <= most / 8), default=FEW)
        return most

    def _compile(self, beyond: float) -> None:
        net, findings = self.net, self.findings
        self.large = bounded(net, beyond)
        lined = [c for c in self.large if _leaf(net, c, findings, self.k)]
        apart = {c.name for c in lined}
        self.variables = [v for v in net.variables if v.name not in apart]
        self.number = {v.name: i for i, v in enumerate(self.variables)}
        self.hard = [(self.number[n], code) for n, code in findings.hard.items() if n in self.number]
        self.observed = dict(self.hard)
        self.likelihood = [(self.number[n], values) for n, values in findings.likelihood.items()]
        cards = np.array([v.card for v in self.variables], np.intp)
        self.start = np.concatenate([[0], np.cumsum(cards)]).astype(np.intp)
        self.owner = np.repeat(np.arange(len(cards)), cards)
        self.code = np.arange(self.start[-1]) - self.start[:-1][self.owner]
        self.lines = Lines(lined, self.number, self.start, findings)
        self.pairs = Pairs([c for c in self.large if c.name not in apart], self.number)
        large = {own.name for own in self.large}
        self.rest = [c for c in net.conditionals if c.variable.name not in large]
        self.classes = classes(net, findings, self.number)
        self.of = {v: own for own in self.classes for v in own.members}
        self.model = self._flat(cards.tolist())
        self.question = Question(
            frozenset(self.observed), frozenset(v for v, _ in self.likelihood), goal=COLLECTED, maximise=True
        )

    def _flat(self, cards: list[int]) -> Factors:
        """A table of each variable alone, then those of the pairs, then the others as they are."""
        members: list[int] = list(range(len(cards)))
        tables: list[Array] = [np.ones(card) for card in cards]
        own_members, own_tables = self.pairs.tables()
        members += own_members
        tables += own_tables
        for conditional in self.rest:
            members += [self.number[v.name] for v in (*conditional.parents, conditional.variable)]
            tables.append(conditional.table)  # type: ignore[attr-defined]
        packed = kernels.layout.pack_factors(cards, members, tables, False)
        model = Factors(tuple(self.number), self.number, *packed, max(cards, default=1))
        self.pairs.placed(model.table_ptr.tolist()[len(cards) :])
        return model

    def best(self) -> list[tuple[dict[str, int], float]]:
        """The k best explanations as codes and ln P, best first; fewer where fewer are possible."""
        k = self.k
        found: dict[tuple[int, ...], float] = {}
        least: list[float] = []  # a heap of the k highest ln P
        heap: list[tuple[float, int, Ints, _Part]] = []
        made = 0
        most = min(NODES, int(self.work / (6 * (len(self.lines.shift) + self.forest.cells + OVERHEAD))))

        def offer(part: _Part | None) -> None:
            nonlocal made
            made += 1
            if part is not None:
                self._push(heap, made, part)

        low, high = np.zeros(len(self.variables), np.intp), np.diff(self.start) - 1
        for v, code in self.hard:
            low[v] = high[v] = code
        first = self._part(low, high, np.zeros(self.lines.n), self.pairs.slopes(), 30, -math.inf)
        part_bytes = 0 if first is None else self._bytes(first)
        offer(first)
        while heap:
            negative, _, codes, part = heapq.heappop(heap)
            if len(least) == k and -negative <= least[0] + CLOSE:
                break
            whole = dict(enumerate(codes[: len(self.variables)].tolist()))
            for own in self.classes:
                own.sort(whole)
            key = tuple(whole[i] for i in range(len(self.variables)))
            if key not in found:
                found[key] = self._log_probability(key)
                if found[key] > -math.inf:
                    for _ in range(min(k, math.prod(own.arrangements(whole) for own in self.classes))):
                        heapq.heappush(least, found[key])
                        if len(least) > k:
                            heapq.heappop(least)
            where = None if -negative <= found[key] + CLOSE else self._widest(part, key)
            if where is None:
                offer(part)
                continue
            for code in range(int(part.low[where]), int(part.high[where]) + 1):
                offer(self._narrowed(part, where, code, least[0] if len(least) == k else -math.inf))
            if made > most or len(heap) * part_bytes > self.most_bytes - self.forest.bytes:
                raise BudgetError(
                    f"the most probable explanation was not proved within {most:,} parts of the search, "
                    f"for the many parents of {_shown([c.name for c in self.large])}; observe more "
                    "variables (effects known to be absent cost nothing), leave out effects that nobody observed with "
                    "net.subnetwork(names), or ask for the states of a few variables with `map`"
                )
        return self._named(found, k)

    def _bytes(self, part: _Part) -> int:
        """The memory that a part takes while it waits: its tables, its run, its bounds, and its best explanation."""
        bounds = [part.low, part.high, part.logs, *part.pairs, *part.span]
        run = 8 * self.model.tables.size + run_bytes(self.forest.layout)  # type: ignore[arg-type]
        codes = 16 * len(self.variables)
        return run + codes + sum(own.nbytes + ARRAY_BYTES for own in bounds) + PART_BYTES

    def _named(self, found: Mapping[tuple[int, ...], float], k: int) -> list[tuple[dict[str, int], float]]:
        """The answers by name, those that only exchange interchangeable variables among them."""
        ranking = sorted(
            ((value, key) for key, value in found.items() if value > -math.inf),
            key=lambda pair: (-pair[0], pair[1]),
        )
        answers: list[tuple[dict[str, int], float]] = []
        for value, key in ranking:
            for codes in rearranged(dict(enumerate(key)), self.classes, k - len(answers)):
                shown = self.lines.shown(np.array([codes[i] for i in range(len(key))], np.intp)).tolist()
                apart = {
                    name: (self._conditional(name).weakest_code == 0) == strongest
                    for name, strongest in zip(self.lines.names, shown, strict=True)
                }
                named = {
                    name: int(apart[name]) if name in apart else codes[self.number[name]]
                    for name in self.net.names
                    if name not in self.findings.hard
                }
                answers.append((named, value))
            if len(answers) == k:
                break
        return answers

    def _conditional(self, name: str) -> NoisyMax:
        found = self.net[name]
        assert isinstance(found, NoisyMax)
        return found

    def _part(
        self, low: Codes, high: Codes, logs: Array, pairs: list[Array], rounds: int, enough: float
    ) -> _Part | None:
        """The explanations between these codes, under bounds moved as low as `rounds` steps move them.

        None if there are none, or none above `enough`.
        """
        check()
        logs, pairs = logs.copy(), [own.copy() for own in pairs]
        allowed = self._allowed(low, high)
        span = self.lines.span(allowed)
        best: _Part | None = None
        for r in range(rounds):
            tables, log_scale = self._tables(low, high, allowed, self.lines.slopes(span, logs), span, pairs)
            if log_scale == -math.inf:
                return None
            forest = self._opened(tables)
            ranked, log_bound = forest.ranked(self.hard, self.likelihood)
            if log_bound == -math.inf:
                return None
            first = next(ranked)
            top = log_bound + log_scale
            if top <= enough + CLOSE:
                return None
            if best is None or top < best.top:
                own = [slopes.copy() for slopes in pairs]
                best = _Part(low, high, logs.copy(), own, chain([first], ranked), top, span)
            codes = first[0][: len(self.variables)].astype(np.intp)
            change = (self.lines.wanted(span, codes) - np.clip(logs, span.least, span.most)) / (1 + r / 4)
            logs = np.clip(logs, span.least, span.most) + change
            moved = float(np.abs(change[np.isnan(span.chord) & ~self.lines.exact]).max(initial=0.0))
            if max(moved, self.pairs.move(pairs, codes, 1 + r / 4)) < 1e-9:
                break
        return best

    def _narrowed(self, part: _Part, v: int, code: int, enough: float) -> _Part | None:
        """The explanations of a part in which v has this state."""
        low, high = part.low.copy(), part.high.copy()
        low[v] = high[v] = code
        if v in self.of:
            self.of[v].limit(v, code, low, high)
        return self._part(low, high, part.logs, part.pairs, 6, enough)

    def _allowed(self, low: Codes, high: Codes) -> NDArray[np.bool_]:
        """Per state of each variable, whether it lies between these codes."""
        return np.asarray((self.code >= low[self.owner]) & (self.code <= high[self.owner]))

    def _opened(self, tables: Array) -> Executor:
        """What runs the forest with these tables."""
        plan = self.forest._replace(factors=self.model._replace(tables=tables))
        return executor_of(plan, 2 * int(plan.bytes) + 2**40)

    def _tables(
        self,
        low: Codes,
        high: Codes,
        allowed: NDArray[np.bool_],
        slopes: Array,
        span: Span,
        pairs: list[Array],
    ) -> tuple[Array, float]:
        """The flat tables with these bounds, each scaled to a largest entry of 1, and ln of all scales."""
        tables = self.model.tables.copy()
        values = np.where(allowed, self.lines.unary(slopes), -np.inf)
        offsets = self.lines.offsets(span, slopes) - slopes * self.lines.leak
        log_scale = self.lines.constant + float(offsets.sum())
        if len(values):
            highest = np.maximum.reduceat(values, self.start[:-1])
            if highest.min() == -np.inf or log_scale == -math.inf:
                return tables, -math.inf
            tables[: len(values)] = _scaled(values - highest[self.owner])
            log_scale += float(highest.sum())
        for start, own in self.pairs.values(pairs, low, high):
            top = float(own.max())
            if top == -math.inf:
                return tables, -math.inf
            tables[start : start + own.size] = _scaled(own - top).ravel()
            log_scale += top
        return tables, log_scale

    def _log_probability(self, key: tuple[int, ...]) -> float:
        codes = np.array(key, np.intp)
        logs = self.lines.constant + float(self.lines.truth(self.lines.sums(codes)).sum())
        logs += float(self.lines.fixed[self.start[:-1] + codes].sum())
        for conditional in (*self.rest, *self.pairs.conditionals):
            row = conditional.row_at([key[self.number[v.name]] for v in conditional.parents])  # type: ignore[attr-defined]
            p = float(row[key[self.number[conditional.variable.name]]])
            logs += math.log(p) if p > 0.0 else -math.inf
        for v, values in self.likelihood:
            logs += math.log(float(values[key[v]])) if values[key[v]] > 0.0 else -math.inf
        return logs

    def _widest(self, part: _Part, key: tuple[int, ...]) -> int | None:
        """The variable to tell the states of apart: a child of a pair, or the parent with most of all gaps."""
        codes = np.array(key, np.intp)
        free = part.low < part.high
        allowed, span = self._allowed(part.low, part.high), part.span
        slopes = self.lines.slopes(span, part.logs)
        sums = self.lines.sums(codes)
        with np.errstate(invalid="ignore"):
            gaps = self.lines.offsets(span, slopes) - slopes * sums - self.lines.truth(sums)
        blame = self.lines.blame(np.maximum(gaps, 0.0), allowed, codes)
        self.pairs.blame(part.pairs, codes, free, blame)
        blame[~free] = -1.0
        if not len(blame) or blame.max() <= 0.0:
            return None
        v = int(blame.argmax())
        if v in self.of:
            open_members = [u for u in self.of[v].members if free[u]]
            return open_members[len(open_members) // 2]
        return v

    def _push(self, heap: list[Any], number: int, part: _Part) -> None:
        following = next(part.ranked, None)
        if following is not None:
            codes, log_ratio = following
            heapq.heappush(heap, (-(part.top + log_ratio), number, codes, part))


def _leaf(net: BayesianNetwork, own: NoisyMax, findings: Findings, k: int) -> bool:
    """Whether lines bound a conditional by itself: its child has no children, and is observed or has two states.

    Of a child that is not observed they know the better state alone, so they serve for one explanation only.
    """
    if net.children(own.name) or own.name in findings.likelihood:
        return False
    return own.name in findings.hard or (own.variable.card == 2 and k == 1)


def _scaled(logs: Array) -> Array:
    values = np.exp(logs)
    values[(values < TINY) & (logs > -np.inf)] = TINY
    return np.asarray(values)


def _shown(names: list[str]) -> str:
    some = ", ".join(map(repr, names[:5]))
    return some if len(names) <= 5 else f"{some} and {len(names) - 5} others"
