"""Searches that are stopped, by Ctrl-C or by a time limit, give the best so far and say so; parts of others raise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.threads import all_or_nothing
from bbn.kernels.watch import Watch, watched_by

NET = bbn.example("asia")
ROWS = NET.sample(500, seed=0)
HOLES = NET.sample(300, seed=0, missing=0.1)


class StopAt(Watch):
    """Stops what it watches at the n-th time that it asks whether to go on; a limit also each time after that."""

    def __init__(self, n: int, error: BaseException) -> None:
        super().__init__()
        self.left, self.error = n, error

    def check(self) -> None:
        self.left -= 1
        if self.left == 0 or (self.left < 0 and isinstance(self.error, bbn.TimeLimitError)):
            raise self.error


STOPS = {"Ctrl-C": KeyboardInterrupt(), "time": bbn.TimeLimitError("the time is up")}

SCORED: dict[str, Callable[..., nx.DiGraph]] = {
    "hill_climb": lambda **options: bbn.hill_climb(ROWS, "bic", **options),
    "tabu": lambda **options: bbn.hill_climb(ROWS, "bic", tabu=5, escapes=0, restarts=0, **options),
    "k2": lambda **options: bbn.k2(ROWS, "random", score="bic", refine=True, **options),
    "ges": lambda **options: bbn.ges(ROWS, "bic", **options),
}
SEARCHES = {**SCORED, "pc": lambda **options: bbn.pc(ROWS, **options)}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("search", SCORED)
def test_a_stopped_search_gives_the_best_so_far(search, stop):
    scores = []
    for n in (2, 6, 12):
        with watched_by(StopAt(n, STOPS[stop])):
            graph = SCORED[search]()
        assert graph.graph["interrupted"]
        dag = bbn.to_dag(graph)
        assert nx.is_directed_acyclic_graph(dag)
        assert graph.graph["score"] == pytest.approx(bbn.score(dag, ROWS, "bic"), rel=1e-9)
        scores.append(graph.graph["score"])
    whole = SCORED[search]()
    assert not whole.graph["interrupted"]
    assert sorted(scores) == scores
    assert scores[0] < whole.graph["score"]
    assert scores[-1] <= whole.graph["score"] + 1e-6


@pytest.mark.parametrize("stop", STOPS)
def test_pc_that_is_stopped_keeps_what_no_test_took_away(stop):
    whole = bbn.pc(ROWS)
    with watched_by(StopAt(2, STOPS[stop])):
        part = bbn.pc(ROWS, forbidden=[("asia", "smoke")])
    assert part.graph["interrupted"]
    assert set(whole.to_undirected().edges) <= set(part.to_undirected().edges)
    assert part.graph["n_tests"] < whole.graph["n_tests"]
    both = [(a, b) for a, b in part.edges if part.has_edge(b, a)]
    directed = [arc for arc in part.edges if arc not in both]
    assert directed in ([], [("smoke", "asia")])


@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_has_a_time_limit(search, monkeypatch):
    assert SEARCHES[search](time_limit=1e-9).graph["interrupted"]
    assert nx.utils.graphs_equal(SEARCHES[search](time_limit=3600), SEARCHES[search]())
    with pytest.raises(ValueError, match="time_limit is -1"):
        SEARCHES[search](time_limit=-1)
    monkeypatch.setenv("BBN_TIME_LIMIT", "1e-9")
    assert SEARCHES[search]().graph["interrupted"]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_that_is_of_no_use_in_part_raises(search, stop):
    with pytest.raises(type(STOPS[stop])), all_or_nothing(), watched_by(StopAt(2, STOPS[stop])):
        SEARCHES[search]()


OTHERS: dict[str, Callable[..., Any]] = {
    "cross_validate": lambda **options: bbn.cross_validate(ROWS, k=3, seed=0, **options),
    "learn, pc": lambda **options: bbn.learn(ROWS, method="pc", **options),
    "learn, target": lambda **options: bbn.learn(ROWS, target="dysp", **options),
    "arc_strength": lambda **options: bbn.arc_strength(ROWS, n=3, seed=0, **options),
    "structural_em": lambda **options: bbn.structural_em(HOLES, **options),
}


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("work", [*OTHERS, "classifier", "classifier with holes"])
def test_a_part_that_is_stopped_stops_the_whole(work, stop):
    """Before anything is whole there is nothing to give: no result that holds half a structure."""
    classifier = bbn.BayesNetClassifier(learner="hill-climb")
    table = ROWS if work == "classifier" else HOLES.dropna(subset="dysp")
    fits = {
        **OTHERS,
        work: OTHERS.get(work, lambda: classifier.fit(table.drop(columns="dysp"), table["dysp"])),
    }
    with pytest.raises(type(STOPS[stop])), watched_by(StopAt(3, STOPS[stop])):
        fits[work]()


@pytest.mark.parametrize("stop", STOPS)
def test_arc_strength_counts_whole_samples_alone(stop, monkeypatch):
    asked = []

    def learner(rows):
        asked.append(rows)
        if len(asked) < 3:
            return bbn.hill_climb(rows)
        with watched_by(StopAt(2, STOPS[stop])):
            return bbn.hill_climb(rows)

    found = bbn.arc_strength(ROWS, learner, n=5, seed=0)
    expected = bbn.arc_strength(ROWS, n=2, seed=0)
    assert found.interrupted
    assert (found.n, found.strengths) == (2, expected.strengths)


@pytest.mark.parametrize("stop", STOPS)
def test_structural_em_gives_its_last_whole_round(stop):
    whole = bbn.structural_em(HOLES)
    assert whole.n_iter > 0
    n = 3
    while True:  # later and later, until a round has ended
        try:
            with watched_by(StopAt(n, STOPS[stop])):
                part = bbn.structural_em(HOLES)
            break
        except type(STOPS[stop]):
            n += 10
    assert part.reason == {"Ctrl-C": "interrupted", "time": "time_limit"}[stop]
    done = len(part.log_likelihoods)
    assert done > 0
    assert part.log_likelihoods.tolist() == whole.log_likelihoods[:done].tolist()


def test_exact_search_is_stopped_while_it_looks_for_a_start():
    """Ctrl-C while hill climbing looks for a structure to beat ends the whole search, not that part alone."""
    rows = bbn.example("alarm").sample(300, seed=0)
    kept = list(rows.columns)[:24]
    n = 5
    while True:
        with watched_by(StopAt(n, KeyboardInterrupt())):
            graph = bbn.exact_search(rows[kept], max_parents=2, method="branch-and-cut")
        assert graph.graph["interrupted"]
        assert not graph.graph["optimal"]
        if graph.graph["gap"] < np.inf:  # by now all sets are scored
            break
        n += 40


@pytest.mark.parametrize("work", [*OTHERS, "arc_posterior", "chow_liu", "tan"])
def test_other_learners_have_a_time_limit_too(work, monkeypatch):
    more = {
        "arc_posterior": lambda **options: bbn.arc_posterior(ROWS, **options),
        "chow_liu": lambda **options: bbn.chow_liu(ROWS, **options),
        "tan": lambda **options: bbn.tan(ROWS, "dysp", **options),
    }
    learn = {**OTHERS, **more}[work]
    with pytest.raises(ValueError, match="time_limit is 0"):
        learn(time_limit=0)
    monkeypatch.setenv("BBN_TIME_LIMIT", "never")
    with pytest.raises(ValueError, match="BBN_TIME_LIMIT is 'never'"):
        learn()


def test_learn_tells_that_the_search_was_stopped():
    result = bbn.learn(ROWS, time_limit=1e-9)
    assert "the search was stopped: the structure is the best found by then" in result.report
    assert "stopped" not in bbn.learn(ROWS).report
