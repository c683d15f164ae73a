"""What text means: a number, a truth value, a date, a missing value, or a word.

A column is decided as a whole, by what all of its distinct values can be: each value allows some forms, and the column
has those that every value allows. So "1,5" and "1,234" make a column of decimal commas, "1,234" and "12,000" one of
thousands, and "12" goes with either. Words that mean missing, such as "NA", do so in a column of numbers, truth values
or dates alone: in a column of words they may be states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from bbn.model.variable import plain

MISSING_WORDS = frozenset(
    {"", "NA", "N/A", "#N/A", "<NA>", "NAN", "NULL", "NONE", "NIL", "NAT", "?", ".", "-", "--"}
)
"""What means missing among numbers, truth values and dates; compared without edge spaces, in capitals."""

PLAIN, THOUSANDS, COMMA, EUROPEAN, TRUTH, DATE = (1 << i for i in range(6))
"""The forms a value may have: 1234.5, 1,234.5, 1234,5, 1.234,5, true, 2024-05-31."""
NUMBERS = PLAIN | THOUSANDS | COMMA | EUROPEAN
ANY = NUMBERS | TRUTH | DATE
"""All forms: what a column without values allows."""
WORD = 0
"""No form at all: a value that can only be a word."""

LONGEST_NUMBER = 300
"""Longer text is a word: no float has more digits before the point."""

_FORMS = (
    (PLAIN, re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)),
    (THOUSANDS, re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)(\.\d*)?")),
    (COMMA, re.compile(r"[+-]?(\d+(,\d*)?|,\d+)(e[+-]?\d+)?", re.IGNORECASE)),
    (EUROPEAN, re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)?")),
    (TRUTH, re.compile(r"true|false", re.IGNORECASE)),
    (
        DATE,
        re.compile(
            r"\d{4}-\d{1,2}(-\d{1,2})?([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
            r"|\d{1,4}/\d{1,2}/\d{1,4}( \d{1,2}:\d{2}(:\d{2})?)?|\d{1,2}\.\d{1,2}\.\d{4}"
            r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?|-?\d+ days?,?( [+-]?\d+:\d{2}:\d{2}(\.\d+)?)?"
        ),
    ),
)
_ZERO_BEFORE_DIGIT = re.compile(r"^\s*[+-]?0\d+\s*$", re.MULTILINE)
"""A code such as a post code: whole, and with a 0 that a number would not have."""
_DATES = ("Timestamp", "Timedelta", "Period")


def forms_of(values: Iterable[Any]) -> int:
    """The forms that all of the values allow, as bits; words that mean missing allow every form.

    >>> chosen_form(forms_of(["1,5", "1,234", "NA"])) == COMMA, forms_of(["1", "x"]) == WORD
    (True, True)
    """
    listed = list(values)
    quick = _plain_forms(listed)
    if quick is not None:
        return quick
    forms = ANY
    for value in listed:
        if not is_missing_word(value):
            forms &= form_of(value)
            if not forms:
                break
    return forms


def _plain_forms(values: Sequence[Any]) -> int | None:
    """The forms of plain numbers written out, without a look at each; None where that does not tell."""
    if not values or not isinstance(values[0], str):
        return None
    try:
        joined = "\n".join(values)
        np.array(values, dtype=object).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if max(map(len, values)) > LONGEST_NUMBER:
        return None
    letters = joined.lower()
    if "_" in joined or "n" in letters.replace("\n", "") or _ZERO_BEFORE_DIGIT.search(joined):
        return None  # Python reads 1_000, nan and inf too
    if "e" in letters:
        return PLAIN
    return PLAIN | THOUSANDS if "." in joined else NUMBERS


def form_of(value: Any) -> int:
    """The forms that one value allows, as bits; a value that is not text has those of what it is.

    >>> form_of("12") == NUMBERS, form_of("1,5") == COMMA | EUROPEAN, form_of("007") == WORD, form_of(True) == TRUTH
    (True, True, True, True)
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > LONGEST_NUMBER or _ZERO_BEFORE_DIGIT.match(text):
            return WORD
        return sum(form for form, pattern in _FORMS if pattern.fullmatch(text))
    value = plain(value)
    if isinstance(value, bool):
        return TRUTH
    if isinstance(value, int | float | Decimal | Fraction):
        number = number_of(value)
        if number is None:
            return WORD
        return NUMBERS if isinstance(number, int) else PLAIN | THOUSANDS
    dated = isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64)
    return DATE if dated or type(value).__name__ in _DATES else WORD


def chosen_form(forms: int) -> int:
    """The form of a column whose values all allow these: the most usual of them.

    >>> chosen_form(NUMBERS) == PLAIN, chosen_form(COMMA | EUROPEAN) == COMMA, chosen_form(ANY) == WORD
    (True, True, True)
    """
    return WORD if forms == ANY else forms & -forms


def number_of(value: Any, form: int = PLAIN) -> float | int | None:
    """A value as a number, whole ones as int; None if it is not one in this form. Infinite where it says so.

    >>> number_of("1.50"), number_of("2.0"), number_of("1,234", THOUSANDS), number_of("1,5", COMMA), number_of("x")
    (1.5, 2, 1234, 1.5, None)
    """
    if isinstance(value, str):
        text = value.strip()
        if form in (COMMA, EUROPEAN):
            text = text.replace(".", "").replace(",", ".")
        elif form == THOUSANDS:
            text = text.replace(",", "")
        if "_" in text or "nan" in text.lower():
            return None  # Python reads 1_000 and nan; a file that writes them means something else
        value = text
    elif isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Decimal | Fraction | np.number
    ):
        return None
    try:
        if isinstance(value, int) or (isinstance(value, str) and value.lstrip("+-").isdecimal()):
            whole = int(value)
            return whole if math.isfinite(float(whole)) else None
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def truth_of(value: Any) -> bool | None:
    """A truth value, also from its word in any capitals; None if it is not one.

    >>> truth_of("TRUE"), truth_of(False), truth_of(1)
    (True, False, None)
    """
    value = plain(value)
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    return word == "true" if word in ("true", "false") else None


def is_missing_word(value: Any) -> bool:
    """Whether a value is text that means missing among numbers.

    >>> is_missing_word("n/a"), is_missing_word(" "), is_missing_word("no")
    (True, True, False)
    """
    return isinstance(value, str) and len(value) < 20 and value.strip().upper() in MISSING_WORDS
