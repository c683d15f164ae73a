"""`continuous=` and `kinds=` mean the same wherever the data live: in memory, in files, opened or not, on Dask."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.data import code

RNG = np.random.default_rng(28)
N = 240
X = RNG.normal(size=N).round(3)
FRAME = pd.DataFrame(
    {
        "a": np.where(X + RNG.normal(size=N) > 0, "p", "q"),
        "k": RNG.integers(0, 4, N),
        "x": X,
        "y": (X + 0.5 * RNG.normal(size=N)).round(3),
        "w": np.round(10 * X).astype(int),
    }
)
NUMBERS = ["x", "y", "w"]
ARCS = [("a", "x"), ("x", "y"), ("a", "k"), ("x", "w")]


def sources(folder):
    """The same rows, wherever they may live."""
    csv, parquet = str(folder / "t.csv"), str(folder / "t.parquet")
    FRAME.to_csv(csv, index=False)
    FRAME.to_parquet(parquet)
    dask = pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=1)
    halves = [FRAME.iloc[: N // 3], FRAME.iloc[N // 3 :]]
    return {
        "a CSV file": csv,
        "a list of Parquet files": [parquet],
        "an open frame": bbn.open_data(FRAME),
        "an open list of frames": bbn.open_data(halves),
        "an open CSV file": bbn.open_data(csv),
        "an open Parquet file": bbn.open_data(parquet, batch_rows=50),
        "Dask": dask,
        "open Dask": bbn.open_data(dask),
    }


def arcs(graph):
    """Its arcs, in order."""
    return sorted(map(tuple, graph.edges))


def mean(net):
    """What a network expects of y."""
    return [float(net.query("y").mean)]


def same(found, truth):
    """Whether arcs are the same, and numbers but for rounding."""
    return found == (pytest.approx(truth, rel=1e-9, abs=1e-9) if isinstance(truth[0], float) else truth)


def shares(posterior):
    """The probability of each arc."""
    return [posterior[a, b] for a in FRAME for b in FRAME if a != b]


LEARNERS = {
    "hill_climb": lambda d, **o: arcs(bbn.hill_climb(d, **o)),
    "chow_liu": lambda d, **o: arcs(bbn.chow_liu(d, **o)),
    "tan": lambda d, **o: arcs(bbn.tan(d, "a", **o)),
    "pc": lambda d, **o: arcs(bbn.pc(d, **o)),
    "ges": lambda d, **o: arcs(bbn.ges(d, **o)),
    "exact_search": lambda d, **o: arcs(bbn.exact_search(d, **o)),
    "k2": lambda d, **o: arcs(bbn.k2(d, list("akxyw"), **o)),
    "score": lambda d, **o: [bbn.score(ARCS, d, **o)],
    "arc_posterior": lambda d, **o: shares(bbn.arc_posterior(d, score="bic", max_parents=1, **o)),
    "fit": lambda d, **o: mean(bbn.fit(ARCS, d, **o)),
    "fit_em": lambda d, **o: mean(bbn.fit_em(ARCS, d, **o).network),
    "learn": lambda d, **o: arcs(bbn.learn(d, method="hill-climb", **o).network.graph),
    "learn, known structure": lambda d, **o: mean(bbn.learn(d, ARCS, **o).network),
}
TAKE_NONE = ("hill_climb", "chow_liu", "tan", "pc", "ges", "exact_search", "k2", "arc_posterior", "learn")


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("continuous", [NUMBERS, None])
def test_columns_of_numbers_are_the_same_everywhere(tmp_path, learner, continuous):
    if continuous is None and learner not in TAKE_NONE:
        return
    ask = LEARNERS[learner]
    truth = ask(FRAME, continuous=continuous)
    if learner != "learn":  # which decides more than code does
        assert same(ask(code(FRAME, continuous=continuous), continuous=continuous), truth)
    for what, data in sources(tmp_path).items():
        assert same(ask(data, continuous=continuous), truth), what
        assert same(ask(data, continuous=continuous), truth), f"{what}, again"


@pytest.mark.parametrize("learner", [name for name in LEARNERS if "fit" not in name and "known" not in name])
def test_what_was_said_on_opening_stays(tmp_path, learner):
    ask = LEARNERS[learner]
    data = bbn.open_data(FRAME, continuous=NUMBERS)
    assert same(ask(data), ask(FRAME, continuous=NUMBERS))
    for given in (bbn.open_data(FRAME, continuous=["x", "y"]), code(FRAME, continuous=["x", "y"])):
        with pytest.raises(bbn.DataError, match="'w' states, but it is continuous"):
            ask(given, continuous=NUMBERS)


def test_one_source_asked_in_several_ways():
    """What one learner says about kinds is not taken for what another one says."""
    data = bbn.open_data(FRAME)
    by_kind, told = bbn.hill_climb(data), bbn.hill_climb(data, continuous=NUMBERS)
    assert arcs(by_kind) == arcs(bbn.hill_climb(FRAME))
    assert arcs(told) == arcs(bbn.hill_climb(FRAME, continuous=NUMBERS)) != arcs(by_kind)
    assert arcs(bbn.hill_climb(data)) == arcs(by_kind)
    with pytest.raises(bbn.DataError, match=r"column 'y' holds 2.. different numbers"):
        bbn.hill_climb(data, continuous=["x"])
    with pytest.raises(bbn.DataError, match="no column 'z'"):
        bbn.hill_climb(data, continuous=["z"])
    states = bbn.open_data(FRAME, states={"k": [0, 1, 2, 3]})
    with pytest.raises(bbn.DataError, match="'k' the states"):
        bbn.hill_climb(states, continuous=["k", *NUMBERS])


KINDS = {"k": "number", "w": "category", "y": "drop"}


def test_kinds_are_the_same_everywhere(tmp_path):
    truth = bbn.learn(FRAME, kinds=KINDS, numbers="cut").network
    assert set(truth.names) == {"a", "k", "x", "w"}
    for what, data in sources(tmp_path).items():
        found = bbn.learn(data, kinds=KINDS, numbers="cut").network
        assert set(found.names) == set(truth.names), what
        assert found.variable("w").states == truth.variable("w").states, what
        assert isinstance(found.variable("k"), bbn.Binned), what
        assert arcs(found.graph) == arcs(truth.graph), what


@pytest.mark.parametrize(
    "given", [lambda: code(FRAME, continuous=None), lambda: bbn.open_data(FRAME, continuous=None)]
)
def test_kinds_come_too_late_for_coded_columns(given):
    with pytest.raises(bbn.DataError, match="kinds= comes too late"):
        bbn.learn(given(), kinds=KINDS)
