"""Samples, predictions and likelihoods of tables larger than memory: batch by batch, to an iterator or to files.

Rows keep their order. Memory is that of a batch and of its answers, whatever the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbn.core.errors import DataError
from bbn.core.threads import within
from bbn.data import CodedTable, code
from bbn.data.error_places import located
from bbn.data.kinds import Pandas
from bbn.data.streams.dask import Clustered
from bbn.data.streams.open import read_batches
from bbn.data.streams.readers import Batch, is_dask, is_many
from bbn.data.streams.stream import Streamed
from bbn.data.streams.tasks import Coding
from bbn.data.write import ROW_GROUP, write_tables
from bbn.inference.rows import predict
from bbn.inference.sampling.sample import FEWER, sample

if TYPE_CHECKING:
    from bbn.model.evidence import Evidence
    from bbn.model.network import BayesianNetwork
    from bbn.model.variable import Variable


def sample_to(
    net: BayesianNetwork,
    to: Any,
    n: int,
    evidence: Evidence | None = None,
    seed: Any = None,
    missing: float | Mapping[str, float] = 0.0,
    *,
    chunks: Any = None,
    time_limit: float | None = None,
    **options: Any,
) -> Path:
    """Rows drawn from the network, written as they are drawn; see `BayesianNetwork.sample`.

    `chunks` is how many are drawn and written at a time, a row group of Parquet each; the file appears once all are.
    """
    refuse_codes(options)
    size = ROW_GROUP if chunks is None or chunks is True else chunks
    with within(time_limit, FEWER):
        tables = sample(net, n, evidence, seed, missing, chunks=size, **options)
        if not n:
            tables = [sample(net, 0, evidence, seed, missing, **options)]
        hidden = any(missing.values()) if isinstance(missing, Mapping) else bool(missing)
        return write_tables(tables, to, complete=not hidden)


def refuse_codes(options: Mapping[str, Any]) -> None:
    """DataError for samples as codes, which are arrays of this process and no rows."""
    if options.get("as_codes"):
        raise DataError("as_codes= gives arrays; to= and client= give rows with their states")


def answer(
    question: str,
    net: BayesianNetwork,
    data: Any,
    *target: str,
    to: Any = None,
    client: Any = None,
    unread: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    """`predict`, `predict_proba` or `log_likelihood`, batch by batch where the data come so.

    Parameters
    ----------
    question
        Which of them.
    data
        Any table, or an opened source, a folder or a pattern of files.
    target
        The target, if the question has one.
    to
        Where to write the answers, as in `sample_to`; its Path is then returned.
    client
        A Dask cluster that does the work, as in `bbn.open_data`.
    unread
        Variables whose columns are not read.

    Returns
    -------
    table or Iterator
        The answers for a table. For an opened source, a folder or a pattern of files an iterator over tables, one per
        batch, of the kind that the batch was: pyarrow's for Parquet, pandas' for CSV, and that of each table where
        tables were given.
    """
    if client is not None or is_dask(data) or isinstance(data, Clustered):
        from bbn.inference.rows.cluster import answer_on

        return answer_on(client, question, net, data, *target, to=to, unread=unread, **options)
    if to is None and not isinstance(data, Streamed) and not is_many(data):
        ask: Callable[..., Any] = getattr(predict, question)
        if unread:
            data = _without(net, data, {*target, *unread})
        return ask(net, data, *target, **options)
    net.variable(target[0]) if target else None
    wanted = tuple(v for v in net.variables if v.name not in target and v.name not in unread)
    batches, coding = read_batches(data, [v.name for v in wanted])
    tables = (
        answered(question, net, batch, target, wanted, coding, options, to is not None) for batch in batches
    )
    if to is None:
        return tables
    return write_tables((table.to_frame() if table.ndim == 1 else table for table in tables), to)


def _without(net: BayesianNetwork, data: Any, unread: set[str]) -> CodedTable:
    """The data coded, without the columns of some variables."""
    if not isinstance(data, CodedTable):
        wanted = [v for v in net.variables if v.name not in unread]
        return code(data, wanted, absent="allow", extra="ignore")
    return CodedTable(
        tuple(v for v in data.variables if v.name not in unread),
        {name: column for name, column in data.codes.items() if name not in unread},
        data.n_rows,
        None,
        data.kind,
        {name: column for name, column in data.numbers.items() if name not in unread},
    )


def answered(
    question: str,
    net: BayesianNetwork,
    batch: Batch,
    target: tuple[str, ...],
    wanted: tuple[Variable, ...],
    coding: Coding,
    options: Mapping[str, Any],
    in_pandas: bool = True,
) -> Any:
    """The answers for a batch, coded under the network's variables; columns that are not there are unobserved."""
    with located(batch.where, batch.first_row):
        table = code(
            batch.data,
            wanted,
            missing=coding.missing,
            unseen=coding.unseen,
            absent="allow",
            extra="ignore",
            decimal=coding.decimal,
        )
        kind = Pandas() if in_pandas and not isinstance(table.kind, Pandas) else table.kind
        coded = CodedTable(table.variables, table.codes, table.n_rows, None, kind, table.numbers)
        ask: Callable[..., Any] = getattr(predict, question)
        return ask(net, coded, *target, **options)
