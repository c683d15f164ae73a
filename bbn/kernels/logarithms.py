"""Sums of numbers given by their logarithms."""

from __future__ import annotations

import numpy as np

from bbn.kernels.contracts.types import Floats


def log_sum(logs: Floats, axes: tuple[int, ...] | int = 0) -> Floats:
    """ln Σ exp over these axes; -inf where all are."""
    highest = logs.max(axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        shares = np.asarray(logs - highest)
        np.exp(shares, out=shares)
        return np.asarray(np.log(shares.sum(axis=axes)) + highest.squeeze(axes))
