"""bbn.HMM against hmmlearn on the same parameters, and against the conventions of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bbn


def drawn(kind: str, n: int = 20, length: int = 40, seed: int = 0):
    z = bbn.Variable("State", [0, 1])
    leaf = (
        bbn.CPT(bbn.Variable("O", [0, 1, 2]), [z], [[0.8, 0.1, 0.1], [0.1, 0.2, 0.7]])
        if kind == "categorical"
        else bbn.Gaussian("O", [z], [0.0, 4.0], [1.0, 0.5])
    )
    first, step = bbn.CPT(z, table=[0.9, 0.1]), bbn.CPT(z, [bbn.Previous(z)], [[0.9, 0.1], [0.3, 0.7]])
    table = bbn.DynamicNetwork([first], [step, leaf]).sample(length, n=n, seed=seed)
    return table[["O"]].to_numpy(float), [length] * n


@pytest.mark.parametrize("kind", ["categorical", "gaussian"])
def test_hmmlearn_agrees_on_what_was_learned(kind):
    hmm = pytest.importorskip("hmmlearn.hmm")
    X, lengths = drawn(kind)
    model = bbn.HMM(2, kind, random_state=0, max_iter=20).fit(X, lengths=lengths)
    if kind == "categorical":
        X = X.astype(int)
        other = hmm.CategoricalHMM(2)
        other.n_features, other.emissionprob_ = 3, model.emissionprob_
    else:
        other = hmm.GaussianHMM(2, covariance_type="diag")
        other.means_, other.covars_, other.n_features = model.means_, model.variances_, 1
    other.startprob_, other.transmat_ = model.startprob_, model.transmat_
    assert model.score(X, lengths) == pytest.approx(other.score(X, lengths), rel=1e-9)
    np.testing.assert_allclose(model.predict_proba(X, lengths), other.predict_proba(X, lengths), atol=1e-9)
    for algorithm in ("viterbi", "map"):
        log, states = model.decode(X, lengths, algorithm)
        log_other, states_other = other.decode(X, lengths, algorithm)
        assert log == pytest.approx(log_other, rel=1e-9)
        np.testing.assert_array_equal(states, states_other)
    np.testing.assert_array_equal(model.predict(X, lengths), other.predict(X, lengths))
    assert model.bic(X, lengths) == pytest.approx(other.bic(X, lengths), rel=1e-9)
    assert model.aic(X, lengths) == pytest.approx(other.aic(X, lengths), rel=1e-9)


def test_the_states_are_found_with_holes():
    X, lengths = drawn("gaussian", n=40)
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    model = bbn.HMM(2, "gaussian", random_state=0).fit(X, lengths)
    assert sorted(model.means_[:, 0].tolist()) == pytest.approx([0, 4], abs=0.2)
    assert (np.diff(model.result_.log_likelihoods) > -1e-7).all()
    assert isinstance(model.network_, bbn.DynamicNetwork)
    assert model.score(X, lengths) == pytest.approx(model.result_.log_likelihood, rel=1e-9)


def test_spherical_variances_are_one_per_state_and_the_best_such():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(5, 2, (60, 2))]) * [1.0, 3.0]
    model = bbn.HMM(2, "gaussian", covariance_type="spherical", random_state=1, tol=1e-10).fit(X)
    np.testing.assert_allclose(model.variances_[:, 0], model.variances_[:, 1], rtol=1e-9)
    assert (np.diff(model.result_.log_likelihoods) > -1e-7).all()
    shares = model.predict_proba(X)
    apart = ((X[:, None, :] - model.means_) ** 2 * shares[:, :, None]).sum(axis=(0, 2))
    np.testing.assert_allclose(model.variances_[:, 0], apart / (2 * shares.sum(axis=0)), rtol=1e-4)
    free = bbn.HMM(2, "gaussian", random_state=1).fit(X)
    assert model._n_parameters() == free._n_parameters() - 2


def test_several_columns_of_words():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 2, 200)
    frame = pd.DataFrame({"word": np.where(state, "up", "down"), "tone": rng.choice(["low", "high"], 200)})
    frame.loc[:5, "word"] = None
    model = bbn.HMM(2, n_init=3, random_state=0, alpha=0.5).fit(frame)
    assert [len(own) for own in model.categories_] == [2, 2]
    assert model.network_.names[1:] == ("word", "tone")
    assert len(model.emissionprob_) == 2
    X, states = model.sample(50, random_state=3)
    assert X.shape == (50, 2)
    assert set(states.tolist()) <= {0, 1}
    again = bbn.HMM(2, n_init=3, random_state=0, alpha=0.5).fit(frame)
    assert again.network_ == model.network_


def test_conventions():
    model = bbn.HMM(3, "gaussian", covariance_type="spherical", alpha=1.0)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict([[0.0]])
    fitted = bbn.HMM(2, random_state=0).fit([[0], [1], [0], [1]])
    with pytest.raises(ValueError, match="features"):
        fitted.predict([[0, 1]])
    with pytest.raises(bbn.DataError, match="no state"):
        fitted.predict([[7]])
    for wrong, said in (
        ({"n_components": 0}, "n_components"),
        ({"emission": "poisson"}, "emission"),
        ({"covariance_type": "full"}, "covariance_type"),
        ({"alpha": -1}, "alpha"),
        ({"n_init": 0}, "n_init"),
    ):
        with pytest.raises(ValueError, match=said):
            bbn.HMM(**wrong).fit([[0], [1]])
    with pytest.raises(bbn.DataError, match="add up"):
        bbn.HMM().fit([[0], [1]], lengths=[3])
    with pytest.raises(ValueError, match="algorithm"):
        fitted.decode([[0]], algorithm="best")
    one = bbn.HMM(1, random_state=0).fit([[0], [1], [1]])
    assert one.predict([[0]]).tolist() == [0]
