"""The budget: how much memory and how many threads the library may take, and the refusal of work that would take more.

The limit is half of physical memory, or of the control group's where that is smaller, unless
`memory_limit=` or the environment variable BBN_MEMORY_LIMIT says otherwise (bytes, or "2GB", "512 MiB").
"""

from __future__ import annotations

import math
import os
import re
import sys
from functools import lru_cache
from numbers import Integral
from pathlib import Path

from bbn.errors import BudgetError

MAX_AXES = 32
"""The most axes one table may have, whatever their lengths."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def memory_limit(override: int | float | str | None = None) -> int:
    """The limit in bytes: `override` if given, else BBN_MEMORY_LIMIT, else half of the memory there is.

    >>> memory_limit("2 GB")
    2000000000
    """
    if override is not None:
        return parse_bytes(override, "memory_limit")
    from_environment = os.environ.get("BBN_MEMORY_LIMIT")
    if from_environment:
        return parse_bytes(from_environment, "BBN_MEMORY_LIMIT")
    return _half_of_memory()


def parse_bytes(size: int | float | str, what: str = "size") -> int:
    """A number of bytes from a number or from text with a unit.

    >>> parse_bytes("1.5 MiB"), parse_bytes(1000)
    (1572864, 1000)
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*(?:[eE]\d+)?)\s*([kmgtKMGT]?)(i?)[bB]?\s*", size, re.ASCII)
        if match is None or not float(match[1]) > 0:
            raise ValueError(f"{what}: {size!r} is not a number of bytes; expected e.g. 2000000000 or '2GB'")
        number, unit, binary = match.groups()
        factor = (_BINARY_UNITS if binary and unit else _UNITS)[unit.lower()]
        return int(float(number) * factor)
    if not size > 0:
        raise ValueError(f"{what}: {size!r} is not a positive number of bytes")
    return sys.maxsize if size == math.inf else int(size)


def show_bytes(size: int) -> str:
    """`size` in words.

    >>> show_bytes(8 * 2**40), show_bytes(800)
    ('8.8 TB', '800 bytes')
    """
    if size < 1000:
        return f"{size} bytes"
    amount = float(min(size, 10**300))  # an integer may be past the largest float
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        amount /= 1000
        if amount < 999.5:  # which is shown as 1000
            return f"{amount:.3g} {unit}"
    return f"{amount:.2e} PB"


def require_memory(needed: int, what: str, instead: str = "", limit: int | float | str | None = None) -> None:
    """Raise BudgetError if `what` would need more bytes than the limit; `instead` says what to try."""
    allowed = memory_limit(limit)
    if needed > allowed:
        raise BudgetError(
            f"{what} would need {show_bytes(needed)}, more than the limit of {show_bytes(allowed)}"
            + (f"; {instead}" if instead else "")
            + "; memory_limit= or BBN_MEMORY_LIMIT raises the limit",
            needed,
            allowed,
        )


def require_table(
    cards: list[int], what: str, instead: str = "", limit: int | float | str | None = None
) -> None:
    """Raise BudgetError if a table of doubles with axes of these lengths is refused: too many axes or bytes."""
    cells = 1
    for card in cards:
        cells *= card
    require_memory(8 * cells, what, instead, limit)
    if len(cards) > MAX_AXES:
        raise BudgetError(f"{what} would have {len(cards)} axes; at most {MAX_AXES} are possible")


def jobs(n_jobs: int | None = None) -> int:
    """How many threads: as asked, −1 for one per core; None is OMP_NUM_THREADS, or else one per core.

    >>> jobs(3)
    3
    """
    if n_jobs is None:
        wanted = os.environ.get("OMP_NUM_THREADS", "")
        return int(wanted) if wanted.isdigit() and int(wanted) > 0 else _cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise TypeError(f"n_jobs is {n_jobs!r}; expected a number of threads, −1 for one per core, or None")
    return int(n_jobs) if n_jobs > 0 else _cores()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _half_of_memory() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 * 10**9
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total // 2
