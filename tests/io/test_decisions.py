"""Decision networks in files: read back as they were in each format that holds them, what is wrong told by place."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import bbn
from bbn.io.registry import WITH_DECISIONS, dumps, loads
from tests.support.decision_truth import Diagram

MODELS = ("oil_wildcatter", "umbrella_weather", "treatment", "troubleshooting")


def odd_network() -> bbn.DecisionNetwork:
    """Names and states that formats must quote or replace, and every kind of utility."""
    rain = bbn.Variable("Will it rain?", ["yes, a lot", 'no "really"'])
    level = bbn.Variable("1st", [1, 2, 3])
    take = bbn.Decision("take-umbrella", [True, False], ["1st"])
    time = bbn.Utility("time spent", [take], [-1.5, 0.1 + 0.2])
    mood = bbn.Utility("mood", [rain, take], [[70.0, 1e-300], [20.0, 100.0]])
    fee = bbn.Utility("fee", [], -3.0)
    return bbn.DecisionNetwork(
        [
            bbn.CPT(rain, table=[0.3, 0.7]),
            bbn.CPT(level, [rain], [[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]]),
            take,
            time,
            mood,
            fee,
            bbn.Utility("all", [time, mood], combine="sum", weights=[2.0, 1 / 3]),
        ],
        name="odd",
        metadata={"description": "a, b", "recall": "text"},
    )


@pytest.mark.parametrize("format", WITH_DECISIONS)
@pytest.mark.parametrize("name", MODELS)
def test_examples_are_read_back_as_they_were(name, format, tmp_path):
    dn = bbn.example(name)
    path = tmp_path / f"x.{format}"
    dn.save(path)
    again = bbn.load(path)
    assert again == dn
    assert (again.name, dict(again.metadata), again.recall) == (dn.name, dict(dn.metadata), dn.recall)
    assert again.solve().expected_utility == dn.solve().expected_utility


@pytest.mark.parametrize("format", ["yaml", "json", "xdsl"])
@pytest.mark.filterwarnings("ignore::bbn.LossyFormatWarning")
def test_odd_names_and_utilities_of_utilities(format):
    dn = odd_network()
    again = loads(dumps(dn, format), format)
    assert again == dn
    assert dict(again.metadata) == dict(dn.metadata)
    multiplied = dn.with_nodes([bbn.Utility("all", [dn["time spent"], dn["mood"]], combine="product")])
    assert loads(dumps(multiplied, format), format) == multiplied


@pytest.mark.filterwarnings("ignore::bbn.LossyFormatWarning")
def test_net_holds_all_but_utilities_of_utilities():
    dn = odd_network()
    with pytest.raises(bbn.ModelError, match="'all' is a sum of utilities; NET holds tables only"):
        dumps(dn, "net")
    plain = bbn.DecisionNetwork([node for node in dn.nodes if getattr(node, "name", "") != "all"])
    assert loads(dumps(plain, "net"), "net") == plain


@pytest.mark.parametrize("format", WITH_DECISIONS)
def test_random_diagrams_and_what_decisions_remember(format):
    for seed in range(30):
        for recall in (True, False):
            dn = Diagram(seed, recall).network
            with warnings.catch_warnings(action="ignore"):  # states that are numbers
                again = loads(dumps(dn, format), format)
            assert again == dn
            assert again.recall == dn.recall


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_numbers_in_utilities(format):
    volume = bbn.Gaussian("Volume", means=10.0, variances=4.0)
    drill = bbn.Decision("Drill", ["yes", "no"])
    worth = bbn.Utility("Worth", [drill, volume.variable], [-5.0, 0.0], weights=[[1.5], [0.0]])
    dn = bbn.DecisionNetwork([volume, drill, worth])
    assert loads(dumps(dn, format), format) == dn
    with pytest.raises(bbn.ModelError, match="has no table"):
        dumps(dn, "xdsl")


@pytest.mark.parametrize("format", ["bif", "xmlbif", "uai"])
def test_formats_without_decisions_refuse_them(format):
    with pytest.raises(bbn.ModelError, match="holds no decisions and utilities; use one of yaml"):
        dumps(bbn.example("treatment"), format)


def test_genie_files_remember_what_was_known():
    """GeNIe's own layout: no-forgetting is implied, <mau> with weights is a weighted sum."""
    text = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="Venture" numsamples="1000"><nodes>
<cpt id="Oil"><state id="wet" /><state id="dry" /><probabilities>0.3 0.7</probabilities></cpt>
<cpt id="Rock"><state id="a" /><state id="b" /><parents>Oil</parents>
<probabilities>0.9 0.1 0.4 0.6</probabilities></cpt>
<decision id="First"><state id="go" /><state id="stay" /><parents>Rock</parents></decision>
<decision id="Second"><state id="go" /><state id="stay" /><parents>First</parents></decision>
<utility id="U1"><parents>Oil First</parents><utilities>100 0 -60 0</utilities></utility>
<utility id="U2"><parents>Oil Second</parents><utilities>10 0 -20 0</utilities></utility>
<mau id="All"><parents>U1 U2</parents><weights>1 2</weights></mau>
</nodes><extensions><genie version="1.0" app="GeNIe" name="Venture"></genie></extensions></smile>"""
    dn = loads(text, "xdsl")
    assert dn["Second"].observes == ("Rock", "First")
    assert dn["All"].weights.tolist() == [1.0, 2.0]
    rock = {"a": 0.3 * 0.9 / (0.3 * 0.9 + 0.7 * 0.4), "b": 0.3 * 0.1 / (0.3 * 0.1 + 0.7 * 0.6)}
    share = {"a": 0.3 * 0.9 + 0.7 * 0.4, "b": 0.3 * 0.1 + 0.7 * 0.6}
    best = sum(
        share[r] * (max(0, 100 * p - 60 * (1 - p)) + 2 * max(0, 10 * p - 20 * (1 - p)))
        for r, p in rock.items()
    )
    assert dn.solve().expected_utility == pytest.approx(best)


def test_hugin_files_have_limited_memory_where_something_is_forgotten():
    text = """net { node_size = (80 40); }
node Oil { states = ("wet" "dry"); }
decision First { states = ("go" "stay"); label = "First"; }
decision Second { states = ("go" "stay"); }
utility U { label = "U"; }
potential (Oil) { data = (0.3 0.7); }
potential (First | Oil) { }
potential (Second | First) { }
potential (U | Oil First Second) { data = (((5 1) (0 2)) ((-3 -1) (0 -2.5))); }
"""
    dn = loads(text, "net")
    assert dn.recall == "limited"
    assert dn["First"].observes == ("Oil",)
    worth = np.array([[[5, 1], [0, 2]], [[-3, -1], [0, -2.5]]])
    best = max(
        0.3 * worth[0, wet, (one, two)[wet]] + 0.7 * worth[1, dry, (one, two)[dry]]
        for wet, dry, one, two in np.ndindex(2, 2, 2, 2)
    )
    assert dn.solve().expected_utility == pytest.approx(best)
    assert dn.solve().proved
    assert loads(text.replace("(Second |", "(Second | Oil"), "net").recall == "perfect"


U1 = "  U: {type: utility, table: 1}\n"
LOOP = "  U: {type: utility, parents: [V], combine: sum}\n  V: {type: utility, parents: [U], combine: sum}\n"
HEAD = "nodes:\n  X: {states: [a, b], table: [0.5, 0.5]}\n"


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (HEAD + "  D: {type: decision, states: [y, n], observes: [Y]}\n" + U1, 3, "observes 'Y'"),
        (HEAD + "  D: {type: decision, states: [y, n]}\n", None, "at least one utility"),
        (HEAD + "  U: {type: utility, parents: [X], table: [1, .nan]}\n", 3, "expected a finite number, found .nan"),
        (HEAD + "  U: {type: utility, parents: [X], table: {a: 1}}\n", 3, "1 row missing"),
        (HEAD + "  U: {type: utility, parents: [X], table: {a: 1, c: 2}}\n", 3, "'X' has no state 'c'"),
        (HEAD + "  U: {type: utility, parents: [Z], table: 1}\n", 3, "unknown parent 'Z'"),
        (HEAD + "  U: {type: utility, parents: [X]}\n", 3, "neither 'table' nor 'combine'"),
        (HEAD + LOOP, 3, "cycle: U → V → U"),
        (HEAD + "  U: {type: utility, parents: [X], combine: mean}\n", 3, "'combine' is 'mean'"),
        (HEAD + "  U: {type: utilty, parents: [X], table: [1, 2]}\n", 3, "unknown type 'utilty'"),
        (HEAD + "  D: {type: decision, states: [y], obverses: [X]}\n", 3, "did you mean 'observes'"),
        ("recall: limitd\n" + HEAD + "  U: {type: utility, table: 1}\n", 1, "did you mean 'limited'"),
        (HEAD + "  Y: {states: [a], parents: [U], table: {x: [1]}}\n" + U1, 3, "unknown parent 'U'"),
        (HEAD + "  U: {type: utility, table: 1}\n  U: {type: utility, table: 1}\n", 4, "duplicate node 'U'"),
        (
            HEAD
            + "  C: {type: decision, states: [y, n], observes: [X]}\n"
            + "  D: {type: decision, states: [y, n], observes: [C]}\n"
            + "  U: {type: utility, parents: [D], table: [1, 2]}\n",
            4,
            "'D' comes after 'C', which observes 'X', and forgets it",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_by_place(text, line, told):
    with pytest.raises(bbn.ParseError, match=told) as caught:
        loads(text, "yaml")
    assert line is None or caught.value.line == line


def test_the_schema_takes_what_is_read_and_refuses_what_is_not():
    schema = json.loads((Path(bbn.io.__file__).parent / "network.schema.json").read_text())
    for name in MODELS:
        document = json.loads(dumps(bbn.example(name), "json"))
        jsonschema.validate(document, schema)
    jsonschema.validate(json.loads(dumps(odd_network(), "json")), schema)
    for wrong in (
        {"type": "decision"},
        {"type": "decision", "states": ["a"], "table": [1]},
        {"type": "utility", "parents": ["X"], "table": [1], "states": ["a"]},
        {"type": "utility", "parents": ["X"], "combine": "mean"},
        {"type": "unknown"},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"nodes": {"N": wrong}}, schema)


def test_numbers_are_read_back_bit_for_bit():
    rng = np.random.default_rng(3)
    decision = bbn.Decision("D", list("abcdef"))
    table = rng.normal(0, 1, 6) * 10.0 ** rng.integers(-30, 30, 6)
    dn = bbn.DecisionNetwork([decision, bbn.Utility("U", [decision], table)])
    for format in WITH_DECISIONS:
        assert np.array_equal(loads(dumps(dn, format), format)["U"].table, table)
