"""Chow-Liu trees against all trees by brute force, and what a tree must be."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError, ModelError
from tests.support.learning_data import random_data, sample


def entropy(data, names):
    n = len(next(iter(data.values())))
    counts = Counter(zip(*(data[name] for name in names), strict=True)) if names else {(): n}
    return -math.fsum(c / n * math.log(c / n) for c in counts.values())


def information(data, x, y, given=()):
    return (
        entropy(data, [x, *given])
        + entropy(data, [y, *given])
        - entropy(data, [x, y, *given])
        - entropy(data, list(given))
    )


def all_trees(names):
    """Every labelled tree, by its Prüfer sequence."""
    if len(names) <= 2:
        yield [tuple(names)] if len(names) == 2 else []
        return
    for sequence in product(range(len(names)), repeat=len(names) - 2):
        yield [(names[i], names[j]) for i, j in nx.from_prufer_sequence(list(sequence)).edges]


def divergence(data, tree):
    """KL of the empirical distribution from the fitted tree, cell by cell."""
    n = len(next(iter(data.values())))
    names = list(data)
    rows = Counter(zip(*data.values(), strict=True))
    total = 0.0
    for row, count in rows.items():
        value = dict(zip(names, row, strict=True))
        log_p = 0.0
        for node in names:
            parents = list(tree.predecessors(node))
            match = [i for i in range(n) if all(data[p][i] == value[p] for p in parents)]
            log_p += math.log(sum(data[node][i] == value[node] for i in match) / len(match))
        total += count / n * (math.log(count / n) - log_p)
    return total


@pytest.mark.parametrize("seed", range(200))
def test_the_best_of_all_trees(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 7))
    data = random_data(rng, int(rng.integers(8, 60)), rng.integers(2, 4, size=size).tolist())
    tree = bbn.chow_liu(data)
    assert nx.is_tree(tree.to_undirected())
    pairs = {frozenset(pair): information(data, *pair) for pair in combinations(data, 2)}
    best = max(math.fsum(pairs[frozenset(edge)] for edge in edges) for edges in all_trees(list(data)))
    ours = math.fsum(pairs[frozenset(edge)] for edge in tree.edges)
    assert ours == pytest.approx(best, abs=1e-12)
    assert tree.graph["information"] == pytest.approx(best, abs=1e-12)
    for a, b, value in tree.edges(data="information"):
        assert value == pytest.approx(pairs[frozenset((a, b))], abs=1e-12)
    if seed < 40:
        assert tree.graph["kl"] == pytest.approx(divergence(data, tree), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_tan_is_the_best_tree_given_the_target(seed):
    rng = np.random.default_rng(seed)
    data = random_data(rng, 80, rng.integers(2, 4, size=5).tolist())
    graph = bbn.tan(data, "E")
    attributes = ["A", "B", "C", "D"]
    assert set(graph.successors("E")) == set(attributes)
    tree = graph.subgraph(attributes)
    assert nx.is_arborescence(tree)
    pairs = {frozenset(pair): information(data, *pair, given=["E"]) for pair in combinations(attributes, 2)}
    best = max(math.fsum(pairs[frozenset(edge)] for edge in edges) for edges in all_trees(attributes))
    assert math.fsum(pairs[frozenset(edge)] for edge in tree.edges) == pytest.approx(best, abs=1e-12)


def test_independent_columns_still_give_a_full_tree():
    # all pairs have exactly zero information, and a tree spans them all the same
    data = dict(zip("ABC", zip(*product([0, 1], repeat=3), strict=True), strict=True))
    tree = bbn.chow_liu(data)
    assert nx.is_arborescence(tree)
    assert tree.graph["information"] == 0.0
    assert not bbn.chow_liu(data, min_information=1e-9).edges


def test_two_strong_pairs_are_joined():
    # every variable is touched after two edges, but only three edges span
    rng = np.random.default_rng(0)
    a, c = rng.integers(2, size=(2, 500))
    data = {"A": a.tolist(), "B": a.tolist(), "C": c.tolist(), "D": c.tolist()}
    assert nx.is_tree(bbn.chow_liu(data).to_undirected())
    assert nx.number_connected_components(bbn.chow_liu(data, min_information=0.1).to_undirected()) == 2


@pytest.mark.parametrize("root", ["A", "C", "E"])
def test_arcs_point_away_from_the_root(root):
    data = random_data(np.random.default_rng(2), 100, [2, 3, 2, 2, 3])
    tree = bbn.chow_liu(data, root)
    assert nx.is_arborescence(tree)
    assert tree.in_degree(root) == 0
    assert {frozenset(e) for e in tree.edges} == {frozenset(e) for e in bbn.chow_liu(data).edges}


def test_required_and_forbidden_edges():
    data = random_data(np.random.default_rng(4), 200, [2, 2, 3, 2, 3])
    edges = {frozenset(edge) for edge in bbn.chow_liu(data).edges}
    absent = next(pair for pair in combinations(data, 2) if frozenset(pair) not in edges)
    banned = tuple(sorted(min(edges, key=sorted)))
    tree = bbn.chow_liu(data, required=[absent], forbidden=[banned])
    found = {frozenset(edge) for edge in tree.edges}
    assert frozenset(absent) in found
    assert frozenset(banned) not in found
    assert nx.is_tree(tree.to_undirected())
    allowed = [t for t in all_trees(list(data)) if frozenset(absent) in set(map(frozenset, t))]
    allowed = [t for t in allowed if frozenset(banned) not in set(map(frozenset, t))]
    best = max(math.fsum(information(data, *edge) for edge in edges) for edges in allowed)
    assert tree.graph["information"] == pytest.approx(best, abs=1e-12)


def test_the_order_of_columns_does_not_matter():
    data = sample(bbn.example("burglary"), 300, 3)
    shuffled = {name: data[name] for name in sorted(data, reverse=True)}
    assert set(bbn.chow_liu(data).edges) == set(bbn.chow_liu(shuffled).edges)


def test_weights_count_as_repeated_rows():
    data = random_data(np.random.default_rng(6), 60, [2, 3, 2, 2])
    times = np.random.default_rng(7).integers(1, 4, size=60)
    repeated = {name: np.repeat(column, times).tolist() for name, column in data.items()}
    weighted, plain = bbn.chow_liu(data, weights=times), bbn.chow_liu(repeated)
    assert set(weighted.edges) == set(plain.edges)
    assert weighted.graph["kl"] == pytest.approx(plain.graph["kl"], abs=1e-12)


def test_the_divergence_where_few_rows_are_equal():
    data = random_data(np.random.default_rng(0), 60, [3] * 8)
    data = {name: [*column, *column[:3]] for name, column in data.items()}
    tree = bbn.chow_liu(data)
    assert tree.graph["kl"] == pytest.approx(divergence(data, tree), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2])
def test_very_few_columns(n):
    data = {name: [0, 1, 1] for name in "AB"[:n]}
    tree = bbn.chow_liu(data)
    assert len(tree) == n
    assert len(tree.edges) == n - 1


def test_errors_say_what_is_wrong():
    data = random_data(np.random.default_rng(0), 30, [2, 2, 2])
    with pytest.raises(DataError, match="root: the data have no column 'X'"):
        bbn.chow_liu(data, "X")
    with pytest.raises(DataError, match="target: the data have no column 'X'"):
        bbn.tan(data, "X")
    with pytest.raises(ModelError, match="cycle"):
        bbn.chow_liu(data, required=[("A", "B"), ("B", "C"), ("C", "A")])
    with pytest.raises(ModelError, match="also forbidden"):
        bbn.chow_liu(data, required=[("A", "B")], forbidden=[("B", "A")])
    with pytest.raises(DataError, match="structural_em"):
        bbn.chow_liu({"A": [0, None], "B": [0, 1]})


def test_the_structure_fits():
    data = sample(bbn.example("burglary"), 500, 1)
    net = bbn.fit(bbn.chow_liu(data), data)
    assert set(net.names) == set(data)


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_of_many_states_are_told_apart_by_the_rows_alone(weighted, monkeypatch):
    monkeypatch.setenv(
        "BBN_MEMORY_LIMIT", "100 MB"
    )  # the table of the class and two columns would take 13 GB
    rng = np.random.default_rng(0)
    base = rng.integers(0, 1400, 3000)
    columns = {"A": base, "B": base % 1000, "C": rng.integers(0, 1200, 3000), "K": (base + 1) % 1300}
    data = {name: [f"{name}{value:04}" for value in column.tolist()] for name, column in columns.items()}
    times = rng.integers(1, 4, 3000) if weighted else np.ones(3000, int)
    repeated = {name: np.repeat(column, times).tolist() for name, column in data.items()}
    tree = bbn.chow_liu(data, weights=times)
    assert tree.number_of_edges() == 3
    for a, b, told in tree.edges(data="information"):
        assert told == pytest.approx(information(repeated, a, b), abs=1e-12)
    tree = bbn.tan(data, "K", weights=times)
    edges = [(a, b, told) for a, b, told in tree.edges(data="information") if a != "K"]
    assert len(edges) == 2
    for a, b, told in edges:
        assert told == pytest.approx(information(repeated, a, b, given=["K"]), abs=1e-12)
