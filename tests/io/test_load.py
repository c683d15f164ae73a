"""Readers under load: files made to be slow, or to fill memory, are read or refused in bounded work."""

from __future__ import annotations

import difflib
import gc
import gzip
import json
import tracemalloc
import zlib

import networkx as nx
import pytest

import bbn
from bbn.core.errors import MOST_COMPARED, ParseError, nearest
from bbn.io import dumps, find_format, loads
from bbn.io.problems import MAX_PROBLEMS
from bbn.io.source_text import MAX_COMPARED, MAX_MESSAGE, Source

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
        "bbn.io.source_text.nearest", lambda word, choices: searched.append(len(choices)) or "; near"
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


# Memory. tracemalloc counts what Python and numpy take, so the peaks do not depend on the machine.


def peak(read):
    """The most memory that was taken at once, in bytes, and what `read` gave or raised."""
    gc.collect()
    tracemalloc.start()
    try:
        result = read()
    except ParseError as error:
        result = error
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return most, result


def default_rows(n, tables=1, row="0.5, 0.5"):
    text = "".join(f"variable v{i} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for i in range(n + tables))
    text += "".join(f"probability ( v{i} ) {{ default 1, 0; }}\n" for i in range(n))
    parents = ", ".join(f"v{i}" for i in range(n))
    return text + "".join(
        f"probability ( v{n + i} | {parents} ) {{ default {row}; }}\n" for i in range(tables)
    )


def uniform_potentials(n, tables=1):
    text = "".join(f'node v{i} {{ states = ("a" "b"); }}\n' for i in range(n + tables))
    text += "".join(f"potential ( v{i} ) {{ }}\n" for i in range(n))
    parents = " ".join(f"v{i}" for i in range(n))
    return text + "".join(f"potential ( v{n + i} | {parents} ) {{ }}\n" for i in range(tables))


def noisy_max(n, tables=1):
    states = '<state id="a" /><state id="b" />'
    text = "".join(f'<cpt id="v{i}">{states}<probabilities>1 0</probabilities></cpt>' for i in range(n))
    parents = " ".join(f"v{i}" for i in range(n))
    text += "".join(
        f'<noisymax id="c{i}">{states}<parents>{parents}</parents><parameters>{"0.1 0.9 " * (2 * n + 1)}</parameters>'
        "</noisymax>"
        for i in range(tables)
    )
    return f'<smile id="x"><nodes>{text}</nodes></smile>'


def deterministic(n, tables=1):
    """Tables of 2^(n / 2) results, each one of 2^(n / 2) states."""
    count = 2 ** (n // 2)
    states = "".join(f'<state id="s{i}" />' for i in range(count))
    text = f'<cpt id="p">{states}<probabilities>1 {"0 " * (count - 1)}</probabilities></cpt>'
    text += "".join(
        f'<deterministic id="d{i}">{states}<parents>p</parents><resultingstates>{"s1 " * count}</resultingstates>'
        "</deterministic>"
        for i in range(tables)
    )
    return f'<smile id="x"><nodes>{text}</nodes></smile>'


def free_variables(n, tables=1):
    return f"MARKOV {tables} {f'{2**n} ' * tables} 0"


# The format, what asks for 2^n entries or so in a few words, and the n at which one, and 40 of them, are too large.
ASKING = {
    "bif": ("bif", default_rows, 22, 17),
    "bif uneven": ("bif", lambda n, tables=1: default_rows(n, tables, "0.3333, 0.6666"), 22, 17),
    "net": ("net", uniform_potentials, 22, 17),
    "deterministic": ("xdsl", deterministic, 24, 18),
    "uai": ("uai", free_variables, 19, 17),
}


@pytest.mark.parametrize("case", ASKING)
@pytest.mark.parametrize("tables", [1, 40])
def test_what_a_few_words_ask_for_is_refused_before_it_is_taken(case, tables, monkeypatch):
    format, make, one, all_together = ASKING[case]
    text = make(one if tables == 1 else all_together, tables)
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "60MB")
    most, error = peak(lambda: loads(text, format))
    assert isinstance(error, bbn.BudgetError)
    assert isinstance(error, ParseError)
    assert "limit of 60 MB" in str(error)
    assert error.limit == 60_000_000 < error.needed
    assert most < 75_000_000


def test_a_noisy_max_of_many_parents_is_kept_as_its_links(monkeypatch):
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "60MB")
    most, net = peak(lambda: loads(noisy_max(40), "xdsl"))
    assert most < 10_000_000
    with pytest.raises(bbn.BudgetError):
        net["c0"].to_cpt()


@pytest.mark.filterwarnings("ignore::bbn.RenormalisedWarning")
@pytest.mark.parametrize("case", ASKING)
def test_what_a_few_words_ask_for_is_priced_truly(case):
    format, make, *_ = ASKING[case]
    source = Source(make(18).encode())
    read = find_format(format).read
    read(Source(make(2).encode()), False)  # what is imported is not counted
    most, model = peak(lambda: read(source, False))
    assert len(model.names) >= 1
    assert source._reserved / 4 < most < 1.2 * source._reserved


NUMBERS = [f"0.{i:06d}" for i in range(12_000)]
STATES = [f"s{i}" for i in range(12_000)]
DENSE = {  # many words for their bytes, as much memory for each as we could think of
    "yaml numbers": ("yaml", lambda: f"nodes: {{a: {{states: [x], table: [{','.join(NUMBERS)}]}}}}"),
    "yaml states": ("yaml", lambda: f"nodes: {{a: {{states: [{','.join(STATES)}], table: [1]}}}}"),
    "yaml nodes": ("yaml", lambda: f"nodes: {{{','.join(f'{s}: 1' for s in STATES)}}}"),
    "yaml lists": ("yaml", lambda: f"nodes: {{a: {{states: [x], table: [{'[],' * 30_000}]}}}}"),
    "json numbers": ("json", lambda: f'{{"nodes": {{"a": {{"states": ["x"], "table": [{",".join(NUMBERS)}]}}}}}}'),
    "json nodes": ("json", lambda: f'{{"nodes": {{{",".join(f"{json.dumps(s)}:{{}}" for s in STATES)}}}}}'),
    "bif numbers": ("bif", lambda: (
        f"variable a {{ type discrete [ 1 ] {{ x }}; }} probability ( a ) {{ table {' '.join(NUMBERS)}; }}")),
    "bif rows": ("bif", lambda: (
        "variable a { type discrete [ 2 ] { x y }; } "
        f"variable b {{ type discrete [ 12000 ] {{ {' '.join(STATES)} }}; }} "
        f"probability ( a | b ) {{ {' '.join(f'({s}) 1 0;' for s in STATES)} }}")),
    "net numbers": ("net", lambda: f'node a {{ states = ("x"); }} potential (a) {{ data = ({" ".join(NUMBERS)}); }}'),
    "net states": ("net", lambda: f"node a {{ states = ({' '.join(STATES)}); }} potential (a) {{ data = (1); }}"),
    "xdsl numbers": ("xdsl", lambda: (
        '<smile><nodes><cpt id="a"><state id="x" /><probabilities>'
        f"{' '.join(NUMBERS)}</probabilities></cpt></nodes></smile>")),
    "xdsl elements": ("xdsl", lambda: f"<smile><nodes>{'<a/>x' * 20_000}</nodes></smile>"),
    "xmlbif variables": ("xmlbif", lambda: (
        f"<BIF><NETWORK>{'<VARIABLE><NAME>a</NAME></VARIABLE>' * 5_000}</NETWORK></BIF>")),
    "uai numbers": ("uai", lambda: f"BAYES 1 12000 1 1 0 12000 {' '.join(NUMBERS)}"),
    "uai variables": ("uai", lambda: (
        f"BAYES 12000 {'1 ' * 12_000} 12000 {' '.join(f'1 {i}' for i in range(12_000))} {'1 1 ' * 12_000}")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", DENSE)
def test_the_words_of_a_file_are_priced_truly(case, monkeypatch):
    format, make = DENSE[case]
    text = make()
    loads('{"nodes": {"a": {"states": ["x"], "table": [1]}}}', "json")
    most, _ = peak(lambda: loads(text, format))
    limit = int(most / 1.2)  # what it takes is refused where only this much is allowed
    monkeypatch.setenv("BBN_MEMORY_LIMIT", str(limit))
    most_refused, error = peak(lambda: loads(text, format))
    assert isinstance(error, bbn.BudgetError)
    assert "more than the limit of" in str(error)
    assert most_refused < 8 * len(text) + 10**6


def test_files_of_every_size_are_read_where_there_is_room(monkeypatch):
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "1MB")  # below what the text of a small file would be priced
    assert len(loads(dumps(bbn.example("alarm"), "bif"), "bif")) == 37


@pytest.mark.parametrize("format", ["bif", "yaml"])
def test_keys_of_rows_are_not_made_longer_than_the_file(format):
    """Rows for parents whose states have long names would have keys of gigabytes."""
    n, long = 14, "x" * 100_000
    states = [long + "1", long + "2"]
    names = [f"p{i}" for i in range(n)]
    if format == "bif":
        text = "".join(f"variable {p} {{ type discrete [ 2 ] {{ {', '.join(states)} }}; }}\n" for p in names)
        text += "".join(f"probability ( {p} ) {{ table 1, 0; }}\n" for p in names)
        text += f"variable c {{ type discrete [ 1 ] {{ y }}; }}\nprobability ( c | {', '.join(names)} ) {{ "
        text += "(z) 1; " * 2**n + "}"
    else:
        text = "nodes:\n" + "".join(
            f"  {p}:\n    states: [{', '.join(states)}]\n    table: [1.0, 0.0]\n" for p in names
        )
        text += f"  c:\n    states: [y]\n    parents: [{', '.join(names)}]\n    table:\n"
        text += "".join(f"      k{i}: [1.0]\n" for i in range(2**n))
    most, error = peak(lambda: loads(text, format))
    assert isinstance(error, ParseError)
    assert most < 200_000_000


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_tables_that_name_rows_in_odd_ways_are_found_out_in_linear_work(format):
    """Each key is looked up in a dictionary that is made once, however many rows and states there are."""
    n = 20_000
    rows = {f" s{i} ": [1, 0] for i in range(n)}
    table = [1] + [0] * (n - 1)
    nodes = {
        "a": {"states": [f"s{i}" for i in range(n)], "table": table},
        "b": {"states": ["x", "y"], "parents": ["a"], "table": rows},
    }
    net = loads(json.dumps({"nodes": nodes}), format)
    assert net["b"].table.shape == (n, 2)


ONES = [f"p{i}" for i in range(64)]
SIXTY_FIVE_AXES = {
    "yaml": "nodes:\n"
    + "".join(f"  {p}: {{states: [a], table: [1]}}\n" for p in ONES)
    + f"  c: {{states: [x, y], parents: [{', '.join(ONES)}], table: {'[' * 65}0.5, 0.5{']' * 65}}}\n",
    "json": json.dumps(
        {
            "nodes": {p: {"states": ["a"], "table": [1]} for p in ONES}
            | {"c": {"states": ["x", "y"], "parents": ONES, "table": {", ".join("a" * 64): [0.5, 0.5]}}}
        }
    ),
    "bif": "".join(
        f"variable {p} {{ type discrete [ 1 ] {{ a }}; }} probability ( {p} ) {{ table 1; }}\n" for p in ONES
    )
    + "variable c { type discrete [ 2 ] { x, y }; }\n"
    + f"probability ( c | {', '.join(ONES)} ) {{ table 0.5, 0.5; }}",
    "net": "".join(f'node {p} {{ states = ("a"); }} potential ({p}) {{ }}\n' for p in ONES)
    + f'node c {{ states = ("x" "y"); }}\npotential (c | {" ".join(ONES)}) {{ data = (0.5 0.5); }}',
    "xdsl": "<smile><nodes>"
    + "".join(f'<cpt id="{p}"><state id="a" /><probabilities>1</probabilities></cpt>\n' for p in ONES)
    + f'<cpt id="c"><state id="x" /><state id="y" /><parents>{" ".join(ONES)}</parents>'
    + "<probabilities>0.5 0.5</probabilities></cpt></nodes>%s</smile>",
    "xmlbif": "<BIF><NETWORK>"
    + "".join(f"<VARIABLE><NAME>{p}</NAME><OUTCOME>a</OUTCOME></VARIABLE>" for p in ONES)
    + "<VARIABLE><NAME>c</NAME><OUTCOME>x</OUTCOME><OUTCOME>y</OUTCOME></VARIABLE>"
    + "".join(f"<DEFINITION><FOR>{p}</FOR><TABLE>1</TABLE></DEFINITION>" for p in ONES)
    + f"<DEFINITION><FOR>c</FOR>{''.join(f'<GIVEN>{p}</GIVEN>' for p in ONES)}<TABLE>0.5 0.5</TABLE></DEFINITION>"
    + "</NETWORK></BIF>",
    "uai": f"BAYES 65 {'1 ' * 64} 2 65 {' '.join(f'1 {i}' for i in range(64))} 65 {' '.join(map(str, range(65)))} "
    + f"{'1 1 ' * 64} 2 0.5 0.5",
}
SIXTY_FIVE_AXES["xdsl of aGrUM"] = SIXTY_FIVE_AXES["xdsl"] % '<extensions><genie app="aGrUM" /></extensions>'
SIXTY_FIVE_AXES["xdsl"] %= ""


@pytest.mark.parametrize("format", SIXTY_FIVE_AXES)
def test_more_axes_than_a_table_may_have(format):
    with pytest.raises(ParseError, match=r"65 axes; at most 32|from 0 to 32, found '65'") as caught:
        loads(SIXTY_FIVE_AXES[format], format.split()[0])
    assert caught.value.line is not None


@pytest.mark.parametrize("n", [32, 64])
def test_more_axes_than_a_learned_table_may_have(n):
    rows = {f"p{i}": ["a"] * 4 for i in range(n)} | {"c": ["x", "y", "x", "y"]}
    structure = nx.DiGraph([(f"p{i}", "c") for i in range(n)])
    with pytest.raises(bbn.BudgetError, match=f"CPT 'c' would have {n + 1} axes; at most 32"):
        bbn.fit(structure, rows)
