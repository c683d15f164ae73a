"""The command that learns a dynamic network, structure and tables: `bbn learn --sequence` without a structure."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bbn.cli.learn_structure import AUTO, HILL_CLIMB, column_kinds, given_options
from bbn.core.errors import DataError

if TYPE_CHECKING:
    from bbn.model.dynamic_network import DynamicNetwork


def is_over_time(options: argparse.Namespace) -> bool:
    """Whether rows are steps of sequences."""
    return any(own is not None for own in (options.sequence, options.time, options.lag))


def learn_over_time(options: argparse.Namespace) -> tuple[DynamicNetwork, str]:
    """The dynamic network, and what happened in one line."""
    from bbn.learning.structure.hill_climb import hill_climb
    from bbn.learning.tables.fit import fit
    from bbn.learning.tables.prior_text import parse_prior

    if options.method not in (AUTO, "hill-climb"):
        raise DataError(
            f"--method {options.method} takes rows that do not depend on each other; over time it is hill-climb"
        )
    for name in ("hidden", "report"):
        if getattr(options, name):
            raise DataError(
                f"--{name} does not go with a structure over time; --structure names one to learn with"
            )
    given = given_options(options)
    for name in given:
        if name not in HILL_CLIMB:
            raise DataError(f"--{name.replace('_', '-')} does not go with a search over time")
    table, numeric = _columns(options)
    told = {"sequence": options.sequence, "time": options.time}
    read = {"weights": options.weights, "missing": options.missing}
    lag = 1 if options.lag is None else options.lag
    graph = hill_climb(table, lag=lag, continuous=numeric or None, **told, **read, **given)
    net: Any = fit(graph, table, parse_prior(options.prior), **told, **read)
    arcs = graph.number_of_edges()
    summary = (
        f"hill-climb, {len(net)} variable{'s' * (len(net) != 1)} a slice, {arcs} arc{'s' * (arcs != 1)}, "
        f"reaching {net.order} back, {net.n_parameters} free parameters, score {graph.graph['score']:.9g}"
    )
    if graph.graph["interrupted"]:
        summary += ", stopped before its end"
    return net, summary


def _columns(options: argparse.Namespace) -> tuple[Any, list[str]]:
    """The data without the columns that are dropped, and the names of those that hold numbers."""
    from bbn.data.columns import read_table
    from bbn.data.streams.readers import is_many
    from bbn.data.streams.stream import Streamed

    kinds = column_kinds(options) or {}
    if isinstance(options.data, Streamed) or is_many(options.data):
        if kinds:
            raise DataError("--kinds, --drop and --keep go with one file, where rows are steps of sequences")
        from bbn.data.streams.open import open_data

        return options.data if isinstance(options.data, Streamed) else open_data(
            options.data, decimal=options.decimal
        ), []
    roles = (options.sequence, options.time, options.weights)
    for name, kind in kinds.items():
        if kind not in ("category", "number", "drop"):
            raise DataError(f"--kinds {name}={kind}: over time a column is a category, a number, or dropped")
    table = read_table(options.data)
    kept = tuple(name for name in table.names if name in roles or kinds.get(name) != "drop")
    numeric = [name for name, kind in kinds.items() if kind == "number" and name not in roles]
    return table._replace(names=kept), numeric
