"""K2 against the paper's procedure written with dicts, against pyAgrum, and its constraints and orders."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError, ModelError
from bbn.data import as_source
from tests.support.learning_data import ALARM_ORDER, random_data, sample, sample_frame


def slow_g(data, child, parents):
    """ln of equation 12 of the paper, from dictionaries."""
    r = len(set(data[child]))
    rows = list(zip(*(data[name] for name in (*parents, child)), strict=True))
    cells, settings = Counter(rows), Counter(row[:-1] for row in rows)
    return math.fsum(math.lgamma(n + 1) for n in cells.values()) + math.fsum(
        math.lgamma(r) - math.lgamma(n + r) for n in settings.values()
    )


def slow_k2(data, order, u):
    parents = {}
    for i, child in enumerate(order):
        chosen: list[str] = []
        old = slow_g(data, child, chosen)
        while len(chosen) < u:
            candidates = [z for z in order[:i] if z not in chosen]
            if not candidates:
                break
            best = max(candidates, key=lambda z: slow_g(data, child, [*chosen, z]))
            new = slow_g(data, child, [*chosen, best])
            if new <= old + 1e-9:
                break
            chosen.append(best)
            old = new
        parents[child] = set(chosen)
    return parents


@pytest.mark.parametrize("seed", range(20))
def test_the_procedure_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng, int(rng.integers(20, 400)), rng.integers(2, 4, size=6).tolist())
    order = [str(name) for name in rng.permutation(list(data))]
    u = int(rng.integers(0, 5))
    graph = bbn.k2(data, order, max_parents=u)
    assert {n: set(graph.predecessors(n)) for n in graph} == slow_k2(data, order, u)
    expected = math.fsum(slow_g(data, n, list(graph.predecessors(n))) for n in graph)
    assert graph.graph["score"] == pytest.approx(expected, rel=1e-11)


def test_the_ten_cases():
    cases = ["100", "111", "001", "111", "000", "011", "111", "000", "111", "000"]
    data = {f"x{i + 1}": [int(case[i]) for case in cases] for i in range(3)}
    graph = bbn.k2(data, ["x1", "x2", "x3"], max_parents=2)
    assert sorted(graph.edges) == [("x1", "x2"), ("x2", "x3")]


@pytest.mark.parametrize("seed", range(3))
def test_the_same_structure_as_pyagrum_on_alarm(seed):
    gum = pytest.importorskip("pyagrum")
    frame = sample_frame(bbn.example("alarm"), 3000, seed)
    learner = gum.BNLearner(frame)
    learner.useScoreK2()
    learner.useNoPrior()
    learner.setMaxIndegree(5)
    learner.useK2([learner.idFromName(name) for name in ALARM_ORDER])
    names = learner.names()
    theirs = {(names[a], names[b]) for a, b in learner.learnDAG().arcs()}
    source = as_source(frame, states={name: sorted(set(frame[name])) for name in frame})
    assert set(bbn.k2(source, ALARM_ORDER, 5).edges) == theirs


@pytest.mark.parametrize("score", ["k2", "bic", "bdeu"])
@pytest.mark.parametrize("seed", range(10))
def test_exhaustive_search_within_the_order_is_never_beaten(seed, score):
    rng = np.random.default_rng(seed)
    data = random_data(rng, 200, rng.integers(2, 4, size=4).tolist())
    order = list(data)
    best = 0.0
    for i, child in enumerate(order):
        terms = []
        for size in range(i + 1):
            for parents in combinations(order[:i], size):
                graph = nx.DiGraph((p, child) for p in parents)
                graph.add_nodes_from(order)
                terms.append(bbn.family_scores(graph, data, score)[child])
        best += max(terms)
    greedy = bbn.k2(data, order, score=score).graph["score"]
    refined = bbn.k2(data, order, score=score, refine=True).graph["score"]
    assert greedy <= refined + 1e-9
    assert refined <= best + 1e-9


def test_refining_finds_the_parents_that_greed_misses():
    # C is the sum of A and B, and N is C nine times in ten: greed takes N first, which A and B make useless
    rng = np.random.default_rng(0)
    a, b = rng.integers(2, size=(2, 2000))
    noisy = np.where(rng.random(2000) < 0.9, a + b, rng.integers(3, size=2000))
    data = {"A": a.tolist(), "B": b.tolist(), "N": noisy.tolist(), "C": (a + b).tolist()}
    order = ["A", "B", "N", "C"]
    greedy, refined = bbn.k2(data, order), bbn.k2(data, order, refine=True)
    assert set(greedy.predecessors("C")) == {"A", "B", "N"}
    assert set(refined.predecessors("C")) == {"A", "B"}
    assert refined.graph["score"] > greedy.graph["score"]


def test_of_several_orders_the_best_is_kept():
    data = sample(bbn.example("burglary"), 500, 1)
    names = sorted(data)
    orders = [names, names[::-1], [*names[2:], *names[:2]]]
    alone = [bbn.k2(data, order).graph["score"] for order in orders]
    best = bbn.k2(data, orders=orders)
    assert best.graph["score"] == max(alone)
    assert best.graph["order"] == tuple(orders[int(np.argmax(alone))])
    random = bbn.k2(data, "random", restarts=30, seed=3)
    assert random.graph["score"] >= bbn.k2(data, "random", restarts=1, seed=3).graph["score"]
    assert set(random.edges) == set(bbn.k2(data, "random", restarts=30, seed=3).edges)


def test_columns_in_another_order_give_the_same_structure():
    data = sample(bbn.example("burglary"), 400, 2)
    order = sorted(data)
    shuffled = {name: data[name] for name in sorted(data, reverse=True)}
    assert set(bbn.k2(data, order).edges) == set(bbn.k2(shuffled, order).edges)
    assert set(bbn.k2(data, "random", seed=1).edges) == set(bbn.k2(shuffled, "random", seed=1).edges)


def test_any_hash_seed_gives_the_same_arcs():
    program = (
        "import bbn; from tests.support.learning_data import sample; data = sample(bbn.example('burglary'), 300, 5);"
        "print(list(bbn.k2(data, 'random', seed=0).edges), list(bbn.hill_climb(data, seed=0).edges),"
        "list(bbn.chow_liu(data).edges), list(bbn.pc(data).edges))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


class TestConstraints:
    data = random_data(np.random.default_rng(1), 300, [2, 2, 3, 2])
    order = tuple(data)

    def test_required_and_forbidden_arcs(self):
        free = bbn.k2(self.data, self.order)
        assert free.edges
        banned = next(iter(free.edges))
        wanted = next(arc for arc in combinations(self.order, 2) if arc not in free.edges)
        graph = bbn.k2(self.data, self.order, required=[wanted], forbidden=[banned])
        assert graph.has_edge(*wanted)
        assert not graph.has_edge(*banned)

    def test_a_required_arc_against_the_order(self):
        with pytest.raises(ModelError, match="'D' → 'A' is required, but goes backward"):
            bbn.k2(self.data, self.order, required=[("D", "A")])

    def test_a_required_arc_that_is_forbidden(self):
        with pytest.raises(ModelError, match="required, but also forbidden"):
            bbn.k2(self.data, self.order, required=[("A", "B")], forbidden=[("A", "B")])

    def test_more_required_parents_than_allowed(self):
        with pytest.raises(ModelError, match="2 required parents, more than max_parents=1"):
            bbn.k2(self.data, self.order, max_parents=1, required=[("A", "C"), ("B", "C")])

    def test_random_orders_keep_required_arcs_forward(self):
        graph = bbn.k2(self.data, "random", restarts=5, seed=0, required=[("D", "A"), ("C", "D")])
        assert graph.has_edge("D", "A")
        assert graph.has_edge("C", "D")

    @pytest.mark.parametrize(
        ("order", "message"),
        [
            (["A", "B", "C"], "does not name 'D'"),
            (["A", "A", "B", "C", "D"], "twice"),
            (["A", "X"], "no column 'X'"),
        ],
    )
    def test_orders_that_are_not_orders(self, order, message):
        with pytest.raises(DataError, match=message):
            bbn.k2(self.data, order)

    def test_missing_values_name_the_way_out(self):
        with pytest.raises(DataError, match="structural_em"):
            bbn.k2({"A": [0, None], "B": [0, 1]}, ["A", "B"])


def test_interrupting_gives_the_best_so_far():
    data = random_data(np.random.default_rng(1), 300, [2, 2, 3, 2])

    class Impatient:
        """A source that is interrupted at the second request."""

        def __init__(self):
            self.source = as_source(data)
            self.asked = 0

        def __getattr__(self, name):
            return getattr(self.source, name)

        variables = property(lambda self: self.source.variables)
        n_rows = property(lambda self: self.source.n_rows)
        total = property(lambda self: self.source.total)
        incomplete = property(lambda self: self.source.incomplete)

        def reduce(self, f):
            return self.source.reduce(f)

        def counts(self, families):
            self.asked += 1
            if self.asked == 2:
                raise KeyboardInterrupt
            return self.source.counts(families)

    graph = bbn.k2(Impatient(), list(data))
    assert graph.graph["interrupted"]
    assert nx.is_directed_acyclic_graph(graph)
    assert max(dict(graph.in_degree()).values()) == 1
    assert not bbn.k2(data, list(data)).graph["interrupted"]
