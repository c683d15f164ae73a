"""Evidence over time, however given, as coded columns with the steps of all sequences end to end.

A table has one row a step. Many sequences are a long table with a column that names them (rows sorted by another column
where one is given, numbers left out being unobserved steps), a list of tables, or a table with the length of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import BBNError, DataError, EvidenceError, nearest, shown
from bbn.core.frozen import Array
from bbn.data import code
from bbn.data.columns import RawTable, read_table
from bbn.data.kinds import ColumnDict
from bbn.inference.time.sequence_rows import (
    column_values,
    group_rows,
    placed_rows,
    row_weights,
    sequence_weights,
    take_virtual,
    timed_rows,
)
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.evidence import is_missing
from bbn.model.variable import Continuous


class Sequences(NamedTuple):
    """Coded evidence; the steps of sequence s are ``ptr[s]`` to ``ptr[s + 1]``."""

    names: list[Any]
    """What each sequence is called: its value in the column, or its number."""
    ptr: Ints
    codes: Mapping[str, Int32s]
    """Variable to a code per step, its card where it is unobserved; variables without a column are left out."""
    numbers: Mapping[str, Array]
    """Continuous variable to a number per step, NaN where it is unobserved."""
    likelihoods: Mapping[str, Array]
    """Variable with virtual findings to an array (steps, states), rows of ones where there is none."""
    several: bool = False
    """Whether answers come as one per sequence."""
    origins: tuple[Any, ...] = ()
    """The number of each sequence's first step."""
    weights: Array | None = None
    """One per sequence, or None where each counts once."""

    @property
    def n_steps(self) -> int:
        """The steps of all sequences together."""
        return int(self.ptr[-1])

    @property
    def position(self) -> Ints:
        """The step of each row within its sequence."""
        return np.arange(self.n_steps) - np.repeat(self.ptr[:-1], np.diff(self.ptr))

    def only(self, s: int) -> Sequences:
        """One sequence by itself."""
        rows = slice(int(self.ptr[s]), int(self.ptr[s + 1]))
        return Sequences(
            [self.names[s]],
            np.array([0, self.ptr[s + 1] - self.ptr[s]], np.int64),
            {name: own[rows] for name, own in self.codes.items()},
            {name: own[rows] for name, own in self.numbers.items()},
            {name: own[rows] for name, own in self.likelihoods.items()},
            False,
            self.origins[s : s + 1],
        )

    def extended(self, cards: Mapping[str, int], steps: int) -> Sequences:
        """Each sequence with `steps` unobserved steps at its end."""
        lengths = np.diff(self.ptr)
        ptr = np.concatenate([[0], np.cumsum(lengths + steps)]).astype(np.int64)
        place = np.arange(self.n_steps) + np.repeat(steps * np.arange(len(lengths)), lengths)

        def spread(values: Any, empty: Any) -> Any:
            out = np.full((int(ptr[-1]), *values.shape[1:]), empty, values.dtype)
            out[place] = values
            return out

        return self._replace(
            ptr=ptr,
            codes={name: spread(own, cards[name]) for name, own in self.codes.items()},
            numbers={name: spread(own, np.nan) for name, own in self.numbers.items()},
            likelihoods={name: spread(own, 1.0) for name, own in self.likelihoods.items()},
        )


def read_sequences(
    dyn: DynamicNetwork,
    data: Any,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Sequence[int] | None = None,
    *,
    error: type[BBNError] = EvidenceError,
    **options: Any,
) -> Sequences:
    """Evidence as coded sequences; faults are raised as `error`. `options` go to `bbn.data.code`."""
    try:
        return _read(dyn, data, sequence, time, lengths, options)
    except (DataError, EvidenceError) as fault:
        if type(fault) in (DataError, EvidenceError) and not isinstance(fault, error):
            raise error(str(fault)) from None
        raise


def _read(
    dyn: DynamicNetwork,
    data: Any,
    sequence: str | None,
    time: str | None,
    lengths: Any,
    options: dict[str, Any],
) -> Sequences:
    if data is None:
        return Sequences([0], np.zeros(2, np.int64), {}, {}, {}, False, (0,))
    tables = _tables(data)
    if tables is None:
        return _read_table(dyn, read_table(data), sequence, time, lengths, options)
    if sequence is not None or lengths is not None:
        raise EvidenceError("a list of tables is one sequence each; leave out sequence= and lengths=")
    if not tables:
        raise EvidenceError("the list of tables is empty; expected one table per sequence")
    parts = []
    for k, table in enumerate(tables):
        own = {**options, "weights": None}
        try:
            parts.append(_read_table(dyn, read_table(table), None, time, None, own))
        except (DataError, EvidenceError) as fault:
            raise type(fault)(f"table {k}: {fault}") from None
    return _joined(dyn, parts)._replace(weights=sequence_weights(options.get("weights"), len(parts)))


def _tables(data: Any) -> list[Any] | None:
    """The tables of a list of tables; None where the data are one table, as a list of dicts of values is."""
    if (
        isinstance(data, RawTable)
        or not isinstance(data, list | tuple)
        or (len(data) == 2 and isinstance(data[0], np.ndarray))
    ):
        return None
    if not data:
        return []
    if all(isinstance(row, Mapping) and not any(map(_is_column, row.values())) for row in data):
        return None
    return list(data)


def one_table(data: Any) -> tuple[Any, list[int] | None]:
    """A list of tables as one table and the length of each; any other data as they are, and None."""
    tables = _tables(data)
    if tables is None:
        return data, None
    if not tables:
        raise DataError("the list of tables is empty; expected one table per sequence")
    read = [read_table(table) for table in tables]
    names = list(dict.fromkeys(name for table in read for name in table.names))

    def column(name: str) -> NDArray[Any]:
        absent = (np.full(table.n_rows, None, object) for table in read)
        return np.concatenate(
            [
                column_values(t, name) if name in t.names else none
                for t, none in zip(read, absent, strict=True)
            ]
        )

    lengths = [table.n_rows for table in read]
    text = any(table.text for table in read)
    return RawTable(tuple(names), sum(lengths), column, ColumnDict(), text), lengths


def _is_column(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def _joined(dyn: DynamicNetwork, parts: list[Sequences]) -> Sequences:
    """Sequences of several tables end to end; a variable without a column in one of them is unobserved there."""
    lengths = [part.n_steps for part in parts]
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def column(kind: str, name: str, empty: Any) -> Any:
        return np.concatenate([
            getattr(part, kind)[name] if name in getattr(part, kind) else empty(n)
            for part, n in zip(parts, lengths, strict=True)
        ])  # fmt: skip

    cards = {v.name: v.card for v in dyn.variables}
    names = {kind: dict.fromkeys(name for part in parts for name in getattr(part, kind))
             for kind in ("codes", "numbers", "likelihoods")}  # fmt: skip
    return Sequences(
        list(range(len(parts))),
        ptr,
        {
            name: column("codes", name, lambda n, c=cards[name]: np.full(n, c, np.int32))
            for name in names["codes"]
        },
        {name: column("numbers", name, lambda n: np.full(n, np.nan)) for name in names["numbers"]},
        {
            name: column("likelihoods", name, lambda n, c=cards[name]: np.ones((n, c)))
            for name in names["likelihoods"]
        },
        True,
        tuple(origin for part in parts for origin in part.origins),
    )


def _read_table(
    dyn: DynamicNetwork,
    table: RawTable,
    sequence: str | None,
    time: str | None,
    lengths: Any,
    options: dict[str, Any],
) -> Sequences:
    """The sequences of one table."""
    if sequence is not None and lengths is not None:
        raise EvidenceError("give sequence= or lengths=, not both")
    for what, name in (("sequence", sequence), ("time", time)):
        if name is not None and name not in table.names:
            raise EvidenceError(f"{what}={name!r} is not a column of the data{nearest(name, table.names)}")
    weights = options.get("weights")
    roles = {sequence, time, weights if isinstance(weights, str) else None}
    for name in table.names:
        if name not in roles and name not in dyn:
            raise EvidenceError(
                f"the column {name!r} is not a variable of the dynamic network{nearest(name, dyn.names)}"
            )
    if not table.n_rows:
        raise EvidenceError("the table has no rows; expected one per step")
    variables = [dyn.variable(name) for name in table.names if name not in roles]
    table, likelihoods = take_virtual(table, variables)
    coded = code(table, variables, absent="allow", extra="ignore", **{**options, "weights": None})
    names, members, ptr = group_rows(table, sequence, lengths)
    columns: dict[Any, Any] = {
        **{name: own.astype(np.int32) for name, own in coded.codes.items()},
        **coded.numbers,
        **{(name,): own for name, own in likelihoods.items()},
    }
    origins: tuple[Any, ...] = (0,) * len(names)
    own_weights = row_weights(table, weights, members, ptr, len(names))
    if time is None:
        columns = {name: own[members] for name, own in columns.items()}
    else:
        members, ptr, origins, place = timed_rows(table, time, names, members, ptr, len(columns))
        columns = {
            name: placed_rows(own, members, place, int(ptr[-1]), dyn, name) for name, own in columns.items()
        }
    return Sequences(
        names,
        ptr,
        {v.name: columns[v.name] for v in variables if not isinstance(v, Continuous)},
        {v.name: columns[v.name] for v in variables if isinstance(v, Continuous)},
        {name: columns[(name,)] for name in likelihoods},
        sequence is not None or lengths is not None,
        origins,
        own_weights,
    )


def indexed_evidence(dyn: DynamicNetwork, evidence: Any, steps: int) -> dict[str, list[Any]]:
    """Findings by name and step, {"Umbrella[0]": "yes"}, as a table of `steps` steps; static ones by their names."""
    from bbn.model.previous import split_name

    if evidence is None:
        evidence = {}
    if not isinstance(evidence, Mapping):
        raise EvidenceError(
            f"evidence must be a mapping such as {{'Umbrella[0]': 'yes'}}, found {shown(evidence)}"
        )
    columns: dict[str, list[Any]] = {}
    for key, value in evidence.items():
        name, at = split_name(key) if isinstance(key, str) else (key, None)
        dyn.variable(name)
        if name in dyn.static and at is None:
            at = 0
        elif at is None or at < 0 or name in dyn.static:
            raise EvidenceError(
                f"evidence on {key!r} does not say at which step; write {name + '[0]'!r} for the first"
            )
        if not is_missing(value):
            columns.setdefault(name, [None] * steps)[at] = value
    return columns or {dyn.names[0]: [None] * steps}
