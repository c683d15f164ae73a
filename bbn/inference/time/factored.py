"""Wide interfaces: filtering and smoothing with messages that stay products of tables (Murphy 2002, section 3.4).

    alpha[t](z[t]) = Σ_{z[t-1], rest} alpha[t-1](z[t-1]) ∏ P(x | parents), variables eliminated one by one

A chain over the S joint states of the interface pays S² a step. Here a step eliminates the variables of the slice
before and of the slice's own rest in an order that keeps tables small, and what evidence never joined stays apart: K
chains of c states that are coupled cost K c^(K+1) in place of c^(2K), and K that are not cost K c². Observed variables
take no room. Each table of a message sums to 1; what it was divided by goes to ln P(evidence).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log, prod
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import memory_limit, require_memory
from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import BEFORE, NOTHING, Layout
from bbn.model.dynamic_network import DynamicNetwork

WIDE = 1024
"""Interfaces of fewer joint states are quicker as a chain."""
GAIN = 20
"""So many times fewer cells than S² a step must visit to be chosen for speed: the chain's loop is compiled."""
KEPT = 4096
"""Plans and restricted tables that are kept."""

Names = tuple[str, ...]


class Table(NamedTuple):
    """A table over some variables."""

    names: Names
    values: Array


Message = list[Table]
"""Tables over disjoint variables."""


class _Plan(NamedTuple):
    steps: list[tuple[list[int], Names]]
    """The tables to multiply, by number, and what the product is summed down to."""
    left: list[int]
    peak: int
    cells: int


def is_wide(dyn: DynamicNetwork, limit: Any = None) -> bool:
    """Whether messages as products of tables are the way: a chain would not fit, or would be far slower."""
    if dyn.continuous:
        return False
    known = dyn.memo.get("wide")
    if known is None:
        layout = Layout(dyn)
        size = prod(layout.variables[name].card for name in layout.state)
        cells = 0
        if size >= WIDE:
            wide = _Wide(dyn)
            kind = layout.kinds - 1
            whole = tuple(name + BEFORE for name in layout.passed)
            scopes = [whole, *(wide.scope(name, kind) for name in wide.names)]
            scopes = [tuple(name for name in own if wide.cards[name] > 1) for own in scopes]
            cells = wide.plan(scopes, layout.state).cells
        known = dyn.memo["wide"] = size, cells
    size, cells = known
    return bool(size >= WIDE and (GAIN * cells < size * size or 24 * size * size > memory_limit(limit)))


def wide_beliefs(
    dyn: DynamicNetwork, sequences: Sequences, lag: int | None, limit: Any = None
) -> tuple[dict[str, Array], Array]:
    """Beliefs given what is at most `lag` steps ahead (None: everything), and ln P of each sequence."""
    wide = _wide(dyn)
    n = sequences.n_steps
    found = {v.name: np.zeros((n, v.card)) for v in dyn.variables}
    logs = np.zeros(len(sequences.names))
    for s in range(len(sequences.names)):
        run = _Run(wide, sequences, s, limit)
        run.forward()
        run.require_possible()
        logs[s] = run.log
        begin = int(sequences.ptr[s])
        for t, after in run.ahead(lag):
            for name in dyn.names:
                found[name][begin + t] = run.belief(name, t, after)
    return found, logs


def wide_logs(dyn: DynamicNetwork, sequences: Sequences, limit: Any = None) -> Array:
    """ln P of each sequence, -inf where it is impossible."""
    wide = _wide(dyn)
    logs = np.zeros(len(sequences.names))
    for s in range(len(sequences.names)):
        run = _Run(wide, sequences, s, limit, keep=False)
        run.forward()
        logs[s] = run.log
    return logs


def _wide(dyn: DynamicNetwork) -> _Wide:
    made: _Wide = dyn.memo.setdefault("wide tables", _Wide(dyn))
    return made


class _Wide:
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

    def table(self, name: str, kind: int, seen: Mapping[str, int]) -> Table:
        """That table, with what is observed fixed."""
        scope = self.scope(name, kind)
        codes = tuple(seen.get(own, -1) for own in scope)
        key = (name, kind, codes)
        found = self._tables.get(key)
        if found is None:
            cpt = self.layout.conditional(name, kind)
            index = tuple(slice(None) if code < 0 else code for code in codes)
            left = tuple(own for own, code in zip(scope, codes, strict=True) if code < 0)
            found = Table(left, np.ascontiguousarray(cpt.table[index]))
            if len(self._tables) >= KEPT:
                self._tables.clear()
            self._tables[key] = found
        return found

    def contracted(self, tables: Sequence[Table], keep: Iterable[str], limit: Any) -> Message:
        """Σ of the product over all variables but those to keep, as tables over disjoint variables."""
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
            pool.append(_product([pool[i] for i in members], names))
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


def _product(tables: list[Table], names: Names) -> Table:
    """The product of some tables, summed down to some variables, table by table."""
    made = tables[0]
    for k, table in enumerate(tables[1:], 2):
        union = tuple(dict.fromkeys((*made.names, *table.names))) if k < len(tables) else names
        made = _pair(made, table, union)
    return made if made.names == names else _pair(made, Table((), np.ones(())), names)


def _pair(left: Table, right: Table, names: Names) -> Table:
    letter = dict(zip(dict.fromkeys((*left.names, *right.names)), ascii_letters, strict=False))
    a, b, c = ("".join(letter[name] for name in own) for own in (left.names, right.names, names))
    return Table(names, np.asarray(np.einsum(f"{a},{b}->{c}", left.values, right.values)))


class _Run:
    """One sequence: what is seen in each step, and its forward messages."""

    def __init__(self, wide: _Wide, sequences: Sequences, s: int, limit: Any, keep: bool = True) -> None:
        self.wide, self.sequences, self.s, self.limit, self.keep = wide, sequences, s, limit, keep
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
                    self.weights[t].append(Table((name,), row) if code is None else Table((), row[code]))
        self.messages: list[Message] = []
        self.log = 0.0
        self.stopped: int | None = None

    def factors(self, t: int) -> list[Table]:
        """The tables of slice t given what is seen there and in the slice before."""
        wide = self.wide
        kind = min(t, wide.layout.kinds - 1)
        seen = dict(self.seen[t])
        if t:
            seen |= {name + BEFORE: code for name, code in self.seen[t - 1].items()}
        return [*(wide.table(name, kind, seen) for name in wide.names), *self.weights[t]]

    def forward(self) -> None:
        """All messages, and ln P of what is seen; stops at the first step that is impossible."""
        message: Message = []
        for t in range(len(self.seen)):
            before = [Table(tuple(name + BEFORE for name in own.names), own.values) for own in message]
            tables = [*before, *self.factors(t)]
            message, scale = _normalised(self.wide.contracted(tables, self.wide.state, self.limit))
            if not scale > 0:
                self.log, self.stopped = -np.inf, t
                return
            self.log += log(scale)
            if self.keep:
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
        found, _ = _normalised(self.wide.contracted([*self.factors(t), *message], keep, self.limit))
        return [Table(tuple(name.removesuffix(BEFORE) for name in own.names), own.values) for own in found]

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
            tables = [Table(tuple(n + BEFORE for n in own.names), own.values) for own in before]
            tables += [*self.factors(t), *after]
        found = self.wide.contracted(_connected(tables, name), (name,), self.limit)
        values = next(own.values for own in found if own.names)
        return np.asarray(values / values.sum())


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


def _normalised(message: Message) -> tuple[Message, float]:
    """Each table divided by its sum, and the product of these; tables without variables are numbers."""
    scale, kept = 1.0, []
    for own in message:
        total = float(own.values.sum())
        scale *= total
        if own.names and total > 0:
            kept.append(Table(own.names, own.values / total))
    return kept, scale
