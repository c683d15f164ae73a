"""Good choices of parent sets, for branch and cut to beat: the best sets that an order of the variables allows.

An order of the variables allows each the sets among those before it, and its best choice takes the best of them. Moving
one variable at a time, a place at a time, changes two terms of the score per place (Teyssier & Koller 2005).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.learning.structure.constraints import cycle_of, members
from bbn.learning.structure.exact.parts import SearchPart, Timer

RISE = 1e-9
"""Nats by which a move must raise the score."""


NO_SET = -1e15
"""Stands for the score of a variable that an order leaves no set: worse than any, yet finite."""


class BestChoice:
    """The best acyclic choice that was found for a part: the position of each member's set, and the score."""

    def __init__(self, part: SearchPart) -> None:
        self.part, self.n = part, len(part.members)
        self.values = [own.tolist() for own in part.values]
        self.chosen: list[int] = []
        self.score = -math.inf

    def offer(self, chosen: list[int] | None) -> None:
        """Keep a choice if it beats the best."""
        if chosen is None:
            return
        score = math.fsum(own[k] for own, k in zip(self.values, chosen, strict=True))
        if score > self.score:
            self.score, self.chosen = score, chosen

    def first_order(self) -> list[int]:
        """An order that puts the parents that a variable must have before it, where that is possible."""
        needed = [functools.reduce(operator.and_, own) for own in self.part.masks]
        if cycle_of(needed):
            return list(range(self.n))
        return list(TopologicalSorter({i: members(mask) for i, mask in enumerate(needed)}).static_order())

    def offer_parents(self, parents: Sequence[int], timer: Timer) -> None:
        """Offer the sets nearest to given parents (of all variables, as masks), and what climbing from them finds."""
        chosen = []
        for i, masks in zip(self.part.members, self.part.masks, strict=True):
            given = sum(1 << k for k, j in enumerate(self.part.members) if parents[i] >> j & 1)
            chosen.append(next((k for k, mask in enumerate(masks) if not mask & ~given), -1))
        sets = [own[k] for own, k in zip(self.part.masks, chosen, strict=True)]
        if -1 in chosen or cycle_of(sets):
            return
        self.offer(chosen)
        order = TopologicalSorter({i: members(mask) for i, mask in enumerate(sets)}).static_order()
        self.offer(self.climb(list(order), timer))

    def offer_rounded(self, child: NDArray[np.int64], contains: NDArray[np.bool_], x: Array) -> None:
        """Offer a choice near fractions x of sets: next in the order is the variable whose sets are freest."""
        placed = np.zeros(self.n, dtype=bool)
        order = []
        for _ in range(self.n):
            free = np.bincount(child, x * ~contains[:, ~placed].any(axis=1), self.n)
            free[placed] = -1.0
            order.append(int(free.argmax()))
            placed[order[-1]] = True
        self.offer(self.follow(order))

    def follow(self, order: Sequence[int]) -> list[int] | None:
        """The best set of each variable among those before it, by position; None if one has no such set."""
        chosen = [-1] * self.n
        before = 0
        for i in order:
            chosen[i] = self._best(i, before)
            before |= 1 << i
        return None if -1 in chosen else chosen

    def climb(self, order: list[int], timer: Timer) -> list[int] | None:
        """The choice of an order that no move of one variable improves, or of the best order when time is up."""
        total, rising = self._total(order), True
        while rising and timer.left() > 0:
            rising = False
            for i in range(self.n):
                if timer.left() <= 0:
                    break
                at = order.index(i)
                gain, place = max(self._moves(order, at, -1), self._moves(order, at, 1))
                if gain > RISE:
                    moved = [j for j in order if j != i]
                    moved.insert(place, i)
                    other = self._total(moved)
                    if other > total + RISE:  # rounding may promise a gain that is none
                        order, total, rising = moved, other, True
        return self.follow(order)

    def _moves(self, order: list[int], at: int, step: int) -> tuple[float, int]:
        """The best gain of moving the variable at a place some places down or up, and where to."""
        i = order[at]
        before = sum(1 << j for j in order[:at])
        best, gain = (0.0, at), 0.0
        own = self._value(i, before)
        place = at + step
        while 0 <= place < self.n:
            j = order[place]
            if step < 0:  # j comes to stand behind i
                before ^= 1 << j
                gain += self._value(j, before | 1 << i) - self._value(j, before)
            else:
                gain += self._value(j, before) - self._value(j, before | 1 << i)
                before |= 1 << j
            now = self._value(i, before)
            if gain + now - own > best[0]:
                best = gain + now - own, place
            place += step
        return best

    def _best(self, i: int, before: int) -> int:
        for k, mask in enumerate(self.part.masks[i]):
            if not mask & ~before:
                return k
        return -1

    def _value(self, i: int, before: int) -> float:
        k = self._best(i, before)
        return NO_SET if k < 0 else self.values[i][k]

    def _total(self, order: Sequence[int]) -> float:
        before = 0
        terms = []
        for i in order:
            terms.append(self._value(i, before))
            before |= 1 << i
        return math.fsum(terms)
