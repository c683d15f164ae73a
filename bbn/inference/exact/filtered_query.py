"""Filtered queries: a shape whose questions are answered without the states that their values rule out.

Each question filters the domains, goes through the other passes where runs are long, lays what is left out on an order
that all values of the shape share, runs, and lifts the answer. What does not fit the memory even so is answered case by
case.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

from bbn.core.budget import Room, always_there, memory_limit
from bbn.inference.exact.cutset_conditioning import DEEPEST, case_variable, together
from bbn.inference.exact.domain_filtering import DomainFilter, Flags, making
from bbn.inference.exact.elimination_orders import HOPELESS, Order, greedy
from bbn.inference.exact.embedding import Embedding
from bbn.inference.exact.executor import Executor, open_plan
from bbn.inference.exact.passes import passed
from bbn.inference.exact.prepared_queries import run
from bbn.inference.exact.prices import CASES, CELL, MERGED
from bbn.inference.exact.problem import (
    IMPOSSIBLE,
    Answer,
    Factors,
    Question,
    Relevant,
    Values,
    read_targets,
    relevant,
)
from bbn.inference.exact.shared_order import SharedOrder
from bbn.inference.exact.tree_plan import TreePlan, plan_tree, search_plan

GAIN = 1.6
"""How many times less a run must cost, beside making its plan: what no value can change is computed anew too."""
KEPT_BYTES = 1 << 20
"""The last plan of a shape is kept if it has no more bytes than this."""


class Means(NamedTuple):
    """What a compilation may use."""

    order: str
    """The rule of elimination, or "auto"."""
    limit: int | float | str | None
    """The memory limit, as `memory_limit=` takes it."""
    room: Room | None
    """Shared by all that run."""
    beside: int = 0
    """The bytes of the limit that others take."""

    def fit(self, size: float) -> bool:
        """Whether so many bytes fit the memory beside those of others."""
        whole = int(min(self.beside + size, sys.maxsize))
        return always_there(whole, self.limit) or whole <= memory_limit(self.limit)


class Compiled(NamedTuple):
    """What answers for some values: a plan of the states that are left, and the way back."""

    domain: Flags
    plan: TreePlan
    embedding: Embedding
    """Of the model's variables into those of the plan."""


class FilteredQuery:
    """A shape that is answered value by value; safe between threads.

    Parameters
    ----------
    filters
        What finds the states that can occur.
    question
        The shape.
    needed
        What it needs of the model of all states: a table of a variable that has one state left still counts.
    means
        What may be used.
    """

    kept = 0
    """The bytes that it is kept with: those of the last plan."""
    is_kept = False
    """Whether it is kept, and may keep the plan of its last values."""

    def __init__(self, filters: DomainFilter, question: Question, needed: Relevant, means: Means) -> None:
        self.question = question
        self.shared: SharedOrder | None = None
        """The order that its values share; None until it is known that filtering pays."""
        self._filters, self._needed, self._means = filters, needed, means
        self._asked = question._replace(targets=read_targets(filters.model, question))
        self._passes = False  # whether passes changed the first question
        self.chosen: tuple[Values, Compiled] | None = None
        """What was compiled for the first values, until they are answered."""
        self._last: tuple[bytes, Embedding, Executor] | None = None

    def pays(self, values: Values, whole: Order, fits: bool) -> bool:
        """Whether leaving out states costs less than the order of all states for these values, the first of the shape.

        What was compiled to find out answers them. `fits` says whether the plan of all states fits the memory.
        """
        domain = self._filters.domain(values)
        if domain is None:
            return True
        gone = self._filters.gone(domain, values)
        cost = CELL * whole.cells
        if not gone and cost <= MERGED:
            return False
        compiled = self._first(domain, whole, gone > 0)
        if compiled is None or (fits and cost <= GAIN * compiled.plan.seconds + making(self._filters.model)):
            self.shared = None
            return False
        self.chosen = values, compiled
        return True

    def answer(self, values: Values, k: int = 1) -> Answer:
        """The answer for these values; of a maximum, the k best assignments."""
        chosen, self.chosen = self.chosen, None
        if chosen is not None and chosen[0] is values:
            compiled = chosen[1]
        else:
            domain = self._filters.domain(values)
            if domain is None:
                return IMPOSSIBLE
            last = self._last
            if last is not None and last[0] == domain.tobytes():
                return self._read(last[2], last[1], values, k)
            compiled = self._compiled(domain)
        means = self._beside(compiled)
        if not means.fit(compiled.plan.bytes):
            found = self._by_cases(values, values, compiled, k, means)
            if found is not None:
                return found
        executor = open_plan(compiled.plan, means.limit, means.room, means.beside)
        if self.is_kept and compiled.plan.bytes <= KEPT_BYTES:
            self._last = compiled.domain.tobytes(), compiled.embedding, executor
            self._count(int(compiled.plan.bytes))
        return self._read(executor, compiled.embedding, values, k)

    @property
    def limit(self) -> int:
        """The bytes that it and others may take."""
        return memory_limit(self._means.limit)

    def keep(self) -> int:
        """Note that it is kept; the bytes that it is kept with."""
        self.is_kept = True
        return self.kept

    def drop(self) -> None:
        """Note that it is no longer kept."""
        self.is_kept, self.kept, self._last = False, 0, None

    def _count(self, size: int) -> None:
        """Count the bytes of the last plan among those that are kept."""
        if self._means.room is not None:
            self._means.room.kept += size - self.kept
            self.kept = size

    def _first(self, domain: Flags, whole: Order, gone: bool) -> Compiled | None:
        """The plan of the states that are left, by an order of their own or that of all; None if there is no gain."""
        means, asked = self._means, self._asked
        model, embedding = self._filters.filtered(domain, self._needed.factors)
        needed = relevant(model, asked)
        found = greedy(model.cards, needed.ptr, needed.scope, means.order, HOPELESS)
        if CELL * found.cells > MERGED:
            compiled = self._passed(domain, model, embedding)
            if compiled is not None:
                self._passes = True
                self.shared = SharedOrder(None, self._needed, model.cards)
                return compiled
        if not gone:
            return None
        plan = search_plan(model, asked, needed, found, once=True, limit=means.limit)
        known = whole.cells <= HOPELESS  # beyond that, the order was given up
        self.shared = SharedOrder(whole.elimination if known else None, self._needed, model.cards)
        if known:
            other = self.shared.plan_on(model, asked, whole.elimination)
            plan = other if other.cells < plan.cells else plan
        return Compiled(domain, plan, embedding)

    def _compiled(self, domain: Flags) -> Compiled:
        """The plan of the states that are left, by what is known of the shape."""
        means = self._means
        model, embedding = self._filters.filtered(domain, self._needed.factors)
        if self._passes:
            compiled = self._passed(domain, model, embedding)
            if compiled is not None:
                return compiled
        if self.shared is None:
            plan = plan_tree(model, self._asked, means.order, once=True, limit=means.limit)
        else:
            cost = making(self._filters.model)
            plan = self.shared.plan(model, self._asked, means.order, cost, means.limit)
        return Compiled(domain, plan, embedding)

    def _passed(self, domain: Flags, model: Factors, embedding: Embedding) -> Compiled | None:
        """The plan of the states that are left after all passes; None if none of them changes anything."""
        found = passed(model, self._asked)
        if found is None:
            return None
        limit = self._means.limit
        plan = plan_tree(found.factors, found.question, self._means.order, once=True, limit=limit)
        return Compiled(domain, plan, embedding.then(found.embedding))

    def _beside(self, compiled: Compiled) -> Means:
        """What may be used beside the tables that the plan was made from."""
        own = self._filters.model.tables.nbytes
        return self._means._replace(beside=self._means.beside + own)

    def _read(self, executor: Executor, embedding: Embedding, values: Values, k: int) -> Answer:
        """What a plan of these states answers; where all was done when it was made, it needs no findings."""
        given = embedding.values(values) if executor.layout.run.size else Values((), (), values.log_scale)
        found = run(executor, given, k)
        return found if found.log == -math.inf else embedding.lift(found, self.question)

    def _by_cases(
        self, values: Values, given: Values, compiled: Compiled, k: int, means: Means, depth: int = 0
    ) -> Answer | None:
        """The answer case by case, where the plan does not fit the memory; None if that would take too long.

        `given` are the findings with the states of the variables that are taken case by case.
        """
        plan = compiled.plan
        v, cells = case_variable(plan.factors, plan.elimination, DomainFilter(plan.factors).left)
        if depth >= DEEPEST or CELL * cells > CASES:
            return None
        means = means._replace(beside=means.beside + plan.factors.tables.nbytes)

        def cases() -> Iterator[Answer]:
            for code in self._filters.alive(compiled.domain, v).tolist():
                case = given._replace(hard=[*given.hard, (v, code)])
                domain = self._filters.domain(case)
                if domain is None:
                    continue
                smaller = self._alone(domain)
                if not means.fit(smaller.plan.bytes):
                    found = self._by_cases(values, case, smaller, k, means, depth + 1)
                    if found is not None:
                        yield found
                        continue
                executor = open_plan(smaller.plan, means.limit, means.room, means.beside)
                yield self._read(executor, smaller.embedding, values, k)

        return together(cases(), k)

    def _alone(self, domain: Flags) -> Compiled:
        """The plan of a case: of the states that are left, after all passes."""
        model, embedding = self._filters.filtered(domain, self._needed.factors)
        compiled = self._passed(domain, model, embedding)
        if compiled is None:
            plan = plan_tree(model, self._asked, self._means.order, once=True, limit=self._means.limit)
            compiled = Compiled(domain, plan, embedding)
        return compiled
