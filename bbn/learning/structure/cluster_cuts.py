"""Branch and cut: choose one parent set per variable so that no cluster of variables lacks a first one.

    maximise Σ s(i, Π) x(i, Π)   with Σ_Π x(i, Π) = 1 for every variable i
    and, for every cluster C,    Σ_{i ∈ C} Σ_{Π ∩ C = ∅} x(i, Π) ≥ 1                       (Jaakkola et al. 2010)

A choice of sets is acyclic if and only if every cluster has a variable whose parents lie outside it. The linear
relaxation starts without clusters; those that its solution violates are added, found greedily or by a small integer
program, until there are none. Then the arc that is most in doubt is forbidden in one branch and required in the other.

For any λ ≥ 0 no structure scores more than Σ_i max_Π (s(i, Π) + Σ_{C ∋ i, Π ∩ C = ∅} λ_C) − Σ_C λ_C. Bounds are
computed from the solver's multipliers this way, so they hold whatever its tolerances; a set that falls short of its
variable's maximum by more than the gap is of no further use. HiGHS solves the linear programs, through scipy.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.kernels import watch
from bbn.learning.structure.constraints import cycle_of, members
from bbn.learning.structure.local_scores import LocalScores

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
CLOSE = 1e-7
"""Nats by which a bound may exceed the best score and still prove it: what linear programs leave to rounding."""
VIOLATION = 1e-4
"""How far a cluster must be violated to be added."""
ROUNDS = 200
"""Solutions of the linear program at the root; later nodes take a tenth."""


class Timer:
    """How long a search may go on."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until time is up."""
        return self.deadline - time.monotonic()

    def within(self, seconds: float) -> Timer:
        """A timer that ends after some seconds, or with this one."""
        return Timer(min(seconds, self.left()))

    def check(self) -> None:
        """Raise TimeoutError when time is up, and let Ctrl-C through."""
        watch.check()
        if self.left() < 0:
            raise TimeoutError


class Part(NamedTuple):
    """Variables that may form cycles, and their sets of parents among each other, best first.

    Of the sets that agree within the part only the best is kept; `wholes` are those sets with parents elsewhere.
    """

    members: list[int]
    masks: list[list[int]]
    """For each member its sets; bit k stands for the k-th member."""
    values: list[Array]
    wholes: list[list[int]]

    @classmethod
    def of(cls, scores: LocalScores, part: list[int]) -> Part:
        """The part of some variables."""
        place = {i: 1 << k for k, i in enumerate(part)}
        inside = sum(1 << i for i in part)
        masks: list[list[int]] = []
        values, wholes = [], []
        for i in part:
            best: dict[int, tuple[float, int]] = {}
            for mask, value in scores.sets[i]:
                best.setdefault(sum(place[p] for p in members(mask & inside)), (value, mask))
            masks.append(list(best))
            values.append(np.array([value for value, _ in best.values()]))
            wholes.append([mask for _, mask in best.values()])
        return cls(part, masks, values, wholes)

    def full_sets(self, chosen: Sequence[int]) -> list[int]:
        """The chosen sets with their parents outside the part, as masks of all variables."""
        return [own[k] for own, k in zip(self.wholes, chosen, strict=True)]


def branch_and_cut(
    part: Part, start: Sequence[int] | None, timer: Timer, advance: Callable[..., object]
) -> tuple[list[int], float, float, bool]:
    """The chosen set of each member, its score, a bound that no choice exceeds, and whether Ctrl-C ended the search.

    `start` are parents of all variables, as masks, that the search should beat.
    """
    search = _Search(part, start)
    try:
        search.run(timer, advance)
    except TimeoutError:
        return search.best, search.score, search.bound, False
    except KeyboardInterrupt:
        return search.best, search.score, search.bound, True
    return search.best, search.score, search.score, False


class _Node(NamedTuple):
    """A branch: arcs (parent, child) that are required or forbidden in it."""

    required: frozenset[tuple[int, int]]
    forbidden: frozenset[tuple[int, int]]


class _Search:
    """The state of a branch and cut: columns (a child and a set each), clusters, the best choice, open nodes."""

    def __init__(self, part: Part, start: Sequence[int] | None) -> None:
        n = len(part.members)
        self.part, self.n = part, n
        self.child: Ints = np.repeat(np.arange(n), [len(own) for own in part.masks])
        self.rank: Ints = np.concatenate([np.arange(len(own)) for own in part.masks])
        self.value: Array = np.concatenate(part.values)
        self.contains: Bools = np.array(
            [[mask >> k & 1 for k in range(n)] for own in part.masks for mask in own], dtype=bool
        )
        self.clusters: list[Bools] = []
        self.rows: list[Ints] = []
        self.score = -math.inf
        self.best: list[int] = []
        self.values = [own.tolist() for own in part.values]
        self.offer(self.climb(list(range(n))))
        if start is not None:
            chosen = self._positions(start)
            self.offer(chosen)
            if chosen is not None:
                self.offer(self.climb(self.order_of(chosen)))
        self.bound = math.inf
        self.open: list[tuple[float, int, _Node]] = []

    def run(self, timer: Timer, advance: Callable[..., object]) -> None:
        """Until the bound meets the best score."""
        counter = itertools.count()
        self.open = [(-math.inf, next(counter), _Node(frozenset(), frozenset()))]
        self.bound = float(sum(own[0] for own in self.part.values))
        rounds = ROUNDS
        while self.open:
            negative, _, node = heapq.heappop(self.open)
            if -negative <= self.score + CLOSE:
                break
            bound, doubtful = self.solve(node, rounds, timer, advance)
            rounds = ROUNDS // 10
            if doubtful is not None and bound > self.score + CLOSE:
                for more in (
                    node._replace(required=node.required | {doubtful}),
                    node._replace(forbidden=node.forbidden | {doubtful}),
                ):
                    heapq.heappush(self.open, (-bound, next(counter), more))
            self.bound = max((-self.open[0][0] if self.open else self.score), self.score)
        self.bound = self.score

    def solve(
        self, node: _Node, rounds: int, timer: Timer, advance: Callable[..., object]
    ) -> tuple[float, tuple[int, int] | None]:
        """A bound on the choices of a node, and an arc in doubt; None where there is nothing left to decide."""
        bound = math.inf
        for _ in range(rounds):
            timer.check()
            columns = self.columns_of(node)
            if columns is None:
                return -math.inf, None
            solution = self.relaxation(columns)
            if solution is None:
                return -math.inf, None
            x, multipliers = solution
            bound, slack = self.dual_bound(columns, multipliers)
            self.offer(self.round(columns, x))
            if bound <= self.score + CLOSE:
                return bound, None
            found = self.violated(columns, x)
            doubtful = self.doubtful(columns, x)
            if not node.required and not node.forbidden:
                self.bound = min(self.bound, bound)
                self.drop(columns[slack > bound - self.score + CLOSE])
            advance(1, score=self.score, bound=self.bound)
            if not found:
                break
            self.add(found)
        return bound, doubtful

    def columns_of(self, node: _Node) -> Ints | None:
        """The columns that a node allows; None if a variable has none left."""
        allowed = np.ones(len(self.value), dtype=bool)
        for parent, child in node.required:
            allowed &= (self.child != child) | self.contains[:, parent]
        for parent, child in node.forbidden:
            allowed &= (self.child != child) | ~self.contains[:, parent]
        columns = np.flatnonzero(allowed)
        return columns if len(np.unique(self.child[columns])) == self.n else None

    def relaxation(self, columns: Ints) -> tuple[Array, Array] | None:
        """The solution of the linear program, and the multipliers of the clusters; None if there is no solution."""
        import scipy.optimize
        from scipy.sparse import csr_array

        place = np.full(len(self.value), -1)
        place[columns] = np.arange(len(columns))
        shape = (self.n, len(columns))
        ones = np.ones(len(columns))
        one_each = csr_array((ones, (self.child[columns], np.arange(len(columns)))), shape=shape)
        limits: dict[str, Any] = {}
        if self.rows:
            kept = [place[row] for row in self.rows]
            kept = [row[row >= 0] for row in kept]
            at = np.repeat(np.arange(len(kept)), [len(row) for row in kept])
            cells = np.concatenate(kept)
            limits["A_ub"] = csr_array((-np.ones(len(cells)), (at, cells)), shape=(len(kept), len(columns)))
            limits["b_ub"] = -np.ones(len(kept))
        # scores are large and nearly alike: what counts is by how much each falls short of its variable's best
        top = np.array([own[0] for own in self.part.values])
        cost = top[self.child[columns]] - self.value[columns]
        solve: Any = scipy.optimize.linprog  # the stubs know no sparse matrices
        answer = solve(cost, A_eq=one_each, b_eq=np.ones(self.n), bounds=(0, None), method="highs", **limits)
        if answer.status == 2:
            return None
        if answer.x is None:
            raise ArithmeticError(f"the linear program was not solved: {answer.message}")
        multipliers = -answer.ineqlin.marginals if self.rows else np.zeros(0)
        return answer.x, np.maximum(multipliers, 0.0)

    def dual_bound(self, columns: Ints, multipliers: Array) -> tuple[float, Array]:
        """What no choice among the columns exceeds, and by how much each falls short of its variable's maximum."""
        raised = self.value.copy()
        for row, multiplier in zip(self.rows, multipliers.tolist(), strict=True):
            if multiplier > 0.0:
                raised[row] += multiplier
        raised = raised[columns]
        top = np.full(self.n, -np.inf)
        np.maximum.at(top, self.child[columns], raised)
        return math.fsum(top.tolist()) - math.fsum(multipliers.tolist()), top[self.child[columns]] - raised

    def drop(self, useless: Ints) -> None:
        """Take columns out for good."""
        if not len(useless):
            return
        keep = np.ones(len(self.value), dtype=bool)
        keep[useless] = False
        self.child, self.rank = self.child[keep], self.rank[keep]
        self.value, self.contains = self.value[keep], self.contains[keep]
        self.rows = [self.row(cluster) for cluster in self.clusters]

    def add(self, clusters: Sequence[Bools]) -> None:
        """Add the rows of clusters."""
        self.clusters.extend(clusters)
        self.rows.extend(self.row(cluster) for cluster in clusters)

    def row(self, cluster: Bools) -> Ints:
        """The columns whose child is in a cluster and whose set is outside it."""
        return np.flatnonzero(cluster[self.child] & ~self.contains[:, cluster].any(axis=1))

    def violated(self, columns: Ints, x: Array) -> list[Bools]:
        """Clusters that a solution violates: grown greedily from each variable, or else the worst there is."""
        used = x > 1e-9
        columns, x = columns[used], x[used]
        child, contains = self.child[columns], self.contains[columns]
        found: dict[bytes, Bools] = {}
        for seed in range(self.n):
            cluster = self._grown(seed, child, contains, x)
            if cluster is not None:
                found.setdefault(cluster.tobytes(), cluster)
        if found:
            return list(found.values())
        worst = self._worst(child, contains, x)
        return [] if worst is None else [worst]

    def _grown(self, seed: int, child: Ints, contains: Bools, x: Array) -> Bools | None:
        """The most violated cluster on the way from one variable to all, the best next variable added each time."""
        cluster = np.zeros(self.n, dtype=bool)
        cluster[seed] = True
        outside = ~contains[:, seed]
        best, least = None, 1.0 - VIOLATION
        for _ in range(self.n - 1):
            own = x * (outside & cluster[child])
            gain = own @ contains
            loss = np.bincount(child, x * outside, self.n)
            change = np.where(cluster, np.inf, loss - gain)
            j = int(change.argmin())
            total = own.sum() + change[j]
            cluster[j] = True
            outside = outside & ~contains[:, j]
            if total < least:
                best, least = cluster.copy(), total
            elif best is not None:
                break
        return best

    def _worst(self, child: Ints, contains: Bools, x: Array) -> Bools | None:
        """The most violated cluster, by an integer program (Bartlett & Cussens 2017, section 4.1)."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array, eye_array
        from scipy.sparse import hstack as side_by_side

        hstack: Any = side_by_side

        # y(i): i is in the cluster; z(c): column c has its child in it and a parent too
        k = len(x)
        in_child = csr_array((np.ones(k), (np.arange(k), child)), shape=(k, self.n))
        limits = [
            LinearConstraint(hstack([-in_child, eye_array(k)]).tocsr(), -np.inf, 0.0),
            LinearConstraint(
                hstack([csr_array(-contains.astype(float)), eye_array(k)]).tocsr(), -np.inf, 0.0
            ),
        ]
        answer = milp(
            np.concatenate([np.ones(self.n), -x]),
            integrality=np.concatenate([np.ones(self.n), np.zeros(k)]),
            bounds=Bounds(0, 1),
            constraints=[
                *limits,
                LinearConstraint(np.concatenate([np.ones(self.n), np.zeros(k)]), 2, np.inf),
            ],
        )
        if answer.x is None or answer.fun >= 1.0 - VIOLATION:
            return None
        return np.asarray(answer.x[: self.n] > 0.5)

    def round(self, columns: Ints, x: Array) -> list[int] | None:
        """A choice near a solution: the variable placed next is the one whose sets are most nearly available."""
        placed = np.zeros(self.n, dtype=bool)
        child, contains = self.child[columns], self.contains[columns]
        order = []
        for _ in range(self.n):
            ready = np.bincount(child, x * ~contains[:, ~placed].any(axis=1), self.n)
            ready[placed] = -1.0
            i = int(ready.argmax())
            placed[i] = True
            order.append(i)
        return self.follow_order(order)

    def climb(self, order: list[int]) -> list[int] | None:
        """A choice that moving one variable elsewhere in its order does not improve (Teyssier & Koller 2005)."""
        chosen = self.follow_order(order)
        total = self.score_of(chosen)
        rising = True
        while rising:
            rising = False
            for i in range(self.n):
                rest = [j for j in order if j != i]
                for at in range(self.n):
                    moved = [*rest[:at], i, *rest[at:]]
                    other = self.follow_order(moved)
                    score = self.score_of(other)
                    if score > total + CLOSE:
                        order, chosen, total, rising = moved, other, score, True
        return chosen

    def follow_order(self, order: Sequence[int]) -> list[int] | None:
        """The best set of each variable among those before it in an order, by position."""
        chosen = [-1] * self.n
        before = 0
        masks = self.part.masks
        for i in order:
            for k, mask in enumerate(masks[i]):
                if not mask & ~before:
                    chosen[i] = k
                    break
            before |= 1 << i
        return None if -1 in chosen else chosen

    def score_of(self, chosen: list[int] | None) -> float:
        """The score of a choice, −∞ of none."""
        if chosen is None:
            return -math.inf
        return float(sum(own[k] for own, k in zip(self.values, chosen, strict=True)))

    def offer(self, chosen: list[int] | None) -> None:
        """Keep a choice if it beats the best."""
        if chosen is None:
            return
        score = math.fsum(float(own[k]) for own, k in zip(self.part.values, chosen, strict=True))
        if score > self.score:
            self.score, self.best = score, chosen

    def _positions(self, parents: Sequence[int]) -> list[int] | None:
        """The sets within the part nearest to given parents: the best ones that are subsets of them."""
        chosen = []
        for i, masks in zip(self.part.members, self.part.masks, strict=True):
            given = sum(1 << k for k, j in enumerate(self.part.members) if parents[i] >> j & 1)
            chosen.append(next((k for k, mask in enumerate(masks) if not mask & ~given), -1))
        if -1 in chosen:
            return None
        sets = [own[k] for own, k in zip(self.part.masks, chosen, strict=True)]
        return None if cycle_of(sets) else chosen

    def order_of(self, chosen: Sequence[int]) -> list[int]:
        """An order that agrees with a choice."""
        sets = [own[k] for own, k in zip(self.part.masks, chosen, strict=True)]
        return list(TopologicalSorter({i: members(mask) for i, mask in enumerate(sets)}).static_order())

    def doubtful(self, columns: Ints, x: Array) -> tuple[int, int] | None:
        """The arc (parent, child) whose total weight in a solution is nearest to one half."""
        arcs = np.zeros((self.n, self.n))
        for i in range(self.n):
            own = self.child[columns] == i
            arcs[:, i] = x[own] @ self.contains[columns[own]]
        doubt = np.abs(arcs - 0.5)
        parent, child = (int(k) for k in np.unravel_index(int(doubt.argmin()), doubt.shape))
        return (parent, child) if doubt[parent, child] < 0.5 - 1e-6 else None
