"""Greedy equivalence search, against every structure of four variables and against known truths."""

import itertools

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.learning.structure.class_search import ClassSearch
from bbn.learning.structure.classes import class_of, extension

NAMES = ["a", "b", "c", "d"]


def all_dags(n):
    """The parents' masks of every DAG of n variables."""
    pairs = list(itertools.combinations(range(n), 2))
    for ways in itertools.product(range(3), repeat=len(pairs)):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n))
        for (a, b), way in zip(pairs, ways, strict=True):
            if way:
                graph.add_edge(*((a, b) if way == 1 else (b, a)))
        if nx.is_directed_acyclic_graph(graph):
            yield [sum(1 << p for p in graph.predecessors(i)) for i in range(n)]


DAGS = list(all_dags(4))


def named(parents):
    graph = nx.DiGraph()
    graph.add_nodes_from(NAMES)
    graph.add_edges_from(
        (NAMES[p], NAMES[c]) for c, mask in enumerate(parents) for p in range(4) if mask >> p & 1
    )
    return graph


def drawn(rng, n, continuous):
    """Rows of a random network of four variables."""
    parents = DAGS[rng.integers(len(DAGS))]
    order = list(nx.topological_sort(named(parents)))
    columns = {}
    for name in order:
        mask = parents[NAMES.index(name)]
        total = sum((columns[p] * rng.normal() for i, p in enumerate(NAMES) if mask >> i & 1), np.zeros(n))
        if continuous:
            columns[name] = total + rng.normal(size=n)
        else:
            columns[name] = (total + rng.logistic(size=n) > 0).astype(int)
    return {name: columns[name] for name in NAMES}


def test_there_are_as_many_structures_as_known():
    assert len(DAGS) == 543


def test_classes_are_those_of_networkx_graphs():
    for parents in DAGS:
        own = class_of(parents)
        assert set(own.edges(NAMES)) == set(bbn.cpdag(named(parents)).edges)
        member = extension(own)
        assert set(class_of(member).edges(NAMES)) == set(own.edges(NAMES))


@pytest.mark.parametrize(
    ("continuous", "score"), [(False, "bic"), (False, "bdeu"), (True, "bic-g"), (True, "bge")]
)
def test_no_single_change_of_any_member_scores_higher(continuous, score):
    rng = np.random.default_rng(2)
    numbers = NAMES if continuous else ()
    best = 0
    for _ in range(6):
        data = drawn(rng, 400, continuous)
        found = bbn.ges(data, score=score, continuous=numbers)
        # families add up, so the score of every structure comes from a few terms
        terms = {}
        for mask in range(16):
            for child in range(4):
                if not mask >> child & 1:
                    arcs = nx.DiGraph()
                    arcs.add_nodes_from(NAMES)
                    arcs.add_edges_from((NAMES[p], NAMES[child]) for p in range(4) if mask >> p & 1)
                    own = bbn.family_scores(arcs, data, score, continuous=numbers)
                    terms[child, mask] = own[NAMES[child]]
        scores = {tuple(parents): sum(terms[i, m] for i, m in enumerate(parents)) for parents in DAGS}
        edges = set(found.edges)
        members = [parents for parents in DAGS if set(class_of(parents).edges(NAMES)) == edges]
        assert members
        for parents in members:
            own = scores[tuple(parents)]
            assert own == pytest.approx(found.graph["score"], rel=1e-11)
            for c, p in itertools.permutations(range(4), 2):
                changed = list(parents)
                changed[c] ^= 1 << p
                turned = list(changed)
                turned[p] ^= 1 << c
                for near in (changed, turned):
                    assert scores.get(tuple(near), -np.inf) <= own + 1e-8
        best += found.graph["score"] >= max(scores.values()) - 1e-8
    assert best >= 5


def test_plain_ges_and_escapes_find_the_class_of_a_sparse_network():
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(5):
        order = rng.permutation(10)
        graph = nx.DiGraph()
        graph.add_nodes_from(f"x{i}" for i in range(10))
        columns = {}
        for k, i in enumerate(order):
            columns[f"x{i}"] = rng.normal(size=20_000)
            for j in order[:k]:
                if rng.random() < 0.25:
                    graph.add_edge(f"x{j}", f"x{i}")
                    columns[f"x{i}"] += rng.choice([-1, 1]) * rng.uniform(0.5, 1.5) * columns[f"x{j}"]
        learned = bbn.ges(columns, continuous=list(columns))
        truth = bbn.score(graph, columns, continuous=list(columns))
        assert learned.graph["score"] >= truth - 1e-6
        found += set(learned.edges) == set(bbn.cpdag(graph).edges)
        plain = bbn.ges(columns, continuous=list(columns), escapes=0)
        assert plain.graph["score"] <= learned.graph["score"] + 1e-6
    assert found >= 4


def test_edges_between_kinds_point_at_numbers_and_a_member_can_be_fitted():
    rng = np.random.default_rng(8)
    n = 2000
    s = rng.integers(2, size=n)
    t = np.where(rng.random(n) < 0.9, s, 1 - s)
    x = rng.normal(size=n) + 2 * s
    y = x + rng.normal(size=n)
    data = {"s": s, "t": t, "x": x, "y": y}
    graph = bbn.ges(data, continuous=["x", "y"])
    assert set(graph.edges) == {("s", "t"), ("t", "s"), ("s", "x"), ("x", "y")}
    member = bbn.to_dag(graph)
    assert graph.graph["score"] == pytest.approx(bbn.score(member, data, continuous=["x", "y"]), rel=1e-12)
    assert set(bbn.fit(member, data).continuous) == {"x", "y"}


def test_the_order_of_the_columns_does_not_matter():
    data = drawn(np.random.default_rng(9), 300, continuous=False)
    assert set(bbn.ges(data).edges) == set(bbn.ges(dict(reversed(data.items()))).edges)


def test_limits_and_refusals():
    data = drawn(np.random.default_rng(10), 300, continuous=False)
    assert not bbn.ges(data, max_parents=0).edges
    with pytest.raises(ValueError, match="different values"):
        bbn.ges(data, score="k2")
    with pytest.raises(TypeError, match="max_parents"):
        bbn.ges(data, max_parent=1)
    with pytest.raises(bbn.DataError, match="missing"):
        bbn.ges({**data, "a": [None, *data["a"][1:]]})


def test_ways_and_members_of_graphs_are_those_found_one_by_one():
    for parents in DAGS:
        own = class_of(parents)
        arcs = nx.DiGraph((p, c) for c, mask in enumerate(own.directed) for p in range(4) if mask >> p & 1)
        arcs.add_nodes_from(range(4))
        below = own.below()
        for i in range(4):
            assert below[i] == sum(1 << j for j in nx.descendants(arcs, i))
            assert not below[i] & own.undirected[i]


def lists_of(search):
    return [[sorted(own) for own in lists] for lists in search.operators]


@pytest.mark.parametrize("continuous", [False, True])
def test_operators_kept_from_step_to_step_are_those_found_anew(continuous, monkeypatch):
    rng = np.random.default_rng(11)
    columns = {}
    for i in range(15):
        total = sum((rng.normal() * columns[name] for name in columns if rng.random() < 0.3), np.zeros(500))
        columns[f"x{i:02}"] = total + rng.normal(size=500)
    data = columns if continuous else bbn.example("alarm").sample(1000, seed=3)
    move_to, moves = ClassSearch.move_to, []

    def checked(self, parents):
        move_to(self, parents)
        kept = lists_of(self)
        self.refresh(range(len(parents)))
        assert kept == lists_of(self)
        moves.append(parents)

    monkeypatch.setattr(ClassSearch, "move_to", checked)
    bbn.ges(data, continuous=list(columns) if continuous else (), escapes=1)
    assert len(moves) > 100


def test_no_edge_is_parted_twice_in_the_same_class(monkeypatch):
    data = bbn.example("alarm").sample(2000, seed=1)
    seen, rounds, escape, climb = [], [], ClassSearch.escape, ClassSearch.climb

    def noted(self, advance, apart=frozenset()):
        if apart:
            seen.append((tuple(self.best), apart))
        climb(self, advance, apart)
        assert not apart or not self.state.is_clique(sum(1 << i for i in apart))

    def counted(self, advance):
        rounds.append(escape(self, advance))
        return rounds[-1]

    monkeypatch.setattr(ClassSearch, "climb", noted)
    monkeypatch.setattr(ClassSearch, "escape", counted)
    bbn.ges(data)
    assert len(rounds) > 1
    assert not rounds[-1]
    last = seen[-1][0]  # where it ended, every edge was parted once
    assert sum(best == last for best, _ in seen) == sum(mask.bit_count() for mask in last)
    assert all(seen.count(one) == 1 for one in seen)


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_noise_with_more_columns_than_rows_ends_in_a_sparse_class(seed):
    """No family has so many parents that its regression fits noise perfectly: five rows for each coefficient."""
    noise = np.random.default_rng(seed).normal(size=(20, 60))
    graph = bbn.ges({f"x{i:02d}": noise[:, i] for i in range(60)})
    assert graph.graph["n_families"] < 100_000
    dag = bbn.to_dag(graph)
    assert max(count for _, count in dag.in_degree) <= 3
