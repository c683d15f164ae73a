"""The components of a network's continuous variables, given which of them are observed.

See `jointly_gaussian` for what a component is. Large ones are eliminated variable by variable where that costs less
than the joint distribution of all: a linear-Gaussian chain takes time in proportion to its length.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bbn.inference.gaussian.dense_component import DenseComponent
from bbn.inference.gaussian.jointly_gaussian import Component, Given
from bbn.inference.gaussian.sparse_component import SparseComponent, eliminated
from bbn.model.cpt import Conditional
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous

__all__ = ["Component", "Given", "component_of", "components", "members_of"]

DENSE = 48
"""A component of at most this many variables is always written out."""


def components(
    net: BayesianNetwork,
    observed: Collection[str],
    targets: Iterable[str] = (),
    fixed: Mapping[str, int] | None = None,
    memory_limit: int | str | None = None,
) -> list[Component]:
    """The components of the observed continuous variables with their ancestors, and of the targets.

    Discrete parents in `fixed`, name to code, are taken at that state. An observed variable that `do` has set is in
    no component: there is nothing random about it.
    """
    above = net.ancestral_set(observed)
    found: list[Component] = []
    done: set[str] = set()
    for name in (*targets, *(n for n in net.names if n in above)):  # a target's component may be a larger one
        if name not in done and isinstance(net.variable(name), Continuous):
            component = component_of(net, name, observed, above, fixed, memory_limit)
            done |= set(component.names)
            if component.names:
                found.append(component)
    return found


def component_of(
    net: BayesianNetwork,
    name: str,
    observed: Collection[str],
    above: Collection[str],
    fixed: Mapping[str, int] | None = None,
    memory_limit: int | str | None = None,
) -> Component:
    """The component of one continuous variable; `above` are the observed ones and their ancestors."""
    members = members_of(net, name, observed, above)
    if len(members) > DENSE:
        cliques = eliminated(members, observed)
        if 0 < sum(len(clique) ** 3 for clique in cliques) < len(members) ** 3:
            return SparseComponent(members, observed, _order(net), fixed or {}, cliques, memory_limit)
    return DenseComponent(members, observed, _order(net), fixed or {}, memory_limit)


def members_of(
    net: BayesianNetwork, name: str, observed: Collection[str], above: Collection[str]
) -> list[Gaussian]:
    """What belongs to the component of a continuous variable, in topological order.

    Its unobserved parents do, and children of unobserved members as far as they lead to observed variables.
    """
    members, stack = set(), [name]
    while stack:
        member = stack.pop()
        if member in members:
            continue
        members.add(member)
        gaussian: Conditional = net[member]
        stack += [p.name for p in gaussian.parents if isinstance(p, Continuous) and p.name not in observed]
        if member not in observed:
            stack += [child for child in net.children(member) if child in above]
    gaussians: list[Conditional] = [net[member] for member in sorted(members, key=_order(net).__getitem__)]
    return [g for g in gaussians if isinstance(g, Gaussian) and not (g.is_point and g.name in observed)]


def _order(net: BayesianNetwork) -> dict[str, int]:
    """The place of each variable in topological order."""
    if "order" not in net.memo:
        net.memo["order"] = {name: i for i, name in enumerate(net.names)}
    order: dict[str, int] = net.memo["order"]
    return order
