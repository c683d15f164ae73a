"""BIF, the interchange format 0.15 and its dialects.

Files written in the ordinary way are read by a compiled kernel. For the others, and where it is not built, one
regular expression cuts the text into blocks (`network`, `variable`, `probability`), `str.split` cuts a block
into entries and an entry into words, so the work is done at C speed, in time linear in the text, and a position
is worked out only for an error.

Understood: names and states bare or in double quotes (with `\\"` and `\\\\` inside); bare ones may hold spaces
where commas separate them; commas are optional between quoted names and between numbers; `table` (the child's
states vary slowest), `default` and one entry per row of the table, in any order; comments; blocks in any order.
Of the `property` statements only the network's own are kept, as its metadata, and `bbn = …` of a variable, the
note of states that are not strings. Metadata is written as comments at the head, `// key = value`, since some
readers stumble over words in properties, and read from there too.

References: Cozman, *The Interchange Format for Bayesian Networks*, 1998; Hulten and Domingos, VFML, 2003.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, islice, product
from math import prod

import numpy as np

from bbn import kernels
from bbn.core.budget import MAX_AXES
from bbn.core.errors import ModelError, ParseError
from bbn.io.about import Legal, about, restore_about
from bbn.io.build import RawNode, build
from bbn.io.formats.bif_comments import read_comments, write_comments
from bbn.io.formats.block_syntax import (
    INNER,
    PLAIN,
    QUOTED,
    TextBlock,
    blocks,
    quoted,
    shortened,
    unquoted,
    without_comments,
)
from bbn.io.labels import labels, restore
from bbn.io.number_tables import BadNumberError, NumberParser, reserve_table, row_texts, tables
from bbn.io.problems import Problems
from bbn.io.row_sums import Values
from bbn.io.source_text import Source
from bbn.io.writing import key_length
from bbn.kernels.contracts.types import Scan
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

_PROPERTY = rf"property\b{PLAIN};?[\s;]*+"
_DECLARATION = re.compile(
    rf"[\s;]*+(?:{_PROPERTY})*+type\s++discrete\s*+\[\s*+(?P<count>[0-9]{{1,9}})\s*+\]\s*+\{{(?P<states>{INNER})\}}"
    rf"[\s;]*+(?:{_PROPERTY})*+",
    re.DOTALL,
)
_PROPERTIES = re.compile(rf"(?:\A|[;}}])\s*+property\b({PLAIN})", re.DOTALL)
_COMMENT = re.compile(rf'{QUOTED[:-1]}(?:"|\Z)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)', re.DOTALL)
_HEAD = re.compile(r"(?:\s*+//[^\n]*+\n)++")
_ITEM = re.compile(rf'({QUOTED})|[^",|]++', re.DOTALL)
_WORD = re.compile(rf'({QUOTED})|[^",|\s]++', re.DOTALL)
_BARE = re.compile(r"(?!.*/[/*])[\w.+<>=/-]+")


def _text(text: str) -> str:
    return text.replace("\0", "\ufffd")


_NAMELESS = "unknown"
# Metadata are comments, where a JSON string holds any text.
_LEGAL = Legal(lambda name: "_unknown" if name == _NAMELESS else _text(name), str, str)


def read(source: Source, strict: bool = False) -> BayesianNetwork:
    """The network that a BIF file describes."""
    scanned = kernels.bif.scan(source.data)
    if scanned is not None:
        with suppress(
            ParseError, ModelError, UnicodeDecodeError
        ):  # the general reader says better what is wrong, and where
            return _from_scan(source, scanned, strict)
    return _BifReader(source).network(strict)


def _from_scan(source: Source, scanned: Scan, strict: bool) -> BayesianNetwork:
    """The network of a file that was scanned; tables whose rows are exact need no further look."""
    name, head, exact, found = scanned
    name, metadata = restore_about(_title(name), read_comments(source.data[:head].decode()), _LEGAL)
    if not exact:
        return build(source, [RawNode(*node) for node in found], name, metadata, strict)
    variables = {node: Variable(node, states) for node, states, _, _, _ in found}
    conditionals = []
    for node, states, parents, values, _ in found:
        family = tuple([variables[parent] for parent in parents])
        if family:
            values = values.reshape([*[len(parent.states) for parent in family], len(states)])
        conditionals.append(CPT.trusted(variables[node], family, values))
    return BayesianNetwork(conditionals, name, metadata)


class _BifReader:
    """What has been read so far; tables wait until every variable is declared."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.states: dict[str, tuple[str, ...]] = {}
        self.codes: dict[str, dict[str, int]] = {}
        self.notes: dict[str, str] = {}
        self.numbers = NumberParser()
        self.rows: dict[tuple[tuple[str, ...], ...], dict[str, int]] = {}

    def network(self, strict: bool) -> BayesianNetwork:
        name, metadata = "", {}
        problems = Problems(self.source)
        declared: list[TextBlock] = []
        waiting: list[TextBlock] = []
        text = self.source.text
        head = _HEAD.match(text)
        start = head.end() if head else 0
        if text.find("//", start) >= 0 or "/*" in text:
            text, start = without_comments(self.source, _COMMENT), 0
        for block in blocks(self.source, text, ("network", "variable", "probability"), start):
            if block.keyword == "probability":
                waiting.append(block)
            elif block.keyword == "variable":
                declared.append(block)
            else:
                name, metadata = _title(unquoted(block.header)), _properties(block.body)
        problems.each(declared, self._declare)
        problems.raise_first()
        nodes = problems.each(waiting, self._node)
        problems.raise_first()
        defined = {node.name for node in nodes}
        for variable in self.states:
            if variable not in defined:
                problems.add(f"variable {variable!r} has no probability block", len(text))
        problems.raise_first()
        name, metadata = restore_about(name, metadata | read_comments(head[0] if head else ""), _LEGAL)
        return build(self.source, restore(nodes, self.notes), name, metadata, strict)

    def _declare(self, block: TextBlock) -> None:
        """A variable from its block, which holds `type discrete [ 2 ] { yes, no };`."""
        name = unquoted(block.header)
        match = _DECLARATION.fullmatch(block.body)
        if match is None:
            self.source.fail(
                f"variable {name!r}: expected 'type discrete [ 2 ] {{ a, b }};' and properties, "
                f"found {shortened(block.body)}",
                block.start,
            )
        if name in self.states:
            self.source.fail(f"variable {name!r} is declared twice", block.start)
        count = int(match["count"])
        states = _items(match["states"], count)
        if len(states) != count:
            found = ", ".join(map(repr, states[:8]))
            self.source.fail(
                f"variable {name!r}: expected {count} states, found {len(states)}: {found}", block.start
            )
        self.states[name] = states
        if "property" in block.body:
            self.notes[name] = _properties(block.body).get("bbn", "")

    def _node(self, block: TextBlock) -> RawNode:
        """A node from its `probability` block."""
        name, parents = self._family(block)
        card = len(self.states[name])
        given = tuple([self.states[parent] for parent in parents])
        if len(given) >= MAX_AXES:
            reserve_table(self.source, name, [*map(len, given), card], block.start)
        n_rows = prod(map(len, given))
        entries = block.statements()
        known = self._keys(given, len(block.body)) if n_rows <= len(entries) else {}
        rows: dict[int, list[str]] = {}
        others: dict[str, list[str]] = {}
        for index, entry in enumerate(entries):
            entry = entry.strip()
            if entry[:1] == "(":
                key, _, rest = entry.rpartition(")")
                row = known[key] if key in known else self._row(name, parents, key, block, index)
                count, title, seen = card, f"row {key})", row in rows
                words = rows[row] = rest.replace(",", " ").split()
            elif entry:
                title, _, rest = entry.replace("\t", " ").replace("\n", " ").partition(" ")
                if title == "property":
                    continue
                if title not in ("table", "default"):
                    self.source.fail(
                        f"probability of {name!r}: expected 'table', 'default' or a row like (yes, no), "
                        f"found {shortened(entry)}",
                        block.place(index),
                    )
                count, seen = card * n_rows if title == "table" else card, title in others
                words = others[title] = rest.replace(",", " ").split()
            else:
                continue
            if len(words) != count or seen:
                fault = "given twice" if seen else f"expected {count} numbers, found {len(words)}"
                self.source.fail(f"probability of {name!r}, {title}: {fault}", block.place(index))
        try:
            if len(rows) < n_rows:
                values: Values = self._filled(name, block, given, rows, others)
            else:
                words = list(chain.from_iterable(map(rows.__getitem__, range(n_rows))))
                values = self.numbers.floats(words)
        except BadNumberError as error:
            self.source.fail(
                f"probability of {name!r}: expected a number from 0 to 1, found {error.found}",
                block.body_start + max(block.body.rfind(error.word), 0),
            )
        return RawNode(
            name, self.states[name], parents, values, block.start, self._place_finder(block, parents)
        )

    def _keys(self, given: tuple[tuple[str, ...], ...], room: int) -> dict[str, int]:
        """Row numbers by key, written as most programs do, without the last parenthesis.

        None are made if they would be longer than `room` characters in all: the file then writes them otherwise.
        """
        known = self.rows.get(given)
        if known is None:
            if key_length(given) > room:
                return {}
            known = {f"({', '.join(key)}": row for row, key in enumerate(product(*given))}
            self.rows[given] = known
        return known

    def _family(self, block: TextBlock) -> tuple[str, tuple[str, ...]]:
        """The child and its parents from `( child | parent, parent )`; the bar may be missing."""
        header = block.header.strip()
        if header[:1] != "(" or header[-1:] != ")":
            self.source.fail(
                f"expected 'probability ( child | parents )', found {shortened('probability ' + header)}",
                block.start,
            )
        names: list[str] = []
        for match in _ITEM.finditer(header[1:-1]):
            text = match[0].strip()
            names += [unquoted(text)] if match[1] or text in self.states else text.split()
        for name in names:
            if name not in self.states:
                self.source.fail(
                    f"probability of {names[0]!r}: {name!r} is not a declared variable"
                    f"{self.source.nearest(name, self.states)}",
                    block.start,
                )
        if not names:
            self.source.fail("expected a variable's name after 'probability (', found none", block.start)
        return names[0], tuple(names[1:])

    def _row(self, name: str, parents: Sequence[str], key: str, block: TextBlock, index: int) -> int:
        """The number of the row that a key like `(yes, no` stands for."""
        found = _items(key[1:], len(parents))
        if len(found) != len(parents):
            self.source.fail(
                f"probability of {name!r}, row {key}): expected {len(parents)} states, one for each of "
                f"({', '.join(parents)}), found {len(found)}",
                block.place(index),
            )
        row = 0
        for parent, state in zip(parents, found, strict=True):
            codes = self._codes(parent)
            if state not in codes:
                self.source.fail(
                    f"probability of {name!r}, row {key}): {parent!r} has no state {state!r}"
                    f"{self.source.nearest(state, codes)}",
                    block.place(index),
                )
            row = row * len(self.states[parent]) + codes[state]
        return row

    def _codes(self, name: str) -> dict[str, int]:
        """The number of each state; of the first, where a state is there twice, which is an error later."""
        if name not in self.codes:
            self.codes[name] = {state: code for code, state in reversed(list(enumerate(self.states[name])))}
        return self.codes[name]

    def _place_finder(self, block: TextBlock, parents: Sequence[str]) -> Callable[[int], int]:
        """Where the entry for a row stands, or the table or default that gave it; worked out when first asked."""
        places: dict[int, int] = {}

        def place(row: int) -> int:
            if not places:
                start = block.body_start
                for index, entry in enumerate(block.statements()):
                    text = entry.strip()
                    key = text.rpartition(")")[0]
                    number = self._row("", parents, key, block, index) if key[:1] == "(" else -1
                    if text and not text.startswith("property"):
                        places[number] = start + len(entry) - len(entry.lstrip())
                    start += len(entry) + 1
            return places.get(row, places.get(-1, block.start))

        return place

    def _filled(
        self,
        name: str,
        block: TextBlock,
        given: Sequence[Sequence[str]],
        rows: dict[int, list[str]],
        others: dict[str, list[str]],
    ) -> Values:
        """The entries where some rows have none of their own, from `table` or `default`."""
        n_rows, card = prod(map(len, given)), len(self.states[name])
        floats = self.numbers.floats
        if "table" in others:  # the child's states vary slowest
            table = np.array(floats(others["table"])).reshape(card, n_rows).T.copy()
        elif "default" in others:
            default = floats(others["default"])
            reserve_table(self.source, name, [*map(len, given), card], block.start)
            table = np.empty((n_rows, card))
            table[:] = default
        else:
            keys = enumerate(product(*given))
            missing = islice((f"({', '.join(key)})" for row, key in keys if row not in rows), 3)
            self.source.fail(
                f"probability of {name!r}: expected {n_rows} rows or a default, found {len(rows)} rows; "
                f"missing {', '.join(missing)}",
                block.start,
            )
        if rows:
            own = floats(list(chain.from_iterable(rows.values())))
            table[list(rows)] = np.array(own).reshape(-1, card)
        return table.ravel()


def _properties(body: str) -> dict[str, str]:
    found = {}
    for text in _PROPERTIES.findall(body):
        key, equals, value = unquoted(text).partition("=")
        if key.strip() and equals:
            found[key.strip()] = unquoted(value)
    return found


def _title(name: str) -> str:
    """The name of a network; programs write `unknown` for one that has none."""
    return "" if name == _NAMELESS else name


def _items(text: str, count: int) -> tuple[str, ...]:
    """Names or states from a list: cut at commas, or at spaces too if that alone gives `count` of them."""
    if '"' not in text:
        items = [item.strip() for item in text.split(",")]
        if not items[-1]:
            items.pop()
        if len(items) != count:
            words = text.replace(",", " ").split()
            return tuple(words if len(words) == count else items)
        return tuple(items)
    for pattern in (_ITEM, _WORD):
        items = [unquoted(match[0]) for match in pattern.finditer(text) if not match[0].isspace()]
        if len(items) == count:
            break
    return tuple(items)


def write(network: BayesianNetwork) -> str:
    """The network as BIF, one entry per row of each table; names and states are quoted where they must be."""
    written = labels(network, "BIF", _text)
    title, metadata = about(network.name, network.metadata, "BIF", _LEGAL)
    names = {name: _shown(label.name) for name, label in written.items()}
    shown = {label.states: tuple(map(_shown, label.states)) for label in written.values()}
    parts = write_comments(metadata)
    parts.append(f"network {_shown(title or _NAMELESS)} {{\n}}\n")
    for name, label in written.items():
        note = f"  property bbn = {quoted(label.note)};\n" if label.note else ""
        listed = f"  type discrete [ {len(label.states)} ] {{ {', '.join(shown[label.states])} }};\n"
        parts.append(f"variable {names[name]} {{\n{listed}{note}}}\n")
    keys: dict[tuple[tuple[str, ...], ...], list[str]] = {}  # many tables share their parents' states
    for cpt in tables(network):
        rows = row_texts(cpt.table, ", ", ";\n")
        if not cpt.parents:
            parts.append(f"probability ( {names[cpt.name]} ) {{\n  table {rows[0]}}}\n")
            continue
        given = tuple([shown[written[parent.name].states] for parent in cpt.parents])
        if given not in keys:
            keys[given] = _keys(given)
        parents = ", ".join([names[parent.name] for parent in cpt.parents])
        parts.append(f"probability ( {names[cpt.name]} | {parents} ) {{\n")
        parts.extend(chain.from_iterable(zip(keys[given], rows, strict=True)))
        parts.append("}\n")
    return "".join(parts)


def _keys(given: tuple[tuple[str, ...], ...]) -> list[str]:
    """The start of each row's entry, the last parent running fastest."""
    keys = ["  ("]
    for i, states in enumerate(given):
        ended = [f"{state}, " if i < len(given) - 1 else f"{state}) " for state in states]
        keys = [key + state for key in keys for state in ended]
    return keys


def _shown(text: str) -> str:
    return text if _BARE.fullmatch(text) else quoted(text)
