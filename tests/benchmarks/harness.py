"""What a benchmark is: the same work done by several programs, checked first, then timed side by side.

A module `tests/benchmarks/bench_*.py` has a function `rows()` that yields `Row`s (make the heavy things inside it,
so that only one row's data are alive at a time), a `TITLE`, and optionally `NOTES` in Markdown. Each contender is a
function without arguments, or of what `prepare` made for it. `check` is called first and raises if the answers are
not what they should be. The contenders are then run in turn, again and again, and the minimum of each is kept: load
on the machine hits all alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass
class Row:
    """One line of a table of results."""

    work: str
    """What is done, in words."""
    contenders: dict[str, Callable[..., Any]]
    """Name to the work; "bbn" is ours."""
    check: Callable[[], None]
    """Raises AssertionError unless the contenders' answers agree."""
    target: float | None = None
    """The ratio (theirs over ours) to reach against `against`."""
    against: str = ""
    """The contender the target is about; the first other one unless given."""
    units: float = 1.0
    """How many pieces of work one call does (rows, queries); times are given per piece."""
    each: dict[str, float] = field(default_factory=dict)
    """Units of a contender that does another number of pieces per call (a slow one may do fewer)."""
    prepare: dict[str, Callable[[], Any]] = field(default_factory=dict)
    """Contender to what makes the argument of one call; not timed."""
    seconds: float = 3.0
    """How long to go on, at least three rounds."""


@dataclass
class Figure:
    """A number that is not a ratio: a memory peak, a count, a time alone."""

    work: str
    value: str
    target: str = ""


class Module(Protocol):
    """A module of benchmarks."""

    TITLE: str

    def rows(self) -> Iterator[Row | Figure]:
        """The rows."""


def measure(row: Row) -> dict[str, float]:
    """Seconds per piece for each contender: the minimum over interleaved rounds, after the check has passed."""
    row.check()
    best = dict.fromkeys(row.contenders, math.inf)
    repeats = dict.fromkeys(row.contenders, 1)
    spent, rounds = 0.0, 0
    while rounds < 3 or (spent < row.seconds and rounds < 1000):
        for name, work in row.contenders.items():
            if name in row.prepare:
                argument = row.prepare[name]()
                start = time.perf_counter()
                work(argument)
                took = time.perf_counter() - start
                best[name] = min(best[name], took)
                spent += took
                continue
            start = time.perf_counter()
            for _ in range(repeats[name]):
                work()
            took = time.perf_counter() - start
            best[name] = min(best[name], took / repeats[name])
            spent += took
            if took < 0.002:  # too short to time alone
                repeats[name] = min(
                    10_000, max(repeats[name] * 2, math.ceil(0.005 * repeats[name] / max(took, 1e-9)))
                )
        rounds += 1
    return {name: seconds / row.each.get(name, row.units) for name, seconds in best.items()}
