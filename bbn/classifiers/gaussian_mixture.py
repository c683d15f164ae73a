"""GaussianMixture: k Gaussians over real-valued columns, found by EM; a scikit-learn estimator that is a network.

A hidden variable Z has k states, and each column is a Gaussian given Z (Mitchell, *Machine Learning*, 1997, section
6.12). With one fixed variance σ² and equal weights a step of EM is the book's estimation of k means,

    E[z_ij] ∝ exp(−(x_i − μ_j)² / 2σ²),    μ_j ← Σ_i E[z_ij] x_i / Σ_i E[z_ij]

which becomes k-means as σ² falls to 0.
"""

from __future__ import annotations

from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.classifiers.estimator import (
    BaseEstimator,
    DensityMixin,
    attribute_names,
    check_frame,
    check_is_fitted,
    checked_weights,
    validate_data,
)
from bbn.classifiers.mixture_em import Mixture
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import REASONS, within
from bbn.learning.gaussian.estimates import GaussianEstimate, GaussianFamily, GaussianParameters, warn_of
from bbn.learning.incomplete.em import INSTEAD
from bbn.learning.incomplete.fit_result import FitResult
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

ROWS = 4096
"""Rows that are looked at together."""


class GaussianMixture(DensityMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A mixture of k Gaussians, each with independent columns.

    Parameters
    ----------
    k
        The number of components.
    tied_variance
        Whether a column has the same variance in every component.
    fixed_variance
        None, or the variance of every column in every component (a number, or one per column): it is not learned.
    equal_weights
        Whether every component has the weight 1/k, which is then not learned.
    means_init
        None, or means to start from, shape (k, columns). Otherwise starts are rows of the data that lie far from each
        other (k-means++).
    n_init
        How many starts to climb from; the best is kept.
    tol, max_iter
        A climb stops when a step gains less than `tol` per row in log-likelihood, or after `max_iter` steps.
    random_state
        An int, a numpy Generator or RandomState, or None, for the starts and for `sample`.
    time_limit
        The most seconds that `fit` takes, after which the best so far is kept, with reason "time_limit" in `result_`;
        TimeLimitError where not even the first pass over the rows has ended. None is BBN_TIME_LIMIT, or else any time.

    Attributes
    ----------
    network_
        The BayesianNetwork: the hidden Z, with states 0 to k − 1, and one Gaussian leaf per column.
    result_
        The FitResult of EM, with the log-likelihood of each step.
    weights_, means_, variances_
        Shapes (k,), (k, columns) and (k, columns).
    covariances_
        The variances, under the name that scikit-learn's mixture with diagonal covariances has for them.
    converged_, n_iter_, lower_bound_
        Whether the best climb ended by `tol`, its number of steps, and the log-likelihood per row that it reached.

    Notes
    -----
    Missing values (NaN) are allowed, in fitting and after: a number that is not there says nothing.

    >>> model = GaussianMixture(2, random_state=0).fit([[0.0], [0.1], [0.3], [5.0], [5.2], [5.5]])
    >>> sorted(model.means_[:, 0].round(3).tolist())
    [0.133, 5.233]
    """

    weights_: Array
    means_: Array
    variances_: Array

    @keywords_checked
    def __init__(
        self,
        k: int = 2,
        *,
        tied_variance: bool = False,
        fixed_variance: Any = None,
        equal_weights: bool = False,
        means_init: Any = None,
        n_init: int = 1,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        time_limit: float | None = None,
    ) -> None:
        self.k = k
        self.tied_variance = tied_variance
        self.fixed_variance = fixed_variance
        self.equal_weights = equal_weights
        self.means_init = means_init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.time_limit = time_limit

    @keywords_checked
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Find the components; `y` is ignored.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        GaussianMixture
            Itself.

        Raises
        ------
        DataError
            The table holds something else than numbers, or too few rows.

        See Also
        --------
        fit_predict : Fit and predict at once.
        """
        self._check()
        numbers = self._numbers(X, reset=True)
        if len(numbers) < self.k:
            raise ValueError(
                f"Found array with {len(numbers)} sample(s) while a minimum of {self.k} is required: one per component"
            )
        empty = np.flatnonzero(np.isnan(numbers).all(axis=0))
        if len(empty):
            raise ValueError(f"column {attribute_names(self)[empty[0]]!r} of X holds no number at all")
        weights = None if sample_weight is None else checked_weights(sample_weight, len(numbers))
        names = attribute_names(self)
        means, variances = self._given(numbers, len(names))
        mixture = Mixture(
            names,
            numbers,
            weights,
            bool(self.equal_weights),
            bool(self.tied_variance),
            None if self.fixed_variance is None else variances,
        )
        if means is not None:
            starts = [mixture.given(means, variances)]
        else:
            generator = _generator(self.random_state)
            starts = [mixture.drawn(self.k, generator) for _ in range(self.n_init)]
        with within(self.time_limit, INSTEAD):
            climbs = mixture.climbs(starts, self.tol, self.max_iter)
        best = mixture.best(climbs)
        (self.weights_, means, variances), scale = best.parameters, mixture.scale[:, None]
        self.means_ = np.ascontiguousarray((mixture.centre[:, None] + scale * means).T)
        self.variances_ = np.ascontiguousarray((variances * scale**2).T)
        if self.fixed_variance is not None:
            self.variances_[:] = self.fixed_variance
        self.converged_, self.n_iter_ = best.reason == "converged", len(best.log_likelihoods) - 1
        self.lower_bound_ = best.log_likelihoods[-1] / mixture.total
        self._climbs, self._best = climbs, best
        for made in ("network_", "result_"):
            self.__dict__.pop(made, None)
        self._warn(mixture.collapsed(best.parameters))
        return self

    @cached_property
    def network_(self) -> BayesianNetwork:
        """The mixture as a network, made when it is first asked for."""
        check_is_fitted(self)
        z, families = self._families()
        leaves = [
            family.gaussian(
                GaussianParameters(self.means_[:, f], np.empty((self.k, 0)), self.variances_[:, f])
            )
            for f, family in enumerate(families)
        ]
        return BayesianNetwork([CPT.trusted(z, (), self.weights_.copy()), *leaves])

    @cached_property
    def result_(self) -> FitResult:
        """How the climb went."""
        check_is_fitted(self)
        told, finals = self._best.log_likelihoods, [climb.log_likelihoods[-1] for climb in self._climbs]
        last = self._climbs[-1].reason
        reason = last if last in REASONS else self._best.reason
        return FitResult(self.network_, told, told, reason, finals)

    @property
    def covariances_(self) -> Array:
        """The variances, shape (k, columns)."""
        return self.variances_

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.intp]:
        """Fit, and give the most probable component of each row.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        ndarray
            One number per row, 0 to k − 1.
        """
        return self.fit(X, y, sample_weight).predict(X)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most probable component of each row, 0 to k − 1.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            One number per row.
        """
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """P(component | row), shape (rows, k).

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            One row per row, summing to 1.
        """
        return self._look(X)[1]

    def score_samples(self, X: Any) -> Array:
        """ln p(row) of each row, a density; missing numbers are integrated out.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            One number per row.
        """
        return self._look(X)[0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ln p(row).

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : ignored
            For scikit-learn's pipelines.

        Returns
        -------
        float
            The higher, the better.
        """
        return float(self.score_samples(X).mean())

    @keywords_checked
    def sample(self, n_samples: int = 1) -> tuple[Array, NDArray[np.intp]]:
        """Rows drawn from the mixture, and the component of each.

        Parameters
        ----------
        n_samples : int, default 1
            How many rows.

        Returns
        -------
        tuple of ndarray
            The rows, and the number of each one's component.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; expected at least 1")
        generator = _generator(self.random_state)
        labels = generator.choice(self.k, size=n_samples, p=self.weights_)
        return generator.normal(self.means_[labels], np.sqrt(self.variances_[labels])), labels

    def bic(self, X: Any) -> float:
        """−2 ln p(X) + parameters · ln(rows); lower is better.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        aic : Another one.
        """
        logs = self.score_samples(X)
        return float(-2.0 * logs.sum() + self._n_parameters() * np.log(len(logs)))

    def aic(self, X: Any) -> float:
        """−2 ln p(X) + 2 · parameters; lower is better.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        bic : Another one.
        """
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._n_parameters())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    # Within

    def _check(self) -> None:
        for name in ("k", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is {value!r}; expected a whole number, at least 1")
        if not isinstance(self.tol, Real) or not np.isfinite(self.tol) or self.tol < 0:
            raise ValueError(f"tol is {self.tol!r}; expected a number, at least 0")

    def _numbers(self, X: Any, reset: bool) -> Array:
        check_frame(X)
        checked: Array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return checked

    def _given(self, numbers: Array, columns: int) -> tuple[Array | None, Array]:
        """The means to start from, if they are given, and the columns' variances: those given, or their own."""
        means = None
        if self.means_init is not None:
            means = np.asarray(self.means_init, dtype=np.float64)
            if means.shape != (self.k, columns) or not np.isfinite(means).all():
                raise ValueError(
                    f"means_init has shape {means.shape}; expected ({self.k}, {columns}), finite numbers"
                )
        if self.fixed_variance is not None:
            given = np.asarray(self.fixed_variance, dtype=np.float64)
            legal = (np.isfinite(given) & (given > 0)).all() and not isinstance(self.fixed_variance, bool)
            if given.shape not in ((), (columns,)) or not legal:
                raise ValueError(
                    f"fixed_variance is {self.fixed_variance!r}; expected a number above 0, or one per column"
                )
            return means, np.broadcast_to(given, columns)
        with np.errstate(over="ignore"):
            variances = np.nanvar(numbers, axis=0)
        return means, np.where(np.isfinite(variances) & (variances > 0), variances, 1.0)

    def _families(self) -> tuple[Variable, list[GaussianFamily]]:
        """The hidden variable, and what each column is to it."""
        names = attribute_names(self)
        hidden = "Z"
        while hidden in names:
            hidden += "_"
        z, tied, fixed = Variable(hidden, list(range(self.k))), bool(self.tied_variance), self.fixed_variance
        given = [None if fixed is None else self.variances_[:, f] for f in range(len(names))]
        return z, [
            GaussianFamily(Continuous(name), (z,), tied, own) for name, own in zip(names, given, strict=True)
        ]

    def _warn(self, collapsed: NDArray[np.bool_]) -> None:
        """Warn of the variances (columns, k) that are held at their floor."""
        if collapsed.any():
            none = np.zeros(self.k, dtype=bool)
            found = [GaussianEstimate(GaussianParameters(none, none, none), none, low) for low in collapsed]
            warn_of(self._families()[1], found)

    def _look(self, X: Any) -> tuple[Array, Array]:
        """ln p of each row, and its posterior over the components."""
        check_is_fitted(self)
        numbers = self._numbers(X, reset=False)
        totals, shares = np.empty(len(numbers)), np.empty((len(numbers), self.k))
        means, variances = np.ascontiguousarray(self.means_.T), np.ascontiguousarray(self.variances_.T)
        with np.errstate(divide="ignore"):
            weights = np.log(self.weights_)
        for start in range(0, len(numbers), ROWS):
            rows = slice(start, start + ROWS)
            own = np.ascontiguousarray(numbers[rows].T)
            logs = np.repeat(weights[:, None], own.shape[1], axis=1)
            kernels.gaussians.add_log_densities(own, means, variances, logs)
            kernels.gaussians.normalise(logs, np.ones(own.shape[1]), totals[rows])
            shares[rows] = logs.T
        return totals, shares

    def _n_parameters(self) -> int:
        columns = self.means_.shape[1]
        weights = 0 if self.equal_weights else self.k - 1
        variances = 0 if self.fixed_variance is not None else columns * (1 if self.tied_variance else self.k)
        return int(weights + self.k * columns + variances)


def _generator(random_state: Any) -> np.random.Generator:
    """A numpy Generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
