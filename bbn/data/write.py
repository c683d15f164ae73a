"""Writing tables that come one after the other: to a Parquet or CSV file, or to a folder of Parquet files.

The target is replaced at once at the end (`bbn.core.atomic`): a failure leaves what was there before, and no reader
ever sees half of it. Memory is that of one table.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from bbn.core.atomic import replacing, replacing_folder
from bbn.core.display import not_a_formula
from bbn.core.errors import DataError
from bbn.data.columns import table_suffix

if TYPE_CHECKING:
    import pandas as pd

ROW_GROUP = 1 << 17
"""Rows of a row group: enough to read fast, few enough for many threads to share a file."""
PER_FILE = 16
"""Tables to a file of a folder."""


class Output(NamedTuple):
    """Where tables go, and of what kind the target is where no suffix says so."""

    path: str
    kind: str = ""
    """"csv", "tsv", "parquet", or nothing: as the suffix tells."""
    escape_formulas: bool = False
    """Whether cells of text files that a spreadsheet would take for formulas are made plain text."""


def write_tables(tables: Iterable[pd.DataFrame], to: Any, complete: bool = False) -> Path:
    """Write tables with the same columns, one after the other, in one file or in a folder of files.

    Parameters
    ----------
    tables
        pandas DataFrames.
    to
        A path that ends in .parquet, .csv or .tsv (also .gz), or a folder, which must be empty or not there yet; or an
        `Output`.
    complete
        Whether no value is missing; Parquet files say so, which makes them twice as fast to read.

    Returns
    -------
    Path
        Where the tables are now.
    """
    output = to if isinstance(to, Output) else Output(to)
    target = Path(output.path)
    kind = output.kind or table_suffix(target)
    if not kind and target.suffix and not target.is_dir():
        raise DataError(f"{target}: expected a path that ends in .parquet, .csv or .tsv, or a folder")
    items = iter(tables)
    if kind == "parquet":
        with replacing(target) as file:
            _write_parquet(file, items, complete)
    elif kind:
        with replacing(target) as file:
            _write_csv(file, target, items, output)
    else:
        with replacing_folder(target) as folder:
            for number in count():
                first = next(items, None)
                if first is None:
                    break
                part = chain([first], islice(items, PER_FILE - 1))
                with open(folder / f"part-{number:05}.parquet", "xb") as file:
                    _write_parquet(file, part, complete)
    return target


def _write_parquet(file: IO[bytes], tables: Iterator[pd.DataFrame], complete: bool) -> None:
    from bbn.data.streams.parquet import write_parquet

    write_parquet(file, tables, complete, ROW_GROUP)


def _write_csv(file: IO[bytes], target: Path, tables: Iterator[pd.DataFrame], output: Output) -> None:
    suffixes = [suffix.lower() for suffix in target.suffixes]
    tabs = output.kind == "tsv" if output.kind else ".tsv" in suffixes
    with ExitStack() as stack:
        plain = (
            stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
            if ".gz" in suffixes[-1:]
            else file
        )
        text = io.TextIOWrapper(plain, "utf-8", newline="")
        stack.callback(text.detach)  # the file is closed by whoever opened it
        for i, table in enumerate(tables):
            write_csv(text, table, i == 0, "\t" if tabs else ",", output.escape_formulas)


def write_csv(
    file: IO[str], table: pd.DataFrame, header: bool, separator: str, escape_formulas: bool = False
) -> None:
    """Write a table as text, with or without its header."""
    if escape_formulas:
        table = table.rename(columns=not_a_formula)
        texts = [name for name, dtype in table.dtypes.items() if dtype.kind not in "biuf"]
        table = table.assign(
            **{str(name): table[name].map(not_a_formula, na_action="ignore") for name in texts}
        )
    table.to_csv(file, index=False, header=header, sep=separator, lineterminator="\n")
