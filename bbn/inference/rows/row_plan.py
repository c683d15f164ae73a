"""Row plans: a junction tree that each row of data walks with gaps of its own.

Rows with gaps in other places have no clique, message or tape in common, but they have the tree. So a plan for rows
says where each clique finds its tables and messages (its streams), and a row visits the cells that agree with what it
observes (`kernels.expect`). The elimination order is that of the general search. Of the junction trees over its cliques
the one whose messages meet the fewest cells is taken, which is a maximal spanning tree (Jensen and Jensen 1994).

Where zeros of the tables rule states out (`kernels.consistency`), a plan of the states that are left has smaller
tables and fewer cells: tables are gathered and gradients scattered by an index of entries, and a row that observes
another state is impossible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import memory_limit, require_memory
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.exact.elimination_orders import HUGE, NEAR, Order, greedy, in_pieces, searched
from bbn.kernels.contracts.tree import Tree
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.graphs import flat_scopes, junction_forest

MOST_TERMS = 8
"""Tables and messages that meet in one clique; a clique below it takes the others, so that no product underflows."""
MOST_ENTRIES = 2.0**32
"""Tables and messages have fewer entries than this: their indices are of 32 bits."""
SHARE = 10.0
"""How many runs of the tree a better order may cost where runs are short: rows run it again and again."""
CELL_BYTES = 40
"""About what a cell takes in a row that leaves it open: its value, and an index for each table and message."""
AT_ONCE = 4096
"""Rows whose open cells are counted at a time."""

Flags = NDArray[np.bool_]


class Families(NamedTuple):
    """Tables as arrays: the states of each variable, the variables of each table, and where each begins."""

    cards: Ints
    scopes: list[list[int]]
    table_ptr: Ints

    @classmethod
    def of(cls, cards: Ints, scopes: Sequence[Sequence[int]]) -> Families:
        """Tables over these variables, end to end."""
        # a table is the same without its axes of one state; where there are no others, the last is kept
        kept = [[v for v in scope if cards[v] > 1] or list(scope[-1:]) for scope in scopes]
        sizes = [math.prod(cards[scope].tolist()) for scope in kept]
        return cls(cards, kept, np.array([0, *accumulate(sizes)], np.int64))

    def states_left(self, tables: Array) -> Flags | None:
        """The states of all variables that some entries agree with that are not zero; None if none is ruled out.

        `tables` are the first of the tables. None too where every state is: then each row is impossible; and where
        there are no compiled kernels.
        """
        if not kernels.COMPILED:
            return None
        n_tables = int(np.searchsorted(self.table_ptr, len(tables), "right")) - 1
        ptr, scope = flat_scopes(self.scopes[:n_tables])
        states = np.array([0, *accumulate(self.cards.tolist())], np.int64)
        domains = kernels.consistency.Domains(states, ptr, scope, self.table_ptr[: n_tables + 1], tables)
        left = domains.find(())
        return None if left is None or left.all() else np.asarray(left, bool)


class RowPlan(NamedTuple):
    """A junction tree as the kernel of expected counts walks it, and its price."""

    tree: Tree
    cells: float
    """The cells of its cliques, which a row without any values looks at."""
    visits: float
    """The entries of tables and messages that meet in them."""
    left: Left | None = None
    """The states that it is for; None if for all."""

    def open(self, gaps: Flags, cards: Ints | None = None) -> tuple[Array, Array]:
        """The cells of cliques that rows (first axis of `gaps`) leave open, and the entries that meet in them.

        With `cards`, of a tree of the same cliques over variables of so many states.
        """
        tree = self.tree
        states = (tree.cards if cards is None else cards).astype(np.float64)
        ends, n_streams = tree.axes_ptr[:-1], np.diff(tree.stream_ptr)
        cells, visits = np.empty(len(gaps)), np.empty(len(gaps))
        for start in range(0, len(gaps), AT_ONCE):
            rows = slice(start, start + AT_ONCE)
            widths = np.where(gaps[rows], states, 1.0)[:, tree.axes]
            own = np.multiply.reduceat(widths, ends, axis=1)
            cells[rows], visits[rows] = own.sum(axis=1), own @ n_streams
        return cells, visits

    def bytes(self, cells: Any, visits: Any) -> tuple[int, int]:
        """The messages, cells and indices of the row that needs most: as doubles, then as wide numbers.

        Those take twice as much, and are needed where doubles do not do.
        """
        numbers = cells + 2 * self.tree.message_size
        plain, wide = (float(np.max(size * numbers + 4 * visits, initial=0.0)) for size in (8, 16))
        return int(min(plain, 1e300)), int(min(wide, 1e300))

    def run(
        self,
        tables: Array,
        codes: Int32s,
        weights: Array,
        gradient: Array,
        logs: Array,
        row_tables: Array | None = None,
        row_gradient: Array | None = None,
        counts: bool = False,
    ) -> None:
        """What `kernels.expect.gradient_rows` does, tables, codes and gradients being those of all states."""
        rows = kernels.expect.gradient_rows
        if self.left is None:
            rows(tables, codes, weights, self.tree, gradient, logs, row_tables, row_gradient, counts)
            return
        left = self.left
        codes = left.codes[codes + left.starts]
        lost = np.flatnonzero(codes.min(axis=1, initial=0) < 0)
        if len(lost):
            codes[lost] = 0
            weights = weights.copy()
            weights[lost] = 0.0
        part = np.zeros(len(left.entries))
        some = own = None
        if row_tables is not None:
            some, own = np.ascontiguousarray(row_tables[:, left.own]), np.zeros((len(codes), len(left.own)))
        rows(tables[left.entries], codes, weights, self.tree, part, logs, some, own, counts)
        gradient[left.entries] += part
        if row_gradient is not None:
            row_gradient[:, left.own] = own
        logs[lost] = -np.inf


class Left(NamedTuple):
    """The states that are left of each variable, and what lies where once the others are gone."""

    domain: Flags
    """Of all states, variable after variable, whether each is left."""
    entries: Ints
    """The entries of the tables that all rows share that are left."""
    own: Ints
    """The same of tables of each row's own."""
    codes: Int32s
    """The new code of each state, and of what is missing, variable after variable; -1 for a state that is gone."""
    starts: Int32s
    """Where those of each variable begin."""


def row_plan(families: Families) -> RowPlan:
    """The plan of all states; BudgetError if its messages do not fit."""
    tree = _lowered(families)
    cells, visits = RowPlan(tree, 0.0, 0.0).open(np.ones((1, len(tree.cards)), bool))
    return RowPlan(tree, float(cells[0]), float(visits[0]))


def filtered_plan(families: Families, domain: Flags, n_shared: int) -> RowPlan:
    """The plan of the states in a domain; the first `n_shared` entries are those of the tables that all rows share."""
    starts = np.cumsum(families.cards) - families.cards
    alive = [
        np.flatnonzero(domain[s : s + card])
        for s, card in zip(starts.tolist(), families.cards.tolist(), strict=True)
    ]
    cards = np.array([len(own) for own in alive], np.int64)
    entries = [np.empty(0, np.int64)]
    for start, scope in zip(families.table_ptr.tolist(), families.scopes, strict=False):
        steps = _strides(families.cards.tolist(), scope)
        at = np.array([start])
        for v in scope:
            at = (at[:, None] + steps[v] * alive[v]).ravel()
        entries.append(at)
    found = np.concatenate(entries)
    codes = np.full(int(families.cards.sum()) + len(cards), -1, np.int32)
    places = starts + np.arange(len(cards))
    for v, own in enumerate(alive):
        codes[places[v] + own] = np.arange(len(own))
        codes[places[v] + families.cards[v]] = len(own)
    shared = int(np.searchsorted(found, n_shared))
    left = Left(domain, found[:shared], found[shared:] - n_shared, codes, places.astype(np.int32))
    return row_plan(Families.of(cards, families.scopes))._replace(left=left)


class _Clique:
    """A clique of the tree: its variables, its tables by number, and the cliques below it."""

    def __init__(self, axes: list[int]) -> None:
        self.axes, self.held = axes, set(axes)
        self.factors: list[int] = []
        self.below: list[_Clique] = []
        self.shared = -1  # how many axes it shares with the clique above, once ordered; they come first
        self.message = 0  # where its message begins


def _lowered(families: Families) -> Tree:
    """The tree of some tables: an order, its cliques, how they hang together, and what lies where."""
    cards, scopes = families.cards.tolist(), families.scopes
    cliques = _cliques(families)
    sizes = [math.prod(map(float, [cards[v] for v in clique.axes])) for clique in cliques]
    holders: list[list[int]] = [[] for _ in cards]
    for c, clique in enumerate(cliques):
        for v in clique.axes:
            holders[v].append(c)
    for f, scope in enumerate(scopes):
        fewest = min([holders[v] for v in scope], key=len)
        inside = [c for c in fewest if cliques[c].held.issuperset(scope)]
        cliques[min(inside, key=sizes.__getitem__)].factors.append(f)
    roots = _hung(cliques, np.array(sizes), [np.array(own, np.intp) for own in holders])
    ordered = [c for c in roots if c.factors or c.below] or roots[:1]
    cells = 0
    for clique in ordered:
        _spread(clique, scopes)
        for child in clique.below:
            shared = [v for v in clique.axes if v in child.held]
            child.axes = [*shared, *(v for v in child.axes if v not in clique.held)]
            child.shared, child.message = len(shared), cells
            cells += math.prod([cards[v] for v in shared])
        ordered.extend(clique.below)
    _require_messages(families, cells)
    return _streams(families, ordered, cells)


def _cliques(families: Families) -> list[_Clique]:
    """The maximal cliques of the order that the search finds."""
    cards, scopes = families.cards, flat_scopes(families.scopes)
    order = greedy(cards, *scopes)
    if _times_the_limit(order) <= NEAR:  # else none would fit; rows may, by what they observe
        order = searched(cards, *scopes, order, thorough=True, needs=_times_the_limit)
    if order.cells <= HUGE:
        order = in_pieces(cards, *scopes, order, SHARE)
    return [_Clique(axes) for axes in junction_forest(order.elimination)[0]]


def _times_the_limit(order: Order) -> float:
    """How many times the memory limit a row without any values takes."""
    return CELL_BYTES * order.cells / memory_limit()


def _hung(cliques: list[_Clique], sizes: Array, holders: list[NDArray[np.intp]]) -> list[_Clique]:
    """Hang each clique below another, but for one in each part of the graph; those are given.

    Cliques that share most variables are joined first, and of equals those with the fewest cells (Prim's algorithm).
    """
    n = len(cliques)
    roots: list[_Clique] = []
    shared, above = (
        np.zeros(n, np.int64),
        np.full(n, -1),
    )  # with the best of those that hang; -1 once it hangs itself
    met = sizes.copy()  # the cells of a clique and of that one
    for _ in cliques:
        best = np.flatnonzero(shared == shared.max())
        c = int(best[met[best].argmin()])
        (cliques[above[c]].below if above[c] >= 0 else roots).append(cliques[c])
        shared[c] = -1
        common = np.bincount(np.concatenate([holders[v] for v in cliques[c].axes]), minlength=n)
        both = sizes + sizes[c]
        closer = (common > 0) & (shared >= 0) & ((common > shared) | ((common == shared) & (both <= met)))
        shared[closer], met[closer], above[closer] = common[closer], both[closer], c
    return roots


def _spread(clique: _Clique, scopes: list[list[int]]) -> None:
    """Leave at most MOST_TERMS tables and children at a clique: one below takes the others, the smallest."""
    if len(clique.factors) + len(clique.below) <= MOST_TERMS:
        return
    terms: list[tuple[set[int], int | _Clique]] = [(set(scopes[f]), f) for f in clique.factors]
    terms += [(clique.held & child.held, child) for child in clique.below]
    terms.sort(key=lambda term: -len(term[0]))
    kept, moved = terms[: MOST_TERMS - 1], terms[MOST_TERMS - 1 :]
    held = set().union(*(scope for scope, _ in moved))
    other = _Clique([v for v in clique.axes if v in held])
    for at, chosen in ((clique, kept), (other, moved)):
        at.factors = [term for _, term in chosen if isinstance(term, int)]
        at.below = [term for _, term in chosen if isinstance(term, _Clique)]
    clique.below.append(other)


def _require_messages(families: Families, cells: int) -> None:
    """Raise BudgetError before messages are laid out that would not fit the memory, or that no index reaches."""
    what, instead = "the messages of the junction tree", "use fewer parents or states"
    require_memory(16 * cells, what, instead)
    if max(cells, int(families.table_ptr[-1])) >= MOST_ENTRIES:
        raise BudgetError(f"{what} would have {cells:.3g} cells, more than {MOST_ENTRIES:.3g}; {instead}")


def _streams(families: Families, cliques: list[_Clique], message_size: int) -> Tree:
    """Where each clique's tables and messages lie, and how they are walked."""
    cards, starts = families.cards.tolist(), families.table_ptr.tolist()
    base: list[int] = []
    strides: list[list[int]] = []
    ends = [0]
    for clique in cliques:
        sources = [(starts[f], families.scopes[f]) for f in clique.factors]
        messages = [*clique.below, clique] if clique.shared >= 0 else clique.below
        sources += [(other.message, other.axes[: other.shared]) for other in messages]
        for start, scope in sources:
            steps = _strides(cards, scope)
            base.append(start)
            strides.append([steps.get(v, 0) for v in clique.axes])
        ends.append(len(base))
    return Tree(
        families.cards,
        *flat_scopes([clique.axes for clique in cliques]),
        np.array([clique.shared for clique in cliques], np.int64),
        np.array([len(clique.factors) for clique in cliques], np.int64),
        np.array([len(clique.below) for clique in cliques], np.int64),
        np.array(ends, np.int64),
        np.array(base, np.int64),
        *flat_scopes(strides),
        message_size,
    )


def _strides(cards: list[int], scope: Sequence[int]) -> dict[int, int]:
    """How far apart the states of each variable of a table lie."""
    steps, step = {}, 1
    for v in reversed(scope):
        steps[v] = step
        step *= cards[v]
    return steps
