"""The standard networks against pyAgrum: every posterior, and ln P(evidence), with a tenth of the nodes observed."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from tests.benchmarks.bench_inference import evidence_sets

gum = pytest.importorskip("pyagrum", reason="pyAgrum is the oracle here")

pytestmark = pytest.mark.slow

REPOSITORY = [
    "asia", "cancer", "earthquake", "survey", "sachs", "child", "insurance", "water", "mildew", "alarm", "barley",
    "hailfinder", "hepar2", "win95pts", "pathfinder", "munin1", "andes", "diabetes", "pigs", "link", "munin2",
    "munin3", "munin4", "munin",
]  # fmt: skip

AT_MOST = 60


@pytest.mark.parametrize("name", REPOSITORY)
def test_posteriors_agree_with_pyagrum(name: str) -> None:
    net = bbn.example(name)
    (evidence,) = evidence_sets(net, 0.1, 1)
    answers = net.posteriors(evidence)
    inference = gum.LazyPropagation(bbn.to_pyagrum(net))
    inference.setEvidence(evidence)
    nodes = list(answers)
    if len(nodes) > AT_MOST:  # pyAgrum takes half a minute for all of munin's
        nodes = [nodes[i] for i in np.random.default_rng(1).choice(len(nodes), AT_MOST, replace=False)]
    for node in nodes:
        inference.addTarget(node)
    inference.makeInference()
    for node in nodes:
        expected = inference.posterior(node).toarray()
        np.testing.assert_allclose(answers[node].values, expected, rtol=0, atol=1e-9, err_msg=node)
    assert answers.log_evidence == pytest.approx(math.log(inference.evidenceProbability()), abs=1e-8)
