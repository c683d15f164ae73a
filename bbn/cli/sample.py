"""The command that draws rows: sample. Rows go to the file chunk by chunk, so any number of them fits in memory."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from bbn.cli.evidence_options import read_do, read_evidence, wants_progress
from bbn.cli.files import KINDS, open_network, table_output
from bbn.cli.output import in_utf8
from bbn.core.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

CHUNK = 1 << 18


def sample(options: argparse.Namespace) -> int:
    """Write rows drawn from a network, given evidence, to a CSV or Parquet file, to a folder or to standard output."""
    network = open_network(options.file, options.from_format)
    _, evidence = read_evidence(network, options)
    network = network.do(read_do(network, options) or {})
    if options.dask is not None:
        if options.output == "-":
            raise DataError("the workers of a cluster write their rows to a folder; -o names it")
        missing = _missing(options.missing)
        network.sample(options.n, evidence, options.seed, missing, to=options.output, client=options.dask)
        return 0
    settings = {
        "seed": options.seed,
        "missing": _missing(options.missing),
        "progress": wants_progress(options),
    }
    if options.output != "-":
        if not _is_folder(options):
            _kind(options.output, options.to_format)
        to = table_output(options.output, options.to_format, options.escape_formulas)
        from bbn.inference.rows.streaming import sample_to

        sample_to(network, to, options.n, evidence, **settings)
        return 0
    kind = _kind("-", options.to_format)
    chunks = network.sample(options.n, evidence, chunks=CHUNK, **settings)
    empty = network.sample(0, seed=0)
    if kind == "parquet":
        _write_parquet(sys.stdout.buffer, chunks, empty)
    else:
        from bbn.data.write import write_csv

        separator = "\t" if kind == "tsv" else ","
        for i, table in enumerate(chain([empty], chunks)):
            write_csv(in_utf8(), table, i == 0, separator, options.escape_formulas)
    return 0


def _is_folder(options: argparse.Namespace) -> bool:
    """Whether rows go to a folder: one that is there, or a path that ends in / or has no suffix."""
    path = str(options.output)
    return (
        path != "-"
        and options.to_format is None
        and (os.path.isdir(path) or path.endswith("/") or not os.path.splitext(path)[1])
    )


def _kind(path: str, named: str | None) -> str:
    """What to write: as named, or as the suffix tells; standard output is CSV."""
    if named is not None:
        if named not in KINDS:
            raise DataError(f"unknown kind of data {named!r}{nearest(named, KINDS)}")
        return named
    suffix = "csv" if path == "-" else path.removesuffix(".gz").rpartition(".")[2].replace("pq", "parquet")
    if suffix not in KINDS:
        raise DataError(f"{path}: the kind of file is read from the suffix; expected .csv, .tsv or .parquet")
    return suffix


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


def _write_parquet(path: Any, chunks: Iterator[pd.DataFrame], empty: pd.DataFrame) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for chunk in chunks:
            writer.write_table(pa.Table.from_pandas(chunk, schema, preserve_index=False))
