"""Tests of independence: is x independent of y given a set of others, in states, in numbers, or in both.

================  ==================================================================================================
g2, chi2, mi      states: the likelihood ratio, Pearson's statistic, and the likelihood ratio with all settings counted
permutation       states: g2 where every expected count is 5 or more, otherwise the moments of the permutation test
fisher-z          numbers: √(N − k − 3) · artanh r is standard normal, r the partial correlation given k others (Fisher)
cor               numbers: r √((N − k − 2) / (1 − r²)) has Student's t distribution
lrt               both: 2 (L(x, y, S) − L(x, S) − L(y, S) + L(S)) has a χ² distribution, L the largest log-likelihood of
                  states with any table and of numbers jointly Gaussian in each setting
================  ==================================================================================================

The last is the regression likelihood-ratio test where x or y is a number (Tsagris et al. 2018), and has an answer for
two variables with states given numbers too (Andrews, Ramsey & Cooper 2018). Many tests come from one request each for
counts and for moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from bbn import kernels
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data import CodedTable, DataSource, continuous_columns
from bbn.data.seen_settings import LEAST, SPARSE, seen_settings
from bbn.learning.structure.constraints import tie_of
from bbn.learning.structure.discrete_scores import FlatCounts, flatten
from bbn.learning.structure.gaussian_scores import MomentScores
from bbn.learning.structure.neighbours import MAX_CELLS
from bbn.learning.structure.permutation_moments import small_count_tests

Triple = tuple[str, str, tuple[str, ...]]
"""Two variables, and those to condition on."""
PValues = Callable[[Sequence[Triple]], Array]
DISCRETE, GAUSSIAN = ("g2", "chi2", "mi", "permutation"), ("fisher-z", "cor")
TESTS = ("auto", *DISCRETE, *GAUSSIAN, "lrt")


def independence_test(source: DataSource, test: str) -> PValues:
    """How probable a statistic at least as large is if the two variables are independent, for many tests at once.

    "auto" is "g2" for states, "fisher-z" for numbers, and "lrt" where a test has both.
    """
    if test not in TESTS:
        raise ValueError(f"unknown test {test!r}{nearest(test, TESTS)}; the tests are {', '.join(TESTS)}")
    numeric = continuous_columns(source)
    if test in DISCRETE and numeric:
        raise DataError(
            f"test={test!r} takes states, but {numeric[0]!r} holds numbers; test='auto' takes both"
        )
    if test in GAUSSIAN and source.variables:
        raise DataError(
            f"test={test!r} takes numbers, but {source.variables[0].name!r} has states; test='auto' takes both"
        )
    if not numeric:
        return CountTests(source, "g2" if test in ("auto", "lrt") else test)
    return _MixedTests(source, test)


class CountTests:
    """Tests on contingency tables."""

    def __init__(self, source: DataSource, test: str) -> None:
        self.source, self.test = source, test
        self.cards = {v.name: v.card for v in source.variables}

    def __call__(self, triples: Sequence[Triple]) -> Array:
        """The p-value of each test; all from one request for counts, or from a few where their tables are large."""
        p = np.ones(len(triples))
        for chosen, counts in self._batches(triples):
            p[chosen] = self._tested(counts, [triples[i] for i in chosen])
        return p

    def _batches(self, triples: Sequence[Triple]) -> Iterator[tuple[Sequence[int], FlatCounts]]:
        """Tests with their counts, at most MAX_CELLS cells at a time of data in memory.

        Settings that no row has change neither a statistic nor its degrees of freedom, so where tables would be far
        larger than such data only the settings that rows have are counted.
        """
        if not triples:
            return
        table = self.source if isinstance(self.source, CodedTable) else None
        most = 0 if table is None else SPARSE * table.n_rows + LEAST
        largest = max(self.cards.values()) ** (2 + max([len(given) for _, _, given in triples]))
        if table is None or (largest <= most and largest * len(triples) <= MAX_CELLS):
            yield range(len(triples)), self._laid_out(triples)
            return
        batch: list[int] = []
        seen: list[tuple[int, FlatCounts]] = []
        cells = n_seen = 0
        for i, (x, y, given) in enumerate(triples):
            size = prod([self.cards[name] for name in (x, y, *given)])
            if size > most:
                if n_seen > MAX_CELLS:
                    yield [k for k, _ in seen], _joined([own for _, own in seen])
                    seen, n_seen = [], 0
                seen.append((i, _seen_counts(table, (x, y, given))))
                n_seen += len(seen[-1][1].cells)
                continue
            if batch and cells + size > MAX_CELLS:
                yield batch, self._laid_out([triples[k] for k in batch])
                batch, cells = [], 0
            batch.append(i)
            cells += size
        if batch:
            yield batch, self._laid_out([triples[k] for k in batch])
        if seen:
            yield [k for k, _ in seen], _joined([own for _, own in seen])

    def _laid_out(self, triples: Sequence[Triple]) -> FlatCounts:
        """Whole tables, from one request for counts."""
        families = [(x, *given, y) for x, y, given in triples]
        return flatten(self.source.counts(families), self.source.total)

    def _tested(self, counts: FlatCounts, triples: Sequence[Triple]) -> Array:
        from scipy.special import chdtrc

        firsts = np.array([self.cards[x] for x, _, _ in triples], dtype=np.int64)
        statistics, freedom = kernels.score.independence(
            counts.cells, counts.ptr, firsts, counts.cards, self.test == "chi2"
        )
        if self.test == "mi":
            slices = [float(prod(self.cards[name] for name in given)) for _, _, given in triples]
            freedom = (firsts - 1) * (counts.cards - 1) * np.array(slices)
        # where a statistic is 0 but for rounding, its p-value would not be 1 by much more than that
        statistics[statistics <= tie_of(self.source.total)] = 0.0
        p = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), statistics), 1.0)
        if self.test == "permutation" and not np.any(counts.cells % 1):  # shares of rows cannot be shuffled
            chosen, small = small_count_tests(counts, firsts)
            p[chosen] = small
        return np.asarray(p)


def _joined(counts: Sequence[FlatCounts]) -> FlatCounts:
    """The counts of several tests end to end."""
    ptr = np.concatenate([[0], np.cumsum([len(own.cells) for own in counts])])
    cells, cards = (np.concatenate([own[k] for own in counts]) for k in (0, 2))
    return FlatCounts(cells, ptr, cards, counts[0].total)


def _seen_counts(table: CodedTable, triple: Triple) -> FlatCounts:
    """The counts of x and y in the settings of the others that some row has."""
    x, y, given = triple
    place = {v.name: i for i, v in enumerate(table.variables)}
    settings = seen_settings(table, [place[name] for name in given])
    cards = [table.variables[place[name]].card for name in (x, y)]
    index = (table.codes[x].astype(np.int64) * settings.n_seen + settings.of_row) * cards[1] + table.codes[y]
    cells = np.bincount(index, table.weights, cards[0] * settings.n_seen * cards[1])
    return FlatCounts(cells, np.array([0, len(cells)]), np.array([cards[1]], np.int64), table.total)


class _MixedTests:
    """Tests where there are numbers, each by the kinds of what it looks at."""

    def __init__(self, source: DataSource, test: str) -> None:
        self.source, self.test = source, test
        self.moments = MomentScores(source)
        self.numeric = frozenset(self.moments.names)
        self.cards = {v.name: v.card for v in source.variables}
        self.states = CountTests(source, "g2")

    def __call__(self, triples: Sequence[Triple]) -> Array:
        p = np.ones(len(triples))
        kinds = [{name in self.numeric for name in (x, y, *given)} for x, y, given in triples]
        for wanted, work in (
            ({False}, self.states),
            ({True}, self._likelihood_ratios if self.test == "lrt" else self._correlations),
            ({True, False}, self._likelihood_ratios),
        ):
            chosen = [i for i, kind in enumerate(kinds) if kind == wanted]
            if chosen:
                p[chosen] = work([triples[i] for i in chosen])
        return p

    def _correlations(self, triples: Sequence[Triple]) -> Array:
        """Fisher's z, or Student's t."""
        from scipy.special import ndtr, stdtr

        r = self.moments.partial_correlations(triples)
        given = np.array([len(others) for _, _, others in triples], dtype=np.float64)
        if self.test == "cor":
            freedom = self.source.total - given - 2
            with np.errstate(divide="ignore"):
                t = np.abs(r) * np.sqrt(np.maximum(freedom, 0.0) / (1 - r**2))
            return np.where(freedom > 0, 2 * stdtr(np.maximum(freedom, 1e-9), -t), 1.0)
        size = self.source.total - given - 3
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.sqrt(np.maximum(size, 0.0)) * np.arctanh(np.abs(r))
        return np.where(size > 0, 2 * ndtr(-z), 1.0)

    def _likelihood_ratios(self, triples: Sequence[Triple]) -> Array:
        """The likelihood ratio of jointly conditional Gaussians; 1 where there are too few rows to tell."""
        from scipy.special import chdtrc

        sets = [
            tuple(sorted(names))
            for x, y, given in triples
            for names in ((x, y, *given), (x, *given), (y, *given), given)
        ]
        distinct = list(dict.fromkeys(sets))
        place = {names: i for i, names in enumerate(distinct)}
        large = np.array([self._settings(names) > MAX_CELLS for names in distinct])
        small = [names for names, too in zip(distinct, large, strict=True) if not too]
        logs, parameters, scarce = np.zeros(len(distinct)), np.zeros(len(distinct)), large.copy()
        kept = np.flatnonzero(~large)
        logs[kept], parameters[kept], scarce[kept] = self.moments.joint(small)
        table_logs, table_parameters = self._tables(small)
        logs[kept] += table_logs
        parameters[kept] += table_parameters
        index = np.array([place[names] for names in sets]).reshape(-1, 4)
        signs = np.array([1.0, -1.0, -1.0, 1.0])
        statistics, freedom = 2 * logs[index] @ signs, parameters[index] @ signs
        statistics = np.where(statistics <= tie_of(self.source.total), 0.0, statistics)
        known = (freedom > 0) & ~scarce[index[:, 0]]
        return np.where(known, chdtrc(np.maximum(freedom, 1), statistics), 1.0)

    def _settings(self, names: Sequence[str]) -> int:
        return prod(self.cards[name] for name in names if name in self.cards)

    def _tables(self, sets: Sequence[tuple[str, ...]]) -> tuple[Array, Array]:
        """The log-likelihood of the states of each set under any table, and the number of settings seen, less one."""
        logs, parameters = np.zeros(len(sets)), np.zeros(len(sets))
        split = [tuple(name for name in names if name in self.cards) for names in sets]
        asked = list(dict.fromkeys(names for names in split if names))
        found = dict(zip(asked, self.source.counts(asked), strict=True)) if asked else {}
        for i, names in enumerate(split):
            if names:
                n = np.asarray(found[names], dtype=np.float64)
                n = n[n > 0]
                logs[i] = float(n @ np.log(n)) - float(n.sum()) * np.log(n.sum())
                parameters[i] = len(n) - 1
        return logs, parameters
