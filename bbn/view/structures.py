"""A structure without tables as a picture: names in boxes, arcs as wide as they are strong.

A pair joined in both directions, as in a CPDAG, is one line without an arrow head. An arc of a directed cycle is drawn
upwards. Layout as for networks; see `bbn.view.layout`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from bbn.core.errors import ModelError
from bbn.core.keywords import keywords_checked
from bbn.view.colours import EDGE, HEAD
from bbn.view.diagrams import acyclic, arcs_and_names
from bbn.view.layout import layered
from bbn.view.measures import clipped, text_width
from bbn.view.scene import Box, Curve, Drawing, Words

BOX = 22.0
PLAIN, THINNEST, WIDEST = 1.2, 0.6, 5.0
"""The width of an arc without a strength, of one of strength 0, and of one of strength 1."""
FAINT = 0.5
"""A weaker arc is dashed."""


@keywords_checked
def plot_graph(graph: Any, title: str = "", strength: str = "strength") -> Drawing:
    """Draw a structure: a DAG, a CPDAG, or arcs with strengths; no tables are needed.

    Parameters
    ----------
    graph : networkx.DiGraph, BayesianNetwork or list of arcs
        The structure. A pair with arcs in both directions is an undirected edge, as in a CPDAG.
    title : str, default ""
        A heading above the picture.
    strength : str, default "strength"
        The edge attribute drawn as width, a number from 0 to 1, as `bbn.arc_strength` gives it. Arcs weaker than one
        half are dashed; an arc without the attribute has a plain line.

    Returns
    -------
    Drawing
        Shows itself in a notebook; `save("x.svg")` writes SVG, PNG or PDF.

    Raises
    ------
    ModelError
        There is nothing to draw, an arc joins a node to itself, or a strength is not a number from 0 to 1.

    See Also
    --------
    plot_compare : Two structures in one picture.
    BayesianNetwork.plot : A network with its beliefs.

    Examples
    --------
    >>> import bbn
    >>> bbn.plot_graph(bbn.cpdag(bbn.example("asia").graph)).description
    'Structure of 8 nodes, 5 arcs and 3 undirected edges.'
    """
    arcs, nodes = arcs_and_names(graph)
    if not nodes:
        raise ModelError("there is nothing to draw: the structure has no nodes")
    loops = [a for a, b in arcs if a == b]
    if loops:
        raise ModelError(f"the structure has an arc from {loops[0]!r} to itself")
    key = {node: str(i) for i, node in enumerate(nodes)}  # names of any kind, even 1 beside "1"
    both = set(arcs)
    lines = [(a, b) for a, b in arcs if (b, a) not in both or key[a] < key[b]]
    widths = {node: 16 + text_width(clipped(str(node)), bold=True) for node in nodes}
    order = acyclic(list(key.values()), [(key[a], key[b]) for a, b in _compelled_first(lines, both)], ())
    plan = layered({key[node]: (widths[node], BOX) for node in nodes}, order)
    shapes: list[Box | Words | Curve] = []
    for a, b in lines:
        undirected = (b, a) in both
        above, below = key[a], key[b]
        path = plan.arcs[above, below] if (above, below) in plan.arcs else plan.arcs[below, above][::-1]
        share = _strength(graph, a, b, strength, undirected)
        said = f"{a} {'—' if undirected else '→'} {b}" + ("" if share is None else f": {share:.3g}")
        width = PLAIN if share is None else THINNEST + (WIDEST - THINNEST) * share
        dashed = share is not None and share < FAINT
        shapes.append(Curve(tuple(path), width=width, dashed=dashed, arrow=not undirected, title=said))
    for node in nodes:
        x, y = plan.centres[key[node]]
        width = widths[node]
        shapes += [
            Box(x - width / 2, y - BOX / 2, width, BOX, HEAD, EDGE, 4, str(node)),
            Words(x, y + 4, clipped(str(node)), anchor="middle", bold=True),
        ]
    edges = sum((b, a) in both for a, b in lines)
    told = f"Structure of {_several(len(nodes), 'node')}, {_several(len(lines) - edges, 'arc')}"
    told += f" and {_several(edges, 'undirected edge')}." if edges else "."
    return Drawing(plan.width, plan.height, tuple(shapes), told).titled(title)


def _compelled_first(lines: Sequence[tuple[Any, Any]], both: set[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The arcs that have a direction before those that do not, so that arrows point down where they can."""
    return sorted(lines, key=lambda line: line[::-1] in both)


def _strength(graph: Any, a: Any, b: Any, name: str, undirected: bool) -> float | None:
    """The strength of an edge, None where it has none; of an undirected one the stronger direction's."""
    if not hasattr(graph, "edges"):
        return None
    found = [graph.edges[arc].get(name) for arc in ([(a, b), (b, a)] if undirected else [(a, b)])]
    given = [value for value in found if value is not None]
    for value in given:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not 0 <= number <= 1:
            raise ModelError(f"arc {a!r} → {b!r}: {name} is {value!r}, expected a number from 0 to 1")
    return max(map(float, given), default=None)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
