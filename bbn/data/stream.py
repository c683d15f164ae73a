"""Streamed data: a source that reads its rows batch by batch, in as many passes as it is asked questions.

Both calls of a source add up over rows, so a question is a task: a function of one coded batch, small enough to be sent
to where the batch is. A source runs it on every batch and adds the results up (see `sums`); how batches are found and
read is all that a kind of source has to say, in one method.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bbn.budget import jobs, memory_limit, require_memory, show_bytes
from bbn.data.coding import code
from bbn.data.counts import Tables
from bbn.data.discovery import Column, Discovery, batch_weights, require_column
from bbn.data.located import located
from bbn.data.source import Block, CodedTable, Family
from bbn.data.sums import Sum
from bbn.data.tables import read_table
from bbn.errors import DataError, nearest
from bbn.frozen import Array
from bbn.variable import Continuous, State, Variable


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
        if isinstance(tables, Tables):
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
    """

    variables: Mapping[str, Variable]
    missing: Any = ()
    unseen: str = "raise"
    weights: str | None = None
    continuous: tuple[str, ...] = ()

    def table(self, data: Any, columns: Sequence[str], where: str = "", first_row: int = 0) -> CodedTable:
        """Some columns of a batch, coded; `where` it is from and the number of its first row are for messages."""
        with located(where, first_row):
            raw = read_table(data)
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
        return CodedTable(coded.variables, coded.codes, raw.n_rows, weights, coded.kind, numbers)

    def run(self, task: Task, data: Any, columns: Sequence[str], where: str = "", first_row: int = 0) -> Sum:
        """A task's result for one batch and last its number of rows, ready to be added to those of others."""
        table = self.table(data, columns, where, first_row)
        return Sum([*task(table), np.array([table.n_rows])])


class Streamed(ABC):
    """A data source that reads its data batch by batch; one method, `_pass`, says how.

    Parameters
    ----------
    coding
        How batches are coded.
    found
        What is known of the columns, from a pass of `Discovering` or otherwise.
    n_jobs
        How many threads read, code and count; None is OMP_NUM_THREADS, or else the number of cores.
    limit
        The most memory that batches and results together may take, as `memory_limit=` takes it.

    Attributes
    ----------
    passes
        How many passes over the data were made so far, discovery among them.
    """

    def __init__(
        self,
        coding: Coding,
        found: Discovery,
        n_jobs: int | None = None,
        limit: int | float | str | None = None,
    ) -> None:
        self.coding = coding
        self.found = found
        self.n_jobs = jobs(n_jobs)
        self.limit = memory_limit(limit)
        self._passes = [0]  # shared by the views of one source

    @abstractmethod
    def _pass(self, task: Task, columns: Sequence[str]) -> list[NDArray[Any]]:
        """Code these columns of each batch, do the task on it, and add the results up in the order of the batches."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The discrete variables that have a column."""
        return tuple(self.coding.variables.values())

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return self.coding.continuous

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.found.n_rows

    @property
    def total(self) -> float:
        """The sum of the rows' weights."""
        return float(self.found.total.result()[0][0])

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the variables with a missing value in some row."""
        return tuple(
            name
            for name in (*self.coding.variables, *self.coding.continuous)
            if self._misses(self.found.columns[name], self.coding.variables.get(name))
        )

    def _misses(self, column: Column, variable: Variable | None) -> bool:
        """Whether some row has no value, or one that is no state of the variable and so is taken as missing."""
        if column.missing or variable is None or self.coding.unseen == "raise":
            return column.missing
        return any(not _is_state(variable, value, column.text) for value in column.values.values())

    @property
    def passes(self) -> int:
        """How many passes over the data were made so far, discovery among them."""
        return self._passes[0]

    def counts(self, families: Sequence[Family]) -> Sequence[NDArray[Any]]:
        """One contingency table per family, axes in the family's order, from one pass over the columns they name.

        Counts are int64, or float64 where rows have weights; rows that miss one of a family are left out. Several
        passes are made only where the tables of all families would not fit into the memory limit several times.
        """
        listed = tuple(tuple(family) for family in families)
        if not listed:
            return []
        known = self.coding.variables
        for name in (name for family in listed for name in family):
            if name not in known:
                raise DataError(f"the data have no column {name!r}{nearest(name, known)}")
        lengths = np.array([known[name].card for family in listed for name in family], dtype=np.int64)
        ptr = np.cumsum([0, *map(len, listed)], dtype=np.int64)
        sizes = [float(np.prod(lengths[a:b], dtype=np.float64)) for a, b in pairwise(ptr)]
        groups = self._groups(listed, sizes)
        dtype = np.int64 if self.coding.weights is None else np.float64
        cells = [self._count(listed[a:b], int(sum(sizes[a:b])), dtype) for a, b in groups]
        offsets = np.cumsum([0, *sizes]).astype(np.int64)
        return Tables(cells[0] if len(cells) == 1 else np.concatenate(cells), offsets, lengths, ptr)

    def _groups(self, families: Sequence[Family], sizes: Sequence[float]) -> list[tuple[int, int]]:
        """Families to ask for in one pass: as many as leave room for the tables of all threads at once."""
        if 8 * sum(sizes) > self.limit:
            require_memory(
                int(8 * sum(sizes)),
                f"the counts of {len(sizes)} families",
                "ask for fewer at a time",
                self.limit,
            )
        room = self.limit / (8 * (self.n_jobs + 3))
        ends = [0]
        held = 0.0
        for f, size in enumerate(sizes):
            if size > room:
                require_memory(
                    int(8 * size * (self.n_jobs + 3)),
                    f"counting {', '.join(families[f])} on {self.n_jobs} threads",
                    "use fewer parents or states, or n_jobs=1",
                    self.limit,
                )
            if held + size > room:
                ends.append(f)
                held = 0.0
            held += size
        return list(zip(ends, [*ends[1:], len(sizes)], strict=True))

    def _count(self, families: tuple[tuple[str, ...], ...], size: int, dtype: Any) -> NDArray[Any]:
        columns = tuple(dict.fromkeys(name for family in families for name in family))
        if not columns:  # families without members: how many rows there are
            return np.full(size, self.total).astype(dtype)
        parts = self._counted_pass(Counting(families), columns)
        return parts[0] if parts else np.zeros(size, dtype)

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over batches of the arrays that f returns for each, repeated rows of a batch merged.

        f is sent to where batches are, so it must pickle where that is another process. An attribute `columns` of it,
        if it has one, names the columns that it looks at.
        """
        there = (*self.coding.variables, *self.coding.continuous)
        wanted = getattr(f, "columns", None)
        columns = there if wanted is None else tuple(name for name in there if name in set(wanted))
        return self._counted_pass(Reducing(f), columns)

    def _counted_pass(self, task: Task, columns: Sequence[str]) -> list[NDArray[Any]]:
        self._passes[0] += 1
        return self._pass(task, columns)

    def viewed(
        self,
        names: Iterable[str] | None = None,
        declared: Mapping[str, Variable | Sequence[State]] | None = None,
        hidden: Iterable[str] = (),
        continuous: Iterable[str] = (),
    ) -> Self:
        """The same data as a learner wants them: these columns, with these states, in this order of states.

        DataError if a column is not there, holds no value, is hidden but holds some, holds a value that is no state, or
        has numbers where states are wanted or the other way round.
        """
        unseen = set(hidden)
        numeric = {continuous} if isinstance(continuous, str) else set(continuous)
        numeric |= {name for name, own in (declared or {}).items() if isinstance(own, Continuous)}
        known = self.coding.variables
        variables: dict[str, Variable] = {}
        for name in known if names is None else names:
            column = self.found.columns.get(name)
            if name in unseen:
                if column is not None and column.values:
                    value = next(iter(column.values.values()))
                    raise DataError(f"hidden variable {name!r} has values in the data, such as {value!r}")
            elif name in self.coding.continuous:
                if names is not None and name not in numeric:
                    raise DataError(
                        f"the data give {name!r} numbers, but it is not continuous; continuous= says so"
                    )
            elif name in numeric and name in known:
                raise DataError(
                    f"the data give {name!r} states, but it is continuous: open them with continuous=[{name!r}]"
                )
            elif column is None or (name not in known and column.values):
                raise DataError(f"the data have no column {name!r}{nearest(name, self.found.columns)}")
            else:
                variables[name] = self._viewed(name, column, (declared or {}).get(name))
        view = copy.copy(self)
        view.coding = self.coding._replace(
            variables=variables,
            continuous=tuple(n for n in self.coding.continuous if names is None or n in set(names)),
        )
        return view

    def _viewed(self, name: str, column: Column, own: Variable | Sequence[State] | None) -> Variable:
        """The variable of a column, its states as declared if they are."""
        if own is None and name not in self.coding.variables:
            raise DataError(
                f"column {name!r} holds no value at all; if it was never observed, say "
                f"hidden={{{name!r}: [its states]}}"
            )
        if own is None:
            return self.coding.variables[name]
        variable = own if isinstance(own, Variable) else Variable(name, own)
        odd = next((v for v in column.values.values() if not _is_state(variable, v, column.text)), None)
        if odd is not None and self.coding.unseen == "raise" and not column.declared:
            self._refuse(variable, odd)
        return variable

    def _refuse(self, variable: Variable, odd: Any) -> NoReturn:
        """DataError about a value that is no state, from one more pass that says where it is."""
        view = copy.copy(self)
        view.coding = self.coding._replace(variables={variable.name: variable}, continuous=())
        view._counted_pass(Counting(((variable.name,),)), (variable.name,))
        raise DataError(
            f"column {variable.name!r}: {variable.unknown(odd)}; unseen='missing' takes it as missing"
        )

    def __repr__(self) -> str:
        n = len(self.coding.variables) + len(self.coding.continuous)
        return (
            f"<{type(self).__name__}: {self.n_rows} rows, {n} variables, "
            f"{self.passes} pass{'es' * (self.passes != 1)}, at most {show_bytes(self.limit)}>"
        )


def _is_state(variable: Variable, value: Any, text: bool) -> bool:
    """Whether a value found in the data is a state of the variable, by the rules of coding."""
    if text:
        return any(str(state) == value for state in variable.states)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return variable.find(str(value) if type(value).__name__ == "Interval" else value) is not None
