"""Learning Gaussians: against least squares, scikit-learn, and a likelihood that sums everything by brute force."""

from __future__ import annotations

import itertools
import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB

import bbn
from bbn.data import Block, code
from bbn.inference.rows import expected_counts
from bbn.kernels import gaussians as kernels
from bbn.kernels.pure import gaussians as gaussians_py
from bbn.learning.gaussian import e_step as mixed
from tests.support.rational_gaussians import Rational

LEAVES = [("Y", "a"), ("Y", "b"), ("Y", "c")]


# An independent likelihood: every setting of the discrete variables, and the joint Gaussian in each.


def brute_log_likelihood(net, rows):
    """Σ ln p(row), by summing over all discrete variables and integrating missing numbers out."""
    discrete = [v for v in net.variables if v.name not in net.continuous]
    names = list(net.continuous)
    x = np.array([[row[name] for name in names] for row in rows])
    patterns, which = np.unique(np.isnan(x), axis=0, return_inverse=True)
    terms = []
    for states in itertools.product(*(v.states for v in discrete)):
        setting = dict(zip([v.name for v in discrete], states, strict=True))
        logs = np.full(len(rows), sum((np.log(probability(net[v.name], setting)) for v in discrete), 0.0))
        mean, cov = joint_gaussian(net, names, setting)
        for k, gone in enumerate(patterns):
            here, seen = which.ravel() == k, np.flatnonzero(~gone)
            if len(seen):
                normal = stats.multivariate_normal(mean[seen], cov[np.ix_(seen, seen)])
                logs[here] += normal.logpdf(x[np.ix_(here, seen)])
        for r, row in enumerate(rows):
            if any(row[name] is not None and row[name] != s for name, s in setting.items()):
                logs[r] = -np.inf
        terms.append(logs)
    return np.logaddexp.reduce(terms).sum()


def probability(cpt, setting):
    index = tuple(v.code(setting[v.name]) for v in (*cpt.parents, cpt.variable))
    return cpt.table[index]


def joint_gaussian(net, names, setting):
    """Mean and covariance: x = b + W x + e, so x = (I − W)⁻¹ (b + e)."""
    d = len(names)
    b, w, v = np.zeros(d), np.zeros((d, d)), np.zeros(d)
    for i, name in enumerate(names):
        gaussian = net[name]
        at = tuple(p.code(setting[p.name]) for p in gaussian.discrete_parents)
        b[i], v[i] = gaussian.means[at], gaussian.variances[at]
        for k, parent in enumerate(gaussian.continuous_parents):
            w[i, names.index(parent.name)] = gaussian.weights[at][k]
    inverse = np.linalg.inv(np.eye(d) - w)
    return inverse @ b, inverse @ np.diag(v) @ inverse.T


def random_network(seed, chain=True):
    """Two or three discrete variables and three to five Gaussians among and below them."""
    rng = np.random.default_rng(seed)
    discrete, conditionals = [], []
    for i in range(rng.integers(1, 4)):
        variable = bbn.Variable(f"D{i}", [f"s{k}" for k in range(rng.integers(2, 4))])
        parents = [p for p in discrete if rng.random() < 0.5]
        shape = [p.card for p in parents]
        conditionals.append(
            bbn.CPT(variable, parents, rng.dirichlet(np.full(variable.card, 3.0), size=shape or None))
        )
        discrete.append(variable)
    continuous = []
    for i in range(rng.integers(2, 5)):
        some = [p for p in discrete if rng.random() < 0.5]
        above = [p for p in continuous if chain and rng.random() < 0.5]
        parents = [*some, *above]
        rng.shuffle(parents)
        shape = [p.card for p in parents if p in some]
        variable = bbn.Continuous(f"X{i}")
        conditionals.append(
            bbn.Gaussian(
                variable,
                parents,
                means=rng.normal(scale=3.0, size=shape),
                variances=rng.uniform(0.3, 2.0, size=shape),
                weights=rng.normal(size=(*shape, len(above))) if above else None,
                tied_variance=False,
            )
        )
        continuous.append(variable)
    return bbn.BayesianNetwork(conditionals)


def random_rows(net, n, seed, holes=0.3):
    """Rows drawn by hand, with holes of both kinds."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row = {}
        for name in net.names:
            conditional = net[name]
            if name in net.continuous:
                at = tuple(p.code(row[p.name]) for p in conditional.discrete_parents)
                mean = conditional.means[at] + sum(
                    w * row[p.name]
                    for w, p in zip(conditional.weights[at], conditional.continuous_parents, strict=True)
                )
                row[name] = rng.normal(mean, np.sqrt(conditional.variances[at]))
            else:
                at = tuple(p.code(row[p.name]) for p in conditional.parents)
                row[name] = conditional.variable.states[
                    rng.choice(conditional.variable.card, p=conditional.table[at])
                ]
        rows.append(row)
    for row in rows:
        for name in net.names:
            if rng.random() < holes:
                row[name] = np.nan if name in net.continuous else None
    return rows


def columns(net, rows):
    return {name: [row[name] for row in rows] for name in net.names}


def perturbed(net, seed):
    """Another network of the same structure."""
    rng = np.random.default_rng(seed)
    made = []
    for name in net.names:
        old = net[name]
        if name in net.continuous:
            made.append(
                bbn.Gaussian(
                    old.variable,
                    old.parents,
                    old.means + rng.normal(size=old.means.shape),
                    old.variances * rng.uniform(0.5, 2.0, size=old.variances.shape),
                    old.weights + 0.2 * rng.normal(size=old.weights.shape) if old.weights.size else None,
                )
            )
        else:
            table = old.table * rng.uniform(0.5, 1.5, size=old.table.shape)
            made.append(bbn.CPT(old.variable, old.parents, table / table.sum(axis=-1, keepdims=True)))
    return bbn.BayesianNetwork(made)


# Complete data


def mixed_data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["p", "q", "r"], size=n)
    shift = (y == "q") * 2.0 - (y == "r") * 1.0
    return {
        "Y": y,
        "a": rng.normal(shift, 1.0 + (y == "p")),
        "b": rng.normal(100 + 5 * shift, 3.0),
        "c": rng.normal(-shift * 1e-3, 1e-4),
    }


@pytest.mark.parametrize("weighted", [False, True])
def test_leaves_are_those_of_gaussian_naive_bayes(weighted):
    data = mixed_data()
    w = np.random.default_rng(1).uniform(0, 2, size=2000) if weighted else None
    net = bbn.fit(LEAVES, data, continuous=["a", "b", "c"], weights=w)
    other = GaussianNB(var_smoothing=0).fit(
        np.column_stack([data[n] for n in "abc"]), data["Y"], sample_weight=w
    )
    for k, name in enumerate("abc"):
        np.testing.assert_allclose(net[name].means, other.theta_[:, k], rtol=1e-10)
        np.testing.assert_allclose(net[name].variances, other.var_[:, k], rtol=1e-10)
    np.testing.assert_allclose(net["Y"].table, other.class_prior_, rtol=1e-12)


def test_weights_are_those_of_weighted_least_squares():
    rng = np.random.default_rng(3)
    n = 500
    d, a, b = rng.integers(0, 2, n), rng.normal(50, 2, n), rng.normal(-7, 0.1, n)
    x = np.where(d == 1, 3 * a - 2 * b, 0.5 * a + 1) + rng.normal(scale=0.5, size=n)
    w = rng.uniform(0.1, 2, size=n)
    graph = [("a", "x"), ("d", "x"), ("b", "x")]
    net = bbn.fit(graph, {"d": d, "a": a, "b": b, "x": x}, continuous=["a", "b", "x"], weights=w)
    gaussian = net["x"]
    assert [p.name for p in gaussian.parents] == ["a", "d", "b"]
    for k in (0, 1):
        rows = d == k
        design = np.column_stack([np.ones(rows.sum()), a[rows], b[rows]])
        root = np.sqrt(w[rows])
        beta = np.linalg.lstsq(design * root[:, None], x[rows] * root, rcond=None)[0]
        variance = np.average((x[rows] - design @ beta) ** 2, weights=w[rows])
        np.testing.assert_allclose([gaussian.means[k], *gaussian.weights[k]], beta, rtol=1e-8)
        np.testing.assert_allclose(gaussian.variances[k], variance, rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_column_far_from_zero_keeps_its_variance(offset):
    x = np.random.default_rng(0).normal(size=10_000) * 8
    shifted = x + offset
    net = bbn.fit(nx.DiGraph([("Y", "x")]), {"Y": ["s", "t"] * 5000, "x": shifted}, continuous="x")
    for k in (0, 1):
        exact = [float(v) for v in shifted[k::2]]
        centred = np.array(exact) - offset  # exact: both are multiples of the same power of two
        np.testing.assert_allclose(net["x"].variances[k], centred.var(), rtol=1e-12)


def test_settings_far_apart_keep_their_variances():
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=500), 1e7 + rng.normal(size=500)
    net = bbn.fit(
        [("Y", "x")], {"Y": ["l", "h"] * 500, "x": np.ravel([low, high], order="F")}, continuous="x"
    )
    np.testing.assert_allclose(net["x"].variances, [high.var(), low.var()], rtol=1e-8)


def test_tied_and_fixed_variances():
    data = mixed_data()
    net = bbn.fit(LEAVES, data, continuous=list("abc"), tied_variance=["a"], fixed_variance={"b": 7.0})
    within = sum(((data["a"][data["Y"] == s] - data["a"][data["Y"] == s].mean()) ** 2).sum() for s in "pqr")
    np.testing.assert_allclose(net["a"].variances, within / 2000, rtol=1e-12)
    assert net["a"].tied_variance
    assert net["b"].fixed_variance
    assert net["b"].variances.tolist() == [7.0] * 3
    assert not net["c"].tied_variance
    again = bbn.fit(net, data)
    assert again == net  # a network says which are continuous, tied and fixed


def test_a_graph_says_what_is_continuous():
    graph = nx.DiGraph(LEAVES)
    for name in "abc":
        graph.nodes[name]["continuous"] = True
    data = mixed_data()
    assert bbn.fit(graph, data) == bbn.fit(LEAVES, data, continuous=["a", "b", "c"])
    assert bbn.fit(bbn.fit(graph, data).graph, data) == bbn.fit(graph, data)


def test_the_prior_is_the_mode_of_the_posterior():
    x = np.array([1.0, 2.0, 4.0])
    prior = bbn.NormalInverseGamma(strength=2.0, shape=1.5, mean=10.0, scale=3.0)
    gaussian = bbn.fit(
        nx.DiGraph([("Y", "x")]), {"Y": ["s"] * 3, "x": x}, continuous="x", gaussian_prior=prior
    )["x"]

    def log_posterior(mean, variance):
        return (
            stats.norm(mean, np.sqrt(variance)).logpdf(x).sum()
            + stats.norm(10.0, np.sqrt(variance / 2.0)).logpdf(mean)
            + stats.invgamma(1.5, scale=3.0).logpdf(variance)
        )

    mean, variance = float(gaussian.means[0]), float(gaussian.variances[0])
    top = log_posterior(mean, variance)
    for dm, dv in itertools.product([-1e-3, 0, 1e-3], repeat=2):
        assert log_posterior(mean + dm, variance + dv) <= top
    assert mean == pytest.approx((2 * 10 + 7) / 5)


def test_the_prior_of_a_tied_variance_and_of_weights_is_a_mode_too():
    rng = np.random.default_rng(5)
    n = 40
    d, y = rng.integers(0, 2, n), rng.normal(3.0, 2.0, n)
    x = 1.0 + 2.0 * d + 0.7 * y + rng.normal(size=n)
    prior = bbn.NormalInverseGamma(strength=1.5, shape=2.0, mean=4.0, scale=3.0)
    net = bbn.fit(
        [("d", "x"), ("y", "x")],
        {"d": d, "y": y, "x": x},
        continuous=["x", "y"],
        tied_variance=["x"],
        gaussian_prior=prior,
    )
    g = net["x"]
    cy, sy = y.mean(), y.std()

    def log_posterior(means, weights, variance):
        total = stats.invgamma(2.0, scale=3.0).logpdf(variance)
        for k in (0, 1):
            rows = d == k
            total += stats.norm(means[k] + weights[k] * y[rows], np.sqrt(variance)).logpdf(x[rows]).sum()
            total += stats.norm(4.0, np.sqrt(variance / 1.5)).logpdf(means[k] + weights[k] * cy)
            total += stats.norm(0.0, np.sqrt(variance / 1.5)).logpdf(weights[k] * sy)
        return total

    start = np.array([*g.means, *g.weights[:, 0], g.variances[0]])
    top = log_posterior(start[:2], start[2:4], start[4])
    for step in np.vstack([np.eye(5), -np.eye(5)]) * 1e-4:
        tried = start + step
        assert log_posterior(tried[:2], tried[2:4], tried[4]) <= top


# Where the data say too little


def test_settings_never_seen_are_counted_in_one_warning():
    graph = nx.DiGraph([("Y", "a"), ("Y", "b")])
    graph.nodes["Y"]["states"] = ["p", "q", "r"]
    data = {"Y": ["p", "q", "p", "q"], "a": [1.0, 2.0, 3.0, 5.0], "b": [0.0, 1.0, 2.0, 4.0]}
    with pytest.warns(
        bbn.UnseenRowsWarning, match=r"2 settings of the parents of a \(1 of 3\), b \(1 of 3\)"
    ) as told:
        net = bbn.fit(graph, data, continuous=["a", "b"])
    assert len(told) == 1
    assert net["a"].means[2] == pytest.approx(11 / 4)
    assert net["a"].variances[2] == pytest.approx(np.var(data["a"]))
    prior = bbn.NormalInverseGamma(mean={"a": 3.0})
    quiet = bbn.fit(graph, data, continuous=["a", "b"], gaussian_prior=prior)
    assert quiet["a"].means[2] == 3.0


def test_a_variance_of_nothing_is_held_at_the_floor_and_named():
    data = {"Y": ["p", "p", "q", "q"], "a": [1.0, 1.0, 2.0, 4.0]}
    with pytest.warns(bbn.CollapsedWarning, match="a given Y=p") as told:
        net = bbn.fit([("Y", "a")], data, continuous="a")
    assert len(told) == 1
    assert net["a"].variances[0] == pytest.approx(1e-15 * np.var(data["a"]))
    assert np.isfinite(net["a"].means).all()


@pytest.mark.parametrize("column", [[5.0], [5.0, 5.0, 5.0], [0.0, 0.0], [1e12] * 3, [1e-300, 1e-300]])
def test_constant_columns_and_single_rows(column):
    with pytest.warns(bbn.CollapsedWarning):
        net = bbn.fit(nx.DiGraph([("Y", "x")]), {"Y": ["s"] * len(column), "x": column}, continuous="x")
    assert net["x"].means[0] == column[0]
    assert np.isfinite(net["x"].variances[0])
    assert net["x"].variances[0] > 0


def test_squares_that_overflow_are_named():
    with pytest.raises(bbn.DataError, match="'x' holds numbers whose squares overflow"):
        bbn.fit(nx.DiGraph([("Y", "x")]), {"Y": ["s", "s"], "x": [1e200, -1e200]}, continuous="x")


def test_parents_that_say_the_same():
    rng = np.random.default_rng(0)
    a = rng.normal(size=50)
    data = {"a": a, "b": 2 * a, "x": 3 * a + rng.normal(size=50)}
    net = bbn.fit([("a", "x"), ("b", "x")], data, continuous=["a", "b", "x"])
    fitted = net["x"].means + net["x"].weights[0] * a + net["x"].weights[1] * 2 * a
    slope, intercept = np.polyfit(a, data["x"], 1)
    np.testing.assert_allclose(fitted, intercept + slope * a, rtol=1e-6, atol=1e-8)


def test_the_variance_left_by_parents_that_nearly_say_the_same():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = a + 1e-4 * rng.normal(size=200)
    x = 300 * a - 200 * b + 1e-2 * rng.normal(size=200)
    net = bbn.fit([("a", "x"), ("b", "x")], {"a": a, "b": b, "x": x}, continuous=["a", "b", "x"])
    left = np.linalg.lstsq(np.column_stack([np.ones(200), a, b]), x, rcond=None)[1][0] / 200
    assert net["x"].variances == pytest.approx(left, rel=1e-6)


# What is refused


def test_what_is_refused():
    data = mixed_data(50)
    arcs = [("Y", "a")]
    small = {"Y": data["Y"], "a": data["a"]}
    with pytest.raises(bbn.DataError, match="not a node"):
        bbn.fit(arcs, small, continuous=["z"])
    with pytest.raises(bbn.ModelError, match="continuous"):
        bbn.fit([("a", "Y")], small, continuous=["a"])
    with pytest.raises(bbn.DataError, match="fit_em"):
        bbn.fit(arcs, {"Y": ["s", "t"], "a": [1.0, None]}, continuous=["a"])
    with pytest.raises(bbn.DataError, match="gaussian_prior= takes it"):
        bbn.fit(arcs, small, bbn.NormalInverseGamma(), continuous=["a"])
    with pytest.raises(bbn.DataError, match="NormalInverseGamma: strength is -1"):
        bbn.NormalInverseGamma(strength=-1)
    with pytest.raises(bbn.DataError, match="which is not a variable"):
        bbn.fit(arcs, small, continuous=["a"], gaussian_prior=bbn.NormalInverseGamma(mean={"q": 1.0}))
    with pytest.raises(bbn.DataError, match="tied_variance= names 'Y'"):
        bbn.fit(arcs, small, continuous=["a"], tied_variance=["Y"])
    for told in (True, {"a": True}):
        with pytest.raises(bbn.DataError, match="fixed_variance= takes variances"):
            bbn.fit(arcs, small, continuous=["a"], fixed_variance=told)
    with pytest.raises(bbn.DataError, match="hidden= names 'a'"):
        bbn.fit_em(arcs, small, continuous=["a"], hidden={"a": ["x", "y"]})
    net = bbn.fit(arcs, small, continuous=["a"])
    with pytest.raises(bbn.DataError, match="'b' has the continuous parent 'a'"):
        bbn.fit_update(bbn.fit([("a", "b")], {"a": data["a"], "b": data["b"]}, continuous=["a", "b"]), {}, 1)
    with pytest.raises(bbn.DataError, match="'a' is continuous"):
        bbn.fit_gradient(net, small)
    with pytest.raises(bbn.DataError, match="'a' is continuous"):
        bbn.gradient(net, small)


# EM


@pytest.mark.parametrize("seed", range(25))
def test_em_climbs_the_brute_force_likelihood_to_a_stationary_point(seed):
    truth = random_network(seed)
    rows = random_rows(truth, 80, seed)
    hidden = [truth.names[0]] if seed % 3 == 0 and truth.names[0].startswith("D") else []
    for row in rows:
        for name in hidden:
            row[name] = None
    data = columns(truth, rows)
    start = perturbed(truth, seed)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", bbn.CollapsedWarning)
        result = bbn.fit_em(start, data, hidden=hidden, max_iter=20, tol=0)
    # The log-likelihood that it tells of the start and of the end is that of the brute force.
    assert result.log_likelihoods[0] == pytest.approx(brute_log_likelihood(start, rows), rel=1e-9, abs=1e-9)
    if not told:
        assert result.log_likelihood == pytest.approx(brute_log_likelihood(result.network, rows), rel=1e-7)
    steps = np.diff(result.log_likelihoods)
    assert steps.min() >= -1e-9 * np.abs(result.log_likelihoods).max()
    assert steps[0] > 0


@pytest.mark.parametrize("seed", range(30))
def test_em_without_states_that_cannot_occur(seed, monkeypatch):
    """A state of each variable is ruled out by zeros: the likelihood by brute force, and the same steps as with it."""
    rng = np.random.default_rng([3, seed])
    net = random_network(seed)
    cpts = []
    for name in net.names:
        if name not in net.continuous:
            table = net[name].table.copy()
            table[..., rng.integers(table.shape[-1])] = 0.0
            cpts.append(bbn.CPT(net.variable(name), net[name].parents, table / table.sum(-1, keepdims=True)))
    net = net.with_cpts(cpts)
    rows = random_rows(net, 30, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows
        whole = bbn.fit_em(net, columns(net, rows), max_iter=2, tol=-np.inf)
        for name in ("LOOKING", "LOOKING_TABLE", "LOOKING_ENTRY", "MAKING"):
            monkeypatch.setattr(expected_counts, name, -1.0)
        made = []
        make = expected_counts.filtered_plan
        monkeypatch.setattr(
            expected_counts, "filtered_plan", lambda *given: made.append(given) or make(*given)
        )
        found = bbn.fit_em(net, columns(net, rows), max_iter=2, tol=-np.inf)
    assert made
    with np.errstate(divide="ignore"):
        assert found.log_likelihoods[0] == pytest.approx(brute_log_likelihood(net, rows), rel=1e-9)
    np.testing.assert_allclose(found.log_likelihoods, whole.log_likelihoods, rtol=1e-9)
    for name in net.names:
        if name in net.continuous:
            np.testing.assert_allclose(found.network[name].means, whole.network[name].means, atol=1e-8)
            np.testing.assert_allclose(
                found.network[name].variances, whole.network[name].variances, atol=1e-8
            )
        else:
            np.testing.assert_allclose(found.network[name].table, whole.network[name].table, atol=1e-9)


@pytest.mark.parametrize("seed", [1, 4])
def test_em_ends_where_no_direction_climbs(seed):
    """At the end of EM under a prior (so that nothing collapses) the brute-force objective is flat."""
    truth = random_network(seed)
    rows = random_rows(truth, 50, seed)
    prior = bbn.NormalInverseGamma(strength=0.5, shape=2.0, mean=0.0, scale=1.0)
    result = bbn.fit_em(
        truth, columns(truth, rows), prior=bbn.Dirichlet(1.0), gaussian_prior=prior, max_iter=400, tol=1e-12
    )
    net = result.network
    centre = {n: np.nanmean([row[n] for row in rows]) for n in net.continuous}
    scale = {n: np.nanstd([row[n] for row in rows]) for n in net.continuous}

    def objective(changed):
        total = brute_log_likelihood(changed, rows)
        for name in changed.names:
            if name not in changed.continuous:
                total += np.log(changed[name].table).sum()
                continue
            g = changed[name]
            for at in np.ndindex(g.means.shape):
                v = g.variances[at]
                total += stats.invgamma(2.0, scale=1.0).logpdf(v)
                own = g.means[at]
                for k, p in enumerate(g.continuous_parents):
                    own += g.weights[at][k] * centre[p.name]
                    total += stats.norm(0, np.sqrt(v / 0.5)).logpdf(g.weights[at][k] * scale[p.name] / 1.0)
                total += stats.norm(0.0, np.sqrt(v / 0.5)).logpdf(own)
        return total

    base = objective(net)
    for name in net.continuous:
        g = net[name]
        for what in ("means", "variances", "weights"):
            array = getattr(g, what)
            for at in np.ndindex(array.shape):
                slopes = []
                for h in (1e-4, -1e-4):
                    values = {w: getattr(g, w).copy() for w in ("means", "variances", "weights")}
                    values[what][at] += h
                    if not values["weights"].size:
                        values["weights"] = None
                    tried = net.with_cpts([bbn.Gaussian(g.variable, g.parents, **values)])
                    slopes.append((objective(tried) - base) / h)
                assert abs(slopes[0] + slopes[1]) / 2 < 2e-2, (name, what, at)


def test_em_on_complete_data_is_fit():
    data = mixed_data(500)
    data["d"] = data["a"] * 2 + np.random.default_rng(0).normal(size=500)
    arcs = [*LEAVES, ("a", "d"), ("Y", "d")]
    exact = bbn.fit(arcs, data, continuous=list("abcd"))
    result = bbn.fit_em(arcs, data, continuous=list("abcd"), seed=0)
    assert result.converged
    assert result.n_iter <= 3
    for name in "abcd":
        np.testing.assert_allclose(result.network[name].means, exact[name].means, rtol=1e-8)
        np.testing.assert_allclose(result.network[name].variances, exact[name].variances, rtol=1e-8)
        np.testing.assert_allclose(result.network[name].weights, exact[name].weights, rtol=1e-8)


def test_a_missing_number_of_a_leaf_adds_nothing():
    data = mixed_data(300)
    data["a"] = np.where(np.arange(300) % 3 == 0, np.nan, data["a"])
    result = bbn.fit_em(LEAVES, data, continuous=list("abc"), seed=0)
    there = ~np.isnan(data["a"])
    for k, s in enumerate("pqr"):
        own = data["a"][there & (data["Y"] == s)]
        np.testing.assert_allclose(result.network["a"].means[k], own.mean(), rtol=1e-9)
        np.testing.assert_allclose(result.network["a"].variances[k], own.var(), rtol=1e-9)


def start_of(means, variances, weights):
    """A mixture as a network, from arrays (k, d), (k, d) and (k,)."""
    z = bbn.Variable("Z", [f"k{j}" for j in range(len(weights))])
    leaves = [
        bbn.Gaussian(f"x{f}", [z], means=means[:, f], variances=variances[:, f])
        for f in range(means.shape[1])
    ]
    return bbn.BayesianNetwork([bbn.CPT(z, table=weights), *leaves])


def blobs(n=1000, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=2.5, size=(k, d))
    return centres[rng.integers(0, k, n)] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, size=d)


def named(x):
    return {f"x{f}": x[:, f] for f in range(x.shape[1])}


@pytest.mark.parametrize("steps", [1, 2, 10, 50])
def test_the_likelihood_is_that_of_scikit_learn_from_the_same_start(steps):
    x = blobs()
    means, weights = x[[0, 1, 2]], np.array([0.2, 0.3, 0.5])
    variances = np.array([[1.0] * 3, [2.0] * 3, [0.5] * 3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = GaussianMixture(
            3,
            covariance_type="diag",
            reg_covar=0,
            tol=0,
            max_iter=steps,
            weights_init=weights,
            means_init=means,
            precisions_init=1 / variances,
        ).fit(x)
    result = bbn.fit_em(start_of(means, variances, weights), named(x), hidden=["Z"], max_iter=steps, tol=0)
    assert result.log_likelihood == pytest.approx(other.score_samples(x).sum(), rel=1e-8, abs=1e-8)
    assert result.log_likelihood / 1000 == pytest.approx(other.score(x), abs=1e-8)
    for f in range(3):
        np.testing.assert_allclose(result.network[f"x{f}"].means, other.means_[:, f], rtol=1e-8)
        np.testing.assert_allclose(result.network[f"x{f}"].variances, other.covariances_[:, f], rtol=1e-8)


def test_a_tied_variance_in_one_dimension_is_that_of_scikit_learn():
    x = blobs(d=1)
    means, weights = np.array([[-1.0], [0.0], [2.0]]), np.full(3, 1 / 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = GaussianMixture(
            3,
            covariance_type="tied",
            reg_covar=0,
            tol=0,
            max_iter=30,
            weights_init=weights,
            means_init=means,
            precisions_init=np.array([[1.0]]),
        ).fit(x)
    start = start_of(means, np.ones((3, 1)), weights)
    result = bbn.fit_em(start, named(x), hidden=["Z"], max_iter=30, tol=0, tied_variance=True)
    assert result.log_likelihood / 1000 == pytest.approx(other.score(x), abs=1e-8)
    assert len(set(result.network["x0"].variances.tolist())) == 1


@pytest.mark.parametrize("seed", range(8))
def test_the_likelihood_never_falls_where_linked_settings_collapse(seed):
    rng = np.random.default_rng(seed)
    kind = np.array(["common"] * 40 + ["rare"] * 5 + ["other"] * 35)
    a = rng.normal(size=80) + 3 * (kind == "rare")
    b = 2 * a + rng.normal(size=80)
    c = a - b + 0.3 * rng.normal(size=80)
    data = {"a": a, "b": b, "c": c}
    for column in data.values():
        column[rng.random(80) < 0.3] = np.nan
    data["K"] = np.where(rng.random(80) < 0.2, None, kind)
    arcs = [*(("K", name) for name in "abc"), ("H", "a"), ("a", "b"), ("a", "c"), ("b", "c")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.CollapsedWarning)
        result = bbn.fit_em(
            arcs, data, hidden={"H": ["u", "v"]}, continuous=list("abc"), seed=seed, tol=0, max_iter=80
        )
    assert np.diff(result.objectives).min() >= -1e-6 * np.abs(result.objectives).max()


@pytest.mark.parametrize("seed", range(20))
def test_the_likelihood_never_falls(seed):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    x = blobs(int(rng.integers(k + 1, 300)), d, k, seed) * 10.0 ** rng.integers(-6, 7) + rng.normal() * 1e3
    data = {name: np.where(rng.random(len(x)) < 0.2, np.nan, column) for name, column in named(x).items()}
    for column in data.values():
        column[0] = 0.5
    labels = np.where(rng.random(len(x)) < 0.2, rng.choice(["k0", "k1"], len(x)), None) if seed % 2 else None
    if labels is not None:
        data["Z"] = labels
    data["W"] = rng.choice(["u", "v"], size=len(x))
    structure = nx.DiGraph([("Z", f"x{f}") for f in range(d)] + [("Z", "W")])
    structure.nodes["Z"]["states"] = [f"k{j}" for j in range(k)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.CollapsedWarning)
        result = bbn.fit_em(
            structure,
            data,
            hidden=[] if labels is not None else ["Z"],
            continuous=list(named(x)),
            tied_variance=seed % 5 == 0,
            weights=rng.uniform(0.1, 3, size=len(x)) if seed % 4 == 0 else None,
            gaussian_prior=bbn.NormalInverseGamma() if seed % 3 == 0 else None,
            accelerate=seed % 7 == 0,
            seed=seed,
            tol=0,
            max_iter=60,
        )
    size = np.abs(result.objectives).max()
    assert np.isfinite(result.objectives).all()
    assert np.diff(result.objectives).min() >= -1e-9 * size
    for f in range(d):
        assert np.isfinite(result.network[f"x{f}"].means).all()
        assert (result.network[f"x{f}"].variances > 0).all()


def test_restarts_find_the_blobs_and_are_reproducible():
    x = blobs(600, 2, 4, seed=3)
    arguments = {"hidden": {"Z": list("abcd")}, "continuous": ["x0", "x1"], "restarts": 5}
    arcs = [("Z", "x0"), ("Z", "x1")]
    first = bbn.fit_em(arcs, named(x), seed=1, **arguments)
    again = bbn.fit_em(arcs, named(x), seed=1, **arguments)
    assert first == again
    assert len(first.restarts) == 5
    assert first.log_likelihood == first.restarts.max()
    best = max(
        GaussianMixture(4, covariance_type="diag", reg_covar=0, tol=1e-6, max_iter=1000, random_state=s)
        .fit(x)
        .score(x)
        for s in range(3)
    )
    assert first.log_likelihood / 600 >= best - 1e-3
    assert first.converged
    gain = np.diff(first.log_likelihoods)
    assert gain[-1] <= 1e-6 * 600  # the default tolerance, per row
    assert (gain[:-1] > 1e-6 * 600).all()


def test_a_collapsed_start_loses_to_one_that_is_not():
    x = np.concatenate([np.random.default_rng(0).normal(size=60), [50.0]])
    z = bbn.Variable("Z", ["a", "b"])
    start = bbn.BayesianNetwork(
        [bbn.CPT(z, table=[0.9, 0.1]), bbn.Gaussian("x", [z], means=[0.0, 50.0], variances=[1.0, 1e-6])]
    )
    with pytest.warns(bbn.CollapsedWarning, match="x given Z=b"):
        alone = bbn.fit_em(start, {"x": x}, hidden=["Z"])
    assert np.isfinite(alone.log_likelihoods).all()
    quiet = bbn.fit_em(start, {"x": x}, hidden=["Z"], gaussian_prior=bbn.NormalInverseGamma())
    assert quiet.network["x"].variances.min() > 1.0
    heap = np.random.default_rng(1).normal(size=300)
    spike = start.with_cpts([bbn.Gaussian("x", [z], means=[0.0, heap[7]], variances=[1.0, 1e-12])])
    several = bbn.fit_em(spike, {"x": heap}, hidden=["Z"], restarts=3, seed=0)
    assert (
        several.restarts[0] == several.restarts.max() > several.log_likelihood
    )  # the spike is likelier, and no use
    assert several.network["x"].variances.min() > 1e-3


def test_fixed_gaussians_and_tied_gaussians():
    x = blobs(300, 2, 2, seed=1)
    z = bbn.Variable("Z", ["a", "b"])
    pair = [bbn.Gaussian(n, [z], means=[-1.0, 1.0], variances=[1.0, 2.0]) for n in ("x0", "x1")]
    start = bbn.BayesianNetwork([bbn.CPT(z, table=[0.5, 0.5]), *pair])
    result = bbn.fit_em(start, named(x), hidden=["Z"], fixed=["x0"])
    assert result.network["x0"] == start["x0"]
    assert result.network["x1"] != start["x1"]
    result = bbn.fit_em(start, named(x), hidden=["Z"], tied=[["x0", "x1"]])
    np.testing.assert_allclose(result.network["x0"].means, result.network["x1"].means, rtol=1e-12)
    assert np.diff(result.log_likelihoods).min() >= -1e-9 * abs(result.log_likelihood)
    # Two leaves that share their numbers are one leaf seen twice, if they are always in the same state.
    with pytest.raises(bbn.DataError, match="tied="):
        bbn.fit_em(start, named(x), hidden=["Z"], tied=[["x0", "Z"]])


def test_a_checkpoint_is_taken_up_again(tmp_path):
    x = blobs(200, 2, 2, seed=1)
    arcs = [("Z", "x0"), ("Z", "x1")]
    arguments = {"hidden": {"Z": ["a", "b"]}, "continuous": ["x0", "x1"], "seed": 3, "tol": 1e-12}
    whole = bbn.fit_em(arcs, named(x), max_iter=40, **arguments)
    path = tmp_path / "climb.npz"
    bbn.fit_em(arcs, named(x), max_iter=10, checkpoint=path, **arguments)
    resumed = bbn.fit_em(arcs, named(x), max_iter=40, checkpoint=path, **arguments)
    np.testing.assert_allclose(resumed.log_likelihoods, whole.log_likelihoods, rtol=1e-13)
    with pytest.raises(bbn.DataError, match="another structure, prior"):
        bbn.fit_em(arcs, named(x), checkpoint=path, tied_variance=True, **arguments)


class InBlocks:
    """A source that hands its rows over in blocks."""

    def __init__(self, table, size):
        self.table, self.size = table, size
        self.variables, self.continuous = table.variables, table.continuous
        self.n_rows, self.total, self.incomplete = table.n_rows, table.total, table.incomplete

    def counts(self, families):
        return self.table.counts(families)

    def reduce(self, f):
        totals = None
        whole = self.table.merged()
        for start in range(0, whole.n_rows, self.size):
            rows = slice(start, start + self.size)
            block = Block(
                {n: c[rows] for n, c in whole.codes.items()},
                whole.weights[rows],
                {n: c[rows] for n, c in whole.numbers.items()},
            )
            parts = [np.asarray(part) for part in f(pickle.loads(pickle.dumps(block)))]
            totals = parts if totals is None else [a + b for a, b in zip(totals, parts, strict=True)]
        return totals


def test_every_source_and_every_number_of_threads_gives_the_same():
    x = blobs(9000, 2, 3, seed=2)
    data = {**named(x), "W": np.random.default_rng(0).choice(["u", "v"], 9000)}
    data["x1"] = np.where(np.arange(9000) % 7 == 0, np.nan, data["x1"])
    arcs = [("Z", "x0"), ("Z", "x1"), ("W", "x1")]
    arguments = {"hidden": {"Z": ["a", "b", "c"]}, "continuous": ["x0", "x1"], "seed": 0, "max_iter": 15}
    one = bbn.fit_em(arcs, data, n_jobs=1, **arguments)
    two = bbn.fit_em(arcs, data, n_jobs=2, **arguments)
    assert one == two  # bit for bit
    table = code(data, continuous=["x0", "x1"])
    blocks = bbn.fit_em(arcs, InBlocks(table, 1000), **arguments)
    np.testing.assert_allclose(blocks.log_likelihoods, one.log_likelihoods, rtol=1e-12)
    complete = {n: data[n] for n in ("x0", "W")}
    memory = bbn.fit([("W", "x0")], complete, continuous="x0")
    coded = code(complete, continuous=["x0"])
    for size in (1, 7, 5000):
        parts = bbn.fit([("W", "x0")], InBlocks(coded, size * 100), continuous="x0")
        np.testing.assert_allclose(parts["x0"].means, memory["x0"].means, rtol=1e-13)
        np.testing.assert_allclose(parts["x0"].variances, memory["x0"].variances, rtol=1e-12)


def test_rows_far_from_everything():
    """Densities that underflow beside each other, and evidence that leaves only the lesser one open."""
    z, w = bbn.Variable("Z", ["a", "b"]), bbn.Variable("W", ["u", "v"])
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(z, table=[0.5, 0.5]),
            bbn.CPT(w, [z], [[1.0, 0.0], [0.0, 1.0]]),
            bbn.Gaussian("x", [z], means=[0.0, 100.0], variances=[1.0, 1.0]),
            bbn.Gaussian("y", [w, z], means=0.0, variances=1.0),
        ]
    )
    data = {"W": ["u", "v"], "x": [100.0, 1e6], "y": [0.0, 1.0]}
    rows = [{"Z": None, "W": w, "x": x, "y": y} for w, x, y in zip("uv", data["x"], data["y"], strict=True)]
    result = bbn.fit_em(net, data, hidden=["Z"], max_iter=0)
    # W tells Z, so this is the density of x in the state that W tells.
    expected = [
        np.log(0.5) + stats.norm(m, 1).logpdf(r["x"]) + stats.norm.logpdf(r["y"])
        for m, r in zip([0.0, 100.0], rows, strict=True)
    ]
    assert result.log_likelihood == pytest.approx(sum(expected), rel=1e-12)


@pytest.mark.parametrize("joint", [mixed.JOINT, 1])
def test_rows_whose_numbers_contradict_each_other(joint, monkeypatch):
    """The last row is impossible but for doubles: x is sure of one state, y of the other, and both are the same."""
    monkeypatch.setattr(mixed, "JOINT", joint)
    a, b, c = (bbn.Variable(name, ["a", "b"]) for name in "ABC")
    same = [[1.0, 0.0], [0.0, 1.0]]
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(a, table=[0.4, 0.6]),
            bbn.CPT(b, [a], same),
            bbn.CPT(c, [b], [[0.9, 0.1], [0.2, 0.8]]),
            bbn.Gaussian("x", [a], means=[0.0, 100.0], variances=1.0),
            bbn.Gaussian("y", [b], means=[0.0, 90.0], variances=1.0),
        ]
    )
    data = {"C": list("abbaa"), "x": [0.0, 100.0, 1.0, 99.0, 0.0], "y": [0.0, 90.0, 1.0, 91.0, 90.0]}
    rows = [dict(zip(["C", "x", "y"], row, strict=True)) for row in zip(*data.values(), strict=True)]
    results = [bbn.fit_em(net, data, hidden=["A", "B"], max_iter=steps, tol=0) for steps in (0, 1)]
    with np.errstate(divide="ignore"):
        truth = brute_log_likelihood(net, [row | {"A": None, "B": None} for row in rows])
    if joint > 1:
        assert results[0].log_likelihood == pytest.approx(truth, rel=1e-12)
        # 90²/2 is less than 100²/2, so the row counts as one of the first state, in every table.
        net = results[1].network
        np.testing.assert_allclose(net["A"].table, [0.6, 0.4], rtol=1e-12)
        np.testing.assert_allclose(net["C"].table, [[2 / 3, 1 / 3], [0.5, 0.5]], rtol=1e-12)
        np.testing.assert_allclose(net["x"].means, [1 / 3, 99.5], rtol=1e-12)
        np.testing.assert_allclose(net["y"].means, [91 / 3, 90.5], rtol=1e-12)
    assert np.diff(results[1].log_likelihoods).min() > 0
    assert np.isfinite(results[1].network["x"].means).all()


def test_impossible_rows_are_named():
    z, w = bbn.Variable("Z", ["a", "b"]), bbn.Variable("W", ["u", "v"])
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(z, table=[1.0, 0.0]),
            bbn.CPT(w, [z], [[1.0, 0.0], [0.0, 1.0]]),
            bbn.Gaussian("x", [z], means=[0.0, 1.0], variances=1.0),
        ]
    )
    with pytest.raises(bbn.ImpossibleEvidenceError, match="1 rows"):
        bbn.fit_em(net, {"W": ["u", "v"], "x": [0.0, 0.0]}, hidden=["Z"])


# Kernels


@pytest.mark.parametrize("n", [0, 1, 3, 4, 1001])
def test_the_compiled_kernels_and_their_twins_agree(n):
    rng = np.random.default_rng(n)
    d, settings = 3, 4
    z = rng.normal(size=(d, n))
    z[1, rng.random(n) < 0.3] = np.nan
    means, variances = rng.normal(size=(d, settings)), rng.uniform(0.1, 2, size=(d, settings))
    weights = rng.uniform(0, 2, size=n)
    answers = []
    for module in (kernels, gaussians_py):
        logs = np.log(np.arange(1.0, settings + 1))[:, None] * np.ones(n)
        logs[:, : n // 5] = -np.inf
        module.add_log_densities(z, means, variances, logs)
        densities = logs.copy()
        totals = np.empty(n)
        with np.errstate(invalid="ignore"):
            module.normalise(logs, weights, totals)
        moments = np.zeros((3, d, settings))
        module.add_moments(z, logs, means, moments)
        answers.append((densities, logs, totals, moments))
    for ours, twin in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-300)
    exact = np.nansum(stats.norm(means[:, 0, None], np.sqrt(variances[:, 0, None])).logpdf(z), axis=0)
    np.testing.assert_allclose(answers[0][0][0, n // 5 :], exact[n // 5 :], rtol=1e-12, atol=1e-12)


def test_a_fitted_network_and_its_result_pickle():
    x = blobs(50, 1, 2)
    result = bbn.fit_em([("Z", "x0")], named(x), hidden={"Z": ["a", "b"]}, continuous="x0", seed=0)
    assert pickle.loads(pickle.dumps(result)) == result


@pytest.mark.parametrize(
    "learner",
    [
        bbn.hill_climb,
        bbn.chow_liu,
        bbn.pc,
        bbn.ges,
        bbn.exact_search,
        lambda data: bbn.k2(data, ["Y", "a"]),
        lambda data: bbn.tan(data, "Y"),
    ],
)
def test_other_learners_of_structures_take_the_continuous_column(learner):
    # a state moves the number by five standard deviations
    noise = np.random.default_rng(0).normal(size=200)
    table = code({"Y": ["p", "q"] * 100, "a": noise + np.tile([0.0, 5.0], 100)}, continuous=["a"])
    graph = learner(table)
    assert graph.has_edge("Y", "a")


def test_learn_takes_a_structure_with_gaussians():
    data = mixed_data(200)
    net = bbn.fit(LEAVES, data, continuous=list("abc"))
    assert bbn.learn(data, net).network == net
    holes = {**data, "a": np.where(np.arange(200) % 5 == 0, np.nan, data["a"])}
    assert bbn.learn(holes, net).network.continuous == net.continuous


def test_a_network_of_numbers_alone():
    rng = np.random.default_rng(0)
    a = rng.normal(5, 2, 200)
    b = 3 * a + rng.normal(size=200)
    c = b - a + rng.normal(size=200)
    data = {
        "a": a,
        "b": np.where(rng.random(200) < 0.4, np.nan, b),
        "c": np.where(rng.random(200) < 0.2, np.nan, c),
    }
    result = bbn.fit_em(
        [("a", "b"), ("a", "c"), ("b", "c")], data, continuous=list("abc"), seed=0, tol=1e-9, n_jobs=2
    )
    rows = [dict(zip("abc", row, strict=True)) for row in zip(*data.values(), strict=True)]
    assert result.log_likelihood == pytest.approx(brute_log_likelihood(result.network, rows), rel=1e-10)
    assert np.diff(result.log_likelihoods).min() >= -1e-9 * abs(result.log_likelihood)
    np.testing.assert_allclose(result.network["b"].weights, [3.0], atol=0.15)
    np.testing.assert_allclose(result.network["c"].weights, [-1.0, 1.0], atol=0.3)


def test_a_folder_of_files_gives_what_memory_gives(tmp_path):
    x = blobs(1500, 2, 3, seed=2)
    frame = pd.DataFrame({**named(x), "W": np.random.default_rng(0).choice(["u", "v"], 1500)})
    for i in range(3):
        frame[i * 500 : (i + 1) * 500].to_parquet(tmp_path / f"part{i}.parquet")
    source = bbn.open_data(tmp_path / "*.parquet", continuous=["x0", "x1"])
    arcs = [("W", "x0"), ("x0", "x1")]
    memory, folder = (bbn.fit(arcs, data, continuous=["x0", "x1"]) for data in (frame, source))
    for name in ("x0", "x1"):
        np.testing.assert_allclose(folder[name].means, memory[name].means, rtol=1e-12)
        np.testing.assert_allclose(folder[name].variances, memory[name].variances, rtol=1e-12)
    arguments = {"hidden": {"Z": ["a", "b", "c"]}, "continuous": ["x0", "x1"], "seed": 0, "max_iter": 10}
    structure = [("Z", "x0"), ("Z", "x1"), ("Z", "W")]
    one, two = (bbn.fit_em(structure, data, **arguments) for data in (frame, source))
    np.testing.assert_allclose(two.log_likelihoods, one.log_likelihoods, rtol=1e-12)


@pytest.mark.parametrize("told", [True, 3])
def test_continuous_is_names(told):
    with pytest.raises(bbn.DataError, match="expected the names"):
        bbn.fit([("Y", "a")], {"Y": ["p", "q"], "a": [1.0, 2.0]}, continuous=told)


def test_none_is_what_the_columns_hold():
    data = {"Y": ["p", "q"] * 3, "a": [1.5, 2.0, 2.5, 4.0, 3.5, 0.0]}
    assert bbn.fit([("Y", "a")], data, continuous=None) == bbn.fit([("Y", "a")], data, continuous="a")


def test_a_tied_variance_that_is_fixed_is_one_number():
    with pytest.raises(bbn.ModelError, match="the same in every setting"):
        bbn.fit(
            [("Y", "a")],
            {"Y": ["p", "q"], "a": [1.0, 2.0]},
            continuous="a",
            tied_variance=True,
            fixed_variance={"a": [1.0, 2.0]},
        )


def test_an_update_is_a_fit_to_both_parts():
    data = mixed_data(400)
    first, second = ({n: c[part] for n, c in data.items()} for part in (slice(250), slice(250, None)))
    net = bbn.fit(LEAVES, first, continuous=list("abc"))
    both = bbn.fit_update(net, second, weight=250)
    whole = bbn.fit(LEAVES, data, continuous=list("abc"))
    for name in "abc":
        np.testing.assert_allclose(both[name].means, whole[name].means, rtol=1e-9)
        np.testing.assert_allclose(both[name].variances, whole[name].variances, rtol=1e-9)
    np.testing.assert_allclose(both["Y"].table, whole["Y"].table, rtol=1e-9)
    same = bbn.fit_update(net, first, weight=1e6)
    np.testing.assert_allclose(same["a"].variances, net["a"].variances, rtol=1e-9)


def test_learn_takes_the_names_of_continuous_columns():
    data = mixed_data(100)
    result = bbn.learn(data, LEAVES, continuous=list("abc"))
    assert result.network == bbn.fit(LEAVES, data, continuous=list("abc"))
    hidden = {n: data[n] for n in "abc"}
    found = bbn.learn(hidden, LEAVES, {"Y": ["p", "q"]}, continuous=list("abc"), seed=0)
    assert found.method == "em"
    assert set(bbn.learn(data, continuous=list("abc")).network.continuous) == set("abc")


def test_starts_are_found_among_many_rows_that_are_alike():
    x = np.repeat([0.0, 1.0, 5.0, 6.0], 5000)
    result = bbn.fit_em([("Z", "x")], {"x": x}, hidden={"Z": ["a", "b"]}, continuous="x", seed=0)
    np.testing.assert_allclose(np.sort(result.network["x"].means), [0.5, 5.5], atol=1e-3)


def test_the_likelihood_of_learning_is_that_of_inference():
    truth = random_network(11)
    data = columns(truth, random_rows(truth, 60, 11))
    result = bbn.fit_em(perturbed(truth, 1), data, gaussian_prior=bbn.NormalInverseGamma(), max_iter=5)
    assert result.log_likelihood == pytest.approx(np.sum(result.network.log_likelihood(data)), rel=1e-10)


def test_a_pass_over_numbers_that_would_take_far_too_long_is_not_started(monkeypatch):
    from bbn.inference.exact import runtime_prediction

    data = {"Z": ["a", None, "b"] * 20, "X": np.linspace(0.0, 1.0, 60)}
    monkeypatch.setattr(runtime_prediction, "rate", lambda: 100.0)
    with pytest.raises(bbn.TimeLimitError, match=r"expected counts would take about .*; it was not started"):
        bbn.fit_em([("Z", "X")], data, continuous=["X"], seed=0, time_limit=5)


@pytest.mark.parametrize("seed", range(20))
def test_the_e_step_of_precise_sensors_below_a_wide_prior_against_fractions(seed):
    """Where x is missing, its sensors are almost one number: their covariance has a condition number of 1e15."""
    rng = np.random.default_rng(seed)
    x = bbn.Gaussian("X", means=0, variances=10 ** rng.uniform(8, 9))
    sensors = [
        bbn.Gaussian(f"S{k}", [x.variable], 0, 10 ** rng.uniform(-7, -6), weights=[rng.uniform(0.5, 2)])
        for k in range(3)
    ]
    net = bbn.BayesianNetwork([x, *sensors])
    data = net.sample(20, seed=seed)
    data.loc[3:, "X"], data.loc[5, "S1"] = np.nan, np.nan
    truth = 0.0
    for row in data.to_dict("records"):
        rational = Rational(net)
        for name, number in row.items():
            if number == number:
                rational.observe(name, number)
        truth += rational.log_density
    with pytest.warns(bbn.CollapsedWarning):
        result = bbn.fit_em(net, data, max_iter=1)
    assert result.log_likelihoods[0] == pytest.approx(truth, abs=1e-5)
    weights = [float(result.network[f"S{k}"].weights[0]) for k in range(3)]
    np.testing.assert_allclose(weights, [float(s.weights[0]) for s in sensors], rtol=1e-6)
