"""Sums of logarithms, whole and by pieces."""

from __future__ import annotations

import numpy as np
import pytest

from bbn.kernels import logarithms
from bbn.kernels.logarithms import log_sum, pieces


@pytest.mark.parametrize("most", [1, 2, 5, 7, 30, 1000])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (4, 1, 5), (2, 3, 2, 4)])
def test_pieces_cover_every_cell_once(monkeypatch, most, shape):
    monkeypatch.setattr(logarithms, "PIECE", most)
    seen = np.zeros(shape, int)
    for piece in pieces(shape):
        assert seen[piece].size <= most
        seen[piece] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize("most", [1, 3, 8, 20])
@pytest.mark.parametrize("axes", [0, 1, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_sums_by_pieces_are_those_of_plain_python(monkeypatch, most, axes):
    monkeypatch.setattr(logarithms, "PIECE", most)
    values = np.random.default_rng(0).dirichlet(np.ones(4), (2, 3)) * (np.arange(24).reshape(2, 3, 4) % 5 > 0)
    values[1, :, 2] = 0.0
    with np.errstate(divide="ignore"):
        logs, expected = np.log(values), np.log(values.sum(axis=axes))
    np.testing.assert_allclose(log_sum(logs, axes), expected, rtol=1e-13)
    np.testing.assert_allclose(log_sum(logs - 5000.0, axes), expected - 5000.0, rtol=1e-13)
