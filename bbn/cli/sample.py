"""The command that draws rows: sample. Rows go to the file chunk by chunk, so any number of them fits in memory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from bbn.cli.ask import read_evidence
from bbn.cli.files import open_network
from bbn.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 1 << 18


def sample(options: argparse.Namespace) -> int:
    """Write rows drawn from a network, given evidence, to a CSV or Parquet file or to standard output."""
    network = open_network(options.file)
    _, evidence = read_evidence(network, options)
    chunks = network.sample(
        options.n,
        evidence,
        seed=options.seed,
        missing=_missing(options.missing),
        chunks=CHUNK,
        progress=options.progress,
    )
    empty = network.sample(0, seed=0)
    path = str(options.output)
    if path == "-":
        _write_csv(sys.stdout, chunks, empty)
    elif path.endswith((".parquet", ".pq")):
        _write_parquet(path, chunks, empty)
    elif path.endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        with _opened(path) as file:
            _write_csv(file, chunks, empty, "\t" if ".tsv" in path else ",")
    else:
        raise DataError(f"{path}: the kind of file is read from the suffix; expected .csv, .tsv or .parquet")
    return 0


def _missing(parts: list[str]) -> float | dict[str, float]:
    """`0.2`, or `NAME=0.2` one or more times."""
    shares: dict[str, float] = {}
    for part in parts:
        name, equals, share = part.rpartition("=")
        try:
            number = float(share)
        except ValueError:
            raise DataError(f"--missing {part}: expected a share such as 0.2, or NAME=0.2") from None
        if not equals:
            return number
        shares[name] = number
    return shares


def _write_csv(
    file: TextIO, chunks: Iterator[pd.DataFrame], empty: pd.DataFrame, separator: str = ","
) -> None:
    empty.to_csv(file, index=False, sep=separator)
    for chunk in chunks:
        chunk.to_csv(file, index=False, header=False, sep=separator, lineterminator="\n")


def _write_parquet(path: str, chunks: Iterator[pd.DataFrame], empty: pd.DataFrame) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    with pq.ParquetWriter(path, schema) as writer:
        for chunk in chunks:
            writer.write_table(pa.Table.from_pandas(chunk, schema, preserve_index=False))


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    if path.endswith(".gz"):
        import gzip

        with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
            yield file
    else:
        with open(path, "w", encoding="utf-8", newline="") as file:
            yield file
