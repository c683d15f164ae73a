"""Stats: the size of a junction tree, and about how long it takes, without allocating anything large."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bbn.inference.exact.flat_model import FlatModel
from bbn.inference.exact.long_runs import predicted_seconds
from bbn.inference.exact.orders import HOPELESS
from bbn.inference.exact.pricing import Question, largest_clique, price
from bbn.kernels.contracts.tape import MARGINALS


class Stats(NamedTuple):
    """The size of a junction tree: what inference without evidence costs.

    Attributes
    ----------
    treewidth
        The number of variables of the largest clique, less one.
    cliques, total_cells
        How many cliques there are, and the cells of all of them.
    largest_clique, largest_cells
        The variables of the clique with most cells, and how many it has.
    predicted_bytes
        The memory of the engine's tables, of the potentials that are stored, and of the answer.
    orders_tried
        How many elimination orders, and pieces of them, were worked out to find this one; more where a run is long.
    greedy_cells
        What `total_cells` would be with the best order that a rule gives without a search.
    predicted_seconds
        About how long the first run takes on this machine, which is measured once.
    """

    treewidth: int
    cliques: int
    total_cells: int
    largest_clique: tuple[str, ...]
    largest_cells: int
    predicted_bytes: int
    orders_tried: int = 1
    greedy_cells: int = 0
    predicted_seconds: float = 0.0


def tree_stats(model: FlatModel, order: str, limit: int | float | str | None = None) -> Stats:
    """The size of a model's tree without evidence, as a rule of elimination, or "auto", makes it."""
    question = Question(goal=MARGINALS)
    cost = price(model, question, order, HOPELESS if order == "auto" else math.inf, limit=limit)
    if order == "auto" and cost.cells > HOPELESS:  # they were given up: the quickest rule gives a whole tree
        cost = price(model, question, "min-neighbours", math.inf, limit=limit)
    names, cells, cliques = largest_clique(model, cost)
    width = int(np.diff(cost.elimination[1]).max(initial=0))
    return Stats(
        width,
        cliques,
        int(cost.cells),
        tuple(names),
        int(cells),
        int(cost.bytes),
        cost.tried,
        int(cost.greedy),
        math.inf if cost.layout is None else predicted_seconds(cost.layout),
    )
