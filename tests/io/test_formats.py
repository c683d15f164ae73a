"""Every format of the registry: round trips, suffixes, packing, row sums, dialects and errors."""

from __future__ import annotations

import gzip
import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import bbn
from bbn.cli import main
from bbn.io import FORMATS, dumps, loads
from bbn.kernels import decimals
from bbn.kernels.pure import decimals as decimals_py
from tests.support.strategies import networks

NAMED = [format.name for format in FORMATS if format.name != "uai"]
RESERVED = ["variable", "table", "probability", "network", "default", "property", "node", "potential", "net"]
ODD = [
    "two words",
    "a,b",
    'say "hi"',
    "naïve",
    "dog-out",
    "1.5",
    "<5",
    ">=7.5",
    "Asy/Patch",
    "//",
    "/*",
    "a|b",
    "x;y",
]


def quiet_dumps(net, format):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.LossyFormatWarning)
        return dumps(net, format)


def assert_same(back, net):
    assert back == net
    for name in net.names:
        assert np.array_equal(back[name].table, net[name].table)
        assert np.array_equal(np.signbit(back[name].table), np.signbit(net[name].table))


def family(words):
    """A chain whose names and states are the given words."""
    variables = [bbn.Variable(word, words[i:] + words[:i]) for i, word in enumerate(words)]
    tables = np.random.default_rng(0).dirichlet(np.ones(len(words)), size=(len(words), len(words)))
    first = bbn.CPT(variables[0], table=tables[0, 0])
    rest = [bbn.CPT(v, [p], tables[i]) for i, (p, v) in enumerate(itertools.pairwise(variables))]
    return bbn.BayesianNetwork([first, *rest], name="odd names")


@pytest.mark.parametrize("format", NAMED)
@settings(max_examples=60, deadline=None)
@given(net=networks())
def test_a_network_comes_back_bit_for_bit(format, net):
    assert_same(loads(quiet_dumps(net, format), format, strict=True), net)


@pytest.mark.parametrize("words", [RESERVED, ODD], ids=["reserved", "odd"])
@pytest.mark.parametrize("format", NAMED)
def test_odd_names_come_back(format, words):
    net = family(words)
    assert_same(loads(quiet_dumps(net, format), format, strict=True), net)


@settings(max_examples=60, deadline=None)
@given(net=networks())
def test_uai_keeps_the_tables_and_numbers_the_variables(net):
    back = loads(quiet_dumps(net, "uai"), "uai", strict=True)
    assert set(back.names) == {str(i) for i in range(len(net))}
    for i, name in enumerate(net.names):
        assert np.array_equal(back[str(i)].table, net[name].table)
        assert back.states(str(i)) == tuple(range(net.variable(name).card))
        assert back.parents(str(i)) == tuple(str(net.names.index(parent)) for parent in net.parents(name))
    assert loads(dumps(back, "uai"), "uai") == back  # numbers are kept, so there is nothing to warn about


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_suffix_packing_and_sniffing(format, tmp_path):
    net = bbn.example("asia")
    expected = loads(quiet_dumps(net, format.name), format.name)
    for suffix in format.suffixes:
        for end in ("", ".gz"):
            path = tmp_path / f"asia{suffix}{end}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bbn.LossyFormatWarning)
                bbn.save(net, path)
            assert path.read_bytes().startswith(b"\x1f\x8b") == (end == ".gz")
            assert bbn.load(path) == expected
            unnamed = path.rename(tmp_path / "no-suffix")
            assert bbn.load(unnamed) == expected
            assert bbn.load(unnamed, format=format.name) == expected


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.permutations([f.suffixes[0] for f in FORMATS], 2))
)
def test_convert_between_any_two(first, second, tmp_path):
    paths = [tmp_path / f"asia{suffix}" for suffix in (first, second, ".yaml")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.LossyFormatWarning)
        bbn.save(bbn.example("asia"), paths[0])
        for source, target in itertools.pairwise(paths):
            assert main(["convert", str(source), str(target)]) == 0
    net = bbn.load(paths[2])
    if ".uai" in (first, second):
        assert (len(net), len(net.arcs), net.n_parameters) == (8, 8, 18)
    else:
        assert net == bbn.example("asia")


def test_a_factor_graph_goes_to_uai_only():
    graph = loads("MARKOV 1 2 1 1 0 2 1 3", "uai")
    for format in NAMED:
        with pytest.raises(bbn.ModelError, match="UAI holds factor graphs"):
            dumps(graph, format)


@pytest.mark.parametrize("format", NAMED)
def test_metadata_and_name_come_back(format):
    about = {"description": 'The probability of a variable; {"x"}', "source": "A. Author\nand others"}
    net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("a", ["x", "y"]), table=[0.5, 0.5])], "my_net", about)
    back = loads(dumps(net, format), format)
    assert back.name == "my_net"
    assert dict(back.metadata) == about


def two_rows(format, first, second):
    """A text of the format in which a row holds these two numbers."""
    v = bbn.Variable("0", [0, 1]) if format == "uai" else bbn.Variable("a", ["x", "y"])
    net = bbn.BayesianNetwork([bbn.CPT(v, table=[0.123456, 1 - 0.123456])])
    text = dumps(net, format)
    assert text.count("0.123456") == 1
    assert text.count("0.876544") == 1
    return text.replace("0.123456", first).replace("0.876544", second)


@pytest.mark.parametrize("format", [format.name for format in FORMATS])
class TestRowSums:
    def table(self, format, first, second, strict=False):
        net = loads(two_rows(format, first, second), format, strict=strict)
        return net[net.names[0]].table

    def test_off_by_1e_9_is_kept(self, format):
        for strict in (False, True):
            table = self.table(format, "0.3", "0.7000000009", strict)
            assert table.tolist() == [0.3, 0.7000000009]

    def test_off_by_1e_6_is_renormalised_silently(self, format):
        table = self.table(format, "0.3", "0.7000009")
        assert np.allclose(table, np.array([0.3, 0.7000009]) / 1.0000009, rtol=1e-15, atol=0)

    def test_off_by_1e_2_is_renormalised_with_one_warning_that_counts(self, format):
        with pytest.warns(bbn.RenormalisedWarning, match="1 row off 1 by up to 0.009") as caught:
            table = self.table(format, "0.3", "0.709")
        assert len(caught) == 1
        assert np.allclose(table, np.array([0.3, 0.709]) / 1.009, rtol=1e-15, atol=0)

    def test_past_that_is_an_error(self, format):
        with pytest.raises(bbn.ParseError, match=r"sums to 1\.011"):
            self.table(format, "0.3", "0.711")

    def test_strict_makes_anything_past_1e_9_an_error(self, format):
        with pytest.raises(bbn.ParseError, match=r"sums to 1\.00000"):
            self.table(format, "0.3", "0.700000002", strict=True)

    @pytest.mark.parametrize("residue", ["-1e-7", "-0.000000999", "-1e-300"])
    def test_what_rounding_leaves_of_0_is_0(self, format, residue):
        with pytest.warns(bbn.RenormalisedWarning, match="1 row with entries below 0.*strict=True") as caught:
            assert self.table(format, residue, "1").tolist() == [0.0, 1.0]
        assert len(caught) == 1
        with pytest.raises(bbn.ParseError):
            self.table(format, residue, "1", strict=True)

    @pytest.mark.parametrize("word", ["-0.2", "-1.1e-6"])
    def test_what_is_below_0_is_named_with_its_row(self, format, word):
        names, states = ("01", [0, 1]) if format == "uai" else ("ab", ["x", "y"])
        a, b = (bbn.Variable(name, states) for name in names)
        net = bbn.BayesianNetwork(
            [bbn.CPT(a, table=[0.5, 0.5]), bbn.CPT(b, [a], [[0.25, 0.75], [0.125, 0.875]])]
        )
        text = dumps(net, format).replace("0.125", word)
        row = f"row ('{states[1]}'|{names[0]}={states[1]})"
        with pytest.raises(bbn.ParseError, match=f"node '{names[1]}', {row}.*-") as caught:
            loads(text, format)
        assert word in caught.value.message or str(float(word)) in caught.value.message
        if format in ("yaml", "json", "bif", "net"):
            assert word in text.splitlines()[caught.value.line - 1]

    def test_sums_past_the_largest_number_are_faults_without_numpys_warnings(self, format):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(bbn.ParseError, match="sums to inf, expected 1"):
                self.table(format, "1e308", "1e308")

    @pytest.mark.parametrize(
        "word", ["nan", "inf", "-0.5", "1e999", "1_0", "0x1", "½", "1,", "--1", "1e", "9" * 5000]
    )
    def test_a_word_that_is_not_a_probability_is_an_error(self, format, word):
        if (format, word) == ("bif", "1,"):
            pytest.skip("commas separate numbers there")
        with pytest.raises(bbn.ParseError):
            self.table(format, word, "0.5")


def test_many_warnings_become_one():
    row = "(x) 0.30001, 0.7; (y) 0.3, 0.7001;"
    text = (
        "variable a { type discrete [2] { x, y }; } variable b { type discrete [2] { x, y }; }"
        f"probability (a) {{ table 0.5, 0.501; }} probability (b | a) {{ {row} }}"
    )
    with pytest.warns(bbn.RenormalisedWarning, match="3 rows off 1 by up to 0.001") as caught:
        loads(text, "bif")
    assert len(caught) == 1


JAVABAYES = """// Bayesian Network in the Interchange Format
// Produced by BayesianNetworks package in JavaBayes
network "Dog-Problem" { //5 variables and 5 probability distributions
\tproperty "credal-set constant-density-bounded 1.1" ;
\tproperty "author = Fabio; Cozman" ;
}
variable  "light-on" { //2 values
\ttype discrete[2] {  "true"  "false" };
\tproperty "position = (218, 195)" ;
}
variable  "dog-out" {
\tproperty "position = (155, 165)" ;
\ttype discrete[2] {  "true"  "false" };
}
/* a comment with ; { } " and
   a second line */
variable  "family-out" { type discrete[2] {  "true"  "false" } }
variable  "bowel-problem" { type discrete[2] {  "true"  "false" }; }
probability (  "light-on"  "family-out" ) { //2 variable(s) and 4 values
\ttable 0.6 0.05 0.4 0.95 ;
}
probability (  "dog-out"  "bowel-problem"  "family-out" ) {
\ttable 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7 ;
}
probability (  "family-out" ) { table 0.15 0.85 ; }
probability (  "bowel-problem" ) { table 0.01 0.99 ; }
"""

BNLEARN = """network unknown {
}
variable my var {
  type discrete [ 3 ] { low risk, high risk, [0_5] };
}
variable b.c {
  type discrete [ 2 ] { <7.5, >=7.5 };
}
probability ( my var ) {
  table 1e-1, .4, 5.E-1;
}
probability ( b.c | my var ) {
  (high risk) 0.25, 0.75;
  (low risk) 1, 0;
  ([0_5]) 0.5, 0.5;
}
"""


class TestBifDialects:
    def test_javabayes(self):
        net = loads(JAVABAYES, "bif")
        assert net.name == "Dog-Problem"
        assert dict(net.metadata) == {"author": "Fabio; Cozman"}
        dog = net["dog-out"]
        assert [p.name for p in dog.parents] == ["bowel-problem", "family-out"]
        assert dog.table.tolist() == [[[0.99, 0.01], [0.97, 0.03]], [[0.9, 0.1], [0.3, 0.7]]]
        assert net["light-on"].table.tolist() == [[0.6, 0.4], [0.05, 0.95]]

    def test_bnlearn_with_spaces_and_rows_in_any_order(self):
        net = loads(BNLEARN, "bif")
        assert net.states("my var") == ("low risk", "high risk", "[0_5]")
        assert net.states("b.c") == ("<7.5", ">=7.5")
        assert net["my var"].table.tolist() == [0.1, 0.4, 0.5]
        assert net["b.c"].table.tolist() == [[1, 0], [0.25, 0.75], [0.5, 0.5]]

    HEAD = (
        "variable a { type discrete [2] { x, y }; } variable b { type discrete [3] { u, v, w }; }"
        "variable c { type discrete [2] { s, t }; }"
        "probability (a) { table 0.5, 0.5; } probability (b) { table 0.2, 0.3, 0.5; }"
    )

    @pytest.mark.parametrize(
        "entries",
        [
            "default 0.5, 0.5; (y, v) 1, 0;",
            "(y, v) 1, 0; default 0.5 0.5;",
            "(y,v) 1.0 0.0; default\n 0.5,\t0.5;",
            '( "y" "v" ) 1 , 0 ; default 5e-1, 5E-1',
            "(y v) 1, 0; property p = (1, 2); default 0.5, 0.5;",
            "table 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5; (y, v) 1, 0;",
            "(y, v) 1, 0; table 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5 0.5;",
        ],
    )
    def test_rows_default_and_table_in_any_order(self, entries):
        expected = np.full((2, 3, 2), 0.5)
        expected[1, 1] = [1, 0]
        net = loads(f"{self.HEAD} probability ( c | a, b ) {{ {entries} }}", "bif")
        assert np.array_equal(net["c"].table, expected)

    def test_table_has_the_child_slowest(self):
        numbers = np.arange(12.0).reshape(2, 6) + 1
        numbers /= numbers.sum(axis=0)
        listed = " ".join(map(repr, numbers.ravel().tolist()))
        net = loads(f"{self.HEAD} probability ( c | a, b ) {{ table {listed}; }}", "bif")
        for (i, j, k), value in np.ndenumerate(net["c"].table):
            assert value == numbers[k, i * 3 + j]

    def test_blocks_in_any_order_and_names_without_spaces_around(self):
        text = 'probability("a b"){table 1;}variable "a b"{type discrete[1]{"only"};};;network x{}'
        assert loads(text, "bif")["a b"].table.tolist() == [1.0]

    def test_unquoted_backslash_and_escapes(self):
        text = r'variable a { type discrete [3] { "q\"q", "b\\b", "c:\temp" }; } probability (a) { table 1 0 0; }'
        assert loads(text, "bif").states("a") == ('q"q', "b\\b", "c:\\temp")


XMLBIF = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> <!ELEMENT NAME (#PCDATA)> ]>
<BIF VERSION="0.3"><NETWORK><NAME>na\xefve</NAME>
<VARIABLE TYPE="nature"><NAME> a </NAME><OUTCOME>x</OUTCOME><OUTCOME>&lt;y</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>u</OUTCOME><OUTCOME>v</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>c</NAME><OUTCOME>s</OUTCOME><OUTCOME>t</OUTCOME></VARIABLE>
<DEFINITION><FOR>c</FOR><GIVEN>a</GIVEN><GIVEN>b</GIVEN>
  <TABLE>0.1 0.9 <!-- x v --> 0.2 0.8 0.3 0.7 0.4 0.6</TABLE></DEFINITION>
<DEFINITION><FOR>a</FOR><TABLE>.25 .75</TABLE></DEFINITION><DEFINITION><FOR>b</FOR><TABLE>1 0</TABLE></DEFINITION>
</NETWORK></BIF>"""

NET = """% made by hand
net { node_size = (50 50); name = "hand"; HR_Desc = "50 % {x}"; }
node a { label = "A (first)"; position = (1 2); states = ("x" "<y"); }
discrete node b { states = ("u" "v"); }
node c { states = ("s" "t"); }
potential (c | a b) { data = (((0.1 0.9) % a comment
 (0.2 0.8)) ((0.3 0.7) (0.4 0.6))); }
potential (a) { data = (.25 .75); }
potential (b | ) { data = (1 0); }
"""

XDSL = """<smile version="1.0" id="hand"><nodes>
<cpt id="a"><state id="x" /><state id="&lt;y" /><probabilities>.25 .75</probabilities></cpt>
<deterministic id="b"><state id="u" /><state id="v" /><resultingstates>u</resultingstates></deterministic>
<cpt id="c"><state id="s" /><state id="t" /><parents>a b</parents>
<probabilities>0.1 0.9 0.2 0.8 0.3 0.7 0.4 0.6</probabilities></cpt>
</nodes></smile>"""


@pytest.mark.parametrize(
    ("format", "text"),
    [("xmlbif", XMLBIF.encode("latin-1")), ("net", NET), ("xdsl", XDSL)],
    ids=lambda x: str(x)[:6],
)
def test_hand_written_files(format, text):
    net = loads(text, format)
    assert net.states("a") == ("x", "<y")
    assert net["a"].table.tolist() == [0.25, 0.75]
    assert net["b"].table.tolist() == [1, 0]
    assert net.parents("c") == ("a", "b")
    assert net["c"].table.tolist() == [[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]
    assert net.name in ("hand", "naïve")


@pytest.mark.parametrize("entity", ['<!ENTITY a "x">', '<!ENTITY a SYSTEM "x.txt">', '<!ENTITY % a "x">'])
def test_entities_are_refused_even_where_they_do_no_harm(entity):
    text = XMLBIF.replace("<!ELEMENT NAME (#PCDATA)>", entity).encode("latin-1")
    with pytest.raises(bbn.ParseError, match="entities are not allowed"):
        loads(text, "xmlbif")


def test_a_net_potential_without_data_is_uniform():
    net = loads('node a { states = ("x" "y" "z" "w"); } potential (a) { }', "net")
    assert net["a"].table.tolist() == [0.25] * 4


def test_xdsl_deterministic_with_parents():
    node = '<deterministic id="d"><state id="p" /><state id="q" /><state id="r" /><parents>b a</parents>'
    node += "<resultingstates>p q r p</resultingstates></deterministic>"
    net = loads(XDSL.replace("</nodes>", node + "</nodes>"), "xdsl")
    assert net["d"].table.argmax(axis=-1).tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("seed", range(5))
def test_xdsl_noisy_max_is_the_strongest_of_independent_effects(seed):
    rng = np.random.default_rng(seed)
    cards, card = rng.integers(2, 5, size=rng.integers(0, 4)).tolist(), int(rng.integers(2, 5))
    strengths = [rng.permutation(count).tolist() for count in cards]
    rows = rng.dirichlet(np.ones(card), size=sum(cards) + 1)
    parts = ['<smile version="1.0" id="n"><nodes>']
    for i, count in enumerate(cards):
        states = "".join(f'<state id="s{k}" />' for k in range(count))
        uniform = " ".join([repr(1 / count)] * count)
        parts.append(f'<cpt id="p{i}">{states}<probabilities>{uniform}</probabilities></cpt>')
    parts.append('<noisymax id="y">' + "".join(f'<state id="e{k}" />' for k in range(card)))
    parts.append(f"<parents>{' '.join(f'p{i}' for i in range(len(cards)))}</parents>" if cards else "")
    parts.append(f"<strengths>{' '.join(str(s) for own in strengths for s in own)}</strengths>")
    parts.append(
        f"<parameters>{' '.join(map(repr, rows.ravel().tolist()))}</parameters></noisymax></nodes></smile>"
    )
    table = loads("".join(parts), "xdsl")["y"].table
    starts = np.cumsum([0, *cards])
    for setting in itertools.product(*map(range, cards)):
        expected = np.zeros(card)
        causes = [rows[starts[i] + strengths[i].index(state)] for i, state in enumerate(setting)]
        for effects in itertools.product(range(card), repeat=len(cards) + 1):  # every way the causes may act
            expected[min(effects)] += np.prod(
                [cause[e] for cause, e in zip([*causes, rows[-1]], effects, strict=True)]
            )
        assert np.allclose(table[setting], expected, rtol=0, atol=1e-12)


class TestUai:
    def test_bayes(self):
        net = loads("BAYES\n2\n2 3\n2\n1 0\n2 0 1 # child last\n2 0.25 0.75\n6 .1 .2 .7 .3 .3 .4\n", "uai")
        assert net.names == ("0", "1")
        assert net.states("1") == (0, 1, 2)
        assert net["1"].table.tolist() == [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]

    def test_markov_is_a_factor_graph(self):
        graph = loads("MARKOV 3 2 3 2 2 2 1 0 1 0\n6 1 2 3 4 5 6\n2 7 8", "uai")
        assert isinstance(graph, bbn.FactorGraph)
        first, second, free = graph.factors()
        assert first.names == ("1", "0")
        assert first.values.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert second.values.tolist() == [7, 8]
        assert (free.names, free.values.tolist()) == (("2",), [1, 1])
        back = loads(dumps(graph, "uai"), "uai")
        assert [f.values.tolist() for f in back.factors()] == [f.values.tolist() for f in graph.factors()]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [("2 0 1 3 0", {"0": 1, "3": 0}), ("1\n2 0 1 3 0", {"0": 1, "3": 0}), ("0", {}), ("1 0", {})],
    )
    def test_evidence(self, tmp_path, text, expected):
        path = tmp_path / "model.uai.evid"
        path.write_text(text)
        assert bbn.load_evidence(path) == expected

    @pytest.mark.parametrize(
        "text", ["", "1", "2 0 1", "1 x 0", "2 0 1 0 1", "2 1 0 1 1 0 1", "1 0 -1", "-1"]
    )
    def test_bad_evidence(self, tmp_path, text):
        path = tmp_path / "model.uai.evid"
        path.write_text(text)
        with pytest.raises(bbn.ParseError):
            bbn.load_evidence(path)

    def test_evidence_answers_a_query(self, tmp_path):
        (tmp_path / "m.uai").write_text("BAYES 2 2 2 2 1 0 2 0 1 2 0.5 0.5 4 0.9 0.1 0.2 0.8")
        (tmp_path / "m.uai.evid").write_text("1 1 0")
        posterior = bbn.load(tmp_path / "m.uai").query("0", bbn.load_evidence(tmp_path / "m.uai.evid"))
        assert posterior[0] == pytest.approx(0.9 / 1.1)


class TestLoss:
    def test_uai_warns(self):
        with pytest.warns(bbn.LossyFormatWarning, match="names and states"):
            dumps(bbn.example("asia"), "uai")

    @pytest.mark.parametrize(
        ("format", "name"), [("xdsl", "dog-out"), ("net", "dog-out"), ("xmlbif", " edge ")]
    )
    def test_names_that_do_not_fit(self, format, name):
        net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable(name, ["x", "y"]), table=[0.5, 0.5])])
        with pytest.warns(bbn.LossyFormatWarning, match="cannot hold 1 of the names"):
            text = dumps(net, format)
        assert loads(text, format) == net

    def test_xdsl_substitutes_do_not_collide(self):
        states = ["a b", "a_b", "a-b", "a_b_2"]
        net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("v", states), table=[0.1, 0.2, 0.3, 0.4])])
        with pytest.warns(bbn.LossyFormatWarning):
            text = dumps(net, "xdsl")
        plain = loads(text.replace('id="bbn"', 'id="other"'), "xdsl")
        assert len(set(plain.states("v"))) == 4
        assert plain["v"].table.tolist() == [0.1, 0.2, 0.3, 0.4]

    def test_simple_names_do_not_warn(self):
        for format in NAMED:
            dumps(bbn.example("asia"), format)  # a warning would be an error here


@pytest.mark.parametrize("kernel", [decimals.row_texts, decimals_py.row_texts], ids=["in use", "twin"])
def test_numbers_are_written_as_python_writes_them(kernel):
    rng = np.random.default_rng(0)
    values = [
        rng.random(5000) * 10.0 ** -rng.integers(0, 12, 5000),
        *(np.round(rng.random(500) * 10.0 ** -rng.integers(0, 8, 500), places) for places in range(1, 20)),
        np.abs(rng.integers(0, 2**63, 5000).view(float)),  # any bits at all
        [0.0, -0.0, 1.0, 10.0, 0.1 + 0.2, 1 / 3, 1e-4, 1e-5, 1e-6, 1e22, 5e-324, 2.0**-13, 2.0**-18],
        np.nextafter(10.0 ** np.arange(-7, 2), 0),
        np.nextafter(10.0 ** np.arange(-7, 2), 11),
    ]
    flat = np.concatenate(values)
    flat = flat[np.isfinite(flat)]
    assert kernel(flat, 1, " ", "") == [repr(number) for number in flat.tolist()]
    assert kernel(flat[:6], 3, ", ", ";") == [
        ", ".join(map(repr, row)) + ";" for row in flat[:6].reshape(2, 3).tolist()
    ]


V = "variable a { type discrete [2] { x, y }; }\n"
W = V + "variable b { type discrete [2] { u, v }; }\nprobability (a) { table 1, 0; }\n"
D = "<DEFINITION><FOR>a</FOR>"
X = "<BIF><NETWORK>\n<VARIABLE><NAME>a</NAME><OUTCOME>x</OUTCOME></VARIABLE>\n%s</NETWORK></BIF>"
N = 'node a { states = ("x" "y"); }\n'
S = '<smile id="s"><nodes>\n<cpt id="a"><state id="x" />%s</cpt></nodes></smile>'
ERRORS = [
    ("bif", "", None, "empty"),
    ("bif", "\n hello {}", (2, 2), "expected 'network', 'variable' or 'probability', found 'hello"),
    ("bif", V + "variable", (2, 9), "after 'variable', found the end"),
    ("bif", V + 'variable "b { type', (2, 10), "quote that is never closed"),
    ("bif", V + "/* never", (2, 1), "comment that is never closed"),
    ("bif", V + "variable b ; {}", (2, 12), "found ';'"),
    ("bif", V + "variable b { { { } } }", (2, 16), "found '{'"),
    ("bif", V + "variable b { kind continuous; }", (2, 1), "expected 'type discrete"),
    ("bif", V + "variable a { type discrete [1] { x }; }", (2, 1), "'a' is declared twice"),
    ("bif", V + "variable b { type discrete [3] { x, y }; }", (2, 1), "expected 3 states, found 2: 'x', 'y'"),
    ("bif", V, (2, 1), "'a' has no probability block"),
    ("bif", V + "probability (a) { table 1, 0; }\nprobability (a) { table 1, 0; }", (3, 1), "duplicate node 'a'"),
    ("bif", V + "probability a { table 1, 0; }", (2, 1), "expected 'probability ( child | parents )'"),
    ("bif", V + "probability () { table 1, 0; }", (2, 1), "expected a variable's name"),
    ("bif", V + "probability (a | c) { table 1, 0; }", (2, 1), "'c' is not a declared variable; expected one of 'a'"),
    ("bif", V + "probability (a | a) { table 1 0 1 0; }", (2, 1), "its own parent"),
    ("bif", V + "probability (a) { table 1, 0, 0; }", (2, 19), "expected 2 numbers, found 3"),
    ("bif", V + "probability (a) { table 1, O; }", (2, 28), "expected a number from 0 to 1, found 'O'"),
    ("bif", V + "probability (a) {\n table 0.8,\n 0.1; }", (3, 2), "sums to 0.9, expected 1"),
    ("bif", V + "probability (a) { rows 1, 0; }", (2, 19), "expected 'table', 'default' or a row"),
    ("bif", V + "probability (a) { table 1, 0; table 1, 0; }", (2, 31), "given twice"),
    ("bif", W + "probability (b | a) { (x) 1, 0; }", (4, 1), "expected 2 rows or a default, found 1 rows; missing (y)"),
    ("bif", W + "probability (b | a) { (x) 1, 0;\n  (x) 1, 0; }", (5, 3), "row (x): given twice"),
    ("bif", W + "probability (b | a) { (x) 1, 0;\n  (yy) 1, 0; }", (5, 3), "'a' has no state 'yy'; did you mean 'y'?"),
    ("bif", W + "probability (b | a) { (x, y) 1, 0; }", (4, 23), "expected 1 states, one for each of (a), found 2"),
    ("bif", W + "probability (b | a) { (x) 1; (y) 1, 0; }", (4, 23), "expected 2 numbers, found 1"),
    ("bif", W + "probability (b | a) { (x) 1, 0;\n  (y) 0.5, 0.4; }", (5, 3), "row a=y: sums to 0.9"),
    ("bif", V + "variable b { type discrete [1] { u }; } probability (b | a) { (x) 1; (y) 1; }"
     "probability (a | b) { table 1 0; }", (2, 41), "cycle"),
    ("bif", "variable a { type discrete [2] { x, x }; } probability (a) { table 1, 0; }", (1, 44), "state 'x' twice"),
    ("xmlbif", "", (1, 1), "no element found"),
    ("xmlbif", "<BIF>", (1, 6), "no element found"),
    ("xmlbif", "<BIF></bif>", (1, 8), "mismatched tag"),
    ("xmlbif", "<XML/>", (1, 1), "expected <BIF>"),
    ("xmlbif", X % "", (1, 6), "'a' has no <DEFINITION>"),
    ("xmlbif", X % "<VARIABLE><NAME>a</NAME></VARIABLE>", (3, 1), "declared twice"),
    ("xmlbif", X % '<VARIABLE TYPE="decision"><NAME>b</NAME></VARIABLE>', (3, 1), "found 'decision'"),
    ("xmlbif", X % "<VARIABLE/>", (3, 1), "expected one <NAME> in <VARIABLE>, found 0"),
    ("xmlbif", X % "<DEFINITION><FOR>b</FOR></DEFINITION>", (3, 1), "'b', which is not a declared variable"),
    ("xmlbif", X % f"{D}</DEFINITION>", (3, 1), "expected a <TABLE>"),
    ("xmlbif", X % f"{D}\n<TABLE>1 x</TABLE></DEFINITION>", (4, 1), "found 'x'"),
    ("xmlbif", X % f"{D}\n<TABLE>1 0</TABLE></DEFINITION>", (3, 1), "expected 1 entries (a 1), found 2"),
    ("xmlbif", X % f"{D}\n<TABLE>0.9</TABLE></DEFINITION>", (4, 1), "sums to 0.9"),
    ("xmlbif", X % f"{D}<GIVEN>q</GIVEN><TABLE>1</TABLE></DEFINITION>", (3, 1), "unknown parent 'q'"),
    ("net", "net {}", None, "empty"),
    ("net", N, (2, 1), "'a' has no potential"),
    ("net", N + N, (2, 1), "declared twice"),
    ("net", N + "potential (a) { data = (1 0); }\ndecision d { }", (3, 1), "variable 'd' has no states"),
    ("net", N + "continuous node d { }", (2, 1), "only discrete"),
    ("net", N + "potential (a b) { }", (2, 1), "expected 'potential ( child | parents )'"),
    ("net", N + "potential (a | b) { }", (2, 1), "'b' is not a declared node"),
    ("net", N + "potential (a) { data = (1 q); }", (2, 27), "found 'q'"),
    ("net", N + "potential (a) { data = (1 0 0); }", (2, 1), "expected 2 entries"),
    ("net", N + "potential (a) {\n data (1 0); }", (3, 2), "expected 'attribute = value;'"),
    ("net", N + "potential (a) { model_data = (0); }", (2, 1), "found an expression"),
    ("xdsl", "<smile/>", (1, 1), "expected <smile> with <nodes>"),
    ("xdsl", S % "", (2, 1), "expected <probabilities>, found none"),
    ("xdsl", S % "<parents>b</parents><probabilities>1</probabilities>", (2, 1), "unknown parent 'b'"),
    ("xdsl", S % "<probabilities>x</probabilities>", (2, 29), "found 'x'"),
    ("xdsl", (S % "").replace("cpt", "equation"), (2, 1), "found <equation>"),
    ("xdsl", (S % "<resultingstates>q</resultingstates>").replace("cpt", "deterministic"), (2, 39), "no state 'q'"),
    ("xdsl", (S % "<parameters>1 1</parameters>").replace("cpt", "noisymax"), (2, 1), "expected 1 parameters"),
    ("xdsl", (S % "<strengths>1</strengths><parameters>1</parameters>").replace("cpt", "noisymax"), (2, 34), "order"),
    ("uai", "", (1, 1), "expected 'BAYES' or 'MARKOV', found the end"),
    ("uai", "BAYE 1", (1, 1), "expected 'BAYES' or 'MARKOV', found 'BAYE'"),
    ("uai", "BAYES\n1 2\n1 1 7", (3, 5), "an integer from 0 to 0, found '7'"),
    ("uai", "BAYES\n1 2 1 1 0\n3 1 0 0", (3, 1), "expected 2 entries for the scope [0], found '3'"),
    ("uai", "BAYES\n1 2 1 1 0\n2 1", (3, 4), "expected 2 entries, found 1 and the end"),
    ("uai", "BAYES\n1 2 1 1 0\n2 1 x", (3, 5), "found 'x'"),
    ("uai", "BAYES\n1 2 1 1 0\n2 1 0 1", (3, 7), "expected the end, found '1'"),
    ("uai", "BAYES\n1 2 1 1 0\n2 0.4 0.5", (3, 1), "sums to 0.9"),
    ("uai", "BAYES 2 2 2 2 1 0 1 0\n2 1 0\n2 1 0", (3, 1), "of two tables"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "text", "place", "message"), ERRORS)
def test_an_error_says_where_and_what(format, text, place, message):
    with pytest.raises(bbn.ParseError) as caught:
        loads(text, format, path="some.file")
    error = caught.value
    assert message in str(error)
    assert error.path == "some.file"
    if place is not None:
        assert (error.line, error.column) == place


def test_a_default_row_past_the_largest_number_is_a_fault():
    node = "{states: [x, y], parents: [A], table: {default: [1e308, 1e308]}}"
    text = f"nodes: {{A: {{states: [x, y], table: [.5, .5]}}, B: {node}}}"
    with pytest.raises(bbn.ParseError, match="row 'default': sums to inf, expected 1"):
        loads(text)
    with pytest.raises(bbn.ParseError, match="row 'x': sums to inf, expected 1"):
        loads(text.replace("default: [1e308, 1e308]", "x: [1e308, 1e308], z: [1, 0]"))


FOREIGN = {
    "net.dsc": b'belief network "n"\nnode A {\n type : discrete[2] = {"x", "y"};\n}\nprobability(A) {\n 0.5, 0.5;\n}\n',
    "net.rda": gzip.compress(b"RDX3\nX\n\0\0\0\x03\0\x04\x03\x01\x88"),
    "net.dne": b"// ~->[DNET-1]->~\nbnet n {\nnode A { kind = NATURE; };\n};\n",
    "net.xbn": b"<?xml version='1.0'?><ANALYSISNOTEBOOK><BNMODEL/></ANALYSISNOTEBOOK>",
    "net.pkl": b"\x80\x04\x95\x88",
    "net.csv": b"A,B\nx,y\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_format_that_is_not_read_is_called_so(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FOREIGN[name])
    suffix = name.removeprefix("net")
    with pytest.raises(
        bbn.ParseError, match=rf"this format is not read \(\{suffix}\).*\.yaml.*format="
    ) as caught:
        bbn.load(path)
    assert caught.value.path == str(path)


def test_a_known_content_is_read_whatever_its_suffix(tmp_path):
    net = bbn.example("asia")
    for format in FORMATS:
        if format.name != "uai":
            (tmp_path / "net.txt").write_text(dumps(net, format.name))
            assert bbn.load(tmp_path / "net.txt") == net
