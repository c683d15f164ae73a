"""What a benchmark is: the same work done by several programs, checked first, then timed side by side.

A module `tests/benchmarks/bench_*.py` has a function `rows()` that yields `Row`s (make the heavy things inside it,
so that only one row's data are alive at a time), a `TITLE`, and optionally `NOTES` in Markdown. Each contender is a
function without arguments, or of what `prepare` made for it. Another library comes with its idioms: the ways in which
its users would do the work, by name. They run against each other first, and the fastest is the contender; the row
says which it was. `check` is called before all that and raises if the answers are not what they should be. The
contenders are then run in turn, again and again, and the minimum of each is kept: load on the machine hits all alike.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

Work = Callable[..., Any]
PEERS = ("pyAgrum", "pgmpy", "scikit-learn")
"""Contenders that are other libraries: each row names the idioms tried for them."""
TRIALS = 3
"""Rounds in which the idioms of a library run against each other."""
TURN, READINGS = 0.05, 16
"""Work that is shorter than TURN seconds is read again in its turn, up to READINGS times: its first reading finds the
processor's caches full of what another contender left."""


@dataclass
class Row:
    """One line of a table of results."""

    work: str
    """What is done, in words."""
    contenders: dict[str, Work | dict[str, Work]]
    """Name to the work; "bbn" is ours. For another library, each of its idioms to the work."""
    check: Callable[[], None]
    """Raises AssertionError unless the contenders' answers agree, those of every idiom."""
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

    def __post_init__(self) -> None:
        for name, work in self.contenders.items():
            if name in PEERS and not (isinstance(work, dict) and work):
                raise ValueError(f"{self.work}: name the idioms of {name}, as a dict of idiom to work")


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


class Measured(NamedTuple):
    """What a row has come to."""

    seconds: dict[str, float]
    """Seconds per piece of each contender."""
    idioms: dict[str, str]
    """The fastest idiom of each library."""


def measure(row: Row) -> Measured:
    """Seconds per piece for each contender: the minimum over interleaved rounds, after the check has passed."""
    row.check()
    works, idioms = {}, {}
    for name, work in row.contenders.items():
        if isinstance(work, dict):
            idioms[name] = fastest(work, row.prepare.get(name))
            works[name] = work[idioms[name]]
        else:
            works[name] = work
    best = dict.fromkeys(works, math.inf)
    repeats = dict.fromkeys(works, 1)
    spent, rounds = 0.0, 0
    while rounds < 3 or (spent < row.seconds and rounds < 1000):
        for name, work in works.items():
            turn = 0.0
            for _ in range(READINGS):
                took = timed(work, row.prepare.get(name), repeats[name])
                best[name] = min(best[name], took / repeats[name])
                turn += took
                if took < 0.002 and name not in row.prepare:  # too short to time alone
                    repeats[name] = min(
                        10_000, max(repeats[name] * 2, math.ceil(0.005 * repeats[name] / max(took, 1e-9)))
                    )
                if turn > TURN:
                    break
            spent += turn
        rounds += 1
    seconds = {name: took / row.each.get(name, row.units) for name, took in best.items()}
    return Measured(seconds, idioms)


def fastest(idioms: dict[str, Work], prepare: Callable[[], Any] | None = None) -> str:
    """The name of the quickest of these, by the minimum over a few rounds in turn."""
    best = dict.fromkeys(idioms, math.inf)
    for _ in range(TRIALS if len(idioms) > 1 else 0):
        for name, work in idioms.items():
            best[name] = min(best[name], timed(work, prepare))
    return min(best, key=lambda name: best[name])


def layouts(array: np.ndarray) -> dict[str, np.ndarray]:
    """The same numbers with each row lying together, and with each column."""
    return {"rows together": np.ascontiguousarray(array), "columns together": np.asfortranarray(array)}


def timed(work: Work, prepare: Callable[[], Any] | None = None, repeats: int = 1) -> float:
    """Seconds of the work alone, done so many times; what `prepare` makes is its argument."""
    arguments = [prepare()] if prepare is not None else []
    start = time.perf_counter()
    for _ in range(repeats):
        work(*arguments)
    return time.perf_counter() - start
