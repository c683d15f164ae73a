"""One reading of columns: every kind of table gives the same description, and each decision can be overridden."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bbn
from bbn.core.errors import DataError

N = 60
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "row": np.arange(1, N + 1),
        "name": [f"person {i}" for i in range(N)],
        "height": RNG.normal(170, 10, N).round(1),
        "age": RNG.integers(18, 90, N),
        "cylinders": RNG.choice([4, 6, 8], N),
        "answer": RNG.choice(["NA", "None", "yes"], N),
        "smoker": RNG.random(N) < 0.3,
        "when": pd.date_range("2024-01-01", periods=N),
        "unit": "cm",
        "nothing": [None] * N,
    }
)
KINDS = {
    "row": ("identifier", "left out"),
    "name": ("identifier", "left out"),
    "height": ("number", "number"),
    "age": ("whole number", "number"),
    "cylinders": ("whole number", "states"),
    "answer": ("category", "states"),
    "smoker": ("truth value", "states"),
    "when": ("date", "left out"),
    "unit": ("constant", "left out"),
    "nothing": ("constant", "left out"),
}


def csv(folder):
    FRAME.to_csv(folder / "d.csv", index=False)
    return folder / "d.csv"


def parquet(folder):
    FRAME.to_parquet(folder / "d.parquet")
    return folder / "d.parquet"


def many_csv(folder):
    (folder / "parts").mkdir()
    FRAME.iloc[:25].to_csv(folder / "parts" / "1.csv", index=False)
    FRAME.iloc[25:].to_csv(folder / "parts" / "2.csv", index=False)
    return folder / "parts"


SOURCES = {
    "pandas": lambda _: FRAME,
    "pandas nullable": lambda _: FRAME.convert_dtypes(),
    "polars": lambda _: pl.from_pandas(FRAME),
    "pyarrow": lambda _: pa.Table.from_pandas(FRAME),
    "dict": lambda _: {name: FRAME[name].tolist() for name in FRAME},
    "rows": lambda _: FRAME.to_dict("records"),
    "text": lambda _: FRAME.astype(str).where(FRAME.notna(), None),
    "csv": csv,
    "csv folder": many_csv,
    "parquet": parquet,
    "stream": lambda _: bbn.open_data([FRAME.iloc[:25], FRAME.iloc[25:]]),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_table_gives_the_same_description(source, tmp_path):
    found = bbn.describe(SOURCES[source](tmp_path))
    assert {column.name: (column.kind, column.use) for column in found} == KINDS
    assert found.n_rows == N
    assert found["nothing"].missing == N
    assert found["answer"].states == ("NA", "None", "yes")
    assert found["cylinders"].states == (4, 6, 8)
    assert found["smoker"].states == (False, True)
    assert {c.name: c.distinct for c in found if c.use != "left out"} == {
        name: FRAME[name].nunique() for name, (_, use) in KINDS.items() if use != "left out"
    }


def test_a_dask_frame_is_described_like_any_other():
    dd = pytest.importorskip("dask.dataframe")
    found = bbn.describe(dd.from_pandas(FRAME.drop(columns="nothing"), npartitions=3))
    assert {column.name: column.kind for column in found} == {
        name: kind for name, (kind, _) in KINDS.items() if name != "nothing"
    }


@pytest.mark.parametrize("word", ["NA", "NaN", "null", "?", "", "n/a", None])
def test_words_mean_missing_among_numbers_alone(word):
    numbers = [str(x) for x in range(20)] * 2
    found = bbn.describe({"x": [*numbers, word], "w": ["a", "b"] * 20 + ["?"]})
    assert (found["x"].kind, found["x"].missing, found["x"].distinct) == ("whole number", 1, 20)
    assert found["w"].states == ("?", "a", "b")
    coded = bbn.data.code({"x": [*numbers, word]}, [bbn.Binned("x", [9.5])])
    assert np.bincount(coded.codes["x"]).tolist() == [20, 20, 1]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,5", "-2,25", "1,234", "7"], [1.5, -2.25, 1.234, 7]),
        (["1,234", "12,000,000", "5"], [1234, 12000000, 5]),
        (["1.234,5", "2,5", "10"], [1234.5, 2.5, 10]),
        (["1e3", " 2.5", "+3"], [1000, 2.5, 3]),
    ],
)
def test_numbers_in_every_form_of_writing(texts, numbers):
    column = texts * 10
    assert bbn.describe({"x": column})["x"].kind in ("number", "whole number")
    read = bbn.data.code({"x": column}, continuous=["x"]).numbers["x"]
    np.testing.assert_array_equal(read, numbers * 10)


def test_codes_with_leading_zeros_are_words():
    found = bbn.describe({"zip": ["01234", "99999", "00501"] * 10})["zip"]
    assert (found.kind, found.states) == ("category", ("00501", "01234", "99999"))


def test_decisions_are_overridden_by_name():
    kinds = {"age": "category", "cylinders": "number", "row": "number", "unit": "category", "smoker": "drop"}
    found = bbn.describe(FRAME, kinds)
    assert {name: found[name].use for name in kinds} == {
        "age": "states",
        "cylinders": "number",
        "row": "number",
        "unit": "states",
        "smoker": "left out",
    }
    assert found["age"].states == tuple(sorted(set(FRAME["age"].tolist())))
    with pytest.raises(DataError, match="did you mean 'age'"):
        bbn.describe(FRAME, {"agee": "number"})
    with pytest.raises(ValueError, match="did you mean 'number'"):
        bbn.describe(FRAME, {"age": "numbr"})
    with pytest.raises(DataError, match="'person 0'"):
        bbn.describe(FRAME, {"name": "number"})


def test_counts_beside_categories_are_weights():
    rows = {
        "sex": ["f", "m"] * 4,
        "hair": ["red", "red", "fair", "fair"] * 2,
        "Freq": [3, 0, 7, 20, 5, 9, 1, 4],
    }
    found = bbn.describe(rows)
    assert (found["Freq"].kind, found.weights) == ("counts", "Freq")
    assert bbn.describe(rows, {"Freq": "number"}).weights is None
    beside = bbn.describe({**rows, "x": np.linspace(0, 1, 8)})
    assert beside.weights is None
    assert "weights='Freq'" in beside["Freq"].why
    learned = bbn.learn(rows)
    assert "Freq" not in learned.network
    by_hand = bbn.fit(
        learned.network, {k: v for k, v in rows.items() if k != "Freq"}, bbn.BDeu(1), weights=rows["Freq"]
    )
    assert learned.network == by_hand


def test_a_description_is_a_value_that_shows_itself():
    found = bbn.describe(FRAME)
    assert found == bbn.describe(FRAME)
    assert "left out" in str(found)
    assert "<table>" in found._repr_html_()
    assert found.to_frame().loc["age", "kind"] == "whole number"
    with pytest.raises(AttributeError):
        found.n_rows = 3


def test_binned_takes_numbers_and_labels_and_survives_every_format(tmp_path):
    mass = bbn.Binned("mass", edges=[3550, 4050.5])
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(mass, table=[0.2, 0.5, 0.3]),
            bbn.CPT(bbn.Variable("sex", ["f", "m"]), [mass], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]),
        ]
    )
    assert net.query("sex", {"mass": 3700})["m"] == 0.5
    assert net.query("sex", {"mass": 3550.0})["m"] == 0.5
    assert net.query("sex", {"mass": "<3550"})["f"] == pytest.approx(0.9)
    assert net.query("mass", {"sex": "m"})[5000] == net.query("mass", {"sex": "m"})[">=4050.5"]
    assert net.predict({"mass": [1.0, 4050.5, "3600", None]}, "sex")[:3].tolist() == ["f", "m", "f"]
    for suffix in ("yaml", "json"):
        net.save(tmp_path / f"n.{suffix}")
        assert "bins" in (tmp_path / f"n.{suffix}").read_text()
        assert bbn.load(tmp_path / f"n.{suffix}") == net
    for suffix in ("bif", "xmlbif", "net", "xdsl"):
        with pytest.warns(bbn.LossyFormatWarning):
            net.save(tmp_path / f"n.{suffix}")
        assert bbn.load(tmp_path / f"n.{suffix}") == net
    assert "below_3550, 3550_to_4050_5, from_4050_5" in (tmp_path / "n.bif").read_text()
    for bad in ([1, 1], [2, 1], ["a"], [float("nan")], "12", 3):
        with pytest.raises(bbn.ModelError):
            bbn.Binned("x", bad)
    with pytest.raises(bbn.EvidenceError, match="expected a number"):
        net.query("sex", {"mass": "heavy"})


def test_values_never_seen_are_missing_with_a_warning():
    net = bbn.fit([("A", "B")], {"A": ["x", "y"] * 5, "B": ["u", "v"] * 5}, bbn.BDeu(1))
    with pytest.warns(bbn.UnseenValuesWarning, match="'z'"):
        p = net.predict_proba({"A": ["x", "z"]}, "B")
    assert p["u"][1] == pytest.approx(net.query("B")["u"])
    with pytest.raises(DataError, match="no state 'z'"):
        net.predict_proba({"A": ["z", "z"]}, "B")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_what_the_first_line_has_most_of(separator, tmp_path):
    path = tmp_path / "rows.csv"
    quoted = f'"a{separator * 5}b"'
    lines = [
        separator.join([quoted, "x", "y"]),
        *(separator.join([w, str(i / 4), w]) for i, w in enumerate("uvuvuu")),
    ]
    path.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    found = bbn.describe(path)
    assert [column.name for column in found] == [quoted.strip('"'), "x", "y"]
    assert [column.kind for column in found] == ["category", "number", "category"]
    rows = pd.read_csv(path, sep=separator)
    assert bbn.learn(path).network == bbn.learn(rows).network


def test_files_that_cannot_be_read_say_what_to_do(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("stadt;x\nKöln;1\n".encode("latin-1"))
    with pytest.raises(bbn.DataError, match="must be in UTF-8"):
        bbn.describe(path)
    path.write_text("a,b\n1,x\n2,y,z\n")
    with pytest.raises(bbn.DataError, match="line 3 has 3 fields, the first line 2"):
        bbn.describe(path)
    path.write_text("a,a\n1,x\n")
    with pytest.raises(bbn.DataError, match="'a' is there twice; rename one"):
        bbn.describe(path)
