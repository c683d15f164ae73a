"""EM with noisy maxima and holes in causes and effects: step by step against EM by the sum over all that is unseen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import bbn
from tests.support.many_causes import distributions, function


def model(rng):
    """A hidden cause, causes with holes, a NoisyMax of them, a second one below it, and a function of both."""
    h, x, z = (
        bbn.Variable(name, [f"s{k}" for k in range(card)]) for name, card in (("H", 2), ("X", 3), ("Z", 2))
    )
    roots = [bbn.CPT(h, table=rng.dirichlet([2, 2])), bbn.CPT(z, table=rng.dirichlet([2, 2]))]
    roots.append(bbn.CPT(x, [h], rng.dirichlet([2, 2, 2], 2)))
    parts = []
    for name, parents, card in (("Y", [h, x], 3), ("W", [z], 2)):
        child = bbn.Variable(name, [f"y{k}" for k in range(card)])
        parents = [*parents, *(p.variable for p in parts)]
        links = [distributions(rng, p.card, card) for p in parents]
        links[0][0] = np.eye(card)[0]  # an absent cause
        strongest = child.states[-1]
        leak = distributions(rng, 1, card)[0]
        parts.append(bbn.NoisyMax(child, parents, links, leak, strongest=strongest))
    parts.append(function(rng, "D", [parts[0].variable, z]))
    return bbn.BayesianNetwork([*roots, *parts])


class BruteForce:
    """EM over tables and rows of effects, by enumeration of variables and effects."""

    def __init__(self, net):
        self.net = net
        self.tables = {
            c.name: (c.rows if isinstance(c, bbn.NoisyMax) else c.table).copy() for c in net.conditionals
        }
        noisy = [c for c in net.conditionals if isinstance(c, bbn.NoisyMax)]
        self.free = [v.name for v in net.variables if v.name not in ("Y", "W", "D")]
        self.effects = [range(c.variable.card) for c in noisy for _ in (*c.parents, None)]
        self.noisy = noisy

    def worlds(self):
        """Every setting of roots and effects: codes of all variables, and the (table, place) entries that it uses."""
        for roots in itertools.product(*(range(self.net.variable(n).card) for n in self.free)):
            for effects in itertools.product(*self.effects):
                codes = dict(zip(self.free, roots, strict=True))
                used = []
                left = list(effects)
                for own in self.net.conditionals:
                    if isinstance(own, bbn.NoisyMax):
                        mine, left = left[: len(own.parents) + 1], left[len(own.parents) + 1 :]
                        start = 0
                        for parent, effect in zip(own.parents, mine, strict=False):
                            used.append((own.name, (start + codes[parent.name], effect)))
                            start += parent.card
                        used.append((own.name, (start, mine[-1])))
                        codes[own.name] = max(mine)
                    elif isinstance(own, bbn.Deterministic):
                        row = own.row_at([codes[p.name] for p in own.parents])
                        codes[own.name] = int(np.argmax(row))
                    else:
                        place = (*(codes[p.name] for p in own.parents), codes[own.name])
                        used.append((own.name, place))
                yield codes, used

    def step(self, rows):
        """The log-likelihood of rows of codes (None: unseen), and the tables after a step."""
        counts = {name: np.zeros(table.shape) for name, table in self.tables.items()}
        chances = []
        for codes, used in self.all:
            chances.append((codes, used, math.prod(self.tables[name][place] for name, place in used)))
        total = 0.0
        for row in rows:
            fit = [
                (used, p)
                for codes, used, p in chances
                if p > 0 and all(code is None or codes[name] == code for name, code in row.items())
            ]
            likelihood = math.fsum(p for _, p in fit)
            total += math.log(likelihood)
            for used, p in fit:
                for name, place in used:
                    counts[name][place] += p / likelihood
        for name, count in counts.items():
            sums = count.sum(axis=-1, keepdims=True)
            self.tables[name] = np.where(sums > 0, count / np.where(sums > 0, sums, 1), self.tables[name])
        return total

    def run(self, rows, steps):
        self.all = list(self.worlds())
        return [self.step(rows) for _ in range(steps)]


@pytest.mark.parametrize("seed", range(4))
def test_steps_are_those_of_brute_force(seed):
    rng = np.random.default_rng([29, seed])
    net = model(rng)
    start = model(np.random.default_rng([30, seed]))
    start = start.with_cpts([net["D"]])
    data = net.sample(25, seed=seed, missing={"X": 0.3, "Z": 0.3, "Y": 0.4, "W": 0.2, "D": 0.5}).drop(
        columns="H"
    )
    rows = [
        {n: None if x is None or x != x else list(net.states(n)).index(x) for n, x in row.items()}
        for row in data.astype(object).to_dict("records")
    ]
    found = bbn.fit_em(start, data, hidden=["H"], max_iter=4, tol=0.0)
    truth = BruteForce(start)
    expected = truth.run(rows, 4)
    np.testing.assert_allclose(found.log_likelihoods[:4], expected, rtol=1e-10)
    assert (np.diff(found.log_likelihoods) > -1e-9).all()
    for name in net.names:
        own = found.network[name]
        if name != "D":
            table = own.rows if isinstance(own, bbn.NoisyMax) else own.table
            np.testing.assert_allclose(table, truth.tables[name], atol=1e-9)
    assert found.network["D"] == net["D"]


def test_a_hidden_effect_of_thirty_causes_with_holes():
    """Causes, the effect and its signs have holes: the likelihood never falls, and ends above that of the truth."""
    rng = np.random.default_rng(3)
    causes = [bbn.Variable(f"C{i}", ["no", "yes"]) for i in range(30)]
    child = bbn.Variable("E", ["none", "mild", "high"])

    def made(rng):
        links = [np.array([[1, 0, 0], rng.dirichlet([2, 2, 2])]) for _ in causes]
        effect = bbn.NoisyMax(child, causes, links, [0.9, 0.08, 0.02])
        sign = bbn.CPT(bbn.Variable("S", ["a", "b"]), [child], [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
        return bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.9, 0.1]) for v in causes), effect, sign])

    net = made(rng)
    data = net.sample(600, seed=1, missing=0.2)
    found = bbn.fit_em(made(rng), data, max_iter=40)
    assert (np.diff(found.log_likelihoods) > -1e-8).all()
    assert found.log_likelihood > net.log_likelihood(data).sum()
    assert all(link[0].tolist() == [1, 0, 0] for link in found.network["E"].links)
    hidden = bbn.fit_em(made(rng), data.drop(columns="E"), hidden=["E"], max_iter=10)
    assert (np.diff(hidden.log_likelihoods) > -1e-8).all()
    assert isinstance(hidden.network["E"], bbn.NoisyMax)
