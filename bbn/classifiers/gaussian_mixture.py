"""GaussianMixture: k Gaussians over real-valued columns, found by EM; a scikit-learn estimator that is a network.

A hidden variable Z has k states, and each column is a Gaussian given Z (Mitchell, *Machine Learning*, 1997, section
6.12). With one fixed variance σ² and equal weights a step of EM is the book's estimation of k means,

    E[z_ij] ∝ exp(−(x_i − μ_j)² / 2σ²),    μ_j ← Σ_i E[z_ij] x_i / Σ_i E[z_ij]

which becomes k-means as σ² falls to 0.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.classifiers.estimator import (
    BaseEstimator,
    DensityMixin,
    attribute_names,
    check_is_fitted,
    checked_weights,
    validate_data,
)
from bbn.core.frozen import Array
from bbn.data.source import CodedTable
from bbn.learning.incomplete.ascent import Problem, climb
from bbn.learning.incomplete.em import EM, gains_little
from bbn.learning.incomplete.fit_result import FitResult
from bbn.model.cpt import CPT
from bbn.model.gaussian import Gaussian
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

    network_: BayesianNetwork
    result_: FitResult
    weights_: Array
    means_: Array
    variances_: Array

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
        columns = {name: np.ascontiguousarray(numbers[:, j]) for j, name in enumerate(names)}
        source = CodedTable((), {}, len(numbers), weights, numbers=columns)
        start = self._start(numbers, names)
        hidden = start.names[0]
        problem = Problem(
            start, source, [hidden], None, None, [hidden] if self.equal_weights else [], [], None
        )
        generator = _generator(self.random_state)
        if self.means_init is not None:
            starts = [problem.start_tables()]
        else:
            starts = [problem.random_tables(generator) for _ in range(self.n_init)]
        self.result_ = climb(
            problem,
            EM(),
            gains_little(problem, self.tol),
            method="em",
            restarts=len(starts),
            max_iter=self.max_iter,
            seed=None,
            checkpoint=None,
            progress=False,
            starts=starts,
        )
        self.network_ = self.result_.network
        self.converged_, self.n_iter_ = self.result_.converged, self.result_.n_iter
        self.lower_bound_ = self.result_.log_likelihood / source.total
        self.weights_ = self.network_[hidden].table
        leaves: list[Any] = [self.network_[name] for name in names]
        self.means_ = np.column_stack([leaf.means for leaf in leaves])
        self.variances_ = np.column_stack([leaf.variances for leaf in leaves])
        assert problem.part is not None
        problem.part.warn(problem.part.read(dict(zip(names, leaves, strict=True))), stacklevel=2)
        return self

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
        checked: Array = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        return checked

    def _start(self, numbers: Array, names: list[str]) -> BayesianNetwork:
        """The network to start from: equal weights, the means given, and each column's own variance."""
        hidden = "Z"
        while hidden in names:
            hidden += "_"
        z = Variable(hidden, list(range(self.k)))
        means = np.zeros((self.k, len(names)))
        if self.means_init is not None:
            means = np.asarray(self.means_init, dtype=np.float64)
            if means.shape != (self.k, len(names)) or not np.isfinite(means).all():
                raise ValueError(
                    f"means_init has shape {means.shape}; expected ({self.k}, {len(names)}), finite numbers"
                )
        fixed = self.fixed_variance is not None
        if fixed:
            given = np.asarray(self.fixed_variance, dtype=np.float64)
            legal = (np.isfinite(given) & (given > 0)).all() and not isinstance(self.fixed_variance, bool)
            if given.shape not in ((), (len(names),)) or not legal:
                raise ValueError(
                    f"fixed_variance is {self.fixed_variance!r}; expected a number above 0, or one per column"
                )
            variances = np.broadcast_to(given, len(names))
        else:
            with np.errstate(over="ignore"):
                variances = np.nanvar(numbers, axis=0)
            variances = np.where(np.isfinite(variances) & (variances > 0), variances, 1.0)
        none = np.empty((self.k, 0))
        leaves = [
            Gaussian.trusted(
                Continuous(name),
                (z,),
                means[:, j].copy(),
                np.full(self.k, variances[j]),
                none,
                bool(self.tied_variance),
                fixed,
            )
            for j, name in enumerate(names)
        ]
        return BayesianNetwork([CPT(z, table=np.full(self.k, 1.0 / self.k)), *leaves])

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
