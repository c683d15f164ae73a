"""Writing tables that come one after the other: to a Parquet or CSV file, or to a folder of Parquet files.

Everything is written under another name beside the target and put in its place in one move at the end, so a failure
leaves what was there before, and no reader ever sees half of it. Memory is that of one table.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from bbn.data.tables import table_suffix
from bbn.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

ROW_GROUP = 1 << 17
"""Rows of a row group: enough to read fast, few enough for many threads to share a file."""
PER_FILE = 16
"""Tables to a file of a folder."""


def write_tables(tables: Iterable[pd.DataFrame], to: Any, complete: bool = False) -> Path:
    """Write tables with the same columns, one after the other, in one file or in a folder of files.

    Parameters
    ----------
    tables
        pandas DataFrames.
    to
        A path that ends in .parquet, .csv or .tsv (also .gz), or a folder, which must be empty or not there yet.
    complete
        Whether no value is missing; Parquet files say so, which makes them twice as fast to read.

    Returns
    -------
    Path
        Where the tables are now.
    """
    target = Path(to)
    kind = table_suffix(target)
    if not kind and target.suffix and not target.is_dir():
        raise DataError(f"{target}: expected a path that ends in .parquet, .csv or .tsv, or a folder")
    items = iter(tables)
    if kind == "csv":
        with _replacing(target) as path:
            _write_csv(path, target, items)
    elif kind:
        with _replacing(target) as path:
            _write_parquet(path, items, complete)
    else:
        with replacing_folder(target) as folder:
            for number in count():
                first = next(items, None)
                if first is None:
                    break
                part = chain([first], islice(items, PER_FILE - 1))
                _write_parquet(folder / f"part-{number:05}.parquet", part, complete)
    return target


def _write_parquet(path: Path, tables: Iterator[pd.DataFrame], complete: bool) -> None:
    from bbn.data.parquet import write_parquet

    write_parquet(path, tables, complete, ROW_GROUP)
    _sync(path)


def _write_csv(path: Path, target: Path, tables: Iterator[pd.DataFrame]) -> None:
    separator = "\t" if ".tsv" in [suffix.lower() for suffix in target.suffixes] else ","
    with _opened(path, target.suffix == ".gz") as file:
        for i, table in enumerate(tables):
            table.to_csv(file, index=False, header=i == 0, sep=separator, lineterminator="\n")
    _sync(path)


def _opened(path: Path, packed: bool) -> IO[str]:
    if packed:
        return gzip.open(path, "wt", encoding="utf-8", newline="")
    return open(path, "w", encoding="utf-8", newline="")


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """A new file beside the target, which takes its place at the end and is removed if that is not reached."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """A new folder beside the target, which takes its place at the end and is removed if that is not reached."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} is there already; name a folder that is empty or not there yet")
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
        folder.chmod(0o777 & ~_umask())
        os.replace(folder, target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    """Have the file on the disk before it takes its place."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
