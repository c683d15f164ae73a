"""A small component: the joint normal distribution written out, by square roots of covariances.

Every continuous variable is a linear function of independent standard normal noises, one per variable:
x = μ(s) + L(s) ε in setting s of the discrete parents, with L lower triangular in topological order (row i is
Σ_j w_ij L_j + √v_i e_i). What observing some of them does is in `square_root`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.frozen import Array
from bbn.inference.gaussian.jointly_gaussian import LOG_2PI, NEAR, OTHERWISE, Component, Given
from bbn.inference.gaussian.square_root import Rotation, rotated, solved
from bbn.kernels.contracts.types import Ints
from bbn.model.gaussian import Gaussian


class DenseComponent(Component):
    """A component with all its noises in one matrix.

    Attributes
    ----------
    slopes
        (settings, variables, 1 + shifts): μ(s) as a linear function of (1, the shifts' numbers).
    own
        (settings, variables): the variance of each variable given its parents.
    root
        (settings, variables, variables): L(s).
    """

    def __init__(
        self,
        gaussians: list[Gaussian],
        observed: Collection[str],
        order: Mapping[str, int],
        fixed: Mapping[str, int],
        memory_limit: int | str | None = None,
    ) -> None:
        super().__init__(gaussians, observed, order, fixed)
        n = len(gaussians)
        cells = self.settings * n * (3 * n + len(self.shifts) + 2)
        require_memory(8 * cells, self.subject, OTHERWISE, memory_limit)
        self.slopes = np.zeros((self.settings, n, 1 + len(self.shifts)))
        self.own = np.empty((self.settings, n))
        self.root = np.zeros((self.settings, n, n))
        place = {name: i for i, name in enumerate(self.names)}
        for i, g in enumerate(gaussians):
            self.slopes[:, i, 0] = self._spread(g, g.means, fixed)
            self.own[:, i] = self._spread(g, g.variances, fixed)
            self.root[:, i, i] = np.sqrt(self.own[:, i])
            for k, parent in enumerate(g.continuous_parents):
                weight = self._spread(g, g.weights[..., k], fixed)
                if parent.name in observed:
                    self.slopes[:, i, 1 + self.shifts.index(parent.name)] += weight
                else:
                    j = place[parent.name]
                    self.slopes[:, i] += weight[:, None] * self.slopes[:, j]
                    self.root[:, i] += weight[:, None] * self.root[:, j]

    @property
    def cells(self) -> int:
        """How many numbers it holds."""
        return self.root.size

    @cached_property
    def _rotation(self) -> Rotation:
        """Q, (settings, variables, variables), and R, (settings, observed, observed)."""
        return rotated(self.root[:, self.observed])

    @cached_property
    def _log_scale(self) -> Array:
        """(settings,): ln of |R| and the constants of the density."""
        scale = np.diagonal(self._rotation.triangle, axis1=1, axis2=2)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(scale).sum(axis=1) + 0.5 * len(self.observed) * LOG_2PI)

    def given(self, numbers: Mapping[str, Array], rows: int = 1) -> Given:
        """What the observed numbers say, one entry per row for each observed variable and shift."""
        centre = self.slopes[None, :, :, 0]
        for k, name in enumerate(self.shifts):
            centre = centre + self.slopes[:, :, 1 + k] * numbers[name][:, None, None]
        if not self.observed:
            nothing = np.zeros((rows, self.settings, 0))
            return Given(np.zeros((rows, self.settings)), (nothing, centre))
        triangle = self._rotation.triangle
        log_scale = self._log_scale
        apart = [numbers[self.names[i]][:, None] - centre[..., i] for i in self.observed]
        # A number too far away has the log-density −inf, one without a scale NaN.
        with np.errstate(all="ignore"):
            z = solved(triangle, np.stack(apart, axis=-1))
            squares = z[..., 0] ** 2 if len(self.observed) == 1 else np.einsum("rso,rso->rs", z, z)
            log_density = -0.5 * squares - log_scale
        return Given(log_density, (z, centre))

    def refined(self, given: Given, numbers: Mapping[str, Array]) -> Given:
        """The same, with the log-densities of rows of far numbers relative to that of the best setting."""
        far = np.flatnonzero((given.log_density < NEAR).any(axis=1))
        if self.settings == 1 or not len(far):
            return given
        log_density, offset = given.log_density.copy(), np.zeros(len(given.log_density))
        columns = {name: numbers[name][far] for name in self.shifts}
        with np.errstate(all="ignore"):
            log_density[far], offset[far] = self._apart(columns, given.parts[0][far], log_density[far])
        return Given(log_density, given.parts, offset)

    def _apart(self, shifts: Mapping[str, Array], z: Array, log_density: Array) -> tuple[Array, Array]:
        """How far each setting is below the best one, and the log-density of that, for rows of far numbers.

        At a million standard deviations a log-density is −5e11, known to 1e-4; but z_s² − z_r² for settings s and r is
        (z_s − z_r)·(z_s + z_r), and the first factor solves R_rᵀ(z_s − z_r) = μ_r − μ_s − (R_s − R_r)ᵀ z_s.
        """
        rows = np.arange(len(z))
        best = np.nan_to_num(log_density, nan=-np.inf).argmax(axis=1)
        triangle, log_scale = self._rotation.triangle, self._log_scale
        slopes = self.slopes[:, self.observed]
        moved = slopes[best][:, None] - slopes  # (rows, settings, observed, 1 + shifts)
        rest = moved[..., 0]
        for k, name in enumerate(self.shifts):
            rest = rest + moved[..., 1 + k] * shifts[name][:, None, None]
        between = np.empty_like(z)
        for k in range(len(self.observed)):  # forward substitution
            own = triangle[best][:, :, k]  # (rows, observed)
            turned = triangle[:, :, k] - own[:, None]
            late = np.einsum("rso,rso->rs", turned[..., : k + 1], z[..., : k + 1])
            late += np.einsum("ro,rso->rs", own[:, :k], between[..., :k])
            between[..., k] = (rest[..., k] - late) / own[:, None, k]
        squares = np.einsum("rso,rso->rs", between, z + z[rows, best][:, None])
        apart = -0.5 * squares - (log_scale - log_scale[best][:, None])
        lost = ~np.isfinite(log_density)
        return np.where(lost, -np.inf, apart), np.nan_to_num(log_density[rows, best], nan=0.0, neginf=0.0)

    def mean(self, name: str, given: Given) -> Array:
        """(rows, settings): the mean of a variable given the numbers."""
        i, n_observed = self.names.index(name), len(self.observed)
        noise, centre = given.parts
        mean: Array = np.broadcast_to(centre[..., i], given.log_density.shape)
        if n_observed:
            lever = (self.root[:, i, None, :] @ self._rotation.turn[:, :, :n_observed])[:, 0]
            mean = mean + np.einsum("so,rso->rs", lever, noise)
        return mean

    def variance(self, name: str) -> Array:
        """(settings,): the variance of a variable given the numbers, which does not depend on them."""
        i = self.names.index(name)
        if not self.observed and not self.root[:, i, :i].any():
            return self.own[:, i]
        row = self.root[:, i, None, :]
        left = row @ self._rotation.turn[:, :, len(self.observed) :] if self.observed else row
        return np.asarray((left**2).sum(axis=(1, 2)))

    def draw(self, given: Given, setting: Ints, rng: np.random.Generator) -> dict[str, Array]:
        """A draw of each unobserved variable given one row of numbers, for each of many settings."""
        hidden = [i for i in range(len(self.names)) if i not in self.observed]
        n_observed = len(self.observed)
        levers = self.root[:, hidden] @ self._rotation.turn
        fixed, centre = given.parts[0][0], given.parts[1][0][:, hidden]
        centre = centre + np.einsum("sho,so->sh", levers[..., :n_observed], fixed)
        noise = rng.standard_normal((len(setting), len(self.names) - n_observed))
        drawn = np.empty((len(setting), len(hidden)))
        for s in np.unique(setting):
            here = setting == s
            drawn[here] = centre[s] + noise[here] @ levers[s, :, n_observed:].T
        return {self.names[i]: drawn[:, k] for k, i in enumerate(hidden)}
