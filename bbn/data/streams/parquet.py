"""Parquet files as batches: row groups that threads read apart, text as dictionaries, faults named by row group.

Text is read as indices into a row group's dictionary, so that no text is made per row. A file that cannot be decoded,
or that lacks a column, is an error that names the file and the row group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bbn.core.errors import BBNError, DamagedFileError, DataError, nearest
from bbn.core.extras import needed_by
from bbn.data.column_levels import Levels, NestedValuesError
from bbn.data.columns import RawTable, checked_names
from bbn.data.error_places import located
from bbn.data.kinds import Kind, Narwhals, Pandas
from bbn.data.streams.readers import Batch, Part, Stamp

with needed_by("a Parquet file", "'bbn[parquet]'"):
    import pyarrow as pa
    import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pandas as pd

LARGE = 64 << 20
"""Bytes of a row group from which on its columns are read piece by piece, not each in one go."""
PIECE = 1 << 20
"""Bytes of such a piece."""

SCHEMA = b"/////"
"""How a schema of Arrow's begins in a footer: without it categories would be plain text, in another order."""


class ArrowBatch(RawTable):
    """A batch whose columns are pyarrow's."""

    def levels(self, name: str) -> Levels:
        """A column as levels."""
        try:
            return super().levels(name)
        except (pa.ArrowException, NestedValuesError):
            kind = self.column(name).type
            raise NestedValuesError(
                f"column {name!r} holds values of type {kind}; expected text, whole numbers or truth values"
            ) from None


def arrow_batch(table: Any, plain: Iterable[str] = (), kind: Kind | None = None) -> ArrowBatch:
    """A pyarrow RecordBatch or Table as a raw table; `plain` columns are dictionaries that declare nothing."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    names = tuple(table.schema.names)
    made = ArrowBatch(names, table.num_rows, table.column, kind or Narwhals("pyarrow"))
    return made._replace(plain=frozenset(plain))


class File(NamedTuple):
    """A Parquet file, and what its footer says."""

    stamp: Stamp
    metadata: Any
    schema: Any
    columns: tuple[str, ...]
    """The columns, without those that hold the index of a pandas DataFrame."""
    rows: tuple[int, ...]
    """The number of rows of each row group."""

    @classmethod
    def read(cls, path: Path) -> File:
        """The file with its footer; DamagedFileError if it has none, or one that contradicts itself."""
        stamp = Stamp.of(path)
        with naming(path, "footer"), pq.ParquetFile(path) as file, located(str(path)):
            metadata, schema = file.metadata, file.schema_arrow
            checked_names(schema.names)
            rows = tuple(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
            if sum(rows) != metadata.num_rows or min(rows, default=0) < 0:
                raise ValueError(f"it counts {metadata.num_rows} rows, but its row groups have {sum(rows)}")
            for key, value in (metadata.metadata or {}).items():
                if value.startswith(SCHEMA) and key != b"ARROW:schema":
                    raise ValueError(
                        f"a schema of Arrow's is under the key {key!r}, expected b'ARROW:schema'"
                    )
            return cls(stamp, metadata, schema, columns_of(schema), rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the path and its stamp: whoever unpickles it reads the footer again, once."""
        return _opened_again, (self.stamp,)

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.stamp.path


@lru_cache(maxsize=256)
def _opened_again(stamp: Stamp) -> File:
    stamp.check()
    return File.read(stamp.path)


class RowGroups(NamedTuple):
    """Some row groups of one file that follow each other."""

    file: File
    groups: tuple[int, ...]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """The columns of the row groups, text as dictionaries."""
        schema = self.file.schema
        where = f"{self.file.path}, {self.place}"
        for name in columns:
            if name not in schema.names:
                raise DataError(f"{where}: the data have no column {name!r}{nearest(name, schema.names)}")
        first = 0
        with self._opened(columns) as opened:
            if len(self.groups) > 1:
                yield Batch(arrow_batch(self._read(opened, columns), self._text(columns)), where, 0)
            else:
                for batch in opened.iter_batches(rows, self.groups, columns=list(columns), use_threads=False):
                    _validate(batch)
                    yield Batch(arrow_batch(batch, self._text(columns)), where, first)
                    first += batch.num_rows
                self._check_rows(first)

    def table(self, columns: Sequence[str]) -> Any:
        """All of the row groups as one table of pyarrow's, text as dictionaries, read by pyarrow's threads."""
        with self._opened(columns) as opened:
            return self._read(opened, columns, use_threads=True)

    @property
    def place(self) -> str:
        """Which row groups they are."""
        some = f" to {self.groups[-1]}" if len(self.groups) > 1 else ""
        return f"row group {self.groups[0]}{some}" if self.groups else "no row group"

    @contextmanager
    def _opened(self, columns: Sequence[str]) -> Iterator[Any]:
        """The file, checksums verified; whatever is wrong with it names it."""
        size = sum(self.file.metadata.row_group(g).total_byte_size for g in self.groups)
        self.file.stamp.check()
        with (
            naming(self.file.path, self.place),
            pq.ParquetFile(
                self.file.path,
                metadata=self.file.metadata,
                read_dictionary=self._text(columns),
                buffer_size=PIECE if size > LARGE else 0,
                page_checksum_verification=True,
            ) as opened,
        ):
            yield opened
        self.file.stamp.check()

    def _read(self, opened: Any, columns: Sequence[str], use_threads: bool = False) -> Any:
        table = opened.read_row_groups(self.groups, columns=list(columns), use_threads=use_threads)
        _validate(table)
        self._check_rows(table.num_rows)
        return table

    def _check_rows(self, found: int) -> None:
        told = sum(self.file.rows[g] for g in self.groups)
        if found != told:
            raise ValueError(f"the footer counts {told} rows, found {found}")

    def _text(self, columns: Sequence[str]) -> list[str]:
        own = set(self.file.columns)
        return [name for name in columns if name in own and _is_text(self.file.schema.field(name).type)]

    def smaller(self) -> Sequence[RowGroups]:
        """The row groups one by one."""
        return [self._replace(groups=(g,)) for g in self.groups] if len(self.groups) > 1 else ()


class ParquetFiles:
    """Parquet files with the same columns; further columns of some are left aside."""

    where = ""
    text = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self.files = [File.read(path) for path in paths]

    @property
    def parallel(self) -> bool:
        """Whether there are enough row groups for several threads."""
        return sum(len(file.rows) for file in self.files) > 1

    @property
    def n_rows(self) -> int:
        """The number of rows, as the footers say."""
        return sum(sum(file.rows) for file in self.files)

    def names(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return self.files[0].columns

    def parts(self, rows: int) -> Iterable[Part]:
        """Row groups; small ones are put together, up to `rows` rows."""
        for file in self.files:
            held: list[int] = []
            n = 0
            for g, own in enumerate(file.rows):
                if held and n + own > rows:
                    yield RowGroups(file, tuple(held))
                    held, n = [], 0
                held.append(g)
                n += own
            if held:
                yield RowGroups(file, tuple(held))

    def complete(self, names: Sequence[str]) -> bool:
        """Whether the schemas say that none of these columns can miss a value."""
        fields = [
            file.schema.field(name) for file in self.files for name in names if name in file.schema.names
        ]
        return all(not field.nullable and _nulls_alone_miss(field.type) for field in fields)


def read_parquet(path: Path) -> ArrowBatch:
    """A whole file as one table, its checksums verified; results about it are pandas', with the index that it holds."""
    file = File.read(path)
    if not file.rows:
        with naming(path, "footer"):
            table = file.schema.empty_table()
    else:
        whole = RowGroups(file, tuple(range(len(file.rows))))
        try:
            table = whole.table(file.schema.names)
        except DamagedFileError:
            for one in whole.smaller():
                one.table(file.schema.names)
            raise
    with naming(path, "index"):
        index = (
            table.select([name for name in table.schema.names if name not in file.columns]).to_pandas().index
        )
    text = [name for name in file.columns if _is_text(file.schema.field(name).type)]
    return arrow_batch(
        table.select(file.columns), text, Pandas(index if len(index) == table.num_rows else None)
    )


def write_parquet(file: IO[bytes], tables: Iterator[pd.DataFrame], complete: bool, row_group: int) -> None:
    """Write tables one after the other, with checksums; `complete` says that no value is missing."""
    first = _as_arrow(next(tables))
    schema = pa.schema([field.with_nullable(not complete) for field in first.schema])
    with pq.ParquetWriter(file, schema, write_page_checksum=True) as writer:
        for table in chain([first], map(_as_arrow, tables)):
            writer.write_table(table.cast(schema), row_group_size=row_group)


def _as_arrow(frame: pd.DataFrame) -> Any:
    table = pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    return table.replace_schema_metadata(None)


@contextmanager
def naming(path: Path, place: str) -> Iterator[None]:
    """Turn an error of pyarrow about a file into one that names the file and the place in it."""
    try:
        yield
    except (FileNotFoundError, PermissionError, IsADirectoryError, BBNError):
        raise
    except Exception as error:  # of every kind, as damage can be anywhere
        raise DamagedFileError(f"{place}: not readable as Parquet: {error}", path=str(path)) from error


def columns_of(schema: Any) -> tuple[str, ...]:
    """The columns, without those that hold the index of a pandas DataFrame."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return tuple(name for name in schema.names if name not in index)


def _validate(table: Any) -> None:
    """Check what pyarrow can check of a table without looking at each row; ValueError if something is wrong.

    Whether each row's index is one of its dictionary's is checked where rows are coded, which looks at them anyway.
    """
    table.validate()
    for column in table.columns:
        if not pa.types.is_dictionary(column.type):
            column.validate(full=not pa.types.is_primitive(column.type))
            continue
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            chunk.dictionary.validate(full=True)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _nulls_alone_miss(kind: Any) -> bool:
    """Whether only a null is a missing value of this type; floats have NaN too."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))
