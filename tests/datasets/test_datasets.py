"""The small data sets, and the loader of 20 Newsgroups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bbn.datasets import enjoy_sport, newsgroups, play_tennis, small_corpus


def test_the_tables_are_those_of_the_textbook():
    days = pd.DataFrame(play_tennis())
    assert days.shape == (14, 5)
    assert days["PlayTennis"].str.lower().value_counts().to_dict() == {"yes": 9, "no": 5}
    assert len(pd.DataFrame(enjoy_sport())) == 4


def test_every_text_of_the_corpus_has_a_label():
    texts, labels = small_corpus()
    assert len(texts) == len(labels) == 80
    assert len(set(labels)) == 4


def test_newsgroups_come_as_texts_and_names(monkeypatch):
    import sklearn.datasets
    from sklearn.utils import Bunch

    bunch = Bunch(data=["a text", "another"], target=np.array([1, 0]), target_names=["alt.a", "sci.b"])
    monkeypatch.setattr(sklearn.datasets, "fetch_20newsgroups", lambda **options: bunch)
    assert newsgroups() == (["a text", "another"], ["sci.b", "alt.a"])
