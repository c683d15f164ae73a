"""What makes nodes a decision network: known parents, one order of time, and nothing forgotten that should be known."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import pairwise

from bbn.core.cycles import find_cycle, shown_cycle
from bbn.core.errors import ModelError, nearest, shown
from bbn.model.assembly import without_node
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.decision import Decision, Utility
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Continuous

Node = Conditional | Decision | Utility


def by_name(nodes: Iterable[Node]) -> dict[str, Node]:
    """Name to node, in the order given; ModelError for what is not a node, or is there twice."""
    if isinstance(nodes, str | Mapping | Node) or not isinstance(nodes, Iterable):
        raise ModelError(f"a decision network needs a list of nodes, found {shown(nodes)}")
    given: dict[str, Node] = {}
    for node in nodes:
        if not isinstance(node, CPT | Decision | Utility | Gaussian | Conditional):
            raise ModelError(
                "a decision network is made of CPTs, Decisions and Utilities, "
                f"found {shown(node)} ({type(node).__name__})"
            )
        name = node.name if isinstance(node, Decision | Utility) else node.variable.name
        if name in given:
            raise ModelError(f"duplicate node: there are two nodes {name!r}")
        given[name] = node
    return given


def parent_names(node: Node) -> tuple[str, ...]:
    """The names of a node's parents; of a decision, what it observes."""
    return node.observes if isinstance(node, Decision) else tuple(p.name for p in node.parents)


def check_families(given: Mapping[str, Node]) -> None:
    """ModelError if a parent is unknown, is another thing than its own node says, or cannot be known."""
    for name, node in given.items():
        if isinstance(node, Decision):
            _check_observed(node, given)
            continue
        kind = "utility" if isinstance(node, Utility) else "node"
        for parent in node.parents:
            own = given.get(parent.name)
            if own is None:
                raise ModelError(f"{kind} {name!r} {without_node(parent.name, given, 'node')}")
            if isinstance(own, Utility) or isinstance(parent, Utility):
                if own != parent:
                    raise ModelError(
                        f"{kind} {name!r}: its parent {parent.name!r} is {shown(parent)}, but {parent.name!r} itself "
                        f"is {shown(own)}"
                    )
                continue
            if own.variable != parent:
                raise ModelError(
                    f"{kind} {name!r}: its parent is {parent!r}, but {parent.name!r} itself is {own.variable!r}"
                )
            if isinstance(node, CPT) and isinstance(parent, Continuous):
                raise ModelError(discrete_child(name, parent.name))


def _check_observed(decision: Decision, given: Mapping[str, Node]) -> None:
    for seen in decision.observes:
        own = given.get(seen)
        if own is None:
            raise ModelError(
                f"decision {decision.name!r} observes {seen!r}, which is not a node{nearest(seen, given)}"
            )
        if isinstance(own, Utility):
            raise ModelError(
                f"decision {decision.name!r} observes the utility {seen!r}; expected variables and decisions"
            )
        if isinstance(own.variable, Continuous):
            raise ModelError(
                f"decision {decision.name!r} observes {seen!r}, which is continuous; "
                "a policy is a table over states: add a discrete child of it and observe that"
            )


def time_order(given: Mapping[str, Node], parents: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Parents before children; of decisions that could come next, the one that knows least; ModelError at a cycle."""
    place = {name: i for i, name in enumerate(given)}
    children: dict[str, list[str]] = {name: [] for name in given}
    for child, own in parents.items():
        for parent in own:
            children[parent].append(child)

    def key(name: str) -> tuple[int, int, int, str]:
        node = given[name]
        rank = 2 if isinstance(node, Utility) else 1 if isinstance(node, Decision) else 0
        return rank, len(parents[name]) if rank == 1 else 0, place[name], name

    waiting = {name: len(own) for name, own in parents.items()}
    ready = [key(name) for name, n in waiting.items() if n == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        name = heapq.heappop(ready)[-1]
        order.append(name)
        for child in children[name]:
            waiting[child] -= 1
            if waiting[child] == 0:
                heapq.heappush(ready, key(child))
    if len(order) < len(given):
        raise ModelError(_cycle_in_time(given, parents))
    return order


def _cycle_in_time(given: Mapping[str, Node], parents: Mapping[str, tuple[str, ...]]) -> str:
    """What to say of a cycle: a decision that observes what depends on it, or any other."""
    cycle = find_cycle(parents)
    for before, after in pairwise(cycle):
        if isinstance(given[after], Decision):
            start = cycle.index(after)
            way = [*cycle[start:], *cycle[1 : start + 1]]
            return (
                f"decision {after!r} observes {before!r}, which is known only after it: "
                f"{shown_cycle(way)}; a decision cannot observe what depends on it"
            )
    return f"the network has a cycle: {shown_cycle(cycle)}"


def remembering(decisions: list[Decision], add: bool) -> list[Decision]:
    """The decisions, each with what the earlier ones observe: added, or a ModelError that names what is forgotten."""
    known: list[str] = []
    made: list[Decision] = []
    remembering = []
    for decision in decisions:
        forgotten = [seen for seen in known if seen not in decision.observes]
        if forgotten and not add:
            earlier = next(d for d in made if forgotten[0] in d.observes)
            raise ModelError(
                f"decision {decision.name!r} comes after {earlier.name!r}, which observes {forgotten[0]!r}, and "
                f"forgets it; add it to observes=, or make the network with recall='implied' (which adds it) or "
                "recall='limited' (a decision that does not know it)"
            )
        if add:
            forgotten += [d.name for d in made if d.name not in (*decision.observes, *forgotten)]
            decision = Decision(decision.name, decision.states, (*forgotten, *decision.observes))
        made.append(decision)
        choices = {d.name for d in decisions}  # they follow from what was known when they were made
        known += [seen for seen in decision.observes if seen not in known and seen not in choices]
        remembering.append(decision)
    return remembering
