"""The posterior over structures against every DAG, and chains against the sums."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from scipy.special import logsumexp

import bbn
from tests.support.every_dag import arc_shares, dags, family_terms, table, totals


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_every_dag_of_four_variables(seed, score):
    data = table(seed, 4)
    names, terms = family_terms(data, score)
    found = bbn.arc_posterior(data, score=score)
    assert found.method == "exact"
    assert list(found.names) == names
    np.testing.assert_allclose(found.probabilities, arc_shares(terms), atol=1e-9)
    assert found.log_evidence == pytest.approx(logsumexp(totals(terms)), abs=1e-8)


@pytest.mark.slow
def test_every_dag_of_five_variables_on_200_data_sets():
    for seed in range(200):
        data = table(1000 + seed, 5, rows=30 + seed)
        score = ("bdeu", "bic")[seed % 2]
        found = bbn.arc_posterior(data, score=score, max_parents=None)
        np.testing.assert_allclose(
            found.probabilities, arc_shares(family_terms(data, score)[1]), rtol=0, atol=1e-9
        )


def test_a_prior_over_orders_favours_dags_that_agree_with_many():
    data = table(0, 4)
    uniform, ordered = bbn.arc_posterior(data), bbn.arc_posterior(data, prior="orders")
    assert ordered.probabilities.sum() < uniform.probabilities.sum()


def test_constraints_hold():
    data = table(1, 5)
    found = bbn.arc_posterior(data, required=[("X0", "X1")], forbidden=[("X2", "X3")], max_parents=2)
    assert found["X0", "X1"] == pytest.approx(1.0, abs=1e-12)
    assert found["X2", "X3"] == 0.0
    assert found.probabilities.sum(axis=0).max() <= 2 + 1e-9


@pytest.mark.parametrize("name", ["asia", pytest.param("sachs", marks=pytest.mark.slow)])
def test_chains_agree_with_the_sums(name):
    data = bbn.example(name).sample(1000, seed=0)
    exact = bbn.arc_posterior(data, "exact", max_parents=3)
    chains = bbn.arc_posterior(data, "mcmc", max_parents=3, n_samples=300_000, seed=1)
    assert chains.method == "mcmc"
    assert np.abs(chains.probabilities - exact.probabilities).max() < 0.02
    assert (chains.ess > 100).all()
    assert chains.r_hat.shape == chains.std_error.shape == exact.probabilities.shape


@pytest.mark.slow
def test_error_bars_cover():
    data = bbn.example("asia").sample(300, seed=2)
    exact = bbn.arc_posterior(data, "exact", max_parents=3).probabilities
    arcs = ~np.eye(8, dtype=bool)
    within = []
    for seed in range(12):
        chains = bbn.arc_posterior(data, "mcmc", max_parents=3, n_samples=10_000, seed=seed)
        off = np.abs(chains.probabilities - exact)[arcs]
        within.append([(off <= k * chains.std_error[arcs]).mean() for k in (1, 2, 3)])
    one, two, three = np.mean(within, axis=0)
    assert one > 0.6
    assert two > 0.92
    assert three > 0.98


def test_chains_do_not_depend_on_threads(monkeypatch):
    data = bbn.example("asia").sample(200, seed=2)
    first = bbn.arc_posterior(data, "mcmc", max_parents=2, n_samples=2000, seed=1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert bbn.arc_posterior(data, "mcmc", max_parents=2, n_samples=2000, seed=1) == first
    assert bbn.arc_posterior(data, "mcmc", max_parents=2, n_samples=2000, seed=2) != first


def test_steps_double_until_the_chains_agree():
    data = bbn.example("cancer").sample(200, seed=2)
    chains = bbn.arc_posterior(data, "mcmc")
    exact = bbn.arc_posterior(data, "exact")
    assert chains.std_error.max() < 0.005
    assert np.abs(chains.probabilities - exact.probabilities).max() < 0.02


def test_chains_keep_to_constraints():
    data = table(1, 5)
    found = bbn.arc_posterior(
        data, "mcmc", required=[("X0", "X1")], forbidden=[("X2", "X3")], max_parents=2, n_samples=4000
    )
    exact = bbn.arc_posterior(data, required=[("X0", "X1")], forbidden=[("X2", "X3")], max_parents=2)
    assert found["X0", "X1"] == 1.0
    assert found["X2", "X3"] == 0.0
    assert np.abs(found.probabilities - exact.probabilities).max() < 0.1
    assert all(g.has_edge("X0", "X1") for g in found.sample(20, seed=0))


def test_short_chains_say_that_they_disagree():
    data = bbn.example("child").sample(500, seed=0)
    with pytest.warns(bbn.MixingWarning, match="more n_samples"):
        bbn.arc_posterior(data, "mcmc", max_parents=2, n_samples=400, seed=0)


def test_drawn_structures_have_the_shares_of_the_arcs():
    data = table(6, 5)
    found = bbn.arc_posterior(data)
    drawn = found.sample(3000, seed=0)
    for (a, b), share in (((a, b), found[a, b]) for a in found.names for b in found.names if a != b):
        seen = sum(g.has_edge(a, b) for g in drawn) / 3000
        assert abs(seen - share) < 5 * math.sqrt(share * (1 - share) / 3000) + 1e-3
    assert [sorted(g.edges) for g in found.sample(5, seed=3)] == [
        sorted(g.edges) for g in found.sample(5, seed=3)
    ]


def test_a_query_averaged_over_structures():
    # over all DAGs of three variables, each with the tables of its posterior mean
    data = table(9, 3, rows=30)
    found = bbn.arc_posterior(data)
    names, terms = family_terms(data, "bdeu")
    logs = totals(terms)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    evidence = {names[1]: data[names[1]].iloc[0]}
    expected = 0.0
    for weight, parents in zip(weights, dags(3), strict=True):
        graph = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from((names[p], names[i]) for i in range(3) for p in range(3) if parents[i] >> p & 1)
        expected = (
            expected + weight * bbn.fit(graph, data, prior=bbn.BDeu(1)).query(names[0], evidence).values
        )
    answer = found.average(names[0], evidence, n=4000, seed=0)
    np.testing.assert_allclose(answer.values, expected, atol=0.02)
    assert answer.values.sum() == pytest.approx(1.0)


def test_tables_and_graphs():
    found = bbn.arc_posterior(table(0, 4))
    frame = found.to_frame()
    assert list(frame.columns) == ["from", "to", "probability", "std_error"]
    assert len(frame) == 12
    assert frame.probability.is_monotonic_decreasing
    graph = found.network(0.3)
    assert all(found[a, b] >= 0.3 for a, b in graph.edges)
    assert found.edge("X0", "X1") == found["X0", "X1"] + found["X1", "X0"]
    with pytest.raises(KeyError, match="'X9'"):
        found["X0", "X9"]


def test_wrong_questions():
    data = table(1, 3)
    with pytest.raises(ValueError, match="'auto', 'exact' or 'mcmc'"):
        bbn.arc_posterior(data, "guess")
    with pytest.raises(ValueError, match="'dags' or 'orders'"):
        bbn.arc_posterior(data, prior="flat")
    with pytest.raises(bbn.BudgetError, match="mcmc"):
        bbn.arc_posterior(bbn.example("alarm").sample(20, seed=0), "exact", max_parents=1)
    with pytest.raises(bbn.BudgetError, match="subsets of 3 variables"):
        bbn.arc_posterior(data, memory_limit=10)
    with pytest.raises(ValueError, match="n_samples"):
        bbn.arc_posterior(data, "mcmc", n_samples=5)
