"""Opening data that do not fit in memory: any number of files, or tables that come one after the other, as a source.

A pass reads batches, a few at a time, each thread its own; codes the columns that are asked for; counts, and adds up.
Memory is that of the batches under way and of the counts, whatever the number of rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import jobs, require_memory
from bbn.core.budget import memory_limit as parsed_limit
from bbn.core.errors import DataError, ParseError, nearest
from bbn.core.threads import in_order
from bbn.data.coding import UNSEEN, missing_tokens
from bbn.data.error_places import located
from bbn.data.source import DataSource, is_source
from bbn.data.streams.batches import Batch, Part, Reader, is_client, is_dask, reader
from bbn.data.streams.discovery import Column, Discovering, Discovery
from bbn.data.streams.stream import Facts, Streamed
from bbn.data.streams.sums import Sum
from bbn.data.streams.tasks import Coding, Task
from bbn.model.variable import Binned, Continuous, State, Variable

MOST_ROWS = 1 << 17
"""The most rows of a batch where nothing else is said: its codes stay in the processor's cache."""
FEWEST_ROWS = 1 << 10
CELL_BYTES = 16
"""What a value of a batch takes while it is read, coded and merged with its like; text takes four times that."""


def open_data(
    data: Any,
    *,
    states: Mapping[str, Sequence[State]] | None = None,
    variables: Iterable[Variable | str] | None = None,
    weights: str | None = None,
    missing: Any = (),
    unseen: str = "raise",
    memory_limit: int | float | str | None = None,
    n_jobs: int | None = None,
    batch_rows: int | None = None,
    continuous: Iterable[str] = (),
    client: Any = None,
) -> DataSource:
    """Open data that may be larger than memory; every learner takes what comes back.

    Parameters
    ----------
    data
        A folder or a pattern such as "folder/\\*.parquet", a CSV or Parquet file, a list of paths, a pyarrow dataset, a
        Dask DataFrame, or tables of any kind: a list of them, or a function that gives a new iterator for each pass.
    states
        Column to its states, in the order they are to have.
    variables
        The columns that are variables, by name or as variables with their states; all columns unless given.
    weights
        The name of the column that holds the rows' weights.
    missing, unseen
        What else means missing, and what to do with a value that is no state: "raise", or take it as "missing".
    memory_limit
        The most memory that batches and counts may take together, in bytes or as "500MB"; half of the machine's, or
        BBN_MEMORY_LIMIT, unless given.
    n_jobs
        How many threads read and count; the answers do not depend on it.
    batch_rows
        The rows of a batch; chosen from the memory limit unless given. The answers do not depend on it.
    continuous
        Names of columns that are read as numbers.
    client
        A Dask cluster that does the work: its `distributed.Client`, or its scheduler's address such as
        "tcp://10.0.0.1:8786". Its workers must reach the files under the same names. A pair (client, path) is the same.

    Returns
    -------
    DataSource
        With `passes`, how often the data have been read. Nothing is read before it is asked for; states that nobody
        declared, neither here nor the learner, are found in a first pass.

    >>> source = open_data([{"Rain": ["yes", "no"]}, {"Rain": ["no"]}])
    >>> source.n_rows, source.variables, source.counts([("Rain",)])[0], source.passes
    (3, (Variable('Rain', ['no', 'yes']),), array([2, 1]), 2)
    """
    if is_source(data):
        given = (states, variables, weights, memory_limit, n_jobs, batch_rows, client)
        if any(option is not None for option in given) or missing != () or continuous != ():
            raise DataError("the data are open already; say how they are to be read where they are opened")
        opened: DataSource = data
        return opened
    if isinstance(data, tuple) and len(data) == 2 and is_client(data[0]):
        client, data = data
    if unseen not in UNSEEN:
        raise ValueError(f"unseen is {unseen!r}; expected 'raise', 'warn' or 'missing'")
    if batch_rows is not None and not (isinstance(batch_rows, int) and batch_rows >= 1):
        raise ValueError(f"batch_rows is {batch_rows!r}; expected a whole number, 1 or more")
    if client is not None or is_dask(data):
        from bbn.data.streams.dask import open_dask

        return open_dask(
            data,
            client,
            states=states,
            variables=variables,
            weights=weights,
            missing=missing,
            unseen=unseen,
            memory_limit=memory_limit,
            batch_rows=batch_rows,
            continuous=continuous,
        )
    source = reader(data)
    where = str(data) if isinstance(data, str | PathLike) else ""
    there = source.names()
    with located(where):
        wanted, declared, numeric = read_declared(there, variables, states, weights, continuous)
    coding = Coding({}, missing, unseen, weights, tuple(name for name in wanted if name in numeric))
    rows = batch_rows or batch_size(len(wanted), source.text, jobs(n_jobs), parsed_limit(memory_limit))
    facts = from_footers(source, wanted, declared, coding)
    facts.where = where
    return FileStream(source, rows, coding, facts, n_jobs, memory_limit)


def open_for(
    data: Any,
    variables: Iterable[Variable] | None,
    names: Iterable[str] | None,
    states: Mapping[str, Sequence[State]] | None,
    hidden: Iterable[str],
    **options: Any,
) -> DataSource:
    """Open a folder or a pattern for a learner that wants these columns, and has declared what it declares."""
    unseen = set(hidden)
    absent = options.pop("absent", "raise")
    declared: dict[str, Any] = {**(states or {}), **{v.name: v for v in variables or () if v.card}}
    wanted = [v.name for v in variables] if variables is not None else names
    there = tuple(data.columns) if is_dask(data) else reader(data).names()
    if wanted is not None:
        wanted = [name for name in wanted if name in there or (name not in unseen and absent == "raise")]
    own = {name: listed for name, listed in declared.items() if name in there and name not in unseen}
    opened: Any = open_data(data, variables=wanted, states=own, **options)
    opened.require_rows()
    numeric = {*opened.continuous} if variables is not None else options.get("continuous", ())
    view: DataSource = opened.viewed(wanted, own, unseen, numeric)
    return view


def read_batches(data: Any, columns: Sequence[str]) -> tuple[Iterator[Batch], Coding]:
    """The batches of any data, in their order, those of the columns that are there, and how they are to be coded."""
    if isinstance(data, FileStream):
        return data.batches(columns), data.coding
    if is_source(data):
        raise DataError(
            f"a {type(data).__name__} does not give its rows one after the other, so there are no answers row by row; "
            "ask for those of its parts"
        )
    source = reader(data)
    rows = batch_size(len(columns), source.text, jobs(None), parsed_limit(None))
    return FileStream(source, rows, Coding({}), Facts()).batches(columns), Coding({})


def read_declared(
    there: Sequence[str],
    variables: Iterable[Variable | str] | None,
    states: Mapping[str, Sequence[State]] | None,
    weights: str | None,
    continuous: Iterable[str] = (),
) -> tuple[tuple[str, ...], dict[str, Variable], frozenset[str]]:
    """The columns that are wanted, the variables that are declared among them, and which are read as numbers.

    DataError for a name that is no column, or that is declared twice in different ways.
    """
    if isinstance(variables, str | Variable):
        variables = [variables]
    listed = None if variables is None else list(variables)
    numeric = {continuous} if isinstance(continuous, str) else set(continuous)
    declared: dict[str, Variable] = {}
    for one in listed or ():
        if isinstance(one, Continuous):
            numeric.add(one.name)
        elif isinstance(one, Variable):
            declared[one.name] = one
    for name, own in (states or {}).items():
        listed_states = own.states if isinstance(own, Variable) else own
        if name in declared and set(declared[name].states) != set(listed_states):
            raise DataError(
                f"states= gives {name!r} the states {list(listed_states)}, but it has {list(declared[name].states)}"
            )
        declared.setdefault(name, own if isinstance(own, Variable) else Variable(name, own))
    if weights is not None and weights not in there:
        raise DataError(f"weights={weights!r} is no column of the data{nearest(weights, there)}")
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


def batch_size(n_columns: int, text: bool, n_jobs: int, limit: int) -> int:
    """As many rows as leave half of the limit to counts, with a batch for each thread and one in waiting."""
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


def from_footers(
    source: Reader | None, wanted: Sequence[str], declared: Mapping[str, Variable], coding: Coding
) -> Facts:
    """What the files' footers tell: how many rows there are, and of declared columns whether a value may be missing."""
    facts = Facts(wanted, declared, getattr(source, "n_rows", None))
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
        name: Column({(type(s), s): s for s in declared[name].states}, True, False, False, {})
        for name in wanted
    }
    n_rows = facts.n_rows or 0
    facts.found = Discovery(n_rows, Sum([np.array([float(n_rows)])]), columns)
    return facts


class Adding(Protocol):
    """Something found of a batch that adds up with what is found of the next."""

    def merge(self, other: Self) -> Self:
        """What is found of both."""


A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T", bound=Adding)


class Batched(Streamed):
    """A source of batches; one method, `_fold`, says how all of them are worked on.

    Parameters
    ----------
    rows
        The most rows of a batch.
    coding, facts, n_jobs, limit
        As in `Streamed`.
    """

    def __init__(
        self,
        rows: int,
        coding: Coding,
        facts: Facts,
        n_jobs: int | None = None,
        limit: int | float | str | None = None,
    ) -> None:
        super().__init__(coding, facts, n_jobs, limit)
        self.rows = rows

    @abstractmethod
    def _fold(self, work: Callable[[Batch], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of all batches, added up in their order; None if there are none."""

    def fold(self, work: Callable[[Any, str, int], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of the batches (their table, where it is from, its first row), added up in their order."""
        self.facts.passes += 1
        return self._fold(lambda batch: work(*batch), columns)

    def _discover(self) -> Discovery:
        """What a pass finds of all the columns."""
        coding, wanted = self._coding, self.facts.columns
        cut = [name for name, variable in self.facts.declared.items() if isinstance(variable, Binned)]
        numeric = frozenset({*coding.continuous, *cut})
        find = Discovering(wanted, coding.missing, coding.weights, numeric, coding.unseen)
        columns = list(dict.fromkeys([*wanted, *([coding.weights] if coding.weights else [])]))
        nothing = {name: Column({}, False, False, False, {}) for name in wanted}
        found = self._fold(lambda batch: find(*batch), columns)
        return found or Discovery(0, Sum([np.zeros(1)]), nothing)

    def _pass(self, task: Task, columns: Sequence[str]) -> list[NDArray[Any]]:
        """The task on each batch, coded; what they found adds up in their order."""
        known = self.coding.variables
        coding = self.coding._replace(
            variables={name: known[name] for name in columns if name in known},
            continuous=tuple(name for name in columns if name not in known),
        )
        read = [*columns, *([coding.weights] if coding.weights and coding.weights not in columns else [])]
        total = self._fold(lambda batch: coding.run(task, batch.data, columns, *batch[1:]), read)
        *results, rows, weight = [np.zeros(1, np.int64), np.zeros(1)] if total is None else total.result()
        self.facts.learn(int(rows[0]), float(weight[0]))
        if self._some:
            self.require_rows()
        return results


class FileStream(Batched):
    """Batches of files and tables on this machine, read and counted by threads.

    Attributes
    ----------
    reader
        Where batches come from.
    """

    def __init__(
        self,
        source: Reader,
        rows: int,
        coding: Coding,
        facts: Facts,
        n_jobs: int | None = None,
        limit: int | float | str | None = None,
    ) -> None:
        super().__init__(rows, coding, facts, n_jobs, limit)
        self.reader = source

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """The batches in their order, with those of the columns that are there."""
        self.facts.passes += 1
        there = set(self.reader.names())
        wanted = [name for name in columns if name in there]
        for part in self.reader.parts(self.rows):
            try:
                yield from part.batches(wanted, self.rows)
            except (DataError, ParseError):
                for one in part.smaller():
                    deque(one.batches(wanted, self.rows), maxlen=0)
                raise

    def _fold(self, work: Callable[[Batch], T], columns: Sequence[str]) -> T | None:
        """What `work` finds of all batches, added up in their order; None if there are none."""
        if self.reader.parallel:
            parts = in_order(
                lambda part: fold_part(part, work, columns, self.rows),
                self.reader.parts(self.rows),
                self.n_jobs,
            )
            return _merged(found for found in parts if found is not None)
        batches = chain.from_iterable(
            part.batches(columns, self.rows) for part in self.reader.parts(self.rows)
        )
        return _merged(in_order(work, batches, self.n_jobs))


def fold_part(part: Part, work: Callable[[Batch], T], columns: Sequence[str], rows: int) -> T | None:
    """What `work` finds of the batches of one part; an error names the smallest part that is at fault."""
    try:
        return _merged(work(batch) for batch in part.batches(columns, rows))
    except (DataError, ParseError):
        for one in part.smaller():
            fold_part(one, work, columns, rows)
        raise


def _merged(found: Iterable[T]) -> T | None:
    """The sum of what was found, or None of nothing."""
    total: T | None = None
    for one in found:
        total = one if total is None else total.merge(one)
    return total
