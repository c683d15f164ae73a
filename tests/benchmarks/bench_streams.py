"""Data larger than memory: rows per second and peak memory of learners on Parquet folders of ALARM.

    BBN_STREAM_ROWS=1e6,1e7,2e7,5e7 python -m tests.benchmarks streams

Sizes are 1 M rows unless the variable says otherwise; the folders are made in BBN_STREAM_FOLDER, and kept there, or
in a temporary one. Each figure is that of a process of its own, the best of up to three runs within half a minute, with
its peak of resident memory. With two sizes or more the picture of docs/larger-than-memory.md is drawn anew.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import bbn
from bbn.data import CodedTable, code, open_data
from tests.benchmarks.harness import Figure
from tests.support.learning_data import ALARM_ORDER

TITLE = "Data larger than memory"
NOTES = """
Folders of Parquet files with rows of ALARM (37 columns of text, as dictionaries, row groups of 131,072 rows, snappy),
written by `net.sample(n, to=folder)`. Each figure comes from a process of its own: rows per second of the whole call,
passes over the data, CPU time per row, and peak resident memory, of which Python, numpy and pyarrow alone take about
110 MB. The states are declared; the first row of each size shows the pass that finding them takes. EM is one E step
on the true network with no value missing. K2 takes Cooper and Herskovits' order and at most five parents.

The last rows compare `bbn.fit(graph, open_data(file), states=…)` with pyarrow, which only reads the same file: 5 M
rows of ten columns, written by pandas or polars as text or as categories. Both have two threads and take turns;
pyarrow reads in the faster of two ways, `iter_batches` and `read_row_group`. The ratio compares the least times of
seven rounds.
"""
FOREIGN_ROWS = 5_000_000
FOREIGN_COLUMNS = 10
ROUNDS = 7
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "larger-than-memory.svg"
NET = bbn.example("alarm")


def fit(source: Any) -> Any:
    """The tables of the true structure."""
    return bbn.fit(NET, source, bbn.BDeu(1))


WORKS: dict[str, Callable[[Any], Any]] = {
    "fit": fit,
    "Chow-Liu": bbn.chow_liu,
    "K2": lambda source: bbn.k2(source, ALARM_ORDER, 5),
    "a step of EM": lambda source: bbn.fit_em(NET, source, max_iter=0, n_jobs=1),
}


def rows() -> Iterator[Figure]:
    """All rows of the table."""
    sizes = [int(float(size)) for size in os.environ.get("BBN_STREAM_ROWS", "1e6").split(",")]
    check()
    points: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(os.environ.get("BBN_STREAM_FOLDER", scratch))
        for n_rows in sizes:
            folder = place / f"alarm-{n_rows}"
            if not folder.exists():
                NET.sample(n_rows, seed=1, to=folder)
            for work in ("open", *WORKS):
                for n_jobs in (1, 2):
                    if work == "open" and n_jobs == 1:
                        continue
                    point = in_a_process(work, folder, n_jobs)
                    points.append({"work": work, "rows": n_rows, "n_jobs": n_jobs, **point})
                    yield figure(points[-1])
        yield from foreign_rows(place)
    if len(sizes) > 1:
        draw(points)


def foreign_rows(place: Path) -> Iterator[Figure]:
    """Files of other writers: the rate of `fit` as a share of the rate at which pyarrow reads them."""
    folder = place / "foreign"
    if not folder.exists():
        write_foreign(folder)
    for path in sorted(folder.iterdir()):
        point = in_a_process("foreign", path, 2)
        yield Figure(
            f"{FOREIGN_ROWS / 1e6:g} M rows × {FOREIGN_COLUMNS}, fit, {path.stem.replace('-', ', ')}",
            f"{FOREIGN_ROWS / point['seconds'] / 1e6:.3g} M rows/s, {point['ratio']:.2f} of pyarrow's rate "
            f"({point['cpu ratio']:.2f} by CPU time)",
            "0.7 of pyarrow's rate",
        )


def write_foreign(folder: Path) -> None:
    """The same rows as text and as categories, by pandas and by polars."""
    import polars as pl

    folder.mkdir()
    rows: pd.DataFrame = NET.sample(FOREIGN_ROWS, seed=1)[list(NET.names[:FOREIGN_COLUMNS])]
    for kind, table in (("categories", rows), ("text", rows.astype(str))):
        table.to_parquet(folder / f"pandas-{kind}.parquet", index=False)
        pl.from_pandas(table).write_parquet(folder / f"polars-{kind}.parquet")


def by_batches(path: str) -> None:
    """Read a file with pyarrow, batch by batch."""
    for _ in pq.ParquetFile(path).iter_batches(1 << 17, use_threads=True):
        pass


def by_row_groups(path: str) -> None:
    """Read a file with pyarrow, row group by row group."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        file.read_row_group(group, use_threads=True)


def compare(path: str, n_jobs: int) -> dict[str, float]:
    """Fit from a file, and reading it with pyarrow, in turns."""
    pa.set_cpu_count(n_jobs)
    graph = NET.graph.subgraph(NET.names[:FOREIGN_COLUMNS]).copy()
    states = {name: NET.states(name) for name in graph}
    for name in graph:
        graph.nodes[name].clear()

    def ours(path: str) -> None:
        source = open_data(path, n_jobs=n_jobs)
        bbn.fit(graph, source, bbn.BDeu(1), states=states)
        assert source.passes == 1

    best = {work: (float("inf"), float("inf")) for work in (ours, by_batches, by_row_groups)}
    for _ in range(ROUNDS):
        for work, (wall, cpu) in best.items():
            start, start_cpu = time.perf_counter(), time.process_time()
            work(path)
            best[work] = min(wall, time.perf_counter() - start), min(cpu, time.process_time() - start_cpu)
    (seconds, cpu), *theirs = best.values()
    return {
        "seconds": seconds,
        "ratio": min(wall for wall, _ in theirs) / seconds,
        "cpu ratio": min(own for _, own in theirs) / cpu,
    }


def check() -> None:
    """The streamed answers are those of memory."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = NET.sample(300_000, seed=1, to=Path(scratch, "rows"))
        memory = code(NET.sample(300_000, seed=1))
        assert isinstance(memory, CodedTable)
        source = open_data(folder)
        assert source.variables == memory.variables
        assert fit(source) == fit(memory)
        for name in ("Chow-Liu", "K2"):
            assert set(WORKS[name](source).edges) == set(WORKS[name](memory).edges)


def figure(point: dict[str, Any]) -> Figure:
    """One line of the table."""
    name = "finding the states" if point["work"] == "open" else point["work"]
    speed = point["rows"] / point["seconds"] / 1e6
    passes = f"{point['passes']} pass{'es' * (point['passes'] != 1)}"
    threads = f"{point['n_jobs']} thread{'s' * (point['n_jobs'] != 1)}"
    bar = point["work"] == "fit" and point["rows"] == 20_000_000 and point["n_jobs"] == 2
    return Figure(
        f"{point['rows'] / 1e6:g} M rows, {name}, {threads}",
        f"{speed:.3g} M rows/s, {point['seconds']:.3g} s, {passes}, "
        f"{point['cpu'] / point['rows'] * 1e9:.0f} ns of CPU a row, {point['peak']:.0f} MB",
        "5 M rows/s within 1 GB" if bar else "",
    )


def in_a_process(work: str, folder: Path, n_jobs: int) -> dict[str, float]:
    """Seconds, passes and peak memory of some work, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_streams", work, str(folder), str(n_jobs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def run(work: str, folder: str, n_jobs: int) -> dict[str, float]:
    """The best of up to three runs of some work, here."""
    if work == "foreign":
        return compare(folder, n_jobs)
    best, cpu, passes = float("inf"), float("inf"), 0
    began = time.perf_counter()
    for _ in range(3):
        source: Any = None
        if work != "open":
            source = open_data(folder, variables=NET.variables, n_jobs=n_jobs)
        start, start_cpu = time.perf_counter(), time.process_time()
        if work == "open":
            source = open_data(folder, n_jobs=n_jobs)
        else:
            WORKS[work](source)
        best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - start_cpu)
        passes = source.passes
        if time.perf_counter() - began > 30:
            break
    return {"seconds": best, "cpu": cpu, "passes": passes, "peak": peak_memory()}


def peak_memory() -> float:
    """The peak of this process's resident memory in MB; where Linux tells, without that of what started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def draw(points: list[dict[str, Any]]) -> None:
    """CPU time and peak memory against the number of rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "bbn"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for work in WORKS:
        own = [p for p in points if p["work"] == work and p["n_jobs"] == 2]
        sizes = [p["rows"] / 1e6 for p in own]
        left.loglog(sizes, [p["cpu"] for p in own], "o-", label=work)
        right.semilogx(sizes, [p["peak"] for p in own], "o-", label=work)
    left.set(xlabel="million rows", ylabel="seconds of CPU", title="Work grows with the rows")
    right.set(xlabel="million rows", ylabel="MB, peak of the process", title="Memory does not")
    right.set_ylim(0, 1.3 * max(p["peak"] for p in points))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
