"""Decision networks to and from pyAgrum's InfluenceDiagram.

In pyAgrum a decision knows its parents and nothing else: recall is perfect if nothing is forgotten so, else limited.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from bbn.core.errors import ModelError
from bbn.core.extras import needed_by
from bbn.core.frozen import Array
from bbn.io.number_tables import tables
from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.decision_network import DecisionNetwork
from bbn.model.variable import State, Variable


def from_influence_diagram(model: Any) -> DecisionNetwork:
    """A pyAgrum InfluenceDiagram as a decision network."""
    variables: dict[str, Variable] = {}
    parents: dict[str, list[str]] = {}
    for node in sorted(model.nodes()):
        own = model.variable(node)
        parents[own.name()] = [model.variable(p).name() for p in sorted(model.parents(node))]
        if not model.isUtilityNode(node):
            variables[own.name()] = Variable(own.name(), _states(own))
    parts: list[Any] = []
    for node in sorted(model.nodes()):
        name = model.variable(node).name()
        if model.isDecisionNode(node):
            parts.append(Decision(name, variables[name].states, parents[name]))
        elif model.isUtilityNode(node):
            table = model.utility(node)
            axes = [other for other in table.names if other in variables]
            values = _in_order(table.toarray().reshape([variables[a].card for a in reversed(axes)]))
            parts.append(Utility(name, [variables[a] for a in axes], values))
        else:
            table = model.cpt(node)
            axes = list(table.names[1:])
            shape = [variables[a].card for a in reversed(axes)]
            values = table.toarray().reshape([*shape, variables[name].card])
            order = [*range(len(axes) - 1, -1, -1), len(axes)]
            parts.append(CPT(variables[name], [variables[a] for a in axes], values.transpose(order)))
    try:
        return DecisionNetwork(parts)
    except ModelError as error:
        if "forgets" not in str(error):
            raise
        return DecisionNetwork(parts, recall="limited")


def to_influence_diagram(dn: DecisionNetwork) -> Any:
    """The decision network as a pyAgrum InfluenceDiagram; states become labels."""
    with needed_by("an influence diagram of pyAgrum", "pyagrum"):
        pyagrum: Any = import_module("pyagrum")
    tables(dn)  # ModelError if a node has none
    model = pyagrum.InfluenceDiagram()
    for name in dn.names:
        kind = dn.kind(name)
        labels = [str(state) for state in dn.states(name)] if kind != "utility" else ["value"]
        own = pyagrum.LabelizedVariable(name, name, labels)
        add = {
            "chance": model.addChanceNode,
            "decision": model.addDecisionNode,
            "utility": model.addUtilityNode,
        }
        add[kind](own)
    for parent, child in dn.arcs:
        model.addArc(parent, child)
    for conditional in dn.conditionals:
        if isinstance(conditional, CPT):
            axes = [*range(len(conditional.parents) - 1, -1, -1), len(conditional.parents)]
            model.cpt(conditional.name).fillWith(conditional.table.transpose(axes).ravel().tolist())
    for utility in dn.utilities:
        if utility.combine is not None:
            raise ModelError(
                f"utility {utility.name!r} is a {utility.combine} of utilities; pyAgrum holds tables only"
            )
        model.utility(utility.name).fillWith(_in_order(utility.table).ravel().tolist())
    return model


def _in_order(table: Array) -> Array:
    """The table with its axes the other way round: pyAgrum's array has the last parent's first."""
    return table.transpose(range(np.ndim(table) - 1, -1, -1))


def _states(variable: Any) -> list[State]:
    numeric = type(variable).__name__ in ("IntegerVariable", "RangeVariable") or variable.varType() in (2, 4)
    return [int(text) if numeric else text for text in variable.labels()]
