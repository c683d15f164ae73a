"""Classifiers that decide by expected cost."""

from __future__ import annotations

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

import bbn  # noqa: E402
from bbn.classifiers.costs import cost_matrix  # noqa: E402
from bbn.datasets import play_tennis  # noqa: E402

DAYS = play_tennis()
X, y = DAYS.drop(columns="PlayTennis"), DAYS["PlayTennis"]


def test_the_class_of_least_expected_cost_is_predicted():
    costs = np.array([[0.0, 4.0], [1.5, -0.5]])
    for make in (bbn.TAN, lambda **o: bbn.BayesNetClassifier(learner="naive", **o)):
        model = make(costs=costs).fit(X, y)
        shares = make().fit(X, y).predict_proba(X)
        exact = np.array([[sum(p[t] * costs[t, c] for t in (0, 1)) for c in (0, 1)] for p in shares])
        assert np.allclose(model.expected_costs(X), exact, atol=1e-12)
        assert (model.predict(X) == model.classes_[exact.argmin(1)]).all()


def test_equal_costs_give_the_most_probable_class():
    plain = bbn.TAN().fit(X, y)
    assert (bbn.TAN(costs={}).fit(X, y).predict(X) == plain.predict(X)).all()
    assert np.allclose(plain.expected_costs(X), 1 - plain.predict_proba(X))


def test_a_mapping_names_the_mistakes_that_cost_more():
    careful = bbn.BayesNetClassifier(learner="naive", costs={("No", "Yes"): 1000}).fit(X, y)
    assert (careful.predict(X) == "No").all()
    assert sklearn.base.clone(careful).fit(X, y).get_params()["costs"] == {("No", "Yes"): 1000}


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ([[0, 1, 2]], "expected shape"),
        ([[0, np.nan], [1, 0]], "finite"),
        ({("No", "Yse"): 1}, "did you mean 'Yes'"),
        ({"No": 1}, "true class, predicted class"),
        ({("No", "Yes"): "much"}, "finite number"),
        ("much", "mapping or an array"),
    ],
)
def test_costs_that_do_not_fit(costs, told):
    with pytest.raises(ValueError, match=told):
        bbn.TAN(costs=costs).fit(X, y)


def test_costs_that_are_not_named_are_0_and_1():
    found = cost_matrix({("b", "a"): 7, ("c", "c"): -2}, np.array(["a", "b", "c"]))
    assert found.tolist() == [[0, 1, 1], [7, 0, 1], [1, 1, -2]]
