"""Prepared queries: what is known of each shape of question that an engine was asked, within half of its memory limit.

A shape is prepared once. Most are answered by one plan for all values, which gets better while it is used: after some
dozens of runs, and each time that it has been run four times as often, a tenth of what the runs have cost goes into a
search for a better order, and cells that are zero whatever is observed are left out. A plan is never changed; a better
one takes its place.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from bbn.core.budget import Room
from bbn.inference.exact.executor import Executor, Ranking
from bbn.inference.exact.problem import Answer, Question, Values
from bbn.inference.exact.reordering import OrderSearch
from bbn.inference.exact.runtime_prediction import tape_cells
from bbn.inference.exact.sparse_cliques import runs_before
from bbn.inference.exact.tree_plan import TreePlan, plan_on, without_zeros
from bbn.kernels.contracts.tape import MARGINALS
from bbn.kernels.contracts.types import Pairs

SHARE = 0.1
"""What may be spent on a search for an order, beside all that the runs have cost."""
SMALLER = 0.95
"""The share of its cells that a tree must at most have to be taken in place of another."""

EMPTY = np.empty(0)
_improving = threading.Lock()


class PreparedQuery(Protocol):
    """How a shape of question is answered."""

    question: Question

    def answer(self, values: Values, k: int = 1) -> Answer:
        """The answer for these values; of a maximum, the k best assignments."""

    def drop(self) -> None:
        """Note that it is no longer kept."""

    @property
    def limit(self) -> int:
        """The bytes that it and others may take."""

    def keep(self) -> int:
        """Note that it is kept; the bytes that it is kept with."""

    @property
    def kept(self) -> int:
        """The bytes that it is kept with."""


def run(executor: Executor, values: Values, k: int = 1) -> Answer:
    """What a plan answers; of a maximum, the k best assignments."""
    question = executor.plan.question
    if question.maximise:
        ranking, log = executor.explain(values.hard, values.likelihoods, k)
        return Answer(EMPTY, log + values.log_scale, None, ranking)
    found, log = executor.run(values.hard, values.likelihoods)
    starts = executor.layout.out if question.goal == MARGINALS else None
    return Answer(found, log + values.log_scale, starts)


class TreeQuery:
    """A shape that one plan answers for all values; safe between threads.

    Parameters
    ----------
    executor
        What runs the plan.
    reorders
        Whether a better order is looked for while it is used.
    untried
        Whether leaving out the states that values rule out has not been tried yet.
    """

    _search: _Reordering | None = None
    _seen = False
    """Whether cells that are always zero were looked for."""

    def __init__(self, executor: Executor, reorders: bool = False, untried: bool = False) -> None:
        self.executor = executor
        self.question = executor.plan.question
        self.untried = untried
        self.until = self._runs = runs_before(executor.layout, self.question.goal)
        """The runs until a better plan is looked for; 0 if none is."""
        self._reorders = reorders

    @property
    def kept(self) -> int:
        """The bytes that it is kept with."""
        return self.executor.kept

    def answer(self, values: Values, k: int = 1) -> Answer:
        """The answer for these values; of a maximum, the k best assignments."""
        if self.until > 0:
            self.runs_to_come(1)
        return run(self.executor, values, k)

    def run(self, pairs: Pairs) -> tuple[np.ndarray, float]:
        """What the plan reads for these codes, and ln of their weight: the short way to an answer."""
        if self.until > 0:
            self.runs_to_come(1)
        return self.executor.run(pairs)

    def explain(self, pairs: Pairs, k: int) -> tuple[Ranking, float]:
        """Of a maximum: the k best assignments for these codes with ln of their ratio to the best, and ln of that."""
        if self.until > 0:
            self.runs_to_come(1)
        return self.executor.explain(pairs, (), k)

    def runs_to_come(self, runs: int) -> Executor:
        """Note that it will be run so often; what runs it from now on."""
        if self.until > 0:
            self.until = max(0, self.until - runs)
            if self.until == 0:
                self._improve()
        return self.executor

    def whole(self) -> Executor:
        """What goes through whole cliques, from now on: blocks of rows do."""
        self.until = 0
        executor = self.executor
        if executor.plan.sparse is not None:
            self._take(executor.plan._replace(sparse=None, more=0))
        return self.executor

    @property
    def limit(self) -> int:
        """The bytes that it and others may take."""
        return self.executor.limit

    def keep(self) -> int:
        """Note that it is kept; the bytes that it is kept with."""
        self.executor.kept = self.executor.bytes
        return self.executor.kept

    def drop(self) -> None:
        """Note that it is no longer kept; what is large gives its memory back as soon as no run needs it."""
        self.executor.drop()

    def _improve(self) -> None:
        """Take a better order, and leave out the cells that are zero whatever is observed, where that pays.

        One query at a time gets better; another waits for its next run.
        """
        if not _improving.acquire(blocking=False):
            self.until = 1
            return
        try:
            self._improve_alone()
        finally:
            _improving.release()

    def _improve_alone(self) -> None:
        now = self.executor
        plan = now.plan
        if self._search is None and self._reorders:
            self._search = _Reordering(plan)
        search = self._search
        better = None if search is None else search.plan(plan, now.bytes, self._runs)
        thin = None
        if better is not None or not self._seen:
            thin = without_zeros(better or plan, now.limit - now.bytes)
            if thin is not None and thin.more and (now.large or now.bytes + thin.more > now.left()):
                thin = None
        self._seen = True
        if better is not None or thin is not None:
            self._take(thin or better or plan)
        if search is not None and thin is None and not search.ended:
            self.until = 3 * self._runs
            self._runs *= 4

    def _take(self, plan: TreePlan) -> None:
        self.executor = self.executor.replaced(plan)


class _Reordering:
    """The search for a better order of a plan, which goes on while it is run."""

    def __init__(self, plan: TreePlan) -> None:
        self._first = plan
        self._cells = plan.cells
        self._search: OrderSearch | None = None
        self._spent = 0.0

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to look for."""
        return self._search is not None and self._search.ended

    def plan(self, now: TreePlan, most: int, runs: int) -> TreePlan | None:
        """A plan of a better order than that of the present one, after so many runs; None if there is none.

        It takes no more than `most` bytes beside the tables.
        """
        first, search = self._first, self._search
        needed = first.needed
        if search is None:
            cards = [first.factors.cards]
            search = self._search = OrderSearch(cards, needed.ptr, needed.scope, first.elimination)
        earned = SHARE * runs * now.seconds
        while not search.ended and self._spent + search.cost <= earned:
            self._spent += search.cost
            search.burst()
        if search.cells > SMALLER * self._cells:
            return None
        self._cells = search.cells
        order = first.order._replace(elimination=search.elimination, cells=search.cells)
        plan = plan_on(first.factors, first.question, needed, order, slab=first.slab)
        if plan.layout is None or now.layout is None or plan.bytes - plan.shared > most:
            return None
        # what evidence cannot change is computed once, so fewer cells may still be more in each run
        return plan if tape_cells(plan.layout.run) <= SMALLER * tape_cells(now.layout.run) else None


class PreparedQueries:
    """The shapes that are known, the least recently used dropped past a number or half the limit; safe between threads.

    The other half is for runs.
    """

    def __init__(self, most: int = 512) -> None:
        self._queries: OrderedDict[Hashable, PreparedQuery] = OrderedDict()
        self._most = most
        self._lock = threading.Lock()
        self.room = Room(self)

    def get(self, key: Hashable) -> PreparedQuery | None:
        """What is known of this shape, if it is."""
        query = self._queries.get(key)
        if query is not None:
            try:  # not suppress(), which takes longer than the rest
                self._queries.move_to_end(key)
            except KeyError:
                return query  # another thread has dropped it just now
        return query

    def put(self, key: Hashable, query: PreparedQuery) -> None:
        """Keep what is known of a shape, dropping the oldest ones past half of the limit; the newest always stays."""
        with self._lock:
            if key in self._queries:
                self._forget(self._queries.pop(key))
            self._queries[key] = query
            self.room.kept += query.keep()
            self._drop(query.limit // 2, 1)

    def make_room(self, size: int) -> None:
        """Drop the oldest until those that stay take no more than `size` bytes."""
        with self._lock:
            self._drop(size, 0)

    @contextmanager
    def turn(self, size: int, limit: int) -> Iterator[None]:
        """Wait until `size` bytes of the limit are free for work that is not a run of a plan, dropping plans for it."""
        with self.room.hold(size, lambda: limit - self.room.kept):
            self.make_room(limit - size)
            yield

    def _drop(self, size: int, stay: int) -> None:
        while len(self._queries) > stay and (len(self._queries) > self._most or self.room.kept > size):
            self._forget(self._queries.popitem(last=False)[1])

    def _forget(self, query: PreparedQuery) -> None:
        self.room.kept -= query.kept
        query.drop()
