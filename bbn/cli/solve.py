"""The command `bbn solve`: the best policy of a decision network, and what it depends on."""

from __future__ import annotations

import argparse
from typing import Any

from bbn.cli.evidence_options import read_evidence
from bbn.cli.files import open_model
from bbn.cli.output import print_rows, show
from bbn.core.errors import EvidenceError, ModelError
from bbn.model.decision_network import DecisionNetwork


def solve(options: argparse.Namespace) -> int:
    """Print the best policy given evidence; or what choices, information, numbers and risk have to do with it."""
    dn = open_model(options.file, options.from_format)
    if not isinstance(dn, DecisionNetwork):
        raise ModelError(f"{options.file} is not a decision network; it has no decisions and utilities")
    _, evidence = read_evidence(dn, options)
    settings = {"method": options.method, "seed": options.seed}
    if options.choices:
        _choices(dn, evidence, settings, options)
    elif options.information:
        _information(dn, evidence, settings, options)
    elif options.sensitivity:
        _sensitivity(dn, evidence, options)
    elif options.risk:
        _risk(dn, evidence, settings, options)
    else:
        _policy(dn, evidence, settings, options)
    return 0


def _policy(
    dn: DecisionNetwork, evidence: dict[str, Any], settings: dict[str, Any], options: argparse.Namespace
) -> None:
    best = dn.solve(evidence, risk_tolerance=options.risk_tolerance, **settings)
    if options.format == "table":
        if options.tree:
            show(f"expected utility {best.expected_utility:.6g}\n\n{best.policy.tree()}")
        else:
            show(str(best))
        return
    rows = []
    for name, rule in best.policy.items():
        for key, choice in rule.to_dict().items():
            states = key if isinstance(key, tuple) else (key,)
            given: Any = {v.name: state for v, state in zip(rule.observes, states, strict=True)}
            if options.format == "csv":
                given = ", ".join(f"{seen}={state}" for seen, state in given.items())
            rows.append([name, given, choice])
    more = {
        "expected_utility": best.expected_utility,
        "certainty_equivalent": best.certainty_equivalent,
        "proved": best.proved,
        "bound": best.bound,
    }
    print_rows(options, ["decision", "given", "choice"], rows, more)


def _choices(
    dn: DecisionNetwork, evidence: dict[str, Any], settings: dict[str, Any], options: argparse.Namespace
) -> None:
    rows = [
        [d.name, state, dn.expected_utility({d.name: state}, evidence, **settings)]
        for d in dn.decisions
        if d.name not in evidence
        for state in d.states
    ]
    print_rows(options, ["decision", "choice", "expected_utility"], rows)


def _information(
    dn: DecisionNetwork, evidence: dict[str, Any], settings: dict[str, Any], options: argparse.Namespace
) -> None:
    costs = {}
    for text in options.cost:
        name, _, number = text.rpartition("=")
        try:
            costs[name] = float(number)
        except ValueError:
            raise EvidenceError(f"expected NAME=COST, found {text!r}") from None
    values = dn.information_values(evidence=evidence, costs=costs, **settings)
    if options.format == "table":
        show(str(values))
    else:
        rows = [[", ".join(e.names), e.value, e.cost, e.net] for e in values.entries]
        print_rows(options, ["test", "value", "cost", "net"], rows)


def _sensitivity(dn: DecisionNetwork, evidence: dict[str, Any], options: argparse.Namespace) -> None:
    found = dn.sensitivity(evidence)
    if options.format == "table":
        show(str(found))
    else:
        rows = [[e.name, e.value, e.derivative, e.low, e.high] for e in found.entries]
        print_rows(options, ["number", "value", "derivative", "low", "high"], rows)


def _risk(
    dn: DecisionNetwork, evidence: dict[str, Any], settings: dict[str, Any], options: argparse.Namespace
) -> None:
    policy = dn.solve(evidence, risk_tolerance=options.risk_tolerance, **settings).policy
    profile = dn.risk_profile(policy, evidence)
    if options.format == "table":
        show(str(profile))
    else:
        rows = [
            list(row) for row in zip(profile.values.tolist(), profile.probabilities.tolist(), strict=True)
        ]
        print_rows(
            options, ["total_utility", "probability"], rows, {"mean": profile.mean, "std": profile.std}
        )
