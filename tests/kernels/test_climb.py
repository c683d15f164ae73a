"""Single changes of arcs: the compiled kernel, its twin, and brute force over every change."""

from __future__ import annotations

import importlib

import networkx as nx
import numpy as np
import pytest

from bbn import kernels

ADD, DELETE, REVERSE = range(3)
TWINS = [
    importlib.import_module(f"bbn.kernels.{kind}.climb")
    for kind in (("compiled", "pure") if kernels.COMPILED else ("pure",))
]


def random_state(rng, n):
    """A random DAG and gains, some of which tie, some of which are −∞."""
    order = rng.permutation(n)
    arcs = np.zeros((n, n), dtype=np.uint8)
    for i in range(n):
        arcs[order[i], order[:i]] = rng.random(i) < 0.4
    gains = rng.integers(-4, 4, size=(2, n, n)).astype(float)
    gains[rng.random(gains.shape) < 0.1] = -np.inf
    allowed = (rng.random((n, n)) < 0.8).astype(np.uint8)
    np.fill_diagonal(allowed, 0)
    required = arcs & (rng.random((n, n)) < 0.2)
    return arcs, gains[0], gains[1], allowed, required.astype(np.uint8)


def graph_of(arcs):
    graph = nx.DiGraph((int(p), int(c)) for c, p in np.argwhere(arcs))
    graph.add_nodes_from(range(len(arcs)))
    return graph


def every_change(arcs, add_gain, delete_gain, allowed, required, most):
    """All changes that are possible, with their gains, by trying each on a graph."""
    n = len(arcs)
    for c in range(n):
        for p in range(n):
            for kind in range(3):
                graph = graph_of(arcs)
                if p == c or bool(arcs[c, p]) is (kind == ADD):
                    continue
                if kind == ADD:
                    graph.add_edge(p, c)
                    gain = add_gain[c, p]
                    legal = allowed[c, p] and arcs[c].sum() < most
                else:
                    graph.remove_edge(p, c)
                    gain = delete_gain[c, p]
                    legal = not required[c, p]
                    if kind == REVERSE:
                        graph.add_edge(c, p)
                        gain = gain + add_gain[p, c]
                        legal = legal and allowed[p, c] and arcs[p].sum() < most
                if legal and nx.is_directed_acyclic_graph(graph):
                    yield kind, p, c, gain


@pytest.mark.parametrize("module", TWINS)
def test_the_best_change_is_that_of_brute_force(module):
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(150):
        n = int(rng.integers(1, 7))
        arcs, add_gain, delete_gain, allowed, required = random_state(rng, n)
        most, least = int(rng.integers(0, 4)), float(rng.choice([-np.inf, 0.0, 2.0]))
        blocked, bar = (rng.random((n, n)) < 0.3).astype(np.uint8), float(rng.integers(-3, 3))
        changes = [
            (-c, kind, p, gain)
            for kind, p, c, gain in every_change(arcs, add_gain, delete_gain, allowed, required, most)
            if gain > least and (not blocked[c, p] or gain > bar)
        ]
        got = module.best_change(
            arcs,
            module.paths(arcs),
            add_gain,
            delete_gain,
            allowed,
            required,
            blocked,
            most,
            0.5,
            least,
            bar,
        )
        if changes:
            top = max(change[3] for change in changes)
            c, kind, p, gain = min(change for change in changes if change[3] >= top - 0.5)
            assert got == (kind, p, -c, gain)
            found += 1
        else:
            assert got[0] == -1
    assert found > 60


@pytest.mark.parametrize("module", TWINS)
def test_changes_keep_the_paths(module):
    rng = np.random.default_rng(1)
    for _ in range(60):
        n = int(rng.integers(2, 8))
        arcs, *_ = random_state(rng, n)
        above = module.paths(arcs)
        free, gains = np.ones((n, n), dtype=np.uint8), np.zeros((n, n))
        np.fill_diagonal(free, 0)
        changes = list(every_change(arcs, gains, gains, free, np.zeros_like(arcs), n))
        kind, p, c, _ = changes[rng.integers(len(changes))]
        module.make_change(arcs, above, kind, p, c)
        graph = graph_of(arcs)
        assert arcs[c, p] == (kind == ADD)
        assert arcs[p, c] == (kind == REVERSE)
        for i in range(n):
            assert set(np.flatnonzero(above[i]).tolist()) == nx.ancestors(graph, i) | {i}


@pytest.mark.parametrize("module", TWINS)
def test_what_is_no_change_is_refused(module):
    arcs = np.array([[0, 0], [1, 0]], dtype=np.uint8)  # 0 → 1
    above = module.paths(arcs)
    for kind, p, c in (
        (ADD, 0, 1),
        (ADD, 1, 0),
        (DELETE, 1, 0),
        (REVERSE, 1, 0),
        (ADD, 0, 0),
        (ADD, 0, 2),
        (3, 0, 1),
    ):
        with pytest.raises(ValueError, match="change"):
            module.make_change(arcs, above, kind, p, c)
    with pytest.raises(ValueError, match="cycle"):
        module.paths(np.array([[0, 1], [1, 0]], dtype=np.uint8))
    with pytest.raises(ValueError, match="2 × 2"):
        module.make_change(arcs, np.zeros((3, 3), dtype=np.uint8), ADD, 0, 1)


@pytest.mark.parametrize("climb", TWINS)
def test_gains_are_differences_of_terms(climb):
    rng = np.random.default_rng(4)
    for _ in range(20):
        n = int(rng.integers(2, 9))
        c = int(rng.integers(n))
        own = [p for p in range(n) if p != c and rng.random() < 0.4]
        add = [p for p in range(n) if p != c and p not in own and rng.random() < 0.8]
        terms = {(): -9.5, **{(p,): float(rng.normal()) for p in (*own, *add)}}
        if rng.random() < 0.3:  # a family too large to count
            terms[()] = -np.inf
        values = np.array([*(terms[p,] for p in (*add, *own)), terms[()]])
        gains = rng.normal(size=(2, n, n))
        before = gains.copy()
        least = np.finfo(float).min
        assert climb.set_gains(gains[0], gains[1], c, add, own, values) == max(terms[()], least)
        for p in range(n):
            more, less = (terms[p,] - max(terms[()], least) if p in some else -np.inf for some in (add, own))
            assert gains[:, c, p].tolist() == [more, less]
        others = [i for i in range(n) if i != c]
        assert (gains[:, others] == before[:, others]).all()


@pytest.mark.parametrize("climb", TWINS)
def test_gains_of_variables_that_are_not_there_are_refused(climb):
    for c, add, delete, size in (
        (3, [], [], 1),
        (-1, [], [], 1),
        (0, [3], [], 2),
        (0, [], [-1], 2),
        (0, [1], [2], 2),
    ):
        with pytest.raises(ValueError):
            climb.set_gains(np.zeros((3, 3)), np.zeros((3, 3)), c, add, delete, np.zeros(size))
    with pytest.raises(ValueError):
        climb.set_gains(np.zeros((3, 3)), np.zeros((3, 2)), 0, [], [], np.zeros(1))
