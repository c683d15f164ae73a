"""Time linear in size: a chain of 10,000 and of 100,000 nodes, built, saved and loaded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

import bbn
from tests.benchmarks.harness import Figure

TITLE = "Long chains"
NOTES = """
A chain X0 → X1 → … of binary nodes with random tables. The tables are made and checked, the network is built and
checked, then saved and loaded again. The ratio is the time for 100,000 nodes over that for 10,000: 10 is linear.
"""
SIZES = (10_000, 100_000)


def rows() -> Iterator[Figure]:
    """One figure per step: both times and their ratio."""
    small, large = (min_times(n, repeats) for n, repeats in zip(SIZES, (3, 1), strict=True))
    for step in small:
        yield Figure(
            f"{step}, {SIZES[0]:,} and {SIZES[1]:,} nodes",
            f"{small[step]:.2f} s and {large[step]:.2f} s, ratio {large[step] / small[step]:.1f}",
            "ratio at most 15",
        )
    both = [sum(times.values()) for times in (small, large)]
    yield Figure(
        "all of it", f"{both[0]:.2f} s and {both[1]:.2f} s, ratio {both[1] / both[0]:.1f}", "ratio at most 15"
    )


def min_times(n: int, repeats: int) -> dict[str, float]:
    """The least seconds of each step."""
    runs = [times(n) for _ in range(repeats)]
    return {step: min(run[step] for run in runs) for step in runs[0]}


def times(n: int) -> dict[str, float]:
    """The seconds of each step for a chain of `n` nodes."""
    tables = np.random.default_rng(0).dirichlet([1.0, 1.0], (n, 2))
    seconds: dict[str, float] = {}

    def lap(step: str, start: float) -> None:
        seconds[step] = perf_counter() - start

    start = perf_counter()
    variables = [bbn.Variable(f"X{i}", ["a", "b"]) for i in range(n)]
    cpts = [bbn.CPT(variables[0], table=tables[0, 0])]
    cpts += [bbn.CPT(variables[i], [variables[i - 1]], tables[i]) for i in range(1, n)]
    lap("tables made and checked", start)
    start = perf_counter()
    net = bbn.BayesianNetwork(cpts)
    lap("network built and checked", start)
    with tempfile.TemporaryDirectory() as folder:
        for format in ("yaml", "json", "bif"):
            path = Path(folder, f"chain.{format}")
            start = perf_counter()
            net.save(path)
            lap(f"saved as {format}", start)
            start = perf_counter()
            again = bbn.load(path)
            lap(f"loaded from {format}", start)
            assert again == net
    return seconds
