"""Repeats: questions asked before, with other values of the same variables, answered at little cost.

A program that asks again and again asks the same thing of other values. Then the names need no checking, the plan is
known (or that states which cannot occur are left out, and on which tree), and all that is left is to look each state's
code up and to answer. Whatever is not such a question goes the long way, which also makes every error: a name or a
state that is not known, impossible evidence, a finding that is not a state, a plan that is no longer kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from bbn import kernels
from bbn.inference.exact.plan import Plan
from bbn.inference.exact.plan_cache import PlanCache
from bbn.inference.exact.plan_choice import Pruned
from bbn.inference.exact.pricing import Question
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS
from bbn.kernels.contracts.types import Reader
from bbn.model.evidence import Model
from bbn.model.variable import Variable
from bbn.results.posterior import EXACT, Assignment, Posterior, Posteriors, Slot

KEPT = 512
"""The questions that are known."""

Slots = dict[str, Slot]
Prune = Callable[[Any, Question, list[tuple[int, int]]], Pruned | None]


class Repeat(NamedTuple):
    """A question that was asked before."""

    key: Any
    """That of its plan."""
    readers: tuple[Reader, ...]
    """One for each variable observed, in the order of the evidence."""
    certain: tuple[tuple[int, int], ...] = ()
    """What the findings make certain within chains: variables and codes."""
    question: Question | None = None
    """Its shape, where states that cannot occur are left out; None where it has a plan."""
    variables: tuple[Variable, ...] = ()
    """The targets of a query."""
    shape: tuple[int, ...] | None = None
    """That of their joint; None for a single target."""
    slots: Slots = {}  # noqa: RUF012  # a default that nobody changes
    """Where the marginal of each variable lies, where all are asked for."""


class RepeatedBest(NamedTuple):
    """The best assignments given variables that were observed before."""

    key: Any
    """That of its plan."""
    readers: tuple[Reader, ...]
    places: tuple[tuple[str, int, tuple[Any, ...]], ...]
    """The name, number and states of each variable that is not observed."""


class Repeats:
    """The questions that an engine was asked before; safe between threads.

    A question is noted when it is asked the second time, so that one asked once costs no more; an engine makes these
    at its own second question.

    Parameters
    ----------
    model, number
        What it is asked about, and the number of each variable.
    plans
        The plans it keeps.
    quiet
        Per variable at the end of a chain, the code at which all before it are certain, and their names.
    prune
        Answers without the states that cannot occur, given the key, the shape and the findings; None if that shape is
        not answered so.
    """

    def __init__(
        self,
        model: Model,
        number: Mapping[str, int],
        plans: PlanCache,
        quiet: Mapping[str, tuple[int, list[str]]],
        prune: Prune,
    ) -> None:
        self._model = model
        self._number = number
        self._plans = plans
        self._prune = prune
        self._known: dict[Any, Repeat | None] = {}
        self._known_best: dict[Any, RepeatedBest | None] = {}
        self._readers: dict[str, Reader] = {}
        self._quiet = {
            name: (model.variable(name).states[code], code, before) for name, (code, before) in quiet.items()
        }

    def query(self, targets: Any, evidence: Any) -> Posterior | None:
        """The posterior of the targets, if that was asked before with the same variables observed."""
        repeat = self._known.get(self._asked(targets, evidence) if self._quiet else _asked(targets, evidence))
        if repeat is None:
            return None
        if repeat.question is None:
            values, log_evidence = self._run(repeat, evidence)
        elif (found := self._pruned(repeat, evidence)) is None:
            return None
        else:
            values, log_evidence = found.joint(repeat.question.targets), found.log_evidence
        if log_evidence > -inf:
            if repeat.shape is not None:
                values = values.reshape(repeat.shape)
            return EXACT.one(repeat.variables, values, log_evidence)  # type: ignore[no-any-return]
        return None

    def posteriors(self, evidence: Any) -> Posteriors | None:
        """All posteriors, if they were asked for before with the same variables observed."""
        repeat = self._known.get(self._asked(None, evidence) if self._quiet else _asked(None, evidence))
        if repeat is None:
            return None
        if repeat.question is None:
            values, log_evidence = self._run(repeat, evidence)
        elif (found := self._pruned(repeat, evidence)) is None:
            return None
        else:
            values, log_evidence = found.marginals(), found.log_evidence
        return Posteriors(repeat.slots, values, log_evidence) if log_evidence > -inf else None

    def best(self, evidence: Any, k: int) -> list[Assignment] | None:
        """The k best assignments, if the best were asked for before with the same variables observed."""
        repeat = self._known_best.get(_asked(None, evidence))
        if repeat is None:
            return None
        plan = self._plans.get(repeat.key)
        pairs = kernels.answers.read_codes(repeat.readers, evidence or {})
        if plan is None or pairs is None:
            return None
        found, log_probability = plan.explain(pairs, (), k)
        label = kernels.answers.label
        return [
            Assignment(label(repeat.places, codes), log_probability + log) for codes, log in found
        ] or None

    def note_best(self, evidence: Any) -> None:
        """Note that the best assignments were found the long way."""
        asked = _asked(None, evidence)
        if asked is None or not self._again(asked, self._known_best):
            return
        observed = frozenset(evidence or ())
        key = Question(self._numbers(observed), goal=COLLECTED, maximise=True)
        if self._plans.get(key):
            free = [v for v in self._model.variables if v.name not in observed]
            places = tuple((v.name, self._number[v.name], v.states) for v in free)
            self._known_best[asked] = RepeatedBest(key, self._read(evidence), places)

    def _run(self, repeat: Repeat, evidence: dict[str, Any] | None) -> tuple[Any, float]:
        plan = self._plans.get(repeat.key)
        pairs = kernels.answers.read_codes(repeat.readers, evidence or {})
        if plan is None or pairs is None:  # no longer kept, or a finding that is not a state
            return None, -inf
        if repeat.certain:
            pairs.extend(repeat.certain)
        return plan.run(pairs)

    def _pruned(self, repeat: Repeat, evidence: dict[str, Any] | None) -> Pruned | None:
        pairs = kernels.answers.read_codes(repeat.readers, evidence or {})
        if pairs is None or repeat.question is None:
            return None
        answer = self._prune(repeat.key, repeat.question, [*pairs, *repeat.certain])
        return None if answer is None or answer.log_evidence == -inf else answer

    def note_query(self, targets: Any, evidence: Any, prunes: Callable[[Any], bool]) -> None:
        """Note a query that was answered the long way; `prunes` says of a key whether states are left out."""
        asked = self._asked(targets, evidence)
        if asked is None or not self._again(asked, self._known):
            return
        names = (targets,) if type(targets) is str else tuple(targets)
        observed, certain = self._all_observed(evidence)
        key = names, observed, None
        question = None
        if prunes(key):
            question = Question(self._numbers(observed), targets=tuple(self._number[name] for name in names))
        elif not self._plans.get(key):
            return
        variables = tuple(map(self._model.variable, names))
        shape = tuple(v.card for v in variables) if len(names) > 1 else None
        self._known[asked] = Repeat(key, self._read(evidence), certain, question, variables, shape)

    def note_posteriors(
        self,
        evidence: Any,
        masked: bool,
        prunes: Callable[[Any], bool],
        slots: Callable[[frozenset[str], Any, Plan | None], Slots],
    ) -> None:
        """Note that all posteriors were found the long way.

        `masked` says that one plan serves all values; `slots` gives the places of the answers of a plan, or, without
        one, of those without the states that cannot occur.
        """
        asked = self._asked(None, evidence)
        if asked is None or not self._again(asked, self._known):
            return
        observed, certain = self._all_observed(evidence)
        key: Any = (observed, None)
        question = None
        if masked:
            key, certain = "masked", ()
        elif prunes(key):
            question = Question(self._numbers(observed), goal=MARGINALS)
        plan = self._plans.get(key)
        if plan is not None or question is not None:
            where = slots(frozenset(evidence or ()), key, None if question else plan)
            self._known[asked] = Repeat(key, self._read(evidence), certain, question, slots=where)

    def _asked(self, targets: Any, evidence: Any) -> Any:
        """What a question is known by, and which chains it makes certain; None if it is not of that form."""
        asked = _asked(targets, evidence)
        if asked is None or not self._quiet or not evidence:
            return asked
        return asked, tuple(self._silent(evidence))

    def _silent(self, evidence: dict[str, Any]) -> list[str]:
        """The variables observed at the code that makes all before them certain."""
        found = []
        for name, finding in evidence.items():
            state = self._quiet[name][0] if name in self._quiet else None
            if state is not None and type(finding) is type(state) and finding == state:
                found.append(name)
        return found

    def _all_observed(
        self, evidence: dict[str, Any] | None
    ) -> tuple[frozenset[str], tuple[tuple[int, int], ...]]:
        """The variables that are certain given the evidence, and the codes of those that it does not name."""
        if not evidence or not self._quiet:
            return frozenset(evidence or ()), ()
        hidden = {name: self._quiet[own][1] for own in self._silent(evidence) for name in self._quiet[own][2]}
        certain = tuple((self._number[name], code) for name, code in hidden.items())
        return frozenset({**evidence, **hidden}), certain

    def _numbers(self, names: frozenset[str]) -> frozenset[int]:
        return frozenset(map(self._number.__getitem__, names))

    def _again(self, asked: Any, known: dict[Any, Any]) -> bool:
        """Whether this was asked before; if not, it was now."""
        if asked in known:
            return True
        if len(known) >= KEPT:
            known.clear()
        known[asked] = None
        return False

    def _read(self, evidence: dict[str, Any] | None) -> tuple[Reader, ...]:
        return tuple(self._readers.get(name) or self._reader(name) for name in evidence or ())

    def _reader(self, name: str) -> Reader:
        variable = self._model.variable(name)
        # what `find` says, so that a label which is read as a number keeps its meaning
        codes = {state: code for state in variable.states if (code := variable.find(state)) is not None}
        reader = self._readers[name] = self._number[name], type(variable.states[0]), codes
        return reader


def _asked(targets: Any, evidence: Any) -> Any:
    """What a question is known by: its targets (None: all) and the names observed; None if it is not of that form."""
    if targets is not None and type(targets) is not str:
        if type(targets) is not list or any(type(name) is not str for name in targets):
            return None
        targets = tuple(targets)
    if evidence is None:
        return (targets,)
    return (targets, *evidence) if type(evidence) is dict else None
