"""One column to codes: its distinct values are looked up among the states of a variable, then every row among those.

The code of a state is its position; the code `card`, one past the last, means missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError, UnseenValuesWarning
from bbn.data.column_levels import Levels
from bbn.data.column_states import MANY_NUMBERS, means_missing
from bbn.data.text_values import PLAIN, is_missing_word, number_form, number_of, truth_of
from bbn.model.binned import Binned
from bbn.model.variable import Variable, plain

MAX_STATES = 65535

_INDEX_TYPES = tuple(
    np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
)

Codes = NDArray[Any]
"""Codes of one column, uint8 or uint16."""


def cut_numbers(variable: Binned, array: NDArray[Any], tokens: set[tuple[type, Any]]) -> Codes:
    """The intervals that numbers lie in."""
    numbers = array.astype(np.float64, copy=False)
    codes = np.searchsorted(variable.edges, numbers, side="right")
    gone = np.isnan(numbers)
    for kind, value in tokens:
        if kind in (int, float):
            gone |= numbers == value
    codes[gone] = variable.card
    return codes.astype(_code_type(variable))


def _code_type(variable: Variable) -> type[Any]:
    """The dtype of a variable's codes."""
    if variable.card > MAX_STATES:
        raise DataError(
            f"column {variable.name!r} has {variable.card} states; at most {MAX_STATES} are possible"
        )
    return np.uint8 if variable.card <= 255 else np.uint16


def code_column(variable: Variable, levels: Levels, tokens: set[tuple[type, Any]], unseen: str) -> Codes:
    """Look the distinct values up among the states, then every row up among the distinct values."""
    dtype = _code_type(variable)
    find = finder(variable, levels.values, levels.decimal)
    look_up = np.full(len(levels.values) + 1, variable.card, dtype=dtype)  # its last entry is where −1 points
    unknown = []
    same = True
    for i, value in enumerate(levels.values):
        position = None
        if not means_missing(value, tokens):
            position = find(value)
            if position is None:
                unknown.append(i)
            elif position < variable.card:
                look_up[i] = position
        same = same and position == i
    if unknown and unseen != "missing":
        _refuse_unseen(variable, levels, unknown, unseen)
    codes = levels.codes
    high = check_levels(variable.name, levels)
    if codes.dtype.kind == "i" and len(codes) and codes.min() < 0:
        return kernels.recode.recode(look_up, index_array(codes))
    if high < 256:
        codes = codes.astype(
            np.uint8
        )  # a copy of a quarter of the size or less, which is quicker to look up from
    if same:
        return codes.astype(dtype, copy=codes is levels.codes)
    return kernels.recode.recode(look_up, index_array(codes), inside=True)


def check_levels(name: str, levels: Levels) -> int:
    """The largest index of a column; DataError if it is past the end of the values, as it can be in a damaged file."""
    high = int(levels.codes.max()) if len(levels.codes) else -1
    if high >= len(levels.values):
        raise DataError(
            f"column {name!r} is damaged: a row has value number {high}, of {len(levels.values)} that there are"
        )
    return high


def index_array(codes: Codes) -> Codes:
    """Indices as the kernels take them: end to end, of a type they know."""
    return np.ascontiguousarray(codes, dtype=codes.dtype if codes.dtype in _INDEX_TYPES else np.int64)


def finder(variable: Variable, values: Sequence[Any], decimal: str = "") -> Callable[[Any], int | None]:
    """A function from a value of a column to its code: None if it is not a state, `card` if it means missing.

    Integers that were stored as floats are integers, and pandas' intervals are their text. Text matches a state by
    `str(state)`, numbers and truth values also as they are written elsewhere ("1.0", "TRUE"). Where states are text, a
    value of another type matches by its own text.
    """
    by_text = {str(state): i for i, state in enumerate(variable.states)}
    first = variable.states[0] if variable.states else ""
    numeric = isinstance(variable, Binned) or type(first) is int
    truth = type(first) is bool
    form = number_form(variable.name, values, decimal) if numeric else PLAIN

    def find(value: Any) -> int | None:
        position = variable.find(value)
        if position is not None:
            return position
        if isinstance(value, str):
            position = by_text.get(value)
            if position is None and (numeric or truth):
                if is_missing_word(value):
                    return variable.card
                position = variable.find(truth_of(value) if truth else number_of(value, form))
            return position
        if isinstance(value, float) and value.is_integer():
            position = variable.find(int(value))
        if position is None and type(first) is str and not isinstance(variable, Binned):
            position = by_text.get(str(plain(value)))
        return position

    return find


def _refuse_unseen(variable: Variable, levels: Levels, unknown: Sequence[int], unseen: str) -> None:
    """DataError about values that are not states; or a warning, where that is asked for and other values are."""
    odd = np.isin(levels.codes, unknown)
    rows = np.flatnonzero(odd)
    if not len(rows):  # categories that no row uses
        return
    row = int(rows[0])
    value = plain(levels.values[levels.codes[row]])
    if unseen == "warn" and len(rows) < np.count_nonzero(levels.codes >= 0):
        warnings.warn(
            f"column {variable.name!r}: {variable.unknown(value)}; taken as missing in {len(rows)} of "
            f"{len(levels.codes)} rows",
            UnseenValuesWarning,
            stacklevel=2,
        )
        return
    more = f" ({len(rows)} such rows)" if len(rows) > 1 else ""
    way_out = "unseen='missing' takes it as missing"
    if len(unknown) > MANY_NUMBERS and isinstance(value, int | float):
        way_out = "bbn.discretize cuts a column of numbers into intervals, continuous= takes it as it is"
    raise DataError(f"row {row}, column {variable.name!r}{more}: {variable.unknown(value)}; {way_out}")
