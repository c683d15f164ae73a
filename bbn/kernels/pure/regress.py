"""What regressions on some columns leave of another's sum of squares, from one scatter matrix, in numpy.

A family is its columns, the child last: Gaussian elimination of the others, one after the other, leaves the residual
sum of squares of the child. A column that those before it determine, so that no more than `collinear` of its own sum of
squares is left, is skipped.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_ints, check_numbers, check_offsets, check_range
from bbn.kernels.contracts.types import Floats, Ints


def check_regressions(scatter: Floats, *columns: Ints) -> None:
    """TypeError or ValueError unless scatter is a square matrix, and these are columns of it."""
    check_doubles(scatter)
    check_numbers("f", 2, scatter)
    if scatter.shape[0] != scatter.shape[1]:
        raise ValueError(f"scatter: expected a square matrix, found one of shape {scatter.shape}")
    for listed in columns:
        check_ints(listed)
        check_numbers("i", 1, listed)
        check_range(listed, 0, len(scatter), "columns")


def residuals(scatter: Floats, columns: Ints, ptr: Ints, collinear: float) -> Floats:
    """What is left of the last column of each family, ``columns[ptr[f]:ptr[f + 1]]``, each of at least one column.

    Parameters
    ----------
    scatter : float64 array (n, n)
    columns : int64 array
    ptr : int64 array (families + 1,)
    collinear : float

    Returns
    -------
    float64 array (families,), none below 0.
    """
    check_regressions(scatter, columns)
    check_ints(ptr)
    check_numbers("i", 1, ptr)
    check_offsets(ptr, len(columns), "ptr")
    if (np.diff(ptr) < 1).any():
        raise ValueError("ptr: expected families of at least one column")
    families = (columns[first:last] for first, last in pairwise(ptr.tolist()))
    return np.array([_residual(scatter[np.ix_(family, family)], collinear) for family in families])


def residuals_around(
    scatter: Floats, child: int, own: tuple[int, ...], add: list[int], delete: list[int], collinear: float
) -> Floats:
    """What is left of a child's sum of squares by parents `own` and one of `add`, by `own` less one, and by `own`.

    Parameters
    ----------
    scatter : float64 array (n, n)
        Sums of products of deviations from the means.
    child, own, add, delete
        Variables: the child, its parents, further parents, and some of its parents.
    collinear
        A parent of which those before it leave less than this share is determined by them, and adds nothing.

    Returns
    -------
    array
        One number for each of `add`, then one for each of `delete`, then one for `own`.
    """
    check_regressions(scatter)
    n = len(scatter)
    if not all(0 <= v < n for v in (child, *own, *add)) or not set(delete) <= set(own):
        raise ValueError(f"expected variables from 0 to {n - 1}, found {(child, own, add, delete)}")
    families = [
        *((*own, z, child) for z in add),
        *((*(p for p in own if p != z), child) for z in delete),
        (*own, child),
    ]
    return np.array([_residual(scatter[np.ix_(family, family)], collinear) for family in families])


def _residual(a: Floats, collinear: float) -> float:
    """What the other columns leave of the last one's sum of squares, by elimination."""
    whole = a.diagonal().copy()
    for k in range(len(a) - 1):
        if a[k, k] > collinear * whole[k]:
            a[k + 1 :, k + 1 :] -= np.outer(a[k, k + 1 :] / a[k, k], a[k, k + 1 :])
    return max(float(a[-1, -1]), 0.0)
