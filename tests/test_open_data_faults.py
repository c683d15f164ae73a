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
from bbn.data import open_data
from bbn.errors import CheckpointWarning, DataError, ParseError

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
        open_data(folder, batch_rows=rows, n_jobs=n_jobs)
    assert caught.value.path == str(folder / "1.parquet")
    source = open_data(folder, batch_rows=rows, n_jobs=n_jobs, variables=NET.variables)  # no pass yet
    with pytest.raises(ParseError, match="row group 2"):
        bbn.fit(NET, source)
    other = [v for i, v in enumerate(NET.variables) if i != 4]
    names = list(pq.read_schema(folder / "0.parquet").names)
    fine = open_data(folder, variables=[v for v in other if v.name != names[4]])
    assert fine.counts([(fine.variables[0].name,)])[0].sum() == 1200  # the other columns are whole


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
        open_data(folder)
    rewrite(folder, drop)
    with pytest.raises(DataError, match=r"1\.parquet, row group 0: the data have no column 'xray'"):
        open_data(folder)


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
        patch.setattr("bbn.learning.checkpoint.np.savez", full)
        with pytest.warns(CheckpointWarning, match="No space left") as caught:
            result = bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=path, **options)
    assert len(caught) == 1  # once, however often it was tried
    assert result == whole  # the run is not lost
    assert path.read_bytes() == old  # nor is the last checkpoint
    assert [p.name for p in tmp_path.iterdir()] == ["state"]  # and nothing half written is left
    assert bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=path, **options) == whole
    with pytest.raises(FileNotFoundError):
        bbn.fit_em(NET.graph, rows, max_iter=30, checkpoint=tmp_path / "no" / "state", **options)
