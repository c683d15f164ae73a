"""Graphs of models: moral graphs, elimination orders, triangulations and junction trees.

Eliminating a variable joins its neighbours; the cliques met on the way are those of a triangulated graph, and joining
each to the clique of the variable that follows gives a junction tree (Lauritzen and Spiegelhalter 1988; Blair and
Peyton 1993). No rule for the order wins everywhere, so the rules are functions in a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bbn import kernels
from bbn.kernels.contracts.types import MIN_FILL, MIN_NEIGHBOURS, MIN_WEIGHT, WEIGHTED_MIN_FILL, Floats, Ints

if TYPE_CHECKING:
    import networkx as nx

Node = TypeVar("Node", bound=Hashable)

Elimination = tuple[Ints, Ints, Ints]
"""The order; and, as offsets and members, the neighbours of each variable when its turn came."""

Rule = Callable[..., Elimination]
"""(cards, offsets, scopes, kept=None, most=inf, bias=None) to an elimination; see `kernels.triangulate.eliminate`."""


def _rule(number: int) -> Rule:
    eliminate = kernels.triangulate.eliminate

    def rule(
        cards: Ints,
        ptr: Ints,
        scope: Ints,
        kept: Ints | None = None,
        most: float = inf,
        bias: Floats | None = None,
    ) -> Elimination:
        return eliminate(cards, ptr, scope, number, kept, most, bias)

    return rule


ORDERS: dict[str, Rule] = {
    "min-fill": _rule(MIN_FILL),
    "weighted-min-fill": _rule(WEIGHTED_MIN_FILL),
    "min-weight": _rule(MIN_WEIGHT),
    "min-neighbours": _rule(MIN_NEIGHBOURS),
}
"""The rules by name: fewest edges to add, their weights' products, smallest clique, fewest neighbours."""


def elimination_order(
    scopes: Iterable[Iterable[Node]],
    cards: Mapping[Node, int],
    rule: str = "min-fill",
    keep: Collection[Node] = (),
    most: float = inf,
) -> list[Node]:
    """Order all variables but those to keep, so that eliminating them one by one makes small tables.

    Parameters
    ----------
    scopes
        The variables of each factor.
    cards
        Variable to its number of states.
    rule
        A name in `ORDERS`.
    keep
        Variables that are never eliminated.
    most
        End with the first variable whose table has more cells than this.

    >>> elimination_order(["AB", "BC", "CD"], dict.fromkeys("ABCD", 2), keep="D")
    ['A', 'B', 'C']
    """
    nodes = list(cards)
    number = {node: i for i, node in enumerate(nodes)}
    ptr, members = flat_scopes([number[node] for node in scope] for scope in scopes)
    kept = np.array([node in keep for node in nodes], np.int64)
    order = find_rule(rule)(np.array(list(cards.values()), np.int64), ptr, members, kept, most)[0]
    return [nodes[i] for i in order.tolist()]


def find_rule(name: str) -> Rule:
    """The rule of this name; ValueError with the legal names if there is none."""
    if name not in ORDERS:
        raise ValueError(f"no elimination order {name!r}; choose one of {', '.join(ORDERS)}")
    return ORDERS[name]


def flat_scopes(scopes: Iterable[Sequence[int]]) -> tuple[Ints, Ints]:
    """Scopes of variable numbers as offsets and members.

    >>> flat_scopes([[0, 1], [2]])
    (array([0, 2, 3]), array([0, 1, 2]))
    """
    listed = [list(scope) for scope in scopes]
    ptr = np.zeros(len(listed) + 1, np.int64)
    np.cumsum([len(scope) for scope in listed], out=ptr[1:])
    return ptr, np.array([v for scope in listed for v in scope], np.int64)


def moral_graph(graph: nx.DiGraph[Node]) -> nx.Graph[Node]:
    """The undirected graph in which each node, its parents, and those parents among themselves are joined.

    >>> import networkx as nx
    >>> sorted(moral_graph(nx.DiGraph([("A", "C"), ("B", "C")])).edges)
    [('A', 'B'), ('A', 'C'), ('C', 'B')]
    """
    import networkx as nx

    moral: nx.Graph[Node] = nx.Graph()
    moral.add_nodes_from(graph)
    moral.add_edges_from(graph.edges)
    for node in graph:
        parents = list(graph.predecessors(node))
        moral.add_edges_from((a, b) for i, a in enumerate(parents) for b in parents[i + 1 :])
    return moral


def junction_forest(elimination: Elimination) -> tuple[list[list[int]], list[int]]:
    """The maximal cliques of an elimination and each one's parent, -1 for a root (Blair and Peyton 1993).

    A clique is led by its first eliminated variable; its parent is the clique of the variable that follows.
    """
    order, ptr, near = (part.tolist() for part in elimination)
    position = {v: k for k, v in enumerate(order)}
    around = [near[ptr[k] : ptr[k + 1]] for k in range(len(order))]
    home: dict[int, int] = {}
    cliques: list[list[int]] = []
    above: list[int] = []
    for k, v in enumerate(order):
        if v not in home:
            home[v] = len(cliques)
            cliques.append([v, *around[k]])
            above.append(-1)
        following = min((position[u] for u in around[k]), default=-1)
        above[home[v]] = following
        if following >= 0 and order[following] not in home and len(around[k]) == len(around[following]) + 1:
            home[order[following]] = home[v]
    return cliques, [home[order[k]] if k >= 0 else -1 for k in above]


def triangulate(
    graph: nx.Graph[Node], cards: Mapping[Node, int] | None = None, rule: str = "min-fill"
) -> list[tuple[Node, ...]]:
    """The maximal cliques of a triangulation of an undirected graph.

    >>> import networkx as nx
    >>> triangulate(nx.cycle_graph(4))
    [(0, 1, 3), (1, 2, 3)]
    """
    nodes, elimination = _eliminate(graph, cards, rule)
    return [tuple(nodes[i] for i in sorted(clique)) for clique in junction_forest(elimination)[0]]


def junction_tree(
    graph: nx.Graph[Node], cards: Mapping[Node, int] | None = None, rule: str = "min-fill"
) -> nx.Graph[tuple[Node, ...]]:
    """A junction tree (a forest where the graph is not connected): cliques joined by edges with a "separator".

    Two cliques that hold a variable have it in every clique on the path between them.

    >>> import networkx as nx
    >>> tree = junction_tree(nx.path_graph("ABCD"))
    >>> [(a, b, separator) for a, b, separator in tree.edges(data="separator")]
    [(('A', 'B'), ('B', 'C'), ('B',)), (('C', 'D'), ('B', 'C'), ('C',))]
    """
    import networkx as nx

    nodes, elimination = _eliminate(graph, cards, rule)
    numbered, parents = junction_forest(elimination)
    cliques = [tuple(nodes[i] for i in sorted(clique)) for clique in numbered]
    tree: nx.Graph[tuple[Node, ...]] = nx.Graph()
    tree.add_nodes_from(cliques)
    for clique, parent in zip(cliques, parents, strict=True):
        if parent >= 0:
            inside = set(cliques[parent])
            tree.add_edge(clique, cliques[parent], separator=tuple(v for v in clique if v in inside))
    return tree


def _eliminate(
    graph: nx.Graph[Node], cards: Mapping[Node, int] | None, rule: str
) -> tuple[list[Node], Elimination]:
    """The nodes of a graph in the order they are numbered, and an elimination of them."""
    nodes = list(graph)
    number = {node: i for i, node in enumerate(nodes)}
    scopes: list[list[int]] = [[i] for i in range(len(nodes))]
    scopes += [[number[a], number[b]] for a, b in graph.edges if a != b]
    sizes = np.array([cards[node] if cards else 2 for node in nodes], np.int64)
    return nodes, find_rule(rule)(sizes, *flat_scopes(scopes))
