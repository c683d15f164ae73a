"""Squared extrapolation of EM, scheme S3 of Varadhan and Roland (2008)."""

from __future__ import annotations

from math import inf

import numpy as np

from bbn.core.frozen import Array


def extrapolated(start: Array, once: Array, twice: Array, most: float = inf) -> tuple[Array, float]:
    """The point that two steps of EM point to, and how many steps from `start` it lies.

    With r = once − start and v = (twice − once) − r it is start + 2 s r + s² v, where s = |r| / |v|, kept between 1 and
    `most`; s = 1 gives `twice` itself.

    >>> extrapolated(np.array([0.0]), np.array([0.5]), np.array([0.75]))  # halfway to 1 with each step
    (array([1.]), 2.0)
    """
    r = once - start
    v = (twice - once) - r
    size = float(np.linalg.norm(v))
    s = min(max(1.0, float(np.linalg.norm(r)) / size), most) if size > 0 else 1.0
    return start + 2 * s * r + s * s * v, s
