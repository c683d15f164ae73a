"""The Gaussians of a climb: their parameters as one flat array in standard units, the M step, and the prior.

A column is measured from its mean in units of its standard deviation, z = (x − c) / s. So no number is far from 1, a
floor or a prior means the same for every column, and the log-likelihood is that of z less Σ ln s over what is observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import DataSource
from bbn.learning.gaussian.estimates import (
    GaussianEstimate,
    GaussianFamily,
    GaussianParameters,
    Leaves,
    Moments,
    Units,
    estimate,
    estimate_leaves,
    log_prior,
    pool,
    warn_of,
    widths,
)
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.tables.priors import NormalInverseGamma
from bbn.model.gaussian import Gaussian

ROUNDING = 1e-14
"""The share of a sum of squares that is rounding: no variance is taken to be less than that."""


class GaussianFamilies:
    """The continuous families of a problem.

    Parameters
    ----------
    families
        The families, parents before children.
    source
        The data, which two passes over find the units of.
    prior
        The prior of all of them, or None.
    fixed
        Names of Gaussians that stay as they are.
    tied
        Groups of names that share their parameters.

    Attributes
    ----------
    size, stats_size
        The lengths of the flat parameters, and of the flat moments that an E step adds up.
    constant
        What is added to the log-likelihood of standard units.
    """

    def __init__(
        self,
        families: Sequence[GaussianFamily],
        source: DataSource,
        prior: NormalInverseGamma | None,
        fixed: Iterable[str] = (),
        tied: Sequence[Sequence[str]] = (),
    ) -> None:
        self.families = list(families)
        self.names = [family.name for family in families]
        self.prior = prior
        self.fixed = set(fixed)
        self.tied = [[self.names.index(name) for name in group] for group in tied]
        self._measure(source)
        self.told = [None if prior is None else self._standard_prior(prior, i) for i in range(len(families))]
        self.parents = [[self.names.index(name) for name in f.regressors] for f in families]
        self.linked = self._linked()
        self.standard = [
            f._replace(
                fixed=None if f.fixed is None else f.fixed / self.scale[i] ** 2, linked=i in self.linked
            )
            for i, f in enumerate(families)
        ]
        self._shapes = [(f.n_settings, len(f.regressors)) for f in families]
        self._plain = self._is_plain()
        sizes = [count * (2 + p) for count, p in self._shapes]
        self.ptr = np.cumsum([0, *sizes]).astype(np.int64)
        self.size = int(self.ptr[-1])
        stats = [
            f.n_settings * ((len(f.columns) + 1) ** 2 if i in self.linked else 3)
            for i, f in enumerate(families)
        ]
        self.stats_ptr = np.cumsum([0, *stats]).astype(np.int64)
        self.stats_size = int(self.stats_ptr[-1])

    def _measure(self, source: DataSource) -> None:
        """Centre and width of each column; those of tied families together."""
        alone = [GaussianFamily(f.variable, ()) for f in self.families]
        measured = moments_of(alone, source)
        n = np.array([float(m.n[0]) for m in measured])
        centre = np.array([float(m.means[0, 0]) for m in measured])
        squares = np.array([float(m.scatter[0, 0, 0]) for m in measured])
        for group in self.tied:
            if any(self.families[i].regressors for i in group):
                raise DataError("tied= takes Gaussians without continuous parents only")
            total = n[group].sum()
            middle = n[group] @ centre[group] / total
            squares[group] = (squares[group] + n[group] * (centre[group] - middle) ** 2).sum()
            squares[group] *= n[group] / total
            centre[group] = middle
        seen = n > 0
        self.centre = np.where(seen, centre, 0.0)
        self.scale = widths(self.centre, np.where(seen, squares / np.where(seen, n, 1.0), 1.0))
        self.constant = -float(n @ np.log(self.scale))

    def _standard_prior(self, prior: NormalInverseGamma, i: int) -> Any:
        c, s = float(self.centre[i]), float(self.scale[i])
        told = prior.told(self.names[i], c, s * s)
        return told._replace(mean=(told.mean - c) / s, scale=told.scale / s**2)

    def _linked(self) -> set[int]:
        """The families with a continuous parent or a continuous child."""
        return {i for i, own in enumerate(self.parents) if own} | {p for own in self.parents for p in own}

    # Flat parameters

    def numbers(self, flat: Array) -> list[GaussianParameters]:
        """The parameters of each family, as views of the flat array."""
        found = []
        for i, (count, p) in enumerate(self._shapes):
            own = flat[self.ptr[i] : self.ptr[i + 1]]
            found.append(
                GaussianParameters(
                    own[:count], own[count : count * (1 + p)].reshape(count, p), own[count * (1 + p) :]
                )
            )
        return found

    def flat(self, numbers: Sequence[GaussianParameters]) -> Array:
        """The parameters of all families end to end."""
        return np.concatenate([np.empty(0), *(array.ravel() for own in numbers for array in own)])

    def keep_fixed(self, flat: Array, given: Array) -> Array:
        """Parameters with those of fixed Gaussians as given."""
        pairs = zip(self.names, self.numbers(flat), self.numbers(given), strict=True)
        return self.flat([old if name in self.fixed else new for name, new, old in pairs])

    def described(self) -> str:
        """All that a climb depends on but the data, as text."""
        families = [
            (
                f.name,
                [p.name for p in f.parents],
                f.shape,
                f.tied,
                None if f.fixed is None else f.fixed.tolist(),
            )
            for f in self.families
        ]
        return repr((families, self.prior, sorted(self.fixed), self.tied))

    def read(self, given: Mapping[str, Any]) -> Array:
        """The parameters of the Gaussians of a network; tied ones at their mean."""
        numbers = []
        for i, family in enumerate(self.families):
            own, (c, s) = given[family.name], (self.centre[i], self.scale[i])
            weights = own.weights.reshape(family.n_settings, -1)
            cy, sy = self.centre[self.parents[i]], self.scale[self.parents[i]]
            means = (own.means.ravel() + weights @ cy - c) / s
            fixed = self.standard[i].fixed
            variances = own.variances.ravel() / s**2 if fixed is None else fixed.ravel()
            numbers.append(GaussianParameters(means, weights * sy / s, variances))
        for group in self.tied:
            shared = [np.mean([numbers[i][k] for i in group], axis=0) for k in range(3)]
            for i in group:
                numbers[i] = GaussianParameters(*shared)
        return self.flat(numbers)

    def conditionals(self, flat: Array, given: Mapping[str, Any]) -> list[Gaussian]:
        """The Gaussians of these parameters; fixed ones are those given."""
        made = []
        for i, (family, own) in enumerate(zip(self.families, self.numbers(flat), strict=True)):
            if family.name in self.fixed:
                made.append(given[family.name])
                continue
            c, s = self.centre[i], self.scale[i]
            cy, sy = self.centre[self.parents[i]], self.scale[self.parents[i]]
            weights = own.weights * s / sy
            made.append(
                family.gaussian(
                    GaussianParameters(c + s * own.means - weights @ cy, weights, own.variances * s**2)
                )
            )
        return made

    # The M step

    def maximise(self, flat: Array, stats: Array) -> Array:
        """New parameters, from the moments that an E step under the old ones found."""
        if self._plain:
            return self._maximise_plain(flat, stats)
        old = self.numbers(flat)
        moments = [self.moments(i, old[i], stats) for i in range(len(self.families))]
        for group in self.tied:
            pooled = pool([moments[i] for i in group])
            for i in group:
                moments[i] = pooled
        new = []
        for i, family in enumerate(self.standard):
            q = len(family.columns)
            found = estimate(family, moments[i], Units(np.zeros(q), np.ones(q)), self.told[i])
            new.append(old[i] if family.name in self.fixed else found.numbers)
        return self.flat(new)

    def _is_plain(self) -> bool:
        """Whether all are leaves with as many settings each, and maximum likelihood is all that is asked for."""
        alike = len({f.n_settings for f in self.standard}) == 1 and not self.linked and self.prior is None
        return alike and not (
            self.fixed or self.tied or any(f.tied or f.fixed is not None for f in self.standard)
        )

    def _maximise_plain(self, flat: Array, stats: Array) -> Array:
        """As `maximise`, all families at once: means and variances lie in `flat` as (families, 2, settings)."""
        count = self._shapes[0][0]
        n, sums, squares = stats.reshape(-1, 3, count).transpose(1, 0, 2)
        shift = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
        scatter = np.maximum(squares - sums * shift, ROUNDING * squares)
        means = flat.reshape(-1, 2, count)[:, 0] + shift
        found = estimate_leaves(Leaves(n, means, scatter), Units(np.zeros(len(n)), np.ones(len(n))))[0]
        return np.stack([found.means, found.variances], axis=1).ravel()

    def moments(self, i: int, old: GaussianParameters, stats: Array) -> Moments:
        """The moments of a family, from what an E step added up under the old parameters."""
        own = stats[self.stats_ptr[i] : self.stats_ptr[i + 1]]
        count = self.families[i].n_settings
        if i not in self.linked:
            n, sums, squares = own.reshape(3, count)
            shift = np.divide(sums, n, out=np.zeros(count), where=n > 0)
            scatter = np.maximum(squares - sums * shift, ROUNDING * squares)
            return Moments(n, (old.means + shift)[:, None], scatter[:, None, None])
        products = own.reshape(count, len(self.families[i].columns) + 1, -1)
        n = products[:, 0, 0]
        means = np.divide(
            products[:, 0, 1:], n[:, None], out=np.zeros_like(products[:, 0, 1:]), where=n[:, None] > 0
        )
        scatter = products[:, 1:, 1:] - n[:, None, None] * means[:, :, None] * means[:, None, :]
        return Moments(n, means, scatter)

    def log_prior(self, flat: Array) -> float:
        """ln of the prior's density, up to a constant; of tied families once."""
        if self.prior is None:
            return 0.0
        skipped = {i for group in self.tied for i in group[1:]}
        total = 0.0
        for i, (family, own) in enumerate(zip(self.standard, self.numbers(flat), strict=True)):
            told = self.told[i]
            if told is not None and i not in skipped and family.name not in self.fixed:
                total += log_prior(family, own, told)
        return total

    def repair(self, guess: Array, safe: Array) -> Array:
        """A guess at parameters with its variances kept above 0, and what does not move where it is."""
        tried, known = self.numbers(guess.copy()), self.numbers(safe)
        for i, family in enumerate(self.standard):
            if family.name in self.fixed or family.fixed is not None:
                tried[i].variances[:] = known[i].variances
            if family.name in self.fixed:
                tried[i].means[:], tried[i].weights[:] = known[i].means, known[i].weights
            np.maximum(tried[i].variances, 0.01 * known[i].variances, out=tried[i].variances)
        return self.flat(tried)

    def collapsed(self, flat: Array) -> list[NDArray[np.bool_]]:
        """Per family, whether each setting's variance is held at its floor."""
        return [
            (own.variances <= f.floor * (1 + 1e-6)) & (f.fixed is None) & (f.name not in self.fixed)
            for f, own in zip(self.standard, self.numbers(flat), strict=True)
        ]

    def warn(self, flat: Array) -> None:
        """One warning that names the settings that have collapsed."""
        found = zip(self.numbers(flat), self.collapsed(flat), strict=True)
        estimates = [GaussianEstimate(own, np.zeros(len(low), dtype=bool), low) for own, low in found]
        warn_of(self.families, estimates)
