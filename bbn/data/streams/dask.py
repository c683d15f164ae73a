"""Data on a Dask cluster, or in a Dask DataFrame: partitions stay where they are, and questions go to them.

A pass is one Dask graph. The work is sent out once; each partition is read, coded and counted where it is, in one
step, and its result, a few kilobytes of counts, is added to those of its neighbours, FAN_IN at a time, always in the
order of the partitions:

    work ──┬── partition 0 ─┐
           ├── …            ├── sum of 0…7 ─┐
           ├── partition 7 ─┘               ├── sum of 0…63 ── …
           └── partition 8 ─── …          ──┘

Sums are exact for integers and kept to twice the precision of a double for floats (see `sums`), so neither the tree
nor the workers show in the answer. A pass over P partitions moves at most P results, in ⌈log P / log FAN_IN⌉ levels.
"""

from __future__ import annotations

import copy
import os
import pickle
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bbn.core.budget import memory_limit as parsed_limit
from bbn.core.errors import DataError
from bbn.data.columns import Decimal, checked_decimal, checked_names
from bbn.data.streams.dask_cluster import Cluster
from bbn.data.streams.facts import MOST_ROWS, Facts, batch_size, from_footers, read_declared
from bbn.data.streams.file_stream import fold_part
from bbn.data.streams.readers import Batch, ListedTables, Part, Reader, TablePart, is_dask, reader
from bbn.data.streams.stream import Streamed
from bbn.data.streams.tasks import Coding
from bbn.model.variable import State, Variable

FAN_IN = 8
"""How many partial sums one step of the reduction adds."""
MOST_STEPS = 2048
"""The most partitions of files; more parts share them, as Dask's scheduler takes up to a millisecond for each."""


def open_dask(
    data: Any,
    client: Any = None,
    *,
    states: Mapping[str, Sequence[State]] | None = None,
    variables: Iterable[Variable | str] | None = None,
    weights: str | None = None,
    missing: Any = (),
    unseen: str = "raise",
    memory_limit: int | float | str | None = None,
    batch_rows: int | None = None,
    continuous: str | Iterable[str] | None = (),
    decimal: Decimal = None,
) -> Clustered:
    """The source behind `open_data` for a Dask DataFrame, or for files that a cluster's workers can reach.

    >>> import dask.dataframe, pandas
    >>> frame = dask.dataframe.from_pandas(pandas.DataFrame({"A": ["x", "y", "x"]}), npartitions=2)
    >>> source = open_dask(frame)
    >>> source.n_rows, source.counts([("A",)])[0]
    (3, array([2, 1]))
    """
    partitions = _partitions(data)
    wanted, declared, numeric = read_declared(partitions.names(), variables, states, weights, continuous)
    own = tuple(name for name in wanted if name in numeric)
    checked_decimal(decimal, partitions.names())
    coding = Coding({}, missing, unseen, weights, own, by_kind=continuous is None, decimal=decimal)
    rows = batch_rows or batch_size(len(wanted), partitions.text, 1, parsed_limit(memory_limit))
    footers = partitions.source if isinstance(partitions, Files) else None
    facts = from_footers(footers, wanted, declared, coding)
    return Clustered(partitions, Cluster(client), rows, coding, facts, memory_limit)


def rows_of(data: Any, client: Any = None) -> Clustered:
    """The same data for callers that only want the rows: nothing is found out about the columns."""
    return Clustered(_partitions(data), Cluster(client), MOST_ROWS, Coding({}), Facts())


def _partitions(data: Any) -> Partitions:
    """Where the rows are; paths from the root on, as workers have a folder of their own to start from."""
    if is_dask(data):
        return Frames(data)
    if isinstance(data, str | os.PathLike):
        data = os.path.abspath(data)
    elif isinstance(data, list | tuple) and all(isinstance(path, str | os.PathLike) for path in data):
        data = [os.path.abspath(path) for path in data]
    return Files(reader(data))


class Work(NamedTuple):
    """What is done where a partition is, and adds up over partitions."""

    of_batch: Callable[[Batch], Any]
    columns: tuple[str, ...]
    rows: int
    """The most rows of a batch."""

    def of_parts(self, parts: Iterable[Part]) -> Any:
        """What is found of all batches of some parts, None if there are none."""
        return _added([fold_part(part, self.of_batch, self.columns, self.rows) for part in parts])


class Tabling(Work):
    """What makes a table of each batch; tables follow each other."""

    def of_parts(self, parts: Iterable[Part]) -> Any:
        """One table of some parts."""
        import pandas as pd

        tables = [self.of_batch(batch) for part in parts for batch in part.batches(self.columns, self.rows)]
        return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


class Partitions(Protocol):
    """Rows in parts that workers can reach."""

    text: bool
    """Whether values may be text, one Python object each."""

    def names(self) -> tuple[str, ...]:
        """The columns."""

    def results(self, sent: Any, work: Work) -> list[Any]:
        """One Delayed per partition: what the work finds of it. `sent` is the work as a Delayed, on its way."""

    def mapped(self, sent: Any, work: Work, meta: Any) -> Any:
        """A Dask collection like `meta`, of what the work makes of each partition."""


class Frames:
    """The partitions of a Dask DataFrame.

    Columns that are not wanted are not read where the DataFrame is made from files, and reading is fused with the
    work, so no partition leaves the worker that reads it.
    """

    text = True

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "map_partitions") or getattr(frame, "ndim", 0) != 2:
            raise DataError(f"data is a Dask {type(frame).__name__}; expected a Dask DataFrame")
        self.frame = frame

    def names(self) -> tuple[str, ...]:
        """The columns."""
        return checked_names(self.frame.columns)

    def results(self, sent: Any, work: Work) -> list[Any]:
        """One Delayed per partition."""
        import pandas as pd

        return list(self.mapped(sent, work, pd.Series(dtype=object)).to_delayed())

    def mapped(self, sent: Any, work: Work, meta: Any) -> Any:
        """What the work makes of each partition."""
        return self.frame[list(work.columns)].map_partitions(
            _of_frame, sent, meta=meta, enforce_metadata=False
        )


class Files:
    """Files that the workers reach under the same names as this process."""

    def __init__(self, source: Reader) -> None:
        if isinstance(source, ListedTables):
            raise DataError(
                "a cluster cannot read tables in this process; pass a path that its workers can read, or a Dask "
                "DataFrame (dask.dataframe.from_pandas makes one of a table)"
            )
        self.source = source
        self.text = source.text
        if hasattr(source, "dataset"):
            self.parts(MOST_ROWS)  # DataError if it is not one of files

    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.source.names()

    def parts(self, rows: int) -> list[Part]:
        """The parts of the files; those of a pyarrow dataset are its files."""
        dataset = getattr(self.source, "dataset", None)
        if dataset is None:
            return list(self.source.parts(rows))
        from bbn.data.streams.datasets import by_file

        return list(by_file(dataset))

    def results(self, sent: Any, work: Work) -> list[Any]:
        """One Delayed per part of the files, or per few where there are very many."""
        from dask import delayed

        parts = self.parts(work.rows)
        few = -(-len(parts) // MOST_STEPS)
        return [
            delayed(_of_parts)(pickle.dumps(parts[at : at + few]), sent, dask_key_name=_key("part", sent, at))
            for at in range(0, len(parts), few)
        ]

    def mapped(self, sent: Any, work: Work, meta: Any) -> Any:
        """What the work makes of the parts."""
        import dask.dataframe as dd

        return dd.from_delayed(self.results(sent, work), meta=meta, verify_meta=False)


class Clustered(Streamed):
    """A data source whose partitions are on a Dask cluster.

    Parameters
    ----------
    partitions
        Where the rows are.
    cluster
        Who does the work.
    rows, coding, facts, limit
        As in `Streamed`.
    """

    def __init__(
        self,
        partitions: Partitions,
        cluster: Cluster,
        rows: int,
        coding: Coding,
        facts: Facts,
        limit: Any = None,
    ) -> None:
        super().__init__(rows, coding, facts, n_jobs=1, limit=limit)
        self.partitions = partitions
        self.cluster = cluster

    def _fold(self, work: Callable[[Batch], Any], columns: Sequence[str]) -> Any:
        """What `work` finds of all batches, added up in the order of the partitions by a tree."""
        from dask import delayed

        whole = Work(work, tuple(columns), self.rows)
        sent = _sent(whole)
        level = self.partitions.results(sent, whole)
        depth = 0
        while len(level) > 1 or depth == 0:
            depth += 1
            level = [
                delayed(_added)(level[at : at + FAN_IN], dask_key_name=_key("sum", sent, depth, at))
                for at in range(0, len(level), FAN_IN)
            ]
        return self.cluster.run(level[0])

    def mapped(self, work: Callable[[Batch], Any], columns: Sequence[str], meta: Any) -> Any:
        """A Dask collection like `meta` of the tables that `work` makes of batches, from the columns that are there."""
        self.facts.passes += 1
        there = set(self.partitions.names())
        whole = Tabling(work, tuple(name for name in columns if name in there), self.rows)
        return self.partitions.mapped(_sent(whole), whole, meta)


def _sent(work: Work) -> Any:
    """The work on its way: a Delayed that packs it once, however many partitions there are."""
    import cloudpickle
    from dask import delayed

    return delayed(pickle.loads)(cloudpickle.dumps(work), dask_key_name=f"bbn-work-{uuid.uuid4().hex}")


def _key(kind: str, sent: Any, *numbers: int) -> str:
    """A name for a step of a pass. Dask schedules steps of one kind together, so kinds must not share a name."""
    return "-".join(["bbn", kind, sent.key.rpartition("-")[2], *map(str, numbers)])


def _of_frame(frame: Any, work: Work, partition_info: dict[str, Any] | None = None) -> Any:
    """The work on one partition of a Dask DataFrame; Dask fills in which one it is."""
    number = (partition_info or {}).get("number", 0)
    return work.of_parts([TablePart(frame, f"partition {number}")])


def _of_parts(parts: bytes, work: Work) -> Any:
    """The work on some parts of files."""
    return work.of_parts(pickle.loads(parts))


def _added(parts: Sequence[Any]) -> Any:
    """The sum of partial results, which are left as they are: Dask may need them again."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    total = copy.deepcopy(there[0])
    for part in there[1:]:
        total = total.merge(part)
    return total
