"""The name and the metadata of a network, and the version of the format, in every format of the registry."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bbn
from bbn.io import FORMATS, dumps, loads
from tests.support.strategies import words

NAMED = [format.name for format in FORMATS if format.name != "uai"]
SCHEMA = json.loads((Path(bbn.__file__).parent / "io" / "network.schema.json").read_text())
RESERVED = (
    "name",
    "nodes",
    "version",
    "metadata",
    "bbn",
    "states",
    "description",
    "unknown",
    "network",
    "genie",
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | words() | st.sampled_from(RESERVED)


def coin(title="", metadata=None, name="Coin", states=("heads", "tails")):
    return bbn.BayesianNetwork(
        [bbn.CPT(bbn.Variable(name, states), table=[0.5, 0.5])],
        title,
        metadata if metadata is not None else {},
    )


def written(net, format):
    """The text, and the warnings about what it cannot hold."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = dumps(net, format)
    assert {warning.category for warning in caught} <= {bbn.LossyFormatWarning}
    return text, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("format", NAMED)
@settings(max_examples=150, deadline=None)
@given(title=TEXT, metadata=st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_any_name_and_metadata_come_back(format, title, metadata):
    text, _ = written(coin(title, metadata), format)
    back = loads(text, format, strict=True)
    assert (back.name, dict(back.metadata)) == (title, metadata)
    assert written(back, format)[0] == text


@pytest.mark.parametrize("format", NAMED)
@pytest.mark.parametrize(
    ("title", "metadata"),
    [
        ("x", {"name": "other", "nodes": "three", "version": "7.1", "metadata": "yes"}),
        ("", {"name": "other"}),
        (" lead", {}),
        ("unknown", {}),
        ("network", {}),
        ("a\0b\x01", {"k\0": "v\0"}),
        ("x", {"empty": "", "spaced": " x ", "lines": "a\r\nb\rc\u2028d\x85"}),
        ("x", {"a b": "1", "a_b": "2", "a-b": "3"}),
        ("x", {"bbn": "not a note", "bbn_": "either"}),
        ("x", {"a=b": "c=d", 'quote "q" {;}': "\\"}),
    ],
)
def test_texts_that_are_hard_to_hold_come_back(format, title, metadata):
    back = loads(written(coin(title, metadata), format)[0], format)
    assert (back.name, dict(back.metadata)) == (title, metadata)


@pytest.mark.parametrize(
    ("format", "title", "metadata", "told"),
    [
        ("xdsl", " lead", {}, "' lead' as '_lead'"),
        ("xdsl", "x", {"a b": "1", "a_b": "2"}, "'a b' as 'a_b_2'"),
        ("xdsl", "x", {"k": "\x01"}, "'\\x01' as '\ufffd'"),
        ("xmlbif", " x ", {}, "' x ' as 'x'"),
        ("xmlbif", "x", {"k": " x "}, "' x ' as 'x'"),
        ("xmlbif", "x", {"a=b": "c"}, "'a=b' as 'a_b'"),
        ("net", "x", {"a b": "1", "name": "2"}, "'a b' as 'a_b', 'name' as 'name_'"),
        ("bif", "a\0", {}, "'a\\x00' as 'a\ufffd'"),
    ],
)
def test_what_other_programs_see_changed_is_warned_about(format, title, metadata, told):
    warned = written(coin(title, metadata), format)[1]
    assert len(warned) == 1
    assert told in warned[0]


@pytest.mark.parametrize("format", NAMED)
@pytest.mark.parametrize("title", ["", "plain"])
def test_what_fits_is_not_warned_about(format, title):
    assert written(coin(title, {"description": "Two words. And\na line.", "source": ""}), format)[1] == []


def test_bif_keeps_keys_apart_that_differ_in_a_space():
    text, warned = written(coin("x", {"a b": "1", "a_b": "2"}), "bif")
    assert warned == []  # they are comments, which other programs skip
    assert '// "a b" = 1\n// a_b = 2\n' in text


@pytest.mark.parametrize("format", ["xmlbif", "net", "xdsl"])
def test_a_note_is_not_believed_once_another_program_changed_what_it_is_about(format):
    text, _ = written(coin("my net!", {"a key": " v\0 "}), format)
    quote = '\\"' if format == "net" else '"'
    start = '{"name": "my net!", '.replace('"', quote)
    assert text.count(start) == 1
    shown = loads(text.replace(start, "no note"), format).name
    for note in (
        '{"name": 1, ',
        '{"names": "my net!", ',
        "[" * 10**5,
        '{"name": "\\ud800", ',
        '{"name": "other", ',
    ):
        assert loads(text.replace(start, note.replace('"', quote)), format).name == shown
    edited = text.replace("my_net_", "edited").replace(">my net!<", ">edited<")
    edited = edited.replace('name = "my net!"', 'name = "edited"')
    assert loads(edited, format).name == "edited"


def test_the_name_of_a_bif_network_that_has_none():
    text = "network unknown {\n}\nvariable a {\n  type discrete [ 1 ] { x };\n}\nprobability ( a ) {\n  table 1.0;\n}\n"
    assert loads(text, "bif").name == ""
    assert loads(text.replace("unknown", '"unknown"'), "bif").name == ""
    assert dumps(loads(text, "bif"), "bif") == text


# Half a surrogate pair is not a character, and no file holds it


@pytest.mark.parametrize("format", NAMED)
@pytest.mark.parametrize(
    ("net", "where"),
    [
        (coin(name="a\ud800"), "the name of variable"),
        (coin(states=("\udfff", "y")), "a state of variable 'Coin'"),
        (coin("\ud800"), "the network's name"),
        (coin(metadata={"k": "v\ud800"}), "metadata 'k'"),
        (coin(metadata={"k\ud800": "v"}), "metadata"),
    ],
    ids=["name", "state", "title", "value", "key"],
)
def test_half_a_surrogate_pair_is_refused_when_written(format, net, where, tmp_path):
    path = tmp_path / f"old.{format}"
    path.write_text("old")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.LossyFormatWarning)
        with pytest.raises(bbn.ModelError, match=f"{where}.* cannot be written: .*half a surrogate pair"):
            bbn.save(net, path, format=format)
    assert [file.name for file in tmp_path.iterdir()] == [f"old.{format}"]
    assert path.read_text() == "old"


def test_half_a_surrogate_pair_is_refused_when_read():
    text = json.dumps({"name": "x", "nodes": {"A": {"states": ["a", "b"], "table": [0.5, 0.5]}}})
    for old, new in (('"x"', '"\\ud800"'), ('"A"', '"A\\udc00"'), ('"b"', '"\\uDBFF\\u0041"')):
        with pytest.raises(bbn.ParseError, match="half a surrogate pair") as caught:
            loads(text.replace(old, new), "json")
        assert caught.value.column == text.index(old) + 1
    assert loads(text.replace('"x"', '"\\ud83d\\ude00"'), "json").name == "😀"
    noted = (
        'variable a {{ type discrete [ 1 ] {{ x }}; property bbn = "{}"; }} probability (a) {{ table 1; }}'
    )
    for note in (
        r"{\"name\": \"\ud800\", \"states\": [\"x\"]}",
        r"{\"name\": \"b\", \"states\": [\"\ud800\"]}",
    ):
        net = loads(noted.format(note), "bif")
        assert (net.names, net.states("a")) == (("a",), ("x",))


# The version of bbn's own format


BODIES = {
    "yaml": [
        "{}name: x\nnodes: {{A: {{states: [a], table: [1]}}}}\n",
        "{}nodes:\n  A:\n    states: [a]\n    table: [1]\n",
    ],
    "json": ['{{{}"nodes": {{"A": {{"states": ["a"], "table": [1]}}}}}}'],
}
HEADS = {"yaml": "version: {}\n", "json": '"version": {}, '}


@pytest.mark.parametrize(("format", "body"), [(f, body) for f, bodies in BODIES.items() for body in bodies])
class TestVersion:
    def test_one_and_none_are_the_same(self, format, body):
        one, none = loads(body.format(HEADS[format].format(1)), format), loads(body.format(""), format)
        assert one == none
        assert dict(one.metadata) == dict(none.metadata) == {}

    def test_a_later_one_asks_for_an_upgrade(self, format, body):
        with pytest.raises(
            bbn.ParseError, match=r"version 2 of the format.* reads version 1; upgrade bbn"
        ) as caught:
            loads(body.format(HEADS[format].format(2)), format)
        assert caught.value.line == 1

    @pytest.mark.parametrize("version", ["0", "-1", "1.0", "2.5", "true", "null", "[1]"])
    def test_what_is_not_a_version_is_an_error(self, format, body, version):
        with pytest.raises(
            bbn.ParseError, match="'version' is the version of the format and must be 1, found"
        ):
            loads(body.format(HEADS[format].format(version)), format)

    def test_text_is_metadata_as_before_there_were_versions(self, format, body):
        assert dict(loads(body.format(HEADS[format].format('"2.1"')), format).metadata) == {"version": "2.1"}


def test_metadata_in_a_mapping_of_their_own():
    net = loads(
        "metadata: {name: n, nodes: 3, 'a key': text}\nsource: here\nnodes: {A: {states: [a], table: [1]}}"
    )
    assert dict(net.metadata) == {"source": "here", "name": "n", "nodes": "3", "a key": "text"}
    assert dict(loads("metadata: just text\nnodes: {A: {states: [a], table: [1]}}").metadata) == {
        "metadata": "just text"
    }


@pytest.mark.parametrize(
    ("head", "place", "message"),
    [
        ("source: x\nmetadata: {source: y}\n", (1, 1), "'source' is given here and in 'metadata'"),
        ("metadata: {a: x, a: y}\n", (1, 18), "'a' of 'metadata' is given twice, first on line 1"),
        ("metadata: {a: [x]}\n", (1, 15), "'a' must be text, found a list of 1"),
        ("metadata: {1: x}\n", (1, 12), "a key of 'metadata' must be a string"),
        ("metadata: [x]\n", (1, 11), "'metadata' must be text"),
    ],
)
def test_metadata_that_are_wrong(head, place, message):
    with pytest.raises(bbn.ParseError, match=message) as caught:
        loads(head + "nodes: {A: {states: [a], table: [1]}}")
    assert (caught.value.line, caught.value.column) == place


def test_the_schema_knows_version_and_metadata():
    nodes = {"A": {"states": ["a"], "table": [1]}}
    for good in ({"version": 1}, {"version": "2.1"}, {"metadata": {"name": "x"}}, {"metadata": "x"}):
        jsonschema.validate({**good, "nodes": nodes}, SCHEMA)
        loads(json.dumps({**good, "nodes": nodes}), "json")
    for bad in ({"version": 2}, {"version": 1.5}, {"metadata": [1]}, {"metadata": {"a": {}}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**bad, "nodes": nodes}, SCHEMA)
        with pytest.raises(bbn.ParseError):
            loads(json.dumps({**bad, "nodes": nodes}), "json")
    text, _ = written(coin("x", {"name": "y", "version": "3"}), "json")
    jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize("digits", [309, 310, 5000])
def test_an_integer_past_the_largest_float_is_no_probability(digits):
    text = '{"nodes": {"A": {"states": ["a", "b"], "table": [0, %s]}}}' % ("1" * digits)
    with pytest.raises(bbn.ParseError, match=r"node 'A'.*: (expected a probability|sums to)") as caught:
        loads(text, "json")
    assert caught.value.line == 1


GENIE = """<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="Venture" numsamples="1000">
  <nodes>
    <cpt id="Success"><state id="Yes" /><state id="No" /><probabilities>0.2 0.8</probabilities></cpt>
    <cpt id="Forecast"><state id="Good" /><state id="Poor" /><parents>Success</parents>
      <probabilities>0.4 0.6 0.1 0.9</probabilities></cpt>
  </nodes>
  <extensions>
    <genie version="1.0" app="GeNIe 2.1.406.0" name="The venture &amp; its forecast" faultnameformat="nodestate">
      <submodel id="inner">
        <name>Inner</name>
        <node id="Success">
          <name>Success of the venture</name>
          <interior color="e5f6f7" /><outline color="000080" />
          <font color="000000" name="Arial" size="8" />
          <position>54 98 138 148</position>
          <comment>Two lines,
one &lt; two.</comment>
        </node>
      </submodel>
      <node id="Forecast"><name>Expert forecast</name><position>10 20 30 40</position></node>
      <textbox><caption>Read me</caption></textbox>
    </genie>
  </extensions>
</smile>
"""


def looks(text):
    """What the extension of an XDSL file says of each node, by a reader that is not ours."""
    genie = ElementTree.fromstring(text).find("extensions/genie")
    nodes = {
        node.get("id"): [(child.tag, dict(child.attrib), child.text) for child in node]
        for node in genie.iter("node")
    }
    others = [
        (child.tag, dict(child.attrib)) for child in genie.iter() if child.tag in ("submodel", "textbox")
    ]
    return genie.get("name"), genie.get("faultnameformat"), nodes, others


@pytest.mark.parametrize("through", [[], ["yaml"], ["json"], ["bif"], ["net"], ["xmlbif"]])
def test_what_genie_keeps_about_the_looks_survives(through):
    net = loads(GENIE.encode(), "xdsl")
    assert net.name == "Venture"
    for format in through:
        net = loads(written(net, format)[0], format)
    text, warned = written(net, "xdsl")
    assert warned == []
    assert looks(text) == looks(GENIE)
    assert ElementTree.fromstring(text).find("extensions/genie").get("app") == "bbn"
    back = loads(text, "xdsl")
    assert back == net
    assert dict(back.metadata) == dict(net.metadata)


def test_the_looks_of_nodes_that_are_gone_are_dropped_and_new_nodes_are_added():
    net = loads(GENIE, "xdsl")
    more = bbn.BayesianNetwork(
        [net["Success"], bbn.CPT(bbn.Variable("New <one>", ["x", "y"]), table=[0.5, 0.5])],
        "Venture",
        net.metadata,
    )
    _, _, nodes, others = looks(written(more, "xdsl")[0])
    assert nodes["Success"] == looks(GENIE)[2]["Success"]
    assert nodes["New__one_"] == [("name", {}, "New <one>")]
    assert set(nodes) == {"Success", "New__one_"}
    assert [tag for tag, _ in others] == ["submodel", "textbox"]


def test_the_axes_of_a_file_of_agrum_are_right_after_rewriting():
    """Its first parent varies fastest, which its name in the extension tells: the name must not be kept."""
    states = '<state id="s" /><state id="t" />'
    root = f'<cpt id="{{}}">{states}<probabilities>0.5 0.5</probabilities></cpt>'
    text = (
        f'<smile id="x"><nodes>{root.format("a")}{root.format("b")}<cpt id="c">{states}<parents>a b</parents>'
        "<probabilities>0.1 0.9 0.2 0.8 0.3 0.7 0.4 0.6</probabilities></cpt></nodes><extensions>"
        '<genie app="aGrUM 1" name="x"><node id="a"><position>1 2 3 4</position></node></genie></extensions></smile>'
    )
    net = loads(text, "xdsl")
    assert net["c"].table[1, 0].tolist() == [0.2, 0.8]
    assert loads(dumps(net, "xdsl"), "xdsl") == net


@pytest.mark.parametrize(
    "text",
    [
        "<genie />",
        "<genie><node /></genie",
        "<genie>\n<textbox/></genie>",
        "<other><a /></other>",
        "<genie",
        "x",
    ],
)
def test_metadata_called_genie_that_are_not_its_own_are_text(text):
    back = loads(written(coin("x", {"genie": text}), "xdsl")[0], "xdsl")
    assert dict(back.metadata) == {"genie": text}


@pytest.mark.parametrize("entity", ['<!DOCTYPE genie [<!ENTITY a "x">]><genie>&a;</genie>', "<genie>" * 200])
def test_hostile_looks_are_text_too(entity):
    back = loads(written(coin("x", {"genie": entity}), "xdsl")[0], "xdsl")
    assert dict(back.metadata) == {"genie": entity}
