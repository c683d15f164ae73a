"""Discovery: what one pass over batches finds out about columns whose states are not declared.

Of each batch only the distinct values of its columns are kept, with their kinds, in order of appearance; what two
batches found adds up. At the end each column becomes a variable by the same rules, and with
the same errors, as a table in memory, and an error about kinds says where each kind was first met.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data.column_codes import MAX_STATES, check_levels, index_array
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
from bbn.data.number_columns import read_numbers
from bbn.data.streams.sums import RunningSum
from bbn.data.text_values import IN_PART
from bbn.model.variable import State, Variable, plain

NO_CODES = np.empty(0, dtype=np.int32)


class FoundColumn(NamedTuple):
    """What was found out about one column."""

    values: dict[tuple[type, Any], Any]
    """The distinct values, by type and value, in order of appearance."""
    declared: bool
    """Whether they are a categorical's, used or not, in declared order."""
    text: bool
    """Whether they are text from a file, which matches a state by `str(state)`."""
    missing: bool
    """Whether some row holds none."""
    kinds: dict[str, str]
    """The kinds of the values, and where each was first met."""
    continuous: bool = False
    """Whether the column is read as numbers; `values` then holds one of them, if there is any."""
    decimal: str = ""
    """What is known of the decimal mark of text."""

    def merge(self, other: FoundColumn) -> FoundColumn:
        """What was found out about two batches, the other after this one."""
        return FoundColumn(
            {**self.values, **other.values},
            self.declared and other.declared,
            self.text and other.text,
            self.missing or other.missing,
            {**self.kinds, **{k: where for k, where in other.kinds.items() if k not in self.kinds}},
            self.continuous or other.continuous,
            self.decimal or other.decimal,
        )

    @property
    def levels(self) -> Levels:
        """The values as those of a column without rows."""
        return Levels(NO_CODES, list(self.values.values()), self.declared, self.decimal)

    def variable(self, name: str, tokens: set[tuple[type, Any]]) -> Variable:
        """The variable whose states are these values; DataError if they cannot be states."""
        try:
            return discovered(name, self.levels, tokens)
        except DataError as error:
            if len(self.kinds) < 2:
                raise
            met = ", ".join(f"{kind} in {where}" for kind, where in self.kinds.items() if where)
            raise DataError(f"{error}; first met: {met}" if met else str(error)) from None


class Discovery(NamedTuple):
    """What was found out about one batch, or, by `merge`, about several in their order."""

    n_rows: int
    total: RunningSum
    """The sum of the weights."""
    columns: dict[str, FoundColumn]

    def merge(self, other: Discovery) -> Discovery:
        """What was found out about two runs of batches, the other after this one."""
        self.total.merge(other.total)
        columns = {name: column.merge(other.columns[name]) for name, column in self.columns.items()}
        return Discovery(self.n_rows + other.n_rows, self.total, few_states(columns))

    def by_kind(self, declared: Iterable[str], missing: Any) -> Discovery:
        """The same, with columns of too many numbers to be states as columns of numbers."""
        tokens = missing_tokens(missing)
        columns = {
            name: column._replace(continuous=True)
            if too_many_numbers(name, column.levels, tokens)
            else column
            for name, column in self.columns.items()
            if name not in set(declared)
        }
        return self._replace(columns={**self.columns, **columns})

    def numeric(self, declared: Iterable[str]) -> tuple[str, ...]:
        """The names of the columns of numbers that are not declared."""
        return tuple(
            name for name, column in self.columns.items() if column.continuous and name not in set(declared)
        )


def few_states(columns: dict[str, FoundColumn]) -> dict[str, FoundColumn]:
    """The columns; DataError if one has more values than a variable may have states."""
    for name, column in columns.items():
        if len(column.values) > MAX_STATES and not column.continuous:
            raise DataError(
                f"column {name!r} holds more than {MAX_STATES} different values; "
                "variables= names the columns that are variables"
            )
    return columns


class Discovering(NamedTuple):
    """The task of discovery: a function of a batch, that can be sent to where the batch is.

    Attributes
    ----------
    names
        The columns to look at.
    missing
        What means missing besides None, NaN and NA.
    weights
        The name of the column of weights, if there is one.
    continuous
        The names of the columns that are read as numbers.
    unseen
        What to do with a value that is not a number in a column of numbers.
    by_kind
        Whether a column with fractions is one of numbers.
    decimal, decimals
        What is told of decimal marks, and what all rows tell of them, if they were asked.

    >>> find = Discovering(("A",))
    >>> both = find({"A": ["b", None]}).merge(find({"A": ["a"]}))
    >>> both.n_rows, both.columns["A"].missing, both.columns["A"].variable("A", set()).states
    (3, True, ('a', 'b'))
    """

    names: tuple[str, ...]
    missing: Any = ()
    weights: str | None = None
    continuous: frozenset[str] = frozenset()
    unseen: str = "raise"
    by_kind: bool = False
    decimal: Decimal = None
    decimals: Mapping[str, str] | None = None

    def __call__(self, data: Any, where: str = "", first_row: int = 0) -> Discovery:
        """What a batch holds; `where` it is from and the number of its first row are for messages."""
        with located(where, first_row):
            table = batch_table(data, self.decimal, self.decimals)
            weights = batch_weights(table, self.weights)
            columns = few_states({name: self._column(table, name, where) for name in self.names})
        total = RunningSum([np.array([float(table.n_rows) if weights is None else weights.sum()])])
        return Discovery(table.n_rows, total, columns)

    def _column(self, table: RawTable, name: str, where: str) -> FoundColumn:
        require_column(table, name)
        tokens = missing_tokens(self.missing)
        if name in self.continuous or (self.by_kind and holds_fractions(table.column(name))):
            numbers = read_numbers(name, table.column(name), tokens, self.unseen, table.decimal_of(name))
            gone = np.isnan(numbers)
            found: dict[tuple[type, Any], Any] = {} if gone.all() else {(float, 0.0): 0.0}
            return FoundColumn(found, False, table.text, bool(gone.any()), {}, continuous=True)
        levels = table.levels(name)
        check_levels(name, levels)
        there = kernels.recode.present(index_array(levels.codes), len(levels.values)).tolist()
        missing = there[-1]
        values = {}
        for value, is_there in zip(levels.values, there[:-1], strict=True):
            if means_missing(value, tokens):
                missing = missing or is_there
            elif is_there or levels.declared:
                values[type(plain(value)), plain(value)] = value
        kinds = dict.fromkeys((kind.__name__ for kind, _ in values), where)
        mark = table.decimal_of(name).rstrip(IN_PART)
        return FoundColumn(values, levels.declared, table.text, missing, kinds, decimal=mark)


def batch_table(data: Any, decimal: Decimal, decimals: Mapping[str, str] | None) -> RawTable:
    """A batch as a table, with what is told of decimal marks, and what all rows tell of them, if they were asked."""
    table = read_table(data)
    if decimals is None:
        return table._replace(decimal=table.decimal + IN_PART).told(decimal)
    return table.told(decimals).told(decimal)


def require_column(table: RawTable, name: str) -> None:
    """DataError if a batch has no such column."""
    if name not in table.names:
        raise DataError(f"the data have no column {name!r}{nearest(name, table.names)}")


def batch_weights(table: RawTable, name: str | None) -> Array | None:
    """The weights of a batch's rows, or None if each counts once."""
    if name is None:
        return None
    if name not in table.names:
        raise DataError(f"weights={name!r} is not a column of the data{nearest(name, table.names)}")
    weights = read_numbers(name, table.column(name), set(), "raise", table.decimal_of(name))
    bad = np.flatnonzero(~(weights >= 0))
    if len(bad):
        raise DataError(
            f"row {bad[0]}: the weight is {weights[bad[0]]}; expected a finite number, at least 0"
        )
    return weights


def discovered_variables(
    found: Discovery,
    names: Iterable[str],
    declared: Mapping[str, Variable | Sequence[State]],
    missing: Any = (),
) -> tuple[Variable, ...]:
    """One variable per column of states: as declared, otherwise from the values found; empty ones are left out."""
    tokens = missing_tokens(missing)
    variables = []
    for name in names:
        column = found.columns.get(name)
        if name in declared:
            own = declared[name]
            variables.append(own if isinstance(own, Variable) else Variable(name, own))
        elif column is not None and not column.continuous and column.values:
            variables.append(column.variable(name, tokens))
    return tuple(variables)
