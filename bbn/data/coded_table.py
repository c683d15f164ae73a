"""The source that holds a coded table in memory: its counts, by one thread or several, and its distinct rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import Ledger, jobs, memory_limit, require_memory
from bbn.core.frozen import Array, Frozen
from bbn.core.threads import worker_map
from bbn.data.counts import ContingencyTables
from bbn.data.kinds import ColumnDict, Kind
from bbn.data.source import Block, Family
from bbn.model.variable import Variable

PARALLEL = 20_000_000
"""Families times rows from which on several threads count."""

WEIGHTED_PARTS = 4
"""In how many parts such rows are counted where they have weights."""

Near = tuple[int, tuple[int, ...], list[int], list[int]]
"""A child, its parents, further parents, and parents to go without, as numbers of variables."""


class CodedTable(Frozen):
    """A table in memory, coded.

    Attributes
    ----------
    variables
        One per column of states.
    codes
        Name to codes, uint8 or uint16, read-only; the code equal to the variable's card means missing.
    numbers
        Name to the column of a continuous variable, float64, read-only; NaN means missing.
    n_rows
        The number of rows.
    weights
        One weight per row, or None if each counts once.
    kind
        Gives results back in the kind of table that came in.

    >>> from bbn.data import code
    >>> table = code({"A": ["x", "y", "x"], "B": [0, 0, 1]})
    >>> table.counts([("A", "B"), ("B",)])
    [array([[1, 1], [1, 0]]), array([2, 1])]
    """

    __slots__ = ("_cache", "codes", "kind", "n_rows", "numbers", "variables", "weights")

    variables: tuple[Variable, ...]
    codes: dict[str, NDArray[Any]]
    numbers: Mapping[str, Array]
    n_rows: int
    weights: Array | None
    kind: Kind
    _cache: dict[str, Any]

    __eq__ = object.__eq__  # a table is itself alone: comparing all rows is never wanted
    __hash__ = object.__hash__

    def __init__(
        self,
        variables: tuple[Variable, ...],
        codes: dict[str, NDArray[Any]],
        n_rows: int,
        weights: Array | None = None,
        kind: Kind | None = None,
        numbers: Mapping[str, Array] | None = None,
    ) -> None:
        for column in (*codes.values(), *(numbers or {}).values()):
            column.flags.writeable = False
        self._set(
            variables=variables,
            codes=codes,
            numbers=dict(numbers or {}),
            n_rows=n_rows,
            weights=weights,
            kind=kind or ColumnDict(),
            _cache={},
        )

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of the columns of numbers."""
        return tuple(self.numbers)

    @property
    def total(self) -> float:
        """The sum of the rows' weights."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the variables with a missing value in some row."""
        if "incomplete" not in self._cache:
            coded = [v.name for v in self.variables if self.n_rows and self.codes[v.name].max() == v.card]
            numeric = [name for name, column in self.numbers.items() if np.isnan(column).any()]
            self._cache["incomplete"] = (*coded, *numeric)
        return self._cache["incomplete"]  # type: ignore[no-any-return]

    def counts(self, families: Sequence[Family], n_jobs: int | None = None) -> Sequence[NDArray[Any]]:
        """One contingency table per family, axes in the family's order; rows that miss one of it are left out.

        Counts are int64, or float64 sums where rows have weights. A column with missing values is counted with one
        more state, which is cut off at the end. `n_jobs` threads share the families.
        """
        position = {v.name: i for i, v in enumerate(self.variables)}
        members = np.array([position[name] for family in families for name in family], dtype=np.int64)
        ptr = np.zeros(len(families) + 1, dtype=np.int64)
        np.cumsum([len(family) for family in families], out=ptr[1:])
        tables = self.tables(members, ptr, n_jobs)
        if not self.incomplete:
            return tables
        cards = {v.name: v.card for v in self.variables}
        return [
            table[tuple(slice(cards[name]) for name in family)].copy()
            for table, family in zip(tables, families, strict=True)
        ]

    def tables(
        self, members: NDArray[np.int64], ptr: NDArray[np.int64], n_jobs: int | None = None
    ) -> ContingencyTables:
        """The counts of families given by the positions of their variables, ``members[ptr[f]:ptr[f + 1]]``.

        A column with missing values has one more state here, for these.
        """
        radixes = self._radixes()
        lengths = radixes[members]
        sizes = _products(lengths, ptr)
        total = float(sizes.sum())
        if 8 * total > memory_limit():
            f = int(np.argmax(sizes))
            largest = ", ".join(self.variables[i].name for i in members[ptr[f] : ptr[f + 1]].tolist())
            require_memory(int(8 * sizes.max()), f"the counts of {largest}", "use fewer parents or states")
            require_memory(int(8 * total), f"the counts of {len(sizes)} families", "ask for fewer at a time")
        offsets = np.zeros(len(ptr), dtype=np.int64)
        sizes.cumsum(out=offsets[1:], dtype=np.int64)
        threads = self._threads(len(sizes), n_jobs)
        columns = self._prepared(ptr, members, threads)
        cells = self._in_parts(columns, members, ptr, offsets, threads)
        return ContingencyTables(cells, offsets, lengths, ptr)

    def around(
        self, wanted: list[Near], place: NDArray[np.int64], most_cells: int
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """The counts of the families around some children and their parents; see `kernels.count.Columns.around`.

        Parameters
        ----------
        wanted
            Each a child, its parents, a list of further parents and a list of parents to go without.
        place
            The position among `variables` of each variable that these are numbers of.
        most_cells
            No fewer cells than all tables have.
        """
        n_families = sum([len(add) or 1 for _, _, add, _ in wanted])
        threads = self._threads(n_families, None)
        columns = self._cache.get("prepared") if self._cache.get("all bitmaps") else None
        if columns is None:
            listed = [
                [*z, *own, child] for child, own, add, _ in wanted for z in ([[p] for p in add] or [[]])
            ]
            ptr = np.cumsum([0, *map(len, listed)])
            columns = self._prepared(ptr, place[np.concatenate(listed)], threads)
        parts = self._by_rows(
            lambda first, last: columns.around(wanted, place, self.weights, first, last),
            self._parts(n_families, threads, 12 * most_cells),
            threads,
        )
        cells, offsets, cards = parts[0]
        for part, _, _ in parts[1:]:
            cells += part
        return cells, offsets, cards

    def _threads(self, n_families: int, n_jobs: int | None) -> int:
        """How many threads count this number of families."""
        return jobs(n_jobs) if n_families * self.n_rows >= PARALLEL else 1

    def _parts(self, n_families: int, threads: int, each: int) -> int:
        """In how many parts to count the rows, where each part needs `each` bytes: no more than fit in memory.

        Weights are added up in as many parts whatever the number of threads, so that rounding does not depend on it.
        """
        many = self.weights is not None and n_families * self.n_rows >= PARALLEL
        wanted = WEIGHTED_PARTS if many else threads
        return 1 if wanted == 1 else Ledger().workers(wanted, each)

    def _by_rows(self, count: Callable[[int, int], Any], n_parts: int, threads: int) -> list[Any]:
        """What `count` gives for the rows from one number to before another, of all parts of the rows."""
        if n_parts == 1:
            return [count(0, self.n_rows)]
        step = -(-self.n_rows // (64 * n_parts)) * 64
        ends = [*range(0, self.n_rows, step), self.n_rows]
        with worker_map(threads, n_parts, take_part=True) as spread:
            return list(spread(count, ends[:-1], ends[1:]))

    def _radixes(self) -> NDArray[np.int64]:
        """How many codes each column may hold."""
        if "radixes" not in self._cache:
            incomplete = set(self.incomplete)
            self._cache["radixes"] = np.array(
                [v.card + (v.name in incomplete) for v in self.variables], dtype=np.int64
            )
        return self._cache["radixes"]  # type: ignore[no-any-return]

    def _in_parts(
        self,
        columns: kernels.count.Columns,
        members: NDArray[np.int64],
        ptr: NDArray[np.int64],
        offsets: NDArray[np.int64],
        threads: int,
    ) -> NDArray[Any]:
        """All families, by several threads where there is work for them: each takes some rows, or some families."""
        n_families = len(ptr) - 1
        if threads == 1:
            return columns.count(ptr, members, offsets, self.weights)
        if (
            self.weights is None and offsets[-1] <= self.n_rows
        ):  # whole numbers add up to the same in any order
            parts = self._by_rows(
                lambda first, last: columns.count(ptr, members, offsets, None, first, last),
                self._parts(n_families, threads, 12 * int(offsets[-1])),
                threads,
            )
            for part in parts[1:]:
                parts[0] += part
            return parts[0]  # type: ignore[no-any-return]
        cells = np.empty(offsets[-1], dtype=np.int64 if self.weights is None else np.float64)

        def some(start: int, stop: int) -> None:
            """The tables of some of the families, which do not depend on the others."""
            own = slice(start, stop + 1)
            cells[offsets[start] : offsets[stop]] = columns.count(
                ptr[own] - ptr[start],
                members[ptr[start] : ptr[stop]],
                offsets[own] - offsets[start],
                self.weights,
            )

        ends = np.linspace(0, n_families, 4 * threads + 1).astype(int).tolist()
        with worker_map(threads, threads) as spread:
            list(spread(some, ends[:-1], ends[1:]))
        return cells

    def _prepared(
        self, ptr: NDArray[np.int64], members: NDArray[np.int64], threads: int
    ) -> kernels.count.Columns:
        """The columns as kernels take them, with bit maps of those that families in long runs are made of."""
        cache, radixes = self._cache, self._radixes()
        if cache.get("all bitmaps"):
            return cache["prepared"]  # type: ignore[no-any-return]
        bits: list[Any] = cache.setdefault("bitmaps", [None] * len(self.variables))
        columns = [self.codes[v.name] for v in self.variables]
        new: list[int] = []
        if self.weights is None and len(members):
            new = [
                c
                for c in kernels.count.worth_bitmaps(ptr, members, radixes).tolist()
                if bits[c] is None and columns[c].dtype == np.uint8
            ]
            if new:
                with worker_map(threads, threads) as spread:
                    made = spread(lambda c: kernels.count.bitmaps(columns[c], int(radixes[c])), new)
                    for c, maps in zip(new, made, strict=True):
                        bits[c] = maps
        if new or "prepared" not in cache:
            cache["prepared"] = kernels.count.Columns(columns, bits, radixes)
            # of rows with weights, and of columns with many states, there are none
            cache["all bitmaps"] = self.weights is not None or not any(
                maps is None and column.dtype == np.uint8 for maps, column in zip(bits, columns, strict=True)
            )
        return cache["prepared"]  # type: ignore[no-any-return]

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over blocks of the arrays that f returns for each; here one block, repeated rows merged."""
        return [np.asarray(part) for part in f(self.merged())]

    def merged(self) -> Block:
        """The distinct rows, each with the sum of the weights of its like, in order of appearance.

        Where nine rows in ten are distinct anyway, or where there are numbers, the rows as they are, without a copy.
        """
        if "merged" not in self._cache:
            weights = np.ones(self.n_rows) if self.weights is None else self.weights
            if self.numbers:
                self._cache["merged"] = Block(self.codes, weights, self.numbers)
            elif not self.variables:
                self._cache["merged"] = Block({}, np.array([weights.sum()]))
            else:
                first, inverse = kernels.coding.merge_rows([self.codes[v.name] for v in self.variables])
                if len(first) > 0.9 * self.n_rows:
                    self._cache["merged"] = Block(self.codes, weights)
                else:
                    self._cache["merged"] = Block(
                        {name: column[first] for name, column in self.codes.items()},
                        np.bincount(inverse, weights, minlength=len(first)).astype(np.float64, copy=False),
                    )
        return self._cache["merged"]  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[Any, ...]:
        restore, (cls, values) = super().__reduce__()
        cache = self._kept.index("_cache")  # bit maps and the like are made anew where they are needed
        return restore, (cls, (*values[:cache], {}, *values[cache + 1 :]))

    def __repr__(self) -> str:
        return f"<CodedTable: {self.n_rows} rows, {len(self.variables) + len(self.numbers)} variables>"


def _products(lengths: NDArray[np.int64], ptr: NDArray[np.int64]) -> Array:
    """The product of each segment ``lengths[ptr[f]:ptr[f + 1]]``, as floats, which do not wrap; 1 for an empty one."""
    filled = ptr[1:] > ptr[:-1]
    if filled.all() and len(filled):
        return np.asarray(np.multiply.reduceat(lengths, ptr[:-1], dtype=np.float64))
    padded = np.append(lengths.astype(np.float64), 1.0)
    return np.where(filled, np.multiply.reduceat(padded, ptr)[:-1], 1.0)
