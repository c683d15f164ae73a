"""Expected counts under networks that are mostly zeros: against sums over the joint table, and the whole gradient."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.data import Block
from bbn.inference.rows.expected_counts import Expectation, by_name, flat_tables
from tests.inference.exact.test_sparse_cliques import banded_network, joint_of

EXPECT = [
    importlib.import_module(f"bbn.kernels.{kind}.expect")
    for kind in (("compiled", "pure") if kernels.COMPILED else ("pure",))
]


def with_gaps(net: bbn.BayesianNetwork, rng: np.random.Generator, n: int, share: float) -> Block:
    """Rows of the network, this share of their values missing."""
    table = net.sample(n, seed=int(rng.integers(1000)))
    codes = {}
    for v in net.variables:
        column = np.array([v.find(value) for value in table[v.name]], np.int32)
        codes[v.name] = np.where(rng.random(n) < share, v.card, column).astype(np.int32)
    return Block(codes, rng.uniform(0.5, 2.0, n))


def counts_of(net: bbn.BayesianNetwork, joint: np.ndarray, block: Block) -> tuple[dict, np.ndarray]:
    """The expected counts of each family, and ln P of each row, by the joint table."""
    place = {v.name: k for k, v in enumerate(net.variables)}
    counts = dict.fromkeys(net.names, 0.0)
    logs = np.empty(block.n_rows)
    for i in range(block.n_rows):
        weight = joint.copy()
        for v in net.variables:
            code = block.codes[v.name][i]
            if code < v.card:
                weight *= np.eye(v.card)[code].reshape(
                    [-1 if k == place[v.name] else 1 for k in range(joint.ndim)]
                )
        logs[i] = math.log(weight.sum())
        for name in net.names:
            family = [place[p] for p in (*net.parents(name), name)]
            counts[name] += (
                block.weights[i] / weight.sum() * np.einsum(weight, list(range(joint.ndim)), family)
            )
    return counts, logs


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_by_their_joint_tables(seed, monkeypatch):
    """100 networks each, with rows of every share of gaps; both kernels."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        net = banded_network(rng)
        joint = joint_of(net)
        block = with_gaps(net, rng, 3, rng.random())
        truth, logs = counts_of(net, joint, block)
        expectation = Expectation(net, 1)
        expectation.counts = True
        tables = flat_tables(net)
        for kernel in EXPECT:
            monkeypatch.setattr(kernels, "expect", kernel)
            gradient, found = expectation.block(tables, block)
            np.testing.assert_allclose(found, logs, rtol=0, atol=1e-10)
            for name, counts in by_name(net, tables * gradient).items():
                np.testing.assert_allclose(counts, truth[name], rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "share"), [("mildew", 0.3), ("mildew", 0.8), ("diabetes", 0.4), ("pigs", 0.5)]
)
def test_the_counts_of_the_whole_gradient(name, share):
    net = bbn.example(name)
    block = with_gaps(net, np.random.default_rng(1), 3, share)
    expectation, tables = Expectation(net, 1), flat_tables(net)
    whole, logs = expectation.block(tables, block)
    expectation.counts = True
    gradient, found = expectation.block(tables, block)
    np.testing.assert_allclose(found, logs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(tables * gradient, tables * whole, rtol=0, atol=1e-10)
    if kernels.COMPILED:
        assert ((gradient == 0) & (whole > 0)).any()  # cells of zero were left out
        assert (tables[(gradient == 0) & (whole > 0)] == 0).all()


def test_the_gradient_itself_has_that_of_zeros():
    """ln P(row) is ln of a sum that is linear in each entry, so a step from 0 tells the slope exactly."""
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(30):
        net = banded_network(rng)
        block = with_gaps(net, rng, 1, 0.7)._replace(weights=np.ones(1))
        expectation, tables = Expectation(net, 1), flat_tables(net)
        gradient, (log,) = expectation.block(tables, block)
        for entry in rng.permutation(np.flatnonzero(tables == 0))[:10]:
            moved = tables.copy()
            moved[entry] = 0.5
            step = math.exp(expectation.block(moved, block)[1][0] - log) - 1.0
            assert gradient[entry] == pytest.approx(step / 0.5, rel=1e-9, abs=1e-10)
            seen += step > 1e-6
    assert seen >= 20
