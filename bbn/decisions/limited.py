"""Limited memory: single policy updating, from several starts (Lauritzen and Nilsson 2001).

With the rules of all other decisions fixed, the best rule for one decision follows from one elimination; improving one
rule after the other never lowers the expected utility, and ends where no single change helps. That is a local optimum,
and is reported as one, unless:

- the diagram is *soluble*: some decision D can be solved whatever the others do (its utilities depend on what the
  others know and choose only through what D knows), the rest is soluble once D's rule is fixed, and so one pass is
  exact; or
- branch and bound proves it (`bbn.decisions.bound`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.decisions.elimination import Tape, compile_tape, evidence_extras, evidence_tables, rule_name
from bbn.decisions.problem import DecisionProblem, Known
from bbn.decisions.risk_attitude import goal_of, objective
from bbn.decisions.solve import kept_tape, rule_extras, rules_of, strong_tape
from bbn.kernels.watch import check
from bbn.results.rule import Rule

if TYPE_CHECKING:
    import networkx as nx

CLOSE = 1e-12
"""Two expected utilities are the same if they differ by at most this much of the larger."""
SWEEPS = 1000
"""The most rounds of updates from one start."""

Found = tuple[dict[str, Rule], float, float, bool, str]
"""Rules, what they are worth, what none is worth more than, whether that is proved, and how it was found."""


def solve_limited(
    problem: DecisionProblem,
    given: Known,
    cells: Array,
    shift: float,
    scale: float | None,
    method: str,
    restarts: int,
    seed: Any,
    node_limit: int,
    memory_limit: int | float | str | None,
) -> Found:
    """The best policy found where each decision knows only what it observes."""
    search = Search(problem, given, cells, shift, scale, memory_limit)
    if not search.open:
        return {}, search.value({}), search.value({}), True, "elimination"
    order = soluble_order(problem, search.open)
    if order is not None:
        rules, value = search.climb(search.uniform(), order, sweeps=1)
        return search.named(rules), value, value, True, "single policy updating"
    rules, value = search.best_climb(restarts, seed)
    bound = search.relaxed_value()
    if same(value, bound):
        return search.named(rules), value, value, True, "single policy updating"
    if method == "local":
        return search.named(rules), value, bound, False, "single policy updating"
    from bbn.decisions.bound import branch_and_bound

    rules, value, bound, proved = branch_and_bound(search, rules, value, bound, node_limit)
    if not proved and method == "exact":
        raise BudgetError(
            f"after {node_limit} partial policies the best one is worth {value:.9g} and none can be worth more than "
            f"{bound:.9g}; raise node_limit=, or take the local answer with method='local'"
        )
    how = "branch and bound" if proved else "single policy updating"
    return search.named(rules), value, value if proved else bound, proved, how


def same(a: float, b: float) -> bool:
    """Whether two values are equal except for rounding."""
    return abs(a - b) <= CLOSE * max(1.0, abs(a), abs(b))


Rules = dict[int, Array]
"""The table of each open decision's rule, over what it observes and its own choices."""


class Search:
    """The rules of the open decisions, and how to improve them."""

    def __init__(
        self,
        problem: DecisionProblem,
        given: Known,
        cells: Array,
        shift: float,
        scale: float | None,
        memory_limit: int | float | str | None,
    ) -> None:
        self.problem, self.given, self.cells = problem, given, cells
        self.shift, self.scale, self.memory_limit = shift, scale, memory_limit
        self.open = [d for d in problem.decisions if d not in given.hard]

    def shape(self, d: int) -> tuple[int, ...]:
        """The shape of a decision's rule."""
        return tuple(self.problem.cards[v] for v in (*self.problem.observes[d], d))

    def uniform(self) -> Rules:
        """Every choice as probable as the others."""
        return {d: np.full(self.shape(d), 1.0 / self.problem.cards[d]) for d in self.open}

    def random(self, rng: np.random.Generator) -> Rules:
        """A choice at random for each case."""
        return {
            d: np.eye(self.problem.cards[d])[rng.integers(self.problem.cards[d], size=self.shape(d)[:-1])]
            for d in self.open
        }

    def best_climb(self, restarts: int, seed: Any) -> tuple[Rules, float]:
        """The best of several climbs, the first from uniform rules, the others from random ones."""
        if isinstance(restarts, bool) or not isinstance(restarts, int) or restarts < 1:
            raise ValueError(f"restarts is {restarts!r}; expected a whole number, at least 1")
        rng = np.random.default_rng(seed)
        order = self.open[::-1]
        best = self.climb(self.uniform(), order)
        for _ in range(restarts - 1):
            other = self.climb(self.random(rng), order)
            if other[1] > best[1] and not same(other[1], best[1]):
                best = other
        return best

    def climb(self, rules: Rules, order: Sequence[int], sweeps: int = SWEEPS) -> tuple[Rules, float]:
        """Update one rule after the other until none gets better."""
        rules, value = dict(rules), -math.inf
        for _ in range(sweeps):
            before = value
            for d in order:
                check()
                rules[d], value = self.update(rules, d)
            if len(order) == 1 or not value > before or same(value, before):
                break
        return rules, value

    def update(self, rules: Mapping[int, Array], d: int) -> tuple[Array, float]:
        """The best rule for one decision while the others keep theirs, and what all are then worth."""
        tape = self._tape(d)
        answer = tape.run(self.cells, self.given.hard, self._tables(rules), self.memory_limit)
        slot = tape.slots.get(d)
        card = self.problem.cards[d]
        if slot is None:
            return np.broadcast_to(np.eye(card)[0], self.shape(d)).copy(), self._objective(answer)
        rule = rules_of(self.problem, self.given, {d: slot}, answer.choices)[self.problem.names[d]]
        return np.eye(card)[rule.codes], self._objective(answer)

    def value(self, rules: Mapping[int, Array]) -> float:
        """What rules for all open decisions are worth."""
        tape = self._tape(None)
        return self._objective(tape.run(self.cells, self.given.hard, self._tables(rules), self.memory_limit))

    def relaxed_value(self) -> float:
        """What the decisions would be worth if each knew all that the earlier ones knew: no policy is worth more."""
        relaxed = perfect(self.problem)
        tape = strong_tape(relaxed, self.given, (), goal_of(self.scale), self.memory_limit)
        return self._objective(
            tape.run(self.cells, self.given.hard, evidence_tables(self.given), self.memory_limit)
        )

    def named(self, rules: Mapping[int, Array]) -> dict[str, Rule]:
        """The rules by name."""
        variables = self.problem.variables
        return {
            self.problem.names[d]: Rule(
                variables[d], tuple(variables[v] for v in self.problem.observes[d]), rules[d].argmax(-1)
            )
            for d in self.open
        }

    def _tables(self, rules: Mapping[int, Array]) -> dict[str, Array]:
        return {**evidence_tables(self.given), **{rule_name(d): table for d, table in rules.items()}}

    def _objective(self, answer: Any) -> float:
        return objective(answer, self.scale, self.shift)

    def _tape(self, free: int | None) -> Tape:
        """The elimination of everything but one decision and what it observes, then of these."""
        problem, given = self.problem, self.given

        def make() -> Tape:
            extras = [*evidence_extras(given), *rule_extras(problem, [d for d in self.open if d != free])]
            everything = range(len(problem.names))
            groups: list[tuple[bool, Sequence[int]]] = [(False, everything)]
            if free is not None:
                seen = problem.observes[free]
                hidden = [v for v in everything if v != free and v not in seen]
                groups = [(False, hidden), (True, [free]), (False, seen)]
            return compile_tape(problem, groups, given.hard, extras, goal_of(self.scale), self.memory_limit)

        key = ("update", free, frozenset(given.hard), frozenset(given.likelihoods), goal_of(self.scale))
        return kept_tape(problem, key, make)


def perfect(problem: DecisionProblem) -> DecisionProblem:
    """The problem in which each decision also knows what the earlier ones knew and chose."""
    if problem.relaxed is None:
        problem.relaxed = problem.with_observed(_remembered(problem))
    return problem.relaxed


def _remembered(problem: DecisionProblem) -> dict[int, tuple[int, ...]]:
    observes: dict[int, tuple[int, ...]] = {}
    known: tuple[int, ...] = ()
    for d in problem.decisions:
        observes[d] = tuple(dict.fromkeys((*problem.observes[d], *known)))
        known = (*observes[d], d)
    return observes


# Solubility


def soluble_order(problem: DecisionProblem, decisions: Sequence[int]) -> list[int] | None:
    """An order in which each decision can be solved whatever those after it do; None if there is none.

    A decision D is solved first if the utilities below it are independent, given D and what it observes, of the other
    decisions that are still open and of what these observe (Lauritzen and Nilsson 2001, section 5).
    """
    import networkx as nx

    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_nodes_from(range(len(problem.names)))
    graph.add_edges_from((p, v) for v, own in problem.parents.items() for p in own)
    for k, tab in enumerate(problem.utilities):
        graph.add_node(("utility", k))
        graph.add_edges_from((v, ("utility", k)) for v in tab.scope)
    left, order = list(decisions), []
    while left:
        found = next((d for d in reversed(left) if _is_extremal(graph, problem, d, left)), None)
        if found is None:
            return None
        order.append(found)
        left.remove(found)
    return order


def _is_extremal(graph: nx.DiGraph[Any], problem: DecisionProblem, d: int, left: Sequence[int]) -> bool:
    import networkx as nx

    family = {d, *problem.observes[d]}
    below = {v for v in nx.descendants(graph, d) if isinstance(v, tuple)}
    others = {v for e in left if e != d for v in (e, *problem.observes[e])} - family
    if not below or not others:
        return True
    return bool(nx.is_d_separator(graph, below, others, family))
