"""How a dynamic network is put together: its conditionals checked and aligned, and every distinct family named once.

A conditional goes by three names. In `later` it is "Rain" with the parent "Rain[-1]"; in the template the first slice's
own is "Rain[0]"; in the unrolled network it is "Rain[3]" with the parent "Rain[2]".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bbn.core.errors import ModelError, nearest
from bbn.model.cpt import CPT, Conditional
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.previous import aligned, in_slice, renamed, split_name
from bbn.model.variable import Continuous, Variable


def listed_starts(first: Any) -> list[list[Conditional]]:
    """The conditionals of the first slices, slice by slice, at least one (maybe empty) list."""
    if isinstance(first, Conditional | str | Mapping) or not isinstance(first, Iterable):
        raise ModelError(f"first must be a list of CPTs, found {first!r}")
    listed = list(first)
    if listed and all(isinstance(own, list | tuple) for own in listed):
        return [list(own) for own in listed]
    return [listed]


def own_starts(
    starts: Sequence[dict[str, Conditional]], later: Mapping[str, Conditional]
) -> list[dict[str, Conditional]]:
    """The first slices without what they share with the later ones, the same object, and without empty ones at the end.

    Equal numbers are no sign: two families that have the same by chance stay two.
    """
    own = [
        {name: c for name, c in listed.items() if c is not later.get(name) or reach(c) > s}
        for s, listed in enumerate(starts)
    ]
    while len(own) > 1 and not own[-1]:
        own.pop()
    return own


def check_variables(
    starts: Sequence[Mapping[str, Conditional]], variables: Mapping[str, Variable], static: Sequence[str]
) -> None:
    """ModelError if the first slices hold a variable with other states, or a new one after slice 0."""
    for s, listed in enumerate(starts):
        for own, conditional in listed.items():
            if own not in variables or (s > 0 and own in static):
                raise ModelError(
                    f"first, slice {s}: {own!r} is not a variable of the later slices{nearest(own, variables)}"
                )
            if conditional.variable != variables[own]:
                raise ModelError(
                    f"{own!r} is {conditional.variable!r} in slice {s}, but {variables[own]!r} in the later ones"
                )


def checked_conditional(
    conditional: Conditional, variables: Mapping[str, Variable], static: Sequence[str]
) -> Conditional:
    """The conditional with its parents checked; those of earlier slices have the declared states in their order."""
    child = conditional.variable.name
    if not isinstance(conditional, CPT | Gaussian):
        expand = getattr(conditional, "to_cpt", None)
        if expand is None:
            raise ModelError(
                f"node {child!r} is a {type(conditional).__name__}; expected a CPT or a Gaussian"
            )
        conditional = expand()
    parents: list[Variable] = []
    for parent in conditional.parents:
        own, at = split_name(parent.name)
        if own not in variables or (at is not None and at >= 0):
            raise ModelError(
                f"node {child!r} has the unknown parent {parent.name!r}{nearest(own, variables)}"
            )
        if own in static and at is not None:
            raise ModelError(
                f"node {child!r}: its parent {own!r} is static; write {own!r}, not an earlier slice of it"
            )
        if child in static and own not in static:
            raise ModelError(
                f"node {child!r} is only in `first`, so it is static, but its parent {own!r} is in every slice; "
                f"give {child!r} a conditional in `later`"
            )
        if at is None:
            parents.append(parent)
            continue
        declared = renamed(variables[own], parent.name)
        if isinstance(parent, Continuous) or isinstance(declared, Continuous):
            if type(parent) is not type(declared):
                raise ModelError(
                    f"node {child!r}: its parent is {parent!r}, but {own!r} itself is {variables[own]!r}"
                )
        elif (places := aligned(parent, declared)) is None:
            raise ModelError(
                f"node {child!r}: its parent {parent.name!r} has states {list(parent.states)}, but {own!r} itself has "
                f"states {list(declared.states)}"
            )
        elif places != list(range(declared.card)):
            conditional = _permuted(conditional, parent, places)
        parents.append(declared)
    return _with_family(conditional, conditional.variable, tuple(parents))


def _permuted(conditional: Conditional, parent: Variable, places: list[int]) -> Conditional:
    """The conditional with the states of one parent in another order."""
    if isinstance(conditional, Gaussian):
        axis = conditional.discrete_parents.index(parent)
        return Gaussian.trusted(
            conditional.variable,
            conditional.parents,
            conditional.means.take(places, axis),
            conditional.variances.take(places, axis),
            conditional.weights.take(places, axis),
            conditional.tied_variance,
            conditional.fixed_variance,
        )
    assert isinstance(conditional, CPT)
    table = conditional.table.take(places, conditional.parents.index(parent))
    return CPT.trusted(conditional.variable, conditional.parents, table)


def _with_family(conditional: Conditional, variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
    if isinstance(conditional, Gaussian):
        return conditional.with_family(Continuous(variable.name), parents)
    assert isinstance(conditional, CPT)
    return CPT.trusted(variable, parents, conditional.table)


def reach(conditional: Conditional) -> int:
    """How many slices back its furthest parent lies."""
    return max((-(split_name(p.name)[1] or 0) for p in conditional.parents), default=0)


def families_of_first_slices(
    starts: Sequence[Mapping[str, Conditional]], later: Mapping[str, Conditional], n_first: int
) -> list[dict[str, str]]:
    """For each of the first slices, which family each variable has where it is not that of the later slices."""
    schedule: list[dict[str, str]] = []
    reaches = {name: reach(usual) for name, usual in later.items()}
    for s in range(n_first):
        own_families: dict[str, str] = {}
        for name in later:
            given = starts[s].get(name) if s < len(starts) else None
            if given is not None and reach(given) > s:
                raise ModelError(
                    f"first, slice {s}: the conditional of {name!r} reaches {reach(given)} slices back, before "
                    "the start"
                )
            if given is not None:
                own_families[name] = in_slice(name, s)
            elif reaches[name] > s:
                if s == 0:
                    raise ModelError(
                        f"variable {name!r} depends on an earlier slice, and the first slice has none; "
                        f"give {name!r} a conditional in `first`"
                    )
                own_families[name] = schedule[s - 1].get(name, name)
        schedule.append(own_families)
    return schedule


def one_template(
    starts: Sequence[Mapping[str, Conditional]],
    later: Mapping[str, Conditional],
    static: Sequence[str],
    schedule: Sequence[Mapping[str, str]],
) -> BayesianNetwork:
    """Every distinct family once, in one network; see `DynamicNetwork.template`."""
    made: list[Conditional] = [starts[0][own] for own in static]
    for s, families in enumerate(schedule):
        for own, family in families.items():
            if split_name(family)[1] != s:
                continue
            given = starts[s][own]
            parents = tuple(renamed(p, families.get(p.name, p.name)) for p in given.parents)
            made.append(_with_family(given, renamed(given.variable, family), parents))
    made += later.values()
    roots = {p.name: p for c in made for p in c.parents if (split_name(p.name)[1] or 0) < 0}
    for own, variable in roots.items():
        made.append(
            Gaussian(own, means=0.0, variances=1.0)
            if isinstance(variable, Continuous)
            else CPT.uniform(variable)
        )
    return BayesianNetwork(made)


def as_later(conditional: Conditional, name: str) -> Conditional:
    """A family of the template with its variables named as in the later slices: itself where they are."""
    parents = []
    for parent in conditional.parents:
        own, at = split_name(parent.name)
        parents.append(renamed(parent, own) if at is not None and at >= 0 else parent)
    if name == conditional.variable.name and tuple(parents) == conditional.parents:
        return conditional
    return _with_family(conditional, renamed(conditional.variable, name), tuple(parents))


def as_placed(conditional: Conditional, name: str, t: int, static: Sequence[str]) -> Conditional:
    """A family of the template as it stands in slice t of the unrolled network."""
    parents = []
    for parent in conditional.parents:
        own, at = split_name(parent.name)
        if own in static:
            parents.append(parent)
        else:
            parents.append(renamed(parent, in_slice(own, t + (at if at is not None and at < 0 else 0))))
    return _with_family(conditional, renamed(conditional.variable, in_slice(name, t)), tuple(parents))
