"""What text means: a number, a truth value, a date, a missing value, or a word.

A column is decided as a whole, by what all of its distinct values can be: each value allows some forms, and the column
has those that every value allows. So "1,5" and "1,234" make a column of decimal commas, "1,234" and "1,234,567" one of
thousands, and "12" goes with either. "1,234" and "12,000" alone may be both: in a file whose fields are separated by
semicolons the comma is the decimal one, elsewhere nothing is guessed. Words that mean missing, such as "NA", do so in a
column of numbers, truth values or dates alone: in a column of words they may be states.
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

from bbn.core.errors import AmbiguousNumbersError
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
UNDECIDED = 1 << 6
"""Of a column, numbers in two forms that read them differently."""
SEMICOLONS = ";"
"""In place of a decimal mark: it is not known, but fields are separated by semicolons."""
IN_PART = "?"
"""At the end of a decimal mark that is not known: these are some of the rows, and others may tell."""

LONGEST_NUMBER = 300
"""Longer text is a word: no float has more digits before the point."""

_FORMS = (
    (PLAIN, re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)),
    (THOUSANDS, re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?")),
    (COMMA, re.compile(r"[+-]?(\d+(,\d*)?|,\d+)(e[+-]?\d+)?", re.IGNORECASE)),
    (EUROPEAN, re.compile(r"[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d*)?")),
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
_POINTS_FOR_THOUSANDS = re.compile(r"(\s*[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)\s*(\n|$))*")
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
        return PLAIN if "." in joined else PLAIN | COMMA
    if "." not in joined:
        return NUMBERS
    return PLAIN | THOUSANDS | (EUROPEAN if _POINTS_FOR_THOUSANDS.fullmatch(joined) else 0)


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
        return WORD if number_of(value) is None else NUMBERS
    dated = isinstance(value, date | time | timedelta | np.datetime64 | np.timedelta64)
    return DATE if dated or type(value).__name__ in _DATES else WORD


def chosen_form(forms: int, decimal: str = "") -> int:
    """The form of a column whose values all allow these: the most usual of them.

    Parameters
    ----------
    forms
        The forms, as bits.
    decimal
        "," or "." where the decimal mark is told, which decides between forms that read the same text differently;
        SEMICOLONS, or nothing, where it is not, and IN_PART after it where there are more rows.

    >>> chosen_form(NUMBERS) == PLAIN, chosen_form(COMMA | EUROPEAN) == COMMA, chosen_form(ANY) == WORD
    (True, True, True)
    >>> chosen_form(THOUSANDS | COMMA) == UNDECIDED, chosen_form(THOUSANDS | COMMA, ",") == COMMA
    (True, True)
    """
    if forms == ANY:
        return WORD
    point, comma = forms & (PLAIN | THOUSANDS), forms & (COMMA | EUROPEAN)
    plain_too, mark, in_part = bool(forms & PLAIN), decimal.rstrip(IN_PART), decimal.endswith(IN_PART)
    if (
        point and comma and not (plain_too and forms & COMMA)
    ):  # some value has a comma, or a point as for thousands
        if mark == SEMICOLONS and not plain_too and not in_part:
            mark = ","
        elif mark == "" and plain_too:
            mark = "."
        if mark not in (",", "."):
            return UNDECIDED
        forms &= ~(comma if mark == "." else point)
    elif in_part and (point or comma) and not plain_too:
        return UNDECIDED
    return forms & -forms


def column_form(name: str, values: Iterable[Any], forms: int, decimal: str = "") -> int:
    """The chosen form of a column of these values; AmbiguousNumbersError if it cannot be told."""
    form = chosen_form(forms, decimal)
    if form != UNDECIDED:
        return form
    texts = [value for value in values if isinstance(value, str)]
    shown = next((text for text in texts if "," in text or "." in text), "1,234")
    raise AmbiguousNumbersError(
        f"column {name!r} holds {shown!r}, which is {number_of(shown, EUROPEAN)} with a decimal comma, but "
        f"{number_of(shown, THOUSANDS)} with a decimal point, and no other value tells which; decimal=',' or "
        "decimal='.' says it (of bbn.learn, bbn.describe, and bbn.open_data, whose result every learner takes)"
    )


def number_form(name: str, values: Iterable[Any], decimal: str = "") -> int:
    """The form of the numbers in a column of numbers, whatever else it holds."""
    texts = [value for value in values if isinstance(value, str)]
    forms = forms_of(texts)
    if not forms & NUMBERS:
        forms = NUMBERS
        for own in map(form_of, texts):
            forms &= own if own & NUMBERS else NUMBERS
    return column_form(name, texts, forms & NUMBERS, decimal) or PLAIN


def decimal_mark(form: int) -> str:
    """The decimal mark of a form of numbers; nothing for other forms."""
    return "," if form & (COMMA | EUROPEAN) else "." if form & NUMBERS else ""


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
