"""What loopy propagation passes messages on: factors over variables, as flat arrays.

An edge joins a factor and one of its variables; edge e is the entry ``scope[e]``, and the message along it to the
variable has a number for each of that variable's states. Messages lie one after the other, in the order of the edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import (
    DEEPEST,
    check_doubles,
    check_ints,
    check_length,
    check_offsets,
    check_range,
)
from bbn.kernels.contracts.types import Floats, Ints


class FactorGraphArrays(NamedTuple):
    """Factors of one variable or more, of two states or more each, and weights of variables alone.

    Attributes
    ----------
    cards : int64 array (variables,)
    scope_ptr, scope : int64 arrays
        The variables of factor f, each once: ``scope[scope_ptr[f]:scope_ptr[f + 1]]``.
    tables : float64 array
        The factors' entries, not negative, in C order, one factor after the other.
    local : float64 array
        A weight for each state of each variable, one variable after the other.
    """

    cards: Ints
    scope_ptr: Ints
    scope: Ints
    tables: Floats
    local: Floats


class Layout(NamedTuple):
    """Where things lie: factors in `tables`, edges among the messages, variables in `local`, each with its end.

    The edges of variable v are ``around[around_ptr[v]:around_ptr[v + 1]]``.
    """

    table: Ints
    message: Ints
    state: Ints
    around_ptr: Ints
    around: Ints


def laid_out(graph: FactorGraphArrays, messages: Floats) -> Layout:
    """Where everything lies, once it is checked; TypeError or ValueError where arrays do not fit one another."""
    cards, scope_ptr, scope, tables, local = graph
    check_ints(cards, scope_ptr, scope)
    check_doubles(tables, local, messages)
    for array in graph:
        check_length(array.ndim, 1, "axes")
    check_range(cards, 1, 2**31, "cards")
    check_offsets(scope_ptr, len(scope), "scope_ptr")
    check_range(scope, 0, len(cards), "scope")
    axes = np.diff(scope_ptr)
    check_range(axes, 1, DEEPEST, "axes of a factor")
    check_range(cards[scope], 2, 2**31, "states of a factor's variables")
    owner = np.repeat(np.arange(len(axes)), axes)
    if len(np.unique(owner * len(cards) + scope)) != len(scope):
        raise ValueError("scope: a factor has a variable twice")
    sizes = np.zeros(len(axes), np.float64)
    np.add.at(sizes, owner, np.log2(cards[scope]))
    if sizes.max(initial=0.0) > 52:
        raise ValueError("tables: a factor has more cells than can be numbered")
    cells = np.multiply.reduceat(cards[scope], scope_ptr[:-1]) if len(axes) else np.zeros(0, np.int64)
    layout = Layout(
        _ends(cells),
        _ends(cards[scope]),
        _ends(cards),
        _ends(np.bincount(scope, minlength=len(cards))),
        np.argsort(scope, kind="stable").astype(np.int64),
    )
    check_length(len(tables), int(layout.table[-1]), "tables")
    check_length(len(local), int(layout.state[-1]), "local")
    check_length(len(messages), int(layout.message[-1]), "messages")
    return layout


def _ends(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
