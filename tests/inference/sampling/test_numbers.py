"""Samples of networks with Gaussian variables against the exact moments; sampling engines against exact answers."""

import numpy as np
import pandas as pd
import pytest

from tests.support.gaussian_truth import Truth, random_evidence, random_network

N = 40_000


def within(estimates, truth, squares):
    """Estimates of means are within five standard errors, given the mean squares of what was averaged."""
    error = np.sqrt(np.maximum(squares - truth**2, 1e-12) / N)
    assert (np.abs(estimates - truth) < 5 * error + 1e-9).all()


@pytest.mark.parametrize("seed", range(25))
def test_samples_given_evidence_have_the_exact_moments(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    evidence = random_evidence(net, rng) if seed % 5 else {}
    truth = Truth(net, evidence)
    rows = net.sample(N, evidence, seed=seed)
    assert list(rows.columns) == list(net.names)
    for v in truth.discrete:
        assert list(rows[v.name].cat.categories) == list(v.states)
        for state, p in truth.probability(v.name).items():
            within((rows[v.name] == state).mean(), p, p)
    x = rows[truth.numbers].to_numpy()
    assert x.dtype == np.float64
    first, second = truth.moments()
    within(x.mean(axis=0), first, np.diag(second))
    products = x[:, :, None] * x[:, None, :]
    within(products.mean(axis=0), second, (products**2).mean(axis=0))
    for name in truth.seen:
        assert (rows[name] == evidence[name]).all()


def test_the_seed_makes_the_rows_whatever_the_threads_and_chunks():
    net = random_network(np.random.default_rng(5))
    rows = net.sample(50_000, seed=3, n_jobs=1)
    pd.testing.assert_frame_equal(rows, net.sample(50_000, seed=3, n_jobs=4))
    pieces = pd.concat(net.sample(50_000, seed=3, chunks=7_001), ignore_index=True)
    pd.testing.assert_frame_equal(rows, pieces)
    assert not rows.equals(net.sample(50_000, seed=4))
    codes = net.sample(50_000, seed=3, as_codes=True)
    for name in net.continuous:
        np.testing.assert_array_equal(codes[name], rows[name])


def test_missing_values_are_nan():
    net = random_network(np.random.default_rng(6))
    name = net.continuous[0]
    whole = net.sample(20_000, seed=1)
    rows = net.sample(20_000, seed=1, missing={name: 0.25})
    assert abs(rows[name].isna().mean() - 0.25) < 0.02
    np.testing.assert_array_equal(rows[name].dropna(), whole[name][rows[name].notna()])


@pytest.mark.filterwarnings("ignore::bbn.AccuracyWarning")
@pytest.mark.parametrize("method", ["likelihood-weighting", "rejection", "importance", "gibbs", "loopy"])
def test_sampling_engines_agree_with_the_exact_answer(method):
    rng = np.random.default_rng(8)
    checked = 0
    for _ in range(6):
        net = random_network(rng, max_discrete=3)
        evidence = random_evidence(net, rng, share=0.3)
        options = {} if method == "loopy" else {"seed": 1, "n_samples": 200_000}
        exact = net.posteriors(evidence)
        answers = net.posteriors(evidence, method=method, **options)
        assert list(answers) == list(exact)
        for name, p in answers.items():
            alone = net.query(name, evidence, method=method, **options)
            if net.states(name):
                np.testing.assert_allclose(
                    p.values, exact[name].values, atol=0.05 if method == "loopy" else 0.02
                )
            else:
                spread = exact[name].std
                tolerance = (0.25 if method == "loopy" else 0.05) * spread
                assert abs(p.mean - exact[name].mean) < tolerance
                assert abs(alone.mean - exact[name].mean) < tolerance
                checked += 1
    assert checked > 5
