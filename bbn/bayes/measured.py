"""Real-valued attributes of a naive Bayes classifier: each column a Gaussian given the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.bayes.encoding import as_numbers, split
from bbn.data.source import CodedTable
from bbn.errors import DataError, nearest
from bbn.frozen import Array
from bbn.gaussian import Gaussian
from bbn.kernels.gaussians import add_log_densities
from bbn.learning.gaussians import GaussianFamily, estimate, overall, warn_of
from bbn.learning.moments import moments_of
from bbn.variable import Continuous, Variable

ROWS = 4096
"""Rows that are scored together."""


class Measured:
    """Which columns of a table are measurements, and what was learned of them.

    Parameters
    ----------
    told
        True for all columns, or their names (or positions).
    names
        The names of all columns.
    """

    def __init__(self, told: Any, names: Sequence[str]) -> None:
        listed = list(names) if told is True else [told] if isinstance(told, str) else list(told)
        self.positions = []
        for own in listed:
            position = own if isinstance(own, int) and not isinstance(own, bool) else None
            if position is None:
                if own not in names:
                    raise DataError(f"continuous= names {own!r}, which is no column{nearest(own, names)}")
                position = list(names).index(own)
            if not 0 <= position < len(names):
                raise DataError(f"continuous= names column {own}; there are {len(names)}")
            self.positions.append(position)
        self.positions = sorted(set(self.positions))
        self.names = [names[j] for j in self.positions]
        self.others = [name for j, name in enumerate(names) if j not in self.positions]
        self.gaussians: list[Gaussian] = []

    def parted(self, table: Any) -> tuple[Any, Array]:
        """The other columns as a table, and the measurements, shape (columns, rows)."""
        if isinstance(table, np.ndarray) and table.dtype.kind in "iuf":
            rest = [j for j in range(table.shape[1]) if j not in self.positions]
            numbers = np.ascontiguousarray(table[:, self.positions].T, dtype=np.float64)
            self._check(numbers)
            return table[:, rest], numbers
        columns = list(split(table))
        numbers = np.empty((len(self.positions), len(table)))
        for k, j in enumerate(self.positions):
            column = as_numbers(columns[j])
            if column is None:
                raise DataError(f"column {self.names[k]!r} is continuous, but holds more than numbers")
            numbers[k] = column
        self._check(numbers)
        return take_columns(table, [j for j in range(len(columns)) if j not in self.positions]), numbers

    def _check(self, numbers: Array) -> None:
        for name, column in zip(self.names, numbers, strict=True):
            if np.isinf(column).any():
                raise ValueError(f"column {name!r}: Input X contains infinity or a value too large.")

    def learn(
        self, target: Variable, numbers: Array, labels: NDArray[np.int64], weights: Array | None
    ) -> list[Gaussian]:
        """The Gaussians of all columns given the class, by maximum likelihood; missing numbers are left out."""
        families = [GaussianFamily(Continuous(name), (target,)) for name in self.names]
        codes = {target.name: labels.astype(np.uint8 if target.card <= 255 else np.uint16)}
        columns = dict(zip(self.names, numbers, strict=True))
        source = CodedTable((target,), codes, len(labels), weights, numbers=columns)
        moments = moments_of(families, source)
        for name, own in zip(self.names, moments, strict=True):
            if not own.n.any():
                raise DataError(f"column {name!r} holds no number at all")
        estimates = [estimate(f, m, overall(m)) for f, m in zip(families, moments, strict=True)]
        warn_of(families, estimates, stacklevel=4)
        self.gaussians = [f.gaussian(e.numbers) for f, e in zip(families, estimates, strict=True)]
        return self.gaussians

    def add_scores(self, numbers: Array, scores: Array) -> None:
        """Add ln p(measurements | class) to the scores, shape (rows, classes)."""
        means = np.array([g.means for g in self.gaussians])
        variances = np.array([g.variances for g in self.gaussians])
        for start in range(0, len(scores), ROWS):
            rows = slice(start, start + ROWS)
            logs = np.zeros((scores.shape[1], len(scores[rows])))
            add_log_densities(np.ascontiguousarray(numbers[:, rows]), means, variances, logs)
            scores[rows] += logs.T


def take_columns(table: Any, positions: list[int]) -> Any:
    """Some columns of an array or a DataFrame of any library."""
    if isinstance(table, np.ndarray):
        return table[:, positions]
    if hasattr(table, "iloc"):
        return table.iloc[:, positions]
    import narwhals as nw

    frame: Any = nw.from_native(table, eager_only=True)
    return frame.select([frame.columns[j] for j in positions]).to_native()
