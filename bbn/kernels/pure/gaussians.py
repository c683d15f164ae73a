"""The E step of Gaussian families on a chunk of rows, in numpy: densities, responsibilities, moments.

Rows run along the last axis of every array, so that each loop of the compiled twin is over contiguous numbers. d
columns of numbers, J settings of their common parents; NaN is a missing number, which says and adds nothing.
"""

from __future__ import annotations

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_numbers, check_shape
from bbn.kernels.contracts.types import Floats


def add_log_densities(numbers: Floats, means: Floats, variances: Floats, logs: Floats) -> None:
    """Add Σ_f ln N(x_f; mean_fj, variance_fj) to ``logs[j]``.

    Parameters
    ----------
    numbers : float64 array (d, rows)
    means, variances : float64 arrays (d, J)
    logs : float64 array (J, rows)
    """
    check_doubles(numbers, means, variances, logs)
    check_numbers("f", 2, numbers, means)
    (d, n), settings = numbers.shape, means.shape[1]
    check_shape("means", means, d, settings)
    check_shape("variances", variances, d, settings)
    check_shape("logs", logs, settings, n)
    for f, column in enumerate(numbers):
        there = ~np.isnan(column)
        apart = column - means[f][:, None]
        terms = -0.5 * np.log(2 * np.pi * variances[f])[:, None] - apart**2 * (0.5 / variances[f])[:, None]
        logs[:, there] += terms[:, there]


def normalise(logs: Floats, weights: Floats, totals: Floats) -> None:
    """Turn ``logs`` into responsibilities times the row's weight, and write ln Σ_j exp of each row to ``totals``.

    Parameters
    ----------
    logs : float64 array (J, rows)
        Logarithms of joint densities; they are overwritten. A row of −inf alone becomes zeros.
    weights, totals : float64 arrays (rows,)
    """
    check_doubles(logs, weights, totals)
    check_numbers("f", 2, logs)
    settings, n = logs.shape
    check_shape("weights", weights, n)
    check_shape("totals", totals, n)
    if n == 0:
        return
    if settings == 0:
        raise ValueError("logs: expected at least one setting")
    peak = logs.max(axis=0)
    impossible = np.isneginf(peak)
    logs -= np.where(impossible, 0.0, peak)
    np.exp(logs, out=logs)
    sums = logs.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        totals[:] = peak + np.log(sums)
        logs *= np.where(impossible, 0.0, weights / sums)
    totals[impossible] = -np.inf


def add_moments(numbers: Floats, shares: Floats, means: Floats, moments: Floats) -> None:
    """Add Σ share, Σ share (x − mean) and Σ share (x − mean)² over the rows to ``moments``.

    Parameters
    ----------
    numbers : float64 array (d, rows)
    shares : float64 array (J, rows)
    means : float64 array (d, J)
    moments : float64 array (3, d, J)
    """
    check_doubles(numbers, shares, means, moments)
    check_numbers("f", 2, numbers, shares)
    (d, n), settings = numbers.shape, len(shares)
    check_shape("shares", shares, settings, n)
    check_shape("means", means, d, settings)
    check_shape("moments", moments, 3, d, settings)
    for f, column in enumerate(numbers):
        there = ~np.isnan(column)
        apart = column[there] - means[f][:, None]
        own = shares[:, there]
        moments[0, f] += own.sum(axis=1)
        moments[1, f] += (own * apart).sum(axis=1)
        moments[2, f] += (own * apart * apart).sum(axis=1)
