"""Paths: which ways lead from one variable to another, and which of them carry association.

A path is open given Z if each collider on it (→ v ←) has itself or a descendant in Z, and no other variable on it is in
Z (Pearl 1988). The shortest open path is found by a breadth-first search over (variable, arrived along an arrow), as in
Bayes ball (Shachter 1998), in time linear in the graph; all of them by a depth-first walk, for small graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bbn.causal.graph.causal_graph import CausalGraph
from bbn.causal.graph.graph_parts import Names

Step = tuple[str, str]
"""How an edge is passed, "→", "←" or "↔", and the variable it leads to."""


class CausalPath(NamedTuple):
    """A path, from its first variable on; prints as X ← Z → Y."""

    start: str
    steps: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables on it, in order."""
        return (self.start, *(name for _, name in self.steps))

    @property
    def is_causal(self) -> bool:
        """Whether all its arrows point forward."""
        return all(mark == "→" for mark, _ in self.steps)

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        """Its edges as (cause, effect); a two-headed arc as it is passed."""
        names = self.names
        return tuple(
            (b, a) if mark == "←" else (a, b)
            for a, b, (mark, _) in zip(names, names[1:], self.steps, strict=False)
        )

    def __str__(self) -> str:
        return " ".join([self.start, *(part for step in self.steps for part in step)])


def open_path(graph: CausalGraph, x: Iterable[str], y: Names, given: Names) -> CausalPath | None:
    """The shortest open path from x to y given some variables, its inner variables in neither; None if all are blocked.

    >>> from bbn.causal.graph.causal_graph import CausalGraph
    >>> graph = CausalGraph([("X", "C"), ("Y", "C")])
    >>> str(open_path(graph, "X", frozenset("Y"), frozenset("C"))), open_path(graph, "X", frozenset("Y"), frozenset())
    ('X → C ← Y', None)
    """
    sources = frozenset(x)
    walk = _shortest_walk(graph, sources, y, given)
    if walk is None or len(set(walk.names)) == len(walk.names):
        return walk
    return next(_open_paths(graph, sources, y, given), None)


def open_paths(graph: CausalGraph, x: Names, y: Names, given: Names, most: int = 1000) -> list[CausalPath]:
    """Open paths from x to y, the shortest first, at most the number asked for."""
    found = []
    for path in _open_paths(graph, x, y, given):
        found.append(path)
        if len(found) == most:
            break
    return found


def _shortest_walk(graph: CausalGraph, x: Names, y: Names, given: Names) -> CausalPath | None:
    """The shortest open walk, which is a path unless it has to meet a variable twice."""
    above_given = graph.ancestors(given)
    queue: deque[tuple[CausalPath, bool]] = deque((CausalPath(name, ()), False) for name in sorted(x))
    seen: set[tuple[str, bool]] = set()
    while queue:
        path, arrived_by_head = queue.popleft()
        for mark, name in _onward(graph, path, arrived_by_head, given, above_given):
            state = (name, mark in "→↔")
            if name in x or state in seen:
                continue
            seen.add(state)
            longer = CausalPath(path.start, (*path.steps, (mark, name)))
            if name in y:
                return longer
            queue.append((longer, state[1]))
    return None


def _open_paths(graph: CausalGraph, x: Names, y: Names, given: Names) -> Iterator[CausalPath]:
    """Open paths, the shortest first: a breadth-first walk over paths that can still be completed."""
    above_given = graph.ancestors(given)
    reachable = _states_to(graph, y, given, above_given)
    queue: deque[tuple[CausalPath, bool]] = deque((CausalPath(name, ()), False) for name in sorted(x))
    while queue:
        path, arrived_by_head = queue.popleft()
        for mark, name in _onward(graph, path, arrived_by_head, given, above_given):
            if name in x or name in path.names:
                continue
            arrives_by_head = mark in "→↔"
            longer = CausalPath(path.start, (*path.steps, (mark, name)))
            if name in y:
                yield longer
            elif (name, arrives_by_head) in reachable:
                queue.append((longer, arrives_by_head))


def _onward(
    graph: CausalGraph, path: CausalPath, arrived_by_head: bool, given: Names, above_given: Names
) -> Iterator[Step]:
    """The steps that an open path may take from its end."""
    last = path.names[-1]
    for mark, name in _edges(graph, last):
        leaves_by_head = mark in "←↔"  # an arrow head at `last`
        if not path.steps or _passes(last, arrived_by_head and leaves_by_head, given, above_given):
            yield mark, name


def _states_to(graph: CausalGraph, y: Names, given: Names, above_given: Names) -> set[tuple[str, bool]]:
    """The (variable, arrived by an arrow head) from which an open walk leads on to y."""
    found: set[tuple[str, bool]] = set()
    stack: list[tuple[str, str]] = [(name, mark) for y_ in y for mark, name in _edges(graph, y_)]
    seen: set[tuple[str, str]] = set(stack)
    while stack:
        # the walk leaves `name` along an edge that is `mark` seen from its far end
        name, mark = stack.pop()
        leaves_by_head = mark in "→↔"
        for arrived_by_head in (False, True):
            if (name, arrived_by_head) in found or not _passes(
                name, arrived_by_head and leaves_by_head, given, above_given
            ):
                continue
            found.add((name, arrived_by_head))
            for back, before in _edges(graph, name):
                if (back in "←↔") == arrived_by_head and (before, back) not in seen:
                    seen.add((before, back))
                    stack.append((before, back))
    return found


def _passes(name: str, collider: bool, given: Names, above_given: Names) -> bool:
    """Whether a path may pass a variable."""
    return name in above_given if collider else name not in given


def _edges(graph: CausalGraph, name: str) -> Iterator[Step]:
    for child in graph.children(name):
        yield "→", child
    for parent in graph.parents(name):
        yield "←", parent
    for sibling in graph.siblings(name):
        yield "↔", sibling
