"""Slow truths about decision networks: every policy, one after the other, on the joint written out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import bbn


class Diagram:
    """A random diagram: chance variables and decisions in one order of time, utilities over any of them.

    With `recall`, each decision observes all that was observed or decided before; without, a random part of what came
    before.
    """

    def __init__(self, seed: int, recall: bool, most_policies: int = 1500) -> None:
        rng = np.random.default_rng(seed)
        while True:
            self._draw(rng, recall)
            if self.n_policies() <= most_policies:
                return

    def _draw(self, rng: np.random.Generator, recall: bool) -> None:
        n_decisions = int(rng.integers(1, 4))
        kinds = rng.permutation([True] * n_decisions + [False] * int(rng.integers(1, 5)))
        self.variables = [
            bbn.Variable(
                f"{'D' if kind else 'X'}{i}",
                list(range(int(rng.integers(2, 4)) if rng.random() < 0.4 else 2)),
            )
            for i, kind in enumerate(kinds)
        ]
        self.nodes: list[object] = []
        self.scopes: list[list[int]] = []
        self.tables: list[np.ndarray] = []
        self.utilities: list[tuple[list[int], np.ndarray]] = []
        self.observes: dict[int, list[int]] = {}
        seen: list[int] = []
        for i, kind in enumerate(kinds):
            v = self.variables[i]
            if kind:
                earlier = [j for j in range(i) if not kinds[j]]
                new = [j for j in earlier if j not in seen and rng.random() < 0.5]
                if recall:
                    own = [*seen, *new]
                    seen += [*new, i]
                else:
                    own = [j for j in range(i) if rng.random() < 0.35]
                own = [int(j) for j in rng.permutation(own)]
                self.observes[i] = own
                self.nodes.append(bbn.Decision(v.name, v.states, [self.variables[j].name for j in own]))
            else:
                scope = [int(j) for j in rng.permutation(i)[: rng.integers(0, 3)]]
                table = rng.random([self.variables[j].card for j in (*scope, i)]) ** 2
                table[rng.random(table.shape) < 0.1] = 0.0
                table[..., 0] += 1e-3
                table /= table.sum(-1, keepdims=True)
                self.scopes.append([*scope, i])
                self.tables.append(table)
                self.nodes.append(bbn.CPT(v, [self.variables[j] for j in scope], table))
        for k in range(int(rng.integers(1, 4))):
            n = len(kinds)
            scope = sorted(int(j) for j in rng.permutation(n)[: rng.integers(1, min(n, 3) + 1)])
            table = np.round(rng.normal(0, 20, [self.variables[j].card for j in scope]), 1)
            self.utilities.append((scope, table))
            self.nodes.append(bbn.Utility(f"U{k}", [self.variables[j] for j in scope], table))
        order = rng.permutation(len(self.nodes))
        self.network = bbn.DecisionNetwork(
            [self.nodes[j] for j in order], recall="perfect" if recall else "limited"
        )

    def n_policies(self) -> int:
        total = 1
        for d, own in self.observes.items():
            total *= self.variables[d].card ** int(np.prod([self.variables[j].card for j in own], dtype=int))
        return total

    def _over(self, scope: list[int], table: np.ndarray) -> np.ndarray:
        shape = [v.card if i in scope else 1 for i, v in enumerate(self.variables)]
        return np.transpose(table, np.argsort(scope)).reshape(shape)

    def weights(self, evidence: dict[str, int] | None = None) -> np.ndarray:
        """∏ P over all variables, decisions free, zero where the evidence does not hold."""
        whole = np.ones([v.card for v in self.variables])
        for scope, table in zip(self.scopes, self.tables, strict=True):
            whole = whole * self._over(scope, table)
        for i, v in enumerate(self.variables):
            if evidence and v.name in evidence:
                whole = whole * self._over([i], np.eye(v.card)[evidence[v.name]])
        return whole

    def worth(self) -> np.ndarray:
        """The total utility of each setting."""
        whole = np.zeros([v.card for v in self.variables])
        for scope, table in self.utilities:
            whole = whole + self._over(scope, table)
        return whole

    def policies(self) -> Iterator[dict[int, np.ndarray]]:
        """Every policy: for each decision the choices, an array over what it observes."""
        rules = []
        for d, own in self.observes.items():
            shape = [self.variables[j].card for j in own]
            size = int(np.prod(shape, dtype=int))
            choices = itertools.product(range(self.variables[d].card), repeat=size)
            rules.append([np.array(c, int).reshape(shape) for c in choices])
        for chosen in itertools.product(*rules):
            yield dict(zip(self.observes, chosen, strict=True))

    def followed(self, weights: np.ndarray, policy: dict[int, np.ndarray]) -> np.ndarray:
        """The joint when decisions follow a policy."""
        for d, codes in policy.items():
            weights = weights * self._over([*self.observes[d], d], np.eye(self.variables[d].card)[codes])
        return weights

    def best(self, evidence: dict[str, int] | None = None) -> float:
        """The greatest expected utility of all policies."""
        weights, worth = self.weights(evidence), self.worth()
        values = []
        for policy in self.policies():
            joint = self.followed(weights, policy)
            values.append((joint * worth).sum() / joint.sum())
        return max(values)
