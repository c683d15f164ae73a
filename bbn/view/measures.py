"""The sizes of cards and their texts, in points."""

from __future__ import annotations

ROW, TITLE, BAR, PERCENT, PAD = 15.0, 20.0, 56.0, 40.0, 7.0


LONGEST = 40
"""A longer name or state is cut; what a pointer rests on reads it in full."""


def clipped(text: str, longest: int = LONGEST) -> str:
    """The text, or the start of a long one.

    >>> clipped("short"), len(clipped("x" * 300))
    ('short', 40)
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"


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
