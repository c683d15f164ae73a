"""Elimination of a decision network's variables, compiled to a tape that `bbn.kernels.decide` runs.

Eliminating X replaces the tables that hold it (Jensen, Jensen and Dittmer 1994; Dechter 2000; lazily, as Madsen and
Jensen 1999): a chance variable is summed out of probabilities and of utilities weighted by them, a decision is
maximised. A table of probabilities stands for a set of conditionals with some of their variables summed out; once all
of them are, it is 1 everywhere and is not computed. So what is irrelevant to a decision never meets its utilities, and
the axes that its rule ends up with are those that matter.

The cost is that of the largest table. A step that would not fit in memory is refused when the tape is made.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import MAX_AXES, require_table
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.decisions.problem import DecisionProblem, Known, Tab
from bbn.inference.exact.runtime_prediction import predicted_cells
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import elimination_order

SUM, MAX, MIN, MOST = range(4)
"""Kinds of steps, as in the kernel `decide`."""
HEAD = 10
"""Words of a step before its cards."""
INSTEAD = "let decisions observe less, or give more evidence"
FORETOLD = 10_000_000
"""The cells of a tape from which it is worth predicting how long a run takes."""
TERM = 1.7
"""How many times longer than a cell of a junction tree's run a term of a cell takes."""


class Slot(NamedTuple):
    """Where the choices of a decision are, and the variables that they depend on."""

    start: int
    scope: tuple[int, ...]


class Answer(NamedTuple):
    """What a run gives: the expected value, the weight of the evidence and the logarithm of its scale, the choices."""

    value: float
    weight: float
    log_scale: float
    choices: Ints


class Tape(NamedTuple):
    """Steps to run on the cells of a problem, for evidence on a given set of variables."""

    words: Ints
    size: int
    """How many cells the tables given and made take."""
    n_choices: int
    slots: dict[int, Slot]
    """Where each decision's choices are."""
    patches: dict[int, tuple[Ints, Ints]]
    """For each observed variable, the words that move with its state, and by how much."""
    extra: dict[str, int]
    """Where further tables start: likelihoods and given rules, by name."""
    last: int
    """Where the weight of the evidence is; the expected value is behind it."""

    def run(
        self,
        cells: Array,
        hard: Mapping[int, int],
        extra: Mapping[str, Array] | None = None,
        memory_limit: int | float | str | None = None,
    ) -> Answer:
        """Run the steps on a copy of the problem's cells; BudgetError where logarithms are needed and do not fit."""
        words = self.words
        if hard:
            words = words.copy()
            for v, code in hard.items():
                if code and v in self.patches:
                    places, strides = self.patches[v]
                    words[places] += code * strides
        work = np.empty(self.size)
        work[: len(cells)] = cells
        if extra:
            for name, table in extra.items():
                if name in self.extra:
                    start = self.extra[name]
                    work[start : start + table.size] = table.reshape(-1)
        choices = np.zeros(self.n_choices, np.int64)
        if self.size < FORETOLD:
            log_scale = kernels.decide.run(words, work, choices)
        else:
            with predicted_cells(self.terms(), each=TERM, what="the elimination", instead=INSTEAD):
                log_scale = kernels.decide.run(words, work, choices)
        if log_scale != log_scale:  # NaN: a product left the range of a double
            what = "probabilities beyond the range of a double"
            require_table([self.size], what, INSTEAD, memory_limit, copies=4)
            log_scale = kernels.decide.run_in_logs(words, work, choices)
        return Answer(float(work[self.last + 1]), float(work[self.last]), log_scale, choices)

    def terms(self) -> float:
        """How many terms a run goes through: for each cell of a step and each state, its tables and the result."""
        words, at, terms = self.words.tolist(), 0, 0.0
        while at < len(words):
            _, length, n_axes, card, n_p, n_u, n_allowed = words[at : at + 7]
            cells = math.prod(words[at + HEAD : at + HEAD + n_axes])
            terms += float(cells) * card * (n_p + n_u + n_allowed + 1)
            at += length
        return terms


def likelihood_name(v: int) -> str:
    """The name of the table of a likelihood on a variable."""
    return f"likelihood {v}"


def rule_name(v: int) -> str:
    """The name of the table of a decision's given rule."""
    return f"rule {v}"


def allowed_name(v: int) -> str:
    """The name of the table of a decision's allowed choices."""
    return f"allowed {v}"


class Extra(NamedTuple):
    """A table that each run gives anew: over these variables, for a decision or as a likelihood."""

    name: str
    scope: tuple[int, ...]
    head: int = -1
    """The decision whose rule it is."""
    allowed: bool = False
    """Whether it says which choices are allowed."""


def compile_tape(
    problem: DecisionProblem,
    groups: Sequence[tuple[bool, Sequence[int]]],
    observed: Collection[int] = (),
    extras: Iterable[Extra] = (),
    factors: int | None = None,
    memory_limit: int | float | str | None = None,
) -> Tape:
    """The steps that eliminate groups of variables, one group after the other.

    Parameters
    ----------
    problem
        The tables.
    groups
        Each as (whether they are decisions, their numbers); within a group the order is chosen for small tables.
    observed
        Variables whose states each run gives.
    extras
        Tables that each run gives.
    factors
        None, or MIN or MOST: every utility is a factor, and decisions take the least or the greatest product.
    """
    maker = _Maker(problem, frozenset(observed), factors, memory_limit)
    for extra in extras:
        maker.add_extra(extra)
    maker.drop_irrelevant()
    for is_decision, group in groups:
        for v in maker.ordered(group):
            maker.eliminate(v, is_decision)
    return maker.finished()


class _OpenTable(NamedTuple):
    """A table on the way: where it is, its axes and, of a probability, whose distribution it still is."""

    start: int
    scope: tuple[int, ...]
    strides: tuple[int, ...]
    head: frozenset[int] | None
    """None once evidence is in it: then it does not sum to 1."""
    moves: tuple[tuple[int, int], ...] = ()
    """(observed variable, stride) pairs by which its start moves."""


class _Maker:
    """The tables at one point of the elimination, and the words of the tape so far."""

    def __init__(
        self,
        problem: DecisionProblem,
        observed: frozenset[int],
        factors: int | None,
        memory_limit: int | float | str | None,
    ) -> None:
        self.problem, self.observed, self.factors = problem, observed, factors
        self.memory_limit = memory_limit
        self.size = len(problem.cells)
        self.words: list[int] = []
        self.patches: dict[int, list[tuple[int, int]]] = {}
        self.slots: dict[int, Slot] = {}
        self.n_choices = 0
        self.extra: dict[str, int] = {}
        self.allowed: dict[int, _OpenTable] = {}
        self.probabilities = [self._given(tab, tab.head not in observed) for tab in problem.chance]
        self.utilities = [self._given(tab, False) for tab in problem.utilities]
        if factors is not None:
            self.probabilities += self.utilities
            self.utilities = []

    def _given(self, tab: Tab, normalised: bool) -> _OpenTable:
        head = frozenset((tab.head,)) if normalised else None
        if self.observed.isdisjoint(tab.scope):
            return _OpenTable(tab.start, tab.scope, tab.strides, head)
        pairs = list(zip(tab.scope, tab.strides, strict=True))
        free = [pair for pair in pairs if pair[0] not in self.observed]
        moves = tuple(pair for pair in pairs if pair[0] in self.observed)
        return _OpenTable(tab.start, tuple(v for v, _ in free), tuple(s for _, s in free), head, moves)

    def add_extra(self, extra: Extra) -> None:
        strides, step = self._layout(extra.scope)
        tab = Tab(self.size, extra.scope, strides, extra.head)
        self.extra[extra.name] = self.size
        self.size += step
        if extra.allowed:
            self.allowed[extra.scope[-1]] = self._given(tab, False)
        else:
            self.probabilities.append(self._given(tab, extra.head >= 0 and extra.head not in self.observed))

    def drop_irrelevant(self) -> None:
        """Keep the conditionals of the ancestors of utilities and evidence: the others sum to 1."""
        parents = self.problem.parents
        needed: set[int] = set(self.observed)
        stack = [v for table in self.utilities for v in table.scope]
        stack += [v for table in self.probabilities if table.head is None for v in table.scope]
        stack += list(self.observed)
        while stack:
            v = stack.pop()
            needed.add(v)
            stack += [p for p in parents[v] if p not in needed]
            needed.update(parents[v])
        self.probabilities = [t for t in self.probabilities if t.head is None or t.head <= needed]

    def ordered(self, group: Sequence[int]) -> Sequence[int]:
        """The group in an order that keeps tables small; what no table holds needs no step."""
        if len(group) <= 1:
            return group
        tables = [*self.probabilities, *self.utilities]
        held = {v for table in tables for v in table.scope}
        wanted = [v for v in group if v in held]
        if len(wanted) > 1:
            cards = {v: self.problem.cards[v] for v in sorted(held)}
            keep = held.difference(wanted)
            wanted = elimination_order([t.scope for t in tables], cards, "min-fill", keep)
        return wanted

    def eliminate(self, v: int, is_decision: bool) -> None:
        """One step."""
        if v in self.observed:
            return
        p, other_p = _parted(self.probabilities, v)
        u, other_u = _parted(self.utilities, v)
        left: set[int] | None = set()
        for table in p:
            if table.head is None:
                left = None
                break
            left |= table.head  # type: ignore[operator]
        if left is not None:
            left.discard(v)
            if not left and not u and not is_decision:
                self.probabilities = other_p
                return  # Σ_v of these is 1
        allowed = [self.allowed[v]] if is_decision and v in self.allowed else []
        tables = [*u, *p, *allowed]
        axes = dict.fromkeys([w for t in tables for w in t.scope])
        axes.pop(v, None)
        scope = tuple(axes)
        strides, cells = self._layout(scope)
        keeps_p = bool(p) and (left is None or bool(left))
        made_p = self._room(scope, cells) if keeps_p else -1
        made_u = self._room(scope, cells) if u else -1
        choice = -1
        kind = SUM
        if is_decision:
            kind = MAX if self.factors is None else self.factors
            choice = self.n_choices
            self.slots[v] = Slot(choice, scope)
            self.n_choices += cells
        self._write(kind, v, scope, p, u, allowed, (made_p, made_u, choice))
        if keeps_p:
            other_p.append(_OpenTable(made_p, scope, strides, None if left is None else frozenset(left)))
        if u:
            other_u.append(_OpenTable(made_u, scope, strides, None))
        self.probabilities, self.utilities = other_p, other_u

    def finished(self) -> Tape:
        """The tape, with a last step that multiplies and adds what is left."""
        last = self.size
        self.size += 2
        self._write(SUM, -1, (), self.probabilities, self.utilities, [], (last, last + 1, -1))
        return Tape(
            np.array(self.words, np.int64),
            self.size,
            self.n_choices,
            self.slots,
            {
                v: (np.array([w for w, _ in pairs]), np.array([s for _, s in pairs]))
                for v, pairs in self.patches.items()
            },
            self.extra,
            last,
        )

    def _room(self, scope: tuple[int, ...], cells: int) -> int:
        """Room for a table of this many cells over these variables; BudgetError if there is none."""
        if len(scope) > MAX_AXES:
            raise BudgetError(
                f"a table would have {len(scope)} axes; at most {MAX_AXES} are possible; {INSTEAD}"
            )
        if self.size + cells > 1 << 17:
            require_table([self.size + cells], "the tables of the elimination", INSTEAD, self.memory_limit)
        start = self.size
        self.size += cells
        return start

    def _layout(self, scope: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
        """The stride of each of a table's variables, and its cells."""
        cards, strides, step = self.problem.cards, [], 1
        for v in reversed(scope):
            strides.append(step)
            step *= cards[v]
        return tuple(strides[::-1]), step

    def _write(
        self,
        kind: int,
        v: int,
        scope: tuple[int, ...],
        p: Sequence[_OpenTable],
        u: Sequence[_OpenTable],
        allowed: Sequence[_OpenTable],
        made: tuple[int, int, int],
    ) -> None:
        cards, words, n = self.problem.cards, self.words, len(scope)
        tables = [*p, *u, *allowed]
        length = HEAD + n + len(tables) * (n + 2)
        card = cards[v] if v >= 0 else 1
        words += [kind, length, n, card, len(p), len(u), len(allowed), *made, *[cards[w] for w in scope]]
        place = {w: k for k, w in enumerate(scope, 1)}
        place[v] = n + 1
        for table in tables:
            if table.moves:
                for w, stride in table.moves:
                    self.patches.setdefault(w, []).append((len(words), stride))
            row = [table.start, *[0] * (n + 1)]
            for w, stride in zip(table.scope, table.strides, strict=True):
                row[place[w]] = stride
            words += row


def _parted(tables: list[_OpenTable], v: int) -> tuple[list[_OpenTable], list[_OpenTable]]:
    """The tables that hold a variable, and the others."""
    own: list[_OpenTable] = []
    others: list[_OpenTable] = []
    for table in tables:
        (own if v in table.scope else others).append(table)
    return own, others


def evidence_extras(given: Known) -> list[Extra]:
    """The likelihoods of the evidence, as tables."""
    return [Extra(likelihood_name(v), (v,)) for v in given.likelihoods]


def evidence_tables(given: Known) -> dict[str, Array]:
    """Their entries, by name; each scaled to 1 at most."""
    return {likelihood_name(v): weights for v, weights in given.likelihoods.items()}
