"""The commands that ask a network: query, mpe, predict."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from bbn.cli.files import data_file, open_model, open_network, table_output
from bbn.cli.output import print_rows, show
from bbn.core.display import grid
from bbn.core.errors import DataError, EvidenceError, nearest
from bbn.inference import engine_class
from bbn.model.evidence import Not, OneOf, Soft, Virtual
from bbn.model.variable import Continuous
from bbn.results.mixture_posterior import MixturePosterior

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import State, Variable


def query(options: argparse.Namespace) -> int:
    """Print the joint posterior of the targets; without targets, that of each unobserved variable."""
    network = open_model(options.file, options.from_format)
    targets, evidence = read_evidence(network, options)
    settings = read_settings(options)
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
    network = open_model(options.file, options.from_format)
    targets, evidence = read_evidence(network, options)
    if targets and options.k is not None:
        raise EvidenceError("-k goes with explanations by all variables; leave the targets out")
    k = 1 if options.k is None else options.k
    best = [network.map(targets, evidence)] if targets else network.mpe(evidence, k=k)
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


def predict(options: argparse.Namespace) -> int:
    """Print the most probable state of the target for each row of data, or the probability of each state."""
    network = open_network(options.file)
    variable = network.variable(options.target)
    if options.dask is not None and options.output == "-":
        raise DataError("the workers of a cluster write their answers to a folder; -o names it")
    with data_file(options.data, options.from_format) as data:
        ask = network.predict_proba if options.proba else network.predict
        if options.output != "-":
            to: Any = options.output
            if options.dask is None:
                to = table_output(options.output, options.to_format, options.escape_formulas)
            ask(data, options.target, impossible=options.impossible, to=to, client=options.dask)
            return 0
        given = ask(data, options.target, impossible=options.impossible)
        head = list(variable.states) if options.proba else [options.target]
        print_rows(options, head, _rows(given, head, options.proba))
    return 0


def _rows(given: Any, head: list[Any], proba: bool) -> Iterator[list[Any]]:
    """The rows of predictions; those of a folder or a pattern of files come batch by batch."""
    for table in given if isinstance(given, Iterator) else [given]:
        columns = [table]
        if proba:  # pyarrow names the column of a state by its text
            columns = [table[str(state) if hasattr(table, "to_pylist") else state] for state in head]
        lists = [column.to_pylist() if hasattr(column, "to_pylist") else column for column in columns]
        yield from map(list, zip(*lists, strict=True))


def read_evidence(network: BayesianNetwork, options: argparse.Namespace) -> tuple[list[str], dict[str, Any]]:
    """The targets, and the evidence of all kinds, by name. A word without = among the evidence is a target."""
    targets = list(options.targets)
    evidence: dict[str, Any] = {}

    def add(variable: Variable, finding: Any) -> None:
        if variable.name in evidence:
            raise EvidenceError(f"there are two findings for {variable.name!r}")
        evidence[variable.name] = finding

    for text in options.evidence:
        if "=" not in text:
            targets.append(text)
            continue
        variable, value = _split(network, text)
        add(
            variable,
            _number(variable, value) if isinstance(variable, Continuous) else find_state(variable, value),
        )
    for text in options.virtual:
        variable, value = _split(network, text)
        add(variable, Virtual(_weights(variable, value)))
    for text in options.soft:
        variable, value = _split(network, text)
        add(variable, Soft(_weights(variable, value)))
    for text in options.one_of:
        variable, value = _split(network, text)
        add(variable, OneOf(*(find_state(variable, part) for part in value.split(","))))
    for text in options.none_of:
        variable, value = _split(network, text)
        add(variable, Not(*(find_state(variable, part) for part in value.split(","))))
    return targets, evidence


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


def wants_progress(options: argparse.Namespace) -> bool | None:
    """Whether to show how far work is: as said, else as `--quiet` implies, else (None) where someone looks."""
    return False if options.progress is None and options.quiet else options.progress


def _number(variable: Variable, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EvidenceError(
            f"variable {variable.name!r} is continuous: expected a number, found {text!r}"
        ) from None


def find_state(variable: Variable, text: str) -> State:
    """The state whose text this is; `true` and `false` are those of a boolean variable."""
    if isinstance(variable, Continuous):
        raise EvidenceError(variable.unknown(text))
    for state in variable.states:
        if text in (str(state), str(state).lower() if isinstance(state, bool) else str(state)):
            return state
    raise EvidenceError(f"variable {variable.name!r} has no state {text!r}{nearest(text, variable.states)}")


def _split(network: BayesianNetwork, text: str) -> tuple[Variable, str]:
    """NAME=VALUE; names may hold = themselves, so the longest that is a variable's counts."""
    parts = text.split("=")
    for n in range(len(parts) - 1, 0, -1):
        name = "=".join(parts[:n])
        if name in network:
            return network.variable(name), "=".join(parts[n:])
    if len(parts) < 2:
        raise EvidenceError(f"expected NAME=VALUE, found {text!r}")
    return network.variable(parts[0]), ""


def _weights(variable: Variable, text: str) -> dict[State, float]:
    """`yes:0.8,no:0.2` as a number for each state."""
    weights: dict[State, float] = {}
    for part in text.split(","):
        state, colon, number = part.rpartition(":")
        try:
            weights[find_state(variable, state)] = float(number)
        except ValueError as error:
            if isinstance(error, EvidenceError) and colon:
                raise
            raise EvidenceError(f"{variable.name}: expected STATE:NUMBER, found {part!r}") from None
    return weights
