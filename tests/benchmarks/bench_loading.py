"""Reading the 24 standard BIF files, against pyAgrum and pgmpy, and writing them."""

from __future__ import annotations

import gzip
import logging
import math
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import bbn
from bbn.io import dumps
from tests.benchmarks.harness import Figure, Row, timed

TITLE = "Reading and writing files"
NOTES = """
Each row reads and checks one of the repository's BIF files, from the disk to a network. pyAgrum keeps single
precision and cannot read child. pgmpy builds its grammar anew for each file, which takes about a second, and needs
minutes for large files; so its time is the best of three reads after a warm-up, for files of up to 70 kB only.
Writing is `dumps`, against reading the same text.
"""
PYAGRUM_FAILS = {"child"}
SLOW_IN_PGMPY = 70_000  # bytes


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    import pyagrum
    from pgmpy.readwrite import BIFReader

    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        for path in unpacked(Path(folder)):
            name, file = path.stem, str(path)
            if name not in PYAGRUM_FAILS:
                yield Row(
                    f"read {name}.bif",
                    {
                        "bbn": lambda file=file: bbn.load(file),
                        "pyAgrum": {"loadBN": lambda file=file: pyagrum.loadBN(file)},
                    },
                    lambda file=file: check(bbn.load(file), bbn.from_pyagrum(pyagrum.loadBN(file)), 1e-6),
                    target=1.0,
                    seconds=2.0,
                )
            if path.stat().st_size < SLOW_IN_PGMPY:
                ours = min(timed(lambda file=file: bbn.load(file)) for _ in range(20))
                BIFReader(file).get_model()  # what it imports and keeps is not counted
                theirs = min(timed(lambda file=file: BIFReader(file).get_model()) for _ in range(3))
                value = f"{theirs:.2g} s, {theirs / ours:.3g}x"
                yield Figure(f"read {name}.bif, pgmpy's BIFReader against ours", value, "20x")
            network = bbn.load(file)
            path.write_text(dumps(network, "bif"))
            yield Row(
                f"write {name}.bif (against reading it)",
                {
                    "bbn": lambda network=network: dumps(network, "bif"),
                    "bbn reads": lambda file=file: bbn.load(file),
                },
                lambda file=file, network=network: check(bbn.load(file), network, 0.0),
                target=1.0,
                seconds=1.0,
            )


def unpacked(folder: Path) -> Iterator[Path]:
    """The repository's files, smallest first, as pgmpy ships them."""
    spec = find_spec("pgmpy")
    assert spec is not None
    assert spec.origin is not None
    packed = (Path(spec.origin).parent / "utils/example_models").glob("*.bif.gz")
    texts = {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in packed}
    for name, text in sorted(texts.items(), key=lambda item: len(item[1])):
        path = folder / name
        path.write_bytes(text)
        yield path


def check(ours: bbn.BayesianNetwork, theirs: bbn.BayesianNetwork, tolerance: float) -> None:
    """Both read the same network, up to the order of parents and rounding."""
    assert set(ours.names) == set(theirs.names)
    for name in ours.names:
        order = [theirs.parents(name).index(parent) for parent in ours.parents(name)]
        table = theirs[name].table.transpose([*order, len(order)])
        assert math.isclose(float(np.abs(table - ours[name].table).max()), 0.0, abs_tol=tolerance)
