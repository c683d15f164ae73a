"""Conditioning numbers that are linear functions of independent standard normal noises: x = μ + L ε.

Observing x_O turns, with L_Oᵀ = Q R (Golub and Van Loan 2013, section 5.2), into Q₁ᵀε = z = R⁻ᵀ(x_O − μ_O), which has
density N(z; 0, I)/|R|, while Q₂ᵀε stays standard normal. Variances are sums of squares, not differences, so a prior of
variance 1e8 beside a sensor of variance 1e-6 costs half of the digits that a subtraction of covariances would. Noises
are sorted by size first, since Householder's method is then stable row by row (Cox and Higham 1998).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array


class Rotation(NamedTuple):
    """The noises turned, so that the first of them are what was observed; leading axes are settings."""

    turn: Array
    """Q, (…, noises, noises): ε = Q u, where u begins with z."""
    triangle: Array
    """R, (…, min(noises, numbers), numbers), its diagonal not negative."""


def rotated(root: Array) -> Rotation:
    """The rotation for the numbers with this root L, (…, numbers, noises), in their order."""
    sides = root.swapaxes(-1, -2)
    order = np.argsort(-np.abs(sides).max(axis=-1, initial=0.0), axis=-1, kind="stable")[..., None]
    sorted_turn, triangle = np.linalg.qr(np.take_along_axis(sides, order, axis=-2), mode="complete")
    turn = np.empty_like(sorted_turn)
    np.put_along_axis(turn, order, sorted_turn, axis=-2)
    n = min(sides.shape[-2:])
    sign = np.where(np.diagonal(triangle, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    turn[..., :n] *= sign[..., None, :]
    return Rotation(turn, triangle[..., :n, :] * sign[..., None])


def solved(triangle: Array, apart: Array) -> Array:
    """z = R⁻ᵀ(x_O − μ_O), (rows, …, observed), for R, (…, observed, observed), and `apart`, as z."""
    z = np.empty(apart.shape)
    for k in range(apart.shape[-1]):  # forward substitution
        late = np.einsum("...j,...j->...", triangle[..., :k, k], z[..., :k]) if k else 0.0
        np.divide(apart[..., k] - late, triangle[..., k, k], out=z[..., k])
    return z
