"""A source read batch by batch as tables of whole sequences: what a batch has begun is carried on to the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError, nearest
from bbn.data.columns import RawTable, read_table
from bbn.data.kinds import ColumnDict
from bbn.inference.time.sequence_rows import column_values
from bbn.model.dynamic_network import DynamicNetwork


def whole_sequences(
    dyn: DynamicNetwork, source: Any, sequence: str, columns: Sequence[str] = ()
) -> Iterator[RawTable]:
    """The batches of a source as tables of whole sequences; DataError if the rows of one do not lie together."""
    from bbn.data.streams.open import read_batches

    carried: dict[str, NDArray[Any]] = {}
    done: set[Any] = set()
    wanted = {*dyn.names, sequence, *columns}
    batches, coding = read_batches(source, list(wanted))
    for batch in batches:
        table = read_table(batch.data).told(coding.decimal)
        if sequence not in table.names:
            raise DataError(
                f"sequence={sequence!r} is not a column of the data{nearest(sequence, table.names)}"
            )
        own = {name: column_values(table, name) for name in table.names if name in wanted}
        own = {
            name: np.concatenate([carried[name], values]) if carried else values
            for name, values in own.items()
        }
        going_on = own[sequence] == own[sequence][-1]
        carried = {name: values[going_on] for name, values in own.items()}
        ready = {name: values[~going_on] for name, values in own.items()}
        if len(ready[sequence]):
            _note_done(done, ready[sequence], sequence)
            yield _raw(ready, sequence, table)
    if carried:
        _note_done(done, carried[sequence], sequence)
        yield _raw(carried, sequence, table)


def _raw(columns: dict[str, NDArray[Any]], sequence: str, like: RawTable) -> RawTable:
    """Some columns as a table that is read as another one."""
    made = RawTable(tuple(columns), len(columns[sequence]), columns.__getitem__, ColumnDict(), like.text)
    return made._replace(decimal=like.decimal, decimals=like.decimals)


def _note_done(done: set[Any], column: Any, sequence: str) -> None:
    """Remember the sequences that were handed on; DataError if one comes again."""
    found = set(column.tolist())
    if done & found:
        again = sorted(done & found, key=str)[0]
        raise DataError(
            f"the rows of {sequence}={again!r} do not lie together; sort the data by {sequence!r}"
        )
    done |= found
