"""XMLBIF 0.3: the interchange format in XML.

A table lists its entries with the child's states varying fastest, then the last `GIVEN`, so it is the table of
a CPT as it stands. `PROPERTY` elements are skipped, but for those that the writer makes: the network's own,
`key = value`, which are its metadata, and `bbn = …`, the note that keeps what XML cannot hold.

Reference: Cozman, *The Interchange Format for Bayesian Networks, XMLBIF version 0.3*, 1998.
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

from bbn.io.about import Legal, about, restore_about
from bbn.io.build import RawNode, build
from bbn.io.formats.xml import Element, parse
from bbn.io.labels import labels, restore
from bbn.io.number_tables import BadNumberError, NumberParser, row_texts, tables
from bbn.io.problems import Problems
from bbn.io.source_text import Source
from bbn.model.network import BayesianNetwork

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n'


def read(source: Source, strict: bool = False) -> BayesianNetwork:
    """The network that an XMLBIF file describes."""
    root = parse(source)
    network = root.first("network") if root.tag == "bif" else None
    if network is None:
        raise source.error(f"expected <BIF> with a <NETWORK> inside, found <{root.tag.upper()}>", *root.where)
    states: dict[str, tuple[str, ...]] = {}
    notes: dict[str, str] = {}

    def declare(variable: Element) -> None:
        kind = variable.attributes.get("TYPE", "nature")
        if kind != "nature":
            raise source.error(f"expected a variable of type 'nature', found {kind!r}", *variable.where)
        name = _text_of(source, variable, "name")
        if name in states:
            raise source.error(f"variable {name!r} is declared twice", *variable.where)
        states[name] = tuple(outcome.text.strip() for outcome in variable.all("outcome", "value"))
        notes[name] = _properties(variable).get("bbn", "")

    problems = Problems(source)
    problems.each(network.all("variable"), declare)
    problems.raise_first()
    numbers = NumberParser()
    definitions = network.all("definition", "probability")
    nodes = problems.each(definitions, lambda definition: _node(source, definition, states, numbers))
    problems.raise_first()
    defined = {node.name for node in nodes}
    for name in states:
        if name not in defined:
            problems.add(f"variable {name!r} has no <DEFINITION>", network.where)
    problems.raise_first()
    title = network.first("name")
    name, metadata = restore_about(title.text.strip() if title else "", _properties(network), _LEGAL)
    return build(source, restore(nodes, notes), name, metadata, strict)


def _node(
    source: Source, definition: Element, states: dict[str, tuple[str, ...]], numbers: NumberParser
) -> RawNode:
    name = _text_of(source, definition, "for")
    if name not in states:
        raise source.error(f"<FOR> names {name!r}, which is not a declared variable", *definition.where)
    table = definition.first("table")
    if table is None:
        raise source.error(f"definition of {name!r}: expected a <TABLE>, found none", *definition.where)
    try:
        values = numbers.floats(table.text.split())
    except BadNumberError as error:
        raise source.error(
            f"definition of {name!r}: expected a number from 0 to 1, found {error.found}", *table.where
        ) from None
    parents = [given.text.strip() for given in definition.all("given")]
    return RawNode(name, states[name], parents, values, definition.where, lambda _: table.where)


def _text_of(source: Source, element: Element, tag: str) -> str:
    found = list(element.all(tag))
    if len(found) != 1:
        raise source.error(
            f"expected one <{tag.upper()}> in <{element.tag.upper()}>, found {len(found)}", *element.where
        )
    return found[0].text.strip()


def _properties(element: Element) -> dict[str, str]:
    found = {}
    for child in element.all("property"):
        key, equals, value = child.text.partition("=")
        if key.strip() and equals:
            found[key.strip()] = value.strip()
    return found


def write(network: BayesianNetwork) -> str:
    """The network as XMLBIF."""
    written = labels(network, "XMLBIF", _legal_name)
    title, metadata = about(network.name, network.metadata, "XMLBIF", _LEGAL)
    parts = [_HEADER, f"<NETWORK>\n<NAME>{_escaped(title)}</NAME>\n"]
    parts += [f"<PROPERTY>{_escaped(f'{key} = {value}')}</PROPERTY>\n" for key, value in metadata.items()]
    for label in written.values():
        parts.append(f'<VARIABLE TYPE="nature">\n  <NAME>{_escaped(label.name)}</NAME>\n')
        parts += [f"  <OUTCOME>{_escaped(state)}</OUTCOME>\n" for state in label.states]
        if label.note:
            parts.append(f"  <PROPERTY>bbn = {_escaped(label.note)}</PROPERTY>\n")
        parts.append("</VARIABLE>\n")
    for cpt in tables(network):
        parts.append(f"<DEFINITION>\n  <FOR>{_escaped(written[cpt.name].name)}</FOR>\n")
        parts += [f"  <GIVEN>{_escaped(written[parent.name].name)}</GIVEN>\n" for parent in cpt.parents]
        rows = "\n".join(row_texts(cpt.table, " "))
        parts.append(f"  <TABLE>{rows}</TABLE>\n</DEFINITION>\n")
    parts.append("</NETWORK>\n</BIF>\n")
    return "".join(parts)


def legal_text(text: str) -> str:
    """The text without what XML cannot hold."""
    return _ILLEGAL.sub("\ufffd", text)


def _legal_name(text: str) -> str:
    """The text without what XML cannot hold and without spaces at its ends, which readers drop; never empty."""
    return _legal_value(text) or "_"


def _legal_value(text: str) -> str:
    return legal_text(text).strip()


_LEGAL = Legal(_legal_value, lambda key: _legal_name(key.replace("=", "_")), _legal_value)


def _escaped(text: str) -> str:
    return escape(text, {"\r": "&#13;"})
