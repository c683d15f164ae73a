"""DecisionNetwork: conditionals, decisions and utilities; an influence diagram, with or without perfect recall.

The expected utility of a policy δ is Σ_x ∏ P(x_i | parents) ∏ δ(d | what d observes) Σ_u u(x) (Howard and Matheson
1984). Time runs along the arcs: a decision comes after what it observes, and what depends on it comes after it. With
perfect recall a later decision knows what every earlier one knew (no forgetting); without, each knows only what it
observes (a LIMID; Lauritzen and Nilsson 2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.core.keywords import keywords_checked
from bbn.core.missing_names import NamesSuggested
from bbn.model.cpt import Conditional
from bbn.model.decision import Decision, Utility
from bbn.model.decision_checks import Node, by_name, check_families, parent_names, remembering, time_order
from bbn.model.questions import AskableDecisions
from bbn.model.variable import State, Variable, checked_name

if TYPE_CHECKING:
    import networkx as nx

RECALL = ("perfect", "implied", "limited")
"""What decisions remember, see `DecisionNetwork`."""


class DecisionNetwork(AskableDecisions, NamesSuggested):
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

    >>> import bbn
    >>> oil, seismic = bbn.Variable("Oil", ["wet", "dry"]), bbn.Variable("Seismic", ["open", "closed"])
    >>> drill = bbn.Decision("Drill", ["yes", "no"], observes=["Seismic"])
    >>> dn = bbn.DecisionNetwork([
    ...     bbn.CPT(oil, table=[0.3, 0.7]),
    ...     bbn.CPT(seismic, [oil], [[0.2, 0.8], [0.9, 0.1]]),
    ...     drill,
    ...     bbn.Utility("Profit", [oil, drill], [[100, 0], [-60, 0]]),
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

    @keywords_checked
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
        given = by_name(nodes)
        if not any(isinstance(node, Utility) for node in given.values()):
            raise ModelError(
                "a decision network needs at least one utility; without one nothing is worth deciding"
            )
        check_families(given)
        parents = {node: parent_names(given[node]) for node in given}
        order = time_order(given, parents)
        decisions = [node for node in map(given.__getitem__, order) if isinstance(node, Decision)]
        if recall != "limited":
            for decision in remembering(decisions, recall == "implied"):
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
        """Whether the node is "chance", "decision" or "utility".

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        str
            "chance", "decision" or "utility".

        Raises
        ------
        EvidenceError
            There is none of that name.
        """
        node = self[name]
        return (
            "decision" if isinstance(node, Decision) else "utility" if isinstance(node, Utility) else "chance"
        )

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of a node's parents; of a decision, what it observes.

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        tuple of str
            In the order of its table.

        Raises
        ------
        EvidenceError
            There is none of that name.
        """
        self[name]
        return self._parents[name]

    def children(self, name: str) -> tuple[str, ...]:
        """The names of the nodes that have this one among their parents.

        Parameters
        ----------
        name : str
            The name of a node.

        Returns
        -------
        tuple of str
            Each after its parents.

        Raises
        ------
        EvidenceError
            There is none of that name.
        """
        self[name]
        return tuple(child for child, own in self._parents.items() if name in own)

    def variable(self, name: str) -> Variable:
        """The variable of this name, a chance variable's or a decision's.

        Parameters
        ----------
        name : str
            The name of a chance variable or decision.

        Returns
        -------
        Variable
            The variable.

        Raises
        ------
        EvidenceError
            There is none of that name.
        """
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise EvidenceError(self._unknown(name, self._variables)) from None

    def states(self, name: str) -> tuple[State, ...]:
        """The states of a chance variable, the choices of a decision.

        Parameters
        ----------
        name : str
            The name of a chance variable or decision.

        Returns
        -------
        tuple
            In order; of a continuous variable, none.

        Raises
        ------
        EvidenceError
            There is none of that name.
        """
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

    @keywords_checked
    def with_nodes(self, nodes: Iterable[Node], recall: str | None = None) -> DecisionNetwork:
        """The network with these nodes in place of (or beside) those of the same names.

        Parameters
        ----------
        nodes : list
            CPTs, Decisions and Utilities.
        recall : str, optional
            What decisions remember, as in the class; as before unless given.

        Returns
        -------
        DecisionNetwork
            A new network.

        Raises
        ------
        ModelError
            The nodes do not fit together.
        """
        return DecisionNetwork(
            {**self._nodes, **by_name(nodes)}.values(), self.name, self.metadata, recall or self.recall
        )

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
