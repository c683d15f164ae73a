"""From what a reader found in a file to a checked network, with all the problems there are.

A reader describes each node as a `RawNode`, with the places to point at, and `build` checks what every
format has in common: names, states, parents, the number of entries, the rows, cycles. Problems are collected,
so that one reading finds all of them; the error that is raised is the first, and its `problems` holds all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import MAX_AXES, require_table
from bbn.core.cycles import find_cycle, shown_cycle
from bbn.core.errors import BudgetError, ModelError, ParseError
from bbn.core.frozen import Array
from bbn.io.problems import Problems, Where
from bbn.io.row_sums import Values, settle
from bbn.io.source_text import OversizedFileError, Source
from bbn.io.writing import state_text
from bbn.model.binned import Binned
from bbn.model.cpt import CPT, Conditional, discrete_child
from bbn.model.deterministic import Deterministic
from bbn.model.gaussian import Gaussian
from bbn.model.holding_state import holding
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous, State, Variable


class RawGaussian(NamedTuple):
    """The numbers of a continuous node, checked by its reader: the arrays of a `Gaussian`."""

    means: Array
    variances: Array
    weights: Array
    tied_variance: bool
    fixed_variance: bool


class RawNoisy(NamedTuple):
    """The numbers of a node that is the strongest of its causes' effects: see `NoisyMax`."""

    links: Sequence[Values]
    """Per parent the entries of its link, the child's states varying fastest."""
    leak: Values | None
    """One row, or None."""
    first: bool | None
    """Whether the first state of the child is the strongest; None leaves it to the usual rule."""


class RawRule(NamedTuple):
    """What a `Deterministic` takes beside its family."""

    rule: str
    at_least: int | None
    holds: dict[str, State]


class RawUtility(NamedTuple):
    """The numbers of a utility, checked by its reader: what a `Utility` takes."""

    table: Array | None
    weights: Array | None
    combine: str | None


class RawNode(NamedTuple):
    """A node as read, not yet checked.

    `values` holds the entries in the table's own order: parents' axes first in their order, the child's last;
    None if the reader has already reported what is wrong with it. `row_where` gives the place of a row by its
    number. Of a continuous node `gaussian` holds the numbers, or None likewise; of a noisy-MAX `noisy` does, of a
    utility `worth`. The parents of a decision are what it observes.
    """

    name: str
    states: Sequence[State]
    parents: Sequence[str]
    values: Values | None
    where: Where = None
    row_where: Callable[[int], Where] | None = None
    gaussian: RawGaussian | None = None
    continuous: bool = False
    noisy: RawNoisy | None = None
    role: str = ""
    """ "decision", "utility", or nothing for a chance variable."""
    worth: RawUtility | None = None
    rule: RawRule | None = None
    """Of a node that its parents decide."""
    bins: Sequence[float] | None = None
    """The cut points of a variable whose states are intervals."""


Family = tuple[RawNode, Variable, tuple[Variable, ...]]
"""A node, its variable and its parents."""


def build(
    source: Source,
    nodes: Sequence[RawNode],
    name: str = "",
    metadata: Mapping[str, str] | None = None,
    strict: bool = False,
    problems: Problems | None = None,
    recall: str | None = "perfect",
) -> BayesianNetwork:
    """The network of these nodes, in any order; ParseError if anything is wrong with them.

    `strict` is that of `bbn.load`: rows off 1 by more than 1e-9 are an error. `problems` are those that the
    reader has already found. With decisions or utilities it is a DecisionNetwork, and `recall` is that of
    `bbn.io.build_decisions`.
    """
    problems = problems or Problems(source)
    nodes = _one_of_each(nodes, problems)
    if any(node.role for node in nodes):
        from bbn.io.build_decisions import build_decisions

        found: Any = build_decisions(source, nodes, name, metadata, strict, problems, recall)
        return found  # type: ignore[no-any-return]
    if not nodes and not problems.count:
        problems.add("the network is empty; it needs at least one node")
    families = find_families(nodes, find_variables(nodes, problems), problems)
    conditionals = checked_conditionals(source, families, strict, problems)
    if problems.count:
        add_cycle(nodes, problems)
        problems.raise_first()
    try:
        return BayesianNetwork(conditionals, name, metadata)
    except ModelError as error:
        add_cycle(nodes, problems)
        if not problems.count:
            problems.add(str(error))
        problems.raise_first()
        raise


def _one_of_each(nodes: Iterable[RawNode], problems: Problems) -> list[RawNode]:
    """The first node of each name; the others are problems."""
    first: dict[str, RawNode] = {}
    for node in nodes:
        if first.setdefault(node.name, node) is not node:
            place = first[node.name].where
            also = "" if place is None else f"; it is already on line {problems.line_of(place)}"
            problems.add(f"duplicate node {node.name!r}{also}", node.where)
    return list(first.values())


def checked_conditionals(
    source: Source, families: Sequence[Family], strict: bool, problems: Problems
) -> list[Conditional]:
    """The conditionals of these families, in order; none if there is a problem, with these or from before."""
    with_tables = [family for family in families if family[0].values is not None]

    def report(index: int, row: int, message: str) -> None:
        node, _, parents = with_tables[index]
        where = node.row_where(row) if node.row_where is not None else node.where
        problems.add(f"node {node.name!r}{_row_name(parents, row)}: {message}", where)

    tables = [(variable.card, node.values) for node, variable, _ in with_tables if node.values is not None]
    settled = iter(settle(tables, strict, report, source.path))
    noisy = {
        node.name: _noisy(node, variable, parents, strict, problems)
        for node, variable, parents in families
        if node.noisy is not None
    }
    ruled = {
        node.name: _ruled(node, variable, parents, problems)
        for node, variable, parents in families
        if node.rule is not None
    }
    if problems.count:
        return []
    conditionals: list[Conditional] = []
    for node, variable, parents in families:
        if node.noisy is not None:
            conditionals.append(noisy[node.name])
        elif node.rule is not None:
            decided = ruled[node.name]
            assert decided is not None
            conditionals.append(decided)
        elif node.gaussian is not None:
            conditionals.append(Gaussian.trusted(Continuous(variable.name), parents, *node.gaussian))
        else:
            shape = [*(p.card for p in parents), variable.card]
            conditionals.append(CPT.trusted(variable, parents, next(settled).reshape(shape)))
    return conditionals


def _noisy(
    node: RawNode, variable: Variable, parents: tuple[Variable, ...], strict: bool, problems: Problems
) -> NoisyMax:
    """The noisy-MAX of a node; rows that are wrong are reported."""
    assert node.noisy is not None
    card = variable.card
    first = node.noisy.first
    if first is None:
        code = holding(variable.states) if card == 2 else card - 1
        if code is None:
            problems.add(
                f"node {node.name!r}: which of {list(variable.states)} is the strongest? their words do not tell; say "
                f"strongest: {state_text(variable.states[0])} or strongest: {state_text(variable.states[1])}",
                node.where,
            )
        first = code == 0
    weakest = np.zeros(card)
    weakest[-1 if first else 0] = 1.0
    leak = weakest if node.noisy.leak is None else node.noisy.leak
    named = [*((f", link of {p.name!r}", (p,)) for p in parents), (", leak", ())]

    def report(index: int, row: int, message: str) -> None:
        what, own = named[index]
        problems.add(f"node {node.name!r}{what}{_row_name(own, row)}: {message}", node.where)

    tables = [(card, values) for values in (*node.noisy.links, leak)]
    *links, last = settle(tables, strict, report, problems.source.path)
    return NoisyMax.made(variable, parents, links, last.reshape(card), variable.states[0 if first else -1])


def _ruled(
    node: RawNode, variable: Variable, parents: tuple[Variable, ...], problems: Problems
) -> Deterministic | None:
    """The node that its parents decide; None if what is wrong with it has been reported."""
    assert node.rule is not None
    rule, at_least, holds = node.rule
    try:
        return Deterministic(variable, parents, rule, at_least=at_least, holds=holds)  # type: ignore[arg-type]
    except ModelError as error:
        problems.add(f"node {node.name!r}: {error}", node.where)
        return None


def find_variables(nodes: Iterable[RawNode], problems: Problems) -> dict[str, Variable | None]:
    """The variable of each name; None where its states are wrong."""
    variables: dict[str, Variable | None] = {}
    for node in nodes:
        try:
            if node.role == "utility":
                variables[node.name] = None
            elif node.continuous:
                variables[node.name] = Continuous(node.name)
            elif node.bins is not None:
                variables[node.name] = Binned(node.name, node.bins, node.states)
            else:
                variables[node.name] = Variable(node.name, node.states)
        except ModelError as error:
            variables[node.name] = None
            problems.add(str(error), node.where)
    return variables


def find_families(
    nodes: Iterable[RawNode], variables: Mapping[str, Variable | None], problems: Problems
) -> list[Family]:
    """Each node that is right so far, with its variable and its parents."""
    families = []
    for node in nodes:
        variable = variables[node.name]
        parents: list[Variable] = []
        seen: set[str] = set()
        read = any(part is not None for part in (node.values, node.gaussian, node.noisy, node.rule))
        right = variable is not None and read
        for name in node.parents:
            if name not in variables:
                problems.add(
                    f"node {node.name!r} has the unknown parent {name!r}{problems.nearest(name, variables)}",
                    node.where,
                )
            elif name == node.name:
                problems.add(f"node {node.name!r} is its own parent: a cycle", node.where)
            elif name in seen:
                problems.add(f"node {node.name!r} has the parent {name!r} twice", node.where)
            else:
                parent = variables[name]
                if isinstance(parent, Continuous) and not node.continuous:
                    problems.add(discrete_child(node.name, name), node.where)
                elif parent is not None:
                    parents.append(parent)
            seen.add(name)
        right = right and len(parents) == len(node.parents)
        if (
            variable is not None
            and right
            and (
                node.continuous
                or node.noisy is not None
                or node.rule is not None
                or _has_right_size(node, variable, parents, problems)
            )
        ):
            families.append((node, variable, tuple(parents)))
    return families


def _has_right_size(
    node: RawNode, variable: Variable, parents: Sequence[Variable], problems: Problems
) -> bool:
    assert node.values is not None
    cards = [*(p.card for p in parents), variable.card]
    found = len(node.values)
    if len(cards) <= MAX_AXES and found != prod(cards):
        axes = " × ".join(f"{v.name} {v.card}" for v in (*parents[:8], variable))
        problems.add(
            f"node {node.name!r}: expected {prod(cards)} entries ({axes}), found {found}",
            node.where,
            OversizedFileError if refusal(cards) else ParseError,
        )
        return False
    too_large = refusal(cards)
    if too_large:
        problems.add(f"node {node.name!r}: {too_large}", node.where, OversizedFileError)
    return not too_large


def refusal(cards: list[int]) -> str:
    """Why a table with axes of these lengths is too large, or nothing."""
    if len(cards) < 16 and prod(cards) < 2**20:
        return ""
    if len(cards) > MAX_AXES:
        return f"the table would have {len(cards)} axes; at most {MAX_AXES} are possible"
    try:
        require_table(cards, "the table", "use fewer parents or states")
    except BudgetError as error:
        return str(error)
    return ""


def _row_name(parents: Sequence[Variable], row: int) -> str:
    """Which row this is, in words: the setting of the parents."""
    setting = []
    for parent in reversed(parents):
        row, code = divmod(row, parent.card)
        setting.append(f"{parent.name}={parent.states[code]}")
    return f", row {', '.join(reversed(setting))}" if setting else ""


def add_cycle(nodes: Iterable[RawNode], problems: Problems) -> None:
    """Note a cycle among the nodes, if there is one, by the first of its nodes in the file."""
    by_name = {node.name: node for node in nodes}
    others = {name: [p for p in node.parents if p in by_name and p != name] for name, node in by_name.items()}
    cycle = find_cycle(others)
    if cycle:
        places = [where for where in (by_name[name].where for name in cycle) if where is not None]
        problems.add(f"the network has a cycle: {shown_cycle(cycle)}", min(places, default=None))
