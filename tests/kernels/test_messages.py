"""The kernel of loopy propagation: both twins alike, and what they compute as the equations say."""

from __future__ import annotations

import numpy as np
import pytest

from bbn.kernels.contracts.messages import FactorGraphArrays
from tests.kernels.test_twins import twins

TWINS = twins("messages")


def random_graph(seed: int) -> tuple[FactorGraphArrays, np.ndarray]:
    """Factors of one to four variables, some entries zero, and messages to start from."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    cards = rng.integers(2, 5, n)
    scopes = [rng.permutation(n)[: int(rng.integers(1, 5))] for _ in range(int(rng.integers(0, 9)))]
    tables = [rng.random(int(np.prod(cards[scope]))) ** 3 for scope in scopes]
    for table in tables:
        table[rng.random(len(table)) < 0.1] = 0.0
    graph = FactorGraphArrays(
        cards.astype(np.int64),
        np.cumsum([0, *map(len, scopes)]).astype(np.int64),
        np.concatenate([*scopes, []]).astype(np.int64),
        np.concatenate([*tables, []]),
        rng.random(int(cards.sum())),
    )
    start = [rng.dirichlet(np.ones(cards[v])) for scope in scopes for v in scope]
    return graph, np.concatenate([*start, []])


@pytest.mark.skipif(len(TWINS) < 2, reason="the kernels are not compiled")
@pytest.mark.parametrize("seed", range(60))
def test_twins_pass_the_same_messages(seed):
    graph, start = random_graph(seed)
    options = (int(seed % 4), 1e-9, (0.0, 0.3)[seed % 2], bool(seed % 3))
    found = []
    for kernel in TWINS:
        messages, beliefs, incoming = start.copy(), np.empty(len(graph.local)), np.empty(len(start))
        ended = kernel.settle(graph, messages, *options)
        log_total = kernel.beliefs(graph, messages, beliefs)
        kernel.incoming(graph, messages, incoming)
        found.append((messages, beliefs, incoming, [*map(float, ended), log_total]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kernel", TWINS, ids=lambda kernel: kernel.__name__.split(".")[-2])
@pytest.mark.parametrize("seed", range(30))
def test_one_factor_is_its_own_marginal(kernel, seed):
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 5, int(rng.integers(1, 5))).astype(np.int64)
    table, local = rng.random(cards), [rng.random(card) for card in cards]
    graph = FactorGraphArrays(
        cards, np.array([0, len(cards)]), np.arange(len(cards)), table.ravel(), np.concatenate(local)
    )
    messages, beliefs = np.full(int(cards.sum()), 0.5), np.empty(int(cards.sum()))
    assert kernel.settle(graph, messages, 9, 1e-14, 0.0, False) == (2, True)
    log_total = kernel.beliefs(graph, messages, beliefs)
    joint = table
    for axis, weights in enumerate(local):
        joint = joint * weights.reshape([-1 if a == axis else 1 for a in range(len(cards))])
    marginals = [
        joint.sum(axis=tuple(a for a in range(len(cards)) if a != axis)) for axis in range(len(cards))
    ]
    np.testing.assert_allclose(beliefs, np.concatenate(marginals) / joint.sum(), rtol=1e-12)
    assert log_total == pytest.approx(np.log(joint.sum()), abs=1e-12)
