"""Random small networks with noisy maxima and functions of several parents, and the same with full tables."""

from __future__ import annotations

from typing import Any

import numpy as np

import bbn


def distributions(rng: np.random.Generator, n: int, card: int, zeros: float = 0.0) -> Any:
    """Rows that sum to 1, of which a share of the entries is zero."""
    table = rng.dirichlet(np.ones(card), n)
    table[rng.random(table.shape) < zeros] = 0.0
    table[table.sum(axis=1) == 0] = 1.0
    return table / table.sum(axis=1, keepdims=True)


def noisy_max(rng: np.random.Generator, name: str, parents: list[Any], zeros: float = 0.0) -> bbn.NoisyMax:
    """A NoisyMax of two to four states, the strongest of them the first or the last."""
    child = bbn.Variable(name, [f"y{k}" for k in range(int(rng.integers(2, 5)))])
    links = [distributions(rng, p.card, child.card, zeros) for p in parents]
    leak = distributions(rng, 1, child.card, zeros)[0]
    return bbn.NoisyMax(child, parents, links, leak, strongest=child.states[-int(rng.integers(2))])


def function(rng: np.random.Generator, name: str, parents: list[Any]) -> bbn.Deterministic:
    """A Deterministic of one of the rules that fit its parents."""
    binary = all(p.card == 2 for p in parents)
    rules = ["or", "and", "xor", "at-least"] if binary and rng.random() < 0.6 else ["max", "min", "sum"]
    rule = rules[int(rng.integers(len(rules)))]
    most = max(p.card for p in parents) - 1
    if rule in ("or", "and", "xor", "at-least"):
        holds = {p.name: p.states[int(rng.integers(2))] for p in parents} | {name: 1}
        at_least = int(rng.integers(1, len(parents) + 1)) if rule == "at-least" else None
        child = bbn.Variable(name, [0, 1])
        return bbn.Deterministic(child, parents, rule, at_least=at_least, holds=holds)  # type: ignore[arg-type]
    if rule == "sum":
        most = int(rng.integers(1, 1 + sum(p.card - 1 for p in parents)))
    return bbn.Deterministic(bbn.Variable(name, list(range(most + 1))), parents, rule)  # type: ignore[arg-type]


def network(
    rng: np.random.Generator, zeros: float = 0.0, functions: bool = True, n_roots: int = 4
) -> bbn.BayesianNetwork:
    """Causes, of which one depends on another, noisy maxima and functions of them, and tables below these."""
    roots = [bbn.Variable(f"X{i}", [f"s{k}" for k in range(int(rng.integers(2, 4)))]) for i in range(n_roots)]
    parts: list[Any] = [bbn.CPT(v, table=distributions(rng, 1, v.card)[0]) for v in roots[:-1]]
    table = distributions(rng, roots[0].card, roots[-1].card, zeros)
    parts.append(bbn.CPT(roots[-1], [roots[0]], table))
    first = noisy_max(rng, "Y", [roots[i] for i in rng.permutation(n_roots)[: n_roots - 1]], zeros)
    second = noisy_max(rng, "W", [first.variable, *(roots[i] for i in rng.permutation(n_roots)[:2])], zeros)
    parts += [first, second]
    if functions:
        chosen = [roots[i] for i in rng.permutation(n_roots)[: int(rng.integers(2, n_roots + 1))]]
        parts.append(function(rng, "D", chosen))
    above = [parts[-1].variable, roots[1]]
    shape = [v.card for v in above]
    table = distributions(rng, int(np.prod(shape)), 2, zeros).reshape(*shape, 2)
    parts.append(bbn.CPT(bbn.Variable("Z", ["a", "b"]), above, table))
    return bbn.BayesianNetwork([parts[i] for i in rng.permutation(len(parts))])


def with_tables(net: bbn.BayesianNetwork) -> bbn.BayesianNetwork:
    """The same network with the full table of each conditional."""
    return net.with_cpts([c.to_cpt() for c in net.conditionals if hasattr(c, "to_cpt")])


def some_evidence(net: bbn.BayesianNetwork, rng: np.random.Generator, share: float = 0.4) -> dict[str, Any]:
    """A part of a row that the network may give."""
    row = with_tables(net).sample(1, seed=int(rng.integers(2**31))).iloc[0]
    return {
        v.name: v.states[list(v.states).index(row[v.name])] for v in net.variables if rng.random() < share
    }
