"""Decisions keep within a time limit: what takes longer stops, and what is hopeless is not started."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from bbn.decisions import elimination
from bbn.inference.exact import runtime_prediction
from tests.core.test_stopping import one_decision

OIL = bbn.example("oil_wildcatter")

QUESTIONS = {
    "solve": lambda dn, **options: dn.solve(**options).expected_utility,
    "expected_utility": lambda dn, **options: dn.expected_utility({"Test": "no"}, **options),
    "value_of_information": lambda dn, **options: dn.value_of_information("Oil", **options),
    "information_values": lambda dn, **options: dn.information_values(**options),
    "sensitivity": lambda dn, **options: dn.sensitivity(names=["Oil"], **options)["P(Oil=dry)"],
    "risk_profile": lambda dn, **options: dn.risk_profile(**options).mean,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_a_time_limit(question, monkeypatch):
    ask = QUESTIONS[question]
    with pytest.raises(
        bbn.TimeLimitError, match=r"no answer after time_limit=1e-09 seconds; .* observe less"
    ):
        ask(OIL, time_limit=1e-9)
    assert ask(OIL, time_limit=3600) == ask(OIL)
    with pytest.raises(ValueError, match="time_limit is -1"):
        ask(OIL, time_limit=-1)
    monkeypatch.setenv("BBN_TIME_LIMIT", "1e-9")
    with pytest.raises(bbn.TimeLimitError, match="no answer after"):
        ask(OIL)


def test_a_policy_that_would_take_far_too_long_is_not_started(monkeypatch):
    dn = one_decision(4)
    expected = dn.solve()
    monkeypatch.setattr(elimination, "FORETOLD", 0)
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1.0)
    with pytest.raises(bbn.TimeLimitError, match=r"the elimination would take about .*; it was not started"):
        dn.solve(time_limit=60)
    assert dn.solve().expected_utility == expected.expected_utility  # without a limit, as long as it takes


def test_terms_of_an_elimination_by_hand():
    """One decision of 3 choices, a utility of a cause of 5 states: 5 × 3 terms of two tables and a result, then 3."""
    cause = bbn.Variable("Cause", list(range(5)))
    act = bbn.Decision("Act", list("abc"))
    gain = bbn.Utility("Gain", [cause, act.variable], np.arange(15.0).reshape(5, 3))
    dn = bbn.DecisionNetwork([bbn.CPT(cause, [], np.full(5, 0.2)), act, gain])
    from bbn.decisions.problem import known
    from bbn.decisions.solve import strong_tape

    problem, given = known(dn, None)
    terms = strong_tape(problem, given).terms()
    assert 5 * 3 * 3 + 3 * 2 <= terms <= 5 * 3 * 3 + 3 * 2 + 10  # and little steps without a variable
