"""The rules by which a column is read: its kind, what is done with it, and why, from its profile alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bbn.core.errors import DataError
from bbn.core.frozen import Frozen
from bbn.data.profile import MOST_VALUES, Profile, Profiles
from bbn.data.text_values import (
    COMMA,
    DATE,
    EUROPEAN,
    NUMBERS,
    THOUSANDS,
    TRUTH,
    UNDECIDED,
    chosen_form,
    column_form,
    is_missing_word,
    number_of,
    truth_of,
)
from bbn.model.variable import State

KINDS = (
    "category",
    "number",
    "whole number",
    "truth value",
    "date",
    "identifier",
    "constant",
    "counts",
)
"""What a column may be."""
DROP = "drop"
"""The word that leaves a column out, in place of a kind."""

MOST_STATES = 12
"""Whole numbers with more different values than this are modelled as numbers."""
ALMOST_ALL = 0.5
"""Words are identifiers where there are more of them than this share of the rows."""
FEW_STATES = 5
"""Whole numbers with more values than this are states only where there are two rows or more for each; more words than
this are identifiers where each occurs once."""

_ID_NAME = re.compile(
    r"(^|[\s_.-])(id|ids|uuid|guid|key|index|idx|rownames?|row|rowid|serial|code)$|^unnamed: \d+$|[a-z]I[dD]$",
    re.I,
)
_COUNTS_NAME = re.compile(r"^(freq|freqs|frequency|count|counts|n)$", re.IGNORECASE)

STATES, NUMBER, WEIGHTS, OUT = "states", "number", "weights", "left out"
"""What can be done with a column."""


class Column(Frozen):
    """One line of a description.

    Attributes
    ----------
    name
        The column's name.
    kind
        "category", "number", "whole number", "truth value", "date", "identifier", "constant" or "counts".
    missing
        The number of rows without a value.
    distinct
        The number of different values; None where there are more than 65,535.
    use
        What will be done: "states" (one state per value), "number" (cut into intervals, or a Gaussian), "weights", or
        "left out".
    why
        The reason, in a few words.
    states
        The states, in order, where there are any; None for other uses.
    """

    __slots__ = ("distinct", "kind", "missing", "name", "states", "use", "why")

    name: str
    kind: str
    missing: int
    distinct: int | None
    use: str
    why: str
    states: tuple[State, ...] | None

    def __init__(
        self,
        name: str,
        kind: str,
        missing: int,
        distinct: int | None,
        use: str,
        why: str,
        states: tuple[State, ...] | None = None,
    ) -> None:
        self._set(name=name, kind=kind, missing=missing, distinct=distinct, use=use, why=why, states=states)

    @property
    def will(self) -> str:
        """What will be done with the column, in words."""
        if self.use == STATES:
            n = len(self.states or ())
            return f"{n} state{'s' * (n != 1)}"
        return {NUMBER: "a number", WEIGHTS: "weights of the rows", OUT: "left out"}[self.use]

    def __repr__(self) -> str:
        return f"<Column {self.name!r}: {self.kind}, {self.will}: {self.why}>"


def found_line(name: str, profile: Profile) -> Column:
    """The line of a column by the rules."""
    if profile.declared and profile.values and len(profile.values) > 1:
        return _category(name, profile, "a categorical's values, in its order")
    if profile.n_distinct == 1 and chosen_form(profile.forms, profile.decimal) == UNDECIDED:
        return _constant(name, profile)
    form = column_form(name, (profile.values or {}).values(), profile.forms, profile.decimal)
    if form == TRUTH:
        return _truth(name, profile)
    if form == DATE:
        if profile.n_distinct == 1:
            return _constant(name, profile)
        return _line(name, "date", profile, OUT, "dates or times; their parts may be worth a column each")
    if form & NUMBERS:
        return _numeric(name, profile, form)
    return _words(name, profile)


def _numeric(name: str, profile: Profile, form: int) -> Column:
    values = _numbers(profile, form)
    n = MOST_VALUES + 1 if values is None else len(values)
    rows = profile.n_rows - profile.n_missing - profile.n_words - profile.n_infinite
    if n <= 1:
        return _constant(name, profile)
    whole = (
        profile.whole
        if form & ~(COMMA | EUROPEAN | THOUSANDS) or values is None
        else all(map(_is_int, values))
    )
    notes = _notes(profile, form)
    if not whole:
        return _line(name, "number", profile, NUMBER, f"numbers with fractions{notes}", values=n)
    all_different = n >= rows and rows > FEW_STATES
    counting = all_different and profile.low in (0, 1) and profile.high - profile.low + 1 == rows
    named = bool(_ID_NAME.search(name)) and n > ALMOST_ALL * rows
    if rows > 20 and n > MOST_STATES and (counting or named):
        why = "counts the rows" if counting else f"{n} different numbers in {rows} rows, and called {name!r}"
        return _line(name, "identifier", profile, OUT, why, values=n)
    if not are_states(n, rows):
        many = f"{n} different whole numbers" if values is not None else "whole numbers"
        return _line(name, "whole number", profile, NUMBER, f"{many}{notes}", values=n)
    states: tuple[State, ...] = tuple(sorted(values or ()))  # type: ignore[arg-type]
    return _line(name, "whole number", profile, STATES, f"{n} different whole numbers{notes}", states, n)


def are_states(n: int, rows: int) -> bool:
    """Whether whole numbers of n different values in so many rows are states, rather than numbers."""
    return n <= MOST_STATES and (n <= FEW_STATES or 2 * n <= rows)


def _numbers(profile: Profile, form: int) -> list[float | int] | None:
    """The distinct finite numbers of a column, None where there are too many to keep."""
    if profile.values is None:
        return None
    found = {number_of(value, form) for value in profile.values.values() if not is_missing_word(value)}
    return [x for x in found if x is not None and x not in (float("inf"), float("-inf"))]


def _is_int(value: object) -> bool:
    return isinstance(value, int)


def _notes(profile: Profile, form: int) -> str:
    """What else there is to say about a column of numbers."""
    notes = {
        COMMA: "with a decimal comma",
        EUROPEAN: "with a decimal comma",
        THOUSANDS: "with commas for thousands",
    }
    said = f" {notes[form]}" if form in notes else ""
    if profile.n_words:
        words = sorted({repr(v) for v in (profile.values or {}).values() if is_missing_word(v)})
        said += f"; {' and '.join(words[:3])} {'is' if len(words) == 1 else 'are'} missing" if words else ""
    if profile.n_infinite:
        said += "; infinite values are missing"
    return said


def _truth(name: str, profile: Profile) -> Column:
    found = {truth_of(v) for v in (profile.values or {}).values() if not is_missing_word(v)}
    if len(found) < 2:
        return _constant(name, profile)
    return _line(
        name, "truth value", profile, STATES, f"true or false{_notes(profile, TRUTH)}", (False, True), 2
    )


def _words(name: str, profile: Profile) -> Column:
    n = profile.n_distinct
    rows = profile.n_rows - profile.n_missing
    if n <= 1:
        return _constant(name, profile)
    if profile.values is None:
        return _line(name, "identifier", profile, OUT, f"more than {MOST_VALUES:,} different values")
    if n > max(20, ALMOST_ALL * rows) or (n == rows and n > FEW_STATES):
        return _line(name, "identifier", profile, OUT, f"{n} different values in {rows} rows")
    why = f"{n} different {'values' if profile.kinds != ('str',) else 'words'}"
    if profile.odd and profile.n_numbers > max(n / 2, MOST_STATES):
        why += f"; numbers but for {', '.join(map(repr, profile.odd))}, which missing= could name"
    elif len(profile.kinds) > 1:
        why += f", of types {', '.join(profile.kinds)}, read as text"
    return _category(name, profile, why)


def _category(name: str, profile: Profile, why: str) -> Column:
    """A column whose values are states: as they are where possible, otherwise as text."""
    values = list((profile.values or {}).values())
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
        values = whole if {type(v) for v in whole} == {int} else [str(value) for value in values]
    if not profile.declared:
        values = sorted(values)
    states = tuple(dict.fromkeys(values))
    return _line(name, "category", profile, STATES, why, states, len(states), words_missing=False)


def _constant(name: str, profile: Profile) -> Column:
    values = [v for v in (profile.values or {}).values() if not (profile.forms and is_missing_word(v))]
    why = f"always {_short(values[0])}" if values else "no value in any row"
    if values and profile.n_missing:
        why = f"{_short(values[0])} or missing"
    return _line(name, "constant", profile, OUT, why, values=len(values))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def _line(
    name: str,
    kind: str,
    profile: Profile,
    use: str,
    why: str,
    states: tuple[State, ...] | None = None,
    values: int | None = None,
    words_missing: bool = True,
) -> Column:
    gone = profile.n_missing + (profile.n_words if words_missing and profile.forms else 0)
    if use == NUMBER:
        gone += profile.n_infinite
    distinct = n_distinct(profile) if values is None else values
    return Column(
        name,
        kind,
        gone,
        None if distinct is not None and distinct > MOST_VALUES else distinct,
        use,
        why,
        states,
    )


def n_distinct(profile: Profile) -> int | None:
    """The number of different values, None where there are too many to keep."""
    return None if profile.values is None else len(profile.values)


def told_line(name: str, profile: Profile, kind: str) -> Column:
    """The line of a column whose kind was told."""
    why = "kinds= says so"
    form = chosen_form(profile.forms, profile.decimal)
    if kind in (DROP, "date", "identifier", "constant"):
        if kind == DROP:
            kind = "number" if form == UNDECIDED else found_line(name, profile).kind
        return _line(name, kind, profile, OUT, why)
    if kind == "counts":
        return _line(name, kind, profile, WEIGHTS, why)
    if not profile.n_distinct:
        raise DataError(f"kinds= calls {name!r} a {kind}, but it holds no value at all")
    if kind == "number" or (kind == "whole number" and profile.n_distinct > MOST_STATES):
        form = column_form(name, (profile.values or {}).values(), profile.forms, profile.decimal)
        if not form & NUMBERS:
            odd = profile.odd or tuple(v for v in (profile.values or {}).values())[:1]
            raise DataError(
                f"kinds= calls {name!r} a {kind}, but it holds {', '.join(map(repr, odd)) or 'words'}; "
                "missing= names what means missing"
            )
        values = _numbers(profile, form)
        return _line(name, kind, profile, NUMBER, why, values=None if values is None else len(values))
    if profile.values is None:
        raise DataError(
            f"kinds= calls {name!r} a {kind}, but it holds more than {MOST_VALUES:,} different values"
        )
    if kind == "category" or not form & (NUMBERS | TRUTH):
        if kind == "truth value":
            raise DataError(
                f"kinds= calls {name!r} a truth value, but it holds {_short(next(iter(profile.values.values())))}"
            )
        if form & NUMBERS and all(map(_is_int, _numbers(profile, form) or [0.5])):
            numbers = tuple(sorted(_numbers(profile, form) or ()))
            return _line(name, kind, profile, STATES, why, numbers, len(numbers))  # type: ignore[arg-type]
        if form == TRUTH:
            return _line(name, kind, profile, STATES, why, (False, True), 2)
        return _category(name, profile, why)
    found = found_line(name, profile)
    if found.use == OUT or found.states is None:
        numbers = tuple(sorted(_numbers(profile, form) or ()))
        return _line(name, kind, profile, STATES, why, numbers, len(numbers))  # type: ignore[arg-type]
    return _line(name, kind, profile, STATES, why, found.states, len(found.states))


def likely_counts(
    lines: Mapping[str, Column], profiles: Profiles, chosen: Mapping[str, str]
) -> dict[str, Column]:
    """The column that by its name says how many cases each row stands for, beside categories alone."""
    likely = [n for n in lines if _COUNTS_NAME.match(n) and lines[n].kind in ("whole number", "identifier")]
    if len(likely) != 1 or likely[0] in chosen:
        return {}
    name = likely[0]
    profile = profiles.columns[name]
    others = [line for line in lines.values() if line.name != name and line.use != OUT]
    if profile.low < 0 or lines[name].missing or not others:
        return {}
    if any(line.use == NUMBER for line in others):
        why = f"{lines[name].why}; by its name perhaps weights={name!r}"
        return {name: _line(name, lines[name].kind, profile, lines[name].use, why, lines[name].states)}
    why = f"a count by its name, beside categories: weights={name!r}"
    return {name: _line(name, "counts", profile, WEIGHTS, f"{why}; kinds= can say otherwise")}
