"""Data for the tests of structure learning: ancestral samples of networks, and random tables that depend."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np

# Cooper and Herskovits (1992) number ALARM's variables 1 to 37; their order for K2 is by those numbers.
_NAMES = """
CVP PCWP HISTORY TPR BP CO HRBP HREKG HRSAT PAP SAO2 FIO2 PRESS EXPCO2 MINVOL MINVOLSET HYPOVOLEMIA LVFAILURE
ANAPHYLAXIS INSUFFANESTH PULMEMBOLUS INTUBATION KINKEDTUBE DISCONNECT LVEDVOLUME STROKEVOLUME CATECHOL ERRLOWOUTPUT
HR ERRCAUTER SHUNT PVSAT ARTCO2 VENTALV VENTLUNG VENTTUBE VENTMACH
"""
_ORDER = (
    "12 16 17 18 19 20 21 22 23 24 25 26 28 30 31 37 1 2 3 4 10 36 13 35 15 34 32 33 11 14 27 29 6 7 8 9 5"
)
ALARM_ORDER = [_NAMES.split()[int(number) - 1] for number in _ORDER.split()]


def sample(net: Any, n_rows: int, seed: int) -> dict[str, list[Any]]:
    """Rows drawn from a network, parents before children, as a dict of columns of states."""
    rng = np.random.default_rng(seed)
    codes: dict[str, np.ndarray] = {}
    for variable in net.variables:
        cpt = net[variable.name]
        rows = cpt.table[tuple(codes[p.name] for p in cpt.parents)]
        ends = np.cumsum(np.broadcast_to(rows, (n_rows, variable.card)), axis=1)
        codes[variable.name] = (rng.random((n_rows, 1)) * ends[:, -1:] >= ends).sum(axis=1)
    return {v.name: [v.states[c] for c in codes[v.name].tolist()] for v in net.variables}


def sample_frame(net: Any, n_rows: int, seed: int) -> Any:
    """The same as a DataFrame of categoricals that declare all states."""
    import pandas as pd

    columns = sample(net, n_rows, seed)
    return pd.DataFrame(
        {v.name: pd.Categorical(columns[v.name], categories=list(v.states)) for v in net.variables}
    )


def random_data(rng: np.random.Generator, n_rows: int, cards: list[int]) -> dict[str, list[int]]:
    """Columns A, B, … that depend on each other at random; every state occurs."""
    columns: dict[str, list[int]] = {}
    earlier: list[np.ndarray] = []
    for i, card in enumerate(cards):
        chosen = [column for column in earlier if rng.random() < 0.6]
        base = sum(chosen) if chosen else np.zeros(n_rows, dtype=int)
        noise = rng.integers(card, size=n_rows)
        column = np.where(rng.random(n_rows) < 0.5, base % card, noise)
        column[:card] = np.arange(card)
        earlier.append(column)
        columns["ABCDEFGHIJ"[i]] = column.tolist()
    return columns


def with_holes(data, share, seed):
    """The columns, each value of which is missing with a probability of `share`."""
    rng = np.random.default_rng(seed)
    return {
        name: [
            None if hole else value
            for value, hole in zip(column, rng.random(len(column)) < share, strict=True)
        ]
        for name, column in data.items()
    }


def random_dag(rng, size, density):
    """A DAG in which each pair is joined with a probability of `density`."""
    names = [f"v{i}" for i in range(size)]
    order = [str(name) for name in rng.permutation(names)]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(pair for pair in combinations(order, 2) if rng.random() < density)
    return graph
