"""What does not fit is refused before a long search for an order, and nothing that fits is refused with it."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.core.errors import BudgetError
from bbn.inference.exact import elimination_orders as orders
from bbn.inference.exact.elimination_orders import PORTFOLIO, triangulate
from bbn.inference.exact.problem import flatten
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


@pytest.fixture
def eliminated(monkeypatch):
    """How many variables each rule eliminates, every time that it is asked."""
    lengths = []

    def watched(name, rule):
        def eliminate(*args, **options):
            found = rule(*args, **options)
            lengths.append((name, len(found[0])))
            return found

        return eliminate

    for name, rule in list(ORDERS.items()):
        monkeypatch.setitem(ORDERS, name, watched(name, rule))
    return lengths


def test_the_size_of_a_hopeless_tree_is_that_of_the_quickest_rule(eliminated):
    model = relational(300, 1500)
    stats = bbn.JunctionTree(model).stats()
    flat = flatten(model)
    by_rule = triangulate_py.eliminate(flat.cards, flat.scope_ptr, flat.scope, 3)
    cliques = 2.0 ** (1 + np.diff(by_rule[1]).astype(float))
    assert stats.treewidth == np.diff(by_rule[1]).max()
    assert orders.HOPELESS < cliques.max() == stats.largest_cells
    assert [name for name, length in eliminated if length == len(flat.cards)] == ["min-neighbours"]


def test_exact_draws_that_do_not_fit_are_given_up_before_an_order_is_whole(eliminated):
    rng = np.random.default_rng(0)
    variables = [bbn.Variable(f"x{i}", ["a", "b"]) for i in range(200)]
    cpts = []
    for i, v in enumerate(variables):
        parents = [variables[k] for k in rng.permutation(i)[:3]]
        cpts.append(bbn.CPT(v, parents, rng.dirichlet([1, 1], (2,) * len(parents))))
    net = bbn.BayesianNetwork(cpts)
    with contextlib.suppress(bbn.AccuracyWarning):
        net.sample(10, evidence={f"x{i}": "a" for i in range(190, 200)}, seed=1, memory_limit="10 MB")
    assert eliminated
    whole = len(net.ancestral_set([f"x{i}" for i in range(190, 200)])) - 10
    assert max(length for _, length in eliminated) < whole


def test_chains_on_a_factor_graph_start_in_time_linear_in_its_factors(monkeypatch):
    asked = []
    names = bbn.Factor.names.fget
    monkeypatch.setattr(bbn.Factor, "names", property(lambda self: asked.append(1) or names(self)))
    model = grid(20)
    with contextlib.suppress(bbn.AccuracyWarning):
        bbn.GibbsSampling(model, n_samples=400, burn_in=20, seed=0).posteriors()
    assert len(asked) < 100 * len(model.factors())


def grid(n):
    """A grid of n x n binary variables, whose treewidth is n."""
    rng = np.random.default_rng(0)
    v = [[bbn.Variable(f"x{i}.{j}", ["a", "b"]) for j in range(n)] for i in range(n)]
    across = [(v[i][j], v[i][j + 1]) for i in range(n) for j in range(n - 1)]
    down = [(v[i][j], v[i + 1][j]) for i in range(n - 1) for j in range(n)]
    return bbn.FactorGraph([bbn.Factor(pair, rng.random((2, 2))) for pair in across + down])


@pytest.fixture
def searched(monkeypatch):
    """What all searches for an order cost, in cells of a run; the patience with each is a tenth of the usual."""
    costs = []
    monkeypatch.setattr(orders, "PATIENCE", 0.016)
    monkeypatch.setattr(orders, "LAST", 0.048)
    monkeypatch.setattr(orders, "ASKED", orders.BURST)

    class Counted(orders._Patience):
        def __init__(self, needs):
            super().__init__(needs)
            costs.append(self)

    monkeypatch.setattr(orders, "_Patience", Counted)
    return lambda: sum(one.spent for one in costs)


A_BURST = 4e-3
"""A step of the climb, and a burst of the annealing."""
KINDS = {
    "query": lambda model, **options: model.query(model.names[0], **options),
    "posteriors": lambda model, **options: model.posteriors(**options),
    "mpe": lambda model, **options: model.mpe(**options),
    "joint": lambda model, **options: model.query(model.names[:20], **options),
}


@pytest.mark.parametrize("n", [24, 30])
@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_ends_the_search(searched, kind, n):
    with pytest.raises(BudgetError, match="with time_limit=600 it is for up to 60 seconds"):
        KINDS[kind](grid(n), memory_limit="20 MB")
    assert searched() <= orders.PATIENCE + A_BURST


def test_a_price_ends_the_search(searched):
    stats = bbn.JunctionTree(grid(28), memory_limit="1 GB").stats()
    assert 1e10 < stats.total_cells <= stats.greedy_cells
    assert searched() <= orders.LAST + A_BURST


def test_a_time_limit_says_how_long_to_search(searched):
    with pytest.raises(BudgetError) as raised:
        grid(22).mpe(memory_limit="20 MB", time_limit=600)
    assert "time_limit" not in str(raised.value)
    assert searched() > orders.PATIENCE


@pytest.fixture(scope="module")
def long_search():
    """A graph, and the cells of the order that a long search finds."""
    flat = flatten(grid(20))
    graph = (flat.cards, flat.scope_ptr, flat.scope)
    return graph, triangulate(*graph).cells


@pytest.mark.parametrize("needed", [1.0, 3.0])
def test_a_search_goes_on_where_the_plan_nearly_fits(searched, long_search, needed):
    graph, least = long_search
    found = triangulate(*graph, needs=lambda order: order.cells / (needed * least))
    assert found.cells <= (needed if needed > 1.0 else orders.NEAR) * least


def test_an_order_that_fits_is_kept_where_one_with_fewer_cells_does_not(monkeypatch, long_search):
    monkeypatch.setattr(orders, "PATIENCE", 8e-5)
    graph, least = long_search
    found = triangulate(*graph, needs=lambda order: 0.9 if order.cells > 1.2 * least else 2.0)
    assert found.cells > 1.2 * least


def test_a_joint_beyond_the_limit_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(kernels.triangulate, "eliminate", None)
    for name in ("munin1", "link", "andes", "pigs"):
        net = bbn.example(name)
        with pytest.raises(BudgetError, match="the joint of"):
            net.query(net.names[:30], memory_limit="1 GB")


def test_whether_evidence_is_masked_is_found_without_a_search(searched):
    """A network of few variables and a large tree is not searched for its order twice."""
    rng = np.random.default_rng(0)
    variables = [bbn.Variable(f"x{i}", ["a", "b"]) for i in range(60)]
    cpts = [
        bbn.CPT(
            v,
            parents := [variables[k] for k in rng.permutation(i)[:3]],
            rng.dirichlet([1, 1], (2,) * len(parents)),
        )
        for i, v in enumerate(variables)
    ]
    with pytest.raises(BudgetError):
        bbn.BayesianNetwork(cpts).posteriors({"x0": "a"}, memory_limit="10 MB")
    assert searched() <= orders.PATIENCE + A_BURST
