"""Parts and resamples of a table in memory: what the bootstrap and cross-validation are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.data import CodedTable
from bbn.data.reading import Reading
from bbn.learning.structure.chow_liu import chow_liu
from bbn.learning.structure.exact.exact_search import exact_search
from bbn.learning.structure.ges import ges
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.k2 import k2
from bbn.learning.structure.pc import pc

Rows = NDArray[np.intp]
LEARNERS = {
    "hill-climb": hill_climb,
    "chow-liu": chow_liu,
    "exact": exact_search,
    "k2": k2,
    "pc": pc,
    "ges": ges,
}
"""Learners of a structure that need nothing but data, by name."""


def in_memory(data: Any, what: str, reading: Reading) -> CodedTable:
    """`data` as a table in memory; DataError for a source that is not."""
    source = reading.source(data)
    if not isinstance(source, CodedTable):
        raise DataError(f"{what} draws rows and so needs data in memory")
    return source


def take(table: CodedTable, rows: Rows) -> CodedTable:
    """Some rows of a table, each as often as it is listed."""
    return CodedTable(
        table.variables,
        {name: column[rows] for name, column in table.codes.items()},
        len(rows),
        None if table.weights is None else table.weights[rows],
        numbers={name: column[rows] for name, column in table.numbers.items()},
    )


def columns_of(table: CodedTable) -> dict[str, Any]:
    """The table as columns of states, None where missing, and of numbers, NaN where missing."""
    columns: dict[str, Any] = {
        v.name: [(*v.states, None)[code] for code in table.codes[v.name].tolist()] for v in table.variables
    }
    return {**columns, **table.numbers}


def as_learner(learner: Any) -> Any:
    """A learner by name, or any function of data."""
    if isinstance(learner, str):
        if learner not in LEARNERS:
            raise ValueError(
                f"unknown learner {learner!r}; expected a function, or one of {', '.join(LEARNERS)}"
            )
        return LEARNERS[learner]
    if not callable(learner):
        raise TypeError(f"learner is {learner!r}; expected a function of data, such as bbn.hill_climb")
    return learner
