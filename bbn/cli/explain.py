"""The command `bbn explain`: what moved an answer, what would move it, what to ask next."""

from __future__ import annotations

import argparse

from bbn.cli.evidence_options import read_do, read_evidence
from bbn.cli.files import open_network
from bbn.cli.output import print_rows, show


def explain(options: argparse.Namespace) -> int:
    """Print which findings moved the target, how it depends on the tables, or what to ask next."""
    network = open_network(options.file, options.from_format)
    _, evidence = read_evidence(network, options)
    network = network.do(read_do(network, options) or {})
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
