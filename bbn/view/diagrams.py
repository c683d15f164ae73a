"""Diagrams beside the network itself: a learned structure against the truth, a junction tree, a table as a heat map."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from bbn.core.errors import ModelError
from bbn.core.keywords import keywords_checked
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.view.colours import (
    EDGE,
    EXTRA,
    HEAD,
    MISSING,
    REVERSED,
    RIGHT,
    SEPARATOR,
    SEPARATOR_EDGE,
    ink_on,
)
from bbn.view.layout import layered
from bbn.view.measures import ROW, TITLE, clipped, text_width
from bbn.view.scene import Box, Curve, Drawing, Words

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes


@keywords_checked
def plot_compare(learned: Any, truth: Any) -> Drawing:
    """Two structures over the same variables in one picture.

    Grey arcs are in both; missing ones (in the truth alone) are dashed and orange, extra ones (learned alone)
    green, reversed ones violet, drawn as learned.

    Parameters
    ----------
    learned : networkx.DiGraph, BayesianNetwork or list of arcs
        The structure looked at.
    truth : networkx.DiGraph, BayesianNetwork or list of arcs
        The structure that it should be.

    Returns
    -------
    Drawing
        Shows itself in a notebook; `save("x.svg")` writes it.

    See Also
    --------
    compare : The same in numbers.

    Examples
    --------
    >>> picture = plot_compare([("A", "B"), ("C", "B")], [("B", "A"), ("C", "B"), ("A", "C")])
    >>> picture.description
    'Learned against true structure: 1 right, 1 missing, 0 extra, 1 reversed.'
    """
    ours, names = arcs_and_names(learned)
    true, others = arcs_and_names(truth)
    names += [name for name in others if name not in set(names)]
    if not names:
        raise ModelError("there is nothing to compare: neither structure has a variable")
    kinds: dict[tuple[str, str], str] = {}
    for arc in ours:
        kinds[arc] = "right" if arc in true else "reversed" if arc[::-1] in true else "extra"
    for arc in true:
        if arc not in ours and arc[::-1] not in ours:
            kinds[arc] = "missing"
    style = {
        "right": (RIGHT, 1.2, False),
        "missing": (MISSING, 2.2, True),
        "extra": (EXTRA, 2.2, False),
        "reversed": (REVERSED, 2.2, False),
    }
    order = acyclic(names, true, list(kinds))
    plan = layered({name: (2 * 8 + text_width(clipped(name), bold=True), 22.0) for name in names}, order)
    shapes: list[Box | Words | Curve] = []
    for arc, kind in kinds.items():
        path = plan.arcs[arc] if arc in plan.arcs else plan.arcs[arc[::-1]][::-1]
        colour, width, dashed = style[kind]
        shapes.append(Curve(tuple(path), colour, width, dashed, title=f"{arc[0]} → {arc[1]}: {kind}"))
    for name in names:
        x, y = plan.centres[name]
        width = 2 * 8 + text_width(clipped(name), bold=True)
        shapes += [
            Box(x - width / 2, y - 11, width, 22, HEAD, EDGE, 4),
            Words(x, y + 4, clipped(name), anchor="middle", bold=True),
        ]
    count = {kind: list(kinds.values()).count(kind) for kind in style}
    x = 0.0
    for kind, (colour, line, dashed) in style.items():
        text = f"{count[kind]} {kind}"
        y = plan.height + 27
        shapes.append(Curve(((x, y), (x + 22, y)), colour, line, dashed, arrow=False))
        shapes.append(Words(x + 28, plan.height + 31, text, colour=colour))
        x += 44 + text_width(text)
    told = ", ".join(f"{count[kind]} {kind}" for kind in style)
    return Drawing(
        max(plan.width, x), plan.height + 36, tuple(shapes), f"Learned against true structure: {told}."
    )


@keywords_checked
def plot_junction_tree(net: BayesianNetwork, order: str = "min-fill") -> Drawing:
    """The junction tree of a network's discrete variables: cliques as cards, their separators on the lines between.

    Parameters
    ----------
    net : BayesianNetwork
        The network.
    order : str, default "min-fill"
        The rule that chooses the elimination order: "min-fill", "weighted-min-fill", "min-weight" or
        "min-neighbours".

    Returns
    -------
    Drawing
        Shows itself in a notebook; `save("x.svg")` writes it.

    Raises
    ------
    ValueError
        There is no such rule.

    See Also
    --------
    JunctionTree.stats : The size of the tree in numbers.

    Examples
    --------
    >>> import bbn
    >>> plot_junction_tree(bbn.example("asia")).description
    'Junction tree of 6 cliques, the largest of 3 variables.'
    """
    from bbn.model.graphs import junction_tree, moral_graph

    net = net.discrete_part()
    tree = junction_tree(moral_graph(net.graph), {v.name: v.card for v in net.variables}, order)
    cliques = list(tree)
    lines = {", ".join(clique): _wrapped(list(clique)) for clique in cliques}
    sizes = {name: (16 + max(map(text_width, rows)), 10 + ROW * len(rows)) for name, rows in lines.items()}
    separators: dict[str, str] = {}
    arcs: list[tuple[str, str]] = []
    for above, below in _from_roots(tree):  # a separator is a node of the drawing between its two cliques
        text = ", ".join(tree.edges[above, below]["separator"]) or "∅"
        place = f"{', '.join(above)} | {', '.join(below)}"
        separators[place] = text
        sizes[place] = (10 + text_width(text), 18.0)
        arcs += [(", ".join(above), place), (place, ", ".join(below))]
    plan = layered(sizes, arcs, gap=28, layer_gap=22)
    shapes: list[Box | Words | Curve] = []
    for (one, other), path in plan.arcs.items():
        (x0, y0), (x1, y1) = plan.centres[one], plan.centres[other]
        ends = ((x0, y0 + sizes[one][1] / 2), *path, (x1, y1 - sizes[other][1] / 2))
        shapes.append(Curve(ends, arrow=False))
    for place, text in separators.items():
        (x, y), (width, height) = plan.centres[place], sizes[place]
        shapes += [
            Box(
                x - width / 2,
                y - height / 2,
                width,
                height,
                SEPARATOR,
                SEPARATOR_EDGE,
                title=f"separator {text}",
            ),
            Words(x, y + 4, text, size=10, anchor="middle"),
        ]
    for name, rows in lines.items():
        (x, y), (width, height) = plan.centres[name], sizes[name]
        shapes.append(Box(x - width / 2, y - height / 2, width, height, HEAD, EDGE, 8))
        for i, line in enumerate(rows):
            shapes.append(Words(x, y - height / 2 + 16 + ROW * i, line, anchor="middle"))
    most = max(map(len, cliques))
    told = (
        f"Junction tree of {len(cliques)} clique{'s' * (len(cliques) != 1)}, "
        f"the largest of {most} variable{'s' * (most != 1)}."
    )
    return Drawing(plan.width, plan.height, tuple(shapes), told)


@keywords_checked
def plot_cpt(cpt: CPT) -> Drawing:
    """A conditional table as a heat map: a row per setting of the parents, a column per state.

    Parameters
    ----------
    cpt : CPT
        The table.

    Returns
    -------
    Drawing
        Shows itself in a notebook; `save("x.svg")` writes it.

    Raises
    ------
    ModelError
        It is not a table.

    See Also
    --------
    BayesianNetwork.plot : The whole network.

    Examples
    --------
    >>> import bbn
    >>> plot_cpt(bbn.example("campfire")["Campfire"]).description
    'P(Campfire | Storm, BusTourGroup), 4 rows by 2 columns.'
    """
    if not isinstance(cpt, CPT):
        raise ModelError(f"a heat map needs a CPT, found {cpt!r}")
    rows = cpt.table.reshape(-1, cpt.variable.card)
    if len(rows) > 512:
        raise ModelError(f"CPT {cpt.name!r} has {len(rows)} rows; a heat map of more than 512 is not legible")
    settings = list(product(*(p.states for p in cpt.parents)))
    heads = [p.name for p in cpt.parents]
    widths = [
        14 + max([text_width(head, bold=True), *(text_width(str(s)) for s in parent.states)])
        for head, parent in zip(heads, cpt.parents, strict=True)
    ]
    cell = max(48.0, *(12 + text_width(str(s)) for s in cpt.variable.states))
    left = sum(widths)
    shapes: list[Box | Words | Curve] = []
    given = f" | {', '.join(heads)}" if heads else ""
    shapes.append(Words(0, 12, f"P({cpt.name}{given})", size=12, bold=True))
    top = 22 + TITLE
    x = 0.0
    for head, width in zip(heads, widths, strict=True):
        shapes.append(Words(x, top - 6, head, bold=True))
        x += width
    for j, state in enumerate(cpt.variable.states):
        shapes.append(Words(left + cell * (j + 0.5), top - 6, str(state), anchor="middle", bold=True))
    for i, (setting, row) in enumerate(zip(settings, rows.tolist(), strict=True)):
        y = top + 20 * i
        x = 0.0
        for state, width in zip(setting, widths, strict=True):
            shapes.append(Words(x, y + 14, str(state)))
            x += width
        for j, p in enumerate(row):
            shade = _shade(p)
            shapes.append(Box(left + cell * j, y, cell - 1, 19, shade))
            shapes.append(Words(left + cell * (j + 0.5), y + 13.5, f"{p:.3g}", 10, ink_on(shade), "middle"))
    told = f"P({cpt.name}{given}), {len(rows)} rows by {cpt.variable.card} columns."
    width = max(left + cell * cpt.variable.card, text_width(f"P({cpt.name}{given})", bold=True) * 1.1)
    return Drawing(width, top + 20 * len(rows), tuple(shapes), told)


@keywords_checked
def plot_log_likelihood(result: Any, axes: Axes | None = None) -> Axes:
    """The log-likelihood of a learning run by iteration, and with a prior its objective too.

    Parameters
    ----------
    result : FitResult
        What `bbn.fit_em`, `bbn.fit_gradient` or `bbn.structural_em` gave back.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default on new ones.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    See Also
    --------
    fit_em : A learning run.
    """
    if axes is None:
        import matplotlib.pyplot as plt

        axes = plt.subplots(figsize=(6, 3.5), layout="constrained")[1]
    axes.plot(list(result.log_likelihoods), marker=".", label="log-likelihood")
    objectives = getattr(result, "objectives", None)
    if objectives is not None and list(objectives) != list(result.log_likelihoods):
        axes.plot(list(objectives), marker=".", linestyle="--", label="with log prior")
        axes.legend()
    axes.set_xlabel("iteration")
    axes.set_ylabel("ln P(data)")
    return axes


def arcs_and_names(structure: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """The arcs and nodes of a network, a DiGraph, or a list of arcs."""
    if isinstance(structure, BayesianNetwork):
        return list(structure.arcs), list(structure.names)
    if hasattr(structure, "edges") and hasattr(structure, "nodes"):
        return [(a, b) for a, b in structure.edges], list(structure.nodes)
    arcs = [(a, b) for a, b in structure]
    return arcs, list(dict.fromkeys(name for arc in arcs for name in arc))


def acyclic(
    names: list[str], first: Iterable[tuple[str, str]], others: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The arcs as far as they make no cycle, `first` before `others`; the rest turned round."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    for a, b in [*first, *others]:
        if graph.has_edge(a, b) or graph.has_edge(b, a):
            continue
        if nx.has_path(graph, b, a):
            a, b = b, a
        graph.add_edge(a, b)
    return list(graph.edges)


def _from_roots(tree: nx.Graph[Any]) -> list[tuple[Any, Any]]:
    """The edges of a forest, each pointing away from the middle of its tree."""
    import networkx as nx

    edges: list[tuple[Any, Any]] = []
    for part in nx.connected_components(tree):
        nodes = [node for node in tree if node in part]
        root = nx.center(tree.subgraph(nodes))[0] if len(nodes) > 1 else nodes[0]
        edges += nx.bfs_edges(tree, root)
    return edges


def _wrapped(words: list[str], width: float = 170.0) -> list[str]:
    lines = [""]
    for i, word in enumerate(words):
        piece = word + ("," if i < len(words) - 1 else "")
        if lines[-1] and text_width(lines[-1] + " " + piece) > width:
            lines.append(piece)
        else:
            lines[-1] = f"{lines[-1]} {piece}".strip()
    return lines


def _shade(p: float) -> str:
    """White to blue."""
    low, high = (255, 255, 255), (38, 84, 132)
    return "#" + "".join(f"{round(a + (b - a) * p):02x}" for a, b in zip(low, high, strict=True))
