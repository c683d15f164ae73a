"""The sizes of cards and their texts, in points."""

from __future__ import annotations

ROW, TITLE, BAR, PERCENT, PAD = 15.0, 20.0, 56.0, 40.0, 7.0


def text_width(text: str, bold: bool = False) -> float:
    """A generous estimate of a text's width in points, at the sizes used here."""
    wide = sum(map(_letter_width, text))
    return wide * (1.1 if bold else 1.0)


def _letter_width(letter: str) -> float:
    if letter in "iljtfI.,:;|'! ":
        return 3.6
    if letter in "mwMW@%":
        return 9.2
    return 11.5 if ord(letter) > 0x2E80 else 7.6 if letter.isupper() else 6.3
