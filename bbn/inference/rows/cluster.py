"""Samples and answers on a Dask cluster: workers draw, answer and write; what comes back is a Dask collection.

Rows keep their order and are those that one machine would give: a block of samples depends on its number and the seed
alone, and an answer on its row alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbn.core.atomic import replacing_folder
from bbn.core.errors import ClusterError, DataError
from bbn.data.columns import table_suffix
from bbn.data.streams.dask import Clustered, rows_of
from bbn.data.streams.dask_cluster import Cluster
from bbn.data.streams.readers import Batch
from bbn.data.streams.tasks import Coding
from bbn.data.write import ROW_GROUP
from bbn.inference.rows.streaming import answered, refuse_codes
from bbn.inference.sampling.sample import sample
from bbn.inference.sampling.seeded_blocks import BLOCK, Seeds

if TYPE_CHECKING:
    from bbn.model.evidence import Evidence
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import Variable

PART_BLOCKS = 64
"""Blocks of rows that are one partition of samples."""


def sample_on(
    client: Any,
    net: BayesianNetwork,
    n: int,
    evidence: Evidence | None = None,
    seed: Any = None,
    missing: float | Mapping[str, float] = 0.0,
    *,
    to: Any = None,
    **options: Any,
) -> Any:
    """Rows drawn by the workers of a cluster, when they are asked for; see `BayesianNetwork.sample`.

    With `to`, a folder that all workers reach, they are written there, and it is returned once all is.
    """
    import dask.dataframe as dd

    refuse_codes(options)
    if options.get("chunks") is not None:
        raise DataError(
            "chunks= is for one machine; on a cluster the rows come in partitions of their own size"
        )
    if options.pop("time_limit", None) is not None:
        raise DataError("time_limit= is for one machine; a cluster has limits of its own")
    cluster = Cluster(client)
    like = sample(net, 0, evidence, seed, missing, **options)
    size = PART_BLOCKS * BLOCK
    draw = PartitionSampler(net, n, evidence, Seeds(seed), missing, options)
    frame = dd.from_map(draw, range(0, max(n, 1), size), meta=like, enforce_metadata=False)
    return frame if to is None else write_on(cluster, frame, to)


@dataclass(frozen=True)
class PartitionSampler:
    """Draws a partition of samples: the rows from `start` on."""

    net: BayesianNetwork
    n: int
    evidence: Any
    seeds: Seeds
    missing: Any
    options: dict[str, Any]

    def __call__(self, start: int) -> Any:
        """A DataFrame."""
        n = min(PART_BLOCKS * BLOCK, self.n - start)
        seeds = self.seeds.from_block(start // BLOCK)
        return sample(self.net, n, self.evidence, seeds, self.missing, **self.options)


def answer_on(
    client: Any,
    question: str,
    net: BayesianNetwork,
    data: Any,
    *target: str,
    to: Any = None,
    unread: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    """`predict`, `predict_proba` or `log_likelihood` of the rows of a Dask DataFrame or of data on a cluster.

    Returns
    -------
    dask.dataframe.DataFrame, dask.dataframe.Series or Path
        The answers, computed when they are asked for; or with `to` the folder, once everything is written.
    """
    wanted = tuple(v for v in net.variables if v.name not in target and v.name not in unread)
    net.variable(target[0]) if target else None
    source = data if isinstance(data, Clustered) else rows_of(data, client)
    ask = BatchAnswerer(question, net, target, wanted, source.coding._replace(variables={}), options)
    frame = source.mapped(ask, [v.name for v in wanted], ask.like())
    return frame if to is None else write_on(source.cluster, frame, to)


@dataclass(frozen=True)
class BatchAnswerer:
    """Answers a batch: a table with the dtypes of `like`."""

    question: str
    net: BayesianNetwork
    target: tuple[str, ...]
    wanted: tuple[Variable, ...]
    coding: Coding
    options: dict[str, Any]

    def __call__(self, batch: Batch) -> Any:
        """The answers for one batch."""
        return self._typed(
            answered(self.question, self.net, batch, self.target, self.wanted, self.coding, self.options)
        )

    def like(self) -> Any:
        """A table of no answers."""
        import pandas as pd

        return self(Batch(pd.DataFrame({v.name: [] for v in self.wanted})))

    def _typed(self, table: Any) -> Any:
        """A column of answers that may be missing has a type that can say so."""
        if self.question == "predict" and table.dtype.kind not in "f":
            kinds = {bool: "boolean", int: "Int64", str: "str"}
            return table.astype(kinds[type(self.net.states(self.target[0])[0])])
        return table


def write_on(cluster: Cluster, frame: Any, to: Any) -> Path:
    """Write a Dask collection as a folder of Parquet files, one per partition, by the workers themselves."""
    target = Path(to)
    if table_suffix(target):
        raise DataError(f"{target}: a cluster writes a folder, one file per partition; name a folder")
    if frame.ndim == 1:
        frame = frame.to_frame()
    frame = frame.rename(columns={name: str(name) for name in frame.columns})
    with replacing_folder(target) as folder:
        cluster.run(
            frame.to_parquet(
                folder,
                write_index=False,
                compute=False,
                name_function=_part_name,
                row_group_size=ROW_GROUP,
                write_page_checksum=True,
            )
        )
        written = len(list(folder.glob("*.parquet")))
        if written != frame.npartitions:
            raise ClusterError(
                f"{written} of {frame.npartitions} files of {target} have come here; the workers must reach the "
                "folder under the same name"
            )
    return target


def _part_name(number: int) -> str:
    return f"part-{number:05}.parquet"
