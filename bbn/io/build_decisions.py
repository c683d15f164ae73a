"""From what a reader found in a file to a checked decision network; beside `build`, which does it for conditionals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bbn.core.errors import ModelError
from bbn.io.build import RawNode, add_cycle, checked_conditionals, find_families, find_variables
from bbn.io.problems import Problems, Where
from bbn.io.source_text import Source
from bbn.model.decision import Decision, Utility
from bbn.model.decision_network import DecisionNetwork
from bbn.model.variable import Variable


def build_decisions(
    source: Source,
    nodes: Sequence[RawNode],
    name: str,
    metadata: Mapping[str, str] | None,
    strict: bool,
    problems: Problems,
    recall: str | None,
) -> DecisionNetwork:
    """The decision network of these nodes; ParseError if anything is wrong with them.

    `recall` is that of `DecisionNetwork`; None is perfect where nothing is forgotten, and limited else.
    """
    variables = find_variables(nodes, problems)
    chance = [node for node in nodes if not node.role]
    utilities = {node.name: node for node in nodes if node.role == "utility"}
    plain = {name: v for name, v in variables.items() if name not in utilities}
    families = find_families(chance, plain, problems)
    decisions = [_decision(node, plain, problems) for node in nodes if node.role == "decision"]
    made: dict[str, Utility | None] = {}
    for utility in utilities.values():
        _utility(utility, plain, utilities, made, problems)
    conditionals = checked_conditionals(source, families, strict, problems)
    if problems.count:
        add_cycle(nodes, problems)
        problems.raise_first()
    parts: list[Any] = [*conditionals, *(d for d in decisions if d), *(u for u in made.values() if u)]
    for wanted in ("perfect", "limited") if recall is None else (recall,):
        try:
            return DecisionNetwork(parts, name, metadata, wanted)
        except ModelError as error:
            if recall is None and wanted == "perfect" and "forgets" in str(error):
                continue
            problems.add(str(error), _place_of(str(error), nodes))
    problems.raise_first()
    raise AssertionError("unreachable: a problem was noted")


def _decision(node: RawNode, variables: Mapping[str, Variable | None], problems: Problems) -> Decision | None:
    for seen in node.parents:
        if seen not in variables:
            problems.add(
                f"decision {node.name!r} observes {seen!r}, which is not a variable or decision"
                f"{problems.nearest(seen, variables)}",
                node.where,
            )
            return None
    if variables.get(node.name) is None:
        return None
    try:
        return Decision(node.name, node.states, node.parents)
    except ModelError as error:
        problems.add(str(error), node.where)
        return None


def _utility(
    node: RawNode,
    variables: Mapping[str, Variable | None],
    utilities: Mapping[str, RawNode],
    made: dict[str, Utility | None],
    problems: Problems,
) -> Utility | None:
    """The utility of a node, those it is made of first; None, and a problem, if it is not one."""
    if node.name in made:
        return made[node.name]
    made[node.name] = None  # should it be met again, it is a utility of itself
    parents = []
    for name in node.parents:
        parent = (
            _utility(utilities[name], variables, utilities, made, problems)
            if name in utilities
            else variables.get(name)
        )
        if parent is None:
            if name not in variables and name not in utilities:
                problems.add(
                    f"utility {node.name!r} has the unknown parent {name!r}"
                    f"{problems.nearest(name, [*variables, *utilities])}",
                    node.where,
                )
            elif name in utilities and not problems.count:
                problems.add(f"utility {node.name!r} is made of itself, through {name!r}", node.where)
            return None
        parents.append(parent)
    if node.worth is None:
        return None
    try:
        table, weights, combine = node.worth
        made[node.name] = Utility(node.name, parents, table, combine=combine, weights=weights)
    except ModelError as error:
        problems.add(str(error), node.where)
    return made[node.name]


def _place_of(message: str, nodes: Sequence[RawNode]) -> Where:
    """The place of the node that a message names first."""
    named = re.search(r"'(.+?)'", message)
    return next((node.where for node in nodes if named and node.name == named[1]), None)
