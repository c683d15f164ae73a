"""What a document says about a continuous variable, in bbn's own format.

    {type: gaussian, parents: [...], table: ..., tied_variance: false, fixed_variance: false}

The table has a row {mean: number, variance: number} per setting of the discrete parents, keyed or nested as rows of
probabilities are; without discrete parents it is one such row. With continuous parents a row has `weights` too: a list
in their order, a mapping by their names, or a number where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceABC
from itertools import chain
from math import prod
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.io.build import RawGaussian, refusal
from bbn.io.document import Document, Mapping, Node, Scalar, Sequence
from bbn.io.problems import Where
from bbn.io.source_text import OversizedFileError, listed
from bbn.io.spec.spec_tables import KeyedRows, Parents, TableReader

FIELDS = ("type", "parents", "table", "tied_variance", "fixed_variance")
KIND = "gaussian"
_ROW = ("mean", "variance", "weights")


class GaussianDraft(NamedTuple):
    """A continuous node after the first pass: what the file says, looked at when all parents are known."""

    table: Node
    tied_variance: bool
    fixed_variance: bool


class GaussianReader:
    """The reader of the continuous variables of one document."""

    def __init__(self, document: Document, tables: TableReader) -> None:
        self.problems = document.problems
        self.where = document.where
        self.tables = tables

    def draft(self, name: str, fields: dict[str, Node]) -> GaussianDraft:
        """The fields of a node, of which `table` is one, its flags checked."""
        flags = [self._flag(name, field, fields.get(field)) for field in ("tied_variance", "fixed_variance")]
        return GaussianDraft(fields["table"], *flags)

    def arrange(
        self, name: str, discrete: Parents, continuous: SequenceABC[str], draft: GaussianDraft, where: Where
    ) -> RawGaussian | None:
        """The numbers in the order of the settings; None if what is wrong with them has been reported."""
        cards = [len(states) for _, states in discrete]
        too_large = refusal([*cards, 2 + len(continuous)])
        if too_large:
            self.problems.add(f"node {name!r}: {too_large}", where, OversizedFileError)
            return None
        n_found = self.problems.count
        values = self._values(name, discrete, continuous, draft.table, where)
        if values is None or self.problems.count > n_found:
            return None
        array: Array = np.array(values).reshape(*cards, 2 + len(continuous))
        variances = array[..., 1]
        if draft.tied_variance and (variances != variances.flat[0]).any():
            self.problems.add(
                f"node {name!r}: tied_variance is true, but the variances differ", self.where(draft.table)
            )
            return None
        flags = draft.tied_variance, draft.fixed_variance
        return RawGaussian(array[..., 0].copy(), variances.copy(), array[..., 2:].copy(), *flags)

    def _values(
        self, name: str, discrete: Parents, continuous: SequenceABC[str], node: Node, where: Where
    ) -> list[float] | None:
        """All rows one after the other, in the order of the settings."""
        if not discrete:
            return self._row(name, "", continuous, node)
        if isinstance(node, Mapping):
            rows = KeyedRows([], [], [])
            for key, value in node.pairs:
                found = self.tables.key(name, key)
                rows.keys.append(found)
                shown = found if isinstance(found, str) else ", ".join(found)
                rows.rows.append(self._row(name, f", row {shown!r}", continuous, value))
                rows.places.append(self.where(key))
            return self.tables.arranged(name, discrete, rows, where)[0]
        leaves = self._leaves(name, discrete, node)
        if leaves is None:
            return None
        return list(chain.from_iterable(self._row(name, "", continuous, leaf) for leaf in leaves))

    def _leaves(self, name: str, discrete: Parents, node: Node) -> list[Node] | None:
        """The rows of a nested list with one level per discrete parent."""
        level: list[Node] = [node]
        for parent, states in discrete:
            inner: list[Node] = []
            for item in level:
                if not isinstance(item, Sequence) or len(item.items) != len(states):
                    found = item if not isinstance(item, Sequence) else f"a list of {len(item.items)}"
                    self.problems.add(
                        f"node {name!r}: expected rows by the states of {listed([p for p, _ in discrete])}, "
                        f"or a list of {len(states)} for {parent!r}, found {found}",
                        self.where(item),
                    )
                    return None
                inner += item.items
            level = inner
        assert len(level) == prod(len(states) for _, states in discrete)
        return level

    def _row(self, name: str, row: str, continuous: SequenceABC[str], node: Node) -> list[float]:
        """[mean, variance, weight, …]; what is wrong with it is reported."""
        what = f"node {name!r}{row}"
        expected = "{mean: number, variance: number" + (", weights: [...]" if continuous else "") + "}"
        if not isinstance(node, Mapping):
            self.problems.add(f"{what}: expected {expected}, found {node}", self.where(node))
            return []
        entries: dict[str, Node] = {}
        for key, value in node.pairs:
            field = key.text if isinstance(key, Scalar) else None
            if field not in _ROW or (field == "weights" and not continuous):
                reason = "it has no continuous parents" if field == "weights" else ""
                self.problems.add(
                    f"{what}: unknown key {key}"
                    + (f", as {reason}" if reason else self.problems.nearest(field, _ROW)),
                    self.where(key),
                )
            elif field in entries:
                self.problems.twice(f"{what}: the key {field!r}", self.where(key), self.where(entries[field]))
            else:
                entries[field] = value
        missing = [field for field in _ROW[: 3 if continuous else 2] if field not in entries]
        if missing:
            self.problems.add(f"{what}: no {' and no '.join(missing)}; expected {expected}", self.where(node))
            return []
        numbers = [
            self._number(what, "mean", entries["mean"]),
            self._number(what, "variance", entries["variance"]),
        ]
        return numbers + (self._weights(what, continuous, entries["weights"]) if continuous else [])

    def _weights(self, what: str, continuous: SequenceABC[str], node: Node) -> list[float]:
        items: list[Node]
        if isinstance(node, Mapping):
            by_name = {key.text: value for key, value in node.pairs if isinstance(key, Scalar)}
            if len(by_name) == len(node.pairs) and set(by_name) == set(continuous):
                items = [by_name[parent] for parent in continuous]
            else:
                items = []
        else:
            items = node.items if isinstance(node, Sequence) else [node]
        if len(items) != len(continuous):
            self.problems.add(
                f"{what}: expected {len(continuous)} weight{'s' * (len(continuous) != 1)}, one for each of "
                f"{listed(continuous)}, found {node}",
                self.where(node),
            )
            return []
        return [
            self._number(what, f"the weight of {parent!r}", item)
            for parent, item in zip(continuous, items, strict=True)
        ]

    def _number(self, what: str, field: str, node: Node) -> float:
        value = node.value if isinstance(node, Scalar) else None
        number = float("nan")
        if type(value) is int or type(value) is float:
            try:
                number = float(value)
            except OverflowError:
                number = float("inf")
        if abs(number) < float("inf") and (field != "variance" or number > 0):
            return number
        expected = "a finite number above 0" if field == "variance" else "a finite number"
        self.problems.add(f"{what}: {field}: expected {expected}, found {node}", self.where(node))
        return 0.0

    def _flag(self, name: str, field: str, node: Node | None) -> bool:
        if node is None:
            return False
        value = node.value if isinstance(node, Scalar) else None
        if not isinstance(value, bool):
            self.problems.add(
                f"node {name!r}: {field!r} must be true or false, found {node}", self.where(node)
            )
        return value is True
