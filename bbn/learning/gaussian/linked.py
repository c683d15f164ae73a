"""Continuous variables linked by arcs: densities and expected moments where some of the numbers are missing.

Given a setting of the discrete parents they are jointly Gaussian, m + L ε with ε ~ N(0, I), built along the arcs: a
variable's mean is b + w·m(parents) and its row of L that of w·L(parents) and its own deviation. Of a row, let o be the
observed ones and h those missing that an observed one descends from. Turning the noises (see `square_root`) gives the
numbers of h, Gaussian too, with mean m_h + L_h Q₁ z and covariance (L_h Q₂)(L_h Q₂)ᵀ, which are the expected moments
(Dempster, Laird and Rubin 1977, section 4.1).
A missing number that no observed one descends from says nothing and adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.inference.gaussian.square_root import rotated, solved
from bbn.learning.gaussian.estimates import GaussianParameters

if TYPE_CHECKING:
    from bbn.learning.gaussian.m_step import GaussianFamilies

Index = NDArray[np.intp]
Joint = Callable[[int], tuple[Array, Array]]
"""The mean of all members in a setting and a root of their covariance, worked out once for all patterns."""


class Pattern(NamedTuple):
    """Rows that miss the same numbers of a component; positions are among its members."""

    rows: Index
    observed: list[int]
    inferred: list[int]
    """Missing, with an observed descendant."""


class LinkedGaussians:
    """Linked families, parents first.

    Parameters
    ----------
    gaussians
        All continuous families.
    members
        The positions of these.
    maps
        Per member, the setting of its own discrete parents in each setting of the group.
    """

    def __init__(
        self, gaussians: GaussianFamilies, members: Sequence[int], maps: Mapping[int, Index]
    ) -> None:
        self.gaussians = gaussians
        self.members = list(members)
        self.maps = [maps[i] for i in members]
        place = {i: k for k, i in enumerate(members)}
        self.parents = [[place[p] for p in gaussians.parents[i]] for i in members]
        self.n_settings = len(self.maps[0])

    def log_densities(self, z: Array, numbers: Sequence[GaussianParameters]) -> Array:
        """ln p(observed numbers) of each row in each setting, (J, rows)."""
        own = z[self.members]
        logs = np.zeros((self.n_settings, own.shape[1]))
        joint = cache(lambda j: self._joint(j, numbers))
        for pattern in self._patterns(own):
            for j in range(self.n_settings):
                logs[j, pattern.rows] = self._log_density(own[:, pattern.rows], pattern, j, numbers, joint)
        return logs

    def add_moments(
        self, z: Array, shares: Array, numbers: Sequence[GaussianParameters], stats: Array
    ) -> None:
        """Add each member's expected Σ share (1, parents, child)(1, parents, child)ᵀ to its place in `stats`."""
        own = z[self.members]
        joint = cache(lambda j: self._joint(j, numbers))
        for pattern in self._patterns(own):
            there = sorted([*pattern.observed, *pattern.inferred])
            for j in range(self.n_settings):
                weights = shares[j, pattern.rows]
                filled, spread = self._filled(own[:, pattern.rows], pattern, j, joint)
                filled = np.vstack([np.ones((1, len(weights))), filled])
                products = (filled * weights) @ filled.T
                products[1:, 1:] += weights.sum() * spread
                for k in there:
                    chosen = [0, *(p + 1 for p in self.parents[k]), k + 1]
                    i, setting = self.members[k], int(self.maps[k][j])
                    size = len(chosen) ** 2
                    start = int(self.gaussians.stats_ptr[i]) + setting * size
                    stats[start : start + size] += products[np.ix_(chosen, chosen)].ravel()

    def _patterns(self, own: Array) -> Iterator[Pattern]:
        missing = np.isnan(own)
        packed = np.packbits(missing, axis=0)
        kinds, first, inverse = np.unique(
            packed[0] if len(packed) == 1 else packed.T, axis=0, return_index=True, return_inverse=True
        )
        for kind in range(len(kinds)):
            gone = missing[:, first[kind]]
            needed = ~gone
            for k in reversed(range(len(self.members))):  # children before parents
                if needed[k]:
                    needed[self.parents[k]] = True
            yield Pattern(
                np.flatnonzero(inverse.ravel() == kind),
                np.flatnonzero(~gone).tolist(),
                np.flatnonzero(needed & gone).tolist(),
            )

    def _log_density(
        self, own: Array, pattern: Pattern, j: int, numbers: Sequence[GaussianParameters], joint: Joint
    ) -> Array:
        if not pattern.inferred:  # each given its parents
            logs = np.zeros(own.shape[1])
            for k in pattern.observed:
                means, weights, variances = self._numbers(k, j, numbers)
                apart = own[k] - means - weights @ own[self.parents[k]]
                logs += -0.5 * np.log(2 * np.pi * variances) - 0.5 * apart**2 / variances
            return logs
        mean, root = joint(j)
        seen = pattern.observed
        triangle = rotated(root[seen]).triangle
        z = solved(triangle, (own[seen] - mean[seen, None]).T)
        constant = 0.5 * len(seen) * np.log(2 * np.pi) + np.log(triangle.diagonal()).sum()
        return np.asarray(-constant - 0.5 * (z**2).sum(axis=1))

    def _filled(self, own: Array, pattern: Pattern, j: int, joint: Joint) -> tuple[Array, Array]:
        """The numbers with expected ones where they are missing, and the covariance of what was filled in."""
        filled, spread = np.where(np.isnan(own), 0.0, own), np.zeros((len(own), len(own)))
        if pattern.inferred:
            mean, root = joint(j)
            seen, gone = pattern.observed, pattern.inferred
            turn, triangle = rotated(root[seen])
            levers = root[gone] @ turn
            z = solved(triangle, (own[seen] - mean[seen, None]).T)
            filled[gone] = mean[gone, None] + levers[:, : len(seen)] @ z.T
            left = levers[:, len(seen) :]
            spread[np.ix_(gone, gone)] = left @ left.T
        return filled, spread

    def _joint(self, j: int, numbers: Sequence[GaussianParameters]) -> tuple[Array, Array]:
        """The mean of all members in a setting and L, the root of their covariance."""
        size = len(self.members)
        mean, root = np.zeros(size), np.zeros((size, size))
        for k, parents in enumerate(self.parents):
            b, w, v = self._numbers(k, j, numbers)
            mean[k] = b + w @ mean[parents]
            root[k] = w @ root[parents]
            root[k, k] = np.sqrt(v)
        return mean, root

    def _numbers(self, k: int, j: int, numbers: Sequence[GaussianParameters]) -> tuple[float, Array, float]:
        own, setting = numbers[self.members[k]], self.maps[k][j]
        return float(own.means[setting]), own.weights[setting], float(own.variances[setting])
