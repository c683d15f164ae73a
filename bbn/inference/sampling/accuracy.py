"""How wrong a sampled answer may be: standard errors of weighted samples and of chains.

Weighted: p̂ = Σ w 1[x] / Σ w has, by the delta method, the variance Σ w² (1[x] − p̂)² / (Σ w)² (Owen 2013, equation
9.8), which takes only Σ w and Σ w² per cell; the effective sample size is (Σ w)² / Σ w² (Kong 1992).
Chains: the means of consecutive batches, with Geyer's initial positive sequence (Geyer 1992) for what correlation is
left between them, and split R-hat (Gelman et al. 2013, equation 11.4).
"""

from __future__ import annotations

import numpy as np

from bbn.core.frozen import Array

LOW_ESS = 100.0
"""An effective sample size below this is too low to trust the standard errors themselves."""
HIGH_R_HAT = 1.01
"""Chains with an R-hat above this disagree (Vehtari et al. 2021)."""


def weighted_error(values: Array, squares: Array, total: float, total_squares: float) -> Array:
    """The standard errors of the shares `values` of the total weight; `squares` holds Σ w² of each cell."""
    variance = squares * (1 - 2 * values) + values**2 * total_squares
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / total)


def unseen(std_error: Array, values: Array, ess: float) -> Array:
    """The standard errors with those of entries that were never seen, or always, raised from 0 to 1/(ess + 2).

    An entry that none of n samples showed is not known to be 0, only to be of the order of 1/n.
    """
    certain = (values <= 0) | (values >= 1) | (std_error == 0)
    return np.where(certain, np.maximum(std_error, 1 / (ess + 2)), std_error)


def chain_error(means: Array) -> Array:
    """The standard error of the mean over all of ``means[chain, batch, entry]``.

    Var = (γ_0 + 2 Σ_k γ_k) / (number of batches), the autocovariances γ_k of the batch means summed in pairs as
    long as these are positive.
    """
    n_chains, n_batches, _ = means.shape
    centred = means - means.mean(axis=(0, 1))
    dof = n_chains * n_batches / max(n_chains * n_batches - 1, 1)

    def autocovariance(lag: int) -> Array:
        return np.asarray(
            (centred[:, lag:] * centred[:, : n_batches - lag]).sum(axis=(0, 1)) / (n_chains * n_batches)
        )

    variance = autocovariance(0) * dof
    going = np.ones(means.shape[2], dtype=bool)
    for lag in range(1, n_batches - 1, 2):
        pair = autocovariance(lag) + autocovariance(lag + 1)
        going &= pair > 0
        if not going.any():
            break
        variance = variance + np.where(going, 2 * pair, 0.0)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0) / (n_chains * n_batches)))


def split_r_hat(means: Array, batch_length: int) -> Array:
    """Split R-hat of each entry of ``means[chain, batch, entry]``, the entries being shares of time (0 to 1).

    Each chain is cut in two; W, the mean variance within a half, is that of an indicator with the half's mean, and
    B/n is the variance between the halves' means: R-hat² = ((n − 1)/n W + B/n) / W.
    """
    n_chains, n_batches, n_entries = means.shape
    half = n_batches // 2
    halves = np.stack([means[:, :half].mean(axis=1), means[:, half : 2 * half].mean(axis=1)], axis=1)
    halves = halves.reshape(2 * n_chains, n_entries)
    n = half * batch_length
    within = (halves * (1 - halves)).mean(axis=0) * n / max(n - 1, 1)
    between = halves.var(axis=0, ddof=1)
    stuck = (within == 0) & (between > 0)
    ratio = np.divide(between, within, out=np.zeros(n_entries), where=within > 0)
    return np.where(stuck, np.inf, np.sqrt((n - 1) / n + np.where(within > 0, ratio, 1 / n)))
