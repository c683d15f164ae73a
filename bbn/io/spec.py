"""What a document says about a network: the keys of bbn's own format and their meaning.

    name, description, source, …: text      nodes: {name: {states: [...], parents: [...], table: ...}}

A table is a list (no parents), a mapping from the parents' states to rows, or a nested list with one level per
parent; a row is a list of numbers or a mapping from state to number. Reading goes twice over the nodes: once
through the file, and once when the states of all parents are known. Writers get the parts in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

from bbn.cpt import CPT
from bbn.errors import ModelError, nearest
from bbn.io.build import Problems, RawNode, Where, build, refusal
from bbn.io.document import Document, Mapping, Node, Scalar, Sequence
from bbn.io.text import OversizedFileError
from bbn.network import BayesianNetwork
from bbn.variable import State

_FIELDS = ("states", "parents", "table")


class _Rows(NamedTuple):
    """A table as a mapping: for each row its key, its entries, and its place.

    A key is the text yet to be split at commas, or the texts of a list.
    """

    keys: list[str | tuple[str, ...]]
    rows: list[list[float]]
    places: list[Where]


class _Nested(NamedTuple):
    """A table as a nested list: its shape, its entries in order, and the place of each innermost list."""

    shape: tuple[int, ...]
    values: list[float]
    places: list[Where]


class _Draft(NamedTuple):
    """A node after the first pass; `table` is None if what is wrong with it is already reported."""

    name: str
    states: list[State]
    parents: list[str]
    table: _Rows | _Nested | None
    where: Where


def read_network(document: Document, strict: bool) -> BayesianNetwork:
    """The network that a document describes; ParseError with all its problems if there are any."""
    return _Reader(document).network(strict)


class _Reader:
    """The two passes over one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: Problems = document.problems
        self.where = document.where
        self.numbers: dict[str, float] = {}

    def network(self, strict: bool) -> BayesianNetwork:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            document.fail(f"expected a mapping with 'nodes', found {found}", found)
        texts: dict[str, str] = {}
        drafts: list[_Draft] | None = None
        first: dict[str, Where] = {}
        for key in document.each_key():
            name = self._string(key, "a key of the network")
            if name is not None and name in first:
                self._twice(f"the key {name!r}", key, first[name])
            elif name is not None:
                first[name] = self.where(key)
            if name == "nodes" and drafts is None:
                drafts = self._drafts()
            else:
                value = document.value()
                if name is not None and name != "nodes":
                    texts[name] = self._text(name, value)
        if drafts is None:
            hint = nearest("nodes", texts) if "did you mean" in nearest("nodes", texts) else ""
            self.problems.fail(f"there is no 'nodes', the mapping from each node to its table{hint}", (1, 1))
        return build(
            self.problems.source,
            self._raw_nodes(drafts),
            texts.pop("name", ""),
            texts,
            strict,
            self.problems,
        )

    # First pass: one node after the other, as they stand in the file

    def _drafts(self) -> list[_Draft]:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            if isinstance(found, Scalar) and found.value is None:
                return []
            document.fail(f"'nodes' must be a mapping from name to node, found {found}", found)
        drafts = []
        for key in document.each_key():
            name = self._string(key, "a node's name")
            spec = document.value()
            if name is not None:
                drafts.append(self._draft(name, spec, self.where(key)))
        return drafts

    def _draft(self, name: str, spec: Node, where: Where) -> _Draft:
        if not isinstance(spec, Mapping):
            self.problems.add(
                f"node {name!r}: expected a mapping with 'states' and 'table', found {spec}", where
            )
            return _Draft(name, [], [], None, where)
        fields: dict[str, Node] = {}
        misspelt = False
        for key, value in spec.pairs:
            field = key.text if isinstance(key, Scalar) else None
            if field not in _FIELDS:
                misspelt = True
                self.problems.add(
                    f"node {name!r}: unknown key {key}{nearest(field, _FIELDS)}", self.where(key)
                )
            elif field in fields:
                self._twice(f"node {name!r}: the key {field!r}", key, self.where(fields[field]))
            else:
                fields[field] = value
        for field in ("states", "table"):
            if field not in fields and not misspelt:
                self.problems.add(f"node {name!r} has no {field!r}", where)
        states = self._states(name, fields["states"]) if "states" in fields else []
        parents = self._parents(name, fields["parents"]) if "parents" in fields else []
        table = None
        if "table" in fields and states and parents is not None:
            n_found = len(self.problems.found)
            table = self._table(name, states, fields["table"], bool(parents))
            if len(self.problems.found) > n_found:
                table = None
        return _Draft(name, states, parents or [], table, where)

    def _states(self, name: str, node: Node) -> list[State]:
        if not isinstance(node, Sequence):
            self.problems.add(f"node {name!r}: 'states' must be a list, found {node}", self.where(node))
            return []
        if not node.items:
            self.problems.add(f"node {name!r} has no states; at least one is needed", self.where(node))
        states: list[State] = []
        right = True
        for item in node.items:
            value = item.value if isinstance(item, Scalar) else None
            if isinstance(value, str | int):
                states.append(value)
            else:
                right = False
                hint = f'; write "{item.text}" for a string' if isinstance(item, Scalar) else ""
                self.problems.add(
                    f"node {name!r}: a state must be a string, an integer, true or false, found {item}{hint}",
                    self.where(item),
                )
        return states if right else []

    def _parents(self, name: str, node: Node) -> list[str] | None:
        """The names of the parents, or None if they are wrong."""
        if not isinstance(node, Sequence):
            self.problems.add(f"node {name!r}: 'parents' must be a list, found {node}", self.where(node))
            return None
        names = [self._string(item, f"node {name!r}: a parent's name") for item in node.items]
        right = [parent for parent in names if parent is not None]
        return right if len(right) == len(names) else None

    def _table(self, name: str, states: list[State], node: Node, has_parents: bool) -> _Rows | _Nested | None:
        if isinstance(node, Sequence):
            nested = _Nested((), [], [])
            shape = self._flatten(name, node, nested)
            return None if shape is None else nested._replace(shape=shape)
        if isinstance(node, Scalar):
            self.problems.add(
                f"node {name!r}: 'table' must be a list or a mapping, found {node}", self.where(node)
            )
            return None
        if not has_parents:
            return _Rows([""], [self._row(name, "", states, node)], [self.where(node)])
        table = _Rows([], [], [])
        for key, value in node.pairs:
            row = self._key(name, key)
            table.keys.append(row)
            table.rows.append(self._row(name, f", row {_shown(row)}", states, value))
            table.places.append(self.where(key))
        return table

    def _flatten(self, name: str, node: Sequence, nested: _Nested) -> tuple[int, ...] | None:
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

    def _key(self, name: str, key: Node) -> str | tuple[str, ...]:
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
        n_found = len(self.problems.found)
        for key, value in node.pairs:
            code = codes.get(key.text) if isinstance(key, Scalar) else None
            if code is None:
                found = key.text if isinstance(key, Scalar) else key
                self.problems.add(
                    f"node {name!r}{row}: no state {found!r}{nearest(found, states)}", self.where(key)
                )
            elif code in entries:
                self._twice(f"node {name!r}{row}: the state {states[code]!r}", key, self.where(entries[code]))
            else:
                entries[code] = value
        if len(entries) < len(states):
            if len(self.problems.found) == n_found:
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

    def _number(self, name: str, row: str, node: Node) -> float:
        value = node.value if isinstance(node, Scalar) else None
        if type(value) is int or type(value) is float:
            try:
                number = float(value)
            except OverflowError:
                number = float("inf")
            if 0 <= number < float("inf"):
                assert isinstance(node, Scalar)
                self.numbers[node.text] = number
                return number
        expected = "a probability, a number from 0 to 1" if type(value) in (int, float) else "a number"
        self.problems.add(f"node {name!r}{row}: expected {expected}, found {node}", self.where(node))
        return 0.0

    # Second pass: the rows, now that the states of all parents are known

    def _raw_nodes(self, drafts: list[_Draft]) -> list[RawNode]:
        states = {draft.name: draft.states for draft in drafts}
        return [self._raw_node(draft, states) for draft in drafts]

    def _raw_node(self, draft: _Draft, states: MappingABC[str, list[State]]) -> RawNode:
        name, table = draft.name, draft.table
        parents = [(parent, states[parent]) for parent in draft.parents if states.get(parent)]
        if table is None or len(parents) < len(draft.parents):
            return RawNode(name, draft.states or ("?",), draft.parents, None, draft.where)
        too_large = refusal([*(len(own) for _, own in parents), len(draft.states)])
        if too_large:
            self.problems.add(f"node {name!r}: {too_large}", draft.where, OversizedFileError)
            return RawNode(name, draft.states, draft.parents, None, draft.where)
        if isinstance(table, _Nested):
            right = self._has_right_shape(draft, table, parents)
            values: list[float] | None = table.values if right else None
            places = table.places
        elif not parents:
            values, places = table.rows[0], table.places
        else:
            values, places = self._arranged(draft, table, parents)
        return RawNode(name, draft.states, draft.parents, values, draft.where, places.__getitem__)

    def _has_right_shape(self, draft: _Draft, table: _Nested, parents: list[tuple[str, list[State]]]) -> bool:
        shape = (*(len(states) for _, states in parents), len(draft.states))
        if table.shape == shape:
            return True
        axes = ", ".join([*draft.parents, draft.name])
        shown = f"({shape[0]})" if len(shape) == 1 else str(shape)
        found = f"({table.shape[0]})" if len(table.shape) == 1 else str(table.shape)
        what = "a list of shape" if len(shape) == 1 else "a nested list of shape"
        self.problems.add(
            f"node {draft.name!r}: expected {what} {shown} (axes {axes}), found {found}", table.places[0]
        )
        return False

    def _arranged(
        self, draft: _Draft, table: _Rows, parents: list[tuple[str, list[State]]]
    ) -> tuple[list[float] | None, list[Where]]:
        """The entries in the table's own order and the place of each row; no entries if rows are wrong."""
        cards = [len(states) for _, states in parents]
        by_index: dict[int, int] = {}
        right = True
        for number, key in enumerate(table.keys):
            index = self._row_index(draft.name, key, parents, table.places[number])
            if index is None:
                right = False
            elif index in by_index:
                right = False
                line = self._line(table.places[by_index[index]])
                self.problems.add(
                    f"node {draft.name!r}: the row {_shown(key)} is given twice, first on line {line}",
                    table.places[number],
                )
            else:
                by_index[index] = number
        if right and len(by_index) < prod(cards):
            right = False
            self._report_missing(draft, by_index, parents)
        if not right:
            return None, []
        order = [by_index[index] for index in range(len(by_index))]
        return [value for number in order for value in table.rows[number]], [table.places[n] for n in order]

    def _row_index(
        self, name: str, key: str | tuple[str, ...], parents: list[tuple[str, list[State]]], where: Where
    ) -> int | None:
        texts = _split(key, len(parents)) if isinstance(key, str) else key
        if len(texts) != len(parents):
            self.problems.add(
                f"node {name!r}: the row {_shown(key)} names {len(texts)} states; expected {len(parents)}, "
                f"one for each of {', '.join(parent for parent, _ in parents)}",
                where,
            )
            return None
        index = 0
        for text, (parent, states) in zip(texts, parents, strict=True):
            code = _codes(tuple(states), type(states[0]).__name__).get(text)
            if code is None:
                self.problems.add(
                    f"node {name!r}, row {_shown(key)}: {parent!r} has no state {text!r}{nearest(text, states)}",
                    where,
                )
                return None
            index = index * len(states) + code
        return index

    def _report_missing(
        self, draft: _Draft, given: MappingABC[int, int], parents: list[tuple[str, list[State]]]
    ) -> None:
        n_missing = prod(len(states) for _, states in parents) - len(given)
        shown: list[str] = []
        for index, setting in enumerate(product(*(states for _, states in parents))):
            if index not in given:
                shown.append(", ".join(map(state_text, setting)))
                if len(shown) == 5:
                    break
        more = f" and {n_missing - len(shown)} more" if n_missing > len(shown) else ""
        self.problems.add(
            f"node {draft.name!r}: {n_missing} row{'s' * (n_missing != 1)} missing, for "
            f"{', '.join(draft.parents)} = {'; '.join(shown)}{more}",
            draft.where,
        )

    # Words

    def _string(self, node: Node, what: str) -> str | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value:
            return value
        hint = f'; write "{node.text}"' if isinstance(node, Scalar) and node.text else ""
        self.problems.add(f"{what} must be a string that is not empty, found {node}{hint}", self.where(node))
        return None

    def _text(self, key: str, node: Node) -> str:
        if isinstance(node, Scalar):
            return "" if node.value is None else node.text
        self.problems.add(f"{key!r} must be text, found {node}", self.where(node))
        return ""

    def _twice(self, what: str, node: Node, first: Where) -> None:
        self.problems.add(f"{what} is given twice, first on line {self._line(first)}", self.where(node))

    def _line(self, where: Where) -> int:
        line, _ = self.problems.source.position(where) if isinstance(where, int) else where or (0, 0)
        return line


def state_text(state: State) -> str:
    """A state as it is written.

    >>> state_text(True), state_text(3), state_text("yes")
    ('true', '3', 'yes')
    """
    return ("true" if state else "false") if isinstance(state, bool) else str(state)


def tables(network: BayesianNetwork) -> Iterator[CPT]:
    """The network's tables in order; ModelError if a conditional is of another kind."""
    for variable in network.variables:
        conditional: Any = network[variable.name]
        if not isinstance(conditional, CPT):
            raise ModelError(
                f"node {variable.name!r} is a {type(conditional).__name__}; this format holds only tables"
            )
        yield conditional


def row_keys(cpt: CPT) -> list[str] | None:
    """The keys of the rows, states joined by commas; None if a state cannot be written that way."""
    texts = [[state_text(state) for state in parent.states] for parent in cpt.parents]
    if any(
        not text or text != text.strip() or set(text) & set(",\"'\n") for column in texts for text in column
    ):
        return None
    return [", ".join(setting) for setting in product(*texts)]


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
    return ", ".join(map(state_text, states[:8])) + (", …" if len(states) > 8 else "")
