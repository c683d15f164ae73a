"""The command `bbn plan`: how an exact question would be answered, and what it takes."""

from __future__ import annotations

import argparse
import json

from bbn.cli.evidence_options import read_do, read_evidence
from bbn.cli.output import show
from bbn.cli.query import open_asked
from bbn.core.limits import Budget


def plan(options: argparse.Namespace) -> int:
    """Print the passes, the plan and those that were rejected, with their prices."""
    model = open_asked(options)
    targets, evidence = read_evidence(model, options)
    kind = None if not options.mpe else "map" if targets else "mpe"
    budget = None if options.memory_limit is None else Budget(bytes=options.memory_limit)
    done = read_do(model, options)
    report = model.explain_plan(targets or None, evidence, kind, do=done, run=options.ran, budget=budget)
    show(str(report) if options.format == "table" else json.dumps(report.to_dict(), ensure_ascii=False))
    return 0
