"""Equivalence classes of DAGs: CPDAGs, Meek's rules, members of a class.

DAGs with the same skeleton and the same v-structures imply the same independences (Verma & Pearl 1990). Their class is
drawn as a CPDAG: an arc where all members agree, an undirected edge, here arcs in both directions, where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import networkx as nx

from bbn.core.errors import ModelError, NoMemberWarning, warn_user
from bbn.core.keywords import keywords_checked


@keywords_checked
def cpdag(dag: nx.DiGraph[Any]) -> nx.DiGraph[Any]:
    """The class of a DAG: its v-structures stay directed, and so does what Meek's rules then compel.

    Parameters
    ----------
    dag : networkx.DiGraph
        A directed acyclic graph, such as a network's `graph`.

    Returns
    -------
    networkx.DiGraph
        A new graph: undirected edges are there in both directions.

    Raises
    ------
    ModelError
        The graph has a cycle.

    See Also
    --------
    to_dag : A DAG of such a class.
    compare : How far two structures are apart.

    Examples
    --------
    >>> sorted(cpdag(nx.DiGraph([("A", "B"), ("B", "C")])).edges)
    [('A', 'B'), ('B', 'A'), ('B', 'C'), ('C', 'B')]
    >>> sorted(cpdag(nx.DiGraph([("A", "B"), ("C", "B")])).edges)
    [('A', 'B'), ('C', 'B')]
    """
    require_dag(dag)
    pattern: nx.DiGraph[Any] = nx.DiGraph()
    pattern.add_nodes_from(dag.nodes(data=True))
    pattern.add_edges_from(edge for a, b in dag.edges for edge in ((a, b), (b, a)))
    for child in dag:
        for a, b in combinations(list(dag.predecessors(child)), 2):
            if not (dag.has_edge(a, b) or dag.has_edge(b, a)):
                orient(pattern, a, child)
                orient(pattern, b, child)
    return close_under_meek(pattern)


def orient(graph: nx.DiGraph[Any], a: Any, b: Any) -> None:
    """Make a – b the arc a → b."""
    if graph.has_edge(b, a):
        graph.remove_edge(b, a)


def may_orient(graph: nx.DiGraph[Any], a: Any, b: Any) -> bool:
    """Whether a → b is an arc already, or a – b an edge whose direction is open and no way leads from b to a."""
    if not graph.has_edge(a, b):
        return False
    return not graph.has_edge(b, a) or not _leads_to(graph, b, a)


def has_directed_cycle(graph: nx.DiGraph[Any]) -> bool:
    """Whether the arcs, without the undirected edges, make a cycle."""
    return not nx.is_directed_acyclic_graph(nx.DiGraph(directed(graph)))


def _leads_to(graph: nx.DiGraph[Any], a: Any, b: Any) -> bool:
    """Whether a directed path goes from a to b."""
    reached, stack = {a}, [a]
    while stack:
        x = stack.pop()
        for y in graph.successors(x):
            if y not in reached and not graph.has_edge(y, x):
                if y == b:
                    return True
                reached.add(y)
                stack.append(y)
    return False


def close_under_meek(graph: nx.DiGraph[Any]) -> nx.DiGraph[Any]:
    """Direct, in place, every undirected edge whose direction is compelled (Meek 1995, rules 1 to 4).

    Where arcs contradict each other, as those found in finite data may, none is made to close a cycle.
    """
    changed = True
    while changed:
        changed = False
        for a, b in sorted(graph.edges, key=repr):
            if not (graph.has_edge(a, b) and graph.has_edge(b, a)):
                continue
            if _compelled(graph, a, b) and not _leads_to(graph, b, a):
                orient(graph, a, b)
                changed = True
    return graph


def _compelled(graph: nx.DiGraph[Any], a: Any, b: Any) -> bool:
    """Whether the undirected edge a – b must be a → b."""

    def arc(x: Any, y: Any) -> bool:
        return graph.has_edge(x, y) and not graph.has_edge(y, x)

    def line(x: Any, y: Any) -> bool:
        return graph.has_edge(x, y) and graph.has_edge(y, x)

    def adjacent(x: Any, y: Any) -> bool:
        return graph.has_edge(x, y) or graph.has_edge(y, x)

    into_a = [c for c in graph.predecessors(a) if arc(c, a)]
    into_b = [c for c in graph.predecessors(b) if arc(c, b) and c != a]
    # 1: c → a – b, c and b not adjacent: else there would be a new v-structure at a
    if any(c != b and not adjacent(c, b) for c in into_a):
        return True
    # 2: a → c → b: else there would be a cycle
    if any(arc(a, c) for c in into_b):
        return True
    # 3: a – c → b and a – d → b, c and d not adjacent
    beside = [c for c in into_b if line(a, c)]
    if any(not adjacent(c, d) for c, d in combinations(beside, 2)):
        return True
    # 4: a – d → c → b and a adjacent to c, b and d not adjacent
    return any(
        not adjacent(b, d) and any(arc(d, c) and adjacent(a, c) for c in into_b)
        for d in graph.successors(a)
        if d != b and line(a, d)
    )


@keywords_checked
def to_dag(graph: nx.DiGraph[Any]) -> nx.DiGraph[Any]:
    """A member of the class that a CPDAG stands for; the same one each time.

    A variable that no arc leaves, and all of whose undirected neighbours are adjacent to all its other neighbours, may
    be last; directing its edges into it and removing it leaves a smaller graph of the same kind (Dor & Tarsi 1992).
    A graph learned from finite data may have no member. Then the variable that makes the fewest new v-structures is
    taken instead, with a NoMemberWarning. ModelError if the arcs make a cycle.

    Parameters
    ----------
    graph
        A DiGraph in which undirected edges are arcs in both directions.

    >>> sorted(to_dag(nx.DiGraph([("A", "B"), ("B", "A"), ("B", "C"), ("C", "B")])).edges)
    [('B', 'A'), ('C', 'B')]
    """
    dag: nx.DiGraph[Any] = nx.DiGraph(**graph.graph)
    dag.add_nodes_from(graph.nodes(data=True))
    left: nx.DiGraph[Any] = nx.DiGraph(graph.edges)
    left.add_nodes_from(graph)
    added = 0
    while left:
        ends = [x for x in sorted(left, key=repr) if all(left.has_edge(y, x) for y in left.successors(x))]
        if not ends:
            raise ModelError(f"the arcs make a cycle among {', '.join(sorted(map(repr, left))[:8])}")
        new = {x: _new_v_structures(left, x) for x in ends}
        last = min(ends, key=new.__getitem__)
        added += new[last]
        dag.add_edges_from((a, last) for a in graph.predecessors(last) if a in left)
        left.remove_node(last)
    if added:
        warn_user(
            f"no DAG has exactly this graph's arcs and v-structures; the one given has {added} more v-structures",
            NoMemberWarning,
        )
    return dag


def _new_v_structures(graph: nx.DiGraph[Any], x: Any) -> int:
    """How many v-structures x would be the middle of, that it is not now, if all its edges pointed to it."""
    undirected = sorted(graph.successors(x), key=repr)
    arcs = [y for y in graph.predecessors(x) if not graph.has_edge(x, y)]
    pairs = [*combinations(undirected, 2), *((y, z) for y in undirected for z in arcs)]
    return sum(not (graph.has_edge(y, z) or graph.has_edge(z, y)) for y, z in pairs)


def require_dag(graph: nx.DiGraph[Any]) -> None:
    """ModelError if the graph is not a DAG; one with edges in both directions names `to_dag`."""
    both = next(((a, b) for a, b in graph.edges if a != b and graph.has_edge(b, a)), None)
    if both is not None:
        raise ModelError(
            f"the graph has arcs both ways between {both[0]!r} and {both[1]!r}, which is how a CPDAG shows an "
            "undirected edge; bbn.to_dag picks a DAG from the class"
        )
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " → ".join(repr(a) for a, _ in nx.find_cycle(graph))
        raise ModelError(f"the graph has a cycle: {cycle}")


def is_cpdag(graph: nx.DiGraph[Any]) -> bool:
    """Whether some edge is undirected."""
    return any(graph.has_edge(b, a) for a, b in graph.edges)


def skeleton(graph: nx.DiGraph[Any]) -> set[frozenset[Any]]:
    """The pairs that are adjacent."""
    return {frozenset(edge) for edge in graph.edges}


def directed(graph: nx.DiGraph[Any]) -> set[tuple[Any, Any]]:
    """The arcs that are not part of an undirected edge."""
    return {(a, b) for a, b in graph.edges if not graph.has_edge(b, a)}


def structural_distance(one: nx.DiGraph[Any], other: nx.DiGraph[Any]) -> int:
    """The number of pairs whose edge differs: missing, extra, or pointing another way (Tsamardinos et al. 2006)."""

    def edge(graph: nx.DiGraph[Any], a: Any, b: Any) -> tuple[bool, bool]:
        return graph.has_edge(a, b), graph.has_edge(b, a)

    pairs: Iterable[frozenset[Any]] = skeleton(one) | skeleton(other)
    return sum(edge(one, *pair) != edge(other, *pair) for pair in map(tuple, pairs))
