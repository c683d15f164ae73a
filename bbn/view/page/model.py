"""What the page needs to draw a network: its nodes with their sizes and places, and its arcs as curves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bbn.model.decision_network import DecisionNetwork
from bbn.view import density
from bbn.view.cards import MAX_STATES
from bbn.view.fold import readable
from bbn.view.measures import BAR, PAD, PERCENT, ROW, TITLE, clipped, text_width
from bbn.view.scene import arrow_head, spline

SLICE = re.compile(r"(.+)\[(\d+)\]")
"""The name of a variable in one slice of a dynamic network that was unrolled."""
WORTH = 52.0
"""Room for an expected utility."""


def page_model(net: Any, timed: bool = False) -> dict[str, Any]:
    """Everything the page needs to draw a Bayesian or decision network.

    Parameters
    ----------
    net
        The network.
    timed
        Whether it is a dynamic network, unrolled.

    Returns
    -------
    dict
        What goes to the page as JSON.

    >>> import bbn
    >>> [node["name"] for node in page_model(bbn.example("sprinkler"))["nodes"]]
    ['Cloudy', 'Sprinkler', 'Rain', 'WetGrass']
    """
    told = descriptions(net)
    nodes = {name: _node(net, name) for name in net.names}
    plan = readable({name: (n["width"], n["height"]) for name, n in nodes.items()}, net.arcs)
    arcs = []
    for (parent, child), path in plan.arcs.items():
        (x0, y0), (x1, y1) = plan.centres[parent], plan.centres[child]
        points = ((x0, y0 + nodes[parent]["height"] / 2), *path, (x1, y1 - nodes[child]["height"] / 2))
        curve = f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(
            " C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in spline(points)
        )
        head = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrow_head(points))
        arcs.append({"parent": parent, "child": child, "path": curve, "head": head})
    for name, node in nodes.items():
        node["x"] = round(plan.centres[name][0] - node["width"] / 2, 2)
        node["y"] = round(plan.centres[name][1] - node["height"] / 2, 2)
        if name in told:
            node["description"] = told[name]
        if timed and (found := SLICE.fullmatch(name)):
            node["slice"] = [found[1], int(found[2])]
    return {
        "name": net.name,
        "description": net.metadata.get("description", ""),
        "kind": "decisions" if isinstance(net, DecisionNetwork) else "network",
        "nodes": list(nodes.values()),
        "arcs": arcs,
        "width": plan.width,
        "height": plan.height,
        "title": TITLE,
        "row": ROW,
        "percent": PERCENT,
        "density": density.HEIGHT,
    }


def descriptions(net: Any) -> Mapping[str, str]:
    """Node to its description, for those that have one."""
    told = getattr(net, "descriptions", None)
    return told if isinstance(told, Mapping) else {}


def _node(net: Any, name: str) -> dict[str, Any]:
    """A node without its place: its kind, states and size."""
    kind = net.kind(name) if isinstance(net, DecisionNetwork) else "chance"
    states = [] if kind == "utility" else [str(state) for state in net.states(name)]
    if kind == "chance" and not states:
        kind = "number"
    label = max((text_width(clipped(state)) for state in states), default=0.0)
    title = text_width(clipped(name), bold=True)
    beside = WORTH if kind == "decision" else PERCENT
    inner = {"number": density.WIDTH, "utility": WORTH}.get(kind, label + BAR + 8 + beside)
    rows = min(len(states), MAX_STATES)
    below = {"number": density.HEIGHT + 2 * ROW, "utility": ROW}.get(kind, ROW * rows)
    return {
        "name": name,
        "kind": kind,
        "states": states,
        "rows": rows,
        "label": round(label, 2),
        "wide": round(title, 2),
        "beside": beside,
        "width": round(2 * PAD + max(title, inner), 2),
        "height": TITLE + 6 + below,
    }
