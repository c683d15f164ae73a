"""Moments of the data: means and scatter of each continuous family in each setting of its discrete parents.

Two passes, the second about the means that the first found, so that a column far from 0 keeps its variance (Chan, Golub
and LeVeque 1983, "corrected two-pass"). Both are sums over rows, so any data source can take them.

Where columns of a family are nearly collinear, sums of products know their small differences only to a few digits. A
third pass then adds up the products of u = R₁⁻ᵀ(deviations), R₁ᵀR₁ being the scatter of the second: these columns are
nearly orthonormal, so the triangle R₂ of their scatter is known to all its digits, and R = R₂R₁ is the one that QR of
the rows themselves would give (CholeskyQR2; Yamamoto, Nakatsukasa, Yanagisawa and Fukaya 2015).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import Block, DataSource
from bbn.learning.gaussian.estimates import GaussianFamily, Leaves, Moments

COLLINEAR = 1e-6
"""A least eigenvalue of the columns' correlations below this asks for the third pass: ten digits are left above it."""

SAME = 1e-7
"""A parent that the others determine but for this share of its spread is not told apart from them."""
SURE = 1e-3
"""The least pivot of a triangle R₂ that should be the unit matrix."""


def moments_of(families: Sequence[GaussianFamily], source: DataSource) -> list[Moments]:
    """The moments of each family; rows that miss one of its columns are left out of it."""
    if not families:
        return []
    if not any(family.parents for family in families):
        return _whole_columns(families, source)
    first = source.reduce(_Sums(families))
    means = [_divided(first[2 * f + 1], first[2 * f][:, None]) for f in range(len(families))]
    second = source.reduce(_Scatter(families, means))
    found = []
    for f, family in enumerate(families):
        n, sums, products = second[3 * f : 3 * f + 3]
        for k, name in enumerate(family.columns):
            refuse_overflow(name, products[:, k, k])
        rest = _divided(sums, n[:, None])  # what rounding left of the deviations' mean
        scatter = products - n[:, None, None] * rest[:, :, None] * rest[:, None, :]
        found.append(Moments(n, means[f] + rest, scatter))
    return _refined(families, found, source)


def _whole_columns(families: Sequence[GaussianFamily], source: DataSource) -> list[Moments]:
    """The moments of columns by themselves, all at once."""
    names = [family.name for family in families]
    n, sums, _ = source.reduce(_Columns(names, None))
    means = _divided(sums, n)
    n, sums, squares = source.reduce(_Columns(names, means))
    for name, own in zip(names, squares, strict=True):
        refuse_overflow(name, own)
    rest = _divided(sums, n)
    parts = zip(n, means + rest, squares - n * rest**2, strict=True)
    return [Moments(np.array([a]), np.array([[b]]), np.array([[[c]]])) for a, b, c in parts]


class _Columns:
    """Per column: the weight, and the sums of deviations from a number and of their squares; without one, the sum."""

    def __init__(self, names: Sequence[str], about: Array | None) -> None:
        self.names, self.about = list(names), about

    def __call__(self, block: Block) -> list[Array]:
        found = np.zeros((3, len(self.names)))
        whole = float(block.weights.sum())
        plain = bool((block.weights == 1).all())
        with np.errstate(over="ignore", invalid="ignore"):
            for k, name in enumerate(self.names):
                apart, weights = block.numbers[name], block.weights
                if self.about is not None:
                    apart = apart - self.about[k]
                total = float(apart.sum()) if plain else np.nan
                if total == total:  # no number is missing
                    found[:, k] = whole, total, 0.0 if self.about is None else apart @ apart
                    continue
                there = ~np.isnan(apart)
                if there.all():
                    found[0, k] = whole
                else:
                    apart, weights = apart[there], weights[there]
                    found[0, k] = weights.sum()
                weighted = weights * apart
                found[1, k], found[2, k] = weighted.sum(), weighted @ apart
        return list(found)


def refuse_overflow(name: str, squares: Array) -> None:
    """DataError if sums of a column's squares are not finite."""
    if not np.isfinite(squares).all():
        raise DataError(f"column {name!r} holds numbers whose squares overflow; rescale it")


def leaf_moments(
    numbers: Array, labels: NDArray[np.integer], weights: Array | None, n_settings: int
) -> Leaves:
    """The moments of columns in memory, an array (rows, d), in each setting of one discrete parent.

    As `moments_of`, in two passes about the means; missing numbers are left out.
    """
    shape = (n_settings, numbers.shape[1])
    n, means, scatter = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    holes = bool(np.isnan(numbers.sum()))
    for j in range(n_settings):
        rows = np.flatnonzero(labels == j)
        own = numbers[rows]
        share = np.ones(len(rows)) if weights is None else weights[rows]
        there = share[:, None] * ~np.isnan(own) if holes else None
        if there is not None:
            own[np.isnan(own)] = 0.0
        n[j] = share.sum() if there is None else there.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            means[j] = _divided(_added_up(own, share, there), n[j])
            own -= means[j]
            rest = _divided(_added_up(own, share, there), n[j])
            np.multiply(own, own, out=own)
            scatter[j] = _added_up(own, share, there) - n[j] * rest**2
        means[j] += rest
    return Leaves(n.T, means.T, scatter.T)


def _added_up(numbers: Array, share: Array, there: Array | None) -> Array:
    """The weighted sum of each column."""
    return share @ numbers if there is None else np.einsum("rd,rd->d", there, numbers)


def _refined(families: Sequence[GaussianFamily], moments: list[Moments], source: DataSource) -> list[Moments]:
    """The moments, with triangles where columns of a family are nearly collinear."""
    triangles = {f: _triangles(m.scatter) for f, m in enumerate(moments) if _is_collinear(families[f], m)}
    if not triangles:
        return moments
    chosen, means = [families[f] for f in triangles], [moments[f].means for f in triangles]
    third = source.reduce(_Scatter(chosen, means, list(triangles.values())))
    for k, (f, first) in enumerate(triangles.items()):
        n, sums, products = third[3 * k : 3 * k + 3]
        rest = _divided(sums, n[:, None])
        second = _triangles(products - n[:, None, None] * rest[:, :, None] * rest[:, None, :])
        triangle = second @ first
        parents = np.einsum("jqq->jq", triangle)[:, :-1]
        told_apart = parents > SAME * np.sqrt((triangle**2).sum(axis=1))[:, :-1]
        sure = np.einsum("jqq->jq", second) > SURE
        unsure = ~(told_apart.all(axis=1) & sure.all(axis=1))
        moments[f] = moments[f]._replace(triangle=np.where(unsure[:, None, None], np.nan, triangle))
    return moments


def _is_collinear(family: GaussianFamily, moments: Moments) -> bool:
    """Whether the child and its continuous parents nearly determine one of them, in some setting."""
    if not family.regressors:
        return False
    squares = np.einsum("jqq->jq", moments.scatter)
    seen = (squares > 0).all(axis=1)
    widths = np.sqrt(squares[seen])
    correlations = moments.scatter[seen] / (widths[:, :, None] * widths[:, None, :])
    return bool((np.linalg.eigvalsh(correlations)[:, 0] < COLLINEAR).any()) if seen.any() else False


def _triangles(scatter: Array) -> Array:
    """The upper triangle R of each matrix, RᵀR = S; NaN where rounding left none."""
    found = np.full_like(scatter, np.nan)
    for j, own in enumerate(scatter):
        try:
            found[j] = np.linalg.cholesky(own).T
        except np.linalg.LinAlgError:  # a column is a combination of others, to the last digit
            continue
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
    """Per family and setting: the weight, the sums of deviations from the means, and of their products.

    With `triangles`, those of R⁻ᵀ times the deviations instead.
    """

    def __init__(
        self,
        families: Sequence[GaussianFamily],
        means: Sequence[Array],
        triangles: Sequence[Array] | None = None,
    ) -> None:
        self.families, self.means = list(families), list(means)
        self.triangles = [None] * len(self.families) if triangles is None else list(triangles)

    def __call__(self, block: Block) -> list[Array]:
        parts: list[Array] = []
        with np.errstate(over="ignore", invalid="ignore"):
            for family, means, triangle in zip(self.families, self.means, self.triangles, strict=True):
                setting, weights, columns = _complete_rows(family, block)
                apart = [column - means[setting, k] for k, column in enumerate(columns)]
                if triangle is not None:
                    for k in range(len(apart)):  # forward substitution
                        for i in range(k):
                            apart[k] = apart[k] - triangle[setting, i, k] * apart[i]
                        apart[k] = apart[k] / triangle[setting, k, k]
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
    weights = block.weights
    setting = settings_of(family, block) if family.discrete else np.zeros(block.n_rows, dtype=np.intp)
    columns = [block.numbers[name] for name in family.columns]
    there = setting < family.n_settings
    for column in columns:
        there &= ~np.isnan(column)
    if there.all():
        return setting, weights, columns
    return setting[there], weights[there], [column[there] for column in columns]


def _added(setting: NDArray[np.intp], values: Array, family: GaussianFamily) -> Array:
    """The sum of the values in each setting."""
    if not family.discrete:
        return np.array([values.sum()])
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
