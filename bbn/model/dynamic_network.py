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
from bbn.core.keywords import keywords_checked
from bbn.core.missing_names import NamesSuggested
from bbn.model.assembly import by_name
from bbn.model.cpt import CPT, Conditional
from bbn.model.dynamic_assembly import (
    as_later,
    as_placed,
    check_variables,
    checked_conditional,
    families_of_first_slices,
    listed_starts,
    one_template,
    own_starts,
    reach,
)
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.previous import MAX_LAG, check_plain_names, split_name
from bbn.model.questions import AskableInTime
from bbn.model.variable import Continuous, State, Variable, checked_name

if TYPE_CHECKING:
    import networkx as nx

NODE_BYTES = 3000
"""What a node of an unrolled network takes, about."""


class DynamicNetwork(AskableInTime, NamesSuggested):
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
    enough; otherwise the last that `first` gives. A conditional in `first` is a family of its own, which learners fit
    apart even where its numbers are those of `later`; leave it out (or give the same object twice) to share one.

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

    __slots__ = (
        *("_schedule", "_starts", "continuous", "memo", "metadata", "name", "names", "order", "static"),
        *("template", "variables"),
    )

    name: str
    metadata: Mapping[str, str]
    order: int
    """How many slices back the furthest parent lies; 0 where slices do not depend on each other."""
    names: tuple[str, ...]
    """The variables' names, static ones too, parents in a slice before their children."""
    variables: tuple[Variable, ...]
    """The variables, in the same order."""
    continuous: tuple[str, ...]
    """The names of the continuous variables."""
    static: tuple[str, ...]
    """The names of the variables that exist once."""
    template: BayesianNetwork
    """Every distinct family once: "Rain" for the later slices (and the first where it is the same), "Rain[0]" where the
    first slice has its own, "Rain[-1]" a placeholder for the parent in the slice before. What learners fit."""
    memo: dict[str, Any]
    """What others keep with it so as not to work it out again; no part of its value."""
    _schedule: tuple[Mapping[str, str], ...]
    _starts: tuple[Mapping[str, Conditional], ...]

    @keywords_checked
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
        starts = own_starts([by_name(listed) for listed in listed_starts(first)], repeated)
        static = [own for own in starts[0] if own not in repeated]
        check_plain_names([*repeated, *static])
        variables = {own: starts[0][own].variable for own in static}
        variables |= {own: conditional.variable for own, conditional in repeated.items()}
        check_variables(starts, variables, static)
        repeated = {own: checked_conditional(c, variables, static) for own, c in repeated.items()}
        starts = [
            {own: checked_conditional(c, variables, static) for own, c in listed.items()} for listed in starts
        ]
        order = max(map(reach, repeated.values()))
        if order > MAX_LAG:
            raise ModelError(f"a parent lies {order:,} slices back; expected at most {MAX_LAG:,}")
        schedule = families_of_first_slices(starts, repeated, max(order, len(starts)))
        template = one_template(starts, repeated, static, schedule)
        names = tuple(own for own in template.names if split_name(own)[1] is None)
        self._set(
            name=name,
            names=names,
            variables=tuple(map(template.variable, names)),
            continuous=tuple(n for n in names if isinstance(template.variable(n), Continuous)),
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
        return as_later(own, name)

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

    @keywords_checked
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
            made += [as_placed(self.template[self.family(own, t)], own, t, self.static) for own in temporal]
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
    @keywords_checked
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
                later.append(as_later(template[own], own))
            elif at is not None and at >= 0:
                starts += [[] for _ in range(at + 1 - len(starts))]
                starts[at].append(as_later(template[own], plain))
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
