"""Data on a Dask cluster, or in a Dask DataFrame: partitions stay where they are, and questions go to them.

A pass is one Dask graph. The task is sent out once; each partition is read, coded and counted where it is, in one
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

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from bbn.data.cluster import Cluster
from bbn.data.discovery import Discovery
from bbn.data.stream import Coding, Streamed, Task
from bbn.data.sums import Sum

FAN_IN = 8
"""How many partial sums one step of the reduction adds."""


class Work(Protocol):
    """What is done where a partition is; it can be pickled, and its results add up."""

    def __call__(self, data: Any, where: str = "", first_row: int = 0) -> Any:
        """The result for a partition; `where` it is from and the number of its first row are for messages."""


class Partitions(Protocol):
    """Rows in parts that workers can reach."""

    def results(self, work: Any, columns: Sequence[str], key: str) -> list[Any]:
        """One Delayed per partition: what `work`, a Delayed itself, gives for these columns of it."""


class Frames:
    """The partitions of a Dask DataFrame.

    Columns that are not wanted are not read where the DataFrame is made from files, and reading is fused with the
    work, so no partition leaves the worker that reads it.
    """

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def results(self, work: Any, columns: Sequence[str], key: str) -> list[Any]:
        """One Delayed per partition."""
        import pandas as pd

        mapped = self.frame[list(columns)].map_partitions(
            _on_frame, work, meta=pd.Series(dtype=object), enforce_metadata=False, token=f"bbn-{key}"
        )
        return list(mapped.to_delayed())


class Clustered(Streamed):
    """A data source whose partitions are on a Dask cluster.

    Parameters
    ----------
    partitions
        Where the rows are.
    cluster
        Who does the work.
    coding, found, limit
        As in `Streamed`.
    """

    def __init__(
        self, partitions: Partitions, cluster: Cluster, coding: Coding, found: Discovery, limit: Any = None
    ) -> None:
        super().__init__(coding, found, n_jobs=1, limit=limit)
        self.partitions = partitions
        self.cluster = cluster

    def _pass(self, task: Task, columns: Sequence[str]) -> list[NDArray[Any]]:
        """The task goes out, its results come back added up."""
        known = self.coding.variables
        own = self.coding._replace(
            variables={name: known[name] for name in columns if name in known},
            continuous=tuple(name for name in columns if name not in known),
        )
        needed = [*columns, *([] if own.weights is None else [own.weights])]
        total: Sum = reduced(self.cluster, self.partitions, OnCoded(own, task, tuple(columns)), needed)
        return total.result()


class OnCoded(NamedTuple):
    """Work on a partition that is coded first."""

    coding: Coding
    task: Task
    columns: tuple[str, ...]

    def __call__(self, data: Any, where: str = "", first_row: int = 0) -> Sum:
        """The task's result, ready to be added to those of others."""
        return self.coding.run(self.task, data, self.columns, where, first_row)


def reduced(cluster: Cluster, partitions: Partitions, work: Work, columns: Sequence[str]) -> Any:
    """The results of the work on every partition, added up in the order of the partitions by a tree."""
    import cloudpickle
    from dask import delayed

    key = uuid.uuid4().hex
    sent = delayed(_received)(cloudpickle.dumps(work), dask_key_name=f"bbn-work-{key}")
    level = partitions.results(sent, columns, key)
    depth = 0
    while len(level) > 1 or depth == 0:
        depth += 1
        level = [
            delayed(_added)(level[at : at + FAN_IN], dask_key_name=f"bbn-add-{key}-{depth}-{at}")
            for at in range(0, len(level), FAN_IN)
        ]
    return cluster.run(level[0])


def _received(work: bytes) -> Work:
    """The work, unpacked once on each worker that fetches it from another, and again where it got lost."""
    import pickle

    return pickle.loads(work)  # type: ignore[no-any-return]


def _on_frame(frame: Any, work: Work, partition_info: dict[str, Any] | None = None) -> Any:
    """The work on one partition of a Dask DataFrame; Dask fills in the partition's number."""
    number = (partition_info or {}).get("number", 0)
    return work(frame, f"partition {number}")


def _added(parts: list[Any]) -> Any:
    """The sum of partial results, which are left as they are: Dask may need them again."""
    first = parts[0]
    total = Sum().merge(first) if isinstance(first, Sum) else first._replace(total=Sum().merge(first.total))
    for part in parts[1:]:
        total = total.merge(part)
    return total
