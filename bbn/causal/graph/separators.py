"""Separators: the minimal sets of allowed variables that block every path between two sets of variables.

x and y are separated by z in a directed graph exactly if z separates them in the moral graph of the ancestors of all
three (Lauritzen et al. 1990), and a minimal z lies among the ancestors of x and y. So the question is one of an
undirected graph: join the neighbours of each variable that may not be used, make one node of x and one of y, and list
the minimal cuts between them (Shen and Liang 1997; van der Zander, Liśkiewicz and Textor 2019). Each cut after the
first costs at most one search of the graph per variable in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import networkx as nx

from bbn.causal.graph.causal_graph import CausalGraph
from bbn.causal.graph.graph_parts import Names
from bbn.model.graphs import moral_graph

X, Y = ("x",), ("y",)
"""The nodes that stand for the two sets; no variable's name is a tuple."""

Undirected = dict[Any, set[Any]]


def minimal_separators(graph: CausalGraph, x: Names, y: Names, allowed: Names) -> Iterator[Names]:
    """All minimal sets inside `allowed` that separate x and y, the one closest to x first; none if there is none."""
    moral = _cut_graph(graph, x, y, allowed)
    if Y in moral[X]:
        return
    first = _close_to(moral, X, Y)
    found, queue = {first}, deque([first])
    while queue:
        cut = queue.popleft()
        yield frozenset(map(str, cut))
        near_x = _component(moral, X, cut)
        for name in sorted(cut, key=str):
            if name in moral[Y]:
                continue
            grown = near_x | {name}
            border = {other for inner in grown for other in moral[inner]} - grown
            around_y = _component(moral, Y, border)
            further = frozenset(
                other for inner in around_y for other in moral[inner] if other not in around_y
            )
            if further not in found:
                found.add(further)
                queue.append(further)


def smallest_separator(graph: CausalGraph, x: Names, y: Names, allowed: Names) -> Names | None:
    """A separator of the fewest variables, by maximum flow; None if there is none."""
    moral = _cut_graph(graph, x, y, allowed)
    if Y in moral[X]:
        return None
    joined: nx.Graph[Any] = nx.Graph(moral)
    if not nx.has_path(joined, X, Y):
        return frozenset()
    return frozenset(map(str, nx.minimum_node_cut(joined, X, Y)))


def closest_separator(graph: CausalGraph, x: Names, y: Names, allowed: Names) -> Names | None:
    """The minimal separator closest to y; None if there is none."""
    moral = _cut_graph(graph, x, y, allowed)
    return None if Y in moral[X] else frozenset(map(str, _close_to(moral, Y, X)))


def _cut_graph(graph: CausalGraph, x: Names, y: Names, allowed: Names) -> Undirected:
    """The moral graph of the ancestors of x and y, with the nodes X and Y for them and only allowed ones besides."""
    dag = graph.canonical
    kept = {*x, *y}
    for name in (*x, *y):
        kept |= nx.ancestors(dag, name)
    moral: Undirected = {node: set(near) for node, near in moral_graph(dag.subgraph(kept)).adjacency()}
    for node, group in ((X, x), (Y, y)):
        moral[node] = {near for name in group for near in moral[name]} - group
        for name in group:
            del moral[name]
        for other, near in moral.items():
            if near & group:
                near -= group
                if other != node:
                    near.add(node)
    # variables that may not be used, those with few neighbours first: their neighbours are joined
    barred = [node for node in moral if node not in (X, Y) and node not in allowed]
    while barred:
        gone = min(barred, key=lambda one: (len(moral[one]), str(one)))
        barred.remove(gone)
        near = moral.pop(gone)
        for other in near:
            moral[other].discard(gone)
        for a, b in combinations(near, 2):
            moral[a].add(b)
            moral[b].add(a)
    return moral


def _close_to(moral: Undirected, near: object, far: object) -> frozenset[object]:
    """The minimal cut closest to `near`: of its neighbours, those from which `far` can be reached."""
    beyond = _component(moral, far, moral[near])
    return frozenset(node for inner in beyond for node in moral[inner] if node not in beyond)


def _component(moral: Undirected, start: object, without: set[object] | frozenset[object]) -> set[object]:
    """What can be reached from `start` without some nodes."""
    found, stack = {start}, [start]
    while stack:
        for other in moral[stack.pop()]:
            if other not in found and other not in without:
                found.add(other)
                stack.append(other)
    return found
