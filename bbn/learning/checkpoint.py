"""Checkpoints of a climb: written to a file of its own beside the old one, then put in its place in one move."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bbn.errors import DataError

EVERY = 5.0
"""Seconds between checkpoints; the last state of each start is always written."""
STEPS = 10
"""Steps after which one is written however little time they took."""


class Checkpoint:
    """What was saved, and the way to save more; without a path it holds nothing and saves nothing.

    Attributes
    ----------
    restart
        The start that was being climbed from.
    finals
        The last objective of each start that was done.
    best, current
        The best start's state so far, and that of the start in hand, as dicts, or None.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.fingerprint = fingerprint
        self.restart = 0
        self.finals: list[float] = []
        self.best: dict[str, Any] | None = None
        self.current: dict[str, Any] | None = None
        self._written = time.monotonic()
        self._skipped = 0
        if self.path is not None and self.path.exists():
            self._load(self.path)

    def _load(self, path: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
            header = json.loads(str(arrays.pop("header")))
        except (ValueError, KeyError, OSError) as error:
            raise DataError(f"{path} is not a checkpoint: {error}") from error
        if header["fingerprint"] != self.fingerprint:
            raise DataError(
                f"the checkpoint {path} belongs to another structure, prior, method or seed; remove it to start anew"
            )
        self.restart = header["restart"]
        self.finals = header["finals"]
        self.best = _unpack(arrays, "best", header["reason"])
        self.current = _unpack(arrays, "current", "")

    def save(self, restart: int, finals: list[float], best: dict[str, Any] | None, run: Any) -> None:
        """Write the state of the search: `run` is the climb in hand, or None between two."""
        if self.path is None:
            return
        self._skipped += 1
        if run is not None and self._skipped < STEPS and time.monotonic() - self._written < EVERY:
            return
        self._written, self._skipped = time.monotonic(), 0
        arrays: dict[str, Any] = {}
        _pack(arrays, "best", best)
        _pack(arrays, "current", run.state() if run is not None else None)
        header = {
            "fingerprint": self.fingerprint,
            "restart": restart,
            "finals": finals,
            "reason": best["reason"] if best else "",
        }
        arrays["header"] = np.array(json.dumps(header))
        write_atomically(self.path, arrays)


def write_atomically(path: Path, arrays: dict[str, Any]) -> None:
    """Write an archive of arrays so that, whatever happens, the path holds either the old one or the new one."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or Path())
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _pack(arrays: dict[str, Any], prefix: str, state: dict[str, Any] | None) -> None:
    for key, value in (state or {}).items():
        if isinstance(value, np.ndarray):
            arrays[f"{prefix}.{key}"] = value


def _unpack(arrays: dict[str, Any], prefix: str, reason: str) -> dict[str, Any] | None:
    state = {key.partition(".")[2]: value for key, value in arrays.items() if key.startswith(f"{prefix}.")}
    if not state:
        return None
    return {"memory": None, **state, "reason": reason}
