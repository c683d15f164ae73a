"""Tasks: what is done to each batch of data, how it is coded first, and what comes back to be added up.

A task and its coding are values that can be sent to where a batch is; the results of all batches add up (see `sums`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data.coded_table import CodedTable
from bbn.data.coding import code
from bbn.data.columns import Decimal
from bbn.data.counts import ContingencyTables
from bbn.data.error_places import located
from bbn.data.source import Block
from bbn.data.streams.discovery import batch_table, batch_weights, require_column
from bbn.data.streams.sums import RunningSum
from bbn.model.variable import Variable


class Task(Protocol):
    """What is done to each coded batch: it can be pickled, and its results add up."""

    def __call__(self, table: CodedTable) -> Sequence[NDArray[Any]]:
        """Arrays whose sums over batches are wanted."""


class Counting(NamedTuple):
    """The task of `counts`: the contingency tables of some families, end to end in one array."""

    families: tuple[tuple[str, ...], ...]

    def __call__(self, table: CodedTable) -> list[NDArray[Any]]:
        """The counts of one batch."""
        tables = table.counts(self.families, n_jobs=1)
        if isinstance(tables, ContingencyTables):
            return [tables.cells]
        return [np.concatenate([cells.ravel() for cells in tables])]


class Reducing(NamedTuple):
    """The task of `reduce`: f of a batch's distinct rows."""

    f: Callable[[Block], Sequence[Array]]

    def __call__(self, table: CodedTable) -> list[NDArray[Any]]:
        """What f gives for one batch."""
        return table.reduce(self.f)


class Coding(NamedTuple):
    """How batches are coded: a value that can be sent to where they are.

    Attributes
    ----------
    variables
        The variables by name; the columns of numbers are in `continuous` instead.
    missing, unseen
        As in `bbn.data.code`.
    weights
        The name of the column of weights, if there is one.
    continuous
        The names of the columns that are read as numbers.
    by_kind
        Whether columns that a pass of discovery finds to hold numbers are read as numbers too.
    decimal, decimals
        What is told of decimal marks, and what all rows tell of them, if they were asked.
    complete
        Where no value may be missing, what to do if one is, for the DataError; empty where some may.
    """

    variables: Mapping[str, Variable]
    missing: Any = ()
    unseen: str = "raise"
    weights: str | None = None
    continuous: tuple[str, ...] = ()
    by_kind: bool = False
    complete: str = ""
    decimal: Decimal = None
    decimals: Mapping[str, str] | None = None

    def table(self, data: Any, columns: Sequence[str], where: str = "", first_row: int = 0) -> CodedTable:
        """Some columns of a batch, coded; `where` it is from and the number of its first row are for messages."""
        with located(where, first_row):
            raw = batch_table(data, self.decimal, self.decimals)
            for name in columns:
                require_column(raw, name)
            weights = batch_weights(raw, self.weights)
            coded = code(
                raw,
                [self.variables[name] for name in columns if name in self.variables],
                missing=self.missing,
                unseen=self.unseen,
                extra="ignore",
            )
            numbers = {}
            if self.continuous:
                own = [name for name in columns if name not in self.variables]
                numbers = dict(
                    code(
                        raw,
                        names=own,
                        missing=self.missing,
                        unseen=self.unseen,
                        extra="ignore",
                        continuous=own,
                    ).numbers
                )
            table = CodedTable(coded.variables, coded.codes, raw.n_rows, weights, coded.kind, numbers)
            if self.complete:
                _refuse_holes(table, self.complete)
        return table

    def run(
        self, task: Task, data: Any, columns: Sequence[str], where: str = "", first_row: int = 0
    ) -> RunningSum:
        """A task's result for one batch, then its number of rows and their weight, ready to be added to others'."""
        table = self.table(data, columns, where, first_row)
        return RunningSum([*task(table), np.array([table.n_rows]), np.array([table.total])])


def _refuse_holes(table: CodedTable, way_out: str) -> None:
    """DataError if a batch misses a value, with its row."""
    for name in table.incomplete:
        if name in table.codes:
            gone = table.codes[name] == next(v.card for v in table.variables if v.name == name)
        else:
            gone = np.isnan(table.numbers[name])
        raise DataError(f"row {np.argmax(gone)}: column {name!r} has missing values; {way_out}")
