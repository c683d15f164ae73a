"""Planner: the plan that answers a question, or the answer without the states that cannot occur.

Most questions are answered by a plan for their shape, whatever the values observed. Where tables are mostly zeros,
leaving out the states that the values rule out (see `pruning`) may cost less, plan and all. Which of the two to take is
decided once for each shape, by predicted cells. Small networks have one plan for all posteriors, on which evidence is
masked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from bbn.core.budget import memory_limit
from bbn.inference.exact.cases import BEARABLE, DEEPEST, Answer, CaseAnswer, case_variable, together
from bbn.inference.exact.flat_model import FlatModel
from bbn.inference.exact.orders import HUGE
from bbn.inference.exact.plan import Plan, make_plan
from bbn.inference.exact.plan_cache import PlanCache
from bbn.inference.exact.plan_improvement import PlanImprovement
from bbn.inference.exact.pricing import Price, Question, price, slab_of
from bbn.inference.exact.pruning import (
    CELLS,
    FIRST,
    JOINED,
    Flags,
    Hard,
    Likelihoods,
    PrunedAnswer,
    Pruning,
    Whole,
    making,
)
from bbn.kernels.contracts.tape import MARGINALS, QUERY
from bbn.kernels.contracts.types import Floats

MASKED_CELLS = 2000.0
"""With at most MASKED_CELLS cells, a masked run of the network's whole tree is cheaper than compiling another tree."""
MASKED_VARIABLES = 100
"""Networks with more variables are never that small, so they are not triangulated to find out. Those with no more
hardly ever have so many cells that pruning is worth a look during the search for an order."""
KEPT_SHAPES = 512
"""The shapes of which it is known whether pruning pays."""

Pruned = PrunedAnswer | CaseAnswer
"""An answer without the states that cannot occur."""
Numbered = tuple[Hard, Likelihoods, float]
"""Findings by number: hard ones, likelihoods, and the ln of what the likelihoods were divided by."""


class Planner:
    """Finds the plan of each question that an engine is asked, or answers it without the states that cannot occur.

    Parameters
    ----------
    flat
        The model.
    options
        The engine's own; plans made with another order are not kept.
    plans
        Where plans are kept.
    """

    def __init__(self, flat: FlatModel, options: Mapping[str, Any], plans: PlanCache) -> None:
        self.flat = flat
        self.options = options
        self.plans = plans
        self.pruning: Pruning | None = None
        self.prunes: dict[Any, bool] = {}
        """Whether a shape's questions are answered without the states that cannot occur."""
        self.small: bool | None = None
        """Whether evidence is masked on the tree of the whole network; None until that is found out."""
        self._slab: int | None = None

    def compile(
        self, key: Any, question: Question, options: Mapping[str, Any], model: FlatModel | None = None
    ) -> Plan:
        """The plan of a question, made and kept."""
        model = model or self.flat
        return self._keep(
            key,
            question,
            price(model, question, options["order"], limit=options["memory_limit"]),
            options,
            model,
        )

    def _keep(
        self, key: Any, question: Question, cost: Price, options: Mapping[str, Any], model: FlatModel
    ) -> Plan:
        plan = make_plan(model, question, cost, options["memory_limit"], self.plans)
        if options["order"] == self.options["order"]:
            self.plans.put(key, plan)
        return plan

    def masks(self, options: Mapping[str, Any]) -> bool:
        """Whether evidence is masked on the tree of the whole network; if it is, that plan is made here."""
        if self.small is None:
            small = False
            if len(self.flat.cards) <= MASKED_VARIABLES:
                question = Question(masked=True, goal=MARGINALS)
                cost = price(self.flat, question, options["order"], MASKED_CELLS)
                small = cost.cells <= MASKED_CELLS
                if small:
                    limit = options["memory_limit"]
                    self.plans.put("masked", make_plan(self.flat, question, cost, limit, self.plans))
            self.small = small
        return self.small

    def plan_or_answer(
        self,
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        known: Plan | None = None,
    ) -> tuple[Plan | None, Pruned | None]:
        """The plan of a shape, or, where states that cannot occur make it large, the answer without them.

        `known` is the plan that the shape has already, if it has one.
        """
        if known is not None and known.untried is not None and options is self.options:
            cost, known.untried = known.untried, None
            answer = self._pruned(key, question, findings, options, cost)
            if answer is None:
                return known, None
            self.plans.discard(key)
            return None, answer
        pays = self.prunes.get(key)
        if pays and not (self.leaves_out(key) and options["order"] == self.options["order"]):
            pays = None
        if pays:
            answer = self._pruned(key, question, findings, options, None)
            if answer is not None:
                return None, answer
        if self._slab is None:
            self._slab = slab_of(self.flat)
        attempts: list[Pruned | None] = []
        enough = None
        if pays is None and len(self.flat.cards) > MASKED_VARIABLES:
            enough = partial(self._attempted, attempts, key, question, findings, options)
        limit = options["memory_limit"]
        cost = price(self.flat, question, options["order"], slab=self._slab, enough=enough, limit=limit)
        untried = None
        if cost.cells > CELLS and pays is None and not question.masked:
            if self._attempted(attempts, key, question, findings, options, cost):
                return None, attempts[0]
            if not attempts and cost.cells > 2 * making(self.flat):
                untried = cost
        plan = self._keep(key, question, cost, options, self.flat)
        if untried is not None:
            plan.untried = untried
        if question.goal == MARGINALS and options["order"] == "auto":
            plan.improvement = PlanImprovement(self.flat, question, cost, self._slab)
        return plan, None

    def _attempted(
        self,
        attempts: list[Pruned | None],
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        found: Whole,
    ) -> bool:
        """Whether there is an answer without the states that cannot occur, the only attempt; tried if that may pay."""
        first = question.goal == QUERY and options is self.options
        if not attempts and found.cells > (FIRST if first else 2.0) * making(self.flat):
            attempts.append(self._pruned(key, question, findings, options, found))
        return bool(attempts) and attempts[0] is not None

    def _pruned(
        self,
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        cost: Whole | None,
    ) -> Pruned | None:
        """The answer without the states that cannot occur; None if that does not pay. `cost` is that with them."""
        pruning = self.pruning
        if pruning is None:
            pruning = self.pruning = Pruning(self.flat)
        if len(self.prunes) >= KEPT_SHAPES:
            self.prunes.clear()
        if not pruning.sparse:
            self.prunes[key] = False
            return None
        hard, likelihoods, log_scale = findings
        answer = self._pruned_answer(pruning, key, question, hard, likelihoods, options, cost)
        return answer and answer._replace(log_evidence=answer.log_evidence + log_scale)

    def leaves_out(self, key: Any) -> bool:
        """Whether a shape's questions are answered without the states that cannot occur, on a tree that is known."""
        return bool(self.prunes.get(key)) and self.pruning is not None and self.pruning.knows(key)

    def pruned_again(self, key: Any, question: Question, hard: Hard) -> Pruned | None:
        """The answer to a question of a shape that was asked about before; None if it needs a plan."""
        if self.pruning is None or not self.leaves_out(key):
            return None
        return self._pruned_answer(self.pruning, key, question, hard, (), self.options, None)

    def _pruned_answer(
        self,
        pruning: Pruning,
        key: Any,
        question: Question,
        hard: Hard,
        likelihoods: Likelihoods,
        options: Mapping[str, Any],
        cost: Whole | None,
    ) -> Pruned | None:
        domain = pruning.domain(hard, likelihoods)
        if domain is None:
            return PrunedAnswer(pruning, None, None, None, np.empty(0), -math.inf)
        gone = cost is None or pruning.gone(domain, hard) > 0
        if cost is not None and not gone and cost.cells <= JOINED:
            self.prunes[key] = False
            return None
        plan, joined = pruning.kept(key, domain)
        if plan is None:
            shape = pruning.shape(key, question)
            model = pruning.restricted(domain, shape.needed)
            found = pruning.priced(model, shape, options["order"], cost, key, gone, options["memory_limit"])
            pays = found is not None and (cost is None or pruning.pays(cost, found[0]))
            if cost is not None:
                self.prunes[key] = pays
            if found is None or not pays:
                return None
            other, joined = found
            own = model if joined is None else joined.model
            if other.cells > HUGE and other.bytes > memory_limit(options["memory_limit"]):
                answer = self._by_cases(pruning, question, hard, likelihoods, options, domain, own, other)
                if answer is not None:
                    return answer
            plan = make_plan(own, question, other, options["memory_limit"], self.plans)
            pruning.keep(key, domain, plan, joined)
        values, log_evidence = pruning.run(plan, domain, hard, likelihoods)
        return PrunedAnswer(pruning, plan, joined, domain, values, log_evidence)

    def _by_cases(
        self,
        pruning: Pruning,
        question: Question,
        hard: Hard,
        likelihoods: Likelihoods,
        options: Mapping[str, Any],
        domain: Flags,
        model: FlatModel,
        cost: Price,
        depth: int = 0,
    ) -> CaseAnswer | None:
        """The answer to a question whose plan does not fit the memory, case by case; None if that would not do.

        `model` is that of the states in `domain`, with variables joined, and `cost` that of the question on it.
        """
        v, cells = case_variable(model, cost.elimination, Pruning(model).left)
        if depth >= DEEPEST or cells > BEARABLE:
            return None
        limit = options["memory_limit"]

        def cases() -> Iterator[PrunedAnswer | CaseAnswer]:
            for code in pruning.alive(domain, v).tolist():
                given = [*hard, (v, code)]
                within = pruning.domain(given, likelihoods)
                if within is None:
                    continue
                smaller, other, joined = pruning.priced_alone(within, question, options["order"], limit)
                if other.cells > HUGE and other.bytes > memory_limit(limit):
                    answer = self._by_cases(
                        pruning, question, given, likelihoods, options, within, smaller, other, depth + 1
                    )
                    if answer is not None:
                        yield answer
                        continue
                plan = make_plan(smaller, question, other, limit, self.plans)
                values, log_evidence = pruning.run(plan, within, hard, likelihoods)
                yield PrunedAnswer(pruning, plan, joined, within, values, log_evidence)
                del plan

        def read(case: Answer) -> Floats:
            return case.marginals() if question.goal == MARGINALS else case.joint(question.targets)

        return together(cases(), read)
