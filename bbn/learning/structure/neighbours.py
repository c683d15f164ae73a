"""Families with one parent more or less than the one at hand: what a search asks for, over and over.

Tables in memory are counted by position, without names in between (`kernels.count`). Of the families around (c, P) only
those with one parent more are counted; those with one less, and the family itself, are sums over an axis of one of
these. Of numbers one elimination of P gives what every further parent would leave of the child.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.learning.gaussian.estimates import FLOOR, LINKED_FLOOR
from bbn.learning.structure.constraints import members
from bbn.learning.structure.discrete_scores import FlatCounts, Term
from bbn.learning.structure.gaussian_scores import COLLINEAR, MomentScores, log_densities, residuals


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

    def cells(self, wanted: Sequence[Around]) -> int:
        """How many cells the tables of these families have together, at most."""
        cards = self.cards
        total = 0
        for child, own, add, delete in wanted:
            size = cards[child] * self.most * (len(add) + len(delete) + 1)
            for p in members(own):
                size *= cards[p]
            total += size
        return total

    def __call__(self, wanted: Sequence[Around]) -> list[Array]:
        """The terms of the families around each, in the order of `masks`, all from one request."""
        near = [(child, members(own), add, delete) for child, own, add, delete in wanted]
        cells, ptr, cards = self.table.around(near, self.place, self.cells(wanted))
        terms = np.asarray(self.term(FlatCounts(cells, ptr, cards, self.total)))
        if len(wanted) == 1:
            return [terms]
        return np.split(
            terms, np.cumsum([len(around.add) + len(around.delete) + 1 for around in wanted[:-1]])
        )


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

    def _around(self, around: Around) -> Array:
        child, _, add, delete = around
        own = list(members(around.own))
        fewer = [[q for q in own if q != p] + [child] for p in delete]
        parts = []
        if add:
            rest = with_one_more(self.scatter, own, child, add)
            parts.append(self._terms(child, rest, len(own) + 1))
        if fewer:
            index = np.array(fewer)
            rest = residuals(self.scatter[index[:, :, None], index[:, None, :]])
            parts.append(self._terms(child, rest, len(own) - 1))
        rest = residuals(self.scatter[np.ix_([*own, child], [*own, child])])
        parts.append(self._terms(child, np.atleast_1d(rest), len(own)))
        return np.concatenate(parts)

    def _terms(self, child: int, rest: Array, p: int) -> Array:
        """The terms of families with p parents that leave this much of the child's sum of squares."""
        if self.n <= p + 1:
            return np.full(len(rest), -np.inf)
        floor = LINKED_FLOOR if p else FLOOR
        logs = log_densities(rest, self.squares[child], np.array(self.n), floor)
        return np.asarray(logs - self.shift[child] - self.penalty * (p + 2))


def with_one_more(scatter: Array, own: Sequence[int], child: int, add: Sequence[int]) -> Array:
    """What parents `own` and each of `add` leave of a child's sum of squares."""
    index = [*own, *add, child]
    a = scatter[np.ix_(index, index)]
    size = len(own)
    whole = a.diagonal().copy()
    for k in range(size):
        if a[k, k] > COLLINEAR * whole[k]:
            a[k + 1 :, k + 1 :] -= np.outer(a[k, k + 1 :] / a[k, k], a[k, k + 1 :])
    rest = a.diagonal()[size:]
    shared, own_rest = a[size:-1, -1], rest[:-1]
    usable = own_rest > COLLINEAR * whole[size:-1]
    gone = np.divide(shared**2, own_rest, out=np.zeros_like(shared), where=usable)
    return np.asarray(np.maximum(rest[-1] - gone, 0.0))
