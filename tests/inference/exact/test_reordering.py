"""A search for an order that goes on while it is used: valid, never worse, the same again, and it ends."""

from __future__ import annotations

import numpy as np
import pytest

from bbn.inference.exact import reordering as order_search
from bbn.inference.exact.reordering import OrderSearch
from bbn.model.graphs import ORDERS
from tests.inference.exact.test_elimination_orders import is_triangulation, true_cells
from tests.kernels.test_twins import random_scopes


def problem(seed, n_samples=3):
    rng = np.random.default_rng(seed)
    ptr, scope = random_scopes(rng, 60, 4, 5)
    return [rng.integers(2, 6, 60).astype(np.int64) for _ in range(n_samples)], ptr, scope


def begun(samples, ptr, scope):
    return OrderSearch(samples, ptr, scope, ORDERS["min-neighbours"](samples[0], ptr, scope))


@pytest.mark.parametrize("seed", range(6))
def test_it_gets_better_until_it_ends(seed):
    samples, ptr, scope = problem(seed)
    search = begun(samples, ptr, scope)
    costs, first, known = set(), search.cells, search.cells
    for _ in range(3000):
        costs.add(search.cost)
        better = search.burst()
        assert search.cells < known if better else search.cells == known
        known = search.cells
        if search.ended:
            break
    assert search.ended
    assert len(costs) == 2  # pieces, and a climb
    assert search.cells < first
    assert is_triangulation(ptr, scope, search.elimination)
    assert search.cells == pytest.approx(
        np.mean([true_cells(cards, search.elimination) for cards in samples]), rel=1e-12
    )
    assert not search.burst()


def test_the_same_again():
    found = []
    for _ in range(2):
        search = begun(*problem(1))
        for _ in range(60):
            search.burst()
        found.append(search.elimination)
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_what_the_climb_finds_is_kept_only_if_it_is_better(monkeypatch):
    """A climb that finds nothing starts the second pieces from a rule's order, which may end worse than the first."""
    monkeypatch.setattr(order_search, "IDLE_STEPS", 1)
    samples, ptr, scope = problem(2, 1)
    search = begun(samples, ptr, scope)
    least = search.cells
    while not search.ended:
        search.burst()
        assert search.cells <= least
        least = search.cells
