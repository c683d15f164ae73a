"""Local scores: for each variable the parent sets that can be part of a best structure, as a value and as a file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

from bbn.core.atomic import replacing
from bbn.core.errors import DataError, ParseError
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.io.source_text import Source
from bbn.learning.structure.constraints import members
from bbn.model.variable import Variable

Sets = dict[int, float]
"""The mask of a parent set to its score."""


class LocalScores(Frozen):
    """For each variable the parent sets that can matter to a best structure, the best first.

    `bbn.exact_search` gives one for data, or takes one in place of data; `bbn.load_scores` reads one from a file.

    Parameters
    ----------
    scores : mapping
        Variable to a mapping from its parents (a tuple of names) to the score; higher is better.
    variables : sequence of Variable, optional
        The variables with their states, in the same order.

    Attributes
    ----------
    names : tuple of str
        The variables.
    sets : tuple of tuple of (int, float)
        For each variable pairs of a parent set and its score, best first; bit j of a set stands for ``names[j]``.
    variables : tuple of Variable, or None
        The variables with their states, where they are known.

    Examples
    --------
    >>> scores = LocalScores({"A": {(): -3.0}, "B": {(): -4.0, ("A",): -2.5}})
    >>> scores["B"]
    {('A',): -2.5, (): -4.0}
    """

    __slots__ = ("names", "sets", "variables")
    names: tuple[str, ...]
    sets: tuple[tuple[tuple[int, float], ...], ...]
    variables: tuple[Variable, ...] | None

    def __init__(
        self,
        scores: Mapping[str, Mapping[tuple[str, ...], float]],
        variables: Sequence[Variable] | None = None,
    ) -> None:
        names = tuple(scores)
        position = {name: i for i, name in enumerate(names)}
        sets: list[Sets] = []
        for name, own in scores.items():
            found: Sets = {}
            for parents, value in own.items():
                unknown = [p for p in parents if p not in position]
                if unknown or name in parents or len(set(parents)) < len(parents):
                    raise DataError(
                        f"the parents {', '.join(map(repr, parents))} of {name!r} are not different variables "
                        "among the others"
                    )
                if math.isnan(value) or value == math.inf:
                    raise DataError(f"the score of {name!r} with parents {tuple(parents)!r} is {value}")
                found[sum(1 << position[p] for p in parents)] = float(value)
            if not found:
                raise DataError(f"{name!r} has no parent set, not even the empty one")
            sets.append(found)
        self._set(names=names, sets=_sorted(sets), variables=None if variables is None else tuple(variables))

    @classmethod
    def from_masks(cls, variables: Sequence[Variable], sets: Sequence[Sets]) -> LocalScores:
        """Make one from masks, as a search finds them.

        Parameters
        ----------
        variables : sequence of Variable
            The variables; bit j of a mask stands for the j-th.
        sets : sequence of dict
            For each variable the masks of its parent sets and their scores.

        Returns
        -------
        LocalScores
        """
        made = cls.__new__(cls)
        made._set(names=tuple(v.name for v in variables), sets=_sorted(sets), variables=tuple(variables))
        return made

    def __getitem__(self, name: str) -> dict[tuple[str, ...], float]:
        """The parent sets of a variable by name, best first."""
        own = self.sets[self.names.index(name)]
        return {tuple(self.names[p] for p in members(mask)): value for mask, value in own}

    def __len__(self) -> int:
        """The number of parent sets of all variables."""
        return sum(map(len, self.sets))

    def __repr__(self) -> str:
        return f"<LocalScores: {len(self.names)} variables, {len(self):,} parent sets>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scores as a `.jkl` file, which other exact searches read.

        Parameters
        ----------
        path : str or path
            Where to write; the file is replaced as a whole. Names with spaces or line ends become numbers.
        """
        plain = all(name and not set(name) & set(" \t\r\n\f\v") for name in self.names)
        names = self.names if plain else tuple(map(str, range(len(self.names))))
        with replacing(path) as file:
            file.write(f"{len(names)}\n".encode())
            for name, own in zip(names, self.sets, strict=True):
                file.write(f"{name} {len(own)}\n".encode())
                for mask, value in own:
                    parents = [names[p] for p in members(mask)]
                    file.write(" ".join([repr(value), str(len(parents)), *parents, "\n"]).encode())


@keywords_checked
def load_scores(path: str | os.PathLike[str]) -> LocalScores:
    """Read local scores from a `.jkl` file, as GOBNILP and similar programs write them.

    Parameters
    ----------
    path : str or path
        The file: the number of variables; then for each its name and the number of its parent sets, and for each of
        those a line with the score, the number of parents and their names. Higher scores are better.

    Returns
    -------
    LocalScores
        What `bbn.exact_search` takes in place of data.

    Raises
    ------
    ParseError
        The file is not of this form; the error names the line.

    See Also
    --------
    LocalScores.save : Write such a file.
    """
    text = StringIO(Source.open(path).text, newline=None)
    lines = [(number, line.split()) for number, line in enumerate(text, 1) if line.strip()]
    reader = iter(lines)

    def take(what: str) -> tuple[int, list[str]]:
        try:
            return next(reader)
        except StopIteration:
            raise ParseError(f"the file ends where {what} was expected", os.fspath(path)) from None

    def number(text: str, line: int, kind: Callable[[str], Any], what: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise ParseError(f"expected {what}, found {text!r}", os.fspath(path), line) from None

    line, words = take("the number of variables")
    count = number(words[0], line, int, "the number of variables")
    scores: dict[str, dict[tuple[str, ...], float]] = {}
    for _ in range(count):
        line, words = take("a variable")
        if len(words) != 2:
            raise ParseError(
                f"expected a name and a number of sets, found {' '.join(words)!r}", os.fspath(path), line
            )
        own: dict[tuple[str, ...], float] = {}
        for _ in range(number(words[1], line, int, "a number of parent sets")):
            at, entry = take(f"a parent set of {words[0]!r}")
            size = number(entry[1], at, int, "a number of parents") if len(entry) > 1 else -1
            if len(entry) != size + 2:
                raise ParseError(
                    f"expected a score, a number of parents and their names, found {' '.join(entry)!r}",
                    os.fspath(path),
                    at,
                )
            own[tuple(entry[2:])] = number(entry[0], at, float, "a score")
        if words[0] in scores:
            raise ParseError(f"the variable {words[0]!r} comes twice", os.fspath(path), line)
        scores[words[0]] = own
    try:
        return LocalScores(scores)
    except DataError as error:
        raise ParseError(str(error), os.fspath(path)) from None


def _sorted(sets: Sequence[Sets]) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Best first; of equal scores the smaller set, then the smaller mask."""
    return tuple(
        tuple(sorted(own.items(), key=lambda item: (-item[1], item[0].bit_count(), item[0]))) for own in sets
    )
