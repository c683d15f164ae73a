"""Gradient ascent: against finite differences, against EM and maximum likelihood, and the textbook's bare rule."""

from __future__ import annotations

import warnings

import networkx as nx
import numpy as np
import pytest

import bbn
from tests.learning.incomplete.test_em import (
    drop_empty,
    hide,
    random_network,
    random_rows,
    sample,
    slow_expected_counts,
)


def log_likelihood(tables, net, rows):
    """ln P(rows) with tables that need not sum to one, by enumerating completions, with dicts."""
    import itertools
    import math

    names = [v.name for v in net.variables]
    position = {v.name: {s: k for k, s in enumerate(v.states)} for v in net.variables}
    total = 0.0
    for row in rows:
        p_row = 0.0
        for states in itertools.product(
            *([row[v.name]] if row.get(v.name) is not None else v.states for v in net.variables)
        ):
            full = dict(zip(names, states, strict=True))
            p = 1.0
            for name in names:
                p *= tables[name][tuple(position[q][full[q]] for q in (*net.parents(name), name))]
            p_row += p
        total += math.log(p_row)
    return total


@pytest.mark.parametrize("seed", range(100))
def test_the_gradient_equals_central_differences(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 4)
    rows = random_rows(rng, net, int(rng.integers(1, 5)), 0.4)
    found = bbn.gradient(net, rows)
    tables = {name: net[name].table.copy() for name in net.names}
    for name in net.names:
        assert found[name].shape == tables[name].shape
        entries = list(np.ndindex(tables[name].shape))
        for index in (entries[i] for i in rng.choice(len(entries), min(4, len(entries)), replace=False)):
            w = tables[name][index]
            h = 1e-5 * max(w, 1e-2)
            sides = []
            for sign in (1, -1):
                tables[name][index] = w + sign * h
                sides.append(log_likelihood(tables, net, rows))
            tables[name][index] = w
            difference = (sides[0] - sides[1]) / (2 * h)
            assert found[name][index] == pytest.approx(difference, rel=1e-6, abs=1e-6)


def test_an_entry_of_zero_has_its_gradient():
    x, y = bbn.Variable("X", ["a", "b"]), bbn.Variable("Y", ["c", "d"])
    net = bbn.BayesianNetwork([bbn.CPT(x, table=[1.0, 0.0]), bbn.CPT(y, [x], [[0.5, 0.5], [0.25, 0.75]])])
    found = bbn.gradient(net, {"Y": ["c"]})
    # P(c) = w_a / 2 + w_b / 4, so d ln P / d w_b = (1/4) / (1/2)
    np.testing.assert_allclose(found["X"], [1.0, 0.5])
    np.testing.assert_allclose(found["Y"], [[2.0, 0.0], [0.0, 0.0]])


def test_the_gradient_takes_weights_and_absent_columns():
    net = bbn.example("flu")
    data = sample(net, 20)
    times = np.arange(20) % 3
    repeated = data.loc[data.index.repeat(times)]
    for name, value in bbn.gradient(net, data, weights=times).items():
        np.testing.assert_allclose(value, bbn.gradient(net, repeated)[name], rtol=1e-12)
    nothing = bbn.gradient(net, data[["Flu"]].assign(Nose=None))
    np.testing.assert_allclose((nothing["Nose"] * net["Nose"].table).sum(), 20)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("prior", [None, bbn.BDeu(3)])
def test_the_objective_never_falls_unless_the_step_is_fixed(seed, prior):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 6)
    rows = random_rows(rng, net, 30, 0.4)
    result = bbn.fit_gradient(net, rows, drop_empty(net, rows), prior, max_iter=100)
    assert np.diff(result.objectives).min() >= -1e-9
    assert result.objectives[-1] > result.objectives[0]
    assert slow_expected_counts(result.network, rows)[1] == pytest.approx(result.log_likelihood, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_complete_data_give_the_maximum_likelihood(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 4)
    rows = random_rows(rng, net, int(rng.integers(3, 200)), 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = bbn.fit(net, rows)
    em = bbn.fit_em(net, rows)
    result = bbn.fit_gradient(net, rows, tol=1e-14)
    for name in net.names:
        np.testing.assert_allclose(em.network[name].table, expected[name].table, atol=1e-12)
        np.testing.assert_allclose(result.network[name].table, expected[name].table, atol=1e-5)
    assert result.log_likelihood == pytest.approx(em.log_likelihood, rel=1e-9)


def test_em_and_gradient_ascent_meet_where_the_likelihood_has_one_peak():
    # One binary variable that is missing now and then: the likelihood is concave.
    net = bbn.example("flu")
    data = hide(sample(net, 400, 1)[["Flu", "Allergy"]], 0.3)
    start = net.subnetwork(["Flu", "Allergy"])
    em = bbn.fit_em(start, data, tol=1e-13).network
    up = bbn.fit_gradient(start, data, tol=1e-14).network
    for name in start.names:
        np.testing.assert_allclose(up[name].table, em[name].table, atol=1e-6)


def test_a_hidden_variable_is_climbed_as_high_as_by_em():
    net = bbn.example("flu")
    data = sample(net, 1000, seed=1).drop(columns="Sinus")
    options = {"hidden": {"Sinus": ["yes", "no"]}, "seed": 5, "max_iter": 3000}
    em = bbn.fit_em(net.graph, data, tol=1e-10, **options)
    up = bbn.fit_gradient(net.graph, data, tol=1e-10, **options)
    assert up.log_likelihoods[0] == em.log_likelihoods[0]
    assert up.log_likelihood == pytest.approx(em.log_likelihood, rel=1e-4)


def one_variable(counts):
    graph = nx.DiGraph()
    graph.add_node("X", states=list(range(len(counts))))
    return graph, {"X": [k for k, n in enumerate(counts) for _ in range(n)]}


@pytest.mark.parametrize("learning_rate", [0.001, 0.01, 0.1, None])
def test_the_textbook_rule_ends_at_square_roots_and_below_the_start(learning_rate):
    graph, data = one_variable([90, 9, 1])
    best = bbn.fit(graph, data)
    result = bbn.fit_gradient(best, data, rule="textbook", learning_rate=learning_rate, max_iter=20_000)
    roots = np.sqrt([90, 9, 1])
    np.testing.assert_allclose(result.network["X"].table, roots / roots.sum(), atol=1e-6)
    np.testing.assert_allclose(result.network["X"].table, [0.703, 0.222, 0.074], atol=1e-3)
    assert result.log_likelihood < result.log_likelihoods[0] - 10
    projected = bbn.fit_gradient(best, data)
    assert projected.log_likelihood >= projected.log_likelihoods[0]


def test_a_fixed_step_is_the_projected_rule():
    _, data = one_variable([6, 3, 1])
    x = bbn.Variable("X", [0, 1, 2])
    start = bbn.BayesianNetwork([bbn.CPT(x, table=[0.2, 0.3, 0.5])])
    result = bbn.fit_gradient(start, data, learning_rate=0.001, max_iter=1)
    g = np.array([6, 3, 1]) / np.array([0.2, 0.3, 0.5])
    w = np.array([0.2, 0.3, 0.5]) + 0.001 * (g - g.mean())
    np.testing.assert_allclose(result.network["X"].table, w / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(
        bbn.fit_gradient(start, data, learning_rate=0.001).network["X"].table, [0.6, 0.3, 0.1], atol=1e-6
    )


def test_batches_come_close():
    net = bbn.example("asia")
    data = hide(sample(net, 3000), 0.2)
    best = bbn.fit_em(net.graph, data, prior=bbn.BDeu(1), seed=0).objectives[-1]
    result = bbn.fit_gradient(net.graph, data, prior=bbn.BDeu(1), batch_size=300, seed=0, max_iter=30)
    assert result.objectives[-1] > best - 60
    assert result == bbn.fit_gradient(net.graph, data, prior=bbn.BDeu(1), batch_size=300, seed=0, max_iter=30)


def test_fixed_and_tied_tables():
    net = bbn.example("flu")
    data = hide(sample(net, 300), 0.3)
    result = bbn.fit_gradient(net, data, fixed=["Flu"], tied=[["Headache", "Nose"]])
    tied = bbn.fit_em(net, data, fixed=["Flu"], tied=[["Headache", "Nose"]], tol=1e-12)
    assert result.network["Flu"] == net["Flu"]
    assert np.diff(result.objectives).min() >= -1e-9
    assert result.log_likelihood <= tied.log_likelihood + 1e-3


def test_a_checkpoint_is_gone_on_from(tmp_path):
    net = bbn.example("asia")
    data = hide(sample(net, 200), 0.3)
    whole = bbn.fit_gradient(net.graph, data, seed=1, max_iter=40, tol=0.0)
    bbn.fit_gradient(net.graph, data, seed=1, max_iter=40, tol=0.0, checkpoint=tmp_path / "g")
    assert bbn.fit_gradient(net.graph, data, seed=1, max_iter=40, tol=0.0, checkpoint=tmp_path / "g") == whole


def test_bad_arguments():
    graph, data = one_variable([2, 1])
    for options in ({"rule": "newton"}, {"learning_rate": 0}, {"learning_rate": -1.0}, {"batch_size": 0}):
        with pytest.raises(ValueError):
            bbn.fit_gradient(graph, data, **options)
