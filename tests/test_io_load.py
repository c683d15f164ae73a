"""Readers under load: files made to be slow, or to fill memory, are read or refused in bounded work."""

from __future__ import annotations

import difflib
import gzip
import json
import zlib

import pytest

import bbn
from bbn.errors import MOST_COMPARED, ParseError, nearest
from bbn.io import loads
from bbn.io.build import MAX_PROBLEMS
from bbn.io.text import MAX_COMPARED, MAX_MESSAGE, Source

COIN = b"nodes: {Coin: {states: [heads, tails], table: [0.5, 0.5]}}\n"


def test_a_list_of_problems_is_bounded_and_says_how_many_there_are():
    wrong = "".join(f"  v{i}: {{states: [a, b], table: [0.5, 0.4]}}\n" for i in range(1234))
    with pytest.raises(ParseError, match=r"2:31: node 'v0': sums to 0\.9") as caught:
        loads(f"nodes:\n{wrong}", "yaml")
    problems = caught.value.problems
    assert problems[0] is caught.value
    assert [problem.line for problem in problems[:-1]] == list(
        range(2, 2 + MAX_PROBLEMS)
    )  # the first in the file
    assert problems[-1].message == f"and {1234 - MAX_PROBLEMS} more problems"


@pytest.mark.parametrize("format", ["bif", "xmlbif", "net", "xdsl"])
def test_a_list_of_problems_is_bounded_in_every_format(format):
    text = {
        "bif": "variable {0} {{ type continuous; }}\n",
        "xmlbif": "<VARIABLE TYPE='decision'><NAME>{0}</NAME></VARIABLE>\n",
        "net": "decision {0} {{ }}\n",
        "xdsl": "<decision id='{0}' />\n",
    }[format]
    around = {"xmlbif": "<BIF><NETWORK>%s</NETWORK></BIF>", "xdsl": "<smile><nodes>%s</nodes></smile>"}
    body = "".join(text.format(f"v{i}") for i in range(3 * MAX_PROBLEMS))
    with pytest.raises(ParseError) as caught:
        loads(around.get(format, "%s") % body, format)
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    assert caught.value.problems[-1].message == f"and {2 * MAX_PROBLEMS} more problems"


def test_the_fault_that_ends_reading_is_listed_even_after_many_others():
    wrong = "".join(f"  v{i}: {{states: [a, b], tabel: [0.5, 0.4]}}\n" for i in range(3 * MAX_PROBLEMS))
    with pytest.raises(ParseError, match="not YAML") as caught:
        loads(f"nodes:\n{wrong}  x: [", "yaml")
    assert caught.value in caught.value.problems
    assert len(caught.value.problems) == MAX_PROBLEMS + 1


def test_long_names_do_not_make_long_messages():
    name = "n" * 10**6
    node = {"states": ["a", "b"], "parents": ["A"], "table": {f"r{i}": [1, 0] for i in range(1000)}}
    nodes = {"A": {"states": ["a", "b"], "table": [1, 0]}, name: node}
    with pytest.raises(ParseError) as caught:
        loads(json.dumps({"nodes": nodes}), "json")  # each row's message names the node
    assert all(len(problem.message) <= MAX_MESSAGE + 1 for problem in caught.value.problems)
    assert "and at least" in caught.value.problems[-1].message
    cycle = "".join(
        f"  v{i}: {{states: [a], parents: [v{(i + 1) % 5000}], table: [[1]]}}\n" for i in range(5000)
    )
    with pytest.raises(ParseError, match=r"cycle: v0 → .* → … → .* \(5000 nodes\)"):
        loads(f"nodes:\n{cycle}", "yaml")


def test_the_search_for_the_nearest_name_is_bounded(monkeypatch):
    compared = []
    search = difflib.get_close_matches

    def counted(word, possibilities, *args, **options):
        compared.append(len(possibilities))
        assert max(map(len, [word, *possibilities])) <= 100
        return search(word, possibilities, *args, **options)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    names = [f"sensor_{i:05d}_reading" for i in range(20_000)]
    near = [  # one letter wrong, one more, one less, two swapped, other capitals, among very many that are alike
        "sensor_01234_re4ding",
        "sensor_01234_readingg",
        "sensor_01234_readng",
        "sensor_01234_raeding",
        "Sensor_01234_Reading",
    ]
    for word in near:
        assert nearest(word, names) == "; did you mean 'sensor_01234_reading'?"
    assert nearest("x" * 10**6, ["x" * 10**6 + "y", "z"]).startswith("; did you mean 'xxx")
    assert max(compared) <= MOST_COMPARED


@pytest.mark.parametrize("format", ["yaml", "bif", "net", "xdsl", "xmlbif"])
def test_the_searches_of_one_file_are_bounded_together(format, monkeypatch):
    n, searched = 20_000, []
    monkeypatch.setattr(
        "bbn.io.text.nearest", lambda word, choices: searched.append(len(choices)) or "; near"
    )
    unknown = [f"w{i}" for i in range(20)]
    if format == "yaml":
        text = "nodes:\n" + "".join(f"  v{i}: {{states: [a], table: [1]}}\n" for i in range(n))
        text += "".join(f"  c{w}: {{states: [a], parents: [{w}], table: [[1]]}}\n" for w in unknown)
    elif format == "bif":
        text = "".join(f"variable v{i} {{ type discrete [ 1 ] {{ a }}; }}\n" for i in range(n))
        text += "".join(f"probability ( v0 | {w} ) {{ default 1; }}\n" for w in unknown)
    elif format == "net":
        text = "".join(f'node v{i} {{ states = ("a"); }}\n' for i in range(n))
        text += "".join(f"potential ( v0 | {w} ) {{ }}\n" for w in unknown)
    elif format == "xdsl":
        node = '<cpt id="v{0}"><state id="a" /><parents>{1}</parents><probabilities>1</probabilities></cpt>'
        nodes = [node.format(i, unknown[i] if i < 20 else "") for i in range(n)]
        text = f"<smile><nodes>{''.join(nodes)}</nodes></smile>"
    else:
        text = "".join(f"<VARIABLE><NAME>v{i}</NAME><OUTCOME>a</OUTCOME></VARIABLE>" for i in range(n))
        given = [f"<GIVEN>{unknown[i]}</GIVEN>" if i < 20 else "" for i in range(n)]
        tables = [f"<DEFINITION><FOR>v{i}</FOR>{given[i]}<TABLE>1</TABLE></DEFINITION>" for i in range(n)]
        text = f"<BIF><NETWORK>{text}{''.join(tables)}</NETWORK></BIF>"
    with pytest.raises(ParseError) as caught:
        loads(text, format)
    assert len(caught.value.problems) >= 20
    assert sum(searched) < MAX_COMPARED + n + 20


def test_members_of_gzip_data_are_read_in_linear_work(monkeypatch):
    """What zlib is given, and hands back at the end of each member, adds up to a few times the data."""
    handled = 0

    class Counted:
        def __init__(self, wbits):
            self.inner = make(wbits=wbits)

        def decompress(self, data, most):
            nonlocal handled
            piece = self.inner.decompress(data, most)
            handled += len(data) + len(self.inner.unused_data)
            return piece

        def __getattr__(self, name):
            return getattr(self.inner, name)

    make = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Counted)
    empty = gzip.compress(b"", mtime=0)
    data = empty * 20_000 + gzip.compress(COIN) + empty * 20_000
    assert Source(data).data == COIN
    assert handled < 2100 * 40_001
    handled = 0
    text = b"#" + bytes(i % 251 for i in range(10**7)).replace(b"\n", b" ") + b"\n"
    assert Source(gzip.compress(text, 0) + gzip.compress(COIN)).data == text + COIN
    assert handled < 3 * 10**7


def test_members_padding_and_truncation_of_gzip_data():
    one = gzip.compress(COIN)
    assert Source(one + b"\0" * 100_000 + one + b"\0" * 7).data == COIN * 2
    for wrong in (one + b"x", one + one[:-1], one + b"\x1f\x8b", one[:-8] + bytes(8)):
        with pytest.raises(ParseError, match="gzip"):
            Source(wrong)


def test_states_given_twice_among_many_are_found():
    states = [f"s{i}" for i in range(50_000)] + ["s49999"]
    with pytest.raises(bbn.ModelError, match="'s49999' twice"):
        bbn.Variable("v", states)
