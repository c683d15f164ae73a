"""Questions asked again, with other values of the same variables, answered at little cost.

A program that asks again and again asks the same thing of other values. Then the names need no checking, how the shape
is answered is known, and all that is left is to look each state's code up and to answer. Whatever is not such a
question goes the long way, which also makes every error: a name or a state that is not known, impossible evidence, a
finding that is not a state, a shape that is no longer kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.inference.exact.prepared_queries import PreparedQueries, TreeQuery
from bbn.inference.exact.problem import Question, Values
from bbn.kernels.contracts.tape import COLLECTED, MARGINALS
from bbn.kernels.contracts.types import Floats, Reader
from bbn.model.evidence import Model
from bbn.model.variable import Variable
from bbn.results.posterior import EXACT, Assignment, Posterior, Posteriors, Slot

KEPT = 512
"""The questions that are known."""

Slots = dict[str, Slot]
NOTHING: tuple[Floats, float] = np.empty(0), -inf
ALL, BEST = object(), object()
"""What stands for targets where all posteriors, or the best states of all variables, are asked for."""


class Asked(NamedTuple):
    """A question that was asked before."""

    question: Question
    """Its shape."""
    readers: tuple[Reader, ...]
    """One for each variable observed, in the order of the evidence."""
    whole: bool
    """Whether one plan answers all values."""
    certain: tuple[tuple[int, int], ...] = ()
    """What the findings make certain within chains: variables and codes."""
    variables: tuple[Variable, ...] = ()
    """The targets of a query."""
    joint: tuple[int, ...] | None = None
    """The shape of their joint; None for a single target."""
    slots: Slots = {}  # noqa: RUF012  # a default that nobody changes
    """Where the marginal of each variable lies, where all are asked for."""
    places: tuple[tuple[str, int, tuple[Any, ...]], ...] = ()
    """Of the best assignments: the name, number and states of each variable that is not observed."""


class AskedAgain:
    """The questions that an engine was asked before; safe between threads.

    A question is noted when it is asked the second time, so that one asked once costs no more; an engine makes these
    at its own second question.

    Parameters
    ----------
    model, number
        What it is asked about, and the number of each variable.
    queries
        How the shapes are answered that are known.
    quiet
        Per variable at the end of a chain, the code at which all before it are certain, and their names.
    """

    def __init__(
        self,
        model: Model,
        number: Mapping[str, int],
        queries: PreparedQueries,
        quiet: Mapping[str, tuple[int, list[str]]],
    ) -> None:
        self._model = model
        self._number = number
        self._queries = queries
        self._known: dict[Any, Asked | None] = {}
        self._readers: dict[str, Reader] = {}
        self._quiet = {
            name: (model.variable(name).states[code], code, before) for name, (code, before) in quiet.items()
        }

    def query(self, targets: Any, evidence: Any) -> Posterior | None:
        """The posterior of the targets, if that was asked before with the same variables observed."""
        known = self._known.get(self._asked(targets, evidence) if self._quiet else _asked(targets, evidence))
        if known is None:
            return None
        values, log_evidence = self._run(known, evidence)
        if log_evidence > -inf:
            if known.joint is not None:
                values = values.reshape(known.joint)
            return EXACT.one(known.variables, values, log_evidence)  # type: ignore[no-any-return]
        return None

    def posteriors(self, evidence: Any) -> Posteriors | None:
        """All posteriors, if they were asked for before with the same variables observed."""
        known = self._known.get(self._asked(ALL, evidence) if self._quiet else _asked(ALL, evidence))
        if known is None:
            return None
        values, log_evidence = self._run(known, evidence)
        return Posteriors(known.slots, values, log_evidence) if log_evidence > -inf else None

    def best(self, evidence: Any, k: int) -> list[Assignment] | None:
        """The k best assignments, if the best were asked for before with the same variables observed."""
        known = self._known.get(_asked(BEST, evidence))
        pairs = None if known is None else kernels.answers.read_codes(known.readers, evidence or {})
        if known is None or pairs is None:
            return None
        query = self._queries.get(known.question)
        if query is None:
            return None
        ranking: Any
        if type(query) is TreeQuery:
            ranking, log = query.explain(pairs, k)
        else:
            _, log, _, ranking = query.answer(Values(pairs, (), 0.0), k)
        label = kernels.answers.label
        return [Assignment(label(known.places, codes), log + ratio) for codes, ratio in ranking] or None

    def _run(self, known: Asked, evidence: dict[str, Any] | None) -> tuple[Floats, float]:
        """What the shape's plan reads, and ln of the weight; -inf where the long way must answer."""
        query = self._queries.get(known.question)
        pairs = kernels.answers.read_codes(known.readers, evidence or {})
        if pairs is None:  # a finding that is not a state
            return NOTHING
        if known.certain:
            pairs.extend(known.certain)
        if type(query) is TreeQuery:
            return query.run(pairs) if known.whole else NOTHING
        if query is None or known.whole:
            return NOTHING
        found = query.answer(Values(pairs, (), 0.0))
        return found.values, found.log

    def note_query(self, targets: Any, evidence: Any) -> None:
        """Note a query that was answered the long way."""
        asked = self._asked(targets, evidence)
        if asked is None or not self._again(asked):
            return
        names = (targets,) if type(targets) is str else tuple(targets)
        observed, certain = self._all_observed(evidence)
        question = Question(self._numbers(observed), targets=tuple(self._number[name] for name in names))
        query = self._queries.get(question)
        if query is not None:
            variables = tuple(map(self._model.variable, names))
            shape = tuple(v.card for v in variables) if len(names) > 1 else None
            whole = type(query) is TreeQuery
            self._known[asked] = Asked(question, self._read(evidence), whole, certain, variables, shape)

    def note_posteriors(
        self,
        evidence: Any,
        masked: Question | None,
        slots: Mapping[tuple[frozenset[str], Question, bool], Slots],
    ) -> None:
        """Note that all posteriors were found the long way.

        `masked` is the question whose one plan serves all evidence, if there is one; `slots` has the places of the
        answers, by the names observed, the shape and whether one plan answers all values.
        """
        asked = self._asked(ALL, evidence)
        if asked is None or not self._again(asked):
            return
        observed, certain = self._all_observed(evidence)
        question = masked
        if question is None:
            question = Question(self._numbers(observed), goal=MARGINALS)
        else:
            certain = ()
        query = self._queries.get(question)
        if query is not None:
            whole = type(query) is TreeQuery
            where = slots.get((frozenset(evidence or ()), question, whole))
            if where is not None:
                self._known[asked] = Asked(question, self._read(evidence), whole, certain, slots=where)

    def note_best(self, evidence: Any) -> None:
        """Note that the best assignments were found the long way."""
        asked = _asked(BEST, evidence)
        if asked is None or not self._again(asked):
            return
        observed = frozenset(evidence or ())
        question = Question(self._numbers(observed), goal=COLLECTED, maximise=True)
        if self._queries.get(question) is not None:
            free = [v for v in self._model.variables if v.name not in observed]
            places = tuple((v.name, self._number[v.name], v.states) for v in free)
            self._known[asked] = Asked(question, self._read(evidence), False, places=places)

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

    def _again(self, asked: Any) -> bool:
        """Whether this was asked before; if not, it was now."""
        known = self._known
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
    """What a question is known by: what is asked for and the names observed; None if it is not of that form."""
    if type(targets) is not str and targets is not ALL and targets is not BEST:
        if type(targets) is not list or any(type(name) is not str for name in targets):
            return None
        targets = tuple(targets)
    if evidence is None:
        return (targets,)
    return (targets, *evidence) if type(evidence) is dict else None
