"""bnlearn's `hc` and `tabu` in a few plain lines, as its documentation and sources describe them.

Both begin with the empty graph and make the best addition, deletion or reversal. `hc` stops where none gains. `tabu`
keeps the last 10 structures in a list and goes on to the best neighbour that is not in it, a loss or not, until it has
made 10 steps that lose since it last beat its best. Additions are looked at before deletions before reversals, arcs by
their first end and then by their second in the order of the columns, and a later one wins only if it gains more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

Term = Callable[[int, frozenset[int]], float]
"""The score of a child with a set of parents."""
Parents = tuple[frozenset[int], ...]
TOLERANCE = 1.5e-8  # the square root of the machine's epsilon


def hc(n: int, term: Term) -> Parents:
    """Plain hill climbing, without restarts: the parents of each variable."""
    at: Parents = (frozenset(),) * n
    gains = Gains(term)
    while True:
        found = best_neighbour(at, gains, 0.0, ())
        if found is None:
            return at
        at = found[1]


def tabu(n: int, term: Term, length: int = 10, most_losses: int = 10) -> Parents:
    """Tabu search: the best structure on its way."""
    at: Parents = (frozenset(),) * n
    gains = Gains(term)
    score = best_score = 0.0  # relative to the empty graph
    best, losses = at, 0
    recent: deque[Parents] = deque(maxlen=length)
    while True:
        recent.append(at)
        found = best_neighbour(at, gains, 0.0, recent)
        if found is None:
            if losses >= most_losses:
                return best
            losses += 1
            found = best_neighbour(at, gains, -np.inf, recent)
            if found is None:
                return best
        gain, at = found
        score += gain
        if score > best_score + TOLERANCE:
            best, best_score = at, score
            if gain > 0:
                losses = 0


class Gains:
    """What adding, or else deleting, a parent of a child gains, worked out once per child and parents."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.known: dict[tuple[int, frozenset[int]], list[float]] = {}

    def into(self, child: int, parents: frozenset[int], n: int) -> list[float]:
        """The gain of changing each variable's arc into the child."""
        key = child, parents
        if key not in self.known:
            own = self.term(child, parents)
            self.known[key] = [
                self.term(child, parents ^ {p}) - own if p != child else -np.inf for p in range(n)
            ]
        return self.known[key]


def best_neighbour(
    at: Parents, gains: Gains, least: float, recent: Sequence[Parents] | deque[Parents]
) -> tuple[float, Parents] | None:
    """The gain and the structure of the best change that gains more than `least` and is not among recent ones."""
    n = len(at)
    delta = np.array([gains.into(child, parents, n) for child, parents in enumerate(at)]).T  # [from, to]
    above = ancestors(at)
    best: tuple[float, Parents] | None = None
    for gain, a, b, kind in changes(at, delta):
        if (best is not None and gain <= best[0] + TOLERANCE) or not gain > least + TOLERANCE:
            continue
        if kind == "add" and b in above[a] | {a}:
            continue
        if kind == "reverse" and any(a in above[p] for p in at[b] - {a}):
            continue
        changed = list(at)
        changed[b] = at[b] ^ {a}
        if kind == "reverse":
            changed[a] = at[a] | {b}
        if tuple(changed) not in recent:
            best = gain, tuple(changed)
    return best


def changes(at: Parents, delta: np.ndarray) -> Iterator[tuple[float, int, int, str]]:
    """The gain, the ends and the kind of every change, in bnlearn's order."""
    n = len(at)
    for kind in ("add", "delete", "reverse"):
        for a in range(n):
            for b in range(n):
                if a != b and (a in at[b]) is (kind != "add"):
                    gain = delta[a, b] + delta[b, a] if kind == "reverse" else delta[a, b]
                    yield float(gain), a, b, kind


def ancestors(at: Parents) -> list[set[int]]:
    """The ancestors of each variable."""
    found: list[set[int] | None] = [None] * len(at)

    def above(i: int) -> set[int]:
        own = found[i]
        if own is None:
            own = set(at[i])
            for p in at[i]:
                own |= above(p)
            found[i] = own
        return own

    return [above(i) for i in range(len(at))]
