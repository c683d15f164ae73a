"""Streamed data: a source that reads its rows batch by batch, in as many passes as it is asked questions.

Both calls of a source add up over rows, so a question is a task: a function of one coded batch, small enough to be sent
to where the batch is. A source runs it on every batch and adds the results up (see `sums`); a kind of source has
only to say how batches are found and read, in one method.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import jobs, memory_limit, require_memory, show_bytes
from bbn.core.errors import AmbiguousNumbersError, DataError, nearest
from bbn.core.frozen import Array
from bbn.data.column_codes import finder
from bbn.data.column_states import missing_tokens
from bbn.data.columns import NO_ROWS
from bbn.data.counts import ContingencyTables
from bbn.data.error_places import located
from bbn.data.profile import Profiling
from bbn.data.source import Block, Family
from bbn.data.streams.discovery import Discovering, Discovery, FoundColumn, discovered_variables
from bbn.data.streams.facts import Facts
from bbn.data.streams.readers import Batch
from bbn.data.streams.sums import RunningSum, T
from bbn.data.streams.tasks import Coding, Counting, Reducing, Task
from bbn.data.text_values import NUMBERS, chosen_form, decimal_mark
from bbn.model.binned import Binned
from bbn.model.variable import Continuous, State, Variable

R = TypeVar("R")


class Streamed(ABC):
    """A data source that reads its data batch by batch; one method, `_fold`, says how all of them are worked on.

    Nothing is read before it is asked for. Where a learner declares all states one pass counts, and checks that all
    values are states; otherwise a first pass finds the states.

    Parameters
    ----------
    rows
        The most rows of a batch.
    coding
        How batches are coded; the variables are those that the facts declare, or else are found.
    facts
        What is known of the data.
    n_jobs
        How many threads read, code and count; None is OMP_NUM_THREADS if set, otherwise the number of cores.
    limit
        The most memory that batches and results together may take, as `memory_limit=` takes it.

    Attributes
    ----------
    passes
        How many passes over the data were made so far, discovery among them.
    """

    def __init__(
        self,
        rows: int,
        coding: Coding,
        facts: Facts,
        n_jobs: int | None = None,
        limit: int | float | str | None = None,
    ) -> None:
        self.rows = rows
        self.facts = facts
        self.n_jobs = jobs(n_jobs)
        self.limit = memory_limit(limit)
        self._coding = coding._replace(variables=facts.declared)
        self._settled = {*facts.columns} == {*facts.declared, *coding.continuous}
        self._kinds = (frozenset(coding.continuous), coding.by_kind)
        self._told = bool(coding.continuous) or coding.by_kind
        self._some = False

    @abstractmethod
    def _fold(self, work: Callable[[Batch], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of all batches, added up in their order; None if there are none."""

    def fold(self, work: Callable[[Any, str, int], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of the batches (their table, where it is from, its first row), added up in their order."""
        self.facts.passes += 1
        return self._fold(lambda batch: work(*batch), columns)

    @property
    def found(self) -> Discovery:
        """What is known of the columns; if nothing is yet, from a pass."""
        as_states = (self._kinds[0], False)
        if self._kinds not in self.facts.found and as_states in self.facts.found:
            self.facts.found[self._kinds] = self.facts.found[
                as_states
            ]  # all values are there to tell kinds by
        if self._kinds not in self.facts.found:
            self.facts.passes += 1
            coding, wanted = self._coding, self.facts.columns
            cut = [name for name, variable in self.facts.declared.items() if isinstance(variable, Binned)]
            numeric = frozenset({*coding.continuous, *cut})
            columns = list(dict.fromkeys([*wanted, *([coding.weights] if coding.weights else [])]))
            nothing = {name: FoundColumn({}, False, False, False, {}) for name in wanted}

            def look(decimals: Mapping[str, str] | None) -> Discovery | None:
                find = Discovering(
                    wanted,
                    coding.missing,
                    coding.weights,
                    numeric,
                    coding.unseen,
                    coding.by_kind,
                    coding.decimal,
                    decimals,
                )
                return self._fold(lambda batch: find(*batch), columns)

            found = self._decided(look)
            found = found or Discovery(0, RunningSum([np.zeros(1)]), nothing)
            self.facts.learn(found.n_rows, float(found.total.result()[0][0]))
            self.facts.found[self._kinds] = found
        return self.facts.found[self._kinds]

    def _decided(self, ask: Callable[[Mapping[str, str] | None], R]) -> R:
        """What `ask` gives; where some rows do not tell what a comma means, it is asked again after all have been."""
        try:
            return ask(self.facts.decimals)
        except AmbiguousNumbersError:
            if self.facts.decimals is not None:
                raise
        self.facts.passes += 1
        columns = tuple(dict.fromkeys([*self.facts.columns, *filter(None, [self._coding.weights])]))
        look = Profiling(
            columns, frozenset(missing_tokens(self._coding.missing)), decimal=self._coding.decimal
        )
        profiles = self._fold(lambda batch: look(*batch), columns)
        assert profiles is not None  # some row has been met
        forms = {name: chosen_form(own.forms, own.decimal) for name, own in profiles.columns.items()}
        self.facts.decimals = {name: decimal_mark(form) for name, form in forms.items() if form & NUMBERS}
        return ask(self.facts.decimals)

    @property
    def discovered(self) -> bool:
        """Whether it is known what the columns hold, so that asking for it takes no pass."""
        return self._kinds in self.facts.found

    @property
    def coding(self) -> Coding:
        """How batches are coded; a pass finds the states that were not declared."""
        if not self._settled:
            facts, missing = self.facts, self._coding.missing
            found = self.found
            numeric = self._coding.continuous
            if self._coding.by_kind:
                found = facts.found[self._kinds] = found.by_kind(facts.declared, missing)
                numeric = found.numeric(facts.declared)
            with located(facts.where):
                variables = discovered_variables(found, facts.columns, facts.declared, missing)
            self._coding = self._coding._replace(variables={v.name: v for v in variables}, continuous=numeric)
            self._settled = True
        return self._coding

    @property
    def decimal(self) -> Any:
        """What was told of decimal marks where the data were opened."""
        return self._coding.decimal

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The discrete variables that have a column."""
        return tuple(self.coding.variables.values())

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return self.coding.continuous if self._coding.by_kind else self._coding.continuous

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.found.n_rows if self.facts.n_rows is None else self.facts.n_rows

    @property
    def total(self) -> float:
        """The sum of the rows' weights."""
        if self._coding.weights is None:
            return float(self.n_rows)
        return float(self.found.total.result()[0][0]) if self.facts.total is None else self.facts.total

    def require_rows(self) -> None:
        """DataError if it is known that there are no rows."""
        if self.facts.n_rows == 0:
            raise DataError(NO_ROWS)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the variables with a missing value in some row."""
        coding = self.coding
        if coding.complete:
            return ()
        return tuple(
            name
            for name in (*coding.variables, *coding.continuous)
            if self._misses(self.found.columns[name], coding.variables.get(name))
        )

    def _misses(self, column: FoundColumn, variable: Variable | None) -> bool:
        """Whether some row has no value, or one that is not a state of the variable and counts as missing."""
        if column.missing or variable is None or column.continuous:
            return column.missing
        gone = (variable.card,) if self.coding.unseen == "raise" else (None, variable.card)
        find = finder(variable, list(column.values.values()), column.decimal)
        return any(find(value) in gone for value in column.values.values())

    def completed(self, way_out: str) -> Self:
        """The same data for a learner that takes no missing values: a pass that finds one is a DataError.

        So no pass is needed to find out beforehand.
        """
        view = copy.copy(self)
        view._coding = self.coding._replace(complete=way_out)
        return view

    @property
    def undecided(self) -> bool:
        """Whether nothing was said about what the columns hold when the data were opened."""
        said = self.facts.declared or self._coding.weights or missing_tokens(self._coding.missing)
        return not (self._told or said)

    def reopened(self, variables: Sequence[Variable], **coding: Any) -> Self:
        """The same data as if they had been opened for these variables; `coding` are other fields of `Coding`."""
        declared = {v.name: v for v in variables if not isinstance(v, Continuous)}
        numeric = tuple(v.name for v in variables if isinstance(v, Continuous))
        view = copy.copy(self)
        view.facts = Facts([v.name for v in variables], declared, self.facts.n_rows, self.facts.where)
        view._coding = self._coding._replace(variables=declared, continuous=numeric, by_kind=False, **coding)
        view._kinds, view._settled, view._told = (frozenset(numeric), False), True, True
        return view

    @property
    def passes(self) -> int:
        """How many passes over the data were made so far, discovery among them."""
        return self.facts.passes

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
        return ContingencyTables(
            cells[0] if len(cells) == 1 else np.concatenate(cells), offsets, lengths, ptr
        )

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
        parts = self._pass(Counting(families), columns)
        return parts[0] if parts else np.zeros(size, dtype)

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over batches of the arrays that f returns for each, repeated rows of a batch merged.

        f is sent to where batches are, so it must pickle where that is another process. An attribute `columns` of it,
        if it has one, names the columns that it looks at.
        """
        there = (*self.coding.variables, *self.coding.continuous)
        wanted = getattr(f, "columns", None)
        columns = there if wanted is None else tuple(name for name in there if name in set(wanted))
        return self._pass(Reducing(f), columns)

    def _pass(self, task: Task, columns: Sequence[str]) -> list[NDArray[Any]]:
        """The task on each batch, coded; the results are added up in the order of the batches."""
        self.facts.passes += 1
        known = self.coding.variables
        coding = self.coding._replace(
            variables={name: known[name] for name in columns if name in known},
            continuous=tuple(name for name in columns if name not in known),
        )
        read = [*columns, *([coding.weights] if coding.weights and coding.weights not in columns else [])]

        def run(decimals: Mapping[str, str] | None) -> RunningSum | None:
            own = coding._replace(decimals=decimals)
            return self._fold(lambda batch: own.run(task, batch.data, columns, *batch[1:]), read)

        total = self._decided(run)
        *results, rows, weight = [np.zeros(1, np.int64), np.zeros(1)] if total is None else total.result()
        self.facts.learn(int(rows[0]), float(weight[0]))
        if self._some:
            self.require_rows()
        return results

    def viewed(
        self,
        names: Iterable[str] | None = None,
        declared: Mapping[str, Variable | Sequence[State]] | None = None,
        hidden: Iterable[str] = (),
        continuous: str | Iterable[str] | None = (),
    ) -> Self:
        """The same data as a learner wants them: these columns, with these states, in this order of states.

        DataError if a column is absent, holds no value, is hidden but holds some, holds a value that is not a state,
        or has numbers where states are wanted or the other way round. Where nothing was said about numbers when the
        data were opened, `continuous` means what it means for a table in memory.
        """
        unseen = set(hidden)
        by_kind = continuous is None
        numeric = {continuous} if isinstance(continuous, str) else set(continuous or ())
        numeric |= {name for name, own in (declared or {}).items() if isinstance(own, Continuous)}
        given: dict[str, Any] = {**self.facts.declared, **(declared or {})}
        stated = {name for name, own in given.items() if not isinstance(own, Continuous)}
        if not self._told:
            names = None if names is None else list(names)
            open_ones = {*(self.facts.columns if names is None else names)} - stated - unseen
            if numeric or (by_kind and open_ones):
                return self._deciding(numeric, by_kind).viewed(names, declared, hidden, continuous)
        variables: dict[str, Variable] = {}
        wanted = [*self.coding.variables, *self.continuous] if names is None else list(names)
        for name in wanted:
            there = name in self.facts.columns
            if name in unseen:
                column = self.found.columns[name] if there else None
                if column is not None and column.values:
                    value = next(iter(column.values.values()))
                    raise DataError(f"hidden variable {name!r} has values in the data, such as {value!r}")
            elif name in self.continuous and not (by_kind and name in stated):
                if names is not None and name not in numeric and not by_kind:
                    raise DataError(
                        f"the data give {name!r} numbers, but it is not continuous; continuous= says so"
                    )
            elif name in numeric and there:
                raise DataError(
                    f"the data give {name!r} states, but it is continuous: open them with continuous=[{name!r}]"
                )
            elif not there:
                where = f"{self.facts.where}: " if self.facts.where else ""
                raise DataError(f"{where}the data have no column {name!r}{nearest(name, self.facts.columns)}")
            else:
                variables[name] = self._viewed(name, given.get(name))
        view = copy.copy(self)
        view._coding = self._coding._replace(
            variables=variables,
            continuous=tuple(n for n in self.continuous if n in wanted and n not in variables),
        )
        view._settled = view._some = view._told = True
        return view

    def _deciding(self, numeric: set[str], by_kind: bool) -> Self:
        """The same data with these columns as numbers, and by kind also those that hold such."""
        for name in sorted(numeric):
            if name not in self.facts.columns:
                raise DataError(f"the data have no column {name!r}{nearest(name, self.facts.columns)}")
            if name in self.facts.declared:
                states = list(self.facts.declared[name].states)
                raise DataError(f"the data give {name!r} the states {states}, but it is continuous")
        view = copy.copy(self)
        own = tuple(name for name in self.facts.columns if name in numeric)
        view._coding = self._coding._replace(variables=self.facts.declared, continuous=own, by_kind=by_kind)
        view._settled = {*self.facts.columns} == {*self.facts.declared, *own}
        view._kinds, view._told = (frozenset(own), by_kind), True
        return view

    def _viewed(self, name: str, own: Variable | Sequence[State] | None) -> Variable:
        """The variable of a column, its states as declared if they are; if not, those that are found."""
        if own is None:
            if name not in self.coding.variables:
                raise DataError(
                    f"column {name!r} holds no value at all; if it was never observed, say "
                    f"hidden={{{name!r}: [its states]}}"
                )
            return self.coding.variables[name]
        variable = own if isinstance(own, Variable) else Variable(name, own)
        if self.discovered and self._coding.unseen == "raise":
            column = self.found.columns[name]
            find = finder(variable, list(column.values.values()), column.decimal)
            odd = next((v for v in column.values.values() if find(v) is None), None)
            if odd is not None and not column.declared:
                self._refuse(variable, odd)
        return variable

    def _refuse(self, variable: Variable, odd: Any) -> NoReturn:
        """DataError about a value that is not a state, from one more pass that finds its place."""
        view = copy.copy(self)
        view._coding = self._coding._replace(variables={variable.name: variable}, continuous=())
        view._settled = True
        view._pass(Counting(((variable.name,),)), (variable.name,))
        raise DataError(
            f"column {variable.name!r}: {variable.unknown(odd)}; unseen='missing' takes it as missing"
        )

    def __repr__(self) -> str:
        rows = "rows not counted yet" if self.facts.n_rows is None else f"{self.facts.n_rows} rows"
        n = len(self.coding.variables) + len(self.continuous) if self._settled else len(self.facts.columns)
        return (
            f"<{type(self).__name__}: {rows}, {n} variables, "
            f"{self.passes} pass{'es' * (self.passes != 1)}, at most {show_bytes(self.limit)}>"
        )
