"""How wrong a network is about rows that it was not learned from."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.learning.raw.raw_columns import cut
from bbn.model.binned import Binned
from bbn.model.network import BayesianNetwork


class Built(NamedTuple):
    """A network that was learned, and what it was learned from."""

    network: BayesianNetwork
    graph: Any
    cuts: dict[str, Binned]
    """The numbers that the network has as intervals; the others are Gaussians."""
    detail: Any = None


def loss_of(built: Built, test: CodedTable, target: str | None) -> float:
    """How wrong a network is about rows that it was not learned from.

    Of a target with states the mean log loss; of one that is a number the root of the mean squared error, in its own
    units; without a target the mean of −ln density of a row.
    """
    net = built.network
    if target is not None and target in test.numbers and target in net.continuous:
        return error_of(built, test, target)
    if target is not None:
        p, true, mass = probabilities(built, test, target)
        picked = p[np.arange(len(true)), true]
        return float(-np.average(np.log(np.maximum(picked, 1e-300)), weights=mass)) if len(true) else 0.0
    weights = np.ones(test.n_rows) if test.weights is None else test.weights
    logs = np.asarray(net.log_likelihood(cut(test, built.cuts)), dtype=np.float64)
    for name, variable in built.cuts.items():
        logs = logs - _log_widths(variable, test.numbers[name])
    return float(-np.average(logs, weights=weights))


def probabilities(built: Built, test: CodedTable, target: str) -> tuple[Array, Any, Array]:
    """The predicted probabilities (rows, states), the true states and the weights of rows whose target is known."""
    net = built.network
    rows = cut(test, built.cuts)
    variable = next(v for v in rows.variables if v.name == target)
    order = [variable.code(state) for state in net.states(target)]
    p = np.zeros((rows.n_rows, variable.card))
    p[:, order] = np.column_stack(list(net.predict_proba(without(rows, target), target).values()))
    known = np.flatnonzero(rows.codes[target] < variable.card)
    weights = np.ones(test.n_rows) if test.weights is None else test.weights
    return p[known], rows.codes[target][known].astype(np.intp), weights[known]


def error_of(built: Built, test: CodedTable, target: str) -> float:
    """The root of the mean squared error of a number's posterior mean, over the rows that have it."""
    true = test.numbers[target]
    known = np.flatnonzero(~np.isnan(true))
    if not len(known):
        return 0.0
    rows = without(cut(test, built.cuts), target)
    found = np.asarray(built.network.predict(rows, target), dtype=np.float64)
    weights = np.ones(test.n_rows) if test.weights is None else test.weights
    return float(np.sqrt(np.average((found - true)[known] ** 2, weights=weights[known])))


def without(table: CodedTable, name: str) -> CodedTable:
    """The table without one of its columns."""
    codes = {n: column for n, column in table.codes.items() if n != name}
    numbers = {n: column for n, column in table.numbers.items() if n != name}
    variables = tuple(v for v in table.variables if v.name != name)
    return CodedTable(variables, codes, table.n_rows, table.weights, numbers=numbers)


def _log_widths(variable: Binned, values: Array) -> Array:
    """ln of the width of the interval that each value lies in, 0 where it is missing."""
    there = values[~np.isnan(values)]
    if not len(there):
        return np.zeros(len(values))
    edges = np.array(variable.edges)
    low = min(there.min(), edges[0] if len(edges) else there.min())
    high = max(there.max(), edges[-1] if len(edges) else there.max())
    bounds = np.concatenate([[low], edges, [high]])
    scale = max(high - low, 1e-300)
    widths = np.maximum(np.diff(bounds), 1e-3 * scale)
    position = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), 0.0, np.log(widths[position]))
