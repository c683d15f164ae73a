"""Coding: a table's columns become small unsigned integers, one per state, under known or discovered variables.

The code of a state is its position among the variable's states; the code `card`, one past the last, means
missing. Work per row is one table look-up; everything said about states is decided on the distinct values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError, UnseenValuesWarning, nearest
from bbn.core.frozen import Array
from bbn.data.column_levels import Levels
from bbn.data.columns import RawTable, read_table
from bbn.data.error_places import located
from bbn.data.number_columns import plain_array, read_numbers
from bbn.data.profile import readable_levels
from bbn.data.source import CodedTable
from bbn.data.text_values import (
    NUMBERS,
    PLAIN,
    TRUTH,
    chosen_form,
    forms_of,
    is_missing_word,
    number_of,
    truth_of,
)
from bbn.model.evidence import is_missing
from bbn.model.variable import Binned, Continuous, State, Variable, check_states, plain

MANY_NUMBERS = 100
"""A column of numbers with more distinct values than this is not taken for a discrete variable unless declared."""
MAX_STATES = 65535
UNSEEN = ("raise", "warn", "missing")
"""What can be done with a value that is not a state."""

_INDEX_TYPES = tuple(
    np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
)

Codes = NDArray[Any]
"""Codes of one column, uint8 or uint16."""


def code(
    data: Any,
    variables: Iterable[Variable] | None = None,
    *,
    names: Sequence[str] | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    missing: Any = (),
    unseen: str = "raise",
    weights: Any = None,
    absent: str = "raise",
    extra: str = "raise",
    hidden: Iterable[str] = (),
    continuous: str | Iterable[str] | None = (),
) -> CodedTable:
    """Code the columns of `data`.

    Parameters
    ----------
    data
        pandas, polars, pyarrow, a dict of columns, a list of dicts, (array, names), or a path to CSV or Parquet.
    variables
        The variables wanted, where they are known. Without them every column is one (or those in `names`), with
        its states from `states`, from a categorical's categories, or discovered: sorted, False before True.
    names
        The columns wanted, where the variables are not known.
    states
        Column to its states, in the order they are to have.
    missing
        A value, or several, that mean missing besides None, NaN and pandas' NA (in CSV: besides an empty field).
    unseen
        What to do with a value that is not a state: "raise" a DataError, take it as "missing", or "warn" and take it
        so, unless no value of the column is a state.
    weights
        One weight per row, or the name of the column that holds them.
    absent
        What to do where a wanted column is not there: "raise", or "allow", which leaves it out of the result.
    extra
        What to do with columns that were not wanted: "raise" or "ignore".
    hidden
        Names of variables that were never observed: a column of theirs must hold no value and is left out.
    continuous
        Names of columns that are read as numbers, besides those whose variable is continuous. None: by what they hold;
        a column of fractions, or of more than MANY_NUMBERS different numbers, is one of numbers unless declared.

    Returns
    -------
    CodedTable

    >>> table = code({"A": ["no", "yes", None]}, [Variable("A", ["yes", "no"])])
    >>> table.codes["A"]
    array([1, 0, 2], dtype=uint8)
    >>> code({"X": [1.5, None]}, continuous=["X"]).numbers["X"]
    array([1.5, nan])
    """
    if unseen not in UNSEEN:
        raise ValueError(f"unseen is {unseen!r}; expected 'raise', 'warn' or 'missing'")
    table = read_table(data)
    with located(str(data) if isinstance(data, str | PathLike) else ""):
        return _coded(
            table, variables, names, states, missing, unseen, weights, absent, extra, hidden, continuous
        )


def _coded(
    table: RawTable,
    variables: Iterable[Variable] | None,
    names: Sequence[str] | None,
    states: Mapping[str, Sequence[State]] | None,
    missing: Any,
    unseen: str,
    weights: Any,
    absent: str,
    extra: str,
    hidden: Iterable[str],
    continuous: str | Iterable[str] | None,
) -> CodedTable:
    """`code` on a table that has been looked at."""
    if variables is None and table.renamed:
        raise DataError(
            f"a column is named {table.renamed[0]!r}; expected text, as it becomes a variable's name: "
            "with pandas, data.columns = data.columns.map(str)"
        )
    weight_name, weight_values = _checked_weights(weights, table)
    tokens = missing_tokens(missing)
    declared = _declared(variables, states)
    numeric = _checked_continuous(declared, states, continuous)
    unseen_names = set(hidden)
    if variables is not None:
        wanted = list(declared)
    elif names is not None:
        wanted = list(names)
    else:
        wanted = [name for name in table.names if name != weight_name]
    _check_columns(table, wanted, unseen_names, weight_name, absent, extra)

    coded: dict[str, Codes] = {}
    numbers: dict[str, Array] = {}
    found: list[Variable] = []
    there = set(table.names)
    for name in wanted:
        if name not in there:
            continue
        if name in numeric and name not in unseen_names:
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen)
            continue
        own = declared.get(name)
        if isinstance(own, Binned) and name not in unseen_names:
            array = plain_array(table.column(name))
            if array is not None:
                coded[name] = _cut(own, array, tokens)
                found.append(own)
                continue
        by_kind = continuous is None and own is None and name not in unseen_names
        if by_kind and holds_fractions(table.column(name)):
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen)
            continue
        levels = table.levels(name) if own is None else readable_levels(table, name)
        if by_kind and too_many_numbers(levels, tokens):
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen)
            continue
        if name in unseen_names:
            _check_unseen(name, levels, tokens)
            continue
        variable = own or discovered(name, levels, tokens)
        coded[name] = _code_column(variable, levels, tokens, unseen)
        found.append(variable)
    return CodedTable(tuple(found), coded, table.n_rows, weight_values, table.kind, numbers)


def _declared(
    variables: Iterable[Variable] | None, states: Mapping[str, Sequence[State]] | None
) -> dict[str, Variable]:
    declared = {v.name: v for v in variables or ()}
    for name, listed in (states or {}).items():
        own = listed if isinstance(listed, Variable) else Variable(name, listed)
        if name in declared:
            check_states(name, own.states, declared[name].states)
        declared.setdefault(name, own)
    return declared


def _checked_continuous(
    declared: Mapping[str, Variable],
    states: Mapping[str, Sequence[State]] | None,
    continuous: str | Iterable[str] | None,
) -> set[str]:
    """The names of the columns that are said to hold numbers."""
    continuous = [continuous] if isinstance(continuous, str) else list(continuous or ())
    numeric = {
        *continuous,
        *(name for name, variable in declared.items() if isinstance(variable, Continuous)),
    }
    for name, listed in (states or {}).items():
        if name in numeric and not isinstance(listed, Continuous):
            raise DataError(f"states= names {name!r}, which is continuous: it has numbers, not states")
    for name in continuous:
        if name in declared and not isinstance(declared[name], Continuous):
            raise DataError(f"continuous= names {name!r}, which has the states {list(declared[name].states)}")
    return numeric


def _check_columns(
    table: RawTable, wanted: Sequence[str], hidden: set[str], weight_name: str | None, absent: str, extra: str
) -> None:
    there = set(table.names)
    missing = [name for name in wanted if name not in there and name not in hidden]
    if missing and absent == "raise":
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise DataError(
            f"the data have no column {missing[0]!r}{more}{nearest(missing[0], table.names)}; "
            "a variable that was never observed belongs in hidden="
        )
    known = {*wanted, *hidden, weight_name}
    surplus = [name for name in table.names if name not in known]
    if surplus and extra == "raise":
        more = f" (and {len(surplus) - 1} more)" if len(surplus) > 1 else ""
        raise DataError(
            f"the column {surplus[0]!r}{more} is not a variable of the structure{nearest(surplus[0], wanted)}; "
            "drop it, or add it as a node"
        )


def _check_unseen(name: str, levels: Levels, tokens: set[tuple[type, Any]]) -> None:
    for i, value in enumerate(levels.values):
        if not means_missing(value, tokens):
            rows = np.flatnonzero(levels.codes == i)
            if len(rows):
                raise DataError(
                    f"hidden variable {name!r} has values in the data: row {rows[0]} holds {value!r}"
                )


def _cut(variable: Binned, array: NDArray[Any], tokens: set[tuple[type, Any]]) -> Codes:
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


def _code_column(variable: Variable, levels: Levels, tokens: set[tuple[type, Any]], unseen: str) -> Codes:
    """Look the distinct values up among the states, then every row up among the distinct values."""
    dtype = _code_type(variable)
    find = finder(variable, levels.values)
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


def finder(variable: Variable, values: Sequence[Any]) -> Callable[[Any], int | None]:
    """A function from a value of a column to its code: None if it is not a state, `card` if it means missing.

    Integers that were stored as floats are integers, and pandas' intervals are their text. Text matches a state by
    `str(state)`, numbers and truth values also as they are written elsewhere ("1.0", "TRUE"). Where states are text, a
    value of another type matches by its own text.
    """
    by_text = {str(state): i for i, state in enumerate(variable.states)}
    first = variable.states[0] if variable.states else ""
    numeric = isinstance(variable, Binned) or type(first) is int
    truth = type(first) is bool
    form = chosen_form(forms_of(values)) if numeric else PLAIN

    def find(value: Any) -> int | None:
        position = variable.find(value)
        if position is not None:
            return position
        if isinstance(value, str):
            position = by_text.get(value)
            if position is None and (numeric or truth):
                if is_missing_word(value):
                    return variable.card
                position = variable.find(truth_of(value) if truth else number_of(value, form or PLAIN))
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


def discovered(name: Any, levels: Levels, tokens: set[tuple[type, Any]]) -> Variable:
    """A variable whose states are the values of the column; text that is numbers, or truth values, is those."""
    if not isinstance(name, str) or not name:
        raise DataError(f"a column is named {name!r}; expected text, as it becomes a variable's name")
    values = _values(levels, tokens)
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


def too_many_numbers(levels: Levels, tokens: set[tuple[type, Any]]) -> bool:
    """Whether a column holds numbers alone, and fractions among them or too many to be states."""
    values = _values(levels, tokens)
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


def _values(levels: Levels, tokens: set[tuple[type, Any]]) -> list[Any]:
    """The distinct values of a column that do not mean missing, as states would hold them."""
    values = [plain(value) for value in levels.values if not means_missing(value, tokens)]
    if values and not levels.declared:
        values = meant(values)
    values = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    return [str(v) if type(v).__name__ == "Interval" else v for v in values]


def meant(values: Sequence[Any]) -> list[Any]:
    """The values that text stands for, where all of it is numbers or truth values; else the values as they are."""
    if not all(isinstance(value, str) for value in values):
        return list(values)
    form = chosen_form(forms_of(values))
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


def _checked_weights(weights: Any, table: RawTable) -> tuple[str | None, Array | None]:
    """The name of the column of weights, if it is one, and the weights as an array."""
    if weights is None:
        return None, None
    name = weights if isinstance(weights, str) else None
    if name is not None:
        if name not in table.names:
            raise DataError(f"weights={name!r} is not a column of the data{nearest(name, table.names)}")
        weights = _numbers(table.levels(name))
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("weights must be numbers, one per row") from None
    if values.shape != (table.n_rows,):
        raise DataError(f"weights has shape {values.shape}; expected one for each of {table.n_rows} rows")
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise DataError(f"row {bad[0]}: the weight is {values[bad[0]]}; expected a finite number, at least 0")
    if table.n_rows and not values.any():
        raise DataError("every weight is 0; at least one row must count")
    return name, values


def _numbers(levels: Levels) -> Array:
    """A column's values as floats, NaN where missing."""
    try:
        values = np.array([*levels.values, np.nan], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError("weights must be numbers, one per row") from None
    return values[levels.codes]
