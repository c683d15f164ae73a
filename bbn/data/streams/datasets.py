"""pyarrow datasets as batches: of any format, filtered, or in folders named by value.

A dataset that is just Parquet files on this machine is read as those files are. pyarrow's own threads read the others,
one batch after the other; the checksums of Parquet are verified either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.fs

from bbn.core.errors import DamagedFileError, DataError
from bbn.data.streams.parquet import ParquetFiles, arrow_batch, columns_of, naming
from bbn.data.streams.readers import Batch, Part


class Dataset:
    """A pyarrow dataset: read by pyarrow's own threads, one batch after the other."""

    where = ""
    parallel = False
    text = False

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def names(self) -> tuple[str, ...]:
        """The columns."""
        return columns_of(self.dataset.schema)

    def parts(self, rows: int) -> Iterable[Part]:
        """The dataset as one part."""
        return [self]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """The columns of the dataset; each batch names its fragment."""
        scanner = self.dataset.scanner(
            columns=list(columns),
            batch_size=rows,
            batch_readahead=2,
            fragment_readahead=2,
            fragment_scan_options=_verifying(self.dataset),
        )
        files: Sequence[str] = getattr(self.dataset, "files", ())
        path, first = files[0] if len(files) == 1 else "", 0
        batches = iter(scanner.scan_batches())
        while True:
            try:
                with naming(Path(path or "the dataset"), "after row " + str(first)):
                    tagged = next(batches, None)
            except DamagedFileError:  # pyarrow reads ahead, so it may be another file's
                for one in self.smaller():
                    deque(one.batches(columns, rows), maxlen=0)
                raise
            if tagged is None:
                return
            own = str(getattr(tagged.fragment, "path", "")) or "the dataset"
            path, first = own, first if own == path else 0
            yield Batch(arrow_batch(tagged.record_batch), path, first)
            first += tagged.record_batch.num_rows

    def smaller(self) -> Sequence[Part]:
        """The files one by one, where there are several."""
        several = len(getattr(self.dataset, "files", ())) > 1
        try:
            return by_file(self.dataset) if several else ()
        except DataError:  # it has a filter
            return ()


def _verifying(dataset: Any) -> Any:
    """The options of a dataset of Parquet files with checksums verified; None where it is another dataset's."""
    if not isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        return None
    given = dataset.format.default_fragment_scan_options
    kept = ("use_buffered_stream", "buffer_size", "pre_buffer")
    return ds.ParquetFragmentScanOptions(
        page_checksum_verification=True, **{name: getattr(given, name) for name in kept}
    )


def dataset_reader(dataset: Any) -> ParquetFiles | Dataset:
    """The reader of a dataset, or of its files where it is just Parquet files on this machine.

    pyarrow would hold a whole row group of text at a time, however small the batches are that it gives.
    """
    if not (
        isinstance(dataset, ds.FileSystemDataset)
        and isinstance(dataset.format, ds.ParquetFileFormat)
        and isinstance(dataset.filesystem, pyarrow.fs.LocalFileSystem)
    ):
        return Dataset(dataset)
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it has a filter
        return Dataset(dataset)
    files = ParquetFiles([Path(one.path) for one in fragments])
    whole = all(
        one.partition_expression.equals(ds.scalar(True))
        and one.num_row_groups == len(file.rows)
        and file.schema.equals(dataset.schema)
        for one, file in zip(fragments, files.files, strict=True)
    )
    return files if fragments and whole else Dataset(dataset)


def by_file(dataset: Any) -> list[Dataset]:
    """A dataset of files as one of each file, which can be sent elsewhere."""
    if not isinstance(dataset, ds.FileSystemDataset):
        raise DataError(
            f"a {type(dataset).__name__} cannot be read by a cluster; expected a dataset of files"
        )
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:
        raise DataError("a cluster cannot read a dataset with a filter; filter a Dask DataFrame") from None
    return [
        Dataset(ds.FileSystemDataset([one], dataset.schema, dataset.format, dataset.filesystem))
        for one in fragments
    ]


def hive_dataset(folder: Path, paths: Sequence[Path]) -> Any:
    """The dataset of a folder whose folders are named ``column=value``; None if they are not."""
    if not any("=" in part for path in paths for part in path.relative_to(folder).parts[:-1]):
        return None
    return ds.dataset(list(map(str, paths)), partitioning="hive", partition_base_dir=str(folder))
