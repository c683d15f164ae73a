"""`bbn learn`: tables from a file of data."""

from __future__ import annotations

import warnings

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
