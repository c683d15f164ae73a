"""Frozen: the base of every value here. Attributes are set once, by the constructor, and never again."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

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
    """`values` itself, marked read-only."""
    values.flags.writeable = False
    return values
