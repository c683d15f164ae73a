"""Expected counts and moments under a network with Gaussians: the E step of mixtures and of all that holds them.

Given a row's numbers, the Gaussians whose discrete parents are S are a table over S: the density of the numbers in
each setting. It joins the network's own tables in the junction tree for that row. Its gradient times the table is the
responsibility P(S = s | row), and the moments of the numbers, weighted by it, are all that the M step needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.frozen import Array
from bbn.data import Block
from bbn.inference.rows.expected_counts import Expectation
from bbn.inference.rows.row_plan import RowPlan
from bbn.learning.gaussian.estimates import GaussianParameters
from bbn.learning.gaussian.linked import LinkedGaussians
from bbn.learning.gaussian.m_step import GaussianFamilies
from bbn.model.network import BayesianNetwork

ROWS = 4096
"""Rows of one chunk, fewer where there are many settings; chunks add up in order."""
CELLS = 1 << 20
"""The most settings times rows of a chunk."""
SMALL = 64
"""Families join others with more discrete parents where these have no more settings than this."""

JOINT = 1 << 10
"""The most settings of all discrete parents that are summed over one by one."""
SMALLEST = -690.0
"""Logarithms below this are those of 0: past it doubles lose their digits."""

Index = NDArray[np.intp]


class Group:
    """Families that share one table per row: their discrete parents are among the group's.

    Attributes
    ----------
    scope
        The names of the discrete parents, the axes of the table.
    leaves
        The families without continuous relatives, by position, and per family the setting of its own parents in each
        setting of the group's, an array (leaves, J).
    components
        The others, linked by arcs between continuous variables.
    """

    def __init__(
        self,
        gaussians: GaussianFamilies,
        net: BayesianNetwork,
        scope: tuple[str, ...],
        units: list[list[int]],
    ) -> None:
        self.scope = scope
        shape = [net.variable(name).card for name in scope]
        self.n_settings = int(np.prod(shape, dtype=np.int64))
        states = dict(zip(scope, np.indices(shape).reshape(len(shape), self.n_settings), strict=True))
        self.leaves = [unit[0] for unit in units if unit[0] not in gaussians.linked]
        maps = {}
        for i in (i for unit in units for i in unit):
            index = np.zeros(self.n_settings, dtype=np.intp)
            for parent in gaussians.families[i].discrete:
                index = index * parent.card + states[parent.name]
            maps[i] = index
        self.maps: Index = np.array([maps[i] for i in self.leaves], dtype=np.intp).reshape(
            -1, self.n_settings
        )
        self.components = [
            LinkedGaussians(gaussians, unit, maps) for unit in units if unit[0] in gaussians.linked
        ]
        own = np.arange(self.n_settings)
        self.even = (
            bool(self.leaves)
            and len(self.leaves) == len(gaussians.families)
            and bool((self.maps == own).all())
        )
        self.even = self.even and all(f.n_settings == self.n_settings for f in gaussians.families)
        """Whether it holds all families, each of them a leaf with the group's own settings."""

    def laid_out(self, numbers: Sequence[GaussianParameters], flat: Array) -> tuple[Array, Array]:
        """Means and variances of the leaves in each setting of the group, each (leaves, J)."""
        if self.even:
            both = flat.reshape(-1, 2, self.n_settings)
            return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])
        means, variances = np.empty(self.maps.shape), np.empty(self.maps.shape)
        for k, i in enumerate(self.leaves):
            means[k], variances[k] = numbers[i].means[self.maps[k]], numbers[i].variances[self.maps[k]]
        return means, variances


class MixedExpectation(Expectation):
    """The expected counts and moments of a network with Gaussians; parameters and answers are tables, then Gaussians.

    Parameters
    ----------
    net
        Any network of the structure; its numbers do not matter.
    gaussians
        Its continuous families.
    n_jobs
        Threads; None is OMP_NUM_THREADS if set, otherwise the number of cores.
    """

    def __init__(self, net: BayesianNetwork, gaussians: GaussianFamilies, n_jobs: int | None = None) -> None:
        self.gaussians = gaussians
        self.groups = _groups(net, gaussians)
        super().__init__(net, n_jobs, scopes=[group.scope for group in self.groups if group.scope])
        settings = sum(group.n_settings for group in self.groups)
        self.rows = max(64, min(ROWS, CELLS // settings))
        self.row_bytes = 32 * settings

    def block(self, tables: Array, block: Block, plan: RowPlan | None = None) -> tuple[Array, Array]:
        """The gradient of the tables and the moments of the Gaussians over a block, and ln p of each of its rows."""
        logs = np.empty(block.n_rows)
        plan = plan or self.plan(tables[: self.n_entries], self._rows(block))
        chunk = _Chunk(self, tables, plan)

        def work(start: int) -> Array:
            rows = slice(start, min(start + self.rows, block.n_rows))
            return chunk(block, rows, logs[rows])

        starts = range(0, block.n_rows, self.rows)
        zero = np.zeros(self.n_entries + self.gaussians.stats_size)
        return self._added(work, plan, block, starts, zero), logs


class _Chunk:
    """The E step of some rows under given parameters."""

    def __init__(self, expectation: MixedExpectation, flat: Array, plan: RowPlan) -> None:
        self.whole, self.plan = expectation, plan
        self.tables = np.ascontiguousarray(flat[: expectation.n_entries])
        self.numbers = expectation.gaussians.numbers(flat[expectation.n_entries :])
        gaussians = flat[expectation.n_entries :]
        self.laid_out = [group.laid_out(self.numbers, gaussians) for group in expectation.groups]

    def __call__(self, block: Block, rows: slice, logs: Array) -> Array:
        """The gradient and the moments; ln p of each row goes to `logs`."""
        whole, gaussians = self.whole, self.whole.gaussians
        weights = block.weights[rows]
        z = np.full((len(gaussians.names), len(weights)), np.nan)
        for i, name in enumerate(gaussians.names):
            if name in block.numbers:
                np.subtract(block.numbers[name][rows], gaussians.centre[i], out=z[i])
                z[i] /= gaussians.scale[i]
        densities = []
        for group, (means, variances) in zip(whole.groups, self.laid_out, strict=True):
            own = np.zeros((group.n_settings, len(weights)))
            if group.leaves:
                kernels.gaussians.add_log_densities(z[group.leaves], means, variances, own)
            for component in group.components:
                own += component.log_densities(z, self.numbers)
            densities.append(own)
        gradient, shares = self._responsibilities(block, rows, weights, densities, logs)
        stats = np.zeros(gaussians.stats_size)
        for group, (means, _), own in zip(whole.groups, self.laid_out, shares, strict=True):
            if group.leaves:
                moments = np.zeros((3, *means.shape))
                kernels.gaussians.add_moments(z[group.leaves], own, means, moments)
                if group.even:
                    stats += moments.transpose(1, 0, 2).ravel()
                    continue
                for k, i in enumerate(group.leaves):
                    place = stats[gaussians.stats_ptr[i] : gaussians.stats_ptr[i + 1]].reshape(3, -1)
                    for m in range(3):
                        place[m] += np.bincount(group.maps[k], moments[m, k], minlength=place.shape[1])
            for component in group.components:
                component.add_moments(z, own, self.numbers, stats)
        return np.concatenate([gradient, stats])

    def _responsibilities(
        self, block: Block, rows: slice, weights: Array, densities: list[Array], logs: Array
    ) -> tuple[Array, list[Array]]:
        """The tables' gradient, and per group the weight of each setting in each row (J, rows)."""
        whole = self.whole
        codes = whole.codes(block, rows)
        within = [own for group, own in zip(whole.groups, densities, strict=True) if group.scope]
        if len(whole.names) == 1 and len(within) == 1:
            gradient, found = self._one_parent(codes[:, 0], weights, within[0], logs)
        else:
            gradient, found = self._in_tree(codes, weights, within, logs)
        shares, following = [], iter(found)
        possible = np.where(np.isneginf(logs), 0.0, weights)
        for group, own in zip(whole.groups, densities, strict=True):
            if group.scope:
                shares.append(next(following))
            else:
                logs += own[0]
                shares.append(np.ascontiguousarray(possible[None]))
        return gradient, shares

    def _one_parent(
        self, codes: NDArray[np.int32], weights: Array, densities: Array, logs: Array
    ) -> tuple[Array, list[Array]]:
        """One discrete variable and all Gaussians below it: Bayes' rule, row by row."""
        with np.errstate(divide="ignore"):
            densities += np.log(self.tables)[:, None]
        seen = codes < self.whole.cards[0]
        if seen.any():
            states = np.arange(len(densities))[:, None]
            densities[seen & (states != codes)] = -np.inf
        kernels.gaussians.normalise(densities, weights, logs)
        counts = densities.sum(axis=1)
        gradient = np.divide(counts, self.tables, out=np.zeros_like(counts), where=self.tables > 0)
        return gradient, [densities]

    def _in_tree(
        self, codes: NDArray[np.int32], weights: Array, densities: list[Array], logs: Array
    ) -> tuple[Array, list[Array]]:
        """The junction tree with one more table per group; logarithms are taken relative to each row's largest."""
        gradient = np.zeros(len(self.tables))
        peaks = [own.max(axis=0) for own in densities]
        found = self._shares(codes, weights, densities, peaks, gradient, logs)
        lost = np.flatnonzero(np.isneginf(logs))
        if densities and len(lost):
            some = [np.ascontiguousarray(own[:, lost]) for own in densities]
            again, shares, told = self._lost_rows(codes[lost], weights[lost], some)
            gradient += again
            logs[lost] = told
            for own, some_shares in zip(found, shares, strict=True):
                own[:, lost] = some_shares
        return gradient, found

    def _lost_rows(
        self, codes: NDArray[np.int32], weights: Array, densities: list[Array]
    ) -> tuple[Array, list[Array], Array]:
        """Rows that are impossible, or possible only where a density is too small beside another to be told from 0.

        First the settings that the states leave open are found, by the tables alone; then densities are taken relative
        to the largest of those. Rows that are lost even so contradict themselves: their groups exclude each other.
        """
        gradient, logs = np.zeros(len(self.tables)), np.empty(len(weights))
        zeros = [np.zeros(len(weights)) for _ in densities]
        flat = [np.zeros_like(own) for own in densities]
        open_settings = self._shares(codes, np.ones(len(weights)), flat, zeros, gradient, logs)
        possible = ~np.isneginf(logs)
        with np.errstate(divide="ignore"):
            peaks = [(own + np.log(p)).max(axis=0) for own, p in zip(densities, open_settings, strict=True)]
        peaks = [np.where(np.isfinite(peak), peak, 0.0) for peak in peaks]
        gradient[:] = 0.0
        shares = self._shares(codes, weights, densities, peaks, gradient, logs)
        at = np.flatnonzero(possible & np.isneginf(logs))
        if len(at):
            some = [np.ascontiguousarray(own[:, at]) for own in densities]
            again, parts, logs[at] = self._contradictory_rows(codes[at], weights[at], some, peaks, at)
            gradient += again
            for own, some_shares in zip(shares, parts, strict=True):
                own[:, at] = some_shares
        return gradient, shares, logs

    def _contradictory_rows(
        self,
        codes: NDArray[np.int32],
        weights: Array,
        densities: list[Array],
        peaks: list[Array],
        contradictory: Index,
    ) -> tuple[Array, list[Array], Array]:
        """Rows whose groups contradict each other, each beyond all doubt: a sum in logarithms over all their parents.

        Where these have too many settings, each group is made to leave some doubt.
        """
        cards, groups = self.whole.cards, [group for group in self.whole.groups if group.scope]
        gradient, logs = np.zeros(len(self.tables)), np.empty(len(weights))
        scopes = [[self.whole.names.index(name) for name in group.scope] for group in groups]
        parents = sorted({v for scope in scopes for v in scope})
        if np.prod(cards[parents], dtype=np.float64) > JOINT:
            peaks = [peak[contradictory] for peak in peaks]
            floors = [peak - 600.0 / len(densities) for peak in peaks]
            densities = [np.maximum(own, floor) for own, floor in zip(densities, floors, strict=True)]
            return gradient, self._shares(codes, weights, densities, peaks, gradient, logs), logs
        zeros = [np.zeros(len(weights)) for _ in densities]
        flat = [np.zeros_like(own) for own in densities]
        settings, terms = [], []
        for states in np.ndindex(*cards[parents]):
            setting = codes.copy()
            setting[:, parents] = states
            open_ = (codes == setting) | (codes == cards)
            self._shares(setting, np.ones(len(weights)), flat, zeros, np.zeros_like(gradient), logs)
            for own, scope in zip(densities, scopes, strict=True):
                logs += own[np.ravel_multi_index(tuple(setting[0, scope]), tuple(cards[scope]))]
            settings.append(setting)
            terms.append(np.where(open_.all(axis=1), logs, -np.inf))
        totals = np.asarray(np.logaddexp.reduce(terms, axis=0))
        highest = np.where(np.isfinite(totals), totals, 0.0)
        shares = [np.zeros_like(own) for own in densities]
        for setting, term in zip(settings, terms, strict=True):
            found = self._shares(setting, weights * np.exp(term - highest), flat, zeros, gradient, logs)
            for total, own in zip(shares, found, strict=True):
                total += own
        return gradient, shares, totals

    def _shares(
        self,
        codes: NDArray[np.int32],
        weights: Array,
        densities: list[Array],
        peaks: list[Array],
        gradient: Array,
        logs: Array,
    ) -> list[Array]:
        """Per group, the weight of each setting in each row (J, rows)."""
        logs[:] = 0.0
        tables = []
        for own, peak in zip(densities, peaks, strict=True):
            relative = own - peak
            tables.append(np.where(relative > SMALLEST, np.exp(np.minimum(relative, 700.0)), 0.0))
        row_tables = np.ascontiguousarray(np.concatenate([np.empty((0, len(weights))), *tables]).T)
        row_gradient = np.zeros(row_tables.shape)
        counts = self.whole.counts
        self.plan.run(self.tables, codes, weights, gradient, logs, row_tables, row_gradient, counts)
        row_gradient *= row_tables
        for peak in peaks:
            logs += peak
        ends = np.cumsum([len(own) for own in densities])[:-1]
        return [np.ascontiguousarray(own) for own in np.split(row_gradient.T, ends)] if densities else []


def _groups(net: BayesianNetwork, gaussians: GaussianFamilies) -> list[Group]:
    """The families in groups: a leaf alone or linked families together, each where its discrete parents are."""
    order = {name: k for k, name in enumerate(net.names)}
    units = []
    for unit in _units(gaussians):
        names = {p.name for i in unit for p in gaussians.families[i].discrete}
        units.append((tuple(sorted(names, key=order.__getitem__)), unit))
    units.sort(key=lambda entry: -len(entry[0]))
    homes: dict[tuple[str, ...], list[list[int]]] = {}
    for scope, unit in units:
        sizes = {home: int(np.prod([net.variable(n).card for n in home], dtype=np.int64)) for home in homes}
        wider = [home for home in homes if scope and set(scope) <= set(home) and sizes[home] <= SMALL]
        homes.setdefault(wider[0] if wider and scope not in homes else scope, []).append(unit)
    return [Group(gaussians, net, scope, sorted(own)) for scope, own in homes.items()]


def _units(gaussians: GaussianFamilies) -> list[list[int]]:
    """Families that arcs between continuous variables link, parents first; a leaf is alone."""
    home = list(range(len(gaussians.families)))
    for i, parents in enumerate(gaussians.parents):
        for p in parents:
            old, new = home[p], home[i]
            home = [new if h == old else h for h in home]
    units: dict[int, list[int]] = {}
    for i, h in enumerate(home):
        units.setdefault(h, []).append(i)
    return list(units.values())
