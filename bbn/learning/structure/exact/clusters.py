"""Clusters that a choice of parent sets violates: what branch and cut adds to its programs.

A choice is acyclic if and only if every cluster C has a variable with no parent in C (Jaakkola et al. 2010). Likewise
two of every three variables have fewer than two parents among the three (Cussens 2011). Both are rows of the form

    Σ_{i ∈ C} Σ {x(i, Π): |Π ∩ C| < k} ≥ k          with k = 1, or k = 2 and |C| = 3

For fractions x of sets the most violated cluster is found by an integer program (Bartlett & Cussens 2017, section 4.1),
after quicker ways have found none.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.learning.structure.exact.parts import SearchPart, Timer
from bbn.learning.structure.exact.program import Ints, LinearProgram, Row

Bools = NDArray[np.bool_]
VIOLATION = 1e-4
"""How far a row must be violated to be added."""
FEW = 5
"""Clusters below which triples are looked for too."""


class SetColumns:
    """The parent sets of a part, one column each: its child, and which variables it contains."""

    def __init__(self, part: SearchPart) -> None:
        self.n = n = len(part.members)
        self.child: Ints = np.repeat(np.arange(n), [len(own) for own in part.masks])
        self.rank: Ints = np.concatenate([np.arange(len(own)) for own in part.masks])
        self.value: Array = np.concatenate(part.values)
        self.contains: Bools = np.array(
            [[mask >> k & 1 for k in range(n)] for own in part.masks for mask in own], dtype=bool
        )

    def one_each(self) -> list[Row]:
        """For each variable all its columns, of which one is taken."""
        return [Row(np.flatnonzero(self.child == i), 1.0) for i in range(self.n)]

    def row(self, cluster: Iterable[int], k: int = 1) -> Row:
        """The row of a cluster."""
        inside = list(cluster)
        few = self.contains[:, inside].sum(axis=1) < k
        return Row(np.flatnonzero(np.isin(self.child, inside) & few), float(k))

    def violated(self, x: Array, timer: Timer) -> list[Row]:
        """Rows that fractions of sets violate; none only where no cluster is violated."""
        used = np.flatnonzero(x > 1e-9)
        child, contains, x = self.child[used], self.contains[used], x[used]
        grown = dict.fromkeys(_grown(seed, self.n, child, contains, x) for seed in range(self.n))
        rows = [self.row(cluster) for cluster in grown if cluster]
        if len(rows) < FEW:
            rows += [self.row(triple, 2) for triple in _triples(child, contains, x)]
        if not rows:
            rows = [self.row(cluster) for cluster in _worst(self.n, child, contains, x, timer)]
        return rows

    def cycles(self, chosen: Ints) -> list[Row]:
        """The rows that a choice with cycles violates: its strong components, and a shortest cycle of each variable."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        for column in chosen.tolist():
            child = int(self.child[column])
            graph.add_edges_from((p, child) for p in np.flatnonzero(self.contains[column]).tolist())
        found: dict[tuple[int, ...], None] = {}
        for part in nx.strongly_connected_components(graph):
            if len(part) > 1:
                inside = graph.subgraph(part)
                found[tuple(sorted(part))] = None
                for i in sorted(part):
                    paths = nx.single_source_shortest_path(inside, i)
                    shortest = min((paths[p] for p in sorted(inside.predecessors(i))), key=len)
                    found[tuple(sorted(shortest))] = None
        return [self.row(cluster) for cluster in found]


def _grown(seed: int, n: int, child: Ints, contains: Bools, x: Array) -> tuple[int, ...]:
    """The most violated cluster on the way from one variable to all, the best next variable added each time."""
    cluster = np.zeros(n, dtype=bool)
    cluster[seed] = True
    outside = ~contains[:, seed]
    best: tuple[int, ...] = ()
    least = 1.0 - VIOLATION
    for _ in range(n - 1):
        own = x * (outside & cluster[child])
        change = np.bincount(child, x * outside, n) - own @ contains
        change[cluster] = np.inf
        j = int(change.argmin())
        total = own.sum() + change[j]
        cluster[j] = True
        outside &= ~contains[:, j]
        if total < least:
            best, least = tuple(np.flatnonzero(cluster).tolist()), total
        elif best:
            break
    return best


def _triples(child: Ints, contains: Bools, x: Array) -> list[tuple[int, ...]]:
    """Three variables among which more than one has both others as parents."""
    weight: dict[tuple[int, ...], float] = {}
    for i, inside, share in zip(child.tolist(), contains, x.tolist(), strict=True):
        for pair in combinations(np.flatnonzero(inside).tolist(), 2):
            triple = tuple(sorted((i, *pair)))
            weight[triple] = weight.get(triple, 0.0) + share
    return [triple for triple, total in weight.items() if total > 1.0 + VIOLATION]


def _worst(n: int, child: Ints, contains: Bools, x: Array, timer: Timer) -> list[tuple[int, ...]]:
    """The most violated cluster, and those on the way to it, by an integer program.

    y(i) is 1 for members, z(c) for a set with its child and a parent among them. Minimise Σ y(i) − Σ x(c) z(c):
    each member counts its sets without a parent in the cluster.
    """
    program = LinearProgram(np.concatenate([np.ones(n), -x]), whole=True)
    rows = [Row(np.arange(n), 2.0)]
    for c, (i, inside) in enumerate(zip(child.tolist(), contains, strict=True)):
        parents = np.flatnonzero(inside)
        rows.append(Row(np.array([i, n + c]), 0.0, np.array([1.0, -1.0])))
        rows.append(Row(np.append(parents, n + c), 0.0, np.append(np.ones(len(parents)), -1.0)))
    program.add(rows)
    found: dict[tuple[int, ...], None] = {}

    def keep(_: float, solution: Array | None) -> None:
        if solution is not None and solution[:n].sum() - solution[n:] @ x < 1.0 - VIOLATION:
            found[tuple(np.flatnonzero(solution[:n] > 0.5).tolist())] = None

    program.solve(timer.check, keep)
    keep(0.0, program.x)
    return list(found)
