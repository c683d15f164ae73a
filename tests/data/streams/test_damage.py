"""Damaged Parquet: whatever byte is changed, the answer is that of the whole file or an error that names the file."""

import random
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bbn
from bbn.cli import main
from bbn.core.errors import DataError
from bbn.data import open_data

NET = bbn.example("asia")
ARCS = list(NET.graph.edges)
PRIOR = bbn.BDeu(1)
ROWS = 1500

READERS = {
    "a network by path": lambda path: bbn.fit(NET, path, PRIOR),
    "a graph by path": lambda path: bbn.fit(ARCS, path, PRIOR),
    "a network, opened": lambda path: bbn.fit(NET, open_data(path, n_jobs=1), PRIOR),
    "a graph, opened": lambda path: bbn.fit(ARCS, open_data(path, batch_rows=100, n_jobs=1), PRIOR),
    "a graph by folder": lambda path: bbn.fit(ARCS, path.parent, PRIOR),
}


def rows():
    return NET.sample(ROWS, seed=1)


def written_by_bbn(path):
    NET.sample(ROWS, seed=1, to=path)


def written_as_text(path):
    table = pa.Table.from_pandas(rows().astype(str), preserve_index=False)
    pq.write_table(table, path, row_group_size=400, write_page_checksum=True)


def written_as_numbers(path):
    codes = rows().apply(lambda column: (column == "yes").astype("int64"))
    table = pa.Table.from_pandas(codes, preserve_index=False)
    pq.write_table(table, path, row_group_size=400, write_page_checksum=True, compression="zstd")


def written_by_pandas(path):
    rows().astype(str).to_parquet(path)


def written_by_polars(path):
    pl.from_pandas(rows().astype(str)).write_parquet(path)


def damaged(whole, n, seed=0):
    """The bytes of a file with something wrong with them, n times."""
    draw = random.Random(seed)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for i in range(n):
        content = bytearray(whole)
        at = draw.randrange(footer if i % 5 == 0 else 0, len(whole))
        if i % 5 <= 1:
            content[at] ^= 1 << draw.randrange(8)
        elif i % 5 == 2:
            content[at] = draw.randrange(256)
        elif i % 5 == 3:
            content[at : at + 8] = bytes(byte ^ 0xFF for byte in content[at : at + 8])
        else:
            del content[at:]
        yield bytes(content)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", [written_by_bbn, written_as_text, written_as_numbers])
def test_files_with_checksums_are_read_right_or_not_at_all(write, reader, tmp_path):
    path = tmp_path / "rows.parquet"
    write(path)
    whole = path.read_bytes()
    if write is written_as_numbers:
        reader = dict(zip(READERS.values(), NUMBER_READERS, strict=True))[reader]
    right = reader(path)
    outcomes = []
    for content in damaged(whole, 150):
        path.write_bytes(content)
        outcomes.append(outcome(reader, path))
    refused = [one for one in outcomes if isinstance(one, DataError)]
    assert 75 < len(refused) < 150  # most of it is found, some of it does not matter
    assert all(str(tmp_path) in str(error) for error in refused)
    assert all(one == right for one in outcomes if not isinstance(one, DataError))


def outcome(reader, path):
    """What is read, or the error about it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bbn.core.errors.UnseenRowsWarning)
            return reader(path)
    except DataError as error:
        return error


STATES = {name: [0, 1] for name in NET.names}
NUMBER_READERS = [
    lambda path: bbn.fit(ARCS, path, PRIOR, states=STATES),
    lambda path: bbn.fit(ARCS, path, PRIOR),
    lambda path: bbn.fit(ARCS, open_data(path, n_jobs=1), PRIOR, states=STATES),
    lambda path: bbn.fit(ARCS, open_data(path, batch_rows=100, n_jobs=1), PRIOR),
    lambda path: bbn.fit(ARCS, path.parent, PRIOR, states=STATES),
]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("write", [written_by_pandas, written_by_polars])
def test_files_without_checksums_give_no_other_error(write, reader, tmp_path):
    """A value that was changed into another cannot be told; what cannot be decoded is named all the same."""
    path = tmp_path / "rows.parquet"
    write(path)
    outcomes = []
    for content in damaged(path.read_bytes(), 100):
        path.write_bytes(content)
        outcomes.append(outcome(reader, path))
    refused = [one for one in outcomes if isinstance(one, DataError)]
    assert len(refused) > 30
    assert all(str(tmp_path) in str(error) for error in refused)
    assert all(isinstance(one, DataError | bbn.BayesianNetwork) for one in outcomes)


def flip(path, row_group, column):
    """Change one byte of the last page of a column."""
    place = pq.read_metadata(path).row_group(row_group).column(column)
    start = place.dictionary_page_offset or place.data_page_offset
    content = bytearray(path.read_bytes())
    content[start + place.total_compressed_size - 2] ^= 4
    path.write_bytes(content)


LEARNERS = {
    "fit": lambda path: bbn.fit(NET, path),
    "fit_em": lambda path: bbn.fit_em(NET, path, max_iter=1),
    "fit_gradient": lambda path: bbn.fit_gradient(NET, path, max_iter=1),
    "fit_update": lambda path: bbn.fit_update(NET, path, 10),
    "learn": lambda path: bbn.learn(path, method="chow-liu"),
    "hill_climb": lambda path: bbn.hill_climb(path, progress=False),
    "k2": lambda path: bbn.k2(path, list(NET.names)),
    "pc": lambda path: bbn.pc(path),
    "score": lambda path: bbn.score(NET, path),
    "predict": lambda path: NET.predict(path, "lung"),
    "predict_proba": lambda path: NET.predict_proba(path, "lung"),
    "log_likelihood": lambda path: NET.log_likelihood(path),
    "discretize": lambda path: bbn.discretize(path),
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_all_that_takes_a_path_names_the_row_group(learner, tmp_path):
    path = tmp_path / "rows.parquet"
    written_as_text(path)
    flip(path, 2, 4)
    with pytest.raises(
        DataError, match=r"rows\.parquet: row group 2: not readable as Parquet: .*[Cc][Rr][Cc]"
    ):
        learner(path)


def test_the_command_line_names_the_row_group(tmp_path, capsys):
    path = tmp_path / "rows.parquet"
    written_as_text(path)
    flip(path, 1, 0)
    assert main(["learn", str(path), "--structure", "asia", "-o", str(tmp_path / "net.yaml")]) == 1
    assert "rows.parquet: row group 1: not readable as Parquet" in capsys.readouterr().err
    assert not (tmp_path / "net.yaml").exists()


def test_what_the_command_line_writes_has_checksums(tmp_path):
    path = tmp_path / "rows.parquet"
    assert main(["sample", "asia", "-n", "500", "--seed", "1", "-o", str(path)]) == 0
    flip(path, 0, 3)
    with pytest.raises(DataError, match=r"rows\.parquet: row group 0"):
        bbn.fit(NET, path)


def test_folders_by_value_and_filtered_datasets_are_verified(tmp_path):
    table = rows().astype(str)
    for value in ("yes", "no"):
        part = tmp_path / f"smoke={value}"
        part.mkdir()
        own = pa.Table.from_pandas(table[table.smoke == value].drop(columns="smoke"), preserve_index=False)
        pq.write_table(own, part / "a.parquet", write_page_checksum=True)
    assert bbn.fit(NET, tmp_path, PRIOR) == bbn.fit(NET, table, PRIOR)
    flip(tmp_path / "smoke=no" / "a.parquet", 0, 0)
    with pytest.raises(DataError, match=r"smoke=no.*a\.parquet.*not readable as Parquet"):
        bbn.fit(NET, tmp_path)


def test_a_file_keeps_its_index_and_kinds_when_read_by_path(tmp_path):
    table = rows().iloc[:40].astype(str)
    path = tmp_path / "rows.parquet"
    for index in (pd.RangeIndex(5, 125, 3), pd.Index([f"r{i}" for i in range(40)], name="row"), None):
        own = table if index is None else table.set_index(index)
        own.to_parquet(path)
        pd.testing.assert_series_equal(NET.predict(path, "lung"), NET.predict(own, "lung"))
        assert bbn.fit(NET, path, PRIOR) == bbn.fit(NET, own, PRIOR)


def test_a_file_without_rows_or_row_groups_is_told_so(tmp_path):
    path = tmp_path / "rows.parquet"
    empty = pa.Table.from_pandas(rows().iloc[:0].astype(str), preserve_index=False)
    pq.write_table(empty, path)
    with pytest.raises(DataError, match="the data have no rows"):
        bbn.fit(NET, path)
    with pq.ParquetWriter(path, empty.schema):
        pass
    with pytest.raises(DataError, match="the data have no rows"):
        bbn.fit(NET, path)
