"""Moments to Gaussians: means, weights and variances of one family, by maximum likelihood or under a prior.

In each setting j of the discrete parents the child x is regressed on the continuous parents y. With weights n, means
and scatter matrices S of (y, x) in the setting, maximum likelihood is weighted least squares,

    w = S_yy⁻¹ S_yx,    b = x̄ − w·ȳ,    σ² = (S_xx − w·S_yx) / n

and without continuous parents the mean and the variance of x. Under `NormalInverseGamma` it is the posterior's mode,
ridge regression towards the prior. EM and `fit` differ in the moments alone: expected ones, or those of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import CollapsedWarning, DataError, UnseenRowsWarning, nearest, warn_user
from bbn.core.frozen import Array
from bbn.learning.tables.priors import ToldGaussian
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Continuous, Variable

FLOOR, LINKED_FLOOR = 1e-15, 1e-9
"""The least variance that is learned, as a share of the variance of the whole column; the second with continuous
parents, and in EM with continuous children too, as what they leave has no more digits."""


class GaussianFamily(NamedTuple):
    """What is to be learned of one continuous variable."""

    variable: Continuous
    parents: tuple[Variable, ...]
    tied: bool = False
    """Whether all settings have one variance."""
    fixed: Array | None = None
    """The variances, where they are not to be learned."""
    linked: bool = False
    """Whether its moments are taken together with those of continuous children, as in EM."""

    @property
    def name(self) -> str:
        """The variable's name."""
        return self.variable.name

    @property
    def discrete(self) -> tuple[Variable, ...]:
        """The discrete parents."""
        return tuple(p for p in self.parents if not isinstance(p, Continuous))

    @property
    def regressors(self) -> tuple[str, ...]:
        """The names of the continuous parents."""
        return tuple(p.name for p in self.parents if isinstance(p, Continuous))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are looked at: the continuous parents, then the child."""
        return (*self.regressors, self.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """One length per discrete parent."""
        return tuple(p.card for p in self.discrete)

    @property
    def n_settings(self) -> int:
        """The number of settings of the discrete parents."""
        return math.prod(self.shape)

    @property
    def floor(self) -> float:
        """The least share of the column's variance."""
        return LINKED_FLOOR if self.regressors or self.linked else FLOOR

    def gaussian(self, numbers: GaussianParameters) -> Gaussian:
        """The conditional with these numbers."""
        fixed = self.fixed is not None
        variances = self.fixed if self.fixed is not None else numbers.variances
        return Gaussian.trusted(
            self.variable,
            self.parents,
            numbers.means.reshape(self.shape).copy(),
            np.array(variances, dtype=np.float64).reshape(self.shape),
            numbers.weights.reshape(*self.shape, len(self.regressors)).copy(),
            self.tied,
            fixed,
        )


class Moments(NamedTuple):
    """What the data say of a family in each of its J settings; q columns, the child's the last."""

    n: Array
    """(J,) The weight of the rows."""
    means: Array
    """(J, q)"""
    scatter: Array
    """(J, q, q) Sums of products of deviations from the means."""
    triangle: Array | None = None
    """(J, q, q) R with RᵀR = scatter, to more digits than that has; NaN where there is none."""


class Units(NamedTuple):
    """Where the q columns of a family lie and how wide they are, over all rows."""

    centre: Array
    scale: Array


class GaussianParameters(NamedTuple):
    """The parameters of a family."""

    means: Array
    """(J,)"""
    weights: Array
    """(J, p)"""
    variances: Array
    """(J,)"""


class GaussianEstimate(NamedTuple):
    """Parameters, and where the data could not tell them."""

    numbers: GaussianParameters
    unseen: NDArray[np.bool_]
    """(J,) Whether no row reached the setting."""
    collapsed: NDArray[np.bool_]
    """(J,) Whether the variance is held at its floor."""


def read_gaussians(
    parents: Mapping[str, tuple[Variable, ...]],
    variables: Mapping[str, Variable],
    given: Mapping[str, Any],
    tied_variance: bool | str | Iterable[str] = False,
    fixed_variance: float | Mapping[str, Any] | None = None,
) -> list[GaussianFamily]:
    """The continuous families of a structure; `given` are the Gaussians of a network that it came from."""
    names = [name for name, variable in variables.items() if isinstance(variable, Continuous)]
    tied = _named(tied_variance, names, "tied_variance")
    fixed = fixed_variance if isinstance(fixed_variance, Mapping) else dict.fromkeys(names, fixed_variance)
    _check_names(fixed, names, "fixed_variance")
    if any(isinstance(own, bool) for own in fixed.values()):
        raise DataError(
            "fixed_variance= takes variances, a number or name to variances, found True or False; "
            "bbn.Gaussian(…, fixed_variance=True) in a network keeps its own"
        )
    families = []
    for name in names:
        variable = variables[name]
        assert isinstance(variable, Continuous)
        own = given.get(name)
        family = GaussianFamily(
            variable, parents[name], name in tied or (own is not None and own.tied_variance)
        )
        if fixed.get(name) is not None:
            likeness = Gaussian(variable, parents[name], 0.0, fixed[name], _no_weights(family), family.tied)
            family = family._replace(fixed=likeness.variances)
        elif own is not None and own.fixed_variance:
            family = family._replace(fixed=own.variances)
        families.append(family)
    return families


def _no_weights(family: GaussianFamily) -> Any:
    return np.zeros((*family.shape, len(family.regressors))) if family.regressors else None


def _named(told: bool | str | Iterable[str], names: Sequence[str], what: str) -> set[str]:
    """The names that an option gives: all, none, or those listed."""
    if isinstance(told, bool | np.bool_):
        return set(names) if told else set()
    listed = [told] if isinstance(told, str) else list(told)
    _check_names(listed, names, what)
    return set(listed)


def _check_names(listed: Iterable[str], names: Sequence[str], what: str) -> None:
    for name in listed:
        if name not in names:
            raise DataError(
                f"{what}= names {name!r}, which is not a continuous variable{nearest(name, names)}"
            )


def pool(moments: Sequence[Moments]) -> Moments:
    """The moments of several families as if they were one."""
    n = np.sum([m.n for m in moments], axis=0)
    sums = np.sum([m.n[:, None] * m.means for m in moments], axis=0)
    means = np.divide(sums, n[:, None], out=np.zeros_like(sums), where=n[:, None] > 0)
    scatter = np.zeros_like(moments[0].scatter)
    for m in moments:
        apart = m.means - means
        scatter += m.scatter + m.n[:, None, None] * apart[:, :, None] * apart[:, None, :]
    return Moments(n, means, scatter)


def known_moments(gaussian: Gaussian, weights: Array) -> Moments:
    """The moments of rows, `weights` of them in each setting, that are just as a Gaussian without regressors says."""
    n = weights.ravel()
    return Moments(n, gaussian.means.reshape(-1, 1), (n * gaussian.variances.ravel())[:, None, None])


def overall(moments: Moments) -> Units:
    """Centre and width of the columns over all settings together; a column without width has that of its mean, or 1."""
    total = moments.n.sum()
    centre = moments.n @ moments.means / total
    apart = moments.means - centre
    squares = np.einsum("jqq->jq", moments.scatter).sum(axis=0) + moments.n @ apart**2
    return Units(centre, widths(centre, squares / total))


def widths(centre: Array, variances: Array) -> Array:
    """The standard deviations, and where there is none the size of the mean, or 1."""
    none = variances <= (4 * np.finfo(float).eps * np.abs(centre)) ** 2
    size = np.where(np.abs(centre) < 1e-100, 1.0, np.abs(centre))
    return np.where(none, size, np.sqrt(variances))


def estimate(
    family: GaussianFamily, moments: Moments, units: Units, told: ToldGaussian | None = None
) -> GaussianEstimate:
    """The parameters of a family, from its moments.

    Settings without rows have the mean and the variance of all rows and no weights, unless a prior says what they are.
    Variances are kept above the family's floor times that of all rows.
    """
    n, (centre, scale) = moments.n, units
    p = len(centre) - 1
    seen = n > 0
    # The parents in units of their own, so that a prior means the same for each and no square is far from 1.
    y = (moments.means[:, :p] - centre[:p]) / scale[:p]
    x = moments.means[:, p] - centre[p]
    syy = moments.scatter[:, :p, :p] / (scale[:p, None] * scale[:p])
    syx = moments.scatter[:, :p, p] / scale[:p]
    sxx = moments.scatter[:, p, p]
    if told is None:
        slopes = np.einsum("jab,jb->ja", np.linalg.pinv(syy, rcond=1e-12, hermitian=True), syx)
        squares = _left(slopes, syy, syx, sxx)
        if moments.triangle is not None:
            slopes, squares = _by_triangle(moments.triangle, scale, slopes, squares)
        intercept = x - (slopes * y).sum(axis=1)
        rows, extra = n, 0.0
    else:
        shift = told.mean - centre[p]
        intercept, slopes, squares = _ridge(n, y, x - shift, syy, syx, sxx, told.strength)
        intercept = intercept + shift
        extra, rows = 2.0 * told.scale, n + (p + 1)
    slopes, intercept = (
        np.where(seen[:, None], slopes, 0.0),
        np.where(seen | (told is not None), intercept, 0.0),
    )
    sums = squares
    if family.tied:
        sums, rows = np.broadcast_to(squares.sum(), n.shape), np.broadcast_to(rows.sum(), n.shape)
    if told is not None:
        rows = rows + 2.0 * told.shape + 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = np.where(rows > 0, (sums + extra) / rows, scale[p] ** 2)
    low = variances < family.floor * scale[p] ** 2
    variances = np.where(low, family.floor * scale[p] ** 2, variances)
    if family.fixed is not None:
        variances, low = family.fixed.ravel().astype(np.float64), np.zeros(len(n), dtype=bool)
    weights = slopes / scale[:p]
    means = intercept + centre[p] - weights @ centre[:p]
    unseen = ~seen if told is None else np.zeros(len(n), dtype=bool)
    return GaussianEstimate(GaussianParameters(means, weights, variances), unseen, low & seen)


class Leaves(NamedTuple):
    """Moments, or what was estimated of them, of d columns without continuous parents; all arrays (d, J)."""

    n: Array
    means: Array
    scatter: Array


def estimate_leaves(
    leaves: Leaves, units: Units | None = None, floor: float = FLOOR
) -> tuple[GaussianParameters, NDArray[np.bool_], NDArray[np.bool_]]:
    """As `estimate` by maximum likelihood, for many columns at once: numbers, unseen and collapsed, all (d, J).

    The units are those of the columns, (d,), by `overall` unless they are given.
    """
    n, means, scatter = leaves
    if units is None:
        total = n.sum(axis=1)
        centre = (n * means).sum(axis=1) / total
        squares = scatter.sum(axis=1) + (n * (means - centre[:, None]) ** 2).sum(axis=1)
        units = Units(centre, widths(centre, squares / total))
    centre, whole = units.centre, (units.scale**2)[:, None]
    seen = n > 0
    variances = np.where(seen, np.divide(scatter, n, out=np.zeros_like(scatter), where=seen), whole)
    low = variances < floor * whole
    found = GaussianParameters(
        np.where(seen, means, centre[:, None]),
        np.empty((*n.shape, 0)),
        np.where(low, floor * whole, variances),
    )
    return found, ~seen, low & seen


def log_prior(family: GaussianFamily, numbers: GaussianParameters, told: ToldGaussian) -> float:
    """ln of the prior's density, up to a constant, where the parents are in standard units (see `estimate`)."""
    apart = (numbers.means - told.mean) ** 2 + (numbers.weights**2).sum(axis=1)
    pulls = -0.5 * told.strength * apart / numbers.variances
    if family.fixed is not None:
        return float(pulls.sum())
    p, settings = numbers.weights.shape[1], len(numbers.means)
    variances, each = numbers.variances, p + 1.0
    if family.tied:
        variances, each = variances[:1], settings * (p + 1.0)
    spread = -0.5 * (2.0 * told.shape + 2.0 + each) * np.log(variances) - told.scale / variances
    return float(pulls.sum() + spread.sum())


def _ridge(
    n: Array, y: Array, x: Array, syy: Array, syx: Array, sxx: Array, strength: float
) -> tuple[Array, Array, Array]:
    """Intercept and slopes that minimise Σ (x − b − w·y)² + strength (b² + |w|²), and that minimum."""
    p = y.shape[1]
    if p == 0:
        return n * x / (n + strength), np.zeros((len(n), 0)), sxx + n * strength / (n + strength) * x**2
    system = np.empty((len(n), p + 1, p + 1))
    system[:, 0, 0] = n
    system[:, 0, 1:] = system[:, 1:, 0] = n[:, None] * y
    system[:, 1:, 1:] = syy + n[:, None, None] * y[:, :, None] * y[:, None, :]
    system += strength * np.eye(p + 1)
    right = np.column_stack([n * x, syx + (n * x)[:, None] * y])
    found = np.asarray(np.linalg.solve(system, right[:, :, None])[:, :, 0], dtype=np.float64)
    b, w = found[:, 0], found[:, 1:]
    offset = x - b - (w * y).sum(axis=1)
    return b, w, _left(w, syy, syx, sxx) + n * offset**2 + strength * (found**2).sum(axis=1)


def _by_triangle(triangle: Array, scale: Array, slopes: Array, squares: Array) -> tuple[Array, Array]:
    """Slopes and what they leave by back substitution, or those given where there is no triangle."""
    p = len(scale) - 1
    slopes, squares = slopes.copy(), squares.copy()
    known = np.isfinite(triangle).all(axis=(1, 2))
    upper = triangle[known]
    slopes[known] = np.linalg.solve(upper[:, :p, :p] / scale[:p], upper[:, :p, p:])[:, :, 0]
    squares[known] = upper[:, p, p] ** 2
    return slopes, squares


def _left(w: Array, syy: Array, syx: Array, sxx: Array) -> Array:
    """What is left of the scatter of x about w·y; an error in w, as of nearly collinear parents, counts squared."""
    left = sxx - 2 * (w * syx).sum(axis=1) + np.einsum("ja,jab,jb->j", w, syy, w)
    return np.asarray(np.maximum(left, 0.0))


def warn_of(families: Sequence[GaussianFamily], estimates: Sequence[GaussianEstimate]) -> None:
    """One warning that counts the settings that were never seen, and one that names those that collapsed."""
    empty = [
        (f.name, int(e.unseen.sum()), f.n_settings)
        for f, e in zip(families, estimates, strict=True)
        if e.unseen.any()
    ]
    if empty:
        shown = ", ".join(f"{name} ({n} of {total})" for name, n, total in empty[:5])
        more = f", … ({len(empty)} variables in all)" if len(empty) > 5 else ""
        warn_user(
            f"{sum(n for _, n, _ in empty)} settings of the parents of {shown}{more} were never seen in the data and "
            "have the mean and the variance of the whole column; gaussian_prior= says what they should be",
            UnseenRowsWarning,
        )
    named = [
        _setting(f, int(j))
        for f, e in zip(families, estimates, strict=True)
        for j in np.flatnonzero(e.collapsed)
    ]
    if named:
        more = f", … ({len(named)} in all)" if len(named) > 5 else ""
        warn_user(
            f"no spread is left in {', '.join(named[:5])}{more}: the variance is held at its floor, a tiny share of "
            "the column's; gaussian_prior=bbn.NormalInverseGamma() keeps variances away from 0",
            CollapsedWarning,
        )


def _setting(family: GaussianFamily, j: int) -> str:
    codes = np.unravel_index(j, family.shape) if family.shape else ()
    told = ", ".join(f"{v.name}={v.states[k]}" for v, k in zip(family.discrete, codes, strict=True))
    return f"{family.name} given {told}" if told else family.name
