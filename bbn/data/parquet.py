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

try:
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.fs
    import pyarrow.parquet as pq
except ModuleNotFoundError:
    raise ModuleNotFoundError("Parquet files are read by pyarrow: pip install 'bbn[parquet]'") from None

from bbn.data.batches import Batch, Part, Stamp
from bbn.data.kinds import Narwhals
from bbn.data.located import located
from bbn.data.tables import Levels, RawTable, arrow_levels, checked_names
from bbn.errors import DataError, ParseError, nearest

if TYPE_CHECKING:
    import pandas as pd

LARGE = 64 << 20
"""Bytes of a row group from which on its columns are read piece by piece, not each in one go."""
PIECE = 1 << 20
"""Bytes of such a piece."""


class ArrowBatch(RawTable):
    """A batch whose columns are pyarrow's; text that was read as a dictionary declares no order of states."""

    plain: frozenset[str]

    def levels(self, name: str) -> Levels:
        """A column as levels."""
        column = self.column(name)
        try:
            levels = arrow_levels(column)
        except pa.ArrowException:
            raise DataError(
                f"column {name!r} holds values of type {column.type}; expected text, whole numbers or truth values"
            ) from None
        return levels._replace(declared=False) if name in self.plain else levels


def arrow_batch(table: Any, plain: Iterable[str] = ()) -> ArrowBatch:
    """A pyarrow RecordBatch or Table as a raw table; `plain` columns are dictionaries that declare nothing."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    batch = ArrowBatch(tuple(table.schema.names), table.num_rows, table.column, Narwhals("pyarrow"))
    batch.plain = frozenset(plain)
    return batch


class File(NamedTuple):
    """A Parquet file, and what its footer says."""

    stamp: Stamp
    metadata: Any
    schema: Any

    @classmethod
    def read(cls, path: Path) -> File:
        """The file with its footer; ParseError if it has none."""
        stamp = Stamp.of(path)
        with _naming(path, "footer"), pq.ParquetFile(path) as file, located(str(path)):
            checked_names(file.schema_arrow.names)
            return cls(stamp, file.metadata, file.schema_arrow)

    def __reduce__(self) -> tuple[Any, ...]:
        """Sent elsewhere, it is its name: whoever unpacks it reads the footer there, once."""
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
        path, schema = self.file.path, self.file.schema
        shown = str(self.groups[0]) if len(self.groups) == 1 else f"{self.groups[0]} to {self.groups[-1]}"
        where = f"{path}, row group {shown}"
        for name in columns:
            if name not in schema.names:
                raise DataError(f"{where}: the data have no column {name!r}{nearest(name, schema.names)}")
        text = [name for name in columns if _is_text(schema.field(name).type)]
        size = sum(self.file.metadata.row_group(g).total_byte_size for g in self.groups)
        self.file.stamp.check()
        first = 0
        with (
            _naming(path, f"row group {shown}"),
            pq.ParquetFile(
                path,
                metadata=self.file.metadata,
                read_dictionary=text,
                buffer_size=PIECE if size > LARGE else 0,
                page_checksum_verification=True,
            ) as opened,
        ):
            if len(self.groups) > 1:
                table = opened.read_row_groups(self.groups, columns=list(columns), use_threads=False)
                yield Batch(arrow_batch(table, text), where, 0)
            else:
                for batch in opened.iter_batches(rows, self.groups, columns=list(columns), use_threads=False):
                    yield Batch(arrow_batch(batch, text), where, first)
                    first += batch.num_rows
        self.file.stamp.check()

    def smaller(self) -> Sequence[RowGroups]:
        """The row groups one by one."""
        return [self._replace(groups=(g,)) for g in self.groups] if len(self.groups) > 1 else ()


class ParquetFiles:
    """Parquet files with the same columns; further columns of some are left aside."""

    text = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self.files = [File.read(path) for path in paths]

    @property
    def parallel(self) -> bool:
        """Whether there are row groups enough for several threads."""
        return sum(int(file.metadata.num_row_groups) for file in self.files) > 1

    @property
    def n_rows(self) -> int:
        """The number of rows, as the footers say."""
        return sum(int(file.metadata.num_rows) for file in self.files)

    def names(self) -> tuple[str, ...]:
        """The columns of the first file."""
        return _columns(self.files[0].schema)

    def parts(self, rows: int) -> Iterable[Part]:
        """Row groups, small ones several at a time up to so many rows."""
        for file in self.files:
            held: list[int] = []
            n = 0
            for g in range(file.metadata.num_row_groups):
                own = file.metadata.row_group(g).num_rows
                if held and n + own > rows:
                    yield RowGroups(file, tuple(held))
                    held, n = [], 0
                held.append(g)
                n += own
            if held:
                yield RowGroups(file, tuple(held))

    def nulls(self, names: Sequence[str]) -> dict[str, int] | None:
        """How many values each column misses, as the footers say; None if they do not say, or it cannot be told."""
        found = dict.fromkeys(names, 0)
        for file in self.files:
            places = {file.metadata.schema.column(i).path: i for i in range(file.metadata.num_columns)}
            for name in names:
                if name not in places or not _nulls_alone_miss(file.schema.field(name).type):
                    return None
                for g in range(file.metadata.num_row_groups):
                    statistics = file.metadata.row_group(g).column(places[name]).statistics
                    if statistics is None or not statistics.has_null_count:
                        return None
                    found[name] += statistics.null_count
        return found


class Dataset:
    """A pyarrow dataset: read by pyarrow's own threads, one batch after the other."""

    parallel = False
    text = False

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def names(self) -> tuple[str, ...]:
        """The columns."""
        return _columns(self.dataset.schema)

    def parts(self, rows: int) -> Iterable[Part]:
        """The dataset as one part."""
        return [self]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """The columns of the dataset; each batch names its fragment."""
        scanner = self.dataset.scanner(
            columns=list(columns), batch_size=rows, batch_readahead=2, fragment_readahead=2
        )
        path, first = "", 0
        batches = iter(scanner.scan_batches())
        while True:
            with _naming(Path(path or "the dataset"), "after row " + str(first)):
                tagged = next(batches, None)
            if tagged is None:
                return
            own = str(getattr(tagged.fragment, "path", "")) or "the dataset"
            path, first = own, first if own == path else 0
            yield Batch(arrow_batch(tagged.record_batch), path, first)
            first += tagged.record_batch.num_rows

    def smaller(self) -> Sequence[Part]:
        """None: the fragment is named."""
        return ()


def dataset_reader(dataset: Any) -> ParquetFiles | Dataset:
    """The reader of a dataset: of its files themselves, where it is no more than files of Parquet on this machine.

    pyarrow would hold a whole row group of text at a time, however small the batches are that it gives.
    """
    if not (
        isinstance(dataset, ds.FileSystemDataset)
        and isinstance(dataset.format, ds.ParquetFileFormat)
        and isinstance(dataset.filesystem, pa.fs.LocalFileSystem)
    ):
        return Dataset(dataset)
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it has a filter
        return Dataset(dataset)
    files = ParquetFiles([Path(one.path) for one in fragments])
    whole = all(
        one.partition_expression.equals(ds.scalar(True))
        and one.num_row_groups == file.metadata.num_row_groups
        and file.schema.equals(dataset.schema)
        for one, file in zip(fragments, files.files, strict=True)
    )
    return files if fragments and whole else Dataset(dataset)


def by_file(dataset: Any) -> list[Dataset]:
    """A dataset of files as one of each file, which can be sent elsewhere."""
    if not isinstance(dataset, ds.FileSystemDataset):
        raise DataError(f"a {type(dataset).__name__} is no data for a cluster; expected a dataset of files")
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        raise DataError("a dataset with a filter is no data for a cluster; filter a Dask DataFrame") from None
    return [
        Dataset(ds.FileSystemDataset([one], dataset.schema, dataset.format, dataset.filesystem))
        for one in fragments
    ]


def hive_dataset(folder: Path, paths: Sequence[Path]) -> Any:
    """The dataset of a folder whose folders are named ``column=value``; None if they are not."""
    if not any("=" in part for path in paths for part in path.relative_to(folder).parts[:-1]):
        return None
    return ds.dataset(list(map(str, paths)), partitioning="hive", partition_base_dir=str(folder))


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
def _naming(path: Path, place: str) -> Iterator[None]:
    """Let pyarrow's errors be a ParseError that names the file and the place in it."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError | ParseError):
            raise
        if isinstance(error, PermissionError | IsADirectoryError):
            raise
        raise ParseError(f"{place}: not readable as Parquet: {error}", path=str(path)) from error


def _columns(schema: Any) -> tuple[str, ...]:
    """The columns, without those that hold the index of a pandas DataFrame."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return tuple(name for name in schema.names if name not in index)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _nulls_alone_miss(kind: Any) -> bool:
    """Whether only a null is a missing value of this type; floats have NaN too."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(_is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))
