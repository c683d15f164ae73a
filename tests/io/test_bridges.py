"""Bridges to pgmpy, pyAgrum, networkx and pandas, and reading one another's files."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings

import bbn
from tests.support.strategies import networks

pgmpy = pytest.importorskip("pgmpy.readwrite")
gum = pytest.importorskip("pyagrum")

PGMPY = {
    "bif": (pgmpy.BIFReader, pgmpy.BIFWriter),
    "xmlbif": (pgmpy.XMLBIFReader, pgmpy.XMLBIFWriter),
    "net": (pgmpy.NETReader, pgmpy.NETWriter),
    "xdsl": (pgmpy.XDSLReader, pgmpy.XDSLWriter),
}
SIMPLE = ["asia", "cancer", "earthquake", "survey", "sachs", "alarm", "insurance"]


def assert_close(found, expected, tolerance):
    """Equal but for the order of parents and for rounding."""
    assert set(found.names) == set(expected.names)
    for name in expected.names:
        ours, theirs = expected[name], found[name]
        assert theirs.variable == ours.variable
        order = [theirs.parents.index(parent) for parent in ours.parents]
        assert len(theirs.parents) == len(order)
        table = theirs.table.transpose([*order, len(order)])
        assert np.allclose(table, ours.table, rtol=0, atol=tolerance)


def test_nothing_is_imported_before_it_is_called():
    code = (
        "import sys, bbn; bbn.to_pgmpy, bbn.to_pyagrum, bbn.from_pandas_joint; "
        "assert not {'pgmpy', 'pyagrum', 'pandas', 'networkx'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@settings(max_examples=40, deadline=None)
@given(net=networks())
def test_pgmpy_and_back(net):
    assert bbn.from_pgmpy(bbn.to_pgmpy(net)) == net


@settings(max_examples=40, deadline=None)
@given(net=networks())
def test_pyagrum_and_back(net):
    assume(
        not any("\0" in text for v in net.variables for text in (v.name, *map(str, v.states)))
    )  # C strings end there
    with_text = net
    for name in net.names:
        states = net.states(name)
        if type(states[0]) is bool or (type(states[0]) is int and not _kept(states)):
            with_text = with_text.relabel(name, {state: str(state) for state in states})
    back = bbn.from_pyagrum(bbn.to_pyagrum(net))
    assert back == with_text


def _kept(states):
    return list(states) == sorted(states) and max(map(abs, states)) < 2**31


def test_pgmpy_agrees_on_the_joint():
    net = bbn.example("asia")
    model = bbn.to_pgmpy(net)
    assert model.check_model()
    rng = np.random.default_rng(0)
    for _ in range(20):
        states = {v.name: v.states[rng.integers(v.card)] for v in net.variables}
        expected = np.prod(
            [cpd.get_value(**{n: states[n] for n in cpd.variables}) for cpd in model.get_cpds()]
        )
        assert net.probability(states) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_pyagrum_agrees_on_a_posterior():
    net = bbn.example("asia")
    engine = gum.LazyPropagation(bbn.to_pyagrum(net))
    engine.setEvidence({"xray": "yes", "dysp": "yes"})
    states = [dict(zip(net.names, values, strict=True)) for values in np.ndindex(*[2] * 8)]
    joint = net.joint().values
    code = {name: i for i, name in enumerate(net.names)}
    kept = [tuple(s.values()) for s in states if s["xray"] == 0 and s["dysp"] == 0]
    total = sum(joint[k] for k in kept)
    for name in ("lung", "tub", "bronc"):
        expected = sum(joint[k] for k in kept if k[code[name]] == 0) / total
        assert engine.posterior(name)[0] == pytest.approx(expected, rel=1e-9)


def test_pgmpy_without_a_table_is_an_error():
    from pgmpy.models import DiscreteBayesianNetwork

    with pytest.raises(bbn.ModelError, match="no CPD for 'a'"):
        bbn.from_pgmpy(DiscreteBayesianNetwork([("a", "b")]))


def test_networkx_and_back():
    net = bbn.example("asia")
    graph = bbn.to_networkx(net)
    assert bbn.BayesianNetwork.from_graph(graph) == net
    graph.remove_node("asia")  # it is a copy, free to be changed
    assert "asia" in net


class TestJoint:
    def test_the_conditionals_of_a_joint_are_the_tables(self):
        net = bbn.example("burglary")
        frame = net.joint().to_frame()
        back = bbn.from_pandas_joint(frame, net.graph)
        assert_close(back, net, 1e-9)
        series = frame.set_index(list(net.names))[frame.columns[-1]]
        assert_close(bbn.from_pandas_joint(series, list(net.arcs)), net, 1e-9)

    def test_rows_in_any_order_zeros_left_out_columns_anywhere(self):
        net = bbn.example("asia")
        frame = net.joint().to_frame()
        value = frame.columns[-1]
        frame = frame.astype(dict.fromkeys(net.names, "category"))
        for name in net.names:
            frame[name] = frame[name].cat.set_categories(net.states(name))
        frame = frame[frame[value] > 0].sample(frac=1, random_state=0)[[value, *net.names]]
        back = bbn.from_pandas_joint(frame, net.graph, values=value)
        for name in net.names:
            rows = net[name].table.reshape(-1, 2)
            assert np.allclose(back[name].table.reshape(-1, 2), rows, rtol=0, atol=1e-9)

    def test_impossible_parents_give_a_uniform_row(self):
        import pandas as pd

        frame = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [0, 1, 0, 1], "p": [0.25, 0.75, 0.0, 0.0]})
        assert bbn.from_pandas_joint(frame, [("a", "b")])["b"].table.tolist() == [[0.25, 0.75], [0.5, 0.5]]

    @pytest.mark.parametrize(
        ("numbers", "edges", "values", "message"),
        [
            ([0.5, 0.6], [], None, "sums to 1.1"),
            ([1.5, -0.5], [], None, "at least 0"),
            ([0.5, 0.5], [("a", "q")], None, "has the node 'q'"),
            ([0.5, 0.5], [], "p", "no column 'p'"),
        ],
    )
    def test_bad_input(self, numbers, edges, values, message):
        import pandas as pd

        with pytest.raises(bbn.ModelError, match=message):
            bbn.from_pandas_joint(pd.DataFrame({"a": ["x", "y"], "n": numbers}), edges, values)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("format", PGMPY)
def test_pgmpy_reads_what_bbn_writes(name, format, tmp_path):
    net = bbn.example(name)
    path = tmp_path / f"net.{format}"
    bbn.save(net, path)
    assert_close(bbn.from_pgmpy(PGMPY[format][0](str(path)).get_model()), net, 1e-12)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("format", PGMPY)
def test_bbn_reads_what_pgmpy_writes(name, format, tmp_path):
    net = bbn.example(name)
    path = tmp_path / f"net.{format}"
    PGMPY[format][1](bbn.to_pgmpy(net)).write(str(path))
    assert_close(bbn.load(path), net, 1e-7)


def test_bbn_reads_pgmpy_s_own_order_in_uai(tmp_path):
    net = bbn.example("asia")
    path = tmp_path / "net.uai"
    pgmpy.UAIWriter(bbn.to_pgmpy(net)).write(str(path))
    numbers = {str(i): name for i, name in enumerate(sorted(net.names))}  # all have two states: by name alone
    back = bbn.load(path).rename(numbers)
    for name in net.names:
        back = back.relabel(name, {0: "yes", 1: "no"})
    assert_close(back, net, 1e-12)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("suffix", ["bif", "bifxml", "net"])
def test_pyagrum_reads_what_bbn_writes(name, suffix, tmp_path):
    net = bbn.example(name)
    path = tmp_path / f"net.{suffix}"
    bbn.save(net, path)
    assert_close(bbn.from_pyagrum(gum.loadBN(str(path))), net, 1e-6)  # it keeps single precision


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("suffix", ["xdsl", "uai"])
def test_pyagrum_reads_these_up_to_its_own_order_of_parents(name, suffix, tmp_path):
    """Against SMILE and UAI, pyAgrum lets the first parent vary faster than the second; the rest agrees."""
    path = tmp_path / f"net.{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.LossyFormatWarning)
        bbn.save(bbn.example(name), path)
    found, net = bbn.from_pyagrum(gum.loadBN(str(path))), bbn.load(path)
    for each in net.names:
        *cards, card = net[each].table.shape
        axes = [*range(len(cards) - 1, -1, -1), len(cards)]
        theirs = found[each].table.transpose(axes).reshape([*cards, card])
        assert np.allclose(theirs, net[each].table, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SIMPLE)
@pytest.mark.parametrize("suffix", ["bif", "bifxml", "net", "xdsl", "uai"])
def test_bbn_reads_what_pyagrum_writes(name, suffix, tmp_path):
    net = bbn.example(name)
    path = str(tmp_path / f"net.{suffix}")
    gum.saveBN(bbn.to_pyagrum(net), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.RenormalisedWarning)  # it writes six digits
        back = bbn.load(path)
    if suffix == "uai":
        back = back.rename({str(i): each for i, each in enumerate(net.names)})
        for each in net.names:
            back = back.relabel(each, dict(enumerate(net.states(each))))
    assert_close(back, net, 3e-6)


def three_parents(order, symmetric):
    """A node whose three parents are listed in this order, with a table that is or is not the same in reverse order."""
    rng = np.random.default_rng(5)
    names = [f"n{i}" for i in range(4)]
    *causes, child = [bbn.Variable(name, ["s0", "s1"]) for name in names]
    table = rng.dirichlet(np.ones(2), size=(2, 2, 2))
    if symmetric:
        table = (table + table.transpose(2, 1, 0, 3)) / 2
    net = [bbn.CPT(v, table=rng.dirichlet(np.ones(2))) for v in causes]
    return bbn.BayesianNetwork([*net, bbn.CPT(child, [causes[i] for i in order], table)])


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
@pytest.mark.parametrize("suffix", ["xdsl", "uai", "bifxml", "bif", "net"])
def test_what_pyagrum_makes_of_several_parents(order, suffix, tmp_path):
    """No order of the parents makes pyAgrum read XDSL and UAI as they are meant; another format does."""
    path = tmp_path / f"net.{suffix}"
    for symmetric in (False, True):
        net = three_parents(order, symmetric)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bbn.LossyFormatWarning)
            bbn.save(net, path)
        model = gum.loadBN(str(path))
        engine = gum.LazyPropagation(model)
        prefix = "" if suffix == "uai" else "n"
        engine.setEvidence({f"{prefix}{order[0]}": 0, f"{prefix}{order[2]}": 1})
        theirs = engine.posterior(f"{prefix}3").toarray()
        ours = net.query("n3", {f"n{order[0]}": "s0", f"n{order[2]}": "s1"}).values
        agrees = bool(np.allclose(theirs, ours, rtol=0, atol=1e-6))
        assert agrees == (symmetric or suffix not in ("xdsl", "uai"))
