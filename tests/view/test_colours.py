"""Everyone can see it: contrast of the pictures and of the page in both schemes, words that stand for pictures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import bbn
from bbn.view.colours import BELIEF, LIKELY, OBSERVED, PAPER, TRACK, contrast, ink_on
from bbn.view.scene import Box, Curve, Drawing, Words

CSS = (Path(bbn.__file__).parent / "view" / "page" / "static" / "explore.css").read_text()
TEXT, GRAPHICS = 4.5, 3.0


def pictures() -> dict[str, Drawing]:
    asia = bbn.example("asia")
    seen = {
        "xray": "yes",
        "smoke": bbn.Virtual({"yes": 0.8, "no": 0.2}),
        "bronc": bbn.Soft({"yes": 0.5, "no": 0.5}),
    }
    x, y = bbn.Variable("X", range(26)), bbn.Variable("Y", ["a", "b"])
    shares = np.linspace(0, 1, 26)
    ramp = bbn.CPT(y, [x], np.stack([shares, 1 - shares], axis=1))
    return {
        "network": asia.plot(seen),
        "information": asia.plot(information=True),
        "structure": asia.plot(beliefs=False),
        "titled": asia.plot(focus="tub", title="Around tuberculosis"),
        "graph": bbn.plot_graph([("A", "B"), ("B", "A"), ("A", "C")], title="A structure"),
        "junction tree": bbn.plot_junction_tree(asia),
        "comparison": bbn.plot_compare(
            [("A", "B"), ("C", "B"), ("B", "D")], [("B", "A"), ("C", "B"), ("A", "C")]
        ),
        "table": bbn.plot_cpt(ramp),
    }


def test_contrast_is_that_of_the_standard():
    # Worked examples of the Web Content Accessibility Guidelines and of contrast checkers.
    assert contrast("#ffffff", "#000000") == 21
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast("#ff0000", "#ffffff") == pytest.approx(4.0, abs=0.005)
    assert contrast("#123456", "#123456") == 1


@pytest.mark.parametrize("name", pictures())
def test_words_and_lines_of_pictures_stand_out(name):
    shapes = pictures()[name].shapes
    for i, shape in enumerate(shapes):
        if isinstance(shape, Words):
            behind = PAPER
            for box in shapes[:i]:
                if isinstance(box, Box) and box.fill != "none":
                    within = box.x - 1 <= shape.x <= box.x + box.width + 1
                    if within and box.y <= shape.y - 3 <= box.y + box.height:
                        behind = box.fill
            assert contrast(shape.colour, behind) >= TEXT, (shape, behind)
        elif isinstance(shape, Curve):
            assert contrast(shape.colour, PAPER) >= GRAPHICS, shape
        elif shape.stroke != "none":
            assert contrast(shape.stroke, PAPER) >= GRAPHICS, shape


def test_bars_stand_out_from_their_track_and_from_each_other_by_words():
    for colour in (BELIEF, OBSERVED, LIKELY):
        assert contrast(colour, TRACK) >= GRAPHICS
    for grey in range(256):
        shade = f"#{grey:02x}{grey:02x}{grey:02x}"
        assert contrast(ink_on(shade), shade) >= TEXT
    # Evidence is told in words too, not by colour alone.
    assert "given xray = yes" in pictures()["network"].description


def scheme(dark: bool) -> dict[str, str]:
    """The colours of the page by name."""
    head, dark_part = (
        re.search(r":root \{(.*?)\n\}", CSS, re.S)[1],
        re.search(r"dark\) \{(.*?)\n\}", CSS, re.S)[1],
    )
    found = dict(re.findall(r"--([\w-]+): (#\w{6});", head))
    if dark:
        other = dict(re.findall(r"--([\w-]+): (#\w{6});", dark_part))
        assert set(other) == set(found)
        found = other
    return found


@pytest.mark.parametrize("dark", [False, True])
def test_the_page_stands_out_in_both_schemes(dark):
    colour = scheme(dark)
    for ink, behind in [
        *(("ink", behind) for behind in ("paper", "pale", "hover", "head", "head-observed")),
        ("soft", "paper"),
        ("soft", "pale"),
        ("on-chosen", "chosen"),
        ("wrong", "pale"),
    ]:
        assert contrast(colour[ink], colour[behind]) >= TEXT, (ink, behind)
    for line, behind in [
        *((bar, behind) for bar in ("bar", "observed", "likely") for behind in ("paper", "track")),
        ("arc", "paper"),
        ("edge", "paper"),
        ("edge", "pale"),
        *(("focus", behind) for behind in ("paper", "pale", "head", "hover")),
    ]:
        assert contrast(colour[line], colour[behind]) >= GRAPHICS, (line, behind)


def test_the_page_uses_no_other_colours():
    rules = CSS.split("}\n}\n", 1)[1]
    assert not re.findall(r"#[0-9a-fA-F]{3,6}\b(?![^{]*\{)", rules)


def test_motion_is_for_those_who_want_it():
    assert re.findall(r"transition", CSS) == ["transition"]
    assert re.search(r"prefers-reduced-motion: no-preference\) \{[^}]*transition", CSS)


@pytest.mark.parametrize("name", pictures())
def test_pictures_say_what_they_show(name):
    root = ET.fromstring(pictures()[name].svg)
    first = next(iter(root))
    assert root.get("role") == "img"
    assert first.tag.endswith("title")
    assert first.text


def test_the_words_of_a_network_name_its_arcs_and_beliefs():
    asia = bbn.example("asia")
    svg = asia.plot({"xray": "yes"}).svg
    told = ET.fromstring(svg).find("{http://www.w3.org/2000/svg}desc").text
    assert "asia to tub" in told
    assert f"lung = no ({asia.query('lung', {'xray': 'yes'})['no']:.1%})" in told
    assert "xray = yes (100%)" in told
