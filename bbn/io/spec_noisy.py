"""What a document says about a variable that is the strongest of its causes' effects, in bbn's own format.

    {type: noisy-max, states: [...], parents: [...], links: {parent: table}, leak: row, strongest: state}

A link is the table of the variable given that parent alone, keyed or nested as tables are; the leak is one row, and is
left out where there is none. The strongest state is the first or the last, by default as `bbn.NoisyMax` has it.
"""

from __future__ import annotations

from typing import NamedTuple

from bbn.io.build import RawNoisy, Where
from bbn.io.document import Document, Mapping, Node, Scalar
from bbn.io.spec_tables import DraftTable, Parents, TableReader
from bbn.model.variable import State

FIELDS = ("type", "states", "parents", "links", "leak", "strongest")
KIND = "noisy-max"


class NoisyDraft(NamedTuple):
    """Such a node after the first pass: its links by parent, its leak, and whether its first state is the strongest."""

    links: dict[str, DraftTable]
    leak: DraftTable | None
    first: bool | None


class NoisyReader:
    """The reader of such nodes of one document."""

    def __init__(self, document: Document, tables: TableReader) -> None:
        self.problems = document.problems
        self.where = document.where
        self.tables = tables

    def draft(
        self, name: str, states: list[State], parents: list[str], fields: dict[str, Node], where: Where
    ) -> NoisyDraft | None:
        """The fields of a node; None if what is wrong with them has been reported."""
        n_found = self.problems.count
        links: dict[str, DraftTable] = {}
        given = fields.get("links")
        if parents and not isinstance(given, Mapping):
            found = "none" if given is None else str(given)
            self.problems.add(
                f"node {name!r}: 'links' must be a mapping from each parent to a table, found {found}",
                where if given is None else self.where(given),
            )
        for key, value in given.pairs if isinstance(given, Mapping) else ():
            parent = key.text if isinstance(key, Scalar) else None
            if parent is None or parent not in parents:
                self.problems.add(
                    f"node {name!r}: a link for {key}, which is not a parent"
                    f"{self.problems.nearest(parent, parents)}",
                    self.where(key),
                )
                continue
            if parent in links:
                self.problems.add(f"node {name!r}: the link of {parent!r} is given twice", self.where(key))
            table = self.tables.read(name, states, value, True)
            if table is not None:
                links[parent] = table
        leak = self.tables.read(name, states, fields["leak"], False) if "leak" in fields else None
        first = self._first(name, states, fields.get("strongest"))
        if self.problems.count == n_found:
            for parent in parents:
                if parent not in links:
                    self.problems.add(f"node {name!r}: there is no link for the parent {parent!r}", where)
        return NoisyDraft(links, leak, first) if self.problems.count == n_found else None

    def _first(self, name: str, states: list[State], node: Node | None) -> bool | None:
        """Whether the first state is the strongest; None if nothing is said."""
        if node is None:
            return None
        value = node.value if isinstance(node, Scalar) else None
        ends = [states[0], states[-1]]
        for first, end in ((True, ends[0]), (False, ends[1])):
            if value == end and type(value) is type(end):
                return first
        self.problems.add(
            f"node {name!r}: 'strongest' must be the first or the last state, {ends[0]!r} or {ends[1]!r}, found {node}",
            self.where(node),
        )
        return None

    def arrange(
        self, name: str, states: list[State], parents: Parents, draft: NoisyDraft, where: Where
    ) -> RawNoisy | None:
        """The numbers in the order of the states; None if what is wrong with them has been reported."""
        links = []
        for parent, own in parents:
            values, _ = self.tables.arrange(name, states, [(parent, own)], draft.links[parent], where)
            if values is None:
                return None
            links.append(values)
        leak: list[float] | None = None
        if draft.leak is not None:
            leak, _ = self.tables.arrange(name, states, [], draft.leak, where)
            if leak is None:
                return None
        return RawNoisy(links, leak, draft.first)
