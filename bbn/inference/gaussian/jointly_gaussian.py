"""Continuous variables given the discrete ones: jointly Gaussian, one normal distribution per setting.

An arc out of an observed variable is a known shift of its child's mean, so variables fall into components that are
linked by arcs out of unobserved ones; each component depends on its own discrete parents alone. This is what all of
them have; the algebra is in `dense_component`, for small ones, and `sparse_component`, for large ones.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.kernels.contracts.types import Ints
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Variable

LOG_2PI = math.log(2 * math.pi)
NEAR = -5e5
"""Where a log-density is below this, settings are to be compared by `refined` differences."""


class Given(NamedTuple):
    """A component given the numbers observed in it, for each row of them and each setting s."""

    log_density: Array
    """(rows, settings): ln p(observed | s), less the row's offset."""
    parts: tuple[Array, ...]
    """What the component needs to know of the numbers for means and draws."""
    offset: Array | float = 0.0
    """(rows,): what to add; zero unless `refined`."""


class Component(ABC):
    """Continuous variables that are jointly Gaussian given their discrete parents.

    Attributes
    ----------
    names
        The variables, in topological order.
    observed
        The places among them of the observed ones.
    regime
        Their discrete parents, in the network's order, but for those whose state is fixed; the settings run over
        these, the last one fastest.
    shifts
        Names of the observed continuous parents.
    settings
        The number of settings of the regime.
    """

    def __init__(
        self,
        gaussians: list[Gaussian],
        observed: Collection[str],
        order: Mapping[str, int],
        fixed: Mapping[str, int],
    ) -> None:
        self.names = tuple(g.name for g in gaussians)
        self.observed = [i for i, name in enumerate(self.names) if name in observed]
        discrete = {p.name: p for g in gaussians for p in g.discrete_parents if p.name not in fixed}
        self.regime: tuple[Variable, ...] = tuple(
            discrete[n] for n in sorted(discrete, key=order.__getitem__)
        )
        outside = {p.name for g in gaussians for p in g.continuous_parents if p.name in observed}
        self.shifts = tuple(sorted(outside, key=order.__getitem__))
        self.settings = math.prod(v.card for v in self.regime)

    def _spread(self, gaussian: Gaussian, values: Array, fixed: Mapping[str, int]) -> Array:
        """Values per setting of one variable's discrete parents as values per setting of the regime."""
        parents = gaussian.discrete_parents
        values = values[tuple(fixed.get(p.name, slice(None)) for p in parents)]
        own = [p.name for p in parents if p.name not in fixed]
        regime = [v.name for v in self.regime]
        values = values.transpose([own.index(name) for name in regime if name in own])
        values = values.reshape([v.card if v.name in own else 1 for v in self.regime])
        return np.broadcast_to(values, self.shape).reshape(-1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each variable of the regime."""
        return tuple(v.card for v in self.regime)

    @property
    def subject(self) -> str:
        """What the memory is for, in words."""
        n = len(self.names)
        return (
            f"the normal distributions of {n} continuous variables ({', '.join(self.names[:6])}{', …' * (n > 6)}) "
            f"in {self.settings:,} settings of their {len(self.regime)} discrete parents"
        )

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many numbers it holds."""

    @abstractmethod
    def given(self, numbers: Mapping[str, Array], rows: int = 1) -> Given:
        """What the observed numbers say, one entry per row for each observed variable and shift."""

    def refined(self, given: Given, numbers: Mapping[str, Array]) -> Given:
        """The same, with no digits lost where numbers are so far away that log-densities are below `NEAR`."""
        return given

    @abstractmethod
    def mean(self, name: str, given: Given) -> Array:
        """(rows, settings): the mean of a variable given the numbers."""

    @abstractmethod
    def variance(self, name: str) -> Array:
        """(settings,): the variance of a variable given the numbers, which does not depend on them."""

    @abstractmethod
    def draw(self, given: Given, setting: Ints, rng: np.random.Generator) -> dict[str, Array]:
        """A draw of each unobserved variable given one row of numbers, for each of many settings."""


OTHERWISE = "observe more of these parents or of the continuous variables between them"
"""What to do where a component does not fit in memory."""
