"""Exact search against every DAG, one way against the other, and files of local scores."""

from __future__ import annotations

import functools
import itertools
import math
import signal
import sys
import threading

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.kernels import subsets
from bbn.learning.structure.constraints import Constraints, complete_source
from bbn.learning.structure.exact import exact_search
from bbn.learning.structure.exact.branch_and_cut import BranchAndCut
from bbn.learning.structure.exact.clusters import SetColumns
from bbn.learning.structure.exact.local_scores import LocalScores
from bbn.learning.structure.exact.parent_sets import useful_sets
from bbn.learning.structure.exact.program import LinearProgram
from bbn.learning.structure.score_cache import ScoreCache
from tests.support.every_dag import dags, family_terms, table, totals


@pytest.mark.parametrize("score", ["bic", "bdeu"])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["dynamic-programming", "branch-and-cut"])
def test_no_dag_of_four_variables_is_better(seed, score, method):
    data = table(seed, 4)
    best = totals(family_terms(data, score)[1]).max()
    graph = bbn.exact_search(data, score, max_parents=None, method=method)
    assert graph.graph["score"] == pytest.approx(best, abs=1e-9)
    assert graph.graph["optimal"]
    assert graph.graph["gap"] == 0.0
    assert nx.is_directed_acyclic_graph(graph)
    assert bbn.score(graph, data, score) == pytest.approx(best, abs=1e-9)


def test_there_are_as_many_dags_as_robinson_counted():
    assert [len(dags(n)) for n in range(1, 6)] == [1, 3, 25, 543, 29_281]


@pytest.mark.slow
def test_no_dag_of_five_variables_is_better_on_200_data_sets():
    for seed in range(200):
        data = table(1000 + seed, 5, rows=30 + seed)
        score = ("bic", "bdeu")[seed % 2]
        method = ("auto", "branch-and-cut")[seed // 2 % 2]
        best = totals(family_terms(data, score)[1]).max()
        graph = bbn.exact_search(data, score, max_parents=None, method=method)
        assert graph.graph["optimal"]
        assert graph.graph["score"] == pytest.approx(best, abs=1e-9)


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


@pytest.mark.parametrize("method", ["dynamic-programming", "branch-and-cut"])
def test_columns_in_another_order_give_the_same_structure(method):
    data = bbn.example("insurance").sample(200, seed=3).iloc[:, :16]
    graph = bbn.exact_search(data, max_parents=2, method=method)
    rng = np.random.default_rng(0)
    for _ in range(3):
        shuffled = bbn.exact_search(data[rng.permutation(data.columns)], max_parents=2, method=method)
        assert set(graph.edges) == set(shuffled.edges)
        assert graph.graph["score"] == shuffled.graph["score"]


def test_the_published_optimum_of_the_wine_data():
    # Liao, Sharma, Cussens & van Beek (2019) cut each of the 13 measurements in two; their README gives the optimum
    wine = pytest.importorskip("sklearn.datasets").load_wine()
    cuts = [12.9, 2.2, 2.365, 19.8, 98.5, 2.34, 2.12, 0.395, 1.555, 7.15, 1.095, 2.64, 980]
    columns = {"0": wine.target} | {
        str(j + 1): (wine.data[:, j] > cut).astype(int) for j, cut in enumerate(cuts)
    }
    for method in ("dynamic-programming", "branch-and-cut"):
        graph = bbn.exact_search(columns, "bic", max_parents=3, method=method)
        assert graph.graph["optimal"]
        assert graph.graph["score"] == pytest.approx(-1258.445909, abs=1e-6)


@pytest.mark.slow
def test_hailfinder_is_proved():
    # the linear relaxation alone leaves a gap of 180 nats
    data = bbn.example("hailfinder").sample(1000, seed=0)
    graph = bbn.exact_search(data, "bic", max_parents=2)
    assert graph.graph["optimal"]
    assert graph.graph["score"] >= bbn.hill_climb(data, "bic", max_parents=2).graph["score"]


def on_call(monkeypatch, owner, name, number, act):
    """Act before the call of this number."""
    calls = itertools.count(1)
    plain = getattr(owner, name)

    def called(*args, **options):
        if next(calls) == number:
            act()
        return plain(*args, **options)

    monkeypatch.setattr(owner, name, called)


@pytest.fixture
def heard():
    """Ctrl-C is heard, as it is not in a process that was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    signal.raise_signal(signal.SIGINT)


def interrupt_soon():
    threading.Timer(0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)).start()


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.parametrize(
    ("owner", "name", "number", "act"),
    [
        (ScoreCache, "once", 1, interrupt),  # before any set was scored
        (ScoreCache, "once", 3, interrupt),
        (SetColumns, "violated", 5, interrupt),  # between linear programs
        (LinearProgram, "solve", 2, interrupt),
        (exact_search, "hill_climb", 1, interrupt),
        (subsets, "best_network", 1, interrupt),
    ],
)
@pytest.mark.usefixtures("heard")
def test_ctrl_c_gives_the_best_so_far(monkeypatch, owner, name, number, act):
    data = bbn.example("alarm").sample(1000, seed=0)
    if owner is subsets:
        data = data.iloc[:, :12]
    on_call(monkeypatch, owner, name, number, act)
    graph = bbn.exact_search(data, max_parents=3)
    about = graph.graph
    assert about["interrupted"]
    assert not about["optimal"]
    assert about["gap"] > 0.0
    assert about["score"] == pytest.approx(bbn.score(graph, data, "bic"), abs=1e-7)
    assert about["score"] <= -11671.3241 or owner is subsets  # the proved optimum
    assert about["bound"] >= -11671.3242


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals differ")
@pytest.mark.usefixtures("heard")
def test_ctrl_c_stops_an_integer_program_at_once(monkeypatch):
    scores = scores_of(bbn.example("alarm").sample(1000, seed=0), "aic", 2)  # takes minutes
    on_call(monkeypatch, BranchAndCut, "decide", 1, interrupt_soon)
    graph = bbn.exact_search(scores)
    assert graph.graph["interrupted"]
    assert 0.0 < graph.graph["gap"] < 100.0


def test_progress_shows_both_bounds(capsys):
    data = bbn.example("child").sample(300, seed=1)
    bbn.exact_search(data, max_parents=2, method="branch-and-cut", progress=True)
    assert "at most -" in capsys.readouterr().err


def test_when_time_ends_the_bound_holds():
    data = bbn.example("insurance").sample(300, seed=0)
    short = bbn.exact_search(data, max_parents=2, time_limit=0)
    assert not short.graph["optimal"]
    assert short.graph["gap"] == math.inf
    proved = bbn.exact_search(data, max_parents=2)
    assert short.graph["score"] <= proved.graph["score"] <= short.graph["bound"]
    assert proved.graph["optimal"]


def scores_of(data, score, max_parents=None) -> LocalScores:
    source = complete_source(data, "test")
    variables = sorted(source.variables, key=lambda v: v.name)
    constraints = Constraints(variables, max_parents=max_parents)
    cache = ScoreCache(source, score, constraints.names)
    sets = useful_sets(cache, constraints, variables, score, lambda *a, **k: None, lambda: None)
    return LocalScores.from_masks(variables, sets)


def test_scores_from_a_file(tmp_path):
    data = table(2, 5)
    scores = scores_of(data, "bic")
    scores.save(tmp_path / "x.jkl")
    read = bbn.load_scores(tmp_path / "x.jkl")
    assert read.sets == scores.sets
    assert read.names == scores.names
    assert len(read) == sum(map(len, scores.sets))
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


def test_bytes_that_are_not_utf8_are_not_scores(tmp_path):
    path = tmp_path / "bad.jkl"
    path.write_bytes(b"1\n\xc4\xe9 1\n-1 0\n")
    with pytest.raises(bbn.ParseError, match=r"bad\.jkl:2:1: .*0xc4.*expected UTF-8"):
        bbn.load_scores(path)


def test_wrong_questions():
    data = table(1, 3)
    with pytest.raises(ValueError, match="branch-and-cut"):
        bbn.exact_search(data, method="guess")
    with pytest.raises(TypeError, match="max_parents is 'many'; expected a whole number"):
        bbn.exact_search(data, max_parents="many")
    with pytest.raises(ValueError, match="time_limit"):
        bbn.exact_search(data, time_limit=-1)
    with pytest.raises(bbn.ModelError, match="cycle"):
        bbn.exact_search(data, required=[("X0", "X1"), ("X1", "X0")])
    with pytest.raises(bbn.DataError, match="missing"):
        bbn.exact_search(data.where(data != "s1"))
    with pytest.raises(bbn.BudgetError, match="dynamic programming"):
        bbn.exact_search(data, method="dynamic-programming", memory_limit=10)
    assert list(bbn.exact_search(data[["X0"]]).nodes) == ["X0"]


@pytest.mark.parametrize("method", ["auto", "dynamic-programming", "branch-and-cut"])
def test_scores_that_allow_no_structure(method):
    circle = bbn.LocalScores({"A": {("B",): -1.0}, "B": {("A",): -1.0}, "C": {(): -1.0}})
    with pytest.raises(bbn.ModelError, match="'A', 'B' has a cycle"):
        bbn.exact_search(circle, method=method)
    ring = {name: {(other,): -1.0} for name, other in zip("ABCDE", "BCDEA", strict=True)}
    with pytest.raises(bbn.ModelError, match="has a cycle"):
        bbn.exact_search(bbn.LocalScores(ring), method=method)
    ring["A"][("C",)] = -1.0
    with pytest.raises(bbn.ModelError, match="has a cycle"):
        bbn.exact_search(bbn.LocalScores(ring), method=method)


@pytest.mark.parametrize("method", ["dynamic-programming", "branch-and-cut"])
def test_odd_data(method):
    ask = functools.partial(bbn.exact_search, method=method, max_parents=None)
    constant = ask({"A": ["x"] * 9, "B": ["y"] * 9, "C": list("pqppqpqqp")})
    assert not constant.edges
    copies = ask({name: [0, 1] * 30 for name in "ABCD"})
    assert copies.number_of_edges() == 3
    assert copies.graph["optimal"]
    two = ask({"A": [0, 1], "B": [0, 1], "C": [1, 0]})
    assert two.graph["optimal"]
    names = [f"X{i}" for i in range(4)]
    alone = ask(table(3, 4), forbidden=[(a, b) for a in names for b in names if a != b])
    assert not alone.edges
    assert alone.graph["optimal"]


def test_time_and_memory_that_are_short():
    data = bbn.example("alarm").sample(200, seed=0)
    for limit in (0, 1e-9, 0.05, 0.5):
        graph = bbn.exact_search(data, time_limit=limit)
        assert graph.graph["optimal"] == (graph.graph["gap"] == 0.0)
        assert graph.graph["score"] == pytest.approx(bbn.score(graph, data, "bic"), abs=1e-7)
        assert not graph.graph["interrupted"]
    assert bbn.exact_search(data, max_parents=1, memory_limit=1000).graph["optimal"]


@pytest.mark.parametrize("data", [{"a": [1.5], "b": [2.5], "c": [0.3]}, {"a": [1.5], "b": ["x"]}])
def test_too_few_rows_for_a_variance_are_an_error_of_our_own(data):
    with pytest.raises(bbn.DataError, match=r"1 row cannot tell the variance of 'a'"):
        bbn.exact_search(data)
    assert not bbn.hill_climb(data).edges
