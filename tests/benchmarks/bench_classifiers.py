"""Classifiers against scikit-learn's naive Bayes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import CategoricalNB, MultinomialNB
from sklearn.pipeline import make_pipeline

from bbn import NaiveBayes, TextNaiveBayes
from tests.benchmarks.harness import Row, layouts

TITLE = "Classifiers"
NOTES = """
`NaiveBayes` against scikit-learn's `CategoricalNB` on 1,000,000 rows of 20 columns with 4 states and 2 classes, and
`TextNaiveBayes` against a pipeline of `CountVectorizer` and `MultinomialNB` on 4,000 documents of 150 words out of
30,000, in 20 classes. Both sides read the same numbers and texts, and give the same probabilities. bbn reads an
ordinary array, row after row; scikit-learn is faster on columns that lie together and on small integers, so it is
given arrays of each kind, made before the clock starts, and the fastest counts.
"""


def rows() -> Iterator[Row]:
    """Fit, predict and predict_proba of each."""
    yield from _categorical()
    yield from _text()


def _categorical() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    n, card = 1_000_000, 4
    y = rng.integers(0, 2, size=n)
    X = rng.integers(0, card, size=(n, 20))
    ours, theirs = NaiveBayes(m=card).fit(X, y), CategoricalNB(alpha=1).fit(X, y)

    def check() -> None:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)

    def nothing() -> None:
        """The probabilities were compared in the first row."""

    arrays = layouts(X) | {f"{name}, uint8": array for name, array in layouts(X.astype(np.uint8)).items()}
    yield Row(
        "NaiveBayes, fit 1,000,000 × 20",
        {
            "bbn": lambda: NaiveBayes(m=card).fit(X, y),
            "scikit-learn": {
                f"CategoricalNB, {name}": lambda array=array: CategoricalNB(alpha=1).fit(array, y)
                for name, array in arrays.items()
            },
        },
        check,
        target=1.0,
        seconds=15,
    )
    for method in ("predict", "predict_proba"):
        yield Row(
            f"NaiveBayes, {method} 1,000,000 × 20",
            {
                "bbn": lambda method=method: getattr(ours, method)(X),
                "scikit-learn": {
                    f"CategoricalNB, {name}": partial(getattr(theirs, method), array)
                    for name, array in arrays.items()
                },
            },
            nothing,
            target=1.0,
            seconds=15,
        )


def _text() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(30_000)])
    shares = 1 / np.arange(1, len(words) + 1)
    shares /= shares.sum()
    documents = [" ".join(words[rng.choice(len(words), size=150, p=shares)]) for _ in range(4000)]
    labels = rng.integers(0, 20, size=len(documents))

    def pipeline() -> object:
        return make_pipeline(CountVectorizer(), MultinomialNB(alpha=1)).fit(documents, labels)

    ours, theirs = TextNaiveBayes(min_count=1, drop_top=0).fit(documents, labels), pipeline()

    def check() -> None:
        np.testing.assert_allclose(
            ours.predict_log_proba(documents), theirs.predict_log_proba(documents), rtol=1e-8, atol=1e-8
        )

    yield Row(
        "TextNaiveBayes, fit 4,000 documents",
        {
            "bbn": lambda: TextNaiveBayes(min_count=1, drop_top=0).fit(documents, labels),
            "scikit-learn": {"CountVectorizer and MultinomialNB in a pipeline": pipeline},
        },
        check,
        target=1 / 1.2,
        seconds=15,
    )
    yield Row(
        "TextNaiveBayes, predict 4,000 documents",
        {
            "bbn": lambda: ours.predict(documents),
            "scikit-learn": {
                "CountVectorizer and MultinomialNB in a pipeline": lambda: theirs.predict(documents)
            },
        },
        check,
        target=1 / 1.2,
        seconds=15,
    )
