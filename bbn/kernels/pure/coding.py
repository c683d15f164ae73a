"""Coding columns and merging rows, in numpy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import check_numbers
from bbn.kernels.contracts.types import Ints


def factorize_objects(values: NDArray[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """The distinct values of an array of objects in order of appearance, and the index of each row's.

    Values of different types are distinct (True is not 1); None and whatever differs from itself is −1.
    """
    codes = np.empty(len(values), dtype=np.int32)
    uniques: list[Any] = []
    known: dict[Any, int] = {}
    for i, value in enumerate(values.tolist() if values.dtype != object else values):
        key = value if type(value) is str else (type(value), value)
        code = known.get(key)
        if code is None:
            if _is_missing(value):
                code = -1
            else:
                code = len(uniques)
                uniques.append(value)
            known[key] = code
        codes[i] = code
    return codes, uniques


def factorize_text(offsets: Ints, data: NDArray[np.uint8]) -> tuple[NDArray[np.int32], list[str]]:
    """The distinct texts of a column in order of appearance, and the index of each row's.

    Row i is the bytes ``data[offsets[i]:offsets[i + 1]]``, UTF-8, which is how Arrow lays text out.
    """
    check_numbers("i", 1, offsets)
    check_numbers("u", 1, data)
    raw = data.tobytes()
    ends = offsets.tolist()
    for i, (start, end) in enumerate(pairwise(ends)):
        if not 0 <= start <= end <= len(raw):
            raise ValueError(f"row {i}: bytes {start} to {end} are not among the {len(raw)} there are")
    texts = np.empty(len(ends) - 1, dtype=object)
    texts[:] = [raw[start:end].decode("utf-8") for start, end in pairwise(ends)]
    return factorize_objects(texts)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return type(value).__name__ == "NAType"


def merge_rows(columns: list[NDArray[Any]]) -> tuple[Ints, Ints]:
    """The first row of each set of equal rows, in order of appearance, and for each row the index of its set."""
    for k, column in enumerate(columns):
        if len(column) != len(columns[0]):
            raise ValueError(f"column {k}: expected {len(columns[0])} rows, found {len(column)}")
    stacked = np.column_stack([c.astype(np.uint16) for c in columns])
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order].astype(np.int64), rank[inverse.reshape(-1)].astype(np.int64)
