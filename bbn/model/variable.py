"""Variable: a name and its ordered states.

States are strings, integers or booleans, all of one kind within a variable, so that `True` is never taken
for `1` nor `"1"` for `1`. Inside the library a state is its code: its position in that order. A `Binned` variable
has intervals as states and takes raw numbers too; a `Continuous` one has no states: its values are real numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from numbers import Real
from typing import Any

from bbn.core.errors import DataError, EvidenceError, ModelError, nearest, shown
from bbn.core.frozen import Frozen

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

    def __init__(self, name: str, states: Sequence[State]) -> None:
        name = checked_name(name)
        states = _checked_states(name, states)
        kind = type(states[0])
        self._set(name=name, states=states, _kind=kind, _codes=_codes(kind.__name__, states))

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


class Binned(Variable):
    """A variable that was a number and is cut into intervals; it keeps the cuts.

    Evidence and data may be raw numbers: each stands for the interval it lies in. A number equal to an edge lies in the
    interval to its right.

    Parameters
    ----------
    name
        Any non-empty string.
    edges
        The cut points, ascending; n of them make n + 1 intervals. The first interval has no lower end, the last no
        upper end. No edges at all make one interval, "any".
    labels
        The names of the intervals, lowest first; "<3550", "3550..4050", ">=4050" unless given.

    Attributes
    ----------
    edges
        The cut points, as floats.

    Raises
    ------
    ModelError
        If the edges are not finite and ascending, or there is not one label for each interval.

    See Also
    --------
    bbn.discretize : finds the edges in data.
    Continuous : a number that is not cut.

    >>> mass = Binned("body_mass_g", edges=[3550, 4050])
    >>> mass.states
    ('<3550', '3550..4050', '>=4050')
    >>> mass.code(3700), mass.code("3550..4050"), mass.code(4050)
    (1, 1, 2)
    """

    __slots__ = ("edges",)

    edges: tuple[float, ...]

    def __init__(self, name: str, edges: Iterable[float], labels: Sequence[State] | None = None) -> None:
        name = checked_name(name)
        points = _checked_edges(name, edges)
        states = _checked_states(name, interval_labels(points) if labels is None else labels)
        if len(states) != len(points) + 1:
            raise ModelError(
                f"variable {name!r} has {len(states)} labels; expected {len(points) + 1}, one for each interval "
                f"that {len(points)} edges make"
            )
        kind = type(states[0])
        self._set(name=name, states=states, _kind=kind, _codes=_codes(kind.__name__, states), edges=points)

    def find(self, state: object) -> int | None:
        """The code of an interval, given by its label or by a number that lies in it.

        Parameters
        ----------
        state : object
            A label, or a number.

        Returns
        -------
        int or None
            The code; None for anything else, and for NaN.
        """
        state = plain(state)
        if isinstance(state, bool) or not isinstance(state, Real):
            return self._codes.get(state) if type(state) is self._kind else None  # type: ignore[call-overload]
        try:
            number = float(state)
        except OverflowError:
            number = math.copysign(math.inf, -1 if state < 0 else 1)
        return None if math.isnan(number) else bisect_right(self.edges, number)

    def unknown(self, state: object) -> str:
        """What to tell the user about a value that is neither a number nor a label.

        Parameters
        ----------
        state : object
            What was given.

        Returns
        -------
        str
            A sentence.
        """
        return (
            f"variable {self.name!r} has no interval {shown(state)}; expected a number, or one of the labels "
            + ", ".join(map(repr, self.states))
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Binned):
            return False if isinstance(other, Variable) else NotImplemented
        return self.name == other.name and self.edges == other.edges and self.states == other.states

    def __hash__(self) -> int:
        return hash((self.name, self.edges, self.states))

    def __repr__(self) -> str:
        edges = [int(edge) if edge.is_integer() and abs(edge) < 1e15 else edge for edge in self.edges]
        if self.states == interval_labels(self.edges):
            return f"Binned({self.name!r}, {edges!r})"
        return f"Binned({self.name!r}, {edges!r}, {list(self.states)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Binned, (self.name, self.edges, self.states)


def interval_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """The labels of the intervals between edges, short where that tells them apart.

    >>> interval_labels([1.5, 3.0])
    ('<1.5', '1.5..3', '>=3')
    """
    if not edges:
        return ("any",)
    texts = [f"{edge:.6g}" for edge in edges]
    if len(set(texts)) < len(texts):
        texts = [repr(float(edge)) for edge in edges]
    between = [f"{low}..{high}" for low, high in pairwise(texts)]
    return (f"<{texts[0]}", *between, f">={texts[-1]}")


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
        if isinstance(value, bool) or not isinstance(value, Real):
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


def _checked_edges(name: str, edges: object) -> tuple[float, ...]:
    if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
        raise ModelError(f"variable {name!r}: edges must be a list of numbers, found {shown(edges)}")
    found = []
    for edge in map(plain, edges):
        try:
            number = math.nan if isinstance(edge, bool) or not isinstance(edge, Real) else float(edge)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ModelError(f"variable {name!r}: an edge must be a finite number, found {shown(edge)}")
        found.append(number + 0.0)
    checked = tuple(found)
    for low, high in pairwise(checked):
        if not low < high:
            raise ModelError(f"variable {name!r}: edges must ascend, found {low!r} before {high!r}")
    return checked


def _checked_states(name: str, states: Iterable[object]) -> tuple[State, ...]:
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
def _codes(kind: str, states: tuple[State, ...]) -> dict[State, int]:
    """State to code; shared by all variables with the same states (`kind` keeps True apart from 1)."""
    return {state: code for code, state in enumerate(states)}
