"""The command `bbn filter`: beliefs over time, of a dynamic network; and how `query` and `mpe` name its steps."""

from __future__ import annotations

import argparse
import re
from typing import Any

from bbn.cli.files import data_file, open_model
from bbn.cli.output import print_rows, show
from bbn.core.errors import ModelError
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.network import BayesianNetwork
from bbn.results.beliefs import MOMENTS, Beliefs, Path

_STEP = re.compile(r"\[([0-9]{1,18})\]")


def filter_(options: argparse.Namespace) -> int:
    """Print the belief in each state of each target, step by step."""
    model = open_model(options.file, options.from_format)
    if not isinstance(model, DynamicNetwork):
        raise ModelError(f"{options.file} does not hold a dynamic network; a file with a 'slice' does")
    for name in options.targets:
        model.variable(name)
    with data_file(options.data) as data:
        found = _asked(model, data, options)
    several = isinstance(found, dict)
    head: list[str] = []
    rows: list[list[Any]] = []
    more: dict[str, Any] = {}
    for sequence, own in found.items() if several else [("", found)]:
        head, own_rows, log = _rows(model, own, options.targets)
        rows += [[sequence, *row] for row in own_rows] if several else own_rows
        more.setdefault("log_evidence", []).append(log)
    print_rows(options, ["sequence", *head] if several else head, rows, more)
    if options.format == "table":
        show(f"ln P = {sum(more['log_evidence']):.6g}")
    return 0


def _asked(model: DynamicNetwork, data: str, options: argparse.Namespace) -> Any:
    given = {"sequence": options.sequence, "time": options.time}
    if options.viterbi:
        return model.viterbi(data, **given)
    if options.forecast is not None:
        return model.forecast(data, options.forecast, **given)
    if options.smooth:
        return model.smooth(data, **given)
    if options.particles is not None:
        return model.filter(
            data, method="particles", n_particles=options.particles, seed=options.seed, **given
        )
    return model.filter(data, **given)


def _rows(
    model: DynamicNetwork, found: Beliefs | Path, targets: list[str]
) -> tuple[list[str], list[list[Any]], float]:
    """The columns of an answer, a row a step, and its ln P."""
    if isinstance(found, Path):
        names = targets or list(found)
        rows = [[step, *(found.states[name][k] for name in names)] for k, step in enumerate(found.steps)]
        return ["step", *names], rows, found.log_probability
    hidden = [name for name in model.names if not ((found[name] == 0) | (found[name] == 1)).all()]
    names = targets or hidden or list(model.names)
    head = [f"{name}={state}" for name in names for state in (model.states(name) or MOMENTS)]
    rows = [
        [step, *(value for name in names for value in found[name][k].tolist())]
        for k, step in enumerate(found.steps)
    ]
    return ["step", *head], rows, found.log_evidence


def unrolled(model: DynamicNetwork, options: argparse.Namespace) -> BayesianNetwork:
    """As many slices as the names of targets and evidence reach, "Rain[3]"."""
    named: list[str] = []
    for value in vars(options).values():
        if isinstance(value, list):
            named += [text for text in value if isinstance(text, str)]
    steps = [int(step) for text in named for step in _STEP.findall(text)]
    return model.unroll(max(steps, default=model.order) + 1)
