"""Influence diagrams for both libraries: published ones, and one of our own where several decisions follow each other.

The breeding of pigs has the numbers of Lauritzen and Nilsson (2001), as Hugin's collection of examples prints them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import bbn

DIAGRAMS = {
    "oil wildcatter": "",
    "decision asia": ("A->Tu->E->D<-B<-S->L->E->P<-*Ta<-*H->$Uh<-L;Tu->$Uh;Ta->$Ut<-Tu"),
    "Nilsson and Lauritzen 2000": (
        "*D1->$U3<-R1->R2->R3<-*D4->$U4<-R4<-R1<-*D2;R4->D4<-*D3<-D2<-D1;D3->$U1<-R2;R3->$U2"
    ),
    "four decisions in a row": (  # ours, in the manner of the example of Jensen, Jensen and Dittmer (1994)
        "A->C->D->F->H->J->$V3;B->C;B->*D1->D;D1->$V1;D->E->G->I->L->$V4;E->*D2->G;F->*D3->H->K->$V3;"
        "G->*D4->L;D3->$V2;C->E"
    ),
}
"""Name to structure, in pyAgrum's notation: * decision, $ utility."""


def diagram(name: str) -> tuple[bbn.DecisionNetwork, Any, list[str]]:
    """The diagram in bbn and in pyAgrum, and the decisions in the order in which pyAgrum forgets nothing."""
    import pyagrum

    if name == "oil wildcatter":
        dn = bbn.example("oil_wildcatter")
        return dn, bbn.to_pyagrum(dn), []
    theirs = pyagrum.fastID(DIAGRAMS[name])
    _fill(theirs, len(name))
    order = [theirs.variable(d).name() for d in _in_time(theirs)]
    dn = bbn.from_pyagrum(theirs)
    return bbn.DecisionNetwork(dn.nodes, recall="implied"), theirs, order


def pigs(n: int) -> tuple[bbn.DecisionNetwork, Any, list[str]]:
    """The breeding of pigs over n months (Lauritzen and Nilsson 2001, section 3), nothing forgotten."""
    health = [bbn.Variable(f"Health{i}", ["ill", "well"]) for i in range(n + 1)]
    nodes: list[Any] = [bbn.CPT(health[0], table=[0.1, 0.9])]
    order, seen = [], []
    for i in range(n):
        test = bbn.Variable(f"Test{i}", ["positive", "negative"])
        nodes.append(bbn.CPT(test, [health[i]], [[0.8, 0.2], [0.1, 0.9]]))
        seen.append(test.name)
        treat = bbn.Decision(f"Treat{i}", ["treat", "leave"], list(seen))
        seen.append(treat.name)
        order.append(treat.name)
        later = [[[0.5, 0.5], [0.9, 0.1]], [[0.1, 0.9], [0.2, 0.8]]]
        nodes += [treat, bbn.CPT(health[i + 1], [health[i], treat], later)]
        nodes.append(bbn.Utility(f"Cost{i}", [treat], [-100, 0]))
    nodes.append(bbn.Utility("Price", [health[n]], [300, 1000]))
    dn = bbn.DecisionNetwork(nodes)
    return dn, bbn.to_pyagrum(dn), []


def _fill(model: Any, seed: int) -> None:
    """Random tables, the same for the same seed."""
    rng = np.random.default_rng(seed)
    for node in sorted(model.nodes()):
        if model.isChanceNode(node):
            table = model.cpt(node)
            card = model.variable(node).domainSize()
            rows = rng.dirichlet(np.ones(card), table.domainSize() // card)
            table.fillWith(rows.ravel().tolist())
        elif model.isUtilityNode(node):
            table = model.utility(node)
            table.fillWith(rng.integers(-50, 100, table.domainSize()).astype(float).tolist())


def _in_time(model: Any) -> list[int]:
    """The decisions in the order of time."""
    found = [node for node in model.topologicalOrder() if model.isDecisionNode(node)]
    return list(found)
