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


@pytest.mark.parametrize("size", [1e-40, 1e-300])
def test_probabilities_beyond_the_range_of_a_double(size):
    """Nine findings of the same size on one cause: their product has no double, the posterior does."""
    cause = bbn.Variable("Cause", ["a", "b"])
    seen = [bbn.Variable(f"Seen{i}", ["t", "f"]) for i in range(9)]
    act = bbn.Decision("Act", ["go", "stay"], observes=[seen[0].name])
    rows = [[size, 1 - size], [1.1 * size, 1 - 1.1 * size]]
    network = bbn.DecisionNetwork(
        [
            bbn.CPT(cause, [], [0.3, 0.7]),
            *[bbn.CPT(v, [cause], rows) for v in seen],
            act,
            bbn.Utility("Worth", [cause, act], [[10.0, 0.0], [-1.0, 1.0]]),
        ]
    )
    found = network.solve({v.name: "t" for v in seen})
    share = 0.3 / (0.3 + 0.7 * 1.1**9)
    assert math.isclose(found.expected_utility, max(10 * share - (1 - share), 1 - share), rel_tol=1e-11)
    log_evidence = math.log(0.3 + 0.7 * 1.1**9) + 9 * math.log(size)
    assert math.isclose(found.log_evidence, log_evidence, rel_tol=1e-12)


def test_evidence_that_pulls_both_ways():
    """900 heads and as many tails leave a coin as it was."""
    coin = bbn.Variable("Coin", ["low", "high"])
    throws = [bbn.Variable(f"Throw{i}", ["heads", "tails"]) for i in range(1800)]
    bet = bbn.Decision("Bet", ["low", "high"])
    network = bbn.DecisionNetwork(
        [
            bbn.CPT(coin, [], [0.5, 0.5]),
            *[bbn.CPT(v, [coin], [[0.3, 0.7], [0.7, 0.3]]) for v in throws],
            bet,
            bbn.Utility("Win", [coin, bet], [[2.0, 0.0], [0.0, 1.0]]),
        ]
    )
    found = network.solve({v.name: "heads" if i < 900 else "tails" for i, v in enumerate(throws)})
    assert math.isclose(found.expected_utility, 1.0, rel_tol=1e-9)


def test_what_is_observed_and_does_not_matter_takes_no_memory():
    """A rule over 2^40 settings that depends on one of them."""
    seen = [bbn.Variable(f"Seen{i}", [0, 1]) for i in range(40)]
    act = bbn.Decision("Act", ["go", "stay"], observes=[v.name for v in seen])
    worth = bbn.Utility("Worth", [act, seen[0]], [[1.0, 2.0], [3.0, 0.0]])
    network = bbn.DecisionNetwork([*[bbn.CPT(v, [], [0.5, 0.5]) for v in seen], act, worth])
    rule = network.solve().policy["Act"]
    assert [v.name for v in rule.relevant] == ["Seen0"]
    assert "Seen0" in str(rule)
    again = pickle.loads(pickle.dumps(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    with pytest.raises(bbn.BudgetError):
        rule.to_dict()
