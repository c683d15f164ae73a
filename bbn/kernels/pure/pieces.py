"""Pieces of an elimination, ordered anew one at a time, in plain Python.

A variable's parent in an elimination is the first of its neighbours to be eliminated after it. Take variables that hang
together in that tree. Once all of them are eliminated, in whatever order, the variables around them are linked to one
another, so nothing beyond changes: a piece may be ordered anew by itself, given what the pieces below it left behind,
and the new order is kept if its cliques have no more cells. That costs a fraction of a new order of the whole, and
finds what a rule that looks at the whole passes by (large neighbourhood search: Shaw 1998).
"""

from __future__ import annotations

from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_length, check_offsets, check_range
from bbn.kernels.contracts.types import MIN_WEIGHT, Floats, Ints
from bbn.kernels.pure.triangulate import bits, cost_of

FEWEST, SIZES = 3, 13
"""The fewest variables of a piece, and how many sizes there are from there."""
SEED = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


class _Order(NamedTuple):
    """A piece in some order."""

    order: list[int]
    near: list[list[int]]
    """The neighbours of each variable when its turn comes."""
    cliques: list[float]
    """The cells of the clique of each."""


class Pieces:
    """An elimination that is made better step by step, the same way on every machine.

    Parameters
    ----------
    samples : float64 array (s, n)
        The numbers of states of each variable, as they may be; what counts is the mean number of cells.
    scope_ptr, scope : int64 arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``.
    order, ptr, neighbours : int64 arrays
        Where to begin: an elimination of these scopes; see `triangulate.eliminate`.
    """

    def __init__(
        self, samples: Floats, scope_ptr: Ints, scope: Ints, order: Ints, ptr: Ints, neighbours: Ints
    ) -> None:
        check_doubles(samples)
        if samples.ndim != 2 or not len(samples):
            raise ValueError("samples: expected one row or more")
        n = samples.shape[1]
        check_ints(scope_ptr, scope, order, ptr, neighbours)
        check_offsets(scope_ptr, len(scope), "scope_ptr")
        check_range(scope, 0, n, "scope")
        check_length(len(ptr), len(order) + 1, "ptr")
        check_offsets(ptr, len(neighbours), "ptr")
        check_range(order, 0, n, "order")
        check_range(neighbours, 0, n, "neighbours")
        self._samples = samples.tolist()
        self._cards = [
            max(1, int(sum(row[v] for row in self._samples) / len(samples) + 0.5)) for v in range(n)
        ]
        self._linked: list[list[int]] = [[] for _ in range(n)]
        members = scope.tolist()
        for a, b in pairwise(scope_ptr.tolist()):
            for v in members[a:b]:
                self._linked[v] += members[a:b]
        self._order = order.tolist()
        around = neighbours.tolist()
        near = [around[a:b] for a, b in pairwise(ptr.tolist())]
        at = {v: k for k, v in enumerate(self._order)}
        if len(at) < len(self._order) or any(
            at.get(u, len(at)) <= k for k, own in enumerate(near) for u in own
        ):
            raise ValueError("order: expected each variable once, and its neighbours after it")
        self._near: list[list[int]] = [[] for _ in range(n)]
        self._parent = [-1] * n
        self._children: list[list[int]] = [[] for _ in range(n)]
        self._weights = [0.0] * n  # the square roots of the cells of each clique: by these, pieces are chosen
        self._whole = [0.0] * n  # the cells of each clique, 0 for those that are a part of another one
        self._state = SEED
        self._heat = self._all = 0.0
        cliques = [self._clique(v, own) for v, own in zip(self._order, near, strict=True)]
        piece = _Order(self._order, near, cliques)
        parents = self._parents(piece, [], -1)
        self._take(piece, parents, self._counted(piece, parents))

    def improve(self, steps: int, heat: float = 0.0) -> int:
        """Order so many pieces anew; how many of them have fewer cells then.

        With heat, a piece that makes all cells x times as many is kept with chance ``x ** (-1 / heat)`` (simulated
        annealing, on the logarithm of the cells: Kirkpatrick, Gelatt and Vecchi 1983).
        """
        if not self._order:
            return 0
        self._heat, self._all = heat, self.cells()
        return sum([self._step() for _ in range(steps)])

    def cells(self) -> float:
        """The mean number of cells of all cliques."""
        return _total(self._whole)

    def elimination(self) -> tuple[Ints, Ints, Ints]:
        """The elimination as it is by now."""
        order: list[int] = []
        stack = [v for v in self._order if self._parent[v] < 0]
        while stack:
            order.append(v := stack.pop())
            stack += self._children[v]
        order.reverse()
        near = [sorted(self._near[v]) for v in order]
        ends = np.cumsum([0, *map(len, near)]).astype(np.int64)
        return np.array(order, np.int64), ends, np.array([u for own in near for u in own], np.int64)

    def _step(self) -> bool:
        chosen = self._chosen()
        inside = set(chosen)
        top = next(v for v in chosen if self._parent[v] not in inside)
        above = self._parent[top]
        below = [c for v in chosen for c in self._children[v] if c not in inside]
        known = _total([self._whole[v] for v in chosen])
        most = known
        if self._heat > 0.0:
            most += self._all * ((1.0 - self._uniform()) ** -self._heat - 1.0)
        piece = self._ordered(chosen, self._near[top], below, most)
        if piece is None:
            return False
        parents = self._parents(piece, below, above)
        whole = self._counted(piece, parents)
        if _total(whole) > most:
            return False
        self._all += _total(whole) - known
        if above >= 0:
            self._children[above].remove(top)
        for v in chosen:
            self._children[v] = []
        self._take(piece, parents, whole)
        return _total(whole) < known

    def _chosen(self) -> list[int]:
        """Variables that hang together, around a large clique."""
        target, first = self._uniform() * _total([self._weights[v] for v in self._order]), 0
        for k, v in enumerate(self._order):
            first = k
            target -= self._weights[v]
            if target < 0:
                break
        size = FEWEST + self._random() % SIZES
        waiting = [(1.0, self._order[first])]
        chosen: list[int] = []
        while waiting and len(chosen) < size:
            largest = max(range(len(waiting)), key=lambda i: waiting[i][0])
            v = waiting.pop(largest)[1]
            chosen.append(v)
            beside = [u for u in (*self._children[v], self._parent[v]) if u >= 0 and u not in chosen]
            waiting += [(self._weights[u] * self._uniform(), u) for u in beside]
        return chosen

    def _ordered(self, chosen: list[int], around: list[int], below: list[int], most: float) -> _Order | None:
        """A piece in an order by one of the rules with biased costs; None if a clique has over `most` cells."""
        members = chosen + around
        number = {v: i for i, v in enumerate(members)}
        adjacent = [0] * len(members)
        scopes = [around, *(self._near[c] for c in below), *([v, u] for v in chosen for u in self._linked[v])]
        for own in scopes:
            mask = sum({1 << number[u] for u in own if u in number})
            for i in bits(mask):
                adjacent[i] |= mask & ~(1 << i)
        rule = self._random() % (MIN_WEIGHT + 1)
        biases = [0.5 + self._uniform() for _ in chosen]
        cards = [self._cards[v] for v in members]
        left = list(range(len(chosen)))
        order, near, cliques = [], [], []
        while left:
            i = min(left, key=lambda i: (*cost_of(rule, i, adjacent, cards, biases), i))
            left.remove(i)
            own = [members[j] for j in bits(adjacent[i])]
            cells = self._clique(members[i], own)
            if cells > most:
                return None
            for j in bits(adjacent[i]):
                adjacent[j] = (adjacent[j] | adjacent[i]) & ~(1 << i) & ~(1 << j)
            order.append(members[i])
            near.append(own)
            cliques.append(cells)
        return _Order(order, near, cliques)

    def _clique(self, v: int, own: list[int]) -> float:
        """The mean number of cells of the clique of a variable and its neighbours."""
        cells = []
        for row in self._samples:
            product = row[v]
            for u in own:
                product *= row[u]
            cells.append(product)
        return _total(cells) / len(cells)

    def _parents(self, piece: _Order, below: list[int], above: int) -> list[tuple[int, int, int]]:
        """The variables of a piece and those right below it, the parent of each, and how many neighbours it has."""
        at = {v: k for k, v in enumerate(piece.order)}
        lists = [*zip(piece.order, piece.near, strict=True), *((c, self._near[c]) for c in below)]
        return [
            (v, min((u for u in own if u in at), key=at.__getitem__, default=above), len(own))
            for v, own in lists
        ]

    def _counted(self, piece: _Order, parents: list[tuple[int, int, int]]) -> list[float]:
        """The cells of each clique of a piece, 0 for those that lie in the clique of a child."""
        widest = dict.fromkeys(piece.order, 0)
        for _, parent, size in parents:
            if parent in widest:
                widest[parent] = max(widest[parent], size)
        return [
            0.0 if widest[v] > len(own) else cells
            for v, own, cells in zip(piece.order, piece.near, piece.cliques, strict=True)
        ]

    def _take(self, piece: _Order, parents: list[tuple[int, int, int]], whole: list[float]) -> None:
        for k, v in enumerate(piece.order):
            self._near[v], self._weights[v], self._whole[v] = piece.near[k], sqrt(piece.cliques[k]), whole[k]
        for v, parent, _ in parents:
            self._parent[v] = parent
            if parent >= 0:
                self._children[parent].append(v)

    def _random(self) -> int:
        """A word of 64 bits that follows from the last (xorshift64*: Marsaglia 2003, Vigna 2016)."""
        x = self._state
        x ^= x >> 12
        x ^= x << 25 & WORD
        x ^= x >> 27
        self._state = x
        return x * 2685821657736338717 & WORD

    def _uniform(self) -> float:
        return (self._random() >> 11) * 2.0**-53


def _total(numbers: list[float]) -> float:
    """Their sum, added one by one."""
    total = 0.0
    for number in numbers:
        total += number
    return total
