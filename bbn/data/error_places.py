"""Errors that say where: an error about a batch names the file it is from, and the row within it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from bbn.core.errors import AmbiguousNumbersError, DataError, ImpossibleEvidenceError


@contextmanager
def located(where: str, first_row: int = 0) -> Iterator[None]:
    """Let errors about rows name the place, and count rows from the place's first.

    >>> with located("part-3.parquet, row group 1", first_row=1000):
    ...     raise DataError("row 5, column 'A': no such state")
    Traceback (most recent call last):
    bbn.core.errors.DataError: part-3.parquet, row group 1: row 1005, column 'A': no such state
    """
    try:
        yield
    except AmbiguousNumbersError as error:
        raise AmbiguousNumbersError(_placed(str(error), where, first_row)) from error.__cause__
    except DataError as error:
        raise DataError(_placed(str(error), where, first_row)) from error.__cause__
    except ImpossibleEvidenceError as error:
        raise ImpossibleEvidenceError(_placed(str(error), where, first_row), error.findings) from error


def _placed(message: str, where: str, first_row: int) -> str:
    text = re.sub(r"^row (\d+)", lambda match: f"row {int(match[1]) + first_row}", message)
    return f"{where}: {text}" if where else text
