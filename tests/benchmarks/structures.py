"""How good the structures are that searches find, beside those of bnlearn and pyAgrum.

    python -m tests.benchmarks.structures [--samples 3] [--rows 5000] [--seed 0] [NETWORK …]

Rows are drawn from each network; its variables are renamed and their columns shuffled, so that neither names nor orders
tell of the truth. For BDeu and BIC, and each way to search, it prints the mean over the samples of the score above that
of the true structure, of the SHD between the classes of what was found and of the truth, and of the CPU seconds.
bnlearn's searches are written anew (`tests/support/bnlearn_searches.py`) over our family scores; their time is not its.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import bbn
from bbn.data import as_source
from bbn.learning.structure.score_cache import ScoreCache
from tests.support.bnlearn_searches import Parents, hc, tabu
from tests.support.learning_data import sample

NETWORKS = ("child", "insurance", "alarm", "water", "hailfinder", "hepar2", "win95pts")
Search = Callable[[pd.DataFrame, str], nx.DiGraph]


def shuffled(net: Any, n_rows: int, seed: int) -> tuple[pd.DataFrame, nx.DiGraph]:
    """Rows under new names, in columns in another order, and the true structure under those names."""
    rng = np.random.default_rng(seed)
    columns = sample(net, n_rows, seed)
    names = list(columns)
    new = dict(zip(names, (f"v{i:03}" for i in rng.permutation(len(names)).tolist()), strict=True))
    order = [names[i] for i in rng.permutation(len(names)).tolist()]
    data = pd.DataFrame({new[name]: pd.Categorical(columns[name]) for name in order})
    return data, nx.relabel_nodes(nx.DiGraph(net.graph), new)


def bnlearn(search: Callable[[int, Callable[[int, frozenset[int]], float]], Parents]) -> Search:
    """One of bnlearn's searches."""

    def run(data: pd.DataFrame, score: str) -> nx.DiGraph:
        names = list(data)
        cache = ScoreCache(as_source(data), score, names)

        def term(child: int, parents: frozenset[int]) -> float:
            return cache[child, sum(1 << p for p in parents)]

        found = search(len(names), term)
        return graph_of(names, ((names[p], names[c]) for c, own in enumerate(found) for p in own))

    return run


def pyagrum(size: int, decreases: int) -> Search:
    """pyAgrum's tabu search with a list of some size, past that many losses."""

    def run(data: pd.DataFrame, score: str) -> nx.DiGraph:
        import pyagrum as gum

        learner = gum.BNLearner(data)
        learner.useNoPrior()
        (learner.useScoreBDeu if score == "bdeu" else learner.useScoreBIC)()
        learner.useLocalSearchWithTabuList(size, decreases)
        names = learner.names()
        return graph_of(names, ((names[a], names[b]) for a, b in learner.learnDAG().arcs()))

    return run


def graph_of(names: Any, arcs: Iterator[tuple[str, str]]) -> nx.DiGraph:
    """A graph of these nodes and arcs."""
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(arcs)
    return graph


SEARCHES: dict[str, Search] = {
    "hill_climb": lambda data, score: bbn.hill_climb(data, score, progress=False),
    "escapes=0, restarts=0": lambda data, score: bbn.hill_climb(
        data, score, escapes=0, restarts=0, progress=False
    ),
    "ges": lambda data, score: bbn.to_dag(bbn.ges(data, score, progress=False)),
    "bnlearn hc": bnlearn(hc),
    "bnlearn tabu": bnlearn(tabu),
    "pyAgrum tabu": pyagrum(100, 2),
    "pyAgrum tabu, 50 losses": pyagrum(1000, 50),
}


def measured(
    name: str, score: str, n_rows: int, seeds: range, searches: dict[str, Search]
) -> dict[str, np.ndarray]:
    """By search: the score above the truth's, the SHD and the seconds, one row per sample."""
    net = bbn.example(name)
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in searches}
    for seed in seeds:
        data, truth = shuffled(net, n_rows, seed)
        base = bbn.score(truth, data, score)
        for way, search in searches.items():
            start = time.process_time()
            graph = search(data, score)
            took = time.process_time() - start
            gain = bbn.score(graph, data, score) - base
            found[way].append((gain, bbn.compare(graph, truth).shd_cpdag or 0, took))
    return {way: np.array(values) for way, values in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.structures")
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the first sample")
    options = parser.parse_args()
    ways = list(SEARCHES)
    print(f"| | | {' | '.join(ways)} |\n|{'---|' * (len(ways) + 2)}", flush=True)
    for name in options.networks:
        for score in ("bdeu", "bic"):
            seeds = range(options.seed, options.seed + options.samples)
            means = {
                way: values.mean(axis=0)
                for way, values in measured(name, score, options.rows, seeds, SEARCHES).items()
            }
            cells = (f"{gain:.0f}; {shd:.1f}; {took:.2f}" for gain, shd, took in means.values())
            print(f"| {name} | {score} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
