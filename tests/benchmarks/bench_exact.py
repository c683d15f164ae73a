"""Exact structures: proofs on six networks, dynamic programming, sums over all DAGs, and pgmpy's exhaustive search."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import bbn
from tests.benchmarks.harness import Figure, Row

TITLE = "The best structure, proved"
NOTES = """
Rows are drawn from the network named. Proofs are for BIC with at most three parents, counting included. pgmpy lists
every DAG; with four variables there are 543. Each figure is one run, in CPU seconds of one thread.
"""
NETWORKS = ("water", "child", "insurance", "mildew", "alarm", "hailfinder")
DYNAMIC = """
import resource, time, bbn
data = bbn.example("alarm").sample(10_000, seed=0).iloc[:, :25]
start = time.process_time()
graph = bbn.exact_search(data, "bic", max_parents=3, method="dynamic-programming")
assert graph.graph["optimal"]
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    yield exhaustive_row()
    for name in NETWORKS:
        data = bbn.example(name).sample(1000, seed=0)
        start = time.process_time()
        graph = bbn.exact_search(data, "bic", max_parents=3)
        seconds = time.process_time() - start
        proved = "proved" if graph.graph["optimal"] else f"a gap of {graph.graph['gap']:.1f} nats is left"
        yield Figure(
            f"{name}, 1,000 rows: the best structure", f"{seconds:.1f} s, {proved}", "proved within 60 s"
        )
    done = subprocess.run([sys.executable, "-c", DYNAMIC], capture_output=True, text=True, check=True)
    seconds, size = (float(word) for word in done.stdout.split())
    yield Figure(
        "25 variables × 10,000 rows by dynamic programming",
        f"{seconds:.1f} s, {size:.2f} GB",
        "30 s and 2 GB",
    )
    data = bbn.example("child").sample(1000, seed=0).iloc[:, :18]
    start = time.process_time()
    bbn.arc_posterior(data, "exact", max_parents=3)
    yield Figure("every arc of 18 variables, over all DAGs", f"{time.process_time() - start:.1f} s", "30 s")


def exhaustive_row() -> Row:
    """Four variables, all 543 DAGs."""
    from pgmpy.estimators import ExhaustiveSearch

    data = bbn.example("cancer").sample(1000, seed=0).iloc[:, :4].astype(str)

    def ours() -> float:
        return float(bbn.exact_search(data, "k2", max_parents=None).graph["score"])

    def theirs(cached: bool) -> list[tuple[str, str]]:
        return list(ExhaustiveSearch(data, scoring_method="k2", use_cache=cached).estimate().edges())

    def check() -> None:
        assert abs(bbn.score(theirs(True), data, "k2") - ours()) < 1e-6

    return Row(
        "best structure of 4 variables, 1,000 rows",
        {"bbn": ours, "pgmpy": {"ExhaustiveSearch": lambda: theirs(True)}},
        check,
        100.0,
    )
