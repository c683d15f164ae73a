"""Columns of attributes as codes: what a classifier learns of each column when it is fitted, applied ever after.

A column of text, booleans or a pandas categorical is a discrete variable, each value a state. So is a column of whole
numbers with at most `MANY_NUMBERS` different ones. Any other column of numbers is cut at its quantiles, weighted by
the examples' weights. A missing value has the code `card`, and so has a value that was not there when fitting: both
say nothing about the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data.column_levels import Levels, column_levels
from bbn.data.column_states import MANY_NUMBERS
from bbn.data.discretize import Discretizer, short_between
from bbn.kernels.watch import check
from bbn.model.evidence import is_missing
from bbn.model.variable import State, Variable, plain

Codes = NDArray[Any]
"""uint8 or uint16."""

NARROW = 255
"""The most states whose codes, with the one that means missing, fit a byte."""
EXACT = 2**53
"""Whole numbers below this are as exact as floats as they are as integers."""
BLOCK = 1 << 16
"""The rows of a matrix of numbers that are made ready for a kernel at a time."""


@dataclass(frozen=True)
class Discrete:
    """A column whose values are states."""

    variable: Variable
    declared: bool = False
    """Whether the order of the states was given, by a pandas categorical."""
    empty: bool = False
    """Whether the column held no value at all."""

    def codes(self, column: Any) -> Codes:
        """The code of each row's value."""
        levels = column_levels(column)
        card = self.variable.card
        look_up = np.full(
            len(levels.values) + 1, card, dtype=_dtype(card)
        )  # its last entry is where −1 points
        for i, value in enumerate(levels.values):
            found = self.variable.find(_state(value))
            look_up[i] = card if found is None else found
        return look_up.take(levels.codes, mode="wrap")

    def grown(self, other: Discrete) -> Discrete:
        """The column with the states of another beside its own."""
        if self.empty or other.empty:
            return other if self.empty else self
        states = list(dict.fromkeys((*self.variable.states, *other.variable.states)))
        if not self.declared:
            states.sort()
        return Discrete(Variable(self.variable.name, states), self.declared)


@dataclass(frozen=True)
class Cut:
    """A column of numbers, cut into intervals [e_k−1, e_k), named as `bbn.discretize` names them."""

    variable: Variable
    edges: Array = field(compare=False)

    def codes(self, column: Any) -> Codes:
        """The code of the interval of each row's number."""
        numbers = as_numbers(column)
        if numbers is None:
            raise DataError(
                f"column {self.variable.name!r} held numbers when the classifier was fitted, not now"
            )
        codes = np.searchsorted(self.edges, numbers, side="right").astype(_dtype(self.variable.card))
        codes[np.isnan(numbers)] = self.variable.card
        return codes

    def grown(self, other: Discrete | Cut) -> Cut:
        """The cuts stay as they are."""
        return self


Column = Discrete | Cut


class Encoder:
    """The columns of a table of attributes.

    >>> encoder = Encoder.learn(np.array([["sunny", 1], ["rain", 2], ["sunny", 7]], dtype=object), ["Sky", "N"])
    >>> encoder.variables
    (Variable('Sky', ['rain', 'sunny']), Variable('N', [1, 2, 7]))
    >>> [column.tolist() for column in encoder.codes(np.array([["sunny", 3], [None, 7]], dtype=object))]
    [[1, 2], [3, 2]]
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """One variable per column."""
        return tuple(column.variable for column in self.columns)

    @classmethod
    def learn(cls, table: Any, names: Sequence[str], weights: Array | None = None, bins: int = 10) -> Encoder:
        """Look at every column; `weights` tell where the quantiles are."""
        whole = _whole_numbers(table)
        if whole is not None:
            return cls([Discrete(Variable(n, states)) for n, states in zip(names, whole, strict=True)])
        columns = zip(names, split(table), strict=True)
        return cls([_learn(name, column, weights, bins) for name, column in columns])

    def codes(self, table: Any) -> list[Codes]:
        """The codes of each column of a table with the same columns."""
        if not self.columns:
            return []
        ranges = self._ranges() if isinstance(table, np.ndarray) and table.dtype.kind in "iuf" else None
        if ranges is not None:
            codes = np.empty(table.shape[::-1], dtype=np.uint8)
            for rows, block in _blocks(table):
                codes[:, rows] = kernels.classify.code_matrix(block, *ranges)
            return list(codes)
        return [own.codes(column) for own, column in zip(self.columns, split(table), strict=True)]

    def grown(self, other: Encoder) -> Encoder:
        """These columns with the states of others beside their own; cuts stay as they are."""
        grown: list[Column] = []
        for own, new in zip(self.columns, other.columns, strict=True):
            if isinstance(own, Discrete) != isinstance(new, Discrete):
                new = own  # too few or too many different numbers in one batch to tell: as in the first
            grown.append(own.grown(new))  # type: ignore[arg-type]  # alike, as seen above
        return Encoder(grown)

    def _ranges(self) -> tuple[Any, ...] | None:
        """Look-up tables for `code_matrix`, if every column is of whole numbers in a small range."""
        low, look_ups = [], []
        for column in self.columns:
            states = column.variable.states
            if not isinstance(column, Discrete) or type(states[0]) is not int or len(states) > NARROW:
                return None
            first, last = min(states), max(states)
            if int(last) - int(first) >= 1 << 16 or max(abs(first), abs(last)) >= EXACT:
                return None
            look_up = np.full(int(last) - int(first) + 1, len(states), dtype=np.uint8)
            look_up[np.array(states) - int(first)] = np.arange(len(states))
            low.append(first)
            look_ups.append(look_up)
        ptr = np.cumsum([0, *map(len, look_ups)], dtype=np.int64)
        cards = np.array([v.card for v in self.variables], dtype=np.uint8)
        return np.array(low, dtype=np.int64), ptr, np.concatenate(look_ups), cards


def split(table: Any) -> Iterable[Any]:
    """The columns of an array or a DataFrame of any library."""
    if isinstance(table, np.ndarray):
        return (table[:, j] for j in range(table.shape[1]))
    if type(table).__module__.partition(".")[0] == "pandas":
        return (table.iloc[:, j] for j in range(table.shape[1]))
    import narwhals as nw

    frame: Any = nw.from_native(table, eager_only=True)
    return (frame[name].to_native() for name in frame.columns)


def as_numbers(column: Any) -> Array | None:
    """A column of numbers as floats, missing values NaN; None if it holds anything else."""
    array = column.to_numpy() if hasattr(column, "to_numpy") else column
    if array.dtype.kind in "iuf":
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind != "O" or any(not _is_number(v) and not is_missing(v) for v in array):
        return None
    return np.array([np.nan if is_missing(value) else float(value) for value in array])


def _learn(name: str, column: Any, weights: Array | None, bins: int) -> Column:
    if not _is_categorical(column):
        numbers = as_numbers(column)
        if numbers is not None:
            found = numbers[~np.isnan(numbers)]
            if np.isinf(found).any():
                raise ValueError(f"column {name!r}: Input X contains infinity or a value too large.")
            if len(found) and not (np.rint(found) == found).all():
                return _cut(name, numbers, weights, bins)
            levels = column_levels(numbers)
            if len(levels.values) > MANY_NUMBERS:
                return _cut(name, numbers, weights, bins)
            return _discrete(name, levels)
    return _discrete(name, column_levels(column))


def _discrete(name: str, levels: Levels) -> Discrete:
    """A column whose states are its values."""
    states = [_state(value) for value in levels.values if not is_missing(value)]
    if not states:
        return Discrete(Variable(name, ["nothing seen"]), empty=True)
    kinds = {type(state) for state in states}
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            f"column {name!r} holds values of type {shown}; expected only text, only numbers or only bools"
        )
    return Discrete(Variable(name, states if levels.declared else sorted(set(states))), levels.declared)


def _cut(name: str, numbers: Array, weights: Array | None, bins: int) -> Cut:
    """Cut at the weighted quantiles 1/bins, 2/bins, …, each halfway to the next number there is."""
    there = ~np.isnan(numbers)
    if weights is None:
        values, shares = np.unique(numbers[there], return_counts=True)
    else:
        values, inverse = np.unique(numbers[there], return_inverse=True)
        shares = np.bincount(inverse, weights[there], minlength=len(values))
    below = np.cumsum(shares)
    wanted = below[-1] * np.arange(1, bins) / bins
    where = np.unique(np.searchsorted(below, wanted * (1 - 1e-12), side="left"))
    where = where[where < len(values) - 1]
    edges = np.array([short_between(values[i], values[i + 1]) for i in where])
    return Cut(Variable(name, Discretizer({name: edges}).states(name)), edges)


def _whole_numbers(table: Any) -> list[list[State]] | None:
    """The numbers in each column of a matrix of few whole numbers, without missing values; None for any other."""
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "iuf" or not table.size:
        return None
    first, last = table.min(axis=0), table.max(axis=0)
    if not ((first > -EXACT) & (last < EXACT)).all():  # which no NaN is
        return None
    low = np.floor(first).astype(np.int64)
    span = np.floor(last).astype(np.int64) - low + 1
    if (span > 1 << 16).any():
        return None
    ptr = np.cumsum([0, *span], dtype=np.int64)
    flags = np.zeros(ptr[-1], dtype=np.uint8)
    for _, block in _blocks(table):
        seen = kernels.classify.present(block, low, ptr)
        if seen is None:
            return None
        flags |= seen
    found = [
        np.flatnonzero(flags[start:stop]) + low[j] for j, (start, stop) in enumerate(pairwise(ptr.tolist()))
    ]
    return None if max(map(len, found)) > MANY_NUMBERS else [values.tolist() for values in found]


def _blocks(table: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
    """The rows of a matrix as the kernels take them, BLOCK at a time: no copy of the whole, and Ctrl-C is heard."""
    kind = np.float64 if table.dtype.kind == "f" else np.int64
    for start in range(0, len(table), BLOCK):
        check()
        rows = slice(start, min(start + BLOCK, len(table)))
        yield rows, np.ascontiguousarray(table[rows], dtype=kind)


def _state(value: Any) -> Any:
    """A value as a state; whole numbers that were stored as floats are integers."""
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_categorical(column: Any) -> bool:
    return type(getattr(column, "dtype", None)).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def _dtype(card: int) -> type[np.uint8] | type[np.uint16]:
    return np.uint8 if card <= NARROW else np.uint16
