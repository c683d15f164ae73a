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

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.checks import (
    check_doubles,
    check_elimination,
    check_factors,
    check_findings,
    check_length,
)
from bbn.kernels.contracts.types import Floats, Ints, Pairs, Vectors
from bbn.kernels.logarithms import log_sum
from bbn.kernels.pure.best_assignments import best_assignments
from bbn.kernels.pure.forest import Clique, forest
from bbn.kernels.watch import check

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
    return np.asarray(np.divide(fresh, old, np.zeros(old.shape), where=old > 0.0))


def _minus(fresh: Floats, old: Floats) -> Floats:
    return np.asarray(np.subtract(fresh, old, np.full(old.shape, -math.inf), where=old > -math.inf))


SUMS = Algebra(np.asarray, 1.0, np.multiply, _over, np.add.reduce, False)
MAXIMA = SUMS._replace(total=np.maximum.reduce)
LOG_SUMS = Algebra(np.log, 0.0, np.add, _minus, log_sum, True)
LOG_MAXIMA = LOG_SUMS._replace(total=np.maximum.reduce)


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
        self.cliques, home = forest(self.cards, elimination, self.targets)
        self._seat_factors(
            scope_ptr.tolist(), scope.tolist(), table_ptr.tolist(), tables, factors.tolist(), home
        )
        self._seat_reads(out.tolist())
        for c in reversed(self.cliques):
            c.dynamic |= bool(c.likely) or any(observed for _, observed in c.factors)
            if c.parent >= 0:
                self.cliques[c.parent].dynamic |= c.dynamic
        self.dynamic = [k for k in reversed(range(len(self.cliques))) if self.cliques[k].dynamic]
        self._logs = Sweeps(self, LOG_MAXIMA if maximise else LOG_SUMS)
        self._plain = Sweeps(self, MAXIMA if maximise else SUMS)

    def _seat_factors(
        self,
        starts: list[int],
        members: list[int],
        at: list[int],
        tables: Floats,
        factors: list[int],
        home: dict[int, int],
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
            clique.factors.append(
                (table.reshape([*table.shape[: len(observed)], *clique.shape(free)]), observed)
            )

    def _seat_reads(self, out: list[int]) -> None:
        """Give each likelihood to the smallest clique of its variable, each marginal to that or a smaller message."""
        smallest: dict[int, Clique] = {}
        by_message: dict[int, Clique] = {}
        for c in sorted(self.cliques, key=lambda c: c.rows * c.columns):
            for v in c.axes:
                smallest.setdefault(v, c)
        for c in sorted(self.cliques, key=lambda c: c.rows):
            for v in c.axes[: c.shared]:
                by_message.setdefault(v, c)
        self.out_size = math.prod(self.cards[v] for v in self.targets) if self.targets else 0
        for v, c in smallest.items():
            if self.role[v] in (t.LIKELIHOOD, t.MASKED):
                c.likely.append((v, c.shape([v])))
            if out[v] >= 0:
                part = slice(out[v], out[v] + self.cards[v])
                d = by_message.get(v)
                if d is not None and d.rows < c.rows * c.columns:
                    d.message_reads.append((_but(d.axes[: d.shared], v), part))
                else:
                    c.reads.append((_but(c.axes, v), part))
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

    def ranked(
        self, hard: Pairs = (), likelihoods: Vectors = ()
    ) -> tuple[Iterator[tuple[Ints, float]], float]:
        """Of a maximum: all possible assignments, best first, each with ln of its ratio to the best; ln of that."""
        codes, given = self._findings(hard, likelihoods)
        try:
            with np.errstate(all="raise"):
                sweeps, (potentials, _, log) = self._plain, self._plain.collect(codes, given)
        except FloatingPointError:
            with np.errstate(all="ignore"):
                sweeps, (potentials, _, log) = self._logs, self._logs.collect(codes, given)
        if log == -math.inf:
            return iter(()), log
        logs = sweeps.algebra.logs
        return best_assignments(self.cards, self.cliques, potentials, logs, codes), log

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

    def _product(self, clique: Clique, known: Floats | None, sources: list[Floats]) -> tuple[Floats, float]:
        """The product of these and of what is known, whose largest is made 1 now and then, and ln of the scales."""
        if known is not None and not sources:
            return known, 0.0
        left: Any = self.algebra.one if known is None else known
        cells, log = np.full(clique.dims, self.algebra.one) if not sources else np.empty(clique.dims), 0.0
        for k, source in enumerate(sources):
            left = self.algebra.times(left, source, cells)
            if k % t.RESCALE_EVERY == t.RESCALE_EVERY - 1:
                left, scale = self._rescaled(cells)
                cells[...] = left
                log += scale
        return cells, log

    def _rescaled(self, cells: Floats) -> tuple[Floats, float]:
        """The same with a largest number of 1, and ln of what it was."""
        top = float(np.maximum.reduce(cells, None))
        if self.algebra.logs:
            return (cells - top if top > -math.inf else cells), top
        return (cells / top, math.log(top)) if top > 0.0 else (cells, -math.inf)

    def _send(
        self, k: int, sources: list[Floats], potentials: list[Any], messages: list[Any], raw: list[Any]
    ) -> float:
        """Multiply a clique out and make its message; ln of what was taken out of it, at a root of its total."""
        clique = self.tree.cliques[k]
        if clique.rows * clique.columns > t.ORDERED:
            check()
        potentials[k], log = self._product(clique, potentials[k], sources)
        raw[k] = self.algebra.total(potentials[k].reshape(clique.rows, clique.columns), 1)
        message, scale = self._rescaled(raw[k])
        messages[k] = message.reshape(clique.message)
        return log + scale

    def answer(self, codes: dict[int, int], given: dict[int, Floats]) -> tuple[Floats, float]:
        """Up, down where marginals are read, and the answer."""
        tree, total, over, times = self.tree, self.algebra.total, self.algebra.over, self.algebra.times
        potentials, raw, log = self.collect(codes, given)
        out = np.zeros(tree.out_size)
        if log == -math.inf or not tree.out_size:
            return out, log
        if tree.targets:
            size = tree.out_size
            return self._shares(total(potentials[0].reshape(size, -1), 1), np.zeros(1, np.int64), [size]), log
        for k, clique in enumerate(tree.cliques):
            fresh = np.full(1, self.algebra.one)
            if clique.parent >= 0:
                fresh = total(potentials[clique.parent], clique.gone)
                for others, part in clique.message_reads:
                    out[part] = total(fresh, others)
                fresh = fresh.reshape(clique.rows)
            if clique.rows * clique.columns > t.ORDERED:
                check()
            cells = potentials[k].reshape(clique.rows, clique.columns)
            potentials[k] = cells = times(cells, over(fresh, raw[k])[:, None]).reshape(clique.dims)
            for others, part in clique.reads:
                out[part] = total(cells, others)
        return self._shares(out, tree.starts, tree.sizes), log

    def _shares(self, out: Floats, starts: Ints, sizes: Any) -> Floats:
        """Each part of the answer divided by its sum."""
        if self.algebra.logs:
            out = np.exp(out - np.repeat(np.maximum.reduceat(out, starts), sizes))
        return np.asarray(out / np.repeat(np.add.reduceat(out, starts), sizes))


def _but(axes: list[int], v: int) -> tuple[int, ...]:
    """The places of all axes but that of v."""
    return tuple(k for k, u in enumerate(axes) if u != v)
