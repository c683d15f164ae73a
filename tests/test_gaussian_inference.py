"""Posteriors of networks with Gaussian variables against enumeration, numerical integration and theorems."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gaussian_truth import Truth, forward, random_evidence, random_network
from scipy.stats import norm

import bbn

EXACT = [bbn.JunctionTree, bbn.VariableElimination, bbn.Enumeration]


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(100))
def test_posteriors_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    evidence = random_evidence(net, rng)
    truth = Truth(net, evidence)
    for engine in EXACT:
        answers = engine(net).posteriors(evidence)
        hard = {n for n, value in evidence.items() if not isinstance(value, bbn.Virtual)}
        assert list(answers) == [n for n in net.names if n not in hard]
        close(answers.log_evidence, truth.log_evidence)
        for name, p in answers.items():
            alone = engine(net).query(name, evidence)
            close(alone.log_evidence, truth.log_evidence)
            if net.states(name):
                close(p.values, list(truth.probability(name).values()))
                close(alone.values, p.values)
                continue
            weight, mean, variance = truth.mixture(name).T
            first = weight @ mean
            close(p.weights.sum(), 1.0)
            close(p.mean, first)
            close(p.variance, weight @ (variance + mean**2) - first**2)
            x = first + np.linspace(-4, 4, 9) * math.sqrt(p.variance)
            close(p.pdf(x), norm.pdf(x[:, None], mean, np.sqrt(variance)) @ weight)
            close(p.cdf(x), norm.cdf(x[:, None], mean, np.sqrt(variance)) @ weight)
            close(p.cdf(p.quantile([0.001, 0.3, 0.99])), [0.001, 0.3, 0.99])
            assert alone == p or np.allclose(alone.pdf(x), p.pdf(x), rtol=1e-12)


def rows_with_holes(net, rng, n, share):
    """Rows drawn from the network as columns, values missing at random."""
    drawn = [forward(net, rng) for _ in range(n)]
    return {name: [None if rng.random() < share else row[name] for row in drawn] for name in net.names}


@pytest.mark.parametrize("seed", range(40))
def test_batches_against_single_queries(seed):
    rng = np.random.default_rng(1000 + seed)
    net = random_network(rng)
    table = rows_with_holes(net, rng, 12, [0.0, 0.3, 0.7][seed % 3])
    rows = [{n: column[i] for n, column in table.items() if column[i] is not None} for i in range(12)]
    close(net.log_likelihood(table), [Truth(net, row).log_evidence for row in rows])
    for target in net.names:
        truths = [Truth(net, {n: x for n, x in row.items() if n != target}) for row in rows]
        if net.states(target):
            columns = net.predict_proba(table, target)
            for state, column in columns.items():
                close(column, [truth.probability(target)[state] for truth in truths])
        else:
            means = [truth.mixture(target)[:, 0] @ truth.mixture(target)[:, 1] for truth in truths]
            close(net.predict(table, target), means)


def test_rows_one_by_one_are_the_same(monkeypatch):
    rng = np.random.default_rng(3)
    net = random_network(rng, max_discrete=3, max_continuous=4)
    table = rows_with_holes(net, rng, 20, 0.5)
    together = {name: net.predict(table, name) for name in net.names}
    logs = net.log_likelihood(table)
    monkeypatch.setattr("bbn.inference.mixed_rows.JOINT_CELLS", 0)
    close(net.log_likelihood(table), logs)
    for name, column in together.items():
        again = net.predict(table, name)
        assert list(again) == list(column) if net.states(name) else np.allclose(again, column)
