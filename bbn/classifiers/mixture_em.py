"""EM for a mixture of Gaussians with independent columns, on plain arrays.

    E: r_ij ∝ w_j Π_f N(x_if; μ_jf, σ²_jf)        M: μ_jf = Σ_i r_ij x_if / Σ_i r_ij,    σ²_jf likewise about μ_jf

(Dempster, Laird and Rubin 1977). It is what `bbn.fit_em` does to the network of a mixture, step for step, without an
object per column: columns are measured from their means in units of their standard deviations, the moments of a step
are taken about the means before it, so no precision is lost, and a variance has the same floor. A pass costs rows ×
columns × components; chunks of rows are worked on by threads and added up in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import jobs
from bbn.core.frozen import Array
from bbn.core.threads import REASONS, STOPS, in_order, reason_of
from bbn.data.coded_table import CodedTable
from bbn.learning.gaussian.estimates import FLOOR, Leaves, Units, estimate_leaves, widths
from bbn.learning.gaussian.m_step import ROUNDING
from bbn.learning.gaussian.moments import leaf_moments, refuse_overflow
from bbn.learning.gaussian.seeding import plus_plus, sample_rows, spread_about
from bbn.learning.structure.constraints import ranked, tie_of

CELLS = 1 << 20
"""Numbers and responsibilities of a chunk of rows, at most."""
ROWS = 4096
"""Rows of a chunk, at most."""
KEPT = 1 << 25
"""Bytes of columns in standard units that are kept from pass to pass, at most."""


class Parameters(NamedTuple):
    """A mixture in standard units: weights (k,), means and variances (columns, k)."""

    weights: Array
    means: Array
    variances: Array


class Climb(NamedTuple):
    """Where a climb led."""

    parameters: Parameters
    log_likelihoods: list[float]
    reason: str


class Mixture:
    """The data of a mixture, and what EM may change.

    Parameters
    ----------
    names
        The columns' names.
    numbers
        The rows, shape (rows, columns), NaN where a number is missing.
    weights
        A weight per row, or None.
    equal_weights, tied
        Whether components have equal weights, and each column one variance for all of them.
    fixed
        The variance of each column, where they are not to be learned.

    Attributes
    ----------
    centre, scale
        The mean and the standard deviation of each column.
    total
        The weight of all rows.
    """

    def __init__(
        self,
        names: list[str],
        numbers: Array,
        weights: Array | None,
        equal_weights: bool,
        tied: bool,
        fixed: Array | None,
    ) -> None:
        self.names, self.numbers = names, numbers
        self.weights = np.ones(len(numbers)) if weights is None else weights
        self.equal_weights, self.tied = equal_weights, tied
        self.total = float(self.weights.sum())
        whole = leaf_moments(numbers, np.zeros(len(numbers), np.intp), weights, 1)
        n, centre, squares = (part[:, 0] for part in whole)
        for f in np.flatnonzero(~np.isfinite(squares)).tolist():
            refuse_overflow(names[f], squares[f])
        seen = n > 0
        self.centre = np.where(seen, centre, 0.0)
        self.scale = widths(self.centre, np.where(seen, squares / np.where(seen, n, 1.0), 1.0))
        self.fixed = None if fixed is None else fixed / self.scale**2
        self._constant = -float(n @ np.log(self.scale))
        self._kept: dict[int, Array] | None = {} if numbers.nbytes <= KEPT else None

    def given(self, means: Array, variances: Array) -> Parameters:
        """A start with these means (k, columns), these variances of columns, and equal weights."""
        k = len(means)
        standard = np.repeat((variances / self.scale**2)[:, None], k, axis=1)
        centred = np.ascontiguousarray(((means - self.centre) / self.scale).T)
        return Parameters(np.full(k, 1.0 / k), centred, self._variances(standard))

    def drawn(self, k: int, generator: np.random.Generator) -> Parameters:
        """A start at k rows of the data that lie far from each other (k-means++)."""
        columns = {name: np.ascontiguousarray(self.numbers[:, f]) for f, name in enumerate(self.names)}
        source = CodedTable((), {}, len(self.numbers), self.weights, numbers=columns)
        rows = sample_rows(self, source)
        generator.standard_exponential(
            k
        )  # which `fit_em` starts tables from: the same seed is the same start
        centres, nearest = plus_plus(rows, k, generator)
        shares = np.bincount(nearest, minlength=k) + 1.0
        variances = np.repeat(spread_about(rows, centres, nearest)[:, None], k, axis=1)
        weights = np.full(k, 1.0 / k) if self.equal_weights else shares / shares.sum()
        return Parameters(weights, np.ascontiguousarray(centres.T), self._variances(variances))

    def climbs(self, starts: list[Parameters], tol: float, max_iter: int) -> list[Climb]:
        """The climb from each start; those that Ctrl-C or a time limit left where it was heard."""
        found: list[Climb] = []
        for start in starts:
            try:
                found.append(self.climb(start, tol, max_iter))
            except STOPS as stop:  # before the first look at the rows from this start
                reason = reason_of(stop)
                if not found:
                    raise
                found[-1] = found[-1]._replace(reason=reason)
            if found[-1].reason in REASONS:
                break
        return found

    def climb(self, start: Parameters, tol: float, max_iter: int) -> Climb:
        """Steps of EM, until one gains no more than `tol` per row."""
        now, reason = start, "max_iter"
        counts, moments, log_likelihood = self._expect(now)
        told = [log_likelihood]
        try:
            while len(told) <= max_iter:
                following = self._maximise(now, counts, moments)
                counts, moments, log_likelihood = self._expect(following)
                now = following
                told.append(log_likelihood)
                if told[-1] - told[-2] <= tol * self.total:
                    reason = "converged"
                    break
        except STOPS as stop:
            reason = reason_of(stop)
        return Climb(now, told, reason)

    def best(self, climbs: list[Climb]) -> Climb:
        """The climb that got highest, of those that tie the first; one with a variance at its floor only if all have.

        A likelihood means little there.
        """
        sound = [climb for climb in climbs if not self.collapsed(climb.parameters).any()] or climbs
        reached = np.array([climb.log_likelihoods[-1] for climb in sound])
        return sound[int(ranked(reached, tie_of(self.total))[0])]

    def collapsed(self, parameters: Parameters) -> np.ndarray:
        """Whether each variance (columns, k) is held at its floor."""
        return (parameters.variances <= FLOOR * (1 + 1e-6)) & (self.fixed is None)

    def _expect(self, parameters: Parameters) -> tuple[Array, Array, float]:
        """The E step: expected counts (k,), moments (3, columns, k) about the means, and ln p of all rows."""
        d, k = parameters.means.shape
        size = max(64, min(ROWS, CELLS // (d + k)))
        starts = range(0, len(self.numbers), size)
        with np.errstate(divide="ignore"):
            log_weights = np.log(parameters.weights)

        def work(start: int) -> tuple[Array, Array, float]:
            z, weights = self._standard(start, start + size), self.weights[start : start + size]
            shares = np.repeat(log_weights[:, None], len(weights), axis=1)
            kernels.gaussians.add_log_densities(z, parameters.means, parameters.variances, shares)
            logs = np.empty(len(weights))
            kernels.gaussians.normalise(shares, weights, logs)
            moments = np.zeros((3, d, k))
            kernels.gaussians.add_moments(z, shares, parameters.means, moments)
            return shares.sum(axis=1), moments, float(weights @ logs)

        counts, moments, total = np.zeros(k), np.zeros((3, d, k)), self._constant
        for own, parts, log in in_order(work, starts, min(jobs(), len(starts))):
            counts += own
            moments += parts
            total += log
        return counts, moments, total

    def _standard(self, start: int, stop: int) -> Array:
        """Some rows in standard units, (columns, rows)."""
        z = None if self._kept is None else self._kept.get(start)
        if z is None:
            z = self.numbers[start:stop].T.copy(order="C")
            z -= self.centre[:, None]
            z /= self.scale[:, None]
            if self._kept is not None:
                self._kept[start] = z
        return z

    def _maximise(self, old: Parameters, counts: Array, moments: Array) -> Parameters:
        """The M step."""
        n, sums, squares = moments
        shift = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
        scatter = np.maximum(squares - sums * shift, ROUNDING * squares)
        if self.tied:
            scatter = n * (scatter.sum(axis=1) / n.sum(axis=1))[:, None]
        d = len(n)
        found, unseen, _ = estimate_leaves(
            Leaves(n, old.means + shift, scatter), Units(np.zeros(d), np.ones(d))
        )
        variances = found.variances
        if self.tied:  # a component without rows has the variance of the others
            variances = np.where(unseen, np.where(unseen, np.inf, variances).min(axis=1)[:, None], variances)
        weights = old.weights if self.equal_weights else counts / counts.sum()
        return Parameters(weights, found.means, self._variances(variances))

    def _variances(self, learned: Array) -> Array:
        """The variances, where they are not fixed those learned."""
        if self.fixed is None:
            return np.ascontiguousarray(learned)
        return np.repeat(self.fixed[:, None], learned.shape[1], axis=1)
