"""What people write who elicit: percentages, fractions, default rows, noisy-OR and descriptions."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml

import bbn
from bbn.io import dumps, loads
from bbn.io.shares import share

SCHEMA = json.loads((Path(bbn.__file__).parent / "io" / "network.schema.json").read_text())
ELICITED = (Path(__file__).parent / "elicited.yaml").read_text()


def one(table: str, more: str = "") -> str:
    return f"nodes:\n  A: {{states: [a, b], table: {table}{more}}}\n"


@pytest.mark.parametrize(
    ("table", "first"),
    [
        ("[20 %, 80 %]", Fraction(1, 5)),
        ("[20%, 80%]", Fraction(1, 5)),
        ('["20 %", "80 %"]', Fraction(1, 5)),
        ("[33.3 %, 66.7 %]", Fraction(333, 1000)),
        ("[0.07 %, 99.93 %]", Fraction(7, 10_000)),
        ("[1/3, 2/3]", Fraction(1, 3)),
        ("[1 / 3, 2 / 3]", Fraction(1, 3)),
        ('{a: "3/7", b: 4/7}', Fraction(3, 7)),
        ("[1/4, 75 %]", Fraction(1, 4)),
        ("[0/9, 1]", Fraction(0)),
    ],
)
def test_percentages_and_fractions_are_rounded_once(table, first):
    net = loads(one(table), "yaml", strict=True)
    assert net["A"].row()["a"] == float(first)
    assert net["A"].row()["b"] == pytest.approx(float(1 - first), abs=1e-15)
    assert loads(dumps(net, "yaml"), "yaml") == net


def test_random_shares_are_the_nearest_doubles():
    rng = random.Random(0)
    for _ in range(500):
        n, d = rng.randrange(10**12), rng.randrange(1, 10**12)
        assert share(f"{n}/{d}") == float(Fraction(n, d))
        digits = rng.randrange(1, 18)
        text = f"{rng.randrange(100)}.{rng.randrange(10**digits):0{digits}d}"
        assert share(f"{text} %") == float(Fraction(text) / 100)


@pytest.mark.parametrize(
    "wrong", ["1/0", "1//3", "-1/3", "1/-3", "%", "% 20", "20 %%", "1e1 %", "twenty %", "0.5/2", "١/٣", "1/"]
)
def test_what_is_neither_is_an_error_with_its_place(wrong):
    with pytest.raises(bbn.ParseError, match="expected a number") as caught:
        loads(one(f'["{wrong}", 1]'), "yaml")
    assert (caught.value.line, caught.value.column) == (2, 31)


def test_a_row_of_bare_percentages_is_asked_about():
    with pytest.raises(bbn.ParseError, match="sums to 100, expected 1; are these percentages"):
        loads(one("[20, 80]"), "yaml")


def test_states_that_look_like_fractions_stay_text():
    net = loads("nodes:\n  A: {states: [1/3, 20 %], table: {1/3: 1/2, 20 %: 50 %}}\n", "yaml")
    assert net.states("A") == ("1/3", "20 %")
    assert loads(dumps(net, "yaml"), "yaml") == net


CHILD = """nodes:
  A: {{states: [x, y], table: [0.5, 0.5]}}
  B: {{states: [u, v, w], table: [0.2, 0.3, 0.5]}}
  C:
    states: [s, t]
    parents: [A, B]
    table:
{rows}
"""


@pytest.mark.parametrize("given", range(7))
def test_a_default_row_fills_what_is_not_given(given):
    keys = [f"{a}, {b}" for a, b in itertools.product("xy", "uvw")]
    numbers = np.random.default_rng(given).dirichlet([1, 1], 6)
    rows = [f"      {key}: {row.tolist()}" for key, row in zip(keys, numbers, strict=True)]
    kept = random.Random(given).sample(range(6), given % 7)
    text = "\n".join([*(rows[i] for i in kept), "      default: [1/4, 75 %]"])
    table = loads(CHILD.format(rows=text), "yaml")["C"].table.reshape(6, 2)
    for i in range(6):
        assert table[i].tolist() == (numbers[i].tolist() if i in kept else [0.25, 0.75])


def test_default_may_be_a_state_of_the_only_parent():
    text = (
        "nodes:\n  A: {states: [default, other], table: [0.5, 0.5]}\n"
        "  B: {states: [s, t], parents: [A], table: {default: [0.1, 0.9], other: [0.2, 0.8]}}\n"
    )
    assert loads(text, "yaml")["B"].table.tolist() == [[0.1, 0.9], [0.2, 0.8]]
    with pytest.raises(bbn.ParseError, match="1 row missing"):
        loads(text.replace(", other: [0.2, 0.8]", ""), "yaml")


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ("      default: [0.5, 0.4]", 8, "row 'default': sums to 0.9"),
        ("      default: [1, 0]\n      default: [1, 0]", 9, "names 1 states"),
        ("      default: [1]", 8, "expected 2 entries"),
        ("      defalt: [1, 0]", 8, "names 1 states"),
        ("      default: [1, 0]\n      x, q: [1, 0]", 9, "no state 'q'"),
    ],
)
def test_a_wrong_default_row_is_told_once(rows, line, words):
    with pytest.raises(bbn.ParseError, match=words) as caught:
        loads(CHILD.format(rows=rows), "yaml")
    assert caught.value.line == line
    assert len(caught.value.problems) == 1


def test_defaults_for_gaussians_and_utilities():
    text = (
        "nodes:\n  A: {states: [x, y, z], table: [0.2, 0.3, 0.5]}\n"
        "  G: {type: gaussian, parents: [A], table: {y: {mean: 1, variance: 2}, default: {mean: 0, variance: 1}}}\n"
    )
    assert loads(text, "yaml")["G"].means.tolist() == [0, 1, 0]
    text = (
        "nodes:\n  A: {states: [x, y, z], table: [0.2, 0.3, 0.5]}\n  D: {type: decision, states: [go, stay]}\n"
        "  U: {type: utility, parents: [A, D], table: {'y, go': 9, default: 1}}\n"
    )
    assert loads(text, "yaml")["U"].table.tolist() == [[1, 1], [9, 1], [1, 1]]


def test_noisy_or_is_the_product_of_what_fails():
    net = loads(ELICITED, "yaml")
    p = {"Flu": Fraction(4, 5), "Cold": Fraction(1, 10)}
    for flu, cold in itertools.product(("no", "yes"), repeat=2):
        fails = Fraction(99, 100)
        for name, state in (("Flu", flu), ("Cold", cold)):
            fails *= 1 - p[name] if state == "yes" else 1
        assert net["Fever"].row(flu, cold)["yes"] == pytest.approx(float(1 - fails), abs=1e-15)
    assert net["Alarm"].row("down", "no")["loud"] == 0.5
    assert net["Alarm"].row("up", "no")["loud"] == 0
    assert net["Alarm"].row("up", "yes")["loud"] == pytest.approx(0.9)
    child = bbn.Variable("Fever", ["no", "yes"])
    causes = [bbn.Variable("Flu", ["no", "yes"]), bbn.Variable("Cold", ["no", "yes"])]
    assert net["Fever"] == bbn.NoisyOr(child, causes, [0.8, 0.1], leak=0.01)


NOISY = """nodes:
  A: {states: [no, yes], table: [1/2, 1/2]}
  B: {states: [left, right, up], table: [0.5, 0.5, 0]}
  C: {states: [left, right], table: [0.5, 0.5]}
  N: {%s}
"""


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (
            "type: noisy-or, states: [no, yes], parents: [A], links: {A: ¤120 %}",
            "'A': expected a probability",
        ),
        ("type: noisy-or, states: [no, yes], parents: [A], links: {A: ¤x}", "'A': expected a number"),
        ("type: noisy-or, states: [no, yes], parents: [A], links: {¤Q: 1}", "'Q', which is not a parent"),
        ("type: noisy-or, states: [no, yes], parents: [A]", "'links' must be a mapping"),
        ("type: noisy-or, states: [no, yes], parents: [A], links: {}", "no link for the parent 'A'"),
        ("type: noisy-or, states: ¤[no, yes, hm], parents: [A], links: {A: 1}", "has two states, found 3"),
        (
            "type: noisy-or, states: [no, yes], parents: [B], links: {B: 1}",
            "'B' has 3; noisy-max takes more",
        ),
        ("type: noisy-or, states: [no, yes], parents: [C], links: {C: 1}", "say holds: {C: left}"),
        (
            "type: noisy-or, states: [no, yes], parents: [C], links: {C: 1}, holds: {C: ¤lef}",
            "mean 'left'",
        ),
        (
            "type: noisy-or, states: [no, yes], parents: [A], links: {A: 1}, holds: {¤Q: yes}",
            "at most one",
        ),
        (
            "type: noisy-or, states: [no, yes], parents: [A], links: {A: 1}, leak: ¤-1",
            "leak: expected a prob",
        ),
        ("type: noisy-or, states: [no, yes], ¤table: [1, 0]", "unknown key 'table'"),
        ("type: ¤noisy-orr, states: [no, yes]", "'noisy-or'"),
        ("states: [no, yes], table: [1, 0], description: ¤[a]", "'description' must be text"),
        (f"bins: ¤[1{'0' * 400}], table: [1, 0]", "'bins' must be a list of finite numbers"),
    ],
)
def test_what_is_wrong_with_a_node_is_said_with_its_place(node, words):
    with pytest.raises(bbn.ParseError, match=words) as caught:
        loads((NOISY % node).replace("¤", ""), "yaml")
    at = (NOISY % node).splitlines()[4].find("¤")
    assert (caught.value.line, caught.value.column) == (5, 3 if at < 0 else at + 1)


def test_descriptions_are_kept_everywhere(tmp_path):
    net = loads(ELICITED.replace("flu season", "season"), "yaml")
    told = {"Flu": "Influenza, laboratory confirmed.", "Cold": "A common cold, by the patient's account."}
    assert net.descriptions == told
    for format in ("yaml", "json", "xdsl", "bif", "net"):
        path = tmp_path / f"net.{format}"
        net.save(path)
        again = bbn.load(path)
        assert again.descriptions == told, format
        if format in ("yaml", "json"):
            assert again == net
            assert "descriptions" not in path.read_text()
    assert net.subnetwork(["Flu", "Season"]).descriptions == {"Flu": told["Flu"]}
    assert net.rename({"Flu": "Influenza"}).descriptions["Influenza"] == told["Flu"]
    plain = loads(one("[1, 0]") + "descriptions: about many things\n", "yaml")
    assert plain.descriptions == {}
    assert plain.metadata["descriptions"] == "about many things"
    assert loads(dumps(plain, "yaml"), "yaml").metadata == plain.metadata


def test_descriptions_of_decisions_and_of_slices():
    text = (
        "nodes:\n  A: {states: [x, y], table: [1, 0]}\n"
        "  D: {type: decision, states: [go, stay], description: When?}\n"
        "  U: {type: utility, parents: [D], table: [1, 0], description: 'In euros: net.'}\n"
    )
    for format in ("yaml", "json"):
        again = dumps(loads(text, "yaml"), format)
        assert "When?" in again
        assert "In euros: net." in again
        assert dumps(loads(again, format), format) == again
    text = (
        "slice:\n  R:\n    description: Rain that day\n    states: [yes, no]\n    parents: ['R[-1]']\n"
        "    first: [1/2, 50 %]\n    table: {yes: [7/10, 3/10], default: [30 %, 70 %]}\n"
    )
    dyn = loads(text, "yaml")
    for format in ("yaml", "json"):
        again = dumps(dyn, format)
        assert "Rain that day" in again
        assert loads(again, format) == dyn


def test_the_schema_agrees():
    jsonschema.validate(yaml.safe_load(ELICITED.replace("yes", "'yes'").replace("no,", "'no',")), SCHEMA)
    net = loads(ELICITED, "yaml")
    jsonschema.validate(json.loads(dumps(net, "json")), SCHEMA)
    for wrong in ("20 percent", "1/3/4", "%"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"nodes": {"A": {"states": ["a", "b"], "table": [wrong, 0]}}}, SCHEMA)


@pytest.mark.parametrize("seed", range(30))
def test_random_noisy_ors_read_back_bit_for_bit(seed):
    rng = random.Random(seed)
    words = [["no", "yes"], ["yes", "no"], [False, True], [0, 1], ["left", "right"], ["a,b", "c"]]
    causes = [bbn.Variable(f"C{i}", rng.choice(words)) for i in range(rng.randrange(4))]
    child = bbn.Variable("N", rng.choice(words))
    holds = {v.name: rng.choice(v.states) for v in (child, *causes)}
    chances = [rng.choice([0.0, 1.0, rng.random(), rng.random() / 1e9]) for _ in causes]
    node = bbn.NoisyOr(child, causes, chances, rng.random(), holds=holds)
    net = bbn.BayesianNetwork([*(bbn.CPT(c, table=[0.5, 0.5]) for c in causes), node])
    for format in ("yaml", "json"):
        text = dumps(net, format)
        assert "noisy-or" in text
        assert loads(text, format) == net
        if format == "json":
            jsonschema.validate(json.loads(text), SCHEMA)


def test_a_wrong_row_after_a_noisy_or_is_named():
    text = (
        "nodes:\n"
        "  A: {states: [no, yes], table: [0.5, 0.5]}\n"
        "  N: {type: noisy-or, states: [no, yes], parents: [A], links: {A: 0.8}}\n"
        "  C: {states: [x, y], parents: [A], table: {no: [0.5, 0.5], yes: [0.5, 0.4]}}\n"
    )
    with pytest.raises(bbn.ParseError, match=r"node 'C', row A=yes: sums to 0\.9") as caught:
        loads(text, "yaml")
    assert caught.value.line == 4


def test_a_noisy_or_given_twice_with_other_states_is_refused():
    text = (
        "nodes:\n"
        "  A: {states: [no, yes], table: [0.5, 0.5]}\n"
        "  N: {type: noisy-or, states: [yes], parents: [A], links: {A: 0.8}}\n"
        "  N: {type: noisy-or, states: [no, yes], parents: [A], links: {A: 0.8}, leak: 0.1}\n"
    )
    with pytest.raises(bbn.ParseError):
        loads(text, "yaml")


def test_a_node_given_first_as_chance_and_then_as_a_utility_is_refused():
    text = (
        "nodes:\n"
        "  D: {type: decision, states: [no, yes]}\n"
        "  U: {states: [a], table: [1]}\n"
        "  U: {type: utility, parents: [D], table: [1, 2]}\n"
    )
    with pytest.raises(bbn.ParseError):
        loads(text, "yaml")
