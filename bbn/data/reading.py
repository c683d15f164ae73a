"""How data are to be read: the options that every learner takes, as one value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bbn.data.source import DataSource, as_source
from bbn.model.variable import State


class Reading(NamedTuple):
    """How the columns of a table are read.

    Attributes
    ----------
    states
        Column to its states, in the order they are to have; None or absent: those that occur.
    weights
        One weight per row, or the name of the column that holds them.
    missing
        A value, or several, that mean missing besides None and NaN.
    unseen
        What to do with a value that is not one of a column's states: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; None: those that hold fractions, or too many numbers to be states.
    decimal
        The decimal mark of text that is numbers, or column to mark.
    """

    states: Mapping[str, Sequence[State]] | None = None
    weights: Any = None
    missing: Any = ()
    unseen: str = "raise"
    continuous: str | Iterable[str] | None = ()
    decimal: str | Mapping[str, str] | None = None

    def source(self, data: Any, **wanted: Any) -> DataSource:
        """`data` as a source; `wanted` are the other parameters of `as_source`."""
        return as_source(data, **self._asdict(), **wanted)
