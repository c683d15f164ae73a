"""What the tests of clusters run on workers: partitions that kill the worker that reads them, at a certain moment."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any


def kills_at(partition: Any, folder: str, *moments: int) -> Any:
    """The partition as it is; but the worker dies at these readings, counted over all partitions and passes."""
    if count(folder) in moments:
        os.kill(os.getpid(), signal.SIGKILL)
    return partition


def count(folder: str) -> int:
    """How many calls with this folder came before, by any process: each call leaves one file."""
    n = len(os.listdir(folder))
    while True:
        try:
            os.close(os.open(Path(folder, str(n)), os.O_CREAT | os.O_EXCL))
            return n
        except FileExistsError:
            n += 1


def always_kills(partition: Any) -> Any:
    """No worker survives this one."""
    os.kill(os.getpid(), signal.SIGKILL)
    return partition


def read_part(number: int, path: str, log: str, columns: list[str] | None = None) -> Any:
    """One of several pieces of a Parquet file; which columns were read is written down."""
    import pandas as pd

    with open(log, "a") as file:
        file.write(f"{','.join(columns or ['all'])}\n")
    return pd.read_parquet(path, columns=columns).iloc[number::4]
