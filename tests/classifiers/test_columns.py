"""One rule for columns: a classifier reads them as `bbn.describe` says, and as `bbn.learn` does to predict a target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score

import bbn

RNG = np.random.default_rng(33)
N = 300
CLASS = RNG.integers(0, 3, N)
FRAME = pd.DataFrame(
    {
        "word": RNG.choice(["low", "mid", "high"], N),
        "flag": RNG.random(N) < 0.5,
        "told": np.where(RNG.random(N) < 0.4, "TRUE", "false"),
        "few": RNG.poisson(1 + CLASS),
        "dozen": np.arange(N) % 12,
        "many": RNG.integers(0, 60, N) + 20 * CLASS,
        "real": RNG.normal(CLASS, 1.0),
        "holes": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(CLASS, 2.0)),
        "text": [f"{x:.2f}".replace(".", ",") for x in RNG.normal(2 * CLASS, 1.0)],
        "noise": RNG.normal(size=N),
        "kind": pd.Categorical(RNG.choice(["b", "a"], N), categories=["b", "a", "never"]),
        "id": RNG.permutation(10_000)[:N],
        "name": [f"person {i}" for i in range(N)],
        "when": pd.date_range("2024-01-01", periods=N).astype(str),
        "same": "always",
        "class": [f"c{c}" for c in CLASS],
    }
)


@pytest.mark.parametrize("model", [bbn.NaiveBayes(), bbn.TAN(), bbn.BayesNetClassifier(learner="naive")])
def test_columns_are_those_that_learning_makes(model):
    X, y = FRAME.drop(columns="class"), FRAME["class"]
    learned = bbn.learn(FRAME.drop(columns="holes"), method="tan", target="class")
    fitted = model.fit(X, y).network_
    for name in X.columns:
        if name in learned.network:
            assert fitted.variable(name) == learned.network.variable(name)
        elif name != "holes":
            assert bbn.describe(FRAME)[name].use == "left out"
            assert fitted.variable(name).card == 1
    there = FRAME["holes"].notna()
    cut = bbn.discretize(FRAME[there], "holes", "mdlp", target="class").variables["holes"]
    assert fitted.variable("holes") == cut


@pytest.mark.parametrize(
    "make", [pl.from_pandas, lambda frame: frame.to_dict("list"), lambda f: f.to_dict("records")]
)
def test_every_kind_of_table_is_read_alike(make):
    X, y = FRAME.drop(columns=["class", "kind"]), FRAME["class"]
    ours, theirs = bbn.NaiveBayes().fit(X, y), bbn.NaiveBayes().fit(make(X), y)
    assert theirs.network_ == ours.network_
    np.testing.assert_array_equal(theirs.predict_proba(make(X)), ours.predict_proba(X))


def test_what_is_left_out_says_nothing():
    X, y = FRAME.drop(columns="class"), FRAME["class"]
    gone = ["id", "name", "when", "same"]
    for model in (bbn.NaiveBayes(), bbn.TAN()):
        whole = model.fit(X, y).predict_proba(X.assign(id=1, name="x", when=None))
        part = model.fit(X.drop(columns=gone), y).predict_proba(X.drop(columns=gone))
        np.testing.assert_allclose(whole, part, atol=1e-12)


def test_kinds_overrule_the_reading():
    X, y = FRAME[["dozen", "id", "many"]], FRAME["class"]
    model = bbn.NaiveBayes(kinds={"dozen": "number", "id": "number", "many": "category"}).fit(X, y)
    assert isinstance(model.network_.variable("dozen"), bbn.Binned)
    assert isinstance(model.network_.variable("id"), bbn.Binned)
    assert model.network_.states("many") == tuple(sorted(set(X["many"].tolist())))
    with pytest.raises(bbn.DataError, match=r"kinds= names 'dozens', which is not a column.*'dozen'"):
        bbn.TAN(kinds={"dozens": "number"}).fit(X, y)


def test_the_network_takes_the_numbers_that_were_cut():
    model = bbn.TAN().fit(FRAME[["real", "many"]], FRAME["class"])
    asked = model.network_.query("class", {"real": 1.7, "many": 33})
    np.testing.assert_allclose(
        asked.values, model.predict_proba(pd.DataFrame({"real": [1.7], "many": [33]}))[0]
    )


@pytest.mark.parametrize("boosted", [False, True])
def test_a_weight_is_a_number_of_rows_for_cuts_too(boosted):
    """Whole weights are repeated rows; weights that add up to 1, as in boosting, cut as if each row counted once."""
    X, y = FRAME[["real", "many"]], FRAME["class"]
    weights = RNG.integers(0, 4, N)
    if boosted:
        plain = bbn.NaiveBayes().fit(X, y)
        light = bbn.NaiveBayes().fit(X, y, sample_weight=np.full(N, 1 / N))
        assert light.network_.variables == plain.network_.variables
        return
    rows = np.repeat(np.arange(N), weights)
    for bins in (None, 4):
        own = bbn.NaiveBayes(bins=bins).fit(X, y, sample_weight=weights).network_
        repeated = bbn.NaiveBayes(bins=bins).fit(X.iloc[rows], y.iloc[rows]).network_
        assert own.variables == repeated.variables
    table = FRAME[["real", "many", "class"]]
    learned = bbn.learn(table, method="tan", target="class", weights=weights).network
    assert learned.variables == bbn.learn(table.iloc[rows], method="tan", target="class").network.variables


@pytest.mark.parametrize(
    ("data", "least"), [(load_wine, 0.95), (load_iris, 0.92), (load_breast_cancer, 0.94), (load_digits, 0.94)]
)
def test_a_tree_predicts_measurements_about_as_well_as_learning_does(data, least):
    """`bbn.learn` reaches .966 on wine, where cutting all columns into tenths gives .674."""
    X, y = data(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert cross_val_score(bbn.TAN(), X, y, cv=folds).mean() > least


@pytest.mark.parametrize("comma", [False, True])
def test_later_rows_are_read_with_the_decimal_mark_of_those_that_were_learned_from(comma):
    rng = np.random.default_rng(0)
    numbers = rng.uniform(500, 4000, 200).round(2)
    labels = np.where(numbers + rng.normal(size=200) * 300 > 2200, "hi", "lo")

    def text(x, places=2):
        own = f"{x:,.{places}f}"
        return own.translate(str.maketrans(",.", ".,")) if comma else own

    plain = bbn.NaiveBayes().fit(pd.DataFrame({"x": numbers}), labels)
    told = bbn.NaiveBayes().fit(pd.DataFrame({"x": [text(x) for x in numbers]}), labels)
    for x in (1234.0, 3000.0, 987.0, 2345.67):
        for places in (0, 2) if x.is_integer() else (2,):  # "1.234" by itself would be 1.234
            row = pd.DataFrame({"x": [text(x, places)]})
            np.testing.assert_array_equal(
                told.predict_proba(row), plain.predict_proba(pd.DataFrame({"x": [x]}))
            )


@pytest.mark.parametrize("model", [bbn.NaiveBayes(), bbn.TAN(), bbn.BayesNetClassifier()])
def test_odd_columns_are_states_or_say_nothing_in_every_classifier(model):
    rng = np.random.default_rng(0)
    x = rng.normal(size=120)
    X = pd.DataFrame({"x": x, "few": rng.integers(0, 3, 120)})
    y = np.where(x + rng.normal(size=120) > 0, "p", "q")
    plain = model.fit(X, y).predict_proba(X)
    for nothing in ([None] * 120, [np.nan] * 120, [10**400 + k for k in range(120)]):
        own = X.assign(z=nothing)
        np.testing.assert_allclose(model.fit(own, y).predict_proba(own), plain, atol=1e-12)
    words = [f"[{k % 3}]" for k in range(120)]
    told = model.fit(X.assign(z=words), y).predict_proba(X.assign(z=words))
    lists = X.assign(z=[[k % 3] for k in range(120)])
    np.testing.assert_array_equal(model.fit(lists, y).predict_proba(lists), told)
    parts = pd.cut(x, 4)
    told = model.fit(X.assign(z=parts.astype(str)), y).predict_proba(X.assign(z=parts.astype(str)))
    np.testing.assert_allclose(
        model.fit(X.assign(z=parts), y).predict_proba(X.assign(z=parts)), told, atol=1e-12
    )
