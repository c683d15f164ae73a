"""A causal graph as a picture: treatment, outcome, what is adjusted for, and the paths between them in colour.

Green arcs carry the effect; orange ones belong to paths that are open and not causal, so they bias it. A hidden cause
is a dashed pair of arcs from a box that says so. Colour is never all that tells: boxes name their role below the name.
"""

from __future__ import annotations

from collections.abc import Iterable

from bbn.causal.graph.causal_graph import CausalGraph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.graph.paths import CausalPath, open_paths
from bbn.causal.identification.adjustment import causal_nodes
from bbn.view.colours import (
    ADJUSTED,
    ARC,
    CAUSAL,
    EDGE,
    HEAD,
    HIDDEN,
    INK,
    OPEN,
    OUTCOME,
    TREATMENT,
)
from bbn.view.layout import layered
from bbn.view.measures import clipped, text_width
from bbn.view.scene import Box, Curve, Drawing, Words

MOST_PATHS = 200
"""As many open paths are looked for and coloured."""
BOX, SMALL = 34.0, 18.0


def draw_causes(
    graph: CausalGraph,
    treatment: str | Iterable[str] = (),
    outcome: str | Iterable[str] = (),
    adjusted: str | Iterable[str] = (),
) -> Drawing:
    """Draw a causal graph; see `CausalGraph.plot`."""
    x, y = graph.names(treatment, "treatment"), graph.names(outcome, "outcome")
    given = graph.names(adjusted, "adjusted")
    biased = _biasing_paths(graph, x, y, given)
    causal = _causal_arcs(graph, x, y)
    opened = {frozenset(arc) for path in biased for arc in path.arcs}
    arcs = [*graph.arcs]
    hidden = {f"↔ {a} {b}": (a, b) for a, b in graph.confounded}
    arcs += [(name, end) for name, ends in hidden.items() for end in ends]
    roles = {name: _role(graph, name, x, y, given) for name in graph.nodes}
    sizes = {name: (_width(name, roles[name]), BOX) for name in graph.nodes}
    sizes |= {name: (text_width("hidden") + 12, SMALL) for name in hidden}
    plan = layered(sizes, arcs)
    shapes: list[Box | Words | Curve] = []
    for a, b in arcs:
        edge = frozenset(hidden.get(a, (a, b)))
        unseen = a in hidden or a in graph.latent
        if edge in opened and (a, b) not in causal:
            kind, colour, width = "open path", OPEN, 2.4
        elif (a, b) in causal:
            kind, colour, width = "causal path", CAUSAL, 2.4
        else:
            kind, colour, width = "", ARC, 1.2
        source = "hidden cause" if a in hidden else a
        title = f"{source} → {b}" + (f": {kind}" if kind else "")
        shapes.append(Curve(tuple(plan.arcs[a, b]), colour, width, unseen, title=title))
    for name in graph.nodes:
        shapes += _box(name, roles[name], *plan.centres[name])
    for name in hidden:
        cx, cy = plan.centres[name]
        w = sizes[name][0]
        shapes += [
            Box(cx - w / 2, cy - SMALL / 2, w, SMALL, HIDDEN, EDGE, 9),
            Words(cx, cy + 3.5, "hidden", 10, INK, "middle", italic=True),
        ]
    height = plan.height
    if x and y:
        height += 30
        left = 0.0
        for colour, text in ((CAUSAL, "causal path"), (OPEN, "open path that is not causal")):
            shapes.append(Box(left, height - 9, 18, 4, colour))
            shapes.append(Words(left + 24, height - 3, text))
            left += 24 + text_width(text) + 22
        width = max(plan.width, left)
    else:
        width = plan.width
    return Drawing(width, height, tuple(shapes), _told(graph, x, y, given, biased))


def _biasing_paths(graph: CausalGraph, x: Names, y: Names, given: Names) -> list[CausalPath]:
    """Open paths from treatment to outcome that are not causal."""
    if not x or not y:
        return []
    return [path for path in open_paths(graph, x, y, given, MOST_PATHS) if not path.is_causal]


def _causal_arcs(graph: CausalGraph, x: Names, y: Names) -> set[tuple[str, str]]:
    """The arcs of causal paths from treatment to outcome."""
    if not x or not y:
        return set()
    on_way = causal_nodes(graph, x, y)
    return {(a, b) for a, b in graph.arcs if b in on_way and (a in x or a in on_way)}


def _role(graph: CausalGraph, name: str, x: Names, y: Names, given: Names) -> tuple[str, str]:
    """What a variable is here, and its colour."""
    if name in x:
        return "treatment", TREATMENT
    if name in y:
        return "outcome", OUTCOME
    if name in graph.latent:
        return "hidden", HIDDEN
    return ("adjusted for", ADJUSTED) if name in given else ("", HEAD)


def _width(name: str, role: tuple[str, str]) -> float:
    return 18 + max(text_width(clipped(name), bold=True), text_width(role[0]))


def _box(name: str, role: tuple[str, str], x: float, y: float) -> list[Box | Words | Curve]:
    text, colour = role
    width = _width(name, role)
    shapes: list[Box | Words | Curve] = [Box(x - width / 2, y - BOX / 2, width, BOX, colour, EDGE, 5, name)]
    shapes.append(Words(x, y + (-1 if text else 4), clipped(name), anchor="middle", bold=True))
    if text:
        shapes.append(Words(x, y + 11, text, 10, INK, "middle", italic=True))
    return shapes


def _told(graph: CausalGraph, x: Names, y: Names, given: Names, biased: list[CausalPath]) -> str:
    """The text alternative."""

    def listed(names: Names) -> str:
        return ", ".join(name for name in graph.nodes if name in names)

    told = f"Causal graph of {len(graph)} variable{'s' * (len(graph) != 1)}."
    if not x or not y:
        return told
    told += f" Treatment {listed(x)}, outcome {listed(y)}, adjusted for {listed(given) or 'nothing'}."
    if not biased:
        return told + " No path is open but the causal ones."
    more = f" and {len(biased) - 1} more" if len(biased) > 1 else ""
    return f"{told} Open path: {biased[0]}{more}."
