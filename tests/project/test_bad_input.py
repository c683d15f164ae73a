"""Bad input in Python: the right class of error, a message that names node, row and value, nothing half-built."""
# ruff: noqa: E501 (one case to a line reads best)

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from bbn.core.errors import BudgetError, EvidenceError, ModelError
from bbn.model.cpt import CPT
from bbn.model.evidence import Not, OneOf, Soft, Virtual, check_evidence, check_targets
from bbn.model.factor import Factor
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

S, B, C = (
    Variable("Storm", ["yes", "no"]),
    Variable("Bus", ["yes", "no"]),
    Variable("Campfire", ["yes", "no"]),
)
N = Variable("Count", [1, 2, 3])
WIDE = [Variable(f"v{i}", ["yes", "no"]) for i in range(40)]
ROWS = {
    ("yes", "yes"): [0.4, 0.6],
    ("yes", "no"): [0.1, 0.9],
    ("no", "yes"): [0.8, 0.2],
    ("no", "no"): [0.2, 0.8],
}


def network():
    return BayesianNetwork([CPT(S, table=[0.2, 0.8]), CPT(B, table=[0.5, 0.5]), CPT(C, [S, B], ROWS)], "camp")


def rows(**changes):
    """ROWS with changes: a key such as yes_no replaced, or taken out where None."""
    new = dict(ROWS)
    for key, row in changes.items():
        new[tuple(key.split("_"))] = row
    return {key: row for key, row in new.items() if row is not None}


def camp(table):
    return lambda net: CPT(C, [S, B], table)


def alone(table):
    return lambda net: CPT(C, table=table)


def states(given):
    return lambda net: Variable("Campfire", given)


def finding(value, name="Campfire"):
    return lambda net: check_evidence(net, {name: value})


def graph(nodes, arcs):
    def build(net):
        g = nx.DiGraph()
        g.add_nodes_from(nodes)
        g.add_edges_from(arcs)
        return BayesianNetwork.from_graph(g)

    return build


FRAME = network()["Campfire"].to_frame()

CASES = {
    # variables
    "no states": (states([]), ModelError, ["'Campfire'", "no states"]),
    "states are one text": (states("yes"), ModelError, ["'Campfire'", "'yes'", "list"]),
    "states are bytes": (states(b"ab"), ModelError, ["'Campfire'", "b'ab'"]),
    "states in a set have no order": (states({"yes", "no"}), ModelError, ["'Campfire'", "order"]),
    "states are a number": (states(2), ModelError, ["'Campfire'", "2"]),
    "duplicate state": (states(["yes", "no", "yes"]), ModelError, ["'Campfire'", "'yes'", "twice"]),
    "unhashable state": (states([["yes"], "no"]), ModelError, ["'Campfire'", "['yes']", "list"]),
    "float state": (states([0.5, 1.5]), ModelError, ["'Campfire'", "0.5", "float"]),
    "no state at all": (states([None, "yes"]), ModelError, ["'Campfire'", "None"]),
    "mixed kinds of state": (states(["yes", 1]), ModelError, ["'Campfire'", "mixes", "'yes'", "1"]),
    "booleans and integers": (states([True, 0]), ModelError, ["'Campfire'", "True", "0"]),
    "states that read alike": (states(["1", 1]), ModelError, ["'Campfire'", "'1'", "1", "alike"]),
    "name is a number": (lambda net: Variable(3, ["yes"]), ModelError, ["3", "int", "string"]),
    "name is missing": (lambda net: Variable(None, ["yes"]), ModelError, ["None", "string"]),
    "name is empty": (lambda net: Variable("", ["yes"]), ModelError, ["empty"]),
    # tables
    "row sum off": (camp(rows(yes_no=[0.1, 0.87])), ModelError, ["'Campfire'", "Storm=yes, Bus=no", "0.97", "1"]),
    "row sum off without parents": (alone([0.3, 0.3]), ModelError, ["'Campfire'", "0.6"]),
    "several rows off": (camp([[[1, 1], [1, 0]], [[1, 1], [0, 0]]]), ModelError, ["Storm=yes, Bus=yes", "2 more"]),
    "negative entry": (camp(rows(no_no=[-0.2, 1.2])), ModelError, ["'Campfire'", "Storm=no, Bus=no", "-0.2", "'yes'"]),
    "NaN entry": (camp(rows(no_yes=[np.nan, 1])), ModelError, ["'Campfire'", "Storm=no, Bus=yes", "nan", "'yes'"]),
    "infinite entry": (alone([np.inf, 0]), ModelError, ["'Campfire'", "inf", "'yes'"]),
    "infinities that cancel": (alone([np.inf, -np.inf]), ModelError, ["'Campfire'", "inf"]),
    "entries that overflow": (alone([1e308, 1e308]), ModelError, ["'Campfire'", "inf"]),
    "wrong shape": (camp(np.ones((2, 3, 2))), ModelError, ["'Campfire'", "(2, 2, 2)", "(2, 3, 2)", "Storm, Bus, Campfire"]),
    "flat table": (camp(np.full(8, 0.5)), ModelError, ["(2, 2, 2)", "(8,)", "reshape(2, 2, 2)"]),
    "child's axis first": (lambda net: CPT(C, [N], np.full((2, 3), 0.5)), ModelError, ["(3, 2)", "(2, 3)", "transpose"]),
    "ragged table": (alone([[0.5], [0.5, 0.5]]), ModelError, ["'Campfire'", "(2,)"]),
    "text for numbers": (alone(["0.5", "0.5"]), ModelError, ["'Campfire'", "numbers"]),
    "text in a row": (camp(rows(yes_no=["a", "b"])), ModelError, ["Storm=yes, Bus=no", "'a'"]),
    "complex numbers": (alone(np.array([0.5 + 1j, 0.5 - 1j])), ModelError, ["'Campfire'", "numbers"]),
    "no table": (lambda net: CPT(C), ModelError, ["'Campfire'", "table"]),
    "missing rows": (camp(rows(yes_no=None, no_no=None)), ModelError, ["'Campfire'", "(yes, no)", "(no, no)", "missing"]),
    "extra row": (camp(rows(maybe_no=[0.5, 0.5])), ModelError, ["'Campfire'", "(maybe, no)", "'Storm'", "'maybe'"]),
    "misspelt row": (camp(rows(yess_no=[0.5, 0.5])), ModelError, ["'Campfire'", "did you mean 'yes'"]),
    "row key too short": (camp({"yes": [0.5, 0.5]}), ModelError, ["'Campfire'", "'yes'", "1", "2", "Storm, Bus"]),
    "too many entries": (camp(rows(yes_no=[0.1, 0.8, 0.1])), ModelError, ["Storm=yes, Bus=no", "2 entries", "3 entries"]),
    "too few entries": (camp(rows(yes_no=[1])), ModelError, ["Storm=yes, Bus=no", "2 entries", "1 entries"]),
    "entry for an unknown state": (
        camp(rows(no_no={"yes": 0.5, "noo": 0.5})), ModelError, ["Storm=no, Bus=no", "'noo'", "did you mean 'no'"]),
    "entry missing": (camp(rows(no_no={"yes": 1})), ModelError, ["Storm=no, Bus=no", "(no)"]),
    "row of nothing": (camp(rows(no_no={"yes": None, "no": 1})), ModelError, ["Storm=no, Bus=no", "yes"]),
    "frame with other levels": (camp(FRAME.rename_axis(index=["Storm", "Bux"])), ModelError, ["'Campfire'", "Bux", "Bus"]),
    "frame with a row twice": (camp(pd.concat([FRAME, FRAME.iloc[:1]])), ModelError, ["'Campfire'", "yes", "twice"]),
    "frame with a column twice": (camp(FRAME.iloc[:, [0, 1, 1]]), ModelError, ["'Campfire'", "'no'", "twice"]),
    "frame with a row missing": (camp(FRAME.iloc[:3]), ModelError, ["'Campfire'", "(no, no)"]),
    "parent twice": (lambda net: CPT(C, [S, S], np.full((2, 2, 2), 0.5)), ModelError, ["'Campfire'", "'Storm'", "twice"]),
    "its own parent": (lambda net: CPT(C, [C], np.full((2, 2), 0.5)), ModelError, ["'Campfire'", "own parent"]),
    "parent by name": (lambda net: CPT(C, ["Storm"], np.full((2, 2), 0.5)), ModelError, ["'Campfire'", "'Storm'", "Variable"]),
    "parents are one variable": (lambda net: CPT(C, S, np.full((2, 2), 0.5)), ModelError, ["'Campfire'", "list"]),
    "variable by name": (lambda net: CPT("Campfire", table=[0.5, 0.5]), ModelError, ["'Campfire'", "Variable"]),
    "2^40 rows": (lambda net: CPT(C, WIDE[:39], {}), BudgetError, ["'Campfire'", "8.8 TB"]),
    "2^40 uniform": (lambda net: CPT.uniform(C, WIDE[:39]), BudgetError, ["'Campfire'", "8.8 TB"]),
    "too many parents": (
        lambda net: CPT.uniform(C, [Variable(str(i), [0]) for i in range(32)]), BudgetError, ["'Campfire'", "33 axes"]),
    "function gives no state": (
        lambda net: CPT.deterministic(C, [S], lambda s: s == "yes"), ModelError, ["'Campfire'", "Storm=yes", "True"]),
    "noisy-or of three states": (lambda net: CPT.noisy_or(C, [N], [0.1]), ModelError, ["'Campfire'", "'Count'", "3"]),
    "noisy-or past 1": (lambda net: CPT.noisy_or(C, [S], [1.5]), ModelError, ["'Campfire'", "Storm", "1.5"]),
    "noisy-or of others": (lambda net: CPT.noisy_or(C, [S], {"Bus": 0.5}), ModelError, ["'Campfire'", "Storm", "Bus"]),
    "noisy-or leak": (lambda net: CPT.noisy_or(C, [S], [0.5], leak=np.nan), ModelError, ["'Campfire'", "leak", "nan"]),
    # factors
    "factor entry negative": (lambda net: Factor([S], [1, -1]), ModelError, ["Storm=no", "-1"]),
    "factor entry NaN": (lambda net: Factor([S], [1, np.nan]), ModelError, ["Storm=no", "nan"]),
    "factor of another shape": (lambda net: Factor([S], [1, 1, 1]), ModelError, ["Storm", "(2,)", "(3,)"]),
    "factor of 2^40 cells": (lambda net: Factor(WIDE, 1), BudgetError, ["v0", "8.8 TB"]),
    "factor graph of nothing": (lambda net: FactorGraph([]), ModelError, ["empty"]),
    "factors that disagree": (
        lambda net: FactorGraph([Factor([S], [1, 1]), Factor([Variable("Storm", ["no", "yes"])], [1, 1])]),
        ModelError, ["'Storm'", "['yes', 'no']", "['no', 'yes']"]),
    # networks
    "empty network": (lambda net: BayesianNetwork([]), ModelError, ["empty"]),
    "network of one table": (lambda net: BayesianNetwork(net["Storm"]), ModelError, ["list of CPTs"]),
    "network of variables": (lambda net: BayesianNetwork([S]), ModelError, ["CPT", "Variable('Storm'"]),
    "duplicate node": (lambda net: BayesianNetwork([*net.conditionals, CPT.uniform(S)]), ModelError, ["'Storm'", "two"]),
    "unknown parent": (lambda net: BayesianNetwork([net["Campfire"], net["Bus"]]), ModelError, ["'Campfire'", "'Storm'"]),
    "parent with other states": (
        lambda net: net.with_cpts([CPT.uniform(Variable("Bus", ["no", "yes"]))]),
        ModelError, ["'Campfire'", "'Bus'", "['yes', 'no']", "['no', 'yes']"]),
    "cycle of two": (
        lambda net: BayesianNetwork([CPT.uniform(S, [B]), CPT.uniform(B, [S])]), ModelError, ["cycle", "Bus → Storm → Bus"]),
    "cycle of three with a tail": (
        lambda net: BayesianNetwork([CPT.uniform(S, [C]), CPT.uniform(B, [S]), CPT.uniform(C, [B]), CPT.uniform(N, [C])]),
        ModelError, ["Bus → Campfire → Storm → Bus"]),
    "name of a network": (lambda net: BayesianNetwork(net.conditionals, name=3), ModelError, ["3", "string"]),
    "graph node without states": (graph([("Storm", {})], []), ModelError, ["'Storm'", "states"]),
    "graph node without table": (graph([("Storm", {"states": ["yes"]})], []), ModelError, ["'Storm'", "table"]),
    "graph node not named by text": (graph([(1, {"states": ["yes"], "table": [1]})], []), ModelError, ["1", "string"]),
    "graph with other arcs": (
        graph([("Storm", {"cpt": CPT.uniform(S)}), ("Bus", {"cpt": CPT.uniform(B)})], [("Storm", "Bus")]),
        ModelError, ["'Bus'", "graph"]),
    "graph without direction": (lambda net: BayesianNetwork.from_graph(nx.Graph()), ModelError, ["DiGraph"]),
    "graph of nothing": (graph([], []), ModelError, ["empty"]),
    # questions and edits
    "unknown node": (lambda net: net["Strom"], EvidenceError, ["'Strom'", "did you mean 'Storm'", "'camp'"]),
    "unknown node, not text": (lambda net: net.parents(["Storm"]), EvidenceError, ["['Storm']"]),
    "joint of 2^40": (
        lambda net: BayesianNetwork([CPT.uniform(v) for v in WIDE]).joint(), BudgetError, ["40 variables", "8.8 TB"]),
    "do an unknown state": (lambda net: net.do({"Storm": "maybe"}), EvidenceError, ["'Storm'", "'maybe'"]),
    "do an unknown node": (lambda net: net.do({"Strom": "yes"}), EvidenceError, ["'Strom'", "'Storm'"]),
    "do no mapping": (lambda net: net.do("Storm"), EvidenceError, ["'Storm'", "mapping"]),
    "arc that is there": (lambda net: net.add_arc("Storm", "Campfire"), ModelError, ["'Storm'", "'Campfire'", "already"]),
    "arc that closes a cycle": (lambda net: net.add_arc("Campfire", "Storm"), ModelError, ["Campfire → Storm → Campfire"]),
    "arc to itself": (lambda net: net.add_arc("Storm", "Storm"), ModelError, ["'Storm'", "own parent"]),
    "arc that is not there": (lambda net: net.remove_arc("Storm", "Bus"), ModelError, ["'Storm'", "'Bus'", "no arc"]),
    "weights that miss a state": (
        lambda net: net.remove_arc("Storm", "Campfire", {"yes": 1}), EvidenceError, ["'Storm'", "every state"]),
    "weights below zero": (
        lambda net: net.remove_arc("Storm", "Campfire", {"yes": 2, "no": -1}), EvidenceError, ["weights", "-1"]),
    "rename onto another": (lambda net: net.rename({"Storm": "Bus"}), ModelError, ["'Bus'"]),
    "rename an unknown node": (lambda net: net.rename({"Strom": "X"}), EvidenceError, ["'Strom'", "'Storm'"]),
    "relabel onto another": (lambda net: net.relabel("Storm", {"yes": "no"}), ModelError, ["'Storm'", "'no'", "twice"]),
    "relabel part to another kind": (lambda net: net.relabel("Storm", {"yes": 1}), ModelError, ["'Storm'", "mixes"]),
    "rename by a list": (lambda net: net.rename(["Storm"]), EvidenceError, ["mapping", "Storm"]),
    "relabel by a list": (lambda net: net.relabel("Storm", ["a", "b"]), EvidenceError, ["mapping", "'a', 'b'"]),
    "probability of nothing": (lambda net: net.probability(None), EvidenceError, ["mapping", "None"]),
    "subnetwork of nothing": (lambda net: net.subnetwork([]), ModelError, ["empty"]),
    "d-separation of overlapping sets": (
        lambda net: net.is_d_separated("Storm", "Bus", "Storm"), EvidenceError, ["'Storm'", "disjoint"]),
    # evidence and targets
    "evidence on an unknown node": (finding("yes", "Campfir"), EvidenceError, ["'Campfir'", "'Campfire'"]),
    "evidence of an unknown state": (finding("yse"), EvidenceError, ["'Campfire'", "'yse'", "did you mean 'yes'"]),
    "evidence of another kind": (finding(True), EvidenceError, ["'Campfire'", "True"]),
    "evidence as a bare mapping": (finding({"yes": 1, "no": 0}), EvidenceError, ["'Campfire'", "Virtual", "Soft"]),
    "evidence as a list": (finding(["yes", "no"]), EvidenceError, ["'Campfire'", "OneOf('yes', 'no')"]),
    "evidence as an array": (finding(np.array([0.5, 0.5])), EvidenceError, ["'Campfire'"]),
    "evidence that is no mapping": (lambda net: check_evidence(net, ["Storm"]), EvidenceError, ["mapping", "Storm"]),
    "virtual that misses a state": (finding(Virtual({"yes": 1})), EvidenceError, ["'Campfire'", "'no'", "Virtual"]),
    "virtual of an unknown state": (finding(Virtual({"yes": 1, "noo": 1})), EvidenceError, ["'Campfire'", "'noo'"]),
    "virtual below zero": (finding(Virtual({"yes": -1, "no": 1})), EvidenceError, ["'Campfire'", "-1"]),
    "virtual all zero": (finding(Virtual({"yes": 0, "no": 0})), EvidenceError, ["'Campfire'", "zero"]),
    "virtual NaN": (finding(Virtual({"yes": np.nan, "no": 1})), EvidenceError, ["'Campfire'", "nan"]),
    "virtual of text": (finding(Virtual({"yes": "0.8", "no": "0.2"})), EvidenceError, ["'Campfire'", "'0.8'"]),
    "virtual of a list": (lambda net: Virtual([0.8, 0.2]), EvidenceError, ["Virtual", "[0.8, 0.2]"]),
    "soft that does not sum to 1": (finding(Soft({"yes": 0.8, "no": 0.8})), EvidenceError, ["'Campfire'", "1.6", "Virtual"]),
    "one of an unknown state": (finding(OneOf("yes", "maybe")), EvidenceError, ["'Campfire'", "'maybe'"]),
    "one of none": (finding(OneOf()), EvidenceError, ["'Campfire'", "no state"]),
    "one of a list": (lambda net: OneOf(["yes", "no"]), EvidenceError, ["OneOf('yes', 'no')"]),
    "not any": (finding(Not("yes", "no")), EvidenceError, ["'Campfire'", "no state", "Not('yes', 'no')"]),
    "target unknown": (lambda net: check_targets(net, "Campfir"), EvidenceError, ["'Campfir'", "'Campfire'"]),
    "target twice": (lambda net: check_targets(net, ["Bus", "Storm", "Bus"]), EvidenceError, ["'Bus'", "twice"]),
    "targets in a set have no order": (
        lambda net: check_targets(net, {"Storm", "Bus"}), EvidenceError, ["['Bus', 'Storm']", "order"]),
    "no target": (lambda net: check_targets(net, []), EvidenceError, ["targets"]),
    "target is a number": (lambda net: check_targets(net, 3), EvidenceError, ["3"]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, kind, words = CASES[case]
    net = network()
    with warnings.catch_warnings(action="error"), pytest.raises(kind) as caught:  # and no warning beside it
        call(net)
    message = str(caught.value)
    assert [word for word in words if word not in message] == [], message
    assert net == network()
    assert net.joint() == network().joint()
