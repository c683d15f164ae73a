"""The posterior of a continuous variable: a mixture of normal distributions, one per setting of discrete variables.

p(x) = Σ_k w_k N(x; m_k, v_k) with mean Σ w m and variance Σ w (v + (m − mean)²). A component of variance 0 is a
number known for certain. `AllPosteriors` holds such answers beside those of discrete variables.
"""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bbn.core.display import BAR, Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array, Frozen, numbers, read_only
from bbn.model.variable import Continuous, State, Variable
from bbn.results.sampling_report import SamplingReport

if TYPE_CHECKING:
    import pandas as pd

    from bbn.view.scene import Drawing

HALVINGS = 1100
"""Halvings of an interval of doubles after which its ends are neighbours, however far apart they began."""


class MixtureComponent(NamedTuple):
    """One normal distribution of a mixture."""

    mean: float
    variance: float
    weight: float
    setting: dict[str, State]
    """The discrete variables' states in which it holds."""


class MixturePosterior(Tabular, Frozen):
    """The distribution of a continuous variable given evidence.

    Attributes
    ----------
    variable
        The variable asked for.
    given
        The discrete variables whose settings the components belong to.
    weights, means, variances
        One entry per component, settings of `given` in order, the last one fastest; read-only.
    log_evidence
        ln p(evidence): a probability where all of it is discrete, a density where numbers are among it.
    sampling
        How far off the weights of an approximate answer may be, a SamplingReport; None for an exact one.

    >>> import bbn
    >>> sex = bbn.Variable("Sex", ["f", "m"])
    >>> net = bbn.BayesianNetwork(
    ...     [bbn.CPT(sex, table=[0.5, 0.5]), bbn.Gaussian("Height", [sex], means=[166, 180], variances=[36, 49])]
    ... )
    >>> p = net.query("Height")
    >>> p.mean, p.variance, round(p.cdf(173.0), 4), round(p.quantile(0.5), 3)
    (173.0, 91.5, 0.5185, 172.462)
    >>> p.components[0]
    MixtureComponent(mean=166.0, variance=36.0, weight=0.5, setting={'Sex': 'f'})
    """

    __slots__ = ("given", "log_evidence", "means", "sampling", "variable", "variances", "weights")

    variable: Continuous
    given: tuple[Variable, ...]
    weights: Array
    means: Array
    variances: Array
    log_evidence: float
    sampling: SamplingReport | None

    def __init__(
        self,
        variable: Continuous,
        given: tuple[Variable, ...],
        weights: Array,
        means: Array,
        variances: Array,
        log_evidence: float,
        sampling: SamplingReport | None = None,
    ) -> None:
        self._set(
            variable=variable,
            given=given,
            weights=read_only(weights),
            means=read_only(means),
            variances=read_only(variances),
            log_evidence=log_evidence,
            sampling=sampling,
        )

    @property
    def variables(self) -> tuple[Continuous]:
        """The variable, as of a `Posterior`."""
        return (self.variable,)

    @property
    def names(self) -> tuple[str]:
        """The variable's name, as of a `Posterior`."""
        return (self.variable.name,)

    @property
    def components(self) -> tuple[MixtureComponent, ...]:
        """The components as (mean, variance, weight, setting)."""
        names = [v.name for v in self.given]
        settings = product(*(v.states for v in self.given))
        return tuple(
            MixtureComponent(mean, variance, weight, dict(zip(names, states, strict=True)))
            for mean, variance, weight, states in zip(
                self.means.tolist(), self.variances.tolist(), self.weights.tolist(), settings, strict=True
            )
        )

    @property
    def mean(self) -> float:
        """E[x]."""
        return float(self.weights @ self.means)

    @property
    def variance(self) -> float:
        """E[(x − mean)²]."""
        return float(self.weights @ (self.variances + (self.means - self.mean) ** 2))

    @property
    def std(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)

    @property
    def std_error(self) -> Array | None:
        """The standard error of each weight; None for an exact answer."""
        return None if self.sampling is None else self.sampling.std_error

    def log_pdf(self, x: ArrayLike) -> Any:
        """ln of the density at x, a number or an array, far out in the tails too.

        Parameters
        ----------
        x : float or array
            Where.

        Returns
        -------
        float or ndarray
            ln p(x).

        See Also
        --------
        pdf : The density itself.
        """
        from scipy.special import logsumexp

        at, inside = self._standardised(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_scale = 0.5 * np.log(2 * np.pi * self.variances[inside])
            logs = np.log(self.weights[inside]) - log_scale - 0.5 * at**2
            logs = np.where(log_scale == -np.inf, np.where(at == 0, np.inf, -np.inf), logs)
        return _plain(logsumexp(logs, axis=-1))

    def pdf(self, x: ArrayLike) -> Any:
        """The density at x, a number or an array; infinite at a number known for certain.

        Parameters
        ----------
        x : float or array
            Where.

        Returns
        -------
        float or ndarray
            p(x).

        See Also
        --------
        log_pdf : Its logarithm, for the tails.
        cdf : The probability below x.
        """
        return _plain(np.exp(self.log_pdf(x)))

    def cdf(self, x: ArrayLike) -> Any:
        """P(X ≤ x), x a number or an array.

        Parameters
        ----------
        x : float or array
            Where.

        Returns
        -------
        float or ndarray
            P(X ≤ x).

        See Also
        --------
        quantile : The inverse.
        """
        from scipy.special import ndtr

        at, inside = self._standardised(x)
        at = np.where((at == 0) & (self.variances[inside] == 0), np.inf, at)
        return _plain(np.minimum(ndtr(at) @ self.weights[inside], 1.0))

    def quantile(self, q: ArrayLike) -> Any:
        """The x with P(X ≤ x) = q, q a number or an array between 0 and 1: by bisection, to the last bit.

        Parameters
        ----------
        q : float or array
            Probabilities, from 0 to 1.

        Returns
        -------
        float or ndarray
            One x per q.

        Raises
        ------
        ValueError
            A q lies outside of 0 to 1.

        See Also
        --------
        cdf : The inverse.
        """
        from scipy.special import ndtri

        shares = _real(q, "q")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise EvidenceError(f"a quantile is asked for a share between 0 and 1, found {q!r}")
        inside = self.weights > 0
        spread = np.sqrt(self.variances[inside])
        with np.errstate(invalid="ignore"):
            ends = self.means[inside] + np.where(spread > 0, ndtri(shares)[..., None] * spread, 0.0)
        low, high = np.array(ends.min(axis=-1)), np.array(ends.max(axis=-1))
        for _ in range(HALVINGS):
            middle = low / 2 + high / 2
            open_ = (middle > low) & (middle < high)
            if not open_.any():
                break
            below = self.cdf(np.where(open_, middle, low)) < shares
            low, high = np.where(open_ & below, middle, low), np.where(open_ & ~below, middle, high)
        return _plain(np.where(self.cdf(low) >= shares, low, high))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The ends between which x lies with this probability, as much below as above.

        Parameters
        ----------
        level : float, default 0.95
            The probability that lies between the ends.

        Returns
        -------
        tuple of float
            The lower and the upper end.

        See Also
        --------
        quantile : One end.
        """
        if not 0 < level < 1:
            raise EvidenceError(f"the level of an interval must lie between 0 and 1, found {level!r}")
        low, high = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def _standardised(self, x: ArrayLike) -> tuple[Array, Any]:
        """(x − mean)/std per component that has weight, on a new last axis, and which these are."""
        inside = self.weights > 0
        spread = np.sqrt(self.variances[inside])
        away = _real(x, "x")[..., None] - self.means[inside]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at = away / spread
        return np.where(away == 0, 0.0, at), inside

    def to_dict(self) -> dict[str, float]:
        """The mean, the variance and the standard deviation, by name."""
        return {"mean": self.mean, "variance": self.variance, "std": self.std}

    def to_frame(self) -> pd.DataFrame:
        """One row per component: a column per discrete variable, then "weight", "mean" and "variance"."""
        import pandas as pd

        settings = list(product(*(v.states for v in self.given)))
        columns: dict[str, Any] = {v.name: [s[i] for s in settings] for i, v in enumerate(self.given)}
        return pd.DataFrame(
            columns | {"weight": self.weights, "mean": self.means, "variance": self.variances}
        )

    def plot(self) -> Drawing:
        """The density drawn as a card, with mean and standard deviation."""
        from bbn.view.beliefs import draw_posterior

        return draw_posterior(self)

    def __repr__(self) -> str:
        n = len(self.weights)
        return (
            f"<MixturePosterior p({self.variable.name}): mean {self.mean:.6g}, std {self.std:.6g}, "
            f"{n} component{'s' * (n != 1)}>"
        )

    def _table(self) -> Table:
        rows: list[list[Cell]] = [
            [
                *map(str, c.setting.values()),
                f"{c.weight:.6g}",
                f"{c.mean:.6g}",
                f"{c.variance:.6g}",
                Bar(c.weight),
            ]
            for c in self.components
        ]
        head = [*(v.name for v in self.given), "weight", "mean", "variance", " " * BAR]
        return Table(head, rows, f"{self.variable.name}: mean {self.mean:.6g}, std {self.std:.6g}")


def _real(values: ArrayLike, what: str) -> Array:
    try:
        array = numbers(values)
    except (TypeError, ValueError):
        raise EvidenceError(f"{what} must be a number or an array of numbers, found {values!r}") from None
    if np.isnan(array).any():
        raise EvidenceError(f"{what} must be a number or an array of numbers, found NaN")
    return array


def _plain(values: Any) -> Any:
    """A Python float of a scalar, an array as it is."""
    return float(values) if np.ndim(values) == 0 else values
