"""The quick ways to score the families around one give what scoring each by name gives."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import bbn
from bbn.data import as_source
from bbn.learning.structure import neighbours, score_cache
from bbn.learning.structure.neighbours import Around
from bbn.learning.structure.score_cache import ScoreCache
from tests.support.learning_data import random_data


def some_around(rng, n):
    """Random families, all that has one parent more, and all that has one less."""
    for _ in range(25):
        child = int(rng.integers(n))
        others = [i for i in range(n) if i != child]
        own = [p for p in others if rng.random() < 0.4]
        add = [p for p in others if p not in own] if rng.random() < 0.8 else []
        yield Around(child, sum(1 << p for p in own), add, own)


def check(source, score, rtol=1e-11):
    rng = np.random.default_rng(1)
    names = sorted([*(v.name for v in source.variables), *source.continuous])
    quick, slow = (ScoreCache(source, score, names) for _ in range(2))
    assert quick.quick is not None
    slow.quick = None
    wanted = list(some_around(rng, len(names)))
    together = quick.near(wanted[:10])
    for around, values in zip(wanted, [*together, *(quick.near([a])[0] for a in wanted[10:])], strict=True):
        expected = slow.many([(around.child, mask) for mask in around.masks])
        np.testing.assert_allclose(values, expected, rtol=rtol)
    assert quick.n_evaluated == len({(a.child, mask) for a in wanted for mask in a.masks})


@pytest.mark.parametrize("score", ["bdeu", "bic", "k2", "bds", "fnml"])
@pytest.mark.parametrize("weights", [False, True])
def test_tables(score, weights):
    rows = random_data(np.random.default_rng(0), 200, [2, 3, 2, 4, 2])
    times = np.random.default_rng(1).integers(1, 4, size=200) if weights else None
    check(as_source(rows, weights=times), score)


@pytest.mark.parametrize("score", ["bic-g", "aic", "loglik-g"])
@pytest.mark.parametrize(("noise", "rtol"), [(1e-3, 1e-11), (0.0, 1e-6)])
def test_numbers(score, noise, rtol):
    """With columns that nearly, or quite, determine each other: then what is left of one is rounding."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(6, 300)) * 10.0 ** np.array([[-3], [0], [1], [4], [2], [3]]) + 5
    x[2] += x[1] * 3
    x[3] = x[0] * 2 - 1 + noise * rng.normal(size=300)
    rows = {f"x{i}": column for i, column in enumerate(x)}
    check(as_source(rows, continuous=list(rows)), score, rtol)


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_of_few_variables_the_best_structure_of_all_is_found(score):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        rows = random_data(rng, int(rng.integers(30, 300)), rng.integers(2, 4, size=5).tolist())
        best = bbn.exact_search(rows, score, max_parents=None).graph["score"]
        assert bbn.hill_climb(rows, score).graph["score"] == pytest.approx(best, abs=1e-8)


def test_the_best_of_few_keeps_to_the_constraints():
    rows = random_data(np.random.default_rng(3), 200, [2, 2, 3, 2])
    limits = {"required": [("D", "A")], "forbidden": [("A", "B")], "max_parents": 2, "tiers": [["C"], ["B"]]}
    graph = bbn.hill_climb(rows, **limits)
    best = bbn.exact_search(rows, "bdeu", **limits).graph["score"]
    assert graph.graph["score"] == pytest.approx(best, abs=1e-8)
    assert graph.has_edge("D", "A")
    assert not graph.has_edge("A", "B")
    assert not graph.has_edge("B", "C")


@pytest.mark.parametrize("score", ["bdeu", "bic", "aic", "k2", "bds", "fnml", "log-likelihood"])
@pytest.mark.parametrize("weights", [False, True])
def test_tables_that_are_not_laid_out(score, weights, monkeypatch):
    """Counted by the settings that rows have, each family scores what its whole table scores."""
    rows = random_data(np.random.default_rng(5), 60, [3, 5, 4, 2, 6, 3])
    times = np.random.default_rng(1).integers(1, 4, size=60) if weights else None
    source = as_source(rows, weights=times)
    names = sorted(v.name for v in source.variables)
    wanted = list(some_around(np.random.default_rng(3), len(names)))
    families = [(around.child, mask) for around in wanted for mask in around.masks]
    whole = ScoreCache(source, score, names).near(wanted)
    monkeypatch.setattr(neighbours, "LEAST", -(2**62))
    monkeypatch.setattr(score_cache, "LEAST", -(2**62))
    for found, expected in zip(ScoreCache(source, score, names).near(wanted), whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    np.testing.assert_allclose(
        ScoreCache(source, score, names).many(families), np.concatenate(whole), rtol=1e-11
    )


def test_families_of_many_states_take_memory_by_their_rows():
    """400 rows of columns of 40 states: with three parents a table has 2.6 million cells, and there are thousands."""
    rng = np.random.default_rng(0)
    base = rng.integers(40, size=400)
    rows = {f"v{i:02d}": np.where(rng.random(400) < 0.3, rng.integers(40, size=400), base) for i in range(25)}
    source = as_source({name: column.tolist() for name, column in rows.items()})
    cache = ScoreCache(source, "bdeu")
    around = [Around(c, 0b111 << c + 1, list(range(c + 4, 25)), []) for c in range(20)]
    tracemalloc.start()
    cache.near(around)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


TOO_MANY = """
import resource, sys
import numpy as np
resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9, 2 * 10**9))
import bbn
rng = np.random.default_rng(0)
if sys.argv[2] == "states":
    data = {f"c{i:04d}": rng.integers(0, 2, 200) for i in range(2000)}
else:
    data = {f"c{i:04d}": rng.normal(size=200) for i in range(2000)}
more = [sorted(data)] if sys.argv[1] == "k2" else []
try:
    getattr(bbn, sys.argv[1])(data, *more)
    print("answered")
except bbn.BudgetError as error:
    print("BudgetError", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["states", "numbers"])
@pytest.mark.parametrize("learner", ["hill_climb", "ges", "pc", "chow_liu", "k2"])
def test_what_does_not_fit_is_refused(learner, kind):
    """2,000 columns in 2 GB of addresses."""
    done = subprocess.run(
        [sys.executable, "-c", TOO_MANY, learner, kind], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(("BudgetError", "answered")), done.stderr[-2000:]
