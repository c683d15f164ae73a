"""Planner: the plan that answers a question, or the answer without the states that cannot occur.

Most questions are answered by a plan for their shape, whatever the values observed. Where tables are mostly zeros,
leaving out the states that the values rule out (see `pruning`) may cost less, plan and all. Which of the two to take is
decided once for each shape, by predicted cells. Small networks have one plan for all posteriors, on which evidence is
masked.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from bbn.core.budget import always_there, memory_limit
from bbn.inference.exact.cases import (
    BEARABLE,
    DEEPEST,
    Answer,
    CaseAnswer,
    best_together,
    case_variable,
    together,
)
from bbn.inference.exact.flat_model import SMALL_BYTES, FlatModel
from bbn.inference.exact.orders import Order
from bbn.inference.exact.plan import Plan, Ranking, make_plan
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
from bbn.kernels.contracts.tape import MARGINALS, SLAB
from bbn.kernels.contracts.types import Floats
from bbn.model.evidence import Findings

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
    beside
        The bytes that others take of the memory limit.
    """

    def __init__(
        self, flat: FlatModel, options: Mapping[str, Any], plans: PlanCache, beside: int = 0
    ) -> None:
        self.flat = flat
        self.beside = beside
        self.options = options
        self.plans = plans
        self.pruning: Pruning | None = None
        self.prunes: dict[Any, bool] = {}
        """Whether a shape's questions are answered without the states that cannot occur."""
        self.small: bool | None = None
        """Whether evidence is masked on the tree of the whole network; None until that is found out."""
        self._slab: int | None = None
        self._sparse: bool | None = None

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

    def ranked(
        self, question: Question, findings: Numbered, k: int, options: Mapping[str, Any]
    ) -> tuple[Ranking, float]:
        """Of a maximum: the k best assignments with ln of their ratio to the best, and ln of the best."""
        plan = self.plans.get(question)
        if plan is None or plan.untried is not None or options is not self.options:
            plan, pruned = self.plan_or_answer(question, question, findings, options, plan, k)
            if pruned is not None:
                return pruned.best(), pruned.log_evidence
            assert plan is not None
        hard, likelihoods, log_scale = findings
        found, log_probability = plan.explain(hard, likelihoods, k)
        return found, log_probability + log_scale

    def _keep(
        self, key: Any, question: Question, cost: Price, options: Mapping[str, Any], model: FlatModel
    ) -> Plan:
        plan = make_plan(model, question, cost, options["memory_limit"], self.plans, self.beside)
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
                    plan = make_plan(self.flat, question, cost, limit, self.plans, self.beside)
                    self.plans.put("masked", plan)
            self.small = small
        return self.small

    def plan_or_answer(
        self,
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        known: Plan | None = None,
        k: int = 1,
    ) -> tuple[Plan | None, Pruned | None]:
        """The plan of a shape, or, where states that cannot occur make it large, the answer without them.

        `known` is the plan that the shape has already, if it has one; of a maximum the answer is the `k` best.
        """
        if known is not None and known.untried is not None and options is self.options:
            cost, known.untried = known.untried, None
            answer = self._pruned(key, question, findings, options, cost, k)
            if answer is None:
                return known, None
            self.plans.discard(key)
            return None, answer
        pays = self.prunes.get(key)
        if pays and not (self.leaves_out(key) and options["order"] == self.options["order"]):
            pays = None
        if pays:
            answer = self._pruned(key, question, findings, options, None, k)
            if answer is not None:
                return None, answer
        if self._slab is None:
            self._slab = slab_of(self.flat)
        attempts: dict[bool, Pruned | None] = {}
        enough: Callable[[Order], bool] | None = None
        if pays is None and len(self.flat.cards) > MASKED_VARIABLES:
            attempted = partial(self._attempted, attempts, key, question, findings, options, k)

            def enough(found: Order) -> bool:
                return attempted(found) is not None

        slab = SLAB if question.maximise else self._slab
        limit = options["memory_limit"]
        cost = price(self.flat, question, options["order"], slab=slab, enough=enough, limit=limit)
        untried = None
        small = cost.bytes <= SMALL_BYTES and options["memory_limit"] is None
        fits = small or _fits(cost, options, self.beside)
        if (not fits or (cost.cells > CELLS and pays is None)) and not question.masked:
            answer = self._attempted(attempts, key, question, findings, options, k, cost)
            if answer is not None:
                return None, answer
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
        attempts: dict[bool, Pruned | None],
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        k: int,
        found: Whole,
    ) -> Pruned | None:
        """The answer without the states that cannot occur; tried if that may pay, and where the rest does not fit.

        `attempts` has the answers by whether what was found then, an order or its plan, seemed to fit the memory.
        """
        fits = _fits(found, options, self.beside)
        first = question.goal != MARGINALS and options is self.options
        pays = found.cells > (FIRST if first else 2.0) * making(self.flat)
        if (pays and not attempts) or not (fits or False in attempts):
            attempts[fits] = self._pruned(key, question, findings, options, found, k)
        return next((answer for answer in attempts.values() if answer is not None), None)

    def _pruned(
        self,
        key: Any,
        question: Question,
        findings: Numbered,
        options: Mapping[str, Any],
        cost: Whole | None,
        k: int,
    ) -> Pruned | None:
        """The answer without the states that cannot occur; None if that does not pay. `cost` is that with them."""
        if len(self.prunes) >= KEPT_SHAPES:
            self.prunes.clear()
        if self._sparse is None:
            self._sparse = bool(np.count_nonzero(self.flat.tables) < self.flat.tables.size)
        if not self._sparse:
            self.prunes[key] = False
            return None
        pruning = self.pruning
        if pruning is None:
            pruning = self.pruning = Pruning(self.flat)
            self.beside += self.flat.tables.size  # a flag for each entry
        hard, likelihoods, log_scale = findings
        answer = self._pruned_answer(pruning, key, question, hard, likelihoods, options, cost, k)
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
        k: int = 1,
    ) -> Pruned | None:
        domain = pruning.domain(hard, likelihoods)
        if domain is None:
            return _impossible(pruning)
        gone = cost is None or pruning.gone(domain, hard) > 0
        if cost is not None and not gone and cost.cells <= JOINED:
            self.prunes[key] = False
            return None
        plan, joined = pruning.kept(key, domain)
        if plan is None:
            shape = pruning.shape(key, question)
            model = pruning.restricted(domain, shape.needed)
            found = pruning.priced(model, shape, options["order"], cost, key, gone, options["memory_limit"])
            fits = cost is None or _fits(cost, options, self.beside)
            pays = found is not None and (cost is None or not fits or pruning.pays(cost, found[0]))
            if cost is not None and (fits or options is self.options):
                self.prunes[key] = pays
            if found is None or not pays:
                return None
            other, joined = found
            own = model if joined is None else joined.model
            beside = self.beside + self.flat.tables.nbytes + (0 if joined is None else model.tables.nbytes)
            if not _fits(other, options, beside):
                answer = self._by_cases(
                    pruning, question, hard, likelihoods, options, domain, own, other, k, beside
                )
                if answer is not None:
                    return answer
            plan = make_plan(own, question, other, options["memory_limit"], self.plans, beside)
            pruning.keep(key, domain, plan, joined)
        return pruning.answer(plan, joined, domain, hard, likelihoods, k)

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
        k: int,
        beside: int,
        depth: int = 0,
    ) -> Pruned | None:
        """The answer to a question whose plan does not fit the memory, case by case; None if that would not do.

        `model` is that of the states in `domain`, with variables joined, and `cost` that of the question on it.
        """
        v, cells = case_variable(model, cost.elimination, Pruning(model).left)
        if depth >= DEEPEST or cells > BEARABLE:
            return None
        limit = options["memory_limit"]
        beside += model.tables.nbytes

        def cases() -> Iterator[Pruned]:
            for code in pruning.alive(domain, v).tolist():
                given = [*hard, (v, code)]
                within = pruning.domain(given, likelihoods)
                if within is None:
                    continue
                smaller, other, joined = pruning.priced_alone(within, question, options["order"], limit)
                if not _fits(other, options, beside):
                    answer = self._by_cases(
                        pruning,
                        question,
                        given,
                        likelihoods,
                        options,
                        within,
                        smaller,
                        other,
                        k,
                        beside,
                        depth + 1,
                    )
                    if answer is not None:
                        yield answer
                        continue
                plan = make_plan(smaller, question, other, limit, self.plans, beside)
                yield pruning.answer(plan, joined, within, hard, likelihoods, k)
                del plan

        def read(case: Answer) -> Floats:
            return case.marginals() if question.goal == MARGINALS else case.joint(question.targets)

        answer = best_together(cases(), k) if question.maximise else together(cases(), read)
        return _impossible(pruning) if answer.log_evidence == -math.inf else answer


def numbered(findings: Findings, number: Mapping[str, int]) -> Numbered:
    """The findings by number, likelihoods of extreme size scaled to a maximum of 1, and the ln of the scale."""
    hard = [(number[name], code) for name, code in findings.hard.items()]
    if not findings.likelihood:
        return hard, (), 0.0
    likelihood, log_scale = [], 0.0
    for name, values in findings.likelihood.items():
        highest = float(values.max())
        if highest > 0 and not 1e-30 < highest < 1e30:
            scaled = values / highest
            if (scaled[values > 0] > 1e-300).all():  # otherwise no scale fits, and wide numbers are used
                values = scaled
                log_scale += math.log(highest)
        likelihood.append((number[name], values))
    return hard, likelihood, log_scale


def _impossible(pruning: Pruning) -> PrunedAnswer:
    """The answer where the evidence cannot occur."""
    return PrunedAnswer(pruning, None, None, None, np.empty(0), -math.inf, [])


def _fits(cost: Whole, options: Mapping[str, Any], beside: int) -> bool:
    """Whether a plan of this cost, or of cliques of so many cells, fits the memory, with what others take of it."""
    size = int(min(beside + (cost.bytes if isinstance(cost, Price) else 8 * cost.cells), sys.maxsize))
    return always_there(size, options["memory_limit"]) or size <= memory_limit(options["memory_limit"])
