"""TextNaiveBayes: the textbook's naive Bayes classifier for text.

LEARN_NAIVE_BAYES_TEXT and CLASSIFY_NAIVE_BAYES_TEXT (Mitchell, *Machine Learning*, 1997, table 6.2): every position
of a document holds a word drawn from P(w | v), whatever the position, with P(w | v) = (n_w + 1) / (n + |Vocabulary|).
Tokenising and counting are scikit-learn's; counts stay sparse, so the cost is that of the words there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.classifiers.estimator import (
    UNLABELLED,
    BaseEstimator,
    ClassifierMixin,
    check_is_fitted,
    checked_weights,
    class_states,
    read_labels,
)
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable


class TextNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Naive Bayes over the words of raw documents.

    Parameters
    ----------
    min_count
        Words that occur fewer times in all training documents together are left out.
    drop_top
        So many of the commonest words are left out: "the", "of", and their like.

    Attributes
    ----------
    classes_
        The labels, sorted.
    vocabulary_
        Word to its column; columns are in alphabetical order.
    class_count_
        The weight of each class's documents.
    feature_count_
        n_w: the occurrences of each word in each class, shape (classes, words).
    network_
        The class, and the word at any one position given the class, as a BayesianNetwork.

    >>> model = TextNaiveBayes(min_count=1, drop_top=0)
    >>> documents = ["goal and match", "match won", "stir the flour", "flour and yeast"]
    >>> model.fit(documents, ["sport", "sport", "baking", "baking"]).predict(["more flour please"])
    array(['baking'], dtype='<U6')
    >>> round(model.network_.query("class", {"word": "match"})["sport"], 4)
    0.7636
    """

    classes_: NDArray[Any]
    vocabulary_: dict[str, int]
    class_count_: Array
    feature_count_: Array

    @keywords_checked
    def __init__(self, min_count: int = 3, drop_top: int = 100) -> None:
        self.min_count = min_count
        self.drop_top = drop_top

    @keywords_checked
    def fit(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> TextNaiveBayes:
        """LEARN_NAIVE_BAYES_TEXT: collect the vocabulary, then P(v) and P(w | v). X holds one text per document.

        Parameters
        ----------
        X : iterable of str
            One text per document.
        y : array
            The class of each document.
        sample_weight : array, optional
            The weight of each document.

        Returns
        -------
        TextNaiveBayes
            Itself.

        Raises
        ------
        DataError
            There are no documents, or not as many labels.
        """
        from sklearn.feature_extraction.text import CountVectorizer

        documents = _documents(X)
        self.classes_, labels = read_labels(y)
        if len(labels) != len(documents):
            raise ValueError(f"there are {len(documents)} documents but {len(labels)} labels")
        if (labels == UNLABELLED).any():
            raise DataError("some labels are missing; a document without a label teaches nothing here")
        weights = np.ones(len(documents))
        if sample_weight is not None:
            weights = checked_weights(sample_weight, len(documents))
        vectorizer = CountVectorizer(dtype=np.float64)
        words = vectorizer.fit_transform(documents)
        by_class = _one_row_per_class(labels, weights, len(self.classes_)) @ words
        kept = self._kept(np.asarray(by_class.sum(axis=0)).ravel())
        place = np.full(words.shape[1], -1)
        place[kept] = np.arange(len(kept))
        places = place.tolist()
        self.vocabulary_ = {word: k for word, i in vectorizer.vocabulary_.items() if (k := places[i]) >= 0}
        vectorizer.vocabulary_ = self.vocabulary_
        self._vectorizer = vectorizer
        self.class_count_ = np.asarray(
            np.bincount(labels, weights, minlength=len(self.classes_)), dtype=np.float64
        )
        self.feature_count_ = by_class[:, kept].toarray()
        self._set_logs()
        return self

    def predict_joint_log_proba(self, X: Iterable[str]) -> Array:
        """CLASSIFY_NAIVE_BAYES_TEXT's score of each class: ln P(v) + Σ ln P(w | v) over the known words.

        Parameters
        ----------
        X : iterable of str
            One text per document.

        Returns
        -------
        ndarray
            Shape (documents, classes).
        """
        check_is_fitted(self)
        words = self._vectorizer.transform(_documents(X))
        return np.asarray(words @ self._log_words.T + self._log_classes)

    def predict_log_proba(self, X: Iterable[str]) -> Array:
        """ln P(class | document), shape (documents, classes), in the order of `classes_`.

        Parameters
        ----------
        X : iterable of str
            One text per document.

        Returns
        -------
        ndarray
            Shape (documents, classes).
        """
        scores = self.predict_joint_log_proba(X)
        scores -= scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Iterable[str]) -> Array:
        """P(class | document), shape (documents, classes), in the order of `classes_`.

        Parameters
        ----------
        X : iterable of str
            One text per document.

        Returns
        -------
        ndarray
            Shape (documents, classes).
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Iterable[str]) -> NDArray[Any]:
        """The most probable class of each document; words that were never seen are ignored.

        Parameters
        ----------
        X : iterable of str
            One text per document.

        Returns
        -------
        ndarray
            One class per document.
        """
        best = self.predict_joint_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @property
    def network_(self) -> BayesianNetwork:
        """The class, and the word at any one position given the class, as a BayesianNetwork."""
        check_is_fitted(self)
        target = Variable("class", class_states(self.classes_))
        word = Variable("word", sorted(self.vocabulary_))
        table = np.exp(self._log_words)
        return BayesianNetwork(
            [
                CPT(target, table=self.class_count_ / self.class_count_.sum()),
                CPT(word, [target], table / table.sum(axis=1, keepdims=True)),
            ],
            name="text",
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def _kept(self, occurrences: Array) -> NDArray[np.intp]:
        """The columns of the vocabulary: neither too rare nor too common (in a tie, the first are dropped)."""
        commonest = np.argsort(-occurrences, kind="stable")[: self.drop_top]
        keep = occurrences >= self.min_count
        keep[commonest] = False
        if not keep.any():
            raise DataError(
                f"no word is left of {len(occurrences)}: min_count={self.min_count} and drop_top={self.drop_top} "
                "leave out all of them"
            )
        return np.flatnonzero(keep)

    def _set_logs(self) -> None:
        """P(w | v) = (n_w + 1) / (n + |Vocabulary|), n the word positions of class v; and P(v)."""
        totals = self.feature_count_.sum(axis=1, keepdims=True)
        self._log_words = np.log(self.feature_count_ + 1.0) - np.log(totals + self.feature_count_.shape[1])
        with np.errstate(divide="ignore"):
            self._log_classes = np.log(self.class_count_ / self.class_count_.sum())


def _one_row_per_class(labels: NDArray[np.int64], weights: Array, n_classes: int) -> Any:
    """The sparse matrix that adds up the documents of each class, shape (classes, documents)."""
    from scipy.sparse import csr_array

    documents = np.arange(len(labels))
    return csr_array((weights, (labels, documents)), shape=(n_classes, len(labels)))


def _documents(X: Iterable[str]) -> list[str]:
    """The documents as a list; ValueError where they are not texts."""
    if isinstance(X, str):
        raise ValueError("X is one text; expected a list of documents")
    documents = list(X)
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            raise ValueError(f"document {i} is {document!r}; expected a text")
    return documents
