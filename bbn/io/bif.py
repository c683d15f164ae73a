"""BIF, the interchange format 0.15 and its dialects.

A file is a sequence of statements, each ended by `;`, `{` or `}`. One regular expression cuts the text into
those, and `str.split` cuts a statement into its words, so the work is done at C speed, in time linear in the
text, and a position is worked out only for an error.

Understood: names and states bare or in double quotes (with `\\"` and `\\\\` inside); bare ones may hold spaces
where commas separate them; commas are optional between quoted names and between numbers; `table` (the child's
states vary slowest), `default` and one entry per row of the table, in any order; comments; blocks in any order.
`property` statements are skipped, but for the two kinds that the writer makes: the network's own, which are its
metadata, and `states = int` or `states = bool` of a variable whose states are not strings.

References: Cozman, *The Interchange Format for Bayesian Networks*, 1998; Hulten and Domingos, VFML, 2003.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, product
from math import prod
from typing import NamedTuple, NoReturn

import numpy as np

from bbn.errors import nearest
from bbn.frozen import Array
from bbn.io.build import RawNode, build
from bbn.io.kinds import as_kind, kind_of
from bbn.io.tables import BadNumberError, Numbers, Words, require_size, tables
from bbn.io.text import Source
from bbn.network import BayesianNetwork

_QUOTED = r'"(?:[^"\\]++|\\.)*+"'
# Matches follow one another without a gap: an unclosed quote ends a statement, it is not skipped.
_STATEMENT = re.compile(rf'((?:[^;{{}}"]++|{_QUOTED})*+)([;{{}}"]|\Z)', re.DOTALL)
_COMMENT = re.compile(rf'{_QUOTED[:-1]}(?:"|\Z)|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)', re.DOTALL)
_ITEM = re.compile(rf'({_QUOTED})|[^",|]++', re.DOTALL)
_WORD = re.compile(rf'({_QUOTED})|[^",|\s]++', re.DOTALL)
_KEYWORD = re.compile(r'\s*+([A-Za-z]++)(?![^\s("])\s*+')
_TYPE = re.compile(r"discrete\s*+\[\s*+([0-9]{1,9})\s*+\]")
_ESCAPED = re.compile(r'\\(["\\])')
_NOT_NEWLINE = re.compile(r"[^\n]")
_BARE = re.compile(r"(?!.*/[/*])[\w.+<>=/-]+")


class _Statement(NamedTuple):
    """Text without its `end`, which is one of `;`, `{` and `}`, and where the text starts."""

    body: str
    end: str
    start: int

    @property
    def place(self) -> int:
        """Where its first character that is not a space stands."""
        return self.start + len(self.body) - len(self.body.lstrip())

    @property
    def shown(self) -> str:
        """What to call it in a message."""
        words = " ".join(self.body[:400].split())
        return repr((words[:40] + "…" if len(words) > 40 else words) + self.end)


def read(source: Source, strict: bool = False) -> BayesianNetwork:
    """The network that a BIF file describes."""
    return _Parser(source).network(strict)


class _Parser:
    """What has been read so far; tables wait until every variable is declared."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.states: dict[str, tuple[str, ...]] = {}
        self.kinds: dict[str, str] = {}
        self.numbers = Numbers()

    def network(self, strict: bool) -> BayesianNetwork:
        name, metadata = "", {}
        blocks = []
        statements = self._statements()
        for header in statements:
            keyword, rest = _keyword(header.body)
            if header.end == ";" and not header.body.strip():
                continue
            if header.end != "{" or keyword not in ("network", "variable", "probability"):
                self.source.fail(
                    f"expected 'network', 'variable' or 'probability' and '{{', found {header.shown}", header.place
                )
            entries = self._block(statements, header)
            if keyword == "network":
                name, metadata = _name(rest), _properties(entries)
            elif keyword == "variable":
                self._declare(_name(rest), header, entries)
            else:
                blocks.append((header, entries))
        nodes = [self._node(header, entries) for header, entries in blocks]
        defined = {node.name for node in nodes}
        for variable in self.states:
            if variable not in defined:
                self.source.fail(f"variable {variable!r} has no probability block", len(self.source.text))
        return build(self.source, nodes, name, metadata, strict)

    def _statements(self) -> Iterator[_Statement]:
        text = self.source.text
        if "//" in text or "/*" in text:
            text = _COMMENT.sub(self._blank, text)
        for match in _STATEMENT.finditer(text):
            body, end = match.groups()
            if end == '"':
                self.source.fail("found a quote that is never closed, expected '\"'", match.end() - 1)
            statement = _Statement(body, end, match.start())
            if end:
                yield statement
            elif body and not body.isspace():
                self.source.fail(f"expected ';', '{{' or '}}' after {statement.shown}, found the end", len(text))

    def _blank(self, match: re.Match[str]) -> str:
        """A comment as spaces, its lines kept, so that every position stays what it was."""
        text = match[0]
        if text.startswith('"'):
            return text
        if text.startswith("/*") and (len(text) < 4 or not text.endswith("*/")):
            self.source.fail("found a comment that is never closed, expected '*/'", match.start())
        return _NOT_NEWLINE.sub(" ", text)

    def _block(self, statements: Iterator[_Statement], header: _Statement) -> list[_Statement]:
        """The statements of the block that `header` opens, those of blocks inside it among them."""
        entries: list[_Statement] = []
        depth = 1
        for statement in statements:
            if statement.end == "{":
                depth += 1
            elif statement.end == "}":
                depth -= 1
                if not depth:
                    if statement.body and not statement.body.isspace():
                        entries.append(statement)
                    return entries
            entries.append(statement)
        self.source.fail(f"expected '}}' for the block {header.shown}, found the end", len(self.source.text))

    def _declare(self, name: str, header: _Statement, entries: Sequence[_Statement]) -> None:
        """A variable from its block, which holds `type discrete [ 2 ] { yes, no };`."""
        if name in self.states:
            self.source.fail(f"variable {name!r} is declared twice", header.place)
        for entry, listing in pairwise(entries):
            keyword, rest = _keyword(entry.body)
            if keyword != "type":
                continue
            match = _TYPE.fullmatch(rest)
            if match is None or entry.end != "{" or listing.end != "}":
                self.source.fail(f"expected 'type discrete [ 2 ] {{ a, b }}', found {entry.shown}", entry.place)
            count = int(match[1])
            states = _items(listing.body, count)
            if len(states) != count:
                self.source.fail(
                    f"variable {name!r}: expected {count} states, as [ {count} ] says, found {len(states)}: "
                    + ", ".join(map(repr, states[:8])),
                    listing.place,
                )
            self.states[name] = states
            self.kinds[name] = _properties(entries).get("states", "str") if len(entries) > 3 else "str"
            return
        self.source.fail(f"expected 'type discrete' in the block {header.shown}, found none", header.place)

    def _node(self, header: _Statement, entries: list[_Statement]) -> RawNode:
        """A node from its `probability` block."""
        name, parents = self._family(header)
        card = len(self.states[name])
        given = [self.states[parent] for parent in parents]
        n_rows = prod(map(len, given))
        # The keys as most programs print them, so that most rows are found without cutting their key.
        known = dict(zip(map(", ".join, product(*given)), range(n_rows))) if n_rows <= len(entries) else {}
        rows: dict[int, _Statement] = {}
        words: list[str] = []
        table = default = None
        for entry in entries:
            body = entry.body.strip()
            if body[:1] == "(":
                key, _, cells = body[1:].rpartition(")")
                row = known[key] if key in known else self._row(name, parents, key, entry)
                found = cells.replace(",", " ").split()
                if len(found) != card or row in rows:
                    fault = "given twice" if row in rows else f"expected {card} numbers, found {len(found)}"
                    self.source.fail(f"probability of {name!r}, row ({key}): {fault}", entry.place)
                rows[row] = entry
                words += found
                continue
            keyword, rest = _keyword(body)
            if keyword == "table":
                table = self._array(name, rest.replace(",", " ").split(), n_rows * card, [entry])
                table = table.reshape(card, n_rows).T
            elif keyword == "default":
                default = self._array(name, rest.replace(",", " ").split(), card, [entry])
            elif body and keyword != "property":
                self.source.fail(
                    f"probability of {name!r}: expected 'table', 'default' or a row like (yes, no), "
                    f"found {entry.shown}",
                    entry.place,
                )
        values = self._array(name, words, len(words), list(rows.values())).reshape(-1, card)
        if table is None and len(rows) < n_rows:
            if default is None:
                self._fail_incomplete(name, header, given, rows)
            require_size(self.source, name, [*map(len, given), card], header.place)
            table = np.tile(default, (n_rows, 1))
        if table is not None or list(rows) != list(range(n_rows)):
            table = np.empty((n_rows, card)) if table is None else np.ascontiguousarray(table)
            table[list(rows)] = values
            values = table
        states = as_kind(self.states[name], self.kinds[name])
        return RawNode(
            name, states, parents, values.ravel(), header.place, lambda row: rows.get(row, header).place
        )

    def _family(self, header: _Statement) -> tuple[str, tuple[str, ...]]:
        """The child and its parents from `probability ( child | parent, parent )`; the bar may be missing."""
        _, rest = _keyword(header.body)
        if not (rest.startswith("(") and rest.endswith(")")):
            self.source.fail(f"expected 'probability ( child | parents )', found {header.shown}", header.place)
        names: list[str] = []
        for match in _ITEM.finditer(rest[1:-1]):
            text = match[0].strip()
            names += [_name(text)] if match[1] or text in self.states else text.split()
        for name in names:
            if name not in self.states:
                self.source.fail(
                    f"probability of {names[0]!r}: {name!r} is not a declared variable{nearest(name, self.states)}",
                    header.start + max(header.body.find(name), 0),
                )
        if not names:
            self.source.fail(f"expected a variable's name, found {header.shown}", header.place)
        return names[0], tuple(names[1:])

    def _row(self, name: str, parents: Sequence[str], key: str, entry: _Statement) -> int:
        """The number of the row that a key like `yes, no` stands for."""
        found = _items(key, len(parents))
        if len(found) != len(parents):
            self.source.fail(
                f"probability of {name!r}, row ({key}): expected {len(parents)} states, one for each of "
                f"({', '.join(parents)}), found {len(found)}",
                entry.place,
            )
        row = 0
        for parent, state in zip(parents, found, strict=True):
            states = self.states[parent]
            if state not in states:
                self.source.fail(
                    f"probability of {name!r}, row ({key}): {parent!r} has no state {state!r}{nearest(state, states)}",
                    entry.place,
                )
            row = row * len(states) + states.index(state)
        return row

    def _array(self, name: str, words: list[str], count: int, entries: list[_Statement]) -> Array:
        """The numbers that these words stand for; there are equally many in each of the entries."""
        if len(words) != count:
            self.source.fail(
                f"probability of {name!r}: expected {count} numbers, found {len(words)}", entries[0].place
            )
        try:
            return self.numbers.array(words)
        except BadNumberError as error:
            entry = entries[error.index * len(entries) // len(words)]
            self.source.fail(
                f"probability of {name!r}: expected a number from 0 to 1, found {error.found}",
                entry.start + max(entry.body.rfind(words[error.index]), 0),
            )

    def _fail_incomplete(
        self, name: str, header: _Statement, given: Sequence[tuple[str, ...]], rows: dict[int, _Statement]
    ) -> NoReturn:
        keys = enumerate(islice(product(*given), len(rows) + 3))
        missing = [f"({', '.join(key)})" for row, key in keys if row not in rows]
        self.source.fail(
            f"probability of {name!r}: expected {prod(map(len, given))} rows or a default, found {len(rows)} rows"
            + f"; missing {', '.join(missing[:3])}" * bool(missing),
            header.place,
        )


def _keyword(body: str) -> tuple[str, str]:
    """The word that starts a statement (empty if something else does), and the rest."""
    match = _KEYWORD.match(body)
    return (match[1], body[match.end() :].rstrip()) if match else ("", body.strip())


def _properties(entries: Sequence[_Statement]) -> dict[str, str]:
    found = {}
    for entry in entries:
        keyword, rest = _keyword(entry.body)
        key, equals, value = _name(rest).partition("=") if keyword == "property" else ("", "", "")
        if key.strip() and equals:
            found[key.strip()] = value.strip()
    return found


def _items(text: str, count: int) -> tuple[str, ...]:
    """Names or states from a list: cut at commas, or at spaces too if that alone gives `count` of them."""
    if '"' not in text:
        items = [item.strip() for item in text.split(",")]
        if not items[-1]:
            items.pop()
        words = items if len(items) == count else text.replace(",", " ").split()
        return tuple(words if len(words) == count else items)
    for pattern in (_WORD, _ITEM):
        items = [_name(match[0]) for match in pattern.finditer(text) if not match[0].isspace()]
        if len(items) == count:
            break
    return tuple(items)


def _name(text: str) -> str:
    """A name or state without the quotes and spaces around it."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = _ESCAPED.sub(r"\1", text[1:-1])
    return text


def write(network: BayesianNetwork) -> str:
    """The network as BIF, one entry per row of each table; names and states are quoted where they must be."""
    texts = {v: [_shown(str(state)) for state in v.states] for v in network.variables}
    parts = [f"network {_shown(network.name or 'unknown')} {{\n"]
    parts += [f"  property {_quoted(f'{key} = {value}')};\n" for key, value in network.metadata.items()]
    parts.append("}\n")
    for variable, states in texts.items():
        kind = f"  property states = {kind_of(variable)};\n" if kind_of(variable) != "str" else ""
        parts.append(
            f"variable {_shown(variable.name)} {{\n  type discrete [ {variable.card} ] {{ {', '.join(states)} }};\n"
            f"{kind}}}\n"
        )
    words = Words()
    for cpt in tables(network):
        name = _shown(cpt.name)
        rows = map(", ".join, zip(*[iter(words.of(cpt.table))] * cpt.variable.card))
        if not cpt.parents:
            parts.append(f"probability ( {name} ) {{\n  table {next(rows)};\n}}\n")
            continue
        given = ", ".join(_shown(parent.name) for parent in cpt.parents)
        keys = map(", ".join, product(*(texts[parent] for parent in cpt.parents)))
        parts.append(f"probability ( {name} | {given} ) {{\n")
        parts += [f"  ({key}) {row};\n" for key, row in zip(keys, rows)]
        parts.append("}\n")
    return "".join(parts)


def _shown(text: str) -> str:
    return text if _BARE.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
