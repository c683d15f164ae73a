"""Probabilities as people say them: percentages and fractions, rounded once.

`20 %` is 0.2 and `1/3` the double nearest to a third. A percentage may have a point; a fraction is of whole numbers.
Both are short: what is longer than a probability ever needs is not read as one.
"""

from __future__ import annotations

import re
from fractions import Fraction

_PERCENTAGE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})[ \t]?%")
_FRACTION = re.compile(r"([0-9]{1,20})[ \t]?/[ \t]?([0-9]{1,20})")


def share(text: str) -> float | None:
    """The number that a percentage or a fraction means; None if the text is neither, or divides by zero.

    >>> share("20 %"), share("33.3%"), share("1/3"), share("1/0"), share("1e3 %")
    (0.2, 0.333, 0.3333333333333333, None, None)
    """
    percentage = _PERCENTAGE.fullmatch(text)
    if percentage is not None:
        return float(Fraction(percentage[1].rstrip(".")) / 100)
    fraction = _FRACTION.fullmatch(text)
    if fraction is None or not int(fraction[2]):
        return None
    return float(Fraction(int(fraction[1]), int(fraction[2])))
