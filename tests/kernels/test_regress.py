"""What regressions leave of a sum of squares: the compiled kernel, its twin, and least squares."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from bbn import kernels

TWINS = [
    importlib.import_module(f"bbn.kernels.{kind}.regress")
    for kind in (("compiled", "pure") if kernels.COMPILED else ("pure",))
]
COLLINEAR = 1e-12


def columns_of(rng, n):
    """Columns that depend on each other, two of which are sums of others, about their means."""
    x = rng.normal(size=(40, n)) @ rng.normal(size=(n, n))
    if n > 4:
        x[:, 3] = x[:, 0] + x[:, 1]
        x[:, 4] = 2 * x[:, 2]
    return x - x.mean(axis=0)


def least_squares(x, parents, child):
    """The residual sum of squares by numpy."""
    slopes = np.linalg.lstsq(x[:, parents], x[:, child], rcond=1e-9)[0]
    return float(((x[:, child] - x[:, parents] @ slopes) ** 2).sum())


def check(found, x, families):
    expected = [least_squares(x, family[:-1], family[-1]) for family in families]
    size = np.array([(x[:, family[-1]] ** 2).sum() for family in families])
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=float(1e-10 * size.max()))
    assert (found >= 0).all()


@pytest.mark.parametrize("kernel", TWINS)
@pytest.mark.parametrize("seed", range(6))
def test_families_leave_what_least_squares_leaves(kernel, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    x = columns_of(rng, n)
    families = [rng.permutation(n)[: rng.integers(1, n + 1)].tolist() for _ in range(20)]
    ptr = np.cumsum([0, *map(len, families)])
    flat = np.array([column for family in families for column in family])
    check(kernel.residuals(x.T @ x, flat, ptr, COLLINEAR), x, families)


@pytest.mark.parametrize("kernel", TWINS)
@pytest.mark.parametrize("seed", range(6))
def test_families_around_one_leave_what_least_squares_leaves(kernel, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    x = columns_of(rng, n)
    for _ in range(10):
        child, *others = rng.permutation(n).tolist()
        cut = int(rng.integers(len(others) + 1))
        own, add = tuple(others[:cut]), others[cut:]
        delete = [p for p in own if rng.random() < 0.6]
        found = kernel.residuals_around(x.T @ x, child, own, add, delete, COLLINEAR)
        fewer = [[*(p for p in own if p != gone), child] for gone in delete]
        check(found, x, [[*own, p, child] for p in add] + fewer + [[*own, child]])


@pytest.mark.parametrize("kernel", TWINS)
def test_nothing_out_of_range_gets_in(kernel):
    scatter, none = np.eye(3), np.array([], dtype=np.int64)
    one = np.array([0, 1])
    ends = np.array([0, 2])
    assert kernel.residuals(scatter, one, ends, COLLINEAR).tolist() == [1.0]
    assert kernel.residuals(scatter, none, np.array([0]), COLLINEAR).size == 0
    wrong = [
        (np.ones((2, 3)), one, ends),
        (scatter, np.array([0, 3]), ends),
        (scatter, np.array([-1, 1]), ends),
        (scatter, one, np.array([0, 3])),
        (scatter, one, np.array([0, 0, 2])),
        (scatter, one, none),
    ]
    for case in wrong:
        with pytest.raises(ValueError, match=r"expected"):
            kernel.residuals(*case, COLLINEAR)
    for child, own, add, delete in (
        (3, (), [], []),
        (-1, (), [], []),
        (0, (-1,), [], []),
        (0, (), [5], []),
        (0, (1,), [], [2]),
    ):
        with pytest.raises(ValueError):
            kernel.residuals_around(scatter, child, own, add, delete, COLLINEAR)
    with pytest.raises(ValueError, match="scatter"):
        kernel.residuals_around(np.zeros((3, 4)), 0, (1,), [], [], COLLINEAR)
    with pytest.raises((TypeError, ValueError)):
        kernel.residuals(scatter.astype(np.float32), one, ends, COLLINEAR)
