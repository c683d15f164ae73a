"""Classifying coded rows, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_numbers, check_offsets
from bbn.kernels.contracts.types import Floats, Ints


def present(matrix: NDArray[Any], low: Ints, ptr: Ints) -> NDArray[np.uint8] | None:
    """Which whole numbers occur in each column: flag ``ptr[j] + value − low[j]`` is 1; None if some are not whole."""
    _check_columns(matrix, low, ptr)
    flags = np.zeros(ptr[-1], dtype=np.uint8)
    for j, start in enumerate(ptr[:-1]):
        column = matrix[:, j]
        values = column.astype(np.int64)
        if not np.array_equal(values, column):
            return None
        if ((values < low[j]) | (values - low[j] >= ptr[j + 1] - start)).any():
            raise ValueError("matrix: expected numbers between the least and the largest of each column")
        flags[start + values - low[j]] = 1
    return flags


def _check_columns(matrix: NDArray[Any], low: Ints, ptr: Ints) -> None:
    """Raise ValueError unless there is a least number, and a range of flags, for each column."""
    check_numbers("if", 2, matrix)
    check_ints(low, ptr)
    d = matrix.shape[1]
    if len(low) != d or len(ptr) != d + 1:
        raise ValueError(f"expected {d} least numbers and {d + 1} offsets, found {len(low)} and {len(ptr)}")
    check_offsets(ptr, int(ptr[-1]), "offsets")


def code_matrix(
    matrix: NDArray[Any], low: Ints, ptr: Ints, look_up: NDArray[np.uint8], otherwise: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """The codes of a matrix of numbers, shape (columns, rows).

    The code of value v in column j is ``look_up[ptr[j] + v − low[j]]``, or ``otherwise[j]`` where v is not a whole
    number of the column's range.
    """
    _check_columns(matrix, low, ptr)
    check_numbers("u", 1, look_up, otherwise)
    if len(look_up) < ptr[-1] or len(otherwise) != matrix.shape[1]:
        raise ValueError(f"expected {ptr[-1]} entries to look up and {matrix.shape[1]} otherwise")
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
    check_doubles(tables, scores)
    check_ints(ptr)
    check_numbers("f", 2, tables, scores)
    check_numbers("u", 1, *columns)
    n, k = scores.shape
    if tables.shape[1] != k:
        raise ValueError(f"tables: expected {k} classes, found {tables.shape[1]}")
    if len(ptr) < len(columns):
        raise ValueError(f"ptr: expected at least {len(columns)} offsets, found {len(ptr)}")
    for j, column in enumerate(columns):
        if len(column) != n:
            raise ValueError(f"column {j}: expected {n} rows, found {len(column)}")
        if n and not 0 <= ptr[j] <= len(tables) - 1 - int(column.max()):
            raise ValueError(f"column {j}: a code has no row among the {len(tables)} of the tables")
    for j, column in enumerate(columns):
        scores += tables[ptr[j] + column.astype(np.int64)]
