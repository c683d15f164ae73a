"""Observed effects of many causes, as sampling draws the causes one after the other: each draw looks at what is left.

An observed effect is there if the leak or a cause brings it: with `below` the probability that neither the leak nor a
cause drawn so far does, and `at` that one does, a cause with the code k leaves below·none[k], and at + below·some[k].
The probability of all effects, given the causes drawn so far, is guessed by which cause comes next:

    hope = Σ_j chance_j ∏_{i<j} (1 − chance_i) ∏_f (at_f + below_f reach_jf)

over the leaders j still to come, where reach_jf is the probability that leader j or a cause after it brings f; the
last leader stands for no cause at all. A cause is drawn in proportion to its own share times the hope that it leaves,
with the share alone in one draw of ten. Weights make up for the guesses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import (
    check_doubles,
    check_ints,
    check_length,
    check_offsets,
    check_range,
    check_shape,
)
from bbn.kernels.contracts.moves import Moves
from bbn.kernels.contracts.types import Floats, Ints

BLIND = 0.1
"""The part of the draws that does not look at effects, which bounds the weights."""


class Seen(NamedTuple):
    """The observed effects that draws look at.

    Attributes
    ----------
    term_ptr : int64 array (moves + 1,), or empty where nothing is looked at
        The terms of each move; a move that has some draws from `shares`, not from thresholds.
    effect : int64 array (terms,)
        The effect that the term is about.
    bring : int64 array (terms,)
        Where its numbers begin: none and some of each code.
    share : int64 array (moves,)
        Where the shares of a move with terms begin, one per state of each row; −1 of others.
    turn : int64 array (leaders,)
        The move that draws each leader, ascending; one more than the last for none. Without leaders draws do not look.
    start : float64 array (2 effects,)
        `below` and `at` of each effect before the first draw.
    brings, shares : float64 arrays
    chance : float64 array (leaders,)
    reach : float64 array (leaders, effects)
        Above 0.
    """

    term_ptr: Ints
    effect: Ints
    bring: Ints
    share: Ints
    turn: Ints
    start: Floats
    brings: Floats
    shares: Floats
    chance: Floats
    reach: Floats


_NONE: dict[str, Any] = {name: np.zeros(0, np.int64) for name in Seen._fields[:5]}
_NONE |= {name: np.zeros(0) for name in Seen._fields[5:9]}
NO_SEEN = Seen(**_NONE, reach=np.zeros((0, 0)))


def check_seen(moves: Moves, seen: Seen, rows: Ints) -> None:
    """Raise ValueError unless every term stays inside its arrays, given how many rows each move has."""
    check_ints(*seen[:5])
    check_doubles(*seen[5:])
    n, n_terms, n_effects = len(moves.member), len(seen.effect), len(seen.start) // 2
    check_length(len(seen.term_ptr), n + 1, "terms")
    check_offsets(seen.term_ptr, n_terms, "terms")
    check_length(len(seen.bring), n_terms, "brings")
    check_length(len(seen.share), n, "shares")
    check_range(seen.effect, 0, n_effects, "effects")
    looks = np.diff(seen.term_ptr) > 0
    if (moves.member[looks] < 0).any() or (moves.size[looks] < 2).any():
        raise ValueError("terms: of a move that draws nothing")
    size = np.repeat(moves.size, np.diff(seen.term_ptr))
    check_range(seen.bring, 0, max(1, len(seen.brings)), "brings")
    if (seen.bring + 2 * size > len(seen.brings)).any():
        raise ValueError(f"brings: expected two numbers for each code, found {len(seen.brings)}")
    check_range(seen.share[looks], 0, max(1, len(seen.shares)), "shares")
    if (seen.share[looks] + (rows * moves.size)[looks] > len(seen.shares)).any():
        raise ValueError(f"shares: expected one for each state of each row, found {len(seen.shares)}")
    check_range(seen.turn, 0, n + 1, "turns")
    check_shape("chance", seen.chance, len(seen.turn))
    check_shape("reach", seen.reach, len(seen.turn), n_effects if len(seen.turn) else seen.reach.shape[-1])
    if len(seen.turn) and (np.diff(seen.turn) < 0).any():
        raise ValueError("turns: leaders must ascend")
