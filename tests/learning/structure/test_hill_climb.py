"""Hill climbing against an exhaustive search over all DAGs, its constraints, and that it redoes nothing."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError, ModelError
from bbn.data import as_source
from tests.support.learning_data import random_data, sample
from tests.support.raw_frames import frame


def all_dags(names):
    """Every DAG over a few nodes."""
    pairs = list(combinations(names, 2))
    for choice in product(range(3), repeat=len(pairs)):
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from(
            pair if c == 1 else pair[::-1] for pair, c in zip(pairs, choice, strict=True) if c
        )
        if nx.is_directed_acyclic_graph(graph):
            yield graph


DAGS = list(all_dags("ABCD"))


def exhaustive(data, score):
    """The score of the best DAG; terms are added up from families that are scored once."""
    terms = {}
    for child in "ABCD":
        others = [name for name in "ABCD" if name != child]
        for size in range(4):
            for parents in combinations(others, size):
                graph = nx.DiGraph((p, child) for p in parents)
                graph.add_nodes_from("ABCD")
                terms[child, frozenset(parents)] = bbn.family_scores(graph, data, score)[child]
    return max(sum(terms[c, frozenset(g.predecessors(c))] for c in "ABCD") for g in DAGS)


def test_there_are_543_dags_of_four_nodes():
    assert len(DAGS) == 543


@pytest.mark.parametrize("score", ["bdeu", "bic", "k2"])
def test_the_best_of_all_dags_is_found_and_never_passed(score):
    for seed in range(25):
        rng = np.random.default_rng(seed)
        data = random_data(rng, int(rng.integers(50, 300)), rng.integers(2, 4, size=4).tolist())
        best = exhaustive(data, score)
        graph = bbn.hill_climb(data, score, restarts=5)
        found = graph.graph["score"]
        assert nx.is_directed_acyclic_graph(graph)
        assert found == pytest.approx(bbn.score(graph, data, score), abs=1e-8)
        assert found <= best + 1e-8
        assert bbn.hill_climb(data, score, escapes=0).graph["score"] <= best + 1e-8
        assert found >= best - 1e-8


@pytest.mark.parametrize("options", [{"escapes": 0}, {}, {"tabu": 5}, {"restarts": 3, "seed": 1}])
def test_no_single_change_raises_the_score(options):
    data = sample(bbn.example("asia"), 1000, 1)
    graph = bbn.hill_climb(data, **options)
    top = bbn.score(graph, data, "bdeu")
    names = list(graph)
    for a in names:
        for b in names:
            changed = nx.DiGraph(graph)
            if graph.has_edge(a, b):
                changed.remove_edge(a, b)
                assert bbn.score(changed, data, "bdeu") <= top + 1e-7
                changed.add_edge(b, a)
            elif a != b and not graph.has_edge(b, a):
                changed.add_edge(a, b)
            if nx.is_directed_acyclic_graph(changed) and max(dict(changed.in_degree()).values()) <= 8:
                assert bbn.score(changed, data, "bdeu") <= top + 1e-7


def test_arcs_are_deleted_and_reversed():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(2, size=(3, 400))
    noise = rng.random(400) < 0.1
    data = {
        "A": a.tolist(),
        "B": b.tolist(),
        "C": c.tolist(),
        "D": np.where(noise, 1 - (a & b), a & b).tolist(),
    }
    useless = bbn.hill_climb(data, start=[("A", "C"), ("B", "C")], escapes=0)
    assert set(useless.predecessors("C")) == set()
    # A → D ← B is a v-structure: starting with D → A, one of the arcs has to be turned around
    turned = bbn.hill_climb(data, start=[("D", "A"), ("B", "D")], escapes=0, max_iter=1)
    assert set(turned.edges) == {("A", "D"), ("B", "D")}


def test_more_effort_never_scores_less():
    data = sample(bbn.example("asia"), 500, 3)
    plain = bbn.hill_climb(data, escapes=0).graph["score"]
    assert bbn.hill_climb(data).graph["score"] >= plain
    assert bbn.hill_climb(data, escapes=0, tabu=10).graph["score"] >= plain
    assert bbn.hill_climb(data, escapes=0, restarts=5).graph["score"] >= plain


@pytest.mark.parametrize(("options", "changes"), [({}, 10), ({"plateau": 1}, 1), ({"plateau": 12}, 12)])
def test_a_walk_past_a_top_that_finds_nothing_better_ends_after_so_many_changes(options, changes):
    """Ten unless told otherwise."""
    data = sample(bbn.example("asia"), 400, 2)
    plain = bbn.hill_climb(data, "bic", escapes=0, restarts=0)
    walked = bbn.hill_climb(data, "bic", escapes=0, restarts=0, tabu=4, **options)
    assert walked.graph["score"] == plain.graph["score"]
    assert walked.graph["n_iter"] == plain.graph["n_iter"] + changes


def test_no_family_is_counted_twice():
    data = sample(bbn.example("asia"), 500, 3)

    class Watched:
        """A source that remembers which families it was asked for."""

        def __init__(self):
            self.source = as_source(data)
            self.asked = []

        variables = property(lambda self: self.source.variables)
        n_rows = property(lambda self: self.source.n_rows)
        total = property(lambda self: self.source.total)
        incomplete = property(lambda self: self.source.incomplete)

        def reduce(self, f):
            return self.source.reduce(f)

        def counts(self, families):
            self.asked += [(family[-1], frozenset(family[:-1])) for family in families]
            return self.source.counts(families)

    source = Watched()
    graph = bbn.hill_climb(source, tabu=5, restarts=2)
    assert len(source.asked) == len(set(source.asked)) == graph.graph["n_families"]


def test_scores_at_least_as_well_as_pyagrum_on_alarm():
    gum = pytest.importorskip("pyagrum")
    import pandas as pd

    frame = pd.DataFrame(sample(bbn.example("alarm"), 5000, 0))
    learner = gum.BNLearner(frame)
    learner.useGreedyHillClimbing()
    learner.useScoreBDeu()
    learner.useNoPrior()
    names = learner.names()
    theirs = nx.DiGraph((names[a], names[b]) for a, b in learner.learnDAG().arcs())
    theirs.add_nodes_from(names)
    assert bbn.hill_climb(frame).graph["score"] >= bbn.score(theirs, frame, "bdeu")


def test_the_order_of_columns_does_not_matter():
    data = sample(bbn.example("asia"), 400, 2)
    graph = bbn.hill_climb(data)
    for names in (sorted(data), sorted(data, reverse=True)):
        again = bbn.hill_climb({name: data[name] for name in names})
        assert set(again.edges) == set(graph.edges)
        assert again.graph["score"] == graph.graph["score"]


class TestConstraints:
    data = sample(bbn.example("asia"), 600, 4)

    @pytest.mark.parametrize("options", [{}, {"tabu": 8, "restarts": 3}])
    def test_all_at_once(self, options):
        names = sorted(self.data)
        free = bbn.hill_climb(self.data)
        banned = sorted(free.edges)[0]
        wanted = next(
            (a, b) for a in names for b in names if a != b and not free.has_edge(a, b) and (a, b) != banned
        )
        graph = bbn.hill_climb(self.data, required=[wanted], forbidden=[banned], max_parents=2, **options)
        assert graph.has_edge(*wanted)
        assert not graph.has_edge(*banned)
        assert max(dict(graph.in_degree()).values()) <= 2

    def test_tiers(self):
        names = sorted(self.data)
        tiers = [names[:3], names[3:5]]
        graph = bbn.hill_climb(self.data, tiers=tiers, tabu=5, restarts=2)
        level = {name: i for i, tier in enumerate(tiers) for name in tier}
        assert all(level[a] <= level[b] for a, b in graph.edges if a in level and b in level)
        assert graph.edges

    def test_a_start(self):
        start = [("smoke", "lung"), ("lung", "either")]
        graph = bbn.hill_climb(self.data, start=start, max_iter=0)
        assert sorted(graph.edges) == sorted(start)
        assert bbn.hill_climb(self.data, start=bbn.example("asia"), max_iter=0).number_of_edges() == 8

    def test_max_iter(self):
        assert bbn.hill_climb(self.data, max_iter=3).number_of_edges() <= 3
        assert bbn.hill_climb(self.data, max_iter=3).graph["n_iter"] == 3

    def test_contradictions_are_named(self):
        with pytest.raises(ModelError, match="the required arcs form a cycle: 'lung' → 'smoke' → 'lung'"):
            bbn.hill_climb(self.data, required=[("smoke", "lung"), ("lung", "smoke")])
        with pytest.raises(ModelError, match="required, but also forbidden"):
            bbn.hill_climb(self.data, required=[("smoke", "lung")], tiers=[["lung"], ["smoke"]])
        with pytest.raises(ModelError, match="named twice"):
            bbn.hill_climb(self.data, tiers=[["lung"], ["lung"]])
        with pytest.raises(ModelError, match="start has the arc 'smoke' → 'lung', which is forbidden"):
            bbn.hill_climb(self.data, start=[("smoke", "lung")], forbidden=[("smoke", "lung")])
        with pytest.raises(ModelError, match="start and the required arcs together form a cycle"):
            bbn.hill_climb(self.data, start=[("smoke", "lung")], required=[("lung", "smoke")])
        with pytest.raises(DataError, match="required: the data have no column 'lungs'; did you mean 'lung'"):
            bbn.hill_climb(self.data, required=[("smoke", "lungs")])
        with pytest.raises(DataError, match="structural_em"):
            bbn.hill_climb({"A": [0, None], "B": [0, 1]})


def test_interrupting_gives_the_best_so_far(monkeypatch):
    data = sample(bbn.example("asia"), 600, 4)
    from bbn.learning.structure.arc_search import ArcSearch

    calls = 0
    whole = ArcSearch.best_change

    def impatient(self, *asked):
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return whole(self, *asked)

    monkeypatch.setattr(ArcSearch, "best_change", impatient)
    graph = bbn.hill_climb(data)
    assert graph.graph["interrupted"]
    assert graph.edges
    assert graph.graph["score"] == pytest.approx(bbn.score(graph, data, "bdeu"), abs=1e-8)


def test_a_table_too_large_to_count_is_never_chosen():
    rng = np.random.default_rng(0)
    data = {f"v{i}": rng.integers(90, size=300).tolist() for i in range(5)}
    graph = bbn.hill_climb(data, "log-likelihood", max_parents=None, escapes=0, max_iter=20)
    assert nx.is_directed_acyclic_graph(graph)
    assert sorted(count for _, count in graph.in_degree) == [0, 1, 2, 3, 3]  # four parents: 90^5 cells


@pytest.mark.parametrize("most", [8, 15, 30])
def test_the_best_of_all_families_that_are_no_larger_than_asked(most):
    data = random_data(np.random.default_rng(5), 300, [2, 3, 4, 3])
    cards = {name: len(set(column)) for name, column in data.items()}

    def fits(graph):
        for name in "ABCD":
            parents = list(graph.predecessors(name))
            cells = cards[name] * np.prod([cards[p] for p in parents])
            if parents and cells > most * (2 if len(parents) == 1 else 1):
                return False
        return True

    found = bbn.hill_climb(data, max_cells=most)
    assert fits(found)
    assert found.graph["score"] == pytest.approx(max(bbn.score(g, data, "bdeu") for g in DAGS if fits(g)))
    assert found.graph["n_too_large"] > 0
    assert found.graph["score"] <= bbn.hill_climb(data).graph["score"]
    large = bbn.hill_climb(data, max_cells=1, required=[("A", "D"), ("B", "D")])
    assert set(large.edges) == {("A", "D"), ("B", "D")}


@pytest.mark.parametrize(
    ("name", "seed"), [("win95pts", 1), ("alarm", 7), *(("insurance", k) for k in range(3))]
)
def test_walks_past_tops_never_score_less(name, seed):
    """Whatever the tabu list and the plateau: each walk is part of the longer one."""
    data = sample(bbn.example(name), 500, seed)

    def score(**options):
        return bbn.hill_climb(data, escapes=10, restarts=1, **options).graph["score"]

    plain = score()
    for tabu in (5, 100):
        reached = [plain, *(score(tabu=tabu, plateau=plateau) for plateau in (5, 20, 80))]
        assert all(later >= earlier for earlier, later in pairwise(reached))


@pytest.mark.parametrize("name", ["AAA", "m", "zzz"])
@pytest.mark.parametrize("kind", ["few", "states", "numbers"])
def test_a_constant_column_changes_nothing_about_the_others(kind, name):
    """However it is named, whether the climb escapes and restarts or the best of few is found."""
    rng = np.random.default_rng(4)
    if kind == "numbers":
        z = rng.normal(size=(100, 8))
        data = {f"x{i}": z[:, i] + z[:, i - 1] * (i % 3) for i in range(8)}
        constant = [1.1] * 100
    else:
        asked = {"few": ["A", "B", "C", "D", "E", "F"], "states": None}[kind]
        whole = sample(bbn.example("alarm"), 300, 4)
        data = dict(list(whole.items())[: len(asked) if asked else None])
        constant = ["only"] * 300
    plain = bbn.hill_climb(data)
    graph = bbn.hill_climb({**data, name: constant})
    assert set(graph.edges) == set(plain.edges)
    assert name in graph
    first = next(iter(data))
    must = bbn.hill_climb({**data, name: constant}, required=[(name, first)])
    assert (name, first) in must.edges


def test_almost_singular_regressions_do_not_send_the_climb_round_in_a_circle():
    """Columns that nearly follow from each other: gains there are rounding alone, and may come again and again."""
    rows = frame("incomeInequality")
    assert rows is not None
    order = np.random.default_rng(1).permutation(len(rows))
    numbers = rows.iloc[order[:46]].astype(float)
    options = {"score": "bic-g", "continuous": list(numbers), "max_parents": 2}
    found = bbn.hill_climb(numbers, **options, max_iter=400)
    assert sorted(found.edges) == sorted(bbn.hill_climb(numbers, **options, max_iter=401).edges)
    assert sorted(found.edges) == sorted(bbn.hill_climb(numbers, **options, max_iter=500).edges)
