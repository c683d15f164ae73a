"""The query compiler: how a question is answered, chosen by price.

Barren leaves and observed variables leave the problem first, and rules give an order: the ground plan. Where a run of
it would be long, passes that look at the values are tried as long as what they can save exceeds what trying them costs:
states that cannot occur are left out, variables that fix each other are taken as one (`filtered_query`). Otherwise one
plan serves all values of the shape; a better order is searched for where runs are long. Small networks have one plan
for all posteriors, on which evidence is masked. What a shape is answered by is found once and kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.inference.exact.domain_filtering import DomainFilter, making
from bbn.inference.exact.elimination_orders import HOPELESS, Order, greedy
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.filtered_query import FilteredQuery, Means
from bbn.inference.exact.prepared_queries import PreparedQueries, PreparedQuery, TreeQuery
from bbn.inference.exact.prices import CELL, FILTERED, WHOLE_TREE
from bbn.inference.exact.problem import (
    SMALL_BYTES,
    Answer,
    Factors,
    Question,
    Relevant,
    Values,
    pad,
    relevant,
)
from bbn.inference.exact.tree_plan import TreePlan, plan_on, plan_tree, search_plan, slab_of
from bbn.kernels.contracts.tape import MARGINALS, SLAB

MASKED = Question(masked=True, goal=MARGINALS)
"""All posteriors, with evidence masked on the tree of the whole network."""
MASKED_VARIABLES = 100
"""Networks with more variables are never that small, so they are not triangulated to find out."""
MANY = 3.0
"""The runs to come from which a plan is worth a longer search for its order."""
FIRST, AGAIN = 20.0, 2.0
"""How many times what filtering and another plan cost a run must cost for that to be tried at the first question of a
shape, and at the next: the first prepares the tables and looks for an order too."""


class Choice(NamedTuple):
    """How a shape is answered."""

    plan: TreePlan
    """Of all states."""
    filtered: FilteredQuery | None
    """Answers value by value, where that costs less."""
    untried: bool
    """Whether that has not been tried, and may pay at the next question."""


class Compiler:
    """Answers the questions that an engine is asked.

    Parameters
    ----------
    factors
        The model.
    options
        The engine's own: memory_limit and order. What another order gives is not kept.
    known
        Where what is known of shapes is kept.
    beside
        The bytes that others take of the memory limit.
    """

    def __init__(
        self,
        factors: Factors,
        options: Mapping[str, Any],
        known: PreparedQueries | None = None,
        beside: int = 0,
    ) -> None:
        self.factors, self.options = factors, options
        self.known = PreparedQueries() if known is None else known
        self.beside = beside
        self._filters: DomainFilter | None = None
        self._slab: int | None = None
        self._sparse: bool | None = None
        self._small: bool | None = None

    def answer(self, question: Question, values: Values, options: Mapping[str, Any], k: int = 1) -> Answer:
        """The answer to a question about these values; of a maximum, the k best assignments."""
        return self.prepared(question, values, options).answer(values, k)

    def prepared(self, question: Question, values: Values, options: Mapping[str, Any]) -> PreparedQuery:
        """How a shape is answered, found by the values of its first question or, if that is put off, its second."""
        query = self.known.get(question) if self._own(options) else None
        if query is None:
            query = self._prepare(question, values, options)
        elif isinstance(query, TreeQuery) and query.untried:
            query.untried = False
            filtered = self._filtered(question, values, query.executor.plan, True, self._means(options))
            if filtered is None:
                return query
            query = filtered
        else:
            return query
        # if the first values cannot occur, the next question gains nothing from what was found
        known = type(query) is TreeQuery or query.shared is not None  # type: ignore[attr-defined]
        if known and options["order"] == self.options["order"]:
            self.known.put(question, query)
        return query

    def _own(self, options: Mapping[str, Any]) -> bool:
        """Whether plans are made with these options as with the engine's own."""
        own = self.options
        if options is own:
            return True
        same = options["order"] == own["order"] and options["memory_limit"] == own["memory_limit"]
        return same and _runs(options) == _runs(own)

    def tree(
        self,
        question: Question,
        options: Mapping[str, Any],
        padded: frozenset[int] = frozenset(),
    ) -> TreeQuery:
        """One plan for all values of a shape; the tables of `padded` variables have one more slice, for gaps."""
        key = question, padded
        query = self.known.get(key)
        if isinstance(query, TreeQuery) and options["order"] == self.options["order"]:
            return query
        means = self._means(options)
        plan = plan_tree(pad(self.factors, padded), question, means.order, limit=means.limit)
        query = TreeQuery(open_plan(plan, means.limit, self.known.room, self.beside))
        if options["order"] == self.options["order"]:
            self.known.put(key, query)
        return query

    def masks(self, options: Mapping[str, Any]) -> bool:
        """Whether evidence is masked on the tree of the whole network; if it is, that is prepared here."""
        if self._small is None:
            small = False
            if len(self.factors.cards) <= MASKED_VARIABLES:
                plan = plan_tree(self.factors, MASKED, options["order"], WHOLE_TREE / CELL)
                small = plan.seconds <= WHOLE_TREE
                if small:
                    executor = open_plan(plan, options["memory_limit"], self.known.room, self.beside)
                    self.known.put(MASKED, TreeQuery(executor))
            self._small = small
        return self._small

    def _means(self, options: Mapping[str, Any]) -> Means:
        return Means(options["order"], options["memory_limit"], self.known.room, self.beside)

    def _prepare(self, question: Question, values: Values, options: Mapping[str, Any]) -> PreparedQuery:
        """How a shape that is new is answered."""
        model = self.factors
        if self._slab is None:
            self._slab = slab_of(model)
        slab = SLAB if question.maximise else self._slab
        needed = relevant(model, question)
        found = greedy(model.cards, needed.ptr, needed.scope, options["order"], HOPELESS)
        reorders = question.goal == MARGINALS and options["order"] == "auto"
        if CELL * found.cells <= FILTERED and options["memory_limit"] is None:
            plan = plan_on(model, question, needed, found, False, slab)
            if plan.bytes <= SMALL_BYTES:
                return TreeQuery(open_plan(plan), reorders)
        choice = self._chosen(question, values, needed, found, slab, options)
        if choice.filtered is not None:
            return choice.filtered
        executor = open_plan(choice.plan, options["memory_limit"], self.known.room, self.beside)
        return TreeQuery(executor, reorders, choice.untried)

    def choose(self, question: Question, values: Values, options: Mapping[str, Any]) -> Choice:
        """The plan of a shape that is new, for these values; nothing large is allocated."""
        slab = SLAB if question.maximise else slab_of(self.factors)
        needed = relevant(self.factors, question)
        found = greedy(self.factors.cards, needed.ptr, needed.scope, options["order"], HOPELESS)
        return self._chosen(question, values, needed, found, slab, options)

    def _chosen(
        self,
        question: Question,
        values: Values,
        needed: Relevant,
        found: Order,
        slab: int,
        options: Mapping[str, Any],
    ) -> Choice:
        """Of the plan of all states and that of those which the values leave, the cheaper."""
        model, means = self.factors, self._means(options)
        cost = CELL * found.cells
        ground = TreePlan(model, question, needed, found, None, 8 * found.cells, slab)
        fits = means.fit(ground.bytes)
        if not fits:
            ground = plan_on(model, question, needed, found, slab=slab)
            fits = means.fit(ground.bytes)
        first = question.goal != MARGINALS and self._own(options)
        tried = not question.masked and (
            not fits or (cost > FILTERED and cost > (FIRST if first else AGAIN) * making(model))
        )
        filtered = self._filtered(question, values, ground, fits, means) if tried else None
        if filtered is not None:
            return Choice(ground, filtered, False)
        often = _runs(options) >= MANY
        plan = search_plan(model, question, needed, found, often=often, slab=slab, limit=means.limit)
        if question.masked:
            return Choice(plan, None, False)
        if not means.fit(plan.bytes) and (fits or not tried):  # its cells alone would
            return Choice(plan, self._filtered(question, values, plan, False, means), False)
        untried = not tried and plan.seconds > FILTERED and plan.seconds > AGAIN * making(model)
        return Choice(plan, None, untried)

    def _filtered(
        self, question: Question, values: Values, whole: TreePlan, fits: bool, means: Means
    ) -> FilteredQuery | None:
        """The shape answered value by value, if leaving out states pays for these values; None if it does not."""
        filters = self.filters()
        if filters is None:
            return None
        means = means._replace(beside=self.beside)
        query = FilteredQuery(filters, question, whole.needed, means)
        return query if query.pays(values, whole.order, fits) else None

    def filters(self) -> DomainFilter | None:
        """What finds the states that can occur, made when it is first asked for; None if no table has a zero.

        None without compiled kernels too, where looking would take longer than it saves.
        """
        if self._sparse is None:
            sparse = np.count_nonzero(self.factors.tables) < self.factors.tables.size
            self._sparse = bool(sparse) and kernels.COMPILED
        if self._sparse and self._filters is None:
            self._filters = DomainFilter(self.factors)
            self.beside += self.factors.tables.size  # a flag for each entry
        return self._filters


def _runs(options: Mapping[str, Any]) -> float:
    """How often a question will be asked, as far as a budget tells."""
    budget = options.get("budget")
    return 1.0 if budget is None or budget.runs is None else budget.runs
