"""The junction forest of an elimination order, and the factors that matter to it: plain Python.

The elimination cliques that lie in no other, joined as they were eliminated, are a junction forest (Blair and Peyton
1993). Each clique's axes start with its separator, in the order of the parent's axes, so that the message to the
parent is a sum over contiguous rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import accumulate

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import (
    check_doubles,
    check_elimination,
    check_ints,
    check_length,
    check_offsets,
    check_range,
)
from bbn.kernels.contracts.types import Floats, Ints


def pack_factors(
    cards: list[int], members: list[int], tables: list[Floats], directed: bool
) -> tuple[Ints, Ints, Ints, Ints, Floats, Ints]:
    """Factors as flat arrays.

    Parameters
    ----------
    cards : list of int
        The number of states of each variable.
    members : list of variables
        Those of the first factor, one for each axis of its table, of the second, and so on; if `directed`, all but
        each factor's last.
    tables : list of float64 arrays
        The factors' values, in C order.
    directed : bool
        Whether factor f is the conditional distribution of variable f, its last.

    Returns
    -------
    cards, scope_ptr, scope, table_ptr, tables, heads : arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``, its table starts at ``tables[table_ptr[f]]``, and
        ``heads[f]`` is its last variable, or -1. Variables of one state are in no scope: a table is the same
        without their axes.
    """
    for v, card in enumerate(cards):
        if card < 1:
            raise ValueError(f"variable {v} has {card} states, expected at least 1")
    scopes: list[list[int]] = []
    at = 0
    for f, table in enumerate(tables):
        check_doubles(table)
        listed = table.ndim - directed
        if listed < 0 or at + listed > len(members):
            raise ValueError(f"factor {f}: {len(members) - at} variables are left for {table.ndim} axes")
        scopes.append(members[at : at + listed] + [f] * directed)
        for axis, (v, cells) in enumerate(zip(scopes[-1], table.shape, strict=True)):
            if not 0 <= v < len(cards) or cells != cards[v]:
                raise ValueError(f"factor {f}: axis {axis} has {cells} cells for variable {v}")
        at += listed
    if at != len(members):
        raise ValueError(f"{len(members)} variables for {at} axes")
    kept = [[v for v in scope if cards[v] > 1] for scope in scopes]
    return (
        np.array(cards, np.int64),
        np.array([0, *accumulate(map(len, kept))], np.int64),
        np.array([v for scope in kept for v in scope], np.int64),
        np.array([0, *accumulate(table.size for table in tables)], np.int64),
        np.concatenate([np.empty(0), *(table.ravel() for table in tables)]),
        np.array([scope[-1] if directed else -1 for scope in scopes], np.int64),
    )


def reduce_scopes(
    scope_ptr: Ints,
    scope: Ints,
    heads: Ints,
    n: int,
    sliced: Collection[int],
    likelihood: Collection[int],
    masked: bool,
    targets: Collection[int],
    everything: bool,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Drop barren factors and observed variables.

    Parameters
    ----------
    scope_ptr, scope : int64 arrays
        Scope f is ``scope[scope_ptr[f]:scope_ptr[f + 1]]``.
    heads : int64 array (factors,)
        The variable that factor f is a conditional distribution of, or -1. A factor whose head, and whatever hangs
        on it, is neither wanted nor observed sums to one and is dropped.
    n : int
        The number of variables.
    sliced, likelihood : collections of variables
        Those observed in a state, those that each run brings a likelihood for.
    masked : bool
        Whether a run may bring either for any other variable.
    targets : collection of variables
        Those whose joint is asked; they are one more scope.
    everything : bool
        Whether every variable is wanted.

    Returns
    -------
    role, factors, ptr, reduced : int64 arrays
        The role of each variable (see `lay_out`), the factors kept, and what is left of each scope without the
        sliced variables. The scopes of the factors are followed by that of the targets, and by one for each
        variable that is wanted, or may be observed, and is in none of them (those of one state are in no factor).
    """
    check_ints(scope_ptr, scope, heads)
    check_length(len(scope_ptr), len(heads) + 1, "scope_ptr")
    check_offsets(scope_ptr, len(scope), "scope_ptr")
    check_range(scope, 0, n, "scope")
    check_range(heads, -1, n, "heads")
    for v in (*likelihood, *sliced, *targets):
        if not 0 <= v < n:
            raise ValueError(f"expected variables from 0 to {n - 1}, found {v}")
    roles = [t.MASKED if masked else t.FREE] * n
    for v in likelihood:
        roles[v] = t.LIKELIHOOD
    for v in sliced:
        roles[v] = t.SLICED
    starts, members, head = scope_ptr.tolist(), scope.tolist(), heads.tolist()
    relevant = [everything or v in targets or role != t.FREE for v, role in enumerate(roles)]
    of_head = {h: f for f, h in enumerate(head) if h >= 0}
    stack = [v for v, keep in enumerate(relevant) if keep]
    wanted = [v for v in stack if roles[v] != t.SLICED]
    for f, h in enumerate(head):
        if h < 0:
            stack += _mark(relevant, members[starts[f] : starts[f + 1]])
    while stack:
        v = stack.pop()
        if v in of_head:
            f = of_head[v]
            stack += _mark(relevant, members[starts[f] : starts[f + 1]])
    factors = [f for f, h in enumerate(head) if h < 0 or relevant[h]]
    ptr, reduced = [0], []
    for f in factors:
        reduced += [v for v in members[starts[f] : starts[f + 1]] if roles[v] != t.SLICED]
        ptr.append(len(reduced))
    if targets:
        reduced += targets
        ptr.append(len(reduced))
    inside = set(reduced)
    for v in wanted:
        if v not in inside:
            reduced.append(v)
            ptr.append(len(reduced))
    return (
        np.array(roles, np.int64),
        np.array(factors, np.int64),
        np.array(ptr, np.int64),
        np.array(reduced, np.int64),
    )


def _mark(relevant: list[bool], members: list[int]) -> list[int]:
    fresh = [v for v in members if not relevant[v]]
    for v in fresh:
        relevant[v] = True
    return fresh


class Forest:
    """Cliques, their tree and their axes; the attributes are lists by clique, parents first.

    Parameters
    ----------
    cards : int64 array (n,)
        The number of states of each variable.
    elimination : tuple of int64 arrays
        What `eliminate` gave.
    targets : sequence of variables
        Those of one clique, which becomes the first root and has them as its first axes.
    goal : int
        QUERY, MARGINALS or COLLECTED.
    """

    def __init__(
        self, cards: Ints, elimination: tuple[Ints, Ints, Ints], targets: Sequence[int], goal: int
    ) -> None:
        check_elimination(cards, elimination, targets)
        self.cards: list[int] = cards.tolist()
        self.targets = list(targets)
        self.goal = goal
        self.order: list[int] = elimination[0].tolist()
        self.position = {v: k for k, v in enumerate(self.order)}
        ptr, around = elimination[1].tolist(), elimination[2].tolist()
        self.join_cliques([around[ptr[k] : ptr[k + 1]] for k in range(len(self.order))])
        self.order_axes()

    def join_cliques(self, around: list[list[int]]) -> None:
        """The maximal elimination cliques and their tree, rooted where the targets are, numbered parents first."""
        home: dict[int, int] = {}
        members: list[list[int]] = []
        top: list[int] = []
        first = [min((self.position[u] for u in near), default=-1) for near in around]
        for k, v in enumerate(self.order):
            if v not in home:
                home[v] = len(members)
                members.append([v, *around[k]])
                top.append(k)
            top[home[v]] = k
            if around[k]:
                u = self.order[first[k]]
                if u not in home and len(around[k]) == 1 + len(around[first[k]]):
                    home[u] = home[v]
        parent = [home[self.order[first[k]]] if around[k] else -1 for k in top]
        size = [math.prod(self.cards[v] for v in clique) for clique in members]
        roots: list[int] = []
        if self.targets:
            wanted = set(self.targets)
            holders = [c for c, clique in enumerate(members) if wanted <= set(clique)]
            if not holders:
                raise ValueError("no clique holds all targets")
            roots = [min(holders, key=lambda c: (size[c], c))]
            _reroot(parent, roots[0])
        elif self.goal == t.MARGINALS:
            for largest in _largest(parent, size):
                _reroot(parent, largest)
        _hang_low(members, parent, size)
        numbers = _parents_first(parent, roots)
        rank = {c: k for k, c in enumerate(numbers)}
        self.members = [members[c] for c in numbers]
        self.parent = [rank[parent[c]] if parent[c] >= 0 else -1 for c in numbers]
        self.size = [size[c] for c in numbers]
        self.home = {v: rank[c] for v, c in home.items()}
        self.children = _children(self.parent)

    def order_axes(self) -> None:
        """Separator first, as in the parent; what was eliminated last comes first among the rest."""
        self.axes: list[list[int]] = []
        self.separator: list[int] = []
        for c, clique in enumerate(self.members):
            if self.parent[c] >= 0:
                inside = set(clique)
                front = [v for v in self.axes[self.parent[c]] if v in inside]
                self.separator.append(len(front))
            else:
                front = self.targets if c == 0 else []
                self.separator.append(0)
            fixed = set(front)
            rest = sorted((v for v in clique if v not in fixed), key=lambda v: -self.position[v])
            if self.size[c] > t.ORDERED:
                rest = self.in_long_runs(c, rest)
            self.axes.append([*front, *rest])

    def in_long_runs(self, c: int, rest: list[int]) -> list[int]:
        """Reorder free axes so that the last ones are, for most children, all in the separator or all out of it.

        A child whose last axes are so for a run of r cells costs 1/r; of the greedy choices from each last axis, the
        cheapest is taken.
        """
        held = [set(self.members[child]) for child in self.children[c][: t.RUN]]
        best, least = rest, math.inf
        for last in rest:
            chosen, others = [last], [v for v in rest if v != last]
            run, cost, alike = self.cards[last], 0.0, held
            while others and run < t.RUN and alike:
                following = max(others, key=lambda v: sum((v in h) == (last in h) for h in alike))
                kept = [h for h in alike if (following in h) == (last in h)]
                cost += (len(alike) - len(kept)) / run
                alike = kept
                run *= self.cards[following]
                chosen.append(following)
                others.remove(following)
            cost += len(alike) / run
            if cost < least:
                least, best = cost, [*others, *reversed(chosen)]
        return best


def _reroot(parent: list[int], root: int) -> None:
    below, c = -1, root
    while c >= 0:
        above = parent[c]
        parent[c] = below
        below, c = c, above


def _hang_low(members: list[list[int]], parent: list[int], size: list[int]) -> None:
    """Move each child of a large clique to the smallest neighbour of that clique that holds its separator.

    The tree stays a junction tree, and the large clique, whose cells are walked once per neighbour, has fewer.
    """
    if not any(p >= 0 and size[p] > t.ORDERED for p in parent):
        return
    held = [set(clique) for clique in members]
    children = _children(parent)
    for c in (c for c, p in enumerate(parent) if p >= 0):
        shared = held[c] & held[parent[c]]
        while (host := smaller_neighbour(parent[c], shared, held, children, parent, size, c)) is not None:
            children[parent[c]].remove(c)
            children[host].append(c)
            parent[c] = host


def smaller_neighbour(
    c: int,
    shared: set[int],
    held: list[set[int]],
    children: list[list[int]],
    parent: list[int],
    size: list[int],
    but: int = -1,
) -> int | None:
    """The smallest clique next to a large clique c, of at most half its cells, that holds some variables."""
    if size[c] <= t.ORDERED:
        return None
    near = [d for d in (*children[c][: t.RUN], parent[c]) if d >= 0 and d != but]
    near = [d for d in near if 2 * size[d] <= size[c] and shared <= held[d]]
    return min(near, key=lambda d: (size[d], d), default=None)


def _children(parent: list[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in parent]
    for c, p in enumerate(parent):
        if p >= 0:
            children[p].append(c)
    return children


def _largest(parent: list[int], size: list[int]) -> list[int]:
    """The largest clique of each tree."""
    largest: dict[int, int] = {}
    root = [-1] * len(parent)
    for c in range(len(parent)):
        path = [c]
        while root[path[-1]] < 0 and parent[path[-1]] >= 0:
            path.append(parent[path[-1]])
        found = root[path[-1]] if root[path[-1]] >= 0 else path[-1]
        for passed in path:
            root[passed] = found
        if found not in largest or size[c] > size[largest[found]]:
            largest[found] = c
    return list(largest.values())


def _parents_first(parent: list[int], roots: list[int]) -> list[int]:
    children = _children(parent)
    numbers: list[int] = []
    stack = [c for c, p in enumerate(parent) if p < 0 and c not in roots][::-1] + roots
    while stack:
        c = stack.pop()
        numbers.append(c)
        stack += reversed(children[c])
    return numbers
