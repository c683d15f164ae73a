"""Checkpoints of a climb: written to a file of its own beside the old one, then put in its place in one move."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bbn.atomic import replacing
from bbn.errors import CheckpointWarning, DataError
from bbn.frozen import Array

EVERY = 5.0
"""Seconds between checkpoints; where a climb ends is always written."""
STEPS = 10
"""Steps after which one is written however little time they took."""


class Trace(NamedTuple):
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

    def on(self, point: Any, memory: Array | None) -> Trace:
        """The trace with one more point."""
        return Trace(
            point.tables,
            memory,
            (*self.log_likelihoods, point.log_likelihood),
            (*self.objectives, point.objective),
        )


class Checkpoint:
    """What was saved, and the way to save more; without a path it holds nothing and saves nothing.

    Attributes
    ----------
    traces
        The climbs that were saved, one per start.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.traces: list[Trace] = []
        self._written = time.monotonic()
        self._skipped = 0
        self._warned = False
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def _load(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(str(arrays["header"]))
        except (ValueError, KeyError, OSError) as error:
            raise DataError(f"{path} is not a checkpoint: {error}") from error
        if header["fingerprint"] != self.fingerprint:
            raise DataError(
                f"the checkpoint {path} belongs to another structure, prior, method or seed; remove it to start anew"
            )
        for k, reason in enumerate(header["reasons"]):
            self.traces.append(
                Trace(
                    arrays[f"tables {k}"],
                    arrays.get(f"memory {k}"),
                    tuple(arrays[f"log_likelihoods {k}"].tolist()),
                    tuple(arrays[f"objectives {k}"].tolist()),
                    reason,
                )
            )

    def save(self, traces: Sequence[Trace], now: bool = False) -> None:
        """Write the climbs, if it is time again."""
        if self.path is None:
            return
        self._skipped += 1
        if not now and self._skipped < STEPS and time.monotonic() - self._written < EVERY:
            return
        self._written, self._skipped = time.monotonic(), 0
        header = {"fingerprint": self.fingerprint, "reasons": [trace.reason for trace in traces]}
        arrays: dict[str, Any] = {"header": np.array(json.dumps(header))}
        for k, trace in enumerate(traces):
            arrays[f"tables {k}"] = trace.tables
            arrays[f"log_likelihoods {k}"] = np.array(trace.log_likelihoods)
            arrays[f"objectives {k}"] = np.array(trace.objectives)
            if trace.memory is not None:
                arrays[f"memory {k}"] = trace.memory
        try:
            with replacing(self.path) as file:
                np.savez(file, **arrays)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise  # a path that was never right
        except OSError as error:  # a full disk: what is on it stays, and the climb goes on
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"the checkpoint {self.path} could not be written ({error.strerror or error}); the run goes on, "
                    "and the last checkpoint that was written is still there",
                    CheckpointWarning,
                    stacklevel=2,
                )
