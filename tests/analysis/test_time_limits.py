"""Questions about answers keep within a time limit, all that they ask together."""

from __future__ import annotations

import pytest

import bbn
from bbn.inference.exact import runtime_prediction

NET = bbn.example("asia")
SEEN = {"xray": "yes", "smoke": "no"}


def switch() -> bbn.BayesianNetwork:
    a, b = bbn.Variable("A", ["on", "off"]), bbn.Variable("B", ["on", "off"])
    return bbn.BayesianNetwork([bbn.CPT(a, [], [0.3, 0.7]), bbn.CPT.deterministic(b, [a], lambda a: a)])


QUESTIONS = {
    "explain": lambda **options: NET.explain("lung", SEEN, **options).posterior,
    "information": lambda **options: NET.information("lung", SEEN, **options),
    "sensitivity": lambda **options: NET.sensitivity("lung", SEEN, **options).derivatives["lung"].tolist(),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_a_time_limit(question, monkeypatch):
    ask = QUESTIONS[question]
    with pytest.raises(bbn.TimeLimitError, match="no answer after time_limit=1e-09 seconds"):
        ask(time_limit=1e-9)
    assert ask(time_limit=3600) == ask()
    with pytest.raises(ValueError, match="time_limit is -1"):
        ask(time_limit=-1)
    monkeypatch.setenv("BBN_TIME_LIMIT", "1e-9")
    with pytest.raises(bbn.TimeLimitError, match="no answer after"):
        ask()


def test_a_sampler_is_given_its_time_for_each_answer():
    """A time limit tells a sampler how long to draw; it is not an error that it draws that long."""
    why = NET.explain("lung", SEEN, method="likelihood-weighting", time_limit=0.01, seed=0)
    assert why.posterior.sampling.n_samples > 0


def test_derivatives_that_would_take_far_too_long_are_not_started(monkeypatch):
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 10.0)
    with pytest.raises(bbn.TimeLimitError, match=r"expected counts would take about .*; it was not started"):
        NET.sensitivity("lung", SEEN, time_limit=60)


def test_what_would_have_been_has_a_time_limit(monkeypatch):
    net = switch()
    ask = {"targets": "B", "evidence": {"B": "on"}, "do": {"A": "off"}}
    assert net.counterfactual(**ask, time_limit=3600)["off"] == 1.0
    with pytest.raises(ValueError, match="time_limit is 0"):
        net.counterfactual(**ask, time_limit=0)
