"""A structure, however given, as families: each variable with its parents, and the states that it declares.

A structure is a networkx DiGraph (node attributes "states" and "continuous" honoured), a list of arcs (parent, child),
or a network.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bbn.core.cycles import find_cycle, shown_cycle
from bbn.core.errors import DataError, ModelError, nearest
from bbn.data import DataSource, continuous_columns
from bbn.data.reading import Reading
from bbn.data.source import is_source
from bbn.model.binned import Binned
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable, check_states

if TYPE_CHECKING:
    import networkx as nx


class Structure(NamedTuple):
    """Parents by child, in order, and what is known of the states."""

    parents: dict[str, tuple[str, ...]]
    states: dict[str, Sequence[State]]
    network: BayesianNetwork | None = None
    """The network that the structure came from, if it came from one."""
    continuous: tuple[str, ...] = ()
    """The nodes that it says are continuous."""

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes, in order."""
        return tuple(self.parents)

    @property
    def families(self) -> list[tuple[str, ...]]:
        """(\\*parents, child) per node: the axes of its table."""
        return [(*parents, child) for child, parents in self.parents.items()]


def read_structure(structure: Any) -> Structure:
    """The families of a DiGraph, a list of arcs or a network.

    >>> read_structure([("Storm", "Campfire"), ("Bus", "Campfire")]).parents
    {'Storm': (), 'Campfire': ('Storm', 'Bus'), 'Bus': ()}
    """
    if isinstance(structure, BayesianNetwork):
        return Structure(
            {name: structure.parents(name) for name in structure.names},
            {v.name: declared_states(v) for v in structure.variables if not isinstance(v, Continuous)},
            structure,
            structure.continuous,
        )
    if hasattr(structure, "predecessors"):
        return _from_graph(structure)
    if hasattr(structure, "columns") or is_source(structure) or isinstance(structure, os.PathLike):
        raise ModelError(
            f"data stand where the structure is expected (a {type(structure).__name__}): the structure comes first, "
            "then the data, as in bbn.fit(structure, data); only bbn.learn takes the data first"
        )
    if hasattr(structure, "edges"):
        raise ModelError("the structure is an undirected graph; expected a networkx DiGraph")
    return _from_arcs(structure)


def _from_graph(graph: nx.DiGraph[Any]) -> Structure:
    if graph.is_multigraph():
        raise ModelError("the structure is a multigraph; expected a networkx DiGraph, one arc per pair")
    both = next(((a, b) for a, b in graph.edges if a != b and graph.has_edge(b, a)), None)
    if both is not None:
        raise ModelError(
            f"the structure has arcs both ways between {both[0]!r} and {both[1]!r}, which is how a CPDAG shows an "
            "undirected edge; bbn.to_dag picks a DAG from the class"
        )
    parents = {}
    for node, attributes in graph.nodes(data=True):
        arcs = list(graph.predecessors(node))
        ordered = list(attributes.get("parents", arcs))
        if sorted(map(str, ordered)) != sorted(map(str, arcs)):
            raise ModelError(f"node {node!r}: attribute 'parents' {ordered} does not match its arcs {arcs}")
        parents[node] = tuple(ordered)
    continuous = tuple(node for node, told in graph.nodes(data="continuous") if told)
    states: dict[str, Any] = {
        n: listed for n, listed in graph.nodes(data="states") if listed is not None and n not in continuous
    }
    bins: list[tuple[str, Any]] = list(graph.nodes(data="bins"))
    states |= {n: Binned(n, edges, states.get(n)) for n, edges in bins if edges is not None}
    return _checked(parents, states)._replace(continuous=continuous)


def _from_arcs(arcs: Any) -> Structure:
    if isinstance(arcs, str | Mapping) or not isinstance(arcs, Iterable):
        raise ModelError(f"a structure is a DiGraph, a list of (parent, child) or a network, found {arcs!r}")
    parents: dict[str, list[str]] = {}
    for arc in arcs:
        if isinstance(arc, str) or not isinstance(arc, Sequence) or len(arc) != 2:
            raise ModelError(f"an arc is a pair (parent, child), found {arc!r}")
        parent, child = arc
        parents.setdefault(parent, [])
        parents.setdefault(child, [])
        if parent in parents[child]:
            raise ModelError(f"the arc {parent!r} → {child!r} is there twice")
        parents[child].append(parent)
    return _checked({child: tuple(ps) for child, ps in parents.items()}, {})


def _checked(parents: dict[str, tuple[str, ...]], states: dict[str, Sequence[State]]) -> Structure:
    """A structure with named nodes and no cycle."""
    if not parents:
        raise ModelError("the structure has no nodes; a DiGraph can hold nodes without arcs")
    for node in parents:
        if not isinstance(node, str) or not node:
            hint = f"; write {str(node)!r}" if isinstance(node, int) else ""
            hint += ", and with pandas, data.columns = data.columns.map(str)" if hint else ""
            raise ModelError(
                f"a node of the structure is {node!r}; expected a variable's name, a string{hint}"
            )
    cycle = find_cycle(parents)
    if cycle:
        raise ModelError(f"the structure has a cycle: {shown_cycle(cycle)}")
    return Structure(parents, states)


def declared_states(variable: Variable) -> Any:
    """What a variable declares of its column: itself where it keeps cuts, otherwise its states."""
    return variable if isinstance(variable, Binned) else variable.states


def states_of(declared: Any) -> Sequence[State]:
    """The states that were declared, be it by a variable or as they are."""
    return declared.states if isinstance(declared, Variable) else declared


def observe(
    structure: Structure,
    data: Any,
    reading: Reading = Reading(),  # noqa: B008  # frozen
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None = None,
) -> tuple[dict[str, Variable], DataSource]:
    """The variables of a structure by name, and the data as a source of their columns.

    States come from the network, the graph, `reading`, `hidden` or, failing these, from the data; nodes are continuous
    where the structure or `reading` says so.
    """
    states = reading.states or {}
    numeric = _said_continuous(structure, reading.continuous)
    if reading.continuous is not None:
        _refuse_discrete_children(structure, numeric)
    unseen = _checked_hidden(structure, states, hidden)
    for name in unseen:
        if name in numeric:
            raise DataError(
                f"hidden= names {name!r}, which is continuous; only a discrete variable can be hidden"
            )
    declared: dict[str, Sequence[State]] = {**states, **structure.states, **unseen}
    for name in states:
        if name not in structure.parents:
            raise DataError(
                f"states= names {name!r}, which is not a node of the structure{nearest(name, structure.names)}"
            )
        check_states(name, states_of(states[name]), states_of(declared[name]))
    if reading.continuous is None:
        told: dict[str, Any] = {**declared, **{name: Continuous(name) for name in numeric}}
        reading = reading._replace(states=told)
    else:
        reading = reading._replace(states=declared, continuous=numeric)
    source = reading.source(data, names=structure.names, hidden=unseen)
    if reading.continuous is None:
        numeric = _said_continuous(structure, continuous_columns(source))
        _refuse_discrete_children(structure, numeric)
    found = {v.name: v for v in (*source.variables, *map(Continuous, numeric))}
    variables = {}
    for name in structure.names:
        variables[name] = (
            found[name] if name in found and name not in unseen else Variable(name, states_of(declared[name]))
        )
    return variables, source


def _said_continuous(structure: Structure, continuous: str | Iterable[str] | None) -> tuple[str, ...]:
    """The nodes that are said to be continuous, in the structure's order."""
    if continuous is not None and not isinstance(continuous, Iterable):
        raise DataError(f"continuous is {continuous!r}; expected the names of the continuous variables")
    named = [continuous] if isinstance(continuous, str) else list(continuous or ())
    for name in named:
        if name not in structure.parents:
            raise DataError(
                f"continuous= names {name!r}, which is not a node of the structure{nearest(name, structure.names)}"
            )
        if name in structure.states:
            raise DataError(
                f"continuous= names {name!r}, which has the states {list(states_of(structure.states[name]))}"
            )
    numeric = {*structure.continuous, *named}
    return tuple(name for name in structure.names if name in numeric)


def _refuse_discrete_children(structure: Structure, numeric: Iterable[str]) -> None:
    """ModelError if a child of a continuous node is not continuous."""
    continuous = set(numeric)
    for child, parents in structure.parents.items():
        for parent in parents:
            if parent in continuous and child not in continuous:
                raise ModelError(discrete_child(child, parent))


def blank(variable: Variable, parents: tuple[Variable, ...]) -> Conditional:
    """A conditional of the right shape: a uniform table, or a standard Gaussian."""
    if not isinstance(variable, Continuous):
        return CPT.uniform(variable, parents)
    slopes = sum(isinstance(p, Continuous) for p in parents)
    shape = tuple(p.card for p in parents if not isinstance(p, Continuous))
    return Gaussian.trusted(variable, parents, np.zeros(shape), np.ones(shape), np.zeros((*shape, slopes)))


def refuse_continuous(structure: Structure, what: str) -> None:
    """DataError if a structure has a continuous node, which `what` cannot take."""
    if structure.continuous:
        raise DataError(
            f"{structure.continuous[0]!r} is continuous, and {what} takes discrete variables only; bbn.fit and "
            "bbn.fit_em learn Gaussians, bbn.discretize cuts a column into intervals"
        )


def _checked_hidden(
    structure: Structure,
    states: Mapping[str, Sequence[State]] | None,
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None,
) -> dict[str, Sequence[State]]:
    """Hidden variables with their states; a bare name is enough where the states are known."""
    known = {**(states or {}), **structure.states}
    if isinstance(hidden, str):
        hidden = [hidden]
    listed = dict(hidden) if isinstance(hidden, Mapping) else dict.fromkeys(hidden or ())
    checked: dict[str, Sequence[State]] = {}
    for name, own in listed.items():
        if name not in structure.parents:
            raise DataError(
                f"hidden= names {name!r}, which is not a node of the structure{nearest(name, structure.names)}"
            )
        if own is None and name not in known:
            raise DataError(f"hidden variable {name!r} needs its states: hidden={{{name!r}: [its states]}}")
        if (
            own is not None
            and name in known
            and Variable(name, own) != Variable(name, states_of(known[name]))
        ):
            raise DataError(
                f"hidden= gives {name!r} the states {list(own)}, but it has {list(states_of(known[name]))}"
            )
        checked[name] = known[name] if own is None else own
    return checked
