"""EM and gradient ascent keep within a time limit: they give the best so far, and what is hopeless is not started."""

from __future__ import annotations

import numpy as np
import pytest
import tqdm.auto

import bbn
from bbn.core import progress as bars
from bbn.data import Block
from bbn.inference.exact import runtime_prediction
from bbn.inference.rows import expected_counts
from bbn.inference.rows.expected_counts import Expectation
from bbn.learning.incomplete.problem import Problem

NET = bbn.example("asia")
ROWS = NET.sample(300, seed=0, missing=0.3)

FITS = {
    "em": lambda **options: bbn.fit_em(NET.graph, ROWS, seed=1, **options),
    "squarem": lambda **options: bbn.fit_em(NET.graph, ROWS, seed=1, accelerate=True, **options),
    "gradient": lambda **options: bbn.fit_gradient(NET.graph, ROWS, seed=1, **options),
    "batches": lambda **options: bbn.fit_gradient(
        NET.graph, ROWS, seed=1, batch_size=50, max_iter=5, **options
    ),
}


def late_after(n, monkeypatch):
    """Let the time be up at the n-th pass over the data, whatever the clock says."""
    passes = []
    evaluate = Problem.evaluate

    def counted(problem, tables):
        passes.append(tables)
        if len(passes) == n:
            raise bbn.TimeLimitError("the time is up")
        return evaluate(problem, tables)

    monkeypatch.setattr(Problem, "evaluate", counted)


@pytest.mark.parametrize("method", FITS)
def test_a_fit_gives_the_best_so_far_when_its_time_is_up(method, monkeypatch):
    whole = FITS[method](time_limit=3600)
    assert whole == FITS[method]()
    late_after(4, monkeypatch)
    part = FITS[method](time_limit=3600)
    assert part.reason == "time_limit"
    assert not part.converged
    assert part.log_likelihoods.tolist() == whole.log_likelihoods[: part.n_iter + 1].tolist()
    assert 0 < part.n_iter < whole.n_iter
    found = part.network.log_likelihood(ROWS).sum()
    assert found == pytest.approx(part.log_likelihood, rel=1e-9)


@pytest.mark.parametrize("method", FITS)
def test_a_fit_without_time_for_one_pass_raises(method):
    with pytest.raises(bbn.TimeLimitError, match=r"no answer after time_limit=1e-09 seconds; .* fewer rows"):
        FITS[method](time_limit=1e-9)


@pytest.mark.parametrize("method", [*FITS, "derivatives"])
def test_a_pass_that_would_take_far_too_long_is_not_started(method, monkeypatch):
    fits = {**FITS, "derivatives": lambda **options: bbn.gradient(NET, ROWS, **options)}
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1.0)
    expected = (
        r"expected counts would take about .* that time_limit leaves; it was not started: .*fill in more"
    )
    with pytest.raises(bbn.TimeLimitError, match=expected):
        fits[method](time_limit=5)
    monkeypatch.setenv("BBN_TIME_LIMIT", "5")
    with pytest.raises(bbn.TimeLimitError, match=expected):
        fits[method]()
    with pytest.raises(ValueError, match="time_limit is 0"):
        fits[method](time_limit=0)


def test_restarts_that_are_cut_short_leave_the_best_of_those_before(monkeypatch):
    alone = bbn.fit_em(NET.graph, ROWS, seed=1)
    late_after(alone.n_iter + 2, monkeypatch)  # the first pass of the second start
    result = bbn.fit_em(NET.graph, ROWS, seed=1, restarts=3, time_limit=3600)
    assert result.reason == "time_limit"
    assert result.network == alone.network
    assert len(result.restarts) == 1


def test_a_climb_that_was_cut_short_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    whole = FITS["em"]()
    with monkeypatch.context() as limited:
        late_after(4, limited)
        assert FITS["em"](checkpoint=tmp_path / "em", time_limit=3600).reason == "time_limit"
    resumed = FITS["em"](checkpoint=tmp_path / "em")
    assert resumed.reason == "converged"
    assert np.array_equal(resumed.log_likelihoods, whole.log_likelihoods)


def test_entries_of_a_pass_are_counted_by_what_rows_leave_open(monkeypatch):
    """By hand, for a chain A → B of 2 and 3 states: 6 cells where both are open, and so on, two tables each."""
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1, 2])
    net = bbn.BayesianNetwork([bbn.CPT(a, [], [0.5, 0.5]), bbn.CPT(b, [a], [[0.2, 0.3, 0.5]] * 2)])
    codes = {"A": np.array([2, 2, 0, 0]), "B": np.array([3, 0, 3, 0])}  # 2 and 3 are gaps
    rows = Block(codes, np.ones(4))
    expectation = Expectation(net, 1)
    assert expectation.whole.open(expectation._gaps(rows, slice(None)))[1].tolist() == [12, 4, 6, 2]
    assert expectation.visits(rows) == 4 * 12  # at most: so few are not counted
    monkeypatch.setattr(expected_counts, "ROWS_FROM", 0.0)
    assert expectation.visits(rows) == 12 + 4 + 6 + 2


@pytest.mark.parametrize(("progress", "shown"), [(None, True), (False, False)])
def test_a_long_pass_shows_how_far_it_is_unless_told_not_to(progress, shown, monkeypatch, capsys):
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1.0)  # so that each pass is foretold to take long
    monkeypatch.setattr(bars, "_someone_looks", lambda: True)
    asked = []
    monkeypatch.setattr(tqdm.auto, "tqdm", lambda **options: asked.append(options["desc"]) or Bar())
    bbn.fit_em(NET.graph, ROWS, seed=1, max_iter=2, progress=progress)
    assert any("exact inference, about" in what for what in asked) == shown
    assert bool(asked) == shown
    asked.clear()
    bbn.gradient(NET, ROWS)
    assert asked  # what was silent before is heard again


class Bar:
    """A bar that shows nothing."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __getattr__(self, name):
        return lambda *_, **__: None
