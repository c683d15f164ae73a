"""Greedy elimination on an interaction graph, in plain Python on integer bitsets.

Variables are eliminated one by one, always the one whose cost is least; eliminating a variable joins its remaining
neighbours to one another (the fill). The elimination cliques are those of a triangulation (Rose 1970; Kjaerulff 1990).
Variables with one neighbour at most go first. Ties fall to the second key and then to the lowest index, so that the
order depends on the graph alone. Each elimination costs a few set operations per neighbour.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf

import numpy as np

from bbn.kernels.contracts.checks import check_ints, check_length, check_offsets, check_range
from bbn.kernels.contracts.types import MIN_FILL, MIN_NEIGHBOURS, MIN_WEIGHT, WEIGHTED_MIN_FILL, Floats, Ints


def eliminate(
    cards: Ints,
    scope_ptr: Ints,
    scope: Ints,
    rule: int,
    kept: Ints | None = None,
    most: float = inf,
    bias: Floats | None = None,
) -> tuple[Ints, Ints, Ints]:
    """Order the variables of some scopes greedily.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    scope_ptr, scope : int64 arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``. Variables in no scope are left out.
    rule : int
        MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT or MIN_NEIGHBOURS.
    kept : int64 array (n,), optional
        Nonzero for variables that are never eliminated; they stay as neighbours of the others.
    most : float
        Stop with the first clique of more cells than this: whatever comes after, the cliques together have more.
    bias : float64 array (n,), optional
        What the cost of each variable, by the rule, is multiplied by.

    Returns
    -------
    order, ptr, neighbours : int64 arrays
        The variables as eliminated; ``neighbours[ptr[k]:ptr[k + 1]]`` are those of ``order[k]`` when its turn came,
        ascending.
    """
    check_ints(cards, scope_ptr, scope, *(() if kept is None else (kept,)))
    check_offsets(scope_ptr, len(scope), "scope_ptr")
    check_range(scope, 0, len(cards), "scope")
    if rule not in (MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT, MIN_NEIGHBOURS):
        raise ValueError(f"rule: expected a number from 0 to 3, found {rule}")
    if kept is not None:
        check_length(len(kept), len(cards), "kept")
    if bias is not None:
        check_length(len(bias), len(cards), "bias")
    biases = [1.0] * len(cards) if bias is None else bias.tolist()
    adjacent, present = interaction_bits(len(cards), scope_ptr.tolist(), scope.tolist())
    weights = cards.tolist()
    if kept is not None:
        for v in np.flatnonzero(kept).tolist():
            present &= ~(1 << v)
    order: list[int] = []
    ptr: list[int] = [0]
    neighbours: list[int] = []
    twigs = [v for v in bits(present) if adjacent[v].bit_count() <= 1]
    for v in twigs:  # eliminating a twig is always right; the list grows as branches become twigs
        present &= ~(1 << v)
        order.append(v)
        for u in bits(adjacent[v]):
            neighbours.append(u)
            adjacent[u] &= ~(1 << v)
            if present >> u & 1 and adjacent[u].bit_count() == 1:
                twigs.append(u)
        ptr.append(len(neighbours))
    cost = [
        cost_of(rule, v, adjacent, weights, biases) if present >> v & 1 else (0.0, 0.0)
        for v in range(len(weights))
    ]
    heap = [(*cost[v], v) for v in bits(present)]
    heapq.heapify(heap)
    while heap:
        first, second, v = heapq.heappop(heap)
        if not present >> v & 1 or (first, second) != cost[v]:
            continue
        present &= ~(1 << v)
        around = adjacent[v]
        touched = around
        for u in bits(around):
            fill = around & ~adjacent[u] & ~(1 << u)
            adjacent[u] = (adjacent[u] | fill) & ~(1 << v)
            for x in bits(fill & ~((2 << u) - 1)):
                touched |= adjacent[u] & adjacent[x]
        order.append(v)
        neighbours.extend(bits(around))
        ptr.append(len(neighbours))
        if _clique_cells(v, around, weights) > most:
            break
        for u in bits(touched & present):
            cost[u] = cost_of(rule, u, adjacent, weights, biases)
            heapq.heappush(heap, (*cost[u], u))
    return np.array(order, np.int64), np.array(ptr, np.int64), np.array(neighbours, np.int64)


def interaction_bits(n: int, scope_ptr: list[int], scope: list[int]) -> tuple[list[int], int]:
    """The interaction graph of some scopes: a bitset of neighbours per variable, and the bitset of variables seen."""
    adjacent = [0] * n
    present = 0
    for start, stop in pairwise(scope_ptr):
        members = 0
        for v in scope[start:stop]:
            members |= 1 << v
        for v in scope[start:stop]:
            adjacent[v] |= members & ~(1 << v)
        present |= members
    return adjacent, present


def _clique_cells(v: int, around: int, weights: list[int]) -> float:
    cells = float(weights[v])
    for u in bits(around):
        cells *= weights[u]
    return cells


def cost_of(
    rule: int, v: int, adjacent: list[int], weights: list[int], biases: list[float]
) -> tuple[float, float]:
    """What a rule makes of eliminating v next, and what decides between equals."""
    around, bias = adjacent[v], biases[v]
    weight = _clique_cells(v, around, weights)
    if rule == MIN_NEIGHBOURS:
        return bias * around.bit_count(), weight
    if rule == WEIGHTED_MIN_FILL:
        fill = 0.0
        for u in bits(around):
            for x in bits(around & ~adjacent[u] & ~((2 << u) - 1)):
                fill += weights[u] * weights[x]
        return fill * bias, weight
    missing = sum((around & ~adjacent[u]).bit_count() - 1 for u in bits(around)) // 2
    return (weight * bias, float(missing)) if rule == MIN_WEIGHT else (missing * bias, weight)


def bits(mask: int) -> Iterator[int]:
    """The members of a bitset, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def cells(cards: Ints, order: Ints, ptr: Ints, neighbours: Ints) -> Floats:
    """The number of cells of each elimination clique, zero for those contained in another.

    Clique k is ``order[k]`` and its neighbours; it lies inside an earlier one exactly when a child in the elimination
    tree has as many neighbours as the clique has members.
    """
    check_ints(cards, order, ptr, neighbours)
    check_length(len(ptr), len(order) + 1, "ptr")
    check_offsets(ptr, len(neighbours), "ptr")
    check_range(order, 0, len(cards), "order")
    check_range(neighbours, 0, len(cards), "neighbours")
    position = {v: k for k, v in enumerate(order.tolist())}
    sizes = np.diff(ptr).tolist()
    around = neighbours.tolist()
    out = np.empty(len(sizes))
    absorbed = [False] * len(sizes)
    start = 0
    for k, (v, size) in enumerate(zip(order.tolist(), sizes, strict=True)):
        members = around[start : start + size]
        start += size
        product = float(cards[v])
        for u in members:
            product *= int(cards[u])
        out[k] = 0.0 if absorbed[k] else product
        if members:
            parent = min(position.get(u, 0) for u in members)
            if sizes[parent] == size - 1:
                absorbed[parent] = True
    return out


def total_cells(cards: Ints, order: Ints, ptr: Ints, neighbours: Ints) -> float:
    """The sum of those numbers."""
    return float(cells(cards, order, ptr, neighbours).sum())


def induced(
    cards: Ints, stay: Sequence[int], order: Ints, ptr: Ints, neighbours: Ints
) -> tuple[Ints, Ints, Ints]:
    """An elimination without the variables of one state, but for some that stay.

    An induced part of a triangulated graph is triangulated, so what is left is an elimination of what is left.
    """
    check_ints(cards, order, ptr, neighbours)
    check_length(len(ptr), len(order) + 1, "ptr")
    check_offsets(ptr, len(neighbours), "ptr")
    check_range(order, 0, len(cards), "order")
    check_range(neighbours, 0, len(cards), "neighbours")
    if not all(0 <= v < len(cards) for v in stay):
        raise ValueError(f"expected variables from 0 to {len(cards) - 1}, found {[*stay]}")
    alive = cards > 1
    alive[[*stay]] = True
    kept, held = alive[order], alive[neighbours]
    before = np.concatenate([[0], np.cumsum(held)])
    counts = (before[ptr[1:]] - before[ptr[:-1]])[kept]
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return order[kept], ends, neighbours[held & np.repeat(kept, np.diff(ptr))]
