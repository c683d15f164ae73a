"""Sums of arrays that come batch by batch: exact for integers, and to twice the precision of a double for floats.

A float sum is kept as hi + lo, where lo is what rounding took from hi (Knuth 1969, 4.2.2, TwoSum; the sum of two such
pairs after Dekker 1971). Its relative error is about n · 2⁻¹⁰⁴, so what comes out does not depend, to the last bit or
two, on how the rows were cut into batches, nor on the order in which the batches came.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray


class RunningSum:
    """The sums so far, one per array of a batch's result.

    >>> total = RunningSum([np.array([1e16]), np.array([1])])
    >>> for _ in range(10):
    ...     total.add([np.array([0.1]), np.array([2])])
    >>> total.add([np.array([-1e16]), np.array([0])])
    >>> total.result()
    [array([1.]), array([21])]
    """

    __slots__ = ("high", "low")

    def __init__(self, arrays: Iterable[Any] = ()) -> None:
        self.high: list[NDArray[Any]] = []
        self.low: list[NDArray[np.float64] | None] = []
        self.add(arrays)

    def add(self, arrays: Iterable[Any]) -> None:
        """Add the result of one more batch."""
        listed = [np.asarray(array) for array in arrays]
        if not self.high:
            self.high = [np.array(array) for array in listed]
            self.low = [np.zeros(array.shape) if array.dtype.kind == "f" else None for array in listed]
            return
        for k, array in enumerate(listed):
            self._add(k, array)

    def merge(self, other: RunningSum) -> RunningSum:
        """Add the sums of other batches; itself."""
        if not self.high:
            self.high, self.low = (
                [a.copy() for a in other.high],
                [a if a is None else a.copy() for a in other.low],
            )
            return self
        for k, (high, low) in enumerate(zip(other.high, other.low, strict=True)):
            self._add(k, high)
            if low is not None:
                self._add(k, low)
        return self

    def _add(self, k: int, array: NDArray[Any]) -> None:
        """hi ← hi + array, and what that rounds off to lo."""
        low = self.low[k]
        if low is None:
            self.high[k] += array
            return
        old = self.high[k]
        with np.errstate(invalid="ignore"):  # ∞ − ∞, which `result` does not look at
            new = old + array
            part = new - old
            low += (old - (new - part)) + (array - part)
        self.high[k] = new

    def __sizeof__(self) -> int:
        """The bytes of the arrays, by which a cluster decides where to add sums up."""
        arrays = [array for array in (*self.high, *self.low) if array is not None]
        return object.__sizeof__(self) + sum(array.nbytes for array in arrays)

    def result(self) -> list[NDArray[Any]]:
        """The sums, rounded once."""
        return [
            high if low is None else np.where(np.isfinite(high), high + low, high)
            for high, low in zip(self.high, self.low, strict=True)
        ]


class Adding(Protocol):
    """A result for one batch that adds up with the result for the next."""

    def merge(self, other: Self) -> Self:
        """The result for both."""


T = TypeVar("T", bound=Adding)


def merged(found: Iterable[T]) -> T | None:
    """The sum of the results, or None if there are none."""
    total: T | None = None
    for one in found:
        total = one if total is None else total.merge(one)
    return total
