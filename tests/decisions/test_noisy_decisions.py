"""Decisions with noisy maxima and functions of many parents: against the same with full tables, and a closed form."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from tests.support.many_causes import distributions, function, noisy_max


def problem(rng, recall):
    """Causes, one of them a decision after a first one that sees a sign, and utilities of what they bring about."""
    causes = [bbn.Variable(f"X{i}", [f"s{k}" for k in range(int(rng.integers(2, 4)))]) for i in range(3)]
    first = bbn.Decision("A", ["a0", "a1"], observes=["S"])
    second = bbn.Decision("B", ["b0", "b1", "b2"], observes=["S", "A", "Y"])
    own = {"A": bbn.Variable("A", ["a0", "a1"]), "B": bbn.Variable("B", ["b0", "b1", "b2"])}
    roots = [bbn.CPT(v, table=distributions(rng, 1, v.card)[0]) for v in causes]
    sign = bbn.CPT(bbn.Variable("S", ["t", "f"]), [causes[0]], distributions(rng, causes[0].card, 2))
    y = noisy_max(rng, "Y", [causes[0], own["A"], causes[1]], zeros=0.1)
    w = noisy_max(rng, "W", [own["B"], y.variable, causes[2]], zeros=0.1)
    d = function(rng, "D", [causes[1], own["B"], causes[2]])
    profit = bbn.Utility("U", [w.variable, own["B"]], rng.normal(size=(w.variable.card, 3)))
    cost = bbn.Utility("V", [d.variable, own["A"]], rng.normal(size=(d.variable.card, 2)))
    parts = [*roots, sign, y, w, d, first, second, profit, cost]
    return bbn.DecisionNetwork(parts, recall=recall)


@pytest.mark.parametrize("recall", ["perfect", "limited"])
@pytest.mark.parametrize("seed", range(8))
def test_answers_are_those_of_the_tables(seed, recall, monkeypatch):
    rng = np.random.default_rng([25, seed])
    dn = problem(rng, recall)
    tables = dn.with_nodes([c.to_cpt() for c in dn.conditionals if hasattr(c, "to_cpt")])
    truth = tables.solve(seed=1)
    monkeypatch.setattr("bbn.decisions.problem.TABLE_CELLS", 1)
    found = dn.solve(seed=1)
    assert found.expected_utility == pytest.approx(truth.expected_utility, rel=1e-10)
    assert tables.expected_utility(found.policy) == pytest.approx(found.expected_utility, rel=1e-10)
    assert dn.expected_utility(truth.policy) == pytest.approx(truth.expected_utility, rel=1e-10)
    seen = {"S": "t"}
    assert dn.solve(seen, seed=1).expected_utility == pytest.approx(
        tables.solve(seen, seed=1).expected_utility, rel=1e-10
    )
    profile, expected = (net.risk_profile(truth.policy) for net in (dn, tables))
    np.testing.assert_allclose(profile.probabilities, expected.probabilities, atol=1e-10)
    if recall == "perfect":
        for name in ("X1", "X2"):
            assert dn.value_of_information(name) == pytest.approx(
                tables.value_of_information(name), abs=1e-10
            )
        few = {e.name: e for e in tables.sensitivity(names=["X0", "S", "U"]).entries}
        for entry in dn.sensitivity(names=["X0", "S", "U"]).entries:
            assert entry.derivative == pytest.approx(few[entry.name].derivative, abs=1e-9)
            assert (entry.low, entry.high) == pytest.approx(
                (few[entry.name].low, few[entry.name].high), rel=1e-7
            )
        assert {e.node for e in numbers(dn)} == {"X0", "X1", "X2", "S", "U", "V"}


def numbers(dn):
    from bbn.decisions.problem import problem_of
    from bbn.decisions.sensitivity import _numbers

    return _numbers(dn, problem_of(dn))


def test_a_hundred_causes():
    """Treat if P(effect) times the harm is above the cost."""
    rng = np.random.default_rng(2)
    chances, priors = rng.uniform(0.1, 0.5, 100), rng.uniform(0.001, 0.01, 100)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, list(chances), leak=0.02)
    roots = [bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, priors, strict=True)]
    treat = bbn.Decision("Treat", ["yes", "no"])
    harm = bbn.Utility(
        "Harm", [effect.variable, bbn.Variable("Treat", ["yes", "no"])], [[-10, -100], [-10, 0]]
    )
    dn = bbn.DecisionNetwork([*roots, effect, treat, harm])
    ill = 1 - 0.98 * np.prod(1 - priors * chances)
    best = dn.solve()
    assert best.expected_utility == pytest.approx(max(-10, -100 * ill), rel=1e-10)
    assert isinstance(dn.with_policy(best.policy)["E"], bbn.NoisyOr)
    known = 1 - (1 - ill) / (1 - priors[3] * chances[3]) * (1 - chances[3])
    assert dn.solve({"C3": "yes"}).expected_utility == pytest.approx(max(-10, -100 * known), rel=1e-10)
