"""Networks with NoisyMax conditionals as networks of small tables, with variables of their own in between.

For inference the effects of the parents join one by one, m_i = max(m_{i−1}, effect of x_i): `chained` adds the m_i. For
learning the effects must be seen apart from what joins them: `linked` adds a variable for each effect and one for each
maximum, whose tables are known; EM then learns the links as it learns any table, and `unlinked` reads them back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Variable


def noisy(net: BayesianNetwork) -> list[NoisyMax]:
    """The NoisyMax conditionals of a network, in topological order."""
    return [c for c in net.conditionals if isinstance(c, NoisyMax)]


def chained(net: BayesianNetwork) -> BayesianNetwork:
    """The network with a chain of small tables for each NoisyMax whose full table has more cells than the chain.

    Itself if there is none. The variables of the network keep their names; the others' begin with the child's name.
    """
    wanted = [c for c in noisy(net) if _pays(c)]
    if not wanted:
        return net
    if "chained" in net.memo:
        known: BayesianNetwork = net.memo["chained"]
        return known
    order = {name: i for i, name in enumerate(net.names)}
    free = _free_names(net)
    conditionals: dict[str, list[Conditional]] = {c.variable.name: [c] for c in net.conditionals}
    for own in wanted:
        # the same order of parents in every chain: children of the same causes then share the way through them
        ranked = sorted(range(len(own.parents)), key=lambda i: order[own.parents[i].name])
        parents = tuple(own.parents[i] for i in ranked)
        sorted_own = NoisyMax.made(
            own.variable, parents, [own.links[i] for i in ranked], own.leak, own.strongest
        )
        before: tuple[Variable, ...] = ()
        tables: list[Conditional] = []
        for i, (parent, table) in enumerate(zip(parents, sorted_own.steps(), strict=True)):
            last = i == len(parents) - 1
            name = own.name if last else free(f"{own.name} ≥ {parent.name}")
            variable = own.variable if last else Variable(name, own.variable.states)
            tables.append(CPT.trusted(variable, (*before, parent), table))
            before = (variable,)
        conditionals[own.name] = tables
    made = BayesianNetwork([c for some in conditionals.values() for c in some], net.name, net.metadata)
    known = net.memo.setdefault("chained", made)
    return known


def linked(net: BayesianNetwork) -> tuple[BayesianNetwork, dict[str, list[str]], list[str]]:
    """The network with a variable per effect and per maximum.

    Returns
    -------
    network
        Ordinary tables all over.
    effects
        Child to the names of the effects of its parents, in their order, then of its leak.
    known
        The names of the maxima, the children among them, whose tables are not to be learned.
    """
    free = _free_names(net)
    conditionals: list[Conditional] = []
    effects: dict[str, list[str]] = {}
    known: list[str] = []
    for conditional in net.conditionals:
        if not isinstance(conditional, NoisyMax):
            conditionals.append(conditional)
            continue
        child, states = conditional.variable, conditional.variable.states
        names = [free(f"{child.name} by {parent.name}") for parent in conditional.parents]
        made = [Variable(name, states) for name in [*names, free(f"{child.name} by itself")]]
        effects[child.name] = [v.name for v in made]
        for variable, parent, link in zip(made, conditional.parents, conditional.links, strict=False):
            conditionals.append(CPT.trusted(variable, (parent,), link.copy()))
        conditionals.append(CPT.trusted(made[-1], (), conditional.leak.copy()))
        maximum = _maximum(conditional)
        before = made[-1]
        for i, effect in enumerate(made[:-1]):
            last = i == len(made) - 2
            variable = child if last else Variable(free(f"{child.name} ≥ {effect.name}"), states)
            conditionals.append(CPT.trusted(variable, (before, effect), maximum.copy()))
            known.append(variable.name)
            before = variable
        if not conditional.parents:
            conditionals.append(CPT.trusted(child, (before,), np.eye(child.card)))
            known.append(child.name)
    return BayesianNetwork(conditionals, net.name, net.metadata), effects, known


def unlinked(net: BayesianNetwork, like: BayesianNetwork, effects: dict[str, list[str]]) -> BayesianNetwork:
    """The way back from `linked`: a network of the variables of `like`, with what was learned."""
    conditionals: list[Conditional] = []
    for given in like.conditionals:
        name = given.variable.name
        if not isinstance(given, NoisyMax):
            conditionals.append(net[name])
            continue
        *links, leak = (net[effect].table for effect in effects[name])
        conditionals.append(NoisyMax.made(given.variable, given.parents, links, leak, given.strongest))
    return BayesianNetwork(conditionals, like.name, like.metadata)


def _pays(noisy_max: NoisyMax) -> bool:
    """Whether the chain has fewer cells than the full table."""
    card, cards = noisy_max.variable.card, [p.card for p in noisy_max.parents]
    cells = float(card)
    for own in cards:
        cells *= own
    return len(cards) > 1 and card * card * sum(cards) < cells


def _maximum(noisy_max: NoisyMax) -> Array:
    """P(max | two effects), shape (states, states, states)."""
    card = noisy_max.variable.card
    codes = np.arange(card)
    rises = noisy_max.variable.code(noisy_max.strongest) == card - 1
    stronger = np.maximum if rises else np.minimum
    table = np.zeros((card, card, card))
    table[codes[:, None], codes[None, :], stronger(codes[:, None], codes[None, :])] = 1.0
    return table


def _free_names(net: BayesianNetwork) -> Callable[[str], str]:
    """A function that makes a name that no variable has yet."""
    taken = set(net.names)

    def free(name: str) -> str:
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    return free
