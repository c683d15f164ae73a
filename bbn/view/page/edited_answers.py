"""Edits from the page: each gives a new network, and earlier ones are kept for undo, also past a reload of the page.

Nothing is written to disk: saving gives the page a text, which the browser downloads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bbn.core.errors import EvidenceError, ModelError
from bbn.io import dumps
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from bbn.view.page.answers import NetworkAnswers, Request, Told
from bbn.view.page.findings import index, numbers

KEPT = 200
"""The most versions kept."""
MOST_STATES = 1000
"""The most states of a new node."""


class Version(NamedTuple):
    """A network before an edit (after it, among those to go forth to)."""

    net: BayesianNetwork
    renamed: tuple[str, str] | None
    """If the edit renamed a node: its name before and after."""


class EditedAnswers(NetworkAnswers):
    """The answers of a network that the page may edit.

    Parameters
    ----------
    net
        The network to begin with.
    options
        For the inference engine.
    """

    paths = (*NetworkAnswers.paths, "edit", "yaml")

    def __init__(self, net: BayesianNetwork, options: Mapping[str, Any]) -> None:
        self._before: list[Version] = []
        self._after: list[Version] = []
        self._lock = threading.Lock()
        self.options = options
        self._show(net)

    def edit(self, request: Request) -> Told:
        """Edit the network, or go back or forth; the answer is what to draw now."""
        op = request.get("op")
        with self._lock:
            if op == "undo" or op == "redo":
                back = op == "undo"
                renamed = self._step(*(self._before, self._after)[:: 1 if back else -1])
                if back and renamed:
                    renamed = renamed[::-1]
            elif isinstance(op, str) and op in EDITS:
                new = EDITS[op](self.net, request)
                renamed = (request["name"], request["to"]) if op == "rename" else None
                self._before = [*self._before, Version(self.net, renamed)][-KEPT:]
                self._after.clear()
                self._show(new)
            else:
                raise ModelError(f"an edit is one of {', '.join(EDITS)}, undo and redo, found {op!r}")
            return {"model": self.layout, "renamed": renamed}

    def yaml(self, request: Request) -> Told:
        """The network as it is now, as YAML."""
        return {"text": dumps(self.net, "yaml")}

    def _step(self, source: list[Version], other: list[Version]) -> tuple[str, str] | None:
        """Go to the last version of one list, putting this one on the other; the names that tell the two apart."""
        if not source:
            raise ModelError("there is no edit to undo or redo")
        net, renamed = source.pop()
        other.append(Version(self.net, renamed))
        self._show(net)
        return renamed

    def _show(self, net: BayesianNetwork) -> None:
        super().__init__(net, self.options)
        self.layout |= {"edit": True, "history": [len(self._before), len(self._after)]}


def _rename(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    return net.rename({_text(request, "name"): _text(request, "to")})


def _relabel(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    """Rename one state, given by its index."""
    name, new = _text(request, "name"), _text(request, "to")
    state = net.states(name)[index(request.get("state"), net.variable(name).card, name)]
    return net.relabel(name, {state: new})


def _row(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    """Replace one row of a table."""
    name = _text(request, "name")
    cpt = net[name]
    if not isinstance(cpt, CPT):
        raise ModelError(f"{name!r} is a {type(cpt).__name__}, not a table; the page edits tables")
    codes = request.get("codes")
    if not isinstance(codes, list) or len(codes) != len(cpt.parents):
        raise EvidenceError(f"codes must be {len(cpt.parents)} indices, one per parent of {name!r}")
    at = tuple(index(code, p.card, p.name) for code, p in zip(codes, cpt.parents, strict=True))
    table = cpt.table.copy()
    table[at] = numbers(request.get("values"), cpt.variable.card, f"a row of {name!r}")
    return net.with_cpts([CPT(cpt.variable, cpt.parents, table)])


def _add_node(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    name, states = _text(request, "name"), request.get("states")
    if name in net.names:
        raise ModelError(f"there is a node {name!r} already")
    if (
        not isinstance(states, list)
        or not 0 < len(states) <= MOST_STATES
        or not all(isinstance(s, str) and s for s in states)
    ):
        raise ModelError(f"the states of {name!r} must be a list of names, at most {MOST_STATES}")
    return net.with_cpts([CPT.uniform(Variable(name, states))])


def _remove_node(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    """The network without a node; the tables of its children are averaged over its states."""
    name = net.variable(_text(request, "name")).name
    if len(net) == 1:
        raise ModelError(f"{name!r} is the only node; a network has at least one")
    for child in net.children(name):
        net = net.remove_arc(name, child)
    return BayesianNetwork([c for c in net.conditionals if c.variable.name != name], net.name, net.metadata)


def _add_arc(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    return net.add_arc(_text(request, "parent"), _text(request, "child"))


def _remove_arc(net: BayesianNetwork, request: Request) -> BayesianNetwork:
    return net.remove_arc(_text(request, "parent"), _text(request, "child"))


def _text(request: Request, key: str) -> str:
    value = request.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ModelError(f"{key} must be a name")
    return value


EDITS: dict[str, Callable[[BayesianNetwork, Request], BayesianNetwork]] = {
    "rename": _rename,
    "relabel": _relabel,
    "row": _row,
    "add_node": _add_node,
    "remove_node": _remove_node,
    "add_arc": _add_arc,
    "remove_arc": _remove_arc,
}
"""What the page may change."""
