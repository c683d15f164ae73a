"""A search over single arcs in progress: the structure at hand, what each change gains, and the best so far.

Every change touches one family, or two for a reversal, so only the gains into the children of these are found anew
(Heckerman, Geiger & Chickering 1995, section 7.1). They are kept by child and parents, and the terms behind them in the
cache: coming back to a family costs nothing.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.kernels.watch import check
from bbn.learning.structure.constraints import Constraints, cycle_of, members, tie_of
from bbn.learning.structure.neighbours import Around
from bbn.learning.structure.score_cache import ScoreCache

Flags = NDArray[np.uint8]
ADD, DELETE, REVERSE = range(3)


class Best(NamedTuple):
    """The best structure so far, as parents' masks."""

    score: float
    parents: list[int]


class ArcSearch:
    """The structure at hand, the gain of every change, and which changes are allowed.

    Matrices are indexed [child, parent].
    """

    def __init__(
        self,
        cache: ScoreCache,
        constraints: Constraints,
        parents: Sequence[int],
        max_iter: int | None,
        advance: Callable[..., object],
    ) -> None:
        n = len(constraints.names)
        self.cache, self.constraints, self.max_iter, self.advance = cache, constraints, max_iter, advance
        self.tie = tie_of(cache.source.total)
        self.n_iter, self.interrupted = 0, False
        self.n_too_large = 0
        """Families that were not looked at as they have too many cells."""
        self.in_memory = isinstance(cache.source, CodedTable)
        self.allowed, self.required = matrix(constraints.allowed), matrix(constraints.required)
        self.candidates = [list(members(mask)) for mask in constraints.allowed]
        self.free = np.zeros((n, n), dtype=np.uint8)
        self.add_gain, self.delete_gain = np.full((2, n, n), -np.inf)
        self.known: list[dict[int, tuple[Around, Array]]] = [{} for _ in range(n)]
        self.terms = [0.0] * n
        self.parents = list(parents)
        self.arcs = matrix(self.parents)
        self.above = kernels.climb.paths(self.arcs)
        self.refresh(range(n))
        self.best = Best(self.total, list(self.parents))

    @property
    def ended(self) -> bool:
        """Whether the most changes have been made."""
        return self.max_iter is not None and self.n_iter >= self.max_iter

    def move_to(self, parents: Sequence[int]) -> None:
        """Take another structure as the current one."""
        changed = [c for c, mask in enumerate(parents) if mask != self.parents[c]]
        self.parents = list(parents)
        self.arcs = matrix(self.parents)
        self.above = kernels.climb.paths(self.arcs)
        self.refresh(changed)
        self.note_best()

    def climb(self) -> None:
        """Make the best change while there is one that gains.

        In almost singular regressions a gain may be rounding alone. Such a change is undone and its pair left alone:
        it could come again and again.
        """
        blocked = self.free.copy()
        while not self.ended:
            check()
            change = self.best_change(self.tie, blocked, np.inf)
            if change is None:
                return
            _, p, c = change
            before, own, other = self.total, self.parents[c], self.parents[p]
            self.make(*change)
            if self.total > before:
                self.note_best()
            else:
                parents = list(self.parents)
                parents[c], parents[p] = own, other
                self.move_to(parents)
                blocked[p, c] = blocked[c, p] = 1

    def wander(self, top: Best, tabu: int, plateau: int) -> None:
        """From a top, make the best change that is not tabu, a loss or not, until that no longer beats the walk's best.

        A pair whose arc has changed is left alone for `tabu` changes, unless changing it again beats that.
        """
        self.move_to(top.parents)
        highest = self.total
        free_at = np.zeros(self.arcs.shape, dtype=np.int64)
        idle = 0
        while idle < plateau and not self.ended:
            check()
            blocked = (free_at > self.n_iter).astype(np.uint8)
            change = self.best_change(-np.inf, blocked, highest - self.total + self.tie)
            if change is None:
                return
            _, p, c = change
            self.make(*change)
            free_at[p, c] = free_at[c, p] = self.n_iter + tabu
            self.note_best()
            idle += 1
            if self.total > highest + self.tie:
                highest, idle = self.total, 0

    def note_best(self) -> bool:
        """Keep the current structure if it beats the best so far."""
        if self.total > self.best.score + self.tie:
            self.best = Best(self.total, list(self.parents))
            return True
        return False

    def best_change(self, least: float, blocked: Flags, bar: float) -> tuple[int, int, int] | None:
        """The kind, parent and child of the best change that gains more than `least`; see `kernels.climb`."""
        kind, p, c, _ = kernels.climb.best_change(
            self.arcs,
            self.above,
            self.add_gain,
            self.delete_gain,
            self.allowed,
            self.required,
            blocked,
            self.constraints.max_parents,
            self.tie,
            least,
            bar,
        )
        return None if kind < 0 else (kind, p, c)

    def make(self, kind: int, p: int, c: int) -> None:
        """Change an arc and find the gains anew that this has changed."""
        self.n_iter += 1
        kernels.climb.make_change(self.arcs, self.above, kind, p, c)
        self.parents[c] ^= 1 << p
        if kind == REVERSE:
            self.parents[p] |= 1 << c
        self.refresh([c, p] if kind == REVERSE else [c])
        self.advance(1, score=max(self.total, self.best.score))

    def refresh(self, children: Iterable[int]) -> None:
        """Set the gains of arcs into these children; those not known yet come from one batch of families."""
        listed = list(children)
        new = [(c, self.parents[c]) for c in listed if self.parents[c] not in self.known[c]]
        if new and not self.in_memory:
            new += self._ahead({c for c, _ in new})
        if new:
            wanted = [self._around(c, own) for c, own in new]
            for around, values in zip(wanted, self.cache.near(wanted), strict=True):
                self.known[around.child][around.own] = around, values
        for c in listed:
            around, values = self.known[c][self.parents[c]]
            self.terms[c] = kernels.climb.set_gains(
                self.add_gain, self.delete_gain, c, around.add, around.delete, values
            )
        # added up anew, as a running sum would carry the rounding of all changes so far
        self.total = sum(self.terms)

    def _around(self, child: int, own: int) -> Around:
        """The families that a change into a child can lead to."""
        constraints = self.constraints
        full = own.bit_count() >= constraints.max_parents
        add = [] if full else [p for p in self.candidates[child] if not own >> p & 1]
        small = constraints.fitting(child, own, add)
        self.n_too_large += len(add) - len(small)
        add = small
        return Around(child, own, add, list(members(own & ~constraints.required[child])))

    def _ahead(self, changed: set[int]) -> list[tuple[int, int]]:
        """Families that other children will likely have soon: a pass over a stream may as well serve them too."""
        possible = np.where((self.arcs == 0) & (self.above.T == 0), self.add_gain, -np.inf)
        best = possible.argmax(axis=1)
        likely = [
            (c, self.parents[c] | 1 << int(p))
            for c, p in enumerate(best)
            if c not in changed and possible[c, p] > self.tie
        ]
        return [(c, own) for c, own in likely if own not in self.known[c]]

    def solve(self, n: int, most_cells: float) -> None:
        """Take the best structure of the first n variables, where the others have no arcs, by dynamic programming.

        Not if the tables have more cells than that.
        """
        if (
            not n
            or any(mask >> n for mask in self.constraints.allowed[:n])
            or any(self.constraints.allowed[n:])
        ):
            return
        families = [
            (c, mask)
            for c in range(n)
            for mask in range(1 << n)
            if not mask & ~self.constraints.allowed[c]
            and not self.constraints.required[c] & ~mask
            and mask.bit_count() <= self.constraints.max_parents
            and self.constraints.fits(c, mask)
        ]
        cards = {v.name: v.card for v in self.cache.source.variables}
        sizes = [cards.get(name, 1) for name in self.constraints.names[:n]]
        if sum(math.prod(sizes[i] for i in (c, *members(mask))) for c, mask in families) > most_cells:
            return
        terms = np.maximum(self.cache.many(families), -sys.float_info.max / (n + 1))
        children, masks = np.array(families, dtype=np.int64).T
        order = np.lexsort((-terms, children))
        ptr = np.searchsorted(children, np.arange(n + 1))
        _, chosen = kernels.subsets.best_network(ptr, masks[order], terms[order])
        self.move_to([*masks[order][ptr[:-1] + chosen].tolist(), *self.parents[n:]])

    def without(self, x: int, rng: np.random.Generator) -> list[int]:
        """The best structure with x cut off, but for required arcs, and about half of the covered arcs turned around.

        An arc p → c is covered if c has the parents of p and p, no others; reversing it leads to an equivalent
        structure.
        """
        required, allowed = self.constraints.required, self.constraints.allowed
        parents = [mask & ~(1 << x) | must for mask, must in zip(self.best.parents, required, strict=True)]
        parents[x] = required[x]
        arcs = [(p, c) for c, mask in enumerate(parents) for p in members(mask & ~required[c])]
        turns = rng.random(len(arcs)) < 0.5
        for i in rng.permutation(len(arcs)).tolist():
            p, c = arcs[i]
            covered = parents[c] == parents[p] | 1 << p and allowed[p] >> c & 1
            if turns[i] and covered and parents[p].bit_count() < self.constraints.max_parents:
                parents[c] ^= 1 << p
                parents[p] |= 1 << c
        return parents

    def perturbed(self, n: int, rng: np.random.Generator) -> list[int]:
        """The best structure with some arcs between the first n variables changed at random."""
        parents = list(self.best.parents)
        arcs = sum(mask.bit_count() for mask in parents)
        for _ in range(max(2, arcs // 4, n // 4) if n > 1 else 0):
            p, c = (int(i) for i in rng.choice(n, size=2, replace=False))
            changed = list(parents)
            changed[c] ^= 1 << p
            if parents[c] >> p & 1 and rng.random() < 0.5:
                changed[p] |= 1 << c
            if self.constraints.allow(changed) and not cycle_of(changed):
                parents = changed
        return parents


def matrix(masks: Sequence[int]) -> Flags:
    """matrix[child, parent] of parents' masks."""
    n = len(masks)
    size = (n + 7) // 8
    packed = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in masks), dtype=np.uint8)
    return np.unpackbits(packed.reshape(n, size), axis=1, count=n, bitorder="little")
