"""A search over classes of equivalent structures in progress: the class at hand, its operators, and the best so far.

Each operator changes one edge and the directions of some next to it, and its gain is that of one or two families
(Chickering 2002, theorems 15 and 17; Hauser & Bühlmann 2012, propositions 31 and 34, for the turning). Families come
from the cache that all searches share. A step costs a look at the pairs next to the edge that changed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

import numpy as np

from bbn.kernels.watch import check
from bbn.learning.structure.classes import class_of, extension
from bbn.learning.structure.constraints import Constraints, members, ranked, tie_of
from bbn.learning.structure.neighbours import Around
from bbn.learning.structure.score_cache import ScoreCache


class Operator(NamedTuple):
    """A change of the edge between x and y; `chosen` are the T, H or C of the theorems."""

    gain: float
    kind: int
    x: int
    y: int
    chosen: int


INSERT, DELETE, TURN = range(3)
Families = list[tuple[int, int]]


class ClassSearch:
    """The class at hand, one member of it, and the operators that gain, by the variable y that they point at."""

    def __init__(self, cache: ScoreCache, constraints: Constraints) -> None:
        n = len(constraints.names)
        self.cache, self.constraints = cache, constraints
        self.tie = tie_of(cache.source.total)
        self.candidates = [list(members(mask)) for mask in constraints.allowed]
        self.members = [0] * n
        """The parents' masks of a structure in the class."""
        self.state = class_of(self.members, constraints.numeric)
        self.operators: list[list[list[Operator]]] = [[[] for _ in range(n)] for _ in range(3)]
        """Those that gain, by kind and y."""
        self.gains: list[dict[int, dict[int, float]]] = [{} for _ in range(n)]
        """By child and the mask of its parents: what each further parent gains, if it gains."""
        self.tried: set[tuple[int, int]] = set()
        """The pairs that were parted in the best class and led no higher."""
        self.n_iter = 0
        self.best, self.best_score = list(self.members), cache.total(self.members)
        self.refresh(range(n))

    def climb(self, advance: Callable[..., object], apart: Set[int] = frozenset()) -> None:
        """Apply operators while one gains: deletions before turns before insertions.

        A pair that is to stay apart is not joined, and what comes out is not taken as the best.
        """
        while any(self.step(kind, apart) for kind in (DELETE, TURN, INSERT)):
            check()
            self.n_iter += 1
            advance(1, score=self.best_score)
        if apart:
            return
        total = self.cache.total(self.members)
        if total > self.best_score + self.tie:
            self.best, self.best_score = list(self.members), total
            self.tried.clear()

    def escape(self, advance: Callable[..., object]) -> bool:
        """Part each edge of the best class in turn and climb, first without it; whether one of them led higher.

        What an edge leads to depends on the best class alone, so none is parted twice in the same.
        """
        before = self.best_score
        for x, y in self._edges():
            if not self.best[y] >> x & 1 or (x, y) in self.tried:
                continue  # a better structure was found on the way, or it is known to lead nowhere
            self.tried.add((x, y))
            parted = list(self.best)
            parted[y] &= ~(1 << x)
            self.move_to(parted)
            self.climb(advance, {x, y})
            self.climb(advance)
        return self.best_score > before + self.tie

    def _edges(self) -> list[tuple[int, int]]:
        """The edges of the best structure, those first whose loss costs least: they most often lead higher."""
        edges = [(x, y) for y, mask in enumerate(self.best) for x in members(mask)]
        without = self.cache.many([(y, self.best[y] & ~(1 << x)) for x, y in edges])
        own = self.cache.many([(y, self.best[y]) for _, y in edges])
        return [edges[k] for k in ranked(np.array(without) - np.array(own), self.tie).tolist()]

    def step(self, kind: int, apart: Set[int] = frozenset()) -> bool:
        """Apply the best valid operator of a kind, but join no pair that is to stay apart; False if none gains."""
        listed = [op for own in self.operators[kind] for op in own]
        if kind == INSERT and listed:
            # no neighbour of y is below y, so these ways from y to x are there whatever is chosen
            below = self.state.below()
            listed = [op for op in listed if not below[op.y] >> op.x & 1 and {op.x, op.y} != apart]
        listed.sort(key=lambda op: -op.gain)
        for operator in self._in_order(listed):
            found = self.applied(operator)
            if found is not None:
                self.move_to(found)
                return True
        return False

    def _in_order(self, falling: list[Operator]) -> Iterator[Operator]:
        """Operators by falling gain; of those that tie, the first by y, x and the chosen set."""
        start = 0
        while start < len(falling):
            stop = start + 1
            while stop < len(falling) and falling[stop].gain >= falling[start].gain - self.tie:
                stop += 1
            yield from sorted(falling[start:stop], key=lambda op: (op.y, op.x, op.chosen))
            start = stop

    def move_to(self, parents: list[int]) -> None:
        """Take a structure and its class; operators are found anew where a neighbourhood has changed.

        Those that point at y depend on y's own edges, on what its neighbours are joined to, and turns on the parents of
        those at the other end as well.
        """
        old, self.members = self.state, parents
        self.state = new = class_of(parents, self.constraints.numeric)
        changed = headed = 0
        for i in range(len(parents)):
            if old.directed[i] != new.directed[i]:
                headed |= 1 << i
            elif old.undirected[i] == new.undirected[i] and old.children[i] == new.children[i]:
                continue
            changed |= 1 << i
        touched, turned = [], []
        for y, open_ in enumerate(new.undirected):
            if changed & (open_ | 1 << y):
                touched.append(y)
            elif headed & new.children[y]:
                turned.append(y)
        self.refresh(touched, turned)

    def refresh(self, listed: Iterable[int], turned: Iterable[int] = ()) -> None:
        """Find the operators that point at the variables listed, and the turns that point at others, and gain.

        New families come from two batches.
        """
        ys = list(listed)
        inserts = [(y, whole) for y in ys for whole in self._bases(y)]
        self._look_up({(y, self.state.directed[y] | whole) for y, whole in inserts})
        near = self.state.adjacent
        others = [op for y in ys for x in members(near[y]) for op in self._deletes(x, y)]
        others += [op for y in (*ys, *turned) for x in members(near[y]) for op in self._turns(x, y)]
        families = [family for *_, new, gone in others for family in (*new, *gone)]
        terms = dict(zip(families, self.cache.many(families), strict=True))
        inserted, deleted, turns = self.operators
        for y in ys:
            inserted[y], deleted[y] = [], []
        for y in (*ys, *turned):
            turns[y] = []
        for y, whole in inserts:
            inserted[y] += self._inserts(y, whole)
        for kind, x, y, chosen, new, gone in others:
            gain = sum(terms[family] for family in new) - sum(terms[family] for family in gone)
            if gain > self.tie:
                self.operators[kind][y].append(Operator(gain, kind, x, y, chosen))

    def _look_up(self, wanted: Iterable[tuple[int, int]]) -> None:
        """What every further parent of these families gains, kept by child and parents."""
        new = [(y, base) for y, base in sorted(wanted) if base not in self.gains[y]]
        if not new:
            return
        around = [
            Around(y, base, [x for x in self.candidates[y] if not base >> x & 1], []) for y, base in new
        ]
        for (y, base, add, _), values in zip(around, self.cache.near(around), strict=True):
            own = max(float(values[-1]), -sys.float_info.max)
            rising = np.flatnonzero(values[:-1] - own > self.tie)
            self.gains[y][base] = {add[k]: float(values[k]) - own for k in rising.tolist()}

    def _bases(self, y: int) -> Iterator[int]:
        """The cliques of neighbours of y that an Insert(X, Y, T) may make parents of y, for some X."""
        for whole in self._cliques(self.state.undirected[y], 0):
            if (self.state.directed[y] | whole).bit_count() < self.constraints.max_parents:
                yield whole

    def _inserts(self, y: int, whole: int) -> Iterator[Operator]:
        """Insert(X, Y, T): join x → y, and turn T – y into T → y.

        `whole` is a clique, NA together with T: NA are the neighbours of y that are joined to x, T others.
        """
        state = self.state
        for x, gain in self.gains[y][state.directed[y] | whole].items():
            if state.adjacent[y] >> x & 1:
                continue
            shared = state.undirected[y] & state.adjacent[x]
            if not shared & ~whole:
                yield Operator(gain, INSERT, x, y, whole & ~shared)

    def _deletes(self, x: int, y: int) -> Iterator[tuple[int, int, int, int, Families, Families]]:
        """Delete(X, Y, H): part x from y, where x → y or x – y; NA without H must be a clique."""
        state = self.state
        if not (state.directed[y] | state.undirected[y]) >> x & 1:
            return
        shared = state.undirected[y] & state.adjacent[x]
        for kept in self._cliques(shared, 0):
            base = (state.directed[y] | kept) & ~(1 << x)
            yield DELETE, x, y, shared & ~kept, [(y, base)], [(y, base | 1 << x)]

    def _turns(self, x: int, y: int) -> Iterator[tuple[int, int, int, int, Families, Families]]:
        """Turn(X, Y, C): make y → x, or an undirected edge, point from x to y; C become parents of y."""
        state, most = self.state, self.constraints.max_parents
        if state.directed[y] >> x & 1 or not self.constraints.allowed[y] >> x & 1:
            return
        if state.directed[x] >> y & 1:
            shared = state.undirected[y] & state.adjacent[x]
            if not state.is_clique(shared):
                return
            for more in self._cliques(state.undirected[y] & ~state.adjacent[x], shared):
                chosen = shared | more
                base, other = state.directed[y] | chosen, state.directed[x]
                if base.bit_count() < most:
                    new = [(y, base | 1 << x), (x, other & ~(1 << y))]
                    yield TURN, x, y, chosen, new, [(y, base), (x, other)]
            return
        both = state.undirected[y] & state.undirected[x]
        for chosen in self._cliques(state.undirected[y] & ~(1 << x), 0):
            if not chosen & ~both:
                continue  # turning a covered arc stays in the class
            base, other = state.directed[y] | chosen, state.directed[x] | chosen & both
            if base.bit_count() < most:
                new = [(y, base | 1 << x), (x, other)]
                yield TURN, x, y, chosen, new, [(y, base), (x, other | 1 << y)]

    def _cliques(self, among: int, given: int) -> Iterator[int]:
        """The subsets of `among` that are cliques together with `given`, itself one."""
        adjacent = self.state.adjacent
        stack = [(0, [i for i in members(among) if not given & ~adjacent[i]])]
        while stack:
            chosen, open_ = stack.pop()
            yield chosen
            for k, i in enumerate(open_):
                stack.append((chosen | 1 << i, [j for j in open_[k + 1 :] if adjacent[i] >> j & 1]))

    def applied(self, operator: Operator) -> list[int] | None:
        """The parents' masks of a member of the class that an operator leads to; None if it is not valid."""
        _, kind, x, y, chosen = operator
        state = self.state
        if kind == INSERT:
            shared = state.undirected[y] & state.adjacent[x]
            if state.has_path(y, x, shared | chosen):
                return None
            return extension(state.with_arcs([(x, y), *((t, y) for t in members(chosen))]))
        if kind == DELETE:
            arcs = [(y, h) for h in members(chosen)]
            arcs += [(x, h) for h in members(chosen & state.undirected[x])]
            return extension(state.without(x, y).with_arcs(arcs))
        return self._turned(x, y, chosen)

    def _turned(self, x: int, y: int, chosen: int) -> list[int] | None:
        """A member in which y has the chosen parents and points at x, with that arc turned around."""
        state = self.state
        arcs = [(c, y) for c in members(chosen)]
        arcs += [(y, i) for i in members(state.undirected[y] & ~chosen & ~(1 << x))]
        both = state.undirected[y] & state.undirected[x] & chosen
        if state.undirected[y] >> x & 1:
            arcs += [(y, x), *((c, x) for c in members(both))]
        arcs += [(x, i) for i in members(state.undirected[x] & ~both & ~(1 << y))]
        parents = extension(state.with_arcs(arcs))
        if parents is None:
            return None
        parents[x] &= ~(1 << y)
        reached, stack = 0, [x]  # is there another way from y to x?
        while stack:
            i = stack.pop()
            reached |= 1 << i
            stack += members(parents[i] & ~reached)
        if reached >> y & 1:
            return None
        parents[y] |= 1 << x
        return parents
