"""Regression on parents that are nearly the same, against least squares by QR in extended precision."""

import numpy as np
import pandas as pd
import pytest

import bbn


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
