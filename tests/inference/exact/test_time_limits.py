"""Questions that ask many small ones hear a time limit between them."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from bbn.inference import soft_evidence as soft
from bbn.kernels.watch import watched_by
from tests.learning.structure.test_stopped_searches import STOPS, StopAt

NET = bbn.example("asia")
COUNTED = bbn.fit(NET, NET.sample(200, seed=0), bbn.BDeu(1.0), keep_counts=True)
SOFT = {name: bbn.Soft({"yes": 0.4, "no": 0.6}) for name in ("xray", "dysp", "smoke")}

QUESTIONS = {
    "the best": lambda **options: NET.mpe(k=50, **options),
    "the best by elimination": lambda **options: NET.mpe(k=50, method="elimination", **options),
    "soft findings": lambda **options: NET.query("lung", SOFT, **options),
    "enumeration": lambda **options: NET.query("lung", method="enumeration", **options),
    "an interval": lambda **options: COUNTED.query("lung", interval=0.9, n_draws=20, seed=0, **options),
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_left_midway_and_answers_again(question, stop):
    expected = QUESTIONS[question]()
    with pytest.raises(type(STOPS[stop])), watched_by(StopAt(4, STOPS[stop])):
        QUESTIONS[question]()
    assert repr(QUESTIONS[question]()) == repr(expected)


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_has_a_time_limit(question):
    with pytest.raises(bbn.TimeLimitError, match="no answer after time_limit=1e-09 seconds"):
        QUESTIONS[question](time_limit=1e-9)
    assert repr(QUESTIONS[question](time_limit=3600)) == repr(QUESTIONS[question]())


def test_many_soft_findings_are_left_midway(monkeypatch):
    """More of them than have a joint in memory: a query for each, sweep by sweep."""
    joint = lambda names, findings: (np.array([0.5, 0.5]), 0.0)  # noqa: E731
    wanted = [np.array([0.3, 0.7])] * 3
    firm = soft.Findings({}, {}, {})
    with pytest.raises(KeyboardInterrupt), watched_by(StopAt(5, KeyboardInterrupt())):
        soft._fit_by_queries(joint, firm, ("A", "B", "C"), wanted)


@pytest.mark.parametrize("seconds", [np.int64(60), np.float32(60), np.float64("inf"), 60])
def test_a_limit_is_any_number_of_seconds(seconds):
    assert NET.query("lung", time_limit=seconds) == NET.query("lung")


@pytest.mark.parametrize("seconds", [0, -1, np.nan, np.int64(0), True, "5", 1j])
def test_what_is_not_a_number_of_seconds_is_refused(seconds):
    with pytest.raises(ValueError, match="expected a number of seconds, above 0"):
        NET.query("lung", time_limit=seconds)
