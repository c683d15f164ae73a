"""JunctionTree: exact inference, compiled once per shape of question and run many times.

Evidence is taken by slicing it out before triangulating (which prunes the graph), or, where the whole network's tree
is so small that triangulating again would cost more than it saves, by masking states on that one tree. Messages are
passed to the root and back (Jensen, Lauritzen and Olesen 1990); a query needs the first half alone, with the root at
the targets. The cost is that of the cliques' cells, which `stats` predicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import Ledger, always_there
from bbn.core.errors import BudgetError, TimeLimitError
from bbn.core.frozen import Array
from bbn.inference.engine import Engine, listed_bytes
from bbn.inference.exact.asked_again import AskedAgain
from bbn.inference.exact.barren_leaves import BarrenEffects
from bbn.inference.exact.marginal_map import JOINT_CELLS, marginal_map
from bbn.inference.exact.prepared_queries import TreeQuery
from bbn.inference.exact.problem import Factors, Question, cells_of, flatten, numbered, shape
from bbn.inference.exact.query_compiler import MASKED, Compiler
from bbn.inference.exact.runtime_prediction import Stats, tree_stats
from bbn.inference.rows.batch import RowAnswers, answer_rows
from bbn.inference.search.explanations import Explanations, best_explanations
from bbn.kernels.contracts.tape import MARGINALS
from bbn.kernels.contracts.types import Ints
from bbn.model.evidence import Evidence, Findings, Model
from bbn.model.expansion import factored_parts, quiet_chains
from bbn.model.network import BayesianNetwork
from bbn.model.options import OrderedOptions
from bbn.results.posterior import Assignment, Posterior, Posteriors, Slot

Slots = dict[str, Slot]
SlotsKey = tuple[frozenset[str], Question, bool]
"""The names observed, the shape, and whether one plan answers all values of it."""


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
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
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
    defaults: Mapping[str, Any] = {**Engine.defaults, "order": "auto"}  # type: ignore[misc]

    def __init__(self, model: Model, **options: Unpack[OrderedOptions]) -> None:
        super().__init__(model, **options)

    def _prepare(self) -> None:
        self.flat: Factors = flatten(self.model, self.options["memory_limit"])
        self.compiler = Compiler(self.flat, self.options)
        self._slots: dict[SlotsKey, Slots] = {}
        self._again: AskedAgain | None = None
        self._asked = False
        chains = len(self.flat.cards) > len(self.model.variables)
        self._quiet = quiet_chains(self.model) if chains else {}  # type: ignore[arg-type]
        self._explanations = Explanations(self.model, self.compiler) if chains else None

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
        memory_limit, time_limit, budget, order
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

        def planner(question: Question, padded: frozenset[int]) -> TreeQuery:
            return self.compiler.tree(question, settings, padded)

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
        again = self._known_questions()
        if again is None:
            return super()._query(targets, evidence, settings)
        answer = again.query(targets, evidence)
        if answer is None:
            answer = super()._query(targets, evidence, settings)
            again.note_query(targets, evidence)
        return answer

    def _posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        try:
            return self._asked_posteriors(evidence, settings)
        except BudgetError as refusal:
            raise self._advised(refusal, None, evidence) from None

    def _asked_posteriors(self, evidence: Evidence | None, settings: Mapping[str, Any]) -> Posteriors:
        if settings is not self.options:
            return super()._posteriors(evidence, settings)
        again = self._known_questions()
        if again is None:
            return super()._posteriors(evidence, settings)
        answers = again.posteriors(evidence)
        if answers is None:
            answers = super()._posteriors(evidence, settings)
            masked = MASKED if self.compiler.masks(settings) else None
            again.note_posteriors(evidence, masked, self._slots)
        return answers

    def _known_questions(self) -> AskedAgain | None:
        """The questions asked before; None at the first, which need not be noted."""
        if self._again is None:
            if self._asked:
                self._again = AskedAgain(self.model, self.flat.number, self.compiler.known, self._quiet)
            self._asked = True
        return self._again

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        findings = self._with_certain(findings)
        number = self.flat.number
        question = shape(findings, number, tuple(map(number.__getitem__, targets)))
        found = self.compiler.answer(question, numbered(findings, number), options)
        return self._shaped(targets, found.values), found.log

    def _shaped(self, targets: tuple[str, ...], values: Array) -> Array:
        """The flat joint of targets with an axis for each."""
        if len(targets) > 1 and values.size:
            return values.reshape([self.model.variable(name).card for name in targets])
        return values if targets else np.ones(())

    def _marginals(self, findings: Findings, options: Mapping[str, Any]) -> Posteriors:
        number, observed = self.flat.number, frozenset(findings.hard)
        question = MASKED
        if not self.compiler.masks(options):
            # what the findings make certain depends on their values, and is sliced out too
            findings = self._with_certain(findings)
            question = shape(findings, number, goal=MARGINALS)
            effects = self._effects
            barren = () if effects is None else effects.left_out(question, findings, options["order"])
            if barren and effects is not None:
                return effects.marginals(barren, findings, None if options is self.options else options)
        values = numbered(findings, number)
        query = self.compiler.prepared(question, values, options)
        found = query.answer(values)
        if found.starts is None:
            return Posteriors({}, found.values, found.log)
        slots = self._slots_at((observed, question, type(query) is TreeQuery), found.starts)
        return Posteriors(slots, found.values, found.log)

    def _mpe(self, evidence: Evidence | None, k: int, options: Mapping[str, Any]) -> list[Assignment]:
        n, limit = len(self.model.variables), self.options["memory_limit"]
        again = None if options or len(self.flat.cards) != n else self._known_questions()
        if again is None:
            return super()._mpe(evidence, k, options)
        few = k == 1 or always_there(k * listed_bytes(n), limit)
        found = again.best(evidence, k) if few else None
        if found is None:
            found = super()._mpe(evidence, k, options)
            again.note_best(evidence)
        return found

    def _k_best(
        self, findings: Findings, k: int, options: Mapping[str, Any]
    ) -> list[tuple[dict[str, int], float]]:
        if self._explanations is None:
            return best_explanations(self.model, self.compiler, findings, k, options)
        return self._explanations.best(findings, k, options)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        number = self.flat.number
        wanted = tuple(map(number.__getitem__, targets))
        if cells_of(self.flat, wanted) <= JOINT_CELLS:
            try:
                return super()._best_of(targets, findings, options)
            except TimeLimitError:
                raise
            except BudgetError:  # a constrained order may fit
                pass
        question = shape(self._with_certain(findings), number, wanted)
        values = numbered(self._with_certain(findings), number)
        codes, log = marginal_map(self.compiler, question, values, options)
        return dict(zip(targets, codes.tolist(), strict=False)), log

    @cached_property
    def _effects(self) -> BarrenEffects | None:
        """The effects that may be left out of the tree, of a network that has any."""
        model = self.model
        some = isinstance(model, BayesianNetwork) and factored_parts(model)
        return BarrenEffects(self) if some else None

    def _with_certain(self, findings: Findings) -> Findings:
        """The findings, and what they make certain within chains: where an effect is absent, so are all before it."""
        hidden = {
            name: code
            for child, (code, names) in self._quiet.items()
            if findings.hard.get(child) == code
            for name in names
        }
        return findings._replace(hard={**findings.hard, **hidden}) if hidden else findings

    def _slots_at(self, key: SlotsKey, starts: Ints) -> Slots:
        """Where the marginal of each variable that is not observed lies, by where they begin."""
        slots = self._slots.get(key)
        if slots is None:
            listed, observed = starts.tolist(), key[0]
            places = [listed[self.flat.number[v.name]] for v in self.model.variables]
            slots = {
                v.name: (v, start, start + v.card)
                for v, start in zip(self.model.variables, places, strict=True)
                if start >= 0 and v.name not in observed
            }
            if len(self._slots) >= 512:
                self._slots.clear()
            self._slots[key] = slots
        return slots
