"""pyAgrum's answers on diagrams published with it and with the algorithms, handed over exactly, both ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bbn
from tests.support.decision_truth import Diagram

pyagrum = pytest.importorskip("pyagrum")


def solved(model, order=()):
    engine = pyagrum.ShaferShenoyLIMIDInference(model)
    if order:
        engine.addNoForgettingAssumption(list(order))
    engine.makeInference()
    return engine


@pytest.mark.parametrize(
    "name",
    ["oil wildcatter", "decision asia", "Nilsson and Lauritzen 2000", "four decisions in a row"],
)
def test_published_diagrams(name):
    from tests.support.diagrams import diagram

    dn, theirs, order = diagram(name)
    best = dn.solve()
    engine = solved(theirs, order)
    assert best.proved
    assert best.expected_utility == pytest.approx(engine.MEU()["mean"], rel=1e-9, abs=1e-9)
    assert dn.risk_profile().variance == pytest.approx(engine.MEU()["variance"], rel=1e-6, abs=1e-6)


def test_pigs_that_are_bred_for_four_months():
    """The numbers of Lauritzen and Nilsson 2001, section 3, against pyAgrum and against every policy without memory."""
    from tests.support.diagrams import pigs

    dn, theirs, order = pigs(3)
    assert dn.solve().expected_utility == pytest.approx(solved(theirs, order).MEU()["mean"], rel=1e-12)
    forgetful = [
        bbn.Decision(d.name, d.states, [d.observes[-1]]) if isinstance(d, bbn.Decision) else d
        for d in dn.nodes
    ]
    limited = bbn.DecisionNetwork(forgetful, recall="limited").solve()
    assert limited.expected_utility <= dn.solve().expected_utility + 1e-9
    # each decision sees one test: four rules each, 64 policies
    rules = [
        dict(zip(("positive", "negative"), own, strict=True))
        for own in itertools.product(dn.decisions[0].states, repeat=2)
    ]
    names = [d.name for d in dn.decisions]
    network = bbn.DecisionNetwork(forgetful, recall="limited")
    worth = max(
        network.expected_utility(dict(zip(names, chosen, strict=True)))
        for chosen in itertools.product(rules, repeat=3)
    )
    assert limited.expected_utility == pytest.approx(worth, abs=1e-9)


def test_diagrams_go_there_and_back():
    for seed in range(20):
        dn = Diagram(seed, recall=seed % 2 == 0).network
        text = bbn.DecisionNetwork([_in_words(node) for node in dn.nodes], recall=dn.recall)
        again = bbn.from_pyagrum(bbn.to_pyagrum(text))
        assert {u.name: u.table.tolist() for u in again.utilities} == {
            u.name: u.table.tolist() for u in text.utilities
        }
        assert {d.name: set(d.observes) for d in again.decisions} == {
            d.name: set(d.observes) for d in text.decisions
        }
        for c in text.conditionals:
            other = again[c.variable.name]
            assert other.parents == c.parents
            assert np.array_equal(other.table, c.table)


def _in_words(node):
    def words(v):
        return bbn.Variable(v.name, [f"s{s}" for s in v.states])

    if isinstance(node, bbn.Decision):
        return bbn.Decision(node.name, words(node.variable).states, node.observes)
    if isinstance(node, bbn.Utility):
        return bbn.Utility(node.name, [words(p) for p in node.parents], node.table)
    return bbn.CPT(words(node.variable), [words(p) for p in node.parents], node.table)
