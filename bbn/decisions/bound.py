"""Branch and bound: the best policy of a small diagram with limited memory, with proof.

If every decision knew all that the earlier ones knew, the best policy would be found in one pass and be worth at least
as much: an upper bound. A node of the search fixes the choice in some cases (a decision and what it observes); its
bound is that of the relaxed diagram in which these choices are the only ones allowed. The search goes first where the
bound is largest, and ends when no bound is above the best policy found (Khaled, Hansen and Yuan 2013; Yuan, Wu and
Hansen 2010). It branches on the first case, in time, in which the relaxed diagram would choose by what the decision
does not know; if there is none, the relaxed policy is one that the diagram allows, and the bound is attained.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy as np

from bbn.core.frozen import Array
from bbn.decisions.elimination import (
    Extra,
    Tape,
    allowed_name,
    compile_tape,
    evidence_extras,
    evidence_tables,
)
from bbn.decisions.limited import Rules, Search, perfect, same
from bbn.decisions.risk_attitude import goal_of
from bbn.decisions.solve import kept_tape, rules_of, strong_groups
from bbn.kernels.watch import check
from bbn.results.rule import Rule

Case = tuple[int, tuple[int, ...]]
"""A decision, and the codes of what it observes."""


def branch_and_bound(
    search: Search, rules: Rules, value: float, bound: float, node_limit: int
) -> tuple[Rules, float, float, bool]:
    """The best rules, their value, an upper bound of every policy's value, and whether the two are equal.

    `rules`, worth `value`, are the best so far; `bound` is that of the whole problem. At most `node_limit` nodes are
    examined.
    """
    relaxed = _Relaxed(search)
    count = itertools.count()
    start: dict[int, Array] = {d: np.ones(search.shape(d)) for d in search.open}
    queue: list[Any] = [(-bound, next(count), start)]
    n_nodes = 0
    while queue:
        bound = -queue[0][0]
        if bound <= value or same(bound, value):
            return rules, value, value, True
        if n_nodes >= node_limit:
            return rules, value, bound, False
        allowed = heapq.heappop(queue)[2]
        case, policy = relaxed.doubt(allowed)
        tried, worth = search.climb(_restricted(policy, allowed), search.open[::-1], sweeps=20)
        if worth > value:
            rules, value = tried, worth
        if case is None:
            continue
        d, place = case
        for choice in np.flatnonzero(allowed[d][place]):
            check()
            fewer = {**allowed, d: allowed[d].copy()}
            fewer[d][place] = 0.0
            fewer[d][(*place, int(choice))] = 1.0
            n_nodes += 1
            found = relaxed.bound(fewer)
            if found > value and not same(found, value):
                heapq.heappush(queue, (-found, next(count), fewer))
    return rules, value, value, True


class _Relaxed:
    """The diagram in which nothing is forgotten, with some choices ruled out."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.problem = perfect(search.problem)
        problem, given = self.problem, search.given
        own = search.problem.observes
        extras = [
            *evidence_extras(given),
            *(Extra(allowed_name(d), (*own[d], d), allowed=True) for d in search.open),
        ]

        def make() -> Tape:
            factors, limit = goal_of(search.scale), search.memory_limit
            return compile_tape(problem, strong_groups(problem), given.hard, extras, factors, limit)

        key = ("allowed", frozenset(given.hard), frozenset(given.likelihoods), goal_of(search.scale))
        self.tape = kept_tape(problem, key, make)

    def _run(self, allowed: dict[int, Array]) -> Any:
        tables = {allowed_name(d): table for d, table in allowed.items()}
        tables |= evidence_tables(self.search.given)
        return self.tape.run(self.search.cells, self.search.given.hard, tables, self.search.memory_limit)

    def bound(self, allowed: dict[int, Array]) -> float:
        """What the relaxed diagram is worth."""
        return self.search._objective(self._run(allowed))

    def doubt(self, allowed: dict[int, Array]) -> tuple[Case | None, Rules]:
        """The first case in which the relaxed policy depends on something unknown, and rules near that policy.

        Each rule takes the choice that the relaxed one makes most often in the case.
        """
        answer = self._run(allowed)
        policy = rules_of(self.problem, self.search.given, self.tape.slots, answer.choices)
        rules: Rules = {}
        doubted: Case | None = None
        for d in self.search.open:
            shares = self._shares(policy[self.problem.names[d]], d)
            rules[d] = np.eye(self.problem.cards[d])[shares.argmax(-1)]
            if doubted is None:
                unsure = np.argwhere((shares > 0).sum(-1) > 1)
                if len(unsure):
                    doubted = d, tuple(unsure[0].tolist())
        if doubted is None:
            doubted = next(
                (
                    (d, tuple(np.argwhere(allowed[d].sum(-1) > 1)[0].tolist()))
                    for d in self.search.open
                    if (allowed[d].sum(-1) > 1).any()
                ),
                None,
            )
        return doubted, rules

    def _shares(self, rule: Rule, d: int) -> Array:
        """For each case of the decision itself, how often the relaxed rule makes each choice."""
        own, all_seen = self.search.problem.observes[d], self.problem.observes[d]
        order = [all_seen.index(v) for v in own]
        order += [i for i in range(len(all_seen)) if i not in order]
        codes = rule.codes.transpose(order).reshape(*self.search.shape(d)[:-1], -1)
        return np.asarray(np.eye(self.problem.cards[d])[codes].mean(-2))


def _restricted(rules: Rules, allowed: dict[int, Array]) -> Rules:
    """The rules with choices that are not allowed replaced by the first that is."""
    found: Rules = {}
    for d, table in rules.items():
        bad = (table * allowed[d]).sum(-1) == 0
        first = np.eye(table.shape[-1])[allowed[d].argmax(-1)]
        found[d] = np.where(bad[..., None], first, table)
    return found
