"""Classifying coded rows in numpy: the twin of `_classify` for where no compiler is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.types import Floats, Ints


def present(matrix: NDArray[Any], low: Ints, ptr: Ints) -> NDArray[np.uint8] | None:
    """Which whole numbers occur in each column: flag ``ptr[j] + value − low[j]`` is 1; None if some are not whole."""
    flags = np.zeros(ptr[-1], dtype=np.uint8)
    for j, start in enumerate(ptr[:-1]):
        column = matrix[:, j]
        values = column.astype(np.int64)
        if not np.array_equal(values, column):
            return None
        flags[start + values - low[j]] = 1
    return flags


def code_matrix(
    matrix: NDArray[Any], low: Ints, ptr: Ints, look_up: NDArray[np.uint8], otherwise: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The codes of a matrix of numbers, shape (columns, rows).

    The code of value v in column j is ``look_up[ptr[j] + v − low[j]]``, or ``otherwise[j]`` where v is not a whole
    number of the column's range.
    """
    codes = np.empty(matrix.shape[::-1], dtype=np.uint8)
    for j in range(matrix.shape[1]):
        offsets = matrix[:, j] - low[j]
        span = ptr[j + 1] - ptr[j]
        with np.errstate(invalid="ignore"):
            inside = (offsets >= 0) & (offsets < span) & (offsets == np.floor(offsets))
        where = ptr[j] + np.where(inside, offsets, 0).astype(np.int64)
        codes[j] = np.where(inside, look_up[where], otherwise[j])
    return codes


def add_scores(columns: list[NDArray[Any]], ptr: Ints, tables: Floats, scores: Floats) -> None:
    """Add, to each row's score of each class, the entry of every column's table for the row's code.

    The entry of column j for code v and class c is ``tables[ptr[j] + v, c]``; `scores` has shape (rows, classes).
    """
    for j, column in enumerate(columns):
        scores += tables[ptr[j] + column.astype(np.int64)]
