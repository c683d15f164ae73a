"""The commands about files: check, show, convert, examples; and how every command opens a network or data."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bbn.cli.output import print_rows, write
from bbn.cli.output import show as show_text
from bbn.core.display import visible
from bbn.core.errors import BBNError, BBNWarning, DataError, ModelError, ParseError, nearest
from bbn.io import dumps, find_format, load, loads, save
from bbn.io.writing import node_names
from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.decision_network import DecisionNetwork
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.factor_graph import FactorGraph
from bbn.model.gaussian import Gaussian
from bbn.model.node_notes import DESCRIPTIONS, described
from bbn.model.noisy_max import NoisyMax
from bbn.model.table_input import settings

if TYPE_CHECKING:
    from bbn.data.write import Output
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import State, Variable

MAX_ROWS = 20
"""The most rows of each table that are shown unless all are asked for."""
MAX_TEXT = 1000
"""The most characters of each metadata text that are shown unless all are asked for."""
MAX_BESIDE = 1000
"""The most files of a folder that are searched for the one that a misspelt name meant."""
KINDS = ("csv", "tsv", "parquet")
"""What a file of data may be."""


def open_network(name: str, format: str | None = None, strict: bool = False) -> BayesianNetwork:
    """The network in a file, on standard input (``-``), or among the examples; a file comes first."""
    return as_network(open_model(name, format, strict), name)


def as_network(model: Any, name: str) -> BayesianNetwork:
    """The model, if it is a Bayesian network; ModelError else."""
    if isinstance(model, FactorGraph):
        raise ModelError(
            f"{name} holds a factor graph, which is not a network; only check, convert, query and mpe take one"
        )
    refuse_decisions(model, name)
    if isinstance(model, DynamicNetwork):
        raise ModelError(f"{name} holds a dynamic network; {_TIME} take one")
    return cast("BayesianNetwork", model)


_TIME = "filter, query, mpe, learn, check, convert, show, plot and explore"


def refuse_decisions(model: Any, name: str) -> None:
    """ModelError if it is a decision network, which most commands do not take."""
    if isinstance(model, DecisionNetwork):
        raise ModelError(
            f"{name} holds a decision network; solve, check, convert, show, plot and explore take one"
        )


def open_model(name: str, format: str | None = None, strict: bool = False) -> Any:
    """The network, or the factor graph of a UAI file (MARKOV), under a name as `open_network` takes it."""
    from bbn.io.examples import example, examples

    if format is not None:
        find_format(format)
    if name == "-":
        return loads(sys.stdin.buffer.read(), format, strict, path="standard input")
    if name in examples() and not os.path.exists(name):
        return example(name)
    try:
        return load(name, format, strict)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, f"{error.strerror}{_nearest_model(name)}", name) from error


def _nearest_model(name: str) -> str:
    """The example or the file beside it that a name may have meant, as the end of a message; all it may be if none."""
    from bbn.io.examples import examples

    folder, base = os.path.split(name)
    beside = sorted(os.listdir(folder or "."))[:MAX_BESIDE] if os.path.isdir(folder or ".") else []
    hint = nearest(base, [*(() if folder else examples()), *beside])
    if "did you mean" in hint:
        return hint
    return "" if folder else ", nor an example of that name (bbn examples lists them)"


@contextmanager
def data_file(name: str, kind: str | None = None) -> Iterator[str]:
    """A path to data whose suffix names its kind; a temporary one for ``-``, or where `kind` is given."""
    if kind is not None and kind not in KINDS:
        raise DataError(f"unknown kind of data {kind!r}{nearest(kind, KINDS)}")
    if name != "-" and kind is None:
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="bbn-") as folder:
        path = Path(folder, f"data.{kind or 'csv'}")
        if name == "-":
            path.write_bytes(sys.stdin.buffer.read())
        else:
            path.symlink_to(os.path.abspath(name))
        try:
            yield str(path)
        except BBNError as error:
            if str(path) not in str(error):
                raise
            shown = "standard input" if name == "-" else name
            raise DataError(str(error).replace(str(path), shown)) from error
        except FileNotFoundError as error:
            error.filename = name
            raise


def read_decimals(data: str, decimal: str | None) -> Any:
    """The data, one table read with the decimal mark that --decimal names; as they are where it names none."""
    from bbn.data.columns import read_table
    from bbn.data.streams.readers import is_many

    return data if decimal is None or is_many(data) else read_table(data).told(decimal)


def table_output(name: str, kind: str | None, escape_formulas: bool) -> Output:
    """Where a command writes rows; DataError if `kind` is not one that there is."""
    if kind is not None and kind not in KINDS:
        raise DataError(f"unknown kind of data {kind!r}{nearest(kind, KINDS)}")
    from bbn.data.write import Output

    return Output(name, kind or "", escape_formulas)


def check(options: argparse.Namespace) -> int:
    """Say for each file that it is right, or list all its problems; 1 if there are any."""
    told: list[list[Any]] = []
    for file in options.files:
        name = "standard input" if file == "-" else file
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BBNWarning)
            try:
                network = open_model(file, options.from_format, options.strict)
            except ParseError as error:
                for problem in error.problems or (error,):
                    said = " ".join(problem.message.split())
                    told.append([name, "error", problem.line, problem.column, said])
                continue
            except OSError as error:
                told.append([name, "error", None, None, error.strerror or str(error)])
                continue
        for warning in caught if not options.quiet else ():
            said = str(warning.message).removeprefix(f"{name}: ")
            told.append([name, "warning", None, None, said])
        if not options.quiet:
            told.append([name, "ok", None, None, _size_text(network)])
    if options.format == "table":
        for name, kind, line, column, said in told:
            place = ":".join(str(part) for part in (name, line, column) if part is not None)
            show_text(f"{place}: {said}" if kind == "error" else f"{name}: {kind}{_AFTER[kind]}{said}")
    else:
        print_rows(options, ["file", "kind", "line", "column", "message"], told)
    return int(any(kind == "error" for _, kind, *_ in told))


_AFTER = {"warning": ": ", "ok": ", "}


def show(options: argparse.Namespace) -> int:
    """Print the network: its size, its texts, and each node with its table."""
    network = _open_shown(options.file, options.from_format)
    for name in options.nodes:
        network[name]
    if options.format != "table":
        _show_rows(network, options)
        return 0
    show_text(f"{network.name or options.file}: {_size_text(network)}")
    if options.brief:
        return 0
    if not options.nodes:
        for key, text in network.metadata.items():
            if key == DESCRIPTIONS and described(network.metadata, node_names(network)):
                continue  # each stands with its node
            hidden = len(text) - MAX_TEXT if not options.all else 0
            more = f"… {hidden} more characters (--all shows them)"
            show_text(f"{key}: {text[:MAX_TEXT]}{more}" if hidden > 0 else f"{key}: {text}")
    about = described(network.metadata, node_names(network))
    for name in options.nodes or network.names:
        own = f"\n{visible(about[name])}" if name in about else ""
        title, _, rest = _node(network, name, None if options.all else MAX_ROWS).partition("\n")
        show_text(f"\n{title}{own}\n{rest}" if rest else f"\n{title}{own}")
    return 0


def _open_shown(name: str, format: str | None) -> Any:
    """A network or a decision network."""
    model = open_model(name, format)
    if isinstance(model, DynamicNetwork):
        return model.unroll(model.order + 1)
    return model if isinstance(model, DecisionNetwork) else as_network(model, name)


def convert(options: argparse.Namespace) -> int:
    """Write the network of one file to another."""
    network = open_model(options.file, options.from_format, options.strict)
    if options.output == "-":
        if options.to_format is None:
            raise ValueError("writing to standard output needs --to FORMAT")
        write(dumps(network, options.to_format))
    else:
        if options.to_format is not None:
            find_format(options.to_format)
        save(network, options.output, options.to_format)
    return 0


def examples(options: argparse.Namespace) -> int:
    """Print the networks that ship with the package, a line each."""
    from bbn.io.examples import example, summary
    from bbn.io.examples import examples as names

    about = {name: summary(name) for name in names()}
    if not options.long:
        if options.format == "table":
            wide = max(map(len, about))
            show_text("\n".join(f"{name:{wide}}  {text}" for name, text in about.items()))
        else:
            print_rows(options, ["name", "description"], [list(pair) for pair in about.items()])
        return 0
    networks = {name: example(name) for name in names()}
    if options.format == "table":
        for name, network in networks.items():
            show_text(f"{name}: {_size_text(network)}. {about[name]}".strip())
    else:
        rows = [[name, *_size(network).values(), about[name]] for name, network in networks.items()]
        print_rows(options, ["name", *_SIZES, "description"], rows)
    return 0


_SIZES = ("nodes", "arcs", "parameters", "entries")


def _size(network: BayesianNetwork) -> dict[str, int]:
    nodes: list[Any] = [network[name] for name in network.names]
    entries = sum(node.n_entries if isinstance(node, CPT) else _entries(node) for node in nodes)
    arcs = sum(len(network.parents(name)) for name in network.names)
    sizes = len(nodes), arcs, network.n_parameters, entries
    return dict(zip(_SIZES, sizes, strict=True))


def _entries(node: Any) -> int:
    return node.table.size if isinstance(node, Utility) else 0


def _size_text(network: BayesianNetwork | FactorGraph | DynamicNetwork) -> str:
    if isinstance(network, DynamicNetwork):
        n = len(network)
        return f"a dynamic network: {n} variable{'s' * (n != 1)} a slice, reaching {network.order} back"
    if isinstance(network, FactorGraph):
        factors = network.factors()
        entries = sum(factor.values.size for factor in factors)
        n, m = len(network), len(factors)
        return f"a factor graph: {n} variable{'s' * (n != 1)}, {m} factor{'s' * (m != 1)}, {entries} table entries"
    n, m, free, entries = _size(network).values()
    return (
        f"{n} node{'s' * (n != 1)}, {m} arc{'s' * (m != 1)}, {free} free parameter{'s' * (free != 1)}, "
        f"{entries} table entries"
    )


def _show_rows(network: BayesianNetwork, options: argparse.Namespace) -> None:
    """The size alone, or every table entry as a row: the variable, its parents' states, its state, P."""
    size = {"name": network.name or options.file, **_size(network)}
    if options.brief:
        print_rows(options, list(size), [list(size.values())])
        return
    rows: list[list[Any]] = []
    for name in options.nodes or network.names:
        cpt = network[name]
        if isinstance(cpt, Gaussian):
            rows += _gaussian_rows(cpt, options.format)
            continue
        if isinstance(cpt, NoisyMax):
            rows += _link_rows(cpt, options.format)
            continue
        if isinstance(cpt, Utility):
            for index, setting in settings(cpt.discrete_parents) if cpt.combine is None else ():
                given = _given(cpt.discrete_parents, setting, options.format)
                rows.append([name, given, "utility", float(cpt.table[index])])
            continue
        if not isinstance(cpt, CPT):
            continue
        every = product(*(parent.states for parent in cpt.parents))
        for setting, row in zip(every, cpt.table.reshape(-1, cpt.variable.card).tolist(), strict=True):
            given = _given(cpt.parents, setting, options.format)
            rows += [[name, given, state, p] for state, p in zip(cpt.variable.states, row, strict=True)]
    print_rows(options, ["variable", "given", "state", "probability"], rows, size)


def _link_rows(noisy: NoisyMax, format: str) -> list[list[Any]]:
    """The effects of each cause by itself, and of the leak, as rows."""
    rows = []
    for parent, link in zip(noisy.parents, noisy.links, strict=True):
        for state, effect in zip(parent.states, link.tolist(), strict=True):
            given = _given([parent], [state], format)
            rows += [
                [noisy.name, given, own, p] for own, p in zip(noisy.variable.states, effect, strict=True)
            ]
    leak = zip(noisy.variable.states, noisy.leak.tolist(), strict=True)
    return rows + [[noisy.name, _given([], [], format), own, p] for own, p in leak]


def _gaussian_rows(gaussian: Gaussian, format: str) -> list[list[Any]]:
    """The mean, the variance and the weights of each setting as rows; what they are stands for the state."""
    words = ["mean", "variance", *(f"weight of {parent.name}" for parent in gaussian.continuous_parents)]
    rows = []
    for index, setting in settings(gaussian.discrete_parents):
        given = _given(gaussian.discrete_parents, setting, format)
        numbers = [gaussian.means[index], gaussian.variances[index], *gaussian.weights[index]]
        rows += [[gaussian.name, given, word, float(x)] for word, x in zip(words, numbers, strict=True)]
    return rows


def _given(parents: Sequence[Variable], setting: Sequence[State], format: str) -> Any:
    """The parents' states by name; in CSV, as text."""
    given = {parent.name: state for parent, state in zip(parents, setting, strict=True)}
    return ", ".join(f"{name}={state}" for name, state in given.items()) if format == "csv" else given


def _node(network: BayesianNetwork, name: str, max_rows: int | None) -> str:
    """A node in words: its states, and its table without the rows past `max_rows`."""
    if isinstance(network[name], Decision):
        return f"{visible(name)}: {visible(repr(network[name]))}"
    if isinstance(network[name], Utility):
        return f"{visible(name)}: a utility\n{network[name]}"
    variable = network.variable(name)
    states = ", ".join(visible(str(state)) for state in variable.states) or "a number"
    lines = str(network[name]).splitlines()
    head = 3  # the title, the names of the columns, the rule
    hidden = len(lines) - head - max_rows if max_rows is not None else 0
    if hidden > 1:
        lines = [*lines[: head + (max_rows or 0)], f"… {hidden} more rows (--all shows them)"]
    return "\n".join([f"{visible(name)}: {states}", *lines])
