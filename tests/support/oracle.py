"""The slow truth: every question answered from the full joint, as a dict, in plain Python.

It reads a network's tables and evidence's public attributes and shares no other code with the library, so
an answer that agrees with it was found in two ways. Use it on networks of a few thousand joint states.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import bbn.model.evidence as ev

Joint = dict[tuple[Any, ...], float]
"""State of each variable, in the order of `net.names`, to probability."""


def joint(net: Any) -> Joint:
    """P(x) = ∏ P(x_i | parents) for every full assignment x."""
    names = [v.name for v in net.variables]
    position = {name: i for i, name in enumerate(names)}
    families = [
        (net[name].table.tolist(), [position[p.name] for p in net[name].parents] + [position[name]])
        for name in names
    ]
    states = [v.states for v in net.variables]
    full: Joint = {}
    for codes in product(*(range(len(s)) for s in states)):
        p = 1.0
        for table, axes in families:
            entry = table
            for axis in axes:
                entry = entry[codes[axis]]
            p *= entry
        full[tuple(s[c] for s, c in zip(states, codes, strict=True))] = p
    return full


def weigh(net: Any, evidence: dict[str, Any] | None) -> Joint:
    """P(x) λ(x), λ the product of the hard, virtual and set findings; soft ones take no part."""
    names = [v.name for v in net.variables]
    weighted = joint(net)
    for name, finding in (evidence or {}).items():
        axis = names.index(name)
        weighted = {x: p * _likelihood(finding, x[axis]) for x, p in weighted.items()}
    return weighted


def condition(net: Any, evidence: dict[str, Any] | None) -> Joint | None:
    """P(x | evidence), soft findings by iterative proportional fitting; None if it is impossible."""
    names = [v.name for v in net.variables]
    weighted = weigh(net, evidence)
    total = math.fsum(weighted.values())
    if total <= 0:
        return None
    current = {x: p / total for x, p in weighted.items()}
    soft = [(names.index(n), f.weights) for n, f in (evidence or {}).items() if isinstance(f, ev.Soft)]
    for _ in range(20_000):
        change = 0.0
        for axis, wanted in soft:
            has = marginal(current, [axis])
            if any(w > 0 and has[(s,)] <= 0 for s, w in wanted.items()):
                return None
            ratio = {s: w / has[(s,)] if has[(s,)] > 0 else 0.0 for s, w in wanted.items()}
            change = max(change, *(abs(w - has[(s,)]) for s, w in wanted.items()))
            current = {x: p * ratio[x[axis]] for x, p in current.items()}
        if change <= 1e-13:
            return current
    return None


def evidence_probability(net: Any, evidence: dict[str, Any] | None = None) -> float:
    """P(evidence), of all but the soft findings."""
    return math.fsum(weigh(net, evidence).values())


def posterior(net: Any, targets: list[str], evidence: dict[str, Any] | None = None) -> Joint | None:
    """P(targets | evidence) by tuple of states, in the order of the targets; None if impossible."""
    conditioned = condition(net, evidence)
    names = [v.name for v in net.variables]
    return None if conditioned is None else marginal(conditioned, [names.index(t) for t in targets])


def explanations(net: Any, evidence: dict[str, Any] | None = None) -> list[tuple[float, dict[str, Any]]]:
    """(P(x, evidence), x) for every full assignment x of positive weight, best first."""
    names = [v.name for v in net.variables]
    ranked = sorted(weigh(net, evidence).items(), key=lambda item: -item[1])
    return [(p, dict(zip(names, x, strict=True))) for x, p in ranked if p > 0]


def marginal_map(net: Any, targets: list[str], evidence: dict[str, Any] | None = None) -> tuple[float, Joint]:
    """The largest P(targets, evidence), and P(targets, evidence) of every joint state of the targets."""
    names = [v.name for v in net.variables]
    table = marginal(weigh(net, evidence), [names.index(t) for t in targets])
    return max(table.values()), table


def marginal(full: Joint, axes: list[int]) -> Joint:
    """The sum over all other axes, keyed by the states of `axes` in that order."""
    parts: dict[tuple[Any, ...], list[float]] = {}
    for x, p in full.items():
        parts.setdefault(tuple(x[a] for a in axes), []).append(p)
    return {key: math.fsum(values) for key, values in parts.items()}


def _likelihood(finding: Any, state: Any) -> float:
    if finding is None or isinstance(finding, ev.Soft):
        return 1.0
    if isinstance(finding, ev.Virtual):
        return float(finding.weights[state])
    if isinstance(finding, ev.Not):
        return float(state not in finding.states)
    if isinstance(finding, ev.OneOf):
        return float(state in finding.states)
    return float(state == finding)
