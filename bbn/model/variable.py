"""Variable: a name and its ordered states.

States are strings, integers or booleans, all of one kind within a variable, so that `True` is never taken
for `1` nor `"1"` for `1`. Inside the library a state is its code: its position in that order. A `Binned` variable
has intervals as states and takes raw numbers too; a `Continuous` one has no states: its values are real numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from numbers import Real
from typing import Any

from bbn.core.errors import DataError, EvidenceError, ModelError, nearest, shown
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked

State = str | int | bool


class Variable(Frozen):
    """A discrete variable.

    Parameters
    ----------
    name
        Any non-empty string.
    states
        At least one state, each a str, an int or a bool, all of one kind, no two the same.

    >>> storm = Variable("Storm", ["yes", "no"])
    >>> storm.states, storm.card, storm.code("no")
    (('yes', 'no'), 2, 1)
    """

    __slots__ = ("_codes", "_kind", "name", "states")

    name: str
    states: tuple[State, ...]
    _kind: type[Any]
    _codes: dict[State, int]

    @keywords_checked
    def __init__(self, name: str, states: Sequence[State]) -> None:
        name = checked_name(name)
        states = checked_states(name, states)
        kind = type(states[0])
        self._set(name=name, states=states, _kind=kind, _codes=state_codes(kind.__name__, states))

    @property
    def card(self) -> int:
        """The number of states."""
        return len(self.states)

    def find(self, state: object) -> int | None:
        """The code of `state`, or None if it is not one of the states.

        Parameters
        ----------
        state : object
            What may be a state; numpy's scalars count as Python's.

        Returns
        -------
        int or None
            Its place among the states.

        See Also
        --------
        code : The same with an error.
        """
        if type(state) is not self._kind:
            state = plain(state)
            if type(state) is not self._kind:
                return None
        return self._codes.get(state)  # type: ignore[call-overload, no-any-return]  # its kind was checked

    def code(self, state: object) -> int:
        """The code of `state`; EvidenceError with the nearest state if there is none.

        Parameters
        ----------
        state : object
            One of the states.

        Returns
        -------
        int
            Its place among the states.

        Raises
        ------
        EvidenceError
            It is not one of them; the error names the nearest.

        See Also
        --------
        find : The same without an error.
        """
        code = self.find(state)
        if code is None:
            raise EvidenceError(self.unknown(state))
        return code

    def unknown(self, state: object) -> str:
        """What to tell the user about a state that is not one of these.

        Parameters
        ----------
        state : object
            What was taken for a state.

        Returns
        -------
        str
            The message, with the nearest state.
        """
        text = state if isinstance(state, str) else shown(state)
        if isinstance(state, str | int | bool | float) and text in map(str, self.states):
            right = next(own for own in self.states if str(own) == text)
            hint = f"; its states are {self._kind.__name__}s: write {right!r}"
        else:
            hint = nearest(state, self.states)
        return f"variable {self.name!r} has no state {shown(state)}{hint}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Variable):
            return NotImplemented
        return self.name == other.name and self._kind is other._kind and self.states == other.states

    def __hash__(self) -> int:
        return hash((self.name, self._kind.__name__, self.states))

    def __repr__(self) -> str:
        return f"Variable({self.name!r}, {list(self.states)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Variable, (self.name, self.states)


class Continuous(Variable):
    """A variable whose values are real numbers; it has no states.

    Parameters
    ----------
    name : str
        Any non-empty string.

    Examples
    --------
    >>> height = Continuous("Height")
    >>> height.name, height.states, height.card
    ('Height', (), 0)
    """

    __slots__ = ()

    @keywords_checked
    def __init__(self, name: str) -> None:
        self._set(name=checked_name(name), states=(), _kind=float, _codes={})

    def find(self, state: object) -> None:
        """None: a continuous variable has no states.

        Parameters
        ----------
        state : object
            Anything.

        Returns
        -------
        None
            Always.
        """
        return

    def number(self, value: object) -> float:
        """`value` as a float; EvidenceError if it is not a finite number.

        Parameters
        ----------
        value : object
            A number.

        Returns
        -------
        float
            The number.

        Raises
        ------
        EvidenceError
            It is not a finite number.
        """
        value = plain(value)
        if isinstance(value, bool) or not isinstance(value, Real | Decimal):
            raise EvidenceError(
                f"variable {self.name!r} is continuous: expected a number, found {shown(value)} "
                f"({type(value).__name__})"
            )
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise EvidenceError(
                f"variable {self.name!r} is continuous: expected a finite number, found {shown(value)}"
            )
        return number

    def unknown(self, state: object) -> str:
        """What to tell the user who named a state of it.

        Parameters
        ----------
        state : object
            What was taken for a state.

        Returns
        -------
        str
            The message.
        """
        return (
            f"variable {self.name!r} is continuous and has no states; expected a number, found {shown(state)}"
        )

    def __repr__(self) -> str:
        return f"Continuous({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Continuous, (self.name,)


def check_states(name: str, given: Sequence[State], known: Sequence[State]) -> None:
    """DataError if states= gives a variable other states than it is known to have; their order may differ."""
    if set(map(repr, map(plain, given))) != set(map(repr, map(plain, known))):
        raise DataError(f"states= gives {name!r} the states {list(given)}, but it has {list(known)}")


def plain(state: Any) -> Any:
    """`state` with numpy's scalars and subclasses of str, int and bool turned into Python's own.

    >>> import numpy as np
    >>> plain(np.int64(3)), plain(np.bool_(True)), plain(np.str_("a"))
    (3, True, 'a')
    """
    kind = type(state)
    if kind is str or kind is int or kind is bool:
        return state
    if isinstance(state, str):
        return str.__str__(state)
    if isinstance(state, int):
        return int(state)
    if kind.__module__ == "numpy" and hasattr(state, "item") and getattr(state, "shape", None) == ():
        return state.item()
    return state


def checked_name(name: object, what: str = "a variable's name") -> str:
    """`name` as a plain string, or ModelError if it is not a non-empty string."""
    if not isinstance(name, str):
        raise ModelError(f"{what} must be a string, found {name!r} ({type(name).__name__})")
    if not name:
        raise ModelError(f"{what} must not be empty")
    return str.__str__(name)


def checked_states(name: str, states: Iterable[object]) -> tuple[State, ...]:
    """The states as a tuple, all of one kind and none twice; ModelError if they are not."""
    if isinstance(states, str | bytes | bytearray) or not isinstance(states, Iterable):
        raise ModelError(f"variable {name!r}: states must be a list of states, found {states!r}")
    if isinstance(states, set | frozenset):
        raise ModelError(
            f"variable {name!r}: a set has no order; list its states {sorted(states, key=str)!r}"
        )
    checked = tuple(states) if type(states) is not tuple else states
    if not checked:
        raise ModelError(f"variable {name!r} has no states; at least one is needed")
    kinds = set(map(type, checked))
    if len(kinds) == 1 and kinds <= {str, int, bool} and len(set(checked)) == len(checked):
        return checked  # type: ignore[return-value]  # all of one kind, by far the most frequent case
    checked = tuple(map(plain, checked))
    kind = type(checked[0])
    for state in checked:
        if not isinstance(state, str | int | bool):
            raise ModelError(
                f"variable {name!r}: state {state!r} is a {type(state).__name__}; expected str, int or bool"
            )
        if type(state) is not kind:
            twin = next((other for other in checked if other is not state and str(other) == str(state)), None)
            clash = f" (and {twin!r} and {state!r} read alike)" if twin is not None else ""
            raise ModelError(
                f"variable {name!r} mixes {kind.__name__} and {type(state).__name__} states: "
                f"{checked[0]!r} and {state!r}{clash}; use one kind"
            )
    if len(set(checked)) != len(checked):
        twice, _ = Counter(checked).most_common(1)[0]
        raise ModelError(f"variable {name!r} has the state {twice!r} twice")
    return checked  # type: ignore[return-value]  # each was checked to be a State above


@lru_cache(maxsize=4096)
def state_codes(kind: str, states: tuple[State, ...]) -> dict[State, int]:
    """State to code; shared by all variables with the same states (`kind` keeps True apart from 1)."""
    return {state: code for code, state in enumerate(states)}
