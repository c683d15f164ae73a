"""What goes wrong with files: damage, another schema, a change between passes, a full disk; and going on after it."""

import errno
import os
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bbn
from bbn.core.errors import CheckpointWarning, DataError, ParseError
from bbn.data import code, open_data

NET = bbn.example("asia")
FAMILIES = [(*NET.parents(name), name) for name in NET.names]


@pytest.fixture
def folder(tmp_path):
    """Three files of four row groups each, with checksums."""
    path = tmp_path / "rows"
    path.mkdir()
    rows = NET.sample(1200, seed=1).astype(str)
    for i in range(3):
        part = pa.Table.from_pandas(rows.iloc[400 * i : 400 * i + 400], preserve_index=False)
        pq.write_table(part, path / f"{i}.parquet", row_group_size=100, write_page_checksum=True)
    return path


def damage(path, row_group, column):
    """Overwrite the pages of one column in one row group."""
    place = pq.read_metadata(path).row_group(row_group).column(column)
    data = bytearray(path.read_bytes())
    start = place.data_page_offset
    middle = start + place.total_compressed_size - (start - place.dictionary_page_offset)
    data[middle - 8 : middle] = bytes(b ^ 0xFF for b in data[middle - 8 : middle])
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("rows", [50, 10**6])
def test_a_damaged_file_names_itself_and_the_row_group(folder, rows, n_jobs):
    damage(folder / "1.parquet", 2, 4)
    with pytest.raises(
        ParseError, match=re.escape("1.parquet: row group 2: not readable as Parquet")
    ) as caught:
        _ = open_data(folder, batch_rows=rows, n_jobs=n_jobs).variables
    assert caught.value.path == str(folder / "1.parquet")
    source = open_data(folder, batch_rows=rows, n_jobs=n_jobs, variables=NET.variables)  # no pass yet
    with pytest.raises(ParseError, match="row group 2"):
        bbn.fit(NET, source)
    other = [v for i, v in enumerate(NET.variables) if i != 4]
    names = list(pq.read_schema(folder / "0.parquet").names)
    fine = open_data(folder, variables=[v for v in other if v.name != names[4]])
    assert fine.counts([(fine.variables[0].name,)])[0].sum() == 1200  # the other columns are whole


def test_answers_about_a_damaged_file_name_the_row_group_too(folder, tmp_path):
    damage(folder / "1.parquet", 2, 4)
    with pytest.raises(ParseError, match=re.escape("1.parquet: row group 2: not readable as Parquet")):
        NET.predict_proba(folder, "lung", to=tmp_path / "answers")
    assert not (tmp_path / "answers").exists()


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -9])
def test_a_truncated_file_names_itself(folder, keep):
    path = folder / "2.parquet"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ParseError, match=r"2\.parquet: footer: not readable as Parquet"):
        open_data(folder)


def test_a_file_of_something_else(folder):
    (folder / "3.parquet").write_text("A,B\n1,2\n")
    with pytest.raises(ParseError, match=r"3\.parquet"):
        bbn.fit(NET, folder)


def rewrite(folder, change):
    """Write the second file anew, from a changed table."""
    path = folder / "1.parquet"
    table = pd.read_parquet(path)
    change(table)
    table.to_parquet(path, row_group_size=100, index=False)


def drop(table):
    del table["xray"]


def renumber(table):
    table["xray"] = (table["xray"] == "yes").astype(int)


def add_state(table):
    table.loc[250, "xray"] = "maybe"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, r"1\.parquet, row group 0: the data have no column 'xray'"),
        (renumber, r"1\.parquet, row group 0: row 0, column 'xray'.*no state"),
        (add_state, r"1\.parquet, row group 2: row 50, column 'xray': .*'maybe'"),
    ],
)
@pytest.mark.parametrize("rows", [37, 10**6])
def test_a_file_of_another_schema_is_named(folder, change, message, rows):
    rewrite(folder, change)
    with pytest.raises(DataError, match=message):
        open_data(folder, variables=NET.variables, batch_rows=rows).counts(FAMILIES)
    with pytest.raises(DataError, match=message):
        bbn.fit(NET, str(folder))


def test_drift_that_discovery_sees(folder):
    rewrite(folder, renumber)
    with pytest.raises(
        DataError, match=r"values of type int, str.*str in .*0\.parquet.*, int in .*1\.parquet"
    ):
        _ = open_data(folder).variables
    rewrite(folder, drop)
    with pytest.raises(DataError, match=r"1\.parquet, row group 0: the data have no column 'xray'"):
        _ = open_data(folder).variables


def test_a_file_that_changes_between_passes(folder):
    source = open_data(folder)
    before = source.counts(FAMILIES)
    rows = pd.read_parquet(folder / "1.parquet")
    rows.iloc[::-1].to_parquet(folder / "1.parquet", row_group_size=100, index=False)
    with pytest.raises(DataError, match=r"1\.parquet has changed since the data were opened"):
        source.counts(FAMILIES)
    again = open_data(folder)
    for ours, theirs in zip(again.counts(FAMILIES), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    (folder / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1\.parquet is gone"):
        again.counts(FAMILIES)


def test_a_csv_that_changes_between_passes(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("A\nx\ny\n")
    source = open_data(path)
    path.write_text("A\nx\ny\nz\n")
    with pytest.raises(DataError, match=r"rows\.csv has changed"):
        source.counts([("A",)])


def holed(n=400):
    rows = NET.sample(n, seed=2, missing=0.15).astype(object)
    return rows.where(rows.notna(), None)


def on_disk(rows, path):
    path.mkdir(exist_ok=True)
    pa_rows = pa.Table.from_pandas(rows, preserve_index=False)
    pq.write_table(pa_rows, path / "a.parquet", row_group_size=90)
    return open_data(path)


@pytest.mark.parametrize("learner", [bbn.fit_em, bbn.fit_gradient])
@pytest.mark.parametrize("first", ["memory", "parquet"])
def test_an_interrupted_climb_goes_on_from_another_kind_of_source(learner, first, tmp_path):
    rows = holed()
    kinds = {"memory": rows, "parquet": on_disk(rows, tmp_path / "rows")}
    second = {"memory": "parquet", "parquet": "memory"}[first]
    graph, path = NET.graph, tmp_path / "state"
    options = {"seed": 3, "tol": 0.0}
    whole = learner(graph, kinds[first], max_iter=12, **options)
    learner(graph, kinds[first], max_iter=5, checkpoint=path, **options)
    resumed = learner(graph, kinds[second], max_iter=12, checkpoint=path, **options)
    np.testing.assert_allclose(resumed.log_likelihoods, whole.log_likelihoods, rtol=1e-12)
    assert len(resumed.log_likelihoods) == 13
    for name in NET.names:
        np.testing.assert_allclose(resumed.network[name].table, whole.network[name].table, atol=1e-9)


def test_a_full_disk_under_a_checkpoint_loses_nothing(tmp_path, monkeypatch):
    rows, path = holed(), tmp_path / "state"
    options = {"seed": 3, "tol": 0.0}
    whole = bbn.fit_em(NET.graph, rows, max_iter=30, **options)
    bbn.fit_em(NET.graph, rows, max_iter=10, checkpoint=path, **options)
    old = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("bbn.core.atomic.os.fsync", full)
        with pytest.warns(CheckpointWarning, match="No space left") as caught:
            result = bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=path, **options)
    assert len(caught) == 1  # once, however often it was tried
    assert result == whole  # the run is not lost
    assert path.read_bytes() == old  # nor is the last checkpoint
    assert [p.name for p in tmp_path.iterdir()] == ["state"]  # and nothing half written is left
    assert bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=path, **options) == whole
    with pytest.raises(FileNotFoundError):
        bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=tmp_path / "no" / "state", **options)


def test_a_function_that_gives_other_rows_in_the_next_pass():
    calls = []

    def tables():
        calls.append(None)
        yield {"A": ["x", "y"] * len(calls)}

    source = open_data(tables)
    with pytest.raises(DataError, match=r"had \d+ rows when they were opened, but this pass found \d+"):
        source.counts([("A",)])


def test_columns_that_cannot_be_states_say_so(tmp_path):
    table = pa.table({"A": ["x", "y"], "S": [{"a": 1}, {"a": 2}], "L": [[1], [2]], "B": [b"1", b"2"]})
    pq.write_table(table, tmp_path / "a.parquet")
    for name, message in (("S", "struct"), ("L", "list"), ("B", "bytes")):
        with pytest.raises(DataError, match=f"column '{name}' holds values of type .*{message}"):
            _ = open_data(tmp_path, variables=[name]).variables
    assert [v.name for v in open_data(tmp_path, variables=["A"]).variables] == ["A"]
    days = pd.DataFrame({"T": pd.date_range("2024-01-01", periods=3)})
    days.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'T' holds values of type"):
        _ = open_data(tmp_path / "t.parquet").variables


def test_a_column_that_is_there_twice(tmp_path):
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["A", "A"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: the column 'A' is there twice"):
        open_data(tmp_path)
    (tmp_path / "a.csv").write_text("A,A\nx,y\n")
    with pytest.raises(DataError, match=r"a\.csv: the column 'A' is there twice"):
        open_data(tmp_path / "a.csv")


def test_names_with_dots_commas_and_other_signs(tmp_path):
    names = ["a", "a.b", "a.b.c", "x, y", "été", " ", "*"]
    table = pd.DataFrame({name: ["x", "y", "y"][i % 3 :] + ["x"] * (i % 3) for i, name in enumerate(names)})
    table.to_parquet(tmp_path / "a.parquet", index=False)
    families = [*((name,) for name in names), ("a.b", "a"), ("a", "a.b.c", "x, y")]
    states = {name: ["x", "y"] for name in names}
    for source in (
        open_data(tmp_path),
        open_data(tmp_path, states=states),
        open_data(tmp_path / "a.parquet"),
    ):
        for ours, theirs in zip(source.counts(families), code(table).counts(families), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_column_with_more_values_than_states_can_be(tmp_path):
    parts = [{"A": [f"{i}-{j}" for j in range(30_000)]} for i in range(3)]
    whole = [{"A": [f"{i}" for i in range(70_000)]}]
    for data in (parts, whole):
        with pytest.raises(DataError, match="'A' holds more than 65535 different values; variables= names"):
            _ = open_data(data).variables


def test_damaged_compression_of_a_csv_file(tmp_path):
    path = tmp_path / "rows.csv.gz"
    NET.sample(500, seed=1).to_csv(path, index=False)
    whole = path.read_bytes()
    for content in (whole[:-12], whole[:100] + bytes(50) + whole[150:], b"A,B\nx,y\n"):
        path.write_bytes(content)
        for read in (open_data, code):
            with pytest.raises(ParseError, match=r"rows\.csv\.gz"):
                read(path)


@pytest.mark.parametrize(
    "data",
    [
        {"A": ["x", "y"]},
        pd.DataFrame({"A": ["x", "y"]}),
        pa.table({"A": ["x", "y"]}),
        pa.RecordBatch.from_pydict({"A": ["x", "y"]}),
        [{"A": "x"}, {"A": "y"}],
        [pa.RecordBatch.from_pydict({"A": [value]}) for value in "xy"],
    ],
)
def test_a_table_by_itself_is_one_batch(data):
    source = open_data(data)
    np.testing.assert_array_equal(source.counts([("A",), ("A", "A")])[1], [[1, 0], [0, 1]])


def test_extreme_numbers(tmp_path):
    big = pd.DataFrame({"A": [2**62, -(2**62), 2**62], "B": [np.nan, -0.0, 0.0], "C": [np.inf, 1.0, 2.0]})
    big.to_parquet(tmp_path / "a.parquet", index=False)
    source = open_data(tmp_path, variables=["A", "B"])
    memory = code(big[["A", "B"]])
    assert source.variables == memory.variables
    assert source.incomplete == memory.incomplete == ("B",)
    np.testing.assert_array_equal(source.counts([("A", "B")])[0], memory.counts([("A", "B")])[0])
    for data in (tmp_path, [big]):
        with pytest.raises(DataError, match="'C'"):
            _ = open_data(data, variables=["C"]).variables
        with pytest.raises(DataError, match=r"column 'C'.*inf is not a finite number"):
            _ = open_data(data, variables=["C"], continuous=["C"]).incomplete
