"""Products of tables, summed down to some of their variables: in doubles, or in logarithms where those will not do.

In doubles each table carries a bound of its least positive entry. As long as the bounds of the tables that are
multiplied stay above FLOOR together, no term can vanish, so every digit counts; where they do not, the tables are
looked at, and `OutOfRange` is raised if it is so. The same work in logarithms takes several times as long.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, log2
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.kernels.logarithms import log_sum

FLOOR = -950.0
"""The logarithm, to base 2, of the least term that a product in doubles may have; a normal double is above -1022."""

Names = tuple[str, ...]


class OutOfRange(Exception):
    """A product may have terms that are too small beside others for a double."""


class Table(NamedTuple):
    """A table over some variables."""

    names: Names
    values: Array
    low: float = 0.0
    """In doubles: every positive entry is at least 2**low."""

    def renamed(self, names: Names) -> Table:
        """The same table over variables of other names."""
        return Table(names, self.values, self.low)


Message = list[Table]
"""Tables over disjoint variables."""


class Doubles:
    """Tables whose values are plain numbers, at most 1 when they are made."""

    @staticmethod
    def table(names: Names, values: Array) -> Table:
        """A table of probabilities."""
        values = np.ascontiguousarray(values)
        return Table(names, values, _lowest(values))

    @staticmethod
    def weights(names: Names, values: Array) -> tuple[Table, float]:
        """A table of likelihoods, divided by its largest entry, and the logarithm of that."""
        peak = float(values.max())
        if not peak > 0:
            return Doubles.table(names, values), 0.0
        if _lowest(values) - log2(peak) < FLOOR:
            raise OutOfRange
        return Doubles.table(names, values / peak), log(peak)

    @staticmethod
    def product(tables: list[Table], names: Names) -> Table:
        """The product of some tables, summed down to some variables, table by table."""
        low = sum([table.low for table in tables])
        if low < FLOOR:
            tables = [Doubles.table(table.names, table.values) for table in tables]
            low = sum([table.low for table in tables])
            if low < FLOOR:
                raise OutOfRange
        made = tables[0]
        for k, table in enumerate(tables[1:], 2):
            union = tuple(dict.fromkeys((*made.names, *table.names))) if k < len(tables) else names
            made = _pair(made, table, union)
        if made.names != names:
            made = _pair(made, Table((), np.ones(())), names)
        return Table(names, made.values, low)

    @staticmethod
    def normalised(message: Message) -> tuple[Message, float]:
        """Each table divided by its sum, and the logarithm of the product of these: -inf if one is 0."""
        scale, kept = 0.0, []
        for own in message:
            total = float(own.values.sum())
            if not total > 0:
                return [], -np.inf
            scale += log(total)
            if own.names:
                kept.append(Table(own.names, own.values / total, own.low - log2(total)))
        return kept, scale

    @staticmethod
    def shares(table: Table) -> Array:
        """The values as shares of their sum."""
        return np.asarray(table.values / table.values.sum())


class Logs:
    """Tables whose values are logarithms: of any size."""

    @staticmethod
    def table(names: Names, values: Array) -> Table:
        """A table of probabilities."""
        with np.errstate(divide="ignore"):
            return Table(names, np.asarray(np.log(values)))

    @staticmethod
    def weights(names: Names, values: Array) -> tuple[Table, float]:
        """A table of likelihoods, and what was taken out of it."""
        return Logs.table(names, values), 0.0

    @staticmethod
    def product(tables: list[Table], names: Names) -> Table:
        """The product of some tables, summed down to some variables."""
        union = tuple(dict.fromkeys((*names, *(own for table in tables for own in table.names))))
        total: Array = np.zeros(())
        for table in tables:
            at = [union.index(own) for own in table.names]
            values = table.values.transpose(np.argsort(at)) if at else table.values
            total = total + values[tuple(slice(None) if i in at else None for i in range(len(union)))]
        axes = tuple(range(len(names), len(union)))
        return Table(names, log_sum(total, axes) if axes else total)

    @staticmethod
    def normalised(message: Message) -> tuple[Message, float]:
        """Each table divided by its sum, and the logarithm of the product of these: -inf if one is 0."""
        scale, kept = 0.0, []
        for own in message:
            total = float(log_sum(own.values, tuple(range(own.values.ndim))))
            if total == -np.inf:
                return [], total
            scale += total
            if own.names:
                kept.append(Table(own.names, own.values - total))
        return kept, scale

    @staticmethod
    def shares(table: Table) -> Array:
        """The values as shares of their sum."""
        shares = np.exp(table.values - table.values.max())
        return np.asarray(shares / shares.sum())


Arithmetic = type[Doubles] | type[Logs]


def _lowest(values: Array) -> float:
    """The logarithm to base 2 of the least positive entry, 0 if there is none."""
    positive = values[values > 0]
    return log2(float(positive.min())) if positive.size else 0.0


def _pair(left: Table, right: Table, names: Names) -> Table:
    """The product of two tables, summed down to some variables."""
    subscripts = _subscripts(left.names, right.names, names)
    return Table(names, np.asarray(np.einsum(subscripts, left.values, right.values)))


@lru_cache(4096)
def _subscripts(left: Names, right: Names, names: Names) -> str:
    """What einsum is told."""
    letter = dict(zip(dict.fromkeys((*left, *right)), ascii_letters, strict=False))
    a, b, c = ("".join(letter[name] for name in own) for own in (left, right, names))
    return f"{a},{b}->{c}"
