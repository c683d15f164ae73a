"""The data seam: every kind of table gives the same codes, and every fault is named."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bbn.core.errors import DataError, ParseError
from bbn.data import as_source, code
from bbn.kernels import coding as kernels
from bbn.kernels.pure import coding as twin
from bbn.model.variable import Variable

A = Variable("A", ["yes", "no"])
B = Variable("B", [2, 0, 1])
C = Variable("C", [True, False])
COLUMNS = {
    "A": ["no", "yes", None, "yes", "no"],
    "B": [0, 1, 2, None, 1],
    "C": [True, None, False, True, True],
}
CODES = {"A": [1, 0, 2, 0, 1], "B": [1, 2, 0, 3, 2], "C": [0, 2, 1, 0, 0]}


def object_frame():
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in COLUMNS.items()})


def csv(tmp_path):
    path = tmp_path / "data.csv"
    object_frame().to_csv(path, index=False)
    return path


def parquet(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame(COLUMNS).to_parquet(path)
    return path


KINDS = {
    "pandas": lambda _: pd.DataFrame(COLUMNS),
    "pandas objects": lambda _: object_frame(),
    "pandas nullable": lambda _: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas arrow": lambda _: pd.DataFrame(COLUMNS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas categories": lambda _: pd.DataFrame(
        {
            name: pd.Categorical(column, categories=list(dict.fromkeys(c for c in column if c is not None)))
            for name, column in COLUMNS.items()
        }
    ),
    "polars": lambda _: pl.DataFrame(COLUMNS),
    "polars lazy": lambda _: pl.DataFrame(COLUMNS).lazy(),
    "polars categories": lambda _: pl.DataFrame(COLUMNS).with_columns(pl.col("A").cast(pl.Categorical)),
    "pyarrow": lambda _: pa.table(COLUMNS),
    "pyarrow chunks": lambda _: pa.concat_tables([pa.table(COLUMNS).slice(0, 2), pa.table(COLUMNS).slice(2)]),
    "dict of lists": lambda _: dict(COLUMNS),
    "dict of series": lambda _: {name: pd.Series(column) for name, column in COLUMNS.items()},
    "dict of polars series": lambda _: {name: pl.Series(column) for name, column in COLUMNS.items()},
    "list of dicts": lambda _: [
        dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)
    ],
    "rows with holes": lambda _: [
        {name: value for name, value in zip(COLUMNS, row, strict=True) if value is not None}
        for row in zip(*COLUMNS.values(), strict=True)
    ],
    "numpy and names": lambda _: (object_frame().to_numpy(), list(COLUMNS)),
    "csv": csv,
    "csv as text": lambda tmp: str(csv(tmp)),
    "parquet": parquet,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_codes(kind, tmp_path):
    table = code(KINDS[kind](tmp_path), [A, B, C])
    assert {name: column.tolist() for name, column in table.codes.items()} == CODES
    assert table.n_rows == 5
    assert table.incomplete == ("A", "B", "C")


@pytest.mark.parametrize("kind", [k for k in KINDS if "csv" not in k and "categories" not in k])
def test_discovered_states_are_sorted_and_of_their_own_type(kind, tmp_path):
    table = code(KINDS[kind](tmp_path))
    assert table.variables == (
        Variable("A", ["no", "yes"]),
        Variable("B", [0, 1, 2]),
        Variable("C", [False, True]),
    )


def test_text_that_is_numbers_is_numbers_and_words_may_be_called_na(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,t\n10,NA\n9,None\n-1,\n10,no\n")
    table = code(path)
    assert table.variables == (Variable("n", [-1, 9, 10]), Variable("t", ["NA", "None", "no"]))
    assert table.codes["t"].tolist() == [0, 1, 3, 2]
    assert code(path, missing="NA").variables[1].states == ("None", "no")
    path.write_text("n,t\n10,TRUE\nNA,false\n?,\n1.0,NA\n")
    table = code(path)
    assert table.variables == (Variable("n", [1, 10]), Variable("t", [False, True]))
    assert {name: column.tolist() for name, column in table.codes.items()} == {
        "n": [1, 2, 2, 0],
        "t": [1, 0, 2, 2],
    }


def test_text_matches_a_state_by_its_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,b\n1,True\n0,False\n")
    n, b = Variable("n", [0, 1]), Variable("b", [False, True])
    assert {k: v.tolist() for k, v in code(path, [n, b]).codes.items()} == {"n": [1, 0], "b": [1, 0]}
    assert code({"n": ["1", "0"]}, [n]).codes["n"].tolist() == [1, 0]
    with pytest.raises(DataError, match="no state 'True'"):
        code({"n": ["True", "0"]}, [n])
    with pytest.raises(DataError, match="no state True"):
        code({"n": [True, False]}, [n])


def test_categories_are_honoured_in_declared_order_used_or_not():
    column = pd.Categorical(["lo", None, "hi"], categories=["lo", "mid", "hi"], ordered=True)
    table = code(pd.DataFrame({"A": column}))
    assert table.variables[0].states == ("lo", "mid", "hi")
    assert table.codes["A"].tolist() == [0, 3, 2]
    enum = pl.Series("A", ["lo", None, "hi"], dtype=pl.Enum(["lo", "mid", "hi"]))
    assert code(pl.DataFrame({"A": enum})).variables[0].states == ("lo", "mid", "hi")


def test_declared_states_keep_their_order():
    table = code({"A": ["a", "b"]}, states={"A": ["b", "c", "a"]})
    assert table.variables[0].states == ("b", "c", "a")
    assert table.codes["A"].tolist() == [2, 0]


def test_true_never_matches_one():
    for column in ([1, 0], np.array([1.0, 0.0]), pd.Series([1, 0])):
        with pytest.raises(DataError, match=r"row 0, column 'C'"):
            code({"C": column}, [C])
    for column in ([True, False], np.array([True, False]), pd.Series([True, None], dtype=object)):
        with pytest.raises(DataError, match=r"row 0, column 'B'"):
            code({"B": column}, [B])


def test_integers_that_became_floats_match_integer_states():
    frame = pd.DataFrame({"B": [0, None, 2]})
    assert frame["B"].dtype == float
    assert code(frame, [B]).codes["B"].tolist() == [1, 3, 0]
    assert code(frame).variables[0].states == (0, 2)


def test_numpy_scalars_are_plain_states():
    column = np.array([np.int64(1), 2, np.int32(1)], dtype=object)
    assert code({"B": column}, [B]).codes["B"].tolist() == [2, 0, 2]
    assert code({"A": np.array(["yes", "no"])}, [A]).codes["A"].tolist() == [0, 1]
    assert code({"B": np.ma.masked_array([1, 7], mask=[False, True])}, [B]).codes["B"].tolist() == [2, 3]
    assert code({"B": np.array([-128, 127], dtype=np.int8)}).variables[0].states == (-128, 127)


def test_many_states_take_wider_codes():
    wide = Variable("W", [f"s{i}" for i in range(300)])
    table = code({"W": ["s299", None, "s0"]}, [wide])
    assert table.codes["W"].dtype == np.uint16
    assert table.codes["W"].tolist() == [299, 300, 0]
    assert (
        code({"W": ["s254", None]}, [Variable("W", [f"s{i}" for i in range(255)])]).codes["W"].dtype
        == np.uint8
    )


def test_unseen_state_names_row_column_value_and_nearest():
    with pytest.raises(DataError, match=r"row 2, column 'A'.*'yess'.*did you mean 'yes'"):
        code({"A": ["yes", "no", "yess"]}, [A])
    assert code({"A": ["yes", "no", "yess"]}, [A], unseen="missing").codes["A"].tolist() == [0, 1, 2]
    unused = pd.DataFrame({"A": pd.Categorical(["yes"], categories=["yes", "no", "maybe"])})
    assert code(unused, [A]).codes["A"].tolist() == [0]
    with pytest.raises(DataError, match=r"2.5"):
        code({"B": [0.0, 2.5]}, [B])


def test_columns_missing_and_extra():
    with pytest.raises(DataError, match=r"no column 'A'; did you mean 'a'.*hidden="):
        code({"a": ["yes"]}, [A])
    with pytest.raises(DataError, match=r"'Extra'.*not a variable"):
        code({"A": ["yes"], "Extra": [1]}, [A])
    table = code({"Extra": [1]}, [A], absent="allow", extra="ignore")
    assert table.codes == {}
    assert table.n_rows == 1


def test_numbers_by_the_hundred_point_to_discretize():
    for column in (np.linspace(0, 1, 500), np.arange(500)):
        with pytest.raises(DataError, match=r"'X'.*500.*bbn\.discretize"):
            code({"X": column})
    with pytest.raises(DataError, match=r"bbn\.discretize"):
        code({"X": [0.5, 1.5]})
    assert code({"X": [0.0, 1.0]}).variables[0].states == (0, 1)


def test_numbers_for_a_discrete_node_point_to_discretize_too():
    with pytest.raises(DataError, match=r"row 0, column 'A'.*bbn\.discretize"):
        code({"A": np.linspace(0, 1, 500)}, [A])


def test_intervals_that_pandas_cut_are_states():
    frame = pd.DataFrame({"X": pd.cut([0.5, 2.5, 1.5, np.nan], [0, 1, 2, 3])})
    table = code(frame)
    assert table.variables[0].states == ("(0, 1]", "(1, 2]", "(2, 3]")
    assert table.codes["X"].tolist() == [0, 2, 1, 3]


def test_mixed_columns_are_refused():
    with pytest.raises(DataError, match=r"type int, str"):
        code({"X": [1, "1"]})
    for unit in ("ns", "us", "s"):  # numpy would turn nanoseconds into integers
        with pytest.raises(DataError, match=r"type datetime"):
            code(pd.DataFrame({"X": np.array(["2020-01-01"], f"M8[{unit}]")}))
        with pytest.raises(DataError, match=r"type timedelta"):
            code({"X": np.array([5], f"m8[{unit}]")})


def test_empty_and_all_missing_tables():
    with pytest.raises(DataError, match=r"no rows"):
        as_source(pd.DataFrame({"A": []}), [A])
    with pytest.raises(DataError, match=r"'A'.*hidden="):
        as_source({"A": [None, None]}, [A])
    with pytest.raises(DataError, match=r"'A'.*hidden="):
        as_source({"A": [None, None]})
    assert code([], [A], absent="allow").n_rows == 0
    assert as_source({"A": ["yes"], "Z": [None]}, [A], hidden=["Z"]).variables == (A,)
    with pytest.raises(DataError, match=r"hidden variable 'Z' has values.*row 1"):
        as_source({"A": ["yes", "no"], "Z": [None, "x"]}, [A, Variable("Z", ["x"])], hidden=["Z"])


def test_weights_are_checked():
    data = {"A": ["yes", "no"], "w": [2.0, 0.5]}
    assert code(data, [A], weights="w").weights.tolist() == [2.0, 0.5]
    assert code({"A": ["yes", "no"]}, [A], weights=[1, 3]).total == 4
    for bad, what in (
        ([1, -1], "row 1.*-1"),
        ([np.nan, 1], "row 0.*nan"),
        ([1], "expected one for each of 2"),
        ([0, 0], "every weight is 0"),
        (["a", "b"], "numbers"),
        ("v", "not a column"),
    ):
        with pytest.raises(DataError, match=what):
            code({"A": ["yes", "no"]}, [A], weights=bad)


def test_what_is_not_a_table_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"pass \(array, names\)"):
        code(np.zeros((3, 2)))
    with pytest.raises(DataError, match=r"expected pandas, polars"):
        code(17)
    with pytest.raises(DataError, match=r"different lengths"):
        code({"A": ["yes"], "B": [0, 1]})
    with pytest.raises(DataError, match=r"one value per row"):
        code({"A": "yes"})
    with pytest.raises(DataError, match=r"row 1 is"):
        code([{"A": "yes"}, 3])
    with pytest.raises(DataError, match=r"'A' is there twice"):
        code(pd.DataFrame([["yes", "no"]], columns=["A", "A"]))
    with pytest.raises(FileNotFoundError):
        code(tmp_path / "none.csv")
    (tmp_path / "bad.csv").write_text("A,B\n1,2\n1,2,3\n")
    with pytest.raises(ParseError, match=r"bad\.csv"):
        code(tmp_path / "bad.csv")
    (tmp_path / "twice.csv").write_text("A,A\n1,2\n")
    with pytest.raises(DataError, match=r"'A' is there twice"):
        code(tmp_path / "twice.csv")
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(ParseError, match=r"bad\.parquet"):
        code(tmp_path / "bad.parquet")


def test_results_come_back_in_kind():
    values = np.array([0.25, 0.75])
    index = pd.Index(["r1", "r2"])
    kind = code(pd.DataFrame({"A": ["yes", "no"]}, index=index)).kind
    pd.testing.assert_series_equal(kind.column(values, "p"), pd.Series(values, index=index, name="p"))
    pd.testing.assert_frame_equal(kind.frame({1: values}), pd.DataFrame({1: values}, index=index))
    assert (
        code(pl.DataFrame({"A": ["yes", "no"]})).kind.frame({1: values}).equals(pl.DataFrame({"1": values}))
    )
    assert code(pa.table({"A": ["yes", "no"]})).kind.frame({1: values}).equals(pa.table({"1": values}))
    assert code([{"A": "yes"}, {"A": "no"}]).kind.frame({1: values}) == [{1: 0.25}, {1: 0.75}]
    assert code({"A": ["yes", "no"]}).kind.frame({1: values})[1] is values
    labels = np.array(["a", None], dtype=object)
    assert code(pl.DataFrame({"A": ["yes", "no"]})).kind.column(labels, "p").to_list() == ["a", None]


def random_table(rng, weighted):
    cards = rng.integers(1, 5, size=rng.integers(1, 6))
    n = int(rng.integers(1, 60))
    columns = {
        f"V{i}": [None if rng.random() < 0.2 else int(rng.integers(card)) for _ in range(n)]
        for i, card in enumerate(cards)
    }
    variables = [Variable(f"V{i}", list(range(card))) for i, card in enumerate(cards)]
    return columns, variables, rng.integers(0, 4, n) + 0.5 if weighted else None


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_equal_a_count_by_dict(weighted):
    rng = np.random.default_rng(1)
    for _ in range(100):
        columns, variables, weights = random_table(rng, weighted)
        table = code(columns, variables, weights=weights)
        names = [v.name for v in variables]
        families = [list(rng.permutation(names)[: rng.integers(0, len(names) + 1)]) for _ in range(4)]
        for family, counts in zip(families, table.counts(families), strict=True):
            slow = Counter()
            for i in range(table.n_rows):
                key = tuple(columns[name][i] for name in family)
                if None not in key:
                    slow[key] += 1 if weights is None else weights[i]
            assert counts.shape == tuple(variables[names.index(name)].card for name in family)
            assert {tuple(map(int, k)): counts[tuple(k)] for k in np.argwhere(counts)} == {
                k: v for k, v in slow.items() if v
            }
            assert counts.dtype == (float if weighted else np.int64)


def test_equal_rows_are_merged_with_their_weights():
    rng = np.random.default_rng(2)
    for _ in range(50):
        columns, variables, weights = random_table(rng, True)
        table = code(columns, variables, weights=weights)
        block = table.merged()
        slow: dict[tuple[int, ...], float] = {}
        for i in range(table.n_rows):
            key = tuple(int(table.codes[v.name][i]) for v in variables)
            slow[key] = slow.get(key, 0.0) + weights[i]
        merged: dict[tuple[int, ...], float] = {}
        for i in range(block.n_rows):
            key = tuple(int(block.codes[v.name][i]) for v in variables)
            merged[key] = merged.get(key, 0.0) + block.weights[i]
        assert list(merged) == list(slow)
        np.testing.assert_allclose(list(merged.values()), list(slow.values()))
        assert block.n_rows == len(slow) or len(slow) > 0.9 * table.n_rows
        assert table.reduce(lambda b: [b.weights.sum()])[0] == pytest.approx(table.total)


def test_compiled_kernels_and_their_twins_agree():
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 3, 10_000).astype(np.uint8), rng.integers(0, 400, 10_000).astype(np.uint16)]
    for fast, slow in zip(kernels.merge_rows(columns), twin.merge_rows(columns), strict=True):
        np.testing.assert_array_equal(fast, slow)
    texts = ["a", "", "abcdefgh", "abcdefghi", "ü", "a", "abcdefghi", "abcdefgh", "\0", ""]
    data = "".join(texts).encode()
    ends = np.cumsum([0] + [len(text.encode()) for text in texts])
    for width in (np.int32, np.int64):
        for kernel in (kernels, twin):
            codes, levels = kernel.factorize_text(ends.astype(width), np.frombuffer(data, dtype=np.uint8))
            assert [levels[c] for c in codes] == texts
            assert len(levels) == len(set(texts))
    values = np.array(["a", 1, True, 1.0, None, float("nan"), "a", np.nan, pd.NA, pd.NaT, "b"], dtype=object)
    fast_codes, fast_values = kernels.factorize_objects(values)
    slow_codes, slow_values = twin.factorize_objects(values)
    assert fast_codes.tolist() == slow_codes.tolist() == [0, 1, 2, 3, -1, -1, 0, -1, -1, -1, 4]
    assert list(map(repr, fast_values)) == list(map(repr, slow_values)) == ["'a'", "1", "True", "1.0", "'b'"]


def test_a_dict_of_columns_does_not_load_pandas():
    program = (
        "import sys; from bbn.data import code; code({'A': ['x', 'y', None]}).counts([('A',)]);"
        "sys.exit('pandas' in sys.modules or 'networkx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("kind", [pd.Series, pd.Categorical, pd.Index, pd.array])
def test_columns_may_be_any_array_of_pandas(kind):
    table = code({"X": kind(["b", "a", "b"])})
    assert [table.variables[0].states[c] for c in table.codes["X"]] == ["b", "a", "b"]
    assert code({"X": pd.Categorical(["a"], categories=["c", "a"])}).variables[0].states == ("c", "a")
    assert code({"X": pd.array([1, None, 2], dtype="Int64")}).incomplete == ("X",)


def test_a_coded_table_pickles_without_what_it_keeps_for_counting():
    table = code({"A": ["x", "y"] * 600, "B": ["u", "u", "v", "v"] * 300})
    before = len(pickle.dumps(table))
    counted = table.counts([("A", "B")])
    again = pickle.loads(pickle.dumps(table))
    assert len(pickle.dumps(table)) == before
    assert np.array_equal(again.counts([("A", "B")])[0], counted[0])
