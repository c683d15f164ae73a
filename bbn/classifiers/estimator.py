"""What every classifier here shares: scikit-learn's conventions on one side, coded columns on the other.

scikit-learn checks the table, its shape and its names; `encoding` turns its columns into codes; labels become codes
too, with −1 where a label is missing. scikit-learn is imported here and nowhere below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.classifiers.encoding import Classes, Codes, Encoder
from bbn.core.errors import DataError, ImpossibleEvidenceError, nearest
from bbn.core.frozen import Array
from bbn.data.column_levels import column_levels
from bbn.data.columns import NO_ROWS, refuse_levels
from bbn.learning.tables.priors import Family, Prior
from bbn.model.variable import State, Variable, plain

try:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import DensityMixin as DensityMixin
    from sklearn.utils.metaestimators import available_if as available_if
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, column_or_1d
    from sklearn.utils.validation import check_is_fitted as check_is_fitted
    from sklearn.utils.validation import validate_data as validate_data
except ImportError as error:
    raise ImportError(
        "the classifiers of bbn need scikit-learn 1.6 or newer: pip install 'bbn[sklearn]'"
    ) from error

UNLABELLED = -1


class Examples(NamedTuple):
    """Training examples as they come in, checked."""

    table: Any
    """The attributes: an array or a DataFrame."""
    labels: NDArray[np.int64]
    """The code of each example's class, −1 where it is missing."""
    weights: Array | None

    def take(self, rows: NDArray[Any]) -> Examples:
        """Some of the examples."""
        return Examples(
            take_rows(self.table, rows),
            self.labels[rows],
            None if self.weights is None else self.weights[rows],
        )


class NetworkClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that is a network: its class is one variable, its attributes are the others.

    A subclass has `fit`, which sets `classes_`, `encoder_`, `class_variable_` and `network_`, and
    `_log_joint(columns)`, which gives ln P(class, attributes) of coded rows.
    """

    classes_: NDArray[Any]
    class_variable_: Variable
    encoder_: Encoder
    network_: Any
    bins: int | None
    kinds: Mapping[str, str] | None

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
        check_is_fitted(self)
        return self._log_joint(self.encoder_.codes(self._table(X, reset=False)))

    def predict_log_proba(self, X: Any) -> Array:
        """ln P(class | attributes) of each row, shape (rows, classes), in the order of `classes_`.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            Shape (rows, classes).

        Raises
        ------
        ImpossibleEvidenceError
            A row is impossible under every class.
        """
        scores = self.predict_joint_log_proba(X)
        peak = _peak(scores)
        scores -= peak
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return scores

    def predict_proba(self, X: Any) -> Array:
        """P(class | attributes) of each row, shape (rows, classes), in the order of `classes_`.

        ImpossibleEvidenceError if a row is impossible under every class, which happens only without smoothing.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            Shape (rows, classes).

        Raises
        ------
        ImpossibleEvidenceError
            A row is impossible under every class.
        """
        scores = self.predict_joint_log_proba(X)
        scores -= _peak(scores)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.

        Returns
        -------
        ndarray
            One class per row; in a tie, the first.

        Raises
        ------
        ImpossibleEvidenceError
            A row is impossible under every class.
        """
        scores = self.predict_joint_log_proba(X)
        _peak(scores)
        two = scores.shape[1] == 2
        best = (scores[:, 1] > scores[:, 0]).astype(np.intp) if two else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _log_joint(self, columns: list[Codes]) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # Within

    def _table(self, X: Any, reset: bool) -> Any:
        """X checked by scikit-learn: a DataFrame as it is, or as an array if all are plain numbers; else an array."""
        in_rows = isinstance(X, list) and X and isinstance(X[0], Mapping)
        if type(X) is dict or in_rows:  # some sparse matrices are subclasses of dict
            X = self._framed(X, reset)
        if hasattr(X, "columns"):
            refuse_levels(X)
            validate_data(self, X, reset=reset, skip_check_array=True)
            dtypes = list(getattr(X, "dtypes", []))
            numbers = dtypes and all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in dtypes)
            return X.to_numpy() if numbers else X
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def _framed(self, X: Any, reset: bool) -> Any:
        """A dict of columns, or a list of dicts, as a DataFrame; columns left out in classifying are missing."""
        import pandas as pd

        frame = pd.DataFrame(X)
        if reset or not hasattr(self, "feature_names_in_"):
            return frame
        known = list(self.feature_names_in_)
        return frame.reindex(columns=[*known, *(name for name in frame.columns if name not in known)])

    def _names(self) -> list[str]:
        return attribute_names(self)

    def _learned_encoder(
        self, examples: Examples, names: Sequence[str] | None = None, whole: bool = True
    ) -> Encoder:
        """What is learned of the columns of examples."""
        for name in self.kinds or ():
            if name not in self._names():
                raise DataError(f"kinds= names {name!r}, which is not a column{nearest(name, self._names())}")
        return Encoder.learn(
            examples.table,
            self._names() if names is None else names,
            Classes(examples.labels, examples.weights),
            self.bins,
            self.kinds,
            whole,
        )

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, classes: Sequence[Any] | None = None, reset: bool = True
    ) -> Examples:
        """Check everything; set `classes_` and `class_variable_`; leave out examples of weight 0."""
        if y is None:
            raise ValueError(f"{type(self).__name__}: requires y to be passed, but the target y is None")
        table = self._table(X, reset)
        n_rows = table.shape[0]
        if n_rows == 0:
            raise DataError(NO_ROWS)
        known, labels = read_labels(y)
        if len(labels) != n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]}"
            )
        if reset:
            self.classes_ = known if classes is None else np.unique(classes)
            name = str(getattr(y, "name", None) or "class")
            while name in self._names():
                name += "_"
            self.class_variable_ = Variable(name, class_states(self.classes_))
        places = np.searchsorted(self.classes_, known)
        wrong = known[(places == len(self.classes_)) | (self.classes_.take(places, mode="clip") != known)]
        if len(wrong):
            raise ValueError(
                f"y has the label {plain(wrong[0])!r}, which is not among the classes {self.classes_.tolist()}"
            )
        if classes is not None or not reset:
            labels = np.append(places, UNLABELLED)[labels]
        weights = None
        if sample_weight is not None:
            weights = checked_weights(sample_weight, n_rows)
        examples = Examples(table, labels, weights)
        if weights is None or weights.all():
            return examples
        return examples.take(np.flatnonzero(weights))


class AttributePrior:
    """A prior for the attributes' tables; the class's own is never smoothed."""

    def __init__(self, prior: Prior, target: str) -> None:
        self.prior = prior
        self.target = target

    def pseudocounts(self, family: Family) -> Array:
        """Those of the prior, but none for the class."""
        if family[-1].name == self.target:
            return np.zeros(tuple(v.card for v in family))
        return self.prior.pseudocounts(family)

    def check_names(self, names: tuple[str, ...]) -> None:
        """As the prior does."""
        self.prior.check_names(names)


def check_frame(X: Any) -> None:
    """DataError for a DataFrame without rows, or whose columns have several levels of names."""
    if hasattr(X, "columns"):
        refuse_levels(X)
        if not len(X):
            raise DataError(NO_ROWS)


def attribute_names(estimator: Any) -> list[str]:
    """The attributes' names: the columns' own, or x0, x1, … as elsewhere in scikit-learn."""
    if hasattr(estimator, "feature_names_in_"):
        names = [str(name) for name in estimator.feature_names_in_]
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise ValueError(f"the column {twice!r} is there twice")
        return names
    return [f"x{j}" for j in range(estimator.n_features_in_)]


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """One weight per row, none negative, not all 0."""
    weights = _check_sample_weight(sample_weight, np.empty((n_rows, 1)), ensure_non_negative=True)
    if not weights.any():
        raise ValueError("every sample_weight is 0; at least one example must count")
    return np.asarray(weights, dtype=np.float64)


def read_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct labels in order, and each row's place among them, −1 where it is missing.

    >>> read_labels(["b", None, "a"])
    (array(['a', 'b'], dtype='<U1'), array([ 1, -1,  0]))
    """
    column = column_or_1d(y, warn=True)
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    levels = column_levels(column)
    if not levels.values:
        raise ValueError("y has no label at all; at least one example must have its class")
    if column.dtype.kind == "f":  # numbers as they came, though whole ones were read as integers
        values = np.array(levels.values, dtype=column.dtype)
    else:
        values = np.array(levels.values, dtype=None if column.dtype.kind == "O" else column.dtype)
    check_classification_targets(values)
    order = np.argsort(values, kind="stable")
    if np.array_equal(order, np.arange(len(order))):
        return values, np.asarray(levels.codes, dtype=np.int64)
    rank = np.empty(len(order) + 1, dtype=np.int64)  # its last entry is where −1 points
    rank[order] = np.arange(len(order))
    rank[-1] = UNLABELLED
    return values[order], rank[levels.codes]


def class_states(classes: NDArray[Any]) -> list[State]:
    """Labels as states: text, integers and booleans as they are, whole numbers as integers, the rest as text."""
    labels = [plain(label) for label in classes]
    if all(isinstance(label, float) and label.is_integer() for label in labels):
        return [int(label) for label in labels]
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], str | int | bool):
        return labels
    return [str(label) for label in labels]


def take_rows(table: Any, rows: NDArray[Any]) -> Any:
    """Some rows of an array or a DataFrame."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _peak(scores: Array) -> Array:
    """The largest score of each row; ImpossibleEvidenceError if it is −inf."""
    peak = scores[:, :1].copy()
    for k in range(1, scores.shape[1]):
        np.maximum(peak[:, 0], scores[:, k], out=peak[:, 0])
    dead = np.flatnonzero(peak[:, 0] == -np.inf)
    if len(dead):
        raise ImpossibleEvidenceError(
            f"row {dead[0]} is impossible under every class ({len(dead)} such rows); smoothing, m > 0, avoids this"
        )
    return peak
