"""Reading what a user wrote as a conditional table: an array, a mapping of rows, or a DataFrame.

Each comes out as one array with the parents' axes first and the variable's own last, or as a ModelError that
names the node, the row and the value. A row is a distribution: entries at least 0, sum 1. A sum off by at most
1e-9 is kept bit for bit, one off by at most 1e-6 (single precision) is renormalised, more is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from numbers import Real
from typing import Any

import numpy as np

from bbn.core.errors import ModelError, nearest
from bbn.core.frozen import Array, numbers
from bbn.model.variable import State, Variable

EXACT = 1e-9
"""A row's sum may be off 1 by this much and the row is kept as it is."""
ROUNDED = 1e-6
"""A row's sum may be off 1 by this much and the row is renormalised."""


def read_table(variable: Variable, parents: Sequence[Variable], table: Any) -> Array:
    """A new array of shape (*parents' cards, variable's card), every row a distribution."""
    if hasattr(table, "columns") and hasattr(table, "index"):
        table = _mapping_from_frame(variable, parents, table)
    if isinstance(table, Mapping):
        array = _array_from_mapping(variable, parents, table)
    else:
        array = _array_from_numbers(variable, parents, table)
    return _checked_rows(variable, parents, array)


def shape_of(variable: Variable, parents: Sequence[Variable]) -> tuple[int, ...]:
    """The shape of the table: the parents' cards, then the variable's."""
    return (*(p.card for p in parents), variable.card)


def settings(parents: Sequence[Variable]) -> Iterator[tuple[tuple[int, ...], tuple[State, ...]]]:
    """Every setting of the parents as (codes, states), the last parent running fastest."""
    codes = product(*(range(p.card) for p in parents))
    states = product(*(p.states for p in parents))
    return zip(codes, states, strict=True)


def row_name(
    variable: Variable, parents: Sequence[Variable], index: tuple[int, ...], kind: str = "CPT"
) -> str:
    """The row as messages name it: the node, and the parents' states."""
    if not parents:
        return f"{kind} {variable.name!r}"
    setting = ", ".join(f"{p.name}={p.states[code]}" for p, code in zip(parents, index, strict=True))
    return f"{kind} {variable.name!r}, row {setting}"


def indexed_rows(
    variable: Variable, parents: Sequence[Variable], rows: Mapping[Any, Any], kind: str = "CPT"
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """(codes of the parents, row) for each row of a mapping; ModelError unless every setting is there once."""
    given: set[tuple[int, ...]] = set()
    for key, row in rows.items():
        index = _row_index(variable, parents, key, kind)
        if index in given:
            raise ModelError(f"{row_name(variable, parents, index, kind)}: given twice")
        given.add(index)
        yield index, row
    expected = math.prod(p.card for p in parents)
    if len(given) < expected:
        missing = (states for index, states in settings(parents) if index not in given)
        shown = ", ".join(_key_text(states) for states in islice(missing, 5))
        more = f", … ({expected - len(given)} in all)" if expected - len(given) > 5 else ""
        raise ModelError(
            f"{kind} {variable.name!r}: missing rows for {', '.join(p.name for p in parents)} = {shown}{more}"
        )


def by_parent(kind: str, child: Variable, parents: Sequence[Variable], links: Any) -> list[Any]:
    """What is given for each parent, in their order."""
    names = [p.name for p in parents]
    if isinstance(links, Mapping):
        for name in links:
            if name not in names:
                raise ModelError(
                    f"{kind} {child.name!r}: a link is given for {name!r}, which is not a parent{nearest(name, names)}"
                )
        for name in names:
            if name not in links:
                raise ModelError(f"{kind} {child.name!r}: there is no link for the parent {name!r}")
        return [links[name] for name in names]
    listed = isinstance(links, Sequence) and not isinstance(links, str)
    if not listed and not (isinstance(links, np.ndarray) and links.ndim):
        raise ModelError(
            f"{kind} {child.name!r}: links must be a mapping from each parent's name or a list in the order of the "
            f"parents, found {links!r}"
        )
    if len(links) != len(names):
        raise ModelError(
            f"{kind} {child.name!r}: expected a link for each of {len(names)} parents, found {len(links)}"
        )
    return list(links)


def require_chances(
    kind: str, child: Variable, parents: Sequence[Variable], given: Sequence[Any], leak: Any
) -> None:
    """ModelError unless each parent's number and the leak are probabilities."""
    for name, p in [*zip((p.name for p in parents), given, strict=True), ("the leak", leak)]:
        if isinstance(p, bool) or not isinstance(p, Real) or not 0 <= float(p) <= 1:
            raise ModelError(f"{kind} {child.name!r}: the probability of {name} is {p!r}; expected 0 to 1")


def _array_from_numbers(variable: Variable, parents: Sequence[Variable], table: Any) -> Array:
    shape = shape_of(variable, parents)
    axes = ", ".join([*(p.name for p in parents), variable.name])
    try:
        array = numbers(table)
    except (TypeError, ValueError):
        raise ModelError(
            f"CPT {variable.name!r}: the table is not an array of numbers of shape {shape} (axes {axes})"
        ) from None
    if array.shape != shape:
        rows = int(np.prod(shape[:-1]))
        hint = ""
        if parents and array.shape == (variable.card, rows) and array.shape != (rows, variable.card):
            hint = "; the child's axis comes last here: transpose it, then reshape"
        elif array.size == rows * variable.card:
            hint = f"; reshape({', '.join(map(str, shape))}) gives it that shape"
        raise ModelError(
            f"CPT {variable.name!r}: expected a table of shape {shape} (axes {axes}), found {array.shape}{hint}"
        )
    return array


def _array_from_mapping(variable: Variable, parents: Sequence[Variable], table: Mapping[Any, Any]) -> Array:
    if not parents:
        return _row(variable, parents, (), table.get((), table))
    array = np.empty(shape_of(variable, parents))
    for index, row in indexed_rows(variable, parents, table):
        array[index] = _row(variable, parents, index, row)
    return array


def _row_index(variable: Variable, parents: Sequence[Variable], key: Any, kind: str) -> tuple[int, ...]:
    states = key if isinstance(key, tuple) else (key,)
    names = ", ".join(p.name for p in parents)
    if len(states) != len(parents):
        raise ModelError(
            f"{kind} {variable.name!r}: row {key!r} names {len(states)} states; "
            f"expected {len(parents)}, one for each of {names}"
        )
    index = []
    for parent, state in zip(parents, states, strict=True):
        code = parent.find(state)
        if code is None:
            raise ModelError(
                f"{kind} {variable.name!r}: extra row {_key_text(states)}: {parent.unknown(state)}"
            )
        index.append(code)
    return tuple(index)


def _row(variable: Variable, parents: Sequence[Variable], index: tuple[int, ...], row: Any) -> Array:
    """One row as an array, from a mapping by state or from numbers in the order of the states."""
    if isinstance(row, Mapping):
        values = [None] * variable.card
        for state, value in row.items():
            code = variable.find(state)
            if code is None:
                raise ModelError(f"{row_name(variable, parents, index)}: {variable.unknown(state)}")
            values[code] = value
        if None in values:
            missing = [variable.states[code] for code, value in enumerate(values) if value is None]
            raise ModelError(f"{row_name(variable, parents, index)}: no entry for {_key_text(missing)}")
        row = values
    try:
        array = numbers(row)
    except (TypeError, ValueError):
        raise ModelError(f"{row_name(variable, parents, index)}: expected numbers, found {row!r}") from None
    if array.shape != (variable.card,):
        found = f"{len(array)} entries" if array.ndim == 1 else f"an array of shape {array.shape}"
        raise ModelError(
            f"{row_name(variable, parents, index)}: expected {variable.card} entries "
            f"({_key_text(variable.states)}), found {found}"
        )
    return array


def _mapping_from_frame(variable: Variable, parents: Sequence[Variable], frame: Any) -> dict[Any, Any]:
    """A DataFrame as `to_frame` makes it (levels in any order if they are named) as a mapping of mappings."""
    names = [p.name for p in parents]
    levels = list(frame.index.names)
    if parents and all(level is not None for level in levels) and levels != names:
        if sorted(map(str, levels)) != sorted(names):
            raise ModelError(f"CPT {variable.name!r}: expected index levels {names}, found {levels}")
        frame = frame.reorder_levels(names)
    columns = list(frame.columns)
    if len(set(columns)) != len(columns):
        twice = next(column for i, column in enumerate(columns) if column in columns[:i])
        raise ModelError(f"CPT {variable.name!r}: the column {twice!r} is given twice")
    rows = [dict(zip(columns, values, strict=True)) for values in frame.to_numpy().tolist()]
    if not parents:
        if len(rows) != 1:
            raise ModelError(
                f"CPT {variable.name!r}: expected one row, as it has no parents, found {len(rows)}"
            )
        return {(): rows[0]}
    keys = list(frame.index)
    if len(set(keys)) != len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ModelError(f"CPT {variable.name!r}: row {twice!r} given twice")
    return dict(zip(keys, rows, strict=True))


def sums_of(rows: Array) -> Array:
    """The sum of each row; infinite where it is past the largest number, without a warning of numpy's."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.add.reduce(rows, axis=-1))


def _checked_rows(variable: Variable, parents: Sequence[Variable], table: Array) -> Array:
    """`table` if every row is a distribution, renormalised where rounding explains it; else ModelError."""
    sums = sums_of(table)
    off = np.maximum.reduce(np.abs(sums - 1.0), axis=None)
    if off <= EXACT and np.minimum.reduce(table, axis=None) >= 0:  # NaN and infinity fail the first test
        return table
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0)))
    if len(bad):
        *setting, code = (int(i) for i in bad[0])
        value = table[tuple(bad[0])]
        raise ModelError(
            f"{row_name(variable, parents, tuple(setting))}: the entry for {variable.states[code]!r} is {value}; "
            "expected a probability"
        )
    wrong = np.argwhere(np.abs(sums - 1.0) > ROUNDED)
    if len(wrong):
        index = tuple(int(i) for i in wrong[0])
        more = f" (and {len(wrong) - 1} more rows)" if len(wrong) > 1 else ""
        if parents and np.allclose(table.reshape(-1, variable.card).sum(axis=0), 1.0, rtol=0.0, atol=ROUNDED):
            more += "; the columns do: a row is a setting of the parents, so transpose the table"
        elif np.allclose(sums, 100.0, rtol=0.0, atol=100 * ROUNDED):
            more += "; these are percentages: divide them by 100"
        raise ModelError(f"{row_name(variable, parents, index)}: sums to {sums[index]:.9g}, expected 1{more}")
    return np.asarray(np.where(np.abs(sums - 1.0)[..., None] > EXACT, table / sums[..., None], table))


def _key_text(states: Sequence[object]) -> str:
    return "(" + ", ".join(str(state) for state in states) + ")"
