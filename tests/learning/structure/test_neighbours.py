"""The quick ways to score the families around one give what scoring each by name gives."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from bbn.data import as_source
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


@pytest.mark.parametrize("twin", ["compiled", "pure"])
def test_residuals_around_are_those_of_least_squares(twin):
    kernel = pytest.importorskip(f"bbn.kernels.{twin}.score").residuals_around
    rng = np.random.default_rng(3)
    for _ in range(60):
        n = int(rng.integers(1, 8))
        x = rng.normal(size=(40, n)) @ rng.normal(size=(n, n))
        if n > 3:
            x[:, 2] = x[:, 0] - 2 * x[:, 3]  # determined by others
        x -= x.mean(axis=0)
        child, *others = rng.permutation(n).tolist()
        own, add = tuple(p for p in others[: n // 2]), others[n // 2 :]
        delete = [p for p in own if rng.random() < 0.6]
        found = kernel(np.ascontiguousarray(x.T @ x), child, own, add, delete, 1e-12)
        families = [*((*own, z) for z in add), *([p for p in own if p != z] for z in delete), own]
        for rest, parents in zip(found, families, strict=True):
            y, design = x[:, child], x[:, list(parents)]
            slopes = np.linalg.lstsq(design, y, rcond=None)[0]
            truth = ((y - design @ slopes) ** 2).sum()
            assert rest == pytest.approx(truth, rel=1e-8, abs=1e-10 * (y @ y))


@pytest.mark.parametrize("twin", ["compiled", "pure"])
def test_residuals_of_variables_that_are_not_there_are_refused(twin):
    kernel = pytest.importorskip(f"bbn.kernels.{twin}.score").residuals_around
    for child, own, add, delete in (
        (3, (), [], []),
        (0, (-1,), [], []),
        (0, (), [5], []),
        (0, (1,), [], [2]),
    ):
        with pytest.raises(ValueError):
            kernel(np.eye(3), child, own, add, delete, 1e-12)
    with pytest.raises(ValueError, match="scatter"):
        kernel(np.zeros((3, 4)), 0, (1,), [], [], 1e-12)


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
