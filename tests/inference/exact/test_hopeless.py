"""A junction tree beyond any memory is refused as soon as that is known, and nothing that fits is refused with it."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.core.errors import BudgetError
from bbn.inference.exact.flat_model import flatten
from bbn.inference.exact.orders import PORTFOLIO, triangulate
from bbn.kernels.pure import triangulate as triangulate_py
from bbn.model.graphs import ORDERS


def relational(n_variables, n_factors, seed=0):
    """Binary variables in factors of two or three drawn at random: cliques grow with the number of variables."""
    rng = np.random.default_rng(seed)
    variables = [bbn.Variable(f"x{i}", ["a", "b"]) for i in range(n_variables)]
    scopes = [rng.choice(n_variables, size=2 + k % 2, replace=False) for k in range(n_factors)]
    return bbn.FactorGraph([bbn.Factor([variables[i] for i in s], rng.random((2,) * len(s))) for s in scopes])


@pytest.mark.parametrize("kernel", [kernels.triangulate.eliminate, triangulate_py.eliminate])
def test_elimination_stops_with_the_first_clique_past_the_most(kernel):
    for seed in range(20):
        flat = flatten(relational(30, 25 + 2 * seed, seed))
        graph = (flat.cards, flat.scope_ptr, flat.scope)
        for rule in range(4):
            order, ptr, near = kernel(*graph, rule)
            sizes = 2.0 ** (1 + np.diff(ptr))
            for most in (8.0, 64.0, 1e5):
                stop, stop_ptr, stop_near = kernel(*graph, rule, most=most)
                past = np.flatnonzero(sizes > most)
                count = past[0] + 1 if past.size else len(order)
                assert stop.tolist() == order[:count].tolist()
                assert stop_ptr.tolist() == ptr[: count + 1].tolist()
                assert stop_near.tolist() == near[: ptr[count]].tolist()


def test_giving_up_refuses_nothing_that_fits():
    decided = set()
    for seed in range(40):
        flat = flatten(relational(40, 40 + 2 * seed, seed))
        graph = (flat.cards, flat.scope_ptr, flat.scope)
        cells = triangulate(*graph)[1]
        for most in (1e5, 1e6, 1e8):
            given_up = triangulate(*graph, most=most)[1]
            assert given_up == cells if cells <= most else given_up > most
            decided.add(cells <= most)
    assert decided == {True, False}


def test_it_is_refused_without_working_it_out(monkeypatch):
    model = relational(300, 1500)
    eliminated = []

    def watched(rule):
        def eliminate(*args, **options):
            found = rule(*args, **options)
            eliminated.append(len(found[0]))
            return found

        return eliminate

    for name, rule in list(ORDERS.items()):
        monkeypatch.setitem(ORDERS, name, watched(rule))
    with pytest.raises(BudgetError, match=r"a clique of \de\+18 cells|a clique of \d\.\d+e\+18 cells"):
        model.posteriors()
    assert len(eliminated) == len(PORTFOLIO)
    assert max(eliminated) < 300
