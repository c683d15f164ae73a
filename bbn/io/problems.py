"""Every problem of a file, each with its place, collected so that a reader reports them all at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NoReturn, TypeVar

from bbn.core.errors import ParseError
from bbn.io.source_text import Source, cut

Where = int | tuple[int, int] | None
"""A place in a file: an offset into its text, or line and column."""
Item = TypeVar("Item")
Result = TypeVar("Result")
MAX_PROBLEMS = 100
"""The most problems of a file that are listed; the others are counted."""
MAX_PROBLEM_TEXT = 10**7
"""Reading ends once the messages about problems were this long in all, listed or not."""


class Problems:
    """The problems found in one file so far: the first MAX_PROBLEMS of them, and how many there were."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0
        self._first: list[ParseError] = []
        self._length = 0

    def add(self, message: str, where: Where = None, kind: type[ParseError] = ParseError) -> None:
        """Note a problem and go on."""
        self._note(self._error(message, where, kind))

    def twice(self, what: str, where: Where, first: Where) -> None:
        """Note that something is there for the second time."""
        self.add(f"{what} is given twice, first on line {self.line_of(first)}", where)

    def line_of(self, where: Where) -> int:
        """The line of a place."""
        return self.position(where)[0] or 0

    def position(self, where: Where) -> tuple[int | None, int | None]:
        """The line and column of a place."""
        return self.source.position(where) if isinstance(where, int) else where or (None, None)

    def fail(self, message: str, where: Where = None) -> NoReturn:
        """Note a problem that ends the reading, and raise it."""
        error = self._error(message, where)
        self._note(error)
        self._raise(error)

    def each(self, items: Iterable[Item], read: Callable[[Item], Result]) -> list[Result]:
        """What `read` gives for each item; where it fails, the problem is noted and the others are read."""
        results = []
        for item in items:
            try:
                results.append(read(item))
            except ParseError as error:
                self._length += len(error.message)
                self._note(error)
        return results

    def nearest(self, word: object, choices: Collection[object]) -> str:
        """The clause that names the nearest choice, see `Source.nearest`."""
        return self.source.nearest(word, choices)

    def raise_first(self) -> None:
        """Raise the problem that comes first in the file, if there is any."""
        if self.count:
            self._raise(min(self._first, key=_place))

    def _error(self, message: str, where: Where, kind: type[ParseError] = ParseError) -> ParseError:
        line, column = self.position(where)
        self._length += len(message)
        return kind(cut(message), self.source.path, line, column)

    def _note(self, error: ParseError) -> None:
        self.count += 1
        self._first.append(error)
        if len(self._first) >= 2 * MAX_PROBLEMS:
            self._first = sorted(self._first, key=_place)[:MAX_PROBLEMS]
        if self._length > MAX_PROBLEM_TEXT:
            self._raise(min(self._first, key=_place), "at least ")

    def _raise(self, error: ParseError, at_least: str = "") -> NoReturn:
        shown = sorted(self._first, key=_place)[:MAX_PROBLEMS]
        if error not in shown:
            shown[-1] = error
        if self.count > len(shown) or at_least:
            left_out = self.count - len(shown)
            shown.append(
                ParseError(f"and {at_least}{left_out} more problem{'s' * (left_out != 1)}", self.source.path)
            )
        error.problems = tuple(shown)
        raise error


def _place(error: ParseError) -> tuple[int, int]:
    return error.line or 0, error.column or 0
