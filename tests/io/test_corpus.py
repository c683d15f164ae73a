"""Files that a release wrote, which every later one must read: the truth is stated here, in plain Python.

`tests/corpus/network-1.*` were written by release 0.1 (version 1 of bbn's own format) and are never written again;
`hybrid-1.*` hold continuous variables, `graph-1.uai` a factor graph and `graph-1.uai.evid` evidence about it. A later
version of a format gets files of its own beside these.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import bbn
from bbn.io import FORMATS

CORPUS = Path(__file__).parents[1] / "corpus"
NAMED = ["yaml", "yaml.gz", "json", "bif", "xmlbif", "net", "xdsl"]

NAME = "odd names, soft edges"
METADATA = {
    "description": 'Two lines;\n the second has "quotes" and a \\.',
    "a key": " spaced ",
    "a_key": "",
    "name": "not the network's",
    "version": "2.1",
}
# name: (states, parents, table), in topological order
NODES = {
    "Weather – today": (
        ["sun", "rain, heavy", ' "mist" '],
        [],
        [0.30000000000000004, 0.2, 0.49999999999999994],
    ),
    "名前": (["only"], [], [1.0]),
    "n": (
        [0, 1, -5],
        ["Weather – today"],
        [[0.25, 0.75, 0.0], [1 / 3, 1 / 3, 0.33333333333333337], [5e-324, 1.0, 1e-300]],
    ),
    "ok?": (
        [True, False],
        ["n", "名前"],
        [[[0.1, 0.9]], [[0.0, 1.0]], [[0.4999999999, 0.5000000001]]],
    ),
    "variable": (
        ["yes", "no"],
        ["ok?", "Weather – today"],
        [
            [[1.0, 0.0], [0.7, 0.3], [0.123456789012345, 0.876543210987655]],
            [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]],
        ],
    ),
}


@pytest.mark.parametrize("suffix", NAMED)
def test_networks_with_names(suffix):
    net = bbn.load(CORPUS / f"network-1.{suffix}", strict=True)
    assert net.name == NAME
    assert dict(net.metadata) == METADATA
    assert set(net.names) == set(NODES)
    for name, (states, parents, table) in NODES.items():
        assert list(net.states(name)) == states
        assert list(map(type, net.states(name))) == list(map(type, states))
        assert list(net.parents(name)) == parents
        assert net[name].table.tolist() == table  # bit for bit


def test_a_network_of_numbers():
    net = bbn.load(CORPUS / "network-1.uai", strict=True)
    numbers = {name: str(i) for i, name in enumerate(NODES)}
    assert set(net.names) == set(numbers.values())
    for name, (states, parents, table) in NODES.items():
        assert list(net.states(numbers[name])) == list(range(len(states)))
        assert list(net.parents(numbers[name])) == [numbers[parent] for parent in parents]
        assert net[numbers[name]].table.tolist() == table


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_continuous_variables(suffix):
    net = bbn.load(CORPUS / f"hybrid-1.{suffix}", strict=True)
    assert net.name == ""
    assert dict(net.metadata) == {}
    assert net["Sex"].table.tolist() == [0.5, 0.5]
    height, weight, noise = net["Height"], net["Weight"], net["Noise"]
    assert (height.means.tolist(), height.variances.tolist()) == ([166.25, 180.0], [36.0, 49.5])
    assert net.parents("Weight") == ("Sex", "Height", "Noise")
    assert (weight.means.tolist(), weight.variances.tolist()) == ([-92.0, -95.0], [64.0, 64.0])
    assert weight.weights.tolist() == [[1.0, 0.1], [0.9, -1e-300]]
    assert (weight.tied_variance, weight.fixed_variance) == (True, False)
    assert (float(noise.means), float(noise.variances), noise.fixed_variance) == (0.0, 5e-324, True)


def test_a_factor_graph_and_evidence():
    graph = bbn.load(CORPUS / "graph-1.uai")
    assert isinstance(graph, bbn.FactorGraph)
    assert [(factor.names, factor.values.tolist()) for factor in graph.factors()] == [
        (("1", "0"), [[3.5, 1.0], [0.0, 1e-300], [1e300, 2.0]]),
        (("0",), [0.1, 0.2]),
        (("2",), [1.0]),
    ]
    assert bbn.load_evidence(CORPUS / "graph-1.uai.evid") == {"0": 1, "1": 2}


def test_every_format_is_in_the_corpus():
    for format in FORMATS:
        assert any((CORPUS / f"network-1{suffix}").exists() for suffix in format.suffixes)
