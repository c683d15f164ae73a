"""A Dask cluster of one and of two worker processes on this machine, and what goes over the wire.

    BBN_CLUSTER_ROWS=4e6 python -m tests.benchmarks cluster

The data are rows of ALARM in Parquet, 2 M unless the variable says otherwise. Bytes are counted where they leave: in
the transport of the client and scheduler, and of the workers.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from distributed import Client, LocalCluster

import bbn
from bbn.data.streams.dask import FAN_IN
from bbn.data.streams.tasks import Counting, Reducing
from tests.benchmarks.bench_streams import NET, WORKS
from tests.benchmarks.harness import Figure, Row

TITLE = "On a cluster"
NOTES = """
Dask's LocalCluster on the two cores of this machine: worker processes of one thread each, and a third process with
the scheduler and the client, which shares the cores with them. The column "bbn" is two workers. Times are per row of
ALARM in Parquet; each pass reads, codes and counts the data anew. Bytes are those that leave the sockets during one
pass: the results and the work, plus Dask's own messages, which depend only on the number of partitions.
"""
PARTITIONS = (16, 64, 256)


def rows() -> Iterator[Row | Figure]:
    """All rows of the tables."""
    warnings.simplefilter("ignore", bbn.BBNWarning)
    n_rows = int(float(os.environ.get("BBN_CLUSTER_ROWS", "2e6")))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()), "alarm")
        NET.sample(n_rows, seed=1, to=folder)
        clients = {n: stack.enter_context(started(n)) for n in (1, 2)}
        states = {v.name: v.states for v in NET.variables}
        sources = {n: bbn.open_data(folder, client=client, states=states) for n, client in clients.items()}
        for name, work in WORKS.items():
            yield row(name, work, sources, bbn.open_data(folder, states=states), n_rows)
        count_bytes(clients[2])
        for partitions in PARTITIONS:
            few = NET.sample(
                2**16, seed=1, to=folder.with_name(f"in-{partitions}"), chunks=2**16 // partitions
            )
            source = bbn.open_data(few, client=clients[2], states=states, batch_rows=2**16 // partitions)
            yield from traffic(source, clients[2])


def started(n_workers: int) -> Client:
    """A client of a new cluster."""
    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50)
    return Client(cluster, set_as_default=False)


def row(name: str, work: Any, sources: dict[int, Any], local: Any, n_rows: int) -> Row:
    """One kind of work on two workers and on one, checked against this process."""

    def check() -> None:
        want, got = work(local), work(sources[2])
        if hasattr(want, "edges"):
            assert sorted(got.edges) == sorted(want.edges)
        elif hasattr(want, "log_likelihoods"):
            np.testing.assert_allclose(got.log_likelihoods, want.log_likelihoods, rtol=1e-12)
        else:
            assert got == want

    return Row(
        f"alarm, {n_rows / 1e6:g} M rows, two workers: {name}",
        {
            "bbn": lambda: work(sources[2]),
            "one worker": lambda: work(sources[1]),
            "no cluster, one thread": lambda: work(local),
        },
        check,
        target=1.5,
        against="one worker",
        units=n_rows,
        seconds=5.0,
    )


def traffic(source: Any, client: Client) -> Iterator[Figure]:
    """What one pass moves, of counts and of expected counts, beside what is worked out on paper."""
    from bbn.inference.rows.expected_counts import Expectation, Pass, flat_tables

    families = tuple((*NET.parents(name), name) for name in NET.names)
    expectation = Expectation(NET)
    expected = Pass(expectation, flat_tables(NET), expectation.rows_of(source))
    cells = sum(NET[name].table.size for name in NET.names)
    parts = len(list(source.partitions.source.parts(source.rows)))
    passes = {
        "counts of 37 families": (Counting(families), 8 * cells, lambda: source.counts(families)),
        "expected counts": (Reducing(expected), 16 * (cells + 2), lambda: source.reduce(expected)),
    }
    for name, (task, result, run) in passes.items():
        sent = {"work": len(cloudpickle.dumps(task)), "one result": result}
        run()
        before, start = read(client), time.perf_counter()
        run()
        took = time.perf_counter() - start
        data, messages = (b - a for a, b in zip(before, read(client), strict=True))
        yield Figure(
            f"{name}, {parts} partitions, bytes moved",
            f"{data / 1e3:.0f} kB of results and work, {messages / 1e3:.0f} kB of messages, {took:.2f} s",
            f"on paper {on_paper(parts, result, sent['work']) / 1e3:.0f} kB "
            f"(a result is {result / 1e3:.1f} kB, the work {sent['work'] / 1e3:.1f} kB)",
        )


def on_paper(parts: int, result: int, work: int, workers: int = 2) -> float:
    """Bytes of results and work in one pass, as docs/cluster.md works them out."""
    return (1 - 1 / workers) * FAN_IN / (FAN_IN - 1) * parts * result + result + (workers - 1) * work


def count_bytes(client: Client) -> None:
    """Let this process and the workers count what they send."""
    patch()
    client.run(patch)


def patch() -> None:
    """Count the bytes that this process sends."""
    from distributed.comm import tcp

    send = tcp.TCP.write
    tcp.bytes_sent = 0  # type: ignore[attr-defined]

    async def write(self: Any, *arguments: Any, **options: Any) -> Any:
        n = await send(self, *arguments, **options)
        tcp.bytes_sent += n or 0  # type: ignore[attr-defined]
        return n

    tcp.TCP.write = write  # type: ignore[method-assign]


def read(client: Client) -> tuple[int, int]:
    """Bytes of data that workers have sent to each other and to the client, and all other bytes sent so far."""
    own = sent()
    workers = client.run(sent_by_worker)
    data = sum(payload for payload, _ in workers.values())
    return data, own + sum(total for _, total in workers.values()) - data


def sent() -> int:
    """What this process has sent."""
    from distributed.comm import tcp

    return int(tcp.bytes_sent)  # type: ignore[attr-defined]


def sent_by_worker(dask_worker: Any) -> tuple[int, int]:
    """What a worker has sent: results and work, and all together."""
    return dask_worker.transfer_outgoing_bytes_total, sent()
