"""The commands that look at a network: plot, explain, explore."""

from __future__ import annotations

import argparse
import io

from bbn.cli.ask import read_evidence
from bbn.cli.files import open_network
from bbn.cli.output import print_rows, show, write


def plot(options: argparse.Namespace) -> int:
    """Draw the network with its beliefs to a file, or as SVG on standard output."""
    network = open_network(options.file, options.from_format)
    _, evidence = read_evidence(network, options)
    drawing = network.plot(evidence, beliefs=not options.structure, information=options.information)
    if options.output != "-":
        drawing.save(options.output, options.to_format)
    elif options.to_format in (None, "svg"):
        write(drawing.svg)
    else:
        picture = io.BytesIO()
        drawing.save(picture, options.to_format)
        write(picture.getvalue())
    return 0


def explain(options: argparse.Namespace) -> int:
    """Print which findings moved the target, how it depends on the tables, or what to ask next."""
    network = open_network(options.file, options.from_format)
    _, evidence = read_evidence(network, options)
    if options.ask_next:
        bits = network.information(options.target, evidence)
        if options.format == "table":
            show(str(bits))
        else:
            print_rows(options, ["variable", "bits"], list(bits.items()))
    elif options.sensitivity:
        found = network.sensitivity(options.target, evidence)
        if options.format == "table":
            show(str(found))
        else:
            rows = [[e.name, e.value, e.derivative] for e in found.largest(50)]
            print_rows(options, ["entry", "value", "derivative"], rows)
    else:
        why = network.explain(options.target, evidence)
        if options.format == "table":
            show(str(why))
        else:
            rows = [[s.finding, str(s.value), s.alone, s.in_sequence] for s in why]
            print_rows(options, ["finding", "value", "bits_alone", "bits_in_sequence"], rows)
    return 0


def explore(options: argparse.Namespace) -> int:
    """Serve the interactive page until interrupted."""
    network = open_network(options.file, options.from_format)
    served = network.explore(host=options.host, port=options.port, browser=not options.no_browser)
    show(f"{network!r} at {served.url} (Ctrl-C stops it)", flush=True)
    served.wait()
    return 0
