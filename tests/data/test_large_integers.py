"""Integers of every width: the states of a column are the numbers that it holds, as Python counts them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bbn

KINDS = {
    "dict": lambda c: c,
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas, arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "arrow": lambda c: pl.DataFrame(c).to_arrow(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "pair",
    [
        (2**63 + 5, 2**63 + 7),
        (2**63 - 1, 2**63),
        (0, 2**64 - 1),
        (2**64 - 2, 2**64 - 1),
        (-(2**63), 2**63 - 1),
        (-(2**63), 1 - 2**63),
    ],
)
def test_integers_near_the_ends_of_64_bits(kind, pair):
    dtype = np.int64 if pair[0] < 0 else np.uint64
    data = KINDS[kind]({"id": np.array(pair * 20, dtype=dtype), "a": ["x", "y"] * 20})
    assert {frozenset(arc) for arc in bbn.hill_climb(data).edges} == {frozenset(("id", "a"))}
    net = bbn.learn(data, [("id", "a")], kinds={"id": "category"}).network
    assert net.variable("id").states == pair
    assert [net.query("a", {"id": number})["x"] for number in pair] == [1.0, 0.0]
    assert net.query("id")[pair[0]] == float(Fraction(1, 2))
    assert [str(state) for state in net.predict(data, "a")] == ["x", "y"] * 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64])
def test_a_column_that_spans_its_type(dtype):
    ends = np.iinfo(dtype).min, np.iinfo(dtype).max
    data = {"x": np.array(ends * 20, dtype=dtype), "a": ["p", "q"] * 20}
    assert bbn.describe(data)["x"].states == tuple(map(int, ends))
    assert list(bbn.hill_climb(data).nodes) == ["x", "a"]
    table = pd.DataFrame({"x": data["x"]})
    for model in (bbn.NaiveBayes(), bbn.TAN()):
        assert model.fit(table, data["a"]).predict(table).tolist() == data["a"]
