"""What Gibbs sampling knows of conditionals with many causes, without their tables: families of effects and of numbers.

Each cause of a family, a leaf, has for each of its codes either an effect, a distribution over levels 0, 1, … of which
the strongest shows, or a number, of which the sum decides. A leaf may be constant (a leak). Given the others, the joint
states of a block of causes have weights that follow from all other leaves together, which the kernel keeps in a tree.

An effect is written as 2 K numbers: the probability of each level, then that of at most each level.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_length, check_offsets
from bbn.kernels.contracts.moves import Codes, Sweep
from bbn.kernels.contracts.types import Floats, Ints

STRONGEST, SUM = 0, 1
MOST = 2**20
"""The most levels, sums and numbers."""


class Causes(NamedTuple):
    """Families, and the terms that they add to the moves of a sweep.

    Attributes
    ----------
    term_ptr : int64 array (moves + 1,), or empty where there are no families
        The terms t of each move; a move that has some has no table.
    family : int64 array (terms,)
        The family that the term is of; no move has two of the same.
    member_ptr, member : int64 arrays
        The leaves that the move changes: ``member[member_ptr[t]:member_ptr[t + 1]]``.
    effect : int64 array (terms,)
        Where the effect, or the number, of these leaves together begins for each joint state of the move.
    shown : int64 array (terms,)
        Where the child's level, or its code, begins for each joint state of the move; −1 if the move leaves it.
    kind : int64 array (families,)
        STRONGEST or SUM.
    size : int64 array (families,)
        The number of levels, or of sums.
    child, seen : int64 arrays (families,)
        The child's column, or −1 and its level (of SUM: its code) where it is observed.
    level : int64 array (families,)
        Where its levels begin: of STRONGEST the level of each code, of SUM the code of each sum.
    leaf_ptr, column, row : int64 arrays
        The leaves of each family: their columns, −1 for a constant one, and where the effects or numbers of their
        codes begin.
    effects : float64 array
    numbers, levels : int64 arrays
    """

    term_ptr: Ints
    family: Ints
    member_ptr: Ints
    member: Ints
    effect: Ints
    shown: Ints
    kind: Ints
    size: Ints
    child: Ints
    seen: Ints
    level: Ints
    leaf_ptr: Ints
    column: Ints
    row: Ints
    effects: Floats
    numbers: Ints
    levels: Ints


_NONE: dict[str, Any] = {name: np.zeros(0, np.int64) for name in Causes._fields}
NO_CAUSES = Causes(**{**_NONE, "effects": np.zeros(0)})


def check_causes(codes: Codes, sweep: Sweep, causes: Causes) -> None:
    """Raise ValueError unless every term of a sweep, once that is checked, stays inside its arrays.

    Sums are not checked: the kernel gives no weight to those that are not there.
    """
    check_ints(*causes[:14], causes.numbers, causes.levels)
    check_doubles(causes.effects)
    if not len(causes.term_ptr):
        return
    n_families, n_terms, n_leaves = len(causes.kind), len(causes.family), len(causes.column)
    for own in (causes.effect, causes.shown):
        check_length(len(own), n_terms, "terms")
    for own in (causes.size, causes.child, causes.seen, causes.level):
        check_length(len(own), n_families, "families")
    check_length(len(causes.row), n_leaves, "leaves")
    _check_ragged(causes.term_ptr, len(sweep.size), n_terms, "terms")
    _check_ragged(causes.member_ptr, n_terms, len(causes.member), "members")
    _check_ragged(causes.leaf_ptr, n_families, n_leaves, "leaves")
    _check_between(causes.family, 0, n_families - 1, "family")
    _check_between(causes.kind, STRONGEST, SUM, "kind")
    _check_between(causes.size, 1, MOST, "size")
    _check_between(causes.child, -1, len(codes) - 1, "child")
    _check_between(causes.column, -1, len(codes) - 1, "column")
    _check_between(causes.numbers, 0, MOST, "numbers")
    _check_between(causes.levels, 0, MOST, "levels")
    _check_between(causes.seen, 0, MOST, "seen")
    if (np.diff(causes.leaf_ptr) == 0).any():
        raise ValueError("a family has no leaves")
    cards = _cards(codes, sweep)
    _check_families(causes, cards)
    _check_terms(causes, sweep)


def _check_families(causes: Causes, cards: Ints) -> None:
    strongest = causes.kind == STRONGEST
    open_child = causes.child >= 0
    widths = np.where(strongest, np.where(open_child, cards[causes.child], 0), causes.size)
    _check_parts(causes.level, widths, len(causes.levels), "levels")
    for f in np.flatnonzero(strongest & open_child).tolist():
        own = causes.levels[causes.level[f] : causes.level[f] + widths[f]]
        _check_between(own, 0, int(causes.size[f]) - 1, "levels")
    if (causes.seen >= causes.size)[strongest & ~open_child].any():
        raise ValueError("seen: a level that the family does not have")
    family = np.repeat(np.arange(len(causes.kind)), np.diff(causes.leaf_ptr))
    card = np.where(causes.column >= 0, cards[causes.column], 1)
    effects = strongest[family]
    _check_parts(
        causes.row[effects], (card * 2 * causes.size[family])[effects], len(causes.effects), "effects"
    )
    _check_parts(causes.row[~effects], card[~effects], len(causes.numbers), "numbers")


def _check_terms(causes: Causes, sweep: Sweep) -> None:
    move = np.repeat(np.arange(len(sweep.size)), np.diff(causes.term_ptr))
    if (sweep.table[move] >= 0).any():
        raise ValueError("a move has terms, and a table")
    n_states, size = sweep.size[move], causes.size[causes.family]
    effects = causes.kind[causes.family] == STRONGEST
    _check_parts(causes.effect[effects], (n_states * 2 * size)[effects], len(causes.effects), "effects")
    _check_parts(causes.effect[~effects], n_states[~effects], len(causes.numbers), "numbers")
    shown = causes.shown != -1
    _check_parts(causes.shown[shown], n_states[shown], len(causes.levels), "levels")
    for t in np.flatnonzero(shown & effects).tolist():
        own = causes.levels[causes.shown[t] : causes.shown[t] + n_states[t]]
        _check_between(own, 0, int(size[t]) - 1, "levels")
    family = np.repeat(causes.family, np.diff(causes.member_ptr))
    inside = (causes.member >= causes.leaf_ptr[family]) & (causes.member < causes.leaf_ptr[family + 1])
    if not inside.all() or (causes.column[causes.member] < 0).any():
        raise ValueError("member: a leaf of another family, or one that is constant")


def _cards(codes: Codes, sweep: Sweep) -> Ints:
    """One more than the highest code that each column may have."""
    cards: Ints = codes.max(axis=1, initial=0).astype(np.int64) + 1
    for i, size in enumerate(sweep.size.tolist()):
        for k in range(sweep.member_ptr[i], sweep.member_ptr[i + 1]):
            start, member = int(sweep.decode_ptr[k]), int(sweep.members[k])
            cards[member] = max(int(cards[member]), int(sweep.decode[start : start + size].max()) + 1)
    return cards


def _check_ragged(ptr: Ints, n: int, size: int, what: str) -> None:
    check_length(len(ptr), n + 1, what)
    check_offsets(ptr, size, what)


def _check_between(values: Ints, low: int, high: int, what: str) -> None:
    if values.size and (values.min() < low or values.max() > high):
        raise ValueError(f"{what}: expected {low} to {high}, found {values.min()} to {values.max()}")


def _check_parts(start: Ints, width: Ints, size: int, what: str) -> None:
    if start.size and (start.min() < 0 or (start > size - width).any()):
        raise ValueError(f"{what}: expected parts of {size} entries")
