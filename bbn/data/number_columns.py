"""Columns of numbers: the column of a continuous variable, however it came, as float64 with NaN where missing.

A column that is numbers already is taken as it is. Any other, text from a file among them, is read by its distinct
values; a value that is not a number, or is infinite, is named with its row.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError, UnseenValuesWarning, shown
from bbn.core.frozen import Array
from bbn.data.column_levels import column_levels
from bbn.data.text_values import is_missing_word, number_form, number_of
from bbn.model.evidence import is_missing
from bbn.model.variable import plain

Tokens = set[tuple[type, Any]]
"""Values that mean missing, each with its type."""


def read_numbers(name: str, column: Any, tokens: Tokens, unseen: str, decimal: str = "") -> Array:
    """A column as numbers.

    Parameters
    ----------
    name
        The column's name, for messages.
    column
        A list, a numpy array, or a Series of some library.
    tokens
        What means missing besides None, NaN and NA.
    unseen
        "raise" a DataError for what is not a finite number, take it as "missing", or "warn" and take it so.
    decimal
        What is known of the decimal mark of text.

    >>> read_numbers("X", [1, None, "2.5"], set(), "raise")
    array([1. , nan, 2.5])
    """
    array = plain_array(column)
    if array is None:
        return _from_values(name, column, tokens, unseen, decimal)
    numbers = np.array(array, dtype=np.float64)
    for kind, value in tokens:
        if kind in (int, float):
            numbers[numbers == value] = np.nan
    infinite = np.isinf(numbers)
    if infinite.any():
        if unseen != "missing":
            where = int(np.argmax(infinite))
            _refuse(name, where, float(numbers[where]), int(infinite.sum()), unseen == "warn")
        numbers[infinite] = np.nan
    return numbers


def plain_array(column: Any) -> NDArray[Any] | None:
    """The column as a numpy array of numbers, if it is one underneath; None if its values must be looked at."""
    if np.ma.isMaskedArray(column):
        return np.ma.filled(column.astype(np.float64), np.nan) if column.dtype.kind in "iuf" else None
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, np.dtype):
        array = column if isinstance(column, np.ndarray) else column.to_numpy()
        if array.ndim != 1:
            raise DataError(f"a column has shape {array.shape}; expected one value per row")
        return array if dtype.kind in "iuf" else None
    if type(column).__module__.partition(".")[0] == "pandas" and getattr(dtype, "kind", "O") in "iuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if type(column).__module__.partition(".")[0] in ("narwhals", "polars", "pyarrow"):
        import narwhals as nw

        series: Any = nw.from_native(column, series_only=True, pass_through=True)
        known = series.dtype.is_numeric() and series.dtype not in (nw.Int128, nw.UInt128)
        if known and not series.dtype.is_decimal():
            whole = series.dtype.is_integer()  # Arrow casts none past 2⁵³
            return np.asarray((series if whole else series.cast(nw.Float64)).to_numpy())
    return None


def _from_values(name: str, column: Any, tokens: Tokens, unseen: str, decimal: str) -> Array:
    """Read each distinct value, then look every row up among them."""
    levels = column_levels(column)
    form = number_form(name, (v for v in levels.values if (str, v) not in tokens), decimal)
    look_up = np.full(len(levels.values) + 1, np.nan)  # its last entry is where −1 points
    odd = []
    for i, value in enumerate(levels.values):
        if is_missing(value) or is_missing_word(value) or (type(plain(value)), plain(value)) in tokens:
            continue
        number = number_of(value, form)
        if number is None or math.isinf(number):
            odd.append(i)
        elif not ((float, number) in tokens or (int, number) in tokens):
            look_up[i] = float(number)
    if odd and unseen != "missing":
        rows = np.flatnonzero(np.isin(levels.codes, odd))
        if len(rows):  # else they are categories that no row uses
            some = not np.isnan(look_up).all()
            _refuse(
                name, int(rows[0]), levels.values[levels.codes[rows[0]]], len(rows), unseen == "warn" and some
            )
    return look_up[levels.codes]


def _refuse(name: str, row: int, value: Any, n_rows: int, only_warn: bool) -> None:
    more = f" ({n_rows} such rows)" if n_rows > 1 else ""
    what = f"{shown(plain(value))} is not a finite number"
    found = f"row {row}, column {name!r}{more}: {what}, but {name!r} is continuous"
    if only_warn:
        warnings.warn(f"{found}; taken as missing", UnseenValuesWarning, stacklevel=3)
        return
    raise DataError(f"{found}; missing= names what means missing, unseen='missing' takes any such value so")
