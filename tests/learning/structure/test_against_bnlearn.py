"""Hill climbing beside bnlearn's searches, which are written anew from their description, and beside every DAG."""

from __future__ import annotations

import pytest

import bbn
from tests.benchmarks.structures import bnlearn, shuffled
from tests.support.bnlearn_searches import hc, tabu
from tests.support.every_dag import dags, family_terms, table


@pytest.mark.parametrize(("name", "n_rows"), [("child", 500), ("alarm", 1000)])
def test_plain_climbing_is_that_of_bnlearn_where_nothing_ties(name, n_rows):
    # equivalent structures differ in K2, so no rule for ties comes in
    data, _ = shuffled(bbn.example(name), n_rows, 11)
    plain = bbn.hill_climb(data, "k2", escapes=0, restarts=0)
    assert set(plain.edges) == set(bnlearn(hc)(data, "k2").edges)


def test_large_families_are_found_as_bnlearn_finds_them():
    # five parents at most would cost 186 nats; some columns are nearly copies and tie, so the arcs may differ
    data, _ = shuffled(bbn.example("win95pts"), 2000, 12)
    plain = bbn.hill_climb(data, "k2", escapes=0, restarts=0)
    theirs = bnlearn(hc)(data, "k2")
    assert max(dict(theirs.in_degree()).values()) == 8
    assert plain.graph["score"] == pytest.approx(bbn.score(theirs, data, "k2"), abs=1e-6)


@pytest.mark.parametrize("score", ["bdeu", "bic"])
@pytest.mark.parametrize("name", ["child", "insurance", "alarm", "water", "win95pts"])
def test_the_default_scores_no_less_than_bnlearns_tabu_search(name, score):
    data, _ = shuffled(bbn.example(name), 2000, 12)
    theirs = bbn.score(bnlearn(tabu)(data, score), data, score)
    assert bbn.hill_climb(data, score).graph["score"] >= theirs - 1e-6


def test_tabu_goes_on_where_hc_stops():
    data, _ = shuffled(bbn.example("alarm"), 2000, 13)
    first, further = (bbn.score(bnlearn(way)(data, "bdeu"), data, "bdeu") for way in (hc, tabu))
    assert further > first + 1


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_of_five_variables_the_best_of_all_structures_is_found(score):
    every = dags(5)
    assert len(every) == 29_281
    for seed in range(15):
        data = table(seed, 5, rows=200)
        _, terms = family_terms(data, score)
        best = terms[range(5), every].sum(axis=1).max()
        assert bbn.hill_climb(data, score).graph["score"] == pytest.approx(best, abs=1e-8)
