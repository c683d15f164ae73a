"""XDSL's noisy-MAX has its strongest state first: variables whose strongest state is the last are written in reverse.

A property of the node says so, and reading turns them back.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from bbn.core.frozen import Array
from bbn.model.cpt import CPT, Conditional
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Variable

PROPERTY = "bbn_states"
REVERSED = "reversed"


def strongest_last(network: object) -> list[str]:
    """The variables to write in reverse; of decision networks none, whose noisy maxima are written as tables then."""
    if not isinstance(network, BayesianNetwork):
        return []
    return [
        c.name
        for c in network.conditionals
        if isinstance(c, NoisyMax)
        and c.strongest != c.variable.states[0]
        and type(c.variable) is Variable  # another kind may need its order
    ]


def with_states_reversed(network: BayesianNetwork, names: Collection[str]) -> BayesianNetwork:
    """The same network with the states of these variables from the last to the first."""
    variables = {
        v.name: Variable(v.name, v.states[::-1]) if v.name in names else v for v in network.variables
    }
    conditionals: list[Conditional] = []
    for own in network.conditionals:
        family = [v.name for v in (*own.parents, own.variable)]
        if not isinstance(own, CPT) or not any(name in names for name in family):
            conditionals.append(own)
            continue
        child, parents = variables[own.variable.name], tuple(variables[v.name] for v in own.parents)
        if isinstance(own, NoisyMax):
            links = [
                _turned(link, [p.name, child.name], names) for p, link in zip(parents, own.links, strict=True)
            ]
            leak = _turned(own.leak, [child.name], names)
            conditionals.append(NoisyMax.made(child, parents, links, leak, own.strongest))
        else:
            conditionals.append(CPT.trusted(child, parents, _turned(own.table, family, names)))
    return BayesianNetwork(conditionals, network.name, network.metadata)


def _turned(table: Array, axes: list[str], names: Collection[str]) -> Array:
    """The table with the axes of these variables reversed."""
    flipped = tuple(axis for axis, name in enumerate(axes) if name in names)
    return np.ascontiguousarray(np.flip(table, flipped))
