"""The options that several commands share: evidence of every kind, and whether to show progress."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bbn.core.errors import EvidenceError, nearest
from bbn.model.binned import Binned
from bbn.model.evidence import Not, OneOf, Soft, Virtual
from bbn.model.variable import Continuous

if TYPE_CHECKING:
    from bbn.model.decision_network import DecisionNetwork
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import State, Variable


def read_evidence(
    network: BayesianNetwork | DecisionNetwork, options: argparse.Namespace
) -> tuple[list[str], dict[str, Any]]:
    """The targets, and the evidence of all kinds, by name.

    A word without = among the evidence is a target, or an error where the command takes none.
    """
    targets = [*(options.targets or ()), *_bare(options, options.evidence)]
    evidence: dict[str, Any] = {}

    def add(variable: Variable, finding: Any) -> None:
        if variable.name in evidence:
            raise EvidenceError(f"there are two findings for {variable.name!r}")
        evidence[variable.name] = finding

    for text in options.evidence:
        if "=" not in text:
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
    return [*targets, *_bare(options, options.do)], evidence


def read_do(network: BayesianNetwork, options: argparse.Namespace) -> dict[str, Any] | None:
    """What is done to variables, by name: a state, a number, or a probability for each state; None if nothing is."""
    done: dict[str, Any] = {}
    targets = _bare(options, options.do)
    for text in options.do:
        if text in targets:
            continue
        variable, value = _split(network, text)
        if variable.name in done:
            raise EvidenceError(f"--do names {variable.name!r} twice")
        if isinstance(variable, Continuous):
            done[variable.name] = _number(variable, value)
        elif ":" in value and value not in map(str, variable.states):
            done[variable.name] = _weights(variable, value)
        else:
            done[variable.name] = find_state(variable, value)
    return done or None


def _bare(options: argparse.Namespace, words: list[str]) -> list[str]:
    """The words without =, which are targets; EvidenceError where the command takes none."""
    found = [text for text in words if "=" not in text]
    if found and getattr(options, "targets", None) is None:
        raise EvidenceError(f"expected NAME=STATE, found {found[0]!r}")
    return found


def _number(variable: Variable, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise EvidenceError(
            f"variable {variable.name!r} is continuous: expected a number, found {text!r}"
        ) from None


def find_state(variable: Variable, text: str) -> State:
    """The state whose text this is, or whose interval holds the number; `true` and `false` are those of a boolean."""
    if isinstance(variable, Continuous):
        raise EvidenceError(variable.unknown(text))
    for state in variable.states:
        if text in (str(state), str(state).lower() if isinstance(state, bool) else str(state)):
            return state
    if isinstance(variable, Binned):
        try:
            code = variable.find(float(text))
        except ValueError:
            code = None
        if code is None:
            raise EvidenceError(variable.unknown(text))
        return variable.states[code]
    raise EvidenceError(f"variable {variable.name!r} has no state {text!r}{nearest(text, variable.states)}")


def _split(network: BayesianNetwork | DecisionNetwork, text: str) -> tuple[Variable, str]:
    """NAME=VALUE. Names may contain =, so the longest one that is a variable counts."""
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


def wants_progress(options: argparse.Namespace) -> bool | None:
    """Whether to show progress: as given, otherwise as `--quiet` implies, otherwise (None) on a terminal only."""
    return False if options.progress is None and options.quiet else options.progress
