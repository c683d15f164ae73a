"""Minimum description length: the bits that a hypothesis takes, and the bits of the data given it.

Under the optimal codes −log₂ P(h) and −log₂ P(D | h), the shortest total is the MAP hypothesis (Mitchell, *Machine
Learning*, 1997, section 6.6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from bbn.core.display import Table, Tabular


class Bits(NamedTuple):
    """Description lengths in bits."""

    hypothesis: float
    """−log₂ P(h)."""
    data: float
    """−log₂ P(D | h)."""

    @property
    def total(self) -> float:
        """The two together."""
        return self.hypothesis + self.data


class DescriptionLengths(Tabular, Mapping[Any, Bits]):
    """Hypothesis to its `Bits`, the shortest total first."""

    __slots__ = ("_bits",)

    def __init__(self, bits: Mapping[Any, Bits]) -> None:
        self._bits: dict[Any, Bits] = dict(bits)

    @property
    def best(self) -> Any:
        """The hypothesis of minimum description length."""
        return next(iter(self._bits))

    def __getitem__(self, h: Any) -> Bits:
        return self._bits[h]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._bits)

    def __len__(self) -> int:
        return len(self._bits)

    def __repr__(self) -> str:
        return f"DescriptionLengths({self._bits!r})"

    def _table(self) -> Table:
        rows = [[str(h), f"{b.hypothesis:.6g}", f"{b.data:.6g}", f"{b.total:.6g}"] for h, b in self.items()]
        return Table(["hypothesis", "bits for h", "bits for data", "total"], rows)
