"""The strength of arcs, counted again by hand."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np

import bbn
from tests.support.learning_data import random_data


class TestArcStrength:
    def test_shares_are_counted(self):
        data = random_data(np.random.default_rng(3), 120, [2, 2, 2])
        flips = iter(range(10**6))

        def learner(rows):
            assert rows.n_rows == 120
            arcs = [[("A", "B")], [("B", "A"), ("A", "C")], [("A", "B"), ("B", "A")], []][next(flips) % 4]
            graph = nx.DiGraph(arcs)
            graph.add_nodes_from("ABC")
            return graph

        found = bbn.arc_strength(data, learner, n=8, seed=0)
        assert found.strengths["A", "B"] == found.strengths["B", "A"] == 0.75
        assert found.directions["A", "B"] == found.directions["B", "A"] == 0.5
        assert found.strengths["A", "C"] == 0.25
        assert found.directions["A", "C"] == 1.0
        assert set(found.network(0.5).edges) == {("A", "B")}
        assert set(found.network(0.2).edges) == {("A", "B"), ("A", "C")}
        assert found.network(0.5).edges["A", "B"]["strength"] == 0.75
        assert list(found.to_frame().columns) == ["from", "to", "strength", "direction"]

    def test_strong_dependence_is_sure_and_independence_is_not(self):
        rng = np.random.default_rng(0)
        a, c = rng.integers(2, size=(2, 400))
        b = np.where(rng.random(400) < 0.9, a, 1 - a)
        data = {"A": a.tolist(), "B": b.tolist(), "C": c.tolist()}
        found = bbn.arc_strength(data, bbn.hill_climb, n=40, seed=1)
        assert found.strengths["A", "B"] == 1.0
        assert found.strengths.get(("A", "C"), 0.0) < 0.5
        assert found == bbn.arc_strength(data, "hill-climb", n=40, seed=1)
        assert found == pickle.loads(pickle.dumps(found))
        assert nx.is_directed_acyclic_graph(found.network())

    def test_no_cycle_in_the_average(self):
        data = random_data(np.random.default_rng(3), 50, [2, 2, 2])
        cycle = iter([("A", "B"), ("B", "C"), ("C", "A")] * 4)

        def learner(rows):
            return nx.DiGraph([next(cycle)])

        assert nx.is_directed_acyclic_graph(bbn.arc_strength(data, learner, n=12, seed=0).network(0.1))

    def test_interrupting_keeps_what_was_counted(self):
        data = random_data(np.random.default_rng(3), 50, [2, 2, 2])
        calls = 0

        def learner(rows):
            nonlocal calls
            calls += 1
            if calls == 4:
                raise KeyboardInterrupt
            return nx.DiGraph([("A", "B")])

        found = bbn.arc_strength(data, learner, n=10, seed=0)
        assert (found.n, found.interrupted, found.strengths["A", "B"]) == (3, True, 1.0)
