"""Samples and predictions that stream: the rows and answers of memory, in files, whole or not there at all."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bbn
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError
from bbn.data import open_data

NET = bbn.example("asia")


@pytest.fixture(scope="module")
def rows():
    return NET.sample(1500, seed=3, missing=0.2)


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "folder"
    path.mkdir()
    for i in range(3):
        part = pa.Table.from_pandas(rows.iloc[500 * i : 500 * i + 500], preserve_index=False)
        pq.write_table(part, path / f"{i}.parquet", row_group_size=200)
    return path


@pytest.mark.parametrize("to", ["rows.parquet", "rows.csv", "rows.tsv.gz", "folder"])
def test_samples_in_files_are_the_samples_in_memory(to, tmp_path):
    memory = NET.sample(40_000, seed=7)
    path = NET.sample(40_000, seed=7, to=tmp_path / to, chunks=9000)
    assert path == tmp_path / to
    assert [p.name for p in tmp_path.iterdir()] == [to]  # nothing else is left
    source = open_data(path, variables=NET.variables)
    assert source.n_rows == 40_000
    families = [(*NET.parents(name), name) for name in NET.names]
    for ours, theirs in zip(source.counts(families), bbn.data.code(memory).counts(families), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    if to == "rows.parquet":
        again = pd.read_parquet(path)
        assert all((again[name].astype(str) == memory[name].astype(str)).all() for name in memory)
        assert open_data(path).variables == NET.variables  # declared states, in their order


def test_holes_and_evidence_go_to_files_too(tmp_path):
    NET.sample(5000, {"xray": "yes"}, 7, {"dysp": 0.5}, to=tmp_path / "rows")
    source = open_data(tmp_path / "rows")
    assert source.incomplete == ("dysp",)
    xray = next(v for v in source.variables if v.name == "xray")
    assert source.counts([("xray",)])[0][xray.states.index("yes")] == 5000


def test_no_rows(tmp_path):
    assert open_data(NET.sample(0, seed=1, to=tmp_path / "rows.parquet"), variables=NET.variables).n_rows == 0


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "keep").write_text("this")
    with pytest.raises(FileExistsError, match="is there already"):
        NET.sample(10, seed=1, to=tmp_path)
    with pytest.raises(DataError, match="expected a path that ends in"):
        NET.sample(10, seed=1, to=tmp_path / "rows.xls")
    with pytest.raises(FileNotFoundError):
        NET.sample(10, seed=1, to=tmp_path / "nowhere" / "rows.parquet")
    with pytest.raises(DataError, match="as_codes= gives arrays"):
        NET.sample(10, seed=1, to=tmp_path / "rows.parquet", as_codes=True)
    assert [p.name for p in tmp_path.iterdir()] == ["keep"]


@pytest.mark.parametrize("to", ["rows.parquet", "rows.csv", "rows"])
def test_a_full_disk_leaves_what_was_there(to, tmp_path, monkeypatch):
    old = tmp_path / to
    if to != "rows":
        old.write_text("the old one")

    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        NET.sample(1000, seed=1, to=old)
    assert [p.name for p in tmp_path.iterdir()] == ([to] if to != "rows" else [])
    assert to == "rows" or old.read_text() == "the old one"


@pytest.mark.parametrize("kind", ["folder", "pattern", "source", "csv", "tables"])
def test_answers_come_batch_by_batch(kind, rows, folder, tmp_path):
    memory = NET.predict_proba(rows, "lung")
    if kind == "csv":
        rows.to_csv(tmp_path / "rows.csv", index=False)
    data = {
        "folder": folder,
        "pattern": f"{folder}/*.parquet",
        "source": open_data(folder, batch_rows=170),
        "csv": open_data(tmp_path / "rows.csv", batch_rows=333) if kind == "csv" else None,
        "tables": open_data([rows.iloc[:900], rows.iloc[900:]]),
    }[kind]
    given = list(NET.predict_proba(data, "lung"))
    assert len(given) > 1
    tables = [
        pa.Table.from_pandas(t, preserve_index=False) if isinstance(t, pd.DataFrame) else t for t in given
    ]
    together = pa.concat_tables(tables).to_pandas()
    np.testing.assert_array_equal(together.to_numpy(), memory.to_numpy())
    states = [list(t) if not hasattr(t, "to_pylist") else t.to_pylist() for t in NET.predict(data, "lung")]
    assert [state for part in states for state in part] == list(NET.predict(rows, "lung"))
    logs = np.concatenate([np.asarray(part) for part in NET.log_likelihood(data)])
    np.testing.assert_array_equal(logs, NET.log_likelihood(rows))


@pytest.mark.parametrize("to", ["answers.parquet", "answers.csv", "answers"])
def test_answers_go_to_files(to, rows, folder, tmp_path):
    path = NET.predict_proba(folder, "lung", to=tmp_path / to)
    read = pd.read_csv(path) if to.endswith("csv") else pd.read_parquet(path)
    assert list(read.columns) == ["yes", "no"]
    np.testing.assert_array_equal(read.to_numpy(), NET.predict_proba(rows, "lung").to_numpy())
    NET.predict(rows, "lung", to=tmp_path / "states.parquet")  # a table in memory can be written too
    assert pd.read_parquet(tmp_path / "states.parquet")["lung"].tolist() == list(NET.predict(rows, "lung"))
    NET.log_likelihood(folder, to=tmp_path / "logs.parquet")
    assert pd.read_parquet(tmp_path / "logs.parquet")["log_likelihood"].tolist() == list(
        NET.log_likelihood(rows)
    )


def test_rows_that_cannot_be_answered_are_named_and_nothing_is_written(folder, tmp_path):
    bad = {"either": ["no", "no"], "lung": ["no", "yes"]}
    tables = [{"either": ["yes"], "lung": ["no"]}, bad]
    with pytest.raises(ImpossibleEvidenceError, match="table 1: row 1: "):
        list(NET.predict_proba(open_data(tables), "tub"))
    with pytest.raises(ImpossibleEvidenceError, match="table 1: row 1: "):
        NET.predict_proba(open_data(tables), "tub", to=tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())
    answers = list(NET.predict_proba(open_data(tables), "tub", impossible="nan"))
    assert np.isnan(answers[1]["yes"]).tolist() == [False, True]
    odd = open_data([{"either": ["no"]}, {"either": ["perhaps"]}])
    with pytest.raises(DataError, match=r"table 1: row 0, column 'either'.*'perhaps'"):
        list(NET.predict(odd, "tub"))
    with pytest.raises(EvidenceError, match="nobody"):
        NET.predict(folder, "nobody")


def test_data_without_any_known_column(tmp_path):
    pd.DataFrame({"other": range(5)}).to_parquet(tmp_path / "a.parquet")
    (answer,) = NET.predict_proba(str(tmp_path / "*.parquet"), "lung")
    assert answer.num_rows == 5
    np.testing.assert_allclose(answer["yes"].to_pylist(), [NET.query("lung")["yes"]] * 5, rtol=1e-12)


def test_a_coded_table_must_be_of_the_network():
    with pytest.raises(DataError, match="other states"):
        NET.predict(bbn.data.code({"lung": ["yes", "no"]}), "tub")
