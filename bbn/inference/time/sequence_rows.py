"""Which rows of a table are which steps of which sequence, and what each sequence weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import require_memory
from bbn.core.errors import BudgetError, DataError, EvidenceError, nearest, shown
from bbn.core.frozen import Array
from bbn.data import code
from bbn.data.column_levels import Levels
from bbn.data.columns import RawTable
from bbn.kernels.contracts.types import Ints
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.evidence import OneOf, Soft, Virtual
from bbn.model.variable import Continuous, Variable

LARGEST_STEP = 2**53
"""The number of a step is below this."""
FEW_STEPS = 100_000
MOST_GAPS = 100
"""More than FEW_STEPS steps, and more than this many times the rows, are a wrong number, or times instead of steps."""
_EXPECTED = "expected whole numbers of steps, 0, 1, 2, …, not times"


def take_virtual(table: RawTable, variables: Sequence[Variable]) -> tuple[RawTable, dict[str, Array]]:
    """The table without its virtual findings, and these as arrays (rows, states)."""
    found: dict[str, Array] = {}
    cleared: dict[str, Any] = {}
    for variable in variables:
        column = table.column(variable.name)
        if isinstance(variable, Continuous) or not (
            isinstance(column, list | tuple) or str(getattr(column, "dtype", "")) == "object"
        ):
            continue
        values = list(column)
        if not any(issubclass(kind, Virtual | OneOf | Mapping) for kind in set(map(type, values))):
            continue  # as nearly always
        places = [i for i, value in enumerate(values) if isinstance(value, Virtual | OneOf)]
        for i, value in enumerate(values):
            if isinstance(value, Mapping):
                raise EvidenceError(
                    f"row {i}: evidence on {variable.name!r} is a bare mapping; bbn.Virtual({value!r}) is a likelihood "
                    "to multiply in"
                )
        if not places:
            continue
        own = np.ones((len(values), variable.card))
        for i in places:
            if isinstance(values[i], Soft):
                raise EvidenceError(
                    f"row {i}: Soft evidence on {variable.name!r} is not possible over time; use bbn.Virtual"
                )
            own[i] = values[i].array(variable)
            values[i] = None
        found[variable.name], cleared[variable.name] = own, values
    if not cleared:
        return table, found
    before = table.column
    return table._replace(column=lambda name: cleared[name] if name in cleared else before(name)), found


def group_rows(table: RawTable, sequence: str | None, lengths: Any) -> tuple[list[Any], Ints, Ints]:
    """What the sequences are called, the rows of each one after the other, and where each begins."""
    n = table.n_rows
    if lengths is not None:
        each = np.asarray(lengths)
        if each.ndim != 1 or each.dtype.kind not in "iu" or (len(each) and each.min() < 1) or each.sum() != n:
            raise EvidenceError(
                f"lengths is {shown(lengths)}; expected whole numbers of at least 1 that add up to {n} rows"
            )
        return list(range(len(each))), np.arange(n), np.concatenate([[0], np.cumsum(each)]).astype(np.int64)
    if sequence is None:
        return [0], np.arange(n), np.array([0, n], np.int64)
    levels = table.levels(sequence)
    codes = np.asarray(levels.codes).astype(np.int64)
    if codes.min() < 0:
        raise EvidenceError(
            f"row {int(np.argmin(codes))}: the column {sequence!r} does not say which sequence it is"
        )
    used, first = np.unique(codes, return_index=True)
    in_order = used[np.argsort(first, kind="stable")]
    rank = np.empty(int(used.max()) + 1, np.int64)
    rank[in_order] = np.arange(len(in_order))
    members = np.argsort(rank[codes], kind="stable")
    counts = np.bincount(rank[codes], minlength=len(in_order))
    names = [levels.values[c] for c in in_order.tolist()]
    return names, members, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def timed_rows(
    table: RawTable, time: str, names: list[Any], members: Ints, ptr: Ints, n_columns: int
) -> tuple[Ints, Ints, tuple[int, ...], Ints]:
    """Rows sorted by time in each sequence, the sequences with their gaps, and the step that each row becomes."""
    levels = table.levels(time)
    odd = [i for i, value in enumerate(levels.values) if not _is_step(value, table.text)]
    if odd:  # of whole numbers that another value made floats, the other value is named
        worst = next((i for i in odd if not _is_whole_float(levels.values[i])), odd[0])
        _refuse_step(time, levels, worst)
    if np.asarray(levels.codes).min() < 0:
        raise EvidenceError(
            f"row {int(np.argmin(levels.codes))}: the column {time!r} does not say which step it is"
        )
    numbers = [int(value) for value in levels.values]
    far = next((i for i, number in enumerate(numbers) if abs(number) >= LARGEST_STEP), None)
    if far is not None:
        _refuse_step(time, levels, far)
    when = np.array(numbers, np.int64)[levels.codes][members]
    owner = np.repeat(np.arange(len(names)), np.diff(ptr))
    order = np.lexsort((when, owner))
    members, when = members[order], when[order]
    same = np.flatnonzero((np.diff(when) == 0) & (np.diff(owner) == 0))
    if len(same):
        k = int(same[0])
        raise EvidenceError(f"sequence {names[owner[k]]!r}: step {when[k]} of {time!r} is there twice")
    begin, last = when[ptr[:-1]], when[ptr[1:] - 1]
    lengths = last - begin + 1
    if lengths.sum(dtype=np.float64) > max(FEW_STEPS, MOST_GAPS * len(when)):
        gap = np.diff(when) * (np.diff(owner) == 0)
        k = int(np.argmax(gap))
        raise BudgetError(
            f"row {members[k + 1]}: the column {time!r} holds {when[k + 1]}, {gap[k]:,} steps after the one before "
            f"it in sequence {names[owner[k]]!r} (row {members[k]}), and gaps are filled with unobserved steps; "
            f"{_EXPECTED}"
        )
    cells = float(lengths.sum(dtype=np.float64)) * max(n_columns, 1)
    require_memory(
        int(8 * cells), f"the steps that {time!r} spans, gaps included", "number the steps without wide gaps"
    )
    spread = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    place = spread[owner] + when - begin[owner]
    return members, spread, tuple(begin.tolist()), place


def _refuse_step(time: str, levels: Levels, i: int) -> None:
    """EvidenceError about a value that numbers no step, and the first row that holds it."""
    row = int(np.argmax(np.asarray(levels.codes) == i))
    raise EvidenceError(f"row {row}: the column {time!r} holds {shown(levels.values[i])}; {_EXPECTED}")


def _is_step(value: Any, text: bool) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (text and _is_whole(value)))


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _is_whole(value: Any) -> bool:
    try:
        int(value)
    except (TypeError, ValueError):
        return False
    return True


def placed_rows(
    own: NDArray[Any], members: Ints, place: Ints, steps: int, dyn: DynamicNetwork, name: Any
) -> NDArray[Any]:
    """A column with each row at its step, and what means unobserved at the steps without one."""
    empty: Any = (
        1.0 if isinstance(name, tuple) else np.nan if own.dtype.kind == "f" else dyn.variable(name).card
    )
    out = np.full((steps, *own.shape[1:]), empty, own.dtype)
    out[place] = own[members]
    return out


def sequence_weights(weights: Any, n: int) -> Array | None:
    """The weights of sequences, checked; None where each counts once."""
    if weights is None:
        return None
    if isinstance(weights, str):
        raise DataError(
            "weights= is the name of a column only in one long table; expected one number per sequence"
        )
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n,) or not (np.isfinite(values) & (values >= 0)).all():
        raise DataError(f"weights must be {n} finite numbers, one per sequence and at least 0")
    return values


def row_weights(table: RawTable, weights: Any, members: Ints, ptr: Ints, n: int) -> Array | None:
    """One weight per sequence: given as such, or as a column that says the same in all rows of a sequence."""
    if not isinstance(weights, str):
        return sequence_weights(weights, n)
    if weights not in table.names:
        raise DataError(f"weights={weights!r} is not a column of the data{nearest(weights, table.names)}")
    values = code(table, [Continuous(weights)], extra="ignore").numbers[weights][members]
    first = values[ptr[:-1]]
    if (values != np.repeat(first, np.diff(ptr))).any():
        raise DataError(
            f"the column {weights!r} has several weights within one sequence; expected one per sequence"
        )
    return sequence_weights(first, n)


def column_values(table: RawTable, name: str) -> NDArray[Any]:
    """A column as an array of plain values, None where it is missing."""
    levels = table.levels(name)
    values = np.empty(len(levels.values) + 1, object)
    values[:-1] = levels.values
    return np.asarray(values[levels.codes])
