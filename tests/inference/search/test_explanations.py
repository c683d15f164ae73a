"""The best explanations: within a memory that the tree of all states does not fit, and through noisy maxima."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.search import explanations
from bbn.inference.search import noisy_max_search as noisy_best
from tests.support import many_causes


@pytest.mark.parametrize(
    ("name", "limit"), [("water", "10 MB"), ("water", "1 MB"), ("mildew", "30 MB"), ("mildew", "12 MB")]
)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.skipif(not kernels.COMPILED, reason="domains are filtered by compiled kernels")
def test_states_that_the_evidence_rules_out_take_no_memory(name, limit, seed):
    net = bbn.example(name)
    leaves = [child for child in net.names if not net.children(child)]
    seen = net.sample(1, seed=seed)[leaves].iloc[0].to_dict()
    engine = bbn.JunctionTree(net, memory_limit=limit)
    best = net.mpe(seen, method="elimination")
    assert engine.mpe(seen).log_probability == pytest.approx(best.log_probability, abs=1e-9)
    found = engine.mpe(seen, k=5)
    logs = [own.log_probability for own in found]
    assert logs[0] == pytest.approx(best.log_probability, abs=1e-9)
    assert logs == sorted(logs, reverse=True)
    assert len({tuple(own.states.items()) for own in found}) == 5
    for own in found:
        assert math.log(net.probability({**seen, **own.states})) == pytest.approx(own.log_probability)


@pytest.mark.parametrize("seed", range(20))
def test_the_tree_answers_what_a_search_does_not_prove(seed, monkeypatch):
    monkeypatch.setattr("bbn.model.expansion.TABLE_CELLS", 1)
    monkeypatch.setattr(explanations, "LIGHT", -1.0)
    monkeypatch.setattr(noisy_best, "NODES", -1)
    monkeypatch.setattr(noisy_best, "CLOSE", -1e-3)  # nothing is proved
    rng = np.random.default_rng(seed)
    net = many_causes.network(rng, zeros=0.2)
    joint = net.joint()
    highest = np.sort(joint.values.ravel())[::-1][:4]
    found = net.mpe(k=4)
    np.testing.assert_allclose(
        [own.probability for own in found], highest[: np.count_nonzero(highest)], rtol=1e-9
    )


def test_a_large_noisy_maximum_leaves_the_others_to_the_tree():
    """Weak causes, all alike: bounds tell them apart one by one, where the tree has few cells."""
    rng = np.random.default_rng(1)
    names = [bbn.Variable(f"X{i}", ["a", "b"]) for i in range(17)]
    parts = [bbn.CPT(names[0], table=[0.5, 0.5])]
    for above, v in pairwise(names):
        parts.append(bbn.CPT(v, [above], rng.dirichlet(np.ones(2), 2)))
    links = [rng.dirichlet(np.ones(2), 2) for _ in names]
    parts.append(bbn.NoisyMax(bbn.Variable("Y", ["n", "y"]), names, links, [0.5, 0.5], strongest="y"))
    net = bbn.BayesianNetwork(parts)
    found = net.mpe({"Y": "y"}, k=20)
    joint = net.query([v.name for v in names], {"Y": "y"}, method="elimination")
    highest = np.sort(joint.values.ravel())[::-1][:20]
    logs = np.log(highest) + joint.log_evidence
    np.testing.assert_allclose([own.log_probability for own in found], logs, atol=1e-9)
