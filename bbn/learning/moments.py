"""Moments of the data: means and scatter of each continuous family in each setting of its discrete parents.

Two passes, the second about the means that the first found, so that a column far from 0 keeps its variance (Chan, Golub
and LeVeque 1983, "corrected two-pass"). Both are sums over rows, so any data source can take them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bbn.data import Block, DataSource
from bbn.errors import DataError
from bbn.frozen import Array
from bbn.learning.gaussians import GaussianFamily, Moments


def moments_of(families: Sequence[GaussianFamily], source: DataSource) -> list[Moments]:
    """The moments of each family; rows that miss one of its columns are left out of it."""
    if not families:
        return []
    first = source.reduce(_Sums(families))
    means = [_divided(first[2 * f + 1], first[2 * f][:, None]) for f in range(len(families))]
    second = source.reduce(_Scatter(families, means))
    found = []
    for f, family in enumerate(families):
        n, sums, products = second[3 * f : 3 * f + 3]
        for k, name in enumerate(family.columns):
            if not np.isfinite(products[:, k, k]).all():
                raise DataError(f"column {name!r} holds numbers whose squares overflow; rescale it")
        rest = _divided(sums, n[:, None])  # what rounding left of the deviations' mean
        scatter = products - n[:, None, None] * rest[:, :, None] * rest[:, None, :]
        found.append(Moments(n, means[f] + rest, scatter))
    return found


class _Sums:
    """Per family and setting: the weight, and the sums of the columns."""

    def __init__(self, families: Sequence[GaussianFamily]) -> None:
        self.families = list(families)

    def __call__(self, block: Block) -> list[Array]:
        parts: list[Array] = []
        with np.errstate(over="ignore"):
            for family in self.families:
                setting, weights, columns = _complete_rows(family, block)
                sums = [_added(setting, weights * column, family) for column in columns]
                parts += [_added(setting, weights, family), np.column_stack(sums)]
        return parts


class _Scatter:
    """Per family and setting: the weight, the sums of deviations from the means, and of their products."""

    def __init__(self, families: Sequence[GaussianFamily], means: Sequence[Array]) -> None:
        self.families, self.means = list(families), list(means)

    def __call__(self, block: Block) -> list[Array]:
        parts: list[Array] = []
        with np.errstate(over="ignore", invalid="ignore"):
            for family, means in zip(self.families, self.means, strict=True):
                setting, weights, columns = _complete_rows(family, block)
                apart = [column - means[setting, k] for k, column in enumerate(columns)]
                q = len(columns)
                sums, products = np.empty((family.n_settings, q)), np.empty((family.n_settings, q, q))
                for a in range(q):
                    weighted = weights * apart[a]
                    sums[:, a] = _added(setting, weighted, family)
                    for b in range(a, q):
                        products[:, a, b] = products[:, b, a] = _added(setting, weighted * apart[b], family)
                parts += [_added(setting, weights, family), sums, products]
        return parts


def _complete_rows(family: GaussianFamily, block: Block) -> tuple[NDArray[np.intp], Array, list[Array]]:
    """The setting, the weight and the columns of the rows that miss nothing of a family."""
    setting, weights = settings_of(family, block), block.weights
    columns = [block.numbers[name] for name in family.columns]
    there = setting < family.n_settings
    for column in columns:
        there &= ~np.isnan(column)
    if there.all():
        return setting, weights, columns
    return setting[there], weights[there], [column[there] for column in columns]


def _added(setting: NDArray[np.intp], values: Array, family: GaussianFamily) -> Array:
    """The sum of the values in each setting."""
    return np.bincount(setting, values, minlength=family.n_settings).astype(np.float64, copy=False)


def settings_of(family: GaussianFamily, block: Block) -> NDArray[np.intp]:
    """The setting of the discrete parents in each row; one past the last where one of them is missing."""
    index = np.zeros(block.n_rows, dtype=np.intp)
    there = np.ones(block.n_rows, dtype=bool)
    codes: Mapping[str, NDArray[np.unsignedinteger]] = block.codes
    for parent in family.discrete:
        if parent.name not in codes:
            return np.full(block.n_rows, family.n_settings, dtype=np.intp)
        index *= parent.card
        index += codes[parent.name]
        there &= codes[parent.name] < parent.card
    return np.where(there, index, family.n_settings)


def _divided(sums: Array, n: Array) -> Array:
    return np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
