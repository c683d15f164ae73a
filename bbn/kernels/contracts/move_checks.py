"""Checks of what the sampling kernels run: every move stays inside its arrays, whatever it draws.

A column's highest code is looked for once, unless a move draws it: then it is that of the last state.
"""

from __future__ import annotations

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_length, check_numbers, check_offsets
from bbn.kernels.contracts.moves import Codes, Groups, Moves, Sweep
from bbn.kernels.contracts.types import Ints

MOST_STATES = 2**30

Highest = dict[int, int]
"""Column to its highest code, as far as they are known."""


def check_moves(codes: Codes, moves: Moves) -> Ints:
    """Raise ValueError unless every move stays inside its arrays; the number of rows of each."""
    n, known = len(moves.member), Highest()
    n_rows = np.zeros(n, np.int64)
    check_numbers("u", 2, codes)
    check_ints(*(moves[:6]), moves.weight)
    check_numbers("i", 1, moves.thresholds)
    check_doubles(moves.log_weights)
    for array in (moves.size, moves.table, moves.weight):
        check_length(len(array), n, "sizes, tables and weights")
    _check_ragged(moves.parent_ptr, n, len(moves.parents), len(moves.strides), "parents")
    for i in range(n):
        size, member = int(moves.size[i]), int(moves.member[i])
        if not 1 <= size <= MOST_STATES or not -1 <= member < len(codes):
            raise ValueError(f"move {i}: {size} states of column {member}")
        n_rows[i] = rows = 1 + _furthest(codes, known, moves.parent_ptr, moves.parents, moves.strides, i)
        if size > 1:
            _check_table(int(moves.table[i]), rows, size - 1, len(moves.thresholds), i)
        if moves.weight[i] >= 0:
            _check_table(int(moves.weight[i]), rows, size, len(moves.log_weights), i)
        if member >= 0:
            known[member] = size - 1
    return n_rows


def check_sweep(codes: Codes, sweep: Sweep, groups: Groups, n_cells: int) -> None:
    """Raise ValueError unless every move of a sweep, and every count if there are cells, stays inside its arrays."""
    n, known = len(sweep.size), Highest()
    check_numbers("u", 2, codes)
    check_ints(*(sweep[:9]), *(sweep[10:-1]), *(groups[:4]))
    check_numbers("i", 1, sweep.thresholds)
    check_doubles(sweep.values)
    _check_ragged(sweep.member_ptr, n, len(sweep.members), len(sweep.decode_ptr), "members")
    _check_ragged(sweep.parent_ptr, n, len(sweep.parents), len(sweep.strides), "parents")
    _check_ragged(sweep.factor_ptr, n, len(sweep.offset), len(sweep.shift), "factors")
    _check_ragged(sweep.scope_ptr, len(sweep.offset), len(sweep.scope), len(sweep.scope_strides), "scopes")
    check_length(len(sweep.table), n, "table")
    most = 2 ** (8 * codes.dtype.itemsize) - 1
    for i in range(n):  # whatever is drawn is at most the highest code that a block can give
        size = int(sweep.size[i])
        if not 1 <= size <= MOST_STATES:
            raise ValueError(f"move {i}: {size} states")
        for k in range(sweep.member_ptr[i], sweep.member_ptr[i + 1]):
            start, member = int(sweep.decode_ptr[k]), int(sweep.members[k])
            given = sweep.decode[start : start + size] if start >= 0 else sweep.decode[:0]
            if len(given) < size:
                raise ValueError(f"move {i}: expected {size} codes from {start} on")
            if given.min() < 0 or given.max() > most:
                raise ValueError(f"move {i}: {given.min()} to {given.max()} are not codes")
            known[member] = max(_highest(codes, member, known), int(given.max()))
    for i in range(n):
        size = int(sweep.size[i])
        if sweep.table[i] >= 0:
            last = _furthest(codes, known, sweep.parent_ptr, sweep.parents, sweep.strides, i)
            _check_table(int(sweep.table[i]), 1 + last, size - 1, len(sweep.thresholds), i)
            continue
        for f in range(sweep.factor_ptr[i], sweep.factor_ptr[i + 1]):
            start = int(sweep.shift[f])
            shifts = sweep.shifts[start : start + size] if start >= 0 else sweep.shifts[:0]
            if len(shifts) < size:
                raise ValueError(f"factor {f}: expected {size} shifts from {start} on")
            if shifts.min() < 0:
                raise ValueError(f"factor {f}: a shift of {shifts.min()}")
            last = int(shifts.max())
            last += _furthest(codes, known, sweep.scope_ptr, sweep.scope, sweep.scope_strides, f)
            _check_table(int(sweep.offset[f]), 1 + last, 1, len(sweep.values), i)
    if n_cells:
        check_groups(codes, known, groups, n_cells)


def check_groups(codes: Codes, known: Highest, groups: Groups, n_cells: int) -> None:
    """Raise ValueError unless each cell that a row can fall in is there."""
    check_ints(*(groups[:4]))
    _check_ragged(groups.ptr, len(groups.offset), len(groups.members), len(groups.strides), "groups")
    for g, start in enumerate(groups.offset.tolist()):
        last = start + _furthest(codes, known, groups.ptr, groups.members, groups.strides, g)
        if start < 0 or last >= n_cells:
            raise ValueError(f"group {g}: expected cells from 0 to {n_cells - 1}, found {start} to {last}")


def _highest(codes: Codes, column: int, known: Highest) -> int:
    if not 0 <= column < len(codes):
        raise ValueError(f"expected columns from 0 to {len(codes) - 1}, found {column}")
    if column not in known:
        known[column] = int(codes[column].max(initial=0))
    return known[column]


def _furthest(codes: Codes, known: Highest, ptr: Ints, columns: Ints, strides: Ints, i: int) -> int:
    """The largest sum of codes times strides of entry i of a ragged list; it must fit 32 bits."""
    total = 0
    for k in range(ptr[i], ptr[i + 1]):
        if strides[k] < 0:
            raise ValueError(f"strides: expected 0 or more, found {strides[k]}")
        total += _highest(codes, int(columns[k]), known) * int(strides[k])
    if total >= 2**32:
        raise ValueError(f"an index of {total:.3g} is past 32 bits")
    return total


def _check_ragged(ptr: Ints, n: int, size: int, others: int, what: str) -> None:
    check_length(len(ptr), n + 1, what)
    check_length(others, size, what)
    check_offsets(ptr, size, what)


def _check_table(start: int, rows: int, width: int, size: int, i: int) -> None:
    if start < 0 or start + rows * width > size:
        raise ValueError(f"move {i}: expected {rows} rows of {width} from {start} on, found {size} entries")
