"""Random small models whose tables hold many zeros, evidence about them, and their joint by one product."""

from __future__ import annotations

from typing import Any

import numpy as np

import bbn
from tests.support.many_causes import noisy_max


def model(rng: np.random.Generator) -> Any:
    """A network of tables, one with noisy maxima, or a factor graph."""
    kind = int(rng.integers(4))
    n = int(rng.integers(4, 9))
    variables = [
        bbn.Variable(f"x{i}", [f"s{k}" for k in range(1 if rng.random() < 0.03 else int(rng.integers(2, 4)))])
        for i in range(n)
    ]
    if kind == 3:
        factors = []
        for _ in range(int(rng.integers(3, 9))):
            own = [variables[i] for i in rng.permutation(n)[: int(rng.integers(1, 4))]]
            factors.append(bbn.Factor(own, 3 * _sparse(rng, [v.card for v in own], 0.4)))
        return bbn.FactorGraph(factors)
    parts: list[Any] = []
    for i, v in enumerate(variables):
        parents = [variables[j] for j in rng.permutation(i)[: int(rng.integers(min(i, 3) + 1))]]
        table = _sparse(rng, [p.card for p in parents] + [v.card], 0.5)
        empty = table.sum(axis=-1) == 0
        table[empty, int(rng.integers(v.card))] = 1.0
        parts.append(bbn.CPT(v, parents, table / table.sum(axis=-1, keepdims=True)))
    if kind == 2:
        for name in ("y0", "y1"):
            parents = [v for v in variables if v.card > 1][: int(rng.integers(2, 5))]
            parts.append(noisy_max(rng, name, parents, zeros=0.3))
    return bbn.BayesianNetwork(parts)


def evidence(rng: np.random.Generator, asked: Any) -> dict[str, Any]:
    """Findings about up to three variables: states, or likelihoods with zeros and of any size."""
    found: dict[str, Any] = {}
    for i in rng.permutation(len(asked.variables))[: int(rng.integers(4))]:
        v = asked.variables[i]
        if rng.random() < 0.6:
            found[v.name] = v.states[int(rng.integers(v.card))]
        else:
            weights = _sparse(rng, [v.card], 0.3)
            weights[int(rng.integers(v.card))] = 1.0
            weights *= 1e-40 if rng.random() < 0.2 else 1.0
            found[v.name] = bbn.Virtual(dict(zip(v.states, weights.tolist(), strict=True)))
    return found


def weights(asked: Any, found: dict[str, Any]) -> np.ndarray:
    """The weight of each assignment with the findings, one axis for each variable."""
    place = {v.name: i for i, v in enumerate(asked.variables)}
    operands: list[Any] = []
    for factor in asked.factors():
        operands += [factor.values, [place[name] for name in factor.names]]
    for name, finding in found.items():
        v = asked.variable(name)
        likelihood = finding.weights if isinstance(finding, bbn.Virtual) else {finding: 1.0}
        operands += [np.array([likelihood.get(state, 0.0) for state in v.states]), [place[name]]]
    return np.asarray(np.einsum(*operands, list(range(len(place)))))


def _sparse(rng: np.random.Generator, shape: list[int], zeros: float) -> np.ndarray:
    return np.asarray(rng.random(shape) * (rng.random(shape) > zeros))
