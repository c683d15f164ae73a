"""Naive Bayes trained to predict is logistic regression: scikit-learn's gives the same probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.data import code
from bbn.learning.raw.logistic import logistic_network
from bbn.model.variable import Continuous

sklearn = pytest.importorskip("sklearn")


def rows(seed: int, n: int = 400, n_classes: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(5, 3, n)
    word = rng.choice(["u", "v", "w"], n)
    grade = rng.integers(1, 6, n)
    scores = rng.normal(size=(3, n_classes))
    logits = (
        np.outer(x - 5, scores[0]) / 2 + np.outer(word == "u", scores[1]) + np.outer(grade - 3, scores[2])
    )
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return pd.DataFrame(
        {"y": [f"class {i}" for i in y], "x": x, "z": rng.normal(size=n), "word": word, "grade": grade}
    )


def coded(frame: pd.DataFrame):
    wanted = [bbn.Variable(name, sorted(set(frame[name].dropna()))) for name in ("y", "word", "grade")]
    return code(frame, [*wanted, Continuous("x"), Continuous("z")])


def regression(frame: pd.DataFrame, strength: float, linear: bool):
    from sklearn.linear_model import LogisticRegression

    design = [(frame[name] - frame[name].mean()) / frame[name].std(ddof=0) for name in ("x", "z")]
    if linear:
        design.append((frame.grade - frame.grade.mean()) / frame.grade.std(ddof=0))
    dummies = [
        pd.get_dummies(frame[name]).to_numpy(float) for name in ("word", *(() if linear else ("grade",)))
    ]
    matrix = np.column_stack([*design, *dummies])
    model = LogisticRegression(C=strength, max_iter=10_000, tol=1e-10).fit(matrix, frame.y)
    return model.predict_proba(matrix)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(("strength", "linear"), [(1.0, False), (1.0, True), (0.05, True)])
def test_it_predicts_as_scikit_learn_does(n_classes, strength, linear):
    frame = rows(n_classes, n_classes=n_classes)
    net, _ = logistic_network(coded(frame), "y", strength, linear)
    found = net.predict_proba(frame.drop(columns="y"), "y").to_numpy()
    expected = regression(frame, strength, linear)
    if n_classes == 2:  # of two classes scikit-learn has one weight, so its penalty is twice as strong
        expected = regression(frame, 2 * strength, linear)
    assert np.abs(found - expected).max() < 2e-3


def test_columns_have_the_shares_of_the_data():
    frame = rows(7)
    net, graph = logistic_network(coded(frame), "y", 1.0)
    assert set(graph.edges) == {("y", name) for name in ("x", "z", "word", "grade")}
    for name in ("word", "grade"):
        shares = frame[name].value_counts(normalize=True)
        for state, p in net.query(name).to_dict().items():
            assert p == pytest.approx(shares[state], abs=1e-6)
    for name in ("x", "z"):
        density = net.query(name)
        assert density.mean == pytest.approx(frame[name].mean(), abs=1e-4)
        assert density.variance == pytest.approx(frame[name].var(ddof=0), rel=1e-4)


def test_holes_weights_and_few_values_are_taken():
    frame = rows(3, n=60)
    frame.loc[::4, "x"] = np.nan
    frame.loc[1::5, "word"] = None
    frame.loc[2::9, "y"] = None
    net, _ = logistic_network(coded(frame), "y", 1.0)
    p = net.predict_proba(frame.drop(columns="y"), "y").to_numpy()
    assert np.isfinite(p).all()
    assert (p > 0).all()
    twice = pd.concat([rows(4, n=50)] * 2)
    table = coded(rows(4, n=50))
    weighted = type(table)(
        table.variables, table.codes, table.n_rows, np.full(50, 2.0), numbers=table.numbers
    )
    one = logistic_network(weighted, "y", 1.0)[0].predict_proba(twice, "y").to_numpy()
    two = logistic_network(coded(twice), "y", 1.0)[0].predict_proba(twice, "y").to_numpy()
    assert np.abs(one - two).max() < 1e-3


def test_a_target_that_is_a_line_of_numbers_is_predicted_as_well_as_by_regression():
    frame = rows(11, n=500, n_classes=2).drop(columns=["word", "grade"])
    train, test = frame.iloc[:350], frame.iloc[350:]
    found = bbn.learn(train, target="y")
    p = found.network.predict_proba(test, "y")
    loss = -np.mean([np.log(p[state].iloc[i]) for i, state in enumerate(test.y)])
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(train[["x", "z"]], train.y)
    p = model.predict_proba(test[["x", "z"]])
    true = [list(model.classes_).index(state) for state in test.y]
    assert loss < -1.05 * np.log(p[np.arange(len(true)), true]).mean()
