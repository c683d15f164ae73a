"""Scores that tie exactly must not be told apart by rounding: every learner gives the same arcs however it is computed.

Kernels are compiled or not, rows, columns and states come in another order, data are streamed from files by some
threads: the sums that score a family then differ in their last bits, and nothing else may.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from bbn import kernels
from bbn.learning.structure.constraints import ranked, tie_of
from bbn.learning.structure.discrete_scores import SCORES
from tests.support.learning_data import random_data, sample, sample_frame

# small samples have columns that are the same in every row, which pc tells
pytestmark = pytest.mark.filterwarnings("ignore::bbn.RedundantColumnsWarning")
CLIMBS = [
    ("asia", 200, "bic", {}),
    ("asia", 1000, "k2", {"tabu": 10, "restarts": 3}),
    ("sachs", 300, "aic", {}),
    ("sachs", 1000, "bdeu", {"tabu": 5, "plateau": 20}),
    ("child", 500, "bic", {}),
    ("child", 500, "bdeu", {"escapes": 0, "restarts": 4, "seed": 3}),
    ("child", 2000, "bds", {}),
    ("alarm", 200, "fnml", {"escapes": 0}),
    ("alarm", 500, "bic", {}),
    ("alarm", 500, "bdeu", {"tabu": 10}),
    ("alarm", 2000, "bic", {"escapes": 0}),
    ("alarm", 2000, "bdeu", {"escapes": 10}),
    ("alarm", 5000, "k2", {"max_parents": 3}),
    ("insurance", 200, "bic", {"tabu": 20, "escapes": 5}),
    ("insurance", 1000, "bic", {}),
    ("insurance", 1000, "bdeu", {"restarts": 1, "seed": 7, "escapes": 5}),
    ("insurance", 1000, "aic", {"escapes": 3}),
    ("insurance", 5000, "bdeu", {"escapes": 0}),
    ("hailfinder", 500, "bic", {"escapes": 0}),
    ("hailfinder", 500, "bdeu", {"escapes": 0}),
]
"""A network, the number of rows drawn from it, a score, and options of `bbn.hill_climb`."""
OTHERS = {
    "k2": lambda rows: bbn.k2(rows, sorted(rows), score="bdeu", refine=True),
    "k2, random orders": lambda rows: bbn.k2(rows, "random", restarts=4, seed=1),
    "chow-liu": bbn.chow_liu,
    "tan": lambda rows: bbn.tan(rows, min(rows)),
    "ges": bbn.ges,
    "pc": bbn.pc,
    "pc, chi2": lambda rows: bbn.pc(rows, 0.2, "chi2"),
    "pc, mi": lambda rows: bbn.pc(rows, 0.01, "mi", max_condition=2),
    "arc strength": lambda rows: bbn.arc_strength(rows, n=3, seed=0).network(0.4),
}
"""The other learners, as functions of a dict of columns."""


def structural_em(restarts):
    """Structural EM of some rows of asia, a tenth of whose values are missing."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(sample(bbn.example("asia"), 150, 0))
    return bbn.structural_em(rows.mask(rng.random(rows.shape) < 0.1), restarts=restarts).network.graph


def arcs(graph):
    return sorted([a, b] for a, b in graph.edges)


def climb(name, n, score, options, change=lambda rows: rows):
    return arcs(bbn.hill_climb(change(sample(bbn.example(name), n, 1)), score, **options))


@cache
def all_arcs():
    """What every learner finds."""
    found = {
        f"{name} {n} {score} {options}": climb(name, n, score, options) for name, n, score, options in CLIMBS
    }
    for name, n in (("asia", 300), ("alarm", 200), ("insurance", 400)):
        rows = sample(bbn.example(name), n, 2)
        found |= {f"{learner} {name}": arcs(learn(rows)) for learner, learn in OTHERS.items()}
    found["structural em"] = arcs(structural_em(2))
    return found


MODULE = "tests.learning.structure.test_ties"


def all_arcs_elsewhere(**environment):
    """The same in another process."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import json; from {MODULE} import all_arcs; print(json.dumps(all_arcs()))",
        ],
        env={**os.environ, "PYTHONPATH": str(root), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("environment", [{"BBN_PURE": "1"}, {"PYTHONHASHSEED": "17"}], ids=str)
def test_kernels_and_hash_seeds_do_not_matter(environment):
    here, there = all_arcs(), all_arcs_elsewhere(**environment)
    assert {key: there[key] for key in here if there[key] != here[key]} == {}
    assert len(CLIMBS) >= 16
    assert all(here.values())


def rounded_anew(score, seed):
    """The score with an error of a few last bits in every term."""
    rng = np.random.default_rng(seed)

    def term(counts):
        terms = SCORES[score](counts)
        return terms * (1 + rng.uniform(-1e-15, 1e-15, size=len(terms)))

    return term


@pytest.mark.parametrize(("name", "n", "score", "options"), CLIMBS[::2])
def test_errors_of_rounding_do_not_matter(name, n, score, options):
    truth = climb(name, n, score, options)
    for seed in range(3):
        assert climb(name, n, rounded_anew(score, seed), options) == truth


@pytest.mark.parametrize("score", ["bic", "k2"])
def test_errors_of_rounding_do_not_matter_to_k2(score):
    rng = np.random.default_rng(0)
    rows = sample(bbn.example("alarm"), 300, 1)
    twins = {f"{name} again": rows[name] for name in rows}  # every parent ties with its twin
    rows = {name: column for pair in zip(rows.items(), twins.items(), strict=True) for name, column in pair}
    names = rng.permutation(list(rows)).tolist()
    truth = arcs(bbn.k2(rows, names, 3, score, refine=True))
    for seed in range(3):
        assert arcs(bbn.k2(rows, names, 3, rounded_anew(score, seed), refine=True)) == truth
    for parent, child in truth:
        twin = (
            f"{parent} again"
            if parent in rows and not parent.endswith(" again")
            else parent[: -len(" again")]
        )
        if [twin, child] not in truth and twin != child:
            assert names.index(parent) < names.index(twin) or names.index(twin) > names.index(child)


@pytest.mark.parametrize("test", ["g2", "chi2", "mi"])
def test_errors_of_rounding_do_not_matter_to_pc(test, monkeypatch):
    rows = pd.DataFrame(sample(bbn.example("asia"), 200, 5))
    rows = rows.assign(**{f"{name}2": rows[name] for name in rows})  # each separates what its twin does
    truth = bbn.pc(rows, 0.1, test)
    exact = kernels.score.independence
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def inexact(*asked, rng=rng):
            statistics, freedom = exact(*asked)
            return np.maximum(statistics + rng.uniform(-1e-11, 1e-11, size=len(statistics)), 0.0), freedom

        monkeypatch.setattr(kernels.score, "independence", inexact)
        graph = bbn.pc(rows, 0.1, test)
        assert arcs(graph) == arcs(truth)
        assert graph.graph["sepsets"] == truth.graph["sepsets"]


def other_rows(rows):
    order = np.random.default_rng(0).permutation(len(next(iter(rows.values()))))
    return {name: [column[i] for i in order] for name, column in rows.items()}


def other_columns(rows):
    return {name: rows[name] for name in np.random.default_rng(0).permutation(list(rows)).tolist()}


def other_states(rows):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            name: pd.Categorical(column, categories=rng.permutation(sorted(set(column))).tolist())
            for name, column in rows.items()
        }
    )


@pytest.mark.parametrize("change", [other_rows, other_columns, other_states])
def test_the_order_of_rows_columns_and_states_does_not_matter(change):
    for setting in CLIMBS[::3]:
        assert climb(*setting, change) == climb(*setting), setting
    for network, n, seed in (
        *(("insurance", n, 2) for n in (100, 300)),
        *(("alarm", n, seed) for n in (60, 200) for seed in range(4)),
        *(("child", 50, seed) for seed in range(4)),
    ):
        rows = sample(bbn.example(network), n, seed)
        for name in ("k2", "chow-liu", "tan", "pc", "ges"):
            assert arcs(OTHERS[name](change(rows))) == arcs(OTHERS[name](rows)), (network, name)


def test_weights_do_not_matter():
    """Every row twice, with half its weight: the same counts, but summed as floats."""
    for name, n, score, options in CLIMBS[::3]:
        rows = sample(bbn.example(name), n, 1)
        twice = {name: column * 2 for name, column in rows.items()}
        if score != "fnml":  # which takes whole weights only
            graph = bbn.hill_climb(twice, score, weights=np.full(2 * n, 0.5), **options)
            assert arcs(graph) == climb(name, n, score, options), (name, n, score)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_streams_and_threads_do_not_matter(n_jobs, tmp_path):
    for name, n, score, options in (CLIMBS[8], CLIMBS[15]):
        frame = sample_frame(bbn.example(name), n, 1)
        for part in range(4):
            frame[part::4].to_parquet(tmp_path / f"{name}{part}.parquet")
        stream = bbn.open_data(
            sorted(map(str, tmp_path.glob(f"{name}*.parquet"))), n_jobs=n_jobs, batch_rows=100
        )
        assert arcs(bbn.hill_climb(stream, score, **options)) == arcs(bbn.hill_climb(frame, score, **options))
        assert arcs(bbn.chow_liu(stream)) == arcs(bbn.chow_liu(frame))
        assert arcs(bbn.pc(stream, max_condition=1)) == arcs(bbn.pc(frame, max_condition=1))


def test_of_equal_changes_the_first_by_the_rule_is_made():
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=100).tolist()
    copies = {"C": a, "A": a, "B": a}
    # each pair gains the same both ways: arcs into C, the last by name, come first, from A, the first by name
    assert arcs(bbn.hill_climb(copies, "bic", escapes=0, max_iter=1)) == [["A", "C"]]
    # then all three are joined the cheapest way, A being the parent of both
    assert arcs(bbn.hill_climb(copies, "bic", escapes=0)) == [["A", "B"], ["A", "C"]]
    assert arcs(bbn.k2(copies, ["B", "C", "A"])) == [["B", "A"], ["B", "C"]]
    assert arcs(bbn.chow_liu(copies)) == [["A", "B"], ["A", "C"]]


def test_a_walk_among_equal_scores_ends():
    """Copies of one column: every tree over them, pointing any way, scores the same."""
    column = np.random.default_rng(0).integers(3, size=50).tolist()
    rows = {f"v{i}": column for i in range(8)}
    graph = bbn.hill_climb(rows, "bic", tabu=3, plateau=30, restarts=3)
    assert nx.is_tree(graph.to_undirected())
    assert graph.graph["score"] == pytest.approx(bbn.score(graph, rows, "bic"), rel=1e-12)


def test_a_start_too_large_to_count_is_left():
    rng = np.random.default_rng(0)
    rows = {f"v{i}": rng.integers(90, size=300).tolist() for i in range(6)}
    start = [(f"v{i}", "v5") for i in range(4)]
    graph = bbn.hill_climb(rows, "bic", start=start, escapes=0)
    assert np.isfinite(graph.graph["score"])


class TestRules:
    def test_a_chain_of_ties_ties(self):
        values = np.array([0.0, 3.0, 1.8, 2.4, -np.inf, 9.0, -np.inf])
        assert ranked(values, 0.7).tolist() == [5, 1, 2, 3, 0, 4, 6]
        assert ranked(values, 0.1).tolist() == [5, 1, 3, 2, 0, 4, 6]
        assert ranked(values, 0.7, last_first=True).tolist() == [5, 3, 2, 1, 0, 6, 4]
        assert ranked(np.empty(0), 0.1).tolist() == []

    @pytest.mark.parametrize("score", ["bic", "bdeu", bbn.BDeu(1e6), bbn.BDeu(1e12), "k2", "log-likelihood"])
    def test_what_ties_is_far_above_rounding(self, score):
        """Equivalent structures, for scores that know them, and states in another order, for all."""
        for seed in range(30):
            rng = np.random.default_rng(seed)
            rows = random_data(rng, int(rng.integers(20, 3000)), rng.integers(2, 9, size=3).tolist())
            n = len(rows["A"])
            chain = [("A", "B"), ("B", "C")]
            once = bbn.score(chain, rows, score)
            assert abs(bbn.score(chain, other_states(rows), score) - once) < tie_of(n) / 50
            if score != "k2":
                for other in ([("B", "A"), ("B", "C")], [("C", "B"), ("B", "A")]):
                    assert abs(bbn.score(other, rows, score) - once) < tie_of(n) / 50
