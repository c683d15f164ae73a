"""The value of information: of one variable, of several, or of a test that is not in the network yet.

The value of knowing X before a decision is what the best policy is worth with X observed, minus what it is worth
without (Howard 1966); it is never negative with perfect recall, and 0 where X is d-separated from the utilities the
decision can still affect. Information is perfect where X is the very thing in question, imperfect where it is a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, NamedTuple

import networkx as nx

from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError, nearest, shown
from bbn.core.frozen import Frozen
from bbn.core.threads import limited
from bbn.decisions.elimination import INSTEAD
from bbn.decisions.solve import decision_of, solve
from bbn.model.cpt import CPT
from bbn.model.decision import Decision
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence, as_mapping
from bbn.model.variable import Continuous


@limited(INSTEAD)
def value_of_information(
    dn: DecisionNetwork,
    tests: Any,
    evidence: Evidence | None = None,
    decision: str | None = None,
    cost: float = 0.0,
    **options: Any,
) -> float:
    """See `DecisionNetwork.value_of_information`."""
    dn, names = _with_tests(dn, tests)
    if dn.recall == "limited":
        options = {"method": "auto", **options}
    with_it, without = _compared(dn, names, evidence, decision)
    gain = solve(with_it, evidence, **options).expected_utility - (
        solve(without, evidence, **options).expected_utility
    )
    return gain - _cost(cost)


class Worth(NamedTuple):
    """What a test, or several together, is worth."""

    names: tuple[str, ...]
    value: float
    """The value of information."""
    cost: float
    net: float
    """The value less the cost."""


class InformationValues(Tabular, Frozen):
    """What each test is worth, the best first.

    Attributes
    ----------
    entries
        `Worth` of each, the greatest net value first.
    best
        The best next test, or None if no test is worth its price.
    """

    __slots__ = ("entries",)

    entries: tuple[Worth, ...]

    def __init__(self, entries: Iterable[Worth]) -> None:
        self._set(entries=tuple(entries))

    @property
    def best(self) -> Worth | None:
        """The test of greatest net value, or None if no test is worth its price."""
        return next((entry for entry in self.entries[:1] if entry.net > 0), None)

    def __getitem__(self, names: str | tuple[str, ...]) -> Worth:
        """The worth of one test, or of several together."""
        wanted = {names} if isinstance(names, str) else set(names)
        for entry in self.entries:
            if set(entry.names) == wanted:
                return entry
        known = [entry.names[0] for entry in self.entries if len(entry.names) == 1]
        raise EvidenceError(f"there is no value for {shown(names)}{nearest(names, known)}")

    def __eq__(self, other: object) -> bool:
        return self.entries == other.entries if isinstance(other, InformationValues) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        best = self.best
        told = f"the best is {', '.join(best.names)}, {best.net:.6g}" if best else "none is worth its price"
        return f"<InformationValues of {len(self.entries)} tests: {told}>"

    def _table(self) -> Table:
        most = max((abs(entry.value) for entry in self.entries), default=0.0) or 1.0
        rows: list[list[Cell]] = [
            [", ".join(e.names), f"{e.value:.6g}", f"{e.cost:.6g}", f"{e.net:.6g}", Bar(e.value / most)]
            for e in self.entries
        ]
        return Table(["test", "value", "cost", "net", ""], rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return InformationValues, (self.entries,)


@limited(INSTEAD)
def information_values(
    dn: DecisionNetwork,
    tests: Iterable[Any] | None = None,
    evidence: Evidence | None = None,
    decision: str | None = None,
    costs: Mapping[str, float] | None = None,
    together: int = 1,
    **options: Any,
) -> InformationValues:
    """See `DecisionNetwork.information_values`."""
    given = list(tests) if tests is not None else _askable(dn, evidence, decision)
    named = {getattr(test, "name", test): test for test in given}
    prices = dict(costs or {})
    for name in prices:
        if name not in named:
            raise EvidenceError(f"there is a cost for {name!r}, which is not a test{nearest(name, named)}")
    entries = []
    for size in range(1, together + 1):
        for names in combinations(named, size):
            value = value_of_information(dn, [named[n] for n in names], evidence, decision, **options)
            cost = float(sum(_cost(prices.get(n, 0.0)) for n in names))
            entries.append(Worth(names, value, cost, value - cost))
    return InformationValues(sorted(entries, key=lambda e: (-e.net, len(e.names))))


def _with_tests(dn: DecisionNetwork, tests: Any) -> tuple[DecisionNetwork, list[str]]:
    """The network with the tests that are not in it, and the names of all."""
    listed = (
        [tests] if isinstance(tests, str | CPT) else list(tests) if isinstance(tests, Iterable) else [tests]
    )
    if not listed:
        raise EvidenceError("name at least one variable to know")
    new = [test for test in listed if isinstance(test, CPT)]
    for test in new:
        if test.name in dn:
            raise EvidenceError(f"the test {test.name!r} has the name of a node of the network")
    if new:
        dn = dn.with_nodes(new)
    names = [test.name if isinstance(test, CPT) else test for test in listed]
    for name in names:
        variable = dn.variable(name)
        if dn.kind(name) == "decision":
            raise EvidenceError(f"{name!r} is a decision; information is on chance variables")
        if isinstance(variable, Continuous):
            raise EvidenceError(f"{name!r} is continuous; add a discrete child of it and ask about that")
    return dn, names


def _compared(
    dn: DecisionNetwork, names: list[str], evidence: Evidence | None, decision: str | None
) -> tuple[DecisionNetwork, DecisionNetwork]:
    """The network in which a decision knows these, and the one in which no decision does."""
    fixed = set(as_mapping(evidence))
    if decision is not None:
        decision_of(dn, decision)
        if decision in fixed:
            raise EvidenceError(f"{decision!r} has been made already: it is in the evidence")
    without = {
        d.name: Decision(d.name, d.states, [seen for seen in d.observes if seen not in names])
        for d in dn.decisions
    }
    if decision is None and all(any(n in d.observes for d in dn.decisions) for n in names):
        return dn, dn.with_nodes(without.values())
    with_it = dict(without)
    for name in names:
        if decision is None and any(name in d.observes for d in dn.decisions):
            for d in dn.decisions:
                if name in d.observes:
                    with_it[d.name] = _observing(with_it[d.name], name)
            continue
        able = _able(dn, name, fixed)
        first = decision if decision is not None else next(iter(able), None)
        if first is None or first not in able:
            who = f"{decision!r} cannot know" if decision is not None else "no open decision can know"
            raise EvidenceError(f"{who} {name!r} in time: it depends on what is decided")
        order = [d.name for d in dn.decisions]
        later = order[order.index(first) :] if dn.recall == "perfect" else [first]
        for own in later:
            with_it[own] = _observing(with_it[own], name)
    return dn.with_nodes(with_it.values()), dn.with_nodes(without.values())


def _observing(decision: Decision, name: str) -> Decision:
    if name in decision.observes:
        return decision
    return Decision(decision.name, decision.states, (*decision.observes, name))


def _able(dn: DecisionNetwork, name: str, fixed: set[str]) -> list[str]:
    """The open decisions that can know the variable, in order: it depends on none of those that follow."""
    above = nx.ancestors(dn.graph, name)
    return [d.name for d in dn.decisions if d.name not in above and d.name not in fixed]


def _askable(dn: DecisionNetwork, evidence: Evidence | None, decision: str | None) -> list[str]:
    fixed = set(as_mapping(evidence))
    seen = {name for d in dn.decisions for name in d.observes}
    found = []
    for c in dn.conditionals:
        name = c.variable.name
        if name in fixed or name in seen or isinstance(c.variable, Continuous):
            continue
        able = _able(dn, name, fixed)
        if able and (decision is None or decision in able):
            found.append(name)
    return found


def _cost(cost: object) -> float:
    try:
        number = float(cost)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = float("nan")
    if not number >= 0 or number == float("inf"):
        raise ValueError(f"a cost is {shown(cost)}; expected a finite number, at least 0")
    return number
