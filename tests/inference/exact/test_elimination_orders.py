"""Elimination orders: valid, never worse than the rules alone, the same on every run, and right when asked."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import elimination_orders as orders
from bbn.inference.exact.problem import flatten
from bbn.model.graphs import ORDERS
from tests.kernels.test_twins import ELIMINATE, random_scopes
from tests.support import oracle
from tests.support.strategies import random_network

ROOT = Path(__file__).parents[3]
searches = pytest.mark.skipif(
    not kernels.COMPILED, reason="without compiled kernels no better order is searched for"
)


def grid(side, rng):
    """A square of two-state variables, each pair of neighbours in a factor."""
    at = [[bbn.Variable(f"{i},{j}", [0, 1]) for j in range(side)] for i in range(side)]
    pairs = [(at[i][j], at[i][j + 1]) for i in range(side) for j in range(side - 1)]
    pairs += [(at[i][j], at[i + 1][j]) for i in range(side - 1) for j in range(side)]
    return bbn.FactorGraph([bbn.Factor(pair, 0.1 + rng.random((2, 2))) for pair in pairs])


def pedigree(n, rng):
    """Genotypes of n people, founders first, each child of two before it."""
    people = [bbn.Variable(f"p{i}", ["aa", "ab", "bb"]) for i in range(n)]
    passes = np.array([1.0, 0.5, 0.0])  # the chance that a genotype hands on an "a"
    child = np.empty((3, 3, 3))
    for i, j in np.ndindex(3, 3):
        p, q = passes[i], passes[j]
        child[i, j] = p * q, p * (1 - q) + q * (1 - p), (1 - p) * (1 - q)
    cpts = []
    for i, person in enumerate(people):
        near = people[max(0, i - 12) : i]
        if len(near) < 6 or rng.random() < 0.15:
            cpts.append(bbn.CPT(person, [], [0.36, 0.48, 0.16]))
        else:
            parents = [near[int(k)] for k in rng.permutation(len(near))[:2]]
            cpts.append(bbn.CPT(person, parents, child))
    return bbn.BayesianNetwork(cpts)


def chordal(elimination):
    """The graph that an elimination fills."""
    order, ends, near = (part.tolist() for part in elimination)
    graph = nx.Graph()
    graph.add_nodes_from(order)
    graph.add_edges_from((v, u) for k, v in enumerate(order) for u in near[ends[k] : ends[k + 1]])
    return graph


def true_cells(cards, elimination):
    """The cells of the maximal cliques, found by networkx."""
    return sum(float(np.prod(cards[list(c)])) for c in nx.find_cliques(chordal(elimination)))


def is_triangulation(ptr, scope, elimination):
    """Whether an elimination takes each variable once and its graph is chordal and holds every scope."""
    graph = chordal(elimination)
    pairs = {
        (u, v)
        for a, b in pairwise(ptr.tolist())
        for u in scope[a:b].tolist()
        for v in scope[a:b].tolist()
        if u != v
    }
    order = elimination[0].tolist()
    return (
        sorted(order) == sorted({*scope.tolist()})
        and all(graph.has_edge(*pair) for pair in pairs)
        and nx.is_chordal(graph)
    )


@pytest.fixture
def eager(monkeypatch):
    """Searches on small models too."""
    monkeypatch.setattr(orders, "SMALL", 4.0)
    monkeypatch.setattr(orders, "HUGE", 8.0)
    monkeypatch.setattr(orders, "PIECE", 1e-9)


@searches
@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(12))
def test_a_search_gives_a_valid_order_no_worse_than_the_rules(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    ptr, scope = random_scopes(rng, n, 4, 5)
    cards = rng.integers(2, 6, n).astype(np.int64)
    found = orders.triangulate(cards, ptr, scope, "auto", True)
    assert found.tried >= orders.FEWEST
    assert is_triangulation(ptr, scope, found.elimination)
    alone = min(true_cells(cards, ORDERS[rule](cards, ptr, scope)) for rule in orders.PORTFOLIO)
    assert found.greedy == pytest.approx(alone)
    assert found.cells == pytest.approx(true_cells(cards, found.elimination))
    assert found.cells <= found.greedy


def test_a_climb_tells_each_time_that_it_finds_a_better_order():
    flat = flatten(grid(14, np.random.default_rng(2)))
    climb = orders.Climb([flat.cards], flat.scope_ptr, flat.scope)
    told = 0
    for _ in range(200):
        known = climb.best.cells
        better = climb.step()
        assert better == (climb.best.cells < known)
        told += better
    assert told > 3


@pytest.mark.parametrize("rule", range(4))
def test_twins_agree_on_biased_orders(rule):
    rng = np.random.default_rng(rule)
    for n in (1, 5, 63, 64, 65, 200):
        ptr, scope = random_scopes(rng, n, 4, 9)
        cards, bias = rng.integers(1, 6, n).astype(np.int64), np.exp(rng.standard_normal(n))
        for most in (math.inf, 500.0):
            results = [m.eliminate(cards, ptr, scope, rule, None, most, bias) for m in ELIMINATE]
            for other in results[1:]:
                assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))
        assert is_triangulation(ptr, scope, results[0]) or most < math.inf
        plain = ELIMINATE[0].eliminate(cards, ptr, scope, rule)
        even = ELIMINATE[0].eliminate(cards, ptr, scope, rule, bias=np.ones(n))
        assert all(np.array_equal(a, b) for a, b in zip(plain, even, strict=True))


@pytest.mark.skipif(len(ELIMINATE) < 2, reason="needs the compiled kernels")
def test_large_graphs_take_biases_too():
    rng = np.random.default_rng(3)
    n = 4300
    ptr, scope = random_scopes(rng, n, 3, 12)
    cards, bias = rng.integers(1, 5, n).astype(np.int64), np.exp(rng.standard_normal(n))
    one, two = (m.eliminate(cards, ptr, scope, 1, None, math.inf, bias) for m in ELIMINATE)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("kernel", ELIMINATE)
def test_biases_of_another_length_are_refused(kernel):
    with pytest.raises(ValueError, match="bias"):
        kernel.eliminate(np.array([2, 2]), np.array([0, 2]), np.array([0, 1]), 0, None, math.inf, np.ones(3))


@searches
@pytest.mark.parametrize("model", [lambda rng: grid(12, rng), lambda rng: pedigree(150, rng)])
def test_a_search_finds_smaller_trees(model, monkeypatch):
    """On a grid and on a pedigree."""
    monkeypatch.setattr(orders, "SMALL", 1000.0)
    monkeypatch.setattr(orders, "HUGE", 2000.0)
    monkeypatch.setattr(orders, "FEWEST", 100)
    stats = bbn.JunctionTree(model(np.random.default_rng(1))).stats()
    assert stats.orders_tried >= 100
    assert stats.total_cells < stats.greedy_cells


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(15))
def test_answers_are_those_of_the_joint(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_nodes=8, max_cells=600)
    for name, found in bbn.JunctionTree(net).posteriors().items():
        truth = oracle.posterior(net, [name])
        assert found.values == pytest.approx([truth[(s,)] for s in net.states(name)], abs=1e-10)


@pytest.mark.usefixtures("eager")
def test_a_grid_by_two_orders_gives_one_answer():
    model = grid(7, np.random.default_rng(5))
    searched, plain = bbn.JunctionTree(model), bbn.JunctionTree(model, order="min-weight")
    given = {"0,0": 1, "3,4": 0}
    expected = plain.posteriors(given)
    for name, found in searched.posteriors(given).items():
        assert found.values == pytest.approx(expected[name].values, abs=1e-12)
    assert searched.stats().orders_tried > plain.stats().orders_tried == 1


def test_small_models_and_named_rules_are_not_searched():
    assert bbn.JunctionTree(bbn.example("alarm")).stats().orders_tried == 1
    stats = bbn.JunctionTree(bbn.example("mildew"), order="min-fill").stats()
    assert stats.orders_tried == 1
    assert stats.greedy_cells == stats.total_cells


@searches
def test_known_trees_of_the_literature_are_reached():
    """3,400,464 cells are the least known for mildew, 17,140,796 for barley."""
    assert 3_400_464 <= bbn.JunctionTree(bbn.example("mildew")).stats().total_cells < 5_161_000
    assert bbn.JunctionTree(bbn.example("barley")).stats().total_cells == 17_140_796


@searches
def test_the_order_does_not_depend_on_the_hash_seed():
    code = """
import bbn, hashlib
from bbn.inference.exact.problem import flatten
from bbn.inference.exact.problem import Question
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import MARGINALS
cost = plan_tree(flatten(bbn.example("munin1"), None), Question(goal=MARGINALS))
print(int(cost.cells), cost.order.tried, hashlib.sha256(cost.elimination[0].tobytes()).hexdigest())
"""
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert len(texts) == 1
    assert int(texts.pop().split()[1]) > 100


def test_variables_of_a_uai_file_keep_their_numbers(tmp_path):
    path = tmp_path / "model.uai"
    path.write_text("MARKOV\n4\n2 3 2 2\n2\n2 3 1\n1 2\n\n6\n1 2 3 4 5 6\n\n2\n1 3\n")
    model = bbn.load(path)
    assert model.names == ("0", "1", "2", "3")
    assert [v.card for v in model.variables] == [2, 3, 2, 2]
    assert model.query("2").values == pytest.approx([0.25, 0.75])
    assert model.query("3").values == pytest.approx([6 / 21, 15 / 21])
    assert pickle.loads(pickle.dumps(model)).names == model.names
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_order_of_variables_must_list_each_once():
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    factors = [bbn.Factor([a, b], np.ones((2, 2)))]
    assert bbn.FactorGraph(factors, variables=[b, a]).names == ("B", "A")
    for wrong, told in (
        ([a], "leaves out 'B'"),
        ([a, b, a], "'A' twice"),
        ([a, b, bbn.Variable("C", [0, 1])], "in no factor"),
        ([a, bbn.Variable("B", [0, 1, 2])], "in no factor"),
        (["A", "B"], "in no factor"),
    ):
        with pytest.raises(bbn.ModelError, match=told):
            bbn.FactorGraph(factors, variables=wrong)


def vast(monkeypatch):
    """Let any order be worth annealing."""
    for name in ("SMALL", "HUGE", "VAST"):
        monkeypatch.setattr(orders, name, -1.0)
    monkeypatch.setattr(orders, "ANNEALED", 1000)
    monkeypatch.setattr(orders, "PIECE", 1e-12)


@searches
@pytest.mark.parametrize("seed", range(3))
def test_annealed_orders_are_valid_never_worse_and_the_same_again(seed, monkeypatch):
    flat = flatten(pedigree(60, np.random.default_rng(seed)))
    given = flat.cards, flat.scope_ptr, flat.scope
    monkeypatch.setattr(orders, "SMALL", -1.0)
    monkeypatch.setattr(orders, "HUGE", -1.0)
    before = orders.triangulate(*given)
    vast(monkeypatch)
    monkeypatch.setattr(orders, "MOST", 0)
    found, again = orders.triangulate(*given), orders.triangulate(*given)
    assert found.tried > before.tried
    assert found.cells <= found.greedy
    assert found.cells == orders.kernels.triangulate.total_cells(flat.cards, *found.elimination)
    assert all(np.array_equal(a, b) for a, b in zip(found.elimination, again.elimination, strict=True))
    filled = chordal(found.elimination)
    assert nx.is_chordal(filled)
    for a, b in pairwise(flat.scope_ptr.tolist()):
        own = flat.scope[a:b].tolist()
        assert all(filled.has_edge(u, v) for u in own for v in own if u != v)


@searches
def test_orders_past_what_can_be_laid_out_are_searched_too(monkeypatch):
    """Where the rules have over BEYOND cells, a search may have fewer."""
    model = grid(16, np.random.default_rng(2))
    greedy = bbn.JunctionTree(model).stats().greedy_cells
    monkeypatch.setattr(orders, "BEYOND", greedy - 1.0)
    stats = bbn.JunctionTree(model).stats()
    assert stats.total_cells < greedy
    monkeypatch.setattr(orders, "HOPELESS", greedy - 1.0)
    assert bbn.JunctionTree(model).stats().orders_tried == 3
