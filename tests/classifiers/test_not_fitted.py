"""Whatever is asked of an estimator before `fit`, it says that it is not fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import NotFittedError

import bbn
from bbn.classifiers.text_naive_bayes import TextNaiveBayes

MODELS: dict[str, Callable[[], Any]] = {
    "NaiveBayes": bbn.NaiveBayes,
    "TAN": bbn.TAN,
    "BayesNetClassifier": bbn.BayesNetClassifier,
    "GaussianMixture": bbn.GaussianMixture,
    "HMM": lambda: bbn.HMM(2),
    "TextNaiveBayes": TextNaiveBayes,
}
ASKED = (
    *("predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "expected_costs", "decode"),
    *("score_samples", "aic", "bic", "sample", "network_"),
)
CASES = [
    (name, ask) for name in MODELS for ask in ASKED
    if ask in dir(MODELS[name]() if name == "HMM" else MODELS[name])
]  # fmt: skip


@pytest.mark.parametrize(("name", "ask"), CASES)
def test_what_is_not_fitted_says_so(name: str, ask: str) -> None:
    model = MODELS[name]()
    given = [] if ask == "sample" else [["some words"] if name == "TextNaiveBayes" else [[0], [1]]]
    with pytest.raises(NotFittedError, match=f"{name} instance is not fitted"):
        getattr(model, ask)(*given)  # a property says so by itself


def test_every_estimator_is_asked() -> None:
    assert {name for name, _ in CASES} == set(MODELS)
    assert len(CASES) >= 30
