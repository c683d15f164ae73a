"""The junction tree in numpy: it answers every question where there are no compiled kernels, and reads like the book.

Eliminating a variable joins its neighbours; the cliques met on the way, each hung on the clique of what is eliminated
next, are a junction tree (Lauritzen and Spiegelhalter 1988; Blair and Peyton 1993). A clique's potential is the product
of its factors, of the likelihoods of its variables and of its children's messages; its own message is that product,
summed over what its parent does not hold. On the way back each clique is multiplied by what its parent knows beyond its
message, and is then the joint of its variables (Jensen, Lauritzen and Olesen 1990). With maxima in place of sums the
best assignments are read from the cliques on the way back (Dawid 1992; Nilsson 1998).

Messages are scaled to a largest number of 1. Where a number leaves the range of a double all the same, the same sweeps
are run on logarithms. What evidence cannot change is multiplied out once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import check_doubles, check_elimination, check_factors, check_findings, check_length
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.logarithms import log_sum
from bbn.kernels.watch import check

TIE, DIGITS = 1e-12, 12
"""Logarithms of cells that differ by less than TIE tie, and the first of them counts as the best; losses that agree in
so many decimals tie, and what was found first comes first."""

Changing = tuple[Floats, list[int]]
"""A table, its first axes those of observed variables, the others those of a clique; and the variables observed."""


class Algebra(NamedTuple):
    """What takes the place of products and sums, for numbers or for their logarithms."""

    numbers: Any
    one: float
    times: Any
    over: Any
    total: Any
    logs: bool


def _over(fresh: Floats, old: Floats) -> Floats:
    return np.divide(fresh, old, np.zeros(old.shape), where=old > 0.0)


def _minus(fresh: Floats, old: Floats) -> Floats:
    return np.subtract(fresh, old, np.full(old.shape, -math.inf), where=old > -math.inf)


SUMS = Algebra(np.asarray, 1.0, np.multiply, _over, np.add.reduce, False)
MAXIMA = SUMS._replace(total=np.maximum.reduce)
LOG_SUMS = Algebra(np.log, 0.0, np.add, _minus, log_sum, True)
LOG_MAXIMA = LOG_SUMS._replace(total=np.maximum.reduce)


class Clique:
    """A clique: its axes begin with what it shares with its parent, in the parent's order."""

    def __init__(self, axes: list[int], shared: int, parent: int, cards: list[int]) -> None:
        self.axes, self.shared, self.parent = axes, shared, parent
        self.dims = [cards[v] for v in axes]
        self.rows = math.prod(self.dims[:shared])
        self.children: list[int] = []
        self.factors: list[tuple[Floats, list[int]]] = []
        self.likely: list[tuple[int, list[int]]] = []
        self.message: list[int] = []  # its shape in the parent
        self.gone: tuple[int, ...] = ()  # the parent's axes that it lacks
        self.reads: list[tuple[int, tuple[int, ...], slice]] = []
        self.dynamic = False

    def shape(self, held: Iterable[int]) -> list[int]:
        """The clique's dims where these variables are, 1 elsewhere."""
        inside = set(held)
        return [dim if v in inside else 1 for v, dim in zip(self.axes, self.dims, strict=True)]


class Program:
    """A junction tree for a question, to be run for evidence again and again.

    Parameters
    ----------
    cards, scope_ptr, scope, table_ptr, tables : arrays
        The model: factor f has the table that starts at ``table_ptr[f]``, in C order of its scope.
    factors : int64 array
        The factors that matter.
    role : int64 array (n,)
        FREE, SLICED (its code picks a slice of each table), LIKELIHOOD or MASKED (a run may bring a likelihood or a
        code).
    elimination : tuple of int64 arrays
        What `eliminate` gave for what is left of the scopes, the targets being one more.
    targets : sequence of variables
        The variables of the joint to read.
    out : int64 array (n,)
        Where the marginal of each variable is to lie in the answer, or -1.
    maximise : bool
        Whether to take maxima in place of sums.
    """

    def __init__(
        self,
        cards: Ints,
        scope_ptr: Ints,
        scope: Ints,
        table_ptr: Ints,
        tables: Floats,
        factors: Ints,
        role: Ints,
        elimination: tuple[Ints, Ints, Ints],
        targets: Sequence[int],
        out: Ints,
        maximise: bool = False,
    ) -> None:
        check_factors(cards, scope_ptr, scope, table_ptr, factors, role)
        check_doubles(tables)
        check_length(tables.size, int(table_ptr[-1]), "tables")
        check_elimination(cards, elimination, targets)
        self.cards: list[int] = cards.tolist()
        self.role: list[int] = role.tolist()
        self.targets = [*targets]
        self.scalars: list[Changing] = []
        self.cliques, home = _forest(self.cards, elimination, self.targets)
        self._seat_factors(scope_ptr.tolist(), scope.tolist(), table_ptr.tolist(), tables, factors.tolist(), home)
        self._seat_reads(out.tolist())
        for c in reversed(self.cliques):
            c.dynamic |= bool(c.likely) or any(observed for _, observed in c.factors)
            if c.parent >= 0:
                self.cliques[c.parent].dynamic |= c.dynamic
        self.dynamic = [k for k in reversed(range(len(self.cliques))) if self.cliques[k].dynamic]
        self._logs = Sweeps(self, LOG_MAXIMA if maximise else LOG_SUMS)
        self._plain = Sweeps(self, MAXIMA if maximise else SUMS)

    def _seat_factors(
        self, starts: list[int], members: list[int], at: list[int], tables: Floats, factors: list[int], home: dict[int, int]
    ) -> None:
        """Give each factor to a clique, its axes in the clique's order after those of observed variables."""
        turn = {v: k for k, v in enumerate(home)}
        for f in factors:
            own = members[starts[f] : starts[f + 1]]
            table = tables[at[f] : at[f + 1]].reshape([self.cards[v] for v in own])
            observed = [v for v in own if self.role[v] == t.SLICED]
            free = [v for v in own if self.role[v] != t.SLICED]
            wrong = [v for v in free if v not in home]
            if wrong:
                raise ValueError(f"variable {wrong[0]} of factor {f} is not eliminated")
            if not free:
                self.scalars.append((table.transpose([own.index(v) for v in observed]), observed))
                continue
            clique = self.cliques[home[min(free, key=turn.__getitem__)]]
            axes = [*observed, *sorted(free, key=clique.axes.index)]
            table = np.ascontiguousarray(table.transpose([own.index(v) for v in axes]))
            clique.factors.append((table.reshape([*table.shape[: len(observed)], *clique.shape(free)]), observed))

    def _seat_reads(self, out: list[int]) -> None:
        """Give each likelihood, and each marginal to read, to the smallest clique that holds its variable."""
        smallest: dict[int, Clique] = {}
        for c in sorted(self.cliques, key=lambda c: math.prod(c.dims)):
            for v in c.axes:
                smallest.setdefault(v, c)
        self.out_size = math.prod(self.cards[v] for v in self.targets) if self.targets else 0
        for v, c in smallest.items():
            axis = c.axes.index(v)
            if self.role[v] in (t.LIKELIHOOD, t.MASKED):
                c.likely.append((v, c.shape([v])))
            if out[v] >= 0:
                others = tuple(k for k in range(len(c.axes)) if k != axis)
                c.reads.append((v, others, slice(out[v], out[v] + self.cards[v])))
                self.out_size += self.cards[v]
        self.starts = np.array(sorted(at for at in out if at >= 0), np.int64)
        self.sizes = np.diff(np.append(self.starts, self.out_size))

    def run(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Floats, float]:
        """The normalised joint of the targets or marginals, and ln of the total; -inf: impossible evidence."""
        codes, given = self._findings(hard, likelihoods)
        try:
            with np.errstate(all="raise"):
                return self._plain.answer(codes, given)
        except FloatingPointError:
            with np.errstate(all="ignore"):
                return self._logs.answer(codes, given)

    def ranked(self, hard: Pairs = (), likelihoods: Vectors = ()) -> tuple[Iterator[tuple[Ints, float]], float]:
        """Of a maximum: all possible assignments, best first, with ln of their ratio to the best; and ln of the best."""
        codes, given = self._findings(hard, likelihoods)
        try:
            with np.errstate(all="raise"):
                sweeps, (potentials, _, log) = self._plain, self._plain.collect(codes, given)
        except FloatingPointError:
            with np.errstate(all="ignore"):
                sweeps, (potentials, _, log) = self._logs, self._logs.collect(codes, given)
        if log == -math.inf:
            return iter(()), log
        return self._departures(potentials, sweeps.algebra.logs, codes), log

    def _findings(self, hard: Pairs, likelihoods: Vectors) -> tuple[dict[int, int], dict[int, Floats]]:
        """The codes observed, and the likelihoods of variables that are not sliced."""
        codes = dict(hard)
        given = {v: np.array(values, np.float64) for v, values in likelihoods}
        check_findings(self.cards, codes, given)
        for v, code in codes.items():
            if self.role[v] != t.SLICED and v not in given:
                given[v] = np.zeros(self.cards[v])
                given[v][code] = 1.0
        return codes, given

    def _departures(self, potentials: list[Floats], logs: bool, hard: dict[int, int]) -> Iterator[tuple[Ints, float]]:
        """Each next best takes, at one clique, the next cell of the row that is decided, and the best below."""
        cliques = self.cliques
        # the loss, rounded; a number; what is departed from, where, to which of the order, the loss, that before
        heap: list[tuple[float, int, Ints, int, int, float, float]] = []
        made = 0

        def row(codes: Ints, c: int) -> Floats:
            clique = cliques[c]
            cells = potentials[c][tuple(codes[clique.axes[: clique.shared]].tolist())].ravel()
            with np.errstate(divide="ignore"):
                return cells if logs else np.asarray(np.log(cells))

        def decide(codes: Ints, c: int, cell: int) -> None:
            clique = cliques[c]
            codes[clique.axes[clique.shared :]] = np.unravel_index(cell, clique.dims[clique.shared :])

        def complete(codes: Ints, first: int) -> None:
            for c in range(first, len(cliques)):
                cells = row(codes, c)
                decide(codes, c, int((cells > cells.max() - TIE).argmax()))

        def offer(codes: Ints, c: int, rank: int, before: float) -> None:
            nonlocal made
            made += 1
            cells = row(codes, c)
            order = _order(cells, rank)
            if rank < len(order):
                loss = before + float(cells[order[0]] - cells[order[rank]])
                heapq.heappush(heap, (round(loss, DIGITS), made, codes, c, rank, loss, before))

        codes: Ints = np.full(len(self.cards), -1, np.int64)
        for v, code in hard.items():
            codes[v] = code
        loss, first = 0.0, 0
        complete(codes, 0)
        while True:
            check()
            yield codes.copy(), -loss
            for c in range(first, len(cliques)):
                offer(codes, c, 1, loss)
            if not heap:
                return
            _, _, departed, c, rank, own, before = heapq.heappop(heap)
            loss, first = max(loss, own), c + 1
            offer(departed, c, rank + 1, before)
            codes = departed.copy()
            decide(codes, c, _order(row(codes, c), rank)[rank])
            complete(codes, first)


class Sweeps:
    """The way up and the way down, in one algebra; what evidence cannot change is computed when it is first needed."""

    def __init__(self, tree: Program, algebra: Algebra) -> None:
        self.tree, self.algebra = tree, algebra
        self._once: tuple[list[Any], list[Any], list[Any], float] | None = None

    def collect(
        self, codes: dict[int, int], given: dict[int, Floats]
    ) -> tuple[list[Floats], list[Floats], float]:
        """Up: the potentials and the messages, unscaled, of all cliques, and ln of the total."""
        if self._once is None:
            self._once = self._still()
        potentials, messages, raw, log = self._once
        potentials, messages, raw = [*potentials], [*messages], [*raw]
        numbers, cliques = self.algebra.numbers, self.tree.cliques
        for table, observed in self.tree.scalars:
            value = float(table[tuple([codes[v] for v in observed])])
            log += math.log(value) if value > 0.0 else -math.inf
        for k in self.tree.dynamic:
            if log == -math.inf:
                break
            clique = cliques[k]
            sources = [
                numbers(table[tuple([codes[v] for v in observed])])
                for table, observed in clique.factors
                if observed
            ]
            sources += [messages[d] for d in clique.children if cliques[d].dynamic]
            sources += [numbers(given[v]).reshape(shape) for v, shape in clique.likely if v in given]
            log += self._send(k, sources, potentials, messages, raw)
        return potentials, raw, log

    def _still(self) -> tuple[list[Any], list[Any], list[Any], float]:
        """What evidence cannot change: the products of tables, and all of the cliques that it does not reach."""
        cliques = self.tree.cliques
        potentials: list[Any] = [None] * len(cliques)
        messages: list[Any] = [None] * len(cliques)
        raw: list[Any] = [None] * len(cliques)
        log = 0.0
        for k in reversed(range(len(cliques))):
            clique = cliques[k]
            sources = [self.algebra.numbers(table) for table, observed in clique.factors if not observed]
            sources += [messages[d] for d in clique.children if not cliques[d].dynamic]
            if not clique.dynamic:
                log += self._send(k, sources, potentials, messages, raw)
            elif sources:
                potentials[k], scale = self._product(clique, None, sources)
                log += scale
            if log == -math.inf:
                break
        return potentials, messages, raw, log

    def _product(self, clique: Clique, cells: Floats | None, sources: list[Floats]) -> tuple[Floats, float]:
        """The product of these and of what is known, whose largest is made 1 now and then, and ln of the scales."""
        log = 0.0
        if cells is None:
            cells = np.full(clique.dims, self.algebra.one)
        elif sources:
            cells = cells.copy()
        for k, source in enumerate(sources):
            self.algebra.times(cells, source, cells)
            if k % t.RESCALE_EVERY == t.RESCALE_EVERY - 1:
                log += self._rescale(cells)
        return cells, log

    def _rescale(self, cells: Floats) -> float:
        """Make the largest 1; ln of what it was."""
        top = float(cells.max())
        if self.algebra.logs:
            if top > -math.inf:
                cells -= top
            return top
        if top <= 0.0:
            return -math.inf
        cells /= top
        return math.log(top)

    def _send(self, k: int, sources: list[Floats], potentials: list[Any], messages: list[Any], raw: list[Any]) -> float:
        """Multiply a clique out and make its message; ln of what was taken out of it, at a root of its total."""
        check()
        clique = self.tree.cliques[k]
        cells, log = self._product(clique, potentials[k], sources)
        potentials[k] = cells
        message = np.asarray(self.algebra.total(cells.reshape(clique.rows, -1), 1))
        raw[k] = message
        messages[k] = message.reshape(clique.message).copy()
        return log + self._rescale(messages[k])

    def answer(self, codes: dict[int, int], given: dict[int, Floats]) -> tuple[Floats, float]:
        """Up, down where marginals are read, and the answer."""
        tree, total = self.tree, self.algebra.total
        potentials, raw, log = self.collect(codes, given)
        out = np.zeros(tree.out_size)
        if log == -math.inf or not tree.out_size:
            return out, log
        if tree.targets:
            size = tree.out_size
            return self._shares(total(potentials[0].reshape(size, -1), 1), np.zeros(1, np.int64), [size]), log
        for k, clique in enumerate(tree.cliques):
            check()
            cells = potentials[k]
            if clique.parent >= 0:
                fresh = np.asarray(total(potentials[clique.parent], clique.gone)).reshape(clique.rows)
                ratio = self.algebra.over(fresh, raw[k])
            else:
                ratio = self.algebra.over(np.full(1, self.algebra.one), raw[k])
            potentials[k] = cells = self.algebra.times(cells.reshape(clique.rows, -1), ratio[:, None]).reshape(clique.dims)
            for _, others, part in clique.reads:
                out[part] = total(cells, others)
        return self._shares(out, tree.starts, tree.sizes), log

    def _shares(self, out: Floats, starts: Ints, sizes: Any) -> Floats:
        """Each part of the answer divided by its sum."""
        if self.algebra.logs:
            out = np.exp(out - np.repeat(np.maximum.reduceat(out, starts), sizes))
        return np.asarray(out / np.repeat(np.add.reduceat(out, starts), sizes))


def _forest(cards: list[int], elimination: tuple[Ints, Ints, Ints], targets: list[int]) -> tuple[list[Clique], dict[int, int]]:
    """The cliques, parents first, that of the targets before all others; and for each variable, in the order of
    elimination, the number of the clique that it was eliminated in."""
    order, ptr, near = (part.tolist() for part in elimination)
    turn = {v: k for k, v in enumerate(order)}
    around = [near[ptr[k] : ptr[k + 1]] for k in range(len(order))]
    following = [min((turn[u] for u in own), default=-1) for own in around]
    home: dict[int, int] = {}
    members: list[list[int]] = []
    last: list[int] = []
    for k, v in enumerate(order):
        if v not in home:
            home[v] = len(members)
            members.append([v, *around[k]])
            last.append(k)
        last[home[v]] = k
        if around[k] and len(around[k]) == 1 + len(around[following[k]]):  # what follows is within this clique
            home.setdefault(order[following[k]], home[v])
    parent = [home[order[following[k]]] if around[k] else -1 for k in last]
    root = -1
    if targets:
        size = [math.prod(cards[v] for v in own) for own in members]
        holders = [c for c, own in enumerate(members) if set(targets) <= set(own)]
        if not holders:
            raise ValueError("no clique holds all targets")
        root = min(holders, key=lambda c: (size[c], c))
        below, c = -1, root
        while c >= 0:  # turn the links between it and its root around
            above = parent[c]
            parent[c] = below
            below, c = c, above
    children: list[list[int]] = [[] for _ in members]
    for c, p in enumerate(parent):
        if p >= 0:
            children[p].append(c)
    stack = [c for c, p in enumerate(parent) if p < 0 and c != root][::-1] + [root] * (root >= 0)
    number: dict[int, int] = {}
    cliques: list[Clique] = []
    while stack:
        c = stack.pop()
        p = number.get(parent[c], -1)
        shared = [v for v in cliques[p].axes if v in members[c]] if p >= 0 else []
        front = shared or (targets if c == root else [])
        rest = sorted((v for v in members[c] if v not in front), key=turn.__getitem__, reverse=True)
        clique = Clique([*front, *rest], len(shared), p, cards)
        number[c] = len(cliques)
        if p >= 0:
            cliques[p].children.append(number[c])
            clique.message = cliques[p].shape(shared)
            clique.gone = tuple(k for k, v in enumerate(cliques[p].axes) if v not in shared)
        cliques.append(clique)
        stack += reversed(children[c])
    return cliques, {v: number[c] for v, c in sorted(home.items(), key=lambda item: turn[item[0]])}


def _order(cells: Floats, rank: int) -> list[int]:
    """The possible cells of a row of logarithms to this rank or further, best first; of those that tie, the first."""
    order: list[int] = []
    left = cells > -math.inf
    while len(order) <= rank and left.any():
        tied = np.flatnonzero(left & (cells > cells[left].max() - TIE))
        order += tied.tolist()
        left[tied] = False
    return order
