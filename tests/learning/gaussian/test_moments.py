"""Moments of the data: nearly collinear parents against QR in long double, fast paths against the general one."""

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.data import code
from bbn.data.coded_table import CodedTable
from bbn.learning.gaussian.estimates import GaussianFamily, estimate, estimate_leaves, overall
from bbn.learning.gaussian.moments import leaf_moments, moments_of
from bbn.learning.incomplete.problem import Problem


def least_squares(columns, y):
    """Coefficients of (1, columns) and the mean square that is left: Gram-Schmidt, twice, in long double."""
    x = np.column_stack([np.ones(len(y)), *columns]).astype(np.longdouble)
    q, r = np.zeros_like(x), np.zeros((x.shape[1],) * 2, np.longdouble)
    for k in range(x.shape[1]):
        v = x[:, k].copy()
        for _ in range(2):
            for i in range(k):
                share = q[:, i] @ v
                r[i, k] += share
                v -= share * q[:, i]
        r[k, k] = np.sqrt(v @ v)
        q[:, k] = v / r[k, k]
    left, right = y.astype(np.longdouble), np.zeros(x.shape[1], np.longdouble)
    for _ in range(2):
        for i in range(x.shape[1]):
            share = q[:, i] @ left
            right[i] += share
            left = left - share * q[:, i]
    found = np.zeros_like(right)
    for i in reversed(range(len(found))):
        found[i] = (right[i] - r[i, i + 1 :] @ found[i + 1 :]) / r[i, i]
    return found.astype(float), float(left @ left / len(y))


@pytest.mark.parametrize("apart", [1.0, 1e-3, 1e-5, 3e-6, 1e-6])
@pytest.mark.parametrize("noise", [0.7, 1e-3])
def test_parents_that_are_nearly_the_same(apart, noise):
    rng = np.random.default_rng(0)
    n = 4000
    z = rng.integers(0, 2, n)
    a = rng.normal(50, 2, n)
    b = a + apart * rng.normal(0, 2, n)
    c = rng.normal(-3, 0.1, n)
    y = np.where(z, 7, 1) + 2 * a - 1.5 * b + c + noise * rng.normal(0, 1 + z)
    data = pd.DataFrame({"Z": z, "A": a, "B": b, "C": c, "Y": y})
    arcs = [("Z", "Y"), ("A", "Y"), ("B", "Y"), ("C", "Y")]
    learned = bbn.fit(arcs, data, continuous=["A", "B", "C", "Y"])["Y"]
    for state in range(2):
        rows = data[data["Z"] == state]
        columns = [rows[p.name].to_numpy() for p in learned.continuous_parents]
        expected, left = least_squares(columns, rows["Y"].to_numpy())
        rounding = 1e-14 / apart  # what the last bit of numbers around 50 moves the truth by
        np.testing.assert_allclose(learned.weights[state], expected[1:], rtol=max(1e-9, rounding))
        np.testing.assert_allclose(learned.variances[state], left, rtol=1e-9)


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_parents_that_are_the_same_share_the_weight(factor):
    rng = np.random.default_rng(0)
    a = rng.normal(5, 2, 500)
    y = 1 + 3 * a + rng.normal(size=500)
    learned = bbn.fit([("A", "Y"), ("B", "Y")], {"A": a, "B": factor * a, "Y": y}, continuous=["A", "B", "Y"])
    slope, left = least_squares([a], y)
    weights = dict(zip([p.name for p in learned["Y"].continuous_parents], learned["Y"].weights, strict=True))
    assert weights["A"] == pytest.approx(slope[1] / 2, rel=1e-6)
    assert weights["B"] == pytest.approx(slope[1] / 2 / factor, rel=1e-6)
    assert float(learned["Y"].variances) == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_the_fast_paths_are_the_general_one(holes):
    """Columns far from 0, weights, missing numbers, a class never seen and one without spread."""
    rng = np.random.default_rng(3)
    n, d, card = 300, 6, 4
    labels, weights = rng.integers(0, card - 1, n), rng.uniform(0.1, 3, n)
    numbers = 1e9 + rng.normal(size=(n, d)) * 10.0 ** np.arange(-3, d - 3)
    numbers[labels == 1, 2] = 1e9 + 7
    numbers[rng.random((n, d)) < holes] = np.nan
    target = bbn.Variable("Z", list(range(card)))
    columns = {f"x{k}": numbers[:, k] for k in range(d)}
    source = CodedTable((target,), {"Z": labels.astype(np.uint8)}, n, weights, numbers=columns)
    families = [GaussianFamily(bbn.Continuous(name), (target,)) for name in columns]
    general = moments_of(families, source)
    fast = leaf_moments(numbers, labels, weights, card)
    found, unseen, collapsed = estimate_leaves(fast)
    for k, (family, own) in enumerate(zip(families, general, strict=True)):
        there = ~np.isnan(numbers[:, k])
        exact = [
            np.average(
                numbers[there & (labels == j), k].astype(np.longdouble),
                weights=weights[there & (labels == j)],
            )
            for j in range(card - 1)
        ]
        np.testing.assert_allclose(fast.means[k][:-1] - 1e9, np.array(exact, float) - 1e9, atol=3e-7)
        np.testing.assert_allclose(fast.n[k], own.n, rtol=1e-12)
        np.testing.assert_allclose(fast.means[k], own.means[:, 0], rtol=1e-15)
        np.testing.assert_allclose(fast.scatter[k], own.scatter[:, 0, 0], rtol=1e-9, atol=1e-20)
        expected = estimate(family, own, overall(own))
        np.testing.assert_allclose(found.means[k], expected.numbers.means, rtol=1e-15)
        np.testing.assert_allclose(found.variances[k], expected.numbers.variances, rtol=1e-9)
        assert unseen[k].tolist() == expected.unseen.tolist() == [False] * (card - 1) + [True]
        assert collapsed[k].tolist() == expected.collapsed.tolist()
    assert collapsed[2].tolist() == [False, True, False, False]
    whole = moments_of([GaussianFamily(bbn.Continuous(name), ()) for name in columns], source)
    for k, own in enumerate(whole):
        there = ~np.isnan(numbers[:, k])
        exact = np.average(numbers[there, k].astype(np.longdouble), weights=weights[there])
        squares = np.sum(weights[there] * (numbers[there, k].astype(np.longdouble) - exact) ** 2)
        assert float(own.scatter[0, 0, 0]) == pytest.approx(float(squares), rel=1e-9)


def test_an_m_step_of_many_leaves_at_once_is_that_of_each():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 12)) + 3 * rng.integers(0, 2, (200, 1))
    start = bbn.GaussianMixture(3, random_state=1, max_iter=1)
    z = bbn.Variable("Z", [0, 1, 2])
    names = [f"x{k}" for k in range(12)]
    leaves = [bbn.Gaussian(name, [z], rng.normal(size=3), 1.0) for name in names]
    net = bbn.BayesianNetwork([bbn.CPT(z, table=[0.2, 0.3, 0.5]), *leaves])
    table = code(dict(zip(names, x.T, strict=True)), continuous=names)
    problem = Problem(net, table, ["Z"], None, None, [], [], 1)
    point = problem.evaluate(problem.start_tables())
    tables, flat = problem.split(point.tables)
    stats = point.statistics[len(tables) :]
    at_once = problem.gaussians.maximise(flat, stats)
    problem.gaussians._plain = False
    np.testing.assert_allclose(at_once, problem.gaussians.maximise(flat, stats), rtol=1e-13, atol=1e-13)
    assert start.fit(x).n_iter_ == 1
