"""Wide interfaces: filtering and smoothing with messages that stay products of tables (Murphy 2002, section 3.4).

    alpha[t](z[t]) = Σ_{z[t-1], rest} alpha[t-1](z[t-1]) ∏ P(x | parents), variables eliminated one by one

A chain over the S joint states of the interface pays S² a step. Here a step eliminates the variables of the slice
before and of the slice's own rest in an order that keeps tables small, and what evidence never joined stays apart: K
chains of c states that are coupled cost K c^(K+1) in place of c^(2K), and K that are not cost K c². Observed variables
take no room. Each table of a message sums to 1; what it was divided by goes to ln P(evidence). Sequences whose numbers
are too small beside each other for doubles are done again in logarithms (`table_products`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import BEFORE, NOTHING, Layout
from bbn.inference.time.table_products import Arithmetic, Doubles, Logs, Message, Names, OutOfRange, Table
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork

KEPT = 4096
"""Plans and restricted tables that are kept."""


class _Plan(NamedTuple):
    steps: list[tuple[list[int], Names]]
    """The tables to multiply, by number, and what the product is summed down to."""
    left: list[int]
    peak: int
    cells: int


def wide_beliefs(
    dyn: DynamicNetwork, sequences: Sequences, lag: int | None, limit: Any = None
) -> tuple[dict[str, Array], Array]:
    """Beliefs given what is at most `lag` steps ahead (None: everything), and ln P of each sequence."""
    wide = wide_tables(dyn)
    n = sequences.n_steps
    found = {v.name: np.zeros((n, v.card)) for v in dyn.variables}
    logs = np.zeros(len(sequences.names))

    def asked(run: _Run) -> float:
        run.forward()
        run.require_possible()
        begin = int(sequences.ptr[run.s])
        for t, after in run.ahead(lag):
            for name in dyn.names:
                found[name][begin + t] = run.belief(name, t, after)
        return run.log

    for s in range(len(sequences.names)):
        logs[s] = _in_range(asked, wide, sequences, s, limit)
    return found, logs


def wide_logs(dyn: DynamicNetwork, sequences: Sequences, limit: Any = None) -> Array:
    """ln P of each sequence, -inf where it is impossible."""
    wide = wide_tables(dyn)

    def asked(run: _Run) -> float:
        run.forward(keep=False)
        return run.log

    return np.array([_in_range(asked, wide, sequences, s, limit) for s in range(len(sequences.names))])


def _in_range(
    asked: Callable[[_Run], float], wide: WideTables, sequences: Sequences, s: int, limit: Any
) -> float:
    """What a run over a sequence gives, in doubles or else in logarithms."""
    try:
        return asked(_Run(wide, sequences, s, limit, Doubles))
    except OutOfRange:
        return asked(_Run(wide, sequences, s, limit, Logs))


def wide_tables(dyn: DynamicNetwork) -> WideTables:
    """The tables of a dynamic network and plans for them, made once."""
    made: WideTables = dyn.memo.setdefault("wide tables", WideTables(dyn))
    return made


class WideTables:
    """The tables of a slice, restricted to evidence, and plans that multiply and sum them."""

    def __init__(self, dyn: DynamicNetwork) -> None:
        self.dyn, self.layout = dyn, Layout(dyn)
        own = self.layout.variables
        self.names = [name for name in own if name != NOTHING.name]
        self.state = tuple(name for name in self.layout.state if name != NOTHING.name)
        self.cards = {name: v.card for name, v in own.items()}
        self.cards |= {name + BEFORE: v.card for name, v in own.items()}
        self._scopes: dict[tuple[str, int], Names] = {}
        self._tables: dict[Any, Table] = {}
        self._plans: dict[Any, _Plan] = {}

    def scope(self, name: str, kind: int) -> Names:
        """The variables of the table of a variable in a slice of this kind."""
        key = (name, kind)
        if key not in self._scopes:
            cpt = self.layout.conditional(name, kind)
            self._scopes[key] = (*(p.name for p in cpt.parents), name)
        return self._scopes[key]

    def table(self, name: str, kind: int, seen: Mapping[str, int], arithmetic: Arithmetic) -> Table:
        """That table, with what is observed fixed."""
        scope = self.scope(name, kind)
        codes = tuple(seen.get(own, -1) for own in scope)
        key = (name, kind, codes, arithmetic)
        found = self._tables.get(key)
        if found is None:
            cpt = self.layout.conditional(name, kind)
            index = tuple(slice(None) if code < 0 else code for code in codes)
            left = tuple(own for own, code in zip(scope, codes, strict=True) if code < 0)
            found = arithmetic.table(left, cpt.table[index])
            if len(self._tables) >= KEPT:
                self._tables.clear()
            self._tables[key] = found
        return found

    def contracted(
        self, tables: Sequence[Table], keep: Iterable[str], arithmetic: Arithmetic, limit: Any
    ) -> Message:
        """Σ of the product over all variables but those to keep, as tables over disjoint variables."""
        check()
        scopes = tuple(table.names for table in tables)
        kept = tuple(keep)
        plan = self.plan(scopes, kept)
        listed = ", ".join(map(repr, self.state))
        require_memory(
            24 * plan.peak,
            f"the beliefs about the interface ({listed}) and what is summed out beside it, {plan.peak:,} cells,",
            'filter(..., method="particles") samples instead',
            limit,
        )
        pool = list(tables)
        for members, names in plan.steps:
            pool.append(arithmetic.product([pool[i] for i in members], names))
        return [pool[i] for i in plan.left]

    def plan(self, scopes: Sequence[Names], keep: Iterable[str]) -> _Plan:
        """The order of products and sums for tables of these scopes: each time the variable of the smallest product."""
        key = (tuple(scopes), tuple(keep))
        found = self._plans.get(key)
        if found is None:
            found = self._planned(*key)
            if len(self._plans) >= KEPT:
                self._plans.clear()
            self._plans[key] = found
        return found

    def _planned(self, scopes: tuple[Names, ...], keep: Names) -> _Plan:
        kept = frozenset(keep)
        active = dict(enumerate(scopes))
        steps: list[tuple[list[int], Names]] = []
        peak = max((self._size(scope) for scope in scopes), default=1)
        cells = 0

        def join(members: list[int], without: str | None) -> None:
            nonlocal peak, cells
            members.sort(key=lambda i: (self._size(active[i]), i))
            union = dict.fromkeys(own for i in members for own in active[i])
            size = self._size(union)
            peak, cells = max(peak, size), cells + size
            names = tuple(own for own in union if own != without)
            number = len(scopes) + len(steps)
            steps.append((members, names))
            for i in members:
                del active[i]
            active[number] = names

        while True:
            left = sorted({own for scope in active.values() for own in scope if own not in kept})
            if not left:
                break
            sizes = {}
            for own in left:
                union = {other for scope in active.values() if own in scope for other in scope}
                sizes[own] = self._size(union)
            chosen = min(left, key=lambda own: (sizes[own], own))
            join([i for i, scope in active.items() if chosen in scope], chosen)
        while True:  # what shares a variable that is kept is one table
            pair = next(
                (self._touching(active, i) for i in active if len(self._touching(active, i)) > 1), None
            )
            if pair is None:
                return _Plan(steps, list(active), peak, cells)
            join(pair, None)

    def _size(self, names: Iterable[str]) -> int:
        return prod(self.cards[name] for name in names)

    def _touching(self, active: Mapping[int, Names], i: int) -> list[int]:
        own = set(active[i])
        return [j for j, scope in active.items() if j == i or not own.isdisjoint(scope)]


class _Run:
    """One sequence: what is seen in each step, and its forward messages."""

    def __init__(
        self, wide: WideTables, sequences: Sequences, s: int, limit: Any, arithmetic: Arithmetic
    ) -> None:
        self.wide, self.sequences, self.s, self.limit = wide, sequences, s, limit
        self.arithmetic = arithmetic
        self.log = 0.0
        begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
        # a variable of one state is as good as observed, and takes no axis
        single = dict.fromkeys((name for name in wide.names if wide.cards[name] == 1), 0)
        self.seen: list[dict[str, int]] = [dict(single) for _ in range(end - begin)]
        self.weights: list[list[Table]] = [[] for _ in range(end - begin)]
        for name, codes in sequences.codes.items():
            card = wide.cards[name]
            for t, code in enumerate(codes[begin:end].tolist()):
                if code < card:
                    self.seen[t][name] = code
        for name, own in sequences.likelihoods.items():
            for t, row in enumerate(own[begin:end]):
                if (row != 1).any():
                    code = self.seen[t].get(name)
                    own_names, values = ((name,), row) if code is None else ((), np.asarray(row[code]))
                    table, offset = arithmetic.weights(own_names, values)
                    self.weights[t].append(table)
                    self.log += offset
        self.messages: list[Message] = []
        self.stopped: int | None = None

    def factors(self, t: int) -> list[Table]:
        """The tables of slice t given what is seen there and in the slice before."""
        wide = self.wide
        kind = min(t, wide.layout.kinds - 1)
        seen = dict(self.seen[t])
        if t:
            seen |= {name + BEFORE: code for name, code in self.seen[t - 1].items()}
        return [*(wide.table(name, kind, seen, self.arithmetic) for name in wide.names), *self.weights[t]]

    def contracted(self, tables: Sequence[Table], keep: Iterable[str]) -> Message:
        """Σ of the product over all variables but those to keep."""
        return self.wide.contracted(tables, keep, self.arithmetic, self.limit)

    def forward(self, keep: bool = True) -> None:
        """All messages, and ln P of what is seen; stops at the first step that is impossible."""
        message: Message = []
        for t in range(len(self.seen)):
            tables = [*_before(message), *self.factors(t)]
            message, scale = self.arithmetic.normalised(self.contracted(tables, self.wide.state))
            if scale == -np.inf:
                self.log, self.stopped = -np.inf, t
                return
            self.log += scale
            if keep:
                self.messages.append(message)
                cells = sum(own.values.size for own in message)
                if t % 64 == 0:
                    require_memory(
                        8 * cells * len(self.seen), "the beliefs of all steps", "filter fewer", self.limit
                    )

    def require_possible(self) -> None:
        """ImpossibleEvidenceError if some step contradicts those before it."""
        if self.stopped is None:
            return
        t, dyn = self.stopped, self.wide.dyn
        findings: dict[str, object] = {
            n: dyn.states(n)[code] for n, code in self.seen[t].items() if n in dyn and self.wide.cards[n] > 1
        }
        told = ", ".join(f"{name}={state}" for name, state in findings.items()) or "what it says"
        where = f"sequence {self.sequences.names[self.s]!r}, step" if self.sequences.several else "step"
        raise ImpossibleEvidenceError(
            f"{where} {t + self.sequences.origins[self.s]}: {told} has probability 0 given the steps before it",
            findings,
        )

    def back(self, t: int, message: Message) -> Message:
        """What slice t and the messages after it say of the slice before."""
        keep = tuple(name + BEFORE for name in self.wide.state)
        found, _ = self.arithmetic.normalised(self.contracted([*self.factors(t), *message], keep))
        return [own.renamed(tuple(name.removesuffix(BEFORE) for name in own.names)) for own in found]

    def ahead(self, lag: int | None) -> Iterable[tuple[int, Message]]:
        """Each step with what the steps after it, up to `lag` of them, say of its state."""
        last = len(self.seen) - 1
        if lag is None:
            message: Message = []
            for t in range(last, -1, -1):
                yield t, message
                if t:
                    message = self.back(t, message)
            return
        for t in range(last + 1):
            message = []
            for later in range(min(t + lag, last), t, -1):
                message = self.back(later, message)
            yield t, message

    def belief(self, name: str, t: int, after: Message) -> Array:
        """P(variable in step t)."""
        card = self.wide.cards[name]
        if name in self.seen[t]:
            return np.asarray(np.eye(card)[self.seen[t][name]])
        tables = [*self.messages[t], *after]
        if name not in self.wide.state:
            before = self.messages[t - 1] if t else []
            tables = [*_before(before), *self.factors(t), *after]
        found = self.contracted(_connected(tables, name), (name,))
        return self.arithmetic.shares(next(own for own in found if own.names))


def _before(message: Message) -> Message:
    """The tables of a message, read in the slice after it."""
    return [own.renamed(tuple(name + BEFORE for name in own.names)) for own in message]


def _connected(tables: list[Table], name: str) -> list[Table]:
    """The tables that a variable is linked to; the others only multiply by a number."""
    near, left = {name}, list(tables)
    chosen: list[Table] = []
    while True:
        more = [own for own in left if not near.isdisjoint(own.names)]
        if not more:
            return chosen
        chosen += more
        left = [own for own in left if near.isdisjoint(own.names)]
        near.update(n for own in more for n in own.names)
