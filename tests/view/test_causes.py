"""The picture of a causal graph: roles, causal paths and open paths, in colour and in words."""

import pytest

import bbn
from bbn.view.colours import ADJUSTED, CAUSAL, HIDDEN, INK, OPEN, OUTCOME, PAPER, TREATMENT, contrast
from bbn.view.scene import Box, Curve, Words

M_GRAPH = bbn.CausalGraph([("A", "X"), ("A", "M"), ("B", "M"), ("B", "Y"), ("X", "Y")])


def coloured(picture, colour):
    return {
        shape.title.split(":")[0]
        for shape in picture.shapes
        if isinstance(shape, Curve) and shape.colour == colour
    }


def test_adjusting_for_a_collider_opens_a_path():
    closed, opened = M_GRAPH.plot("X", "Y"), M_GRAPH.plot("X", "Y", "M")
    assert coloured(closed, CAUSAL) == coloured(opened, CAUSAL) == {"X → Y"}
    assert coloured(closed, OPEN) == set()
    assert coloured(opened, OPEN) == {"A → X", "A → M", "B → M", "B → Y"}
    assert closed.description.endswith("No path is open but the causal ones.")
    assert opened.description.endswith("Open path: X ← A → M ← B → Y.")


def test_every_role_is_told_in_words_and_colour():
    picture = bbn.CausalGraph([("Z", "X"), ("X", "Y"), ("U", "X")], [("X", "Y")], latent="U").plot(
        "X", "Y", "Z"
    )
    words = [shape.text for shape in picture.shapes if isinstance(shape, Words)]
    assert {"treatment", "outcome", "adjusted for", "hidden"} <= set(words)
    fills = {shape.fill for shape in picture.shapes if isinstance(shape, Box)}
    assert {TREATMENT, OUTCOME, ADJUSTED, HIDDEN} <= fills
    dashed = {
        shape.title.split(":")[0] for shape in picture.shapes if isinstance(shape, Curve) and shape.dashed
    }
    assert dashed == {"hidden cause → X", "hidden cause → Y", "U → X"}
    assert "<svg" in picture.svg


def test_the_key_shows_each_colour_left_of_its_words():
    shapes = M_GRAPH.plot("X", "Y", "M").shapes
    for colour, text in ((CAUSAL, "causal path"), (OPEN, "open path that is not causal")):
        (patch,) = [shape for shape in shapes if isinstance(shape, Box) and shape.fill == colour]
        (words,) = [shape for shape in shapes if isinstance(shape, Words) and shape.text == text]
        assert 0 < words.x - (patch.x + patch.width) < 10
        assert words.y - words.size < patch.y + patch.height / 2 < words.y
    assert not any(isinstance(shape, Words) and "path" in shape.text for shape in M_GRAPH.plot().shapes)


def test_colours_stand_out():
    for fill in (TREATMENT, OUTCOME, ADJUSTED, HIDDEN):
        assert contrast(fill, INK) >= 4.5
    for line in (CAUSAL, OPEN):
        assert contrast(line, PAPER) >= 3


def test_plain_graphs_odd_names_and_unknown_ones(tmp_path):
    plain = bbn.CausalGraph([('a <b> & "c"', "é")]).plot()
    assert plain.description == "Causal graph of 2 variables."
    plain.save(tmp_path / "plain.svg")
    with pytest.raises(bbn.EvidenceError, match="no variable"):
        M_GRAPH.plot("X", "Q")
