"""Decisions and utilities in XDSL: <decision>, <utility>, and <mau>, a utility of utilities.

A <utility> lists its numbers with the last parent varying fastest. A <mau> has <weights>, one per utility, whose
weighted sum it is, or an <expression>; of these only products and sums of the utilities, u1*u2 or u1+u2, are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from bbn.io.build import RawNode, RawUtility
from bbn.io.formats.xml import Element
from bbn.io.number_tables import BadNumberError, NumberParser, reserve_table, row_texts
from bbn.io.source_text import Source
from bbn.model.decision import Decision, Utility

RECALL = "bbn_recall"
"""The property of the network that says what decisions remember."""
_EXPRESSION = re.compile(r"\s*\w+(?:\s*([*+])\s*\w+)*\s*")


class DecisionReader:
    """The decisions and utilities of a file."""

    TAGS = ("decision", "utility", "mau")

    def __init__(self, source: Source, states: Mapping[str, Sequence[str]]) -> None:
        self.source, self.states = source, states
        self.numbers = NumberParser()

    def node(self, name: str, parents: list[str], element: Element) -> RawNode:
        """One of them."""
        if element.tag == "decision":
            return RawNode(name, tuple(self.states[name]), parents, None, element.where, role="decision")
        worth = (
            self._combination(name, parents, element)
            if element.tag == "mau"
            else self._table(name, parents, element)
        )
        return RawNode(name, (), parents, None, element.where, role="utility", worth=worth)

    def _table(self, name: str, parents: list[str], element: Element) -> RawUtility:
        cards = [len(self.states[parent]) for parent in parents]
        reserve_table(self.source, name, [*cards, 1], element.where)
        values = self._floats(name, element, "utilities")
        if len(values) != math.prod(cards):
            raise self.source.error(
                f"utility {name!r}: expected {math.prod(cards)} entries, found {len(values)}", *element.where
            )
        return RawUtility(np.array(values).reshape(cards), None, None)

    def _combination(self, name: str, parents: list[str], element: Element) -> RawUtility:
        expression = element.first("expression")
        if expression is None:
            weights = np.array(self._floats(name, element, "weights"))
            return RawUtility(None, weights, "sum")
        words = re.split(r"[*+\s]+", expression.text.strip())
        signs = set(re.findall(r"[*+]", expression.text))
        if not _EXPRESSION.fullmatch(expression.text) or sorted(words) != sorted(parents) or len(signs) > 1:
            raise self.source.error(
                f"utility {name!r}: expected a product or a sum of {', '.join(parents)}, "
                f"found {expression.text.strip()[:60]!r}",
                *expression.where,
            )
        return RawUtility(None, None, "product" if "*" in signs else "sum")

    def _floats(self, name: str, element: Element, tag: str) -> list[float]:
        child = element.first(tag)
        if child is None:
            raise self.source.error(f"utility {name!r}: expected <{tag}>, found none", *element.where)
        try:
            return self.numbers.floats(child.text.split())
        except BadNumberError as error:
            raise self.source.error(
                f"utility {name!r}: expected a finite number, found {error.found}", *child.where
            ) from None


def decision_content(node: Decision | Utility, written: Mapping[str, str]) -> tuple[str, Sequence[str], str]:
    """The tag of a decision or utility, its parents' names, and what stands inside."""
    if isinstance(node, Decision):
        return "decision", node.observes, ""
    names = [parent.name for parent in node.parents]
    if node.combine == "sum":
        return "mau", names, f"      <weights>{row_texts(node.weights, ' ')[0]}</weights>\n"
    if node.combine == "product":
        product = "*".join(written[name] for name in names)
        return "mau", names, f"      <expression>{product}</expression>\n"
    entries = " ".join(row_texts(node.table.reshape(-1, 1), " "))
    return "utility", names, f"      <utilities>{entries}</utilities>\n"
