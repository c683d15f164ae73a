"""What is left of a model's factors for a question, before a tree is planned: plain Python."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import check_doubles, check_ints, check_length, check_offsets, check_range
from bbn.kernels.contracts.types import Floats, Ints

if TYPE_CHECKING:
    lay_out: Any
    """Compiled alone: the tapes."""


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
