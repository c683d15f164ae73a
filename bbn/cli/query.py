"""The commands `bbn query` and `bbn mpe`: posteriors and explanations."""

from __future__ import annotations

import argparse
from typing import Any

from bbn.cli.evidence_options import read_do, read_evidence, wants_progress
from bbn.cli.files import open_model, refuse_decisions
from bbn.cli.filter import unrolled
from bbn.cli.output import print_rows, show
from bbn.core.display import grid
from bbn.core.errors import EvidenceError
from bbn.inference import engine_class
from bbn.model.dynamic_network import DynamicNetwork
from bbn.results.mixture_posterior import MixturePosterior


def query(options: argparse.Namespace) -> int:
    """Print the joint posterior of the targets; without targets, that of each unobserved variable."""
    network = open_asked(options)
    targets, evidence = read_evidence(network, options)
    settings = {**read_settings(options), "do": read_do(network, options)}
    if targets:
        posterior: Any = network.query(targets, evidence, options.method, **settings)
        if isinstance(posterior, MixturePosterior):
            head = [*(v.name for v in posterior.given), "weight", "mean", "variance"]
            rows = [[*c.setting.values(), c.weight, c.mean, c.variance] for c in posterior.components]
        else:
            head = [*posterior.names, "probability"]
            cells = posterior.to_dict().items()
            rows = [[*(key if isinstance(key, tuple) else (key,)), p] for key, p in cells]
        if posterior.std_error is not None:
            head.append("std_error")
            rows = [
                [*row, error] for row, error in zip(rows, posterior.std_error.ravel().tolist(), strict=True)
            ]
        log_evidence, shown = posterior.log_evidence, str(posterior)
    else:
        posteriors = network.posteriors(evidence, options.method, **settings)
        head = ["variable", "state", "probability"]
        rows = [[name, state, p] for name, one in posteriors.items() for state, p in one.to_dict().items()]
        log_evidence, shown = posteriors.log_evidence, str(posteriors)
    if options.format == "table":
        show(shown)
        if evidence:
            show(f"ln P(evidence) = {log_evidence:.6g}")
    else:
        print_rows(options, head, rows, {"log_evidence": log_evidence})
    return 0


def mpe(options: argparse.Namespace) -> int:
    """Print the most probable explanation of the evidence, or the k best."""
    network = open_asked(options)
    targets, evidence = read_evidence(network, options)
    if targets and options.k is not None:
        raise EvidenceError("-k goes with explanations by all variables; leave the targets out")
    k = 1 if options.k is None else options.k
    done = read_do(network, options)
    best = [network.map(targets, evidence, do=done)] if targets else network.mpe(evidence, k=k, do=done)
    head = ["rank", "variable", "state", "log_probability"]
    rows = [
        [rank, name, state, found.log_probability]
        for rank, found in enumerate(best, start=1)
        for name, state in found.states.items()
    ]
    if options.format == "table":
        for rank, found in enumerate(best, start=1):
            show(
                f"{rank}. ln P = {found.log_probability:.6g}"
                if len(best) > 1
                else f"ln P = {found.log_probability:.6g}"
            )
            show(grid(["variable", "state"], [[name, str(state)] for name, state in found.states.items()]))
    else:
        print_rows(options, head, rows)
    return 0


def open_asked(options: argparse.Namespace) -> Any:
    """A network or a factor graph; of a dynamic network, the slices that the question names."""
    model = open_model(options.file, options.from_format)
    refuse_decisions(model, options.file)
    return unrolled(model, options) if isinstance(model, DynamicNetwork) else model


def read_settings(options: argparse.Namespace) -> dict[str, Any]:
    """The options of a sampling engine."""
    known = engine_class(options.method).defaults
    given = {
        "seed": options.seed,
        "n_samples": options.samples,
        "target_std_error": options.target_std_error,
        "time_limit": options.time_limit,
    }
    settings = {name: value for name, value in given.items() if value is not None}
    for name in settings:
        if name not in known:
            option = "--samples" if name == "n_samples" else f"--{name.replace('_', '-')}"
            raise EvidenceError(f"{option} does not go with --method {options.method}")
    if "progress" in known:
        settings["progress"] = wants_progress(options)
    return settings
