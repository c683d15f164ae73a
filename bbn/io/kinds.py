"""States that are not strings, in formats that hold only strings: the kind is written beside them.

Each textual format has a place for properties that other programs skip; the word `int` or `bool` there lets
the states of a variable come back as they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from bbn.variable import State, Variable

_BOOLS = {"True": True, "False": False}


def kind_of(variable: Variable) -> str:
    """The kind of the variable's states: "str", "int" or "bool".

    >>> kind_of(Variable("Die", [1, 2, 3, 4, 5, 6]))
    'int'
    """
    return type(variable.states[0]).__name__


def as_kind(states: Sequence[str], kind: str) -> Sequence[State]:
    """The states as the kind says; as they are where that is not possible.

    >>> as_kind(["1", "2"], "int"), as_kind(["yes"], "bool")
    ([1, 2], ['yes'])
    """
    try:
        if kind == "int":
            return [int(state) if len(state) < 100 else state for state in states]
        if kind == "bool":
            return [_BOOLS[state] for state in states]
    except (ValueError, KeyError):
        pass
    return states
