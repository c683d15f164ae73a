"""bbn's own format, in YAML and JSON: what is written reads back the same, bit for bit and kind for kind."""

import json
import os
import random
import stat
import threading
import warnings
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import bbn
from bbn.io import dumps, loads
from bbn.io.document import resolve
from bbn.io.formats.json import JsonDocument
from bbn.io.formats.quick import quick_json, quick_yaml
from bbn.io.formats.yaml_document import YamlDocument
from bbn.io.source_text import Source
from bbn.io.spec.spec_document import read_network
from tests.support.strategies import networks, words

OWN = ("yaml", "json")
SCHEMA = json.loads((Path(bbn.__file__).parent / "io" / "network.schema.json").read_text())


def bits(network: bbn.BayesianNetwork) -> dict[str, bytes]:
    return {name: network[name].table.tobytes() for name in network.names}


def kinds(network: bbn.BayesianNetwork) -> dict[str, list[type]]:
    return {name: [type(state) for state in network.states(name)] for name in network.names}


@pytest.mark.parametrize("format", OWN)
@given(
    network=networks(),
    title=st.text(st.characters(exclude_categories=["Cs"])),
    metadata=st.dictionaries(words().filter(lambda key: key not in ("name", "nodes")), words(), max_size=3),
)
def test_any_network_comes_back_bit_for_bit(format, network, title, metadata):
    original = bbn.BayesianNetwork([network[name] for name in network.names], title, metadata)
    text = dumps(original, format)
    again = loads(text, format, strict=True)
    assert again == original
    assert bits(again) == bits(original)
    assert kinds(again) == kinds(original)
    assert again.name == title
    assert dict(again.metadata) == metadata
    assert dumps(again, format) == text


@given(network=networks())
def test_what_is_written_follows_the_standards_and_the_schema(network):
    as_json = json.loads(dumps(network, "json"), parse_constant=pytest.fail)
    jsonschema.validate(as_json, SCHEMA)
    # An ordinary YAML reader finds the same numbers.
    for name, node in yaml.load(dumps(network, "yaml"), Loader=_OrdinaryLoader)["nodes"].items():
        table = node["table"]
        rows = list(table.values()) if isinstance(table, dict) else table
        assert np.array(rows, dtype=float).ravel().tolist() == network[name].table.ravel().tolist()


class _OrdinaryLoader(yaml.CSafeLoader):
    """PyYAML's own loader, with words kept as text and lists allowed as keys."""


_OrdinaryLoader.add_constructor("tag:yaml.org,2002:bool", lambda loader, node: node.value)
_OrdinaryLoader.add_constructor("tag:yaml.org,2002:seq", lambda loader, node: _items(loader, node))


def _items(loader, node):
    items = loader.construct_sequence(node, deep=True)
    return tuple(items) if all(isinstance(item, str | int) for item in items) else items


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        *((word, word) for word in ("yes", "no", "on", "off", "Yes", "NO", "y", "n", "1_000", "1:30", "0b1")),
        *((word, word) for word in ("1e", ".", "nan", "inf", "=", "<<", "2001-01-01")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        *((word, None) for word in ("", "~", "null", "Null", "NULL")),
        ("0", 0), ("-12", -12), ("+3", 3), ("007", 7), ("0o17", 15), ("0xfF", 255),
        ("1.", 1.0), (".5", 0.5), ("-1e3", -1000.0), ("1E-2", 0.01), ("+.inf", float("inf")), ("-.INF", float("-inf")),
    ],
)  # fmt: skip
def test_the_core_schema_of_yaml_1_2(word, meaning):
    found = resolve(word)
    assert found == meaning
    assert type(found) is type(meaning)


def test_words_that_yaml_1_1_takes_for_booleans_are_strings():
    net = loads("nodes: {A: {states: [yes, no], table: [1, 0]}, B: {states: [on, off], table: [1, 0]}}")
    assert net.states("A") == ("yes", "no")
    assert net.states("B") == ("on", "off")


def test_integers_and_booleans_keep_their_kind():
    net = loads(
        "nodes:\n"
        "  N: {states: [0, 1, 2], table: [0.2, 0.3, 0.5]}\n"
        "  B:\n    states: [true, false]\n    parents: [N]\n    table: {0: [1, 0], 1: [0.5, 0.5], 2: [0, 1]}\n"
        "  S:\n    states: ['0', '1']\n    parents: [B, N]\n    table:\n"
        "      true, 0: [1, 0]\n      true, 1: [0.5, 0.5]\n      true, 2: [0, 1]\n"
        "      false, 0: [1, 0]\n      [False, 1]: [0.25, 0.75]\n      'false,2': {'0': 0, '1': 1}\n"
    )
    assert net.states("N") == (0, 1, 2)
    assert [type(state) for state in net.states("B")] == [bool, bool]
    assert net.states("S") == ("0", "1")
    assert net["S"].row(False, 1) == {"0": 0.25, "1": 0.75}
    for format in OWN:
        again = loads(dumps(net, format), format)
        assert again == net
        assert kinds(again) == kinds(net)


ROWS = {
    ("yes", "on"): [0.1, 0.9],
    ("yes", "off"): [0.2, 0.8],
    ("no", "on"): [0.3, 0.7],
    ("no", "off"): [0.4, 0.6],
}


@pytest.mark.parametrize(
    "table",
    [
        "\n      yes, on: [0.1, 0.9]\n      yes, off: [0.2, 0.8]\n      no, on: [0.3, 0.7]\n      no, off: [0.4, 0.6]",
        "\n      no,off: [0.4, 0.6]\n      no  , on: [0.3, 0.7]\n      'yes, off': [0.2, 0.8]\n"
        "      yes,on: [0.1, 0.9]",
        "\n      [yes, on]: [0.1, 0.9]\n      [yes, 'off']: [0.2, 0.8]\n      [no, on]: [0.3, 0.7]\n"
        "      ? [no, off]\n      : [0.4, 0.6]",
        " {'yes, on': {a: 0.1, b: 0.9}, 'yes, off': {b: 0.8, a: 0.2}, 'no, on': [0.3, 0.7], 'no, off': [0.4, 0.6]}",
        " [[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]",
        "\n    - - [0.1, 0.9]\n      - [0.2, 0.8]\n    - - [0.3, 0.7]\n      - [0.4, 0.6]",
        " &t\n      yes, on: &r [0.1, 0.9]\n      yes, off: [2.0e-1, .8]\n      no, on: [3E-1, +0.7]\n"
        "      no, off: [0.4, 0.6]",
    ],
)  # fmt: skip
def test_every_way_to_write_a_table_gives_the_same_table(table):
    net = loads(
        "nodes:\n  C:\n    parents: [A, B]\n    states: [a, b]\n    table:"
        + table
        + "\n  A: {states: [yes, no], table: [0.5, 0.5]}\n  B: {table: {off: 0.75, on: 0.25}, states: [on, off]}\n"
    )
    expected = bbn.CPT(net.variable("C"), [net.variable("A"), net.variable("B")], ROWS)
    assert net["C"] == expected
    assert net["B"].table.tolist() == [0.25, 0.75]


def test_aliases_stand_for_what_they_name():
    net = loads(
        "nodes:\n  A: {states: &s [yes, no], table: &t [0.3, 0.7]}\n  B: {states: *s, table: *t}\n"
        "  C: {states: *s, parents: [A], table: {yes: *t, no: *t}}\n"
    )
    assert net["C"].table.tolist() == [[0.3, 0.7], [0.3, 0.7]]


def test_awkward_states_are_written_as_lists():
    a = bbn.Variable("A", ["1,5", ' "x" ', "plain"])
    b = bbn.Variable("B", ["u", ""])
    c = bbn.CPT(bbn.Variable("C", ["x: y", "- z", "#"]), [a, b], np.full((3, 2, 3), 1 / 3))
    net = bbn.BayesianNetwork([bbn.CPT.uniform(a), bbn.CPT.uniform(b), c])
    for format in OWN:
        assert loads(dumps(net, format), format) == net
    assert '["1,5", u]' in dumps(net, "yaml")


@pytest.mark.parametrize("length", [50, 1000, 1100, 5000])
def test_names_and_states_of_any_length(length):
    a = bbn.Variable("a" * length, ["s" * length, "t"])
    b = bbn.Variable('b"' * length, ["u", "v"])
    net = bbn.BayesianNetwork(
        [bbn.CPT.uniform(a), bbn.CPT(b, [a], [[0.1, 0.9], [0.2, 0.8]])], metadata={"k" * length: "x"}
    )
    for format in OWN:
        again = loads(dumps(net, format), format)
        assert again == net
        assert again.metadata == net.metadata


def test_extreme_numbers_come_back():
    values = [5e-324, 1e-300, 1e-5, 0.1, 1 / 3, 1 - 2**-53]
    for value in values:
        net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("A", ["a", "b"]), table=[value, 1 - value])])
        for format in OWN:
            assert bits(loads(dumps(net, format), format)) == bits(net)


def test_texts_about_the_network_are_kept():
    net = loads(
        "name: n\ndescription: >-\n  two\n  lines\nsource: me\nyear: 1997\nnodes: {A: {states: [a], table: [1]}}"
    )
    assert net.name == "n"
    assert dict(net.metadata) == {"description": "two lines", "source": "me", "year": "1997"}
    with pytest.raises(TypeError):
        net.metadata["x"] = "y"


@pytest.mark.parametrize(
    "name", ["net.yaml", "net.yml", "net.json", "NET.YAML", "net.yaml.gz", "net.json.gz"]
)
def test_save_and_load_by_suffix(tmp_path, name):
    net = bbn.example("asia")
    net.save(tmp_path / name)
    assert bbn.load(tmp_path / name) == net
    assert bbn.load(str(tmp_path / name)) == net
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    os.rename(tmp_path / name, tmp_path / "nameless")
    assert bbn.load(tmp_path / "nameless") == net


def test_save_replaces_the_file_and_keeps_its_mode_and_links(tmp_path):
    path, link = tmp_path / "net.yaml", tmp_path / "link.yaml"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    bbn.example("asia").save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert bbn.load(path) == bbn.example("asia")
    assert sorted(os.listdir(tmp_path)) == ["link.yaml", "net.yaml"]


def test_saving_at_once_from_many_threads_leaves_one_whole_file(tmp_path):
    path = tmp_path / "net.yaml"
    networks = [bbn.example(name) for name in ("asia", "student", "flu")]
    threads = [threading.Thread(target=net.save, args=(path,)) for net in networks * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bbn.load(path) in networks
    assert os.listdir(tmp_path) == ["net.yaml"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_read(tmp_path, encoding):
    path = tmp_path / "net.yaml"
    path.write_bytes("nodes: {Café: {states: [ja, nein], table: [0.5, 0.5]}}".encode(encoding))
    assert bbn.load(path).names == ("Café",)


def test_windows_and_old_line_ends(tmp_path):
    text = dumps(bbn.example("asia"), "yaml")
    for end in ("\r\n", "\r"):
        assert loads(text.replace("\n", end)) == bbn.example("asia")


def test_the_writer_is_the_schemas_and_the_schema_refuses_nonsense():
    for name in ("asia", "campfire", "student"):
        jsonschema.validate(json.loads(dumps(bbn.example(name), "json")), SCHEMA)
    bad = [
        {},
        {"nodes": {}},
        {"nodes": {"A": {"states": []}}},
        {"nodes": {"A": {"states": ["a"], "table": ["x"]}}},
        {"nodes": {"A": {"states": ["a"], "tabel": [1]}}},
        {"nodes": {"A": {"states": [1.5], "table": [1]}}},
        {"nodes": {"A": {"states": ["a", "a"], "table": [1, 0]}}},
    ]
    for document in bad:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(document, SCHEMA)


def test_json_from_elsewhere():
    text = '\ufeff{ "nodes":\t{"\\u00e9\\ud83d\\udd25/\\/": {"table":[2.5e-1,75E-2],"states":["a\\n","\\"b\\""]}}}'
    net = loads(text.encode(), "json")
    assert net.names == ("é🔥//",)
    assert net.states("é🔥//") == ("a\n", '"b"')


# The quick way and the careful way


def carefully(text: str, format: str) -> bbn.BayesianNetwork:
    source = Source(text.encode(), None)
    return read_network(YamlDocument(source) if format == "yaml" else JsonDocument(source), strict=False)


def quickly(text: str, format: str) -> bbn.BayesianNetwork | None:
    source = Source(text.encode(), None)
    if format == "json":
        return quick_json(source, strict=False)
    return quick_yaml(source, False, lambda shell: read_network(YamlDocument(shell), strict=False))


@pytest.mark.parametrize("format", OWN)
@pytest.mark.parametrize("name", ["asia", "student", "alarm", "insurance", "hailfinder"])
def test_what_the_writers_write_is_read_quickly(format, name):
    net = bbn.example(name)
    found = quickly(dumps(net, format), format)
    assert found == net
    assert bits(found) == bits(net)
    assert found.name == net.name
    assert found.metadata == net.metadata


@pytest.mark.parametrize("format", OWN)
@given(
    network=networks(max_nodes=4, max_cells=60), seed=st.integers(0, 2**32 - 1), n_changes=st.integers(0, 3)
)
def test_the_quick_way_never_differs_from_the_careful_way(format, network, seed, n_changes):
    rng = random.Random(seed)
    text = dumps(network, format)
    for _ in range(n_changes):
        place = rng.randrange(len(text))
        other = rng.randrange(len(text))
        piece = rng.choice(
            [
                "",
                "\n",
                " ",
                ",",
                "0",
                "-",
                "e9",
                ":",
                "[",
                "]",
                "true",
                "# x\n",
                '"',
                "nodes",
                text[other : other + 9],
            ]
        )
        text = text[:place] + piece + text[place + rng.randrange(3) :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.RenormalisedWarning)
        found = quickly(text, format)
        if found is None:
            return
        expected = carefully(text, format)
    assert found == expected
    assert (bits(found), kinds(found)) == (bits(expected), kinds(expected))
    assert (found.name, found.metadata) == (expected.name, expected.metadata)


@pytest.mark.parametrize("format", OWN)
def test_rows_in_another_order_are_not_read_in_their_own(format):
    net = bbn.example("burglary")
    text = dumps(net, format)
    keys = ("yes, no", '"yes, no', "no, yes", '"no, yes')
    first, second = (line for line in text.splitlines() if line.strip().startswith(keys))
    swapped = text.replace(first, "@").replace(second, first).replace("@", second)
    assert swapped != text
    assert loads(swapped, format) == net
    with pytest.raises(bbn.ParseError, match="no state 'si'"):
        loads(text.replace("no, yes", "si, yes"), format)
