"""Real-valued attributes of a naive Bayes classifier: each column a Gaussian given the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.classifiers.encoding import as_numbers, split
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.learning.gaussian.estimates import (
    GaussianEstimate,
    GaussianFamily,
    GaussianParameters,
    estimate_leaves,
    warn_of,
)
from bbn.learning.gaussian.moments import leaf_moments
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Continuous, Variable

ROWS = 4096
"""Rows that are scored together."""


class MeasuredColumns:
    """Which columns of a table are measurements, and what was learned of them.

    Parameters
    ----------
    told
        True for all columns, or their names (or positions).
    names
        The names of all columns.

    Attributes
    ----------
    numbers
        After `learn`: means and variances, (columns, classes).
    """

    target: Variable
    numbers: GaussianParameters

    def __init__(self, told: Any, names: Sequence[str]) -> None:
        listed = list(names) if told is True else [told] if isinstance(told, str) else list(told)
        place = {name: j for j, name in enumerate(names)}
        found = set()
        for own in listed:
            position = own if isinstance(own, int) and not isinstance(own, bool) else None
            if position is None:
                if own not in place:
                    raise DataError(f"continuous= names {own!r}, which is not a column{nearest(own, names)}")
                position = place[own]
            if not 0 <= position < len(names):
                raise DataError(f"continuous= names column {own}; there are {len(names)}")
            found.add(position)
        self.positions = sorted(found)
        self.names = [names[j] for j in self.positions]
        self.others = [name for j, name in enumerate(names) if j not in found]

    def parted(self, table: Any) -> tuple[Any, Array]:
        """The other columns as a table, and the measurements, shape (columns, rows)."""
        if isinstance(table, np.ndarray) and table.dtype.kind in "iuf":
            rest = sorted({*range(table.shape[1])} - {*self.positions})
            numbers = table if not rest else table[:, self.positions]
            numbers = np.asarray(numbers, dtype=np.float64).T
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
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(numbers.sum()):
                return
        for name, column in zip(self.names, numbers, strict=True):
            if np.isinf(column).any():
                raise ValueError(f"column {name!r}: Input X contains infinity or a value too large.")

    def learn(
        self, target: Variable, numbers: Array, labels: NDArray[np.int64], weights: Array | None
    ) -> None:
        """Learn the Gaussians of all columns given the class, by maximum likelihood; missing numbers are left out."""
        moments = leaf_moments(numbers.T, labels, weights, target.card)
        for name, n, scatter in zip(
            self.names, moments.n.sum(axis=1), moments.scatter.sum(axis=1), strict=True
        ):
            if n == 0:
                raise DataError(f"column {name!r} holds no number at all")
            if not np.isfinite(scatter):
                raise DataError(f"column {name!r} holds numbers whose squares overflow; rescale it")
        self.target = target
        self.numbers, unseen, collapsed = estimate_leaves(moments)
        told = np.flatnonzero((unseen | collapsed).any(axis=1))
        families = [GaussianFamily(Continuous(self.names[k]), (target,)) for k in told]
        estimates = [GaussianEstimate(self.numbers, unseen[k], collapsed[k]) for k in told]
        warn_of(families, estimates)

    def gaussians(self) -> list[Gaussian]:
        """What was learned, a Gaussian per column."""
        means, _, variances = self.numbers
        return [
            Gaussian.trusted(
                Continuous(name),
                (self.target,),
                means[k].copy(),
                variances[k].copy(),
                np.empty((self.target.card, 0)),
            )
            for k, name in enumerate(self.names)
        ]

    def add_scores(self, numbers: Array, scores: Array) -> None:
        """Add ln p(measurements | class) to the scores, shape (rows, classes)."""
        means, variances = (
            np.ascontiguousarray(self.numbers.means),
            np.ascontiguousarray(self.numbers.variances),
        )
        for start in range(0, len(scores), ROWS):
            rows = slice(start, start + ROWS)
            logs = np.zeros((scores.shape[1], len(scores[rows])))
            kernels.gaussians.add_log_densities(
                np.ascontiguousarray(numbers[:, rows]), means, variances, logs
            )
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
