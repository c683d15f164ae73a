"""Gaussians in files: YAML and JSON hold them bit for bit, other formats refuse them; bad files are explained."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import bbn
from bbn.cli import main
from bbn.io.registry import FORMATS, dumps, loads
from tests.support.gaussian_truth import random_network

SCHEMA = json.loads((Path(bbn.__file__).parent / "io" / "network.schema.json").read_text())
OTHERS = [format.name for format in FORMATS if format.name not in ("yaml", "json")]


def odd():
    """Names and states that need quotes, numbers of every size."""
    a = bbn.Variable("a, b", ["x, y", "it's", " "])
    flag = bbn.Variable("flag", [True, False])
    x = bbn.Gaussian("type", [flag], [1e-320, -1e300], 5e-324, tied_variance=True)
    means = [[0.1 + 0.2, -1e22], [3.0, 1 / 3], [2**53 + 0.0, -0.0]]
    y = bbn.Gaussian(
        "42", [a, x.variable, flag], means, np.array(means) ** 2 + 1e-17, [1e-7], fixed_variance=True
    )
    return bbn.BayesianNetwork(
        [bbn.CPT(a, table=[0.2, 0.3, 0.5]), bbn.CPT(flag, table=[0.5, 0.5]), x, y], "odd"
    )


@pytest.mark.parametrize("format", ["yaml", "json"])
@pytest.mark.parametrize("seed", [None, *range(25)])
def test_round_trip_bit_for_bit(format, seed, tmp_path):
    net = odd() if seed is None else random_network(np.random.default_rng(seed))
    text = dumps(net, format)
    again = loads(text, format)
    assert again == net
    assert again.names == net.names
    for name in net.continuous:
        for what in ("means", "variances", "weights"):
            assert getattr(again[name], what).tobytes() == getattr(net[name], what).tobytes()
    path = tmp_path / f"net.{format}.gz"
    net.save(path)
    assert bbn.load(path) == net
    if format == "json":
        jsonschema.validate(json.loads(text), SCHEMA)


@pytest.mark.parametrize("format", OTHERS)
def test_other_formats_refuse_before_anything_is_written(format, tmp_path):
    path = tmp_path / "net.file"
    path.write_text("as it was")
    with pytest.raises(bbn.ModelError, match=r"'X' has no table.*YAML and JSON"):
        bbn.save(bbn.BayesianNetwork([bbn.Gaussian("X", [], 0, 1)]), path, format)
    assert path.read_text() == "as it was"


@pytest.mark.parametrize("bridge", [bbn.to_pgmpy, bbn.to_pyagrum])
def test_bridges_refuse(bridge):
    pytest.importorskip({bbn.to_pgmpy: "pgmpy", bbn.to_pyagrum: "pyagrum"}[bridge])
    with pytest.raises(bbn.ModelError, match="'X' has no table"):
        bridge(bbn.BayesianNetwork([bbn.Gaussian("X", [], 0, 1)]))


def test_a_variable_that_was_set_is_not_written():
    net = bbn.BayesianNetwork([bbn.Gaussian("X", [], 0, 1)]).do({"X": 2.5})
    for format in ("yaml", "json"):
        with pytest.raises(bbn.ModelError, match=r"'X' is set to 2\.5"):
            dumps(net, format)


def test_written_by_hand():
    net = loads("""
nodes:
  Weight:                       # before its parents
    type: gaussian
    parents: [Height, Sex]
    table:
      m: {variance: 64, mean: -100, weights: 1}
      f: {mean: -9.5e1, variance: 49, weights: {Height: 0.9}}
  Sex: {states: [f, m], table: [0.5, 0.5]}
  Height: {type: gaussian, parents: [Sex], table: [{mean: 166, variance: 36}, {mean: 180, variance: 36}],
           tied_variance: true}
  Noise: {type: gaussian, table: {mean: 0, variance: 1}, fixed_variance: true}
""")
    assert net["Weight"].means.tolist() == [-95.0, -100.0]
    assert net["Weight"].weights.tolist() == [[0.9], [1.0]]
    assert net["Height"].tied_variance
    assert not net["Height"].fixed_variance
    assert net["Noise"].fixed_variance


HEAD = "nodes:\n  Z: {states: [a, b], table: [0.5, 0.5]}\n  X: {type: gaussian, table: {mean: 0, variance: 1}}\n  Y:\n"


@pytest.mark.parametrize(
    ("node", "line", "message"),
    [
        (
            "type: gausian\n    table: {mean: 0, variance: 1}",
            5,
            "unknown type 'gausian'; expected 'gaussian'",
        ),
        ("type: gaussian", 4, "node 'Y' has no 'table'"),
        ("type: gaussian\n    table: 3", 6, "expected {mean: number, variance: number}, found 3"),
        ("type: gaussian\n    table: {mean: 0}", 6, "no variance"),
        (
            "type: gaussian\n    table: {mean: 0, variance: 0}",
            6,
            "variance: expected a finite number above 0, found 0",
        ),
        (
            "type: gaussian\n    table: {mean: .inf, variance: 1}",
            6,
            "mean: expected a finite number, found .inf",
        ),
        ("type: gaussian\n    table: {mean: x, variance: 1}", 6, "mean: expected a finite number, found 'x'"),
        ("type: gaussian\n    table: {mean: 0, mean: 1, variance: 1}", 6, "the key 'mean' is given twice"),
        ("type: gaussian\n    table: {mean: 0, variance: 1, sd: 1}", 6, "unknown key 'sd'"),
        (
            "type: gaussian\n    table: {mean: 0, variance: 1, weights: [1]}",
            6,
            "it has no continuous parents",
        ),
        ("type: gaussian\n    states: [a]\n    table: {mean: 0, variance: 1}", 6, "unknown key 'states'"),
        ("type: gaussian\n    parents: [Q]\n    table: {mean: 0, variance: 1}", 4, "unknown parent 'Q'"),
        (
            "type: gaussian\n    parents: [Z]\n    table:\n      a: {mean: 0, variance: 1}",
            4,
            "1 row missing, for Z = b",
        ),
        (
            "type: gaussian\n    parents: [Z]\n    table:\n"
            "      a: {mean: 0, variance: 1}\n      c: {mean: 0, variance: 1}",
            9,
            "'Z' has no state 'c'",
        ),
        (
            "type: gaussian\n    parents: [Z]\n    table:\n"
            "      a: {mean: 0, variance: 1}\n      b: {mean: 0, variance: -2}",
            9,
            "row 'b': variance: expected a finite number above 0, found -2",
        ),
        (
            "type: gaussian\n    parents: [Z]\n    table: [{mean: 0, variance: 1}]",
            7,
            "a list of 2 for 'Z', found a list of 1",
        ),
        ("type: gaussian\n    parents: [X]\n    table: {mean: 0, variance: 1}", 7, "no weights"),
        (
            "type: gaussian\n    parents: [X]\n    table: {mean: 0, variance: 1, weights: [1, 2]}",
            7,
            "expected 1 weight, one for each of X, found a list of 2",
        ),
        (
            "type: gaussian\n    parents: [X]\n    table: {mean: 0, variance: 1, weights: {Q: 1}}",
            7,
            "one for each of X, found a mapping",
        ),
        (
            "type: gaussian\n    table: {mean: 0, variance: 1}\n    tied_variance: 1",
            7,
            "'tied_variance' must be true or false",
        ),
        (
            "type: gaussian\n    parents: [Z]\n    tied_variance: true\n"
            "    table: [{mean: 0, variance: 1}, {mean: 0, variance: 2}]",
            8,
            "tied_variance is true, but the variances differ",
        ),
        ("states: [u, v]\n    parents: [X]\n    table: {a: [1, 0]}", 4, "its parent 'X' is continuous"),
        (
            "type: gaussian\n    parents: [Y]\n    table: {mean: 0, variance: 1, weights: 1}",
            4,
            "its own parent",
        ),
    ],
)
def test_bad_files_are_explained(node, line, message):
    with pytest.raises(bbn.ParseError) as caught:
        loads(HEAD + "    " + node + "\n", path="net.yaml")
    told = [(problem.line, problem.message) for problem in caught.value.problems]
    assert any(at == line and message in text for at, text in told), told


@pytest.mark.parametrize("kind", ["Gaussian", "poisson"])
def test_an_unknown_type_is_what_a_file_is_refused_for(kind, tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(HEAD + f"    type: {kind}\n    parents: [Z]\n    table: [[0, 1], [2, 3]]\n", "utf-8")
    with pytest.raises(
        bbn.ParseError, match=f"net.yaml:5:11: node 'Y': unknown type '{kind}'; expected 'gaussian'"
    ):
        bbn.load(path)


@pytest.mark.parametrize("cut", range(20, 420, 7))
def test_files_cut_off_anywhere_are_parse_errors(cut):
    text = dumps(odd(), "json")
    with pytest.raises(bbn.ParseError):
        loads(text[:cut], "json")


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "net.yaml"
    path.write_text(
        "nodes:\n  Sex: {states: [f, m], table: [0.5, 0.5]}\n"
        "  Height:\n    type: gaussian\n    parents: [Sex]\n"
        "    table: {f: {mean: 166, variance: 36}, m: {mean: 180, variance: 49}}\n"
    )
    data = tmp_path / "data.csv"
    data.write_text("Height,Sex\n190,\n150,\n,f\n")

    def run(*words, code=0):
        returned = main(list(words))
        printed = capsys.readouterr()
        assert returned == code, printed.err
        return printed.err if code else printed.out

    assert "0.721585" in run("query", str(path), "Sex", "-e", "Height=170")
    assert "mean 173" in run("query", str(path), "Height")
    rows = json.loads(run("query", str(path), "Height", "-e", "Sex=f", "--format", "json"))["rows"]
    assert rows == [{"weight": 1.0, "mean": 166.0, "variance": 36.0}]
    assert "std" in run("query", str(path))
    assert "expected a number, found 'tall'" in run("query", str(path), "Sex", "-e", "Height=tall", code=1)
    assert "2 nodes" in run("check", str(path))
    assert "180" in run("show", str(path))
    assert "Height,Sex=m,variance,49.0" in run("show", str(path), "--format", "csv")
    assert run("sample", str(path), "-n", "3", "--seed", "1").startswith("Sex,Height\n")
    assert run("predict", str(path), str(data), "--target", "Sex", "--format", "csv").split() == [
        "Sex",
        "m",
        "f",
        "f",
    ]
    means = run("predict", str(path), str(data), "--target", "Height", "--format", "csv").split()
    assert means[:3] == ["Height", "173.0", "173.0"]
    assert "has no table" in run("convert", str(path), str(tmp_path / "net.bif"), code=1)
    assert not (tmp_path / "net.bif").exists()
    assert "<svg" in run("plot", str(path), "-e", "Height=170")
