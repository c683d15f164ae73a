"""Families that the rows can bear: a bound on the cells of their tables, and tables that lean on the child's shares.

A table with many more cells than there are rows cannot earn its score, yet counting it may take all of the memory. So a
search looks at families of no more than CELLS_PER_ROW cells per row (with one parent twice as many), known from the
cardinalities before anything is counted. Where all families together still have more than TOO_MANY parameters per row,
it searches again with a lower bound (arcs may always add one parameter per row, however many states there are); and
with fewer parents where the junction tree would have so many cells that no question about the network could be answered
in a second or so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bbn.data import DataSource, continuous_columns
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.tables.priors import BackOff, BDeu, Prior
from bbn.model.graphs import ORDERS, flat_scopes, junction_forest

CELLS_PER_ROW = 5
"""The most cells of a family's table, per row of the data."""
TOO_MANY = 10
"""The most parameters of a network, per row of the data."""
LEAST_CELLS = 4
"""No table is smaller than this, so a smaller bound would change nothing."""
MOST_CLIQUES = 1e7
"""The most cells of the cliques of a network's junction tree."""
WIDE = 60
"""With more columns than this, numbers counted twice, a search is one plain climb, unless its options say otherwise."""


def bounded_search(
    search: Callable[..., Any], source: DataSource, options: Mapping[str, Any], **more: Any
) -> Any:
    """What a search by hill climbing finds among families that are small enough for the rows.

    Parameters
    ----------
    search
        `hill_climb`, or a function that takes its options and gives its graph, or a result with a network.
    source
        The data, its first argument.
    options, more
        Its options; with `max_cells` among them nothing else is done.
    """
    if "max_cells" in options:
        return search(source, **options, **more)
    if search is hill_climb and is_wide(source):
        options = {"restarts": 0, "escapes": 0, **options}
    rows = max(int(source.n_rows), 1)
    most = float(CELLS_PER_ROW * rows)
    total = max(TOO_MANY * rows, _without_arcs(source) + rows)
    told = dict(options)
    while True:
        found = search(source, **told, **more, max_cells=most)
        network = getattr(found, "network", None)
        graph = found if network is None else network.graph
        sizes = family_sizes(graph, source)
        parents = max((degree for _, degree in graph.in_degree()), default=0)
        if most >= LEAST_CELLS and sum(sizes) > total:
            most = min(most / 2, _level(sizes, total))
        elif "max_parents" not in options and parents > 1 and clique_cells(graph, source) > MOST_CLIQUES:
            told["max_parents"] = parents - 1
        else:
            if network is None and told != options:
                found.graph["fewer_parents"] = told["max_parents"]
            return found


def _without_arcs(source: DataSource) -> int:
    """The parameters that the variables have by themselves, however few rows there are."""
    return sum(v.card - 1 for v in source.variables) + 2 * len(continuous_columns(source))


def clique_cells(graph: Any, source: DataSource) -> float:
    """About how many cells the junction tree of the variables with states has."""
    cards = {v.name: v.card for v in source.variables}
    number = {name: i for i, name in enumerate(name for name in graph.nodes if name in cards)}
    if not number:
        return 0.0
    sizes = np.array([cards[name] for name in number], dtype=np.int64)
    scopes = [
        [*(number[p] for p in graph.predecessors(name) if p in number), i] for name, i in number.items()
    ]
    cliques, _ = junction_forest(ORDERS["weighted-min-fill"](sizes, *flat_scopes(scopes)))
    return float(sum(math.prod(sizes[clique].tolist()) for clique in cliques))


def _level(sizes: list[int], total: float) -> float:
    """The size at which families are to be cut off so that together they have no more than `total`."""
    left = total
    ascending = sorted(sizes)
    for i, size in enumerate(ascending):
        share = left / (len(ascending) - i)
        if size > share:
            return share
        left -= size
    return math.inf


def is_wide(source: DataSource) -> bool:
    """Whether there are so many columns that climbing again and again takes long."""
    return len(source.variables) + 2 * len(continuous_columns(source)) > WIDE


def n_parameters(graph: Any, source: DataSource) -> int:
    """The free parameters of a structure over the variables of a source."""
    return sum(family_sizes(graph, source))


def family_sizes(graph: Any, source: DataSource) -> list[int]:
    """The free parameters of each family; variables without states are Gaussians, hidden ones count as two states."""
    numbers_there = set(continuous_columns(source))
    cards = {name: 2 for name in graph.nodes if name not in numbers_there}
    cards |= {v.name: v.card for v in source.variables}
    sizes = []
    for name in graph.nodes:
        parents = list(graph.predecessors(name))
        settings = math.prod(cards.get(p, 1) for p in parents)
        numbers = sum(p not in cards for p in parents)
        sizes.append(settings * (cards[name] - 1 if name in cards else 2 + numbers))
    return sizes


def table_prior(prior: Prior | None, options: Mapping[str, Any]) -> Prior:
    """The prior of tables whose structure was searched for: as told, as the score says, or `BackOff`."""
    if prior is not None:
        return prior
    score = options.get("score")
    return score if isinstance(score, BDeu) else BackOff()


def left_out(detail: Any, rows: int) -> tuple[str, ...]:
    """What to say of families that were not looked at, and of parents that were not allowed."""
    about = getattr(detail, "graph", {})
    n, parents = about.get("n_too_large", 0), about.get("fewer_parents")
    notes = []
    if n:
        notes.append(
            f"left out of the search: {n:,} families whose tables are too large for {rows:,} rows "
            f"(more than {CELLS_PER_ROW} cells a row; max_cells= sets another limit)"
        )
    if parents is not None:
        notes.append(
            f"no variable has more than {parents} parents, as with more the network would take long to answer "
            "(max_parents= sets another limit)"
        )
    return tuple(notes)
