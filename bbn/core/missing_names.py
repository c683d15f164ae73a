"""Names that a network or `bbn` does not have: an AttributeError that names the nearest, or what others' name is here.

Python suggests names only where a traceback is shown; the error here says them itself, and looks for them only when it
is printed, so that `hasattr` costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from bbn.core.errors import nearest

ELSEWHERE = {
    "add_edge": "add_arc",
    "add_edges_from": "add_arc",
    "remove_edge": "remove_arc",
    "remove_edges_from": "remove_arc",
    "add_node": "with_cpts",
    "add_nodes_from": "with_cpts",
    "add_cpds": "with_cpts",
    "remove_node": "subnetwork",
    "get_cpds": "conditionals",
    "nodes": "names",
    "edges": "arcs",
}
"""What networkx, pgmpy and others call it, and its name here."""
FUNCTIONS = {
    "fit": "bbn.fit(network, data)",
    "fit_update": "bbn.fit_update(network, data)",
    "learn": "bbn.learn(data)",
    "load": "bbn.load(path)",
}
"""What is a method elsewhere, and a function here."""
PUBLIC = {
    "BayesNet": "BayesianNetwork",
    "BayesianModel": "BayesianNetwork",
    "DiscreteBayesianNetwork": "BayesianNetwork",
    "TabularCPD": "CPT",
    "DiscreteFactor": "Factor",
    "MarkovNetwork": "FactorGraph",
    "DiscreteMarkovNetwork": "FactorGraph",
    "MarkovRandomField": "FactorGraph",
    "InfluenceDiagram": "DecisionNetwork",
    "LabelizedVariable": "Variable",
    "RangeVariable": "Variable",
    "Node": "Variable",
    "State": "Variable",
    "BIFReader": "load",
    "loadBN": "load",
    "read": "load",
    "read_bif": "load",
    "BIFWriter": "save",
    "saveBN": "save",
    "write": "save",
    "LazyPropagation": "JunctionTree",
    "BeliefPropagation": "JunctionTree",
    "HillClimbSearch": "hill_climb",
    "ExpectationMaximization": "fit_em",
    "MaximumLikelihoodEstimator": "fit",
    "BayesianEstimator": "fit",
}
"""What pgmpy, pyAgrum and others call what is a public name here."""
EDITS = ("add", "remove", "set", "delete", "insert", "update", "append", "drop")
"""How the names of methods begin that would change a network."""


class MissingNameError(AttributeError):
    """An attribute that an object of some class does not have."""

    def __init__(self, kind: type, missing: str) -> None:
        super().__init__(
            kind, missing
        )  # not as name= and obj=, for which Python adds a suggestion of its own
        self.kind, self.missing = kind, missing

    def __str__(self) -> str:
        known = [own for own in dir(self.kind) if not own.startswith("_")]
        own = ELSEWHERE.get(self.missing)
        near = f"; did you mean {own!r}?" if own in known else nearest(self.missing, known)
        if self.missing in FUNCTIONS:
            near = f"; did you mean {FUNCTIONS[self.missing]}?"
        hints = [near] if "did you mean" in near else []
        if self.missing.startswith(EDITS):
            hints.append("; it is never changed, and its methods give new ones")
        return f"{self.kind.__name__!r} object has no attribute {self.missing!r}{''.join(hints[::-1])}"


class NamesSuggested:
    """The base of what suggests a name for one that it does not have."""

    __slots__ = ()

    if not TYPE_CHECKING:  # for which every name would be one that there is

        def __getattr__(self, name: str) -> NoReturn:
            raise MissingNameError(type(self), name)


class MissingPublicNameError(AttributeError):
    """A name that the package does not have; the nearest is looked for when it is printed."""

    def __init__(self, module: str, missing: str, known: Sequence[str]) -> None:
        super().__init__(module, missing)
        self.module, self.missing, self.known = module, missing, known

    def __str__(self) -> str:
        near = nearest(PUBLIC.get(self.missing, self.missing), self.known)
        return f"module {self.module!r} has no attribute {self.missing!r}" + near * ("did you mean" in near)
