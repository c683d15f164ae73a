"""JunctionTree: exact inference, compiled once per shape of question and run many times.

Evidence is taken by slicing it out before triangulating (which prunes the graph), or, where the whole network's tree
is so small that triangulating again would cost more than it saves, by masking states on that one tree. Messages are
passed to the root and back (Jensen, Lauritzen and Olesen 1990); a query needs the first half alone, with the root at
the targets. The cost is that of the cliques' cells, which `stats` predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import Ledger, always_there, memory_limit
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.engine import Engine, listed_bytes
from bbn.inference.exact.elimination import VariableElimination
from bbn.inference.exact.explanations import Explanations, best_explanations
from bbn.inference.exact.flat_model import FlatModel, cells_of, flatten
from bbn.inference.exact.loose_effects import LooseEffects
from bbn.inference.exact.plan import Plan
from bbn.inference.exact.plan_cache import PlanCache
from bbn.inference.exact.plan_choice import Planner, numbered
from bbn.inference.exact.pricing import Question
from bbn.inference.exact.repeats import Repeats
from bbn.inference.exact.tree_stats import Stats, tree_stats
from bbn.inference.rows.batch import RowAnswers, answer_rows, pad
from bbn.kernels.contracts.tape import MARGINALS
from bbn.kernels.contracts.types import Ints
from bbn.model.evidence import Evidence, Findings, Model
from bbn.model.expansion import quiet_chains
from bbn.model.options import Order, OrderedOptions
from bbn.results.posterior import Assignment, Posterior, Posteriors, Slot

JOINT_CELLS = 1_000_000
"""Marginal MAP over more joint states than this goes by constrained elimination, not by their joint."""

NONE: frozenset[int] = frozenset()

Slots = dict[str, Slot]


class JunctionTree(Engine):
    """The junction tree: exact, and fast when asked again.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    memory_limit : int, float or str, optional
        The most bytes that it may take for the plans it keeps and what its threads compute, such as ``"2 GB"``;
        BudgetError beyond. By default BBN_MEMORY_LIMIT, or half of the memory there is.
    time_limit : float, optional
        The most seconds that one question may take; TimeLimitError beyond.
    order : {"auto", "min-fill", "weighted-min-fill", "min-weight", "min-neighbours"}, default "auto"
        The rule that chooses the elimination order; "auto" takes the cheapest of several.

    See Also
    --------
    BayesianNetwork.query : Asks the engine that the network keeps.

    Examples
    --------
    >>> import bbn
    >>> engine = JunctionTree(bbn.example("burglary"))
    >>> round(engine.query("Burglary", {"JohnCalls": "yes", "MaryCalls": "yes"})["yes"], 6)
    0.284172
    """

    name = "junction-tree"
    searches = True
    defaults: Mapping[str, Any] = {"memory_limit": None, "time_limit": None, "order": "auto"}  # type: ignore[misc]

    def __init__(self, model: Model, **options: Unpack[OrderedOptions]) -> None:
        super().__init__(model, **options)

    def _prepare(self) -> None:
        self.flat: FlatModel = flatten(self.model, self.options["memory_limit"])
        self._plans = PlanCache()
        self._slots: dict[object, Slots] = {}
        self._planner = Planner(self.flat, self.options, self._plans)
        self._repeats: Repeats | None = None
        self._asked = False
        chains = len(self.flat.cards) > len(self.model.variables)
        self._quiet = quiet_chains(self.model) if chains else {}  # type: ignore[arg-type]
        self._loose = LooseEffects(self) if chains else None
        self._explanations = Explanations(self.model, self._planner) if chains else None

    def stats(self) -> Stats:
        """The size of the tree without evidence, predicted: nothing large is allocated."""
        return tree_stats(self.discrete.flat, self.options["order"], self.options["memory_limit"])

    def rows(
        self,
        codes: Mapping[str, NDArray[Any]],
        n_rows: int,
        targets: Sequence[str] = (),
        everything: bool = False,
        n_jobs: int | None = None,
        ledger: Ledger | None = None,
        **options: Unpack[OrderedOptions],
    ) -> RowAnswers:
        """The answers to many rows of evidence at once.

        Parameters
        ----------
        codes
            Variable name to a column of codes; the code equal to the variable's card means missing.
        n_rows
            The number of rows.
        targets
            The variables whose joint is asked for, none of them a column.
        everything
            Ask for the marginal of each variable instead.
        n_jobs
            Threads; None is OMP_NUM_THREADS, or else the number of cores. Fewer are taken where the memory limit
            asks for that.
        ledger
            What the call has taken of the memory limit already.
        memory_limit, time_limit, order
            Options of the engine, for this call alone.

        Returns
        -------
        RowAnswers
            The joint of the targets (or all marginals) and ln P(evidence), row by row.
        """
        if self.numbers is not None:
            return self.discrete.rows(codes, n_rows, targets, everything, n_jobs, ledger, **options)
        settings = self._with(options)
        ledger = ledger or Ledger(settings["memory_limit"])
        ledger.reserve(self.flat.tables.nbytes, "an engine's copy of the model's tables")

        def planner(model: FlatModel, question: Question, padded: frozenset[int]) -> Plan:
            key = ("rows", question, padded)
            return self._plans.get(key) or self._planner.compile(key, question, settings, pad(model, padded))

        numbers = [self.flat.number[name] for name in targets]
        return answer_rows(self.flat, planner, codes, n_rows, numbers, everything, n_jobs, ledger)

    def _query(
        self, targets: str | Sequence[str], evidence: Evidence | None, settings: Mapping[str, Any]
    ) -> Posterior:
        try:
            return self._asked_query(targets, evidence, settings)
        except BudgetError as refusal:
            raise self._advised(refusal, targets, evidence) from None

    def _advised(
        self, refusal: BudgetError, targets: str | Sequence[str] | None, evidence: Evidence | None
    ) -> BudgetError:
        """The refusal, with a method that would answer."""
        from bbn.inference.sampling.pilot import advised, is_advisable

        return advised(refusal, self.model, targets, evidence) if is_advisable(refusal) else refusal

    def _asked_query(
        self, targets: str | Sequence[str], evidence: Evidence | None, settings: Mapping[str, Any]
    ) -> Posterior:
        if settings is not self.options:
            return super()._query(targets, evidence, settings)
        repeats = self._known_questions()
        if repeats is None:
            return super()._query(targets, evidence, settings)
        answer = repeats.query(targets, evidence)
        if answer is None:
            answer = super()._query(targets, evidence, settings)
            repeats.note_query(targets, evidence, self._planner.leaves_out)
        return answer

    def _posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        try:
            return self._asked_posteriors(evidence, settings)
        except BudgetError as refusal:
            raise self._advised(refusal, None, evidence) from None

    def _asked_posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        if settings is not self.options:
            return super()._posteriors(evidence, settings)
        repeats = self._known_questions()
        if repeats is None:
            return super()._posteriors(evidence, settings)
        answers = repeats.posteriors(evidence)
        if answers is None:
            answers = super()._posteriors(evidence, settings)
            repeats.note_posteriors(
                evidence, bool(self._planner.small), self._planner.leaves_out, self._slots_of
            )
        return answers

    def _known_questions(self) -> Repeats | None:
        """The questions asked before; None at the first, which need not be noted."""
        if self._repeats is None:
            if self._asked:
                self._repeats = Repeats(
                    self.model, self.flat.number, self._plans, self._quiet, self._planner.pruned_again
                )
            self._asked = True
        return self._repeats

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        findings = self._with_certain(findings)
        hard, likelihood = findings.hard, findings.likelihood
        number = self.flat.number
        key = (targets, frozenset(hard), frozenset(likelihood) if likelihood else None)
        given = numbered(findings, number)
        plan = self._plans.get(key)
        if plan is None or plan.untried is not None or options is not self.options:
            question = Question(
                frozenset(map(number.__getitem__, hard)),
                frozenset(map(number.__getitem__, likelihood)) if likelihood else NONE,
                False,
                tuple(map(number.__getitem__, targets)),
            )
            plan, pruned = self._planner.plan_or_answer(key, question, given, options, plan)
            if pruned is not None:
                return self._shaped(targets, pruned.joint(question.targets)), pruned.log_evidence
            assert plan is not None
        numbered_hard, numbered_likelihood, log_scale = given
        values, log_evidence = plan.run(numbered_hard, numbered_likelihood)
        return self._shaped(targets, values), log_evidence + log_scale

    def _shaped(self, targets: tuple[str, ...], values: Array) -> Array:
        """The flat joint of targets with an axis for each."""
        if len(targets) > 1:
            return values.reshape([self.model.variable(name).card for name in targets])
        return values if targets else np.ones(())

    def _marginals(self, findings: Findings, options: Mapping[str, Any]) -> Posteriors:
        hard, likelihood = findings.hard, findings.likelihood
        number = self.flat.number
        observed = frozenset(hard)
        if self._planner.masks(options):
            key: Any = "masked"
            question = Question(masked=True, goal=MARGINALS)
        else:
            findings = self._with_certain(findings)
            hard, likelihood = findings.hard, findings.likelihood
            # with what the findings make certain: that depends on their values, and is sliced out too
            key = (frozenset(hard), frozenset(likelihood) if likelihood else None)
            question = Question(
                frozenset(map(number.__getitem__, hard)),
                frozenset(map(number.__getitem__, likelihood)),
                goal=MARGINALS,
            )
        if self._loose is not None and not question.masked:
            loose = self._loose.left_out(key, question, findings, options["order"])
            if loose:
                return self._loose.marginals(loose, findings, None if options is self.options else options)
        given = numbered(findings, number)
        plan = self._plans.get(key)
        if plan is None or options is not self.options:
            plan, pruned = self._planner.plan_or_answer(key, question, given, options)
            if pruned is not None:
                return Posteriors(
                    self._slots_of(observed, key, None), pruned.marginals(), pruned.log_evidence
                )
            assert plan is not None
        numbered_hard, numbered_likelihood, log_scale = given
        flat, log_evidence = plan.run(numbered_hard, numbered_likelihood)
        return Posteriors(self._slots_of(observed, key, plan), flat, log_evidence + log_scale)

    def _mpe(self, evidence: Evidence | None, k: int, options: Mapping[str, Any]) -> list[Assignment]:
        n, limit = len(self.model.variables), self.options["memory_limit"]
        repeats = None if options or len(self.flat.cards) != n else self._known_questions()
        if repeats is None:
            return super()._mpe(evidence, k, options)
        few = k == 1 or always_there(k * listed_bytes(n), limit)
        found = repeats.best(evidence, k) if few else None
        if found is None:
            found = super()._mpe(evidence, k, options)
            repeats.note_best(evidence)
        return found

    def _k_best(
        self, findings: Findings, k: int, options: Mapping[str, Any]
    ) -> list[tuple[dict[str, int], float]]:
        if self._explanations is None:
            return best_explanations(self.model, self._planner, findings, k, options)
        return self._explanations.best(findings, k, options)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        if cells_of(self.flat, [self.flat.number[name] for name in targets]) <= JOINT_CELLS:
            return super()._best_of(targets, findings, options)
        order: Order = "min-fill" if options["order"] == "auto" else options["order"]
        other = VariableElimination(self.model, memory_limit=options["memory_limit"], order=order)
        tables = self.flat.tables.nbytes

        def turn(size: int) -> AbstractContextManager[None]:
            return self._plans.turn(size, memory_limit(options["memory_limit"]) - tables)

        return other.best_of(targets, findings, other.options, tables, turn)

    def _with_certain(self, findings: Findings) -> Findings:
        """The findings, and what they make certain within chains: where an effect is absent, so are all before it."""
        hidden = {
            name: code
            for child, (code, names) in self._quiet.items()
            if findings.hard.get(child) == code
            for name in names
        }
        return findings._replace(hard={**findings.hard, **hidden}) if hidden else findings

    def _slots_of(self, observed: frozenset[str], key: Any, plan: Plan | None) -> Slots:
        """Where a plan puts the marginals; without one, where they lie if states that cannot occur are left out."""
        if plan is None:
            assert self._planner.pruning is not None
            return self._slots_at(observed, ("pruned", key), self._planner.pruning.state_ptr)
        slots = self._slots.get((observed, key))
        if slots is None:
            return self._slots_at(observed, key, plan.layout.out)
        return slots

    def _slots_at(self, observed: frozenset[str], key: Any, out: Ints) -> Slots:
        """Where the marginal of each variable that is not observed lies, by where they begin."""
        slots = self._slots.get((observed, key))
        if slots is None:
            starts = out.tolist()
            places = [starts[self.flat.number[v.name]] for v in self.model.variables]
            slots = {
                v.name: (v, start, start + v.card)
                for v, start in zip(self.model.variables, places, strict=True)
                if start >= 0 and v.name not in observed
            }
            if len(self._slots) >= 512:
                self._slots.clear()
            self._slots[observed, key] = slots
        return slots
