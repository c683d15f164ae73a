"""The quick way through files laid out as the writers lay them out: no events, no tokens, no places.

One regular expression per node for YAML, the standard library's reader for JSON. Whatever is not exactly of that
form, or has any fault, is left to the careful readers (None is returned), which read everything and give places.
Files of a hundred thousand nodes are read several times faster this way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from bbn.core.errors import ParseError
from bbn.io.build import RawNode, build
from bbn.io.document import resolve
from bbn.io.source_text import Source
from bbn.io.writing import VERSION, key_length, state_text
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

_PLAIN = r"[^\W\d](?:[\w.+/-]| (?=[\w+/-]))*+"
_WORD = rf'(?:{_PLAIN}|-?[0-9]++|"[^"\\,\n]*+")'
_WORDS = rf"{_WORD}(?:, {_WORD})*+"
_NUMBER = r"[0-9]++(?:\.[0-9]*+)?(?:e[-+]?[0-9]++)?"
_NUMBERS = rf"\[({_NUMBER}(?:, {_NUMBER})*+)\]"
_NODE = re.compile(
    rf"  ({_PLAIN}):\n    states: \[({_WORDS})\]\n(?:    parents: \[({_WORDS})\]\n)?+"
    rf"    table:(?: {_NUMBERS}\n|\n((?:      [^\n\[\]:]++: {_NUMBERS}\n)++))"
)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ROW = re.compile(r"      \"?([^\n\[\]:]*?)\"?: \[([^\]]*+)\]\n")


Shell = Callable[[Source], BayesianNetwork]
"""Reads the texts of a file: what stands before its nodes, with a stand-in for them."""


def quick_yaml(source: Source, strict: bool, shell: Shell) -> BayesianNetwork | None:
    """The network in a YAML file laid out as the writer does it, or None."""
    text = source.text
    start = re.search(r"^nodes:\n", text, re.MULTILINE)
    if start is None:
        return None
    nodes = _Nodes()
    lists: dict[str, tuple[State, ...]] = {}
    place = start.end()
    while place < len(text):
        match = _NODE.match(text, place)
        if match is None:
            return None
        name, states, parents, entries, rows = match.group(1, 2, 3, 4, 5)
        if (rows is None) != (parents is None) or not isinstance(resolve(name), str):
            return None
        keys: Sequence[str] = ()
        if rows is not None:
            keys, numbers = zip(*_ROW.findall(rows), strict=True)
            entries = ", ".join(numbers)
        names: Any = _word_list(parents, lists) if parents else ()
        nodes.add(
            name, _word_list(states, lists), names, keys, [float(number) for number in entries.split(", ")]
        )
        place = match.end()
    try:
        texts = shell(Source(text[: start.end() - 1].encode() + b" {x: {states: [x], table: [1]}}"))
    except ParseError:
        return None
    return nodes.network(source, texts.name, texts.metadata, strict)


def quick_json(source: Source, strict: bool) -> BayesianNetwork | None:
    """The network in a JSON file whose rows are in the table's own order, or None."""
    nodes = _Nodes()
    try:
        found = json.loads(source.text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
        for name, spec in found.pop("nodes").items():
            nodes.add(name, *_plain_node(**spec))
        if type(found.get("version")) is int and found["version"] == VERSION:
            del found["version"]
        if not all(isinstance(text, str) for text in found.values()) or (
            "\\u" in source.text and _SURROGATE.search(source.text)
        ):
            return None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return nodes.network(source, found.pop("name", ""), found, strict)


class _Nodes:
    """The nodes so far. Rows must have the expected keys in the expected order."""

    def __init__(self) -> None:
        self.nodes: list[RawNode] = []
        self.states: dict[str, tuple[State, ...]] = {}
        self.unchecked: list[tuple[Sequence[str], Sequence[str]]] = []
        self.expected: dict[Any, tuple[str, ...]] = {}

    def add(
        self,
        name: str,
        states: tuple[State, ...],
        parents: Sequence[str],
        keys: Sequence[str],
        values: list[float],
    ) -> None:
        """Add a node; its keys are compared at once where its parents are known, so that they need not be kept."""
        self.states[name] = states
        self.nodes.append(RawNode(name, states, parents, values))
        if parents and not self._has_right_keys(parents, keys):
            self.unchecked.append((parents, keys))

    def network(
        self, source: Source, name: str, texts: Mapping[str, str], strict: bool
    ) -> BayesianNetwork | None:
        """The network, or None if there is anything wrong with it."""
        if not all(self._has_right_keys(parents, keys) for parents, keys in self.unchecked):
            return None
        try:
            return build(source, self.nodes, name, texts, strict)
        except ParseError:
            return None

    def _has_right_keys(self, parents: Sequence[str], keys: Sequence[str]) -> bool:
        try:
            family = tuple((self.states[parent], type(self.states[parent][0])) for parent in parents)
            expected = self.expected.get(family)
        except (LookupError, TypeError):
            return False
        if expected is None:
            if prod(len(own) for own, _ in family) != len(keys):
                return False
            texts = [[state_text(state) for state in own] for own, _ in family]
            if key_length(texts) != sum(map(len, keys)):
                return False
            expected = self.expected[family] = tuple(", ".join(setting) for setting in product(*texts))
        return tuple(keys) == expected


def _word_list(text: str, known: dict[str, tuple[State, ...]]) -> tuple[State, ...]:
    words = known.get(text)
    if words is None:
        parts = text.split(", ")
        words = known[text] = tuple(part[1:-1] if part[0] == '"' else resolve(part) for part in parts)
    return words


def _plain_node(
    states: Any, table: Any, parents: Any = ()
) -> tuple[tuple[State, ...], tuple[str, ...], Sequence[str], list[float]]:
    """States, parents, keys and entries of a node from JSON; an error if it is not in the plain form."""
    if isinstance(table, dict):
        if not parents or any(type(row) is not list or len(row) != len(states) for row in table.values()):
            raise ValueError("not in the plain form")
        keys, values = tuple(table), [value for row in table.values() for value in row]
    else:
        if parents:
            raise ValueError("not in the plain form")
        keys, values = (), table
    kinds = set(map(type, values)) if type(values) is list else {None}
    if type(states) is not list or not kinds <= {int, float}:
        raise TypeError("not in the plain form")
    if int in kinds:
        values = list(map(float, values))  # OverflowError if one is past the largest float
    return tuple(states), tuple(parents), keys, values


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a repeated key")
    return found


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
