"""What to do with rows of a file that do not quite sum to 1.

Off by at most 1e-9: kept bit for bit. By at most 1e-6 (printed in single precision): renormalised. By at
most 1e-2 (few digits): renormalised, with one warning per file that counts them. Beyond that, or beyond
1e-9 when strict: an error. An entry below 0 by at most 1e-6, which rounding leaves of 0, is set to 0 and counted by
the same warning; one further below, or any when strict, is an error. All rows of one length are looked at together,
so that a file of many small tables costs a few array operations; large tables are looked at one by one, and not
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from bbn.core.errors import RenormalisedWarning, warn_user
from bbn.core.frozen import Array, read_only
from bbn.model.table_input import EXACT, ROUNDED, sums_of

TOLERATED = 1e-2
"""A row of a file may be off 1 by this much and is renormalised, with a warning, unless strict."""

Values = Array | Sequence[float]
"""The entries of a table. An array is settled in place."""

_LARGE = 2**16


def settle(
    tables: Sequence[tuple[int, Values]],
    strict: bool,
    report: Callable[[int, int, str], None],
    path: str | None = None,
) -> list[Array]:
    """The tables, each as a read-only array of shape (rows, card), with their rows settled.

    Parameters
    ----------
    tables
        For each table the child's number of states and the entries, row after row.
    strict
        Whether any row off by more than 1e-9 is an error.
    report
        Called with (table, row, message) for each row that is not a distribution.
    path
        What the warning calls the file.

    >>> settle([(2, [0.5, 0.5]), (2, [0.3333333, 0.6666666])], False, print)[1].sum().item()
    1.0
    """
    members: dict[tuple[int, int], list[int]] = {}
    for i, (card, values) in enumerate(tables):
        alone = i + 1 if len(values) > _LARGE else 0
        members.setdefault((card, alone), []).append(i)
    settled: list[Array] = [np.empty(0)] * len(tables)
    noticed = below_zero = 0
    worst = 0.0
    for (card, _), group in members.items():
        rows = _stack([tables[i][1] for i in group]).reshape(-1, card)
        sums = sums_of(rows)
        off = np.abs(sums - 1.0)
        starts = np.cumsum([0, *(len(tables[i][1]) // card for i in group)]).tolist()
        if not (off.max() <= EXACT and rows.min() >= 0):  # NaN fails the comparison
            residues = np.zeros(len(rows), bool)
            if not strict and rows.min() < 0:
                residues = (rows.min(axis=1) < 0) & (rows.min(axis=1) >= -ROUNDED)
                rows[residues] = np.maximum(rows[residues], 0.0)
                sums = sums_of(rows)
                off = np.abs(sums - 1.0)
            possible = np.asarray((np.isfinite(rows) & (rows >= 0)).all(axis=1))
            allowed = possible & (off <= (EXACT if strict else TOLERATED))
            for row in np.flatnonzero(~allowed):
                place = int(np.searchsorted(starts, row, side="right")) - 1
                report(group[place], int(row) - starts[place], _fault(rows[row], bool(possible[row])))
            uneven = allowed & (off > EXACT)
            rows /= np.where(uneven, sums, 1.0)[:, None]  # the others stay bit for bit
            noticeable = uneven & (off > ROUNDED)
            noticed += int(noticeable.sum())
            below_zero += int((allowed & residues).sum())
            worst = max(worst, float(off[noticeable].max(initial=0.0)))
        read_only(rows)
        for i, start, stop in zip(group, starts, starts[1:], strict=False):
            settled[i] = rows[start:stop]
    told = []
    if noticed:
        told.append(f"{noticed} row{'s' * (noticed != 1)} off 1 by up to {worst:.2g} renormalised")
    if below_zero:
        told.append(
            f"{below_zero} row{'s' * (below_zero != 1)} with entries below 0 by at most {ROUNDED:g}, now set to 0"
        )
    if told:
        warn_user(
            f"{path or 'the text'}: {' and '.join(told)}; strict=True makes this an error",
            RenormalisedWarning,
        )
    return settled


def _stack(tables: list[Values]) -> Array:
    if len(tables) == 1 and isinstance(tables[0], np.ndarray) and tables[0].flags.writeable:
        return tables[0]
    if all(isinstance(values, list) for values in tables):
        return np.fromiter(chain.from_iterable(tables), np.float64, sum(map(len, tables)))
    return np.concatenate([np.asarray(values, dtype=np.float64).ravel() for values in tables])


def _fault(row: Array, possible: bool) -> str:
    if possible:
        total = float(sums_of(row))
        hint = "; are these percentages?" if abs(total - 100) <= 1 else ""
        return f"sums to {total:.12g}, expected 1{hint}"
    bad = next(value for value in row.tolist() if not 0 <= value < np.inf)
    return f"the entry {bad!r} is not a probability; expected a number from 0 to 1"
