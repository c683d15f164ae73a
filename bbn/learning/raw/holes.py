"""The tables of a structure from rows with holes: by EM where it is quick, otherwise by what each family has.

EM takes all of a row's numbers and states together, so its cost grows with the settings that the rows leave open. Where
it would take more than MOST_STEPS, known beforehand from the structure and the holes, a family of states is counted in
the rows that have all of it (available cases), and holes among Gaussians are filled with values from their columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bbn.core.errors import BudgetError
from bbn.data import CodedTable
from bbn.inference.rows.expected_counts import Expectation
from bbn.learning.incomplete.em import fit_em
from bbn.learning.tables.fit import fit, network_from_counts
from bbn.learning.tables.priors import NormalInverseGamma, Prior
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork

MOST_STEPS = 2e6
"""The most that a pass of EM may take, in steps of about 10 nanoseconds: a fiftieth of a second."""
LINKED = 2e3
"""Such steps for a Gaussian that is linked to others, in one setting of one pattern of holes."""
AVAILABLE = "EM would take long: each table was counted in the rows that have all of its family"
FILLED = "EM would take long: holes were filled with values drawn from their own columns"


def fitted(
    graph: Any, source: Any, numbers: Sequence[str], prior: Prior | None, max_iter: int = 100
) -> tuple[BayesianNetwork, Any, str]:
    """The network of a structure, what EM gave on the way, and what to say if it was not EM."""
    import networkx as nx

    shape: Any = graph
    settings: dict[str, Any] = {}
    if numbers:
        shape = nx.DiGraph()
        shape.add_nodes_from(graph.nodes)
        shape.add_edges_from(graph.edges)
        settings = {"continuous": list(numbers), "gaussian_prior": NormalInverseGamma()}
    if not source.incomplete:
        return fit(shape, source, prior, **settings), None, ""
    if isinstance(source, CodedTable) and em_steps(graph, source) > MOST_STEPS:
        if numbers:
            return fit(shape, filled(source), prior, **settings), None, FILLED
        return available_cases(graph, source, prior), None, AVAILABLE
    result = fit_em(shape, source, None, prior, seed=0, max_iter=max_iter, **settings)
    return result.network, result, ""


def em_steps(graph: Any, source: CodedTable) -> float:
    """About how many steps a pass of EM takes; infinite where it would not fit."""
    import networkx as nx

    cards = {v.name: v.card for v in source.variables}
    linked = graph.subgraph(source.numbers)
    steps = 0.0
    scopes: list[list[str]] = []
    for component in nx.weakly_connected_components(linked):
        scope = sorted({p for name in component for p in graph.predecessors(name) if p in cards})
        settings = math.prod(float(cards[name]) for name in scope)
        if len(component) > 1:
            holes = np.isnan(np.column_stack([source.numbers[name] for name in sorted(component)]))
            patterns = len(np.unique(holes, axis=0))
            steps += LINKED * settings * patterns * len(component)
        steps += settings * source.n_rows
        scopes.append(scope)
    if steps > MOST_STEPS:
        return steps
    return steps + _tree_steps(graph, source, scopes)


def _tree_steps(graph: Any, source: CodedTable, scopes: Sequence[Sequence[str]]) -> float:
    """The entries that a pass over the rows looks at in the junction tree of the variables with states."""
    variables = {v.name: v for v in source.variables}
    tables = [
        CPT.uniform(variable, [variables[p] for p in graph.predecessors(name)])
        for name, variable in variables.items()
    ]
    if not tables:
        return 0.0
    try:
        return Expectation(BayesianNetwork(tables)).visits(source.merged())
    except BudgetError:
        return math.inf


def available_cases(graph: Any, source: CodedTable, prior: Prior | None) -> BayesianNetwork:
    """Each table from the rows that have the child and all parents."""
    variables = {v.name: v for v in source.variables}
    parents = {name: tuple(variables[p] for p in graph.predecessors(name)) for name in variables}
    families = [(*(p.name for p in parents[name]), name) for name in variables]
    counts = dict(zip(variables, source.counts(families), strict=True))
    return network_from_counts(parents, variables, counts, prior)


def filled(coded: CodedTable, seed: int = 0) -> CodedTable:
    """The table with each hole filled by a value drawn from its own column; itself if it has none."""
    if not coded.incomplete:
        return coded
    rng = np.random.default_rng(seed)
    codes = {}
    for variable in coded.variables:
        own = coded.codes[variable.name]
        gone = own == variable.card
        if gone.any():
            there = own[~gone]
            own = own.copy()
            own[gone] = there[rng.integers(len(there), size=int(gone.sum()))] if len(there) else 0
        codes[variable.name] = own
    numbers = {}
    for name, values in coded.numbers.items():
        missing = np.isnan(values)
        there = values[~missing]
        numbers[name] = values.copy()
        numbers[name][missing] = (
            there[rng.integers(len(there), size=int(missing.sum()))] if len(there) else 0.0
        )
    return CodedTable(coded.variables, codes, coded.n_rows, coded.weights, coded.kind, numbers)
