"""Small data sets: the textbook's tables and a corpus that ship with the package, and 20 Newsgroups when asked for.

The tables are those of Mitchell, *Machine Learning*, 1997: PlayTennis (table 3.2) and EnjoySport (table 2.1).
"""

from __future__ import annotations

import os
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

_PLAY_TENNIS = """
Outlook  Temperature Humidity Wind   PlayTennis
sunny    hot         high     weak   No
sunny    hot         high     strong No
overcast hot         high     weak   Yes
rain     mild        high     weak   Yes
rain     cool        normal   weak   Yes
rain     cool        normal   strong No
overcast cool        normal   strong Yes
sunny    mild        high     weak   No
sunny    cool        normal   weak   Yes
rain     mild        normal   weak   Yes
sunny    mild        normal   strong Yes
overcast mild        high     strong Yes
overcast hot         normal   weak   Yes
rain     mild        high     strong No
"""

_ENJOY_SPORT = """
Sky   AirTemp Humidity Wind   Water Forecast EnjoySport
sunny warm    normal   strong warm  same     Yes
sunny warm    high     strong warm  same     Yes
rainy cold    high     strong warm  change   No
sunny warm    high     strong cool  change   Yes
"""


def play_tennis() -> pd.DataFrame:
    """The 14 days of PlayTennis: Outlook, Temperature, Humidity, Wind, PlayTennis.

    >>> play_tennis()["PlayTennis"].value_counts().to_dict()
    {'Yes': 9, 'No': 5}
    """
    return _table(_PLAY_TENNIS)


def enjoy_sport() -> pd.DataFrame:
    """The four days of EnjoySport: Sky, AirTemp, Humidity, Wind, Water, Forecast, EnjoySport.

    >>> enjoy_sport().shape
    (4, 7)
    """
    return _table(_ENJOY_SPORT)


class Corpus(NamedTuple):
    """Documents, and the class of each."""

    documents: list[str]
    labels: list[str]


def small_corpus() -> Corpus:
    """Eighty short texts on astronomy, baking, cycling and gardening, twenty of each; shipped with the package.

    >>> corpus = small_corpus()
    >>> len(corpus.documents), sorted(set(corpus.labels))
    (80, ['astronomy', 'baking', 'cycling', 'gardening'])
    """
    lines = files("bbn.datasets").joinpath("corpus.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines if not line.startswith("#")]
    return Corpus([text for _, text in pairs], [label for label, _ in pairs])


def newsgroups(data_home: str | os.PathLike[str] | None = None, remove: tuple[str, ...] = ()) -> Corpus:
    """20 Newsgroups, all 18,846 articles, through scikit-learn: from its cache, else from the network.

    Parameters
    ----------
    data_home
        Where scikit-learn keeps its data sets; its own default unless given.
    remove
        Parts of each article to leave out, of "headers", "footers" and "quotes". The textbook kept all.

    Raises
    ------
    OSError
        If the articles are not in the cache and cannot be fetched.
    """
    try:
        from sklearn.datasets import fetch_20newsgroups, get_data_home
    except ImportError as error:
        raise ImportError("20 Newsgroups comes through scikit-learn: pip install 'bbn[sklearn]'") from error
    home = None if data_home is None else os.fspath(data_home)
    try:
        bunch = fetch_20newsgroups(data_home=home, subset="all", remove=remove, shuffle=False, n_retries=1)
    except OSError as error:
        raise OSError(
            f"20 Newsgroups is not in {get_data_home(home)} and could not be fetched ({error}). Run this once where "
            "there is a network, or copy 20news-bydate_py3.pkz there; bbn.datasets.small_corpus() needs neither"
        ) from error
    return Corpus(list(bunch.data), [bunch.target_names[k] for k in bunch.target])


def _table(text: str) -> pd.DataFrame:
    import pandas as pd

    head, *rows = (line.split() for line in text.strip().splitlines())
    return pd.DataFrame(rows, columns=head)
