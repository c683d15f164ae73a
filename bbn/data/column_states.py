"""What a column holds: which values mean missing, which are the states of a variable, and whether it is numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.data.column_levels import Levels
from bbn.data.number_columns import plain_array
from bbn.data.text_values import (
    NUMBERS,
    TRUTH,
    column_form,
    forms_of,
    is_missing_word,
    number_of,
    truth_of,
)
from bbn.model.evidence import is_missing
from bbn.model.variable import Variable, plain

MANY_NUMBERS = 100
"""A column of numbers with more distinct values than this is not taken for a discrete variable unless declared."""


def discovered(name: Any, levels: Levels, tokens: set[tuple[type, Any]]) -> Variable:
    """A variable whose states are the values of the column; text that is numbers, or truth values, is those."""
    if not isinstance(name, str) or not name:
        raise DataError(f"a column is named {name!r}; expected text, as it becomes a variable's name")
    values = _values(name, levels, tokens)
    if not values:
        raise DataError(
            f"column {name!r} holds no value at all; if it was never observed, say hidden={{{name!r}: [its states]}}"
        )
    kinds = {type(value) for value in values}
    if float in kinds or _are_many_numbers(values, levels):
        raise DataError(
            f"column {name!r} holds {len(values)} different numbers, such as {values[0]!r}; "
            "bbn.discretize cuts it into intervals, states= declares its states, continuous= takes it as numbers; "
            "bbn.learn does what each column needs"
        )
    if len(kinds) > 1 or not kinds <= {str, int, bool}:
        shown = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise DataError(
            f"column {name!r} holds values of type {shown}; expected only str, only int or only bool"
        )
    if not levels.declared:
        values = sorted(set(values))
    return Variable(name, list(dict.fromkeys(values)))


def too_many_numbers(name: str, levels: Levels, tokens: set[tuple[type, Any]]) -> bool:
    """Whether a column holds numbers alone, and fractions among them or too many to be states."""
    values = _values(name, levels, tokens)
    kinds = {type(value) for value in values}
    return _are_many_numbers(values, levels) or (float in kinds and kinds <= {int, float})


def holds_fractions(column: Any) -> bool:
    """Whether a column is floats, and some of them are not whole: no need to look at its distinct values."""
    array = plain_array(column)
    if array is None or array.dtype.kind != "f":
        return False
    return bool(np.any(np.isfinite(array) & (array != np.floor(array))))


def _are_many_numbers(values: Sequence[Any], levels: Levels) -> bool:
    return (
        len(values) > MANY_NUMBERS
        and not levels.declared
        and {type(value) for value in values} <= {int, float}
    )


def _values(name: str, levels: Levels, tokens: set[tuple[type, Any]]) -> list[Any]:
    """The distinct values of a column that do not mean missing, as states would hold them."""
    values = [plain(value) for value in levels.values if not means_missing(value, tokens)]
    if values and not levels.declared:
        values = meant(name, values, levels.decimal)
    values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    return [str(v) if type(v).__name__ == "Interval" else v for v in values]


def meant(name: str, values: Sequence[Any], decimal: str = "") -> list[Any]:
    """The values that text stands for, where all of it is numbers or truth values; otherwise the values as they are."""
    if not all(isinstance(value, str) for value in values):
        return list(values)
    form = column_form(name, values, forms_of(values), decimal)
    if not form & (NUMBERS | TRUTH):
        return list(values)
    words = [value for value in values if not is_missing_word(value)]
    return [truth_of(value) if form == TRUTH else number_of(value, form) for value in words]


def missing_tokens(missing: Any) -> set[tuple[type, Any]]:
    """The values that mean missing, each with its type so that 1 is not True."""
    listed = missing if isinstance(missing, list | tuple | set | frozenset) else [missing]
    return {(type(plain(value)), plain(value)) for value in listed if not is_missing(value)}


def means_missing(value: Any, tokens: set[tuple[type, Any]]) -> bool:
    """Whether a value is None, NaN, NA or one of the tokens."""
    return is_missing(value) or (bool(tokens) and (type(plain(value)), plain(value)) in tokens)
