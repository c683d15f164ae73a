"""Profiles: what one pass over rows finds of a column, whatever kind of table they came in.

A profile holds the distinct values (up to MOST_VALUES), the missing ones, the range of the numbers and the forms that
the text allows. The profiles of two runs of rows add up to that of both, so a pass may go over a table in memory, over
batches of files, or over the partitions of a cluster, and finds the same.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.core.threads import worker_map
from bbn.data.column_levels import Levels, NestedValuesError, text_levels
from bbn.data.columns import Decimal, RawTable, read_table
from bbn.data.error_places import located
from bbn.data.text_values import ANY, NUMBERS, form_of, forms_of, is_missing_word, number_of
from bbn.model.evidence import is_missing
from bbn.model.variable import plain

MOST_VALUES = 65_535
"""The most distinct values of a column that are kept: as many as a variable may have states."""
SLICE = 1 << 17
"""Rows of a column of numbers that are looked at first: where they hold more values than are kept, the rest may too."""
PARALLEL = 1 << 20
"""Cells from which on several threads look at the columns of a table."""

Tokens = set[tuple[type, Any]]
Values = dict[tuple[type, Any], Any]


class Profile(NamedTuple):
    """What was found of one column."""

    n_rows: int = 0
    n_missing: int = 0
    """Rows without a value: None, NaN, NA, an empty field, or what `missing=` names."""
    values: Values | None = None
    """The distinct values by type and value, in order of appearance; None where there are more than are kept."""
    forms: int = ANY
    """The forms that all values allow; see `text_values`."""
    declared: bool = False
    """Whether the values are a categorical's, in declared order, used or not."""
    text: bool = False
    """Whether some value is text."""
    n_words: int = 0
    """Rows that hold a word that means missing among numbers."""
    n_infinite: int = 0
    low: float = math.inf
    high: float = -math.inf
    whole: bool = True
    """Whether all numbers are whole."""
    odd: tuple[Any, ...] = ()
    """The first values that are not numbers."""
    n_numbers: int = 0
    """Distinct values that are numbers, in the batch that had most."""
    kinds: tuple[str, ...] = ()
    """The types of the values."""
    decimal: str = ""
    """What is known of the decimal mark of text."""

    @property
    def n_distinct(self) -> int:
        """The number of distinct values; MOST_VALUES + 1 where there are more than are kept."""
        return MOST_VALUES + 1 if self.values is None else len(self.values)

    def merge(self, other: Profile) -> Profile:
        """The profile of two runs of rows, the other after this one."""
        values: Values | None = None
        if self.values is not None and other.values is not None:
            values = {**self.values, **other.values}
            values = values if len(values) <= MOST_VALUES else None
        return Profile(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            values,
            self.forms & other.forms,
            self.declared and other.declared,
            self.text or other.text,
            self.n_words + other.n_words,
            self.n_infinite + other.n_infinite,
            min(self.low, other.low),
            max(self.high, other.high),
            self.whole and other.whole,
            (*self.odd, *other.odd)[:3],
            max(self.n_numbers, other.n_numbers),
            tuple(dict.fromkeys((*self.kinds, *other.kinds))),
            self.decimal or other.decimal,
        )


class Profiles(NamedTuple):
    """The profiles of all columns of some rows."""

    n_rows: int
    columns: dict[str, Profile]

    def merge(self, other: Profiles) -> Profiles:
        """The profiles of two runs of rows, the other after this one."""
        return Profiles(
            self.n_rows + other.n_rows,
            {name: profile.merge(other.columns[name]) for name, profile in self.columns.items()},
        )


class Profiling(NamedTuple):
    """The task of profiling: a function of a batch, that can be sent to where the batch is.

    >>> both = Profiling(("A",))({"A": ["1", "NA"]}).merge(Profiling(("A",))({"A": ["2", None]}))
    >>> both.n_rows, both.columns["A"].n_distinct, both.columns["A"].n_missing, both.columns["A"].n_words
    (4, 3, 1, 1)
    """

    names: tuple[str, ...]
    tokens: frozenset[tuple[type, Any]] = frozenset()
    n_jobs: int | None = 1
    decimal: Decimal = None

    def __call__(self, data: Any, where: str = "", first_row: int = 0) -> Profiles:
        """The profiles of one batch; `where` it is from and the number of its first row are for messages."""
        with located(where, first_row):
            table = read_table(data).told(self.decimal)
            small = table.n_rows * len(self.names) < PARALLEL
            with worker_map(1 if small else self.n_jobs, max(1, len(self.names))) as spread:
                found = spread(lambda name: self._profile(table, name), self.names)
                return Profiles(table.n_rows, dict(zip(self.names, found, strict=True)))

    def _profile(self, table: RawTable, name: str) -> Profile:
        if name not in table.names:
            raise DataError(f"the data have no column {name!r}")
        numbers = _number_array(table.column(name)) if not self.tokens else None
        if numbers is not None:
            return _of_numbers(numbers)
        return _of_values(readable_levels(table, name), set(self.tokens))._replace(
            decimal=table.decimal_of(name)
        )


def readable_levels(table: RawTable, name: str) -> Levels:
    """The levels of a column; values that cannot be compared, such as lists, as their text."""
    try:
        return table.levels(name)
    except NestedValuesError:
        return text_levels(table.column(name))


def _number_array(column: Any) -> NDArray[Any] | None:
    """The column as a numpy array of integers or floats, NaN where missing, if it is one underneath."""
    if np.ma.isMaskedArray(column):
        return None
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        array = column if isinstance(column, np.ndarray) else column.to_numpy()
        return array if dtype.kind in "iuf" and array.ndim == 1 else None
    library = type(column).__module__.partition(".")[0]
    if library == "pandas" and getattr(dtype, "kind", "O") in "iuf":
        kind = getattr(dtype, "kind", "f")
        whole = kind in "iu" and not column.isna().any()
        own: Any = {"i": np.int64, "u": np.uint64}[kind] if whole else np.float64
        return np.asarray(column.to_numpy(dtype=own, na_value=0 if whole else np.nan))
    if library in ("narwhals", "polars", "pyarrow"):
        import narwhals as nw

        series: Any = nw.from_native(column, series_only=True, pass_through=True)
        known = hasattr(series, "dtype") and series.dtype not in (nw.Int128, nw.UInt128)
        if known and series.dtype.is_numeric() and not series.dtype.is_decimal():
            whole = series.dtype.is_integer() and not series.null_count()
            if series.dtype.is_integer():  # Arrow casts none past 2⁵³
                array = np.asarray(series.to_numpy())
                return array if whole else array.astype(np.float64)
            return np.asarray(series.cast(nw.Float64).to_numpy())
    return None


def _of_numbers(array: NDArray[Any]) -> Profile:
    """The profile of an array of integers or floats."""
    import pandas as pd

    n_missing = n_infinite = 0
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            n_missing = int(np.isnan(array).sum())
            n_infinite = int(len(array) - n_missing - finite.sum())
            array = array[finite]
    n_rows = len(array) + n_missing + n_infinite
    if not len(array):
        return Profile(n_rows, n_missing, {}, n_infinite=n_infinite)
    low, high = array.min().item(), array.max().item()  # as Python's own, which do not overflow
    whole = array.dtype.kind in "iu" or bool((np.floor(array[:SLICE]) == array[:SLICE]).all())
    if whole and array.dtype.kind == "f":
        whole = bool((np.floor(array) == array).all()) and max(abs(float(low)), abs(float(high))) < 2**53
    if whole and high - low < MOST_VALUES and max(abs(float(low)), abs(float(high))) < 2**53:
        first = int(low)
        counts = np.bincount(array.astype(np.int64) - first)
        values: Any = (np.flatnonzero(counts) + first).tolist()
    else:
        unique = pd.unique(array[:SLICE])
        if len(unique) <= MOST_VALUES and len(array) > SLICE:
            unique = pd.unique(array)
        values = None if len(unique) > MOST_VALUES else unique.tolist()
    if values is not None:
        kept = [number_of(value) for value in values] if whole else values
        values = {(type(value), value): value for value in kept}
    kinds = ("int" if whole else "float",)
    return Profile(
        n_rows,
        n_missing,
        values,
        NUMBERS,
        n_infinite=n_infinite,
        low=float(low),
        high=float(high),
        whole=whole,
        n_numbers=0 if values is None else len(values),
        kinds=kinds,
    )


def _of_values(levels: Levels, tokens: Tokens) -> Profile:
    """The profile of a column that is known by its distinct values."""
    n_rows = len(levels.codes)
    codes = levels.codes
    rows = np.bincount(codes[codes >= 0], minlength=len(levels.values)).tolist()
    n_missing = n_rows - sum(rows)
    values: Values = {}
    there: list[Any] = []
    n_words = 0
    for value, count in zip(levels.values, rows, strict=True):
        if not count and not levels.declared:
            continue
        own = plain(value)
        if is_missing(value) or (type(own), own) in tokens:
            n_missing += count
        else:
            if is_missing_word(own):
                n_words += count
            values[type(own), own] = own
            there.append(own)
    forms = forms_of(there)
    low, high, whole, n_infinite = math.inf, -math.inf, True, 0
    numbers = []
    if forms & NUMBERS:
        numbers = [number for value in there if (number := number_of(value)) is not None]
        finite = [number for number in numbers if math.isfinite(number)]
        if len(finite) < len(numbers):
            infinite = [number_of(value) in (math.inf, -math.inf) for value in levels.values]
            n_infinite = sum(count for count, is_infinite in zip(rows, infinite, strict=True) if is_infinite)
        low, high = min(finite, default=math.inf), max(finite, default=-math.inf)
        whole = all(isinstance(number, int) for number in finite)
    odd: list[Any] = []
    n_numbers = len(numbers)
    if not forms:
        plainly = [value for value in there if form_of(value) & NUMBERS]
        n_numbers = len(plainly)
        odd = [v for v in there if not form_of(v) & NUMBERS and not is_missing_word(v)][:3] if plainly else []
    return Profile(
        n_rows,
        n_missing,
        values if len(values) <= MOST_VALUES else None,
        forms,
        levels.declared,
        any(isinstance(value, str) for value in there),
        n_words,
        n_infinite,
        float(low),
        float(high),
        whole,
        tuple(odd),
        n_numbers,
        tuple(sorted({type(value).__name__ for value in there})),
    )
