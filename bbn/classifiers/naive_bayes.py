"""NaiveBayes: the attributes are independent given the class.

P(class | x) ∝ P(class) ∏ P(x_j | class) (Mitchell, *Machine Learning*, 1997, equation 6.20), each P(x_j | class) the
m-estimate (n_c + m p) / (n + m) of equation 6.22. Fitting is one pass that counts, classifying one look-up per
attribute. Examples without a label take part through EM (Nigam, McCallum, Thrun and Mitchell 2000).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.classifiers.encoding import Codes, Encoder
from bbn.classifiers.estimator import (
    UNLABELLED,
    AttributePrior,
    Examples,
    NetworkClassifier,
    available_if,
    check_is_fitted,
)
from bbn.classifiers.measured import MeasuredColumns
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.data.coded_table import CodedTable
from bbn.learning.tables.fit import network_from_counts
from bbn.learning.tables.priors import MEstimate
from bbn.model.network import BayesianNetwork


class NaiveBayes(NetworkClassifier):
    """The naive Bayes classifier, a scikit-learn estimator that is a Bayesian network.

    Parameters
    ----------
    m
        The equivalent sample size of p in P(attribute | class) = (n_c + m p) / (n + m); 0 is maximum likelihood. The
        class's own probabilities are plain frequencies, whatever m is.
    p
        Column to its prior: a list over its states, or state to probability. 1/k for each of k states where not given.
    continuous
        Columns that are Gaussians given the class, by maximum likelihood, instead of being cut: their names (or
        positions), or True for all. None cuts them.
    bins
        How many intervals a column of numbers is cut into, at its quantiles; None cuts it towards the class.
    kinds
        Column to its kind, where you know better than `bbn.describe`; see `bbn.learn`.
    max_iter, tol
        When EM stops, if some labels are missing: after `max_iter` rounds, or when the gain per example is below `tol`.

    Attributes
    ----------
    network_
        The BayesianNetwork: the class, and each attribute given the class.
    classes_
        The labels, sorted.
    class_count_
        The weight of each class's examples.
    feature_count_
        Per column, the weight of each class's examples in each state, shape (classes, states).
    n_iter_
        The rounds of EM; 1 where every label was there.
    objectives_
        Of each round of EM, ln P(labels, attributes) plus the prior's share: it never falls.

    Notes
    -----
    Columns may be text, booleans, categoricals or numbers, side by side in a DataFrame, and are read as `bbn.describe`
    says; identifiers and dates are left out. Numbers are cut, or Gaussians where `continuous` says so. A missing value
    (None, NaN) and a value never seen in fitting are summed out. A missing label (None, NaN in y) is filled by EM.

    >>> from bbn.datasets import play_tennis
    >>> days = play_tennis()
    >>> model = NaiveBayes(m=0).fit(days.drop(columns="PlayTennis"), days["PlayTennis"])
    >>> today = {"Outlook": ["sunny"], "Temperature": ["cool"], "Humidity": ["high"], "Wind": ["strong"]}
    >>> import pandas as pd
    >>> model.predict(pd.DataFrame(today)), model.predict_proba(pd.DataFrame(today)).round(4)
    (array(['No'], dtype='<U3'), array([[0.7954, 0.2046]]))
    >>> round(model.network_.query("PlayTennis", {"Outlook": "sunny"})["No"], 9)
    0.6
    """

    class_count_: Array
    feature_count_: list[Array]
    n_iter_: int
    objectives_: Array
    _tables: Array
    _ptr: NDArray[np.int64]
    _measured: MeasuredColumns | None
    _tabled: BayesianNetwork
    """The class and the attributes that are states."""
    _network: BayesianNetwork | None

    @keywords_checked
    def __init__(
        self,
        m: float = 1.0,
        p: Mapping[str, Any] | None = None,
        *,
        continuous: Any = None,
        bins: int | None = None,
        kinds: Mapping[str, str] | None = None,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.m = m
        self.p = p
        self.continuous = continuous
        self.bins = bins
        self.kinds = kinds
        self.max_iter = max_iter
        self.tol = tol

    @keywords_checked
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayes:
        """Learn from examples; those whose label is missing count by their expected class.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : array
            The class of each row; missing ones are allowed.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        NaiveBayes
            Itself.

        Raises
        ------
        DataError
            The table and the labels do not fit each other.

        See Also
        --------
        partial_fit : Learn from one part after the other.
        """
        examples = self._examples(X, y, sample_weight)
        self._measured = None
        self.objectives_, self.n_iter_ = np.empty(0), 1
        if self.continuous is not None:
            return self._fit_measured(examples)
        self.encoder_ = self._learned_encoder(examples)
        columns = self.encoder_.codes(examples.table)
        unlabelled = np.flatnonzero(examples.labels == UNLABELLED)
        if not len(unlabelled):
            self._learn(*self._count(columns, examples.labels, examples.weights))
            return self
        labelled = np.flatnonzero(examples.labels != UNLABELLED)
        weights = np.ones(len(examples.labels)) if examples.weights is None else examples.weights
        counts = self._count([c[labelled] for c in columns], examples.labels[labelled], weights[labelled])
        self._learn(*counts)
        self._expect(counts, [c[unlabelled] for c in columns], weights[unlabelled])
        return self

    def _fit_measured(self, examples: Examples) -> NaiveBayes:
        """Learn where some columns are Gaussians."""
        if (examples.labels == UNLABELLED).any():
            raise DataError(
                "some labels are missing, which continuous= does not take; bbn.fit_em learns such networks"
            )
        self._measured = MeasuredColumns(self.continuous, self._names())
        table, numbers = self._measured.parted(examples.table)
        self.encoder_ = self._learned_encoder(examples._replace(table=table), self._measured.others)
        self._measured.learn(self.class_variable_, numbers, examples.labels, examples.weights)
        self._learn(*self._count(self.encoder_.codes(table), examples.labels, examples.weights))
        return self

    @property
    def network_(self) -> BayesianNetwork:
        """The network, with its Gaussians from the first time that it is asked for."""
        check_is_fitted(self)
        if self._network is None:
            measured = getattr(self, "_measured", None)
            gaussians = [] if measured is None else measured.gaussians()
            self._network = (
                self._tabled if not gaussians else BayesianNetwork([*self._tabled.conditionals, *gaussians])
            )
        return self._network

    def predict_joint_log_proba(self, X: Any) -> Array:
        """ln P(class, attributes) of each row, shape (rows, classes); missing values are summed out.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            Shape (rows, classes).
        """
        measured = getattr(self, "_measured", None)
        if measured is None:
            return super().predict_joint_log_proba(X)
        table, numbers = measured.parted(self._table(X, reset=False))
        scores = self._scores(self.encoder_.codes(table), len(numbers[0]))
        measured.add_scores(numbers, scores)
        return scores

    @available_if(lambda self: self.continuous is None)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> NaiveBayes:
        """Add examples to those seen so far; all of them together give what one `fit` would.

        The first call may name all the `classes`. New states join the old ones; only columns that are cut keep the
        cuts of the first call. Not there with `continuous`.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : array
            The class of each row.
        classes : sequence, optional
            All classes there are, at the first call.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        NaiveBayes
            Itself.

        Raises
        ------
        DataError
            The table has other columns than the first.

        See Also
        --------
        fit : Learn from all at once.
        """
        first = not hasattr(self, "class_count_")
        examples = self._examples(X, y, sample_weight, classes, reset=first)
        if (examples.labels == UNLABELLED).any():
            raise DataError("partial_fit: some labels are missing; EM needs all the examples at once, in fit")
        encoder = (
            self._learned_encoder(examples, whole=False) if first else self.encoder_.grown(examples.table)
        )
        class_count, feature_count = self._count(
            encoder.codes(examples.table), examples.labels, examples.weights, encoder
        )
        if not first:
            class_count = class_count + self.class_count_
            for j, (old, new) in enumerate(zip(self.encoder_.columns, encoder.columns, strict=True)):
                places = [new.variable.find(state) for state in old.variable.states]
                feature_count[j] = feature_count[j].astype(np.float64)
                if None not in places:  # None: it held nothing until now
                    feature_count[j][:, np.array(places, dtype=np.intp)] += self.feature_count_[j]
        self.encoder_, self.objectives_, self.n_iter_ = encoder, np.empty(0), 1
        self._learn(class_count, feature_count)
        return self

    def _count(
        self,
        columns: list[Codes],
        labels: NDArray[np.int64],
        weights: Array | None,
        encoder: Encoder | None = None,
    ) -> tuple[Array, list[Array]]:
        """The weight of each class, and of each class and state per column; missing values are not counted."""
        target = self.class_variable_
        variables = (encoder or self.encoder_).variables
        codes = dict(zip((v.name for v in variables), columns, strict=True))
        codes[target.name] = labels.astype(np.uint8 if target.card <= 255 else np.uint16)
        source = CodedTable((*variables, target), codes, len(labels), weights)
        class_count, *feature_count = source.counts(
            [(target.name,), *((target.name, v.name) for v in variables)]
        )
        return class_count, feature_count

    def _learn(self, class_count: Array, feature_count: list[Array]) -> None:
        """Counts to network, and to the logarithms that rows are classified by."""
        target, variables = self.class_variable_, self.encoder_.variables
        prior = MEstimate(self.m, self.p)
        prior.check_names(tuple(v.name for v in variables))
        self.class_count_ = np.asarray(class_count, dtype=np.float64)
        self.feature_count_ = [np.asarray(counts, dtype=np.float64) for counts in feature_count]
        counts = dict(zip((v.name for v in variables), self.feature_count_, strict=True))
        self._network = None
        self._tabled = network_from_counts(
            {target.name: (), **{v.name: (target,) for v in variables}},
            {target.name: target, **{v.name: v for v in variables}},
            {target.name: self.class_count_, **counts},
            AttributePrior(prior, target.name),
        )
        self._tables, self._ptr = _log_tables(self._tabled, target.name, [v.name for v in variables])

    def _log_joint(self, columns: list[Codes]) -> Array:
        return self._scores(columns, len(columns[0]))

    def _scores(self, columns: list[Codes], n_rows: int) -> Array:
        with np.errstate(divide="ignore"):
            start = np.log(self._tabled[self.class_variable_.name].table)
        scores = np.tile(start, (n_rows, 1))
        if columns:
            kernels.classify.add_scores(columns, self._ptr, self._tables, scores)
        return scores

    # Examples without a label

    def _expect(self, known: tuple[Array, list[Array]], columns: list[Codes], weights: Array) -> None:
        """EM: expect the class of each unlabelled example, count it as such, learn anew.

        E: P(class | x) of each unlabelled x. M: the m-estimate of the labelled counts plus the expected ones. The
        m-estimate is the mode under a Dirichlet prior with α − 1 = m p, so ln P(examples) + Σ m p ln P(x_j | class)
        never falls.
        """
        first, inverse = kernels.coding.merge_rows(columns)
        columns = [column[first] for column in columns]
        weights = np.asarray(np.bincount(inverse, weights, minlength=len(first)), dtype=np.float64)
        objectives = []
        for _ in range(self.max_iter):
            scores = self._log_joint(columns)
            peak = scores.max(axis=1, keepdims=True)
            shares = np.exp(scores - peak)
            sums = shares.sum(axis=1, keepdims=True)
            objectives.append(float(weights @ (peak + np.log(sums))[:, 0]) + self._known_objective(*known))
            shares *= weights[:, None] / sums
            if len(objectives) > 1 and objectives[-1] - objectives[-2] < self.tol * (
                weights.sum() + known[0].sum()
            ):
                break
            expected = [
                np.stack([np.bincount(c, share, minlength=v.card + 1)[: v.card] for share in shares.T])
                for c, v in zip(columns, self.encoder_.variables, strict=True)
            ]
            self._learn(
                known[0] + shares.sum(axis=0), [k + e for k, e in zip(known[1], expected, strict=True)]
            )
        self.objectives_, self.n_iter_ = np.array(objectives), len(objectives)

    def _known_objective(self, class_count: Array, feature_count: list[Array]) -> float:
        """Σ n ln θ of the labelled examples, and Σ m p ln θ of the prior."""
        net, target = self._tabled, self.class_variable_
        total = _weighted_log(class_count, net[target.name].table)
        prior = MEstimate(self.m, self.p)
        for counts, v in zip(feature_count, self.encoder_.variables, strict=True):
            total += _weighted_log(counts + prior.pseudocounts((target, v)), net[v.name].table)
        return total


def _log_tables(net: BayesianNetwork, target: str, names: Sequence[str]) -> tuple[Array, NDArray[np.int64]]:
    """ln P(attribute | class) of every column, one row per state and one more of zeros, for missing.

    Gives the rows, shape (Σ (card + 1), classes), and where each column's begin.
    """
    n_classes = net.variable(target).card
    rows = []
    for name in names:
        with np.errstate(divide="ignore"):
            rows.append(np.vstack([np.log(net[name].table.T), np.zeros(n_classes)]))
    ptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.ascontiguousarray(np.vstack([np.empty((0, n_classes)), *rows])), ptr


def _weighted_log(weights: Array, p: Array) -> float:
    """Σ w ln p, where 0 ln 0 is 0."""
    used = weights > 0
    with np.errstate(divide="ignore"):
        return float((weights[used] * np.log(p[used])).sum())
