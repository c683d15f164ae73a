"""Small data sets: the textbook's tables and a corpus that ship with the package, and 20 Newsgroups when asked for.

The tables are those of Mitchell, *Machine Learning*, 1997: PlayTennis (table 3.2) and EnjoySport (table 2.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def _table(text: str) -> pd.DataFrame:
    import pandas as pd

    head, *rows = (line.split() for line in text.strip().splitlines())
    return pd.DataFrame(rows, columns=head)
