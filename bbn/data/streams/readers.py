"""Where batches come from: Parquet files, CSV files, pyarrow datasets, and tables that a function or a list gives.

A reader knows the columns and gives parts, which can be read again and again; a part gives batches, each with the place
it is from. Parts of Parquet files are runs of row groups, which several threads read at once; the others come one after
the other. Only the columns that are asked for are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from bbn.core.errors import DataError
from bbn.data.columns import RawTable, csv_tables, read_table, table_kind, table_suffix


class Batch(NamedTuple):
    """Some rows, as a table of any kind, and where they are from."""

    data: Any
    where: str = ""
    first_row: int = 0


class Part(Protocol):
    """Some of the data, which can be read apart from the rest."""

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """These columns, in batches of at most `rows` rows."""

    def smaller(self) -> Sequence[Part]:
        """The parts that an error should be looked for in, one by one; none if there are no smaller ones."""


@runtime_checkable
class Reader(Protocol):
    """All the data."""

    where: str
    """The path or the pattern that was opened, for messages; empty for data that have none."""

    @property
    def parallel(self) -> bool:
        """Whether parts may be read at the same time."""

    @property
    def text(self) -> bool:
        """Whether the values are text."""

    def names(self) -> tuple[str, ...]:
        """The columns."""

    def parts(self, rows: int) -> Iterable[Part]:
        """The parts, in order; of a reader that is not parallel one part is in use at a time."""


class Stamp(NamedTuple):
    """What identifies a file as the one that was opened."""

    path: Path
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of a file as it is now."""
        status = path.stat()
        return cls(path, status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """DataError if the file has changed since."""
        try:
            same = Stamp.of(self.path) == self
        except FileNotFoundError:
            raise DataError(f"{self.path} is gone since the data were opened") from None
        if not same:
            raise DataError(f"{self.path} has changed since the data were opened; open them again")


class CsvFile:
    """A CSV file, read as text from its beginning to its end.

    The first time all columns are read, which checks that every row has as many fields; then those that are wanted.
    """

    def __init__(self, path: Path) -> None:
        self.stamp = Stamp.of(path)
        self._checked = False

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Chunks of the file."""
        self.stamp.check()
        first = 0
        for table in csv_tables(self.stamp.path, columns if self._checked else None, rows):
            yield Batch(table, str(self.stamp.path), first)
            first += table.n_rows
        self.stamp.check()
        self._checked = True

    def smaller(self) -> Sequence[Part]:
        """None: a row's number is enough."""
        return ()


class CsvFiles:
    """CSV files with the same columns."""

    where = ""
    parallel = True
    text = True

    def __init__(self, paths: Sequence[Path]) -> None:
        self._parts = [CsvFile(path) for path in paths]

    def names(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return next(csv_tables(self._parts[0].stamp.path, None, 1)).names

    def parts(self, rows: int) -> Iterable[Part]:
        """One per file."""
        return self._parts


class ListedTables:
    """Tables that a list holds, or that a function gives anew for each pass.

    DataError for an iterator, which could be read only once.
    """

    where = ""
    parallel = False
    text = False

    def __init__(self, given: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if isinstance(given, Iterator):
            raise DataError(
                f"a {type(given).__name__} can be read only once, and learning may take several passes; "
                "pass a list of tables, or a function that gives a new iterator"
            )
        self._given = given

    def __iter__(self) -> Iterator[Any]:
        given = self._given() if callable(self._given) else self._given
        try:
            yield from given
        except TypeError as error:
            if isinstance(given, Iterable):
                raise
            raise DataError(f"expected an iterable of tables, found {given!r}") from error

    def names(self) -> tuple[str, ...]:
        """The columns of the first table."""
        for table in self:
            return read_table(table).names
        raise DataError("the data have no tables, so no columns")

    def parts(self, rows: int) -> Iterable[Part]:
        """One per table."""
        return (TablePart(table, f"table {i}") for i, table in enumerate(self))


class TablePart(NamedTuple):
    """One table in memory."""

    data: Any
    where: str

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """The table as it is: it is in memory anyway."""
        yield Batch(self.data, self.where)

    def smaller(self) -> Sequence[Part]:
        """None."""
        return ()


def reader(data: Any) -> Reader:
    """The reader of what `open_data` was given; a reader is its own."""
    if isinstance(data, Reader):
        return data
    if _is_dataset(data):
        from bbn.data.streams.datasets import dataset_reader

        return dataset_reader(data)
    if isinstance(data, str) and not data:
        raise DataError("the path is empty; expected a file, a folder or a pattern of files")
    if isinstance(data, str | Path) or hasattr(data, "__fspath__"):
        files = _files([Path(data)], str(data))
        files.where = str(data)
        return files
    if _are_paths(data):
        return _files([Path(path) for path in data], f"a list of {len(data)} paths")
    if isinstance(data, RawTable | dict) or (hasattr(data, "columns") and not callable(data.columns)):
        return ListedTables([data])
    if isinstance(data, list | tuple) and data and all(_is_row(one) for one in data):
        return ListedTables([data])
    if callable(data) or isinstance(data, Iterable):
        return ListedTables(data)
    raise DataError(
        f"data is a {type(data).__name__}; expected a path or a pattern of CSV or Parquet files, a folder, a list of "
        "paths, a pyarrow dataset, or tables: a list of them or a function that gives an iterator"
    )


def _is_row(one: Any) -> bool:
    """Whether this is one row, a dict of values, rather than a table, a dict of columns."""
    return isinstance(one, Mapping) and not any(
        hasattr(value, "__len__") and not isinstance(value, str) for value in one.values()
    )


def _files(given: Sequence[Path], what: str) -> Reader:
    """The files that paths, folders and patterns stand for, which must be of one kind."""
    paths = [path for one in given for path in expand(one)]
    if not paths:
        raise DataError(f"{what}: there is no CSV or Parquet file")
    kinds = {table_kind(path) for path in paths}
    if len(kinds) > 1:
        raise DataError(f"{what}: there are {' and '.join(sorted(kinds))} files; name those of one kind")
    if kinds == {"parquet"}:
        from bbn.data.streams.parquet import ParquetFiles

        if len(given) == 1 and given[0].is_dir():
            from bbn.data.streams.datasets import Dataset, hive_dataset

            by_folder = hive_dataset(given[0], paths)
            if by_folder is not None:
                return Dataset(by_folder)
        return ParquetFiles(paths)
    return CsvFiles(paths)


def expand(path: Path) -> list[Path]:
    """A file itself, the table files of a folder and its folders, or the files of a pattern, in order of name.

    Names that begin with a dot or an underscore are left out, as other readers of such folders leave them out; so are
    a folder's .txt files, which may be a table or a README, where there are other tables.
    """
    if path.is_dir():
        found = [p for p in path.rglob("*") if not p.is_dir() and table_suffix(p)]
        shown = sorted(p for p in found if not any(s[0] in "._" for s in p.relative_to(path).parts))
        return [p for p in shown if p.suffix.lower() != ".txt"] or shown
    if path.exists() or not any(sign in str(path) for sign in "*?["):
        path.stat()  # the OSError of a file that is not there
        return [path]
    root = next(parent for parent in path.parents if parent.exists())
    matches = root.glob(str(path.relative_to(root)))
    found = sorted(p for p in matches if not p.name.startswith(("_", ".")))
    if not found:
        raise FileNotFoundError(f"no file matches {path}")
    return [p for one in found for p in (expand(one) if one.is_dir() else [one])]


def is_dask(data: Any) -> bool:
    """Whether data are a Dask collection."""
    return type(data).__module__.partition(".")[0] == "dask"


def is_client(data: Any) -> bool:
    """Whether this is a Dask client or cluster."""
    return type(data).__module__.partition(".")[0] == "distributed"


def _is_dataset(data: Any) -> bool:
    """Whether data are a pyarrow dataset; pyarrow is not imported to find out."""
    library = type(data).__module__.partition(".")[0]
    return library == "pyarrow" and hasattr(data, "scanner") and hasattr(data, "get_fragments")


def _are_paths(data: Any) -> bool:
    return isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(p, str | Path) for p in data)


def is_many(data: Any) -> bool:
    """Whether data are not one table but what `open_data` reads: files, a folder, a pattern, a dataset, Dask.

    Or what it has read, if nothing was said of the columns.
    """
    if getattr(data, "undecided", False) is True or is_dask(data) or _is_dataset(data) or _are_paths(data):
        return True
    if not isinstance(data, str | Path) or data == "":
        return False
    path = Path(data)
    return path.is_dir() or (any(sign in str(path) for sign in "*?[") and not path.exists())
