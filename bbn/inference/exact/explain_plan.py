"""Explain plan: how a question would be answered, why so, and what it takes; as EXPLAIN ANALYZE says of a database.

The compiler goes through its passes and plans as it does for an answer, but nothing large is allocated unless the plan
is to be run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bbn import kernels
from bbn.core.budget import memory_limit, show_bytes
from bbn.core.display import counted
from bbn.core.errors import EvidenceError, nearest
from bbn.core.limits import Budget
from bbn.inference.exact.domain_filtering import DomainFilter
from bbn.inference.exact.elimination_orders import HOPELESS, greedy
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.junction_tree import JunctionTree
from bbn.inference.exact.passes import PASSES, passed
from bbn.inference.exact.prepared_queries import run as run_plan
from bbn.inference.exact.prices import CELL, FILTERED, MERGED
from bbn.inference.exact.problem import Factors, Question, Values, numbered, relevant, shape
from bbn.inference.exact.query_compiler import MASKED
from bbn.inference.exact.runtime_prediction import predicted_seconds, tape_cells
from bbn.inference.exact.tree_plan import TreePlan, largest_clique, plan_tree
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS
from bbn.model.evidence import Evidence, Model, check_targets
from bbn.results.query_plan import PassReport, PlanReport, QueryPlan, Spent, show_seconds

KINDS = ("query", "posteriors", "mpe", "map", "log_likelihood", "predict")
"""What may be asked about."""


def explain_plan(
    model: Model,
    targets: str | Sequence[str] | None = None,
    evidence: Evidence | None = None,
    kind: str | None = None,
    run: bool = False,
    budget: Budget | None = None,
) -> QueryPlan:
    """How a question would be answered: the passes, the plan, those that were rejected, with their prices.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        What is asked about.
    targets : str or sequence of str, optional
        The variables asked for; of "query" and "map".
    evidence : mapping, optional
        Variable name to finding, as in `BayesianNetwork.query`.
    kind : {"query", "posteriors", "mpe", "map", "log_likelihood", "predict"}, optional
        The question; by default "query" where there are targets, else "posteriors". Of "log_likelihood" and "predict"
        the evidence names the columns that a row has.
    run : bool, default False
        Whether to run the plan, and say what it took.
    budget : Budget, optional
        What the answer may take.

    Returns
    -------
    QueryPlan
        Prints as a report; `to_dict()` for machines.

    Raises
    ------
    EvidenceError
        A target, variable or state is unknown, or a kind of question.
    ImpossibleEvidenceError
        The values observed cannot occur together.

    Examples
    --------
    >>> import bbn
    >>> plan = explain_plan(bbn.example("asia"), "lung", {"xray": "yes"})
    >>> [one.name for one in plan.passes]
    ['evidence slicing', 'barren leaves', 'domain filtering', 'variable merging']
    >>> plan.plan.name, plan.plan.cells
    ('tree', 16.0)
    """
    options = {} if budget is None else {"budget": budget}
    engine = JunctionTree(model, **options).discrete  # type: ignore[arg-type]
    model = engine.model
    kind = ("posteriors" if targets is None else "query") if kind is None else kind
    if kind not in KINDS:
        raise EvidenceError(f"no kind of question {kind!r}{nearest(kind, KINDS)}")
    names = () if targets is None else check_targets(model, targets)
    findings = engine._with_certain(engine._findings(evidence, engine.options))
    goal = MARGINALS if kind == "posteriors" else COLLECTED if kind == "mpe" else 0
    wanted = tuple(engine.flat.number[name] for name in names if name not in findings.hard)
    question = shape(findings, engine.flat.number, wanted, goal)
    values = numbered(findings, engine.flat.number)
    return _Explainer(engine, question, values, kind, names).report(run)


class _Explainer:
    """Goes through passes and plans for one question."""

    def __init__(
        self, engine: JunctionTree, question: Question, values: Values, kind: str, names: Sequence[str]
    ) -> None:
        self.engine, self.question, self.values = engine, question, values
        self.kind, self.names = kind, names
        self.flat, self.options = engine.flat, engine.options
        self.limit = memory_limit(self.options["memory_limit"])
        self.one_row = kind not in ("log_likelihood", "predict")

    def report(self, run: bool) -> QueryPlan:
        """The passes, the plan and the others."""
        masked = self.kind == "posteriors" and self.engine.compiler.masks(self.options)
        passes, question = [*self.by_shape(masked)], MASKED if masked else self.question
        rejected: list[PlanReport] = []
        if masked or not self.one_row:
            begun = time.perf_counter()
            plan = plan_tree(self.flat, question, self.options["order"], limit=self.options["memory_limit"])
            making = time.perf_counter() - begun
            reason = (
                "the tree is so small that evidence is masked on it"
                if masked
                else "rows bring values of their own"
            )
            passes += [PassReport(name, None, None, 0.0, f"not tried: {reason}") for name in LATER]
            used = plan
        else:
            begun = time.perf_counter()
            choice = self.engine.compiler.choose(question, self.values, self.options)
            making = time.perf_counter() - begun
            filtered = choice.filtered.chosen if choice.filtered is not None else None
            if choice.filtered is not None and filtered is None:
                raise self.engine._impossible(
                    self.engine._findings(self.evidence(), self.options), self.evidence(), self.options
                )
            passes += self.by_values(choice.plan.cells, filtered is not None)
            plan = used = choice.plan if filtered is None else filtered[1].plan
            if filtered is not None:
                whole = choice.plan
                if whole.layout is None:
                    whole = plan_tree(self.flat, question, "min-fill", HOPELESS)
                rejected.append(self.priced("tree of all states", whole, self.against(whole)))
        rejected.append(self.enumeration())
        actual = self.ran(used, making) if run else None
        predicted = self.predicted(used)
        name = "tree" if used.bytes <= self.limit else "cutset conditioning or a refusal"
        largest, cells, cliques = largest_clique(used)
        size = f"{cells:,.0f}" if cells < 1e15 else f"{cells:.3g}"
        over = counted(len(largest), "variable")
        note = f"{counted(cliques, 'clique')}, the largest {size} cells over {over}"
        if largest:
            note += f" ({', '.join(largest[:3])}{', …' if len(largest) > 3 else ''})"
        return QueryPlan(
            self.asked(),
            self.described(),
            tuple(passes),
            PlanReport(name, used.cells, used.bytes, predicted.run, note),
            tuple(rejected),
            predicted,
            actual,
        )

    def evidence(self) -> dict[str, Any]:
        """The hard findings by name."""
        variables = {v.name: v for v in self.engine.model.variables}
        named = ((self.flat.names[v], code) for v, code in self.values.hard)
        return {name: variables[name].states[code] for name, code in named if name in variables}

    def asked(self) -> str:
        """The question in words."""
        n, seen = len(self.engine.model.variables), len(self.question.sliced | self.question.likelihood)
        what = (
            f"{self.kind} of {', '.join(self.names)}"
            if self.names
            else f"{self.kind} of {counted(n - seen, 'variable')}"
        )
        limit = self.options["memory_limit"]
        return f"{what}, {seen} observed" + ("" if limit is None else f"; limit {show_bytes(self.limit)}")

    def described(self) -> str:
        """The model in words."""
        full = np.count_nonzero(self.flat.tables) / max(self.flat.tables.size, 1)
        hidden = len(self.flat.cards) - len(self.engine.model.variables)
        chains = f", {hidden} variables within chains of noisy maxima and functions" if hidden else ""
        return f"{len(self.flat.heads)} tables, {self.flat.tables.size:,} entries, {100 * full:.0f} % not zero{chains}"

    def cells(self, model: Factors, question: Question) -> float:
        """The cells of the tree by rules alone."""
        needed = relevant(model, question)
        return greedy(model.cards, needed.ptr, needed.scope, self.options["order"], HOPELESS).cells

    def by_shape(self, masked: bool) -> Sequence[PassReport]:
        """What evidence slicing and barren leaves do."""
        every = Question(goal=COLLECTED)
        sliced = self.question._replace(goal=COLLECTED, targets=())
        cells = [
            self.cells(self.flat, every),
            self.cells(self.flat, sliced),
            self.cells(self.flat, self.question),
        ]
        states = int(self.flat.cards.sum())
        seen = sorted(self.question.sliced)
        left = states - int(self.flat.cards[seen].sum())
        note = counted(len(seen), "variable")
        slicing = PassReport("evidence slicing", (cells[0], cells[1]), (states, left), 0.0, note)
        if masked:
            slicing = slicing._replace(cells=None, note="not tried: evidence is masked on a small tree")
        if self.question.maximise:
            reason = "not for a maximum: max P(x | parents) depends on the parents"
            return slicing, PassReport("barren leaves", None, None, 0.0, reason)
        if self.question.goal == MARGINALS:
            return slicing, PassReport("barren leaves", None, None, 0.0, "none: every variable is read")
        needed = relevant(self.flat, self.question)
        there = {*needed.scope.tolist(), *self.question.targets}
        kept = int(self.flat.cards[sorted(there)].sum())
        gone = len(self.flat.heads) - len(needed.factors)
        barren = PassReport("barren leaves", (cells[1], cells[2]), (left, kept), 0.0, counted(gone, "table"))
        return slicing, barren

    def by_values(self, cost: float, used: bool) -> Sequence[PassReport]:
        """What domain filtering and the passes after it do."""
        needed = relevant(self.flat, self.question)
        reason = "no table has a zero"
        some = np.count_nonzero(self.flat.tables) < self.flat.tables.size
        if not kernels.COMPILED:
            reason = "needs the compiled kernels"
        elif some and not used:
            small = CELL * cost <= FILTERED
            reason = (
                f"not tried: a run takes about {show_seconds(CELL * cost)}"
                if small
                else "saves less than it costs"
            )
        if not used:
            return [PassReport(name, None, None, 0.0, reason) for name in LATER]
        begun = time.perf_counter()
        filters = self.engine.compiler.filters() or DomainFilter(self.flat)
        domain = filters.domain(self.values)
        assert domain is not None
        model, _ = filters.filtered(domain, needed.factors)
        took = time.perf_counter() - begun
        before = self.cells(self.flat, self.question)
        after = self.cells(model, self.question)
        free = [v for v in sorted({*needed.scope.tolist()}) if v not in self.question.sliced]
        single = int((model.cards[free] == 1).sum())
        states = int(self.flat.cards[free].sum()), int(model.cards[free].sum())
        note = f"{single} of {len(free)} variables have one state left"
        found = [PassReport("domain filtering", (before, after), states, took, note)]
        if CELL * after <= MERGED:
            reason = f"not tried: a run takes about {show_seconds(CELL * after)}"
            return [*found, *(PassReport(one.name, None, None, 0.0, reason) for one in PASSES)]
        begun = time.perf_counter()
        other = passed(model, self.question)
        took = time.perf_counter() - begun
        for one in PASSES:
            if other is None or one.name not in other.names:
                found.append(PassReport(one.name, None, None, 0.0, "changes nothing"))
                continue
            last = self.cells(other.factors, other.question)
            left = states[1], int(other.factors.cards[free].sum())
            found.append(PassReport(one.name, (after, last), left, took, ""))
        return found

    def against(self, whole: TreePlan) -> str:
        """Why the tree of all states was not taken."""
        if whole.bytes > self.limit:
            return "over the limit"
        return f"a run takes about {show_seconds(CELL * whole.cells)}"

    def priced(self, name: str, plan: TreePlan, note: str) -> PlanReport:
        """A plan that was rejected."""
        return PlanReport(name, plan.cells, plan.bytes, CELL * plan.cells, note)

    def enumeration(self) -> PlanReport:
        """The joint of everything that is not observed, written out."""
        free = [v for v in range(len(self.flat.cards)) if v not in self.question.sliced]
        cells = float(np.prod(self.flat.cards[free].astype(np.float64)))
        note = "over the limit" if 8 * cells > self.limit else "every cell of the joint"
        return PlanReport("enumeration", cells, 8 * cells, CELL * cells, note)

    def predicted(self, plan: TreePlan) -> Spent:
        """What is foreseen of a plan, on this machine."""
        if plan.layout is None:
            return Spent(math.inf, math.inf, plan.bytes)
        whole, often = predicted_seconds(plan.layout), tape_cells(plan.layout.run)
        share = often / max(often + tape_cells(plan.layout.once), 1.0)
        return Spent((1 - share) * whole, share * whole, plan.bytes)

    def ran(self, plan: TreePlan, making: float) -> Spent:
        """What a plan took."""
        question = plan.question
        begun = time.perf_counter()
        executor = open_plan(plan, self.options["memory_limit"])
        making += time.perf_counter() - begun
        given = self.values
        if question.sliced != self.question.sliced or plan.factors is not self.flat:
            given = Values([(v, 0) for v in sorted(question.sliced)], (), 0.0)
        took = math.inf
        for _ in range(3):
            begun = time.perf_counter()
            run_plan(executor, given)
            took = min(took, time.perf_counter() - begun)
        return Spent(making, took, plan.bytes)


LATER = ("domain filtering", *(one.name for one in PASSES))
