"""The parent sets that can be part of a best structure, with their scores: what exact searches start from.

A set is of no use if one of its subsets scores as high: putting the subset in its place makes no cycle and loses
nothing. Sets are scored size by size, and these bounds spare most of the counting, since they hold for a set S and all
that contain it (N rows, r the child's number of states, pen the penalty of a score):

- bic, mdl, aic: adding y to Π gains at most N min(H(x | Π), H(y | Π)) and costs (r_y − 1) pen(Π), so S ∋ y is useless
  if the cost is no less (de Campos, Scanagatta, Corani & Zaffalon 2018, theorem 4); and S scores at most −pen(S);
- bdeu, bds, k2: the first row of each setting that was seen has probability 1/r, so S scores at most −K(S) ln r, where
  K(S) is the number of settings of S that were seen (de Campos & Ji 2011; Cussens 2012).

Without a bound n variables with at most u parents cost O(n^(u+1)) families.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.atomic import replacing
from bbn.core.budget import require_memory
from bbn.core.errors import BudgetError, DataError, ParseError
from bbn.core.frozen import Array, Frozen
from bbn.core.keywords import keywords_checked
from bbn.learning.structure.constraints import Constraints, members
from bbn.learning.structure.scores import MAX_CELLS, ScoreCache
from bbn.model.variable import Continuous, Variable

BATCH = 50_000
"""Families that are asked for at a time."""
Ints = NDArray[np.int64]
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
    def _of(cls, variables: Sequence[Variable], sets: Sequence[Sets]) -> LocalScores:
        """Scores by mask, as a search finds them."""
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
    """Read local scores from a `.jkl` file, as GOBNILP and its kin write them.

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
    with open(path, encoding="utf-8", errors="strict") as file:
        lines = [(number, line.split()) for number, line in enumerate(file, 1) if line.strip()]
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


def useful_sets(
    cache: ScoreCache,
    constraints: Constraints,
    variables: Sequence[Variable],
    score: Any,
    advance: Callable[..., object],
    check: Callable[[], None],
) -> list[Sets]:
    """For each variable the sets of allowed parents that score higher than all their subsets.

    `advance` is told the number of families scored, `check` is called between batches and may raise.
    """
    n = len(variables)
    bound = _bound(cache, variables, score)
    kept: list[Sets] = [{} for _ in range(n)]
    level = _Level.first(n)
    while len(level.child):
        values = np.empty(len(level.child))
        for first in range(0, len(values), BATCH):
            check()
            batch = level.only(np.s_[first : first + BATCH])
            values[first : first + BATCH] = cache.once(batch.families(cache.names, constraints.required))
            advance(len(batch.child))
        better = values > level.top
        good = level.only(better)
        for i, mask, value in zip(
            good.child.tolist(), good.masks(constraints.required), values[better].tolist(), strict=True
        ):
            kept[i][mask] = value
        level = level.scored(values)
        larger = level.larger(constraints)
        level = larger.only(~bound.useless(level, larger, constraints))
    return kept


class Families(NamedTuple):
    """Parent sets of every variable and their scores, end to end, as kernels take them; best first."""

    ptr: Ints
    masks: Ints
    scores: Array


def all_sets(
    cache: ScoreCache, constraints: Constraints, advance: Callable[..., object], check: Callable[[], None]
) -> Families:
    """Every set of allowed parents of every variable, with its score; for at most 62 variables."""
    n = len(cache.names)
    level = _Level.first(n)
    children, sets, values = [], [], []
    while len(level.child):
        for first in range(0, len(level.child), BATCH):
            check()
            batch = level.only(np.s_[first : first + BATCH])
            values.append(cache.once(batch.families(cache.names, constraints.required)))
            advance(len(batch.child))
        children.append(level.child)
        sets.append(np.array(level.masks(constraints.required), dtype=np.int64))
        level = level.larger(constraints)
    child, mask, value = np.concatenate(children), np.concatenate(sets), np.concatenate(values)
    order = np.lexsort((mask, -value, child))
    ptr = np.concatenate([[0], np.cumsum(np.bincount(child, minlength=n))])
    return Families(ptr.astype(np.int64), mask[order], value[order])


class _Level(NamedTuple):
    """Sets of one size for every child, sorted by child and members."""

    n: int
    child: Ints
    members: Ints
    """One row per set: its members without the required ones, ascending."""
    top: Array
    """The best score of a proper subset; once scored, of the set too."""
    score: Array

    @classmethod
    def first(cls, n: int) -> _Level:
        """For each child the set of required parents alone."""
        nothing = np.full(n, -np.inf)
        return cls(n, np.arange(n), np.empty((n, 0), dtype=np.int64), nothing, nothing)

    def scored(self, values: Array) -> _Level:
        """With scores."""
        return self._replace(top=np.maximum(self.top, values), score=values)

    def only(self, kept: NDArray[np.bool_] | slice) -> _Level:
        """Some of the sets."""
        return _Level(self.n, self.child[kept], self.members[kept], self.top[kept], self.score[kept])

    def masks(self, required: Sequence[int]) -> list[int]:
        """The sets with the required parents."""
        bits = [1 << j for j in range(self.n)]
        return [
            sum([bits[j] for j in row], required[i])
            for i, row in zip(self.child.tolist(), self.members.tolist(), strict=True)
        ]

    def families(self, names: Sequence[str], required: Sequence[int]) -> list[tuple[str, ...]]:
        """(*parents, child) by name, the last member first: sets that follow each other differ in it alone, mostly."""
        ends = [(*(names[p] for p in members(mask)), names[i]) for i, mask in enumerate(required)]
        rows = np.roll(self.members, 1, axis=1).tolist()
        return [
            (*[names[j] for j in row], *ends[i]) for i, row in zip(self.child.tolist(), rows, strict=True)
        ]

    def keys(self, child: Ints, members: Ints) -> Ints:
        """A number for each pair of a child and a set, in the order of the sets."""
        if self.n ** (members.shape[1] + 1) > 2**62:
            raise BudgetError(
                f"sets of {members.shape[1]} among {self.n} variables are too many; lower max_parents", 0, 0
            )
        key = child
        for column in members.T:
            key = key * self.n + column
        return key

    def find(self, child: Ints, members: Ints) -> Ints:
        """Where some sets of this size are, −1 for those that are not there."""
        own = self.keys(self.child, self.members)
        wanted = self.keys(child, members)
        at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        return np.where(own[at] == wanted, at, -1)

    def without(self, position: int) -> Ints:
        """The sets without the member at a position."""
        return np.delete(self.members, position, axis=1)

    def larger(self, constraints: Constraints) -> _Level:
        """The sets of one member more all of whose subsets of this size are here."""
        size = self.members.shape[1]
        require_memory(
            len(self.child) * self.n * (8 * size + 48),
            f"parent sets of {size + 1} among {self.n} variables",
            "lower max_parents, or forbid arcs",
        )
        room = np.array([constraints.max_parents - mask.bit_count() for mask in constraints.required])
        free = np.array(
            [
                [(allowed & ~required) >> j & 1 for j in range(self.n)]
                for allowed, required in zip(constraints.allowed, constraints.required, strict=True)
            ],
            dtype=bool,
        ).reshape(self.n, self.n)
        last = self.members[:, -1] if size else np.full(len(self.child), -1)
        may = free[self.child] & (np.arange(self.n) > last[:, None]) & (room[self.child] > size)[:, None]
        at, added = np.nonzero(may)
        child = self.child[at]
        members = np.column_stack([self.members[at], added])
        top = self.top[at]
        found = _Level(self.n, child, members, top, np.full(len(top), -np.inf))
        for position in range(size):
            other = self.find(found.child, found.without(position))
            found = found._replace(top=np.maximum(found.top, self.top[other])).only(other >= 0)
        return found


class _Bound:
    """No bound: every set may be of use."""

    def useless(self, level: _Level, larger: _Level, constraints: Constraints) -> NDArray[np.bool_]:
        """Which sets, and all that contain them, score no higher than `top` or than one of their subsets.

        `level` holds the sets of one member less, with their scores.
        """
        return np.zeros(len(larger.child), dtype=bool)


class _PenaltyBound(_Bound):
    """For scores that are a likelihood less `unit` per free parameter."""

    def __init__(self, cards: Sequence[int], unit: float) -> None:
        self.cards, self.unit = np.array(cards, dtype=np.float64), unit

    def useless(self, level: _Level, larger: _Level, constraints: Constraints) -> NDArray[np.bool_]:
        """See `_Bound`."""
        fixed = np.array([math.prod(self.cards[list(members(m))].tolist()) for m in constraints.required])
        free = not any(constraints.required)  # a set then means the same for every child
        penalty = self._penalty(fixed, larger.child, larger.members)
        result = -penalty <= larger.top
        for position in range(larger.members.shape[1]):
            added = larger.members[:, position]
            smaller = larger.without(position)
            own = penalty / self.cards[added]
            gain = -(level.score[level.find(larger.child, smaller)] + own)
            if free:
                other = level.find(added, smaller)
                likelihood = level.score[other] + self._penalty(fixed, added, smaller)
                gain = np.where(other >= 0, np.minimum(gain, -likelihood), gain)
            result |= gain <= own * (self.cards[added] - 1)
        return result

    def _penalty(self, fixed: Array, child: Ints, members: Ints) -> Array:
        return np.asarray(
            self.unit * (self.cards[child] - 1) * fixed[child] * self.cards[members].prod(axis=1)
        )


class _FirstRowBound(_Bound):
    """For scores that give the first row of every setting seen the probability 1/r."""

    def __init__(self, cache: ScoreCache, cards: Sequence[int]) -> None:
        self.cache, self.cards = cache, cards
        self.seen: dict[int, int] = {0: 1}

    def useless(self, level: _Level, larger: _Level, constraints: Constraints) -> NDArray[np.bool_]:
        """See `_Bound`."""
        if not len(larger.child):
            return np.zeros(0, dtype=bool)
        masks = level.masks(constraints.required)
        self._count(dict.fromkeys(masks))
        seen = np.array([self.seen.get(mask, 1) for mask in masks])
        least = np.ones(len(larger.child))
        for position in range(larger.members.shape[1]):
            at = level.find(larger.child, larger.without(position))
            least = np.maximum(least, seen[at])
        return np.asarray(-least * np.log(np.array(self.cards))[larger.child] <= larger.top)

    def _count(self, masks: Iterable[int]) -> None:
        """Count the settings of sets that were seen; those of a set too large to count are taken as one."""
        batch: list[int] = []
        cells = 0
        for mask in [*(m for m in masks if m not in self.seen), None]:
            size = math.prod(self.cards[p] for p in members(mask)) if mask else 0
            if batch and (mask is None or cells + size > MAX_CELLS):
                names = [tuple(self.cache.names[p] for p in members(m)) for m in batch]
                tables = self.cache.source.counts(names)
                self.seen.update((m, int(np.count_nonzero(t))) for m, t in zip(batch, tables, strict=True))
                batch, cells = [], 0
            if mask is not None and size <= MAX_CELLS:
                batch.append(mask)
                cells += size


PENALTIES = ("bic", "mdl", "aic")
FIRST_ROW = ("bdeu", "bds", "k2")


def _bound(cache: ScoreCache, variables: Sequence[Variable], score: Any) -> _Bound:
    """The bound that a score has."""
    if any(isinstance(v, Continuous) for v in variables):
        return _Bound()
    cards = [v.card for v in variables]
    if score in PENALTIES:
        total = cache.source.total
        return _PenaltyBound(cards, 1.0 if score == "aic" else 0.5 * math.log(total) if total > 0 else 0.0)
    whole = all(not (t % 1).any() for t in cache.source.counts([(v.name,) for v in variables]))
    if whole and (score in FIRST_ROW or hasattr(score, "equivalent_sample_size")):
        return _FirstRowBound(cache, cards)
    return _Bound()


def _sorted(sets: Sequence[Sets]) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Best first; of equal scores the smaller set, then the smaller mask."""
    return tuple(
        tuple(sorted(own.items(), key=lambda item: (-item[1], item[0].bit_count(), item[0]))) for own in sets
    )
