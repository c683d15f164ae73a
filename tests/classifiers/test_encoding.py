"""Columns as codes: a matrix of whole numbers is read in blocks, which nothing but the memory can tell."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from bbn.classifiers import encoding
from bbn.classifiers.encoding import Encoder
from bbn.kernels.watch import Stopped, watched_by
from tests.learning.structure.test_stopped_searches import StopAt

NAMES = ["A", "B", "C"]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 4, 40, 41])
def test_a_matrix_has_the_codes_of_its_columns(monkeypatch, dtype, n):
    monkeypatch.setattr(encoding, "BLOCK", 4)
    rng = np.random.default_rng(n)
    seen = rng.integers(0, 9, (n, 3)).astype(dtype)
    asked = rng.integers(0, 12, (7, 3)).astype(dtype)
    encoder = Encoder.learn(seen, NAMES)
    for j, (variable, codes) in enumerate(zip(encoder.variables, encoder.codes(asked), strict=True)):
        states = sorted(set(seen[:, j].astype(int).tolist()))
        assert variable.states == tuple(states)
        assert codes.tolist() == [states.index(v) if v in states else len(states) for v in asked[:, j]]


def test_a_fraction_in_a_later_block_is_seen(monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK", 4)
    table = np.arange(30.0).reshape(10, 3)
    table[9, 1] = 28.5
    cuts = [v.states for v in Encoder.learn(table, NAMES).variables]
    assert cuts == [v.states for v in Encoder.learn(pd.DataFrame(table), NAMES).variables]
    assert cuts[1] != tuple(range(1, 29, 3))


def test_a_large_matrix_of_small_numbers_is_not_copied_whole_and_can_be_stopped():
    table = np.asfortranarray(np.random.default_rng(0).integers(0, 3, (1_000_000, 10), dtype=np.int8))
    names = [f"V{i}" for i in range(10)]
    tracemalloc.start()
    try:
        codes = Encoder.learn(table, names).codes(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [column.tolist() for column in codes] == table.T.tolist()
    # the codes themselves, and a block; 64 bits for each number would be eight times
    assert peak < 4 * table.nbytes
    with pytest.raises(Stopped), watched_by(StopAt(3, Stopped())):
        Encoder.learn(table, names)


@pytest.mark.parametrize("dtype", [object, str])
def test_a_matrix_of_anything_has_the_codes_of_its_columns_too(dtype):
    """Whatever numpy calls them, values are looked up as those of a list are."""
    numbers = np.random.default_rng(0).integers(0, 3, size=(40, 2))
    encoder = Encoder.learn(numbers, ["a", "b"])
    asked = numbers.astype(dtype)
    listed = [encoder.columns[k].codes(asked[:, k].tolist()) for k in range(2)]
    for found, expected in zip(encoder.codes(asked), listed, strict=True):
        assert found.tolist() == expected.tolist()
