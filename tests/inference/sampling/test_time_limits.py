"""Drawing rows and passing messages keep within a time limit."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import bbn
from bbn.inference.sampling import sample as sampling
from bbn.kernels.watch import Stopped, Watch, watched_by

NET = bbn.example("asia")
MANY = 20 * sampling.BLOCK


def clock(seconds: float) -> SimpleNamespace:
    """A clock that goes on by so many seconds each time that it is looked at."""
    now = [0.0]

    def monotonic() -> float:
        now[0] += seconds
        return now[0]

    return SimpleNamespace(monotonic=monotonic)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_would_take_far_too_long_are_not_all_drawn(n_jobs, monkeypatch, tmp_path):
    """The first block takes 100 seconds by this clock, so all of them 2,000, shared by the threads."""
    monkeypatch.setattr(sampling, "time", clock(100.0))
    minutes, threads = {1: 33, 2: 17}[n_jobs], threading.active_count()
    expected = (
        rf"drawing {MANY:,} rows would take about {minutes} minutes.*{sampling.BLOCK:,} were drawn to find"
    )
    with pytest.raises(bbn.TimeLimitError, match=expected):
        NET.sample(MANY, seed=0, time_limit=300 // n_jobs, n_jobs=n_jobs)
    with pytest.raises(bbn.TimeLimitError, match=expected):
        NET.sample(MANY, seed=0, time_limit=300 // n_jobs, n_jobs=n_jobs, to=tmp_path / "rows.csv")
    assert not list(tmp_path.iterdir())
    assert len(NET.sample(MANY, seed=0, time_limit=1000, n_jobs=n_jobs)) == MANY  # long, but not by far
    monkeypatch.setenv("BBN_TIME_LIMIT", "10")
    with pytest.raises(bbn.TimeLimitError, match=expected):
        NET.sample(MANY, seed=0, n_jobs=n_jobs)
    assert sum(len(rows) for rows in NET.sample(MANY, seed=0, chunks=True, n_jobs=n_jobs)) == MANY
    assert threading.active_count() == threads


@pytest.mark.parametrize("evidence", [None, {"dysp": "yes"}])
def test_drawing_stops_when_its_time_is_up(evidence):
    with pytest.raises(
        bbn.TimeLimitError, match=r"no answer after time_limit=1e-09 seconds; .*draw fewer rows"
    ):
        NET.sample(MANY, evidence, seed=0, time_limit=1e-9)
    rows = NET.sample(1000, evidence, seed=0, time_limit=3600)
    assert rows.equals(NET.sample(1000, evidence, seed=0))


def test_a_time_limit_is_for_one_table():
    with pytest.raises(ValueError, match="time_limit= is for one table"):
        NET.sample(1000, chunks=100, time_limit=5)
    with pytest.raises(ValueError, match="time_limit is 0"):
        NET.sample(1000, time_limit=0)


def test_a_block_of_many_variables_is_left_midway():
    """A block of so many variables takes long, so the kernel asks within it."""
    coins = [bbn.CPT(bbn.Variable(f"x{i}", [0, 1]), [], [0.5, 0.5]) for i in range(500)]
    net = bbn.BayesianNetwork(coins)
    asked = []

    class Counting(Watch):
        def check(self) -> None:
            asked.append(1)
            if len(asked) == 3:
                raise Stopped

    with watched_by(Counting()), pytest.raises(Stopped):
        net.sample(sampling.BLOCK, seed=0, n_jobs=1, as_codes=True)
    codes = net.sample(sampling.BLOCK, seed=0, as_codes=True)
    assert np.mean(codes["x7"]) == pytest.approx(0.5, abs=0.02)


def test_messages_that_do_not_settle_in_time_are_not_given(monkeypatch):
    ask = {"method": "loopy", "tol": 0.0, "max_iter": 10**9}
    with pytest.raises(bbn.TimeLimitError, match="no answer after time_limit=1e-09 seconds"):
        NET.query("lung", {"dysp": "yes"}, time_limit=1e-9, **ask)
    monkeypatch.setenv("BBN_TIME_LIMIT", "1e-9")
    with pytest.raises(bbn.TimeLimitError, match="no answer after time_limit=1e-09 seconds"):
        bbn.LoopyBeliefPropagation(NET).posteriors()
    monkeypatch.delenv("BBN_TIME_LIMIT")
    within = NET.query("lung", {"dysp": "yes"}, method="loopy", time_limit=3600)
    assert within.values == pytest.approx(NET.query("lung", {"dysp": "yes"}, method="loopy").values)
