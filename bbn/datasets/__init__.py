"""Small data sets: the textbook's tables and a corpus that ship with the package, and 20 Newsgroups when asked for.

The tables are those of Mitchell, *Machine Learning*, 1997: PlayTennis (table 3.2) and EnjoySport (table 2.1); and the
admissions to Berkeley of 1973, in which every department seems to contradict the whole.
"""

from __future__ import annotations

import os
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from bbn.core.extras import needed_by

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


_UCB_ADMISSIONS = """
Department Gender Admitted Count
A          male   yes      512
A          male   no       313
A          female yes      89
A          female no       19
B          male   yes      353
B          male   no       207
B          female yes      17
B          female no       8
C          male   yes      120
C          male   no       205
C          female yes      202
C          female no       391
D          male   yes      138
D          male   no       279
D          female yes      131
D          female no       244
E          male   yes      53
E          male   no       138
E          female yes      94
E          female no       299
F          male   yes      22
F          male   no       351
F          female yes      24
F          female no       317
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


def ucb_admissions() -> pd.DataFrame:
    """Applicants to the six largest departments of Berkeley in 1973, by gender and decision; `Count` is how many.

    Bickel, Hammel and O'Connell (1975), Sex bias in graduate admissions: data from Berkeley. Science 187, 398-404.

    >>> int(ucb_admissions()["Count"].sum())
    4526
    """
    table = _table(_UCB_ADMISSIONS)
    return table.assign(Count=table["Count"].astype(int))


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
    """20 Newsgroups, all 18,846 articles, through scikit-learn: from its cache, otherwise from the network.

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
    with needed_by("20 Newsgroups", "'bbn[sklearn]'"):
        from sklearn.datasets import fetch_20newsgroups, get_data_home
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
