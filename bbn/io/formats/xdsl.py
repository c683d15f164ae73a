"""XDSL, the format of GeNIe and SMILE: tables, deterministic nodes and noisy-MAX.

A table lists its entries with the child's states varying fastest, then the last parent, so it is the table of a CPT
as it stands; in the files of aGrUM the first parent varies faster than the second, and they are read so. aGrUM reads
all files so, GeNIe's and ours too; both readings follow the text's order of the parents, so no order of them makes a
table of several parents mean the same in both, and what is written is GeNIe's. Deterministic nodes are expanded into
tables. A noisy-MAX node is a `NoisyMax`, and is written as one. In SMILE's noisy-MAX the first state of the child is
the strongest effect (Díez 1993; Díez and Druzdzel 2006, section 4, whose order of states is the reverse), so one
whose last state is the strongest is written with its states in reverse, and read back in their order. The parameters
of a parent come in the order of its `strengths`. Equations and dynamic networks are refused. With decisions and
utilities it is a decision network: tables of utilities are laid out as those of probabilities, and what an earlier
decision knew, a later one remembers.

Names and states must be identifiers; where they are not, substitutes are written, and the originals in a property.

Reference: BayesFusion, *GeNIe Modeler User Manual*, "XDSL file format"; *SMILE Programmer's Manual*, "Noisy-MAX".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from bbn.core.budget import MAX_AXES
from bbn.io.about import Legal, about, restore_about
from bbn.io.build import RawNode, RawNoisy, build
from bbn.io.formats.genie import KEY, extension, extension_lines, is_extension
from bbn.io.formats.net import identifier
from bbn.io.formats.xdsl_decisions import RECALL, DecisionReader, decision_content
from bbn.io.formats.xdsl_order import PROPERTY, REVERSED, strongest_last, with_states_reversed
from bbn.io.formats.xml import Element, parse
from bbn.io.formats.xmlbif import legal_text
from bbn.io.labels import Label, labels, restore
from bbn.io.number_tables import BadNumberError, NumberParser, reserve_table, row_texts, tables
from bbn.io.problems import Problems
from bbn.io.row_sums import Values
from bbn.io.source_text import Source
from bbn.model.cpt import CPT
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax


def read(source: Source, strict: bool = False) -> BayesianNetwork:
    """The network that an XDSL file describes."""
    root = parse(source)
    listed = root.first("nodes") if root.tag == "smile" else None
    if listed is None:
        raise source.error(f"expected <smile> with <nodes> inside, found <{root.tag}>", *root.where)
    if root.first("dynamic") is not None:
        raise source.error("dynamic networks are not supported", *root.where)
    extensions = root.first("extensions")
    genie = extensions.first("genie") if extensions else None
    reversed_axes = genie is not None and genie.attributes.get("app", "").startswith("aGrUM")
    reader = _XdslReader(source, listed, reversed_axes)
    texts: dict[str, str] = {
        p.attributes.get("id", ""): p.text for p in root.all("property") if p.attributes.get("id")
    }
    recall = texts.pop(RECALL, "implied") if any(node.role for node in reader.nodes) else "perfect"
    title = root.attributes.get("id", "")
    name, metadata = restore_about(title, texts, _LEGAL)
    nodes = restore(reader.nodes, reader.notes)
    names = {raw.name: legal_text(node.name) for raw, node in zip(reader.nodes, nodes, strict=True)}
    kept = extension(genie, legal_text(name or title), names) if genie is not None else ""
    network = build(source, nodes, name, metadata | ({KEY: kept} if kept else {}), strict, recall=recall)
    turned = {n.name for raw, n in zip(reader.nodes, nodes, strict=True) if raw.name in reader.turned}
    return with_states_reversed(network, turned) if turned and type(network) is BayesianNetwork else network


class _XdslReader:
    """The nodes of a file, each expanded into a table."""

    def __init__(self, source: Source, listed: Element, reversed_axes: bool) -> None:
        self.source = source
        self.reversed_axes = reversed_axes
        self.states: dict[str, tuple[str, ...]] = {}
        self.numbers = NumberParser()
        self.decisions = DecisionReader(source, self.states)
        self.notes: dict[str, str] = {}
        self.turned: set[str] = set()
        for element in listed.children:
            name = element.attributes.get("id", "")
            self.states[name] = tuple(state.attributes.get("id", "") for state in element.all("state"))
            self.notes[name] = next(
                (p.text for p in element.all("property") if p.attributes.get("id") == "bbn"), ""
            )
            if any((p.attributes.get("id"), p.text) == (PROPERTY, REVERSED) for p in element.all("property")):
                self.turned.add(name)
        problems = Problems(source)
        self.nodes = problems.each(listed.children, self._node)
        problems.raise_first()

    def _node(self, element: Element) -> RawNode:
        name = element.attributes.get("id", "")
        listed = element.first("parents")
        parents = listed.text.split() if listed else []
        for parent in parents:
            if parent not in self.states:
                raise self.source.error(
                    f"node {name!r} has the unknown parent {parent!r}{self.source.nearest(parent, self.states)}",
                    *element.where,
                )
        values: Values
        if element.tag == "noisymax":
            noisy = self._noisy_max(name, parents, element)
            return RawNode(name, self.states[name], parents, None, element.where, noisy=noisy)
        if element.tag == "cpt":
            values = self._floats(name, element, "probabilities")
            if self.reversed_axes and 1 < len(parents) < MAX_AXES:  # more are refused later
                values = self._reversed(name, parents, values)
        elif element.tag == "deterministic":
            values = self._deterministic(name, element)
        elif element.tag in DecisionReader.TAGS:
            return self.decisions.node(name, parents, element)
        else:
            raise self.source.error(
                "expected <cpt>, <deterministic>, <noisymax>, <decision>, <utility> or <mau>, "
                f"found <{element.tag}>",
                *element.where,
            )
        where = (element.first("probabilities") or element).where
        return RawNode(name, self.states[name], parents, values, element.where, lambda _: where)

    def _child(self, name: str, element: Element, tag: str) -> Element:
        child = element.first(tag)
        if child is None:
            raise self.source.error(f"node {name!r}: expected <{tag}>, found none", *element.where)
        return child

    def _floats(self, name: str, element: Element, tag: str) -> list[float]:
        child = self._child(name, element, tag)
        try:
            return self.numbers.floats(child.text.split())
        except BadNumberError as error:
            raise self.source.error(
                f"node {name!r}: expected a number from 0 to 1, found {error.found}", *child.where
            ) from None

    def _reversed(self, name: str, parents: list[str], values: list[float]) -> list[float]:
        """The entries of a table in which the first parent varies faster than the second, in the usual order."""
        cards = [len(self.states[parent]) for parent in reversed(parents)]
        if len(values) != prod(cards) * len(self.states[name]):
            return values  # the wrong number of entries is reported later
        axes = [*range(len(parents) - 1, -1, -1), len(parents)]
        return np.array(values).reshape([*cards, len(self.states[name])]).transpose(axes).ravel().tolist()

    def _deterministic(self, name: str, element: Element) -> Values:
        """One state per setting of the parents, as a table."""
        states = self.states[name]
        codes = {state: code for code, state in enumerate(states)}
        results = self._child(name, element, "resultingstates")
        words = results.text.split()
        for result in words:
            if result not in codes:
                raise self.source.error(
                    f"node {name!r} has no state {result!r}{self.source.nearest(result, states)}",
                    *results.where,
                )
        reserve_table(self.source, name, [len(words), len(states)], element.where)
        table = np.zeros((len(words), len(states)))
        table[range(len(words)), [codes[result] for result in words]] = 1.0
        return table.ravel()

    def _noisy_max(self, name: str, parents: list[str], element: Element) -> RawNoisy | None:
        """The links of a noisy-MAX node, each with the parent's states in their own order, and its leak."""
        cards = [len(self.states[parent]) for parent in parents]
        card = len(self.states[name])
        if not card:
            return None  # that it has no states is reported later
        parameters = np.array(self._floats(name, element, "parameters"))
        if parameters.size != card * (sum(cards) + 1):
            raise self.source.error(
                f"node {name!r}: expected {card * (sum(cards) + 1)} parameters, "
                f"{card} for each parent's state and for the leak, found {parameters.size}",
                *element.where,
            )
        rows = parameters.reshape(-1, card)
        order = self._strengths(name, cards, element)
        links: list[Values] = []
        start = 0
        for count in cards:
            link = np.empty((count, card))
            link[order[start : start + count]] = rows[start : start + count]
            links.append(link.ravel())
            start += count
        return RawNoisy(links, rows[-1], True)

    def _strengths(self, name: str, cards: list[int], element: Element) -> list[int]:
        """For each parent its states from strongest to weakest, all in one list."""
        child = element.first("strengths")
        natural = [state for count in cards for state in range(count)]
        if child is None:
            return natural
        words = child.text.split()
        order = [int(word) for word in words if word.isdecimal() and len(word) < 10]
        start = 0
        for count in cards:
            if sorted(order[start : start + count]) != list(range(count)):
                break
            start += count
        if start != len(natural) or len(words) != len(natural):
            raise self.source.error(
                f"node {name!r}: expected the strengths of {len(cards)} parents, each an order of its states, "
                f"found {child.text.strip()[:40]!r}",
                *child.where,
            )
        return order


def write(network: BayesianNetwork | DecisionNetwork) -> str:
    """The network as XDSL; names and states that are not identifiers are replaced."""
    tables(network)  # ModelError if a node has none
    turned = strongest_last(network)
    if isinstance(network, BayesianNetwork) and turned:
        network = with_states_reversed(network, turned)
    written = labels(network, "XDSL", identifier)
    texts = dict(network.metadata)
    looks = texts.pop(KEY) if is_extension(texts.get(KEY, "")) else ""
    title, metadata = about(network.name, texts, "XDSL", _LEGAL)
    parts = [f'<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="{title}">\n']
    parts += [
        f"  <property id={quoteattr(key)}>{_escaped(value)}</property>\n" for key, value in metadata.items()
    ]
    if isinstance(network, DecisionNetwork):
        parts.append(f'  <property id="{RECALL}">{network.recall}</property>\n')
    parts.append("  <nodes>\n")
    nodes: Sequence[Any] = network.nodes if isinstance(network, DecisionNetwork) else network.conditionals
    for node in nodes:
        tag, given, body = _content(node, written)
        label = written[node.name]
        parts.append(f'    <{tag} id="{label.name}">\n')
        parts += [f'      <state id="{state}" />\n' for state in label.states]
        if given:
            parts.append(f"      <parents>{' '.join(written[name].name for name in given)}</parents>\n")
        parts.append(body)
        if label.note:
            parts.append(f'      <property id="bbn">{_escaped(label.note)}</property>\n')
        if node.name in turned:
            parts.append(f'      <property id="{PROPERTY}">{REVERSED}</property>\n')
        parts.append(f"    </{tag}>\n")
    parts.append("  </nodes>\n  <extensions>\n")
    names = {label.name: legal_text(name) for name, label in written.items()}
    parts += extension_lines(looks, legal_text(network.name or title), names)
    parts.append("  </extensions>\n</smile>\n")
    return "".join(parts)


def _content(node: Any, written: Mapping[str, Label]) -> tuple[str, Sequence[str], str]:
    """The tag of a node, its parents' names, and what stands between its states and its note."""
    if not isinstance(node, CPT):
        return decision_content(node, {name: label.name for name, label in written.items()})
    parents = [p.name for p in node.parents]
    if isinstance(node, NoisyMax) and node.strongest == node.variable.states[0]:
        return "noisymax", parents, _noisy_text(node)
    entries = " ".join(row_texts(node.table, " "))
    return "cpt", parents, f"      <probabilities>{entries}</probabilities>\n"


def _noisy_text(noisy: NoisyMax) -> str:
    """The strengths of the parents' states, in their own order, and the parameters."""
    strengths = " ".join(str(state) for parent in noisy.parents for state in range(parent.card))
    parameters = " ".join(row_texts(np.concatenate([*noisy.links, noisy.leak[None]]), " "))
    first = f"      <strengths>{strengths}</strengths>\n" if strengths else ""
    return f"{first}      <parameters>{parameters}</parameters>\n"


def _escaped(text: str) -> str:
    return escape(legal_text(text), {"\r": "&#13;"})


_LEGAL = Legal(lambda name: identifier(name or "network"), identifier, legal_text)
