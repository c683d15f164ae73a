"""One node of bbn's own format: its type, states, parents and what its table says.

Reading goes twice over the nodes: `NodeReader.draft` takes each as it stands in the file, and `NodeReader.raw_nodes`
arranges the rows when the states of all parents are known.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from bbn.io.build import RawGaussian, RawNode
from bbn.io.document import Document, Mapping, Node, Scalar, Sequence
from bbn.io.problems import Problems, Where
from bbn.io.spec.spec_decisions import DECISION, NEEDED, UTILITY, UtilityReader
from bbn.io.spec.spec_decisions import FIELDS as DECISION_FIELDS
from bbn.io.spec.spec_gaussians import FIELDS as GAUSSIAN_FIELDS
from bbn.io.spec.spec_gaussians import KIND as GAUSSIAN
from bbn.io.spec.spec_gaussians import GaussianDraft, GaussianReader
from bbn.io.spec.spec_noisy import FIELDS as NOISY_FIELDS
from bbn.io.spec.spec_noisy import NOISY_MAX, NOISY_OR, NoisyDraft, NoisyReader
from bbn.io.spec.spec_notes import FIELDS as NOTES
from bbn.io.spec.spec_notes import NotesReader
from bbn.io.spec.spec_rule import DETERMINISTIC, RuleDraft, arrange_rule, draft_rule
from bbn.io.spec.spec_rule import FIELDS as RULE_FIELDS
from bbn.io.spec.spec_tables import DraftTable, TableReader
from bbn.model.binned import interval_labels
from bbn.model.variable import State

_FIELDS = {
    "": ("states", "parents", "table", "type", "bins"),
    GAUSSIAN: GAUSSIAN_FIELDS,
    **NOISY_FIELDS,
    **RULE_FIELDS,
    **DECISION_FIELDS,
}
"""What a node of each type may have."""
_NEEDED = {
    "": ("states", "table"),
    GAUSSIAN: ("table",),
    **dict.fromkeys(NOISY_FIELDS, ("states",)),
    DETERMINISTIC: ("states", "rule"),
    **NEEDED,
}
"""What it must have."""


class NodeDraft(NamedTuple):
    """A node after the first pass; `table` is None if what is wrong with it is already reported."""

    name: str
    states: list[State]
    parents: list[str]
    table: DraftTable | None
    where: Where
    continuous: bool = False
    gaussian: GaussianDraft | None = None
    noisy: NoisyDraft | None = None
    """The fields of a noisy-MAX."""
    rule: RuleDraft | None = None
    """The fields of a node that its parents decide."""
    role: str = ""
    fields: MappingABC[str, Node] = MappingProxyType({})
    """Of a utility, what the file says, looked at when all parents are known."""
    bins: list[float] | None = None


class NodeReader:
    """The two passes over the nodes of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: Problems = document.problems
        self.where = document.where
        self.tables = TableReader(document)
        self.gaussians = GaussianReader(document, self.tables)
        self.noisy = NoisyReader(document, self.tables)
        self.utilities = UtilityReader(document, self.tables)
        self.notes = NotesReader(document)

    # First pass: the node as it stands in the file

    def draft(self, name: str, spec: Node, where: Where) -> NodeDraft:
        """A node of the file; what is wrong with it is reported."""
        if not isinstance(spec, Mapping):
            self.problems.add(
                f"node {name!r}: expected a mapping with 'states' and 'table', found {spec}", where
            )
            return NodeDraft(name, [], [], None, where)
        fields: dict[str, Node] = {}
        misspelt = False
        kind = self._kind(name, spec)
        known = (*_FIELDS[kind], *(NOTES if kind not in DECISION_FIELDS else NOTES[:1]))
        for key, value in spec.pairs:
            field = key.text if isinstance(key, Scalar) else None
            if field is None or field not in known:
                misspelt = True
                self.problems.add(
                    f"node {name!r}: unknown key {key}{self.problems.nearest(field, known)}", self.where(key)
                )
            elif field in fields:
                self.problems.twice(
                    f"node {name!r}: the key {field!r}", self.where(key), self.where(fields[field])
                )
            else:
                fields[field] = value
        misspelt = misspelt or ("type" in fields and not kind)
        self.notes.take(name, fields)
        needed = ("table",) if not kind and "bins" in fields else _NEEDED[kind]
        for field in needed:
            if field not in fields and not misspelt:
                self.problems.add(f"node {name!r} has no {field!r}", where)
        if kind == GAUSSIAN:
            return self._continuous(name, fields, where)
        if kind == UTILITY:
            parents = self._parents(name, fields["parents"]) if "parents" in fields else []
            return NodeDraft(name, [], parents or [], None, where, role=kind, fields=fields)
        states = self._states(name, fields["states"]) if "states" in fields else []
        if kind == DECISION:
            observes = self._parents(name, fields["observes"], "observes") if "observes" in fields else []
            return NodeDraft(name, states, observes or [], None, where, role=kind)
        bins = self._bins(name, fields["bins"]) if "bins" in fields else None
        if bins is not None and "states" not in fields:
            states = list(interval_labels(bins))
        parents = self._parents(name, fields["parents"]) if "parents" in fields else []
        if kind in NOISY_FIELDS:
            read = self.noisy.draft if kind == NOISY_MAX else self.noisy.draft_or
            draft = read(name, states, parents, fields, where) if states and parents is not None else None
            return NodeDraft(name, states, parents or [], None, where, noisy=draft)
        if kind == DETERMINISTIC:
            rule = None
            if states and parents is not None and "rule" in fields:
                rule = draft_rule(self.document, self.noisy, name, parents, fields)
            return NodeDraft(name, states, parents or [], None, where, rule=rule)
        table = None
        if "table" in fields and states and parents is not None:
            table = self.tables.read(name, states, fields["table"], bool(parents))
        return NodeDraft(name, states, parents or [], table, where, bins=bins)

    def _kind(self, name: str, spec: Mapping) -> str:
        """The type of a node, nothing for a table; an unknown type is a problem."""
        for key, value in spec.pairs:
            if isinstance(key, Scalar) and key.text == "type":
                if isinstance(value, Scalar) and value.text and value.text in _FIELDS:
                    return value.text
                self.problems.add(
                    f"node {name!r}: unknown type {value}; expected {GAUSSIAN!r}, {NOISY_MAX!r}, {NOISY_OR!r}, "
                    f"{DETERMINISTIC!r}, {DECISION!r} or {UTILITY!r}, or no type for a table",
                    self.where(value),
                )
        return ""

    def _continuous(self, name: str, fields: dict[str, Node], where: Where) -> NodeDraft:
        parents = self._parents(name, fields["parents"]) if "parents" in fields else []
        draft = self.gaussians.draft(name, fields) if "table" in fields and parents is not None else None
        return NodeDraft(name, [], parents or [], None, where, True, draft)

    def _states(self, name: str, node: Node) -> list[State]:
        if not isinstance(node, Sequence):
            self.problems.add(f"node {name!r}: 'states' must be a list, found {node}", self.where(node))
            return []
        if not node.items:
            self.problems.add(f"node {name!r} has no states; at least one is needed", self.where(node))
        states: list[State] = []
        right = True
        for item in node.items:
            value = item.value if isinstance(item, Scalar) else None
            if isinstance(value, str | int):
                states.append(value)
            else:
                right = False
                hint = f'; write "{item.text}" for a string' if isinstance(item, Scalar) else ""
                self.problems.add(
                    f"node {name!r}: a state must be a string, an integer, true or false, found {item}{hint}",
                    self.where(item),
                )
        return states if right else []

    def _bins(self, name: str, node: Node) -> list[float] | None:
        """The cut points of a node, or None if they are wrong; whether they ascend is checked when it is built."""
        items = node.items if isinstance(node, Sequence) else None
        found = [item.value if isinstance(item, Scalar) else None for item in items or ()]
        largest = sys.float_info.max
        numbers = [
            float(x)
            for x in found
            if isinstance(x, int | float) and not isinstance(x, bool) and -largest <= x <= largest
        ]
        if items is None or len(numbers) < len(found):
            self.problems.add(
                f"node {name!r}: 'bins' must be a list of finite numbers, found {node}", self.where(node)
            )
            return None
        return numbers

    def _parents(self, name: str, node: Node, field: str = "parents") -> list[str] | None:
        """The names of the parents, or None if they are wrong."""
        if not isinstance(node, Sequence):
            self.problems.add(f"node {name!r}: {field!r} must be a list, found {node}", self.where(node))
            return None
        names = [self.string(item, f"node {name!r}: a parent's name") for item in node.items]
        right = [parent for parent in names if parent is not None]
        return right if len(right) == len(names) else None

    # Second pass: the rows, now that the states of all parents are known

    def raw_nodes(
        self, drafts: SequenceABC[NodeDraft], lagged: MappingABC[str, NodeDraft] | None = None
    ) -> list[RawNode]:
        """The nodes; `lagged` are variables of an earlier slice, which stand for those of the drafts."""
        lagged = lagged or {}
        states = {draft.name: draft.states for draft in drafts}
        continuous = {draft.name for draft in drafts if draft.continuous}
        states |= {name: draft.states for name, draft in lagged.items()}
        continuous |= {name for name, draft in lagged.items() if draft.continuous}
        placeholders = [_placeholder(name, draft) for name, draft in lagged.items()]
        return placeholders + [
            self._raw_continuous(draft, states, continuous)
            if draft.continuous
            else self._raw_decided(draft, states, continuous)
            if draft.role
            else self._raw_node(draft, states)
            for draft in drafts
        ]

    def _raw_decided(
        self, draft: NodeDraft, states: MappingABC[str, list[State]], continuous: set[str]
    ) -> RawNode:
        if draft.role == DECISION:
            return RawNode(
                draft.name, draft.states or ("?",), draft.parents, None, draft.where, role=DECISION
            )
        discrete = [(parent, states[parent]) for parent in draft.parents if states.get(parent)]
        numbers = [parent for parent in draft.parents if parent in continuous]
        return self.utilities.raw_node(
            draft.name, draft.parents, discrete, numbers, dict(draft.fields), draft.where
        )

    def _raw_continuous(
        self, draft: NodeDraft, states: MappingABC[str, list[State]], continuous: set[str]
    ) -> RawNode:
        discrete = [(parent, states[parent]) for parent in draft.parents if states.get(parent)]
        numbers = [parent for parent in draft.parents if parent in continuous]
        found = None
        if draft.gaussian is not None and len(discrete) + len(numbers) == len(draft.parents):
            found = self.gaussians.arrange(draft.name, discrete, numbers, draft.gaussian, draft.where)
        return RawNode(draft.name, (), draft.parents, None, draft.where, None, found, True)

    def _raw_node(self, draft: NodeDraft, states: MappingABC[str, list[State]]) -> RawNode:
        name = draft.name
        parents = [(parent, states[parent]) for parent in draft.parents if states.get(parent)]
        if draft.noisy is not None and len(parents) == len(draft.parents):
            found = self.noisy.arrange(name, draft.states, parents, draft.noisy, draft.where)
            return RawNode(name, draft.states, draft.parents, None, draft.where, noisy=found)
        if draft.rule is not None and len(parents) == len(draft.parents):
            rule = arrange_rule(self.document, name, draft.states, parents, draft.rule, draft.where)
            return RawNode(name, draft.states, draft.parents, None, draft.where, rule=rule)
        if draft.table is None or len(parents) < len(draft.parents):
            return RawNode(name, draft.states or ("?",), draft.parents, None, draft.where)
        values, places = self.tables.arrange(name, draft.states, parents, draft.table, draft.where)
        return RawNode(
            name, draft.states, draft.parents, values, draft.where, places.__getitem__, bins=draft.bins
        )

    def string(self, node: Node, what: str) -> str | None:
        """A text that is not empty, or None if it is something else, which is reported."""
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value:
            return value
        hint = f'; write "{node.text}"' if isinstance(node, Scalar) and node.text else ""
        self.problems.add(f"{what} must be a string that is not empty, found {node}{hint}", self.where(node))
        return None


def _placeholder(name: str, draft: NodeDraft) -> RawNode:
    """A root that stands for a variable of an earlier slice."""
    if draft.continuous:
        numbers = RawGaussian(np.array(0.0), np.array(1.0), np.zeros(0), False, False)
        return RawNode(name, (), (), None, draft.where, None, numbers, True)
    values = [1.0 / len(draft.states)] * len(draft.states) if draft.states else None
    return RawNode(name, draft.states or ("?",), (), values, draft.where)
