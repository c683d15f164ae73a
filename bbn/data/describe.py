"""Describing data: what each column holds, what a learner will do with it, and why.

The rules are few and look at a column's name, its distinct values and its number of rows alone, so every kind of table
gives the same description: in memory, in files, in batches or on a cluster, in one pass.

==============  =====================================================  ==========================================
kind            what it holds                                          what is done
==============  =====================================================  ==========================================
category        words, or a categorical's values                       one state per value
truth value     true and false                                         two states
whole number    whole numbers: at most MOST_STATES different values    one state per value
whole number    whole numbers: more values than that                   modelled as a number
number          numbers with fractions                                 modelled as a number
date            dates, times, lengths of time                          left out
identifier      values that are almost all different                   left out
constant        one value, or none                                     left out
counts          how many cases each row stands for, by its name        the rows' weights
==============  =====================================================  ==========================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bbn.core.display import Table, Tabular, counted
from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.data.column_rules import (
    DROP,
    KINDS,
    NUMBER,
    OUT,
    STATES,
    WEIGHTS,
    Column,
    found_line,
    likely_counts,
    n_distinct,
    told_line,
)
from bbn.data.columns import Decimal, RawTable, checked_decimal, read_table
from bbn.data.profile import MOST_VALUES, Profile, Profiles, Profiling
from bbn.data.source import is_source
from bbn.data.text_values import NUMBERS, chosen_form, decimal_mark
from bbn.model.variable import Variable


@keywords_checked
def describe(
    data: Any,
    kinds: Mapping[str, str] | None = None,
    *,
    weights: str | None = None,
    missing: Any = (),
    decimal: str | Mapping[str, str] | None = None,
    n_jobs: int | None = None,
) -> Description:
    """Say what each column holds, what a learner will do with it, and why.

    Parameters
    ----------
    data
        Anything tabular: pandas, polars, pyarrow, a dict of columns, a list of dicts, (array, names), a path to CSV or
        Parquet, or what `bbn.open_data` takes: a folder, a pattern, a list of paths, a Dask DataFrame.
    kinds
        Column to its kind, where you know better: "category", "number", "whole number", "truth value", "date",
        "identifier", "constant", "counts", or "drop" to leave it out.
    weights
        The name of the column that holds the rows' weights.
    missing
        A value, or several, that mean missing in every column, besides None, NaN and an empty field. Words such as
        "NA" and "?" mean missing in columns of numbers anyway.
    decimal
        The decimal mark of text that is numbers, "," or ".", or column to mark. Needed only where the text does not
        tell: "1,234" is a thousand or 1.234.
    n_jobs
        How many threads look at the columns; None is OMP_NUM_THREADS if set, otherwise the number of cores.

    Returns
    -------
    Description
        Prints as a table; `description["age"]` is one line, `.to_frame()` a DataFrame.

    Raises
    ------
    DataError
        If `kinds` or `weights` names a column that is not there, or a column cannot be of the kind it is said to be.
    AmbiguousNumbersError
        If all numbers of a column may be read with a decimal comma or with commas for thousands, and `decimal` does not
        say which.
    ValueError
        If a kind is not one of those above.

    See Also
    --------
    bbn.learn : learns a network from the columns as they are described here.

    >>> print(describe({"id": [4, 1, 3, 2] * 5, "age": ["31", "NA", "58", "44"] * 5, "sex": ["f", "m", "m", "f"] * 5}))
    20 rows, 3 columns
    column  kind          missing  distinct  will be   why
    ------  ------------  -------  --------  --------  ------------------------------------------
    id      whole number                  4  4 states  4 different whole numbers
    age     whole number        5         3  3 states  3 different whole numbers; 'NA' is missing
    sex     category                      2  2 states  2 different words
    """
    from bbn.data.column_states import missing_tokens

    tokens = frozenset(missing_tokens(missing))
    profiles = _profiles(data, tokens, n_jobs, decimal)
    names = list(profiles.columns)
    checked_decimal(decimal, names)
    chosen = _checked_kinds(kinds, names)
    if weights is not None and weights not in names:
        raise DataError(f"weights={weights!r} is not a column of the data{nearest(weights, names)}")
    lines = {}
    for name, profile in profiles.columns.items():
        if name == weights:
            lines[name] = Column(
                name, "counts", profile.n_missing, n_distinct(profile), WEIGHTS, "weights= names it"
            )
        elif name in chosen:
            lines[name] = told_line(name, profile, chosen[name])
        else:
            lines[name] = found_line(name, profile)
    if weights is None and not any(line.use == WEIGHTS for line in lines.values()):
        lines |= likely_counts(lines, profiles, chosen)
    forms = {name: chosen_form(own.forms, own.decimal) for name, own in profiles.columns.items() if own.text}
    decimals = {name: decimal_mark(form) for name, form in forms.items() if form & NUMBERS}
    return Description(tuple(lines.values()), profiles.n_rows, decimals)


class Description(Tabular, Frozen):
    """What `describe` found: one line per column, in the order of the data.

    Attributes
    ----------
    columns
        The lines; `description["age"]` is the one of a column.
    n_rows
        The number of rows.
    decimals
        The decimal mark of each column of text that is numbers.
    """

    __slots__ = ("columns", "decimals", "n_rows")

    columns: tuple[Column, ...]
    n_rows: int
    decimals: dict[str, str]

    def __init__(
        self, columns: tuple[Column, ...], n_rows: int, decimals: Mapping[str, str] | None = None
    ) -> None:
        self._set(columns=columns, n_rows=n_rows, decimals=dict(decimals or {}))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The columns whose values are states, as variables."""
        return tuple(Variable(c.name, c.states) for c in self.columns if c.use == STATES and c.states)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the columns that are modelled as numbers."""
        return tuple(c.name for c in self.columns if c.use == NUMBER)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The names of the columns that are left out."""
        return tuple(c.name for c in self.columns if c.use == OUT)

    @property
    def weights(self) -> str | None:
        """The name of the column that holds the rows' weights, if there is one."""
        return next((c.name for c in self.columns if c.use == WEIGHTS), None)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the columns that are used and miss values."""
        return tuple(c.name for c in self.columns if c.missing and c.use in (STATES, NUMBER))

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"no column {name!r}{nearest(name, [c.name for c in self.columns])}")

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def to_frame(self) -> Any:
        """The lines as a pandas DataFrame, one row per column of the data."""
        import pandas as pd

        lines = [(c.kind, c.missing, c.distinct, c.will, c.why) for c in self.columns]
        return pd.DataFrame(
            lines,
            index=pd.Index([c.name for c in self.columns], name="column"),
            columns=["kind", "missing", "distinct", "use", "why"],
        )

    def __repr__(self) -> str:
        return f"<Description: {counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}>"

    def _table(self) -> Table:
        rows = [
            [
                c.name,
                c.kind,
                str(c.missing) if c.missing else "",
                f">{MOST_VALUES}" if c.distinct is None else str(c.distinct),
                c.will,
                c.why,
            ]
            for c in self.columns
        ]
        head = ["column", "kind", "missing", "distinct", "will be", "why"]
        return Table(
            head,
            rows,
            f"{self.n_rows:,} row{'s' * (self.n_rows != 1)}, {len(rows)} column{'s' * (len(rows) != 1)}",
        )


def _profiles(
    data: Any, tokens: frozenset[tuple[type, Any]], n_jobs: int | None, decimal: Decimal
) -> Profiles:
    """The profiles of all columns, in one pass over whatever the data are."""
    from bbn.data.streams.readers import is_many

    if is_source(data) and not hasattr(data, "fold"):
        raise DataError(
            f"a {type(data).__name__} holds coded columns, of which there is nothing left to decide; describe the "
            "table that it was made of"
        )
    if is_source(data) or is_many(data):
        from bbn.data.streams.open import open_data

        opened: Any = open_data(data)
        names = opened.facts.columns
        look = Profiling(names, tokens, decimal=opened.decimal if decimal is None else decimal)
        found: Profiles | None = opened.fold(look, names)
        return found or Profiles(0, {name: Profile(values={}) for name in names})
    table = data if isinstance(data, RawTable) else read_table(data)
    return Profiling(table.names, tokens, n_jobs, decimal)(table)


def _checked_kinds(kinds: Mapping[str, str] | None, names: list[str]) -> dict[str, str]:
    if kinds is not None and not isinstance(kinds, Mapping):
        raise ValueError(
            f'kinds is {kinds!r}; expected a mapping from column to kind, as in {{"zip": "category"}}'
        )
    for name, kind in (kinds or {}).items():
        if name not in names:
            raise DataError(f"kinds= names {name!r}, which is not a column{nearest(name, names)}")
        if kind not in (*KINDS, DROP):
            raise ValueError(f"kinds: {name!r} cannot be {kind!r}{nearest(kind, (*KINDS, DROP))}")
    return dict(kinds or {})
