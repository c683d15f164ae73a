"""The commands `bbn plot`, `bbn explore` and `bbn export`: a picture of a network, its page, and the page as a file."""

from __future__ import annotations

import argparse
import io

from bbn.cli.evidence_options import read_do, read_evidence
from bbn.cli.files import as_network, open_model, open_network
from bbn.cli.filter import unrolled
from bbn.cli.output import show, write
from bbn.core.errors import ModelError
from bbn.model.decision_network import DecisionNetwork
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.network import BayesianNetwork


def plot(options: argparse.Namespace) -> int:
    """Draw the network with its beliefs to a file, or as SVG on standard output."""
    model = open_model(options.file, options.from_format)
    if isinstance(model, DecisionNetwork):
        _, evidence = read_evidence(model, options)
        drawing = model.plot(evidence, solved=not options.structure)
    else:
        network = (
            unrolled(model, options) if isinstance(model, DynamicNetwork) else as_network(model, options.file)
        )
        _, evidence = read_evidence(network, options)
        drawing = network.do(read_do(network, options) or {}).plot(
            evidence,
            beliefs=not options.structure,
            information=options.information,
            focus=options.focus,
            steps=options.steps,
            title=options.title,
        )
    if options.output != "-":
        drawing.save(options.output, options.to_format)
    elif options.to_format in (None, "svg"):
        write(drawing.svg)
    else:
        picture = io.BytesIO()
        drawing.save(picture, options.to_format)
        write(picture.getvalue())
    return 0


def explore(options: argparse.Namespace) -> int:
    """Serve the interactive page until interrupted."""
    model = open_model(options.file, options.from_format)
    where = {"host": options.host, "port": options.port, "browser": not options.no_browser}
    if options.edit and not isinstance(model, BayesianNetwork):
        raise ModelError(f"{options.file} does not hold a Bayesian network; --edit edits those alone")
    if isinstance(model, DynamicNetwork):
        served = model.explore(options.steps, **where)
    elif isinstance(model, DecisionNetwork):
        served = model.explore(**where)
    else:
        served = as_network(model, options.file).explore(edit=options.edit, **where)
    show(f"{model!r} at {served.url} (Ctrl-C stops it)", flush=True)
    served.wait()
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the interactive page as one HTML file."""
    open_network(options.file, options.from_format).export_html(options.output)
    return 0
