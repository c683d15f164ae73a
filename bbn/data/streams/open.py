"""Opening data that do not fit in memory: any number of files, or tables that come one after the other, as a source.

Nothing is counted here. `readers` finds out where batches come from, `facts` what is known of them already; the source
that is returned reads them, in `file_stream` on this machine and in `dask` on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bbn.core.budget import jobs
from bbn.core.budget import memory_limit as parsed_limit
from bbn.core.errors import DataError
from bbn.core.keywords import keywords_checked
from bbn.data.coding import UNSEEN
from bbn.data.columns import checked_decimal
from bbn.data.error_places import located
from bbn.data.source import DataSource, is_source
from bbn.data.streams.facts import Facts, batch_size, from_footers, read_declared
from bbn.data.streams.file_stream import FileStream
from bbn.data.streams.readers import Batch, is_client, is_dask, reader
from bbn.data.streams.tasks import Coding
from bbn.model.variable import State, Variable


@keywords_checked
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
    continuous: str | Iterable[str] | None = (),
    decimal: str | Mapping[str, str] | None = None,
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
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    memory_limit
        The most memory that batches and counts may take together, in bytes or as "500MB"; half of the machine's, or
        BBN_MEMORY_LIMIT, unless given.
    n_jobs
        How many threads read and count; the answers do not depend on it.
    batch_rows
        The rows of a batch; chosen from the memory limit unless given. The answers do not depend on it.
    continuous
        Names of columns that are read as numbers; None: those that hold fractions, or too many numbers to be states,
        which a first pass finds out.
    decimal
        The decimal mark of text that is numbers, "," or ".", or column to mark. Needed only where the text does not
        tell: "1,234" is a thousand or 1.234.
    client
        A Dask cluster that does the work: its `distributed.Client`, or its scheduler's address such as
        "tcp://10.0.0.1:8786". Its workers must reach the files under the same names. A pair (client, path) is the same.

    Returns
    -------
    DataSource
        With `passes`, how often the data have been read. Nothing is read before it is asked for; a first
        pass finds the states that neither this call nor the learner declares.

    >>> source = open_data([{"Rain": ["yes", "no"]}, {"Rain": ["no"]}])
    >>> source.n_rows, source.variables, source.counts([("Rain",)])[0], source.passes
    (3, (Variable('Rain', ['no', 'yes']),), array([2, 1]), 2)
    """
    if is_source(data):
        given = (states, variables, weights, memory_limit, n_jobs, batch_rows, client, decimal)
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
            decimal=decimal,
        )
    source = reader(data)
    there = source.names()
    with located(source.where):
        wanted, declared, numeric = read_declared(there, variables, states, weights, continuous)
        checked_decimal(decimal, there)
    own = tuple(name for name in wanted if name in numeric)
    coding = Coding({}, missing, unseen, weights, own, by_kind=continuous is None, decimal=decimal)
    rows = batch_rows or batch_size(len(wanted), source.text, jobs(n_jobs), parsed_limit(memory_limit))
    facts = from_footers(source, wanted, declared, coding)
    return FileStream(source, rows, coding, facts, n_jobs, memory_limit)


def open_for(
    data: Any,
    variables: Iterable[Variable] | None,
    names: Iterable[str] | None,
    states: Mapping[str, Sequence[State]] | None,
    hidden: Iterable[str],
    **options: Any,
) -> DataSource:
    """Open a folder or a pattern for a learner that wants these columns, with what it declares about them."""
    unseen = set(hidden)
    absent = options.pop("absent", "raise")
    declared: dict[str, Any] = {**(states or {}), **{v.name: v for v in variables or () if v.card}}
    wanted = [v.name for v in variables] if variables is not None else names
    if not is_dask(data):
        data = reader(data)  # which has read the footers of its files: `open_data` goes on from there
    there = tuple(data.columns) if is_dask(data) else data.names()
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
