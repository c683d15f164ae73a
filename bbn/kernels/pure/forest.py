"""The cliques of an elimination order and the forest that they make: plain Python.

The elimination cliques that lie in no other, each hung on the clique of the variable that is eliminated next, are a
junction forest (Blair and Peyton 1993).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from bbn.kernels.contracts.types import Floats, Ints


class Clique:
    """A clique: its axes begin with what it shares with its parent, in the parent's order."""

    def __init__(self, axes: list[int], shared: int, parent: int, cards: list[int]) -> None:
        self.axes, self.shared, self.parent = axes, shared, parent
        self.dims = [cards[v] for v in axes]
        self.rows, self.columns = math.prod(self.dims[:shared]), math.prod(self.dims[shared:])
        self.children: list[int] = []
        self.factors: list[tuple[Floats, list[int]]] = []
        self.likely: list[tuple[int, list[int]]] = []
        self.message: list[int] = []  # its shape in the parent
        self.gone: tuple[int, ...] = ()  # the parent's axes that it lacks
        self.reads: list[
            tuple[tuple[int, ...], slice]
        ] = []  # marginals: axes to sum out, place in the answer
        self.message_reads: list[tuple[tuple[int, ...], slice]] = []  # of what it shares with its parent
        self.dynamic = False

    def shape(self, held: Iterable[int]) -> list[int]:
        """The clique's dims where these variables are, 1 elsewhere."""
        inside = set(held)
        return [dim if v in inside else 1 for v, dim in zip(self.axes, self.dims, strict=True)]


def forest(
    cards: list[int], elimination: tuple[Ints, Ints, Ints], targets: list[int]
) -> tuple[list[Clique], dict[int, int]]:
    """The cliques, parents first, and for each variable, as eliminated, the number of its clique.

    A clique that holds the targets, the smallest, comes before all others, and begins with them.
    """
    order, ptr, near = (part.tolist() for part in elimination)
    turn = {v: k for k, v in enumerate(order)}
    around = [near[ptr[k] : ptr[k + 1]] for k in range(len(order))]
    following = [min((turn[u] for u in own), default=-1) for own in around]
    home: dict[int, int] = {}
    members: list[list[int]] = []
    last: list[int] = []
    for k, v in enumerate(order):
        if v not in home:
            home[v] = len(members)
            members.append([v, *around[k]])
            last.append(k)
        last[home[v]] = k
        if around[k] and len(around[k]) == 1 + len(
            around[following[k]]
        ):  # what follows is within this clique
            home.setdefault(order[following[k]], home[v])
    parent = [home[order[following[k]]] if around[k] else -1 for k in last]
    root = -1
    if targets:
        size = [math.prod(cards[v] for v in own) for own in members]
        holders = [c for c, own in enumerate(members) if set(targets) <= set(own)]
        if not holders:
            raise ValueError("no clique holds all targets")
        root = min(holders, key=lambda c: (size[c], c))
        below, c = -1, root
        while c >= 0:  # turn the links between it and its root around
            above = parent[c]
            parent[c] = below
            below, c = c, above
    children: list[list[int]] = [[] for _ in members]
    for c, p in enumerate(parent):
        if p >= 0:
            children[p].append(c)
    stack = [c for c, p in enumerate(parent) if p < 0 and c != root][::-1] + [root] * (root >= 0)
    number: dict[int, int] = {}
    cliques: list[Clique] = []
    while stack:
        c = stack.pop()
        p = number.get(parent[c], -1)
        shared = [v for v in cliques[p].axes if v in members[c]] if p >= 0 else []
        front = shared or (targets if c == root else [])
        rest = sorted((v for v in members[c] if v not in front), key=turn.__getitem__, reverse=True)
        clique = Clique([*front, *rest], len(shared), p, cards)
        number[c] = len(cliques)
        if p >= 0:
            cliques[p].children.append(number[c])
            clique.message = cliques[p].shape(shared)
            clique.gone = tuple(k for k, v in enumerate(cliques[p].axes) if v not in shared)
        cliques.append(clique)
        stack += reversed(children[c])
    return cliques, {v: number[c] for v, c in sorted(home.items(), key=lambda item: turn[item[0]])}
