"""Describing raw tables: rows per second of `bbn.describe` in memory and from Parquet, and its peak of memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import bbn
from tests.benchmarks.bench_streams import peak_memory
from tests.benchmarks.harness import Figure

TITLE = "Describing raw tables"
NOTES = """
`bbn.describe` on rows of 30 columns: ten of words (half of them categories), ten of fractions (one of them with
holes), and ten of whole numbers; in memory as a DataFrame, and as a folder of Parquet files of 250,000 rows each.
Each figure is the best of three calls in a process of its own, on all cores, with the process's peak resident memory.
"""
FILE_ROWS = 250_000


def rows() -> Iterator[Figure]:
    """All rows of the table."""
    with tempfile.TemporaryDirectory() as scratch:
        for n_files in (4, 16):
            folder = Path(scratch, str(n_files))
            folder.mkdir()
            for seed in range(n_files):
                raw(seed).to_parquet(folder / f"{seed:02}.parquet", row_group_size=1 << 16, index=False)
            for kind in ("memory", "Parquet") if n_files == 4 else ("Parquet",):
                command = [sys.executable, "-m", "tests.benchmarks.bench_describe", kind, str(folder)]
                point = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                yield Figure(
                    f"describe {point['rows'] / 1e6:g} M × 30 rows, {kind}",
                    f"{point['rows'] / point['seconds'] / 1e6:.3g} M rows/s, {point['peak']:.0f} MB",
                    "1 M rows/s" + (", memory flat" if kind == "Parquet" else ""),
                )


def raw(seed: int) -> pd.DataFrame:
    """Rows of many kinds of columns."""
    rng = np.random.default_rng(seed)
    words = np.array(["north", "east", "south", "west"])
    frame = pd.DataFrame(
        {
            **{f"word{i}": words[rng.integers(0, 4, FILE_ROWS)] for i in range(10)},
            **{f"fraction{i}": rng.normal(size=FILE_ROWS) for i in range(10)},
            **{f"whole{i}": rng.integers(0, 200 if i % 2 else 5, FILE_ROWS) for i in range(10)},
        }
    )
    for i in range(0, 10, 2):
        frame[f"word{i}"] = frame[f"word{i}"].astype("category")
    frame.loc[::50, "fraction1"] = np.nan
    return frame


def run(kind: str, folder: str) -> dict[str, float]:
    """The best of three calls, here."""
    data = pd.read_parquet(folder) if kind == "memory" else f"{folder}/*.parquet"
    seconds = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        found = bbn.describe(data)
        seconds = min(seconds, time.perf_counter() - start)
    kinds = [column.kind for column in found]
    assert kinds == ["category"] * 10 + ["number"] * 10 + ["whole number"] * 10, kinds
    return {"rows": found.n_rows, "seconds": seconds, "peak": peak_memory()}


if __name__ == "__main__":
    print(json.dumps(run(*sys.argv[1:])))
