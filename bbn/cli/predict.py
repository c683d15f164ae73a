"""The command `bbn predict`: the most probable state of a target for rows of data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from bbn.cli.evidence_options import read_do
from bbn.cli.files import data_file, open_network, read_decimals, table_output
from bbn.cli.output import print_rows
from bbn.core.errors import DataError


def predict(options: argparse.Namespace) -> int:
    """Print the most probable state of the target for each row of data, or the probability of each state."""
    network = open_network(options.file)
    variable = network.variable(options.target)
    done = read_do(network, options)
    if options.dask is not None and options.output == "-":
        raise DataError("the workers of a cluster write their answers to a folder; -o names it")
    with data_file(options.data, options.from_format) as data:
        data = read_decimals(data, options.decimal)
        ask = network.predict_proba if options.proba else network.predict
        if options.output != "-":
            to: Any = options.output
            if options.dask is None:
                to = table_output(options.output, options.to_format, options.escape_formulas)
            ask(data, options.target, do=done, impossible=options.impossible, to=to, client=options.dask)
            return 0
        given = ask(data, options.target, do=done, impossible=options.impossible)
        head = list(variable.states) if options.proba else [options.target]
        print_rows(options, head, _rows(given, head, options.proba))
    return 0


def _rows(given: Any, head: list[Any], proba: bool) -> Iterator[list[Any]]:
    """The rows of predictions; those of a folder or a pattern of files come batch by batch."""
    for table in given if isinstance(given, Iterator) else [given]:
        columns = [table]
        if proba:  # pyarrow names the column of a state by its text
            columns = [table[str(state) if hasattr(table, "to_pylist") else state] for state in head]
        lists = [column.to_pylist() if hasattr(column, "to_pylist") else column for column in columns]
        yield from map(list, zip(*lists, strict=True))
