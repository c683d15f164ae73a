"""Directed cycles: finding one and showing it (graphlib's topological sort finds it)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)

LONG = 20
"""A cycle of more nodes than this is shown without its middle."""


def find_cycle(parents: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """The nodes of a cycle, each a parent of the next; the first of them by name begins and ends it.

    Empty if there is none.

    >>> find_cycle({"A": ["B"], "B": ["C"], "C": ["A"]})
    ['A', 'C', 'B', 'A']
    >>> find_cycle({"A": ["B"], "B": []})
    []
    """
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        nodes: list[Node] = error.args[1]
        first = min(range(len(nodes) - 1), key=lambda i: str(nodes[i]))
        return [*nodes[first:-1], *nodes[: first + 1]]
    return []


def shown_cycle(cycle: Sequence[object]) -> str:
    """A cycle for a message, without the middle of a long one."""
    names = [str(node) for node in cycle]
    if len(names) <= LONG:
        return " → ".join(names)
    return f"{' → '.join(names[:10])} → … → {' → '.join(names[-5:])} ({len(names) - 1} nodes)"
