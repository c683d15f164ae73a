"""Broken and malicious files: a network or a ParseError, in bounded time and memory, never anything else.

`make fuzz` does the same for longer.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import bbn
from bbn import kernels
from bbn.io import FORMATS, dumps
from bbn.io.formats import bif
from bbn.io.source_text import Source
from tests.fuzz import fuzz, mutated, outcome, seeds

FILES = 400


@pytest.mark.parametrize("format", [format.name for format in FORMATS])
def test_mutated_files(format):
    counts = fuzz(format, seed=0, enough=lambda done: done >= FILES)
    assert counts["error"] > FILES // 4  # the mutations do break files
    assert counts["network"] > 0  # and leave some whole


def test_the_bif_kernel_and_the_general_reader_agree_on_mutated_files():
    rng = random.Random(0)
    starts = [dumps(bbn.example(name), "bif").encode() for name in ("asia", "survey", "child")]
    scanned = 0
    for _ in range(600):
        data = mutated(rng, rng.choice(starts), starts)
        scanned += kernels.bif.scan(data) is not None
        assert _outcome(bif.read, data) == _outcome(_general, data)
    assert scanned > 20 or not kernels.COMPILED  # the kernel did take some of them


def _general(source):
    return bif._BifReader(source).network(strict=False)


def _outcome(read, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return read(Source(data))
        except bbn.ParseError as error:
            return str(error)


@pytest.mark.parametrize("format", [format.name for format in FORMATS])
def test_every_truncation(format):
    data = min(seeds(format), key=len)
    for end in range(0, len(data), max(1, len(data) // 200)):
        outcome(data[:end], format)


@pytest.mark.parametrize("format", [format.name for format in FORMATS])
def test_files_of_other_formats(format):
    for other in FORMATS:
        if other.name != format:
            for data in seeds(other.name):
                assert outcome(data, format) == "error" or {format, other.name} == {"yaml", "json"}


@pytest.mark.slow
def test_nasty_files_within_time_and_memory():
    """In a process of its own, so that its peak of memory is theirs; the limit on files is then 25 MB."""
    code = "from tests.fuzz import nasty; nasty()"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, timeout=300)


def test_a_number_of_a_gigabyte_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.bif"
    with path.open("wb") as file:
        file.write(b"variable a { type discrete [ 2 ] { x, y }; } probability (a) { table 0.1")
        file.truncate(2**30 + 1)  # a sparse file: it takes no room on the disk
    start = time.perf_counter()
    with pytest.raises(bbn.ParseError, match="limit") as caught:
        bbn.load(path)
    assert isinstance(caught.value, bbn.BudgetError)
    assert time.perf_counter() - start < 1
