"""Hugin's NET: nodes with quoted states and potentials with nested lists of numbers.

`data` lists the entries with the child's states varying fastest, then the last parent, so it is the table of a
CPT as it stands; the parentheses are only for the eye. A potential without data is uniform, as in Hugin. Other
attributes are skipped, but for those that the writer makes: the network's own, which are its metadata, and
`bbn = "…"`, the note that keeps names that are not identifiers. Continuous nodes, classes and tables given by
expressions are refused. With decisions and utilities it is a decision network; the potential of a decision has no data,
only what it observes, and a decision that forgets something has limited memory, as in Hugin.

Reference: Hugin Expert, *Hugin API Reference Manual*, chapter "The NET language".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod

import numpy as np

from bbn.core.errors import ModelError
from bbn.io.about import Legal, about, restore_about
from bbn.io.build import RawNode, RawUtility, build
from bbn.io.formats.block_syntax import (
    QUOTED,
    TextBlock,
    blocks,
    quoted,
    shortened,
    unquoted,
    without_comments,
)
from bbn.io.formats.xdsl_decisions import RECALL
from bbn.io.labels import labels, restore
from bbn.io.number_tables import BadNumberError, NumberParser, reserve_table, row_texts, tables
from bbn.io.problems import Problems
from bbn.io.row_sums import Values
from bbn.io.source_text import Source
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork

_KEYWORDS = ("net", "node", "discrete", "potential", "continuous", "decision", "utility", "function", "class")
_COMMENT = re.compile(rf'{QUOTED[:-1]}(?:"|\Z)|%[^\n]*+', re.DOTALL)
_ATTRIBUTE = re.compile(r"\s*+(\w++)\s*+=\s*+")
_HEADER = re.compile(r"\(\s*+([^\s()|]++)\s*+(?:\|([^()|]*+))?\)\s*+")
_DATA = re.compile(r"\bdata\s*=")
_ENTRY = re.compile(r"[^\s();]+")
_ITEM = re.compile(rf'{QUOTED}|[^\s()"]++', re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_IDENTIFIER = re.compile(r"[^A-Za-z0-9_]")


def read(source: Source, strict: bool = False) -> BayesianNetwork:
    """The network that a NET file describes."""
    states: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}
    roles: dict[str, str] = {}
    starts: dict[str, int] = {}
    waiting: list[TextBlock] = []
    own: dict[str, str] = {}
    text = without_comments(source, _COMMENT) if "%" in source.text else source.text

    def declare(block: TextBlock) -> None:
        words = [block.keyword, *block.header.split()]
        if block.keyword == "net":
            own.update(_attributes(source, block))
        elif block.keyword == "potential":
            waiting.append(block)
        elif (len(words) < 4 and words[-2:-1] == ["node"] and words[0] in ("node", "discrete")) or (
            len(words) == 2 and words[0] in ("decision", "utility")
        ):
            name = words[-1]
            starts[name] = block.start
            roles[name] = words[0] if words[0] in ("decision", "utility") else ""
            if name in states:
                source.fail(f"node {name!r} is declared twice", block.start)
            attributes = _attributes(source, block)
            states[name] = tuple(map(unquoted, _ITEM.findall(attributes.get("states", ""))))
            notes[name] = unquoted(attributes.get("bbn", ""))
        else:
            source.fail(
                f"expected 'node' and a name, or 'potential', found {shortened(' '.join(words))}; "
                "only discrete chance nodes, decisions and utilities are supported",
                block.start,
            )

    problems = Problems(source)
    problems.each(blocks(source, text, _KEYWORDS), declare)
    problems.raise_first()
    numbers, worths = NumberParser(), NumberParser()

    def define(block: TextBlock) -> RawNode:
        name, parents = _family(source, block, states)
        if roles[name]:
            return _decided(source, block, name, parents, states, roles, worths)
        return _node(source, block, name, parents, states, numbers)

    nodes = problems.each(waiting, define)
    problems.raise_first()
    defined = {node.name for node in nodes}
    for name in states:
        if name not in defined and roles[name] == "decision":  # one that observes nothing
            nodes.append(RawNode(name, states[name], (), None, starts[name], role="decision"))
        elif name not in defined:
            problems.add(f"node {name!r} has no potential", len(text))
    problems.raise_first()
    texts = {key: unquoted(value) for key, value in own.items() if value[:1] == '"' and key != "name"}
    recall = texts.pop(RECALL, None) if any(roles.values()) else "perfect"
    title, metadata = restore_about(unquoted(own.get("name", "")), texts, _LEGAL)
    return build(source, restore(nodes, notes), title, metadata, strict, recall=recall)


def _attributes(source: Source, block: TextBlock) -> dict[str, str]:
    """The attributes of a block, `key = value;`."""
    found = {}
    for index, statement in enumerate(block.statements()):
        match = _ATTRIBUTE.match(statement)
        if match:
            found[match[1]] = statement[match.end() :].strip()
        elif statement.strip():
            source.fail(f"expected 'attribute = value;', found {shortened(statement)}", block.place(index))
    return found


def _family(source: Source, block: TextBlock, states: dict[str, tuple[str, ...]]) -> tuple[str, list[str]]:
    """The child and the parents of `potential ( child | parents )`."""
    match = _HEADER.fullmatch(block.header)
    if match is None:
        source.fail(
            f"expected 'potential ( child | parents )', found {shortened('potential ' + block.header)}",
            block.start,
        )
    name, parents = match[1], (match[2] or "").split()
    for each in (name, *parents):
        if each not in states:
            source.fail(
                f"potential of {name!r}: {each!r} is not a declared node{source.nearest(each, states)}",
                block.start,
            )
    return name, parents


def _decided(
    source: Source,
    block: TextBlock,
    name: str,
    parents: list[str],
    states: dict[str, tuple[str, ...]],
    roles: dict[str, str],
    numbers: NumberParser,
) -> RawNode:
    """A decision, whose parents are what it observes, or a utility, whose data are what each setting is worth."""
    if roles[name] == "decision":
        return RawNode(name, states[name], parents, None, block.start, role="decision")
    attributes = _attributes(source, block)
    cards = [len(states[parent]) for parent in parents]
    words = attributes.get("data", "").replace("(", " ").replace(")", " ").split()
    try:
        values = numbers.floats(words)
    except BadNumberError as error:
        source.fail(
            f"potential of {name!r}: expected a finite number, found {error.found}",
            block.body_start + max(block.body.find(error.word), 0),
        )
    if len(values) != prod(cards):
        source.fail(
            f"potential of {name!r}: expected {prod(cards)} entries, found {len(values)}", block.start
        )
    reserve_table(source, name, [*cards, 1], block.start)
    worth = RawUtility(np.array(values).reshape(cards), None, None)
    return RawNode(name, (), parents, None, block.start, role="utility", worth=worth)


def _node(
    source: Source,
    block: TextBlock,
    name: str,
    parents: list[str],
    states: dict[str, tuple[str, ...]],
    numbers: NumberParser,
) -> RawNode:
    """A node from `potential ( child | parents ) { data = ((…)(…)); }`."""
    attributes = _attributes(source, block)
    if "data" in attributes:
        try:
            values: Values = numbers.floats(attributes["data"].replace("(", " ").replace(")", " ").split())
        except BadNumberError as error:
            source.fail(
                f"potential of {name!r}: expected a number from 0 to 1, found {error.found}",
                block.body_start + max(block.body.find(error.word), 0),
            )
    elif "model_data" in attributes or "model_nodes" in attributes:
        source.fail(f"potential of {name!r}: expected 'data', found an expression", block.start)
    else:
        cards = [*(len(states[parent]) for parent in parents), len(states[name])]
        reserve_table(source, name, cards, block.start)
        values = np.full(prod(cards), 1.0 / max(cards[-1], 1))

    def row_where(row: int) -> int:
        """The place of the first entry of a row."""
        start = _DATA.search(block.body)
        entry = row * len(states[name])
        words = _ENTRY.finditer(block.body, start.end()) if start else iter(())
        word = next(islice(words, entry, None), None)
        return block.start if word is None else block.body_start + word.start()

    return RawNode(name, states[name], parents, values, block.start, row_where)


def write(network: BayesianNetwork | DecisionNetwork) -> str:
    """The network as NET; names that are not identifiers are replaced, states are quoted."""
    written = labels(network, "NET", identifier, _text)
    title, metadata = about(network.name, network.metadata, "NET", _LEGAL)
    parts = ["net\n{\n", f"  name = {quoted(title)};\n"]
    parts += [f"  {key} = {quoted(value)};\n" for key, value in metadata.items()]
    if isinstance(network, DecisionNetwork):
        parts.append(f"  {RECALL} = {quoted(network.recall)};\n")
    parts.append("}\n")
    for name, label in written.items():
        kind = network.kind(name) if isinstance(network, DecisionNetwork) else "chance"
        states = f"  states = ({' '.join(map(quoted, label.states))});\n" if label.states else ""
        note = f"  bbn = {quoted(label.note)};\n" if label.note else ""
        parts.append(
            f"{'node' if kind == 'chance' else kind} {label.name}\n{{\n  label = {quoted(_text(name))};\n"
            f"{states}{note}}}\n"
        )
    for cpt in tables(network):
        given = " | " + " ".join(written[parent.name].name for parent in cpt.parents) if cpt.parents else ""
        parts.append(f"potential ({written[cpt.name].name}{given})\n{{\n  data = ")
        parts.append(_nested(row_texts(cpt.table, " "), [parent.card for parent in cpt.parents]))
        parts.append(";\n}\n")
    if isinstance(network, DecisionNetwork):
        parts += _decision_potentials(network, {name: label.name for name, label in written.items()})
    return "".join(parts)


def _decision_potentials(network: DecisionNetwork, written: Mapping[str, str]) -> Iterator[str]:
    def head(name: str) -> str:
        given = network.parents(name)
        return f"potential ({written[name]}{' | ' * bool(given)}{' '.join(written[g] for g in given)})\n{{\n"

    for decision in network.decisions:
        yield head(decision.name) + "}\n"
    for utility in network.utilities:
        if utility.combine is not None:
            raise ModelError(
                f"utility {utility.name!r} is a {utility.combine} of utilities; NET holds tables only, "
                "use another format"
            )
        rows = row_texts(utility.table if utility.parents else utility.table[..., None], " ")
        data = _nested(rows, [parent.card for parent in utility.parents[:-1]])
        yield f"{head(utility.name)}  data = {data};\n}}\n"


def _nested(rows: list[str], cards: list[int]) -> str:
    """The rows with one pair of parentheses for each axis."""
    groups = [f"({row})" for row in rows]
    for length in reversed(cards):
        groups = [f"({group})" for group in map("\n    ".join, zip(*[iter(groups)] * length, strict=True))]
    return groups[0]


def _text(text: str) -> str:
    return text.replace("\0", "\ufffd")


def identifier(text: str) -> str:
    """The text itself if it is an identifier, else the nearest one.

    >>> identifier("dog-out"), identifier("1st")
    ('dog_out', 'n1st')
    """
    if _IDENTIFIER.fullmatch(text):
        return text
    cleaned = _NOT_IDENTIFIER.sub("_", text)
    return cleaned if _IDENTIFIER.fullmatch(cleaned) else f"n{cleaned}"


_LEGAL = Legal(_text, lambda key: "name_" if key == "name" else identifier(key), _text)
