"""Columns of continuous variables: every kind of table gives the same numbers, and every fault is named."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bbn
from bbn.core.errors import DataError
from bbn.data import as_source, code
from bbn.learning.evaluation.resample import take

A = ["no", "yes", None, "yes"]
X = [1.5, None, -2.0, 1e300]
EXPECTED = np.array([1.5, np.nan, -2.0, 1e300])


def csv(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("A,X\nno,1.5\nyes,\n,-2.0\nyes, 1e300\n")
    return path


def parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"A": A, "X": X}).to_parquet(path)
    return path


KINDS = {
    "pandas": lambda _: pd.DataFrame({"A": A, "X": X}),
    "pandas objects": lambda _: pd.DataFrame({"A": A, "X": pd.Series(X, dtype=object)}),
    "pandas nullable": lambda _: pd.DataFrame({"A": A, "X": pd.Series(X, dtype="Float64")}),
    "pandas arrow": lambda _: pd.DataFrame({"A": A, "X": pd.Series(X, dtype="float64[pyarrow]")}),
    "pandas categories": lambda _: pd.DataFrame({"A": A, "X": pd.Categorical(X)}),
    "polars": lambda _: pl.DataFrame({"A": A, "X": X}),
    "polars lazy": lambda _: pl.DataFrame({"A": A, "X": X}).lazy(),
    "pyarrow": lambda _: pa.table({"A": A, "X": X}),
    "columns": lambda _: {"A": A, "X": X},
    "arrays": lambda _: {"A": np.array(A, dtype=object), "X": EXPECTED.copy()},
    "masked": lambda _: {"A": A, "X": np.ma.masked_array([1.5, 7.0, -2.0, 1e300], [0, 1, 0, 0])},
    "series": lambda _: {"A": A, "X": pl.Series(X)},
    "rows": lambda _: [{"A": a, "X": x} for a, x in zip(A, X, strict=True)],
    "matrix": lambda _: (np.array([A, X], dtype=object).T, ["A", "X"]),
    "fractions": lambda _: {"A": A, "X": [Fraction(3, 2), None, Decimal("-2"), 10**300]},
    "csv": csv,
    "parquet": parquet,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_numbers(kind, tmp_path):
    table = code(KINDS[kind](tmp_path), names=["A", "X"], continuous=["X"])
    np.testing.assert_array_equal(table.numbers["X"], EXPECTED)
    assert table.numbers["X"].dtype == np.float64
    assert not table.numbers["X"].flags.writeable
    assert table.codes["A"].tolist() == [0, 1, 2, 1]
    assert [v.name for v in table.variables] == ["A"]
    assert table.continuous == ("X",)
    assert table.incomplete == ("A", "X")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float32", "Int64"])
def test_numbers_of_every_width(dtype):
    table = code({"X": pd.Series([1, 2, 3], dtype=dtype)}, continuous=["X"])
    assert table.numbers["X"].tolist() == [1.0, 2.0, 3.0]
    assert table.incomplete == ()


def test_the_data_that_came_in_stay_writable():
    column = np.array([1.0, 2.0])
    code({"X": column}, continuous="X")
    column[0] = 5.0
    assert column[0] == 5.0


@pytest.mark.parametrize("kind", ["list", "array", "csv"])
def test_tokens_mean_missing(kind, tmp_path):
    data, missing = {"X": [1.5, -999, 2.5]}, -999
    if kind == "array":
        data = {"X": np.array([1.5, -999.0, 2.5])}
    if kind == "csv":
        data, missing = tmp_path / "x.csv", ["-999", "NA"]
        data.write_text("X\n1.5\n-999\n2.5\nNA\n")
    numbers = code(data, continuous=["X"], missing=missing).numbers["X"]
    assert np.isnan(numbers).tolist() == [False, True, False, True][: len(numbers)]


@pytest.mark.parametrize(
    ("column", "row", "shown"),
    [
        ([1.0, "two", 3.0], 1, "'two'"),
        ([1.0, np.inf], 1, "inf"),
        (np.array([0.0, 1.0, -np.inf]), 2, "-inf"),
        ([True, False], 0, "True"),
        (np.array([True, False]), 0, "True"),
        ([1.0, 10**400], 1, "1000"),
        ([1.0, 1j], 1, "1j"),
    ],
)
def test_what_is_no_number_is_named(column, row, shown):
    with pytest.raises(DataError) as told:
        code({"X": column}, continuous=["X"])
    assert f"row {row}, column 'X'" in str(told.value)
    assert shown in str(told.value)


@pytest.mark.parametrize("text", ["1_000", "inf", "-Infinity", "one", "1,5"])
def test_text_in_a_file_that_is_no_number(text, tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(f"X\tY\n1.5\t1\n{text}\t2\n")
    with pytest.raises(DataError, match="row 1, column 'X'"):
        code(path, continuous=["X"])
    assert np.isnan(code(path, continuous=["X"], unseen="missing").numbers["X"][1])


def test_what_cannot_be():
    with pytest.raises(DataError, match="states= names 'X', which is continuous"):
        code({"X": [1.0]}, states={"X": ["a"]}, continuous=["X"])
    with pytest.raises(DataError, match="continuous= takes it as numbers"):
        code({"X": [1.5, 2.5]})
    with pytest.raises(DataError, match="column 'X' holds no number at all"):
        as_source({"X": [None, np.nan]}, continuous=["X"])
    with pytest.raises(DataError, match="no column 'Y'"):
        as_source({"X": [1.0]}, names=["Y"], continuous=["Y"])
    with pytest.raises(DataError, match=r"row 1 of a column holds \[1.0\]"):
        code({"X": [2.0, [1.0]]}, continuous=["X"])
    with pytest.raises(DataError, match="shape"):
        code({"X": np.zeros((2, 2))}, continuous=["X"])


def test_a_ready_source_is_checked():
    table = code({"A": ["x", "y"], "X": [1.5, 2.5]}, continuous=["X"])
    assert as_source(table, names=["A", "X"], continuous=["X"]) is table
    with pytest.raises(DataError, match="'X' numbers"):
        as_source(table, names=["A", "X"])
    with pytest.raises(DataError, match="'A' states"):
        as_source(table, names=["A", "X"], continuous=["A", "X"])


def test_blocks_hold_every_row_and_its_numbers():
    table = code({"A": ["x", "x", "x"], "X": [1.5, 1.5, 2.5]}, continuous=["X"], weights=[1, 2, 3])
    block = table.merged()
    assert block.n_rows == 3
    assert block.numbers["X"].tolist() == [1.5, 1.5, 2.5]
    assert block.weights.tolist() == [1, 2, 3]
    assert pickle.loads(pickle.dumps(block)).numbers["X"].tolist() == [1.5, 1.5, 2.5]
    part = take(table, np.array([2, 0]))
    assert part.numbers["X"].tolist() == [2.5, 1.5]
    assert table.counts([("A",)])[0].tolist() == [6.0]


ROWS = 400
BY_KIND = {
    "word": ["a", "b"] * (ROWS // 2),
    "few": [0, 1, 2, 3] * (ROWS // 4),
    "whole": [1.0, 2.0] * (ROWS // 2),
    "fractions": list(np.linspace(0, 1, ROWS)),
    "many": list(range(ROWS)),
}


def _cut_in_two(folder: Path) -> str:
    for i, rows in enumerate((slice(0, 100), slice(100, None))):
        pd.DataFrame(BY_KIND)[rows].to_parquet(folder / f"{i}.parquet")
    return str(folder / "*.parquet")


@pytest.mark.parametrize("kind", ["memory", "parquet", "csv", "dask"])
def test_without_a_word_searches_take_fractions_and_many_numbers_as_numbers(
    kind: str, tmp_path: Path
) -> None:
    frame = pd.DataFrame(BY_KIND)
    data: Any = frame
    if kind == "parquet":
        data = _cut_in_two(tmp_path)
    elif kind == "csv":
        data = tmp_path / "rows.csv"
        frame.to_csv(data, index=False)
    elif kind == "dask":
        data = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    graph = bbn.hill_climb(data)
    assert {name for name, told in graph.nodes(data="continuous") if told} == {"fractions", "many"}
    assert graph.nodes["few"]["states"] == (0, 1, 2, 3)
    assert sorted(graph.edges) == sorted(bbn.hill_climb(frame, continuous=["fractions", "many"]).edges)
    plain: nx.DiGraph[str] = nx.DiGraph([("many", "fractions")])
    plain.add_nodes_from(frame)
    assert bbn.score(plain, data) == pytest.approx(
        bbn.score(plain, frame, continuous=["many", "fractions"]), rel=1e-12
    )


def test_an_empty_list_of_continuous_columns_is_meant() -> None:
    with pytest.raises(DataError, match="'fractions' holds 400 different numbers"):
        bbn.hill_climb(pd.DataFrame(BY_KIND), continuous=())


def test_a_structure_that_says_continuous_is_heard_beside_what_columns_hold() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph([("few", "fractions")])
    graph.nodes["few"]["continuous"] = True
    frame = pd.DataFrame(BY_KIND)
    both = bbn.score(graph, frame[["few", "fractions"]], "bic-g", continuous=["few", "fractions"])
    assert bbn.score(graph, frame[["few", "fractions"]]) == pytest.approx(both, rel=1e-12)
