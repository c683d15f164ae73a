"""Pictures: what a layout promises, well-formed SVG for any names, files, and what is drawn for what."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

import bbn
from bbn.view.cards import _Card
from bbn.view.layout import layered
from bbn.view.scene import Box, Curve, Drawing, Words
from tests.support.strategies import networks


@pytest.mark.parametrize("seed", range(30))
def test_layouts_put_parents_above_children_and_no_node_on_another(seed: int) -> None:
    rng = np.random.default_rng([4, seed])
    n = int(rng.integers(1, 40))
    sizes = {f"n{i}": (float(rng.uniform(20, 90)), float(rng.uniform(15, 60))) for i in range(n)}
    arcs = [(f"n{i}", f"n{j}") for j in range(n) for i in range(j) if rng.random() < 2.5 / n]
    plan = layered(sizes, arcs)
    for parent, child in arcs:
        bottom = plan.centres[parent][1] + sizes[parent][1] / 2
        assert bottom < plan.centres[child][1] - sizes[child][1] / 2
        path = plan.arcs[parent, child]
        assert all(a[1] <= b[1] for a, b in itertools.pairwise(path))
    names = list(sizes)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            across = abs(plan.centres[a][0] - plan.centres[b][0]) - (sizes[a][0] + sizes[b][0]) / 2
            along = abs(plan.centres[a][1] - plan.centres[b][1]) - (sizes[a][1] + sizes[b][1]) / 2
            assert across > -1e-6 or along > -1e-6, (a, b)
    for name, (x, y) in plan.centres.items():
        assert x - sizes[name][0] / 2 >= -1e-6
        assert x + sizes[name][0] / 2 <= plan.width + 1e-6
        assert y - sizes[name][1] / 2 >= -1e-6
        assert y + sizes[name][1] / 2 <= plan.height + 1e-6


def test_long_arcs_pass_beside_the_nodes_between() -> None:
    sizes = dict.fromkeys("abcd", (40.0, 20.0))
    plan = layered(sizes, [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    for x, y in plan.arcs["a", "d"][1:-1]:
        for name in "bc":
            cx, cy = plan.centres[name]
            assert abs(x - cx) >= 20 or abs(y - cy) >= 10 - 1e-6


def test_a_tree_has_no_crossings() -> None:
    arcs = [(f"n{(i - 1) // 2}", f"n{i}") for i in range(1, 31)]
    order = np.random.default_rng(3).permutation(31)
    plan = layered({f"n{i}": (30.0, 20.0) for i in order}, arcs)
    by_layer: dict[tuple[float, float], list[tuple[float, float]]] = {}
    for parent, child in arcs:
        (x0, y0), (x1, y1) = plan.centres[parent], plan.centres[child]
        by_layer.setdefault((y0, y1), []).append((x0, x1))
    for lines in by_layer.values():
        lines.sort()
        assert [x1 for _, x1 in lines] == sorted(x1 for _, x1 in lines)


@settings(max_examples=40, deadline=None)
@given(networks(max_nodes=6))
def test_any_network_draws_as_well_formed_svg(net: bbn.BayesianNetwork) -> None:
    text = net.plot(beliefs=False).svg
    root = ET.fromstring("".join(c for c in text if c.isprintable() or c == "\n"))
    shown = {e.text for e in root.iter("{http://www.w3.org/2000/svg}text")}
    for name in net.names:
        if name.isprintable() and name == name.strip():
            assert name in shown


def test_svg_holds_no_character_that_xml_forbids() -> None:
    net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("bell\x07", ["a\x00b", "<&>"]), table=[0.5, 0.5])])
    shown = {e.text for e in ET.fromstring(net.plot().svg).iter("{http://www.w3.org/2000/svg}text")}
    assert {"bell\ufffd", "a\ufffdb", "<&>"} <= shown


def test_bars_are_the_posteriors() -> None:
    net = bbn.example("asia")
    picture = net.plot({"xray": "yes"})
    titles = {shape.title for shape in picture.shapes if isinstance(shape, Box)}
    assert f"P(lung=yes) = {net.query('lung', {'xray': 'yes'})['yes']:.6g}" in titles
    assert "P(xray=yes) = 1" in titles
    assert sum(isinstance(shape, Curve) for shape in picture.shapes) == len(net.arcs)
    assert picture.description.startswith("Bayesian network asia, 8 nodes, given xray = yes.")


def test_wide_arcs_carry_more_information() -> None:
    arcs = {
        s.title.split(":")[0]: s.width
        for s in bbn.example("asia").plot(information=True).shapes
        if isinstance(s, Curve)
    }
    assert arcs["lung → either"] > arcs["asia → tub"]


def test_cards_with_many_states_show_the_most_probable() -> None:
    card = _Card("X", tuple(range(30)), [float(i == 20) for i in range(30)], True)
    assert "20" in [state for state, _ in card.rows]
    assert card.left_out == 30 - len(card.rows)


@pytest.mark.parametrize(("suffix", "magic"), [(".svg", b"<svg"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_pictures_are_saved_by_suffix(tmp_path: Path, suffix: str, magic: bytes) -> None:
    path = tmp_path / f"x{suffix}"
    bbn.example("sprinkler").plot().save(path)
    assert path.read_bytes().startswith(magic)


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.svg, \.png or \.pdf"):
        bbn.example("sprinkler").plot().save(tmp_path / "x.doc")
    assert list(tmp_path.iterdir()) == []


def test_comparison_counts_each_kind() -> None:
    picture = bbn.plot_compare([("A", "B"), ("C", "B"), ("B", "D")], [("B", "A"), ("C", "B"), ("A", "C")])
    kinds = sorted(s.title.rsplit(": ", 1)[1] for s in picture.shapes if isinstance(s, Curve) and s.arrow)
    assert kinds == ["extra", "missing", "reversed", "right"]


def test_junction_trees_show_their_separators() -> None:
    words = [s.text for s in bbn.plot_junction_tree(bbn.example("asia")).shapes if isinstance(s, Words)]
    assert "lung, either" in words or "either, lung" in words


def test_charts_draw_on_given_axes() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    net = bbn.example("asia")
    assert net.explain("lung", {"xray": "yes"}).plot(axes) is axes
    assert net.sensitivity("lung", {"xray": "yes"}).plot(axes=axes) is axes
    assert net.plot().axes(axes) is axes


def test_a_drawing_shows_itself() -> None:
    drawing = Drawing(10, 10, (Words(0, 5, "a < b"),), "words")
    assert drawing._repr_svg_() == drawing.svg
    assert "a &lt; b" in drawing.svg
    assert bbn.example("asia")._repr_svg_().startswith("<svg")


def test_long_names_are_cut_and_read_in_full_by_a_pointer() -> None:
    name, state = "n" * 300, "s" * 200
    net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable(name, [state, "no"]), table=[0.25, 0.75])])
    picture = net.plot()
    assert picture.width < 600
    assert f"P({name}={state}) = 0.25" in {shape.title for shape in picture.shapes if isinstance(shape, Box)}


def test_nothing_to_compare_is_said() -> None:
    with pytest.raises(bbn.ModelError, match="nothing to compare"):
        bbn.plot_compare([], [])


def curves(picture: Drawing) -> dict[str, Curve]:
    return {shape.title: shape for shape in picture.shapes if isinstance(shape, Curve)}


def test_a_graph_without_tables_shows_arcs_and_undirected_edges() -> None:
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c"), ("d", "c")])
    drawn = curves(bbn.plot_graph(graph))
    assert {title: curve.arrow for title, curve in drawn.items()} == {
        "a — b": False,
        "b → c": True,
        "d → c": True,
    }
    for title, curve in drawn.items():  # every arrow points down
        assert curve.points[0][1] < curve.points[-1][1] or title == "a — b"


def test_strong_arcs_are_wide_and_weak_ones_dashed() -> None:
    graph = nx.DiGraph()
    graph.add_edge("a", "b", strength=1.0)
    graph.add_edge("b", "c", strength=0.25)
    graph.add_edge("a", "c")
    graph.add_edge("c", "d", strength=0.1)
    graph.add_edge("d", "c", strength=0.8)
    drawn = curves(bbn.plot_graph(graph))
    assert {title: (curve.width, curve.dashed) for title, curve in drawn.items()} == {
        "a → b: 1": (pytest.approx(5.0), False),
        "b → c: 0.25": (pytest.approx(0.6 + 4.4 * 0.25), True),
        "a → c": (1.2, False),
        "c — d: 0.8": (pytest.approx(0.6 + 4.4 * 0.8), False),
    }
    learned = bbn.arc_strength(bbn.example("asia").sample(200, seed=1), n=3, seed=0).network(0.5)
    assert len(curves(bbn.plot_graph(learned))) == learned.number_of_edges()


def test_graphs_of_any_names_and_with_cycles_are_drawn() -> None:
    graph = nx.DiGraph([(1, "1"), ("1", ("x", 2)), (("x", 2), 1)])
    assert set(curves(bbn.plot_graph(graph))) == {"1 → 1", "1 → ('x', 2)", "('x', 2) → 1"}
    alone = nx.DiGraph()
    alone.add_node("only")
    assert bbn.plot_graph(alone).description == "Structure of 1 node, 0 arcs."
    assert set(curves(bbn.plot_graph(bbn.example("sprinkler")))) == {
        f"{a} → {b}" for a, b in bbn.example("sprinkler").arcs
    }


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ([], "nothing to draw"),
        ([("a", "a")], "from 'a' to itself"),
        (nx.DiGraph([("a", "b", {"strength": 1.5})]), "strength is 1.5"),
        (nx.DiGraph([("a", "b", {"strength": float("nan")})]), "strength is nan"),
        (nx.DiGraph([("a", "b", {"strength": "high"})]), "strength is 'high'"),
    ],
)
def test_graphs_that_cannot_be_drawn_say_why(graph: object, said: str) -> None:
    with pytest.raises(bbn.ModelError, match=said):
        bbn.plot_graph(graph)


def test_focus_draws_a_neighbourhood_with_the_beliefs_of_the_whole() -> None:
    net, seen = bbn.example("asia"), {"xray": "yes"}
    picture = net.plot(seen, focus="tub", steps=1)
    titles = {shape.title for shape in picture.shapes if isinstance(shape, Box) and shape.title}
    assert {title[2:].split("=")[0] for title in titles} == {"asia", "tub", "either"}
    assert f"P(tub=yes) = {net.query('tub', seen)['yes']:.6g}" in titles
    assert set(curves(picture)) == {"asia → tub", "tub → either"}
    assert len(curves(net.plot(focus="tub", steps=9))) == len(net.arcs)
    assert set(curves(net.plot(focus="tub", steps=0))) == set()
    with pytest.raises(bbn.EvidenceError, match="did you mean 'tub'"):
        net.plot(focus="tubb")
    for steps in (-1, True, 1.5):
        with pytest.raises(bbn.EvidenceError, match="steps is"):
            net.plot(focus="tub", steps=steps)  # type: ignore[arg-type]


def test_a_title_stands_above_everything() -> None:
    plain, titled = bbn.example("asia").plot(), bbn.example("asia").plot(title="Chest <clinic>")
    heading = next(s for s in titled.shapes if isinstance(s, Words) and s.text == "Chest <clinic>")
    tops = [s.y for s in titled.shapes if isinstance(s, Box)]
    assert heading.y < min(tops)
    assert titled.height > plain.height
    assert titled.description == "Chest <clinic>. " + plain.description
    assert plain.titled("") is plain
    narrow = bbn.plot_graph([("a", "b")], title="A heading much wider than the picture below it")
    assert all(0 <= s.x <= narrow.width for s in narrow.shapes if isinstance(s, Box))
