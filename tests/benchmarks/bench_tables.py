"""Learning tables: counting against pyAgrum and pgmpy, and one step of EM and of gradient ascent."""

from __future__ import annotations

import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bbn
from bbn.data import code
from tests.benchmarks.harness import Figure, Row

TITLE = "Learning tables"
NOTES = """
The structure of alarm (37 nodes). Counting starts from a DataFrame and includes coding it. pyAgrum takes the
DataFrame, or a CSV file whose writing is timed too; the faster counts. The EM data have 20 % of their values missing
and one variable hidden; the time of pyAgrum's step is the difference between runs of several steps and of one, on
fewer rows, scaled up. The steps of EM on water and munin1 (400 rows, ten passes over the data) start from the network
that the rows were drawn from, whose zeros stay, and include what is made before the first.
"""
ROWS = 100_000
EM_ROWS = 10_000
THEIR_ROWS = 200
PASSES = 10
STEPS = (
    ("asia", 400, 0.3),
    ("alarm", 1000, 0.2),
    ("water", 400, 0.3),
    ("water", 400, 0.7),
    ("munin1", 400, 0.1),
)
"""Networks, rows, and the share of values that are missing."""


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    yield from step_rows()
    net = bbn.example("alarm")
    data = net.sample(ROWS, seed=0)
    text = data.astype(str)
    yield from fit_rows(net, {"categorical": data, "text": text, "object": text.astype(object)})
    yield from step_figures(net)


def step_rows() -> Iterator[Row]:
    """A step of EM on networks with zeros and with large cliques; ln P of the rows against queries one by one."""
    for name, n, share in STEPS:
        net = bbn.example(name)
        table = code(net.sample(n, seed=0, missing=share), net.variables)

        def fit(net: Any = net, table: Any = table) -> Any:
            return bbn.fit_em(net, table, max_iter=PASSES - 1, tol=-np.inf, n_jobs=1)

        def check(net: Any = net, table: Any = table, fit: Any = fit) -> None:
            first = float(np.sum(net.log_likelihood(table)))
            np.testing.assert_allclose(fit().log_likelihoods[0], first, rtol=1e-9)

        work = f"a step of EM, {name}, {n} rows, {share:.0%} missing"
        yield Row(work, {"bbn": fit}, check, units=PASSES, seconds=5)


def fit_rows(net: bbn.BayesianNetwork, frames: dict[str, pd.DataFrame]) -> Iterator[Row]:
    """Maximum likelihood from a DataFrame, by kind of column."""
    from pgmpy.models import DiscreteBayesianNetwork

    graph = net.graph
    for kind, frame in frames.items():

        def ours(frame: pd.DataFrame = frame) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return bbn.fit(graph, frame)

        def pgmpy(frame: pd.DataFrame = frame) -> Any:
            model = DiscreteBayesianNetwork(list(net.arcs))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(frame)
            return model

        pyagrum = pyagrum_fits(net, frame)

        def check(ours: Any = ours, pyagrum: Any = pyagrum) -> None:
            mine = ours()
            for idiom in pyagrum.values():
                for name in ("HISTORY", "HYPOVOLEMIA"):
                    np.testing.assert_allclose(mine[name].table, in_our_order(idiom(), mine, name), rtol=1e-6)

        contenders = {"bbn": ours, "pyAgrum": pyagrum, "pgmpy": {"DiscreteBayesianNetwork.fit": pgmpy}}
        yield Row(f"fit, {ROWS:,} rows, {kind} columns", contenders, check, target=20, seconds=20)


def pyagrum_fits(net: bbn.BayesianNetwork, frame: pd.DataFrame) -> dict[str, Callable[[], Any]]:
    """pyAgrum's ways from a DataFrame to tables."""
    import pyagrum as gum

    empty = pyagrum_network(net)

    def learn(*source: Any) -> Any:
        learner = gum.BNLearner(*source)
        learner.setNumberOfThreads(1)
        return learner.learnParameters(empty.dag())

    def by_file() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "data.csv")
            frame.to_csv(path, index=False)
            return learn(str(path), empty)

    by_frame = partial(learn, frame, empty)
    return {"BNLearner(DataFrame, network)": by_frame, "BNLearner(CSV file, network)": by_file}


def in_our_order(theirs: Any, mine: bbn.BayesianNetwork, name: str) -> np.ndarray:
    """A table of pyAgrum's with our axes; its arrays have theirs reversed against its names."""
    table = theirs.cpt(name)
    order = [table.names.index(n) for n in (*mine.parents(name), name)]
    return np.asarray(table.toarray()).transpose(*range(len(order))[::-1]).transpose(order)


def step_figures(net: bbn.BayesianNetwork) -> Iterator[Figure]:
    """One step of EM and of gradient ascent, and the memory that they take."""
    data = net.sample(EM_ROWS, seed=1, missing=0.2).drop(columns="HYPOVOLEMIA")
    hidden = {"HYPOVOLEMIA": net.states("HYPOVOLEMIA")}
    table = code(data, [v for v in net.variables if v.name in data])
    seconds = {}
    for name, learner in (("EM", bbn.fit_em), ("gradient ascent", bbn.fit_gradient)):
        options: dict[str, Any] = {"hidden": hidden, "n_jobs": 1, "tol": -np.inf}
        seconds[name] = min(step_time(learner, net, table, options) for _ in range(3))
    theirs = pyagrum_step(net, data.iloc[:THEIR_ROWS]) * EM_ROWS / THEIR_ROWS
    yield Figure(
        f"a step of EM, {EM_ROWS:,} rows",
        f"{seconds['EM']:.3f} s; pyAgrum {theirs:.0f} s, {theirs / seconds['EM']:.0f}x",
        "500x",
    )
    ratio = seconds["gradient ascent"] / seconds["EM"]
    yield Figure(
        "a step of gradient ascent", f"{seconds['gradient ascent']:.3f} s, {ratio:.2f} EM steps", "EM's price"
    )
    tracemalloc.start()
    bbn.fit_em(net, table, hidden, n_jobs=1, max_iter=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    coded = sum(column.nbytes for column in table.codes.values())
    yield Figure("memory of EM beside the coded table", f"{peak / coded:.1f} times the table", "at most 3")


def step_time(learner: Any, net: bbn.BayesianNetwork, table: Any, options: dict[str, Any]) -> float:
    """Seconds of a step: a run of six less a run of one, over five."""
    times = []
    for steps in (1, 6):
        start = time.perf_counter()
        learner(net, table, max_iter=steps, **options)
        times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / 5


def pyagrum_step(net: bbn.BayesianNetwork, data: pd.DataFrame) -> float:
    """Seconds of a step of pyAgrum's EM on these rows."""
    import pyagrum as gum

    network = pyagrum_network(net)
    for name in net.names:
        network.cpt(name).fillWith(1.0).normalizeAsCPT()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.csv")
        data.assign(HYPOVOLEMIA=None).astype(object).fillna("?").to_csv(path, index=False)
        times = []
        for steps in (1, 3):
            learner = gum.BNLearner(str(path), network, ["?"])
            learner.setNumberOfThreads(1)
            learner.useEM(1e-12)
            learner.useSmoothingPrior(1.0)
            learner.EMsetMaxIter(steps)
            start = time.perf_counter()
            learner.learnParameters(network.dag())
            times.append(time.perf_counter() - start)
    return (times[1] - times[0]) / 2


def pyagrum_network(net: bbn.BayesianNetwork) -> Any:
    """The structure as a pyAgrum network."""
    import pyagrum as gum

    network = gum.BayesNet()
    for v in net.variables:
        network.add(gum.LabelizedVariable(v.name, v.name, [str(s) for s in v.states]))
    for parent, child in net.arcs:
        network.addArc(parent, child)
    return network
