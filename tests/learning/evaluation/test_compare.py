"""Comparing structures: each kind of difference, and that the distance is one."""

from __future__ import annotations

import pickle

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import ModelError
from tests.support.learning_data import random_dag


class TestCompare:
    def test_each_kind_of_difference(self):
        truth = nx.DiGraph([("A", "B"), ("B", "C"), ("D", "C"), ("A", "E")])
        learned = nx.DiGraph([("B", "A"), ("B", "C"), ("D", "C"), ("D", "E")])
        result = bbn.compare(learned, truth)
        assert result.missing == (("A", "E"),)
        assert result.extra == (("D", "E"),)
        assert result.reversed == (("B", "A"),)
        assert result.shd == 3
        assert result.skeleton_precision == result.skeleton_recall == 0.75
        assert result.arrow_precision == result.arrow_recall == 0.5

    def test_equivalent_structures_have_the_same_class(self):
        result = bbn.compare([("A", "B"), ("B", "C")], [("C", "B"), ("B", "A")])
        assert (result.shd, result.shd_cpdag) == (2, 0)

    def test_an_undirected_edge_differs_once(self):
        graph = nx.DiGraph([("A", "B"), ("B", "A"), ("B", "C")])
        result = bbn.compare(graph, nx.DiGraph([("A", "B"), ("C", "B")]))
        assert result.shd == 2
        assert result.undirected == (("A", "B"),)
        assert result.reversed == (("B", "C"),)

    @pytest.mark.parametrize("seed", range(20))
    def test_the_distance_is_a_distance(self, seed):
        rng = np.random.default_rng(seed)
        one, two, three = (random_dag(rng, 6, 0.4) for _ in range(3))
        assert bbn.compare(one, one).shd == bbn.compare(one, one).shd_cpdag == 0
        assert bbn.compare(one, two).shd == bbn.compare(two, one).shd
        for kind in ("shd", "shd_cpdag"):
            direct = getattr(bbn.compare(one, three), kind)
            assert direct <= getattr(bbn.compare(one, two), kind) + getattr(bbn.compare(two, three), kind)
        result = bbn.compare(one, two)
        assert result.shd == len(result.missing) + len(result.extra) + len(result.reversed)

    def test_networks_and_values(self):
        net = bbn.example("asia")
        result = bbn.compare(net, net.graph)
        assert result.shd == 0
        assert pickle.loads(pickle.dumps(result)) == result
        assert hash(result) == hash(bbn.compare(net, net))

    def test_different_variables(self):
        with pytest.raises(ModelError, match="different variables"):
            bbn.compare(nx.DiGraph([("A", "B")]), nx.DiGraph([("A", "C")]))
