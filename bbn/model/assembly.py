"""The conditionals of a network, from a list or a graph.

They make a network if there is one per variable, the parents are known and agreed on, and there is no cycle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bbn.core.cycles import find_cycle, shown_cycle
from bbn.core.errors import ModelError, nearest
from bbn.model.binned import Binned
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Continuous, Variable

if TYPE_CHECKING:
    import networkx as nx


def by_name(conditionals: Iterable[Conditional]) -> dict[str, Conditional]:
    """Name to conditional, in the order given; ModelError if there are two for one variable."""
    if not isinstance(conditionals, list | tuple) and (
        isinstance(conditionals, Conditional | str | Mapping) or not isinstance(conditionals, Iterable)
    ):  # lists first: to ask whether something is a Conditional is slow
        raise ModelError(f"a network needs a list of CPTs, found {conditionals!r}")
    given: dict[str, Conditional] = {}
    for conditional in conditionals:
        if type(conditional) is not CPT and not isinstance(conditional, CPT | Gaussian | Conditional):
            raise ModelError(
                f"a network is made of CPTs, found {conditional!r} ({type(conditional).__name__})"
            )
        name = conditional.variable.name
        if name in given:
            raise ModelError(f"duplicate node: there are two CPTs for {name!r}")
        given[name] = conditional
    return given


def without_node(parent: str, given: Iterable[str], what: str = "CPT") -> str:
    """The clause about a parent that has no node of its own: what is missing, and the nearest name there is."""
    near = nearest(parent, given)
    way = near if "did you mean" in near else "; give it one"
    return f"has the unknown parent {parent!r}: there is no {what} of {parent!r} itself{way}"


def check_parents(given: Mapping[str, Conditional]) -> None:
    """ModelError if a parent has no conditional of its own, or has other states there."""
    for name, conditional in given.items():
        for parent in conditional.parents:
            own = given.get(parent.name)
            if own is None:
                raise ModelError(f"node {name!r} {without_node(parent.name, given)}")
            if isinstance(parent, Continuous) and not isinstance(conditional.variable, Continuous):
                raise ModelError(discrete_child(name, parent.name))
            if own.variable is not parent and own.variable != parent:
                if isinstance(parent, Continuous) or isinstance(own.variable, Continuous):
                    raise ModelError(
                        f"node {name!r}: its parent is {parent!r}, but {parent.name!r} itself is {own.variable!r}"
                    )
                raise ModelError(
                    f"node {name!r}: its parent {parent.name!r} has states {list(parent.states)}, "
                    f"but {parent.name!r} itself has states {list(own.variable.states)}"
                )


def topological_order(given: Mapping[str, Conditional], children: Mapping[str, list[str]]) -> list[str]:
    """Parents before children, ties in the order given (Kahn 1962); ModelError that names a cycle."""
    waiting = {name: len(c.parents) for name, c in given.items()}
    ready = deque(name for name, n in waiting.items() if n == 0)
    order = []
    while ready:
        name = ready.popleft()
        order.append(name)
        for child in children[name]:
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(order) < len(given):
        cycle = find_cycle({name: [p.name for p in c.parents] for name, c in given.items()})
        raise ModelError(f"the network has a cycle: {shown_cycle(cycle)}")
    return order


def of_graph(graph: nx.DiGraph[Any]) -> list[Conditional]:
    """The conditionals of a graph whose nodes carry "states" and "cpt", or "states" and "table"."""
    if not hasattr(graph, "predecessors"):
        raise ModelError(f"expected a networkx DiGraph, found {graph!r} ({type(graph).__name__})")
    variables: dict[Any, Variable] = {}
    for node, attributes in graph.nodes(data=True):
        if isinstance(attributes.get("cpt"), Gaussian):
            variables[node] = Continuous(node)
            continue
        if "states" not in attributes and not isinstance(attributes.get("cpt"), CPT):
            raise ModelError(f"node {node!r} of the graph has no attribute 'states'")
        own = getattr(attributes.get("cpt"), "variable", None)
        states = attributes.get("states", getattr(own, "states", ()))
        if isinstance(own, Binned) and own.states == tuple(states):
            variables[node] = own
        elif attributes.get("bins") is not None:
            variables[node] = Binned(node, attributes["bins"], states)
        else:
            variables[node] = Variable(node, states)
    conditionals: list[Conditional] = []
    for node, attributes in graph.nodes(data=True):
        cpt = attributes.get("cpt", attributes.get("table"))
        if cpt is None:
            raise ModelError(f"node {node!r} of the graph has neither 'cpt' nor 'table'")
        parents = list(attributes.get("parents", graph.predecessors(node)))
        if sorted(map(str, parents)) != sorted(map(str, graph.predecessors(node))):
            raise ModelError(f"node {node!r}: attribute 'parents' {parents} does not match its arcs")
        if isinstance(cpt, Conditional):
            arcs = sorted(map(str, parents))
            if cpt.variable != variables[node] or sorted(p.name for p in cpt.parents) != arcs:
                raise ModelError(f"node {node!r}: its CPT is {cpt!r}, which does not match the graph")
            conditionals.append(cpt)
        else:
            conditionals.append(CPT(variables[node], [variables[p] for p in parents], cpt))
    return conditionals
