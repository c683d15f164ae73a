"""Pictures of decision networks: ovals, squares, diamonds, what choices are worth, and words for all of it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import bbn
from bbn.view.scene import Diamond, Oval

SVG = "{http://www.w3.org/2000/svg}"


def test_each_kind_of_node_has_its_shape():
    dn = bbn.example("oil_wildcatter")
    for solved in (True, False):
        drawing = dn.plot(solved=solved)
        assert sum(isinstance(shape, Oval) for shape in drawing.shapes) == 2
        assert sum(isinstance(shape, Diamond) for shape in drawing.shapes) == 2
        root = ET.fromstring(drawing.svg)
        assert len(root.findall(f"{SVG}ellipse")) == 2
        texts = [element.text for element in root.iter(f"{SVG}text")]
        assert set(dn.names) <= set(texts)
        assert {"yes", "no"} <= set(texts)
        assert ("22.5" in texts) == solved
        dashed = [path for path in root.findall(f"{SVG}path") if path.get("stroke-dasharray")]
        assert len(dashed) == 2  # what Drill observes


def test_a_diamond_stands_on_the_middles_of_its_sides():
    """Four sides of one length, its middle that of the box, half of the box's area (by the shoelace formula)."""
    shape = Diamond(10, 20, 30, 8, "white")
    corners = np.array(shape.corners)
    assert corners.mean(axis=0).tolist() == [25, 24]
    assert sorted(corners[:, 0]) == [10, 25, 25, 40]
    assert sorted(corners[:, 1]) == [20, 24, 24, 28]
    after = np.roll(corners, -1, axis=0)
    assert np.ptp(np.hypot(*(after - corners).T)) < 1e-12
    area = (corners[:, 0] * after[:, 1] - corners[:, 1] * after[:, 0]).sum() / 2
    assert abs(area) == 30 * 8 / 2


def test_the_words_say_what_each_choice_is_worth():
    told = bbn.example("oil_wildcatter").plot().description
    assert "expected utility 22.5" in told
    assert "Test: yes is worth 22.5, no is worth 20" in told
    assert "Decisions: Test, Drill." in told
    known = bbn.example("troubleshooting").plot({"First": "cable", "WorksAfterFirst": "no"}).description
    assert "given First = cable, WorksAfterFirst = no" in known
    assert "First: " not in known


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_it_is_saved_in_every_format(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    bbn.example("umbrella_weather").plot({"Forecast": "rainy"}).save(path)
    assert path.stat().st_size > 1000


def test_odd_names_are_escaped():
    choice = bbn.Decision("<b>&", ["<i>", "x" * 300])
    dn = bbn.DecisionNetwork([choice, bbn.Utility('"U"', [choice], [1, 2])])
    ET.fromstring(dn.plot().svg)
    assert "<svg" in dn._repr_svg_()
