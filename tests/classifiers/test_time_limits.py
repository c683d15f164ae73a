"""Mixtures and hidden Markov models keep the best so far when Ctrl-C or a time limit ends their climb."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from bbn.kernels.watch import watched_by
from tests.learning.structure.test_stopped_searches import STOPS, StopAt

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(200, 2)) + RNG.integers(0, 2, (200, 1)) * 2.0
STEPS = RNG.integers(0, 3, (300, 1))

MODELS = {
    "mixture": lambda **options: bbn.GaussianMixture(
        3, random_state=0, n_init=2, tol=0.0, max_iter=20, **options
    ).fit(POINTS),
    "hmm": lambda **options: bbn.HMM(2, random_state=0, n_init=2, tol=0.0, max_iter=20, **options).fit(STEPS),
}
REASON = {"Ctrl-C": "interrupted", "time": "time_limit"}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("model", MODELS)
def test_a_climb_that_is_stopped_keeps_the_best_so_far(model, stop):
    whole = MODELS[model]()
    n, part = 8, None
    while part is None:  # later and later, until steps have been made
        try:
            with watched_by(StopAt(n, STOPS[stop])):
                part = MODELS[model]()
        except type(STOPS[stop]):
            n += 8
        if part is not None and part.result_.n_iter == 0:
            part, n = None, n + 1
    assert part.result_.reason == REASON[stop]
    assert not part.converged_
    assert len(part.result_.restarts) == 1  # the second start was not begun
    steps = part.result_.log_likelihoods
    assert 1 < len(steps) < 20
    assert steps[0] < steps[-1] <= whole.result_.restarts[0] + 1e-6


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("model", MODELS)
def test_without_one_look_at_the_rows_there_is_nothing_to_keep(model, stop):
    with pytest.raises(type(STOPS[stop])), watched_by(StopAt(1, STOPS[stop])):
        MODELS[model]()


@pytest.mark.parametrize("model", MODELS)
def test_models_have_a_time_limit(model, monkeypatch):
    with pytest.raises(bbn.TimeLimitError, match="no answer after time_limit=1e-09 seconds"):
        MODELS[model](time_limit=1e-9)
    assert MODELS[model](time_limit=3600).result_ == MODELS[model]().result_
    monkeypatch.setenv("BBN_TIME_LIMIT", "1e-9")
    with pytest.raises(bbn.TimeLimitError, match="no answer after"):
        MODELS[model]()
