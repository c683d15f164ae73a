"""Coding: a table's columns become small unsigned integers, one per state, under known or discovered variables.

The code of a state is its position among the variable's states; the code `card`, one past the last, means
missing. Work per row is one table look-up; everything said about states is decided on the distinct values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data.coded_table import CodedTable
from bbn.data.column_codes import Codes, code_column, cut_numbers
from bbn.data.column_levels import Levels
from bbn.data.column_states import (
    discovered,
    holds_fractions,
    means_missing,
    missing_tokens,
    too_many_numbers,
)
from bbn.data.columns import Decimal, RawTable, read_table
from bbn.data.error_places import located
from bbn.data.number_columns import plain_array, read_numbers
from bbn.data.profile import readable_levels
from bbn.model.binned import Binned
from bbn.model.variable import Continuous, State, Variable, check_states

UNSEEN = ("raise", "warn", "missing")
"""What can be done with a value that is not a state."""


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
    decimal: Decimal = None,
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
    decimal
        The decimal mark of text that is numbers, "," or ".", or column to mark. Needed only where text does not tell.

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
    table = read_table(data).told(decimal)
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
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen, table.decimal_of(name))
            continue
        own = declared.get(name)
        if isinstance(own, Binned) and name not in unseen_names:
            array = plain_array(table.column(name))
            if array is not None:
                coded[name] = cut_numbers(own, array, tokens)
                found.append(own)
                continue
        by_kind = continuous is None and own is None and name not in unseen_names
        if by_kind and holds_fractions(table.column(name)):
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen, table.decimal_of(name))
            continue
        levels = table.levels(name) if own is None else readable_levels(table, name)
        if by_kind and too_many_numbers(name, levels, tokens):
            numbers[name] = read_numbers(name, table.column(name), tokens, unseen, table.decimal_of(name))
            continue
        if name in unseen_names:
            _check_unseen(name, levels, tokens)
            continue
        variable = own or discovered(name, levels, tokens)
        coded[name] = code_column(variable, levels, tokens, unseen)
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
