"""The commands about files: check, show, convert, examples."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from typing import TYPE_CHECKING

from bbn.errors import BBNWarning, ParseError
from bbn.io import dumps, find_format, load, loads, save

if TYPE_CHECKING:
    from bbn.network import BayesianNetwork

MAX_ROWS = 20
"""So many rows of each table are shown unless all are asked for."""


def open_network(name: str, format: str | None = None, strict: bool = False) -> BayesianNetwork:
    """The network in a file, on standard input (``-``), or among the examples; a file comes first."""
    from bbn.models import example, examples

    if name == "-":
        return loads(sys.stdin.buffer.read(), format, strict, path="standard input")
    if name in examples() and not os.path.exists(name):
        return example(name)
    return load(name, format, strict)


def check(options: argparse.Namespace) -> int:
    """Say of each file that it is right, or list all its problems; 1 if there is any."""
    wrong = 0
    for name in options.files:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BBNWarning)
            try:
                network = open_network(name, options.format, options.strict)
            except ParseError as error:
                wrong += 1
                for problem in error.problems or (error,):
                    print(" ".join(str(problem).split()))
                continue
            except OSError as error:
                wrong += 1
                print(f"{name}: {error.strerror or error}")
                continue
        for warning in caught:
            print(f"{name}: warning: {str(warning.message).removeprefix(f'{name}: ')}")
        print(f"{name}: ok, {_size(network)}")
    return int(wrong > 0)


def show(options: argparse.Namespace) -> int:
    """Print the network: its size, its texts, and each node with its table."""
    network = open_network(options.file)
    for name in options.nodes:
        network.variable(name)
    print(f"{network.name or options.file}: {_size(network)}")
    if options.brief:
        return 0
    if not options.nodes:
        for key, text in network.metadata.items():
            print(f"{key}: {text}")
    for name in options.nodes or network.names:
        print(f"\n{_node(network, name, None if options.all else MAX_ROWS)}")
    return 0


def convert(options: argparse.Namespace) -> int:
    """Write the network of one file to another."""
    network = open_network(options.input, options.from_format, options.strict)
    if options.output == "-":
        if options.to_format is None:
            raise ValueError("writing to standard output needs --to FORMAT")
        sys.stdout.write(dumps(network, options.to_format))
    else:
        if options.to_format is not None:
            find_format(options.to_format)
        save(network, options.output, options.to_format)
    return 0


def examples(options: argparse.Namespace) -> int:
    """Print the names of the networks that ship with the package."""
    from bbn.models import example
    from bbn.models import examples as names

    for name in names():
        if options.long:
            network = example(name)
            about = network.metadata.get("description", "").split(". ")[0]
            print(f"{name}: {_size(network)}. {about}".strip())
        else:
            print(name)
    return 0


def _size(network: BayesianNetwork) -> str:
    tables = [network[name].table for name in network.names if hasattr(network[name], "table")]
    n, m = len(network), sum(len(network.parents(name)) for name in network.names)
    free = sum(table.size - table.size // table.shape[-1] for table in tables)
    return (
        f"{n} node{'s' * (n != 1)}, {m} arc{'s' * (m != 1)}, {free} free parameter{'s' * (free != 1)}, "
        f"{sum(table.size for table in tables)} table entries"
    )


def _node(network: BayesianNetwork, name: str, max_rows: int | None) -> str:
    """A node in words: its states, and its table without the rows past `max_rows`."""
    variable = network.variable(name)
    states = ", ".join(str(state) for state in variable.states)
    lines = str(network[name]).splitlines()
    head = 3  # the title, the names of the columns, the rule
    hidden = len(lines) - head - max_rows if max_rows is not None else 0
    if hidden > 1:
        lines = [*lines[: head + (max_rows or 0)], f"… {hidden} more rows (--all shows them)"]
    return "\n".join([f"{name}: {states}", *lines])
