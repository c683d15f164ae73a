"""The textbook's experiment with naive Bayes on text, as one command.

    python -m bbn.classifiers.newsgroups            20 Newsgroups
    python -m bbn.classifiers.newsgroups --small    the corpus that ships with the package

Mitchell (*Machine Learning*, 1997, section 6.10.1) trained on two thirds of 20 Newsgroups, left out the 100 commonest
words and all that occur fewer than 3 times, and classified 89 % of the other third rightly.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bbn.classifiers.text_naive_bayes import TextNaiveBayes
from bbn.datasets import Corpus, newsgroups, small_corpus


class Outcome(NamedTuple):
    """What came of the experiment."""

    accuracy: float
    n_train: int
    n_test: int
    n_classes: int
    n_words: int


def experiment(corpus: Corpus, min_count: int = 3, drop_top: int = 100, seed: int = 0) -> Outcome:
    """Train on a random two thirds of a corpus, test on the rest.

    >>> outcome = experiment(small_corpus(), min_count=1, drop_top=30)
    >>> outcome.n_train, outcome.n_test, outcome.accuracy > 0.5
    (53, 27, True)
    """
    order = np.random.default_rng(seed).permutation(len(corpus.documents)).tolist()
    cut = round(2 / 3 * len(order))
    train, test = order[:cut], order[cut:]
    model = TextNaiveBayes(min_count, drop_top)
    model.fit([corpus.documents[i] for i in train], [corpus.labels[i] for i in train])
    accuracy = model.score([corpus.documents[i] for i in test], [corpus.labels[i] for i in test])
    return Outcome(accuracy, len(train), len(test), len(model.classes_), len(model.vocabulary_))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiment and print what came of it."""
    parser = argparse.ArgumentParser(
        prog="python -m bbn.classifiers.newsgroups", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--small", action="store_true", help="use the corpus that ships with the package")
    parser.add_argument("--min-count", type=int, help="leave out words seen fewer times (3; with --small 1)")
    parser.add_argument(
        "--drop-top", type=int, help="leave out this many of the commonest words (100; with --small 30)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the split into training and test documents (0)"
    )
    options = parser.parse_args(arguments)
    min_count = options.min_count if options.min_count is not None else 1 if options.small else 3
    drop_top = options.drop_top if options.drop_top is not None else 30 if options.small else 100
    try:
        corpus = small_corpus() if options.small else newsgroups()
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    outcome = experiment(corpus, min_count, drop_top, options.seed)
    print(
        f"{outcome.n_train} documents to train, {outcome.n_test} to test, {outcome.n_classes} classes, "
        f"{outcome.n_words} words: {outcome.accuracy:.1%} right (chance: {1 / outcome.n_classes:.1%})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
