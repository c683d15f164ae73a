"""The command that learns a network from data."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbn.cli.evidence_options import wants_progress
from bbn.cli.files import data_file, open_model, open_network, read_decimals
from bbn.cli.learn_structure import AUTO, learn_structure
from bbn.cli.learn_structure import METHODS as STRUCTURES
from bbn.cli.learn_time import is_over_time, learn_over_time
from bbn.cli.output import note, show, write
from bbn.core.errors import BBNError, DataError, TooManyParametersWarning, nearest
from bbn.data.streams.readers import is_many
from bbn.io import dumps, save
from bbn.model.dynamic_network import DynamicNetwork

if TYPE_CHECKING:
    from bbn.learning.learn_result import LearnResult
    from bbn.model.network import BayesianNetwork

METHODS = ("mle", "em", "gradient")
"""How the tables of a given structure are learned."""


def learn(options: argparse.Namespace) -> int:
    """Learn, say what came out, and write the network."""
    if options.method is None:
        options.method = AUTO if options.structure is None else "mle"
    options.progress = wants_progress(options)
    given = options.data
    result = None
    network: Any
    warnings.simplefilter("ignore", TooManyParametersWarning)  # what it says is among the notes
    try:
        with data_file(options.data, options.from_format) as options.data:
            if options.dask is None:
                options.data = read_decimals(options.data, options.decimal)
            if options.dask is not None or (options.structure is not None and is_many(options.data)):
                _open(options)
            if is_over_time(options) and options.structure is None and options.method not in METHODS:
                network, summary = learn_over_time(options)
            elif options.method in (AUTO, *STRUCTURES):
                result, summary = learn_structure(options)
                network = result.network
            else:
                network, summary = learn_tables(options)
            if options.report is not None:
                _write_page(options, given, network, result)
    except DataError as error:
        raise DataError(in_options(str(error))) from error
    except ValueError as error:
        if isinstance(error, BBNError):
            raise
        raise DataError(in_options(str(error))) from error
    passes = _passes(options, result)
    if passes:
        head, *notes = summary.split("\n")
        summary = "\n".join([f"{head}, {passes}", *notes])
    if options.output == "-":
        note("\n".join([summary, *_told(result)]), options.quiet)
        write(dumps(network, options.to_format or "yaml"))
    else:
        save(network, options.output, options.to_format)
        if not options.quiet:
            show("\n".join([f"{options.output}: {summary}", *_told(result)]))
    return 0


def _passes(options: argparse.Namespace, result: LearnResult | None) -> str:
    """How often the data were read, where they were not read into memory."""
    if result is not None:
        told = (line for line in result.report.splitlines() if line.endswith("over the data"))
        return next(told, "")
    count = getattr(options.data, "passes", None)
    return "" if count is None else f"{count} pass{'es' * (count != 1)} over the data"


def _told(result: LearnResult | None) -> list[str]:
    """What was done with the columns, the arcs, and what to be careful about."""
    if result is None:
        return []
    lines = result.report.splitlines()
    notes = [
        in_options(line)
        for line in lines
        if line.startswith(("note: ", "held-out ", "for the search", "its numbers"))
    ]
    table = in_options("\n".join(lines[lines.index("") :])).splitlines() if "" in lines else []
    return [*notes, *table]


def in_options(text: str) -> str:
    """A message that speaks of the command's options, not of Python's keywords.

    >>> in_options("kinds= can say otherwise; allow fewer parents (max_parents=)")
    '--kinds can say otherwise; allow fewer parents (--max-parents)'
    >>> in_options('kinds= can say otherwise, as in {"zip": "category"}')
    '--kinds can say otherwise, as in zip=category'
    """
    text = _MAPPING.sub(r"as in \1=\2", _OPENING.sub(r"--\1: ", text))
    return _KEYWORD.sub(lambda match: f"--{match[1].replace('_', '-')}{' ' * bool(match[2])}{match[2]}", text)


_OPENING = re.compile(r"^(kinds|target|weights): ")
_MAPPING = re.compile(r'as in \{"([^"]*)": "([^"]*)"\}')


_KEYWORD = re.compile(
    r"\b(decimal|kinds|missing|weights|target|hidden|max_parents|structure|method|numbers|score|prior|order)=(['\"{[\w]?)"
)


def _write_page(options: argparse.Namespace, given: str, network: BayesianNetwork, result: Any) -> None:
    """Write the page that --report asks for."""
    from bbn.cli.learn_structure import column_kinds
    from bbn.core.atomic import write_bytes
    from bbn.view.report import report_page

    if result is None:
        from bbn.learning.learn_result import LearnResult

        result = LearnResult(network, options.method, "")
    words = " ".join(shlex.quote(word) for word in sys.argv[1:]) if len(sys.argv) > 1 else f"learn {given}"
    page = report_page(
        result,
        options.data,
        target=options.target,
        command=f"bbn {words}",
        title=Path(given).name if given != "-" else "standard input",
        kinds=column_kinds(options) if options.structure is None else None,
        weights=options.weights,
        missing=options.missing,
    )
    write_bytes(options.report, page.encode())


def _open(options: argparse.Namespace) -> None:
    """Open many files, or let a cluster read the data; the options about reading are taken out of `options`."""
    from bbn.data.streams.open import open_data

    variables = None
    if options.structure is not None:
        unseen = {text.partition("=")[0] for text in options.hidden}
        variables = [v for v in open_model(options.structure).variables if v.name not in unseen]
    options.data = open_data(
        options.data,
        client=options.dask,
        variables=variables,
        weights=options.weights,
        missing=options.missing,
        decimal=options.decimal,
    )
    options.weights, options.missing, options.decimal = None, (), None


def learn_tables(options: argparse.Namespace) -> tuple[BayesianNetwork, str]:
    """The network with its tables learned, and what happened in one line."""
    from bbn.core.threads import within
    from bbn.learning.incomplete.em import fit_em
    from bbn.learning.incomplete.gradient import fit_gradient
    from bbn.learning.tables.fit import fit
    from bbn.learning.tables.prior_text import parse_prior

    if options.method not in METHODS:
        raise DataError(
            f"unknown method {options.method!r}{nearest(options.method, (*METHODS, *STRUCTURES))}"
        )
    if options.structure is None:
        raise DataError(
            f"--method {options.method} learns the tables of a structure; --structure names its file"
        )
    structure = _open_structure(options)
    prior = parse_prior(options.prior)
    settings: dict[str, Any] = {
        "weights": options.weights,
        "missing": options.missing,
        "progress": options.progress,
    }
    if isinstance(structure, DynamicNetwork):
        settings |= {"sequence": options.sequence, "time": options.time}
    if options.method == "mle":
        if options.hidden:
            raise DataError("--hidden goes with --method em or gradient")
        with within(options.time_limit, "or give fewer rows"):
            return fit(structure, options.data, prior, **settings), f"{options.method}, {options.prior}"
    hidden = dict(read_hidden(structure, text) for text in options.hidden)
    climb = fit_em if options.method == "em" else fit_gradient
    result = climb(
        structure,
        options.data,
        hidden,
        prior,
        restarts=1 if options.restarts is None else options.restarts,
        max_iter=1000 if options.max_iter is None else options.max_iter,
        seed=options.seed,
        checkpoint=options.checkpoint,
        time_limit=options.time_limit,
        **settings,
    )
    steps = f"{result.n_iter} step{'s' * (result.n_iter != 1)}"
    return (
        result.network,
        f"{options.method}, {result.reason} after {steps}, ln P(data) = {result.log_likelihood:.9g}",
    )


def _open_structure(options: argparse.Namespace) -> Any:
    """The network of --structure, a dynamic one where there are sequences."""
    model = open_model(options.structure)
    if isinstance(model, DynamicNetwork):
        if options.lag is not None:
            raise DataError(
                "--lag goes with a search; the dynamic network of --structure says how far it reaches"
            )
        return model
    if is_over_time(options):
        raise DataError("--sequence and --time go with a dynamic network as --structure, or with none")
    return open_network(options.structure)


def read_hidden(structure: Any, text: str) -> tuple[str, tuple[Any, ...]]:
    """A hidden variable from NAME=STATE,… (or NAME alone), its states those of the structure."""
    name, _, listed = text.partition("=")
    variable = structure.variable(name)
    if listed:
        states = tuple(listed.split(","))
        if sorted(states) != sorted(map(str, variable.states)):
            raise DataError(
                f"--hidden {text}: {name!r} has the states {', '.join(map(str, variable.states))}"
            )
    return name, variable.states
