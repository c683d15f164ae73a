"""Solving decision networks, against pyAgrum's solver of influence diagrams."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyagrum
import pytest

import bbn
from tests.benchmarks.harness import Row
from tests.support.diagrams import DIAGRAMS, diagram, pigs

TITLE = "Decisions"
NOTES = """
The best policy and its value, on diagrams that were published with pyAgrum or with the algorithms. "First" asks a
network that has not been asked before, so planning the elimination is included; pyAgrum makes a new engine. "Again"
asks the same network with other evidence each time. pyAgrum gets exactly the same numbers. It refuses limited memory
unless one pass solves it; bbn solves those diagrams with a proof by branch and bound, so there is nothing to compare.
"""


def rows() -> Iterator[Row]:
    """One row per diagram, asked first and again."""
    for name in DIAGRAMS:
        dn, theirs, order = diagram(name)
        few = len(dn) <= 10
        yield first(f"{name}, {len(dn)} nodes: first", dn, theirs, order, 1.0 if few else 20.0)
        yield again(f"{name}, {len(dn)} nodes: again", dn, theirs, order, 1.0 if few else 20.0)
    for n in (6, 8):
        dn, theirs, order = pigs(n)
        yield first(f"pig breeding, {n} months, {len(dn)} nodes: first", dn, theirs, order, 20.0)


def first(work: str, dn: bbn.DecisionNetwork, theirs: Any, order: list[str], target: float) -> Row:
    """A network that was not asked before."""

    def fresh() -> bbn.DecisionNetwork:
        return bbn.DecisionNetwork(dn.nodes, recall=dn.recall)

    def check() -> None:
        assert fresh().solve().expected_utility == pytest.approx(solve(theirs, order), rel=1e-9)

    contenders = {
        "bbn": lambda network: network.solve().expected_utility,
        "pyAgrum": {"a new engine": lambda: solve(theirs, order)},
    }
    return Row(work, contenders, check, target, prepare={"bbn": fresh}, seconds=2.0)


def again(work: str, dn: bbn.DecisionNetwork, theirs: Any, order: list[str], target: float) -> Row:
    """The same network, with a state of one chance variable after the other."""
    name = observable(dn)
    if name is None:
        return repeated(work, dn, theirs, order, target)
    states = itertools.cycle(range(len(dn.states(name))))
    engine = make(theirs, order)
    engine.addEvidence(name, 0)
    engine.makeInference()

    def ours() -> float:
        return dn.solve({name: dn.states(name)[next(states)]}).expected_utility

    def kept() -> float:
        engine.chgEvidence(name, next(states))
        engine.makeInference()
        return float(engine.MEU()["mean"])

    def new() -> float:
        other = make(theirs, order)
        other.addEvidence(name, next(states))
        other.makeInference()
        return float(other.MEU()["mean"])

    def check() -> None:
        for code, state in enumerate(dn.states(name)):
            other = make(theirs, order)
            other.addEvidence(name, code)
            other.makeInference()
            exact = other.MEU()["mean"]
            assert dn.solve({name: state}).expected_utility == pytest.approx(exact, rel=1e-9, abs=1e-9)

    contenders = {"bbn": ours, "pyAgrum": {"chgEvidence on one engine": kept, "a new engine": new}}
    return Row(work, contenders, check, target, seconds=2.0)


def repeated(work: str, dn: bbn.DecisionNetwork, theirs: Any, order: list[str], target: float) -> Row:
    """The same network without evidence, where everything depends on a decision."""

    def check() -> None:
        assert dn.solve().expected_utility == pytest.approx(solve(theirs, order), rel=1e-9)

    contenders = {
        "bbn": lambda: dn.solve().expected_utility,
        "pyAgrum": {"a new engine": lambda: solve(theirs, order)},
    }
    return Row(work, contenders, check, target, seconds=2.0)


def make(theirs: Any, order: list[str]) -> Any:
    """pyAgrum's engine."""
    engine = pyagrum.ShaferShenoyLIMIDInference(theirs)
    if order:
        engine.addNoForgettingAssumption(order)
    return engine


def solve(theirs: Any, order: list[str]) -> float:
    """What pyAgrum's best policy is worth."""
    engine = make(theirs, order)
    engine.makeInference()
    return float(engine.MEU()["mean"])


def observable(dn: bbn.DecisionNetwork) -> str | None:
    """The last chance variable that depends on no decision, if there is one."""
    import networkx as nx

    decisions = {d.name for d in dn.decisions}
    free = [
        c.variable.name for c in dn.conditionals if not nx.ancestors(dn.graph, c.variable.name) & decisions
    ]
    return free[-1] if free else None
