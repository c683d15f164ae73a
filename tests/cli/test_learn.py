"""`bbn learn`: tables and structures from a file of data."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest

import bbn
from bbn.cli import main


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "flu.csv"
    bbn.example("flu").sample(300, seed=0).to_csv(path, index=False)
    return path


def test_maximum_likelihood_and_priors(data, tmp_path, capsys):
    out = tmp_path / "fitted.yaml"
    assert main(["learn", str(data), "--structure", "flu", "--prior", "bdeu:10", "-o", str(out)]) == 0
    assert "fitted.yaml: mle, bdeu:10" in capsys.readouterr().out
    assert bbn.load(out) == bbn.fit(bbn.example("flu"), data, bbn.BDeu(10))
    assert main(["learn", str(data), "--structure", "flu", "--prior", "laplace"]) == 0
    written = capsys.readouterr()
    assert bbn.io.loads(written.out, "yaml") == bbn.fit(bbn.example("flu"), data, bbn.Dirichlet(1))
    assert "mle, laplace" in written.err


@pytest.mark.parametrize("method", ["em", "gradient"])
def test_a_hidden_variable(data, tmp_path, capsys, method):
    import pandas as pd

    pd.read_csv(data).drop(columns="Sinus").to_csv(data, index=False)
    out = tmp_path / "fitted.yaml"
    arguments = ["--structure", "flu", "--method", method, "--hidden", "Sinus=yes,no", "--max-iter", "20"]
    assert main(["learn", str(data), *arguments, "-o", str(out)]) == 0
    assert "ln P(data) = -" in capsys.readouterr().out
    learner = bbn.fit_em if method == "em" else bbn.fit_gradient
    assert bbn.load(out) == learner(bbn.example("flu"), data, ["Sinus"], max_iter=20).network


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "mle"], "--structure names its file"),
        (["--structure", "flu", "--method", "magic"], "unknown method 'magic'"),
        (["--structure", "flu", "--prior", "bde"], "unknown prior 'bde'; did you mean 'bdeu'?"),
        (["--structure", "flu", "--hidden", "Sinus"], "--hidden goes with"),
        (["--structure", "flu", "--method", "em", "--hidden", "Sinus=a,b"], "has the states yes, no"),
        (["--structure", "asia"], "no column"),
    ],
)
def test_faults_are_one_line(data, capsys, arguments, message):
    assert main(["learn", str(data), *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_unseen_rows_are_told(tmp_path, capsys):
    path = tmp_path / "few.csv"
    path.write_text("Flu,Allergy,Sinus,Headache,Nose\nyes,yes,yes,yes,no\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["learn", str(path), "--structure", "flu"]) == 0
    assert "bbn: warning:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "learner"),
    [
        ([], lambda path: bbn.hill_climb(path)),
        (
            [
                "--method",
                "k2",
                "--order",
                "Flu, Allergy,Sinus,Headache,Nose",
                "--max-parents",
                "2",
                "--refine",
            ],
            lambda path: bbn.k2(path, ["Flu", "Allergy", "Sinus", "Headache", "Nose"], 2, refine=True),
        ),
        (["--method", "chow-liu", "--root", "Sinus"], lambda path: bbn.chow_liu(path, "Sinus")),
        (["--method", "tan", "--target", "Sinus"], lambda path: bbn.tan(path, "Sinus")),
        (
            [
                "--method",
                "hill-climb",
                "--score",
                "bic",
                "--required",
                "Nose>Flu",
                "--forbidden",
                "Sinus>Headache",
            ],
            lambda path: bbn.hill_climb(
                path, "bic", required=[("Nose", "Flu")], forbidden=[("Sinus", "Headache")]
            ),
        ),
        (
            [
                "--method",
                "hill-climb",
                "--tiers",
                "Flu,Allergy;Sinus,Headache,Nose",
                "--restarts",
                "2",
                "--seed",
                "3",
            ],
            lambda path: bbn.hill_climb(
                path, tiers=[["Flu", "Allergy"], ["Sinus", "Headache", "Nose"]], restarts=2, seed=3
            ),
        ),
        (["--method", "pc", "--alpha", "0.01"], lambda path: bbn.to_dag(bbn.pc(path, 0.01))),
    ],
)
def test_structures(data, tmp_path, capsys, arguments, learner):
    out = tmp_path / "learned.yaml"
    assert main(["learn", str(data), "--prior", "bdeu:1", *arguments, "-o", str(out)]) == 0
    assert "arcs" in capsys.readouterr().out
    expected = bbn.fit(learner(data), data, bbn.BDeu(1))
    assert bbn.load(out) == expected


def test_structural_em(data, tmp_path):
    frame = pd.read_csv(data, dtype=str)
    frame.loc[::7, "Nose"] = None
    path, out = tmp_path / "holes.csv", tmp_path / "learned.yaml"
    frame.drop(columns="Sinus").to_csv(path, index=False)
    arguments = ["--method", "structural-em", "--hidden", "Cause=a,b", "--max-iter", "3"]
    assert main(["learn", str(path), *arguments, "-o", str(out)]) == 0
    same = bbn.learn(path, hidden={"Cause": ["a", "b"]}, method="structural-em", max_iter=3).network
    assert bbn.load(out) == same


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--structure", "flu", "--method", "k2"], "--structure goes with mle, em and gradient"),
        (["--method", "tan"], "--method tan needs --target"),
        (["--method", "chow-liu", "--order", "Flu"], "--order does not go with --method chow-liu"),
        (["--required", "Flu"], "expected an arc as 'PARENT>CHILD'"),
        (["--method", "k2", "--order", "Flu"], "order does not name"),
        (["--score", "bicc"], "unknown score 'bicc'"),
        (["--method", "hillclimb"], "did you mean 'hill-climb'"),
        (["--required", "Flu>Nose", "--required", "Nose>Flu"], "the required arcs form a cycle"),
    ],
)
def test_faults_of_structure_learning_are_one_line(data, capsys, arguments, message):
    assert main(["learn", str(data), *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "typp"], "--target: the data have no column 'typp'; did you mean 'typ'?"),
        (["--target", "when"], "--kinds can say otherwise, as in when=category"),
        (["--kinds", "x=foo"], "--kinds: 'x' cannot be 'foo'"),
        (["--kinds", "y=number"], "--kinds names 'y', which is not a column"),
        (["--weights", "foo"], "--weights 'foo' is not a column"),
        (["--drop", "x,typ"], "--kinds can say otherwise"),
    ],
)
def test_messages_name_options_of_the_command_line(arguments, words, tmp_path, capsys):
    from bbn.cli import main

    path = tmp_path / "rows.csv"
    lines = [f"2020-01-{i % 28 + 1:02};{i * 7 % 23 / 2};{'uv'[i % 2]}" for i in range(50)]
    path.write_text("when;x;typ\n" + "\n".join(lines))
    assert main(["learn", str(path), *arguments]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "kinds=" not in said
    assert "{" not in said


def test_too_many_parameters_are_told_once_in_words_of_the_command_line(tmp_path, capsys):
    from bbn.cli import main

    path = tmp_path / "rows.csv"
    path.write_text("a,b,c\n" + "\n".join(f"a{i % 400},b{i % 37},{'xyz'[i % 3]}" for i in range(900)))
    out = str(tmp_path / "net.yaml")
    (tmp_path / "given.yaml").write_text("")
    assert main(["learn", str(path), "--kinds", "a=category", "--max-parents", "1", "-o", out]) == 0
    told = capsys.readouterr()
    both = told.out + told.err
    assert both.count("free parameters from") <= 1
    assert "max_parents=" not in both
