"""Which state of a binary variable means that it holds: yes, true, present, … known from the words, or told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bbn.core.errors import ModelError, nearest
from bbn.model.variable import State, Variable

HOLDING_WORDS = {
    frozenset(pair): pair[0]
    for pair in (
        ("yes", "no"),
        ("y", "n"),
        ("true", "false"),
        ("t", "f"),
        ("1", "0"),
        ("present", "absent"),
        ("positive", "negative"),
        ("on", "off"),
    )
}
"""The states of a binary variable, in small letters, and which of them means that it holds."""


def holding_code(variable: Variable) -> int | None:
    """The code of the state of a binary variable that means that it holds; None if the words do not tell."""
    return holding(variable.states)


def holding(states: Sequence[State]) -> int | None:
    """Which of two states means that a variable holds; None if the words do not tell.

    >>> holding(["No", "Yes"]), holding(["left", "right"])
    (1, None)
    """
    words = [str(state).strip().casefold() for state in states]
    word = HOLDING_WORDS.get(frozenset(words))
    return None if word is None else words.index(word)


def told_holding_code(variable: Variable, holds: Any) -> int:
    """The code of the state that holds: as told, otherwise by the words; ModelError if neither says which."""
    told = holds.get(variable.name) if isinstance(holds, Mapping) else holds
    code = holding_code(variable) if told is None else variable.find(told)
    if code is None:
        what = (
            f"holds= says {told!r}, which is not a state of it"
            if told is not None
            else "its words do not tell"
        )
        raise ModelError(
            f"which of the states {list(variable.states)} of {variable.name!r} means that it holds? {what}; "
            f"say holds={{{variable.name!r}: {variable.states[0]!r}}}"
        )
    return code


def require_family(where: str, holds: Any, child: Variable, parents: Sequence[Variable]) -> None:
    """ModelError if a mapping of states that hold names a variable that is neither the child nor a parent."""
    names = [v.name for v in (child, *parents)]
    for name in holds if isinstance(holds, Mapping) else ():
        if name not in names:
            raise ModelError(f"{where}: holds= names {name!r}, neither it nor a parent{nearest(name, names)}")


def positive_code(variable: Variable) -> int:
    """The code of the state of a binary variable that means that it holds; the first where the words do not tell."""
    return holding_code(variable) or 0
