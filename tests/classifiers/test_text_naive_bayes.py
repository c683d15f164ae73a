"""Naive Bayes on text: the textbook's formulas by hand, scikit-learn's MultinomialNB, the one-command experiment."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from bbn.classifiers.newsgroups import experiment, main
from bbn.classifiers.text_naive_bayes import TextNaiveBayes
from bbn.core.errors import DataError
from bbn.datasets import newsgroups, small_corpus


def by_hand(documents, labels, query, min_count, drop_top):
    """LEARN_ and CLASSIFY_NAIVE_BAYES_TEXT with dicts: the score of each class."""
    split = [re.findall(r"\b\w\w+\b", text.lower()) for text in documents]
    totals = Counter(word for words in split for word in words)
    commonest = sorted(totals, key=lambda word: (-totals[word], word))[:drop_top]
    vocabulary = {word for word, n in totals.items() if n >= min_count} - set(commonest)
    scores = {}
    for label in sorted(set(labels)):
        text = [
            w
            for words, own in zip(split, labels, strict=True)
            if own == label
            for w in words
            if w in vocabulary
        ]
        counts, n = Counter(text), len(text)
        score = math.log(labels.count(label) / len(labels))
        for word in re.findall(r"\b\w\w+\b", query.lower()):
            if word in vocabulary:
                score += math.log((counts[word] + 1) / (n + len(vocabulary)))
        scores[label] = score
    return scores, vocabulary


@pytest.mark.parametrize(("min_count", "drop_top"), [(1, 0), (2, 10), (3, 100)])
def test_the_textbooks_algorithm_by_hand(min_count, drop_top):
    documents, labels = small_corpus()
    model = TextNaiveBayes(min_count, drop_top).fit(documents, labels)
    queries = ["The dough rose beside the telescope", "Nothing of the kind, zyzzyva", ""]
    got = model.predict_joint_log_proba(queries)
    for row, query in zip(got, queries, strict=True):
        scores, vocabulary = by_hand(documents, labels, query, min_count, drop_top)
        assert set(model.vocabulary_) == vocabulary
        np.testing.assert_allclose(row, list(scores.values()), rtol=1e-12)


def test_equals_multinomial_nb():
    documents, labels = small_corpus()
    ours = TextNaiveBayes(min_count=1, drop_top=0).fit(documents, labels)
    vectorizer = CountVectorizer()
    theirs = MultinomialNB(alpha=1).fit(vectorizer.fit_transform(documents), labels)
    new = [" ".join(pair) for pair in zip(documents[::7], documents[3::7], strict=False)]
    np.testing.assert_allclose(
        ours.predict_log_proba(new),
        theirs.predict_log_proba(vectorizer.transform(new)),
        rtol=1e-11,
        atol=1e-12,
    )
    assert ours.predict(new).tolist() == theirs.predict(vectorizer.transform(new)).tolist()
    np.testing.assert_allclose(ours.predict_proba(new).sum(axis=1), 1, rtol=1e-12)


def test_weights_are_repeated_documents():
    documents, labels = small_corpus()
    weights = np.random.default_rng(0).integers(0, 3, size=len(documents))
    repeated = [d for d, w in zip(documents, weights, strict=True) for _ in range(w)]
    again = [y for y, w in zip(labels, weights, strict=True) for _ in range(w)]
    a = TextNaiveBayes(2, 20).fit(documents, labels, sample_weight=weights)
    b = TextNaiveBayes(2, 20).fit(repeated, again)
    assert a.vocabulary_ == b.vocabulary_
    np.testing.assert_allclose(a.predict_proba(documents), b.predict_proba(documents), rtol=1e-10)


def test_its_network_is_the_same_model():
    documents, labels = small_corpus()
    model = TextNaiveBayes(1, 0).fit(documents, labels)
    for word in ("dough", "telescope", "soil"):
        posterior = model.network_.query("class", {"word": word})
        np.testing.assert_allclose(posterior.values, model.predict_proba([word])[0], rtol=1e-10)


def test_unseen_words_are_ignored():
    documents, labels = small_corpus()
    model = TextNaiveBayes(1, 0).fit(documents, labels)
    np.testing.assert_allclose(model.predict_proba(["zyzzyva qwerty"])[0], 0.25, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_proba(["dough zyzzyva"]), model.predict_proba(["dough"]))


def test_cross_validation_on_the_small_corpus():
    from sklearn.model_selection import cross_val_score

    documents, labels = small_corpus()
    assert cross_val_score(TextNaiveBayes(1, 30), documents, labels, cv=5).mean() > 0.6


def test_faults():
    with pytest.raises(DataError, match="no word is left of 2"):
        TextNaiveBayes().fit(["some words"], ["a"])
    with pytest.raises(ValueError, match="one text"):
        TextNaiveBayes().fit("text", ["a"])
    with pytest.raises(ValueError, match="document 1 is 3"):
        TextNaiveBayes().fit(["text", 3], ["a", "b"])
    with pytest.raises(ValueError, match="2 documents but 1 labels"):
        TextNaiveBayes().fit(["text", "more"], ["a"])
    with pytest.raises(DataError, match="labels are missing"):
        TextNaiveBayes().fit(["text", "more"], ["a", None])


def test_the_experiment_is_one_command(capsys):
    assert main(["--small", "--seed", "1"]) == 0
    shown = capsys.readouterr().out
    outcome = experiment(small_corpus(), 1, 30, seed=1)
    assert (outcome.n_train, outcome.n_test, outcome.n_classes) == (53, 27, 4)
    assert f"{outcome.accuracy:.1%} right" in shown
    assert outcome.accuracy > 0.5


def test_offline_newsgroups_say_so(monkeypatch, tmp_path, capsys):
    import sklearn.datasets

    def offline(**options):
        raise OSError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", offline)
    with pytest.raises(OSError, match=r"could not be fetched \(no network\).*small_corpus"):
        newsgroups(data_home=tmp_path)
    assert main([]) == 1
    assert "could not be fetched" in capsys.readouterr().err
