"""Names and states in formats that cannot hold all of them: legal substitutes, and a note of the originals.

Every textual format has a place for properties that other programs skip. Where a name or state is not legal in
the format, or a state is not a string, the variable's originals are noted there as JSON, so that bbn reads back
exactly what it wrote; other programs see the substitutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bbn.core.errors import LossyFormatWarning, ModelError, warn_user
from bbn.io.build import RawNode
from bbn.io.number_tables import tables
from bbn.model.binned import Binned, interval_labels
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State, Variable


class Label(NamedTuple):
    """How a variable is written: its name, its states, and the note of the originals ("" if none is needed)."""

    name: str
    states: tuple[str, ...]
    note: str


def labels(
    network: BayesianNetwork | DecisionNetwork,
    format: str,
    legal: Callable[[str], str],
    legal_state: Callable[[str], str] | None = None,
) -> dict[str, Label]:
    """The label of each variable by its name; a warning if any name or state had to be changed.

    Parameters
    ----------
    network
        What is written.
    format
        What the warning calls the format.
    legal
        A name itself if the format can hold it, else the nearest text that it can hold.
    legal_state
        The same for states, where they are not names.
    """
    variables: list[tuple[str, tuple[State, ...], Variable | None]] = [
        (cpt.name, cpt.variable.states, cpt.variable) for cpt in tables(network)
    ]
    if isinstance(network, DecisionNetwork):
        variables += [(d.name, d.states, d.variable) for d in network.decisions]
        variables += [(u.name, (), None) for u in network.utilities]  # they have no states
    names = distinct([name for name, _, _ in variables], legal)
    found: dict[str, Label] = {}
    changed: list[str] = []
    known: dict[tuple[State, ...], tuple[str, ...]] = {}  # many variables share their states
    for (own, its_states, variable), name in zip(variables, names, strict=True):
        is_text = not its_states or type(its_states[0]) is str
        states = known.get(its_states) if is_text else None
        if states is None:
            plain = _plain_intervals(variable) if isinstance(variable, Binned) else map(str, its_states)
            states = tuple(distinct(plain, legal_state or legal))
            if is_text:
                known[its_states] = states
        note = ""
        if not is_text or name != own or states != its_states or isinstance(variable, Binned):
            bins = {"bins": variable.edges} if isinstance(variable, Binned) else {}
            note = json.dumps({"name": own, "states": its_states, **bins})
            old = (own, *map(str, its_states))
            changed += [f"{a!r} as {b!r}" for a, b in zip(old, (name, *states), strict=True) if a != b]
        found[own] = Label(name, states, note)
    if changed:
        warn_user(
            f"{format} cannot hold {len(changed)} of the names and states; written {', '.join(changed[:3])}"
            + ", …" * (len(changed) > 3)
            + ". bbn reads them back as they were, other programs see the substitutes",
            LossyFormatWarning,
        )
    return found


def distinct(texts: Iterable[str], legal: Callable[[str], str]) -> list[str]:
    """Legal texts in place of these, no two the same.

    >>> distinct(["a b", "a_b", "c"], lambda text: text.replace(" ", "_"))
    ['a_b_2', 'a_b', 'c']
    """
    originals = list(texts)
    taken = {text for text in originals if legal(text) == text}
    numbers: dict[str, int] = {}  # the last number tried after each text
    found = []
    for original in originals:
        text = candidate = legal(original)
        while candidate != original and candidate in taken:
            numbers[text] = numbers.get(text, 1) + 1
            candidate = f"{text}_{numbers[text]}"
        taken.add(candidate)
        found.append(candidate)
    return found


def _plain_intervals(variable: Binned) -> list[str]:
    """Labels of intervals that every program reads: letters, digits and underscores.

    >>> _plain_intervals(Binned("X", [-1.5, 3]))
    ['below_m1_5', 'm1_5_to_3', 'from_3']
    """
    if variable.states != interval_labels(variable.edges):
        return list(map(str, variable.states))
    words = [
        str(label).replace("..", "_to_").replace("<", "below_").replace(">=", "from_").replace("+", "")
        for label in variable.states
    ]
    return [word.replace("-", "m").replace(".", "_") for word in words]


def restore(nodes: Sequence[RawNode], notes: Mapping[str, str]) -> Sequence[RawNode]:
    """The nodes with the names and states that were noted, by the written name; a note that does not fit is skipped."""
    originals = {node.name: _original(node, notes[node.name]) for node in nodes if notes.get(node.name)}
    if not originals:
        return nodes
    names = {written: name for written, (name, _, _) in originals.items()}
    return [
        node._replace(
            name=names.get(node.name, node.name),
            states=originals[node.name][1] if node.name in originals else node.states,
            bins=originals[node.name][2] if node.name in originals else node.bins,
            parents=[names.get(parent, parent) for parent in node.parents],
        )
        for node in nodes
    ]


def _original(node: RawNode, note: str) -> tuple[str, Sequence[str | int | bool], Sequence[float] | None]:
    try:
        noted = json.loads(note)
        name, states = noted["name"], noted["states"]
        "".join([name, *(state for state in states if isinstance(state, str))]).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return node.name, node.states, None
    fits = isinstance(name, str) and isinstance(states, list) and len(states) == len(node.states)
    if not (fits and name):
        return node.name, node.states, None
    try:
        bins = noted.get("bins")
        return name, states, None if bins is None else Binned(name, bins, states).edges
    except ModelError:
        return name, states, None
