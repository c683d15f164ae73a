"""The command line takes folders where it takes files, and writes them."""

import pandas as pd
import pytest

import bbn
from bbn.cli import main
from bbn.data import open_data


def run(*words):
    assert main([str(word) for word in words]) == 0


@pytest.fixture
def rows(tmp_path):
    run("sample", "asia", "-n", 3000, "--seed", 1, "-o", tmp_path / "rows")
    return tmp_path / "rows"


def test_sample_writes_a_folder(rows, tmp_path):
    memory = bbn.example("asia").sample(3000, seed=1)
    assert [path.suffix for path in rows.iterdir()] == [".parquet"]
    read = pd.read_parquet(rows)
    assert all((read[name].astype(str) == memory[name].astype(str)).all() for name in memory)
    (tmp_path / "there").mkdir()
    run("sample", "asia", "-n", 10, "--missing", 0.5, "--seed", 1, "-o", f"{tmp_path}/there/")
    assert open_data(tmp_path / "there").incomplete
    assert main(["sample", "asia", "-n", "10", "-o", str(rows)]) == 1  # it is not empty


def test_learn_takes_a_folder_or_a_pattern(rows, tmp_path, capsys):
    net, memory = bbn.example("asia"), bbn.example("asia").sample(3000, seed=1)
    run("learn", rows, "--structure", "asia", "--prior", "bdeu:1", "-o", tmp_path / "a.yaml")
    assert "1 pass over the data" in capsys.readouterr().out
    fitted = bbn.load(tmp_path / "a.yaml")
    expected = bbn.fit(net, memory, bbn.BDeu(1))
    assert all((fitted[name].table == expected[name].table).all() for name in net.names)
    run("learn", f"{rows}/*.parquet", "--method", "chow-liu", "-o", tmp_path / "b.yaml")
    assert "3 passes over the data" in capsys.readouterr().out  # states, pairs, tables
    assert sorted(bbn.load(tmp_path / "b.yaml").arcs) == sorted(bbn.chow_liu(memory).edges)
    run("learn", rows, "--method", "k2", "-o", tmp_path / "c.yaml")
    first, *notes = capsys.readouterr().out.splitlines()
    assert first.endswith("passes over the data")
    assert notes  # about rows of the tables that were never seen
    assert "pass" not in "".join(notes)


@pytest.mark.parametrize("proba", [[], ["--proba"]])
def test_predict_takes_a_folder_and_writes_one(proba, rows, tmp_path, capsys):
    memory = bbn.example("asia").sample(3000, seed=1)
    memory.to_csv(tmp_path / "rows.csv", index=False)
    run("predict", "asia", tmp_path / "rows.csv", "--target", "lung", *proba)
    expected = capsys.readouterr().out
    run("predict", "asia", rows, "--target", "lung", *proba)
    assert capsys.readouterr().out == expected
    for to in ("answers.csv", "answers"):
        run("predict", "asia", rows, "--target", "lung", *proba, "-o", tmp_path / to)
    assert (tmp_path / "answers.csv").read_text() == expected
    assert len(pd.read_parquet(tmp_path / "answers")) == 3000
    run("predict", "asia", rows, "--target", "lung", *proba, "-o", tmp_path / "other", "--to", "csv")
    assert (tmp_path / "other").read_text() == expected
    assert main(["predict", "asia", str(rows), "--target", "lung", "-o", "x", "--to", "xls"]) == 1
