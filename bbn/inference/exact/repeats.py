"""Repeats: questions asked before, with other values of the same variables, answered at little cost.

A program that asks again and again asks the same thing of other values. Then the names need no checking, the plan is
known, and all that is left is to look each state's code up and to run the plan. Whatever is not such a question goes
the long way, which also makes every error: a name or a state that is not known, impossible evidence, a finding that is
not a state, a plan that is no longer kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

from bbn import kernels
from bbn.inference.exact.plan import Plan
from bbn.inference.exact.plan_cache import PlanCache
from bbn.kernels.contracts.types import Reader
from bbn.model.evidence import Model
from bbn.model.variable import Variable
from bbn.results.posterior import EXACT, Posterior, Posteriors, Slot

KEPT = 512
"""The questions that are known."""


class Repeat(NamedTuple):
    """A question that was asked before."""

    key: Any
    """That of its plan."""
    readers: tuple[Reader, ...]
    """One for each variable observed, in the order of the evidence."""
    variables: tuple[Variable, ...] = ()
    """The targets of a query."""
    shape: tuple[int, ...] | None = None
    """That of their joint; None for a single target."""
    slots: dict[str, Slot] = {}  # noqa: RUF012  # a default that nobody changes
    """Where the marginal of each variable lies, where all are asked for."""


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
    """

    def __init__(self, model: Model, number: Mapping[str, int], plans: PlanCache) -> None:
        self._model = model
        self._number = number
        self._plans = plans
        self._known: dict[Any, Repeat | None] = {}
        self._readers: dict[str, Reader] = {}

    def query(self, targets: Any, evidence: Any) -> Posterior | None:
        """The posterior of the targets, if that was asked before with the same variables observed."""
        repeat = self._known.get(_asked(targets, evidence))
        if repeat is not None:
            values, log_evidence = self._run(repeat, evidence)
            if log_evidence > -inf:
                if repeat.shape is not None:
                    values = values.reshape(repeat.shape)
                return EXACT.one(repeat.variables, values, log_evidence)  # type: ignore[no-any-return]
        return None

    def posteriors(self, evidence: Any) -> Posteriors | None:
        """All posteriors, if they were asked for before with the same variables observed."""
        repeat = self._known.get(_asked(None, evidence))
        if repeat is not None:
            values, log_evidence = self._run(repeat, evidence)
            if log_evidence > -inf:
                return Posteriors(repeat.slots, values, log_evidence)
        return None

    def _run(self, repeat: Repeat, evidence: dict[str, Any] | None) -> tuple[Any, float]:
        plan = self._plans.get(repeat.key)
        pairs = kernels.answers.read_codes(repeat.readers, evidence or {})
        return (None, -inf) if plan is None or pairs is None else plan.run(pairs)

    def note_query(self, targets: Any, evidence: Any) -> None:
        """Note a query that was answered the long way."""
        asked = _asked(targets, evidence)
        if asked is None or not self._again(asked):
            return
        names = (targets,) if type(targets) is str else tuple(targets)
        key = names, frozenset(evidence or ()), None
        if self._plans.get(key):
            variables = tuple(map(self._model.variable, names))
            shape = tuple(v.card for v in variables) if len(names) > 1 else None
            self._known[asked] = Repeat(key, self._read(evidence), variables, shape)

    def note_posteriors(self, evidence: Any, key: Any, slots: Callable[[Plan], dict[str, Slot]]) -> None:
        """Note that all posteriors were found the long way; `slots` gives their places in the answers of a plan."""
        asked = _asked(None, evidence)
        if asked is not None and self._again(asked) and (plan := self._plans.get(key)):
            self._known[asked] = Repeat(key, self._read(evidence), slots=slots(plan))

    def _again(self, asked: Any) -> bool:
        """Whether this was asked before; if not, it was now."""
        if asked in self._known:
            return True
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[asked] = None
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
