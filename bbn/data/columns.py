"""Any table as named columns: what each library, array, list or file calls a table is read as one kind of value.

pandas is imported only for pandas data and for files.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DamagedFileError, DataError, nearest
from bbn.data.column_levels import Levels, column_levels
from bbn.data.error_places import located
from bbn.data.kinds import ColumnDict, Kind, Matrix, Narwhals, Pandas, RowList
from bbn.data.text_values import SEMICOLONS

Decimal = str | Mapping[str, str] | None
"""The decimal mark of all columns of text, or of each; None where it is not told."""


class RawTable(NamedTuple):
    """A table before coding."""

    names: tuple[str, ...]
    n_rows: int
    column: Callable[[str], Any]
    """A column as it came: a list, a numpy array, or a Series of some library."""
    kind: Kind
    text: bool = False
    """Whether the values are text from a file, which matches a state by `str(state)`."""
    renamed: tuple[Any, ...] = ()
    """The names of columns that were not text, and are taken as theirs."""
    plain: frozenset[str] = frozenset()
    """Columns that are dictionaries of text, but declare no order of states."""
    decimal: str = ""
    """What is known of the decimal mark of text; see `text_values.chosen_form`."""
    decimals: Mapping[str, str] = {}
    """The decimal mark of those columns of which more is known."""

    def levels(self, name: str) -> Levels:
        """A column as levels."""
        levels = column_levels(self.column(name))
        declared = levels.declared and name not in self.plain
        return levels._replace(declared=declared, decimal=self.decimal_of(name))

    def decimal_of(self, name: str) -> str:
        """What is known of the decimal mark of a column."""
        return self.decimals.get(name, self.decimal)

    def told(self, decimal: Decimal) -> RawTable:
        """The table with what the user says of decimal marks."""
        if isinstance(decimal, Mapping):
            return self._replace(decimals={**self.decimals, **decimal})
        return self._replace(decimal=decimal) if decimal else self


def read_table(data: Any) -> RawTable:
    """Look at `data`, whatever kind of table it is; columns are read when asked for.

    >>> table = read_table({"A": ["x", "y", None, "x"]})
    >>> table.names, table.n_rows, table.levels("A").codes.tolist(), table.levels("A").values
    (('A',), 4, [0, 1, -1, 0], ['x', 'y'])
    """
    if isinstance(data, RawTable):
        return data
    if isinstance(data, str | os.PathLike):
        return _from_path(Path(data))
    library = type(data).__module__.partition(".")[0]
    if library == "pandas" and hasattr(data, "columns"):
        return _from_pandas(data)
    if library == "pyarrow" and type(data).__name__ == "RecordBatch":
        return _from_record_batch(data)
    if isinstance(data, np.ndarray):
        return _from_structured(data)
    if isinstance(data, Mapping):
        return _from_columns(data)
    if isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], np.ndarray) and data[0].ndim == 2:
        return _from_matrix(*data)
    if isinstance(data, Sequence):
        return _from_rows(data)
    return _from_narwhals(data)


NO_ROWS = "the data have no rows; expected one row per case, and one column per variable"
"""What is said of an empty table."""
SEPARATORS = (",", ";", "\t", "|")
"""What may separate the columns of a text file."""
LONGEST_HEADER = 2**20
"""The bytes at the start of a file that are searched for its separator."""


def table_suffix(path: Path) -> str:
    """The kind of table that a file's suffix names: "parquet", "csv" (text with separators) or, for others, nothing."""
    suffixes = {suffix.lower() for suffix in path.suffixes}
    if suffixes & {".parquet", ".pq"}:
        return "parquet"
    return "csv" if suffixes & {".csv", ".tsv", ".txt"} else ""


def table_kind(path: Path) -> str:
    """The kind of table that a file's suffix names; DataError if it names none."""
    kind = table_suffix(path)
    if not kind:
        raise DataError(f"{path}: the kind of table is read from the suffix; expected .csv, .tsv or .parquet")
    return kind


def _from_path(path: Path) -> RawTable:
    if table_kind(path) == "parquet":
        from bbn.data.streams.parquet import read_parquet

        return read_parquet(path)
    return next(csv_tables(path))


def csv_tables(
    path: Path, columns: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[RawTable]:
    """A CSV file as tables of text of `rows` rows each, at least one table; only an empty field is missing.

    The columns that are named, or all; only where all are read is every row checked to have as many fields.
    """
    import pandas as pd

    try:
        separator = _separator(path)
        header = pd.read_csv(
            path,
            sep=separator,
            header=None,
            nrows=1,
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
        )
        with located(str(path)):
            names = text_names(header.iloc[0].tolist())
        wanted = names if columns is None else [name for name in names if name in set(columns)]
        with pd.read_csv(
            path,
            sep=separator,
            header=0,
            names=range(len(names)),
            usecols=None if columns is None else [names.index(name) for name in wanted],
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            index_col=False,
            skip_blank_lines=len(names) > 1,
            iterator=True,
            chunksize=rows,
        ) as reader:
            for frame in reader if rows is not None else [reader.read()]:
                frame.columns = pd.Index(wanted)
                mark = SEMICOLONS if separator == SEMICOLONS else ""
                yield _from_pandas(frame)._replace(text=True, decimal=mark)
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{error}; the text must be in UTF-8, save it so", path=str(path)) from error
    except (pd.errors.ParserError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedFileError(_plain_fault(str(error).strip()), path=str(path)) from error
    except pd.errors.EmptyDataError:
        raise DataError(
            f"{path}: the file is empty, or its first line is; expected the columns' names"
        ) from None


def _plain_fault(text: str) -> str:
    """What pandas says about a file, in plain words where it is about the number of fields.

    >>> _plain_fault("Error tokenizing data. C error: Expected 2 fields in line 3, saw 3")
    'line 3 has 3 fields, the first line 2; a field with a comma in it needs double quotes'
    """
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", text)
    if found is None:
        return text
    fields = f"line {found[2]} has {found[3]} fields, the first line {found[1]}"
    return f"{fields}; a field with a comma in it needs double quotes"


def _separator(path: Path) -> str:
    """The separator of a text file: a tab by its suffix, otherwise the one that its first line has most of."""
    if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return "\t"
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as file:
        line = file.readline(LONGEST_HEADER).decode("utf-8", "replace")
    outside = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
    return max(SEPARATORS, key=outside.count)  # of equals the first


def _from_pandas(frame: Any) -> RawTable:
    refuse_levels(frame)
    columns = checked_names(frame.columns)
    odd = tuple(name for name in columns if not isinstance(name, str) or not name)
    if not odd:
        return RawTable(columns, len(frame), lambda name: frame[name], Pandas(frame.index))
    names = text_names(columns)
    return RawTable(
        names,
        len(frame),
        lambda name: frame.iloc[:, names.index(name)],
        Pandas(frame.index),
        renamed=odd,
    )


def refuse_levels(frame: Any) -> None:
    """DataError for a DataFrame of pandas whose columns have several levels of names."""
    n = getattr(frame.columns, "nlevels", 1)
    if n > 1:
        shown = f", such as {frame.columns[0]!r}" if len(frame.columns) else ""
        raise DataError(
            f"the columns of the DataFrame are a MultiIndex of {n} levels{shown}; expected one name per column: "
            "data.columns = ['_'.join(map(str, name)) for name in data.columns]"
        )


def _from_record_batch(batch: Any) -> RawTable:
    import pyarrow as pa

    return _from_narwhals(pa.Table.from_batches([batch]))


def _from_structured(array: NDArray[Any]) -> RawTable:
    if array.dtype.names is None:
        raise DataError(
            f"a numpy array of shape {array.shape} has no column names; pass (array, names), or a dict of columns"
        )
    return RawTable(array.dtype.names, len(array), lambda name: array[name], ColumnDict())


def _from_matrix(array: NDArray[Any], names: Sequence[str]) -> RawTable:
    names = checked_names(names)
    if array.shape[1] != len(names):
        raise DataError(f"the array has {array.shape[1]} columns but {len(names)} names were given")
    return RawTable(names, len(array), lambda name: array[:, names.index(name)], Matrix())


def _from_columns(columns: Mapping[str, Any]) -> RawTable:
    names = checked_names(columns)
    lengths = {}
    for name, column in columns.items():
        if isinstance(column, str) or not hasattr(column, "__len__"):
            raise DataError(
                f"column {name!r} is {column!r}; expected a list or an array with one value per row"
            )
        lengths[name] = len(column)
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns have different lengths: {lengths}")
    odd = tuple(name for name in names if not isinstance(name, str) or not name)
    if odd:
        columns = dict(zip(text_names(names), columns.values(), strict=True))
    return RawTable(
        tuple(columns), next(iter(lengths.values()), 0), lambda name: columns[name], ColumnDict(), renamed=odd
    )


def _from_rows(rows: Sequence[Any]) -> RawTable:
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {i} is {row!r}; expected a dict from column to value")
    names = checked_names(dict.fromkeys(name for row in rows for name in row))
    return RawTable(names, len(rows), lambda name: [row.get(name) for row in rows], RowList())


def _from_narwhals(data: Any) -> RawTable:
    import narwhals as nw

    try:
        frame: Any = nw.from_native(data)
    except TypeError:
        raise DataError(
            f"data is a {type(data).__name__}; expected pandas, polars, pyarrow, a dict of columns, a list of dicts, "
            "(array, names), or a path to a CSV or Parquet file"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    return RawTable(
        checked_names(frame.columns), len(frame), lambda name: frame[name], Narwhals(frame.implementation)
    )


def checked_decimal(decimal: Decimal, names: Iterable[str]) -> Decimal:
    """What the user says of decimal marks; ValueError if it is neither mark, DataError for a name that is not there."""
    marks = decimal.values() if isinstance(decimal, Mapping) else [decimal] if decimal is not None else []
    for mark in marks:
        if mark not in (",", "."):
            raise ValueError(
                f"decimal is {mark!r}; expected ',' or '.', or a mapping from column to one of them"
            )
    for name in decimal if isinstance(decimal, Mapping) else ():
        if name not in names:
            raise DataError(f"decimal= names {name!r}, which is not a column{nearest(name, names)}")
    return decimal


def text_names(names: Any) -> tuple[str, ...]:
    """The names of columns as text; one without a name gets the one that pandas gives to a table's row names."""
    listed = [str(name) if name != "" else f"Unnamed: {i}" for i, name in enumerate(names)]
    return checked_names(listed)


def checked_names(names: Any) -> tuple[str, ...]:
    """The names of columns; DataError if one is there twice."""
    listed = tuple(names)
    seen = set()
    for name in listed:
        if name in seen:
            raise DataError(f"the column {name!r} is there twice; rename one of them")
        seen.add(name)
    return listed
