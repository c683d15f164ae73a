"""Long work stops when it is told to: by Ctrl-C, by an error elsewhere, or when its time is up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.core.threads import in_order, time_limit, worker_map
from bbn.kernels.watch import Stopped, Watch, current, watched_by


def grid(n: int) -> bbn.FactorGraph:
    """A grid of n × n binary variables: its cliques have about 2^n cells."""
    rng = np.random.default_rng(0)
    cells = {(i, j): bbn.Variable(f"x{i}_{j}", [0, 1]) for i in range(n) for j in range(n)}
    pairs = [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]
    pairs += [((j, i), (j, i + 1)) for i in range(n - 1) for j in range(n)]
    return bbn.FactorGraph([bbn.Factor([cells[a], cells[b]], rng.random((2, 2)) + 0.1) for a, b in pairs])


QUESTIONS: dict[str, Callable[[bbn.FactorGraph, dict[str, Any]], Any]] = {
    "query": lambda graph, options: graph.query("x0_0", **options).values,
    "posteriors": lambda graph, options: graph.posteriors(**options)["x7_7"].values,
    "mpe": lambda graph, options: graph.mpe(**options).log_probability,
    "map": lambda graph, options: graph.map(["x0_0", "x1_1"], **options).log_probability,
    "elimination": lambda graph, options: graph.query("x0_0", method="elimination", **options).values,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_time_limit_stops_an_exact_question_and_leaves_the_engine_whole(question: str) -> None:
    graph, ask = grid(15), QUESTIONS[question]
    with pytest.raises(bbn.TimeLimitError, match=r"no answer after time_limit=1e-09 seconds; .*sampling"):
        ask(graph, {"time_limit": 1e-9})
    assert np.array_equal(ask(graph, {}), ask(grid(15), {}))


def test_wide_numbers_hear_the_limit_too() -> None:
    graph = grid(13)
    huge = bbn.FactorGraph([bbn.Factor(f.variables, f.values * 1e300) for f in graph.factors()])
    with pytest.raises(bbn.TimeLimitError):
        huge.posteriors(time_limit=1e-9)
    np.testing.assert_allclose(huge.posteriors()["x3_3"].values, graph.posteriors()["x3_3"].values, rtol=1e-9)


@pytest.mark.parametrize("seconds", [0, -1, True, "5", float("nan")])
def test_a_time_limit_is_a_positive_number_of_seconds(seconds: Any) -> None:
    with pytest.raises(ValueError, match="time_limit"):
        bbn.example("asia").query("lung", time_limit=seconds)


def test_a_generous_limit_changes_nothing() -> None:
    net = bbn.example("asia")
    assert net.query("lung", {"xray": "yes"}, time_limit=60) == net.query("lung", {"xray": "yes"})
    engine = bbn.JunctionTree(net, time_limit=60)
    assert engine.query("lung").values == pytest.approx(net.query("lung").values)
    assert current() == ()


LONG_WORK: dict[str, Callable[[], Any]] = {
    "rows": lambda: bbn.example("andes").log_likelihood(
        bbn.example("andes").sample(5000, seed=0, missing=0.3)
    ),
    "rows, one thread": lambda: bbn.example("hailfinder").predict_proba(
        bbn.example("hailfinder").sample(20_000, seed=0, missing=0.2), "R5Fcst", n_jobs=1
    ),
    "expected counts": lambda: bbn.fit_em(
        bbn.example("alarm").graph, bbn.example("alarm").sample(3000, seed=0, missing=0.2), seed=0
    ),
    "sensitivity": lambda: bbn.example("mildew").sensitivity("dm_1"),
    "counts of many families": lambda: bbn.tan(
        {f"x{i}": np.random.default_rng(i).integers(0, 8, 20_000) for i in range(40)}, "x0"
    ),
    "a policy": lambda: one_decision(9).solve(),
}


def one_decision(seen: int) -> bbn.DecisionNetwork:
    """A decision that observes so many signs of a cause, of four states each."""
    rng = np.random.default_rng(0)
    cause, act = bbn.Variable("Cause", list(range(20))), bbn.Variable("Act", ["a", "b", "c"])
    signs = [bbn.Variable(f"Sign{i}", list(range(4))) for i in range(seen)]
    parts: list[Any] = [bbn.CPT(cause, [], rng.dirichlet(np.ones(20)))]
    parts += [bbn.CPT(sign, [cause], rng.dirichlet(np.ones(4), 20)) for sign in signs]
    parts.append(bbn.Decision("Act", list(act.states), observes=[sign.name for sign in signs]))
    parts.append(bbn.Utility("Gain", [cause, act], rng.normal(size=(20, 3))))
    return bbn.DecisionNetwork(parts)


@pytest.mark.parametrize("work", LONG_WORK)
def test_compiled_work_stops_where_a_watch_says_so(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if work == "counts of many families":
        monkeypatch.setenv("OMP_NUM_THREADS", "1")  # other threads look at the watch before they begin
    watch = Watch()
    watch.stop()
    with watched_by(watch), pytest.raises(Stopped):
        LONG_WORK[work]()
    assert current() == ()


def test_threads_stop_when_one_fails_or_the_caller_leaves() -> None:
    started = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            started.wait(60)
            raise KeyError(item)
        started.set()
        while True:
            for watch in current():
                watch.check()

    with pytest.raises(KeyError):
        list(in_order(work, range(2), n_jobs=2))
    with pytest.raises(KeyError), worker_map(2, 2) as spread:
        spread(work, range(2))
    results = in_order(lambda item: item, range(1000), n_jobs=2)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    results.close()


def test_threads_are_bound_by_the_limit_of_the_thread_that_waits() -> None:
    def work(_: int) -> None:
        while True:
            for watch in current():
                watch.check()

    with pytest.raises(bbn.TimeLimitError), time_limit(1e-9):
        list(in_order(work, range(4), n_jobs=2))


SCRIPT = """
import threading, time, os, signal, sys
import bbn
from tests.core.test_stopping import grid
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has set it aside
net = {setup}
sent = []
def kick():
    time.sleep(0.5)
    sent.append(time.process_time())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=kick, daemon=True).start()
try:
    while True:
        {work}
except KeyboardInterrupt:
    print("stopped")
    print(time.process_time() - sent[0], file=sys.stderr)
"""


def interrupted(setup: str, work: str) -> subprocess.CompletedProcess[str]:
    """A process that repeats the work and gets SIGINT after half a second."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT.format(setup=setup, work=work)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize(
    ("setup", "work"),
    [
        ("grid(21)", 'net.query("x0_0", memory_limit="64 GB")'),
        (
            '(bbn.example("andes"), bbn.example("andes").sample(20_000, seed=0, missing=0.3))',
            "net[0].log_likelihood(net[1])",
        ),
        ('bbn.example("munin1")', "net.sensitivity(net.names[0])"),
        ('bbn.example("munin1")', "bbn.JunctionTree(net).stats()"),
        ('bbn.example("munin")', "net.sample(400_000, seed=0, as_codes=True)"),
        ('bbn.example("alarm").sample(20_000, seed=0)', "bbn.cross_validate(net, seed=0)"),
        ('bbn.example("alarm").sample(2_000, seed=0)', "bbn.learn(net, method='pc', alpha=0.3)"),
    ],
)
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_ctrl_c_is_heard_by_kernels(setup: str, work: str) -> None:
    """Each of these runs for many seconds a call; the process must end by KeyboardInterrupt."""
    done = interrupted(setup, work)
    assert done.stdout == "stopped\n", done.stderr[-2000:]


@pytest.mark.parametrize("question", ['query("HR", {"CVP": "LOW"}', 'posteriors({"CVP": "LOW"}'])
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_ctrl_c_ends_long_chains_within_a_second(question: str) -> None:
    """Batches of this many sweeps take seconds each; the second is one of the process, whatever else is running."""
    work = f"net.{question}, method='gibbs', n_samples=400_000_000, n_jobs=1, seed=1, progress=False)"
    done = interrupted('bbn.example("alarm")', work)
    assert done.stdout == "stopped\n", done.stderr[-2000:]
    assert float(done.stderr.splitlines()[-1]) < 1.0


THREADS = """
import os, signal, threading, time
import bbn
from tests.core.test_stopping import grid
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has set it aside
net, seen, began, heard = grid(19), {"x0_0": 1}, threading.Event(), []
expected = grid(19).query("x9_9", seen).values.tolist()
answers = []
def other():
    began.set()
    for _ in range(3):
        answers.append(net.query("x9_9", seen).values.tolist())
thread = threading.Thread(target=other)
thread.start()
began.wait()
def kick():
    os.kill(os.getpid(), signal.SIGINT)
threading.Timer(0.3, kick).start()
try:
    while True:
        net.posteriors({"x1_1": 0})
except KeyboardInterrupt:
    heard.append(True)
thread.join()
assert heard and answers == [expected] * 3, (heard, answers, expected)
assert net.posteriors({"x1_1": 0}) == grid(19).posteriors({"x1_1": 0})
print("right")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_ctrl_c_in_the_main_thread_leaves_the_work_of_others_alone() -> None:
    """Two threads ask the same network; the main one is interrupted, the other answers as if nothing had happened."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "right\n", done.stderr[-2000:]
