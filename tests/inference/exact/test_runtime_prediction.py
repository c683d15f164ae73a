"""Long runs are foretold: refused before they start where the limit is far too short, shown while they go on."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.core.threads import time_limit
from bbn.inference.exact import elimination_orders as orders
from bbn.inference.exact import executor, runtime_prediction
from bbn.inference.exact.problem import Question, flatten
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import MARGINALS
from tests.core.test_stopping import grid


@pytest.fixture
def slow(monkeypatch):
    """A machine on which every run is foretold, and predicted to take a second for each cell."""
    monkeypatch.setattr(executor, "LONG", 0.0)
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1.0)


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.skipif(not kernels.COMPILED, reason="there are no tapes in numpy")
def test_cells_of_a_tape_are_those_of_its_cliques(states):
    """A chain A - B - C without evidence: each clique is made, sent up, and read after the way down."""
    v = [bbn.Variable(name, range(states)) for name in "ABC"]
    pairs = [bbn.Factor(pair, np.ones((states, states))) for pair in (v[:2], v[1:])]
    layout = plan_tree(flatten(bbn.FactorGraph(pairs)), Question(goal=MARGINALS)).layout
    assert (
        4 * states**2 <= runtime_prediction.tape_cells(layout.once) <= 12 * states**2
    )  # a few steps for each of two cliques
    assert runtime_prediction.tape_cells(layout.run) == 0


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    "ask",
    [
        lambda model, **options: model.query("x0_0", {"x3_3": 1}, **options),
        lambda model, **options: model.posteriors({"x3_3": 1}, **options),
        lambda model, **options: model.posteriors(**options),
        lambda model, **options: model.mpe({"x3_3": 1}, **options),
    ],
)
def test_what_would_take_far_too_long_is_not_started(ask, monkeypatch):
    model = grid(6)
    with pytest.raises(
        bbn.TimeLimitError, match=r"about .* times the .* seconds that time_limit leaves; it was not started"
    ):
        ask(model, time_limit=5.0)
    monkeypatch.setenv("BBN_TIME_LIMIT", "5")
    with pytest.raises(bbn.BudgetError, match="was not started"):
        ask(grid(6))
    monkeypatch.delenv("BBN_TIME_LIMIT")
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1e-9)
    assert ask(model, time_limit=60.0) == ask(grid(6))


@pytest.mark.usefixtures("slow")
@pytest.mark.skipif(not kernels.COMPILED, reason="there are no tapes in numpy")
def test_a_long_run_shows_how_far_it_is(monkeypatch):
    shown = []

    @contextmanager
    def bar(progress, total, what, unit):
        assert progress is None
        assert "exact inference, about" in what
        shown.append([total])
        yield shown[-1].append

    monkeypatch.setattr(runtime_prediction, "progress_bar", bar)
    model = grid(15)
    answers = model.posteriors({"x0_0": 1})
    total = sum(one[0] for one in shown)
    done = sum(sum(one[1:]) for one in shown)
    assert 0 < done <= total
    monkeypatch.setattr(executor, "LONG", 1e8)
    assert grid(15).posteriors({"x0_0": 1}) == answers


def test_short_runs_show_nothing(monkeypatch):
    monkeypatch.setattr(executor, "LONG", 0.0)
    monkeypatch.setattr(runtime_prediction, "progress_bar", None)
    assert grid(6).posteriors()["x1_1"].values.sum() == pytest.approx(1.0)


def test_stats_predict_seconds():
    small, large = (bbn.JunctionTree(bbn.example(name)).stats() for name in ("asia", "barley"))
    assert 0 < small.predicted_seconds < large.predicted_seconds
    assert runtime_prediction.rate() == runtime_prediction.rate() > 0


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_time_limit_in_the_environment_must_be_a_number_of_seconds(text, monkeypatch):
    monkeypatch.setenv("BBN_TIME_LIMIT", text)
    with pytest.raises(ValueError, match=f"BBN_TIME_LIMIT is '{text}'"):
        bbn.JunctionTree(bbn.example("asia"))


def test_an_option_comes_before_the_environment(monkeypatch):
    monkeypatch.setenv("BBN_TIME_LIMIT", "7")
    net = bbn.example("asia")
    assert bbn.JunctionTree(net).time_limit == 7
    assert bbn.JunctionTree(net, time_limit=3).time_limit == 3
    assert bbn.LikelihoodWeighting(net).time_limit is None


@pytest.mark.parametrize(
    "ask",
    [
        lambda net, data, **options: net.predict_proba(data, "dysp", **options),
        lambda net, data, **options: net.predict(data, "dysp", **options),
        lambda net, data, **options: net.log_likelihood(data, **options),
    ],
)
def test_many_rows_that_would_take_far_too_long_are_not_started(ask, monkeypatch):
    net = bbn.example("asia")
    data = net.sample(200, seed=0, missing=0.2)
    expected = ask(net, data)
    monkeypatch.setattr(runtime_prediction, "ROWS_FROM", 0.0)
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 10.0)
    with pytest.raises(bbn.TimeLimitError, match=r"about .* that time_limit leaves; it was not started"):
        ask(net, data, time_limit=5.0)
    monkeypatch.setenv("BBN_TIME_LIMIT", "5")
    with pytest.raises(bbn.TimeLimitError, match="was not started"):
        ask(bbn.example("asia"), data)
    monkeypatch.delenv("BBN_TIME_LIMIT")
    assert ask(net, data).equals(expected)  # without a limit, as long as it takes


def test_rows_are_foretold_by_their_number_and_by_the_threads(monkeypatch):
    told = []

    @contextmanager
    def bar(progress, total, what, unit):
        told.append((total, what))
        yield lambda amount: None

    monkeypatch.setattr(runtime_prediction, "ROWS_FROM", 0.0)
    monkeypatch.setattr(runtime_prediction, "progress_bar", bar)
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 1.0)
    layout = plan_tree(flatten(grid(4)), Question(masked=True, goal=MARGINALS)).layout
    cells = runtime_prediction.tape_cells(layout.run)
    for rows, threads in ((100, 1), (100, 4)):
        with runtime_prediction.predicted_rows(layout, rows, threads):
            pass
        assert told[-1] == (
            rows * cells,
            f"exact inference, about {runtime_prediction.spoken(rows * cells / threads)}",
        )


@pytest.mark.skipif(not kernels.COMPILED, reason="there are no tapes and no search for an order in numpy")
@pytest.mark.usefixtures("slow")
def test_what_is_refused_is_refused_before_its_first_half(monkeypatch):
    """Potentials that hold for any values are worked out first: not even those, where the rest would take too long."""
    layout = plan_tree(flatten(grid(6)), Question(masked=True, goal=MARGINALS)).layout
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 30.0 / runtime_prediction.tape_cells(layout.run))
    monkeypatch.setattr(kernels.propagate, "Program", None)
    with time_limit(5.0), pytest.raises(bbn.TimeLimitError, match="was not started"):
        executor.LongExecutor(plan_tree(flatten(grid(6)), Question(masked=True, goal=MARGINALS)), 10**9)


@pytest.mark.skipif(not kernels.COMPILED, reason="there are no tapes and no search for an order in numpy")
@pytest.mark.parametrize(("seconds", "most"), [(100.0, 5), (400.0, 20)])
def test_a_search_for_an_order_keeps_to_its_share_of_the_time(seconds, most, monkeypatch):
    """By a clock that is a second later each time that it is looked at; pieces take a tenth of a second at most."""
    monkeypatch.setattr(orders, "MOST_PIECES", 0)
    monkeypatch.setattr(orders, "SHARE_OF_MANY", 1.0)  # so that it is long without a limit
    model = flatten(grid(18))
    scopes = model.cards, model.scope_ptr, model.scope
    whole = orders.triangulate(*scopes, thorough=True)
    monkeypatch.setattr(orders, "time", SimpleNamespace(monotonic=count().__next__))
    with time_limit(seconds):
        part = orders.triangulate(*scopes, thorough=True)
    assert len(orders.PORTFOLIO) < part.tried <= most + len(orders.PORTFOLIO) < whole.tried
    assert whole.cells <= part.cells <= part.greedy == whole.greedy
    assert (
        orders.triangulate(*scopes, thorough=True).tried == whole.tried
    )  # without a limit, the clock is not heard
