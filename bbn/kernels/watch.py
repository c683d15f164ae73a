"""Stopping long loops: now and then they ask whether to go on.

A kernel runs without the interpreter lock, so Ctrl-C cannot reach it. Every POLL_CELLS cells (some milliseconds) it
takes the lock and calls `check`, which lets the main thread handle its signals and stops work that a `Watch` has
called off or whose time is up. A watch belongs to the thread that began it and to the threads it was handed to.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf

_here = threading.local()


class Stopped(Exception):
    """Work was called off by the thread that waits for it."""


class Watch:
    """A piece of work that can be called off.

    Parameters
    ----------
    seconds
        When its time is up; None: never.
    late
        Makes the error to raise then.
    """

    def __init__(self, seconds: float | None = None, late: Callable[[], Exception] = Stopped) -> None:
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.late = late
        self.stopped = False

    def stop(self) -> None:
        """Call the work off: each thread that is watched raises Stopped at its next check."""
        self.stopped = True

    def check(self) -> None:
        """Raise if the work was called off or its time is up."""
        if self.stopped:
            raise Stopped
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise self.late()


def current() -> tuple[Watch, ...]:
    """The watches of this thread, the outermost first."""
    return getattr(_here, "watches", ())


def time_left() -> float:
    """Seconds until the first deadline of this thread's watches, 0 if it has passed; inf if there is none."""
    deadlines = [watch.deadline for watch in current() if watch.deadline is not None]
    return max(min(deadlines) - time.monotonic(), 0.0) if deadlines else inf


@contextmanager
def watched_by(*watches: Watch) -> Iterator[None]:
    """Let these watches, beside those there are, stop what this thread does inside the block."""
    before = current()
    _here.watches = before + tuple(watch for watch in watches if watch not in before)
    try:
        yield
    finally:
        _here.watches = before


def check() -> None:
    """Raise if this thread's work is to stop; in the main thread, pending signals are handled by calling it."""
    for watch in current():
        watch.check()
