"""Solving decision networks, against all policies one by one."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

import bbn
from tests.support.decision_truth import Diagram


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize("block", range(10))
def test_perfect_recall_is_the_best_of_all_policies(block):
    for seed in range(25 * block, 25 * block + 25):
        diagram = Diagram(seed, recall=True)
        found = diagram.network.solve()
        assert found.proved
        assert close(found.expected_utility, diagram.best()), seed
        # the policy given is worth what it is said to be: by its network, and by the joint
        assert close(found.expected_utility, diagram.network.expected_utility(found.policy)), seed
        codes = {d: found.policy[diagram.variables[d].name].codes for d in diagram.observes}
        joint = diagram.followed(diagram.weights(), codes)
        assert close((joint * diagram.worth()).sum(), found.expected_utility), seed


@pytest.mark.parametrize("block", range(10))
def test_limited_memory_is_the_best_of_all_policies(block):
    for seed in range(25 * block, 25 * block + 25):
        diagram = Diagram(1000 + seed, recall=False, most_policies=700)
        best = diagram.best()
        found = diagram.network.solve(method="exact", node_limit=20_000)
        assert found.proved
        assert close(found.expected_utility, best), seed
        local = diagram.network.solve(method="local", restarts=2, seed=1)
        assert local.expected_utility <= best + 1e-9
        assert local.bound >= best - 1e-9
        if local.proved:
            assert close(local.expected_utility, best), seed
        codes = {d: found.policy[diagram.variables[d].name].codes for d in diagram.observes}
        joint = diagram.followed(diagram.weights(), codes)
        assert close((joint * diagram.worth()).sum(), found.expected_utility), seed


def test_evidence_is_what_is_known_from_the_start():
    checked = 0
    for seed in range(120):
        diagram = Diagram(5000 + seed, recall=True, most_policies=300)
        dn = diagram.network
        first = [v for v in dn.names if dn.kind(v) == "chance" and not decided(dn, v)]
        if not first:
            continue
        rng = np.random.default_rng(seed)
        evidence = {str(rng.choice(first)): 0}
        found = dn.solve(evidence)
        assert close(found.expected_utility, diagram.best(evidence)), seed
        assert close(math.exp(found.log_evidence), probability(diagram, evidence))
        weights = {0: 0.8, 1: 0.3, 2: 0.5}
        name = next(iter(evidence))
        soft = dn.solve({name: bbn.Virtual({s: weights[s] for s in dn.states(name)})})
        sensor = bbn.CPT(
            bbn.Variable("sensor", [0, 1]),
            [dn.variable(name)],
            [[1 - weights[s], weights[s]] for s in dn.states(name)],
        )
        assert close(soft.expected_utility, dn.with_nodes([sensor]).solve({"sensor": 1}).expected_utility)
        checked += 1
    assert checked > 80


def decided(dn: bbn.DecisionNetwork, name: str) -> bool:
    import networkx as nx

    return any(dn.kind(v) == "decision" for v in nx.ancestors(dn.graph, name))


def probability(diagram: Diagram, evidence: dict[str, int]) -> float:
    policy = next(diagram.policies())
    return float(diagram.followed(diagram.weights(evidence), policy).sum())


@pytest.mark.parametrize("tolerance", [30.0, -45.0])
@pytest.mark.parametrize("recall", [True, False])
def test_a_risk_tolerance_makes_the_certainty_equivalent_largest(tolerance, recall):
    for seed in range(40):
        diagram = Diagram(7000 + seed, recall, most_policies=300)
        weights, worth = diagram.weights(), diagram.worth()
        equivalents = []
        for policy in diagram.policies():
            joint = diagram.followed(weights, policy)
            equivalents.append(
                -tolerance * math.log((joint * np.exp(-worth / tolerance)).sum() / joint.sum())
            )
        found = diagram.network.solve(risk_tolerance=tolerance, method="exact")
        assert close(found.certainty_equivalent, max(equivalents)), seed
        assert close(found.expected_utility, diagram.network.expected_utility(found.policy)), seed


def test_a_choice_is_worth_what_the_best_policy_with_it_is_worth():
    for seed in range(60):
        diagram = Diagram(9000 + seed, recall=seed % 2 == 0, most_policies=300)
        d = next(iter(diagram.observes))
        weights, worth = diagram.weights(), diagram.worth()
        v = diagram.variables[d]
        values: dict[int, float] = {}
        for policy in diagram.policies():
            first = int(policy[d].flat[0])
            if (policy[d] == first).all():
                joint = diagram.followed(weights, policy)
                values[first] = max(values.get(first, -math.inf), (joint * worth).sum())
        for choice in v.states:
            found = (
                diagram.network.expected_utility({v.name: choice}, method="exact")
                if seed % 2
                else (diagram.network.expected_utility({v.name: choice}))
            )
            assert close(found, values[choice]), seed


def test_the_strategy_as_a_network_answers_the_usual_questions():
    for seed in range(30):
        diagram = Diagram(300 + seed, recall=True)
        found = diagram.network.solve()
        net = diagram.network.with_policy(found.policy)
        codes = {d: found.policy[diagram.variables[d].name].codes for d in diagram.observes}
        joint = diagram.followed(diagram.weights(), codes)
        for i, v in enumerate(diagram.variables):
            others = tuple(j for j in range(len(diagram.variables)) if j != i)
            assert np.allclose(net.query(v.name).values, joint.sum(others), atol=1e-12)


def test_results_are_values():
    diagram = Diagram(4, recall=True)
    found = diagram.network.solve()
    assert pickle.loads(pickle.dumps(found)) == found
    assert hash(pickle.loads(pickle.dumps(diagram.network))) == hash(diagram.network)
    assert pickle.loads(pickle.dumps(diagram.network)) == diagram.network
    assert diagram.network.solve() == found
