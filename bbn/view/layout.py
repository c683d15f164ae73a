"""Layered drawing of a directed acyclic graph (Sugiyama, Tagawa and Toda 1981).

1. Layers: integers y with y(child) ≥ y(parent) + 1 and the total length of the arcs least, a linear program whose
   corners are whole numbers (Gansner et al. 1993); then leaves move down from layers that are too full.
2. An arc that spans several layers becomes a chain of dummy nodes.
3. Order within layers: sweeps by the median of the neighbours, then swaps of neighbours while crossings fall; the
   order with the fewest crossings is kept.
4. Coordinates: layer by layer, the least-squares fit to the neighbours' positions under the order and the spacing,
   which is isotonic regression; dummy nodes weigh more, so that long arcs run straight.

Deterministic, and quick up to several hundred nodes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array

SWEEPS = 24
ROUNDS = 40
DUMMY_WEIGHT = 4.0
PULL = 0.1
"""How strongly the middle draws every node, as a share of a neighbour's pull: it keeps pictures compact."""

Node = str | tuple[int, int]
"""A node's name, or (arc, step) of a dummy node."""


class GraphLayout(NamedTuple):
    """Where everything goes: the centre of each node, and the points each arc passes between the two."""

    centres: dict[str, tuple[float, float]]
    arcs: dict[tuple[str, str], list[tuple[float, float]]]
    width: float
    height: float


def layered(
    sizes: Mapping[str, tuple[float, float]],
    arcs: Sequence[tuple[str, str]],
    gap: float = 24.0,
    layer_gap: float = 48.0,
) -> GraphLayout:
    """Lay out nodes of these (width, height) and arcs (parent, child).

    >>> plan = layered({"a": (10, 10), "b": (10, 10)}, [("a", "b")])
    >>> plan.centres["a"][0] == plan.centres["b"][0], plan.centres["a"][1] < plan.centres["b"][1]
    (True, True)
    """
    layer_of = assign_layers(list(sizes), arcs)
    layers, edges = _with_dummies(layer_of, arcs)
    layers = _ordered(layers, edges)
    widths = {node: sizes[node][0] if isinstance(node, str) else 0.0 for layer in layers for node in layer}
    x = _coordinates(layers, edges, widths, gap)
    heights = [max((sizes[n][1] for n in layer if isinstance(n, str)), default=0.0) for layer in layers]
    tops = np.concatenate([[0.0], np.cumsum([h + layer_gap for h in heights])])
    left = min(x[n] - widths[n] / 2 for n in x)
    right = max(x[n] + widths[n] / 2 for n in x)
    paths = {}
    for i, (parent, child) in enumerate(arcs):
        above, below = layer_of[parent], layer_of[child]
        points = [(x[parent], tops[above] + heights[above])]
        for step in range(above + 1, below):  # straight through a layer, bends only between layers
            points += [(x[i, step], tops[step]), (x[i, step], tops[step] + heights[step])]
        points.append((x[child], tops[below]))
        paths[parent, child] = [(px - left, float(py)) for px, py in points]
    centres = {
        name: (x[name] - left, float(tops[layer_of[name]] + heights[layer_of[name]] / 2)) for name in sizes
    }
    return GraphLayout(centres, paths, right - left, float(tops[-1] - layer_gap))


def assign_layers(names: list[str], arcs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node, 0 at the top: short arcs, and no layer too full of nodes without children."""
    return _spread(_layers(names, arcs), arcs)


def _layers(names: list[str], arcs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layer of each node, 0 at the top, the total length of the arcs least."""
    if not arcs:
        side = max(1, round(len(names) ** 0.5))
        return {name: i // side for i, name in enumerate(names)}
    from scipy.optimize import linprog
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    index = {name: i for i, name in enumerate(names)}
    heads = np.array([index[parent] for parent, _ in arcs])
    tails = np.array([index[child] for _, child in arcs])
    rows = np.arange(len(arcs))
    matrix = coo_array(
        (np.r_[np.ones(len(arcs)), -np.ones(len(arcs))], (np.r_[rows, rows], np.r_[heads, tails])),
        shape=(len(arcs), len(names)),
    ).tocsr()
    cost = np.bincount(tails, minlength=len(names)) - np.bincount(heads, minlength=len(names))
    answer: Any = linprog(  # type: ignore[call-overload]  # the stubs do not know of sparse matrices
        cost, A_ub=matrix, b_ub=-np.ones(len(arcs)), bounds=(0, len(names)), method="highs-ds"
    )
    y = np.rint(answer.x).astype(int)
    links = coo_array((np.ones(len(arcs)), (heads, tails)), shape=(len(names), len(names)))
    part = connected_components(links, directed=False)[1]
    for label in np.unique(part):  # each connected part starts at the top
        y[part == label] -= y[part == label].min()
    return {name: int(y[i]) for name, i in index.items()}


def _spread(layer_of: dict[str, int], arcs: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The layers with nodes that have no children moved down from layers that are too full."""
    most = math.ceil(1.3 * len(layer_of) ** 0.5) + 2
    spread = dict(layer_of)
    inner = {parent for parent, _ in arcs}
    full = Counter(spread.values())
    for name, layer in layer_of.items():
        if name not in inner and full[layer] > most:
            lower = layer + 1
            while full[lower] >= most:
                lower += 1
            full[layer] -= 1
            full[lower] += 1
            spread[name] = lower
    return spread


def _with_dummies(
    layer_of: Mapping[str, int], arcs: Sequence[tuple[str, str]]
) -> tuple[list[list[Node]], list[tuple[Node, Node]]]:
    """The layers with dummy nodes, and edges between adjacent layers only."""
    layers: list[list[Node]] = [[] for _ in range(max(layer_of.values()) + 1)]
    for name, layer in layer_of.items():
        layers[layer].append(name)
    edges: list[tuple[Node, Node]] = []
    for i, (parent, child) in enumerate(arcs):
        above: Node = parent
        for step in range(layer_of[parent] + 1, layer_of[child]):
            layers[step].append((i, step))
            edges.append((above, (i, step)))
            above = (i, step)
        edges.append((above, child))
    return layers, edges


def _ordered(layers: list[list[Node]], edges: list[tuple[Node, Node]]) -> list[list[Node]]:
    """The layers reordered for few crossings."""
    up: dict[Node, list[Node]] = {node: [] for layer in layers for node in layer}
    down: dict[Node, list[Node]] = {node: [] for layer in layers for node in layer}
    for above, below in edges:
        down[above].append(below)
        up[below].append(above)
    best, fewest = layers, _crossings(layers, down)
    current = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        downward = sweep % 2 == 0
        order = range(1, len(layers)) if downward else range(len(layers) - 2, -1, -1)
        for i in order:
            fixed = {node: p for p, node in enumerate(current[i - 1 if downward else i + 1])}
            current[i] = _by_median(current[i], up if downward else down, fixed)
        _swap_neighbours(current, up, down)
        crossings = _crossings(current, down)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in current], crossings
    return best


def _by_median(
    layer: list[Node], neighbours: Mapping[Node, list[Node]], fixed: Mapping[Node, int]
) -> list[Node]:
    """The layer sorted by the median position of its neighbours; nodes without any keep their place."""
    medians = {}
    for node in layer:
        places = sorted(fixed[other] for other in neighbours[node])
        if places:
            middle = len(places) // 2
            medians[node] = (
                float(places[middle]) if len(places) % 2 else (places[middle - 1] + places[middle]) / 2
            )
    moving = iter(sorted((node for node in layer if node in medians), key=lambda node: medians[node]))
    return [next(moving) if node in medians else node for node in layer]


def _swap_neighbours(
    layers: list[list[Node]], up: Mapping[Node, list[Node]], down: Mapping[Node, list[Node]]
) -> None:
    """Swap adjacent nodes while that lowers the crossings around them."""
    place = {node: p for layer in layers for p, node in enumerate(layer)}
    improved = True
    rounds = 0
    while improved and rounds < 10:
        improved = False
        rounds += 1
        for layer in layers:
            for p in range(len(layer) - 1):
                a, b = layer[p], layer[p + 1]
                now = later = 0
                for side in (up, down):
                    for x in side[a]:
                        for y in side[b]:
                            now += place[x] > place[y]
                            later += place[x] < place[y]
                if later < now:
                    layer[p], layer[p + 1] = b, a
                    place[a], place[b] = p + 1, p
                    improved = True


def _crossings(layers: Sequence[Sequence[Node]], down: Mapping[Node, list[Node]]) -> int:
    total = 0
    for above, below in itertools.pairwise(layers):
        place = {node: p for p, node in enumerate(below)}
        ends = [q for node in above for q in sorted(place[child] for child in down[node])]
        values = np.array(ends)
        total += sum(int((values[:i] > q).sum()) for i, q in enumerate(ends))
    return total


def _coordinates(
    layers: Sequence[Sequence[Node]],
    edges: Sequence[tuple[Node, Node]],
    widths: Mapping[Node, float],
    gap: float,
) -> dict[Node, float]:
    """The x of each node: close to its neighbours, in order, with room between."""
    from scipy.optimize import isotonic_regression

    neighbours: dict[Node, list[Node]] = {node: [] for layer in layers for node in layer}
    for above, below in edges:
        neighbours[above].append(below)
        neighbours[below].append(above)
    x: dict[Node, float] = {}
    room: list[Array] = []
    for layer in layers:
        between = [
            (widths[a] + widths[b]) / 2 + (gap if isinstance(a, str) or isinstance(b, str) else gap / 2)
            for a, b in itertools.pairwise(layer)
        ]
        places = np.concatenate([[0.0], np.cumsum(between)])
        room.append(places)
        x.update(zip(layer, (places - places.mean()).tolist(), strict=True))
    for turn in range(ROUNDS):
        for i in range(len(layers)) if turn % 2 == 0 else range(len(layers) - 1, -1, -1):
            layer = layers[i]
            wanted = np.array(
                [
                    sum([x[m] for m in neighbours[n]]) / (len(neighbours[n]) + PULL)
                    if neighbours[n]
                    else x[n]
                    for n in layer
                ]
            )
            weight = np.array([1.0 if isinstance(n, str) else DUMMY_WEIGHT for n in layer])
            fit = isotonic_regression(wanted - room[i], weights=weight).x
            x.update(zip(layer, (fit + room[i]).tolist(), strict=True))
    return x
