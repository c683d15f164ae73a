"""What is known of data before a pass and after it: columns, declared variables, rows, and how many fit in a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import DataError, nearest
from bbn.data.column_states import missing_tokens
from bbn.data.streams.discovery import Discovery, FoundColumn
from bbn.data.streams.readers import Reader
from bbn.data.streams.sums import RunningSum
from bbn.data.streams.tasks import Coding
from bbn.model.variable import Continuous, State, Variable, check_states

MOST_ROWS = 1 << 17
"""The most rows of a batch where nothing else is said: its codes stay in the processor's cache."""
FEWEST_ROWS = 1 << 10
CELL_BYTES = 16
"""What a value of a batch takes while it is read, coded and merged with its like; text takes four times that."""


class Facts:
    """What is known of the data so far, shared by the views of one source.

    Attributes
    ----------
    columns
        The columns that are wanted.
    declared
        The variables that were declared among them where the data were opened.
    where
        The path or the pattern that was opened, for messages; empty for data that have none.
    n_rows, total
        The number of rows and the sum of their weights, or None before they are known.
    found
        What a pass of discovery found of the columns, by the columns that were said to be numbers, and whether others
        were taken as such by what they hold.
    decimals
        The decimal mark of each column of text that is numbers; None before all rows were asked.
    passes
        How many passes over the data were made so far, discovery among them.
    """

    def __init__(
        self,
        columns: Sequence[str] = (),
        declared: Mapping[str, Variable] | None = None,
        n_rows: int | None = None,
        where: str = "",
    ) -> None:
        self.columns = tuple(columns)
        self.declared = dict(declared or {})
        self.n_rows = n_rows
        self.where = where
        self.total: float | None = None
        self.found: dict[tuple[frozenset[str], bool], Discovery] = {}
        self.decimals: Mapping[str, str] | None = None
        self.passes = 0

    def learn(self, n_rows: int, total: float) -> None:
        """Record what a pass says about the rows; DataError if another pass said something else."""
        if self.n_rows is not None and self.n_rows != n_rows:
            raise DataError(
                f"the data had {self.n_rows} rows when they were opened, but this pass found {n_rows}; open them again"
            )
        if n_rows and not total:
            raise DataError("every weight is 0; at least one row must count")
        self.n_rows, self.total = n_rows, total


def read_declared(
    there: Sequence[str],
    variables: Iterable[Variable | str] | None,
    states: Mapping[str, Sequence[State]] | None,
    weights: str | None,
    continuous: str | Iterable[str] | None = (),
) -> tuple[tuple[str, ...], dict[str, Variable], frozenset[str]]:
    """The columns that are wanted, the variables that are declared among them, and which are said to hold numbers.

    DataError for a name that is not a column, or that is declared twice in different ways.
    """
    if isinstance(variables, str | Variable):
        variables = [variables]
    listed = None if variables is None else list(variables)
    numeric = {continuous} if isinstance(continuous, str) else set(continuous or ())
    declared: dict[str, Variable] = {}
    for one in listed or ():
        if isinstance(one, Continuous):
            numeric.add(one.name)
        elif isinstance(one, Variable):
            declared[one.name] = one
    for name, own in (states or {}).items():
        if isinstance(own, Continuous):
            numeric.add(name)
            continue
        variable = own if isinstance(own, Variable) else Variable(name, own)
        if name in declared:
            check_states(name, variable.states, declared[name].states)
        declared.setdefault(name, variable)
    if weights is not None and weights not in there:
        raise DataError(f"weights={weights!r} is not a column of the data{nearest(weights, there)}")
    if listed is None:
        wanted = tuple(name for name in there if name != weights)
    else:
        wanted = tuple(one.name if isinstance(one, Variable) else one for one in listed)
    for name in (*wanted, *declared, *sorted(numeric)):
        if name not in there:
            raise DataError(f"the data have no column {name!r}{nearest(name, there)}")
        if name in declared and name in numeric:
            raise DataError(
                f"{name!r} is declared with states, but also continuous: it has either states or numbers"
            )
    return wanted, declared, frozenset(numeric)


def from_footers(
    source: Reader | None, wanted: Sequence[str], declared: Mapping[str, Variable], coding: Coding
) -> Facts:
    """What the files' footers say: how many rows there are, and whether declared columns may miss a value."""
    facts = Facts(wanted, declared, getattr(source, "n_rows", None), source.where if source else "")
    plain = not (coding.weights or coding.continuous or missing_tokens(coding.missing))
    complete: Any = getattr(source, "complete", None)
    if (
        not plain
        or coding.unseen != "raise"
        or set(wanted) - set(declared)
        or not complete
        or not complete(wanted)
    ):
        return facts
    columns = {
        name: FoundColumn({(type(s), s): s for s in declared[name].states}, True, False, False, {})
        for name in wanted
    }
    n_rows = facts.n_rows or 0
    found = Discovery(n_rows, RunningSum([np.array([float(n_rows)])]), columns)
    facts.found[frozenset(), coding.by_kind] = found
    return facts


def batch_size(n_columns: int, text: bool, n_jobs: int, limit: int) -> int:
    """The rows of a batch: half of the limit is left to counts, the rest holds a batch per thread and one waiting."""
    row = CELL_BYTES * (4 if text else 1) * max(n_columns, 1)
    rows = limit // (2 * (n_jobs + 1) * row)
    if rows < FEWEST_ROWS:
        require_memory(
            2 * (n_jobs + 1) * row * FEWEST_ROWS,
            f"batches of {FEWEST_ROWS} rows on {n_jobs} threads",
            "n_jobs=1 takes less, batch_rows= sets the size",
            limit,
        )
    return min(rows, MOST_ROWS)
