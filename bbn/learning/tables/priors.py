"""Priors over tables. Each is a table of pseudo-counts, added to the counts before a row is divided by its sum.

    θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

α = 0 is maximum likelihood, α = m p Mitchell's m-estimate (1997, section 6.9.1.1), α = const the posterior mean under
a Dirichlet prior (α = 1: Laplace), α = ess / (rows · states) BDeu (Heckerman, Geiger and Chickering 1995).
`NormalInverseGamma` is the prior of Gaussians.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.model.variable import Variable

LEAST = 0.5
"""Rows that `BackOff` spreads over all states of a child, if one of them never occurs."""

Family = tuple[Variable, ...]
"""The parents' variables in the order of the table's axes, then the child's."""


@runtime_checkable
class Prior(Protocol):
    """What a prior must offer."""

    def pseudocounts(self, family: Family) -> Array:
        """One pseudo-count per entry of the family's table, parents' axes first."""

    def check_names(self, names: tuple[str, ...]) -> None:
        """DataError if the prior names an unknown variable."""


@dataclass(frozen=True)
class MEstimate:
    """Mitchell's m-estimate: (n_c + m p) / (n + m).

    Parameters
    ----------
    m
        The equivalent sample size of p in each row; 0 is maximum likelihood.
    p
        Variable name to its prior: a distribution over the states (a list, or a mapping by state), or a whole table.
        Uniform where not given.

    >>> MEstimate(2).pseudocounts((Variable("Wind", ["weak", "strong"]),))
    array([1., 1.])
    """

    m: float
    p: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_size(self.m, "MEstimate: m", at_least=True)
        if self.p is not None and not isinstance(self.p, Mapping):
            raise DataError(f"MEstimate: p must map a variable's name to its prior, found {self.p!r}")

    def pseudocounts(self, family: Family) -> Array:
        """m p, the same in each row unless p is a table.

        Parameters
        ----------
        family : tuple of Variable
            The parents, then the child.

        Returns
        -------
        ndarray
            One number per entry of the table.
        """
        child = family[-1]
        given = (self.p or {}).get(child.name)
        if given is None:
            return np.full(_shape(family), self.m / child.card)
        where = f"MEstimate: p of {child.name!r}"
        p = _entries(given, family, where)
        if np.abs(p.sum(axis=-1) - 1).max() > 1e-9:
            raise DataError(f"{where} sums to {p.sum(axis=-1).ravel()[0]:.9g}, expected 1")
        return np.asarray(self.m * p)

    def check_names(self, names: tuple[str, ...]) -> None:
        """DataError if p names an unknown variable.

        Parameters
        ----------
        names : tuple of str
            The variables there are.

        Raises
        ------
        DataError
            The prior names another; the error says the nearest.
        """
        _check_names(self.p, names, "MEstimate: p")


@dataclass(frozen=True)
class Dirichlet:
    """A Dirichlet prior; tables are posterior means.

    Parameters
    ----------
    alpha
        One number for each entry of every table (1 is Laplace's), or variable name to a number, a list over the
        states, a mapping by state, or a whole table; variables not named have 0.

    >>> Dirichlet(1).pseudocounts((Variable("Wind", ["weak", "strong"]),))
    array([1., 1.])
    """

    alpha: float | Mapping[str, Any] = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.alpha, Mapping):
            _check_size(self.alpha, "Dirichlet: alpha", at_least=True)

    def pseudocounts(self, family: Family) -> Array:
        """Alpha per entry.

        Parameters
        ----------
        family : tuple of Variable
            The parents, then the child.

        Returns
        -------
        ndarray
            One number per entry of the table.
        """
        if not isinstance(self.alpha, Mapping):
            return np.full(_shape(family), float(self.alpha))
        return _entries(
            self.alpha.get(family[-1].name, 0.0), family, f"Dirichlet: alpha of {family[-1].name!r}"
        )

    def check_names(self, names: tuple[str, ...]) -> None:
        """DataError if alpha names an unknown variable.

        Parameters
        ----------
        names : tuple of str
            The variables there are.

        Raises
        ------
        DataError
            The prior names another; the error says the nearest.
        """
        _check_names(self.alpha if isinstance(self.alpha, Mapping) else None, names, "Dirichlet: alpha")


@dataclass(frozen=True)
class BDeu:
    """The Dirichlet prior that makes a uniform joint worth `equivalent_sample_size` rows; also a score.

    Parameters
    ----------
    equivalent_sample_size : float, default 1.0
        The rows that the prior is worth; above 0.

    Examples
    --------
    >>> BDeu(8).pseudocounts((Variable("Storm", ["yes", "no"]), Variable("Campfire", ["yes", "no"])))
    array([[2., 2.], [2., 2.]])
    """

    equivalent_sample_size: float = 1.0

    def __post_init__(self) -> None:
        _check_size(self.equivalent_sample_size, "BDeu: equivalent_sample_size", at_least=False)

    def pseudocounts(self, family: Family) -> Array:
        """The equivalent sample size spread evenly over the table's entries.

        Parameters
        ----------
        family : tuple of Variable
            The parents, then the child.

        Returns
        -------
        ndarray
            One number per entry of the table.
        """
        shape = _shape(family)
        return np.full(shape, self.equivalent_sample_size / math.prod(shape))

    def check_names(self, names: tuple[str, ...]) -> None:
        """Do nothing: this prior names no variable.

        Parameters
        ----------
        names : tuple of str
            The variables there are.
        """


@dataclass(frozen=True)
class BackOff:
    """Rows with few counts lean towards what the child does in other such rows: (N_jk + size q_k) / (N_j + size).

    q weighs each row j by the share size / (N_j + size) that it gets from q::

        q_k = Σ_j u_j N_jk / Σ_j u_j N_j,        u_j = size / (N_j + size)

    This is the only q for which Σ_j N_j (N_jk + size q_k) / (N_j + size) = N_k: the child's own distribution, over the
    rows as the data have them, stays that of the data. Without parents there is nothing to lean on: one row is spread
    over the states, as `BDeu(1)` does; so is half a row where a state never occurs.

    Parameters
    ----------
    size
        How many rows q is worth in each row of a table.

    >>> counts = np.array([[3.0, 1.0], [0.0, 2.0]])
    >>> table = counts + BackOff(2.0).backed_off(counts)
    >>> (counts.sum(axis=1) @ (table / table.sum(axis=1, keepdims=True))).round(9)
    array([3., 3.])
    """

    size: float = 2.0

    def pseudocounts(self, family: Family) -> Array:
        """Where nothing is counted: the same for all states."""
        return np.full(_shape(family), self.size / family[-1].card)

    def backed_off(self, counts: Array) -> Array:
        """One pseudo-count per entry of the counts, the child's axis last."""
        card = counts.shape[-1]
        if np.ndim(counts) == 1:
            return np.full(card, 1.0 / card)
        rows = np.asarray(counts, dtype=np.float64).reshape(-1, card)
        own = rows.sum(axis=1)
        q = (self.size / (own + self.size)) @ rows
        if not q.all():
            q = q / max(q.sum(), 1e-300) + LEAST / (own.sum() + LEAST) / card
        return np.broadcast_to(self.size * q / q.sum(), counts.shape)

    def check_names(self, names: tuple[str, ...]) -> None:
        """It names no variable."""


def pseudocounts_of(prior: Prior, family: Family, counts: Any = None) -> Array:
    """The pseudo-counts of a family, whose counts are known or not."""
    if isinstance(prior, BackOff) and counts is not None:
        return prior.backed_off(counts)
    return prior.pseudocounts(family)


@dataclass(frozen=True)
class PseudoCounts:
    """Pseudo-counts given as tables, by the names of a family, the child's last."""

    tables: Mapping[tuple[str, ...], Array]

    def pseudocounts(self, family: Family) -> Array:
        """The family's table."""
        return self.tables[tuple(v.name for v in family)]

    def check_names(self, names: tuple[str, ...]) -> None:
        """It was made for the network at hand."""


class ToldGaussian(NamedTuple):
    """The numbers of a `NormalInverseGamma` for one variable."""

    mean: float
    strength: float
    shape: float
    scale: float


@dataclass(frozen=True)
class NormalInverseGamma:
    """The conjugate prior of a Gaussian: σ² ~ InverseGamma(shape, scale), mean | σ² ~ Normal(mean, σ² / strength).

    Parameters
    ----------
    strength
        κ, how many rows the prior mean is worth; above 0.
    shape
        a, above 0; half the number of rows that the prior variance is worth.
    mean
        m; None is the mean of the column.
    scale
        b, above 0; None is (a + 1) times the variance of the column, whose mode is that variance.

    Notes
    -----
    Each is a number, or maps the name of a variable to one (others have the default). Estimates are the joint mode of
    the posterior. From n rows with mean x̄::

        mean = (κ m + n x̄) / (κ + n)
        σ² = (2 b + Σ (x − x̄)² + κ n / (κ + n) (x̄ − m)²) / (n + 2 a + 3)

    in each setting of the discrete parents. A tied variance has one inverse gamma for all its settings. Weights of
    continuous parents have the prior Normal(0, σ² / strength) too, each parent taken in units of its own standard
    deviation and from its own mean; each adds 1 to the 3.

    >>> NormalInverseGamma(strength=2.0, mean=10.0).told("X", centre=0.0, variance=4.0)
    ToldGaussian(mean=10.0, strength=2.0, shape=1.0, scale=8.0)
    """

    strength: float | Mapping[str, float] = 1.0
    shape: float | Mapping[str, float] = 1.0
    mean: float | Mapping[str, float] | None = None
    scale: float | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        for word in ("strength", "shape", "mean", "scale"):
            told = getattr(self, word)
            for value in told.values() if isinstance(told, Mapping) else [told]:
                if value is None and word in ("mean", "scale"):
                    continue
                good = isinstance(value, int | float | np.number) and not isinstance(value, bool)
                if not good or not math.isfinite(value) or (word != "mean" and value <= 0):
                    expected = "a finite number" if word == "mean" else "a finite number above 0"
                    raise DataError(f"NormalInverseGamma: {word} is {value!r}; expected {expected}")

    def told(self, name: str, centre: float, variance: float) -> ToldGaussian:
        """Its numbers for a variable, whose column has this mean and variance.

        Parameters
        ----------
        name : str
            The variable.
        centre, variance : float
            The mean and the variance of its column.

        Returns
        -------
        ToldGaussian
            What the prior says about it, in numbers.
        """
        strength, shape, mean, scale = (
            told.get(name) if isinstance(told, Mapping) else told
            for told in (self.strength, self.shape, self.mean, self.scale)
        )
        shape = 1.0 if shape is None else float(shape)
        return ToldGaussian(
            float(centre if mean is None else mean),
            1.0 if strength is None else float(strength),
            shape,
            float((shape + 1.0) * variance if scale is None else scale),
        )

    def check_names(self, names: tuple[str, ...]) -> None:
        """DataError if it names an unknown variable.

        Parameters
        ----------
        names : tuple of str
            The variables there are.

        Raises
        ------
        DataError
            The prior names another; the error says the nearest.
        """
        for word in ("strength", "shape", "mean", "scale"):
            told = getattr(self, word)
            _check_names(told if isinstance(told, Mapping) else None, names, f"NormalInverseGamma: {word}")


def checked_gaussian_prior(prior: Any, names: tuple[str, ...]) -> NormalInverseGamma | None:
    """`prior` if it is one for Gaussians, or None; `names` are the continuous variables."""
    if prior is None:
        return None
    if not isinstance(prior, NormalInverseGamma):
        raise DataError(f"gaussian_prior is {prior!r}; expected None or bbn.NormalInverseGamma(…)")
    prior.check_names(names)
    return prior


def checked_prior(prior: Any, names: tuple[str, ...]) -> Prior | None:
    """`prior` if it is one, or None; DataError says what is expected."""
    if prior is None:
        return None
    if isinstance(prior, NormalInverseGamma):
        raise DataError(
            "NormalInverseGamma is a prior of Gaussians: gaussian_prior= takes it, prior= those of tables"
        )
    if not isinstance(prior, Prior) or isinstance(prior, type):
        raise DataError(
            f"prior is {prior!r}; expected None, bbn.MEstimate(m, p), bbn.Dirichlet(alpha) or "
            "bbn.BDeu(equivalent_sample_size)"
        )
    prior.check_names(names)
    return prior


def _shape(family: Family) -> tuple[int, ...]:
    return tuple(v.card for v in family)


def _entries(given: Any, family: Family, where: str) -> Array:
    """Numbers for each entry of a family's table, from a number, one row, a mapping by state, or a table."""
    child = family[-1]
    if isinstance(given, Mapping):
        row = np.zeros(child.card)
        for state, value in given.items():
            code = child.find(state)
            if code is None:
                raise DataError(f"{where}: {child.unknown(state)}")
            row[code] = value
        given = row
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where}: expected numbers, found {given!r}") from None
    shape = _shape(family)
    if array.shape not in ((), (child.card,), shape):
        raise DataError(
            f"{where} has shape {array.shape}; expected a number, one per state ({child.card}), or a table {shape}"
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise DataError(f"{where}: expected finite numbers, at least 0, found {given!r}")
    return np.broadcast_to(array, shape)


def _check_size(size: Any, where: str, at_least: bool) -> None:
    good = isinstance(size, int | float | np.number) and not isinstance(size, bool) and math.isfinite(size)
    if not good or size < 0 or (size == 0 and not at_least):
        raise DataError(
            f"{where} is {size!r}; expected a finite number {'at least' if at_least else 'above'} 0"
        )


def _check_names(given: Mapping[str, Any] | None, names: tuple[str, ...], where: str) -> None:
    for name in given or {}:
        if name not in names:
            raise DataError(f"{where} names {name!r}, which is not a variable{nearest(name, names)}")
