"""What a document says about a variable that is the strongest of its causes' effects, in bbn's own format.

    {type: noisy-max, states: [...], parents: [...], links: {parent: table}, leak: row, strongest: state}

A link is the table of the variable given that parent alone, keyed or nested as tables are; the leak is one row, and is
left out where there is none. The strongest state is the first or the last, by default as `bbn.NoisyMax` has it.

    {type: noisy-or, states: [...], parents: [...], links: {parent: probability}, leak: probability, holds: ...}

The same of two states: a link is the probability that the parent causes the variable. `holds` is the state that means
"it holds", of the variable or by name for it and its parents, where their words do not say it.
"""

from __future__ import annotations

from typing import NamedTuple

from bbn.io.build import RawNoisy
from bbn.io.document import Document, Mapping, Node, Scalar
from bbn.io.problems import Where
from bbn.io.spec.spec_tables import DraftTable, Parents, TableReader
from bbn.io.writing import state_text
from bbn.model.holding_state import holding
from bbn.model.variable import State

NOISY_MAX, NOISY_OR = "noisy-max", "noisy-or"
FIELDS = {
    NOISY_MAX: ("type", "states", "parents", "links", "leak", "strongest"),
    NOISY_OR: ("type", "states", "parents", "links", "leak", "holds"),
}


class NoisyDraft(NamedTuple):
    """Such a node after the first pass: its links by parent, its leak, and whether its first state is the strongest."""

    links: dict[str, DraftTable]
    leak: DraftTable | None
    first: bool | None
    chances: NoisyOrDraft | None = None
    """Of a noisy-OR, all of it."""


class NoisyOrDraft(NamedTuple):
    """The probability of each link, the leak, and the states that are said to hold, by variable."""

    links: dict[str, float]
    leak: float
    holds: dict[str, Scalar]


class NoisyReader:
    """The reader of such nodes of one document."""

    def __init__(self, document: Document, tables: TableReader) -> None:
        self.problems = document.problems
        self.where = document.where
        self.tables = tables

    def draft(
        self, name: str, states: list[State], parents: list[str], fields: dict[str, Node], where: Where
    ) -> NoisyDraft | None:
        """The fields of a noisy-MAX; None if what is wrong with them has been reported."""
        n_found = self.problems.count
        links: dict[str, DraftTable] = {}
        for parent, value in self._links(name, parents, fields, where, "a table").items():
            table = self.tables.read(name, states, value, True)
            if table is not None:
                links[parent] = table
        leak = self.tables.read(name, states, fields["leak"], False) if "leak" in fields else None
        first = self._first(name, states, fields.get("strongest"))
        return NoisyDraft(links, leak, first) if self.problems.count == n_found else None

    def draft_or(
        self, name: str, states: list[State], parents: list[str], fields: dict[str, Node], where: Where
    ) -> NoisyDraft | None:
        """The fields of a noisy-OR; None if what is wrong with them has been reported."""
        n_found = self.problems.count
        if len(states) != 2:
            self.problems.add(
                f"node {name!r}: a {NOISY_OR} node has two states, found {len(states)}; {NOISY_MAX} takes more",
                self.where(fields["states"]),
            )
        given = self._links(name, parents, fields, where, "a probability")
        links = {
            parent: self.tables.probability(f"node {name!r}, link of {parent!r}", value)
            for parent, value in given.items()
        }
        leak = self.tables.probability(f"node {name!r}, leak", fields["leak"]) if "leak" in fields else 0.0
        holds = self.holds(name, parents, fields["holds"]) if "holds" in fields else {}
        chances = NoisyOrDraft(links, leak, holds)
        return NoisyDraft({}, None, None, chances) if self.problems.count == n_found else None

    def _links(
        self, name: str, parents: list[str], fields: dict[str, Node], where: Where, what: str
    ) -> dict[str, Node]:
        """What is given for each parent; each must have one, and no other."""
        n_found = self.problems.count
        links: dict[str, Node] = {}
        given = fields.get("links")
        if parents and not isinstance(given, Mapping):
            found = "none" if given is None else str(given)
            self.problems.add(
                f"node {name!r}: 'links' must be a mapping from each parent to {what}, found {found}",
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
            elif parent in links:
                self.problems.add(f"node {name!r}: the link of {parent!r} is given twice", self.where(key))
            else:
                links[parent] = value
        if self.problems.count == n_found:
            for parent in parents:
                if parent not in links:
                    self.problems.add(f"node {name!r}: there is no link for the parent {parent!r}", where)
        return links

    def holds(self, name: str, parents: list[str], node: Node) -> dict[str, Scalar]:
        """The states that are said to hold: one of the node itself, or by name."""
        if isinstance(node, Scalar):
            return {name: node}
        found: dict[str, Scalar] = {}
        for key, value in node.pairs if isinstance(node, Mapping) else ():
            own = key.text if isinstance(key, Scalar) else None
            if own not in (name, *parents) or own in found or not isinstance(value, Scalar):
                self.problems.add(
                    f"node {name!r}: 'holds' gives each of {name!r} and its parents at most one state, found {key}",
                    self.where(key),
                )
            elif own is not None:
                found[own] = value
        if not isinstance(node, Mapping):
            self.problems.add(
                f"node {name!r}: 'holds' must be a state or a mapping from name to state, found {node}",
                self.where(node),
            )
        return found

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
        if draft.chances is not None:
            return self._arrange_or(name, states, parents, draft.chances, where)
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

    def _arrange_or(
        self, name: str, states: list[State], parents: Parents, draft: NoisyOrDraft, where: Where
    ) -> RawNoisy | None:
        codes = [
            self._holding(name, own, list(listed), draft.holds.get(own), where)
            for own, listed in ((name, states), *parents)
        ]
        known = [code for code in codes if code is not None]
        if len(known) < len(codes):
            return None
        strong, *held = known

        def row(p: float) -> list[float]:
            return [p, 1.0 - p] if strong == 0 else [1.0 - p, p]

        links = []
        for (parent, _), code in zip(parents, held, strict=True):
            effect, none = row(draft.links[parent]), row(0.0)
            links.append([*effect, *none] if code == 0 else [*none, *effect])
        return RawNoisy(links, row(draft.leak), strong == 0)

    def _holding(
        self, name: str, own: str, states: list[State], told: Scalar | None, where: Where
    ) -> int | None:
        """Which of two states means that a variable holds: as told, otherwise by the words."""
        if len(states) != 2:
            self.problems.add(
                f"node {name!r}: the parents of a {NOISY_OR} node have two states, {own!r} has {len(states)}; "
                f"{NOISY_MAX} takes more",
                where,
            )
            return None
        if told is None:
            code = holding(states)
            if code is None:
                self.problems.add(
                    f"node {name!r}: which of {states[0]!r} and {states[1]!r} means that {own!r} holds? its words do "
                    f"not tell; say holds: {{{own}: {state_text(states[0])}}}",
                    where,
                )
            return code
        texts = [state_text(state) for state in states]
        if told.text in texts:
            return texts.index(told.text)
        self.problems.add(
            f"node {name!r}: {own!r} has no state {told}{self.problems.nearest(told.text, texts)}",
            self.where(told),
        )
        return None
