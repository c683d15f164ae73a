"""A layered layout for wide networks: layers that are too wide are folded into several rows.

Parents stay above children, as no arc joins two nodes of a layer. Within a layer the order is by the mean place of the
neighbours (Sugiyama, Tagawa and Toda 1981); every row takes each R-th node of it, so that neighbours stay near one
another. Arcs run behind the cards. The number of rows is chosen for a picture of about ASPECT by 1. Cost: SWEEPS passes
over the arcs and as many sorts, a fraction of a second for a thousand nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bbn.view.layout import GraphLayout, assign_layers, layered

ASPECT = 1.6
"""Width by height of a folded picture."""
WIDE = 2.2
"""A picture wider than this many times its height is folded."""
MANY = 250
"""With more nodes, the layout that looks at crossings is not tried first."""
SWEEPS = 30
ROW_GAP = 14.0


def readable(
    sizes: Mapping[str, tuple[float, float]],
    arcs: Sequence[tuple[str, str]],
    gap: float = 24.0,
    layer_gap: float = 48.0,
) -> GraphLayout:
    """The layered layout, folded where it would be much wider than high.

    >>> plan = readable({str(i): (100, 30) for i in range(400)}, [("0", str(i)) for i in range(1, 400)])
    >>> 0.8 < plan.width / plan.height < 2.5
    True
    """
    if len(sizes) <= MANY:
        plan = layered(sizes, arcs, gap, layer_gap)
        if plan.width <= WIDE * plan.height or len(sizes) < 20:
            return plan
    return _folded(sizes, arcs, gap, layer_gap)


def _folded(
    sizes: Mapping[str, tuple[float, float]], arcs: Sequence[tuple[str, str]], gap: float, layer_gap: float
) -> GraphLayout:
    layers = _ordered(assign_layers(list(sizes), arcs), arcs)
    across = [sum(sizes[name][0] + gap for name in layer) for layer in layers]
    tall = [max(sizes[name][1] for name in layer) for layer in layers]

    def height(width: float) -> float:
        rows = [int(np.ceil(a / width)) for a in across]
        return sum(
            r * h + (r - 1) * ROW_GAP + layer_gap * (1 + (r - 1) / 4) for r, h in zip(rows, tall, strict=True)
        )

    widths = np.geomspace(max(size[0] for size in sizes.values()) + gap, max(across) + gap, 200)
    width = float(min(widths, key=lambda w: abs(np.log(w / height(w) / ASPECT))))
    rows = [
        [layer[r::n] for r in range(n)]
        for layer, n in ((layer, int(np.ceil(a / width))) for layer, a in zip(layers, across, strict=True))
    ]
    width = max(sum(sizes[name][0] + gap for name in row) - gap for layer in rows for row in layer)
    centres: dict[str, tuple[float, float]] = {}
    top = 0.0
    for layer in rows:
        for row in layer:
            left = 0.0
            spare = (width - sum(sizes[name][0] for name in row)) / (len(row) + 1)
            tallest = max(sizes[name][1] for name in row)
            for name in row:
                left += spare if len(row) > 1 or len(layer) == 1 else (width - sizes[name][0]) / 2
                centres[name] = (left + sizes[name][0] / 2, top + tallest / 2)
                left += sizes[name][0]
            top += tallest + ROW_GAP
        top += layer_gap * (1 + (len(layer) - 1) / 4) - ROW_GAP
    bottom = max(y + sizes[name][1] / 2 for name, (_, y) in centres.items())
    paths = {
        (a, b): [
            (centres[a][0], centres[a][1] + sizes[a][1] / 2),
            (centres[b][0], centres[b][1] - sizes[b][1] / 2),
        ]
        for a, b in arcs
    }
    return GraphLayout(centres, paths, width, bottom)


def _ordered(layer_of: Mapping[str, int], arcs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The layers, each in the order of its neighbours' mean place (between 0 and 1)."""
    layers: list[list[str]] = [[] for _ in range(max(layer_of.values()) + 1)]
    for name, number in layer_of.items():
        layers[number].append(name)
    layers = [layer for layer in layers if layer]
    near: dict[str, list[str]] = {name: [] for name in layer_of}
    for a, b in arcs:
        near[a].append(b)
        near[b].append(a)
    place = {name: (i + 0.5) / len(layer) for layer in layers for i, name in enumerate(layer)}
    for _ in range(SWEEPS):
        for layer in layers:
            wanted = {
                name: sum(place[other] for other in near[name]) / len(near[name])
                if near[name]
                else place[name]
                for name in layer
            }
            layer.sort(key=wanted.__getitem__)
            place.update({name: (i + 0.5) / len(layer) for i, name in enumerate(layer)})
    return layers
