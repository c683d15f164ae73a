"""What regressions on some columns leave of another's sum of squares, from one scatter matrix, in numpy.

A family is its columns, the child last: Gaussian elimination of the others, one after the other, leaves the residual
sum of squares of the child. A column that those before it determine, so that no more than `collinear` of its own sum of
squares is left, is skipped.
"""

from __future__ import annotations

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
    rest = np.empty(len(ptr) - 1)
    for f, start in enumerate(ptr[:-1].tolist()):
        index = columns[start : ptr[f + 1]]
        a = scatter[np.ix_(index, index)]
        whole = a.diagonal().copy()
        for k in range(len(a) - 1):
            if a[k, k] > collinear * whole[k]:
                a[k + 1 :, k + 1 :] -= np.outer(a[k, k + 1 :] * (1.0 / a[k, k]), a[k, k + 1 :])
        rest[f] = max(a[-1, -1], 0.0)
    return rest


def with_one_more(scatter: Floats, own: Ints, child: int, add: Ints, collinear: float) -> Floats:
    """What is left of a child by the columns `own` together with each one of `add`, and, last, by `own` alone.

    Parameters
    ----------
    scatter : float64 array (n, n)
    own, add : int64 arrays
    child : int
    collinear : float

    Returns
    -------
    float64 array (len(add) + 1,), none below 0.
    """
    index = np.array([*own, *add, child], dtype=np.int64)
    check_regressions(scatter, own, add, index)
    a = scatter[np.ix_(index, index)]
    size = len(own)
    whole = a.diagonal().copy()
    for k in range(size):
        if a[k, k] > collinear * whole[k]:
            a[k + 1 :, k + 1 :] -= np.outer(a[k, k + 1 :] * (1.0 / a[k, k]), a[k, k + 1 :])
    left = a.diagonal()[size:]
    shared, own_rest = a[size:-1, -1], left[:-1]
    usable = own_rest > collinear * whole[size:-1]
    gone = np.divide(shared**2, own_rest, out=np.zeros_like(shared), where=usable)
    return np.asarray(np.maximum(np.append(left[-1] - gone, left[-1]), 0.0))
