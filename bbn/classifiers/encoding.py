"""Columns of attributes as codes: what a classifier learns of each column when it is fitted, applied ever after.

Each column is read by the rules of `bbn.describe`, as `bbn.learn` reads it: its values are states, or it is numbers, or
it tells nothing and is left out. Numbers are cut as `bbn.learn` cuts them to predict a target, towards the class
(Fayyad and Irani 1993), or at their quantiles. A missing value has the code `card`, and so has a value that was not
there when fitting: both say nothing about the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data.column_codes import code_column
from bbn.data.column_levels import Levels, readable_levels
from bbn.data.column_rules import NUMBER, OUT, STATES, are_states
from bbn.data.column_rules import Column as Described
from bbn.data.column_states import holds_fractions, meant
from bbn.data.columns import RawTable
from bbn.data.describe import describe
from bbn.data.discretize import mdlp_cuts, quantile_cuts
from bbn.data.kinds import ColumnDict
from bbn.data.number_columns import read_numbers
from bbn.data.text_values import decimal_mark, number_form
from bbn.kernels.watch import check
from bbn.model.binned import Binned
from bbn.model.evidence import is_missing
from bbn.model.variable import State, Variable, plain

Codes = NDArray[Any]
"""uint8 or uint16."""

NARROW = 255
"""The most states whose codes, with the one that means missing, fit a byte."""
EXACT = 2**53
"""Whole numbers below this are as exact as floats as they are as integers."""
QUANTILES = 10
"""Into how many intervals numbers are cut where neither their number nor a class is told."""
BLOCK = 1 << 16
"""The rows of a matrix of numbers that are made ready for a kernel at a time."""


class Classes(NamedTuple):
    """What numbers are cut towards: the class of each example, −1 where it is missing, and the examples' weights."""

    labels: NDArray[np.int64] | None = None
    weights: Array | None = None


NO_CLASSES = Classes()


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
        if self.empty:  # a column that says nothing, so no row misses it
            return np.zeros(len(column), dtype=np.uint8)
        return code_column(self.variable, readable_levels(column), set(), "missing")

    def grown(self, column: Any) -> Discrete:
        """The column with the values of more rows beside its own states."""
        other = _discrete(self.variable.name, readable_levels(column))
        if self.empty or other.empty:
            return other if self.empty else self
        states = list(dict.fromkeys((*self.variable.states, *other.variable.states)))
        if not self.declared:
            states.sort()
        return Discrete(Variable(self.variable.name, states), self.declared)


@dataclass(frozen=True)
class Cut:
    """A column of numbers, cut into intervals [e_k−1, e_k), named as `bbn.discretize` names them."""

    variable: Binned
    decimal: str = ""
    """The decimal mark of the text that it was learned from, which that of later rows is read by."""

    @property
    def edges(self) -> Array:
        """Where it is cut."""
        return np.array(self.variable.edges)

    def codes(self, column: Any) -> Codes:
        """The code of the interval of each row's number."""
        name = self.variable.name
        try:
            numbers = as_numbers(column)
            numbers = read_numbers(name, column, set(), "raise", self.decimal) if numbers is None else numbers
        except DataError as error:
            raise DataError(
                f"column {name!r} held numbers when the classifier was fitted, not now: {error}"
            ) from None
        codes = np.searchsorted(self.edges, numbers, side="right").astype(_dtype(self.variable.card))
        codes[np.isnan(numbers)] = self.variable.card
        return codes

    def grown(self, column: Any) -> Cut:
        """The cuts stay as they are."""
        return self


@dataclass(frozen=True)
class LeftOut:
    """A column that is left out: one state that every row has, whatever it holds."""

    variable: Variable

    def codes(self, column: Any) -> Codes:
        """Its only state."""
        return np.zeros(len(column), dtype=np.uint8)

    def grown(self, column: Any) -> LeftOut:
        """It stays left out."""
        return self


Column = Discrete | Cut | LeftOut


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
    def learn(
        cls,
        table: Any,
        names: Sequence[str],
        classes: Classes = NO_CLASSES,
        bins: int | None = None,
        kinds: Mapping[str, str] | None = None,
        whole: bool = True,
    ) -> Encoder:
        """Look at every column.

        Parameters
        ----------
        table
            An array, or a DataFrame of any library.
        names
            The names of its columns.
        classes
            What numbers are cut towards.
        bins
            How many intervals numbers are cut into at their quantiles; None cuts them towards the class.
        kinds
            Column to its kind, as in `bbn.describe`.
        whole
            Whether these are all rows: of some alone it is not known that words are identifiers.
        """
        found = None if kinds else _whole_numbers(table)
        if found is not None:
            return cls([Discrete(Variable(n, states)) for n, states in zip(names, found, strict=True)])
        told = kinds or {}
        columns = zip(names, split(table), strict=True)
        return cls([_learn(_described(n, c, told.get(n)), c, classes, bins, whole) for n, c in columns])

    def grown(self, table: Any) -> Encoder:
        """These columns with the states of more rows beside their own; cuts stay as they are."""
        return Encoder([own.grown(column) for own, column in zip(self.columns, split(table), strict=True)])

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

    def _ranges(self) -> tuple[Any, ...] | None:
        """Look-up tables for `code_matrix`, if every column is of whole numbers in a small range."""
        low, look_ups = [], []
        for column in self.columns:
            states = column.variable.states
            if not isinstance(column, Discrete) or type(states[0]) is not int or len(states) > NARROW:
                return None
            first, last = int(min(states)), int(max(states))
            if last - first >= 1 << 16 or max(abs(first), abs(last)) >= EXACT:
                return None
            look_up = np.full(last - first + 1, len(states), dtype=np.uint8)
            look_up[np.array(states) - first] = np.arange(len(states))
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
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in array])
    except OverflowError:  # a whole number that no float reaches
        return None


def _described(name: str, column: Any, kind: str | None) -> Described:
    """What `bbn.describe` says of a column by itself: it holds no weights of the rows."""
    if kind is None and holds_fractions(column):  # numbers, as a look at all different values would find too
        return Described(name, "number", 0, None, NUMBER, "numbers with fractions")
    raw = RawTable((name,), len(column), lambda _: column, ColumnDict())
    return describe(raw, None if kind is None else {name: kind})[name]


def _learn(line: Described, column: Any, classes: Classes, bins: int | None, whole: bool) -> Column:
    name, numbers = line.name, as_numbers(column)
    if numbers is not None and np.isinf(numbers).any():
        raise ValueError(f"column {name!r}: Input X contains infinity or a value too large.")
    if line.use == NUMBER or (line.kind == "constant" and numbers is not None and (numbers % 1 > 0).any()):
        mark = ""
        if numbers is None:
            mark = _decimal_mark(name, column)
            numbers = read_numbers(name, column, set(), "raise", mark)
        return Cut(Binned(name, _cuts(name, numbers, classes, bins).tolist()), mark)
    if line.use == STATES and line.states is not None:
        if line.kind != "category":
            return Discrete(Variable(name, line.states))
        return _discrete(name, readable_levels(column))
    if line.use == OUT and (line.kind == "constant" or (line.kind == "identifier" and not whole)):
        return _discrete(name, readable_levels(column))
    return LeftOut(Variable(name, ["left out"]))


def _decimal_mark(name: str, column: Any) -> str:
    """The decimal mark of a column of text, where some of it tells."""
    texts = [value for value in readable_levels(column).values if isinstance(value, str)]
    return decimal_mark(number_form(name, texts)) if any("," in text or "." in text for text in texts) else ""


def _discrete(name: str, levels: Levels) -> Discrete:
    """A column whose states are its values."""
    values = [value for value in levels.values if not is_missing(value)]
    states = [_state(value) for value in (values if levels.declared else meant(name, values))]
    if not states:
        return Discrete(Variable(name, ["nothing seen"]), empty=True)
    kinds = {type(state) for state in states}
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            f"column {name!r} holds values of type {shown}; expected only text, only numbers or only bools"
        )
    return Discrete(Variable(name, states if levels.declared else sorted(set(states))), levels.declared)


def _cuts(name: str, numbers: Array, classes: Classes, bins: int | None) -> Array:
    """Where numbers are cut: towards the class, or at the weighted quantiles."""
    there = ~np.isnan(numbers)
    weights = classes.weights
    if bins is not None or classes.labels is None:
        return quantile_cuts(numbers[there], bins or QUANTILES, None if weights is None else weights[there])
    there &= classes.labels >= 0
    if weights is not None:  # those of a boosting round add up to 1, which is no single example
        weights = weights[there] * max(1.0, len(numbers) / weights.sum())
    return mdlp_cuts(numbers[there], classes.labels[there], weights)


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
    rows = len(table)
    return [values.tolist() for values in found] if all(are_states(len(own), rows) for own in found) else None


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
    if type(value).__name__ == "Interval":
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_categorical(column: Any) -> bool:
    return type(getattr(column, "dtype", None)).__name__ in ("CategoricalDtype", "Categorical", "Enum")


def _dtype(card: int) -> type[np.uint8] | type[np.uint16]:
    return np.uint8 if card <= NARROW else np.uint16
