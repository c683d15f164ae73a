"""Frozen: the base of every value here. Attributes are set once, by the constructor, and never again.

Equality, the hash and pickling follow from the slots, so a class lists its attributes once. Arrays compare by content,
and are read-only again after unpickling.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Frozen:
    """A value whose attributes cannot be set or deleted; a change is a new value.

    Class keywords
    --------------
    compared
        The slots that equality and the hash look at; all but the cached ones unless given.
    cached
        Slots that only save work: neither compared nor pickled, and None after unpickling. One called `_hash` holds the
        hash once it has been asked for.
    like
        A base class whose values this class's may equal; they are then compared as values of that class.

    >>> class Point(Frozen):
    ...     __slots__ = ("x", "y")
    ...
    ...     def __init__(self, x, y):
    ...         self._set(x=x, y=y)
    >>> Point(1, np.array([2.0])) == Point(1, np.array([2.0])), Point(1, 2) == Point(2, 1)
    (True, False)
    """

    __slots__ = ()

    _kept: ClassVar[tuple[str, ...]] = ()
    _cached: ClassVar[tuple[str, ...]] = ()
    _compared: ClassVar[tuple[str, ...]] = ()
    _like: ClassVar[type[Frozen]]

    def __init_subclass__(
        cls,
        *,
        compared: tuple[str, ...] | None = None,
        cached: tuple[str, ...] = (),
        like: type[Frozen] | None = None,
        **others: Any,
    ) -> None:
        super().__init_subclass__(**others)
        cls._cached = (*cls._cached, *cached)
        own = tuple(slot for slot in cls.__dict__.get("__slots__", ()) if slot not in cls._cached)
        cls._kept = (*cls._kept, *own)
        cls._compared = (*cls._compared, *own) if compared is None else compared
        cls._like = cls if like is None else like

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__name__} is frozen: {name!r} cannot be set; make a new one instead"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen: {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Frozen) or type(other)._like is not type(self)._like:
            return NotImplemented
        return all(_same(getattr(self, slot), getattr(other, slot)) for slot in self._like._compared)

    def __hash__(self) -> int:
        known: int | None = getattr(self, "_hash", None)
        if known is not None:
            return known
        like = self._like
        found = hash((like.__qualname__, *(_hashable(getattr(self, slot)) for slot in like._compared)))
        if "_hash" in self._cached:
            self._set(_hash=found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), tuple(getattr(self, slot) for slot in self._kept))

    def _set(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)


def _same(a: Any, b: Any) -> bool:
    """Whether two attributes are equal, arrays and what holds them by content."""
    if a is b:
        return True
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if type(a) in (tuple, list) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _hashable(value: Any) -> Any:
    """Something that can be hashed, the same for equal values."""
    if isinstance(value, np.ndarray):
        return (value + 0.0 if value.dtype.kind == "f" else value).tobytes()  # -0.0 and 0.0 are equal
    if isinstance(value, dict):
        return frozenset((key, _hashable(one)) for key, one in value.items())
    if isinstance(value, tuple | list):
        return tuple(map(_hashable, value))
    return value if type(value).__hash__ is not None else type(value).__qualname__


def _restored(cls: type[Frozen], values: tuple[Any, ...]) -> Frozen:
    """An unpickled value."""
    value = cls.__new__(cls)
    for array in values:
        _freeze(array)
    value._set(**dict.fromkeys(cls._cached), **dict(zip(cls._kept, values, strict=True)))
    return value


def _freeze(value: Any) -> None:
    """Mark arrays read-only, those in containers too."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, dict | tuple | list):
        for one in value.values() if isinstance(value, dict) else value:
            _freeze(one)


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
