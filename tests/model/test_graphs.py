"""Moral graphs, elimination orders and junction trees, checked against the theorems that define them."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from bbn.model import graphs
from bbn.model.graphs import ORDERS


def random_graph(seed: int) -> nx.Graph:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 15))
    return nx.gnp_random_graph(n, float(rng.random()), seed=seed)


def test_moral_graph_marries_parents():
    dag = nx.DiGraph([("A", "C"), ("B", "C"), ("C", "D")])
    dag.add_node("E")
    moral = graphs.moral_graph(dag)
    assert {frozenset(edge) for edge in moral.edges} == {frozenset(pair) for pair in ("AB", "AC", "BC", "CD")}
    assert set(moral) == set("ABCDE")
    reference = nx.moral_graph(dag)
    assert {frozenset(edge) for edge in reference.edges} == {frozenset(edge) for edge in moral.edges}


@pytest.mark.parametrize("rule", ORDERS)
def test_triangulations_are_chordal_and_cover_the_graph(rule):
    for seed in range(40):
        graph = random_graph(seed)
        cliques = graphs.triangulate(graph, dict.fromkeys(graph, 3), rule)
        filled = nx.Graph()
        filled.add_nodes_from(graph)
        for clique in cliques:
            filled.add_edges_from(itertools.combinations(clique, 2))
        assert all(filled.has_edge(*edge) for edge in graph.edges)
        assert nx.is_chordal(filled)
        maximal = {frozenset(clique) for clique in nx.find_cliques(filled)}
        assert maximal == {frozenset(clique) for clique in cliques}
        assert len(maximal) == len(cliques)


@pytest.mark.parametrize("rule", ORDERS)
def test_chordal_graphs_get_no_fill_from_min_fill(rule):
    for seed in range(20):
        tree = nx.random_labeled_tree(12, seed=seed)
        if rule in ("min-fill", "weighted-min-fill"):
            assert all(len(clique) == 2 for clique in graphs.triangulate(tree, rule=rule))


def test_junction_trees_keep_each_variable_connected():
    for seed in range(40):
        graph = random_graph(seed)
        tree = graphs.junction_tree(graph)
        assert nx.is_forest(tree)
        for node in graph:
            holders = [clique for clique in tree if node in clique]
            assert nx.is_connected(tree.subgraph(holders))
        for a, b, separator in tree.edges(data="separator"):
            assert set(separator) == set(a) & set(b)


@pytest.mark.parametrize("rule", ORDERS)
def test_orders_hold_every_variable_but_the_kept(rule):
    scopes = [("A", "B"), ("B", "C", "D"), ("E",)]
    cards = dict(zip("ABCDE", (2, 3, 4, 5, 6), strict=True))
    assert sorted(graphs.elimination_order(scopes, cards, rule)) == list("ABCDE")
    assert sorted(graphs.elimination_order(scopes, cards, rule, keep=["D", "A"])) == ["B", "C", "E"]


def test_min_weight_looks_at_cards_and_min_neighbours_does_not():
    star = [("hub", "a"), ("hub", "b"), ("a", "c")]
    cards = {"hub": 2, "a": 50, "b": 3, "c": 40}
    assert graphs.elimination_order(star, cards, "min-weight")[0] == "b"
    assert (
        graphs.elimination_order(
            [("x", "y"), ("z", "w", "y")], {"x": 99, "y": 2, "z": 2, "w": 2}, "min-neighbours"
        )[0]
        == "x"
    )


def test_unknown_rules_are_refused_by_name():
    with pytest.raises(ValueError, match=r"min-fil.*min-fill"):
        graphs.elimination_order([("A",)], {"A": 2}, "min-fil")
