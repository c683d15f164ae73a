"""Best and total weight over orders and DAGs, compiled and plain, against every DAG of up to four variables."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest


def twins() -> list[Any]:
    pure = importlib.import_module("bbn.kernels.pure.subsets")
    try:
        return [pure, importlib.import_module("bbn.kernels.compiled.subsets")]
    except ImportError:
        return [pure]


TWINS = twins()


def families(n: int, seed: int, spread: float, most: int = 4):
    """All parent sets of at most `most` parents with random scores, best first."""
    rng = np.random.default_rng(seed)
    ptr, masks, scores = [0], [], []
    for i in range(n):
        own = [m for m in range(1 << n) if not m >> i & 1 and m.bit_count() <= most]
        values = rng.normal(size=len(own)) * spread
        for k in np.argsort(-values):
            masks.append(own[k])
            scores.append(values[k])
        ptr.append(len(masks))
    return np.array(ptr), np.array(masks, dtype=np.int64), np.array(scores)


def is_acyclic(parents: list[int]) -> bool:
    left = (1 << len(parents)) - 1
    while left:
        first = [i for i, mask in enumerate(parents) if left >> i & 1 and not mask & left]
        if not first:
            return False
        for i in first:
            left ^= 1 << i
    return True


def orders_of(parents: list[int]) -> int:
    """The number of orders that agree with a DAG."""
    n = len(parents)
    return sum(
        all(not parents[i] & ~sum(1 << j for j in order[:k]) for k, i in enumerate(order))
        for order in itertools.permutations(range(n))
    )


def all_dags(ptr, masks, scores):
    """(parents, ln weight) of every acyclic choice."""
    n = len(ptr) - 1
    for choice in itertools.product(*(range(ptr[i], ptr[i + 1]) for i in range(n))):
        parents = [int(masks[k]) for k in choice]
        if is_acyclic(parents):
            yield parents, math.fsum(scores[k] for k in choice)


def truth(ptr, masks, scores, weigh_orders):
    """ln of the total weight, and the share of each arc."""
    n = len(ptr) - 1
    listed = list(all_dags(ptr, masks, scores))
    logs = np.array(
        [value + (math.log(orders_of(parents)) if weigh_orders else 0) for parents, value in listed]
    )
    weights = np.exp(logs - logs.max())
    arcs = np.zeros((n, n))
    for (parents, _), weight in zip(listed, weights, strict=True):
        arcs += weight * np.array([[mask >> j & 1 for mask in parents] for j in range(n)])
    return math.log(weights.sum()) + logs.max(), arcs / weights.sum()


@pytest.mark.parametrize("kernel", TWINS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("spread", [0.0, 3.0, 900.0])
def test_every_dag(kernel, n, spread):
    given = families(n, n, spread)
    best = max(value for _, value in all_dags(*given))
    total, chosen = kernel.best_network(*given)
    ptr, masks, scores = given
    picked = [ptr[i] + k for i, k in enumerate(chosen)]
    assert is_acyclic([int(masks[k]) for k in picked])
    assert total == pytest.approx(best, abs=1e-9) == pytest.approx(math.fsum(scores[picked]), abs=1e-9)
    for sums, weigh_orders in ((kernel.dag_sums, False), (kernel.order_sums, True)):
        log_total, arcs = sums(*given)
        expected, shares = truth(*given, weigh_orders)
        assert log_total == pytest.approx(expected, rel=1e-12, abs=1e-9)
        np.testing.assert_allclose(arcs, shares, rtol=0, atol=1e-11)


def test_the_number_of_dags():
    # Robinson 1973; the sums alternate, and 21 digits of them cancel
    known = [1, 3, 25, 543, 29281, 3781503, 1138779265]
    for kernel in TWINS:
        for n, count in enumerate(known, 1):
            assert kernel.dag_sums(*families(n, 0, 0.0, most=n))[0] == pytest.approx(
                math.log(count), rel=1e-14
            )


@pytest.mark.parametrize("kernel", TWINS)
def test_what_cancels_is_not_lost(kernel):
    # the empty structure alone is possible, and every term but one cancels
    n = 11
    log_total, arcs = kernel.dag_sums(np.arange(n + 1), np.zeros(n, dtype=np.int64), np.full(n, -3.0))
    assert log_total == pytest.approx(-3.0 * n, abs=1e-12)
    assert not arcs.any()


@pytest.mark.skipif(len(TWINS) < 2, reason="the kernels are not compiled")
@pytest.mark.parametrize(("n", "spread"), [(7, 1.0), (6, 2000.0)])
def test_twins_agree_where_there_are_too_many_dags_to_list(n, spread):
    given = families(n, 5, spread, most=3)
    pure, compiled = TWINS
    assert pure.best_network(*given)[0] == compiled.best_network(*given)[0]
    assert (pure.best_network(*given)[1] == compiled.best_network(*given)[1]).all()
    for name in ("dag_sums", "order_sums"):
        (total, arcs), (other, others) = getattr(pure, name)(*given), getattr(compiled, name)(*given)
        assert total == pytest.approx(other, rel=1e-13, abs=1e-11)
        np.testing.assert_allclose(arcs, others, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kernel", TWINS)
@pytest.mark.parametrize("dags", [True, False])
def test_draws_have_the_shares_of_the_sums(kernel, dags):
    n, rows = 4, 4000
    given = families(n, 3, 1.0)
    uniforms = np.random.default_rng(1).random((rows, n * (n + 3)))
    drawn = kernel.sample_networks(*given, dags, uniforms)
    assert all(is_acyclic(row) for row in drawn.tolist())
    log_total, _ = truth(*given, not dags)
    seen = {}
    for row in map(tuple, drawn.tolist()):
        seen[row] = seen.get(row, 0) + 1
    # the share of every DAG: Pearson's statistic of those expected five times or more
    statistic, cells, rest, rest_expected = 0.0, 0, 0, 0.0
    for parents, value in all_dags(*given):
        weight = value + (0 if dags else math.log(orders_of(parents)))
        expected = rows * math.exp(weight - log_total)
        found = seen.get(tuple(parents), 0)
        if expected >= 5:
            statistic += (found - expected) ** 2 / expected
            cells += 1
        else:
            rest += found
            rest_expected += expected
    statistic += (rest - rest_expected) ** 2 / rest_expected
    assert cells > 20
    assert statistic < cells + 5 * math.sqrt(2 * cells)


@pytest.mark.parametrize("kernel", TWINS)
def test_what_does_not_fit_is_refused(kernel):
    ptr, masks, scores = families(3, 0, 1.0)
    with pytest.raises(ValueError, match="without the child"):
        kernel.best_network(ptr, masks | 1, scores)
    with pytest.raises(ValueError, match="one set or more"):
        kernel.dag_sums(np.array([0, 0, 4, len(masks)]), masks, scores)
    with pytest.raises(ValueError, match="numbers below infinity"):
        kernel.order_sums(ptr, masks, scores * np.nan)
    with pytest.raises(ValueError, match="uniforms"):
        kernel.sample_networks(ptr, masks, scores, True, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="1 to 30 variables"):
        kernel.best_network(np.arange(33), np.zeros(32, dtype=np.int64), np.zeros(32))
