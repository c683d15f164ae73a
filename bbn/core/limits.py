"""Limits: what an answer may take, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from bbn.core.budget import parse_bytes
from bbn.core.frozen import Frozen

PARTS = {"bytes": "memory_limit", "seconds": "time_limit"}
"""The parts of a budget that are options of engines too."""


class Budget(Frozen):
    """What an answer may take.

    Parameters
    ----------
    seconds : float, optional
        The most time; TimeLimitError beyond. As `time_limit=`.
    bytes : int, float or str, optional
        The most memory, such as ``"2 GB"``; BudgetError beyond, before the work starts. As `memory_limit=`.
    runs : float, optional
        How often the question will be asked, about: more is spent on a good plan where it will be run often.
    exact : bool, default True
        Whether the answer must be exact; nothing else is possible yet.

    Examples
    --------
    >>> import bbn
    >>> budget = bbn.Budget(seconds=10, bytes="1 GB")
    >>> round(bbn.example("asia").query("lung", {"xray": "yes"}, budget=budget)["yes"], 4)
    0.4887
    """

    __slots__ = ("bytes", "exact", "runs", "seconds")

    seconds: float | None
    bytes: int | float | str | None
    runs: float | None
    exact: bool

    def __init__(
        self,
        seconds: float | None = None,
        bytes: int | float | str | None = None,
        runs: float | None = None,
        exact: bool = True,
    ) -> None:
        for name, value in (("seconds", seconds), ("runs", runs)):
            wrong = isinstance(value, bool) or not isinstance(value, Real) or not value > 0
            if value is not None and wrong:
                raise ValueError(f"{name} is {value!r}; expected a number above 0, or None")
        if bytes is not None:
            parse_bytes(bytes, "bytes")
        if exact is not True:
            raise ValueError(f"exact is {exact!r}; expected True: answers with bounds are not there yet")
        self._set(seconds=seconds, bytes=bytes, runs=runs, exact=exact)

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in ("seconds", "bytes", "runs")}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Budget({shown})"


def spread(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with those that their budget stands for.

    >>> spread({"budget": Budget(seconds=3), "order": "auto"})
    {'budget': Budget(seconds=3), 'order': 'auto', 'time_limit': 3}
    """
    found = dict(options)
    budget = found["budget"]
    if not isinstance(budget, Budget):
        raise TypeError(f"budget is {budget!r}; expected bbn.Budget(seconds=…, bytes=…)")
    for part, option in PARTS.items():
        value = getattr(budget, part)
        if value is not None:
            if found.get(option) is not None:
                raise TypeError(f"budget= has {part} and {option}= is given too; say it once")
            found[option] = value
    return found
