"""Binned: a variable that was a number and is cut into intervals; it keeps the cuts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Real
from typing import Any

from bbn.core.errors import ModelError, shown
from bbn.core.keywords import keywords_checked
from bbn.model.variable import State, Variable, checked_name, checked_states, plain, state_codes


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

    @keywords_checked
    def __init__(self, name: str, edges: Iterable[float], labels: Sequence[State] | None = None) -> None:
        name = checked_name(name)
        points = _checked_edges(name, edges)
        states = checked_states(name, interval_labels(points) if labels is None else labels)
        if len(states) != len(points) + 1:
            raise ModelError(
                f"variable {name!r} has {len(states)} labels; expected {len(points) + 1}, one for each interval "
                f"that {len(points)} edges make"
            )
        kind = type(states[0])
        self._set(
            name=name, states=states, _kind=kind, _codes=state_codes(kind.__name__, states), edges=points
        )

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
        if isinstance(state, bool) or not isinstance(state, Real | Decimal):
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
