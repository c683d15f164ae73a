"""Data that stream by answer as the same data in memory do: counts bit for bit, networks alike."""

import pickle
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import bbn
from bbn.core.errors import BudgetError, DataError
from bbn.core.threads import in_order
from bbn.data import code, open_data
from bbn.data.streams.datasets import Dataset
from bbn.data.streams.parquet import File, ParquetFiles
from bbn.data.streams.sums import RunningSum

N = 3000
FAMILIES = [(), ("A",), ("B", "A"), ("C", "A", "B"), ("D", "C"), ("E", "A", "B", "C")]


def frame(missing=0.0, seed=3):
    """A table with text, whole numbers, truth values, names that are odd, and holes."""
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=N)
    b = (a + rng.integers(2, size=N)) % 3
    columns = {
        "A": np.array(["low", "mid", "high"], dtype=object)[a],
        "B": b + 7,
        "C": (a == b) ^ (rng.random(N) < 0.1),
        "D": np.array(["NA", "", "None", "été, ü"], dtype=object)[rng.integers(4, size=N)],
        "E": np.array(["x", "y"], dtype=object)[(rng.random(N) < 0.3 + 0.4 * (a == 1)).astype(int)],
    }
    table = pd.DataFrame(columns)
    table["D"] = table["D"].replace("", "n/a")
    if missing:
        for name in table:
            table[name] = table[name].astype(object).mask(rng.random(N) < missing, None)
    return table


def parquet_folder(table, path, rows=700, row_group=250):
    path.mkdir()
    for i, start in enumerate(range(0, len(table), rows)):
        part = pa.Table.from_pandas(table.iloc[start : start + rows], preserve_index=False)
        pq.write_table(part, path / f"part-{i:03}.parquet", row_group_size=row_group)
    return path


KINDS = ["memory", "folder", "pattern", "paths", "csv", "dataset", "list", "function", "polars"]


def opened(kind, table, tmp_path, **options):
    """The same table, in memory or streamed."""
    if kind == "memory":
        return code(table, **{k: v for k, v in options.items() if k in ("states", "weights", "missing")})
    if kind == "csv":
        path = tmp_path / "rows.csv"
        table.to_csv(path, index=False)
        return open_data(str(path), **{"batch_rows": 411, **options})
    if kind in ("folder", "pattern", "paths", "dataset"):
        folder = tmp_path / "rows"
        if not folder.exists():
            parquet_folder(table, folder)
        given = {
            "folder": folder,
            "pattern": str(folder / "*.parquet"),
            "paths": sorted(folder.iterdir()),
            "dataset": pyarrow.dataset.dataset(folder),
        }[kind]
        return open_data(given, **{"batch_rows": 199, **options})
    parts = [table.iloc[start : start + 800] for start in range(0, len(table), 800)]
    if kind == "list":
        return open_data(parts, **options)
    if kind == "function":
        return open_data(lambda: iter(parts), **options)
    import polars as pl

    return open_data([pl.from_pandas(part) for part in parts], **options)


def text_states(table):
    """CSV is text: the same table as its text."""
    return table.map(lambda value: value if value is None or isinstance(value, str) else str(value))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_memory_bit_for_bit(kind, missing, tmp_path):
    table = frame(missing)
    memory = code(text_states(table) if kind == "csv" else table)
    source = opened(kind, table, tmp_path)
    assert source.variables == memory.variables
    assert (source.n_rows, source.total) == (N, float(N))
    assert source.incomplete == memory.incomplete
    for ours, theirs in zip(source.counts(FAMILIES), memory.counts(FAMILIES), strict=True):
        assert ours.dtype == np.int64
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("batch_rows", [1, 64, 249, 250, 1000, 10**6])
def test_neither_batches_nor_threads_show(n_jobs, batch_rows, tmp_path):
    table = frame().iloc[:600]
    folder = parquet_folder(table, tmp_path / "rows")
    source = open_data(folder, n_jobs=n_jobs, batch_rows=batch_rows)
    for ours, theirs in zip(source.counts(FAMILIES), code(table).counts(FAMILIES), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_categories_keep_their_order_and_those_that_no_row_uses(tmp_path):
    kind = pd.CategoricalDtype(["high", "mid", "low", "never"])
    table = frame()[["A"]].astype({"A": kind})
    source = open_data(parquet_folder(table, tmp_path / "rows"))
    assert source.variables[0].states == ("high", "mid", "low", "never")
    np.testing.assert_array_equal(source.counts([("A",)])[0], code(table).counts([("A",)])[0])


def test_text_that_was_written_as_a_dictionary_has_the_states_that_occur(tmp_path):
    values = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int32()), pa.array(["z", "never", "a"]))
    pq.write_table(pa.table({"A": values}), tmp_path / "a.parquet", store_schema=False)
    assert open_data(tmp_path / "a.parquet").variables == (bbn.Variable("A", ["a", "z"]),)


def test_weights_add_up_whatever_the_batches(tmp_path):
    table = frame().assign(w=np.random.default_rng(1).random(N) * 10.0 ** np.arange(N).clip(0, 9))
    memory = code(table, weights="w")
    for rows in (7, 333, 10**6):
        source = open_data([table.iloc[i : i + rows] for i in range(0, N, rows)], weights="w")
        assert source.variables == memory.variables
        assert source.total == pytest.approx(memory.total, rel=1e-13)
        for ours, theirs in zip(source.counts(FAMILIES), memory.counts(FAMILIES), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_batch_of_weightless_rows_is_fine_but_not_all(tmp_path):
    parts = [{"A": [0, 1], "w": [0, 0]}, {"A": [0, 1], "w": [1, 2]}]
    np.testing.assert_array_equal(open_data(parts, weights="w").counts([("A",)])[0], [1.0, 2.0])
    with pytest.raises(DataError, match="every weight is 0"):
        open_data(parts[:1], weights="w").counts([("A",)])
    with pytest.raises(DataError, match="every weight is 0"):
        open_data(parts[:1], weights="w", states={"A": [0, 1]}).counts([("A",)])
    with pytest.raises(DataError, match=r"table 1: row 1: the weight is -3\.0"):
        _ = open_data([parts[0], {"A": [0, 1], "w": [1, -3]}], weights="w").total


def test_sums_do_not_lose_what_a_double_loses():
    total = RunningSum()
    for value in [1e100, 1.0, -1e100, 1e-20]:
        total.merge(RunningSum([np.array([value]), np.array([2**53]), np.array([np.inf])]))
    assert [part.tolist() for part in total.result()] == [[1.0], [4 * 2**53], [np.inf]]


def test_declared_data_are_read_once(tmp_path):
    net = bbn.example("asia")
    rows = net.sample(N, seed=2).astype(str)
    folder = parquet_folder(rows, tmp_path / "rows")
    source = open_data(folder, variables=net.variables)
    assert (source.passes, source.n_rows) == (0, N)
    fitted = bbn.fit(net, source)
    assert source.passes == 1
    assert fitted == bbn.fit(net, rows)
    folder = net.sample(N, seed=2, to=tmp_path / "complete")  # columns that say that they miss no value
    source = open_data(folder, variables=net.variables)
    assert (source.passes, source.n_rows, source.incomplete) == (0, N, ())


def learners():
    """Learners of the whole structure that take states, each with what it does in memory."""
    net = bbn.example("asia")
    arcs = list(net.graph.edges)
    states = {v.name: v.states for v in net.variables}
    return {
        "fit a graph": lambda data: bbn.fit(arcs, data, bbn.BDeu(1), states=states),
        "fit a network": lambda data: bbn.fit(net, data, bbn.BDeu(1)),
        "score": lambda data: bbn.score(arcs, data, states=states),
        "fit_em": lambda data: bbn.fit_em(net, data, max_iter=0).network,
    }


@pytest.mark.parametrize("kind", ["pandas", "bbn", "csv", "list", "dataset"])
@pytest.mark.parametrize("learner", learners())
def test_states_that_the_learner_declares_are_not_looked_for(kind, learner, tmp_path):
    rows = bbn.example("asia").sample(N, seed=2).astype(str)
    if kind == "bbn":
        data = bbn.example("asia").sample(N, seed=2, to=tmp_path / "bbn")
    elif kind == "dataset":
        data = pyarrow.dataset.dataset(parquet_folder(rows, tmp_path / "rows"))
    elif kind == "csv":
        data = tmp_path / "rows.csv"
        rows.to_csv(data, index=False)
    else:
        data = parquet_folder(rows, tmp_path / "rows") if kind == "pandas" else [rows[:50], rows[50:]]
    source = open_data(data)
    assert source.passes == 0
    assert learners()[learner](source) == learners()[learner](rows)
    assert source.passes == 1
    assert source.n_rows == N


def test_a_missing_value_is_named_in_the_one_pass_that_meets_it(tmp_path):
    rows = bbn.example("asia").sample(N, seed=2).astype(str).astype(object)
    rows.iloc[N - 2, 3] = None
    folder = parquet_folder(rows, tmp_path / "rows")
    states = {v.name: v.states for v in bbn.example("asia").variables}
    name = rows.columns[3]
    for work in (
        lambda source: bbn.fit(bbn.example("asia"), source),
        lambda source: bbn.chow_liu(open_data(folder, states=states)),
        lambda source: bbn.score(bbn.example("asia"), source),
    ):
        source = open_data(folder)
        with pytest.raises(
            DataError, match=rf"row group \d: row \d+: column '{name}' has missing values; .*fit_em"
        ):
            work(source)
    assert source.passes == 1
    source = open_data([rows], states=states, unseen="missing")
    with pytest.raises(DataError, match=rf"column '{name}' has missing values; .*fit_em"):
        bbn.fit(bbn.example("asia"), source)
    assert source.incomplete == (name,)  # and whoever wants to know is told, by a pass
    assert bbn.fit_em(bbn.example("asia"), source, max_iter=1).n_iter == 1


def test_data_without_rows_are_refused_in_the_pass(tmp_path):
    (tmp_path / "none.csv").write_text("A,B\n")
    for data in (tmp_path / "none.csv", [{"A": [], "B": []}]):
        with pytest.raises(DataError, match="the data have no rows"):
            bbn.fit([("A", "B")], open_data(data), states={"A": ["x", "y"], "B": ["x", "y"]})


def test_states_in_another_order_than_discovered(tmp_path):
    net = bbn.example("asia")  # yes before no
    rows = net.sample(N, seed=2).astype(str)
    source = opened("list", rows, tmp_path)
    assert source.variables[0].states == ("no", "yes")
    fitted = bbn.fit(net, source)
    assert fitted.variables == net.variables


def test_only_the_columns_that_are_asked_for_are_read():
    asked = []

    class Spy(dict):
        def __getitem__(self, name):
            asked.append(name)
            return dict.__getitem__(self, name)

    source = open_data([Spy(A=[0, 1], B=[1, 1], C=[0, 0])], n_jobs=1)
    assert len(source.variables) == 3
    asked.clear()
    source.counts([("A",), ("C", "A")])
    assert set(asked) == {"A", "C"}


def test_columns_by_name_and_columns_without_values(tmp_path):
    parts = [{"A": ["x"], "id": [1.5], "Z": [None]}, {"A": ["y"], "id": [2.5], "Z": [None]}]
    with pytest.raises(DataError, match="'id' holds 2 different numbers"):
        _ = open_data(parts).variables
    source = open_data(parts, variables=["A", "Z"])
    assert [v.name for v in source.variables] == ["A"]
    with pytest.raises(DataError, match="'Z' holds no value at all"):
        bbn.fit([("Z", "A")], source)
    result = bbn.fit_em([("Z", "A")], source, hidden={"Z": ["p", "q"]}, seed=0, max_iter=3)
    assert result.network.states("Z") == ("p", "q")
    with pytest.raises(DataError, match="hidden variable 'A' has values"):
        bbn.fit_em([("Z", "A")], source, hidden={"Z": ["p", "q"], "A": ["x", "y"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((row for row in [{"A": [1]}]), "can be read only once"),
        (iter([{"A": [1]}]), "can be read only once"),
        (7, "data is a int"),
        ([], "have no tables"),
        (lambda: 7, "expected an iterable of tables"),
        ([{"A": [1]}, {"B": [1]}], "table 1: the data have no column 'A'"),
        ([{"A": [1]}, {"A": ["x"]}], "first met: int in table 0, str in table 1"),
        ([{"A": [True]}, {"A": [1]}], "values of type bool, int"),
        ([{"A": [0.5]}], "different numbers"),
        ([{"A": list(range(80))}, {"A": list(range(70, 150))}], "holds 150 different numbers"),
        ([{"A": [1], "B": [1]}, {"A": [1], "B": [2, 2]}], "different lengths"),
    ],
)
def test_what_cannot_be_opened_says_why(given, message):
    with pytest.raises(DataError, match=message):
        _ = open_data(given).variables


def test_options_that_cannot_be_met():
    parts = [{"A": ["x", "y"]}, {"A": ["x", "z"]}]
    with pytest.raises(DataError, match=r"table 1: row 1, column 'A'.*'z'"):
        open_data(parts, states={"A": ["x", "y"]}).counts([("A",)])
    source = open_data(parts, states={"A": ["x", "y"]}, unseen="missing")
    assert source.incomplete == ("A",)
    np.testing.assert_array_equal(source.counts([("A",)])[0], [2, 1])
    assert open_data(parts, missing="z").incomplete == ("A",)
    with pytest.raises(DataError, match=r"no column 'B'; did you mean|no column 'B'; expected"):
        open_data(parts, variables=["B"])
    with pytest.raises(DataError, match="weights='w' is not a column"):
        open_data(parts, weights="w")
    with pytest.raises(DataError, match="comes too late"):
        bbn.k2(open_data(parts), weights=[1, 1])
    for rows in (0, 1.5, "7"):
        with pytest.raises(ValueError, match="batch_rows"):
            open_data(parts, batch_rows=rows)
    with pytest.raises(DataError, match="the path is empty"):
        open_data("")
    with pytest.raises(ValueError, match="unseen"):
        open_data(parts, unseen="ignore")
    with pytest.raises(DataError, match="states= gives 'A'"):
        open_data(parts, variables=[bbn.Variable("A", ["x", "y", "z"])], states={"A": ["q"]})


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_data(tmp_path / "nothing.parquet")
    with pytest.raises(FileNotFoundError):
        open_data(tmp_path / "*.parquet")
    with pytest.raises(DataError, match="no CSV or Parquet file"):
        open_data(tmp_path)
    frame().to_csv(tmp_path / "a.csv")
    frame().to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="csv and parquet"):
        open_data(tmp_path)


@pytest.mark.parametrize("one", ["AB", bbn.Variable("AB", ["x", "y"])])
def test_one_variable_by_itself(one):
    assert [v.name for v in open_data({"AB": ["x"], "A": ["y"], "B": ["z"]}, variables=one).variables] == [
        "AB"
    ]


def test_a_source_is_opened_once():
    source = open_data({"A": ["x", "y"]})
    assert open_data(source) is source
    for option in ({"states": {"A": ["y", "x"]}}, {"missing": "x"}, {"continuous": ["A"]}, {"n_jobs": 1}):
        with pytest.raises(DataError, match="open already"):
            open_data(source, **option)


def test_a_dataset_of_files_is_read_as_its_files(tmp_path):
    table = frame(0.1)
    folder = parquet_folder(table, tmp_path / "rows")
    whole = pyarrow.dataset.dataset(folder)
    assert isinstance(open_data(whole).reader, ParquetFiles)
    some = next(whole.get_fragments()).subset(row_group_ids=[1])
    other = whole.schema.set(0, pa.field("A", pa.large_string()))
    for dataset in (
        whole.filter(pyarrow.dataset.field("E") == "x"),
        pyarrow.dataset.FileSystemDataset([some], whole.schema, whole.format, whole.filesystem),
        pyarrow.dataset.dataset(folder, schema=other),
        pyarrow.dataset.dataset(whole.to_table()),
    ):
        source, memory = open_data(dataset), code(dataset.to_table())
        assert isinstance(source.reader, Dataset)
        assert (source.n_rows, source.variables) == (memory.n_rows, memory.variables)
        for ours, theirs in zip(source.counts(FAMILIES), memory.counts(FAMILIES), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_other_files_of_a_folder_are_left_aside(tmp_path):
    for suffix, write in (("csv", pd.DataFrame.to_csv), ("parquet", pd.DataFrame.to_parquet)):
        folder = tmp_path / f"{suffix} [1]"
        folder.mkdir()
        write(frame(), folder / f"a.{suffix}", index=False)
        for name in ("README.txt", "README.md", "_SUCCESS", f".hidden.{suffix}", f"_part.{suffix}"):
            (folder / name).write_text("read, me\n")
        assert open_data(folder).n_rows == N
        assert (
            open_data(str(folder / f"*.{suffix}")).n_rows == N
        )  # the brackets are part of a name that is there
        with pytest.raises(DataError, match=r"README\.md: the kind of table is read from the suffix"):
            open_data(folder / "*.[!t]*")
        (folder / f"b.{suffix}").symlink_to(tmp_path / "gone")
        with pytest.raises(FileNotFoundError):  # rows that are not there are not passed over
            open_data(folder)
    only = tmp_path / "text"
    only.mkdir()
    frame().to_csv(only / "a.txt", index=False)
    assert open_data(only).n_rows == N


def test_a_folder_with_folders_that_name_a_column(tmp_path):
    table = frame()
    for value, part in table.groupby("E"):
        own = tmp_path / "rows" / f"E={value}"
        own.mkdir(parents=True)
        part.drop(columns="E").to_parquet(own / "part.parquet")
    source = open_data(tmp_path / "rows")
    memory = code(table)
    assert sorted(v.name for v in source.variables) == sorted(table.columns)
    for ours, theirs in zip(source.counts(FAMILIES), memory.counts(FAMILIES), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_no_rows_at_all(tmp_path):
    frame().iloc[:0].to_parquet(tmp_path / "a.parquet")
    source = open_data(tmp_path / "a.parquet", states={"A": ["low", "mid", "high"]}, variables=["A"])
    assert source.n_rows == 0
    np.testing.assert_array_equal(source.counts([("A",)])[0], [0, 0, 0])
    with pytest.raises(DataError, match="no rows"):
        bbn.fit([("A", "B")], str(tmp_path / "*.parquet"))


def test_memory_limit_sets_the_batches_and_refuses_what_does_not_fit(tmp_path):
    folder = parquet_folder(frame(), tmp_path / "rows")
    assert open_data(folder, memory_limit="3MB").rows < open_data(folder, memory_limit="8MB").rows
    with pytest.raises(BudgetError, match="batches of 1024 rows"):
        open_data(folder, memory_limit="10kB")
    wide = [{f"X{i}": list(range(50)) for i in range(8)}]
    source = open_data(wide, memory_limit="20MB")
    with pytest.raises(BudgetError, match=r"the counts of|counting"):
        source.counts([tuple(f"X{i}" for i in range(5))])


def test_counts_that_fit_only_one_after_the_other_take_more_passes():
    rng = np.random.default_rng(0)
    wide = {f"X{i}": rng.integers(20, size=400) for i in range(6)}
    families = [(f"X{i}", f"X{i + 1}", f"X{i + 2}") for i in range(4)]  # 64 kB each
    source = open_data([wide], memory_limit="0.6MB", n_jobs=2, batch_rows=100)
    for ours, theirs in zip(source.counts(families), code(wide).counts(families), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert source.passes == 1 + 4
    assert source.counts([]) == []


def test_batches_are_taken_only_a_few_ahead():
    taken = []

    def tables():
        for i in range(40):
            taken.append(i)
            yield {"A": [i % 2, 0]}

    for done, _ in enumerate(in_order(lambda table: table, tables(), n_jobs=2)):
        assert len(taken) <= done + 4


def test_a_value_that_is_missing_in_one_batch_alone():
    whole, holed = {"A": ["x", "y"]}, {"A": [None, "x"]}
    for parts in ([whole, holed], [holed, whole], [whole, holed, whole]):
        assert open_data(parts).incomplete == ("A",)
    assert open_data([whole, whole]).incomplete == ()


def test_two_threads_ask_one_source(tmp_path):
    source = open_data(parquet_folder(frame(), tmp_path / "rows"), batch_rows=100)
    expected = code(frame()).counts(FAMILIES)
    wrong = []

    def ask():
        for ours, theirs in zip(source.counts(FAMILIES), expected, strict=True):
            if not np.array_equal(ours, theirs):
                wrong.append(ours)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_source_of_files_pickles(tmp_path):
    source = open_data(parquet_folder(frame(), tmp_path / "rows"))
    copy = pickle.loads(pickle.dumps(source))
    for ours, theirs in zip(copy.counts(FAMILIES), source.counts(FAMILIES), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_csv_is_read_by_the_rules_of_memory(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('A,"B, b",C\nNA,None,1\n"x\ny",,02\n,n/a,1\n\nx,"q""q",10\n', encoding="utf-8")
    memory = code(path)
    source = open_data(path, batch_rows=1)
    assert source.variables == memory.variables
    assert source.incomplete == memory.incomplete
    for v in memory.variables:
        np.testing.assert_array_equal(source.counts([(v.name,)])[0], memory.counts([(v.name,)])[0])
    path.write_text("A,B\n1,2\n1,2,3\n", encoding="utf-8")
    with pytest.raises(bbn.ParseError, match=r"odd.csv"):
        _ = open_data(path, variables=["A"]).variables
    path.write_text("A,B,C\nx\nx\ny,p,q\n", encoding="utf-8")  # fields that are not there are missing
    for source in (open_data(path, batch_rows=1), open_data(path), code(path)):
        assert [c.tolist() for c in source.counts([("A",), ("B",), ("A", "B")])] == [[2, 1], [1], [[0], [1]]]
    for nothing in ("", "\n\nA,B\nx,y\n", "\nA\nx\n"):  # where names are to be, no row may pass for them
        path.write_text(nothing, encoding="utf-8")
        for read in (open_data, code):
            with pytest.raises(DataError, match="empty"):
                read(path)


def test_numbers_stream_too():
    parts = [{"X": [1.5, None], "A": ["a", "b"]}, {"X": [2.5, -1.0], "A": ["a", "a"]}]
    source = open_data(parts, continuous=["X"])
    assert (source.continuous, source.incomplete) == (("X",), ("X",))

    class Both:
        columns = ("X",)

        def __call__(self, block):
            assert not block.codes  # only what it looks at is read
            return [np.array([np.nansum(block.numbers["X"]), len(block.weights)])]

    np.testing.assert_array_equal(source.reduce(Both())[0], [3.0, 4.0])
    with pytest.raises(DataError, match="'X' numbers, but it is not continuous"):
        bbn.fit([("A", "X")], source)
    with pytest.raises(DataError, match="'A' states, but it is continuous"):
        bbn.fit([("A", "X")], source, continuous=["A", "X"])
    with pytest.raises(DataError, match=r"table 0: row 0, column 'A'.*not a finite number"):
        _ = open_data(parts, continuous=["X", "A"]).n_rows


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32])
def test_looking_rows_up(kind, pure):
    from bbn.kernels import recode
    from bbn.kernels.pure import recode as recode_py

    kernel = recode_py if pure else recode
    index = np.array([0, 2, 1, 2, 3, 100, *([-1, -100] if np.dtype(kind).kind == "i" else [])], dtype=kind)
    for width in (np.uint8, np.uint16):
        found = kernel.recode(np.array([5, 6, 7, 9], dtype=width), index)
        assert found.dtype == width
        assert found.tolist() == [5, 7, 6, 7, 9, 9, *([9, 9] if np.dtype(kind).kind == "i" else [])]
        found = kernel.recode(np.array([5, 6, 7, 9], dtype=width), index[:5], inside=True)
        assert (found.dtype, found.tolist()) == (width, [5, 7, 6, 7, 9])
    with pytest.raises(ValueError, match="look_up: expected at least one entry"):
        kernel.recode(np.empty(0, dtype=np.uint8), index)
    with pytest.raises(ValueError, match="n_values: expected 0 or more, found -1"):
        kernel.present(index, -1)
    assert kernel.present(index, 4).tolist() == [True, True, True, True, True]
    assert kernel.present(index[:3], 4).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("kind", ["int8", "uint32", "int64"])
def test_an_index_past_the_end_of_its_dictionary_is_damage(kind):
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 5], kind), pa.array(["x", "y"]), safe=False)
    table = pa.table({"A": values})
    for work in (
        lambda: bbn.fit([("A", "A2")], {"A2": ["x", "y", "x"], "A": table["A"]}, states={"A": ["x", "y"]}),
        lambda: open_data([table]).variables,
        lambda: open_data([table], states={"A": ["x", "y"]}).counts([("A",)]),
    ):
        with pytest.raises(DataError, match="column 'A' is damaged: a row has value number 5, of 2"):
            work()


def test_a_learner_reads_the_footer_of_each_file_once(tmp_path, monkeypatch):
    folder = parquet_folder(frame(), tmp_path / "data")
    read = []
    footer = File.read
    monkeypatch.setattr(File, "read", staticmethod(lambda path: read.append(path) or footer(path)))
    bbn.fit([("A", "B")], str(folder))
    assert sorted(read) == sorted(folder.glob("*.parquet"))
