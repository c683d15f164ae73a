"""Odd tables in `bbn.learn`: each ends in a network of what counts, or in an error that says what to do."""

from __future__ import annotations

import datetime
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bbn
from bbn.learning.raw.marginals import _drawn


def table(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.choice(["u", "v", "w"], n)
    b = np.where(rng.random(n) < 0.8, a == "u", rng.random(n) < 0.5)
    return pd.DataFrame({"a": a, "b": b, "x": (a == "u") + rng.normal(size=n)})


@pytest.mark.parametrize("target", [None, "a", "x"])
@pytest.mark.parametrize("keep", [1, 3, 40])
def test_rows_of_weight_0_are_as_if_they_were_not_there(target, keep):
    rows = table()
    rows["a"] = pd.Categorical(rows["a"])
    weights = np.zeros(len(rows))
    weights[np.random.default_rng(keep).permutation(len(rows))[:keep]] = 1.0
    kinds = {"b": "truth value", "x": "number"}
    net = bbn.learn(rows, weights=weights, target=target, kinds=kinds).network
    counted = rows[weights > 0]
    if keep == 40:  # with fewer rows a column has one value, and is left out
        assert net == bbn.learn(counted, target=target, kinds=kinds).network
    share = (counted["a"] == "u").mean()
    assert net.query("a")["u"] == pytest.approx((keep * share + 1 / 3) / (keep + 1), abs=0.005)


def test_a_column_that_is_to_be_predicted_holds_no_weights():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": list("uvuvw") * 8, "b": list("xxyyx") * 8, "count": rng.poisson(5, 40)})
    assert bbn.learn(rows).columns.weights == "count"
    plain = bbn.learn(rows.rename(columns={"count": "z"}), target="z").network
    for more in ({}, {"weights": np.ones(40)}):
        net = bbn.learn(rows, target="count", **more).network
        assert set(net.names) == {"a", "b", "count"}
        if not more:
            assert list(net.predict(rows, "count")) == list(
                plain.predict(rows.rename(columns={"count": "z"}), "z")
            )
    for more in ({"weights": "count"}, {"kinds": {"count": "counts"}}):
        with pytest.raises(bbn.DataError, match="'count' is the target and the weights of the rows"):
            bbn.learn(rows, target="count", **more)


@pytest.mark.parametrize(
    ("column", "why"),
    [([1] * 60, "always 1"), ([None] * 60, "no value in any row"), (["q", None] * 30, "'q' or missing")],
)
def test_a_target_of_one_value_is_refused(column, why):
    with pytest.raises(bbn.DataError, match=rf"nothing to predict: the target 't' is constant \({why}\)"):
        bbn.learn(table().assign(t=column), target="t")


def test_a_structure_names_columns_that_there_are_and_that_hold_something():
    rows = table().assign(empty=np.nan)
    with pytest.raises(
        bbn.DataError, match="the structure has 'aa', which is not a column; did you mean 'a'"
    ):
        bbn.learn(rows, [("aa", "b")])
    with pytest.raises(
        bbn.DataError, match="the structure has 'empty', but that column has no value in any row"
    ):
        bbn.learn(rows, [("empty", "b")])


def test_a_table_without_columns_is_called_so():
    with pytest.raises(bbn.DataError, match="the data have no columns"):
        bbn.learn(pd.DataFrame(index=range(5)))


def test_states_that_no_row_has_cost_no_memory():
    bits = np.random.default_rng(0).integers(0, 2, (2, 300))
    rows = pd.DataFrame({"a": bits[0], "b": bits[1], "both": bits.sum(axis=0)})
    rows["c"] = pd.Categorical(rows["both"].astype(str), [*"012", *map(str, range(100, 20_000))])
    tracemalloc.start()
    with pytest.warns(bbn.TooManyParametersWarning):
        net = bbn.learn(rows).network
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert net.variable("c").card == 19_903
    assert max(len(net.parents(name)) for name in net.names) > 1  # shares are looked at where parents are two
    assert peak < 200e6


def test_states_are_drawn_by_the_row_of_their_setting():
    rng = np.random.default_rng(0)
    weights = rng.gamma(0.3, size=(50, 7))
    weights[3] = [0, 0, 1, 0, 0, 0, 0]
    rows = weights / weights.sum(axis=1, keepdims=True)
    setting = np.repeat(np.arange(50), 20_000)
    found = _drawn(rows, setting, rng).reshape(50, -1)
    shares = np.array([np.bincount(own, minlength=7) / 20_000 for own in found])
    assert np.abs(shares - rows).max() < 5 * np.sqrt(0.25 / 20_000)
    assert (found[3] == 2).all()


def test_naive_bayes_is_not_trained_where_that_would_take_minutes():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({name: [f"{name}{v:03}" for v in rng.integers(0, 700, 1500)] for name in "rst"})
    rows["u"] = rows["r"].str[-1]
    result = bbn.learn(rows, target="r")
    assert result.predictor is None
    assert result.network.n_parameters <= 10 * len(rows)
    assert all(np.isfinite(result.network.log_likelihood(rows)))


NESTED = {
    "list": [[k % 3] for k in range(60)],
    "struct": [{"q": k % 2} for k in range(60)],
    "words": [["a", "b"], None, ["c"]] * 20,
    "decimal": [Decimal(k) / 4 for k in range(60)],
    "huge": [10**25 + k % 20 for k in range(60)],
    "period": pd.period_range("2020", periods=60),
    "interval": pd.cut(np.arange(60.0), 4),
    "time": [datetime.time(k % 24) for k in range(60)],
}
"""Columns of values that are neither text nor plain numbers."""


@pytest.mark.parametrize("name", NESTED)
def test_nested_and_rare_types_are_read_alike_whatever_library_holds_them(name, tmp_path):
    rows = table().assign(z=NESTED[name])
    wanted = bbn.describe(rows)["z"]
    tables = {"pandas": rows, "dict": {k: list(v) for k, v in rows.items()}}
    if name != "huge":
        tables["pyarrow"] = pa.Table.from_pandas(rows, preserve_index=False)
    if name not in ("huge", "interval"):  # which Parquet does not hold
        rows.to_parquet(tmp_path / "rows.parquet")
        tables["parquet"] = tmp_path / "rows.parquet"
    if name not in ("period", "interval"):
        kind = {"dtype": pl.Int128} if name == "huge" else {}
        tables["polars"] = pl.DataFrame(table().to_dict("list")).with_columns(
            pl.Series("z", NESTED[name], **kind)
        )
    for library, data in tables.items():
        line = bbn.describe(data)["z"]
        assert (line.use, line.missing) == (wanted.use, wanted.missing), library
        if name not in ("interval", "struct", "list", "words"):
            assert (line.kind, line.states) == (wanted.kind, wanted.states), library
        elif line.states is not None:
            assert len(line.states) == len(wanted.states), library
        net = bbn.learn(data).network
        assert np.isfinite(np.asarray(net.log_likelihood(data), dtype=float)).all()


@pytest.mark.parametrize("how", ["cut", "gaussian"])
@pytest.mark.parametrize("kind", [Decimal, Fraction])
def test_exact_numbers_are_evidence_and_rows_as_floats_are(how, kind):
    rows = table(200)
    net = bbn.learn(rows, numbers=how).network
    exact = rows.assign(x=[kind(x) for x in rows["x"]])
    assert list(net.log_likelihood(exact)) == list(net.log_likelihood(rows))
    assert net.query("a", {"x": kind(0.5)}) == net.query("a", {"x": 0.5})
    assert bbn.learn(exact, numbers=how).network == net
