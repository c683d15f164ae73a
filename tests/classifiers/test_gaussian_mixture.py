"""Mixtures of Gaussians: scikit-learn's own checks and numbers, and the textbook's k means, soft and hard."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Other
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

import bbn
from bbn import GaussianMixture


def blobs(n=400, d=2, k=3, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4, size=(k, d))
    labels = rng.integers(0, k, n)
    return centres[labels] + rng.normal(size=(n, d)), labels


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks():
    results = check_estimator(GaussianMixture(2), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 40


def test_it_finds_what_scikit_learn_finds():
    x, _ = blobs()
    ours = GaussianMixture(3, n_init=2, random_state=0, tol=1e-10).fit(x)
    theirs = Other(
        3, covariance_type="diag", reg_covar=0, tol=1e-10, max_iter=2000, n_init=2, random_state=0
    ).fit(x)
    order, other = np.argsort(ours.means_[:, 0]), np.argsort(theirs.means_[:, 0])
    np.testing.assert_allclose(ours.means_[order], theirs.means_[other], atol=1e-4)
    np.testing.assert_allclose(ours.variances_[order], theirs.covariances_[other], atol=1e-4)
    assert ours.covariances_ is ours.variances_
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, abs=1e-8)
    assert ours.score(x) == pytest.approx(theirs.score(x), abs=1e-8)
    assert ours.bic(x) == pytest.approx(theirs.bic(x), abs=1e-5)
    assert ours.aic(x) == pytest.approx(theirs.aic(x), abs=1e-5)
    np.testing.assert_allclose(ours.score_samples(x), theirs.score_samples(x), atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(x)[:, order], theirs.predict_proba(x)[:, other], atol=1e-4)
    assert ours.converged_
    assert ours.result_.log_likelihood == pytest.approx(ours.score_samples(x).sum(), rel=1e-12)


def test_it_is_a_network():
    x, _ = blobs(200)
    frame = pd.DataFrame(x, columns=["Z", "length"])
    model = GaussianMixture(3, random_state=0).fit(frame)
    net = model.network_
    assert set(net.names) == {"Z_", "Z", "length"}
    assert list(model.feature_names_in_) == ["Z", "length"]
    assert net.states("Z_") == (0, 1, 2)
    np.testing.assert_array_equal(net["length"].means, model.means_[:, 1])
    assert model.network_["Z_"].table.tolist() == model.weights_.tolist()
    for row, told in zip(x[:5], model.predict_proba(frame[:5]), strict=True):
        joint = model.weights_ * np.prod(
            np.exp(-((row - model.means_) ** 2) / (2 * model.variances_))
            / np.sqrt(2 * np.pi * model.variances_),
            axis=1,
        )
        np.testing.assert_allclose(told, joint / joint.sum(), rtol=1e-10)


def k_means_em(x, means, variance, steps, divisor=None):
    """The textbook's two steps, row by row and mean by mean; each step's means."""
    path = [np.array(means)]
    for _ in range(steps):
        expected = np.zeros((len(x), len(means)))
        for i, row in enumerate(x):
            odds = [np.exp(-((row - mean) ** 2).sum() / (2 * variance)) for mean in path[-1]]
            expected[i] = np.array(odds) / sum(odds)
        new = []
        for j in range(len(means)):
            total = sum(expected[i, j] * x[i] for i in range(len(x)))
            new.append(total / (divisor or expected[:, j].sum()))
        path.append(np.array(new))
    return path


def log_likelihood(x, means, variance):
    """Equal weights, one variance."""
    squares = ((x[:, None, :] - np.asarray(means)[None]) ** 2).sum(axis=2)
    d, k = x.shape[1], len(means)
    logs = -squares / (2 * variance) - d / 2 * np.log(2 * np.pi * variance) - np.log(k)
    return np.logaddexp.reduce(logs, axis=1).sum()


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("d", [1, 2])
def test_with_a_fixed_variance_and_equal_weights_it_is_the_textbooks_k_means(steps, d):
    x, _ = blobs(60, d, 2, seed=4)
    start = x[:2] + 0.5
    path = k_means_em(x, start, 2.0, steps)
    model = GaussianMixture(
        2, fixed_variance=2.0, equal_weights=True, means_init=start, max_iter=steps, tol=0
    )
    model.fit(x)
    np.testing.assert_allclose(model.means_, path[-1], rtol=1e-10)
    assert model.weights_.tolist() == [0.5, 0.5]
    assert (model.variances_ == 2.0).all()
    likelihoods = [log_likelihood(x, means, 2.0) for means in path]
    told = model.result_.log_likelihoods  # shorter where a step gains nothing at all
    np.testing.assert_allclose(told, likelihoods[: len(told)], rtol=1e-12)
    np.testing.assert_allclose(told[-1], likelihoods[-1], rtol=1e-12)
    assert np.diff(likelihoods).min() >= -1e-9


def test_the_divisor_m_of_some_lecture_notes_lowers_the_likelihood():
    """μ_j ← Σ E[z_ij] x_i / m, with m rows, shrinks every mean towards 0."""
    x, _ = blobs(60, 1, 2, seed=4)
    x = x + 10.0
    start = x[:2] + 0.5
    wrong = k_means_em(x, start, 2.0, 1, divisor=len(x))
    right = k_means_em(x, start, 2.0, 1)
    assert log_likelihood(x, wrong[1], 2.0) < log_likelihood(x, start, 2.0) < log_likelihood(x, right[1], 2.0)


def test_as_the_variance_falls_it_becomes_hard_k_means():
    x, _ = blobs(300, 2, 4, seed=7)
    start = x[:4]
    hard = KMeans(4, init=start, n_init=1, max_iter=300, tol=0).fit(x)
    apart = []
    for variance in (10.0, 1.0, 1e-2, 1e-4, 1e-6):
        soft = GaussianMixture(
            4, fixed_variance=variance, equal_weights=True, means_init=start, tol=0, max_iter=300
        )
        apart.append(np.abs(soft.fit(x).means_ - hard.cluster_centers_).max())
    assert apart[-1] < 1e-9
    assert apart[0] > 0.1
    assert soft.predict(x).tolist() == hard.labels_.tolist()


def test_a_tied_variance_is_one_per_column():
    x, _ = blobs(300, 1, 2, seed=1)
    ours = GaussianMixture(2, tied_variance=True, random_state=0, tol=1e-13).fit(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = Other(2, covariance_type="tied", reg_covar=0, tol=1e-13, max_iter=3000, random_state=0).fit(
            x
        )
    assert len(set(ours.variances_[:, 0].tolist())) == 1
    assert ours.score(x) == pytest.approx(theirs.score(x), abs=1e-8)
    assert ours.bic(x) == pytest.approx(theirs.bic(x), abs=1e-4)


def test_weights_are_repeated_rows():
    x, _ = blobs(80, 2, 2)
    w = np.random.default_rng(0).integers(1, 4, len(x))
    one = GaussianMixture(2, random_state=3, tol=1e-9).fit(x, sample_weight=w)
    two = GaussianMixture(2, random_state=3, tol=1e-9).fit(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(one.means_, two.means_, rtol=1e-8)
    np.testing.assert_allclose(one.variances_, two.variances_, rtol=1e-8)
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, rel=1e-12)


def test_numbers_that_are_missing_say_nothing():
    x, labels = blobs(500, 3, 2, seed=5)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.3, np.nan, x)
    model = GaussianMixture(2, random_state=0).fit(holes)
    found = model.predict(holes)
    assert max((found == labels).mean(), (found != labels).mean()) > 0.9
    np.testing.assert_allclose(model.predict_proba([[np.nan] * 3])[0], model.weights_, rtol=1e-12)
    assert model.score_samples([[np.nan] * 3])[0] == pytest.approx(0.0, abs=1e-12)
    assert np.diff(model.result_.log_likelihoods).min() >= -1e-9 * abs(model.result_.log_likelihood)


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    "options", [{}, {"tied_variance": True}, {"fixed_variance": 2.0}, {"equal_weights": True}]
)
def test_a_climb_is_that_of_fit_em_on_its_network(columns, options):
    x, _ = blobs(300, columns, 3, seed=3)
    x = np.where(np.random.default_rng(1).random(x.shape) < 0.1, np.nan, x * 1e3 + 1e6)
    untouched, weights = x.copy(), np.random.default_rng(2).uniform(0, 2, len(x))
    options = {name: value * 1e6 if name == "fixed_variance" else value for name, value in options.items()}
    start = np.nan_to_num(x[[0, 5, 9]], nan=1e6)
    model = GaussianMixture(3, means_init=start, tol=0, max_iter=6, **options).fit(x, sample_weight=weights)
    np.testing.assert_array_equal(x, untouched)
    z = bbn.Variable("Z", [0, 1, 2])
    fixed = options.get("fixed_variance")
    leaves = [
        bbn.Gaussian(f"x{f}", [z], start[:, f], np.full(3, fixed or np.nanvar(x[:, f])))
        for f in range(columns)
    ]
    result = bbn.fit_em(
        bbn.BayesianNetwork([bbn.CPT(z, table=[1 / 3] * 3), *leaves]),
        {f"x{f}": x[:, f] for f in range(columns)},
        hidden=["Z"],
        weights=weights,
        tol=0,
        max_iter=6,
        fixed=["Z"] if options.get("equal_weights") else (),
        tied_variance=bool(options.get("tied_variance")),
        fixed_variance=fixed,
    )
    np.testing.assert_allclose(model.result_.log_likelihoods, result.log_likelihoods, rtol=1e-12)
    np.testing.assert_allclose(model.weights_, result.network["Z"].table, rtol=1e-9)
    for f in range(columns):
        leaf, own = result.network[f"x{f}"], model.network_[f"x{f}"]
        np.testing.assert_allclose(own.means, leaf.means, rtol=1e-11)
        np.testing.assert_allclose(own.variances, leaf.variances, rtol=1e-8)


def test_samples_are_those_of_the_mixture():
    x, _ = blobs(500)
    model = GaussianMixture(3, random_state=0).fit(x)
    drawn, labels = model.sample(40_000)
    assert drawn.shape == (40_000, 2)
    np.testing.assert_allclose(np.bincount(labels) / 40_000, model.weights_, atol=0.02)
    for j in range(3):
        np.testing.assert_allclose(drawn[labels == j].mean(axis=0), model.means_[j], atol=0.1)
        np.testing.assert_allclose(drawn[labels == j].var(axis=0), model.variances_[j], rtol=0.1)
    again, _ = model.sample(40_000)
    np.testing.assert_array_equal(drawn, again)


def test_far_numbers_and_far_columns():
    x, labels = blobs(300, 2, 2, seed=2)
    model = GaussianMixture(2, random_state=0).fit(x)
    proba = model.predict_proba([[1e6, -1e6], [1e150, 0.0]])
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples([[1e6, 0.0]])).all()
    shifted = GaussianMixture(2, random_state=0).fit(x * [1.0, 1e-6] + [1e9, 0.0])
    found = shifted.predict(x * [1.0, 1e-6] + [1e9, 0.0])
    assert max((found == labels).mean(), (found != labels).mean()) > 0.95


def test_reproducible_cloned_pickled_searched():
    x, _ = blobs(150)
    model = GaussianMixture(3, n_init=2, random_state=7).fit(x)
    again = clone(model).fit(x)
    np.testing.assert_array_equal(model.means_, again.means_)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(x), model.predict_proba(x))
    search = GridSearchCV(GaussianMixture(random_state=0), {"k": [1, 3]}, cv=3).fit(x)
    assert search.best_params_ == {"k": 3}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is 0"),
        ({"k": 2.5}, "k is 2.5"),
        ({"k": True}, "k is True"),
        ({"n_init": 0}, "n_init is 0"),
        ({"tol": -1}, "tol is -1"),
        ({"tol": np.nan}, "tol is nan"),
        ({"fixed_variance": 0.0}, "fixed_variance is 0.0"),
        ({"fixed_variance": True}, "fixed_variance is True"),
        ({"fixed_variance": [1.0, 2.0, 3.0]}, "fixed_variance"),
        ({"means_init": [[0.0, 0.0]]}, "means_init has shape"),
        ({"k": 1000}, "minimum of 1000"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**arguments).fit(blobs(20)[0])


def test_odd_data():
    with pytest.raises(ValueError, match="infinity"):
        GaussianMixture(1).fit([[1.0], [np.inf]])
    with pytest.raises(ValueError, match="'x1' of X holds no number"):
        GaussianMixture(1).fit([[1.0, np.nan], [2.0, np.nan]])
    with pytest.raises(bbn.DataError, match="overflow"):
        GaussianMixture(1).fit([[1e200], [-1e200]])
    with pytest.warns(bbn.CollapsedWarning):
        model = GaussianMixture(2, random_state=0).fit([[1.0], [1.0], [1.0]])
    assert np.isfinite(model.means_).all()
    with pytest.warns(bbn.CollapsedWarning):
        GaussianMixture(1).fit([[3.0]])


# Naive Bayes with real-valued columns


@pytest.mark.parametrize("weighted", [False, True])
def test_naive_bayes_of_measurements_is_scikit_learns(weighted):
    x, labels = blobs(500, 4, 3, seed=9)
    x = x * [1.0, 1e-3, 50.0, 1.0] + [0.0, 1.0, 1000.0, -5.0]
    w = np.random.default_rng(0).uniform(0.1, 2, 500) if weighted else None
    ours = bbn.NaiveBayes(continuous=True).fit(x, labels, sample_weight=w)
    theirs = GaussianNB(var_smoothing=0).fit(x, labels, sample_weight=w)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(ours.predict_joint_log_proba(x), theirs.predict_joint_log_proba(x), rtol=1e-10)
    assert ours.predict(x).tolist() == theirs.predict(x).tolist()
    assert set(ours.network_.continuous) == {"x0", "x1", "x2", "x3"}


def test_naive_bayes_with_columns_of_both_kinds():
    rng = np.random.default_rng(1)
    n = 400
    y = rng.choice(["u", "v"], n)
    frame = pd.DataFrame(
        {
            "sky": np.where(rng.random(n) < 0.5 + 0.3 * (y == "u"), "sun", "rain"),
            "heat": rng.normal(20 + 5 * (y == "u"), 3),
            "wind": rng.normal(3, 1 + (y == "v")),
        }
    )
    model = bbn.NaiveBayes(m=0, continuous=["heat", "wind"]).fit(frame, y)
    prior, sky = model.network_["class"].table, model.network_["sky"].table
    heat, wind = model.network_["heat"], model.network_["wind"]
    expected = (
        np.log(prior)
        + np.log(sky[:, [["rain", "sun"].index(s) for s in frame["sky"]]]).T
        + norm.logpdf(frame["heat"].to_numpy()[:, None], heat.means, np.sqrt(heat.variances))
        + norm.logpdf(frame["wind"].to_numpy()[:, None], wind.means, np.sqrt(wind.variances))
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(frame), expected, rtol=1e-12)
    hole = frame[:1].assign(heat=np.nan)
    without = expected[0] - norm.logpdf(frame["heat"][0], heat.means, np.sqrt(heat.variances))
    np.testing.assert_allclose(model.predict_joint_log_proba(hole)[0], without, rtol=1e-12)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(bbn.DataError, match="not a column"):
        bbn.NaiveBayes(continuous=["heet"]).fit(frame, y)
    with pytest.raises(bbn.DataError, match="more than numbers"):
        bbn.NaiveBayes(continuous=["sky"]).fit(frame, y)
    with pytest.raises(bbn.DataError, match="labels are missing"):
        bbn.NaiveBayes(continuous=["heat"]).fit(frame, [None, *y[1:]])


@pytest.mark.filterwarnings("ignore")
def test_naive_bayes_of_measurements_passes_scikit_learns_checks():
    results = check_estimator(bbn.NaiveBayes(continuous=True), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert not hasattr(bbn.NaiveBayes(continuous=True), "partial_fit")
    assert hasattr(bbn.NaiveBayes(), "partial_fit")


def test_an_outlier_does_not_hide_the_blobs():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=300), rng.normal(8, 1, 300), [1e5]])
    with pytest.warns(bbn.CollapsedWarning):
        model = GaussianMixture(3, random_state=0, n_init=2).fit(x[:, None])
    np.testing.assert_allclose(np.sort(model.means_.ravel()), [0.0, 8.0, 1e5], atol=0.2)
