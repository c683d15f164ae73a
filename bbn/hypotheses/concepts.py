"""Conjunctions of attribute values, the concepts of Mitchell's chapter 2, and FIND-S.

A conjunction gives each attribute one value, or "?" for any; the empty concept holds of nothing. FIND-S walks from
the most specific hypothesis up. Under a prior that favours the specific it is a MAP learner: its output is the one
most specific member of the version space (Mitchell 1997, sections 2.4 and 6.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from bbn.hypotheses.likelihoods import pairs
from bbn.model.variable import State, Variable

ANY = "?"
"""The constraint that every value meets."""


@dataclass(frozen=True)
class Conjunction:
    """A concept that holds where each attribute has the value asked for.

    Parameters
    ----------
    constraints
        One value or `ANY` per attribute; None for the concept that holds of nothing.

    >>> warm = Conjunction(("sunny", "warm", ANY))
    >>> warm(("sunny", "warm", "high")), warm(("rainy", "warm", "high")), str(warm)
    (True, False, '<sunny, warm, ?>')
    """

    constraints: tuple[State, ...] | None

    def __call__(self, instance: Any) -> bool:
        """Whether the concept holds of an instance: its values in order, or a mapping from attribute to value."""
        if self.constraints is None:
            return False
        values = tuple(instance.values()) if isinstance(instance, Mapping) else tuple(instance)
        return all(c in (ANY, value) for c, value in zip(self.constraints, values, strict=True))

    @property
    def generality(self) -> int:
        """The number of attributes left open; −1 for the empty concept."""
        return -1 if self.constraints is None else self.constraints.count(ANY)

    def __str__(self) -> str:
        return "<nothing>" if self.constraints is None else f"<{', '.join(map(str, self.constraints))}>"


def conjunctions(attributes: Iterable[Variable]) -> Iterator[Conjunction]:
    """Every conjunction over these attributes, from the empty concept on; no two mean the same.

    >>> rain, wind = Variable("Rain", ["yes", "no"]), Variable("Wind", ["weak", "strong"])
    >>> len(list(conjunctions([rain, wind])))
    10
    """
    yield Conjunction(None)
    for constraints in product(*((*attribute.states, ANY) for attribute in attributes)):
        yield Conjunction(constraints)


def find_s(examples: Iterable[Any]) -> Conjunction:
    """The most specific conjunction that holds of every positive example (Mitchell 1997, table 2.3).

    Parameters
    ----------
    examples
        Pairs (instance, True or False). Negative examples are passed over.

    >>> str(find_s([(("sunny", "warm"), True), (("rainy", "cold"), False), (("sunny", "cold"), True)]))
    '<sunny, ?>'
    """
    constraints: tuple[State, ...] | None = None
    for instance, label in zip(*pairs(examples), strict=True):
        if label:
            values = tuple(instance.values()) if isinstance(instance, Mapping) else tuple(instance)
            if constraints is None:
                constraints = values
            constraints = tuple(c if c == v else ANY for c, v in zip(constraints, values, strict=True))
    return Conjunction(constraints)
