"""What a causal graph is read from, and who is related to whom in it: parents, ancestors, districts.

A graph comes as arcs, a networkx DiGraph, a network or another causal graph; `parts_of` takes any of them apart. Walks
along arcs and two-headed arcs are linear in the size of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import networkx as nx

from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.core.frozen import Frozen
from bbn.model.network import BayesianNetwork
from bbn.model.variable import checked_name

Arc = tuple[str, str]
Names = frozenset[str]


class Relatives(Frozen):
    """The walks of a causal graph, which holds its nodes and the neighbours of each."""

    __slots__ = ()

    nodes: tuple[str, ...]
    arcs: tuple[Arc, ...]
    confounded: tuple[Arc, ...]
    latent: tuple[str, ...]
    _parents: dict[str, tuple[str, ...]]
    _children: dict[str, tuple[str, ...]]
    _siblings: dict[str, tuple[str, ...]]

    @property
    def observed(self) -> tuple[str, ...]:
        """The measured variables, causes before effects."""
        hidden = set(self.latent)
        return tuple(name for name in self.nodes if name not in hidden)

    def parents(self, name: str) -> tuple[str, ...]:
        """The direct causes of a variable.

        Parameters
        ----------
        name : str
            A variable of the graph.
        """
        return self._parents[self._known(name)]

    def children(self, name: str) -> tuple[str, ...]:
        """What a variable acts on directly.

        Parameters
        ----------
        name : str
            A variable of the graph.
        """
        return self._children[self._known(name)]

    def siblings(self, name: str) -> tuple[str, ...]:
        """The variables that a two-headed arc joins to this one.

        Parameters
        ----------
        name : str
            A variable of the graph.
        """
        return self._siblings[self._known(name)]

    def ancestors(self, names: str | Iterable[str], within: Collection[str] | None = None) -> Names:
        """These variables and everything that acts on them, along arcs inside `within` where it is given.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the graph.
        within : collection of str, optional
            The variables that paths may pass; by default all.
        """
        return self._reached(self.names(names), self._parents, within)

    def descendants(self, names: str | Iterable[str], within: Collection[str] | None = None) -> Names:
        """These variables and everything they act on, along arcs inside `within` where it is given.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the graph.
        within : collection of str, optional
            The variables that paths may pass; by default all.
        """
        return self._reached(self.names(names), self._children, within)

    def district(self, name: str, within: Collection[str] | None = None) -> Names:
        """The variables that two-headed arcs join to this one, directly or not, with itself.

        Parameters
        ----------
        name : str
            A variable of the graph.
        within : collection of str, optional
            The variables that paths may pass; by default all.
        """
        return self._reached((self._known(name),), self._siblings, within)

    def districts(self, within: Collection[str] | None = None) -> list[tuple[str, ...]]:
        """The parts that two-headed arcs hold together (c-components; Tian and Pearl 2002), in the nodes' order.

        Parameters
        ----------
        within : collection of str, optional
            The variables that paths may pass; by default all.
        """
        left = [name for name in self.nodes if within is None or name in within]
        found: list[tuple[str, ...]] = []
        done: set[str] = set()
        for name in left:
            if name not in done:
                part = self._reached((name,), self._siblings, within)
                done |= part
                found.append(tuple(n for n in left if n in part))
        return found

    def names(self, names: str | Iterable[str], what: str = "") -> Names:
        """A name or several as a frozenset; EvidenceError with the nearest name for one that is not in the graph.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the graph.
        what : str, default ""
            What an error calls the names.
        """
        return frozenset(self._known(name, what) for name in names_listed(names))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._parents

    def __iter__(self) -> Iterator[str]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def _known(self, name: str, what: str = "") -> str:
        if not isinstance(name, str) or name not in self._parents:
            where = f"{what}: " if what else ""
            raise EvidenceError(f"{where}the graph has no variable {shown(name)}{nearest(name, self.nodes)}")
        return name

    def _reached(
        self, start: Iterable[str], near: Mapping[str, tuple[str, ...]], within: Collection[str] | None
    ) -> Names:
        """All that can be reached from `start` step by step, `start` included."""
        found = {name for name in start if within is None or name in within}
        stack = list(found)
        while stack:
            for other in near[stack.pop()]:
                if other not in found and (within is None or other in within):
                    found.add(other)
                    stack.append(other)
        return frozenset(found)


def parts_of(arcs: Any) -> tuple[list[Arc], list[Arc], set[str], list[str]]:
    """The arcs, two-headed arcs, hidden nodes and all nodes of whatever a graph was given as."""
    if isinstance(arcs, Relatives):
        return list(arcs.arcs), list(arcs.confounded), set(arcs.latent), list(arcs.nodes)
    if isinstance(arcs, BayesianNetwork):
        return list(arcs.arcs), [], set(arcs.latent), list(arcs.names)
    if hasattr(arcs, "predecessors"):
        pairs = [pair_of(pair, "a two-headed arc") for pair in arcs.graph.get("confounded", ())]
        return (
            [pair_of(arc[:2], "an arc") for arc in arcs.edges],
            pairs,
            {name for name, hidden in arcs.nodes(data="latent") if hidden},
            list(arcs.nodes),
        )
    if hasattr(arcs, "edges"):
        raise ModelError(
            "a causal graph needs arcs with a direction: expected a DiGraph, found an undirected graph"
        )
    if isinstance(arcs, str | Mapping) or not isinstance(arcs, Iterable):
        raise ModelError(
            f"a causal graph is a list of arcs (cause, effect), a DiGraph or a network, found {shown(arcs)}"
        )
    return [pair_of(arc, "an arc") for arc in arcs], [], set(), []


def pair_of(pair: Any, what: str) -> Arc:
    """A pair of names; ModelError if it is anything else."""
    if isinstance(pair, str) or not isinstance(pair, Sequence | frozenset | set) or len(pair) != 2:
        raise ModelError(f"{what} is a pair of names, found {shown(pair)}")
    a, b = pair if isinstance(pair, Sequence) else sorted(pair)
    return checked_name(a), checked_name(b)


def names_listed(names: str | Iterable[str]) -> list[str]:
    """A name or several as a list."""
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise EvidenceError(f"expected a variable's name or several, found {shown(names)}")
    return list(names)


def causes_first(names: list[str], arcs: list[Arc]) -> list[str]:
    """The names in topological order, and in the order given where that leaves a choice; ModelError for a cycle."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(arcs)
    position = {name: i for i, name in enumerate(names)}
    both = next(((a, b) for a, b in graph.edges if a != b and graph.has_edge(b, a)), None)
    if both is not None:
        raise ModelError(
            f"arcs go both ways between {both[0]!r} and {both[1]!r}; a hidden common cause is written "
            f"confounded=[{both!r}], and a CPDAG's undirected edge is taken by bbn.adjustment_sets alone "
            "(bbn.to_dag picks a member of its class)"
        )
    try:
        return list(nx.lexicographical_topological_sort(graph, key=position.__getitem__))
    except nx.NetworkXUnfeasible:
        cycle = " → ".join(repr(a) for a, _ in nx.find_cycle(graph))
        raise ModelError(f"the graph has a cycle: {cycle}") from None
