"""Checkpoints of a climb: written to a file of its own beside the old one, then put in its place in one move.

The file is a line that names the format and its version, a line with the SHA-256 digest of all that follows, a line of
JSON that says what the numbers are, and the numbers, little-endian doubles end to end. So a damaged file is always
found, nothing in a file can run, and no more memory is taken than the file has bytes.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bbn.core.atomic import replacing
from bbn.core.errors import CheckpointWarning, DataError, warn_user
from bbn.core.frozen import Array
from bbn.data.error_places import located

EVERY = 5.0
"""Seconds between checkpoints; where a climb ends is always written."""
STEPS = 10
"""Steps after which one is written however little time they took."""
FORMAT = b"bbn checkpoint "
VERSION = 1
FIRST_LINE = 64
"""The most bytes of the first line."""
REASONS = ("", "converged", "max_iter", "interrupted", "time_limit")
ANEW = "remove it to start anew"


class ClimbTrace(NamedTuple):
    """A climb from one start, so far."""

    tables: Array
    """Where it has come to."""
    memory: Array | None = None
    """What the method remembers."""
    log_likelihoods: tuple[float, ...] = ()
    objectives: tuple[float, ...] = ()
    reason: str = ""
    """Why it ended; empty while it has not."""

    @property
    def n_steps(self) -> int:
        """The number of steps taken."""
        return len(self.objectives) - 1

    def on(self, point: Any, memory: Array | None) -> ClimbTrace:
        """The trace with one more point."""
        return ClimbTrace(
            point.tables,
            memory,
            (*self.log_likelihoods, point.log_likelihood),
            (*self.objectives, point.objective),
        )


class Checkpoint:
    """What was saved, and the way to save more; without a path it holds nothing and saves nothing.

    Parameters
    ----------
    path
        The file, or None.
    fingerprint
        What the climbs depend on besides the data, as a digest.
    size
        How many numbers a point of the climb has.
    memory_shape
        The shape of what the method remembers, or None where it remembers nothing.

    Attributes
    ----------
    traces
        The climbs that were saved, one per start. DataError, with the file's name, if the file is not a checkpoint of
        such climbs.
    """

    def __init__(self, path: Any, fingerprint: str, size: int, memory_shape: tuple[int, ...] | None) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.size = size
        self.memory_shape = memory_shape
        self.traces: list[ClimbTrace] = []
        self._written = time.monotonic()
        self._skipped = 0
        self._warned = False
        self._written_once = False
        if self.path is not None and self.path.exists():
            with located(str(self.path)):
                self._load(self.path)
            self._written_once = True

    def _load(self, path: Path) -> None:
        header, numbers = _read(path)
        if header.get("fingerprint") != self.fingerprint:
            raise DataError(
                f"the checkpoint belongs to another structure, prior, method, seed or start; {ANEW}"
            )
        climbs = header.get("climbs")
        if not isinstance(climbs, list):
            raise malformed("climbs", climbs, "a list")
        at = 0
        for k, climb in enumerate(climbs):
            if not isinstance(climb, dict):
                raise malformed(f"climb {k}", climb, "an object")
            lengths = self._lengths(k, climb)
            if at + sum(lengths) > len(numbers):
                raise malformed(f"climb {k}", f"{sum(lengths)} numbers", f"at most {len(numbers) - at}")
            ends = np.cumsum([at, *lengths]).tolist()
            tables, memory, logs, objectives = (numbers[a:b] for a, b in pairwise(ends))
            at = ends[-1]
            if not (np.isfinite(tables).all() and np.isfinite(memory).all()):
                raise malformed(f"climb {k}", "a number that is not finite", "finite numbers")
            if np.isnan(logs).any() or np.isnan(objectives).any():
                raise malformed(f"climb {k}", "a log-likelihood that is NaN", "numbers")
            self.traces.append(
                ClimbTrace(
                    tables,
                    memory.reshape(self.memory_shape) if self.memory_shape and len(memory) else None,
                    tuple(logs.tolist()),
                    tuple(objectives.tolist()),
                    climb["reason"],
                )
            )
        if at != len(numbers):
            raise malformed("the climbs", f"{at} numbers", f"{len(numbers)}, as many as there are")

    def _lengths(self, k: int, climb: dict[str, Any]) -> list[int]:
        """How many numbers the parts of a climb have, checked to be what this climb's parts are."""
        size, memory, points = (climb.get(key) for key in ("numbers", "memory", "points"))
        if type(size) is not int or size != self.size:
            raise malformed(f"climb {k}, numbers", size, str(self.size))
        expected = None if self.memory_shape is None else list(self.memory_shape)
        if memory is not None and memory != expected:
            raise malformed(f"climb {k}, memory", memory, str(expected))
        if type(points) is not int or points < 1:
            raise malformed(f"climb {k}, points", points, "a whole number, 1 or more")
        if climb.get("reason") not in REASONS:
            raise malformed(
                f"climb {k}, reason", climb.get("reason"), f"one of {', '.join(map(repr, REASONS))}"
            )
        return [size, 0 if memory is None else int(np.prod(memory)), points, points]

    def save(self, traces: Sequence[ClimbTrace], now: bool = False) -> None:
        """Write the climbs, if it is time again."""
        if self.path is None:
            return
        self._skipped += 1
        if not now and self._skipped < STEPS and time.monotonic() - self._written < EVERY:
            return
        self._written, self._skipped = time.monotonic(), 0
        try:
            with replacing(self.path) as file:
                file.write(self._content(traces))
            self._written_once = True
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise  # a path that was never right
        except OSError as error:  # a full disk: what is on it stays, and the climb goes on
            if not self._warned:
                self._warned = True
                left = (
                    "the last checkpoint that was written is still there"
                    if self._written_once
                    else "there is no checkpoint yet"
                )
                warn_user(
                    f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on, "
                    f"and {left}",
                    CheckpointWarning,
                )

    def _content(self, traces: Sequence[ClimbTrace]) -> bytes:
        """The bytes of a file."""
        climbs = [
            {
                "reason": trace.reason,
                "numbers": len(trace.tables),
                "memory": None if trace.memory is None else list(trace.memory.shape),
                "points": len(trace.objectives),
            }
            for trace in traces
        ]
        header = json.dumps({"fingerprint": self.fingerprint, "climbs": climbs})
        parts = [
            np.asarray(part, dtype="<f8").tobytes()
            for trace in traces
            for part in (trace.tables, trace.memory, trace.log_likelihoods, trace.objectives)
            if part is not None
        ]
        body = b"".join([header.encode(), b"\n", *parts])
        first = FORMAT + str(VERSION).encode()
        return b"\n".join([first, hashlib.sha256(body).hexdigest().encode(), body])


def _read(path: Path) -> tuple[dict[str, Any], Array]:
    """The header of a checkpoint and its numbers; DataError if it is not a whole one of this version."""
    try:
        with path.open("rb") as file:
            first = file.readline(FIRST_LINE)
            version = first[len(FORMAT) : -1]
            told = first.startswith(FORMAT) and first.endswith(b"\n") and version.isdigit()
            rest = file.read() if told else b""
    except OSError as error:
        raise DataError(f"the checkpoint cannot be read: {error.strerror or error}") from error
    if not first:
        raise DataError(f"the checkpoint is empty; {ANEW}")
    if not told:
        raise DataError(
            f"not a checkpoint: begins with {first[:20]!r}, expected {FORMAT.decode()!r} and a version; {ANEW}"
        )
    if int(version) != VERSION:
        raise DataError(
            f"the checkpoint has version {version.decode()}, but this bbn reads version {VERSION}; {ANEW}"
        )
    digest, _, body = rest.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise DataError(
            f"the checkpoint is damaged or cut short: its digest is not that of its content; {ANEW}"
        )
    line, _, numbers = body.partition(b"\n")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        raise malformed("the header", line[:20], "JSON") from None
    if not isinstance(header, dict):
        raise malformed("the header", header, "an object")
    if len(numbers) % 8:
        raise malformed("the numbers", f"{len(numbers)} bytes", "a multiple of 8")
    return header, np.frombuffer(numbers, dtype="<f8").astype(np.float64)


def malformed(where: str, found: Any, expected: str) -> DataError:
    """The error about a whole checkpoint that does not say what one of this climb says."""
    shown = found if isinstance(found, str) else repr(found)
    return DataError(f"the checkpoint is malformed: {where}: found {shown[:60]}, expected {expected}; {ANEW}")
