"""The best assignments, read from cliques that were maximised toward their roots.

Going from the roots down, what a clique shares with its parent is already decided; it picks one row of the clique, and
the largest cell of that row decides the others (Dawid 1992). Any other cell of the row costs its ratio to the largest,
and nothing else changes, as the cliques below then do their best with it. So the next best assignments come from one
collection (Nilsson 1998).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from bbn.kernels.contracts.types import Floats, Ints
from bbn.kernels.pure.forest import Clique
from bbn.kernels.watch import check

TIE, DIGITS = 1e-12, 12
"""Logarithms of cells that differ by less than TIE tie, and the first of them counts as the best; losses that agree in
so many decimals tie, and what was found first comes first."""


def best_assignments(
    cards: list[int], cliques: list[Clique], potentials: list[Floats], logs: bool, hard: dict[int, int]
) -> Iterator[tuple[Ints, float]]:
    """Each next best takes, at one clique, the next cell of the row that is decided, and the best below."""
    # the loss, rounded; a number; what is departed from, where, to which of the order, the loss, that before
    heap: list[tuple[float, int, Ints, int, int, float, float]] = []
    made = 0

    def row(codes: Ints, c: int) -> Floats:
        clique = cliques[c]
        cells = potentials[c][tuple(codes[clique.axes[: clique.shared]].tolist())].ravel()
        with np.errstate(divide="ignore"):
            return cells if logs else np.asarray(np.log(cells))

    def decide(codes: Ints, c: int, cell: int) -> None:
        clique = cliques[c]
        codes[clique.axes[clique.shared :]] = np.unravel_index(cell, clique.dims[clique.shared :])

    def complete(codes: Ints, first: int) -> None:
        for c in range(first, len(cliques)):
            cells = row(codes, c)
            decide(codes, c, int((cells > cells.max() - TIE).argmax()))

    def offer(codes: Ints, c: int, rank: int, before: float) -> None:
        nonlocal made
        made += 1
        cells = row(codes, c)
        order = _order(cells, rank)
        if rank < len(order):
            loss = before + float(cells[order[0]] - cells[order[rank]])
            heapq.heappush(heap, (round(loss, DIGITS), made, codes, c, rank, loss, before))

    codes: Ints = np.full(len(cards), -1, np.int64)
    for v, code in hard.items():
        codes[v] = code
    loss, first = 0.0, 0
    complete(codes, 0)
    while True:
        check()
        yield codes.copy(), -loss
        for c in range(first, len(cliques)):
            offer(codes, c, 1, loss)
        if not heap:
            return
        _, _, departed, c, rank, own, before = heapq.heappop(heap)
        loss, first = max(loss, own), c + 1
        offer(departed, c, rank + 1, before)
        codes = departed.copy()
        decide(codes, c, _order(row(codes, c), rank)[rank])
        complete(codes, first)


def _order(cells: Floats, rank: int) -> list[int]:
    """The possible cells of a row of logarithms to this rank or further, best first; of those that tie, the first."""
    order: list[int] = []
    left = cells > -math.inf
    while len(order) <= rank and left.any():
        tied = np.flatnonzero(left & (cells > cells[left].max() - TIE))
        order += tied.tolist()
        left[tied] = False
    return order
