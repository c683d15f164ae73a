"""Tables of numbers between words and arrays, in bulk.

Each different word of a file is converted once: the tables of real networks repeat themselves (diabetes has 460,080
entries and 614 different ones), so a dictionary is several times faster than converting every word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf, prod

from bbn import kernels
from bbn.core.budget import MAX_AXES
from bbn.core.errors import ModelError
from bbn.core.frozen import Array
from bbn.io.problems import Where
from bbn.io.source_text import OversizedFileError, Source, cut
from bbn.model.cpt import CPT
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork

_NUMBER = r"[+-]?(?:[0-9]{1,400}+(?:\.[0-9]{0,400}+)?|\.[0-9]{1,400}+)(?:[eE][+-]?[0-9]{1,20}+)?"
_NUMBERS = re.compile(rf"(?:{_NUMBER}\ )*+")


class BadNumberError(ValueError):
    """A `word` that is not a probability; `found` shows it."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word
        self.found = repr(word if len(word) <= 40 else word[:40] + "…")


class NumberParser:
    """Words to finite numbers, for one file; `least` is the least that a number may be.

    Whether the entries of a table are probabilities is checked by row (`bbn.io.row_sums`), which names the row.

    >>> NumberParser().floats(["0.25", "7.5e-1"])
    [0.25, 0.75]
    """

    def __init__(self, least: float = -inf) -> None:
        self.least = least
        self._known: dict[str, float] = {}

    def floats(self, words: Sequence[str]) -> list[float]:
        """The words as numbers; BadNumberError for the first that is not finite and at least `least`."""
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
        if min(values.values()) < self.least or max(map(abs, values.values())) == inf:
            bad = {word for word, value in values.items() if not (self.least <= value and abs(value) < inf)}
            raise _first(words, bad)
        self._known.update(values)


def _first(words: Sequence[str], bad: set[str]) -> BadNumberError:
    return next(BadNumberError(word) for word in words if word in bad)


def row_texts(table: Array, separator: str, end: str = "") -> list[str]:
    """The rows of a table, along its last axis, as text that reads back bit for bit, each with `end` after it.

    >>> import numpy as np
    >>> row_texts(np.array([[0.1, 0.9], [1 / 3, 2 / 3]]), " ")
    ['0.1 0.9', '0.3333333333333333 0.6666666666666666']
    """
    return kernels.decimals.row_texts(table.ravel(), table.shape[-1], separator, end)


def reserve_table(source: Source, name: str, cards: list[int], where: Where) -> None:
    """OversizedFileError if a table that the file describes without giving every entry would be too large.

    Its price is that of the entries, and of their checks until the network is built. The tables of one file are
    counted together.
    """
    line, column = source.position(where) if isinstance(where, int) else where or (None, None)
    what = f"the table of {name!r}"
    if len(cards) > MAX_AXES:
        message = f"{what} would have {len(cards)} axes; at most {MAX_AXES} are possible"
        raise OversizedFileError(cut(message), source.path, line, column)
    cells = prod(cards)
    source.reserve(12 * cells + 24 * (cells // max(cards[-1], 1)), what, line, column)


def tables(network: BayesianNetwork | DecisionNetwork) -> list[CPT]:
    """The network's tables in topological order; ModelError if a node has none (a Gaussian)."""
    found = []
    for conditional in network.conditionals:
        if not isinstance(conditional, CPT):
            raise ModelError(
                f"node {conditional.variable.name!r} has no table ({type(conditional).__name__}); "
                "this format holds tables only, YAML and JSON hold Gaussians too"
            )
        found.append(conditional)
    return found
