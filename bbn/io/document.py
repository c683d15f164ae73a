"""A document of scalars, lists and mappings with a place for each: what YAML and JSON have in common.

A reader of either is a `Document`: it is pulled through the file once, one pair of a mapping at a time, so that
a file of a hundred thousand nodes never stands in memory as a tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

from bbn.io.problems import Problems, Where

MAX_DEPTH = 100
"""Lists and mappings may be nested this deep; a table of 32 axes needs 35."""

_MOST_DIGITS = 3000
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NAMED = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(sign + "inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}


class Scalar:
    """Text, whether it was quoted (and so a string whatever it looks like), and the mark of its place."""

    __slots__ = ("mark", "quoted", "text")

    def __init__(self, text: str, quoted: bool, mark: Any) -> None:
        self.text = text
        self.quoted = quoted
        self.mark = mark

    @property
    def value(self) -> Any:
        """What the text means: a string if quoted, else by the core schema of YAML 1.2."""
        return self.text if self.quoted else resolve(self.text)

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:60] + "…"
        return repr(shown) if self.quoted or isinstance(self.value, str) else shown or "nothing"


class Sequence:
    """A list of nodes."""

    __slots__ = ("items", "mark")

    def __init__(self, items: list[Node], mark: Any) -> None:
        self.items = items
        self.mark = mark

    def __str__(self) -> str:
        return f"a list of {len(self.items)}"


class Mapping:
    """A list of pairs, as they stand in the file: keys may still be repeated."""

    __slots__ = ("mark", "pairs")

    def __init__(self, pairs: list[tuple[Node, Node]], mark: Any) -> None:
        self.pairs = pairs
        self.mark = mark

    def __str__(self) -> str:
        return "a mapping"


Node = Scalar | Sequence | Mapping


class Document(Protocol):
    """A file being read. The top level must be a mapping."""

    problems: Problems

    def each_key(self) -> Iterator[Node]:
        """The keys of the mapping that comes next; after each, `value` or `each_key` must be called once."""

    def value(self) -> Node:
        """The node that comes next."""

    def next_is_mapping(self) -> bool:
        """Whether the node that comes next is a mapping, so that `each_key` may be called."""

    def where(self, node: Node) -> Where:
        """The place of a node."""

    def fail(self, message: str, node: Node) -> NoReturn:
        """Raise the error that points at a node."""


def resolve(text: str) -> Any:
    """What an unquoted word means by the core schema of YAML 1.2: null, bool, int, float or otherwise a string.

    An integer of more than 3,000 digits is infinite.

    >>> resolve("yes"), resolve("true"), resolve("0x10"), resolve("1e-3"), resolve("~")
    ('yes', True, 16, 0.001, None)
    """
    if text in _NAMED:
        return _NAMED[text]
    if _INT.fullmatch(text):
        if len(text) > _MOST_DIGITS:  # Python does not write such an integer
            return float("inf")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
