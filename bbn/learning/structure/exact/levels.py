"""Parent sets of one size, for every variable at once, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import require_memory
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.learning.structure.constraints import Constraints, members

Ints = NDArray[np.int64]


class Level(NamedTuple):
    """Sets of one size for every child, sorted by child and members."""

    n: int
    child: Ints
    members: Ints
    """One row per set: its members without the required ones, ascending."""
    top: Array
    """The best score of a proper subset; once scored, of the set too."""
    score: Array

    @classmethod
    def first(cls, n: int) -> Level:
        """For each child the set of required parents alone."""
        nothing = np.full(n, -np.inf)
        return cls(n, np.arange(n), np.empty((n, 0), dtype=np.int64), nothing, nothing)

    def scored(self, values: Array) -> Level:
        """With scores."""
        return self._replace(top=np.maximum(self.top, values), score=values)

    def only(self, kept: NDArray[np.bool_] | slice) -> Level:
        """Some of the sets."""
        return Level(self.n, self.child[kept], self.members[kept], self.top[kept], self.score[kept])

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

    def larger(self, constraints: Constraints) -> Level:
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
        found = Level(self.n, child, members, top, np.full(len(top), -np.inf))
        for position in range(size):
            other = self.find(found.child, found.without(position))
            found = found._replace(top=np.maximum(found.top, self.top[other])).only(other >= 0)
        return found
