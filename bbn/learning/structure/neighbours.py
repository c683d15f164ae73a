"""Families with one parent more or less than the one at hand: what a search asks for, over and over.

Tables in memory are counted by position, without names in between (`kernels.count`). Of the families around (c, P) only
those with one parent more are counted; those with one less, and the family itself, are sums over an axis of one of
these. Of numbers one elimination of P gives what every further parent would leave of the child (`kernels.score`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.data.seen_settings import LEAST, SPARSE, seen_settings
from bbn.learning.gaussian.estimates import FLOOR, LINKED_FLOOR
from bbn.learning.structure.constraints import members
from bbn.learning.structure.discrete_scores import FlatCounts, Term, seen_alone
from bbn.learning.structure.gaussian_scores import COLLINEAR, MomentScores, log_densities, too_few

MAX_CELLS = 2**26
"""The most cells of a family that a search considers: no data that fit in memory reach so many settings."""


class Around(NamedTuple):
    """The families around a child and its parents: with each of some parents more, and without each of some."""

    child: int
    own: int
    """The mask of the parents."""
    add: list[int]
    delete: list[int]

    @property
    def masks(self) -> list[int]:
        """The parents' masks: with one more, with one less, and as they are."""
        own = self.own
        return [own | 1 << p for p in self.add] + [own ^ 1 << p for p in self.delete] + [own]


class TableCounter:
    """Terms of the families of a table in memory, all of it states.

    Parameters
    ----------
    table
        Complete data.
    names
        The variables by position.
    term
        The score.
    """

    def __init__(self, table: CodedTable, names: Sequence[str], term: Term) -> None:
        place = {v.name: i for i, v in enumerate(table.variables)}
        self.table, self.term, self.total = table, term, table.total
        self.place = np.array([place[name] for name in names], dtype=np.int64)
        self.cards = [table.variables[i].card for i in self.place.tolist()]
        self.most = max(self.cards, default=1)
        self.dense = SPARSE * table.n_rows + LEAST

    def cells(self, wanted: Sequence[Around]) -> int:
        """How many cells the tables of these families have together, at most."""
        total = 0
        for around in wanted:
            size = self._size(around)
            if size > self.dense:
                size = min(size, self.cards[around.child] * self.table.n_rows)
            total += size * (len(around.add) + len(around.delete) + 1)
        return total

    def _size(self, around: Around) -> int:
        """The cells of the largest table of a family around one."""
        size: int = self.cards[around.child] * (self.most if around.add else 1)
        for p in members(around.own):
            size *= self.cards[p]
        return size

    def __call__(self, wanted: Sequence[Around]) -> list[Array]:
        """The terms of the families around each, in the order of `masks`, all small ones from one request."""
        large = [self._size(around) > self.dense for around in wanted]
        if any(large):
            small = [around for around, too in zip(wanted, large, strict=True) if not too]
            rest = iter(self(small) if small else ())
            return [
                self._seen(around) if too else next(rest) for around, too in zip(wanted, large, strict=True)
            ]
        near = [(child, members(own), add, delete) for child, own, add, delete in wanted]
        cells, ptr, cards = self.table.around(near, self.place, self.cells(wanted))
        terms = np.asarray(self.term(FlatCounts(cells, ptr, cards, self.total)))
        if len(wanted) == 1:
            return [terms]
        return np.split(
            terms, np.cumsum([len(around.add) + len(around.delete) + 1 for around in wanted[:-1]])
        )

    def _seen(self, around: Around) -> Array:
        """The terms of families whose tables are not laid out; −∞ for those with more than MAX_CELLS cells."""
        table, place = self.table, self.place.tolist()
        own = seen_settings(table, [place[p] for p in members(around.own)])
        families = [seen_settings(table, [place[p]], own) for p in around.add]
        for gone in around.delete:
            families += [seen_settings(table, [place[p] for p in members(around.own ^ 1 << gone)])]
        families.append(own)
        child = place[around.child]
        terms = np.asarray(self.term(seen_alone(table, [(family, child) for family in families], self.total)))
        most = MAX_CELLS / self.cards[around.child]
        return np.where([family.n_settings > most for family in families], -np.inf, terms)


class GaussianCounter:
    """Log-likelihoods of the families of numbers alone, less a price for each parameter.

    Parameters
    ----------
    moments
        The moments of complete data.
    names
        The variables by position.
    penalty
        What a free parameter costs.
    """

    def __init__(self, moments: MomentScores, names: Sequence[str], penalty: float) -> None:
        whole = moments.whole()
        place = [whole.columns.index(name) for name in names]
        self.n, self.penalty = float(whole.n[0]), penalty
        self.scatter = np.ascontiguousarray(whole.scatter[0][np.ix_(place, place)])
        self.squares = whole.squares[0][place]
        self.shift = self.n * np.log(moments.scale[[moments.names.index(name) for name in names]])

    def cells(self, wanted: Sequence[Around]) -> int:
        """Entries of the matrices that are worked on at a time: few."""
        return len(self.squares) ** 2

    def __call__(self, wanted: Sequence[Around]) -> list[Array]:
        """The terms of the families around each, in the order of `masks`."""
        return [self._around(around) for around in wanted]

    def families(self, families: Sequence[tuple[int, int]]) -> Array:
        """The term of each (child, mask of its parents)."""
        listed = [(*members(mask), child) for child, mask in families]
        return self._terms(
            np.array([child for child, _ in families]),
            self._residuals(listed),
            np.array([len(columns) - 1 for columns in listed]),
        )

    def _around(self, around: Around) -> Array:
        child, mask, add, delete = around
        own = members(mask)
        rest = kernels.regress.residuals_around(self.scatter, child, own, add, delete, COLLINEAR)
        n_parents = np.full(len(rest), len(own))
        n_parents[: len(add)] += 1
        n_parents[len(add) : -1] -= 1
        return self._terms(child, rest, n_parents)

    def _residuals(self, listed: Sequence[tuple[int, ...]]) -> Array:
        """What each family, the child last, leaves of the child's sum of squares."""
        ptr = np.zeros(len(listed) + 1, dtype=np.int64)
        np.cumsum([len(columns) for columns in listed], out=ptr[1:])
        flat = np.fromiter((column for columns in listed for column in columns), np.int64, int(ptr[-1]))
        return kernels.regress.residuals(self.scatter, flat, ptr, COLLINEAR)

    def _terms(self, child: int | NDArray[np.int64], rest: Array, n_parents: NDArray[np.int64]) -> Array:
        """The terms of families with these numbers of parents, which leave `rest` of the child's sum of squares."""
        floor = np.where(n_parents > 0, LINKED_FLOOR, FLOOR)
        logs = log_densities(rest, self.squares[child], np.array(self.n), floor)
        terms = logs - self.shift[child] - self.penalty * (n_parents + 2)
        return np.asarray(np.where(too_few(self.n, n_parents, self.n), -np.inf, terms))
