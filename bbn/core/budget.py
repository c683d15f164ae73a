"""The budget: how much memory and how many threads the library may take, and the refusal of work that would take more.

The limit is half of the memory there is, unless `memory_limit=` or the environment variable BBN_MEMORY_LIMIT says
otherwise (bytes, or "2GB", "512 MiB"). What there is: physical memory, or less where a control group that the process
is in (or one around that) or RLIMIT_AS allows less.

Work of one piece calls `require_memory`. Work of several keeps a `Ledger`: each piece is reserved before it is
allocated, and threads get what is left. Threads that share an engine share its `Room`: they wait for one another
rather than take more than the limit together.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

from bbn.core.errors import BudgetError
from bbn.kernels.watch import check

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

MAX_AXES = 32
"""The most axes one table may have, whatever their lengths."""

LISTEN = 0.1
"""Seconds after which whoever waits for memory asks whether to go on."""
ALWAYS_THERE = 1 << 23
"""Half of the memory is at least this many bytes, or Python would not have started."""
environment: Any = os.environ._data  # type: ignore[attr-defined]
"""What os.environ keeps: it encodes each key that it is asked for, which takes longer than the rest of an engine."""
_MEMORY_LIMIT: Any = os.environ.encodekey("BBN_MEMORY_LIMIT")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def memory_limit(override: int | float | str | None = None) -> int:
    """The limit in bytes: `override` if given, else BBN_MEMORY_LIMIT, else half of the memory there is.

    >>> memory_limit("2 GB")
    2000000000
    """
    if override is not None:
        return parse_bytes(override, "memory_limit")
    if _MEMORY_LIMIT in environment:
        told = os.environ["BBN_MEMORY_LIMIT"]
        if told:
            return parse_bytes(told, "BBN_MEMORY_LIMIT")
    return memory_there_is() // 2


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


def always_there(needed: int, limit: int | float | str | None = None) -> bool:
    """Whether no limit is given that so few bytes could pass."""
    return limit is None and needed <= ALWAYS_THERE and _MEMORY_LIMIT not in environment


def require_memory(needed: int, what: str, instead: str = "", limit: int | float | str | None = None) -> None:
    """Raise BudgetError if `what` would need more bytes than the limit; `instead` says what to try."""
    if always_there(needed, limit):
        return
    allowed = memory_limit(limit)
    if needed > allowed:
        raise BudgetError(
            f"{what} would need {show_bytes(needed)}, more than the limit of {show_bytes(allowed)}"
            + (f"; {instead}" if instead else "")
            + "; memory_limit= or BBN_MEMORY_LIMIT raises the limit",
            needed,
            allowed,
        )


class Ledger:
    """The bytes that one call has reserved, held to the limit.

    Parameters
    ----------
    limit
        As `memory_limit=` takes it.

    >>> ledger = Ledger("1 MB")
    >>> ledger.reserve(400_000, "the answers")
    >>> ledger.workers(16, 250_000)
    2
    """

    def __init__(self, limit: int | float | str | None = None) -> None:
        self.limit = memory_limit(limit)
        self.reserved = 0

    @property
    def left(self) -> int:
        """The bytes that are not reserved."""
        return self.limit - self.reserved

    def reserve(self, size: int, what: str, instead: str = "") -> None:
        """Count `size` bytes more; BudgetError, and nothing counted, if they do not fit beside the others."""
        if self.reserved and size > self.left:
            what = f"{what} ({show_bytes(size)}, beside {show_bytes(self.reserved)} taken already)"
        require_memory(self.reserved + size, what, instead, self.limit)
        self.reserved += size

    def workers(self, wanted: int, each: int) -> int:
        """How many of `wanted` threads can have `each` bytes of their own, at least one; what they take is reserved."""
        fitting = max(1, min(wanted, self.left // max(each, 1)))
        self.reserved += fitting * each
        return fitting

    def copy(self) -> Ledger:
        """A ledger that goes on from here, for what is taken and given back before the call ends."""
        other = Ledger(self.limit)
        other.reserved = self.reserved
        return other


class Keeper(Protocol):
    """Whoever keeps things between runs."""

    def make_room(self, size: int) -> None:
        """Drop what is kept down to `size` bytes."""


class Room:
    """The memory that threads share while they run: one that would take them past the limit waits for another.

    Parameters
    ----------
    keeper
        Who keeps things between runs: its `make_room` drops them down to a number of bytes. Not held on to.

    Attributes
    ----------
    held
        The bytes that are held just now.
    kept
        Those kept between runs; whoever keeps them counts them here.

    >>> room = Room()
    >>> with room.hold(600_000, limit=lambda: 1_000_000):
    ...     room.held
    600000
    """

    def __init__(self, keeper: Keeper | None = None) -> None:
        self.kept = self.held = 0
        self._keeper = None if keeper is None else weakref.ref(keeper)
        self._freed: threading.Condition | None = None  # made for the first who holds memory

    def _empty(self) -> None:
        self.held, self._freed = 0, None

    def _meet(self) -> threading.Condition:
        with _meeting:
            if self._freed is None:
                self._freed = threading.Condition()
                _rooms.add(self)
            return self._freed

    def clear(self, size: int) -> None:
        """Drop what is kept between runs down to `size` bytes."""
        keeper = self._keeper() if self._keeper is not None else None
        if keeper is not None:
            keeper.make_room(size)

    @contextmanager
    def hold(self, size: int, limit: Callable[[], int]) -> Iterator[None]:
        """Hold `size` bytes for as long as the block runs; alone, any number. Not to be nested by one thread.

        `limit` tells how many may be held just now; it is asked again when others have let go.
        """
        freed = self._freed or self._meet()
        with freed:
            while self.held and self.held + size > limit():
                freed.wait(LISTEN)
                check()
            self.held += size
        try:
            yield
        finally:
            with freed:
                self.held -= size
                freed.notify_all()


_rooms: weakref.WeakSet[Room] = weakref.WeakSet()
_meeting = threading.Lock()


def _empty_rooms() -> None:
    """In a process just forked: the threads that held memory are not in it."""
    global _meeting
    _meeting = threading.Lock()
    for room in list(_rooms):
        room._empty()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_empty_rooms)


def require_table(
    cards: list[int],
    what: str,
    instead: str = "",
    limit: int | float | str | None = None,
    copies: int = 1,
) -> None:
    """Raise BudgetError if tables of doubles with axes of these lengths would take too many axes or bytes."""
    cells = 1
    for card in cards:
        cells *= card
    require_memory(8 * copies * cells, what, instead, limit)
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


def memory_there_is() -> int:
    """The bytes that this process may have: physical memory, or what its control groups or RLIMIT_AS leave of it."""
    total = _machine_memory()
    if resource is None:
        return total
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    return total if most < 0 else min(total, most)  # negative: RLIM_INFINITY


@lru_cache(maxsize=1)
def _machine_memory() -> int:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 * 10**9
    return int(min(total, control_group_limit()))


def control_group_limit(
    own: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")
) -> int | float:
    """The least limit of the process's control group and of those around it; infinity if none has one.

    A line of `own` is ``number:controllers:path``. Version 2 has no controllers there and one tree, at `mount` (or at
    ``unified`` in it, beside trees of version 1); version 1 has a tree per controller, at ``memory`` in it.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return math.inf
    least = math.inf
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            trees, name = [mount, mount / "unified"], "memory.max"
        elif "memory" in controllers.split(","):
            trees, name = [mount / "memory"], "memory.limit_in_bytes"
        else:
            continue
        group = Path(path.lstrip("/"))
        # a container may see its own group as the root of the tree: then only the last of these is there
        for around in (group, *group.parents) if ".." not in group.parts else (Path(),):
            for tree in trees:
                with suppress(OSError, ValueError):  # "max" is not a number
                    least = min(least, int((tree / around / name).read_text()))
    return least
