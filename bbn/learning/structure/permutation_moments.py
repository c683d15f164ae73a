"""P-values of independence where counts are small, from the exact moments over all permutations.

If x and y are independent given z, all ways to shuffle y within the rows of each z are equally likely. Over them,
Pearson's statistic of a stratum of n rows, with r rows and c columns that have counts, has mean n (r−1)(c−1) / (n−1)
and the variance of Haldane (1940). Strata add up, and the tail is that of a Gamma distribution with the same mean and
variance: the permutation test without the permutations (Mielke and Berry 1985).

Far out, Pearson's statistic is made by single counts where hardly any are expected, and its tail is heavier than that.
So p-values below `TAIL` are at least those of the likelihood ratio, G², with its own exact mean over the permutations
as its degrees of freedom (Tsamardinos and Borboudakis 2010).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.learning.structure.discrete_scores import FlatCounts

FEW_EXPECTED = 5.0
"""A test with a smaller expected count than this is one of small counts (Cochran 1954)."""
TAIL = 0.02
"""P-values below this are at least those of the likelihood ratio."""


def small_count_tests(counts: FlatCounts, firsts: NDArray[np.int64]) -> tuple[NDArray[np.intp], Array]:
    """The tests in which small counts are expected, and their p-values.

    Parameters
    ----------
    counts
        Families x, given…, y, one a test.
    firsts
        (tests,) The number of states of each x.

    Returns
    -------
    chosen, p_values
        Places among the tests, and as many p-values; tests that have no spread over the permutations have 1.
    """
    tables = _Tables(counts, firsts)
    chosen = np.flatnonzero(tables.least_expected < FEW_EXPECTED)
    p = tables.by_pearson()[chosen]
    for k in np.flatnonzero(p < TAIL):
        p[k] = max(p[k], min(TAIL, _by_likelihood_ratio(tables.strata_of(int(chosen[k])))))
    return chosen, p


class _Tables:
    """The tables of all tests by their counts above 0, with the margins of each stratum."""

    def __init__(self, counts: FlatCounts, firsts: NDArray[np.int64]) -> None:
        self.counts, self.firsts = counts, firsts
        self.n_tests = len(firsts)
        filled = np.flatnonzero(counts.cells)
        self.n = counts.cells[filled]
        test = np.searchsorted(counts.ptr, filled, side="right") - 1
        slices = np.diff(counts.ptr) // (firsts * counts.cards)
        place, last = np.divmod(filled - counts.ptr[test], counts.cards[test])
        first, stratum = np.divmod(place, slices[test])
        # strata, rows and columns, numbered over all tests
        strata = (np.cumsum(slices) - slices)[test] + stratum
        order, self.stratum = np.unique(strata, return_inverse=True)
        self.test = np.zeros(len(order), np.intp)
        self.test[self.stratum] = test
        rows, self.row = np.unique(self.stratum * int(firsts.max(initial=1)) + first, return_inverse=True)
        columns, self.column = np.unique(
            self.stratum * int(counts.cards.max(initial=1)) + last, return_inverse=True
        )
        self.total: Array = np.asarray(np.bincount(self.stratum, self.n), dtype=np.float64)
        self.across = _Margin(self.row, rows // int(firsts.max(initial=1)), self.n, self.total)
        self.down = _Margin(self.column, columns // int(counts.cards.max(initial=1)), self.n, self.total)
        self.tells = (self.across.size > 1) & (self.down.size > 1)
        """Strata with two rows and two columns or more."""

    @property
    def least_expected(self) -> Array:
        """(tests,) The smallest expected count of each, infinite where there is nothing to test."""
        found = np.full(self.n_tests, np.inf)
        expected = self.across.least * self.down.least / self.total
        np.minimum.at(found, self.test[self.tells], expected[self.tells])
        return found

    def by_pearson(self) -> Array:
        """(tests,) The tail of the Gamma distribution with the moments of Pearson's statistic."""
        from scipy.special import gammaincc

        n, a, b = self.total, self.across, self.down
        shares = self.n**2 / (a.sums[self.row] * b.sums[self.column])
        statistic = n * (np.bincount(self.stratum, shares) - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = n * (a.size - 1) * (b.size - 1) / (n - 1)
            (va, wa), (vb, wb) = a.spread(n), b.spread(n)
            rest = np.where(n > 3, 2 * n / (n - 3) * (va - wa) * (vb - wb), 0.0)
            variance = np.where(n > 2, rest + n**2 / (n - 1) * wa * wb, 0.0)
        x, mean, variance = (
            np.asarray(np.bincount(self.test[self.tells], values[self.tells], self.n_tests), dtype=np.float64)
            for values in (statistic, mean, variance)
        )
        known = variance > 1e-9 * mean
        p = np.ones(self.n_tests)
        p[known] = gammaincc(
            mean[known] ** 2 / variance[known], (x * mean / np.where(known, variance, 1))[known]
        )
        return p

    def strata_of(self, k: int) -> Array:
        """(strata, first, last): the table of one test, strata with rows."""
        cells = self.counts.cells[self.counts.ptr[k] : self.counts.ptr[k + 1]]
        table = np.moveaxis(cells.reshape(self.firsts[k], -1, self.counts.cards[k]), 1, 0)
        return np.asarray(table[table.sum(axis=(1, 2)) > 0], dtype=np.float64)


class _Margin:
    """The sums of rows, or of columns, in each stratum."""

    def __init__(self, of_count: NDArray[np.intp], stratum: NDArray[np.intp], n: Array, total: Array) -> None:
        self.sums = np.bincount(of_count, n)
        self.size = np.bincount(stratum, minlength=len(total))
        """(strata,) How many there are."""
        self.least = np.full(len(total), np.inf)
        np.minimum.at(self.least, stratum, self.sums)
        self.reciprocals = np.bincount(stratum, 1.0 / self.sums, minlength=len(total))

    def spread(self, n: Array) -> tuple[Array, Array]:
        """(strata,) Two terms of Haldane's variance."""
        v = (self.size - 1) * (n - self.size) / (n - 1)
        return v, (n * self.reciprocals - self.size**2) / (n - 2)


def _by_likelihood_ratio(table: Array) -> float:
    """The tail of χ² at G², its degrees of freedom the exact mean of G² over the permutations."""
    from scipy.special import chdtrc, gammaln, xlogy

    total, rows, columns = table.sum(axis=(1, 2)), table.sum(axis=2), table.sum(axis=1)
    margins = float(xlogy(rows, rows).sum() + xlogy(columns, columns).sum() - xlogy(total, total).sum())
    a, b, n = (
        np.broadcast_to(values, table.shape).ravel()
        for values in (rows[:, :, None], columns[:, None, :], total[:, None, None])
    )
    most = np.minimum(a, b)
    least = np.maximum(a + b - n, 0.0)
    # each count is hypergeometric: E[count · ln count], all its values in one flat array
    lengths = (most - least + 1).astype(np.intp)
    cell = np.repeat(np.arange(len(a)), lengths)
    count = least[cell] + np.arange(len(cell)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    a, b, n = a[cell], b[cell], n[cell]
    logs = (
        gammaln(a + 1)
        + gammaln(b + 1)
        + gammaln(n - a + 1)
        + gammaln(n - b + 1)
        - gammaln(n + 1)
        - gammaln(count + 1)
        - gammaln(a - count + 1)
        - gammaln(b - count + 1)
        - gammaln(n - a - b + count + 1)
    )
    freedom = 2 * (float(np.exp(logs) @ xlogy(count, count)) - margins)
    statistic = 2 * (float(xlogy(table, table).sum()) - margins)
    return float(chdtrc(freedom, max(statistic, 0.0))) if freedom > 1e-9 else 1.0
