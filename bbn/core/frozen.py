"""Frozen: the base of every value here. Attributes are set once, by the constructor, and never again."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Frozen:
    """A value whose attributes cannot be set or deleted; a change is a new value."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name!r} cannot be set; make a new one instead"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be deleted")

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def read_only(values: Array) -> Array:
    """`values` in C order, itself if it is already, marked read-only."""
    values = np.asarray(values, order="C")
    values.flags.writeable = False
    return values


def numbers(values: ArrayLike) -> Array:
    """`values` as a new array of doubles in C order; TypeError or ValueError if they are not real numbers."""
    if np.ma.is_masked(values):
        raise ValueError("expected real numbers, found masked ones")
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError(f"expected real numbers, found {array.dtype.name}")
    return np.array(array, dtype=np.float64, order="C")
