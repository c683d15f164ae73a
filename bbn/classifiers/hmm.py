"""HMM: a hidden Markov model as a scikit-learn estimator that is a dynamic network.

A hidden state follows a Markov chain, and each column is emitted by the state alone (Rabiner 1989): categorical, or
Gaussian with a variance per column and state, or one per state ("spherical"). It is learned by EM (Baum and Welch's),
a step of which costs T k² for T rows and k states. `network_` is the `DynamicNetwork`, which answers everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.classifiers.estimator import (
    BaseEstimator,
    attribute_names,
    check_frame,
    check_is_fitted,
    validate_data,
)
from bbn.classifiers.spherical_em import SphericalEM, spread_evenly
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import within
from bbn.data import code
from bbn.inference.time import chain_beliefs, log_evidences
from bbn.inference.time.best_paths import best_paths
from bbn.inference.time.sequences import Sequences, read_sequences
from bbn.learning.incomplete.climbing import climb
from bbn.learning.incomplete.em import EM, INSTEAD
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.tables.priors import Dirichlet
from bbn.learning.time.baum_welch import SequenceProblem
from bbn.learning.time.sequence_data import SequenceData
from bbn.model.cpt import CPT
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Variable

EMISSIONS = ("categorical", "gaussian")
COVARIANCES = ("diag", "spherical")
ALGORITHMS = ("viterbi", "map")


class HMM(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A hidden Markov model.

    Parameters
    ----------
    n_components
        The number of hidden states.
    emission
        "categorical": each column holds one of a few values; "gaussian": each column holds numbers.
    covariance_type
        For Gaussians: "diag", a variance per column and state, or "spherical", one per state.
    alpha
        Pseudo-counts added to each entry of every table (a Dirichlet prior); 0 is maximum likelihood.
    n_init
        How many starts to climb from; the best is kept. Tables start at random, means at rows that lie far from each
        other (k-means++).
    tol, max_iter
        A climb stops when a step gains less than `tol` per row in log-likelihood, or after `max_iter` steps.
    random_state
        An int, a numpy Generator or RandomState, or None, for the starts.
    n_jobs
        Threads; the result does not depend on them.
    time_limit
        The most seconds that `fit` takes, after which the best so far is kept, with reason "time_limit" in `result_`;
        TimeLimitError where not even the first pass over the rows has ended. None is BBN_TIME_LIMIT, or else any time.

    Attributes
    ----------
    network_
        The DynamicNetwork: the hidden "State", with states 0 to n_components − 1, and one variable per column.
    result_
        The FitResult of EM, with the log-likelihood of each step.
    startprob_, transmat_
        P(first state), shape (k,), and P(next state | state), shape (k, k).
    emissionprob_
        Categorical: P(value | state), shape (k, values); a list of such where there are several columns.
    means_, variances_
        Gaussian: shapes (k, columns).
    categories_
        Categorical: the values of each column, a list of tuples.
    converged_, n_iter_
        Whether the best climb ended by `tol`, and its number of steps.

    Notes
    -----
    Missing values (NaN, or None) are welcome, in fitting and after: what is not there says nothing.

    See Also
    --------
    bbn.DynamicNetwork : more than one hidden variable, parents further back, static variables.

    Examples
    --------
    >>> X = [[0], [0], [0], [1], [1], [1], [0], [0], [1], [1], [1]]
    >>> model = HMM(2, random_state=0, alpha=0.1).fit(X, lengths=[6, 5])
    >>> model.predict(X, lengths=[6, 5]).shape, model.transmat_.shape
    ((11,), (2, 2))
    """

    network_: DynamicNetwork
    result_: FitResult

    @keywords_checked
    def __init__(
        self,
        n_components: int = 2,
        emission: str = "categorical",
        *,
        covariance_type: str = "diag",
        alpha: float = 0.0,
        n_init: int = 1,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.emission = emission
        self.covariance_type = covariance_type
        self.alpha = alpha
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit

    @keywords_checked
    def fit(self, X: Any, y: Any = None, lengths: Sequence[int] | None = None) -> HMM:
        """Find the states by EM.

        Parameters
        ----------
        X : table (rows, columns)
            One row a step, the sequences one after the other.
        y : array or None
            Ignored, for scikit-learn's pipelines; an array of whole numbers that add up to the rows is taken as
            `lengths`, as in ``fit(X, lengths)``.
        lengths : list of int, optional
            The rows of each sequence; None: X is one sequence.

        Returns
        -------
        HMM
            Itself.

        Raises
        ------
        DataError
            Lengths that do not add up, a column without values.
        """
        self._check()
        columns = self._columns(X, reset=True)
        lengths = self._lengths(y, lengths, len(next(iter(columns.values()))))
        generator = np.random.default_rng(_seed(self.random_state))
        dyn = self._blank(columns)
        data = SequenceData(dyn, columns, lengths=lengths)
        prior = Dirichlet(self.alpha) if self.alpha else None
        problem = SequenceProblem(dyn, data, prior=prior, n_jobs=self.n_jobs)
        spherical = self.emission == "gaussian" and self.covariance_type == "spherical"
        starts = [problem.random_tables(generator) for _ in range(self.n_init)]
        with within(self.time_limit, INSTEAD):
            self.result_ = climb(
                problem,
                SphericalEM() if spherical else EM(),
                lambda old, new: new.objective - old.objective <= self.tol * data.total,
                method="em",
                restarts=self.n_init,
                max_iter=self.max_iter,
                seed=None,
                checkpoint=None,
                progress=False,
                starts=[spread_evenly(problem, start) for start in starts] if spherical else starts,
            )
        self.network_ = self.result_.network  # type: ignore[assignment]
        self._read()
        return self

    def _check(self) -> None:
        if (
            isinstance(self.n_components, bool)
            or not isinstance(self.n_components, Integral)
            or self.n_components < 1
        ):
            raise ValueError(f"n_components is {self.n_components!r}; expected a whole number, at least 1")
        for what, given, known in (
            ("emission", self.emission, EMISSIONS),
            ("covariance_type", self.covariance_type, COVARIANCES),
        ):
            if given not in known:
                raise ValueError(f"{what} is {given!r}{nearest(given, known)}")
        if not isinstance(self.alpha, Real) or not self.alpha >= 0:
            raise ValueError(f"alpha is {self.alpha!r}; expected a number, at least 0")
        if not isinstance(self.n_init, Integral) or self.n_init < 1:
            raise ValueError(f"n_init is {self.n_init!r}; expected a whole number, at least 1")

    def _columns(self, X: Any, reset: bool = False) -> dict[str, Any]:
        """The columns of X by name, checked as scikit-learn does."""
        check_frame(X)
        numeric = self.emission == "gaussian"
        checked = np.asarray(
            validate_data(
                self, X, reset=reset, dtype=np.float64 if numeric else None, ensure_all_finite="allow-nan"
            )
        )
        listed = attribute_names(self)
        return {
            name if name != "State" else "x State": np.ascontiguousarray(checked[:, k])
            for k, name in enumerate(listed)
        }

    def _lengths(self, y: Any, lengths: Any, n: int) -> Any:
        """The lengths of the sequences, which may stand where scikit-learn has y."""
        if lengths is None and y is not None:
            given = np.asarray(y)
            if given.ndim == 1 and given.dtype.kind in "iu" and given.sum() == n:
                lengths = given
        return [n] if lengths is None else lengths

    def _blank(self, columns: dict[str, Any]) -> DynamicNetwork:
        """The structure, with tables that the starts replace."""
        state = Variable("State", list(range(int(self.n_components))))
        first, step = CPT.uniform(state), CPT.uniform(state, [Variable("State[-1]", state.states)])
        leaves: list[Any] = []
        if self.emission == "gaussian":
            k = int(self.n_components)
            leaves = [Gaussian(name, [state], np.zeros(k), np.ones(k)) for name in columns]
        else:
            coded = code(columns)
            leaves = [CPT.uniform(variable, [state]) for variable in coded.variables]
        return DynamicNetwork([first], [step, *leaves])

    def _read(self) -> None:
        """The parameters under the names that hmmlearn has for them."""
        net, names = self.network_, [n for n in self.network_.names if n != "State"]
        first: Any = net.conditional("State", 0)
        self.startprob_, self.transmat_ = first.table, net["State"].table
        self.converged_, self.n_iter_ = self.result_.converged, self.result_.n_iter
        self._names = names
        if self.emission == "gaussian":
            leaves: list[Any] = [net[name] for name in names]
            self.means_ = np.array([leaf.means for leaf in leaves]).T
            self.variances_ = np.array([leaf.variances for leaf in leaves]).T
        else:
            tables = [net[name].table for name in names]
            self.emissionprob_ = tables[0] if len(tables) == 1 else tables
            self.categories_ = [net.states(name) for name in names]

    def _sequences(self, X: Any, lengths: Any) -> Sequences:
        check_is_fitted(self)
        columns = self._columns(X)
        n = len(next(iter(columns.values())))
        return read_sequences(
            self.network_, columns, lengths=self._lengths(None, lengths, n), error=DataError
        )

    @keywords_checked
    def predict(self, X: Any, lengths: Sequence[int] | None = None) -> NDArray[np.int64]:
        """The most probable path: the state of each row, by Viterbi's algorithm.

        Parameters
        ----------
        X : table (rows, columns)
            As in `fit`.
        lengths : list of int, optional
            The rows of each sequence.

        Returns
        -------
        array (rows,)
        """
        return self.decode(X, lengths)[1]

    @keywords_checked
    def decode(
        self, X: Any, lengths: Sequence[int] | None = None, algorithm: str = "viterbi"
    ) -> tuple[float, NDArray[np.int64]]:
        """The states of all rows, and their log-probability.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        algorithm
            "viterbi", the most probable path, or "map", the most probable state of each row by itself.

        Returns
        -------
        log_probability : float
            ln P(path, X), summed over sequences; with "map" the sum of the probabilities of the states.
        states : array (rows,)
        """
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm is {algorithm!r}{nearest(algorithm, ALGORITHMS)}")
        sequences = self._sequences(X, lengths)
        if algorithm == "map":
            chances = chain_beliefs(self.network_, sequences, None, None, self.n_jobs)[0]["State"]
            return float(chances.max(axis=1).sum()), chances.argmax(axis=1)
        paths = best_paths(self.network_, sequences, None)
        states = np.array([state for path in paths for state in path.states["State"]], np.int64)
        return float(sum(path.log_probability for path in paths)), states

    @keywords_checked
    def predict_proba(self, X: Any, lengths: Sequence[int] | None = None) -> Array:
        """P(state of each row | its sequence), shape (rows, n_components).

        Parameters
        ----------
        X, lengths
            As in `predict`.
        """
        sequences = self._sequences(X, lengths)
        return chain_beliefs(self.network_, sequences, None, None, self.n_jobs)[0]["State"]

    @keywords_checked
    def score(self, X: Any, y: Any = None, lengths: Sequence[int] | None = None) -> float:
        """ln P(X), summed over sequences; `score(X, lengths)` works too.

        Parameters
        ----------
        X, y, lengths
            As in `fit`.
        """
        if lengths is None and y is not None:
            lengths = self._lengths(y, None, len(np.asarray(X)))
        sequences = self._sequences(X, lengths)
        return float(log_evidences(self.network_, sequences, None, self.n_jobs).sum())

    def score_samples(self, X: Any, lengths: Sequence[int] | None = None) -> tuple[float, Array]:
        """ln P(X), and P(state of each row | its sequence), as hmmlearn gives them.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        """
        sequences = self._sequences(X, lengths)
        arrays, logs = chain_beliefs(self.network_, sequences, None, None, self.n_jobs)
        return float(logs.sum()), arrays["State"]

    @keywords_checked
    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """One sequence drawn from the model.

        Parameters
        ----------
        n_samples
            Its length.
        random_state
            An int, a Generator or RandomState; None takes the estimator's own.

        Returns
        -------
        X : array (n_samples, columns)
        states : array (n_samples,)
        """
        check_is_fitted(self)
        seed = _seed(self.random_state if random_state is None else random_state)
        table = self.network_.sample(n_samples, seed=seed)
        return table[self._names].to_numpy(), table["State"].to_numpy(np.int64)

    def bic(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """−2 ln P(X) + parameters · ln rows: the lower the better.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        """
        rows = len(np.asarray(X))
        return -2 * self.score(X, lengths=lengths) + self._n_parameters() * float(np.log(rows))

    def aic(self, X: Any, lengths: Sequence[int] | None = None) -> float:
        """−2 ln P(X) + 2 · parameters: the lower the better.

        Parameters
        ----------
        X, lengths
            As in `predict`.
        """
        return -2 * self.score(X, lengths=lengths) + 2 * self._n_parameters()

    def _n_parameters(self) -> int:
        """Free parameters; spherical variances count once per state."""
        check_is_fitted(self)
        extra = 0
        if self.emission == "gaussian" and self.covariance_type == "spherical":
            extra = int(self.n_components) * (len(self._names) - 1)
        return self.network_.n_parameters - extra

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.emission == "categorical"
        return tags


def _seed(random_state: Any) -> Any:
    """A seed for numpy's Generators from what scikit-learn takes."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
