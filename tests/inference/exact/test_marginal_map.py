"""Marginal MAP by a tree and in a constrained order, with states left out and variables merged: against the joint."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import junction_tree, marginal_map
from tests.support import sparse_models


@pytest.fixture(params=["tree", "buckets", "either"])
def way(request, monkeypatch):
    """Every question goes the general way, by the plan named."""
    monkeypatch.setattr(junction_tree, "JOINT_CELLS", 0)
    if request.param == "tree":
        monkeypatch.setattr(marginal_map, "BUCKET_CELL", math.inf)
    if request.param == "buckets":
        monkeypatch.setattr(marginal_map, "JOINT_CELLS", 0)
    return request.param


@pytest.mark.parametrize("part", range(4))
def test_the_best_states_are_those_of_the_joint(part, way):
    answered = impossible = 0
    for seed in range(50 * part, 50 * part + 50):
        rng = np.random.default_rng(seed)
        net = sparse_models.model(rng)
        found = sparse_models.evidence(rng, net)
        joint = sparse_models.weights(net, found)
        names = [v.name for v in net.variables]
        free = [name for name in names if not isinstance(found.get(name), str)]
        for size in {1, min(2, len(free)), len(free)}:
            targets = [free[i] for i in rng.permutation(len(free))[:size].tolist()]
            if not joint.any():
                with pytest.raises(bbn.ImpossibleEvidenceError):
                    bbn.JunctionTree(net).map(targets, found)
                impossible += 1
                continue
            summed = tuple(i for i, name in enumerate(names) if name not in targets)
            weights = joint.sum(axis=summed)
            best = bbn.JunctionTree(net).map(targets, found)
            kept = [name for name in names if name in targets]
            index = tuple(net.variable(name).code(best.states[name]) for name in kept)
            assert list(best.states) == targets
            assert best.log_probability == pytest.approx(math.log(weights.max()), abs=1e-9)
            assert weights[index] == pytest.approx(weights.max(), rel=1e-9)
            answered += 1
    assert answered > 60


@pytest.mark.skipif(not kernels.COMPILED, reason="domains are filtered by compiled kernels")
def test_water_is_decided_in_a_small_part_of_its_states():
    """All states take 3.5e8 cells for 12 targets, and do not fit for 20."""
    net = bbn.example("water")
    leaves = [name for name in net.names if not net.children(name)]
    row = net.sample(1, seed=0).iloc[0]
    seen = {name: row[name] for name in leaves[:4]}
    free = [name for name in net.names if name not in seen]
    before = -math.inf
    for size in (28, 25, 20, 12):
        best = bbn.JunctionTree(net, memory_limit="40 MB").map(free[:size], seen)
        assert best.log_probability >= before - 1e-9  # deciding fewer sums more
        assert best.log_probability == pytest.approx(
            net.posteriors({**seen, **best.states}).log_evidence, abs=1e-9
        )
        before = best.log_probability
    assert net.map(free, seen).log_probability == pytest.approx(net.mpe(seen).log_probability, abs=1e-9)
