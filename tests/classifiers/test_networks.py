"""Classifiers: scikit-learn's own checks, the textbook's digits, and brute force over the joint of each network."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils.estimator_checks import check_estimator

import bbn
from bbn import TAN, BayesNetClassifier, NaiveBayes
from bbn.core.errors import DataError, ImpossibleEvidenceError, ModelError
from bbn.datasets import play_tennis
from bbn.learning.structure.chow_liu import tan
from tests.support import oracle

CLASSIFIERS = [NaiveBayes(), TAN(), BayesNetClassifier()]


def tennis():
    days = play_tennis()
    return days.drop(columns="PlayTennis"), days["PlayTennis"]


def random_table(rng, n=200, cards=(2, 3, 4), n_classes=3, missing=0.0):
    """Text columns that depend on the class, and labels."""
    y = rng.integers(0, n_classes, size=n)
    columns = {}
    for j, card in enumerate(cards):
        tables = rng.dirichlet(np.ones(card), size=n_classes)
        codes = [rng.choice(card, p=tables[label]) for label in y]
        values = np.array([f"s{code}" for code in codes], dtype=object)
        values[rng.random(n) < missing] = None
        columns[f"a{j}"] = values
    return pd.DataFrame(columns), np.array([f"c{label}" for label in y])


def rows_of(frame):
    return [{k: v for k, v in row.items() if v is not None and v == v} for row in frame.to_dict("records")]


# All of them


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert sum(r["status"] == "passed" for r in results) > 50


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_probabilities_are_the_networks(model):
    """Each row's posterior equals the one from the joint of `network_`, missing values summed out by dicts."""
    rng = np.random.default_rng(0)
    X, y = random_table(rng)
    fitted = clone(model).fit(X, y)
    new, _ = random_table(rng, n=25, missing=0.3)
    proba, logs = fitted.predict_proba(new), fitted.predict_log_proba(new)
    for row, values, in_logs in zip(rows_of(new), proba, logs, strict=True):
        truth = oracle.posterior(fitted.network_, ["class"], row)
        np.testing.assert_allclose(values, [truth[(label,)] for label in fitted.classes_], atol=1e-12)
        np.testing.assert_allclose(np.exp(in_logs), values, atol=1e-12)
    joint = fitted.predict_joint_log_proba(new)
    for row, values in zip(rows_of(new), joint, strict=True):
        weights = [oracle.evidence_probability(fitted.network_, {**row, "class": c}) for c in fitted.classes_]
        np.testing.assert_allclose(np.exp(values), weights, rtol=1e-10)
    assert fitted.predict(new).tolist() == fitted.classes_[proba.argmax(axis=1)].tolist()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_weights_are_repeated_examples(model):
    rng = np.random.default_rng(1)
    X, y = random_table(rng)
    weights = rng.integers(0, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    a = clone(model).fit(X, y, sample_weight=weights).predict_proba(X)
    b = clone(model).fit(X.iloc[repeated], y[repeated]).predict_proba(X)
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_they_pickle(model):
    X, y = tennis()
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.network_ == fitted.network_


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_bagging_and_boosting_work_over_them(model):
    rng = np.random.default_rng(2)
    X = rng.integers(0, 3, size=(300, 4))
    y = np.where((X[:, 0] == X[:, 1]) ^ (rng.random(300) < 0.1), "yes", "no")
    single = clone(model).fit(X, y).score(X, y)
    bagged = BaggingClassifier(model, n_estimators=5, random_state=0).fit(X, y)
    boosted = AdaBoostClassifier(model, n_estimators=20, random_state=0).fit(X, y)
    assert bagged.predict_proba(X).shape == (300, 2)
    assert bagged.score(X, y) > 0.5
    assert boosted.score(X, y) >= single - 0.02


def test_adaboosts_weights_by_hand():
    """α = ½ ln((1−ε)/ε); wrong examples × e^α, right ones × e^−α, normalised. scikit-learn's weight is 2α."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(200, 3))
    y = ((X[:, 0] + X[:, 1] + rng.integers(0, 2, size=200)) % 2).astype(int)
    boosted = AdaBoostClassifier(NaiveBayes(), n_estimators=2).fit(X, y)
    weights = np.full(200, 1 / 200)
    for k in range(2):
        wrong = NaiveBayes().fit(X, y, sample_weight=weights).predict(X) != y
        np.testing.assert_array_equal(boosted.estimators_[k].predict(X) != y, wrong)
        error = weights[wrong].sum()
        alpha = 0.5 * math.log((1 - error) / error)
        assert boosted.estimator_weights_[k] == pytest.approx(2 * alpha, rel=1e-9)
        weights = weights * np.where(wrong, math.exp(alpha), math.exp(-alpha))
        weights /= weights.sum()


def test_bbn_alone_does_not_load_scikit_learn():
    code = (
        "import sys, bbn; bbn.HypothesisSpace; bbn.Variable\n"
        "assert not {'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "bbn.NaiveBayes\n"
        "assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_scikit_learn_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import bbn; bbn.HypothesisSpace\n"
        "try:\n    bbn.NaiveBayes\n"
        "except ImportError as error:\n    assert 'pip install' in str(error), error\n"
        "else:\n    raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# NaiveBayes


def test_play_tennis_to_the_digits():
    X, y = tennis()
    model = NaiveBayes(m=0).fit(X, y)
    today = pd.DataFrame([["sunny", "cool", "high", "strong"]], columns=X.columns)
    no, yes = np.exp(model.predict_joint_log_proba(today))[0]
    assert yes == pytest.approx(9 / 14 * 2 / 9 * 3 / 9 * 3 / 9 * 3 / 9, rel=1e-12)
    assert no == pytest.approx(5 / 14 * 3 / 5 * 1 / 5 * 4 / 5 * 3 / 5, rel=1e-12)
    assert (round(yes, 5), round(no, 5)) == (0.00529, 0.02057)
    assert model.predict_proba(today)[0, 0] == pytest.approx(no / (yes + no), rel=1e-12)
    assert model.predict(today).tolist() == ["No"]
    posterior = model.network_.query("PlayTennis", today.iloc[0].to_dict())
    assert posterior["No"] == pytest.approx(0.7954173486, abs=1e-10)


def test_m_estimate():
    X, y = tennis()
    model = NaiveBayes(m=3, p={"Wind": {"strong": 0.25, "weak": 0.75}}).fit(X, y)
    net = model.network_
    assert net["Wind"].row("Yes")["strong"] == pytest.approx((3 + 3 * 0.25) / (9 + 3), rel=1e-12)
    assert net["Outlook"].row("No")["overcast"] == pytest.approx((0 + 3 / 3) / (5 + 3), rel=1e-12)
    np.testing.assert_allclose(net["PlayTennis"].table, [5 / 14, 9 / 14], rtol=1e-15)  # never smoothed


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("alpha", "n_classes"), [(1.0, 2), (0.3, 3), (2.5, 7)])
def test_equals_categorical_nb(alpha, n_classes, weighted):
    rng = np.random.default_rng(int(alpha * 10))
    card = 4
    X = np.vstack([rng.integers(0, card, size=(500, 6)), np.tile(np.arange(card)[:, None], 6)])
    y = np.append(rng.integers(0, n_classes, size=500), np.arange(card) % n_classes)
    weights = rng.random(len(y)) if weighted else None
    theirs = CategoricalNB(alpha=alpha).fit(X, y, sample_weight=weights)
    new = rng.integers(0, card, size=(300, 6))
    for table in (X, X.astype(float), X.astype(object), pd.DataFrame(X.astype(str))):
        ours = NaiveBayes(m=alpha * card).fit(table, y, sample_weight=weights)
        like = pd.DataFrame(new.astype(str)) if isinstance(table, pd.DataFrame) else new
        np.testing.assert_allclose(
            ours.predict_proba(like), theirs.predict_proba(new), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            ours.predict_joint_log_proba(like), theirs.predict_joint_log_proba(new), rtol=1e-12
        )


def test_partial_fit_in_pieces_equals_fit():
    rng = np.random.default_rng(4)
    X, y = random_table(rng, n=300, cards=(2, 6, 3), missing=0.1)
    weights = rng.random(300)
    whole = NaiveBayes().fit(X, y, sample_weight=weights)
    pieces = NaiveBayes()
    for part in np.array_split(np.arange(300), [4, 9, 60]):
        pieces.partial_fit(X.iloc[part], y[part], classes=["c0", "c1", "c2"], sample_weight=weights[part])
    np.testing.assert_allclose(
        pieces.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-10, atol=1e-12
    )
    assert pieces.network_.variables == whole.network_.variables


def test_partial_fit_wants_known_classes_and_labels():
    model = NaiveBayes().partial_fit([["a"], ["b"]], ["x", "y"])
    with pytest.raises(ValueError, match="'z', which is not among the classes"):
        model.partial_fit([["a"]], ["z"])
    with pytest.raises(DataError, match="labels are missing"):
        model.partial_fit([["a"], ["b"]], ["x", None])


def test_columns_of_every_kind_side_by_side():
    rng = np.random.default_rng(5)
    n = 400
    y = rng.integers(0, 2, size=n)
    frame = pd.DataFrame(
        {
            "text": np.where(y ^ (rng.random(n) < 0.2), "left", "right"),
            "flag": (y == 1) ^ (rng.random(n) < 0.3),
            "count": rng.poisson(2 + 2 * y),
            "measure": rng.normal(y, 1.0),
            "size": pd.Categorical(np.where(y, "large", "small"), categories=["small", "medium", "large"]),
        }
    )
    model = NaiveBayes().fit(frame, pd.Series(y, name="label"))
    states = {v.name: v.states for v in model.network_.variables}
    assert states["label"] == (0, 1)
    assert states["text"] == ("left", "right")
    assert states["flag"] == (False, True)
    assert states["count"] == tuple(sorted(set(frame["count"].tolist())))
    cut = bbn.discretize({"m": frame["measure"], "y": y}, "m", "mdlp", target="y")
    assert states["measure"] == cut.states("m")
    assert len(set(NaiveBayes(bins=10).fit(frame, y).network_.states("measure"))) == 10
    assert states["size"] == ("small", "medium", "large")
    assert model.score(frame, y) > 0.9
    polars = pytest.importorskip("polars")
    same = NaiveBayes().fit(polars.from_pandas(frame.drop(columns="size")), y)
    other = NaiveBayes().fit(frame.drop(columns="size"), y)
    np.testing.assert_allclose(
        same.predict_proba(polars.from_pandas(frame.drop(columns="size"))),
        other.predict_proba(frame.drop(columns="size")),
        rtol=1e-12,
    )


def test_dicts_and_arrow_tables_are_tables_too():
    X, y = tennis()
    expected = NaiveBayes().fit(X, y).predict_proba(X)
    rows = X.to_dict("records")
    by_rows = NaiveBayes().fit(rows, y)
    np.testing.assert_array_equal(by_rows.predict_proba(rows), expected)
    np.testing.assert_array_equal(NaiveBayes().fit(X.to_dict("list"), y).predict_proba(X), expected)
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(X)
    np.testing.assert_array_equal(NaiveBayes().fit(table, y).predict_proba(table), expected)
    # in any order, and what is left out is missing
    shuffled = by_rows.predict_proba([{"Wind": "weak", "Outlook": "rain"}])
    alone = by_rows.network_.query("PlayTennis", {"Wind": "weak", "Outlook": "rain"})
    np.testing.assert_allclose(shuffled[0], alone.values, rtol=1e-12)
    with pytest.raises(ValueError, match="Windy"):
        by_rows.predict([{"Windy": "weak"}])


def test_measurements_are_cut_at_their_quantiles():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1000, 1))
    y = rng.integers(0, 2, size=1000)
    model = NaiveBayes(bins=4).fit(X, y)
    np.testing.assert_array_equal(sum(model.feature_count_[0]), [250, 250, 250, 250])
    (column,) = model.encoder_.columns
    states = bbn.discretize({"x": X[:, 0]}, "x", bins=4).states("x")
    assert column.variable.states == states
    np.testing.assert_allclose(column.edges, np.quantile(X, [0.25, 0.5, 0.75]), atol=0.02)
    assert column.codes(np.array([-9.0, 9.0, np.nan])).tolist() == [0, 3, 4]


def test_values_never_seen_are_ignored():
    X, y = tennis()
    model = NaiveBayes().fit(X, y)
    odd = pd.DataFrame([["hail", "cool", "high", "strong"]], columns=X.columns)
    without = pd.DataFrame([[None, "cool", "high", "strong"]], columns=X.columns)
    np.testing.assert_array_equal(model.predict_proba(odd), model.predict_proba(without))
    numbers = NaiveBayes().fit([[0, 0], [5, 1], [9, 1]], [0, 1, 1])
    np.testing.assert_array_equal(numbers.predict_proba([[3, 1]]), numbers.predict_proba([[np.nan, 1]]))
    np.testing.assert_array_equal(numbers.predict_proba([[77, 1]]), numbers.predict_proba([[0.5, 1]]))


def test_missing_values_in_training_are_left_out_of_their_column_alone():
    X = pd.DataFrame({"a": ["x", None, "y", "y"], "b": ["u", "u", "v", None]})
    model = NaiveBayes(m=2).fit(X, ["p", "p", "p", "q"])
    np.testing.assert_allclose(model.network_["a"].table, [[2 / 4, 2 / 4], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(model.network_["b"].table, [[3 / 5, 2 / 5], [1 / 2, 1 / 2]])


@pytest.mark.filterwarnings("ignore::bbn.core.errors.UnseenRowsWarning")
def test_rows_impossible_under_every_class_are_named():
    model = NaiveBayes(m=0).fit([["a", "u"], ["b", "v"]], [0, 1])
    with pytest.raises(ImpossibleEvidenceError, match="row 1 is impossible"):
        model.predict_proba([["a", "u"], ["a", "v"]])


def test_pipelines_and_searches():
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(
        KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf"), TAN()
    )
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.93
    search = GridSearchCV(NaiveBayes(), {"m": [0.5, 2], "bins": [4, 8]}, scoring="neg_log_loss", cv=3)
    assert search.fit(X, y).best_estimator_.network_.names[0] == "class"


# Examples without a label


def slow_em(X, y, classes, m, rounds):
    """EM for naive Bayes with dicts: P(class) and P(value | class) per column after so many rounds."""
    columns = [sorted({row[j] for row in X}) for j in range(len(X[0]))]

    def learn(weights):
        prior = {c: sum(w[c] for w in weights) / len(X) for c in classes}
        tables = []
        for j, states in enumerate(columns):
            table = {}
            for c, s in product(classes, states):
                n_c = sum(w[c] for w in weights)
                hits = sum(w[c] for w, row in zip(weights, X, strict=True) if row[j] == s)
                table[c, s] = (hits + m / len(states)) / (n_c + m)
            tables.append(table)
        return prior, tables

    known = [({c: float(c == label) for c in classes} if label is not None else None) for label in y]
    labelled = [(row, w) for row, w in zip(X, known, strict=True) if w is not None]
    start_X, X_all = [row for row, _ in labelled], X
    X = start_X
    prior, tables = learn([w for _, w in labelled])
    X = X_all
    for _ in range(rounds):
        weights = []
        for row, w in zip(X, known, strict=True):
            if w is None:
                joint = {
                    c: prior[c] * math.prod(t[c, v] for t, v in zip(tables, row, strict=True))
                    for c in classes
                }
                w = {c: p / sum(joint.values()) for c, p in joint.items()}
            weights.append(w)
        prior, tables = learn(weights)
    return prior, tables


def half_labelled(seed, n=60, share=0.4):
    rng = np.random.default_rng(seed)
    frame, y = random_table(rng, n=n, cards=(2, 3, 3), n_classes=2)
    labels = np.where(rng.random(n) < share, y, None)
    labels[:4] = ["c0", "c1", "c0", "c1"]
    return frame, labels, y


def test_em_follows_the_e_and_m_steps_by_hand():
    frame, labels, _ = half_labelled(0)
    X = [tuple(row) for row in frame.to_numpy()]
    model = NaiveBayes(m=1.5, max_iter=6, tol=-np.inf).fit(frame, labels)
    prior, tables = slow_em(X, labels.tolist(), ["c0", "c1"], 1.5, rounds=6)
    np.testing.assert_allclose(model.network_["class"].table, list(prior.values()), rtol=1e-10)
    for j, table in enumerate(tables):
        ours = model.network_[f"a{j}"]
        for (c, s), value in table.items():
            assert ours.row(c)[s] == pytest.approx(value, rel=1e-10)


def test_the_objective_of_em_never_falls():
    for seed in range(10):
        frame, labels, _ = half_labelled(seed)
        model = NaiveBayes(tol=0, max_iter=60).fit(frame, labels)
        assert len(model.objectives_) == model.n_iter_ > 1
        assert np.diff(model.objectives_).min() >= -1e-9


def test_em_agrees_with_fit_em():
    frame, labels, _ = half_labelled(3)
    ours = NaiveBayes(m=2, tol=1e-14, max_iter=5000).fit(frame, labels).network_
    start = NaiveBayes(m=2).fit(frame[pd.notna(labels)], labels[pd.notna(labels)]).network_
    data = frame.assign(**{"class": labels})

    class Smoothing:
        def pseudocounts(self, family):
            shape = tuple(v.card for v in family)
            return np.zeros(shape) if family[-1].name == "class" else np.full(shape, 2 / family[-1].card)

        def check_names(self, names):
            pass

    theirs = bbn.fit_em(start, data, prior=Smoothing(), tol=1e-15, max_iter=5000, progress=False).network
    for name in ours.names:
        np.testing.assert_allclose(ours[name].table, theirs[name].table, atol=1e-5)


def test_unlabelled_examples_help():
    """Few labels and many examples without: the mean held-out log loss over several draws falls."""
    alone, helped = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, size=1200)
        X = np.where(rng.random((1200, 8)) < np.where(y, 0.75, 0.25)[:, None], "on", "off")
        labels = np.array([f"c{label}" for label in y], dtype=object)
        labels[6:600] = None
        labels[:6] = ["c0", "c1", "c0", "c1", "c0", "c1"]
        X[:6] = np.where(rng.random((6, 8)) < np.array([0.25, 0.75] * 3)[:, None], "on", "off")
        test = slice(600, 1200)
        few = NaiveBayes().fit(X[:6], labels[:6])
        many = NaiveBayes().fit(X[:600], labels[:600])
        alone.append(log_loss(y[test], few.predict_proba(X[test])))
        helped.append(log_loss(y[test], many.predict_proba(X[test])))
    assert np.mean(helped) < np.mean(alone)
    assert sum(h < a for h, a in zip(helped, alone, strict=True)) >= 10


def test_other_classifiers_take_missing_labels_and_values_too():
    frame, labels, y = half_labelled(1, n=300)
    frame.loc[::7, "a1"] = None
    model = TAN().fit(frame, labels)
    assert model.score(frame, y) > 0.5
    assert model.predict_proba(frame).shape == (300, 2)


def test_a_given_structure_is_learned_by_em_to_the_same_tables():
    frame, labels, _ = half_labelled(2, n=200)
    naive = [("class", name) for name in frame.columns]
    by_network = BayesNetClassifier(structure=naive).fit(frame, labels).network_
    by_formula = NaiveBayes(tol=1e-12, max_iter=3000).fit(frame, labels).network_
    labelled_only = NaiveBayes().fit(frame[pd.notna(labels)], labels[pd.notna(labels)]).network_
    for name in frame.columns:
        np.testing.assert_allclose(by_network[name].table, by_formula[name].table, atol=2e-3)
    assert abs(by_formula["a0"].table - labelled_only["a0"].table).max() > 0.01


# TAN and BayesNetClassifier


def dependent(rng, n):
    """Three attributes, the second mostly a copy of the first, the third of the second: naive Bayes counts thrice."""
    y = rng.integers(0, 2, size=n)
    first = np.where(rng.random(n) < 0.7, y, 1 - y)
    second = np.where(rng.random(n) < 0.95, first, 1 - first)
    third = np.where(rng.random(n) < 0.95, second, 1 - second)
    return np.stack([first, second, third], axis=1), y


def test_tan_beats_naive_bayes_where_attributes_depend():
    rng = np.random.default_rng(7)
    X, y = dependent(rng, 2000)
    test_X, test_y = dependent(rng, 5000)
    losses = {
        type(model).__name__: log_loss(test_y, model.fit(X, y).predict_proba(test_X))
        for model in (NaiveBayes(), TAN())
    }
    assert losses["TAN"] < losses["NaiveBayes"] - 0.05
    truth = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    assert losses["TAN"] == pytest.approx(truth, abs=0.03)


def test_tan_is_a_tree_under_the_class():
    X, y = dependent(np.random.default_rng(8), 2000)
    net = TAN().fit(X, y).network_
    assert net.parents("class") == ()
    assert all("class" in net.parents(name) for name in ("x0", "x1", "x2"))
    tree = {frozenset((p, name)) for name in ("x0", "x1", "x2") for p in net.parents(name) if p != "class"}
    assert tree == {frozenset(("x0", "x1")), frozenset(("x1", "x2"))}


def test_tan_smooths_like_naive_bayes():
    X, y = dependent(np.random.default_rng(9), 50)
    net = TAN(m=2).fit(X, y).network_
    child = next(name for name in net.names if len(net.parents(name)) == 2)
    other = next(p for p in net.parents(child) if p != "class")
    columns = {f"x{j}": X[:, j] for j in range(3)}
    chosen = (y == 1) & (columns[other] == 0)
    hits = (columns[child][chosen] == 1).sum()
    row = {"class": 1, other: 0}
    got = net[child].row(*(row[p] for p in net.parents(child)))[1]
    assert got == pytest.approx((hits + 1) / (chosen.sum() + 2), rel=1e-12)


def test_a_given_structure_is_fitted_and_columns_outside_it_left_out():
    X, y = tennis()
    model = BayesNetClassifier(structure=[("PlayTennis", "Wind"), ("Outlook", "PlayTennis")], m=0).fit(X, y)
    assert set(model.network_.names) == {"PlayTennis", "Wind", "Outlook"}
    frame = X.assign(PlayTennis=y)
    share = frame[frame.Outlook == "rain"].PlayTennis.eq("Yes").mean()
    assert model.network_["PlayTennis"].row("rain")["Yes"] == pytest.approx(share)
    changed = X.assign(Humidity="high", Temperature="hot")
    np.testing.assert_array_equal(model.predict_proba(changed), model.predict_proba(X))


def test_learners_by_name_and_by_function():
    X, y = tennis()
    naive = BayesNetClassifier(learner="naive").fit(X, y)
    np.testing.assert_allclose(naive.predict_proba(X), NaiveBayes().fit(X, y).predict_proba(X), rtol=1e-12)
    own = BayesNetClassifier(learner=lambda data, target: tan(data, target)).fit(X, y)
    np.testing.assert_allclose(own.predict_proba(X), TAN().fit(X, y).predict_proba(X), rtol=1e-12)
    for name in ("chow-liu", "k2", "hill-climb"):
        model = BayesNetClassifier(learner=name).fit(X, y)
        assert set(model.network_.names) == {*X.columns, "PlayTennis"}


def test_averaging_is_bayes_optimal_over_structures():
    X, y = dependent(np.random.default_rng(10), 60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(**{"class": y})
    naive = [("class", name) for name in "abc"]
    structures = [naive, [*naive, ("a", "b")], [*naive, ("a", "b"), ("b", "c")]]
    model = BayesNetClassifier(structure=structures, averaging="bdeu").fit(frame[["a", "b", "c"]], y)
    scores = np.array([bbn.score(s, frame, "bdeu") for s in structures])
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    np.testing.assert_allclose(list(model.space_.probabilities.values()), weights, rtol=1e-9)
    joint = 0.0
    for weight, structure in zip(weights, structures, strict=True):
        one = BayesNetClassifier(structure=structure).fit(frame[["a", "b", "c"]], y)
        joint = joint + weight * np.exp(one.predict_joint_log_proba(frame[["a", "b", "c"]]))
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(frame[["a", "b", "c"]]), expected, rtol=1e-9)
    assert model.network_ == model.networks_[int(weights.argmax())]
    assert pickle.loads(pickle.dumps(model)).space_ == model.space_


def test_structures_over_some_of_the_columns_are_weighed_by_all_the_data():
    X, y = dependent(np.random.default_rng(11), 60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    small, full = [("class", "a")], [("class", "a"), ("a", "b"), ("b", "c")]
    model = BayesNetClassifier(structure=[small, full], averaging="bic").fit(frame, y)
    data = frame.assign(**{"class": y})
    graph = bbn.BayesianNetwork([bbn.CPT.uniform(bbn.Variable(n, [0, 1])) for n in data]).add_arc(
        "class", "a"
    )
    odds = bbn.score(graph, data, "bic") - bbn.score(full, data, "bic")
    assert model.space_.probabilities[0] == pytest.approx(1 / (1 + math.exp(-odds)), rel=1e-9)


def test_faults_of_structures_and_learners():
    X, y = tennis()
    with pytest.raises(ModelError, match="'Sky', which is not a column"):
        BayesNetClassifier(structure=[("PlayTennis", "Sky")]).fit(X, y)
    with pytest.raises(ModelError, match="does not have the class 'PlayTennis'"):
        BayesNetClassifier(structure=[("Wind", "Outlook")]).fit(X, y)
    with pytest.raises(ValueError, match="not both"):
        BayesNetClassifier(structure=[("PlayTennis", "Wind")], learner="tan").fit(X, y)
    with pytest.raises(ValueError, match="did you mean 'tan'"):
        BayesNetClassifier(learner="tann").fit(X, y)
    with pytest.raises(ValueError, match="a list of structures"):
        BayesNetClassifier(learner="tan", averaging="bdeu").fit(X, y)


def test_faults_of_examples():
    with pytest.raises(ValueError, match=r"(?i)weight"):
        NaiveBayes().fit([["a"]], ["x"], sample_weight=[0.0])
    with pytest.raises(ValueError, match="no label at all"):
        NaiveBayes().fit([["a"], ["b"]], [None, None])
    with pytest.raises(DataError, match="holds values of type int, str"):
        NaiveBayes().fit(pd.DataFrame({"a": [1, "x"]}), [0, 1])
    with pytest.raises(DataError, match="MEstimate: p names 'b'"):
        NaiveBayes(p={"b": [1.0]}).fit(pd.DataFrame({"a": ["x", "y"]}), [0, 1])
    with pytest.raises(ValueError, match="infinity"):
        NaiveBayes().fit(pd.DataFrame({"a": [1.5, np.inf]}), [0, 1])
    with pytest.raises(ValueError, match=r"twice|unique"):
        NaiveBayes().fit(pd.DataFrame([["x", "y"]], columns=["a", "a"]), [0])
    fitted = NaiveBayes().fit(pd.DataFrame({"a": [1.5, 2.5, 3.5]}), [0, 1, 1])
    with pytest.raises(DataError, match="held numbers"):
        fitted.predict(pd.DataFrame({"a": ["x"]}))


# The kernels and their twins


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_compiled_kernels_equal_their_twins(dtype):
    compiled = pytest.importorskip("bbn.kernels.compiled.classify")
    from bbn.kernels.pure import classify as classify_py

    rng = np.random.default_rng(0)
    matrix = rng.integers(-3, 9, size=(3000, 4)).astype(dtype)
    low = matrix.min(axis=0).astype(np.int64)
    ptr = np.cumsum([0, *(matrix.max(axis=0).astype(np.int64) - low + 1)])
    np.testing.assert_array_equal(compiled.present(matrix, low, ptr), classify_py.present(matrix, low, ptr))
    look_up = rng.integers(0, 7, size=ptr[-1]).astype(np.uint8)
    otherwise = np.array([7, 8, 9, 10], dtype=np.uint8)
    new = rng.integers(-9, 20, size=(3000, 4)).astype(dtype)
    if dtype is np.float64:
        assert compiled.present(matrix + 0.5, low, ptr) is None
        assert classify_py.present(matrix + 0.5, low, ptr) is None
        new[::5, 1] = np.nan
        new[::3, 2] += 0.25
    codes = compiled.code_matrix(new, low, ptr, look_up, otherwise)
    np.testing.assert_array_equal(codes, classify_py.code_matrix(new, low, ptr, look_up, otherwise))
    for n_classes in (2, 5):
        tables = rng.normal(size=(44, n_classes))
        starts = np.array([0, 11, 22, 33, 44])
        columns = [codes[0], codes[1].astype(np.uint16), codes[2], codes[3]]
        fast, slow = np.zeros((3000, n_classes)), np.zeros((3000, n_classes))
        compiled.add_scores(columns, starts, tables, fast)
        classify_py.add_scores(columns, starts, tables, slow)
        np.testing.assert_array_equal(fast, slow)


def test_predictions_averaged_over_structures_drawn_from_their_posterior():
    data = bbn.example("asia").sample(400, seed=3)
    X, y = data.drop(columns="dysp"), data["dysp"]
    model = BayesNetClassifier(average="posterior").fit(X, y)
    assert len(model.networks_) == 30
    drawn = bbn.arc_posterior(data, max_parents=3)
    share = sum(net.graph.has_edge("bronc", "dysp") for net in model.networks_) / 30
    assert abs(share - drawn["bronc", "dysp"]) < 0.3
    # Bayes' rule over the drawn structures: each counts as much as it expected the row
    weights = np.exp([net.log_likelihood(X).to_numpy() for net in model.networks_])
    answers = np.array([net.predict_proba(X, "dysp").to_numpy() for net in model.networks_])
    expected = (weights[:, :, None] * answers).sum(axis=0) / weights.sum(axis=0)[:, None]
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    with pytest.raises(ValueError, match="'posterior' or None"):
        BayesNetClassifier(average="all").fit(X, y)
