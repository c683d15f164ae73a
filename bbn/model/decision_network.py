"""DecisionNetwork: conditionals, decisions and utilities; an influence diagram, with or without perfect recall.

The expected utility of a policy δ is Σ_x ∏ P(x_i | parents) ∏ δ(d | what d observes) Σ_u u(x) (Howard and Matheson
1984). Time runs along the arcs: a decision comes after what it observes, and what depends on it comes after it. With
perfect recall a later decision knows what every earlier one knew (no forgetting); without, each knows only what it
observes (a LIMID; Lauritzen and Nilsson 2001).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bbn.core.cycles import shown_cycle
from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.decision import Decision, Utility
from bbn.model.decision_questions import AskableDecisions
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Continuous, State, Variable, checked_name

if TYPE_CHECKING:
    import os

    import networkx as nx

RECALL = ("perfect", "implied", "limited")
"""What decisions remember, see `DecisionNetwork`."""

Node = Conditional | Decision | Utility


class DecisionNetwork(AskableDecisions):
    """Decisions under uncertainty: a Bayesian network with decisions and utilities.

    Parameters
    ----------
    nodes
        CPTs (Gaussians, …), Decisions and Utilities, in any order; at least one utility. Utilities add up; one that is
        a parent of another counts through that alone.
    name
        A title; it takes no part in comparisons.
    metadata
        Further strings about the network; no part in comparisons either.
    recall
        "perfect": a later decision must observe all that an earlier one observes, and one that forgets something is an
        error that names it. "implied": what is forgotten is added, so that nothing is. "limited": each decision knows
        what it observes and nothing else. Own earlier choices need never be listed: they follow from what was known.

    >>> oil, seismic = Variable("Oil", ["wet", "dry"]), Variable("Seismic", ["open", "closed"])
    >>> drill = Decision("Drill", ["yes", "no"], observes=["Seismic"])
    >>> dn = DecisionNetwork([
    ...     CPT(oil, table=[0.3, 0.7]),
    ...     CPT(seismic, [oil], [[0.2, 0.8], [0.9, 0.1]]),
    ...     drill,
    ...     Utility("Profit", [oil, drill], [[100, 0], [-60, 0]]),
    ... ])
    >>> best = dn.solve()
    >>> round(best.expected_utility, 6), best.policy["Drill"]["closed"], best.policy["Drill"]["open"]
    (19.8, 'yes', 'no')

    See Also
    --------
    Decision, Utility, bbn.BayesianNetwork
    """

    __slots__ = ("_nodes", "_parents", "_variables", "memo", "metadata", "name", "recall")

    name: str
    metadata: Mapping[str, str]
    recall: str
    """"perfect" or "limited"."""
    memo: dict[str, Any]
    """What others keep with the network so as not to work it out again; no part of its value."""
    _nodes: dict[str, Node]
    _parents: dict[str, tuple[str, ...]]
    _variables: dict[str, Variable]

    def __init__(
        self,
        nodes: Iterable[Node],
        name: str = "",
        metadata: Mapping[str, str] | None = None,
        recall: str = "perfect",
    ) -> None:
        if not isinstance(name, str):
            raise ModelError(f"a network's name must be a string, found {name!r}")
        if recall not in RECALL:
            raise ModelError(f"recall is {shown(recall)}{nearest(recall, RECALL)}")
        given = _by_name(nodes)
        if not any(isinstance(node, Utility) for node in given.values()):
            raise ModelError("a decision network needs at least one utility, else nothing is worth deciding")
        _check_families(given)
        parents = {node: _parent_names(given[node]) for node in given}
        order = _time_order(given, parents)
        decisions = [node for node in map(given.__getitem__, order) if isinstance(node, Decision)]
        if recall != "limited":
            for decision in _remembering(decisions, recall == "implied"):
                given[decision.name] = decision
                parents[decision.name] = decision.observes
        self._set(
            name=name,
            metadata=MappingProxyType(
                {checked_name(k, "a metadata key"): str(v) for k, v in (metadata or {}).items()}
            ),
            recall="limited" if recall == "limited" else "perfect",
            memo={},
            _nodes={node: given[node] for node in order},
            _parents={node: parents[node] for node in order},
            _variables={n: v for n in order if (v := getattr(given[n], "variable", None)) is not None},
        )

    # What it is made of

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The chance variables and decisions, each after what it depends on or observes."""
        return tuple(self._variables.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all nodes, each after its parents."""
        return tuple(self._nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Conditionals, decisions and utilities, each after its parents."""
        return tuple(self._nodes.values())

    @property
    def conditionals(self) -> tuple[Conditional, ...]:
        """The conditionals of the chance variables."""
        return tuple(c for c in self._nodes.values() if not isinstance(c, Decision | Utility))

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions in the order in which they are made."""
        return tuple(d for d in self._nodes.values() if isinstance(d, Decision))

    @property
    def utilities(self) -> tuple[Utility, ...]:
        """The utilities, those of utilities after what they are made of."""
        return tuple(u for u in self._nodes.values() if isinstance(u, Utility))

    @property
    def n_parameters(self) -> int:
        """The number of free parameters of the conditionals."""
        return sum(getattr(c, "n_parameters", 0) for c in self.conditionals)

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) pairs; those into a decision are what it observes."""
        return tuple((parent, child) for child, own in self._parents.items() for parent in own)

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The structure as a frozen DiGraph; nodes carry "kind": "chance", "decision" or "utility"."""
        if "graph" not in self.memo:
            import networkx as nx

            graph: nx.DiGraph[str] = nx.DiGraph(name=self.name)
            for name in self._nodes:
                graph.add_node(name, kind=self.kind(name))
                if name in self._variables:
                    graph.nodes[name]["states"] = self._variables[name].states
            graph.add_edges_from(self.arcs)
            self.memo["graph"] = nx.freeze(graph)
        frozen: nx.DiGraph[str] = self.memo["graph"]
        return frozen

    def kind(self, name: str) -> str:
        """Whether the node is "chance", "decision" or "utility"."""
        node = self[name]
        return (
            "decision" if isinstance(node, Decision) else "utility" if isinstance(node, Utility) else "chance"
        )

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of a node's parents; of a decision, what it observes."""
        self[name]
        return self._parents[name]

    def children(self, name: str) -> tuple[str, ...]:
        """The names of the nodes that have this one among their parents."""
        self[name]
        return tuple(child for child, own in self._parents.items() if name in own)

    def variable(self, name: str) -> Variable:
        """The variable of this name, a chance variable's or a decision's."""
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise EvidenceError(self._unknown(name, self._variables)) from None

    def states(self, name: str) -> tuple[State, ...]:
        """The states of a chance variable, the choices of a decision."""
        return self.variable(name).states

    def __getitem__(self, name: str) -> Any:
        """The conditional, Decision or Utility of this name."""
        try:
            return self._nodes[name]
        except (KeyError, TypeError):
            raise EvidenceError(self._unknown(name, self._nodes)) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    # Changes, each a new network

    def with_nodes(self, nodes: Iterable[Node], recall: str | None = None) -> DecisionNetwork:
        """The network with these nodes in place of (or beside) those of the same names."""
        return DecisionNetwork(
            {**self._nodes, **_by_name(nodes)}.values(), self.name, self.metadata, recall or self.recall
        )

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the network to a file: .yaml, .json, .xdsl or .net; the format is that of the suffix unless given."""
        from bbn.io import save

        save(self, path, format)

    # The value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DecisionNetwork):
            return NotImplemented
        return self._nodes == other._nodes and self.recall == other.recall

    def __hash__(self) -> int:
        return hash((frozenset(self._nodes.values()), self.recall))

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        n, d, u = len(self.conditionals), len(self.decisions), len(self.utilities)
        return (
            f"<DecisionNetwork{title}: {n} chance node{'s' * (n != 1)}, {d} decision{'s' * (d != 1)}, "
            f"{u} {'utility' if u == 1 else 'utilities'}{', limited memory' * (self.recall == 'limited')}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return DecisionNetwork, (list(self._nodes.values()), self.name, dict(self.metadata), self.recall)

    def _unknown(self, name: object, known: Mapping[str, Any]) -> str:
        title = f"decision network {self.name!r}" if self.name else "the decision network"
        if isinstance(name, str) and name in self._nodes:
            return f"{name!r} is a utility of {title}; expected a chance variable or a decision"
        return f"{title} has no variable {shown(name)}{nearest(name, known)}"


def _by_name(nodes: Iterable[Node]) -> dict[str, Node]:
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


def _parent_names(node: Node) -> tuple[str, ...]:
    return node.observes if isinstance(node, Decision) else tuple(p.name for p in node.parents)


def _check_families(given: Mapping[str, Node]) -> None:
    """ModelError if a parent is unknown, is another thing than its own node says, or cannot be known."""
    for name, node in given.items():
        if isinstance(node, Decision):
            _check_observed(node, given)
            continue
        kind = "utility" if isinstance(node, Utility) else "node"
        for parent in node.parents:
            own = given.get(parent.name)
            if own is None:
                raise ModelError(
                    f"{kind} {name!r} has the unknown parent {parent.name!r}{nearest(parent.name, given)}"
                )
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


def _time_order(given: Mapping[str, Node], parents: Mapping[str, tuple[str, ...]]) -> list[str]:
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
        raise ModelError(_cycle_in_time(given, parents, set(given) - set(order)))
    return order


def _cycle_in_time(given: Mapping[str, Node], parents: Mapping[str, tuple[str, ...]], stuck: set[str]) -> str:
    """What to say of a cycle: a decision that observes what depends on it, or any other."""
    node, path = min(stuck), []
    while node not in path:
        path.append(node)
        node = min(p for p in parents[node] if p in stuck)
    cycle = [*path[path.index(node) :], node][::-1]
    for before, after in pairwise(cycle):
        if isinstance(given[after], Decision):
            start = cycle.index(after)
            way = [*cycle[start:], *cycle[1 : start + 1]]
            return (
                f"decision {after!r} observes {before!r}, which is known only after it: "
                f"{shown_cycle(way)}; a decision cannot observe what depends on it"
            )
    return f"the network has a cycle: {shown_cycle(cycle)}"


def _remembering(decisions: list[Decision], add: bool) -> list[Decision]:
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
