"""DynamicNetwork: a network that repeats itself slice by slice, frozen and checked.

    P(x_0, …, x_T) = ∏_t ∏_i P(x_i[t] | parents(x_i[t]))

where a parent lies in the same slice, in an earlier one (`Previous`), or is static: a node that exists once and that
every slice sees (Dean and Kanazawa 1989; Murphy 2002, chapter 2). A hidden Markov model is the smallest one. The
first slices may have conditionals of their own; from then on every slice is the same, so a family has the same
numbers in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.model.assembly import by_name
from bbn.model.cpt import CPT, Conditional
from bbn.model.dynamic_questions import AskableInTime
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.previous import aligned, check_plain_names, in_slice, renamed, split_name
from bbn.model.variable import Continuous, State, Variable, checked_name

if TYPE_CHECKING:
    import os

    import networkx as nx

NODE_BYTES = 3000
"""What a node of an unrolled network takes, about."""


class DynamicNetwork(AskableInTime):
    """A Bayesian network over time.

    Parameters
    ----------
    first
        The conditionals of the first slice that differ from those of the later ones, and those of the static variables:
        a variable that only `first` holds exists once, for all slices. A list of lists gives those of slices 0, 1, ….
    later
        One conditional per variable of a slice. A parent is a variable of the slice, a static one, or
        `bbn.Previous("Rain")`, the variable one slice earlier (`bbn.Previous("Rain", 2)`: two).
    name
        A title; it takes no part in comparisons.
    metadata
        Further strings about it; no part in comparisons either.

    Slice t uses the conditional that `first` gives for slice t; else that of `later`, if t slices reach back far
    enough; else the last that `first` gives.

    Raises
    ------
    ModelError
        A variable without a conditional, an unknown parent, states that do not agree, a cycle within a slice.

    See Also
    --------
    bbn.Previous : a parent in an earlier slice.
    bbn.HMM : hidden Markov models with scikit-learn's conventions.

    Examples
    --------
    >>> import bbn
    >>> rain, umbrella = bbn.Variable("Rain", ["yes", "no"]), bbn.Variable("Umbrella", ["yes", "no"])
    >>> dyn = bbn.DynamicNetwork(
    ...     first=[bbn.CPT(rain, table=[0.5, 0.5])],
    ...     later=[
    ...         bbn.CPT(rain, [bbn.Previous("Rain")], {"yes": [0.7, 0.3], "no": [0.3, 0.7]}),
    ...         bbn.CPT(umbrella, [rain], {"yes": [0.9, 0.1], "no": [0.2, 0.8]}),
    ...     ],
    ... )
    >>> dyn
    <DynamicNetwork: 2 variables a slice, reaching 1 slice back>
    >>> dyn.filter({"Umbrella": ["yes", "yes"]})["Rain"].round(3)
    array([[0.818, 0.182],
           [0.883, 0.117]])
    """

    __slots__ = ("_schedule", "_starts", "memo", "metadata", "name", "order", "static", "template")

    name: str
    metadata: Mapping[str, str]
    order: int
    """How many slices back the furthest parent lies; 0 where slices do not depend on each other."""
    static: tuple[str, ...]
    """The names of the variables that exist once."""
    template: BayesianNetwork
    """Every distinct family once: "Rain" for the later slices (and the first where it is the same), "Rain[0]" where the
    first slice has its own, "Rain[-1]" a placeholder for the parent in the slice before. What learners fit."""
    memo: dict[str, Any]
    """What others keep with it so as not to work it out again; no part of its value."""
    _schedule: tuple[Mapping[str, str], ...]
    _starts: tuple[Mapping[str, Conditional], ...]

    def __init__(
        self,
        first: Iterable[Conditional] | Sequence[Iterable[Conditional]],
        later: Iterable[Conditional],
        name: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ModelError(f"a network's name must be a string, found {name!r}")
        repeated = by_name(later)
        if not repeated:
            raise ModelError(
                "the dynamic network has no later slice; it needs at least one conditional there"
            )
        starts = [by_name(listed) for listed in _listed(first)]
        static = [own for own in starts[0] if own not in repeated]
        check_plain_names([*repeated, *static])
        variables = {own: starts[0][own].variable for own in static}
        variables |= {own: conditional.variable for own, conditional in repeated.items()}
        _check_variables(starts, variables, static)
        repeated = {own: _aligned(c, variables, static) for own, c in repeated.items()}
        starts = [{own: _aligned(c, variables, static) for own, c in listed.items()} for listed in starts]
        order = max(map(_reach, repeated.values()))
        schedule = _schedule(starts, repeated, max(order, len(starts)))
        template = _template(starts, repeated, static, schedule)
        self._set(
            name=name,
            metadata=MappingProxyType(
                {checked_name(k, "a metadata key"): str(v) for k, v in (metadata or {}).items()}
            ),
            order=order,
            static=tuple(own for own in template.names if own in static),
            template=template,
            memo={},
            _schedule=tuple(schedule),
            _starts=tuple(starts),
        )
        self.unroll(
            len(schedule) + 1
        )  # finds what only shows across slices, such as a cycle in the first one

    # What it is made of

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, static ones too, parents in a slice before their children."""
        return tuple(own for own in self.template.names if split_name(own)[1] is None)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, in the same order."""
        return tuple(map(self.template.variable, self.names))

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the continuous variables."""
        return tuple(v.name for v in self.variables if isinstance(v, Continuous))

    @property
    def first(self) -> tuple[Conditional, ...]:
        """The conditionals of the first slice, static variables among them."""
        return tuple(self.conditional(own, 0) for own in self.names)

    @property
    def later(self) -> tuple[Conditional, ...]:
        """The conditionals of every later slice; a parent in an earlier one is named "Rain[-1]"."""
        return tuple(self[own] for own in self.names if own not in self.static)

    @property
    def interface(self) -> tuple[str, ...]:
        """What the next slice depends on, static variables among them: all it needs to know of the past."""
        return tuple(own for own in self.names if own in self.static or own in self._reached)

    @property
    def _reached(self) -> dict[str, int]:
        """Variable to the furthest lag at which a later slice refers to it."""
        reached: dict[str, int] = {}
        for conditional in self.template.conditionals:
            for parent in conditional.parents:
                own, at = split_name(parent.name)
                if at is not None and at < 0:
                    reached[own] = max(reached.get(own, 0), -at)
        return reached

    @property
    def n_parameters(self) -> int:
        """The number of free parameters, each family once."""
        return sum(
            c.n_parameters
            for own, c in zip(self.template.names, self.template.conditionals, strict=True)
            if isinstance(c, CPT | Gaussian) and (split_name(own)[1] or 0) >= 0
        )

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The structure of two slices (more where parents lie further back), as a frozen networkx DiGraph."""
        return self.unroll(self.order + 1).graph

    @property
    def n_first(self) -> int:
        """How many slices at the start may have conditionals of their own."""
        return len(self._schedule)

    def family(self, name: str, step: int) -> str:
        """The name in `template` of the family that a variable has in this slice.

        Parameters
        ----------
        name : str
            One of `names`.
        step : int
            The slice, 0 for the first.
        """
        return self._schedule[step].get(name, name) if step < len(self._schedule) else name

    def conditional(self, name: str, step: int) -> Conditional:
        """The conditional of a variable in this slice, its parents named as in `later`.

        Parameters
        ----------
        name : str
            One of `names`.
        step : int
            The slice, 0 for the first.
        """
        self.variable(name)
        own = self.template[self.family(name, step)]
        return _plain(own, name)

    def variable(self, name: str) -> Variable:
        """The variable of this name; EvidenceError if there is none.

        Parameters
        ----------
        name : str
            One of `names`.
        """
        if not isinstance(name, str) or name not in self.template or split_name(name)[1] is not None:
            title = f"dynamic network {self.name!r}" if self.name else "the dynamic network"
            raise EvidenceError(f"{title} has no variable {shown(name)}{nearest(name, self.names)}")
        return self.template.variable(name)

    def states(self, name: str) -> tuple[State, ...]:
        """The states of the variable of this name.

        Parameters
        ----------
        name : str
            One of `names`.
        """
        return self.variable(name).states

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of its parents in a later slice; one in the slice before is named "Rain[-1]".

        Parameters
        ----------
        name : str
            One of `names`.
        """
        self.variable(name)
        return self.template.parents(name)

    def __getitem__(self, name: str) -> CPT:
        """The conditional of the variable in every later slice, or the only one of a static variable."""
        self.variable(name)
        return self.template[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    # Changes, each a new value

    def unroll(self, steps: int) -> BayesianNetwork:
        """The network of this many slices, its nodes named "Rain[0]", "Rain[1]", …; static ones keep their names.

        Parameters
        ----------
        steps
            How many slices, at least 1.

        Returns
        -------
        BayesianNetwork

        Examples
        --------
        >>> import bbn
        >>> bbn.example("umbrella").unroll(2).names
        ('Rain[0]', 'Umbrella[0]', 'Rain[1]', 'Umbrella[1]')
        """
        if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
            raise EvidenceError(f"steps is {steps!r}; expected a whole number of slices, at least 1")
        temporal = [own for own in self.names if own not in self.static]
        require_memory(
            NODE_BYTES * int(steps) * len(temporal),
            f"a network of {steps:,} slices",
            "ask the dynamic network itself: filter, smooth, viterbi and log_likelihood need no unrolling",
        )
        made: list[Conditional] = [self.template[own] for own in self.static]
        for t in range(int(steps)):
            made += [_placed(self.template[self.family(own, t)], own, t, self.static) for own in temporal]
        return BayesianNetwork(made, self.name, self.metadata)

    def with_template(self, template: BayesianNetwork) -> DynamicNetwork:
        """The dynamic network of the same structure with the numbers of another `template`.

        Parameters
        ----------
        template : BayesianNetwork
            A network with the families of `template`.
        """
        return DynamicNetwork.from_template(template, self.static, self.name, self.metadata)

    @classmethod
    def from_template(
        cls,
        template: BayesianNetwork,
        static: Sequence[str] = (),
        name: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> DynamicNetwork:
        """The dynamic network whose distinct families are these; see `template`.

        Parameters
        ----------
        template : BayesianNetwork
            The families, named as `template` names them.
        static : sequence of str, default ()
            The variables that have one value for all slices.
        name : str, default ""
            A title; comparisons ignore it.
        metadata : mapping, optional
            Further strings about the network; comparisons ignore these too.
        """
        starts: list[list[Conditional]] = [[template[own] for own in static]]
        later: list[Conditional] = []
        for own in template.names:
            plain, at = split_name(own)
            if at is None and own not in static:
                later.append(_plain(template[own], own))
            elif at is not None and at >= 0:
                starts += [[] for _ in range(at + 1 - len(starts))]
                starts[at].append(_plain(template[own], plain))
        return cls(starts, later, name, metadata)

    def with_cpts(self, cpts: Iterable[Conditional]) -> DynamicNetwork:
        """The dynamic network with these conditionals in the later slices in place of those of the same variables.

        Parameters
        ----------
        cpts : iterable of CPT or Gaussian
            At most one per variable.
        """
        starts = [list(listed.values()) for listed in self._starts]
        given = by_name(cpts)
        static = [given.pop(own) for own in list(given) if own in self.static]
        starts[0] = list({**self._starts[0], **by_name(static)}.values())
        return DynamicNetwork(starts, {**by_name(self.later), **given}.values(), self.name, self.metadata)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write it to a file in bbn's own format: ``.yaml`` or ``.json``, each also as ``.gz``.

        Parameters
        ----------
        path : path
            The file.
        format : {"yaml", "json"}, optional
            By default that of the suffix.
        """
        from bbn.io import save

        save(self, path, format)

    # The value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DynamicNetwork):
            return NotImplemented
        return (
            self.template == other.template
            and self.static == other.static
            and self._schedule == other._schedule
        )

    def __hash__(self) -> int:
        return hash((self.template, self.static))

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        n, k = len(self) - len(self.static), self.order
        static = f", {len(self.static)} static" if self.static else ""
        return (
            f"<DynamicNetwork{title}: {n} variable{'s' * (n != 1)} a slice{static}, "
            f"reaching {k} slice{'s' * (k != 1)} back>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        starts = [list(listed.values()) for listed in self._starts]
        return DynamicNetwork, (starts, list(self.later), self.name, dict(self.metadata))


def _listed(first: Any) -> list[list[Conditional]]:
    """The conditionals of the first slices, slice by slice, at least one (maybe empty) list."""
    if isinstance(first, Conditional | str | Mapping) or not isinstance(first, Iterable):
        raise ModelError(f"first must be a list of CPTs, found {first!r}")
    listed = list(first)
    if listed and all(isinstance(own, list | tuple) for own in listed):
        return [list(own) for own in listed]
    return [listed]


def _check_variables(
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


def _aligned(
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


def _reach(conditional: Conditional) -> int:
    """How many slices back its furthest parent lies."""
    return max((-(split_name(p.name)[1] or 0) for p in conditional.parents), default=0)


def _schedule(
    starts: Sequence[Mapping[str, Conditional]], later: Mapping[str, Conditional], n_first: int
) -> list[dict[str, str]]:
    """For each of the first slices, which family each variable has where it is not that of the later slices."""
    schedule: list[dict[str, str]] = []
    for s in range(n_first):
        own_families: dict[str, str] = {}
        for name, usual in later.items():
            given = starts[s].get(name) if s < len(starts) else None
            if given is not None and _reach(given) > s:
                raise ModelError(
                    f"first, slice {s}: the conditional of {name!r} reaches {_reach(given)} slices back, before "
                    "the start"
                )
            if given is not None:
                if given != usual:
                    own_families[name] = in_slice(name, s)
            elif _reach(usual) > s:
                if s == 0:
                    raise ModelError(
                        f"variable {name!r} depends on an earlier slice, and the first slice has none; "
                        f"give {name!r} a conditional in `first`"
                    )
                own_families[name] = schedule[s - 1].get(name, name)
        schedule.append(own_families)
    return schedule


def _template(
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


def _plain(conditional: Conditional, name: str) -> Conditional:
    """A family of the template with its variables named as in the later slices."""
    parents = []
    for parent in conditional.parents:
        own, at = split_name(parent.name)
        parents.append(renamed(parent, own) if at is not None and at >= 0 else parent)
    return _with_family(conditional, renamed(conditional.variable, name), tuple(parents))


def _placed(conditional: Conditional, name: str, t: int, static: Sequence[str]) -> Conditional:
    """A family of the template as it stands in slice t of the unrolled network."""
    parents = []
    for parent in conditional.parents:
        own, at = split_name(parent.name)
        if own in static:
            parents.append(parent)
        else:
            parents.append(renamed(parent, in_slice(own, t + (at if at is not None and at < 0 else 0))))
    return _with_family(conditional, renamed(conditional.variable, in_slice(name, t)), tuple(parents))
