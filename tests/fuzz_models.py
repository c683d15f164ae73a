"""Random models by the thousand, every engine and row path against the joint in exact fractions.

    python -m tests.fuzz_models [SECONDS] [SEED]        (60 seconds unless told otherwise)

Networks have variables of one state, zeros, and entries down to 1e-300. A failure is reproduced by its seed.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import bbn
from tests.support.strategies import random_network

CLOSE = 1e-9


def exact(net: bbn.BayesianNetwork, evidence: dict[str, Any]) -> tuple[dict[str, np.ndarray], float]:
    """The marginal of each variable given the evidence, and ln P(evidence); -inf: it is impossible."""
    variables = net.variables
    place = {v.name: i for i, v in enumerate(variables)}
    families = [
        ([place[p.name] for p in net[v.name].parents] + [place[v.name]], net[v.name].table) for v in variables
    ]
    sums = {v.name: [Fraction(0)] * v.card for v in variables}
    total = Fraction(0)
    ranges = [[v.states.index(evidence[v.name])] if v.name in evidence else range(v.card) for v in variables]
    for codes in product(*ranges):
        weight = Fraction(1)
        for axes, table in families:
            weight *= Fraction(float(table[tuple(codes[a] for a in axes)]))
        total += weight
        for v, code in zip(variables, codes, strict=True):
            sums[v.name][code] += weight
    if not total:
        return {}, -math.inf
    log = math.log(total.numerator) - math.log(total.denominator)
    return {name: np.array([float(part / total) for part in parts]) for name, parts in sums.items()}, log


def check(seed: int) -> str:
    """Ask one random network everything; "possible" or "impossible" evidence, or an AssertionError."""
    rng = np.random.default_rng(seed)
    net = random_network(
        rng,
        max_nodes=7,
        max_card=4,
        max_cells=300,
        zeros=bool(seed % 2),
        tiny=seed % 3 == 0,
        singles=seed % 5,
    )
    names = [str(name) for name in rng.permutation(net.names)]
    evidence = {
        name: net.states(name)[int(rng.integers(len(net.states(name))))]
        for name in names[: int(rng.integers(0, len(names)))]
    }
    marginals, log = exact(net, evidence)
    if log == -math.inf:
        for ask in (net.posteriors, net.mpe, lambda e: net.query(names[-1], e)):
            try:
                ask(evidence)
            except bbn.ImpossibleEvidenceError:
                continue
            raise AssertionError(f"seed {seed}: impossible evidence was believed")
        return "impossible"
    free = [name for name in names if name not in evidence]
    everything = net.posteriors(evidence)
    assert set(everything) == set(free), seed
    for name in free:
        assert np.abs(everything[name].values - marginals[name]).max() < CLOSE, (seed, name)
    for method in ("junction-tree", "elimination"):
        answer = net.query(free[0], evidence, method=method)
        assert np.abs(answer.values - marginals[free[0]]).max() < CLOSE, (seed, method)
        assert abs(answer.log_evidence - log) < CLOSE * max(1.0, abs(log)), (seed, method)
    columns = {name: [state, None, state] for name, state in evidence.items()} or {free[0]: [None] * 3}
    rows = pd.DataFrame(columns, dtype=object)
    logs = np.asarray(net.log_likelihood(rows))
    assert abs(logs[0] - log) < CLOSE * max(1.0, abs(log)), seed
    assert abs(logs[1]) < CLOSE, seed  # nothing observed
    chances = np.asarray(net.predict_proba(rows, free[0]))
    assert np.abs(chances[0] - marginals[free[0]]).max() < CLOSE, seed
    assert math.isfinite(net.mpe(evidence).log_probability), seed
    return "possible"


def main(seconds: float = 60.0, seed: int = 0) -> None:
    """Check networks until the time is over."""
    end = time.monotonic() + seconds
    counts = {"possible": 0, "impossible": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.monotonic() < end:
            counts[check(seed)] += 1
            seed += 1
    print(f"{sum(counts.values())} models, {counts['impossible']} of them with impossible evidence")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]), *map(int, sys.argv[2:3]))
