"""Random dynamic networks with evidence, and the slow truth about them: the unrolled network."""

from __future__ import annotations

from typing import Any

import numpy as np

import bbn


def random_table(rng: np.random.Generator, shape: tuple[int, ...], zeros: bool) -> np.ndarray:
    table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    if zeros and rng.random() < 0.3:
        table = np.where(rng.random(shape) < 0.2, 0.0, table)
        sums = table.sum(axis=-1, keepdims=True)
        table = np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / shape[-1])
    return table


def random_dynamic(
    rng: np.random.Generator, zeros: bool = False, gaussians: bool = False
) -> bbn.DynamicNetwork:
    """1 to 4 variables a slice, maybe a static one, parents up to two slices back."""
    n, order = int(rng.integers(1, 5)), int(rng.choice([1, 1, 2]))
    variables = [
        bbn.Variable(f"V{i}", [f"s{k}" for k in range(rng.integers(1 + (rng.random() < 0.9), 4))])
        for i in range(n)
    ]
    static = bbn.Variable("Static", ["a", "b"]) if rng.random() < 0.3 else None
    starts: list[list[Any]] = [[]]
    if static is not None:
        starts[0].append(bbn.CPT(static, table=random_table(rng, (2,), False)))
    second: list[Any] = []
    later: list[Any] = []
    for i, v in enumerate(variables):
        inside = [u for u in variables[:i] if rng.random() < 0.4]
        if static is not None and rng.random() < 0.4:
            inside.append(static)
        lagged = [
            (u, k)
            for u in variables
            for k in range(1, order + 1)
            if rng.random() < (0.6 if u is v else 0.3) / k**1.5
        ][:3]
        parents = [*inside, *(bbn.Previous(u if rng.random() < 0.5 else u.name, k) for u, k in lagged)]
        cards = [u.card for u in inside] + [u.card for u, _ in lagged]
        later.append(bbn.CPT(v, parents, random_table(rng, (*cards, v.card), zeros)))
        if lagged or rng.random() < 0.3:
            shape = (*(u.card for u in inside), v.card)
            starts[0].append(bbn.CPT(v, inside, random_table(rng, shape, zeros)))
        near = [(u, k) for u, k in lagged if k == 1]
        if order == 2 and rng.random() < 0.5:
            shape = (*(u.card for u in inside), *(u.card for u, _ in near), v.card)
            parents = [*inside, *(bbn.Previous(u, k) for u, k in near)]
            second.append(bbn.CPT(v, parents, random_table(rng, shape, zeros)))
    if gaussians:
        for j in range(int(rng.integers(1, 3))):
            inside = [u for u in variables if rng.random() < 0.5]
            shape = tuple(u.card for u in inside)
            later.append(bbn.Gaussian(f"X{j}", inside, rng.normal(size=shape), rng.uniform(0.3, 2, shape)))
    return bbn.DynamicNetwork([*starts, second] if second else starts, later)


def random_evidence(
    rng: np.random.Generator, dyn: bbn.DynamicNetwork, steps: int, virtual: bool = True
) -> dict[str, list[Any]]:
    """A sample of the network with holes; some columns are left out, some values are likelihoods."""
    drawn = dyn.unroll(steps).sample(1, seed=int(rng.integers(1 << 30))).iloc[0]
    columns: dict[str, list[Any]] = {}
    for name in dyn.names:
        if rng.random() < 0.35 and name not in dyn.continuous:
            continue
        own: list[Any] = []
        for t in range(steps):
            value = drawn[name if name in dyn.static else f"{name}[{t}]"]
            if rng.random() < 0.25:
                value = None
            elif virtual and name not in dyn.continuous and rng.random() < 0.15:
                value = bbn.Virtual(
                    {
                        s: float(w)
                        for s, w in zip(
                            dyn.states(name), rng.uniform(0.1, 2, len(dyn.states(name))), strict=True
                        )
                    }
                )
            own.append(value)
        columns[name] = own
    return columns or {dyn.names[0]: [None] * steps}


def unrolled_evidence(dyn: bbn.DynamicNetwork, columns: dict[str, list[Any]], steps: int) -> dict[str, Any]:
    """Evidence of the first steps, for the unrolled network; None where a static node has several likelihoods."""
    evidence = {}
    for name, own in columns.items():
        for t in range(min(steps, len(own))):
            if own[t] is None:
                continue
            key = name if name in dyn.static else f"{name}[{t}]"
            if isinstance(own[t], bbn.Virtual) and isinstance(evidence.get(key), bbn.Virtual):
                both = {s: evidence[key].weights[s] * w for s, w in own[t].weights.items()}
                evidence[key] = bbn.Virtual(both)
            elif not isinstance(own[t], bbn.Virtual) or key not in evidence:
                if isinstance(evidence.get(key), bbn.Virtual):
                    return_weight = evidence[key].weights[own[t]]
                    evidence[key] = bbn.Virtual({s: return_weight * (s == own[t]) for s in dyn.states(name)})
                else:
                    evidence[key] = own[t]
            elif not isinstance(evidence[key], bbn.Virtual):
                hard = evidence[key]
                evidence[key] = bbn.Virtual({s: own[t].weights[hard] * (s == hard) for s in dyn.states(name)})
    return evidence


def true_beliefs(
    dyn: bbn.DynamicNetwork, net: bbn.BayesianNetwork, evidence: dict[str, Any], step: int
) -> dict[str, np.ndarray]:
    """P(x[step] | evidence) of every variable, by the junction tree of the unrolled network."""
    answers = net.posteriors(evidence)
    found = {}
    for name in dyn.names:
        key = name if name in dyn.static else f"{name}[{step}]"
        if name in dyn.continuous:
            if key in evidence:
                found[name] = np.array([evidence[key], 0.0])
            else:
                found[name] = np.array([answers[key].mean, answers[key].variance])
        elif key in answers:
            found[name] = answers[key].values
        else:
            found[name] = np.array([float(s == evidence[key]) for s in dyn.states(name)])
    return found
