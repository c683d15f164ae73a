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
