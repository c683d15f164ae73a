"""The command that learns a network from data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bbn.cli.evidence_options import wants_progress
from bbn.cli.files import data_file, open_network
from bbn.cli.learn_structure import METHODS as STRUCTURES
from bbn.cli.learn_structure import learn_structure
from bbn.cli.output import note, show, write
from bbn.core.errors import DataError, nearest
from bbn.data.streams.readers import is_many
from bbn.io import dumps, save

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

METHODS = ("mle", "em", "gradient")
"""How the tables of a given structure are learned."""


def learn(options: argparse.Namespace) -> int:
    """Learn, say what came out, and write the network."""
    if options.method is None:
        options.method = "hill-climb" if options.structure is None else "mle"
    options.progress = wants_progress(options)
    with data_file(options.data, options.from_format) as options.data:
        if options.dask is not None or is_many(options.data):
            _open(options)
        network, summary = (learn_structure if options.method in STRUCTURES else learn_tables)(options)
    passes = getattr(options.data, "passes", None)
    if passes is not None:
        head, *notes = summary.split("\n")
        summary = "\n".join([f"{head}, {passes} pass{'es' * (passes != 1)} over the data", *notes])
    if options.output == "-":
        note(summary, options.quiet)
        write(dumps(network, options.to_format or "yaml"))
    else:
        save(network, options.output, options.to_format)
        if not options.quiet:
            show(f"{options.output}: {summary}")
    return 0


def _open(options: argparse.Namespace) -> None:
    """Open many files, or let a cluster read the data; the options about reading are taken out of `options`."""
    from bbn.data.streams.open import open_data

    variables = None
    if options.structure is not None:
        unseen = {text.partition("=")[0] for text in options.hidden}
        variables = [v for v in open_network(options.structure).variables if v.name not in unseen]
    options.data = open_data(
        options.data,
        client=options.dask,
        variables=variables,
        weights=options.weights,
        missing=options.missing,
    )
    options.weights, options.missing = None, ()


def learn_tables(options: argparse.Namespace) -> tuple[BayesianNetwork, str]:
    """The network with its tables learned, and what happened in one line."""
    from bbn.learning.incomplete.em import fit_em
    from bbn.learning.incomplete.gradient import fit_gradient
    from bbn.learning.tables.fit import fit
    from bbn.learning.tables.priors import parse_prior

    if options.method not in METHODS:
        raise DataError(
            f"unknown method {options.method!r}{nearest(options.method, (*METHODS, *STRUCTURES))}"
        )
    if options.structure is None:
        raise DataError(
            f"--method {options.method} learns the tables of a structure; --structure names its file"
        )
    structure = open_network(options.structure)
    prior = parse_prior(options.prior)
    settings: dict[str, Any] = {
        "weights": options.weights,
        "missing": options.missing,
        "progress": options.progress,
    }
    if options.method == "mle":
        if options.hidden:
            raise DataError("--hidden goes with --method em or gradient")
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
        **settings,
    )
    steps = f"{result.n_iter} step{'s' * (result.n_iter != 1)}"
    return (
        result.network,
        f"{options.method}, {result.reason} after {steps}, ln P(data) = {result.log_likelihood:.9g}",
    )


def read_hidden(structure: BayesianNetwork, text: str) -> tuple[str, tuple[Any, ...]]:
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
