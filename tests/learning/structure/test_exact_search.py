"""Exact search against every DAG, one way against the other, and files of local scores."""

from __future__ import annotations

import functools
import itertools
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.learning.structure.constraints import Constraints, complete_source
from bbn.learning.structure.local_scores import LocalScores, useful_sets
from bbn.learning.structure.scores import ScoreCache


def table(seed: int, n: int, rows: int = 60) -> pd.DataFrame:
    """Random columns of two to four states that lean on those before them."""
    rng = np.random.default_rng(seed)
    columns: dict[str, np.ndarray] = {}
    for i in range(n):
        card = int(rng.integers(2, 5))
        value = rng.integers(card, size=rows)
        for other in columns.values():
            if rng.random() < 0.5:
                value = np.where(rng.random(rows) < 0.6, other % card, value)
        columns[f"X{i}"] = value
    names = rng.permutation(list(columns))
    return "s" + pd.DataFrame({name: columns[name] for name in names}).astype(str)


@functools.cache
def dags(n: int) -> list[tuple[int, ...]]:
    """Every DAG of n variables, as the masks of their parents."""
    sets = [[m for m in range(1 << n) if not m >> i & 1] for i in range(n)]
    found = []
    for parents in itertools.product(*sets):
        left = (1 << n) - 1
        while left:
            first = [i for i in range(n) if left >> i & 1 and not parents[i] & left]
            if not first:
                break
            for i in first:
                left ^= 1 << i
        if not left:
            found.append(parents)
    return found


def family_terms(data: pd.DataFrame, score: str) -> tuple[list[str], dict[tuple[int, int], float]]:
    """The term of every family, counted by pandas."""
    names = sorted(data.columns)
    terms = {}
    n_rows = len(data)
    for i, child in enumerate(names):
        r = data[child].nunique()
        for mask in range(1 << len(names)):
            if mask >> i & 1:
                continue
            parents = [names[j] for j in range(len(names)) if mask >> j & 1]
            q = math.prod(data[p].nunique() for p in parents)
            counts = (
                data.groupby([*parents, child]).size().unstack(fill_value=0).to_numpy()
                if parents
                else data[child].value_counts().to_numpy()[None, :]
            )
            if score == "bic":
                seen = counts[counts > 0]
                totals = counts.sum(axis=1)
                terms[i, mask] = (
                    (seen * np.log(seen)).sum()
                    - (totals * np.log(totals)).sum()
                    - 0.5 * math.log(n_rows) * q * (r - 1)
                )
            else:
                a = 1 / (q * r)
                terms[i, mask] = math.fsum(
                    math.lgamma(r * a)
                    - math.lgamma(r * a + row.sum())
                    + sum(math.lgamma(a + k) - math.lgamma(a) for k in row)
                    for row in counts
                )
    return names, terms


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["dynamic-programming", "branch-and-cut"])
def test_no_dag_of_four_variables_is_better(seed, score, method):
    data = table(seed, 4)
    _, terms = family_terms(data, score)
    best = max(math.fsum(terms[i, mask] for i, mask in enumerate(parents)) for parents in dags(4))
    graph = bbn.exact_search(data, score, max_parents=None, method=method)
    assert graph.graph["score"] == pytest.approx(best, abs=1e-9)
    assert graph.graph["optimal"]
    assert graph.graph["gap"] == 0.0
    assert nx.is_directed_acyclic_graph(graph)
    assert bbn.score(graph, data, score) == pytest.approx(best, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_dag_of_five_variables_is_better(seed):
    data = table(100 + seed, 5, rows=100)
    for score in ("bic", "bdeu"):
        _, terms = family_terms(data, score)
        best = max(math.fsum(terms[i, mask] for i, mask in enumerate(parents)) for parents in dags(5))
        assert bbn.exact_search(data, score, max_parents=None).graph["score"] == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_both_ways_agree_where_no_one_can_list_the_dags(seed):
    data = bbn.example("child").sample(150 + 100 * seed, seed=seed)
    one = bbn.exact_search(data, "bdeu", max_parents=2, method="dynamic-programming")
    other = bbn.exact_search(data, "bdeu", max_parents=2, method="branch-and-cut")
    assert one.graph["optimal"]
    assert other.graph["optimal"]
    assert one.graph["score"] == pytest.approx(other.graph["score"], abs=1e-6)
    greedy = bbn.hill_climb(data, "bdeu", max_parents=2).graph["score"]
    assert one.graph["score"] >= greedy - 1e-9


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu", "k2", bbn.BDeu(10)])
def test_a_set_that_is_left_out_is_beaten_by_a_subset(score):
    data = table(5, 6, rows=40)
    source = complete_source(data, "test")
    variables = sorted(source.variables, key=lambda v: v.name)
    constraints = Constraints(variables)
    cache = ScoreCache(source, score, constraints.names)
    kept = useful_sets(cache, constraints, variables, score, lambda *a, **k: None, lambda: None)
    for i in range(6):
        every = {m: cache[i, m] for m in range(1 << 6) if not m >> i & 1}
        expected = {
            m: value
            for m, value in every.items()
            if all(every[s] < value for s in every if s != m and s & m == s)
        }
        assert kept[i] == pytest.approx(expected, abs=1e-9)


def test_constraints_hold_and_matter():
    data = table(8, 5, rows=300)
    free = bbn.exact_search(data, max_parents=None)
    a, b = next(iter(free.edges))
    without = bbn.exact_search(data, max_parents=None, forbidden=[(a, b), (b, a)])
    assert not without.has_edge(a, b)
    assert not without.has_edge(b, a)
    assert without.graph["score"] < free.graph["score"]
    turned = bbn.exact_search(data, max_parents=None, required=[(b, a)], method="branch-and-cut")
    assert turned.has_edge(b, a)
    assert turned.graph["score"] <= free.graph["score"] + 1e-9
    assert max(d for _, d in bbn.exact_search(data, max_parents=1).in_degree) == 1
    tiered = bbn.exact_search(data, max_parents=None, tiers=[["X4"], ["X0", "X1", "X2", "X3"]])
    assert not list(tiered.predecessors("X4"))


def test_columns_in_another_order_give_the_same_structure():
    data = table(8, 6, rows=200)
    graph = bbn.exact_search(data)
    shuffled = bbn.exact_search(data[data.columns[::-1]])
    assert set(graph.edges) == set(shuffled.edges)
    assert graph.graph["score"] == shuffled.graph["score"]


def test_when_time_ends_the_bound_holds():
    data = bbn.example("insurance").sample(300, seed=0)
    short = bbn.exact_search(data, max_parents=2, time_limit=0)
    assert not short.graph["optimal"]
    assert short.graph["gap"] == math.inf
    proved = bbn.exact_search(data, max_parents=2)
    assert short.graph["score"] <= proved.graph["score"] <= short.graph["bound"]
    assert proved.graph["optimal"]


def test_scores_from_a_file(tmp_path):
    data = table(2, 5)
    source = complete_source(data, "test")
    variables = sorted(source.variables, key=lambda v: v.name)
    constraints = Constraints(variables)
    cache = ScoreCache(source, "bic", constraints.names)
    sets = useful_sets(cache, constraints, variables, "bic", lambda *a, **k: None, lambda: None)
    scores = LocalScores._of(variables, sets)
    scores.save(tmp_path / "x.jkl")
    read = bbn.load_scores(tmp_path / "x.jkl")
    assert read.sets == scores.sets
    assert read.names == scores.names
    assert len(read) == sum(map(len, sets))
    graph = bbn.exact_search(read)
    assert graph.graph["score"] == bbn.exact_search(data, max_parents=None).graph["score"]
    first = (tmp_path / "x.jkl").read_text().splitlines()
    assert first[0] == "5"
    assert first[1] == f"X0 {len(scores['X0'])}"


def test_given_scores_are_not_cut_to_three_parents():
    names = tuple("ABCD")
    scores = {name: {(): -1.0} for name in names} | {"E": {(): -9.0, names: -1.0}}
    assert bbn.exact_search(bbn.LocalScores(scores)).in_degree("E") == 4
    assert bbn.exact_search(bbn.LocalScores(scores), max_parents=3).in_degree("E") == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the number of variables was expected"),
        ("two\n", "expected the number of variables, found 'two'"),
        ("1\nA\n", "a name and a number of sets"),
        ("1\nA 1\n-1.5 1\n", "a score, a number of parents and their names"),
        ("1\nA 1\n-1.5 1 B\n", "are not different variables"),
        ("1\nA 1\nx 0\n", "expected a score, found 'x'"),
        ("1\nA 1\nnan 0\n", "is nan"),
        ("2\nA 1\n-1 0\nA 1\n-1 0\n", "comes twice"),
        ("1\nA 0\n", "has no parent set"),
    ],
)
def test_files_that_are_not_scores(tmp_path, text, problem):
    path = tmp_path / "bad.jkl"
    path.write_text(text)
    with pytest.raises(bbn.ParseError, match=problem):
        bbn.load_scores(path)


def test_wrong_questions():
    data = table(1, 3)
    with pytest.raises(ValueError, match="branch-and-cut"):
        bbn.exact_search(data, method="guess")
    with pytest.raises(ValueError, match="time_limit"):
        bbn.exact_search(data, time_limit=-1)
    with pytest.raises(bbn.ModelError, match="cycle"):
        bbn.exact_search(data, required=[("X0", "X1"), ("X1", "X0")])
    with pytest.raises(bbn.DataError, match="missing"):
        bbn.exact_search(data.where(data != "s1"))
    with pytest.raises(bbn.BudgetError, match="dynamic programming"):
        bbn.exact_search(data, method="dynamic-programming", memory_limit=10)
    assert list(bbn.exact_search(data[["X0"]]).nodes) == ["X0"]
