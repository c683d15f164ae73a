"""Looking up the rows of a column, in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import check_numbers


def recode(look_up: NDArray[Any], index: NDArray[Any], inside: bool = False) -> NDArray[Any]:
    """The entry of each row; a negative index, or one past the end, is that of the last entry.

    `inside` says that there are none of these, which saves looking for them.

    >>> recode(np.array([7, 8, 9], dtype=np.uint8), np.array([1, -1, 0, 5]))
    array([8, 9, 7, 9], dtype=uint8)
    """
    check_numbers("u", 1, look_up)
    check_numbers("iu", 1, index)
    if not len(look_up):
        raise ValueError("look_up: expected at least one entry")
    if inside:
        return np.asarray(look_up[index])
    last = len(look_up) - 1
    return look_up[np.where((index < 0) | (index > last), last, index)]


def present(index: NDArray[Any], n_values: int) -> NDArray[np.bool_]:
    """Which of the values 0 to n − 1 some row has, and last whether some row has none of them.

    >>> present(np.array([1, -1, 1]), 3)
    array([False,  True, False,  True])
    """
    check_numbers("iu", 1, index)
    if n_values < 0:
        raise ValueError(f"n_values: expected 0 or more, found {n_values}")
    seen = np.zeros(n_values + 1, dtype=bool)
    seen[np.where((index < 0) | (index >= n_values), n_values, index)] = True
    return seen
