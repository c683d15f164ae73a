"""Evidence as a page writes it, and as Python does.

A page says name to finding: {"state": index}, {"do": index}, {"virtual": [weights]}, {"soft": [probabilities]} for
discrete variables, {"number": x} and {"do": x} for continuous ones. Anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from bbn.core.errors import EvidenceError
from bbn.model.evidence import Evidence, Soft, Virtual, check_evidence, observed_numbers
from bbn.model.variable import Continuous, Variable

Finding = dict[str, Any]


class Asked(NamedTuple):
    """What is observed, and what is done."""

    evidence: dict[str, Any]
    do: dict[str, Any]


def asked(model: Any, request: Mapping[str, Any]) -> Asked:
    """The evidence of a request; EvidenceError, with the reason, if it is not evidence on this model.

    >>> import bbn
    >>> asked(bbn.example("asia"), {"evidence": {"xray": {"state": 0}, "smoke": {"do": 1}}})
    Asked(evidence={'xray': 'yes'}, do={'smoke': 'no'})
    """
    given = request.get("evidence", {})
    if not isinstance(given, dict):
        raise EvidenceError("evidence must be an object")
    evidence: dict[str, Any] = {}
    do: dict[str, Any] = {}
    for name, finding in given.items():
        variable = model.variable(name)
        if not isinstance(finding, dict) or len(finding) != 1:
            raise EvidenceError(f"the finding on {name!r} must be an object with one key")
        kind, value = next(iter(finding.items()))
        if kind == "do":
            do[name] = _known(variable, value)
        else:
            evidence[name] = _seen(variable, kind, value)
    return Asked(evidence, do)


def findings(
    model: Any, evidence: Evidence | None, do: Mapping[str, Any] | None = None
) -> dict[str, Finding]:
    """Python's evidence as a page writes it.

    >>> import bbn
    >>> findings(bbn.example("asia"), {"xray": "yes", "dysp": bbn.Not("no")})
    {'xray': {'state': 0}, 'dysp': {'virtual': [1.0, 0.0]}}
    """
    checked = check_evidence(model, evidence)
    made: dict[str, Finding] = {name: {"state": code} for name, code in checked.hard.items()}
    made |= {name: {"virtual": weights.tolist()} for name, weights in checked.likelihood.items()}
    made |= {name: {"soft": shares.tolist()} for name, shares in checked.soft.items()}
    made |= {name: {"number": number} for name, number in observed_numbers(model, evidence).items()}
    for name, value in (do or {}).items():
        variable = model.variable(name)
        number = isinstance(variable, Continuous)
        made[name] = {"do": variable.number(value) if number else variable.code(value)}
    return {name: made[name] for name in (*(evidence or {}), *(do or {})) if name in made}


def target(model: Any, request: Mapping[str, Any]) -> str:
    """The node that a request is about."""
    name = request.get("target")
    if not isinstance(name, str):
        raise EvidenceError("target must be a node's name")
    return str(model.variable(name).name)


def index(value: Any, card: int, name: str) -> int:
    """The index of a state, checked."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < card:
        raise EvidenceError(f"the state of {name!r} must be an index from 0 to {card - 1}")
    return value


def numbers(values: Any, count: int, what: str) -> list[float]:
    """A list of `count` finite numbers, checked."""
    if not isinstance(values, list) or len(values) != count or not all(map(_is_number, values)):
        raise EvidenceError(f"{what} must be {count} numbers")
    return [float(value) for value in values]


def in_words(name: str, value: Any) -> str:
    """A finding as text.

    >>> in_words("xray", "yes")
    'xray = yes'
    """
    if isinstance(value, Virtual):
        return f"{name} ~ " + ", ".join(f"{state}: {weight:.3g}" for state, weight in value.weights.items())
    return f"{name} = {value}"


def _known(variable: Variable, value: Any) -> Any:
    """A state by its index, or the number of a continuous variable."""
    if isinstance(variable, Continuous):
        if not _is_number(value):
            raise EvidenceError(f"the value of {variable.name!r} must be a finite number")
        return float(value)
    return variable.states[index(value, variable.card, variable.name)]


def _seen(variable: Variable, kind: str, value: Any) -> Any:
    name, continuous = variable.name, isinstance(variable, Continuous)
    if kind == ("number" if continuous else "state"):
        return _known(variable, value)
    if not continuous and kind in ("virtual", "soft"):
        weights = numbers(value, variable.card, f"{kind} evidence on {name!r}")
        return (Virtual if kind == "virtual" else Soft)(dict(zip(variable.states, weights, strict=True)))
    known = "number or do" if continuous else "state, do, virtual or soft"
    raise EvidenceError(f"the finding on {name!r} must be {known}, found {kind!r}")


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False
