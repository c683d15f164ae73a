"""Any table as named columns, and any column as levels: its distinct values, and which one each row has.

Every later step looks at the few distinct values alone, so no Python code runs per row. pandas is imported only
for pandas data and for files.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DamagedFileError, DataError
from bbn.data.error_places import located
from bbn.data.kinds import ColumnDict, Kind, Matrix, Narwhals, Pandas, RowList

Ints = NDArray[np.integer[Any]]


class Levels(NamedTuple):
    """A column as its distinct values and one index into them per row, −1 where missing."""

    codes: Ints
    values: list[Any]
    declared: bool = False
    """Whether the values are a categorical's, in declared order, used or not."""


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

    def levels(self, name: str) -> Levels:
        """A column as levels."""
        return column_levels(self.column(name))


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


SEPARATORS = (",", ";", "\t", "|")
"""What may separate the columns of a text file."""
LONGEST_HEADER = 2**20
"""So many bytes of a file are looked at for its separator."""


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
                yield _from_pandas(frame)._replace(text=True)
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
    """What separates the columns of a text file: a tab by its suffix, else what its first line has most of."""
    if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
        return "\t"
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    with opened(path, "rb") as file:
        line = file.readline(LONGEST_HEADER).decode("utf-8", "replace")
    outside = "".join(line.split('"')[::2])  # what stands in quotes separates nothing
    return max(SEPARATORS, key=outside.count)  # of equals the first


def _from_pandas(frame: Any) -> RawTable:
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


def column_levels(column: Any) -> Levels:
    """The levels of one column: a list, a numpy array, or a Series of some library."""
    if isinstance(column, np.ndarray):
        return _numpy_levels(column)
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        return _pandas_levels(column)
    if library in ("polars", "pyarrow", "narwhals"):
        import narwhals as nw

        return _narwhals_levels(nw.from_native(column, series_only=True, pass_through=True))
    return _object_levels(np.fromiter(column, dtype=object, count=len(column)))


def _object_levels(array: NDArray[Any]) -> Levels:
    try:
        return Levels(*kernels.coding.factorize_objects(array))
    except TypeError:
        row = next((i for i, value in enumerate(array) if not isinstance(value, Hashable)), 0)
        raise DataError(f"row {row} of a column holds {array[row]!r}; expected one plain value") from None


def _pandas_levels(column: Any) -> Levels:
    """The levels of a Series, an Index, or an array of pandas' own such as a Categorical."""
    import pandas as pd

    series: Any = column if isinstance(column, pd.Series | pd.Index) else pd.Series(column, copy=False)
    array: Any = series.array
    if isinstance(series.dtype, pd.CategoricalDtype):
        return Levels(array.codes, array.categories.tolist(), declared=True)
    if isinstance(series.dtype, np.dtype):
        return _numpy_levels(series.to_numpy())
    if isinstance(series.dtype, pd.ArrowDtype) or getattr(series.dtype, "storage", None) == "pyarrow":
        return arrow_levels(array.__arrow_array__())
    codes, values = pd.factorize(array)
    return Levels(codes, values.tolist())


def arrow_levels(array: Any) -> Levels:
    """The levels of a pyarrow Array or ChunkedArray."""
    import pyarrow as pa

    kind = array.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    declared = pa.types.is_dictionary(kind)
    if not text and not declared:
        array = array.dictionary_encode()
    if isinstance(array, pa.ChunkedArray):
        if not text and array.num_chunks > 1:
            array = array.unify_dictionaries()
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if text:
        return _text_levels(array, np.int32 if pa.types.is_string(kind) else np.int64)
    indices = array.indices
    if indices.null_count:
        indices = indices.cast(pa.int32()).fill_null(-1)
    return Levels(indices.to_numpy(zero_copy_only=False), array.dictionary.to_pylist(), declared)


def _text_levels(array: Any, width: type[Any]) -> Levels:
    """The levels of a pyarrow array of text, from its buffers: validity, offsets, bytes."""
    if not len(array):
        return Levels(np.empty(0, dtype=np.int32), [])
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    codes, values = kernels.coding.factorize_text(ends, np.frombuffer(data or b"", dtype=np.uint8))
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return Levels(*_used(np.where(valid, codes, len(values)), [*values, None]))
    return Levels(codes, values)


def _narwhals_levels(series: Any) -> Levels:
    try:
        return arrow_levels(series.to_arrow())
    except ModuleNotFoundError:  # polars without pyarrow
        return _numpy_levels(series.to_numpy())


def _numpy_levels(array: NDArray[Any]) -> Levels:
    if array.ndim != 1:
        raise DataError(f"a column has shape {array.shape}; expected one value per row")
    if np.ma.isMaskedArray(array):
        levels = _numpy_levels(np.ma.getdata(array))
        return levels._replace(codes=np.where(np.ma.getmaskarray(array), -1, levels.codes))
    kind = array.dtype.kind
    if kind == "b":
        return Levels(array.view(np.uint8), [False, True])
    if kind in "iu":
        return _integer_levels(array)
    if kind == "f":
        return _float_levels(array)
    if kind in "mM":  # numpy turns nanoseconds into integers; as times they are refused
        array = array.astype(f"{kind}8[us]")
    return _object_levels(array.astype(object, copy=False))


def _integer_levels(array: NDArray[Any]) -> Levels:
    if not len(array):
        return Levels(np.empty(0, dtype=np.int64), [])
    low, high = int(array.min()), int(array.max())
    if high - low >= 1 << 16:
        values, codes = np.unique(array, return_inverse=True)
        return Levels(codes, values.tolist())
    offsets = array.astype(np.intp)
    offsets -= low
    return Levels(*_used(offsets, range(low, high + 1)))


def _used(codes: Ints, values: Sequence[Any]) -> tuple[Ints, list[Any]]:
    """The levels that occur at all, in order."""
    present = np.bincount(codes, minlength=len(values)) > 0
    if present.all():
        return codes, list(values)
    return (np.cumsum(present) - 1)[codes], [
        value for value, there in zip(values, present, strict=True) if there
    ]


def _float_levels(array: NDArray[Any]) -> Levels:
    """Integers that became floats, as they do where a value is missing, come back as integers."""
    missing = np.isnan(array)
    some = bool(missing.any())
    if missing.all():
        return Levels(np.full(len(array), -1), [])
    filled = np.where(missing, array[np.argmin(missing)], array) if some else array
    if np.abs(filled).max() < 2**53:
        whole = filled.astype(np.int64)
        if (whole == filled).all():
            levels = _integer_levels(whole)
            return levels._replace(codes=np.where(missing, -1, levels.codes)) if some else levels
    values, codes = np.unique(array, return_inverse=True)  # a NaN among the values means missing
    return Levels(codes, values.tolist())
