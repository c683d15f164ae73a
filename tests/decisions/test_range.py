"""Decisions after findings whose joint probability is far below what a double holds."""

from __future__ import annotations

import numpy as np
import pytest

import bbn

EVIDENCE = {f"K{i}": "t" for i in range(9)}
SHARE = 1 / (1 + 1.1**9)
"""P(A = a | evidence): each of nine findings is 1.1 times as probable given b."""


def signs(p: float, recall: str = "perfect") -> bbn.DecisionNetwork:
    cause = bbn.Variable("A", ["a", "b"])
    seen = [
        bbn.CPT(bbn.Variable(f"K{i}", ["t", "f"]), [cause], [[p, 1 - p], [1.1 * p, 1 - 1.1 * p]])
        for i in range(9)
    ]
    decision = bbn.Decision("D", ["x", "y"], [])
    utility = bbn.Utility("U", [cause, decision], [[10, 0], [0, 6]])
    nodes = [bbn.CPT(cause, [], [0.5, 0.5]), *seen, decision, utility]
    return bbn.DecisionNetwork(nodes, recall=recall)


@pytest.mark.parametrize("p", [0.3, 5e-41])
@pytest.mark.parametrize("recall", ["perfect", "limited"])
def test_information_and_risk(p: float, recall: str) -> None:
    dn = signs(p, recall)
    best, knowing = 6 * (1 - SHARE), 10 * SHARE + 6 * (1 - SHARE)
    assert dn.solve(EVIDENCE).expected_utility == pytest.approx(best, rel=1e-9)
    assert dn.value_of_information("A", EVIDENCE) == pytest.approx(knowing - best, rel=1e-9)
    profile = dn.risk_profile(evidence=EVIDENCE)
    np.testing.assert_allclose(profile.values, [0, 6])
    np.testing.assert_allclose(profile.probabilities, [SHARE, 1 - SHARE], rtol=1e-9)


@pytest.mark.parametrize("p", [0.3, 5e-41])
def test_sensitivity(p: float) -> None:
    found = signs(p).sensitivity(EVIDENCE, names=["A", "U"])
    odds = 1.1**9  # of b against a, at equal priors
    entry = found["P(A=a)"]
    assert entry.derivative == pytest.approx(-6 * odds / (0.5 + 0.5 * odds) ** 2, rel=1e-9)
    assert entry.high == pytest.approx(6 * odds / (10 + 6 * odds), rel=1e-9)  # 10 t = 6 odds (1 - t)
    assert found["U(A=b, D=y)"].derivative == pytest.approx(1 - SHARE, rel=1e-9)
    assert found["U(A=b, D=y)"].low == pytest.approx(10 / odds, rel=1e-9)


def test_logarithms_are_priced_against_the_limit_of_the_call() -> None:
    dn = signs(5e-41)
    assert dn.solve(EVIDENCE, memory_limit="1 MB").expected_utility == pytest.approx(6 * (1 - SHARE))
    with pytest.raises(bbn.BudgetError, match="beyond the range of a double"):
        dn.solve(EVIDENCE, memory_limit=200)
