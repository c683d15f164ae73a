"""The quick way through files laid out as the writers lay them out: no events, no tokens, no places.

One regular expression per node for YAML, the standard library's reader for JSON. Whatever is not exactly of that
form, or has any fault, is left to the careful readers (None is returned), which read everything and give places.
Files of a hundred thousand nodes are read several times faster this way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from bbn.errors import ParseError
from bbn.io.build import RawNode, build
from bbn.io.document import resolve
from bbn.io.spec import state_text
from bbn.io.text import Source
from bbn.network import BayesianNetwork
from bbn.variable import State

_PLAIN = r"[^\W\d](?:[\w.+/-]| (?=[\w+/-]))*+"
_WORD = rf'(?:{_PLAIN}|-?[0-9]++|"[^"\\,\n]*+")'
_WORDS = rf"{_WORD}(?:, {_WORD})*+"
_NUMBER = r"[0-9]++(?:\.[0-9]*+)?(?:e[-+]?[0-9]++)?"
_NUMBERS = rf"\[({_NUMBER}(?:, {_NUMBER})*+)\]"
_NODE = re.compile(
    rf"  ({_PLAIN}):\n    states: \[({_WORDS})\]\n(?:    parents: \[({_WORDS})\]\n)?+"
    rf"    table:(?: {_NUMBERS}\n|\n((?:      [^\n\[\]:]++: {_NUMBERS}\n)++))"
)
_ROW = re.compile(r"      \"?([^\n\[\]:]*?)\"?: \[([^\]]*+)\]\n")


class _Plain(NamedTuple):
    """A node whose rows have these keys, in this order; no keys if its entries are in the table's own order."""

    name: str
    states: tuple[State, ...]
    parents: Sequence[str]
    keys: Sequence[str] | None
    values: list[float]


Shell = Callable[[Source], BayesianNetwork]
"""Reads the texts of a file: what stands before its nodes, with a stand-in for them."""


def quick_yaml(source: Source, strict: bool, shell: Shell) -> BayesianNetwork | None:
    """The network in a YAML file laid out as the writer does it, or None."""
    text = source.text
    start = re.search(r"^nodes:\n", text, re.MULTILINE)
    if start is None:
        return None
    nodes: list[_Plain] = []
    lists: dict[str, tuple[State, ...]] = {}
    place = start.end()
    while place < len(text):
        match = _NODE.match(text, place)
        if match is None:
            return None
        name, states, parents, entries, rows = match.group(1, 2, 3, 4, 5)
        keys = None
        if rows is not None:
            keys, numbers = zip(*_ROW.findall(rows), strict=True)
            entries = ", ".join(numbers)
        if (rows is None) != (parents is None):
            return None
        words = _word_list(states, lists)
        names: Sequence[Any] = _word_list(parents, lists) if parents else ()
        if not isinstance(resolve(name), str):
            return None
        nodes.append(_Plain(name, words, names, keys, [float(number) for number in entries.split(", ")]))
        place = match.end()
    try:
        texts = shell(Source(text[: start.end()].encode()[:-1] + b" {x: {states: [x], table: [1]}}"))
    except ParseError:
        return None
    return _built(source, nodes, texts.name, dict(texts.metadata), strict)


def quick_json(source: Source, strict: bool) -> BayesianNetwork | None:
    """The network in a JSON file whose tables are lists, or rows in the table's own order; or None."""
    try:
        found = json.loads(source.text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
        specs = found.pop("nodes")
        nodes = [_plain_node(name, **spec) for name, spec in specs.items()]
        if not all(isinstance(text, str) for text in found.values()):
            return None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return _built(source, nodes, found.pop("name", ""), found, strict)


def _built(
    source: Source, nodes: list[_Plain], name: str, texts: dict[str, str], strict: bool
) -> BayesianNetwork | None:
    states = {node.name: node.states for node in nodes}
    expected: dict[Any, list[str]] = {}
    raw = []
    for node in nodes:
        if node.keys is not None:
            try:
                parents = tuple((states[parent], type(states[parent][0])) for parent in node.parents)
                keys = expected.get(parents)
            except (LookupError, TypeError):
                return None
            if keys is None:
                if prod(len(own) for own, _ in parents) != len(node.keys):
                    return None
                texts_of = [[state_text(state) for state in own] for own, _ in parents]
                keys = expected[parents] = [", ".join(setting) for setting in product(*texts_of)]
            if list(node.keys) != keys:
                return None
        raw.append(RawNode(node.name, node.states, node.parents, node.values))
    try:
        return build(source, raw, name, texts, strict)
    except ParseError:
        return None


def _word_list(text: str, known: dict[str, tuple[State, ...]]) -> tuple[State, ...]:
    words = known.get(text)
    if words is None:
        parts = text.split(", ")
        words = known[text] = tuple(part[1:-1] if part[0] == '"' else resolve(part) for part in parts)
    return words


def _plain_node(name: str, states: Any, table: Any, parents: Any = ()) -> _Plain:
    """A node from JSON; TypeError or ValueError if it is not in the plain form."""
    if isinstance(table, dict):
        if not parents or any(type(row) is not list or len(row) != len(states) for row in table.values()):
            raise ValueError("not in the plain form")
        keys, values = list(table), [value for row in table.values() for value in row]
    else:
        if parents:
            raise ValueError("not in the plain form")
        keys, values = None, table
    if type(states) is not list or type(values) is not list or not set(map(type, values)) <= {int, float}:
        raise TypeError("not in the plain form")
    return _Plain(name, tuple(states), tuple(parents), keys, values)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a repeated key")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
