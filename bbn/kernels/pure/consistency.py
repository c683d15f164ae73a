"""States that cannot occur, found by arc consistency, and models without them, in numpy.

A state is supported by a table if some cell of it is not 0 whose other states are all still possible (generalised arc
consistency; Mackworth 1977). A state that a table does not support cannot occur: it is taken away, and the other tables
of its variable are looked at again. What is left may still be impossible together, but nothing is wrongly taken away.
The cost is that of looking at the cells of the tables that change.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import (
    DEEPEST,
    check_doubles,
    check_ints,
    check_length,
    check_numbers,
    check_offsets,
    check_range,
)
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.watch import check

Flags = NDArray[np.uint8]


def prune(
    state_ptr: Ints,
    scope_ptr: Ints,
    scope: Ints,
    table_ptr: Ints,
    support: Flags,
    domain: Flags,
    changed: Ints | None = None,
) -> bool:
    """Take away the states that no table supports; whether each variable has one left.

    Parameters
    ----------
    state_ptr : int64 array (n + 1,)
        The states of variable v are ``domain[state_ptr[v]:state_ptr[v + 1]]``.
    scope_ptr, scope, table_ptr : int64 arrays
        Factor f has the variables ``scope[scope_ptr[f]:scope_ptr[f + 1]]`` and the cells from ``table_ptr[f]`` on, in C
        order.
    support : uint8 array
        For each cell whether it is not 0.
    domain : uint8 array
        1 for each state that is possible; states are taken away in place.
    changed : int64 array, optional
        The variables whose states have become fewer since it was last consistent; by default all tables are looked at.
    """
    check_model(state_ptr, scope_ptr, scope, table_ptr, len(support), len(domain))
    check_numbers("u", 1, support, domain)
    n_factors = len(scope_ptr) - 1
    users: list[list[int]] = [[] for _ in range(len(state_ptr) - 1)]
    scopes = [scope[scope_ptr[f] : scope_ptr[f + 1]].tolist() for f in range(n_factors)]
    for f, own in enumerate(scopes):
        for v in own:
            users[v].append(f)
    if changed is None:
        waiting = dict.fromkeys(range(n_factors))
    else:
        check_ints(changed)
        check_range(changed, 0, len(users), "changed")
        waiting = dict.fromkeys(f for v in changed.tolist() for f in users[v])
    alive = [np.flatnonzero(domain[a:b]) for a, b in pairwise(state_ptr.tolist())]
    if any(not len(own) for own in alive):
        return False
    queue = deque(waiting)
    while queue:
        check()
        f = queue.popleft()
        del waiting[f]
        shape = [int(state_ptr[v + 1] - state_ptr[v]) for v in scopes[f]]
        cells = support[table_ptr[f] : table_ptr[f + 1]].reshape(shape)
        cells = cells[np.ix_(*(alive[v] for v in scopes[f]))] if scopes[f] else cells
        if not cells.any():
            return False
        for axis, v in enumerate(scopes[f]):
            seen = cells.any(axis=tuple(a for a in range(cells.ndim) if a != axis))
            if not seen.all():
                domain[state_ptr[v] + alive[v][~seen]] = 0
                alive[v] = alive[v][seen]
                cells = cells.compress(seen, axis=axis)
                for other in users[v]:
                    if other != f and other not in waiting:
                        waiting[other] = None
                        queue.append(other)
    return True


class Domains:
    """The states that can occur in a model given findings, and the model without the others.

    Parameters
    ----------
    state_ptr, scope_ptr, scope, table_ptr : int64 arrays
        As in `prune`.
    tables : float array
        The tables' numbers.

    Attributes
    ----------
    possible : bool
        Whether each variable has a state that can occur without findings.
    """

    def __init__(
        self, state_ptr: Ints, scope_ptr: Ints, scope: Ints, table_ptr: Ints, tables: Floats
    ) -> None:
        check_ints(state_ptr)
        check_doubles(tables)
        self._model = state_ptr, scope_ptr, scope, table_ptr
        self._tables = tables
        self._support = (tables != 0).astype(np.uint8)
        self._base = np.ones(int(state_ptr[-1]) if state_ptr.size else 0, np.uint8)
        self.possible = prune(*self._model, self._support, self._base)

    def find(self, hard: Pairs, likelihoods: Vectors = ()) -> Flags | None:
        """1 for each state that is possible given findings, by variable number; None if a variable has none.

        Parameters
        ----------
        hard : pairs
            Variables and codes.
        likelihoods : pairs
            Variables and a number for each of their states; those of 0 or less are not possible.
        """
        if not self.possible:
            return None
        domain, changed = self._base.copy(), []
        for v, code in hard:
            own = self._own(domain, v)
            if not 0 <= code < len(own):
                raise ValueError(f"variable {v} has no code {code}")
            there = own[code]
            own[:] = 0
            own[code] = there
            changed.append(v)
        for v, values in likelihoods:
            own = self._own(domain, v)
            if len(values) != len(own):
                raise ValueError(f"variable {v}: {len(values)} numbers are not a likelihood of its states")
            own &= np.asarray(values) > 0
            changed.append(v)
        return domain if prune(*self._model, self._support, domain, np.array(changed, np.int64)) else None

    def _own(self, domain: Flags, v: int) -> Flags:
        state_ptr = self._model[0]
        if not 0 <= v < len(state_ptr) - 1:
            raise ValueError(f"expected variables from 0 to {len(state_ptr) - 2}, found {v}")
        return domain[state_ptr[v] : state_ptr[v + 1]]

    def restrict(self, domain: Flags, factors: Ints) -> tuple[Ints, Ints, Ints, Ints, Floats]:
        """The model of the states that are left and of some factors, without axes of one state.

        Returns
        -------
        cards, scope_ptr, scope, table_ptr, tables : arrays
        """
        state_ptr, scope_ptr, scope, table_ptr = self._model
        check_numbers("u", 1, domain)
        check_length(len(domain), len(self._base), "domain")
        check_ints(factors)
        check_range(factors, 0, len(scope_ptr) - 1, "factors")
        alive = [np.flatnonzero(domain[a:b]) for a, b in pairwise(state_ptr.tolist())]
        cards = np.array([len(own) for own in alive], np.int64)
        if (cards == 0).any():
            raise ValueError(f"variable {int(np.argmin(cards))} has no state left")
        new_ptr, members, sizes, parts = [0], [], [0], [np.empty(0)]
        for f in factors.tolist():
            own = scope[scope_ptr[f] : scope_ptr[f + 1]].tolist()
            shape = [int(state_ptr[v + 1] - state_ptr[v]) for v in own]
            cells = self._tables[table_ptr[f] : table_ptr[f + 1]].reshape(shape)
            parts.append((cells[np.ix_(*(alive[v] for v in own))] if own else cells).ravel())
            members += [v for v in own if cards[v] > 1]
            new_ptr.append(len(members))
            sizes.append(sizes[-1] + parts[-1].size)
        return (
            cards,
            np.array(new_ptr, np.int64),
            np.array(members, np.int64),
            np.array(sizes, np.int64),
            np.concatenate(parts),
        )

    def spread(self, domain: Flags, starts: Ints, values: Floats) -> Floats:
        """Values of the states that are left, laid out over all states, 0 for those that are not.

        Parameters
        ----------
        domain : uint8 array
            What `find` gave.
        starts : int64 array
            Where the values of each variable begin; -1 for one that has none and one state left, which gets 1.
        values : float array
            The values.
        """
        check_numbers("u", 1, domain)
        check_ints(starts)
        check_doubles(values)
        check_length(len(domain), len(self._base), "domain")
        check_length(len(starts), len(self._model[0]) - 1, "starts")
        whole = domain.astype(np.float64)
        for v, start in enumerate(starts.tolist()):
            if start >= 0:
                own = self._model[0][v] + np.flatnonzero(self._own(domain, v))
                if start + len(own) > len(values):
                    raise ValueError(f"starts: {len(values)} values are too few for variable {v}")
                whole[own] = values[start : start + len(own)]
        return whole


def check_model(
    state_ptr: Ints, scope_ptr: Ints, scope: Ints, table_ptr: Ints, entries: int, states: int
) -> None:
    """Refuse arrays that do not fit one another."""
    check_ints(state_ptr, scope_ptr, scope, table_ptr)
    check_offsets(state_ptr, states, "state_ptr")
    check_offsets(scope_ptr, len(scope), "scope_ptr")
    check_length(len(table_ptr), len(scope_ptr), "table_ptr")
    check_offsets(table_ptr, entries, "table_ptr")
    check_range(scope, 0, len(state_ptr) - 1, "scope")
    for f, found in enumerate(np.diff(table_ptr).tolist()):
        own = scope[scope_ptr[f] : scope_ptr[f + 1]]
        cells = math.prod(map(float, state_ptr[own + 1] - state_ptr[own]))
        if cells != found:
            raise ValueError(f"table {f}: expected {cells:.15g} cells, found {found}")
        if len(own) > DEEPEST:
            raise ValueError(f"a factor has {len(own)} axes, expected at most {DEEPEST}")
