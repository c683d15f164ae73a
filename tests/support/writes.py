"""Every way in which the library writes a file or a folder, for the tests of what may go wrong while it does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import bbn

NET = bbn.example("alarm")
HOLES = NET.sample(40, seed=1, missing=0.2)


def climb(path: Path) -> None:
    """Two steps of EM that note how far they are at `path`."""
    path.unlink(missing_ok=True)  # a checkpoint that is there would be gone on from
    bbn.fit_em(NET, HOLES, checkpoint=path, max_iter=2, n_jobs=1, progress=False)


WRITES: dict[str, Callable[[Path], object]] = {
    "net.yaml": NET.save,
    "net.json": NET.save,
    "net.bif": NET.save,
    "net.bif.gz": NET.save,
    "net.xdsl": NET.save,
    "page.html": NET.export_html,
    "plot.svg": lambda path: NET.plot().save(path),
    "rows.csv": lambda path: NET.sample(2000, seed=1, to=path),
    "rows.csv.gz": lambda path: NET.sample(2000, seed=1, to=path),
    "rows.parquet": lambda path: NET.sample(2000, seed=1, to=path),
    "rows": lambda path: NET.sample(2000, seed=1, to=path, chunks=500),
}
"""Each takes a path and puts something there: a file, or (the last) a folder of files."""


def content(path: Path) -> dict[str, bytes]:
    """The bytes of every file at a path, by name below it."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in files}
