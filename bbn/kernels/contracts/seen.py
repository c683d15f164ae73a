"""Observed effects of many causes, as sampling draws the causes one after the other: each draw looks at what is left.

An observed effect is there if the leak or a cause brings it: with `below` the probability that neither the leak nor a cause
drawn so far does, and `at` that one does, a cause with the code k leaves below·none[k], and at + below·some[k]. While causes
are still to come, at + below·hope[k] is a guess at the probability of the effect; a cause is drawn in proportion to its own
share times the guesses of all its effects, with the share alone in one draw of ten. Weights make up for the guesses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_length, check_offsets, check_range
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
    guess : int64 array (terms,)
        Where its numbers begin: none, some and hope of each code.
    share : int64 array (moves,)
        Where the shares of a move with terms begin, one per state of each row; −1 of others.
    start : float64 array (2 effects,)
        `below` and `at` of each effect before the first draw.
    guesses, shares : float64 arrays
    """

    term_ptr: Ints
    effect: Ints
    guess: Ints
    share: Ints
    start: Floats
    guesses: Floats
    shares: Floats


_NONE: dict[str, Any] = {name: np.zeros(0, np.int64) for name in Seen._fields[:4]}
NO_SEEN = Seen(**_NONE, start=np.zeros(0), guesses=np.zeros(0), shares=np.zeros(0))


def check_seen(moves: Moves, seen: Seen, rows: Ints) -> None:
    """Raise ValueError unless every term stays inside its arrays, given how many rows each move has."""
    check_ints(*seen[:4])
    check_doubles(*seen[4:])
    n, n_terms = len(moves.member), len(seen.effect)
    check_length(len(seen.term_ptr), n + 1, "terms")
    check_offsets(seen.term_ptr, n_terms, "terms")
    check_length(len(seen.guess), n_terms, "guesses")
    check_length(len(seen.share), n, "shares")
    check_range(seen.effect, 0, len(seen.start) // 2, "effects")
    looks = np.diff(seen.term_ptr) > 0
    if (moves.member[looks] < 0).any() or (moves.size[looks] < 2).any():
        raise ValueError("terms: of a move that draws nothing")
    size = np.repeat(moves.size, np.diff(seen.term_ptr))
    check_range(seen.guess, 0, max(1, len(seen.guesses)), "guesses")
    if (seen.guess + 3 * size > len(seen.guesses)).any():
        raise ValueError(f"guesses: expected three numbers for each code, found {len(seen.guesses)}")
    check_range(seen.share[looks], 0, max(1, len(seen.shares)), "shares")
    if (seen.share[looks] + (rows * moves.size)[looks] > len(seen.shares)).any():
        raise ValueError(f"shares: expected one for each state of each row, found {len(seen.shares)}")
