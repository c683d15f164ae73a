"""What a document says about a table, in bbn's own format: rows by key, or a nested list.

A table is read in two steps: as it stands in the file (`TableReader.read`), then, once the states of all parents are
known, into the table's own order (`TableReader.arrange`).
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from functools import lru_cache
from itertools import product
from math import fsum, inf, prod
from typing import NamedTuple

from bbn.io.build import refusal
from bbn.io.document import Document, Node, Scalar, Sequence
from bbn.io.problems import Where
from bbn.io.row_sums import TOLERATED
from bbn.io.shares import share
from bbn.io.source_text import OversizedFileError, listed
from bbn.io.writing import state_text
from bbn.model.table_input import ROUNDED
from bbn.model.variable import State

DEFAULT = "default"
"""The key of the row that stands for all that are not given, unless it is a state of the only parent."""


class KeyedRows(NamedTuple):
    """A table as a mapping: for each row its key, its entries, and its place.

    A key is the text yet to be split at commas, or the texts of a list.
    """

    keys: list[str | tuple[str, ...]]
    rows: list[list[float]]
    places: list[Where]


class NestedList(NamedTuple):
    """A table as a nested list: its shape, its entries in order, and the place of each innermost list."""

    shape: tuple[int, ...]
    values: list[float]
    places: list[Where]


DraftTable = KeyedRows | NestedList
Parents = SequenceABC[tuple[str, SequenceABC[State]]]
"""The parents' names, each with its states."""


class TableReader:
    """The reader of the tables of one document."""

    def __init__(self, document: Document) -> None:
        self.problems = document.problems
        self.where = document.where
        self.numbers: dict[str, float] = {}

    # As it stands in the file

    def read(self, name: str, states: list[State], node: Node, has_parents: bool) -> DraftTable | None:
        """The table of node `name`; None if what is wrong with it has been reported."""
        n_found = self.problems.count
        table = self._read(name, states, node, has_parents)
        if self.problems.count == n_found:
            return table
        if isinstance(table, KeyedRows):
            self._report_sums(name, states, table)
        return None

    def _read(self, name: str, states: list[State], node: Node, has_parents: bool) -> DraftTable | None:
        if isinstance(node, Sequence):
            nested = NestedList((), [], [])
            shape = self._flatten(name, node, nested)
            return None if shape is None else nested._replace(shape=shape)
        if isinstance(node, Scalar):
            self.problems.add(
                f"node {name!r}: 'table' must be a list or a mapping, found {node}", self.where(node)
            )
            return None
        if not has_parents:
            return KeyedRows([""], [self._row(name, "", states, node)], [self.where(node)])
        table = KeyedRows([], [], [])
        for key, value in node.pairs:
            row = self.key(name, key)
            table.keys.append(row)
            n_found = self.problems.count
            entries = self._row(name, f", row {_shown(row)}", states, value)
            table.rows.append(entries if self.problems.count == n_found else [])
            table.places.append(self.where(key))
        return table

    def _flatten(self, name: str, node: Sequence, nested: NestedList) -> tuple[int, ...] | None:
        """Append the numbers of a nested list; its shape, or None if it has none."""
        items = node.items
        if not items:
            self.problems.add(f"node {name!r}: an empty list in the table", self.where(node))
            return None
        if isinstance(items[0], Scalar):
            nested.places.append(self.where(node))
            nested.values.extend(self._numbers(name, "", items))
            return (len(items),)
        inner: tuple[int, ...] | None = None
        for item in items:
            if not isinstance(item, Sequence):
                self.problems.add(
                    f"node {name!r}: expected a list in the table, found {item}", self.where(item)
                )
                return None
            shape = self._flatten(name, item, nested)
            if shape is None:
                return None
            if inner is not None and shape != inner:
                self.problems.add(
                    f"node {name!r}: the lists of the table differ in shape: {inner} and {shape}",
                    self.where(item),
                )
                return None
            inner = shape
        return (len(items), *(inner or ()))

    def key(self, name: str, key: Node) -> str | tuple[str, ...]:
        """A row's key as it stands in the file."""
        if isinstance(key, Scalar):
            return key.text
        if isinstance(key, Sequence) and all(isinstance(item, Scalar) for item in key.items):
            return tuple(item.text for item in key.items if isinstance(item, Scalar))
        self.problems.add(
            f"node {name!r}: a row's key must be the parents' states ('yes, no' or [yes, no]), found {key}",
            self.where(key),
        )
        return ()

    def _row(self, name: str, row: str, states: list[State], node: Node) -> list[float]:
        """The entries of one row, from a list or from a mapping by state."""
        if isinstance(node, Sequence):
            values = self._numbers(name, row, node.items)
            if len(node.items) != len(states):
                self.problems.add(
                    f"node {name!r}{row}: expected {len(states)} entries ({_listed(states)}), "
                    f"found {len(node.items)}",
                    self.where(node),
                )
            return values
        if isinstance(node, Scalar):
            self.problems.add(
                f"node {name!r}{row}: expected a list of {len(states)} numbers or a mapping from state to number, "
                f"found {node}",
                self.where(node),
            )
            return []
        codes = _codes(tuple(states), type(states[0]).__name__)
        entries: dict[int, Node] = {}
        n_found = self.problems.count
        for key, value in node.pairs:
            code = codes.get(key.text) if isinstance(key, Scalar) else None
            if code is None:
                found = key.text if isinstance(key, Scalar) else key
                self.problems.add(
                    f"node {name!r}{row}: no state {found!r}{self.problems.nearest(found, states)}",
                    self.where(key),
                )
            elif code in entries:
                self.problems.twice(
                    f"node {name!r}{row}: the state {states[code]!r}",
                    self.where(key),
                    self.where(entries[code]),
                )
            else:
                entries[code] = value
        if len(entries) < len(states):
            if self.problems.count == n_found:
                missing = [state for code, state in enumerate(states) if code not in entries]
                self.problems.add(f"node {name!r}{row}: no entry for {_listed(missing)}", self.where(node))
            return []
        return self._numbers(name, row, [entries[code] for code in range(len(states))])

    def _numbers(self, name: str, row: str, items: list[Node]) -> list[float]:
        known = self.numbers
        try:
            values = [known[item.text] for item in items if not item.quoted]  # type: ignore[union-attr]
            if len(values) == len(items):
                return values
        except (KeyError, AttributeError):  # a number not met before, or no scalar
            pass
        return [self._number(name, row, item) for item in items]

    def _number(self, name: str, row: str, node: Node, what: str = "") -> float:
        value = node.value if isinstance(node, Scalar) else None
        if type(value) is int or type(value) is float:
            try:
                number = float(value)
            except OverflowError:
                number = inf
            if -ROUNDED <= number < inf:  # what rounding leaves of 0 is settled by row
                assert isinstance(node, Scalar)
                self.numbers[node.text] = number
                return number
        elif isinstance(node, Scalar):
            said = share(node.text)
            if said is not None:
                if not node.quoted:
                    self.numbers[node.text] = said
                return said
        expected = "a probability, a number from 0 to 1" if type(value) in (int, float) else "a number"
        where = what or f"node {name!r}{row}"
        self.problems.add(f"{where}: expected {expected}, found {node}", self.where(node))
        return 0.0

    def probability(self, what: str, node: Node) -> float:
        """One number from 0 to 1; what is wrong with it is reported, as `what`."""
        number = self._number("", "", node, what)
        if number > 1:
            self.problems.add(
                f"{what}: expected a probability, a number from 0 to 1, found {node}", self.where(node)
            )
        return number

    # In the table's own order

    def arrange(
        self, name: str, states: SequenceABC[State], parents: Parents, table: DraftTable, where: Where
    ) -> tuple[list[float] | None, list[Where]]:
        """The entries in the table's own order and the place of each row; no entries if the rows are wrong."""
        too_large = refusal([*(len(own) for _, own in parents), len(states)])
        if too_large:
            self.problems.add(f"node {name!r}: {too_large}", where, OversizedFileError)
            return None, []
        if isinstance(table, NestedList):
            return (
                table.values if self._has_right_shape(name, states, parents, table) else None
            ), table.places
        if not parents:
            return table.rows[0], table.places
        values, places = self.arranged(name, parents, table, where)
        off = [row for key, row in zip(table.keys, table.rows, strict=True) if key == DEFAULT]
        if values is not None and any(abs(_total(row) - 1) > TOLERATED for row in off):
            values, places = None, []  # so that it is not reported for every row that the default stands for
        if values is None:
            self._report_sums(name, states, table)
        return values, places

    def _report_sums(self, name: str, states: SequenceABC[State], table: KeyedRows) -> None:
        """Report the rows that do not sum to 1, in a table whose other fault keeps it from being checked again."""
        for key, row, place in zip(table.keys, table.rows, table.places, strict=True):
            total = _total(row)
            if len(row) == len(states) and abs(total - 1) > TOLERATED:
                which = f", row {_shown(key)}" if key else ""
                self.problems.add(f"node {name!r}{which}: sums to {total:.12g}, expected 1", place)

    def _has_right_shape(
        self, name: str, states: SequenceABC[State], parents: Parents, table: NestedList
    ) -> bool:
        shape = (*(len(own) for _, own in parents), len(states))
        if table.shape == shape:
            return True
        axes = ", ".join([*(parent for parent, _ in parents), name])
        shown = f"({shape[0]})" if len(shape) == 1 else str(shape)
        found = f"({table.shape[0]})" if len(table.shape) == 1 else str(table.shape)
        what = "a list of shape" if len(shape) == 1 else "a nested list of shape"
        self.problems.add(
            f"node {name!r}: expected {what} {shown} (axes {axes}), found {found}", table.places[0]
        )
        return False

    def arranged(
        self, name: str, parents: Parents, table: KeyedRows, where: Where
    ) -> tuple[list[float] | None, list[Where]]:
        """The entries of keyed rows in the order of the settings, and the place of each row."""
        cards = [len(states) for _, states in parents]
        codes = [_codes(tuple(states), type(states[0]).__name__) for _, states in parents]
        by_index: dict[int, int] = {}
        right = True
        default: int | None = None
        for number, key in enumerate(table.keys):
            if key == DEFAULT and not (len(parents) == 1 and DEFAULT in codes[0]) and default is None:
                default = number
                continue
            index = self._row_index(name, key, parents, codes, table.places[number])
            if index is None:
                right = False
            elif index in by_index:
                right = False
                line = self.problems.line_of(table.places[by_index[index]])
                self.problems.add(
                    f"node {name!r}: the row {_shown(key)} is given twice, first on line {line}",
                    table.places[number],
                )
            else:
                by_index[index] = number
        n_rows = prod(cards)
        if right and len(by_index) < n_rows and default is None:
            right = False
            self._report_missing(name, by_index, parents, where)
        if not right:
            return None, []
        if default is not None:
            self._reserve_rows(name, n_rows, table, default)
        order = [by_index.get(index, default or 0) for index in range(n_rows)]
        return [value for number in order for value in table.rows[number]], [table.places[n] for n in order]

    def _reserve_rows(self, name: str, n_rows: int, table: KeyedRows, default: int) -> None:
        """Count the memory of rows that the file does not spell out."""
        size = (24 * len(table.rows[default]) + 32) * n_rows
        line, column = self.problems.position(table.places[default])
        self.problems.source.reserve(size, f"node {name!r}: {n_rows:,} rows by a default", line, column)

    def _row_index(
        self,
        name: str,
        key: str | tuple[str, ...],
        parents: Parents,
        codes: list[dict[str, int]],
        where: Where,
    ) -> int | None:
        texts = _split(key, len(parents)) if isinstance(key, str) else key
        if len(texts) != len(parents):
            self.problems.add(
                f"node {name!r}: the row {_shown(key)} names {len(texts)} states; expected {len(parents)}, "
                f"one for each of {listed([parent for parent, _ in parents])}",
                where,
            )
            return None
        index = 0
        for text, (parent, states), by_text in zip(texts, parents, codes, strict=True):
            code = by_text.get(text)
            if code is None:
                self.problems.add(
                    f"node {name!r}, row {_shown(key)}: {parent!r} has no state {text!r}"
                    f"{self.problems.nearest(text, states)}",
                    where,
                )
                return None
            index = index * len(states) + code
        return index

    def _report_missing(self, name: str, given: MappingABC[int, int], parents: Parents, where: Where) -> None:
        n_missing = prod(len(states) for _, states in parents) - len(given)
        shown: list[str] = []
        for index, setting in enumerate(product(*(states for _, states in parents))):
            if index not in given:
                shown.append(", ".join(map(state_text, setting)))
                if len(shown) == 5:
                    break
        more = f" and {n_missing - len(shown)} more" if n_missing > len(shown) else ""
        self.problems.add(
            f"node {name!r}: {n_missing} row{'s' * (n_missing != 1)} missing, for "
            f"{listed([parent for parent, _ in parents])} = {'; '.join(shown)}{more}",
            where,
        )


def _total(row: list[float]) -> float:
    """The sum, infinite past the largest number."""
    try:
        return fsum(row)
    except OverflowError:
        return inf


@lru_cache(maxsize=4096)
def _codes(states: tuple[State, ...], kind: str) -> dict[str, int]:
    """The code of each state by its text; `kind` keeps (True,) apart from (1,)."""
    codes = {state_text(state): code for code, state in enumerate(states)}
    if kind == "bool":
        for code, state in enumerate(states):
            codes |= {str(state): code, str(state).upper(): code}
    return codes


def _split(text: str, n_parents: int) -> tuple[str, ...]:
    return (text.strip(),) if n_parents == 1 else tuple(part.strip() for part in text.split(","))


def _shown(key: str | tuple[str, ...]) -> str:
    return repr(key if isinstance(key, str) else ", ".join(key))


def _listed(states: list[State]) -> str:
    return listed([state_text(state) for state in states[:9]])
