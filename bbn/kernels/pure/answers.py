"""Answers at little cost: findings to codes, and one value for each variable of a question.

What is asked again and again with other values costs little to compute, so taking the evidence in and handing the
answers out must cost little too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bbn.kernels.contracts.types import Floats, Ints, Reader

Labelled = tuple[str, int, tuple[Any, ...]]
"""The name of a variable, its number, and its states."""
Place = tuple[Any, int, int]
"""What a value is about, and where its numbers start and stop."""


def read_codes(readers: tuple[Reader, ...], findings: dict[str, Any]) -> list[tuple[int, int]] | None:
    """(variable, code) of each finding, read by the reader at its place; None where one is not a state.

    >>> read_codes(((7, str, {"yes": 0, "no": 1}),), {"Storm": "no"})
    [(7, 1)]
    """
    if len(readers) != len(findings):
        return None
    pairs = []
    for (number, kind, codes), finding in zip(readers, findings.values(), strict=True):
        code = codes.get(finding) if type(finding) is kind else None
        if code is None:
            return None
        pairs.append((number, code))
    return pairs


def label(places: tuple[Labelled, ...], codes: Ints) -> dict[str, Any]:
    """Name to state of each variable, given the codes of all.

    >>> import numpy as np
    >>> label((("Storm", 1, ("yes", "no")),), np.array([5, 1]))
    {'Storm': 'no'}
    """
    return {name: states[codes[number]] for name, number, states in places}


class Maker:
    """Makes values of one class, which has the slots `variables`, `values`, `log_evidence` and `sampling`.

    Slots are set by their descriptors: the class may refuse `setattr`, and its `__init__` is not called.

    Parameters
    ----------
    kind
        The class.
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._put = tuple(
            getattr(kind, slot).__set__ for slot in ("variables", "values", "log_evidence", "sampling")
        )

    def one(self, variables: Any, values: Floats, log_evidence: float) -> Any:
        """A value with these numbers, which become read-only."""
        values.flags.writeable = False
        made = self.kind.__new__(self.kind)
        for put, item in zip(self._put, (variables, values, log_evidence, None), strict=True):
            put(made, item)
        return made

    def view(self, place: Place, flat: Floats, log_evidence: float) -> Any:
        """A value whose numbers are ``flat[place[1]:place[2]]``; its one variable is place[0]."""
        variable, start, stop = place
        if not 0 <= start <= stop <= len(flat):
            raise ValueError(f"no cells from {start} to {stop} in {len(flat)}")
        return self.one((variable,), flat[start:stop], log_evidence)

    def each(self, places: Iterable[Place], flat: Floats, log_evidence: float) -> Iterator[Any]:
        """An iterator over the views of these places."""
        return (self.view(place, flat, log_evidence) for place in places)
