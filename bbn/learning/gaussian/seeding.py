"""Starts for mixtures: the means of a hidden parent's states are rows of the data, far from each other.

The first is a row at random, each further one a row drawn in proportion to its squared distance from the nearest so
far, the best of a few tries (k-means++; Arthur and Vassilvitskii 2007). The rows are drawn from a sample that depends
on their content alone, so that a start is the same however the data are stored.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.data import Block, DataSource
from bbn.learning.gaussian.estimates import GaussianParameters
from bbn.learning.gaussian.m_step import GaussianFamilies
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

SAMPLE = 2048
"""About how many rows are looked at."""
SLOTS = 1 << 15
"""The slots that they are kept in: as many whatever the rows, so that a weight of 2 is the same as two rows."""


class MixtureSeeds:
    """Where climbs over a network with Gaussians start.

    Parameters
    ----------
    net
        A network of the structure.
    gaussians
        Its continuous families.
    source
        The data.
    """

    def __init__(self, net: BayesianNetwork, gaussians: GaussianFamilies, source: DataSource) -> None:
        self.net, self.gaussians = net, gaussians
        observed = {v.name for v in source.variables}
        self.incomplete = set(source.incomplete)
        self.hidden = [tuple(p for p in f.discrete if p.name not in observed) for f in gaussians.families]
        self.rows = (
            sample_rows(gaussians, source) if any(self.hidden) else np.empty((0, len(gaussians.names)))
        )

    def draw(self, generator: np.random.Generator) -> tuple[Array, dict[str, Array]]:
        """Parameters of the Gaussians, flat, and weights of the states of hidden parents that are roots.

        Families with hidden parents start at rows far from each other, one per setting of these, with the variance of
        the rows about the nearest. Others start at the whole column, where some parent has holes a little off it.
        """
        gaussians = self.gaussians
        numbers: dict[int, GaussianParameters] = {}
        shares: dict[str, Array] = {}
        for hidden in dict.fromkeys(own for own in self.hidden if own):
            members = [i for i, own in enumerate(self.hidden) if own == hidden]
            shape = [p.card for p in hidden]
            k = int(np.prod(shape, dtype=np.int64))
            centres, nearest = plus_plus(self.rows[:, members], k, generator)
            if len(hidden) == 1 and not self.net.parents(hidden[0].name):
                shares.setdefault(hidden[0].name, np.bincount(nearest, minlength=k).astype(np.float64) + 1.0)
            within = self._within(members, centres, nearest)
            among: dict[tuple[Variable, ...], NDArray[np.intp]] = {}
            for m, i in enumerate(members):
                discrete = gaussians.families[i].discrete
                if discrete not in among:
                    among[discrete] = self._among(i, hidden)
                numbers[i] = self._start(i, centres[among[discrete], m], within[m])
        for i, family in enumerate(gaussians.families):
            if i not in numbers:
                loose = any(p.name in self.incomplete for p in family.discrete)
                means = (
                    0.1 * generator.standard_normal(family.n_settings)
                    if loose
                    else np.zeros(family.n_settings)
                )
                numbers[i] = self._start(i, means, 1.0)
        for group in gaussians.tied:
            for i in group[1:]:
                numbers[i] = numbers[group[0]]
        return gaussians.flat([numbers[i] for i in range(len(gaussians.families))]), shares

    def _among(self, i: int, hidden: tuple[Variable, ...]) -> NDArray[np.intp]:
        """The setting of the hidden parents in each setting of a family's parents."""
        family = self.gaussians.families[i]
        states = np.indices(family.shape).reshape(len(family.shape), family.n_settings)
        index = np.zeros(family.n_settings, dtype=np.intp)
        for parent, own in zip(family.discrete, states, strict=True):
            if parent in hidden:
                index = index * parent.card + own
        return index

    def _within(self, members: list[int], centres: Array, nearest: NDArray[np.intp]) -> list[float]:
        """The variance of each column about the centres nearest to its rows; 1 where there is no number."""
        found: list[float] = spread_about(self.rows[:, members], centres, nearest).tolist()
        return found

    def _start(self, i: int, means: Array, variance: float) -> GaussianParameters:
        family = self.gaussians.standard[i]
        count = family.n_settings
        variances = np.full(count, variance) if family.fixed is None else family.fixed.ravel()
        return GaussianParameters(means, np.zeros((count, len(family.regressors))), variances)


class MeasuredRows(Protocol):
    """Columns of numbers: their names, their means and their standard deviations."""

    names: list[str]
    centre: Array
    scale: Array


def spread_about(rows: Array, centres: Array, nearest: NDArray[np.intp]) -> Array:
    """The variance of each column about the centres nearest to its rows; 1 where there is no number."""
    if not len(rows):
        return np.ones(rows.shape[1])
    apart = rows - centres[nearest]
    n = (~np.isnan(apart)).sum(axis=0)
    squares = np.nansum(apart**2, axis=0)
    return np.where(n > 0, np.maximum(squares / np.maximum(n, 1), 1e-12), 1.0)


def sample_rows(gaussians: MeasuredRows, source: DataSource) -> Array:
    """Some different rows of the data in standard units, (rows, columns), NaN where missing.

    Where few are found, as many rows are alike, a larger share of them is looked at.
    """
    share = min(1.0, SAMPLE / max(source.n_rows, 1))
    rows = _drawn(gaussians, source, share)
    while len(rows) < SAMPLE // 8 and share < 1.0:
        share = min(1.0, 16 * share)
        rows = _drawn(gaussians, source, share)
    return rows


def _drawn(gaussians: MeasuredRows, source: DataSource, share: float) -> Array:
    count, *parts = source.reduce(_RowsByHash(gaussians, share))
    used = np.flatnonzero(count)
    count, (sums, squares, there) = count[used], (own[used] for own in parts)
    # Rows that fell into one slot are kept where they are alike.
    n = np.maximum(there, 1.0)
    alike = (squares * n - sums**2 <= 1e-9 * (1.0 + squares * n)).all(axis=1)
    alike &= ((there == 0) | (there == count[:, None])).all(axis=1)
    return np.where(there[alike] > 0, sums[alike] / n[alike], np.nan)


class _RowsByHash:
    """Rows whose hash is small enough, each added to the slot that its hash says."""

    def __init__(self, gaussians: MeasuredRows, share: float) -> None:
        self.names, self.centre, self.scale, self.share = (
            gaussians.names,
            gaussians.centre,
            gaussians.scale,
            share,
        )

    def __call__(self, block: Block) -> list[Array]:
        hashes = np.zeros(block.n_rows, dtype=np.uint64)
        columns = [
            block.numbers[name] if name in block.numbers else np.full(block.n_rows, np.nan)
            for name in self.names
        ]
        for column in columns:
            bits = np.where(np.isnan(column), -0.5, column + 0.0).view(np.uint64)
            hashes = _mixed(hashes ^ _mixed(bits))
        chosen = ((hashes >> np.uint64(11)) * 2.0**-53 < self.share) & (block.weights > 0)
        slots = (_mixed(hashes[chosen]) % np.uint64(SLOTS)).astype(np.intp)
        z = np.column_stack(columns)[chosen]
        z = (z - self.centre) / self.scale
        there = ~np.isnan(z)
        parts = [np.where(there, z, 0.0), np.where(there, z * z, 0.0), there * 1.0]
        sums = [np.zeros((SLOTS, z.shape[1])) for _ in parts]
        if len(slots):
            order = np.argsort(slots, kind="stable")
            slots = slots[order]
            starts = np.flatnonzero(np.diff(slots, prepend=-1))
            for total, values in zip(sums, parts, strict=True):
                total[slots[starts]] = np.add.reduceat(values[order], starts, axis=0)
        return [np.bincount(slots, minlength=SLOTS).astype(np.float64), *sums]


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Well mixed bits (the finaliser of splitmix64; Steele, Lea and Flood 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def plus_plus(rows: Array, k: int, generator: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """k rows far from each other, (k, columns), and which of them is nearest to each row.

    Distances are over the numbers that both have; a number that a chosen row misses is 0, the column's mean.

    >>> rows = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> centres, nearest = plus_plus(rows, 2, np.random.default_rng(0))
    >>> bool(nearest[0] == nearest[1] != nearest[2] == nearest[3])
    True
    """
    rows = rows if len(rows) else np.zeros((1, rows.shape[1]))
    filled = np.where(np.isnan(rows), 0.0, rows)
    chosen = [int(generator.integers(len(rows)))]
    closest = _squares(rows, filled[chosen[0]])
    tries = 2 + int(np.log(k))
    for _ in range(k - 1):
        total = closest.sum()
        odds = closest / total if total > 0 else None
        candidates = generator.choice(len(rows), size=tries, p=odds)
        left = [np.minimum(closest, _squares(rows, filled[c])) for c in candidates]
        best = int(np.argmin([own.sum() for own in left]))
        chosen.append(int(candidates[best]))
        closest = left[best]
    distances = np.array([_squares(rows, filled[c]) for c in chosen])
    return filled[chosen], distances.argmin(axis=0)


def _squares(rows: Array, centre: Array) -> Array:
    """The squared distance of each row from a centre, over what the row has."""
    return np.asarray(np.nansum((rows - centre) ** 2, axis=1), dtype=np.float64)
