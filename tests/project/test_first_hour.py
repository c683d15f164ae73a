"""The slips of a first hour: each message names the way out, and what can be meant in only one way works."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.cli import main

NET = bbn.example("asia")
ROWS = NET.sample(60, seed=0)
ROW = ROWS.iloc[0].drop("lung")


@pytest.mark.parametrize(
    "call",
    [
        lambda: bbn.fit(ROWS, NET.graph),
        lambda: bbn.fit(ROWS, NET),
        lambda: bbn.fit_em(ROWS, NET),
        lambda: bbn.fit_gradient(ROWS, NET),
        lambda: bbn.score(ROWS, NET),
        lambda: bbn.learn(NET, ROWS),
    ],
)
def test_data_in_the_place_of_a_structure_are_recognised(call):
    with pytest.raises(bbn.ModelError, match="the structure comes first, then the data"):
        call()


def test_a_row_of_a_table_is_evidence():
    as_dict = ROW.to_dict()
    assert NET.query("lung", ROW) == NET.query("lung", as_dict)
    assert NET.posteriors(ROW)["lung"] == NET.posteriors(as_dict)["lung"]
    assert NET.mpe(ROW) == NET.mpe(as_dict)
    assert NET.map(["lung"], ROW) == NET.map(["lung"], as_dict)
    assert NET.probability(ROW) == NET.probability(as_dict)
    assert NET.sample(5, ROW, seed=1).equals(NET.sample(5, as_dict, seed=1))
    assert NET.plot(evidence=ROW).svg == NET.plot(evidence=as_dict).svg
    assert str(NET.explain("lung", evidence=ROW)) == str(NET.explain("lung", evidence=as_dict))
    for method in ("elimination", "enumeration", "likelihood-weighting"):
        options = {"seed": 1} if method == "likelihood-weighting" else {}
        given = NET.query("lung", ROW, method=method, **options)
        assert given == NET.query("lung", as_dict, method=method, **options)
    holes = ROW.astype(object).where(ROW.index != "xray", np.nan)
    assert NET.query("lung", holes) == NET.query("lung", {k: v for k, v in as_dict.items() if k != "xray"})
    impossible = pd.Series({"tub": "yes", "either": "no"})
    with pytest.raises(bbn.ImpossibleEvidenceError, match="tub='yes', either='no'"):
        NET.query("lung", impossible)


def test_a_row_of_numbers_is_evidence():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=80), "c": ["a", "b"] * 40})
    rows["y"] = rows.x + rng.normal(size=80)
    net = bbn.fit([("c", "x"), ("x", "y")], rows, continuous=["x", "y"])
    given = rows.drop(columns="y").iloc[3]
    assert net.query("y", given).mean == net.query("y", given.to_dict()).mean
    assert net.posteriors(given)["y"].mean == net.query("y", given).mean


@pytest.mark.parametrize("finding", [[0.8, 0.2], (0.8, 0.2), np.array([0.8, 0.2])])
def test_a_list_of_weights_names_virtual(finding):
    with pytest.raises(bbn.EvidenceError, match=r"bbn\.Virtual\(\{'yes': 0\.8, 'no': 0\.2\}\)"):
        NET.query("lung", {"xray": finding})
    with pytest.raises(bbn.EvidenceError, match=r"bbn\.OneOf\('yes', 'no'\)"):
        NET.query("lung", {"xray": ["yes", "no"]})


def test_evidence_given_as_a_keyword_is_shown_as_a_mapping():
    words = r"'xray' is a variable, not an option; .*evidence=\{'xray': 'yes'\}"
    for call in (
        lambda: NET.query("lung", xray="yes"),
        lambda: NET.posteriors(xray="yes"),
        lambda: NET.mpe(xray="yes"),
        lambda: bbn.JunctionTree(NET).query("lung", xray="yes"),
        lambda: NET.query("lung", xray="yes", method="gibbs"),
    ):
        with pytest.raises(TypeError, match=words):
            call()
    with pytest.raises(TypeError, match="did you mean 'memory_limit'"):
        NET.query("lung", memory_limt="1 GB")


def test_names_that_are_numbers_get_a_hint():
    rows = pd.DataFrame({0: ["a", "b"] * 9, 1: ["a", "b"] * 9})
    for call in (
        lambda: bbn.fit([(0, 1)], rows),
        lambda: bbn.fit([("0", "1")], rows),
        lambda: bbn.hill_climb(rows),
    ):
        with pytest.raises(bbn.BBNError, match=r"data\.columns = data\.columns\.map\(str\)"):
            call()
    assert set(bbn.learn(rows).network.names) == {"0", "1"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: bbn.hill_climb(ROWS, max_parent=1),
            "hill_climb.. has no option 'max_parent'; .*max_parents",
        ),
        (lambda: bbn.k2(ROWS, NET.names, max_parent=1), "k2.. has no option 'max_parent'; .*max_parents"),
        (lambda: bbn.pc(ROWS, alfa=1), "pc.. has no option 'alfa'; .*alpha"),
        (lambda: bbn.fit(NET, ROWS, priors=1), "fit.. has no option 'priors'; .*prior"),
    ],
)
def test_a_misspelt_option_names_the_option(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_one_is_not_plural():
    one = NET.subnetwork(["asia", "tub"])
    assert repr(one) == "<BayesianNetwork 'asia': 2 nodes, 1 arc>"
    assert repr(one.subnetwork(["asia"])) == "<BayesianNetwork 'asia': 1 node, 0 arcs>"
    rows = {"a": ["x", "y"] * 20, "b": ["u", "v"] * 20}
    text = bbn.learn(rows, structure=[("a", "b")]).report
    assert "1 arcs" not in text
    assert "1 variables" not in text


def test_noisy_or_finds_the_state_that_holds():
    child, cause = bbn.Variable("c", ["no", "yes"]), bbn.Variable("a", ["no", "yes"])
    for made in (bbn.CPT.noisy_or(child, [cause], [0.8]), bbn.NoisyOr(child, [cause], [0.8])):
        assert made.row("yes")["yes"] == pytest.approx(0.8)
        assert made.row("no")["yes"] == 0
    plain = bbn.Variable("c", ["x", "y"])
    for make in (bbn.CPT.noisy_or, bbn.NoisyOr):
        with pytest.raises(bbn.ModelError, match="which of the states"):
            make(plain, [cause], [0.8])
        assert make(plain, [cause], [0.8], holds={"c": "y"}).row("yes")["y"] == pytest.approx(0.8)


def test_a_misspelt_example_or_file_is_suggested(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bbn.example("asia").save("clinic.yaml")
    for command, meant in (("query asai", "asia"), ("show asai", "asia"), ("show clinc.yaml", "clinic.yaml")):
        assert main(command.split()) == 1
        assert f"did you mean '{meant}'?" in capsys.readouterr().err
    assert main(["check", "asai"]) == 1
    assert "did you mean 'asia'?" in capsys.readouterr().out
    assert main(["show", "qqqqqqqq"]) == 1
    assert "bbn examples lists them" in capsys.readouterr().err


def test_check_lists_bad_sums_beside_other_faults(tmp_path, capsys):
    path = tmp_path / "bad.yaml"
    path.write_text(
        "nodes:\n  A: {states: [a, b], table: [0.5, 0.5]}\n  B:\n    states: [a, b]\n    parents: [A]\n"
        "    table:\n      a: [0.3, 0.6]\n      c: [0.3, 0.7]\n  C:\n    states: [a, b]\n    parents: [A]\n"
        "    table:\n      a: [0.3, 0.1]\n      b: [0.3, x]\n"
    )
    assert main(["check", str(path)]) == 1
    told = [line.removeprefix(f"{path}:").split(": ", 1) for line in capsys.readouterr().out.splitlines()]
    assert [place for place, _ in told] == ["7:7", "8:7", "13:7", "14:16"]
    assert "sums to 0.9" in told[0][1]
    assert "sums to 0.4" in told[2][1]
    assert "no state 'c'" in told[1][1]
    assert "'x'" in told[3][1]


def test_a_misnamed_nodes_is_named(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("name: x\nnode:\n  A: {states: [a, b], table: [0.5, 0.5]}\n")
    with pytest.raises(bbn.ParseError, match="'node' must be called 'nodes'") as caught:
        bbn.load(path)
    assert (caught.value.line, len(caught.value.problems)) == (2, 1)
