"""Data on a cluster: the same answers as in memory, from real worker processes, some of which are killed on the way."""

from __future__ import annotations

import math
import os
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow.dataset
import pytest

import bbn
from bbn.cli import main
from bbn.data import code
from bbn.data.streams.dask import _added
from bbn.data.streams.discovery import Discovering
from bbn.data.streams.sums import RunningSum

pytest.importorskip("distributed", reason="clusters need Dask; pip install 'bbn[dask]'")

import dask
import dask.dataframe as dd
from distributed import Client, LocalCluster

from tests.support.dask_faults import always_kills, count, kills_at, read_part

pytestmark = pytest.mark.slow

NET = bbn.example("asia")
ORDER = list(NET.names)
HIDDEN = {"either": list(NET.states("either"))}


PATIENT = {
    "distributed.comm.timeouts.connect": "300s",
    "distributed.comm.timeouts.tcp": "300s",
    "distributed.scheduler.allowed-failures": 20,  # a death counts against all that the worker had taken on
}
"""On a busy machine a worker that was killed may take long to come back, and others long to answer."""


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of one thread each; a worker that dies is started anew by Dask's nanny."""
    with dask.config.set(
        PATIENT
    ):  # scheduler and nannies take it with them; later tests are not to wait so long
        made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    with made:
        yield made


@pytest.fixture
def client(cluster):
    """A client of the two workers, both of them there."""
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "300s"}),
        Client(cluster, set_as_default=False) as made,
    ):
        made.wait_for_workers(2, timeout=300)
        yield made


@pytest.fixture(scope="module")
def rows():
    return NET.sample(3000, seed=1)


@pytest.fixture(scope="module")
def holey():
    return NET.sample(2000, seed=2, missing=0.15).drop(columns=["either"])


def write_parquet(frame, folder, parts=3):
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, len(frame), -(-len(frame) // parts))):
        frame.iloc[start : start + -(-len(frame) // parts)].to_parquet(
            folder / f"part-{number}.parquet", index=False
        )
    return folder


def write_csv(frame, folder, parts=3):
    folder.mkdir(exist_ok=True)
    for number, piece in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[piece].to_csv(folder / f"part-{number}.csv", index=False)
    return str(folder / "*.csv")


STATES = {name: list(NET.states(name)) for name in NET.names}
KINDS = {
    "dask frame": lambda frame, folder, client: bbn.open_data(
        dd.from_pandas(frame, npartitions=3), client=client
    ),
    "dask parquet": lambda frame, folder, client: bbn.open_data(
        dd.read_parquet(write_parquet(frame, folder)), client=client
    ),
    "parquet": lambda frame, folder, client: bbn.open_data(write_parquet(frame, folder), client=client),
    "csv": lambda frame, folder, client: bbn.open_data(
        write_csv(frame, folder), client=client, states={n: STATES[n] for n in frame.columns}
    ),
}

LEARNERS = {
    "fit": lambda data: bbn.fit(NET.graph, data, prior=bbn.BDeu(1)),
    "k2": lambda data: bbn.k2(data, ORDER, max_parents=3),
    "chow_liu": lambda data: bbn.chow_liu(data),
    "hill_climb": lambda data: bbn.hill_climb(data, score="bic", seed=1),
    "score": lambda data: {kind: bbn.score(NET, data, score=kind) for kind in ("bic", "k2", "bdeu", "aic")},
}

CLIMBERS = {
    "fit_em": lambda data: bbn.fit_em(NET.graph, data, hidden=HIDDEN, seed=3, max_iter=8, tol=0),
    "fit_gradient": lambda data: bbn.fit_gradient(NET.graph, data, hidden=HIDDEN, seed=3, max_iter=8),
}


def same(a, b):
    """Whether two answers of a learner are the same, bit for bit."""
    if hasattr(a, "edges"):
        return list(a.nodes(data=True)) == list(b.nodes(data=True)) and sorted(a.edges) == sorted(b.edges)
    return a == b


@pytest.mark.parametrize("kind", KINDS)
def test_complete_data_give_the_same_answers_as_memory(kind, rows, tmp_path, client):
    source = KINDS[kind](rows, tmp_path / "data", client)
    memory = code(rows)
    assert source.variables == memory.variables
    assert (source.n_rows, source.total, source.incomplete) == (3000, 3000.0, ())
    families = [(a, b) for a in ORDER for b in ORDER if a < b] + [tuple(ORDER), ("asia",)]
    for ours, theirs in zip(source.counts(families), memory.counts(families), strict=True):
        assert ours.dtype == theirs.dtype == np.int64
        assert np.array_equal(ours, theirs)
    for name, learn in LEARNERS.items():
        assert same(learn(source), learn(rows)), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::bbn.ConvergenceWarning")
def test_data_with_holes_give_the_same_tables_as_memory(kind, holey, tmp_path, client):
    source = KINDS[kind](holey, tmp_path / "data", client)
    assert source.incomplete == code(holey).incomplete != ()
    expected = [bbn.gradient(NET, data) for data in (source, holey)]
    for name in NET.names:
        assert np.allclose(expected[0][name], expected[1][name], rtol=1e-12, atol=0)
    for learner, climb in CLIMBERS.items():
        ours, theirs = climb(source), climb(holey)
        assert ours.n_iter == theirs.n_iter == 8
        assert np.allclose(ours.log_likelihoods, theirs.log_likelihoods, rtol=1e-12, atol=0)
        # the line searches of gradient ascent magnify what rounding leaves; EM's steps do not
        error = 1e-12 if learner == "fit_em" else 1e-10
        for name in NET.names:
            assert np.abs(ours.network[name].table - theirs.network[name].table).max() < error


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_no_client_is_needed(scheduler, rows):
    with dask.config.set(scheduler=scheduler):
        source = bbn.open_data(dd.from_pandas(rows, npartitions=3))
        for name, learn in LEARNERS.items():
            assert same(learn(source), learn(rows)), name


def mortal(frame, folder, *moments):
    """A DataFrame of four partitions, some readings of which cost the reader its life."""
    folder.mkdir()
    whole = dd.from_pandas(frame, npartitions=4)
    return whole.map_partitions(kills_at, str(folder), *moments, meta=whole._meta, enforce_metadata=False)


# Four readings are one pass; the first pass of k2 is discovery, which fit, whose states are declared, has no need of.
@pytest.mark.parametrize(("learner", "moment"), [("fit", 1), ("k2", 5), ("k2", 14), ("fit_em", 22)])
@pytest.mark.filterwarnings("ignore::bbn.ConvergenceWarning")
def test_a_worker_that_is_killed_costs_nothing_but_time(learner, moment, rows, holey, tmp_path, client):
    data, learn = (holey, CLIMBERS[learner]) if learner in CLIMBERS else (rows, LEARNERS[learner])
    undisturbed = learn(bbn.open_data(dd.from_pandas(data, npartitions=4), client=client))
    source = bbn.open_data(mortal(data, tmp_path / "died", moment), client=client)
    with pytest.warns(bbn.WorkerLostWarning, match="the answer is the same"):
        answer = learn(source)
    assert count(str(tmp_path / "died")) > moment
    if learner in CLIMBERS:
        assert (
            answer.network == undisturbed.network
        )  # the sums are taken in the same order, so to the last bit
        assert np.array_equal(answer.log_likelihoods, undisturbed.log_likelihoods)
    else:
        assert same(answer, undisturbed)


@pytest.mark.filterwarnings("ignore::bbn.ConvergenceWarning")
def test_lost_workers_are_told_of_once(holey, tmp_path, client):
    source = bbn.open_data(mortal(holey, tmp_path / "died", 6, 11, 20), client=client)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CLIMBERS["fit_em"](source)
    assert [w.category for w in caught if w.category is bbn.WorkerLostWarning] == [bbn.WorkerLostWarning]


def test_workers_that_were_told_to_go_are_not_told_of(rows):
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as small,
        Client(small, set_as_default=False) as client,
    ):
        source = bbn.open_data(dd.from_pandas(rows, npartitions=4), client=client)
        client.retire_workers(sorted(client.nthreads())[:1])
        bbn.fit(NET.graph, source, prior=bbn.BDeu(1))  # a BBNWarning would be an error here
        assert len(client.nthreads()) == 1


def test_a_partition_that_kills_its_workers_is_an_error(rows):
    whole = dd.from_pandas(rows, npartitions=1)
    deadly = whole.map_partitions(always_kills, meta=whole._meta, enforce_metadata=False)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as small,
        Client(small, set_as_default=False) as client,
        pytest.warns(bbn.WorkerLostWarning),
        pytest.raises(bbn.ClusterError, match=r"workers died .* 1 of them"),
    ):
        _ = bbn.open_data(deadly, client=client).variables


def test_a_cluster_without_workers_is_an_error_and_no_endless_wait(rows):
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as empty,
        Client(empty, set_as_default=False) as client,
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
        pytest.raises(bbn.ClusterError, match=r"no worker for .* s; start some"),
    ):
        _ = bbn.open_data(dd.from_pandas(rows, npartitions=2), client=client).variables


def test_a_scheduler_that_goes_away_is_an_error(rows, tmp_path):
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    ) as small:
        client = Client(small, set_as_default=False)
        source = bbn.open_data(dd.from_pandas(rows, npartitions=2), client=client)
        small.close()
        with pytest.raises(bbn.ClusterError, match="scheduler"):
            bbn.fit(NET.graph, source)
        client.close()


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", 7])
def test_no_scheduler_at_an_address(address, rows):
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "500ms"}),
        pytest.raises(bbn.ClusterError, match="answers"),
    ):
        bbn.open_data(dd.from_pandas(rows, npartitions=2), client=address)


def test_errors_of_workers_are_ours_and_name_the_partition(rows, client):
    odd = rows.astype(object)
    odd.loc[2500, "smoke"] = "perhaps"
    frame = dd.from_pandas(odd, npartitions=4)
    with pytest.raises(bbn.DataError, match=r"^partition 3: row 250, column 'smoke'.*'perhaps'"):
        bbn.fit(NET.graph, bbn.open_data(frame, client=client, states=STATES))
    odd["smoke"] = odd["smoke"].astype(object)
    odd.loc[2500, "smoke"] = 3
    frame = dd.from_pandas(odd, npartitions=4)
    with (
        dask.config.set({"dataframe.convert-string": False}),
        pytest.raises(bbn.DataError, match="int in partition 3"),
    ):
        _ = bbn.open_data(dd.from_pandas(odd, npartitions=4), client=client).variables


@pytest.mark.parametrize("npartitions", [1, 2, 9, 40])
def test_sums_do_not_depend_on_the_partitions(npartitions, holey):
    rng = np.random.default_rng(5)
    frame = holey.assign(weight=rng.lognormal(sigma=8, size=len(holey)))
    source = bbn.open_data(dd.from_pandas(frame, npartitions=npartitions), weights="weight")
    assert source.total == pytest.approx(math.fsum(frame["weight"]), rel=1e-12, abs=0)
    whole = code(frame, weights="weight")
    for ours, theirs in zip(
        source.counts([("smoke",), ("lung", "xray")]),
        whole.counts([("smoke",), ("lung", "xray")]),
        strict=True,
    ):
        assert np.allclose(ours, theirs, rtol=1e-12, atol=0)
    smokers = math.fsum(frame["weight"][frame["smoke"] == "yes"])
    assert source.counts([("smoke",)])[0][0] == pytest.approx(smokers, rel=1e-12, abs=0)
    one = bbn.open_data(dd.from_pandas(frame, npartitions=1), weights="weight")
    for name, gradient in bbn.gradient(NET, source).items():
        assert np.allclose(gradient, bbn.gradient(NET, one)[name], rtol=1e-12, atol=0)


def test_only_the_columns_of_a_pass_are_read(rows, tmp_path):
    rows.to_parquet(tmp_path / "rows.parquet")
    log = tmp_path / "log"
    frame = dd.from_map(
        read_part, range(4), path=str(tmp_path / "rows.parquet"), log=str(log), meta=rows.iloc[:0]
    )
    source = bbn.open_data(frame, states=STATES)
    assert not log.exists()
    source.counts([("smoke", "lung"), ("lung",)])
    assert {frozenset(line.split(",")) for line in log.read_text().splitlines()} == {
        frozenset(["smoke", "lung"])
    }


@pytest.mark.parametrize("known", [True, False])
def test_categories(known, client):
    first = pd.DataFrame({"A": pd.Categorical(["low", "high", None], ["low", "mid", "high"]), "B": [1, 0, 1]})
    second = pd.DataFrame({"A": pd.Categorical(["top", "low"], ["top", "low"]), "B": [0, 0]})
    if known:
        second["A"] = pd.Categorical([None, "low"], first["A"].dtype.categories)
    frame = dd.from_map(lambda i: [first, second][i], [0, 1], meta=first.iloc[:0])
    if not known:
        frame["A"] = frame["A"].cat.as_unknown()
    source = bbn.open_data(frame, client=client)
    states = ("low", "mid", "high") if known else ("low", "mid", "high", "top")
    assert source.variables == (bbn.Variable("A", states), bbn.Variable("B", [0, 1]))
    assert source.incomplete == ("A",)
    assert source.counts([("A",)])[0].tolist() == ([2, 0, 1] if known else [2, 0, 1, 1])


def test_partitions_without_rows(rows, client):
    frame = dd.from_pandas(rows, npartitions=5)
    some = frame[frame["xray"] == "yes"].partitions[:3]
    few = some.compute()
    source = bbn.open_data(some, client=client)
    assert source.n_rows == len(few)
    assert bbn.fit(NET.graph, source, prior=bbn.BDeu(1)) == bbn.fit(NET.graph, few, prior=bbn.BDeu(1))
    none = bbn.open_data(frame[frame["xray"] == "no such"], client=client)
    assert none.n_rows == 0
    with pytest.raises(bbn.DataError, match="no rows"):
        bbn.fit(NET.graph, none)
    one = bbn.open_data(frame.partitions[0].loc[0:0], client=client)
    assert one.n_rows == 1
    assert bbn.k2(one, ORDER).edges == bbn.k2(rows.iloc[:1], ORDER).edges


def test_partitions_do_not_leave_their_workers(tmp_path, client):
    """What is moved is the work and its results: kilobytes, where the data are megabytes."""
    alarm = bbn.example("alarm")
    folder = write_parquet(alarm.sample(40_000, seed=1), tmp_path / "alarm", parts=8)
    states = {v.name: v.states for v in alarm.variables}
    for data in (dd.read_parquet(folder), folder):
        source = bbn.open_data(data, client=client, states=states)
        before = moved(client)
        bbn.fit(alarm.graph, source, prior=bbn.BDeu(1))
        result = 8 * sum(alarm[name].table.size for name in alarm.names)
        work = 20_000
        assert moved(client) - before < 8 * result + work < 100_000


def moved(client):
    """The bytes that workers have sent to each other and to the client so far."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def test_a_corrupt_file_is_named(rows, tmp_path, client):
    folder = write_parquet(rows, tmp_path / "data")
    source = bbn.open_data(folder, client=client, states=STATES)
    victim = folder / "part-1.parquet"
    content = bytearray(victim.read_bytes())
    content[40:400] = b"\xff" * 360
    stamp = victim.stat()
    victim.write_bytes(content)
    os.utime(victim, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(bbn.ParseError, match=r"part-1\.parquet: row group 0: "):
        bbn.fit(NET.graph, source)
    victim.write_bytes(content[:1000])
    with pytest.raises(bbn.DataError, match=r"part-1\.parquet has changed"):
        bbn.fit(NET.graph, source)
    victim.unlink()
    with pytest.raises(bbn.DataError, match=r"part-1\.parquet is gone"):
        bbn.fit(NET.graph, source)


def test_drifting_columns_are_named(rows, tmp_path, client):
    folder = write_parquet(rows, tmp_path / "data")
    rows.drop(columns="xray").iloc[:50].to_parquet(folder / "part-9.parquet", index=False)
    with pytest.raises(bbn.DataError, match=r"part-9\.parquet, row group 0: the data have no column 'xray'"):
        _ = bbn.open_data(folder, client=client).variables


def test_what_is_no_data_for_a_cluster(rows, tmp_path, client):
    with pytest.raises(bbn.DataError, match="workers can read"):
        bbn.open_data(rows, client=client)
    with pytest.raises(bbn.DataError, match="expected a Dask DataFrame"):
        bbn.open_data(dd.from_pandas(rows, npartitions=2)["xray"])
    with pytest.raises(FileNotFoundError):
        bbn.open_data(tmp_path / "nowhere.parquet", client=client)


def test_pyarrow_datasets_and_folders_named_by_value(rows, tmp_path, client):
    rows.to_parquet(tmp_path / "by value", partition_cols=["smoke"])
    dataset = pyarrow.dataset.dataset(tmp_path / "by value", partitioning="hive")
    memory = code(rows)
    for data in (dataset, tmp_path / "by value"):
        source = bbn.open_data(data, client=client, states={"smoke": STATES["smoke"]})
        assert len(source.partitions.parts(1000)) == 2
        found, there = source.counts([("smoke", "lung")])[0], memory.counts([("smoke", "lung")])[0]
        assert np.array_equal(found, there)
    plain = pyarrow.dataset.dataset(write_parquet(rows, tmp_path / "plain"))
    source = bbn.open_data((client, plain))
    assert np.array_equal(source.counts([("smoke", "lung")])[0], there)
    some = dataset.filter(pyarrow.dataset.field("lung") == "yes")
    with pytest.raises(bbn.DataError, match="filter a Dask DataFrame"):
        bbn.open_data(some, client=client)


def test_several_threads_ask_one_source(rows, client):
    source = bbn.open_data(dd.from_pandas(rows, npartitions=3), client=client)
    memory = code(rows)
    with ThreadPoolExecutor(4) as pool:
        for name, found in zip(ORDER, pool.map(lambda name: source.counts([(name,)])[0], ORDER), strict=True):
            assert np.array_equal(found, memory.counts([(name,)])[0])
    assert dask.config.get("scheduler", None) is None


def test_errors_of_clusters_pickle():
    error = pickle.loads(pickle.dumps(bbn.ClusterError("no worker")))
    assert (type(error), str(error)) == (bbn.ClusterError, "no worker")


def test_learners_take_dask_frames_as_they_are(rows):
    frame = dd.from_pandas(rows, npartitions=3)
    assert bbn.fit(NET, frame, prior=bbn.BDeu(1)) == bbn.fit(NET, rows, prior=bbn.BDeu(1))
    assert sorted(bbn.chow_liu(frame).edges) == sorted(bbn.chow_liu(rows).edges)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_memory(kind, holey, tmp_path, client):
    source = KINDS[kind](holey, tmp_path / "data", client)
    proba = NET.predict_proba(source, "lung")
    assert isinstance(proba, dd.DataFrame)
    theirs = NET.predict_proba(holey, "lung")
    ours = client.compute(proba).result()
    assert list(ours.columns) == list(theirs.columns)
    assert np.array_equal(ours.to_numpy(), theirs.to_numpy())
    best = NET.predict(source, "lung", to=tmp_path / "best")
    written = pd.read_parquet(best)
    assert written["lung"].tolist() == NET.predict(holey, "lung").tolist()
    likelihood = client.compute(NET.log_likelihood(source)).result()
    assert np.array_equal(likelihood.to_numpy(), NET.log_likelihood(holey).to_numpy())


def test_answers_keep_the_index_of_a_dask_frame(holey):
    frame = dd.from_pandas(holey.set_index(np.arange(len(holey)) * 10), npartitions=3)
    best = NET.predict(frame, "either")
    assert best.name == "either"
    assert best.compute().equals(NET.predict(frame.compute(), "either").astype(best.dtype))


def test_answers_are_written_whole_or_not_at_all(holey, tmp_path, client):
    odd = holey.astype(object)
    odd.loc[1999, "smoke"] = "perhaps"
    with pytest.raises(bbn.DataError, match=r"partition 2: row \d+, column 'smoke'"):
        NET.predict(
            bbn.open_data(dd.from_pandas(odd, npartitions=3), client=client), "lung", to=tmp_path / "best"
        )
    assert not list(tmp_path.iterdir())
    with pytest.raises(bbn.DataError, match="name a folder"):
        NET.predict(dd.from_pandas(holey, npartitions=3), "lung", to=tmp_path / "best.parquet")


@pytest.mark.parametrize("evidence", [None, {"dysp": "yes"}])
def test_samples_are_those_of_one_machine(evidence, tmp_path, client, monkeypatch):
    monkeypatch.setattr("bbn.inference.rows.cluster.PART_BLOCKS", 1)
    n = 40_000
    theirs = NET.sample(n, evidence, seed=4, missing={"xray": 0.1})
    ours = NET.sample(n, evidence, seed=4, missing={"xray": 0.1}, client=client)
    assert isinstance(ours, dd.DataFrame)
    assert ours.npartitions == 3
    with dask.config.set(scheduler="synchronous"):  # here, where the size of a partition is the one set above
        assert ours.compute().reset_index(drop=True).equals(theirs)


def test_workers_write_samples(tmp_path, client):
    with pytest.raises(bbn.DataError, match="chunks= is for one machine"):
        NET.sample(10, chunks=5, client=client)
    folder = NET.sample(2_000_000, seed=4, to=tmp_path / "rows", client=client)
    assert sorted(path.name for path in folder.iterdir()) == ["part-00000.parquet", "part-00001.parquet"]
    source = bbn.open_data(folder, client=client)
    assert source.variables == tuple(NET.variables)
    assert np.array_equal(
        source.counts([tuple(ORDER)])[0], code(NET.sample(2_000_000, seed=4)).counts([tuple(ORDER)])[0]
    )


def test_the_command_line_works_on_a_cluster(cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # workers start from another folder
    dask_option = ["--dask", cluster.scheduler_address]
    assert main(["sample", "asia", "-n", "3000", "--seed", "1", "-o", "rows", *dask_option]) == 0
    rows = NET.sample(3000, seed=1)
    assert pd.read_parquet("rows").equals(rows)
    learn = ["learn", "rows", *dask_option]
    assert main([*learn, "--structure", "asia", "--prior", "bdeu:1", "-o", "tables.json"]) == 0
    assert bbn.load("tables.json") == bbn.fit(NET, rows, prior=bbn.BDeu(1))
    assert main([*learn, "--method", "chow-liu", "--prior", "bdeu:1", "-o", "tree.json"]) == 0
    assert sorted(bbn.load("tree.json").arcs) == sorted(bbn.chow_liu(rows).edges)
    assert (
        main(["predict", "asia", "rows", "--target", "lung", "-o", "answers", "--proba", *dask_option]) == 0
    )
    assert np.array_equal(pd.read_parquet("answers").to_numpy(), NET.predict_proba(rows, "lung").to_numpy())
    assert main(["predict", "asia", "rows", "--target", "lung", *dask_option]) == 1
    assert "-o names it" in capsys.readouterr().err


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 64, 65])
def test_every_partition_is_in_the_sum_once(n, rows):
    frame = dd.from_map(lambda i: rows.iloc[i : i + 1], range(n), meta=rows.iloc[:0])
    assert frame.npartitions == n
    assert bbn.open_data(frame).counts([("smoke", "bronc")])[0].sum() == n


def test_partial_sums_are_left_as_they_are():
    """A worker may need them again, when another one that had added them up is lost."""
    parts = [RunningSum([np.array([1.0, 2.0]), np.array([3])]) for _ in range(3)]
    found = [Discovering(("A",))({"A": [value]}) for value in "xyz"]
    for some in (parts, found):
        before = pickle.dumps(some)
        _added(some)
        assert pickle.dumps(some) == before
    assert [array.tolist() for array in _added(parts).result()] == [[3.0, 6.0], [9]]
    assert _added(found).n_rows == 3
    assert _added([None, parts[0], None]).result()[1].tolist() == [3]
