"""Names and states in formats that cannot hold all of them: legal substitutes, and a note of the originals.

Every textual format has a place for properties that other programs skip. Where a name or state is not legal in
the format, or a state is not a string, the variable's originals are noted there as JSON, so that bbn reads back
exactly what it wrote; other programs see the substitutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from bbn.core.errors import LossyFormatWarning, warn_user
from bbn.io.build import RawNode
from bbn.io.number_tables import tables
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State, Variable


class Label(NamedTuple):
    """How a variable is written: its name, its states, and the note of the originals ("" if none is needed)."""

    name: str
    states: tuple[str, ...]
    note: str


def labels(
    network: BayesianNetwork,
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
    variables = [cpt.variable for cpt in tables(network)]
    names = distinct([variable.name for variable in variables], legal)
    found: dict[str, Label] = {}
    changed: list[str] = []
    known: dict[tuple[State, ...], tuple[str, ...]] = {}  # many variables share their states
    for variable, name in zip(variables, names, strict=True):
        is_text = type(variable.states[0]) is str
        states = known.get(variable.states) if is_text else None
        if states is None:
            states = tuple(distinct(map(str, variable.states), legal_state or legal))
            if is_text:
                known[variable.states] = states
        note = ""
        if not is_text or name != variable.name or states != variable.states:
            note = _note(variable)
            old = (variable.name, *map(str, variable.states))
            changed += [f"{a!r} as {b!r}" for a, b in zip(old, (name, *states), strict=True) if a != b]
        found[variable.name] = Label(name, states, note)
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


def _note(variable: Variable) -> str:
    return json.dumps({"name": variable.name, "states": variable.states})


def restore(nodes: Sequence[RawNode], notes: Mapping[str, str]) -> Sequence[RawNode]:
    """The nodes with the names and states that were noted, by the written name; a note that does not fit is skipped."""
    originals = {node.name: _original(node, notes[node.name]) for node in nodes if notes.get(node.name)}
    if not originals:
        return nodes
    names = {written: name for written, (name, _) in originals.items()}
    return [
        node._replace(
            name=names.get(node.name, node.name),
            states=originals[node.name][1] if node.name in originals else node.states,
            parents=[names.get(parent, parent) for parent in node.parents],
        )
        for node in nodes
    ]


def _original(node: RawNode, note: str) -> tuple[str, Sequence[str | int | bool]]:
    try:
        noted = json.loads(note)
        name, states = noted["name"], noted["states"]
        "".join([name, *(state for state in states if isinstance(state, str))]).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return node.name, node.states
    fits = isinstance(name, str) and isinstance(states, list) and len(states) == len(node.states)
    return (name, states) if fits and name else (node.name, node.states)
