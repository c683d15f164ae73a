"""Networks with NoisyMax or Deterministic conditionals as networks of small tables, with variables in between.

For inference the effects of the parents join one by one, m_i = max(m_{i−1}, effect of x_i): `chained` adds the m_i. For
learning the effects must be seen apart from what joins them: `linked` adds a variable for each effect and one for each
maximum, whose tables are known; EM then learns the links as it learns any table, and `unlinked` reads them back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.deterministic import Deterministic
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Variable

TABLE_CELLS = 2**16
"""A full table of no more cells is made where it serves better than a chain: in a maximum, or to weigh samples."""


def noisy(net: BayesianNetwork) -> list[NoisyMax]:
    """The NoisyMax conditionals of a network, in topological order."""
    return [c for c in net.conditionals if isinstance(c, NoisyMax)]


def factored_parts(net: BayesianNetwork) -> list[Factored]:
    """The conditionals of a network that are chains of small tables, in topological order."""
    return [c for c in net.conditionals if isinstance(c, Factored)]


def chained(net: BayesianNetwork, beyond: float = 0.0, certain: bool = False) -> BayesianNetwork:
    """The network with a chain of small tables for each conditional whose full table has more cells than its chain.

    Itself if there is none. The variables of the network keep their names; the others' begin with the child's name.
    Tables of at most `beyond` cells stay as they are; with `certain` so do all NoisyMax, as what lies between in their
    chains is not certain given the variables of the network.
    """
    wanted = [
        c
        for c in factored_parts(net)
        if table_cells(c) > beyond and _pays(c) and not (certain and isinstance(c, NoisyMax))
    ]
    if not wanted:
        return net
    memo = f"chained {beyond:g} {certain}"
    if memo in net.memo:
        known: BayesianNetwork = net.memo[memo]
        return known
    conditionals: dict[str, list[Conditional]] = {c.variable.name: [c] for c in net.conditionals}
    conditionals |= split(wanted, net.names)
    if not (beyond or certain):
        chains = {own.name: [c.variable.name for c in conditionals[own.name][:-1]] for own in wanted}
        net.memo.setdefault("chains", chains)
    made = BayesianNetwork([c for some in conditionals.values() for c in some], net.name, net.metadata)
    known = net.memo.setdefault(memo, made)
    return known


def split(wanted: Iterable[Factored], names: Sequence[str]) -> dict[str, list[Conditional]]:
    """The small tables of each conditional that is to be a chain, by child; `names` are those of all variables."""
    order = {name: i for i, name in enumerate(names)}
    free = free_names(names)
    found: dict[str, list[Conditional]] = {}
    for own in wanted:
        # the same order of parents in every chain: children of the same causes then share the way through them
        ranked = sorted(range(len(own.parents)), key=lambda i: order[own.parents[i].name])
        found[own.name] = _chain(own.ordered(ranked), free)
    return found


def quiet_chains(net: BayesianNetwork) -> dict[str, tuple[int, list[str]]]:
    """Per NoisyMax that `chained` takes apart, its weakest state's code and the variables that then have it too."""
    chained(net)
    known = net.memo.get("chains", {})
    return {c.name: (c.weakest_code, known[c.name]) for c in noisy(net) if c.name in known}


def _chain(own: Factored, free: Callable[[str], str]) -> list[Conditional]:
    """The small tables of a conditional of at least one parent, the last of them that of its variable."""
    before: tuple[Variable, ...] = ()
    tables: list[Conditional] = []
    for i, (parent, table) in enumerate(zip(own.parents, own.steps(), strict=True)):
        variable = own.variable
        if i < len(own.parents) - 1:
            states = own.variable.states if isinstance(own, NoisyMax) else range(table.shape[-1])
            variable = Variable(free(f"{own.name} ≥ {parent.name}"), states)
        tables.append(CPT.trusted(variable, (*before, parent), table))
        before = (variable,)
    return tables


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
    free = free_names(net.names)
    conditionals: list[Conditional] = []
    effects: dict[str, list[str]] = {}
    known: list[str] = []
    for conditional in net.conditionals:
        if isinstance(conditional, Deterministic):
            tables = _chain(conditional, free) if conditional.parents else [conditional.to_cpt()]
            conditionals += tables
            known += [table.variable.name for table in tables]
            continue
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
        if isinstance(given, Deterministic):
            conditionals.append(given)
            continue
        if not isinstance(given, NoisyMax):
            conditionals.append(net[name])
            continue
        *links, leak = (net[effect].table for effect in effects[name])
        conditionals.append(NoisyMax.made(given.variable, given.parents, links, leak, given.strongest))
    return BayesianNetwork(conditionals, like.name, like.metadata)


def table_cells(conditional: CPT) -> float:
    """The cells of the full table."""
    return math.prod(float(v.card) for v in (conditional.variable, *conditional.parents))


def _pays(own: Factored) -> bool:
    """Whether the chain has fewer cells than the full table."""
    return len(own.parents) > 1 and own.chain_cells < table_cells(own)


def _maximum(noisy_max: NoisyMax) -> Array:
    """P(max | two effects), shape (states, states, states)."""
    card = noisy_max.variable.card
    codes = np.arange(card)
    rises = noisy_max.variable.code(noisy_max.strongest) == card - 1
    stronger = np.maximum if rises else np.minimum
    table = np.zeros((card, card, card))
    table[codes[:, None], codes[None, :], stronger(codes[:, None], codes[None, :])] = 1.0
    return table


def free_names(names: Iterable[str]) -> Callable[[str], str]:
    """A function that makes a name that is not among these and that it has not made yet."""
    taken = set(names)

    def free(name: str) -> str:
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    return free
