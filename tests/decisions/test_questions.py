"""What information is worth, where policies flip, what is risked: each against all policies on the joint."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest

import bbn
from tests.support.decision_truth import Diagram


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


def test_information_is_never_worth_less_than_nothing_with_perfect_recall():
    seen = 0
    for seed in range(80):
        dn = Diagram(20_000 + seed, recall=True, most_policies=200).network
        values = dn.information_values()
        for entry in values.entries:
            assert entry.value >= -1e-9, seed
            seen += 1
        assert [e.net for e in values.entries] == sorted((e.net for e in values.entries), reverse=True)
    assert seen > 60


def test_information_that_is_d_separated_from_the_utilities_is_worth_nothing():
    seen = 0
    for seed in range(200):
        diagram = Diagram(21_000 + seed, recall=True, most_policies=200)
        dn = diagram.network
        if len(dn.decisions) != 1:
            continue
        (decision,) = dn.decisions
        graph = nx.DiGraph(dn.graph)
        utilities = {u.name for u in dn.utilities if nx.has_path(graph, decision.name, u.name)}
        for entry in dn.information_values().entries:
            (name,) = entry.names
            given = {decision.name, *decision.observes}
            if not utilities or nx.is_d_separator(graph, {name}, utilities, given):
                assert abs(entry.value) < 1e-9, seed
                seen += 1
    assert seen > 20


def test_the_value_is_what_observing_adds():
    for seed in range(40):
        diagram = Diagram(22_000 + seed, recall=True, most_policies=200)
        dn = diagram.network
        for name in dn.decisions[0].observes:
            less = [
                bbn.Decision(d.name, d.states, [v for v in d.observes if v != name]) for d in dn.decisions
            ]
            gain = dn.solve().expected_utility - dn.with_nodes(less).solve().expected_utility
            assert close(dn.value_of_information(name), gain)


def test_a_test_that_is_not_there_yet_and_sets_of_tests_with_costs():
    dn = bbn.example("treatment")
    disease = dn.variable("Disease")
    perfect = dn.value_of_information("Disease")
    copies = []
    for i, error in enumerate((0.0, 0.1, 0.5)):
        test = bbn.Variable(f"Test{i}", ["positive", "negative"])
        copies.append(bbn.CPT(test, [disease], [[1 - error, error], [error, 1 - error]]))
    exact, good, useless = (dn.value_of_information(test) for test in copies)
    assert close(exact, perfect)
    assert close(useless, 0.0)
    assert 0 < good < perfect
    # by hand: EU(known) = 0.1 · 80 + 0.9 · 100; EU(fever) as the joint says
    fever = 0.08 * 80 + 0.135 * 85 + 0.02 * 10 + 0.765 * 100
    assert close(dn.solve().expected_utility, fever)
    assert close(perfect, 0.1 * 80 + 0.9 * 100 - fever)
    values = dn.information_values(copies, costs={"Test0": 100, "Test1": 0.5}, together=2)
    assert values.best.names[0] == "Test1"
    assert close(values["Test0"].net, exact - 100)
    assert values[("Test1", "Test2")].value == pytest.approx(good)
    assert close(dn.value_of_information(copies[1], cost=0.25), good - 0.25)
    with pytest.raises(ValueError, match="a cost is -1"):
        dn.value_of_information("Disease", cost=-1)
    with pytest.raises(bbn.EvidenceError, match="is a decision"):
        dn.value_of_information("Treat")
    with pytest.raises(bbn.EvidenceError, match="did you mean 'Fever'"):
        dn.value_of_information("Fver")
    with pytest.raises(bbn.EvidenceError, match="there is a cost for 'Tset'"):
        dn.information_values(costs={"Tset": 3})


def test_what_depends_on_every_decision_cannot_be_known_in_time():
    dn = bbn.example("troubleshooting")
    with pytest.raises(bbn.EvidenceError, match="no open decision can know 'WorksInTheEnd'"):
        dn.value_of_information("WorksInTheEnd")
    with pytest.raises(bbn.EvidenceError, match="'First' cannot know 'WorksInTheEnd'"):
        dn.value_of_information("WorksInTheEnd", decision="First")
    late = dn.value_of_information("Cause", decision="Second")
    assert 0 < late < dn.value_of_information("Cause")


def moved(diagram: Diagram, entry: bbn.decisions.sensitivity.Influence, value: float) -> bbn.DecisionNetwork:
    """The network with one number at another value, the others of its row in proportion."""
    node = diagram.network[entry.node]
    table = np.array(node.table)
    if isinstance(node, bbn.Utility):
        table[entry.place] = value
        return diagram.network.with_nodes([bbn.Utility(node.name, node.parents, table)])
    *row, column = entry.place
    old = table[tuple(row)].copy()
    new = old * (1 - value) / (1 - old[column])
    new[column] = value
    table[tuple(row)] = new
    return diagram.network.with_nodes([bbn.CPT(node.variable, node.parents, table)])


@pytest.mark.parametrize("evidence", [False, True])
def test_policies_flip_where_it_is_said_and_not_before(evidence):
    flips = 0
    for seed in range(25):
        diagram = Diagram(23_000 + seed, recall=True, most_policies=300)
        dn = diagram.network
        given = {}
        if evidence:
            free = [c.variable.name for c in dn.conditionals if not decided(dn, c.variable.name)]
            if not free:
                continue
            given = {free[0]: 0}
        found = dn.sensitivity(given)
        for entry in found.entries[:12]:
            if entry.name.startswith("P(") and evidence and entry.value in (0.0, 1.0):
                continue
            span = 1e-4 if entry.name.startswith("P(") else 0.01
            for edge, flipped in ((entry.low, entry.flips_below), (entry.high, entry.flips_above)):
                if flipped is None:
                    continue
                out = edge + (span if edge >= entry.value else -span)
                if entry.name.startswith("P(") and not 0 < out < 1:
                    continue
                beyond = moved(diagram, entry, out)
                assert beyond.solve(given).expected_utility > (
                    beyond.expected_utility(found.policy, given) - 1e-9
                )
                inside = moved(diagram, entry, entry.value + 0.999 * (edge - entry.value))
                assert close(
                    inside.solve(given).expected_utility, inside.expected_utility(found.policy, given)
                ), (seed, entry.name)
                # at the edge the two policies are worth the same
                at = moved(diagram, entry, edge)
                assert math.isclose(
                    at.expected_utility(flipped, given),
                    at.expected_utility(found.policy, given),
                    rel_tol=1e-7,
                    abs_tol=1e-6,
                )
                flips += 1
            if entry.flips_above is None:
                far = moved(diagram, entry, 1 - 1e-9 if entry.name.startswith("P(") else entry.value + 50)
                assert close(far.solve(given).expected_utility, far.expected_utility(found.policy, given))
            step = min(1e-6, (1 - entry.value) / 2) if entry.name.startswith("P(") else 1e-3
            slope = (
                moved(diagram, entry, entry.value + step).expected_utility(found.policy, given)
                - found.expected_utility
            ) / step
            assert entry.derivative == pytest.approx(slope, rel=1e-3, abs=1e-4), (seed, entry.name)
    assert flips > 30


def decided(dn: bbn.DecisionNetwork, name: str) -> bool:
    return any(dn.kind(v) == "decision" for v in nx.ancestors(dn.graph, name))


def test_the_risk_profile_is_the_distribution_of_the_total():
    for seed in range(40):
        diagram = Diagram(24_000 + seed, recall=True, most_policies=200)
        dn = diagram.network
        best = dn.solve()
        codes = {d: best.policy[diagram.variables[d].name].codes for d in diagram.observes}
        joint = diagram.followed(diagram.weights(), codes).ravel()
        worth = np.broadcast_to(diagram.worth(), [v.card for v in diagram.variables]).ravel()
        profile = dn.risk_profile()
        assert close(profile.mean, best.expected_utility)
        assert close(profile.probabilities.sum(), 1.0)
        assert close(profile.variance, joint @ (worth - joint @ worth) ** 2)
        for threshold in (-10.05, 0.05, 15.05):
            assert close(profile.probability(below=threshold), joint[worth < threshold].sum())
            assert close(profile.probability(at_least=threshold), joint[worth >= threshold].sum())
        for q in (0.1, 0.5, 0.9):
            value = profile.quantile(q)
            assert joint[worth <= value + 1e-9].sum() >= q - 1e-9
            assert joint[worth < value - 1e-9].sum() < q + 1e-9
        assert close(
            profile.certainty_equivalent(25.0), -25.0 * math.log((joint * np.exp(-worth / 25.0)).sum())
        )
        sampled = dn.risk_profile(n_samples=4000, seed=seed)
        assert abs(sampled.mean - profile.mean) < 6 * profile.std / math.sqrt(4000) + 1e-9
        assert sampled == dn.risk_profile(n_samples=4000, seed=seed)


def test_the_more_risk_is_avoided_the_less_is_risked():
    dn = bbn.example("oil_wildcatter")
    spreads = [dn.risk_profile(dn.solve(risk_tolerance=r).policy).std for r in (30.0, 100.0, 1000.0)]
    assert spreads == sorted(spreads)
    assert dn.solve(risk_tolerance=1e6).policy == dn.solve().policy
    assert dn.solve(risk_tolerance=1e6).certainty_equivalent == pytest.approx(22.5, abs=0.01)
    assert dn.solve(risk_tolerance=30.0).expected_utility == 0.0  # neither tested nor drilled
    for wrong in (0, math.nan, "x", True):
        with pytest.raises(ValueError, match="risk_tolerance is"):
            dn.solve(risk_tolerance=wrong)
    with pytest.raises(ValueError, match="range over"):
        dn.solve(risk_tolerance=0.01)
