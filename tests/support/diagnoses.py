"""Two layers of causes and findings that are noisy-ors, with questions, and their answers by Quickscore."""

from __future__ import annotations

from typing import Any

import numpy as np

import bbn

MOST_PRESENT = 10
"""The most findings that are present: Quickscore is exponential in their number."""


def diagnosis(seed: int) -> tuple[bbn.BayesianNetwork, dict[str, str]]:
    """A network of 20 to 60 causes and 5 to 40 findings of up to 23 causes, and what is seen, some of it unlikely."""
    rng = np.random.default_rng([seed, 33])
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(int(rng.integers(20, 61)))]
    n_findings = int(rng.integers(5, 41))
    most = np.exp(rng.uniform(np.log(0.005), np.log(0.4)))
    prior = rng.uniform(0.1 * most, most, len(causes))
    parts: list[Any] = [bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, prior, strict=True)]
    least = 17 if rng.random() < 0.5 else 2
    for j in range(n_findings):
        n = min(int(rng.integers(least, 24)), len(causes))
        own = [causes[i] for i in rng.choice(len(causes), n, replace=False)]
        low, high = [(0.05, 0.95), (0.02, 0.4), (0.5, 0.99), (0.001, 0.1)][int(rng.integers(4))]
        leak = float(rng.choice([0.0, 1e-4, 0.001, 0.01, 0.05]))
        finding = bbn.Variable(f"F{j}", ["yes", "no"])
        parts.append(bbn.NoisyOr(finding, own, rng.uniform(low, high, n).tolist(), leak=leak))
    net = bbn.BayesianNetwork(parts)
    seen = [str(name) for name in rng.permutation([f"F{j}" for j in range(n_findings)])]
    seen = seen[: int(rng.integers(5, min(n_findings, 20) + 1))]
    row = net.sample(1, seed=seed).iloc[0]
    share = (None, 0.6, 0.95)[int(rng.integers(3))]
    evidence = {f: str(row[f]) if share is None else "yes" if rng.random() < share else "no" for f in seen}
    for f in [f for f in seen if evidence[f] == "yes"][MOST_PRESENT:]:
        evidence[f] = "no"
    return net, evidence


def quickscore(net: bbn.BayesianNetwork, evidence: dict[str, str]) -> tuple[dict[str, float], float]:
    """P(cause = yes | evidence) of each cause, and P(evidence): inclusion and exclusion (Heckerman 1989).

    P(present and absent findings) = Σ over sets S of present ones of (−1)^|S| P(all of S and the absent ones are
    absent), and given that findings are absent, the causes fall apart. Long doubles, as the terms cancel.
    """
    names = [v.name for v in net.variables if v.name.startswith("C")]
    at = {name: i for i, name in enumerate(names)}
    prior = np.array([net[name].table[0] for name in names], np.longdouble)

    def absent(finding: str) -> tuple[Any, Any]:
        own: Any = net[finding]
        spared = np.ones(len(names), np.longdouble)
        for parent, link in zip(own.parents, own.links, strict=True):
            spared[at[parent.name]] = link[0][1]
        return np.longdouble(own.leak[1]), spared

    base, spared = np.longdouble(1), np.ones(len(names), np.longdouble)
    for finding, state in evidence.items():
        if state == "no":
            leak, own = absent(finding)
            base, spared = base * leak, spared * own
    sign, kept = np.array([base]), spared[None]
    for leak, own in [absent(finding) for finding, state in evidence.items() if state == "yes"]:
        sign, kept = np.concatenate([sign, -sign * leak]), np.concatenate([kept, kept * own])
    each = prior * kept + (1 - prior)
    term = sign * each.prod(axis=1)
    parts = (term[:, None] * prior * kept / each).sum(axis=0)
    whole = term.sum()
    return {name: float(p / whole) for name, p in zip(names, parts, strict=True)}, float(whole)
