"""Classes of equivalent structures as bit masks: what a search over them moves through.

A class is its CPDAG: the arcs that all members have, and the edges whose direction differs among them. The arcs are
those of v-structures, those known beforehand (from states to numbers), and those that follow by Meek's (1995) rules. A
member is found by taking sinks off, one after the other (Dor & Tarsi 1992).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bbn.learning.structure.constraints import members


class EquivalenceClass:
    """A partially directed graph over n variables.

    Attributes
    ----------
    directed
        Per variable the mask of those with an arc to it.
    undirected
        Per variable the mask of those with an undirected edge to it.
    adjacent
        Per variable the mask of all that are joined to it.
    """

    def __init__(self, directed: Sequence[int], undirected: Sequence[int]) -> None:
        self.directed, self.undirected = list(directed), list(undirected)
        self.children = [0] * len(self.directed)
        for child, parents in enumerate(self.directed):
            for parent in members(parents):
                self.children[parent] |= 1 << child
        self.adjacent = [
            a | b | c for a, b, c in zip(self.directed, self.undirected, self.children, strict=True)
        ]

    def edges(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The arcs by name, an undirected edge as arcs in both directions."""
        for child, own in enumerate(zip(self.directed, self.undirected, strict=True)):
            for parent in members(own[0] | own[1]):
                yield names[parent], names[child]

    def is_clique(self, mask: int) -> bool:
        """Whether all these variables are joined to each other."""
        return all(not mask & ~self.adjacent[i] & ~(1 << i) for i in members(mask))

    def has_path(self, start: int, goal: int, blocked: int) -> bool:
        """Whether a way along arcs and undirected edges leads from start to goal around the blocked variables."""
        reached, front = 1 << start | blocked, 1 << start
        while front:
            ahead = 0
            for i in members(front):
                ahead |= self.children[i] | self.undirected[i]
            front = ahead & ~reached
            if front >> goal & 1:
                return True
            reached |= front
        return False

    def below(self) -> list[int]:
        """Per variable the mask of those that a way along arcs leads to from it."""
        found = [-1] * len(self.children)
        for start in range(len(found)):
            stack = [start]
            while stack:
                i = stack[-1]
                mask = self.children[i]
                waiting = [j for j in members(mask) if found[j] < 0]
                if waiting:
                    stack += waiting
                    continue
                stack.pop()
                for j in members(self.children[i]):
                    mask |= found[j]
                found[i] = mask
        return found

    def with_arcs(self, arcs: Iterable[tuple[int, int]]) -> EquivalenceClass:
        """The graph with these arcs, new or in place of undirected edges."""
        directed, undirected = list(self.directed), list(self.undirected)
        for parent, child in arcs:
            directed[child] |= 1 << parent
            undirected[child] &= ~(1 << parent)
            undirected[parent] &= ~(1 << child)
        return EquivalenceClass(directed, undirected)

    def without(self, x: int, y: int) -> EquivalenceClass:
        """The graph without the edge between two variables."""
        directed, undirected = list(self.directed), list(self.undirected)
        for a, b in ((x, y), (y, x)):
            directed[a] &= ~(1 << b)
            undirected[a] &= ~(1 << b)
        return EquivalenceClass(directed, undirected)


def class_of(parents: Sequence[int], numeric: int = 0) -> EquivalenceClass:
    """The class of a structure; `numeric` are the variables that hold numbers, which edges from others point at.

    >>> chain, collider = class_of([0, 0b001, 0b010]), class_of([0, 0b101, 0])
    >>> chain.undirected, collider.directed
    ([2, 5, 2], [0, 5, 0])
    """
    adjacent = list(parents)
    for child, mask in enumerate(parents):
        for p in members(mask):
            adjacent[p] |= 1 << child
    directed, undirected = [0] * len(parents), [0] * len(parents)
    for child, mask in enumerate(parents):
        for p in members(mask):
            kinds = numeric >> child & 1 and not numeric >> p & 1
            if kinds or mask & ~adjacent[p] & ~(1 << p):
                directed[child] |= 1 << p
            else:
                undirected[child] |= 1 << p
                undirected[p] |= 1 << child
    _close_under_meek(directed, undirected, adjacent)
    return EquivalenceClass(directed, undirected)


def _close_under_meek(directed: list[int], undirected: list[int], adjacent: Sequence[int]) -> None:
    """Direct the undirected edges, in place, whose direction follows from those that have one."""
    changed = True
    while changed:
        changed = False
        for b, open_ in enumerate(undirected):
            for a in members(open_):
                if undirected[b] >> a & 1 and _follows(a, b, directed, undirected, adjacent):
                    directed[b] |= 1 << a
                    undirected[b] &= ~(1 << a)
                    undirected[a] &= ~(1 << b)
                    changed = True


def _follows(
    a: int, b: int, directed: Sequence[int], undirected: Sequence[int], adjacent: Sequence[int]
) -> bool:
    """Whether a – b must be a → b, by one of the four rules."""
    if directed[a] & ~adjacent[b] & ~(1 << b):
        return True
    between = directed[b] & adjacent[a]
    if any(directed[c] >> a & 1 for c in members(between)):
        return True
    pair = directed[b] & undirected[a]
    if any(pair & ~adjacent[c] & ~(1 << c) for c in members(pair)):
        return True
    return any(directed[c] & undirected[a] & ~adjacent[b] & ~(1 << b) for c in members(between))


def extension(graph: EquivalenceClass) -> list[int] | None:
    """The parents' masks of a structure with this graph's arcs, edges and v-structures; None if there is none."""
    children, undirected, adjacent = graph.children, graph.undirected, graph.adjacent
    parents = list(graph.directed)
    left = (1 << len(parents)) - 1
    waiting = left  # those that may be sinks: one that is not stays so until one joined to it goes
    while waiting:
        bit = waiting & -waiting
        waiting ^= bit
        x = bit.bit_length() - 1
        if children[x] & left:
            continue
        around, open_ = adjacent[x] & left, undirected[x] & left
        if all(not around & ~(1 << y) & ~adjacent[y] for y in members(open_)):
            parents[x] |= open_
            left ^= bit
            waiting |= around
    return None if left else parents
