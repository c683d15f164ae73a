"""64 threads on one network: each gets the answers that one thread alone gets, and none waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bbn

pytestmark = pytest.mark.slow
THREADS = 64
SEEN = [{}, {"CVP": "LOW"}, {"CVP": "HIGH", "HRBP": "LOW"}, {"SAO2": "NORMAL"}, {"BP": "LOW", "CO": "HIGH"}]

QUESTIONS: dict[str, Callable[[bbn.BayesianNetwork, int], Any]] = {
    "query": lambda net, k: net.query("HR", SEEN[k % 5]).values.tolist(),
    "joint query": lambda net, k: net.query(["HR", "LVFAILURE"], SEEN[k % 5]).values.tolist(),
    "posteriors": lambda net, k: [p.values.tolist() for p in net.posteriors(SEEN[k % 5]).values()],
    "mpe": lambda net, k: net.mpe(SEEN[k % 5]).log_probability,
    "map": lambda net, k: net.map(["HR", "CO"], SEEN[k % 3]).states,
    "evidence": lambda net, k: net.probability(SEEN[k % 5]),
    "do": lambda net, k: net.query("BP", do={"HYPOVOLEMIA": "TRUE"}).values.tolist(),
    "rows": lambda net, k: net.log_likelihood(ROWS[50 * (k % 4) : 50 * (k % 4) + 50]).tolist(),
    "predict": lambda net, k: list(net.predict(ROWS[: 20 + k % 3].drop(columns="HR"), "HR")),
    "sample": lambda net, k: net.sample(20, SEEN[k % 5], seed=k % 4).to_numpy().tolist(),
    "gibbs": lambda net, k: net.query("HR", SEEN[k % 5], "gibbs", seed=k % 3, n_samples=200).values.tolist(),
    "elimination": lambda net, k: net.query("HR", SEEN[k % 5], "elimination").values.tolist(),
    "sensitivity": lambda net, k: str(net.sensitivity("HR", SEEN[k % 5])),
    "fit": lambda net, k: bbn.fit(net.graph, ROWS, bbn.BDeu(1 + k % 3)).probability(SEEN[1]),
    "changed": lambda net, k: net.rename({"HR": f"HR{k % 3}"}).query(f"HR{k % 3}").values.tolist(),
    "shown": lambda net, k: str(net.query("HR", SEEN[k % 5])),
}
ROWS = bbn.example("alarm").sample(200, seed=1)


@pytest.mark.filterwarnings("ignore::bbn.core.errors.BBNWarning")  # about few samples, as in one thread
def test_each_thread_is_told_what_one_thread_alone_is_told() -> None:
    """Every thread asks all questions, each in an order of its own, of one network that nobody has asked before."""
    alone = bbn.example("alarm")
    asked = [(kind, k) for kind in QUESTIONS for k in range(12)]
    expected = {(kind, k): QUESTIONS[kind](alone, k) for kind, k in asked}
    shared = bbn.BayesianNetwork(bbn.example("alarm").conditionals, name="alarm")
    start, wrong, done = threading.Barrier(THREADS), [], []

    def work(number: int) -> None:
        order = np.random.default_rng(number).permutation(len(asked))[:40]
        start.wait()
        for i in order:
            kind, k = asked[i]
            try:
                answer = QUESTIONS[kind](shared, k)
            except Exception as error:
                answer = error
            if answer != expected[kind, k]:
                wrong.append((kind, k, answer))
        done.append(number)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert not wrong
    assert sorted(done) == list(range(THREADS))
