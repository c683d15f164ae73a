"""Methods that rooms above answer: a class below names them, and each is imported when it is first looked up.

Imports point down, and yet a model has methods such as `net.query`. Their text and signature are where the work is
done, in a class of the room that does it; type checkers and editors see that class as a base. What runs in its place
is made here: a class with a `LateMethod` for each name, which gives way to the method itself at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateMethod:
    """A method of a class that is not imported yet.

    Parameters
    ----------
    home : str
        The class that has the method, as "module:class".
    """

    def __init__(self, home: str) -> None:
        self.home = home

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    @property
    def __func__(self) -> Any:
        """The method itself, in place of this from now on."""
        module, kind = self.home.split(":")
        method = vars(getattr(import_module(module), kind))[self.name]
        setattr(self.owner, self.name, method)
        return method

    def __get__(self, value: object, kind: type | None = None) -> Any:
        return self.__func__.__get__(value, kind)


def answered_by(home: str, *names: str) -> Any:
    """A base class whose methods of these names are those of another class, imported when first looked up.

    Parameters
    ----------
    home : str
        The class, as "module:class"; a room above.
    *names : str
        Its methods.

    >>> Rounded = answered_by("fractions:Fraction", "limit_denominator")
    >>> Rounded.limit_denominator.__qualname__
    'Fraction.limit_denominator'
    """
    return type(home.partition(":")[2], (), {"__slots__": (), **{name: LateMethod(home) for name in names}})
