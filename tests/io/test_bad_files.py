"""Files that are wrong: each gives the right error, with the place and the words needed to mend it."""

import gzip
import json
import os
import zlib

import pytest

import bbn
from bbn.core.errors import BudgetError, ParseError
from bbn.io import FORMATS, loads

COIN = "nodes: {Coin: {states: [heads, tails], table: [0.5, 0.5]}}"


def network(table: str, states: str = "[yes, no]", parents: str = "[A, B]") -> str:
    return (
        "nodes:\n"
        "  A: {states: [yes, no], table: [0.5, 0.5]}\n"
        "  B: {states: [on, off], table: [0.5, 0.5]}\n"
        f"  C:\n    states: {states}\n    parents: {parents}\n    table:{table}\n"
    )


ROWS = "\n      yes, on: [0.1, 0.9]\n      yes, off: [0.2, 0.8]\n      no, on: [0.3, 0.7]\n      no, off: [0.4, 0.6]"
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(9)
)

# name: (text, line, column, words of the message)
YAML = {
    "empty": ("", 1, 1, ["empty"]),
    "only a comment": ("# nothing\n", 1, 1, ["empty"]),
    "a scalar": ("hello", 1, 1, ["mapping", "'nodes'", "'hello'"]),
    "a list": ("- a\n- b\n", 1, 1, ["mapping", "a list of 2"]),
    "no nodes": ("name: x\nnods: y\n", 2, 1, ["no 'nodes'", "'nods' must be called 'nodes'"]),
    "empty nodes": ("nodes: {}", None, None, ["empty", "at least one node"]),
    "null nodes": ("nodes:\n", None, None, ["empty"]),
    "nodes is a list": ("nodes: [A, B]", 1, 8, ["'nodes' must be a mapping"]),
    "a node is a list": ("nodes: {A: [1, 2]}", 1, 9, ["'A'", "a mapping with 'states' and 'table'"]),
    "unknown key": (
        "nodes: {A: {state: [a], table: [1]}}",
        1,
        13,
        ["'A'", "'state'", "did you mean 'states'?"],
    ),
    "no states": ("nodes: {A: {table: [1]}}", 1, 9, ["'A' has no 'states'"]),
    "no table": ("nodes: {A: {states: [a]}}", 1, 9, ["'A' has no 'table'"]),
    "states is a word": ("nodes: {A: {states: a, table: [1]}}", 1, 21, ["'A'", "'states' must be a list"]),
    "empty states": ("nodes: {A: {states: [], table: []}}", 1, 21, ["'A' has no states"]),
    "duplicate state": ("nodes: {A: {states: [a, a], table: [1, 0]}}", 1, 9, ["'A'", "'a' twice"]),
    "mixed states": ("nodes: {A: {states: [a, 1], table: [1, 0]}}", 1, 9, ["'A' mixes str and int"]),
    "states that read alike": (
        'nodes: {A: {states: ["1", 1], table: [1, 0]}}',
        1,
        9,
        ["'A' mixes", "read alike"],
    ),
    "float state": ("nodes: {A: {states: [0.5, 1.5], table: [1, 0]}}", 1, 22, ["'A'", "0.5", 'write "0.5"']),
    "null state": ("nodes: {A: {states: [null, b], table: [1, 0]}}", 1, 22, ["'A'", "null"]),
    "list as a state": ("nodes: {A: {states: [[a], b], table: [1, 0]}}", 1, 22, ["'A'", "a list of 1"]),
    "non-string name": ("nodes: {1: {states: [a], table: [1]}}", 1, 9, ["name must be a string", "1"]),
    "boolean name": ("nodes: {true: {states: [a], table: [1]}}", 1, 9, ["name must be a string", "true"]),
    "empty name": ('nodes: {"": {states: [a], table: [1]}}', 1, 9, ["name must be a string"]),
    "duplicate node": (
        "nodes:\n  A: {states: [a], table: [1]}\n  A: {states: [b], table: [1]}\n",
        3,
        3,
        ["duplicate node 'A'", "line 2"],
    ),
    "duplicate top key": (f"name: x\nname: y\n{COIN}", 2, 1, ["'name' is given twice", "line 1"]),
    "nodes twice": (f"{COIN}\n{COIN}", 2, 1, ["'nodes' is given twice", "line 1"]),
    "duplicate field": (
        "nodes: {A: {states: [a], states: [b], table: [1]}}",
        1,
        26,
        ["'states' is given twice"],
    ),
    "unknown parent": (network(ROWS, parents="[A, Bee]"), 4, 3, ["'C'", "unknown parent 'Bee'"]),
    "parent twice": (network(ROWS, parents="[A, A]"), 4, 3, ["'C'", "parent 'A' twice"]),
    "own parent": (network(ROWS, parents="[A, C]"), 4, 3, ["'C'", "own parent"]),
    "parents is a word": (network(ROWS, parents="A"), 6, 14, ["'C'", "'parents' must be a list", "'A'"]),
    "parent is a number": (network(ROWS, parents="[A, 1]"), 6, 18, ["'C'", "parent's name must be a string"]),
    "cycle": (
        "nodes:\n  A: {states: [a], parents: [C], table: [[1]]}\n  B: {states: [a], parents: [A], table: [[1]]}\n"
        "  C: {states: [a], parents: [B], table: [[1]]}\n",
        2,
        3,
        ["cycle: A → B → C → A"],
    ),
    "row sum": (network(ROWS.replace("0.9]", "0.87]")), 8, 7, ["'C', row A=yes, B=on", "0.97, expected 1"]),
    "root sum": ("nodes: {A: {states: [a, b], table: [0.5, 0.4]}}", 1, 36, ["'A'", "0.9, expected 1"]),
    "negative": (network(ROWS.replace("0.1, 0.9", "-0.1, 1.1")), 8, 17, ["'C'", "yes, on", "-0.1"]),
    "nan": (network(ROWS.replace("0.1,", ".nan,")), 8, 17, ["'C'", "yes, on", ".nan", "probability"]),
    "infinite": (network(ROWS.replace("0.1,", ".inf,")), 8, 17, ["'C'", ".inf", "probability"]),
    "a word for a number": (network(ROWS.replace("0.1,", "third,")), 8, 17, ["'C'", "a number", "'third'"]),
    "a quoted number": (network(ROWS.replace("0.1,", '"0.1",')), 8, 17, ["'C'", "a number", "'0.1'"]),
    "a list for a number": (network(ROWS.replace("0.1,", "[0.1],")), 8, 17, ["'C'", "a number", "a list"]),
    "too few entries": (
        network(ROWS.replace("0.1, ", "")),
        8,
        16,
        ["'C'", "yes, on", "2 entries (yes, no)", "1"],
    ),
    "too many entries": (network(ROWS.replace("0.1,", "0, 0.1,")), 8, 16, ["'C'", "2 entries", "found 3"]),
    "missing row": (
        network(ROWS.replace("\n      no, on: [0.3, 0.7]", "")),
        4,
        3,
        ["1 row missing", "no, on"],
    ),
    "repeated row": (network(ROWS.replace("no, on", "yes,on")), 10, 7, ["'yes,on' is given twice", "line 8"]),
    "unknown state": (
        network(ROWS.replace("no, on", "nope, on")),
        10,
        7,
        ["'A' has no state 'nope'", "'no'"],
    ),
    "extra row": (network(ROWS + "\n      maybe, on: [0.5, 0.5]"), 12, 7, ["'A' has no state 'maybe'"]),
    "short key": (network(ROWS.replace("no, on", "no")), 10, 7, ["names 1 state", "expected 2", "A, B"]),
    "mapping key": (network(ROWS.replace("no, on", "{a: b}")), 10, 7, ["row's key", "a mapping"]),
    "flat list": (
        network(" [0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6]"),
        7,
        12,
        ["nested list of shape (2, 2, 2)", "axes A, B, C", "found (8)"],
    ),
    "wrong shape": (network(" [[0.1, 0.9], [0.2, 0.8]]"), 7, 13, ["(2, 2, 2)", "found (2, 2)"]),
    "ragged": (
        network(" [[[0.1, 0.9], [0.2, 0.8]], [[1, 0]]]"),
        7,
        39,
        ["differ in shape", "(2, 2) and (1, 2)"],
    ),
    "a list and a number": (network(" [[[0.1, 0.9], 0.2]]"), 7, 26, ["expected a list in the table"]),
    "empty list in table": (network(" [[], []]"), 7, 13, ["empty list"]),
    "table is a word": (network(" uniform"), 7, 12, ["'table' must be a list or a mapping", "'uniform'"]),
    "row is a number": (network(ROWS.replace("[0.1, 0.9]", "0.1")), 8, 16, ["list of 2 numbers", "0.1"]),
    "root too long": (
        "nodes: {A: {states: [a, b], table: [0.5, 0.5, 0]}}",
        1,
        36,
        ["shape (2)", "found (3)"],
    ),
    "row by unknown state": (
        network(ROWS.replace("[0.1, 0.9]", "{yes: 0.1, nein: 0.9}")),
        8,
        27,
        ["'C'", "no state 'nein'"],
    ),
    "row without a state": (network(ROWS.replace("[0.1, 0.9]", "{yes: 0.1}")), 8, 16, ["no entry for no"]),
    "row names a state twice": (
        network(ROWS.replace("[0.1, 0.9]", "{yes: 0.1, yes: 0.9}")),
        8,
        27,
        ["'yes' is given twice"],
    ),
    "a tab": ("nodes:\n\tA: {states: [a], table: [1]}\n", 2, 1, ["tab"]),
    "an unclosed list": ("nodes: {A: {states: [a, table: [1]}}", None, None, ["not YAML"]),
    "an unclosed quote": ('nodes: {"A: 1}', None, None, ["not YAML"]),
    "python object": (
        "nodes: !!python/object/apply:os.system ['true']",
        1,
        8,
        ["tag", "python/object/apply:os.system", "not allowed"],
    ),
    "python name": (
        "nodes: {A: {states: [!!python/name:os.system x], table: [1]}}",
        1,
        22,
        ["tag", "not allowed"],
    ),
    "a local tag": ("nodes: !thing {A: 1}", 1, 8, ["tag", "'!thing'"]),
    "wrong core tag": ("nodes: {A: {states: [a], table: [!!float x]}}", 1, 34, ["type float", "'x'"]),
    "a billion laughs": (LAUGHS, None, None, ["aliases stand for more than 1,000,000"]),
    "unknown alias": ("nodes: *x", 1, 8, ["*x", "before any anchor"]),
    "alias inside itself": ("a: &x [*x]", 1, 8, ["*x", "inside itself"]),
    "deep lists": ("x: " + "[" * 100_000, None, None, ["nested more than 100 deep"]),
    "deep mappings": ("x: " + "{a: " * 100_000, None, None, ["nested more than 100 deep"]),
    "deep dashes": ("x:\n  " + "- " * 5000 + "a", None, None, ["nested more than 100 deep"]),
    "two documents": (f"{COIN}\n---\n{COIN}", 2, 1, ["second document"]),
    "a control character": ("nodes:\n  A\x07: 1\n", None, None, ["not YAML"]),
    "a merge key": (f"<<: {{name: x}}\n{COIN}", 1, 5, ["'<<' must be text"]),
    "huge int state": (f"nodes: {{A: {{states: [{'9' * 5000}], table: [1]}}}}", 1, 22, ["a state must be"]),
}

JSON = {
    "empty": ("", 1, 1, ["empty"]),
    "a list": ("[1, 2]", 1, 1, ["mapping", "a list of 2"]),
    "NaN": ('{"nodes": {"A": {"states": ["a"], "table": [NaN]}}}', 1, 45, ["'NaN'"]),
    "Infinity": ('{"nodes": {"A": {"states": ["a"], "table": [-Infinity]}}}', 1, 45, ["'-Infinity'"]),
    "trailing comma": ('{"nodes": {"A": {"states": ["a",], "table": [1]}}}', 1, 33, ["another item", "']'"]),
    "comment": ('{"nodes": {}} // done', 1, 15, ["'/'"]),
    "single quotes": ("{'nodes': {}}", 1, 2, ['"\'"']),
    "bare key": ("{nodes: {}}", 1, 2, ["'nodes'"]),
    "number as key": ("{1: {}}", 1, 2, ["a key in double quotes"]),
    "no colon": ('{"nodes" {}}', 1, 10, ["':'"]),
    "no comma": ('{"nodes": {"A": {"states": ["a" "b"]}}}', 1, 33, ["',' or ']'"]),
    "cut off": ('{"nodes": {"A": {"states": ["a"', 1, 32, ["end of the file"]),
    "cut off in a string": ('{"nodes": {"A', 1, 12, ["'\"'"]),
    "two values": ('{"nodes": {}} {}', 1, 15, ["end of the file", "'{'"]),
    "duplicate key": (
        '{"nodes": {"A": {"states": ["a"], "states": ["a"], "table": [1]}}}',
        1,
        35,
        ["'states' is given twice"],
    ),
    "duplicate node": (
        '{"nodes": {"A": {"states": ["a"], "table": [1]},\n "A": {"states": ["a"], "table": [1]}}}',
        2,
        2,
        ["duplicate node 'A'", "line 1"],
    ),
    "leading zero": ('{"nodes": {"A": {"states": ["a"], "table": [01]}}}', 1, 45, ["'01'"]),
    "bad escape": ('{"nodes": {"\\q": 1}}', 1, 13, ["escape"]),
    "raw newline in a string": ('{"nodes": {"a\nb": 1}}', 1, 12, ["'\"'"]),
    "null as a state": ('{"nodes": {"A": {"states": [null], "table": [1]}}}', 1, 29, ["null"]),
    "string for a number": (
        '{"nodes": {"A": {"states": ["a"], "table": ["1"]}}}',
        1,
        45,
        ["a number", "'1'"],
    ),
    "huge exponent": (
        '{"nodes": {"A": {"states": ["a"], "table": [1e999]}}}',
        1,
        45,
        ["probability", "1e999"],
    ),
    "deep": ('{"x": ' + "[" * 100_000, 1, 106, ["nested more than 100 deep"]),
    "row sum": (
        '{"nodes": {"A": {"states": ["a", "b"],\n "table": [0.5, 0.4]}}}',
        2,
        11,
        ["0.9, expected 1"],
    ),
}
CASES = [("yaml", name, *case) for name, case in YAML.items()] + [
    ("json", name, *case) for name, case in JSON.items()
]


@pytest.mark.parametrize(
    ("format", "text", "line", "column", "words"),
    [pytest.param(form, *case, id=f"{form}: {name}") for form, name, *case in CASES],
)
def test_the_error_names_the_place_and_the_fault(tmp_path, format, text, line, column, words):
    path = tmp_path / f"bad.{format}"
    path.write_text(text)
    with pytest.raises(ParseError) as caught:
        bbn.load(path)
    error = caught.value
    assert error.path == str(path)
    if line is not None:
        assert (error.line, error.column) == (line, column), str(error)
    for word in words:
        assert word in error.message
    assert str(error).startswith(str(path))


def test_every_problem_of_a_file_is_found_at_once():
    text = (
        "nodes:\n"
        "  A: {states: [a, b], table: [0.5, 0.4]}\n"
        "  B: {states: [a, b], parents: [Q], table: [[1, 0], [1, 0]]}\n"
        "  C: {states: [a, a], table: [1, 0]}\n"
        "  D: {states: [a, b], parents: [A], table: {a: [1, 0], c: [1, 0]}}\n"
        "  E: {states: [a], parents: [F], table: [[1]]}\n"
        "  F: {states: [a], parents: [E], table: [[x]]}\n"
    )
    with pytest.raises(ParseError) as caught:
        loads(text, "yaml")
    problems = caught.value.problems
    assert problems[0] is caught.value
    assert [problem.line for problem in problems] == [2, 3, 4, 5, 6, 7]
    found = "\n".join(map(str, problems))
    for words in ("0.9", "unknown parent 'Q'", "'a' twice", "no state 'c'", "cycle: E → F → E", "found 'x'"):
        assert words in found


def test_a_table_too_large_for_memory_is_refused_before_it_is_made():
    parents = [f"P{i}" for i in range(40)]
    nodes = "".join(f"  {p}: {{states: [a, b], table: [0.5, 0.5]}}\n" for p in parents)
    for table in ("{}", "[0.5, 0.5]", f"{{[{', '.join('a' * 40)}]: [1, 0]}}"):
        text = f"nodes:\n{nodes}  X: {{states: [a, b], parents: [{', '.join(parents)}], table: {table}}}\n"
        with pytest.raises(BudgetError) as caught:
            loads(text, "yaml")
        assert isinstance(caught.value, ParseError)
        assert caught.value.line == 42
        assert "'X'" in str(caught.value)


# What cannot be opened, and what is no text


def test_a_path_that_cannot_be_opened_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        bbn.load(tmp_path / "missing.yaml")
    with pytest.raises(IsADirectoryError):
        bbn.load(tmp_path)
    secret = tmp_path / "secret.yaml"
    secret.write_text(COIN)
    secret.chmod(0)
    if not os.access(secret, os.R_OK):  # the superuser may read everything
        with pytest.raises(PermissionError):
            bbn.load(secret)


@pytest.mark.parametrize("format", [format.name for format in FORMATS])
@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02\x03", bytes(range(256)), b"\x7fELF\x02\x01\x01\x00", b"\xff\xfe\x00"]
)
def test_a_binary_file_is_a_parse_error(tmp_path, format, data):
    path = tmp_path / "binary"
    path.write_bytes(data)
    with pytest.raises(ParseError):
        bbn.load(path, format=format)


def test_not_utf8_gives_the_place_of_the_byte(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: café\n".encode("latin-1") + COIN.encode())
    with pytest.raises(ParseError, match="UTF-8") as caught:
        bbn.load(path)
    assert (caught.value.line, caught.value.column) == (1, 10)


def test_truncated_and_broken_gzip(tmp_path):
    whole = gzip.compress(COIN.encode())
    for n, data in enumerate(
        (whole[:20], whole[:-4], whole[:3], b"", b"plain text", whole[:12] + b"\xff" * 30)
    ):
        path = tmp_path / f"{n}.yaml.gz"
        path.write_bytes(data)
        with pytest.raises(ParseError, match="gzip"):
            bbn.load(path)
    (tmp_path / "good.yaml.gz").write_bytes(whole + gzip.compress(b"\nname: two members\n"))
    assert bbn.load(tmp_path / "good.yaml.gz").name == "two members"


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "80MB")
    packer = zlib.compressobj(9, wbits=31)
    zeros = b" " * 2**20
    packed = b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush()
    path = tmp_path / "bomb.yaml.gz"
    path.write_bytes(packed)
    assert len(packed) < 100_000
    with pytest.raises(ParseError, match="limit of 10 MB") as caught:
        bbn.load(path)
    assert isinstance(caught.value, BudgetError)
    assert caught.value.limit == 10_000_000


def test_a_file_past_the_limit_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "800kB")
    path = tmp_path / "large.yaml"
    path.write_text("#" * 200_000)
    with pytest.raises(BudgetError, match="200 kB"):
        bbn.load(path)


def test_a_file_of_no_known_format(tmp_path):
    path = tmp_path / "mystery.txt"
    path.write_text("what is this?")
    with pytest.raises(ParseError, match="cannot tell the format"):
        bbn.load(path)
    with pytest.raises(ValueError, match="did you mean 'yaml'"):
        bbn.load(path, format="yalm")
    with pytest.raises(ValueError, match=r"\.yaml"):
        bbn.example("asia").save(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "net.yaml"
    path.write_text(COIN)
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        bbn.example("asia").save(path)
    assert path.read_text() == COIN
    assert os.listdir(tmp_path) == ["net.yaml"]
    with pytest.raises(OSError, match="No such file"):
        bbn.example("asia").save(tmp_path / "nowhere" / "net.yaml")


def test_rows_that_are_nearly_one(recwarn):
    text = "nodes: {{A: {{states: [a, b], table: [{}, 0.5]}}}}"
    assert loads(text.format("0.5000000001")).variables  # kept bit for bit
    assert loads(text.format("0.5000000001"))["A"].table[0] == 0.5000000001
    assert loads(text.format("0.5000005"))["A"].table.sum() == pytest.approx(1, abs=1e-15)
    assert not recwarn
    with pytest.warns(bbn.RenormalisedWarning, match=r"1 row off 1 by up to 0\.005"):
        assert loads(text.format("0.505"))["A"].table.sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(ParseError, match=r"1\.02"):
        loads(text.format("0.52"))
    with pytest.raises(ParseError, match="expected 1"):
        loads(text.format("0.5000005"), strict=True)
    assert loads(text.format("0.5000000001"), strict=True)


def test_json_and_yaml_agree_on_json(tmp_path):
    text = json.dumps(
        {"name": "c", "nodes": {"Coin": {"states": ["h", "t"], "table": [0.25, 0.75]}}}, indent=1
    )
    assert loads(text, "json") == loads(text, "yaml") == loads(text)
