"""Rows answered one by one, band by band: against sums over the joint table, and whole cliques."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import prepared_queries
from bbn.inference.rows import batch
from tests.inference.exact.test_sparse_cliques import at_once, banded_network, every, joint_of  # noqa: F401

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="the junction tree in numpy has no bands")


@pytest.mark.parametrize("name", ["mildew", "diabetes"])
@pytest.mark.parametrize("everything", [False, True])
def test_rows_one_by_one_in_bands(name, everything, monkeypatch):
    net = bbn.example(name)
    table = net.sample(40, seed=2)[list(net.names[::10])]
    codes = {v: np.array([net.variable(v).find(x) for x in table[v]]) for v in table}
    targets = [] if everything else [net.names[-1]]
    whole = bbn.JunctionTree(net).rows(codes, 40, targets, everything, n_jobs=1)
    monkeypatch.setattr(prepared_queries, "runs_before", lambda layout, goal: 10)
    engine = bbn.JunctionTree(net)
    found = engine.rows(codes, 40, targets, everything, n_jobs=2)
    assert [made.executor.plan.sparse is not None for made in engine.compiler.known._queries.values()] == [
        True
    ]
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.log_evidence, whole.log_evidence, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_random_networks_by_their_joint_tables(seed, at_once, monkeypatch):  # noqa: F811
    """20 networks each, rows with gaps: the posterior of one variable, or of each."""
    monkeypatch.setattr(batch, "ALONE", math.inf)
    rng = np.random.default_rng(900 + seed)
    for _ in range(20):
        net = banded_network(rng)
        joint = joint_of(net)
        cards = joint.shape
        order = rng.permutation(len(cards)).tolist()
        target, observed = order[0], order[1:3]
        codes = {net.names[v]: rng.integers(cards[v] + 1, size=12) for v in observed}
        everything = bool(rng.random() < 0.5)
        targets = [] if everything else [net.names[target]]
        found = bbn.JunctionTree(net).rows(codes, 12, targets, everything, n_jobs=1)
        start = found.out[target] if everything else 0
        for i in range(12):
            weight = joint.copy()
            for v in observed:
                code = codes[net.names[v]][i]
                if code < cards[v]:
                    weight *= np.eye(cards[v])[code].reshape([-1 if k == v else 1 for k in range(joint.ndim)])
            if not weight.any():
                assert found.log_evidence[i] == -math.inf
                continue
            assert found.log_evidence[i] == pytest.approx(math.log(weight.sum()), abs=1e-10)
            truth = weight.sum(axis=tuple(k for k in range(joint.ndim) if k != target)) / weight.sum()
            values = found.values[i, start : start + cards[target]]
            np.testing.assert_allclose(values, truth, rtol=0, atol=1e-10)
