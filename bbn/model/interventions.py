"""Interventions: what it means to set a variable from outside (Pearl 2009, sections 3.2 and 4.2).

Acting on X replaces P(X | parents) by something else, and leaves every other table as it is: a certain state or number,
a distribution (a stochastic intervention), or a table that depends on other variables (a policy). Evidence given
beside it is evidence after the act. Networks made so are kept with the network they were made of, with their engines
and plans, so that asking again costs what any question costs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bbn.core.errors import EvidenceError, shown
from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.gaussian import Gaussian
from bbn.model.table_input import settings, shape_of
from bbn.model.variable import Continuous, State, Variable, plain

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

Intervention: TypeAlias = State | float | Mapping[State, float] | Callable[..., Any] | Conditional
"""A state, a number, a distribution over states, a function of other variables' states, or a CPT or Gaussian."""
Interventions: TypeAlias = Mapping[str, Intervention]
"""What is done, by variable."""

KEPT = 128
"""The most networks with interventions that are kept with a network."""


def acted(net: BayesianNetwork, do: Interventions | None) -> BayesianNetwork:
    """The network after an intervention, made once and kept; the network itself if there is none."""
    if not do:
        if do is None or isinstance(do, Mapping):
            return net
    elif isinstance(do, Mapping):
        try:
            key = tuple([(name, type(value), _key(value)) for name, value in do.items()])
            kept: dict[Any, BayesianNetwork] = net.memo.setdefault("do", {})
            found = kept.get(key)
        except TypeError:  # what cannot be hashed cannot be kept
            return intervened(net, do)
        if found is None:
            found = intervened(net, do)
            if len(kept) >= KEPT:
                kept.clear()
            kept[key] = found
        return found
    raise EvidenceError(f"do needs a mapping from variable to state, found {shown(do)}")


def _key(value: Any) -> Any:
    return value if type(value) is str else tuple(value.items()) if isinstance(value, Mapping) else value


def intervened(net: BayesianNetwork, interventions: Interventions) -> BayesianNetwork:
    """The network with what is done in place of the tables of the variables it is done to."""
    if not isinstance(interventions, Mapping):
        raise EvidenceError(f"do needs a mapping from variable to state, found {shown(interventions)}")
    return net.with_cpts(
        [conditional_of(net, net.variable(name), what) for name, what in interventions.items()]
    )


def conditional_of(net: BayesianNetwork, variable: Variable, what: Any) -> Conditional:
    """The table, or the Gaussian, that an intervention puts in place of a variable's own."""
    if isinstance(what, CPT | Gaussian):
        if what.variable != variable:
            raise EvidenceError(
                f"do: {variable.name!r} is given the table of another variable, {what.variable!r}"
            )
        return what
    if callable(what) and not isinstance(what, type):
        return _policy(net, variable, what)
    if isinstance(variable, Continuous):
        if isinstance(what, Mapping):
            raise EvidenceError(
                f"do: {variable.name!r} is continuous: expected a number, or bbn.Gaussian({variable.name!r}, …)"
            )
        return Gaussian.point(variable, variable.number(what))
    if isinstance(what, Mapping):
        return CPT.trusted(variable, (), _distribution(variable, what, f"do: {variable.name!r}"))
    table = np.zeros(variable.card)
    table[variable.code(what)] = 1.0
    return CPT.trusted(variable, (), table)


def _distribution(variable: Variable, weights: Mapping[Any, float], where: str) -> Array:
    """A distribution over states, given by state; states that are not named have probability 0."""
    row = np.zeros(variable.card)
    for state, p in weights.items():
        number = plain(p)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
            raise EvidenceError(
                f"{where}: the probability of {shown(state)} is {shown(p)}; expected a number from 0 to 1"
            )
        row[variable.code(state)] = number
    if abs(row.sum() - 1) > 1e-9:
        raise EvidenceError(f"{where}: the probabilities sum to {row.sum():.9g}, expected 1")
    return row


def _policy(net: BayesianNetwork, variable: Variable, function: Callable[..., Any]) -> CPT:
    """The table of a policy: the state, or the distribution, that a function gives for the states it looks at.

    It looks at the variables that its arguments are named after; if they are not, at the variable's parents, in order.
    """
    if isinstance(variable, Continuous):
        raise EvidenceError(
            f"do: {variable.name!r} is continuous: a policy is a bbn.Gaussian with parents, found a function"
        )
    seen = [net.variable(name) for name in _looked_at(net, variable.name, function)]
    for parent in seen:
        if isinstance(parent, Continuous):
            raise EvidenceError(
                f"do: the policy of {variable.name!r} looks at {parent.name!r}, which is continuous"
            )
    table = np.zeros(shape_of(variable, tuple(seen)))
    for index, states in settings(tuple(seen)):
        chosen = function(*states)
        if isinstance(chosen, Mapping):
            where = f"do: the policy of {variable.name!r} for {', '.join(map(str, states))}"
            table[index] = _distribution(variable, chosen, where)
        else:
            table[(*index, variable.code(chosen))] = 1.0
    return CPT.trusted(variable, tuple(seen), table)


def _looked_at(net: BayesianNetwork, name: str, function: Callable[..., Any]) -> tuple[str, ...]:
    """The variables that a policy is a function of."""
    parents = net.parents(name)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function of another language
        return parents
    named = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    if named and all(one in net for one in named):
        return named
    if len(named) != len(parents) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        raise EvidenceError(
            f"do: the policy of {name!r} has the arguments {', '.join(named) or 'none'}; expected variables' names, or "
            f"one for each of its parents {', '.join(parents) or '(there are none)'}"
        )
    return parents
