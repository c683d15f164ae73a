"""Counts of families whose tables would be far larger than the data: only settings of the parents that some row has.

A table of q settings and r states has q r cells, of which N rows fill at most N; the settings that no row has add
nothing to any score but their number. Settings are numbered by sorting the rows, at O(N log N) for each family.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.data.coded_table import CodedTable

SPARSE, LEAST = 32, 1 << 14
"""A table of more than SPARSE cells a row, and LEAST more, is not laid out: sorting the rows costs less."""
MOST_INDEX = 2**62
"""The largest index of a setting; settings that are seen are numbered anew before it is passed."""


class SeenSettings(NamedTuple):
    """The settings of some parents: which each row has, numbered from 0, how many are seen and how many there are."""

    of_row: NDArray[np.int64]
    n_seen: int
    n_settings: int


def seen_settings(
    table: CodedTable, parents: Sequence[int], within: SeenSettings | None = None
) -> SeenSettings:
    """The settings of parents, by their positions among the variables, beside those of others `within`."""
    index, size, whole = within or (np.zeros(table.n_rows, np.int64), 1, 1)
    for p in parents:
        variable = table.variables[p]
        if size * variable.card > MOST_INDEX:
            index, size = _numbered(index)
        index = index * variable.card + table.codes[variable.name]
        size, whole = size * variable.card, whole * variable.card
    index, size = _numbered(index)
    return SeenSettings(index, size, whole)


def _numbered(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    seen, index = np.unique(index, return_inverse=True)
    return index.reshape(-1), len(seen)


def seen_counts(table: CodedTable, parents: SeenSettings, child: int) -> NDArray[np.int64 | np.float64]:
    """The counts of a child given its parents, one row of its states per setting that is seen, end to end."""
    variable = table.variables[child]
    index = parents.of_row * variable.card + table.codes[variable.name]
    cells: NDArray[np.int64 | np.float64] = np.bincount(index, table.weights, parents.n_seen * variable.card)
    return cells
