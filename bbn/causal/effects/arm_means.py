"""The mean outcome if everyone had a treatment, from few rows that had it: a weighted mean, and how far off it may be.

Both estimators are linear in the outcomes y of the rows of the arm, given everything else: ψ = Σ ω_i y_i. So

    Var ψ  =  Σ ω_i² σ_i²  +  Var m / n        m the regression of y on the covariates, over all n rows

where σ² is that of the row's cell, e² / (1 − h) on average, h the leverage (MacKinnon and White 1985). A cell of few
rows hardly tells its variance, so that of the whole arm counts as `POOLED` more rows of each (Smyth 2004). Degrees of
freedom are Satterthwaite's (1946).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array

POOLED = 6.0
"""As many rows the variance of the whole arm counts in each cell."""


class ArmMean(NamedTuple):
    """The mean outcome under one treatment."""

    value: float
    predicted: Array
    """(rows,) What each row would have had on average; its spread is part of the variance."""
    within: float
    """The variance given the covariates."""
    freedom: float
    """The degrees of freedom of that."""
    size: float
    """As many rows of equal weight would tell as much (Kish 1965)."""


class ArmRegression:
    """y on the covariates, by least squares in each cell, from the rows of an arm.

    Parameters
    ----------
    y : array
        (rows,)
    times : array
        (rows,) How many equal rows of the data each stands for; 0 outside the arm.
    cell : array of int
        (rows,) The cell of each row.
    lines : array
        (rows, k) Numbers that y depends on linearly in each cell.
    """

    def __init__(self, y: Array, times: Array, cell: NDArray[np.intp], lines: Array) -> None:
        self.y, self.times, self.cell = y, times, cell
        self.n_cells = int(cell.max(initial=-1)) + 1
        self.design = np.column_stack([np.ones(len(y)), lines])
        self.predicted = np.full(len(y), np.nan)
        self.leverage = np.ones(len(y))
        rows = np.bincount(cell, times, self.n_cells)
        self.seen = rows > 0
        """(cells,) Whether any row of the arm is there."""
        self.inverses: dict[int, Array] = {}
        if lines.shape[1]:
            for c in np.flatnonzero(self.seen).tolist():
                self._fit(c)
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                self.predicted = (np.bincount(cell, times * y, self.n_cells) / rows)[cell]
                self.leverage = (1.0 / rows)[cell]

    def _fit(self, c: int) -> None:
        here = self.cell == c
        design, times = self.design[here], self.times[here]
        inverse = np.linalg.pinv((design * times[:, None]).T @ design, rcond=1e-10, hermitian=True)
        self.inverses[c] = inverse
        self.predicted[here] = design @ (inverse @ (design.T @ (times * self.y[here])))
        self.leverage[here] = np.einsum("ij,jk,ik->i", design, inverse, design)

    def weights_of(self, shares: Array) -> Array:
        """(rows,) ω with Σ shares · predicted = Σ ω · times · y over the rows of the arm; cells not seen count as 0."""
        if not self.inverses:
            rows = np.bincount(self.cell, self.times, self.n_cells)
            sums = np.bincount(self.cell, shares, self.n_cells)
            return np.asarray(np.divide(sums, rows, out=np.zeros(self.n_cells), where=rows > 0)[self.cell])
        found = np.zeros(len(shares))
        for c, inverse in self.inverses.items():
            here = self.cell == c
            design = self.design[here]
            found[here] = design @ (inverse @ (design.T @ shares[here]))
        return found

    def mean(self, value: float, weights: Array) -> ArmMean:
        """The arm's mean Σ ω · times · y = value, with its variance; NaN where no row is in the arm."""
        arm = self.times > 0
        if not arm.any():
            return ArmMean(np.nan, self.predicted, np.nan, 1.0, 0.0)
        cell, times, omega = self.cell[arm], self.times[arm], weights[arm]
        left = (self.y - np.where(np.isnan(self.predicted), 0.0, self.predicted))[arm]
        squares = np.bincount(cell, times * left**2, self.n_cells)
        freedom = np.maximum(np.bincount(cell, times * (1.0 - self.leverage[arm]), self.n_cells), 0.0)
        whole = float(squares.sum() / freedom.sum()) if freedom.sum() > 1e-9 else self._spread(arm)
        variance = (squares + POOLED * whole) / (freedom + POOLED)
        parts = np.bincount(cell, times * omega**2, self.n_cells) * variance
        within = float(parts.sum())
        # a cell's variance has the degrees of its rows and of those that are pooled, all arms' together at most
        own = freedom + POOLED
        known = max(float(freedom.sum()), 1.0)
        degrees = within**2 / float(parts**2 @ (1.0 / own)) if within > 0 else known
        size = float((times @ omega) ** 2 / (times @ omega**2)) if np.any(omega) else 0.0
        return ArmMean(value, self.predicted, within, min(max(degrees, 1.0), known), size)

    def _spread(self, arm: NDArray[np.bool_]) -> float:
        """The variance of y in the arm, where no cell has rows to spare; that of all rows if it has none either."""
        for rows, times in ((arm, self.times[arm]), (np.ones_like(arm), np.ones(len(arm)))):
            total = float(times.sum())
            if total > 1:
                centre = float(times @ self.y[rows]) / total
                variance = float(times @ (self.y[rows] - centre) ** 2) / (total - 1)
                if variance > 0:
                    return variance
        return 0.0
