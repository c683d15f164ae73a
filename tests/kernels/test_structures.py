"""Chains over structures: the twins step for step, and both against every DAG."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.support.every_dag import arc_shares

pure = importlib.import_module("bbn.kernels.pure.structures")
try:
    compiled = importlib.import_module("bbn.kernels.compiled.structures")
except ImportError:  # not built
    compiled = None


def families(n: int, seed: int, spread: float = 2.0):
    """Every parent set of n variables, with random scores, best first; and the scores [child, mask]."""
    rng = np.random.default_rng(seed)
    terms = rng.normal(0, spread, (n, 1 << n))
    masks, scores = [], []
    for i in range(n):
        own = [m for m in range(1 << n) if not m >> i & 1]
        own.sort(key=lambda m: -terms[i, m])
        masks += own
        scores += [terms[i, m] for m in own]
    return np.arange(n + 1) * (1 << (n - 1)), np.array(masks), np.array(scores), terms


@pytest.mark.skipif(compiled is None, reason="not built")
@pytest.mark.parametrize("seed", range(5))
def test_the_twins_take_the_same_steps(seed):
    *sets, _ = families(6, seed, spread=10.0)
    uniforms = np.random.default_rng(seed).random((500, 5))
    ends = []
    for kernel in (pure, compiled):
        parents, arcs = np.zeros(6, dtype=np.int64), np.zeros((6, 6))
        kernel.walk(*sets, parents, uniforms, 0.5, 3, arcs)
        ends.append((parents.tolist(), arcs.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.skipif(compiled is None, reason="not built")
@pytest.mark.parametrize("reversals", [0.0, 0.5, 0.95])
def test_arcs_have_their_shares_among_all_dags(reversals):
    *sets, terms = families(4, 3)
    parents, arcs = np.zeros(4, dtype=np.int64), np.zeros((4, 4))
    steps = 400_000
    compiled.walk(*sets, parents, np.random.default_rng(0).random((steps, 5)), reversals, 2, arcs)
    np.testing.assert_allclose(arcs / (steps / 2), arc_shares(terms), atol=0.01)


@pytest.mark.parametrize("kernel", [pure] if compiled is None else [pure, compiled])
def test_wrong_arrays(kernel):
    *sets, _ = families(3, 0)
    good = [np.zeros(3, dtype=np.int64), np.zeros((4, 5)), 0.5, 1, np.zeros((3, 3))]
    kernel.walk(*sets, *good)
    for at, bad, problem in (
        (0, np.zeros(2, dtype=np.int64), "parents"),
        (0, np.array([1, 0, 0]), "parents"),
        (1, np.zeros((4, 4)), "uniforms"),
        (1, np.ones((4, 5)), "uniforms"),
        (4, np.zeros((2, 3)), "arcs"),
    ):
        with pytest.raises(ValueError, match=problem):
            kernel.walk(*sets, *(bad if k == at else value for k, value in enumerate(good)))
