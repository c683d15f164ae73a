"""The answer to a batch of families: contingency tables that lie end to end in one array.

It reads as a list of arrays; whoever works on the whole batch takes the flat array and never makes the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class ContingencyTables(Sequence[NDArray[Any]]):
    """Contingency tables, one per family.

    Attributes
    ----------
    cells
        All counts; table f is ``cells[offsets[f]:offsets[f + 1]]``, its last axis running fastest.
    offsets
        Where each table begins, and where the last one ends.
    lengths, ptr
        The lengths of the axes of table f are ``lengths[ptr[f]:ptr[f + 1]]``.

    >>> cells, offsets = np.array([1, 2, 3, 4, 5]), np.array([0, 4, 5])
    >>> tables = ContingencyTables(cells, offsets, lengths=np.array([2, 2]), ptr=np.array([0, 2, 2]))
    >>> tables[0], tables[-1]
    (array([[1, 2], [3, 4]]), array(5))
    """

    __slots__ = ("cells", "lengths", "offsets", "ptr")

    def __init__(self, cells: NDArray[Any], offsets: Ints, lengths: Ints, ptr: Ints) -> None:
        self.cells = cells
        self.offsets = offsets
        self.lengths = lengths
        self.ptr = ptr

    @property
    def last_lengths(self) -> Ints:
        """The length of each table's last axis; every table must have one."""
        return np.asarray(self.lengths[self.ptr[1:] - 1])

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @overload
    def __getitem__(self, f: int) -> NDArray[Any]: ...
    @overload
    def __getitem__(self, f: slice) -> list[NDArray[Any]]: ...
    def __getitem__(self, f: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(f, slice):
            return [self[i] for i in range(*f.indices(len(self)))]
        f = range(len(self))[f]
        shape = self.lengths[self.ptr[f] : self.ptr[f + 1]]
        return self.cells[self.offsets[f] : self.offsets[f + 1]].reshape(shape)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[f] for f in range(len(self)))

    def __repr__(self) -> str:
        return repr(list(self))
