"""Tables of numbers between words and arrays, in bulk: each different number of a file is converted once.

The tables of real networks repeat themselves (diabetes has 460,080 entries and 614 different ones), so a
dictionary is several times faster than converting every word, and costs little where they do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf

import numpy as np

from bbn.budget import require_table
from bbn.cpt import CPT
from bbn.errors import BudgetError, ModelError
from bbn.frozen import Array
from bbn.io.build import Where
from bbn.io.text import OversizedFileError, Source
from bbn.network import BayesianNetwork

_NUMBER = r"[+-]?(?:[0-9]{1,400}+(?:\.[0-9]{0,400}+)?|\.[0-9]{1,400}+)(?:[eE][+-]?[0-9]{1,20}+)?"
_NUMBERS = re.compile(rf"(?:{_NUMBER}\ )*+")


class BadNumberError(ValueError):
    """A `word` that is not a probability; `found` shows it."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word
        self.found = repr(word if len(word) <= 40 else word[:40] + "…")


class Numbers:
    """Words to numbers, for one file.

    >>> Numbers().floats(["0.25", "7.5e-1"])
    [0.25, 0.75]
    """

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def floats(self, words: Sequence[str]) -> list[float]:
        """The words as numbers; BadNumberError for the first that is not finite and at least 0."""
        try:
            return list(map(self._known.__getitem__, words))
        except KeyError:
            self._learn(words)
        return list(map(self._known.__getitem__, words))

    def _learn(self, words: Sequence[str]) -> None:
        new = set(words).difference(self._known)
        if _NUMBERS.fullmatch(" ".join([*new, ""])) is None:
            raise _first(words, {word for word in new if _NUMBERS.fullmatch(word + " ") is None})
        values = dict(zip(new, map(float, new), strict=True))
        if min(values.values()) < 0 or max(values.values()) == inf:
            raise _first(words, {word for word, value in values.items() if not 0 <= value < inf})
        self._known.update(values)


def _first(words: Sequence[str], bad: set[str]) -> BadNumberError:
    return next(BadNumberError(word) for word in words if word in bad)


class Words:
    """Numbers to words that read back bit for bit, for one file.

    >>> Words().of(np.array([0.1, 1 / 3]))
    ['0.1', '0.3333333333333333']
    """

    def __init__(self) -> None:
        self._known: dict[float, str] = {}

    def of(self, table: Array) -> list[str]:
        """The entries of the table, in its order."""
        values = table.ravel().tolist()
        if np.signbit(table).any():  # -0.0 equals 0.0 and would share its word
            return list(map(repr, values))
        try:
            return list(map(self._known.__getitem__, values))
        except KeyError:
            new = set(values).difference(self._known)
            self._known.update(zip(new, map(repr, new), strict=True))
        return list(map(self._known.__getitem__, values))


def require_size(source: Source, name: str, cards: list[int], where: Where) -> None:
    """ParseError if a table that the file describes without giving every entry would be too large."""
    try:
        require_table(cards, f"the table of {name!r}")
    except BudgetError as error:
        line, column = source.position(where) if isinstance(where, int) else where or (None, None)
        refusal = OversizedFileError(str(error), source.path, line, column)
        refusal.needed, refusal.limit = error.needed, error.limit
        raise refusal from None


def tables(network: BayesianNetwork) -> list[CPT]:
    """The network's tables in topological order; ModelError if a node has none (a Gaussian)."""
    found = []
    for conditional in network.conditionals:
        if not isinstance(conditional, CPT):
            raise ModelError(
                f"node {conditional.variable.name!r} has no table ({type(conditional).__name__}); "
                "this format holds tables only"
            )
        found.append(conditional)
    return found
