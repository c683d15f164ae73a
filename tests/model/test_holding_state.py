"""Which of two states holds: by the words in any order and capitals, as told, or an error names what would tell."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest

import bbn
from bbn.io import dumps, loads

KNOWN = [
    ("yes", "no"),
    ("Yes", "NO"),
    (True, False),
    (1, 0),
    ("present", "absent"),
    ("positive", "negative"),
    ("on", "off"),
    ("treated", "control"),
]
UNKNOWN = [("low", "high"), ("ok", "broken"), ("female", "male"), (1, 2), ("a", "b"), ("yes", "maybe")]
ORDERED = [(pair[::way], pair[0]) for pair in KNOWN for way in (1, -1)]
UNTOLD = [pair[::way] for pair in UNKNOWN for way in (1, -1)]


def pair_network(states):
    """A cause and an effect with these states; the effect is likelier where the cause is in its first state."""
    cause, effect = bbn.Variable("X", states), bbn.Variable("Y", states)
    return bbn.BayesianNetwork(
        [bbn.CPT(cause, table=[0.4, 0.6]), bbn.CPT(effect, [cause], [[0.7, 0.3], [0.2, 0.8]])]
    )


@pytest.mark.parametrize(("states", "holds"), ORDERED)
def test_known_words_tell_in_every_place(states, holds):
    cause, effect = bbn.Variable("X", states), bbn.Variable("Y", states)
    fails = next(s for s in states if s != holds)
    link = np.zeros((2, 2))
    link[states.index(fails), states.index(fails)] = 1.0
    link[states.index(holds)] = 0.25 if states[0] == holds else 0.75
    link[states.index(holds), states.index(holds)] = 0.25
    link[states.index(holds), states.index(fails)] = 0.75
    for node in (bbn.NoisyOr(effect, [cause], [0.25]), bbn.NoisyMax(effect, [cause], [link])):
        assert node.strongest == holds
        assert node.row(holds)[holds] == 0.25
        assert node.row(fails)[holds] == 0.0
    net = pair_network(states)
    found = bbn.causation_bounds(net, "X", "Y")
    assert (found.cause_state, found.effect_state) == (holds, holds)
    assert found == bbn.causation_bounds(net, "X", "Y", cause_state=holds, effect_state=holds)
    rows = net.sample(300, seed=1)
    answer = bbn.effect(rows, net, "X", "Y", interval=None)
    assert (answer.treated, answer.control) == (holds, fails)
    assert answer.event in (holds, None)  # numbers are averaged


@pytest.mark.parametrize("states", UNTOLD)
def test_unknown_words_are_asked_for_by_the_option_that_tells(states):
    cause, effect = bbn.Variable("X", states), bbn.Variable("Y", states)
    first = repr(states[0])
    with pytest.raises(bbn.ModelError, match=rf"NoisyMax 'Y'.*say strongest={first} or strongest="):
        bbn.NoisyMax(effect, [cause], [np.eye(2)])
    with pytest.raises(bbn.ModelError, match=rf"say holds={{'Y': {first}}}"):
        bbn.NoisyOr(effect, [cause], [0.5])
    with pytest.raises(bbn.ModelError, match=rf"say holds={{'X': {first}}}"):
        bbn.NoisyOr(effect, [cause], [0.5], holds={"Y": states[0]})
    net = pair_network(states)
    with pytest.raises(bbn.EvidenceError, match=rf"say cause_state={first} or cause_state="):
        bbn.causation_bounds(net, "X", "Y")
    with pytest.raises(bbn.EvidenceError, match=rf"say effect_state={first} or effect_state="):
        bbn.causation_bounds(net, "X", "Y", cause_state=states[0])
    rows = net.sample(300, seed=1)
    with pytest.raises(bbn.EvidenceError, match=r"say treated="):
        bbn.effect(rows, net, "X", "Y", interval=None)
    answer = bbn.effect(rows, net, "X", "Y", control=states[0], event=states[1], interval=None)
    assert (answer.treated, answer.control, answer.event) == (states[1], states[0], states[1])
    if not isinstance(states[0], int):
        with pytest.raises(bbn.EvidenceError, match=r"say event="):
            bbn.effect(rows, net, "X", "Y", treated=states[0], interval=None)


@pytest.mark.parametrize(("states", "end"), [*product(UNTOLD, (0, 1))])
def test_what_is_told_is_taken_and_said(states, end):
    cause, effect = bbn.Variable("X", states), bbn.Variable("Y", states)
    strongest, weakest = states[end], states[1 - end]
    row = {strongest: 0.75, weakest: 0.25}
    node = bbn.NoisyMax(effect, [cause], [dict.fromkeys(states, row)], strongest=strongest)
    assert node.strongest == strongest
    assert f"{strongest} being the strongest state" in str(node)
    net = bbn.BayesianNetwork([bbn.CPT(cause, table=[0.5, 0.5]), node])
    for format in ("yaml", "json", "xdsl"):
        if format == "xdsl" and not isinstance(states[0], str):
            continue
        assert loads(dumps(net, format), format)["Y"].strongest == strongest


def test_several_states_of_an_effect_are_not_guessed():
    cause, effect = bbn.Variable("X", ["no", "yes"]), bbn.Variable("Y", ["none", "mild", "high"])
    net = bbn.BayesianNetwork(
        [bbn.CPT(cause, table=[0.4, 0.6]), bbn.CPT(effect, [cause], [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]])]
    )
    with pytest.raises(bbn.EvidenceError, match="effect_state="):
        bbn.causation_bounds(net, "X", "Y")
    found = bbn.causation_bounds(net, "X", "Y", effect_state="high")
    assert (found.cause_state, found.effect_state) == ("yes", "high")
    assert len(found) == 3
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.cause_state, again.effect_state) == (found, "yes", "high")
    assert "effect_state='high'" in repr(found)


@pytest.mark.parametrize("states", [("no", "yes"), ("yes", "no"), ("low", "high"), ("high", "low")])
def test_xdsl_follows_the_file_and_not_the_words(states):
    first, second = states
    text = f"""<smile version="1.0" id="n"><nodes>
    <cpt id="X"><state id="{first}" /><state id="{second}" /><probabilities>0.4 0.6</probabilities></cpt>
    <noisymax id="Y"><state id="{first}" /><state id="{second}" /><parents>X</parents>
    <strengths>0 1</strengths><parameters>0.75 0.25 0 1 0.125 0.875</parameters></noisymax></nodes></smile>"""
    net = loads(text, "xdsl")
    assert net["Y"].strongest == first
    # the weaker of both effects shows only if the link and the leak both give it
    assert net["Y"].row(first)[second] == pytest.approx(0.25 * 0.875)
    assert net["Y"].row(second)[second] == pytest.approx(0.875)


@pytest.mark.parametrize("states", [("no", "yes"), ("high", "low")])
def test_net_keeps_the_table_whatever_the_words(states):
    net = pair_network(states)
    assert loads(dumps(net, "net"), "net") == net


def test_a_document_of_unknown_words_must_say_which_is_the_strongest():
    text = """nodes:
  X: {states: [low, high], table: [0.4, 0.6]}
  Y: {type: noisy-max, states: [low, high], parents: [X], links: {X: [[1, 0], [0.5, 0.5]]}%s}
"""
    with pytest.raises(bbn.ParseError, match="say strongest: low or strongest: high") as caught:
        loads(text % "")
    assert caught.value.line == 3
    for state in ("low", "high"):
        assert loads(text % f", strongest: {state}")["Y"].strongest == state
