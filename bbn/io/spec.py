"""What a document says about a network: the keys of bbn's own format and their meaning.

    version: 1      name, description, source, …: text      metadata: {key: text}
    nodes: {name: {states: [...], parents: [...], table: ...}}

A file with a `slice` is a dynamic network; see `spec_slices`.

A table is a list (no parents), a mapping from the parents' states to rows, or a nested list with one level per
parent; a row is a list of numbers or a mapping from state to number. `bins: [...]` are the cut points of a number: its
intervals are the states, under labels of their own if `states` names them. A node of `type: gaussian` is continuous
(see `spec_gaussians`); one of `type: decision` or `type: utility` makes it a decision network (see `spec_decisions`).
Reading goes twice over the nodes: once through the file, and once when the states of all parents are known.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import nearest
from bbn.io.build import RawGaussian, RawNode, build
from bbn.io.document import Document, Mapping, Node, Scalar, Sequence
from bbn.io.problems import Problems, Where
from bbn.io.spec_decisions import DECISION, NEEDED, UTILITY, UtilityReader
from bbn.io.spec_decisions import FIELDS as DECISION_FIELDS
from bbn.io.spec_gaussians import FIELDS as GAUSSIAN_FIELDS
from bbn.io.spec_gaussians import KIND as GAUSSIAN
from bbn.io.spec_gaussians import GaussianDraft, GaussianReader
from bbn.io.spec_noisy import FIELDS as NOISY_FIELDS
from bbn.io.spec_noisy import NOISY_MAX, NOISY_OR, NoisyDraft, NoisyReader
from bbn.io.spec_notes import FIELDS as NOTES
from bbn.io.spec_notes import NotesReader
from bbn.io.spec_rule import DETERMINISTIC, RuleDraft, arrange_rule, draft_rule
from bbn.io.spec_rule import FIELDS as RULE_FIELDS
from bbn.io.spec_slices import read_slices, split_starts
from bbn.io.spec_tables import DraftTable, TableReader
from bbn.io.writing import VERSION
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
_RECALL = ("perfect", "implied", "limited")


class _Draft(NamedTuple):
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


def read_network(document: Document, strict: bool) -> Any:
    """The network that a document describes, a dynamic one where it has a `slice`; ParseError with all its problems."""
    return _DocumentReader(document).network(strict)


class _DocumentReader:
    """The two passes over one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: Problems = document.problems
        self.where = document.where
        self.tables = TableReader(document)
        self.gaussians = GaussianReader(document, self.tables)
        self.noisy = NoisyReader(document, self.tables)
        self.utilities = UtilityReader(document, self.tables)
        self.notes = NotesReader(document)

    def network(self, strict: bool) -> Any:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            document.fail(f"expected a mapping with 'nodes', found {found}", found)
        texts: dict[str, str] = {}
        metadata: dict[str, str] = {}
        drafts: list[_Draft] | None = None
        slices: list[_Draft] | None = None
        first: dict[str, Where] = {}
        misnamed: dict[str, Mapping] = {}
        for key in document.each_key():
            name = self._string(key, "a key of the network")
            if name is not None and name in first:
                self.problems.twice(f"the key {name!r}", self.where(key), first[name])
            elif name is not None:
                first[name] = self.where(key)
            if name == "nodes" and drafts is None:
                drafts = self._drafts("nodes")
            elif name == "slice" and slices is None and document.next_is_mapping():
                slices = self._drafts("slice")
            elif name == "metadata" and document.next_is_mapping():
                metadata = self._metadata()
            else:
                value = document.value()
                if name == "version" and not (isinstance(value, Scalar) and isinstance(value.value, str)):
                    self._check_version(value)
                elif name is not None and isinstance(value, Mapping) and _means_nodes(name):
                    misnamed[name] = value
                elif name is not None and name != "nodes":
                    texts[name] = self._text(name, value)
        if drafts is not None or slices is not None:
            texts |= {key: self._text(key, value) for key, value in misnamed.items()}
        if slices is not None:
            title, about = texts.pop("name", ""), self._joined(texts, metadata, first)
            return read_slices(self.problems, drafts or [], slices, self._raw_nodes, title, about, strict)
        if drafts is None:
            near = next((key for key in first if key in misnamed or _means_nodes(key)), None)
            hint = "" if near is None else f"; {near!r} must be called 'nodes'"
            where = (1, 1) if near is None else first[near]
            self.problems.fail(f"there is no 'nodes', the mapping from each node to its table{hint}", where)
        recall = self._recall(texts, first) if any(draft.role for draft in drafts) else "perfect"
        return build(
            self.problems.source,
            self._raw_nodes(drafts),
            texts.pop("name", ""),
            self._joined(texts, metadata, first),
            strict,
            self.problems,
            recall,
        )

    def _recall(self, texts: dict[str, str], first: MappingABC[str, Where]) -> str:
        """What decisions remember, by the key `recall`."""
        recall = texts.pop("recall", "perfect")
        if recall not in _RECALL:
            self.problems.add(
                f"'recall' is {recall!r}{self.problems.nearest(recall, _RECALL)}", first["recall"]
            )
        return recall

    def _check_version(self, node: Node) -> None:
        """Refuse a file of a later version at once: what it holds may mean something else."""
        version = node.value if isinstance(node, Scalar) else None
        if type(version) is int and version > VERSION:
            self.problems.fail(
                f"the file is of version {node} of the format, this bbn reads version {VERSION}; upgrade bbn",
                self.where(node),
            )
        if type(version) is not int or version < VERSION:
            self.problems.add(
                f"'version' is the version of the format and must be {VERSION}, found {node}; a version of the "
                "network itself is text in 'metadata'",
                self.where(node),
            )

    def _metadata(self) -> dict[str, str]:
        """The mapping `metadata`: texts under any key."""
        found: dict[str, str] = {}
        first: dict[str, Where] = {}
        for key in self.document.each_key():
            name = self._string(key, "a key of 'metadata'")
            value = self.document.value()
            if name is None:
                continue
            if name in found:
                self.problems.twice(f"the key {name!r} of 'metadata'", self.where(key), first[name])
            first[name] = self.where(key)
            found[name] = self._text(name, value)
        return found

    def _joined(
        self, texts: dict[str, str], metadata: dict[str, str], first: MappingABC[str, Where]
    ) -> dict[str, str]:
        """The metadata of the top level and of the mapping; the same key in both is a problem."""
        for key in texts.keys() & metadata.keys():
            self.problems.add(f"the key {key!r} is given here and in 'metadata'", first[key])
        return texts | metadata | self.notes.metadata()

    # First pass: one node after the other, as they stand in the file

    def _drafts(self, what: str) -> list[_Draft]:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            if isinstance(found, Scalar) and found.value is None:
                return []
            document.fail(f"{what!r} must be a mapping from name to node, found {found}", found)
        drafts = []
        for key in document.each_key():
            name = self._string(key, "a node's name")
            spec = document.value()
            if name is not None:
                if what == "slice":
                    spec, starts = split_starts(self.problems, self.where, name, spec)
                    drafts += [self._draft(own, start, place) for own, start, place in starts]
                drafts.append(self._draft(name, spec, self.where(key)))
        return drafts

    def _draft(self, name: str, spec: Node, where: Where) -> _Draft:
        if not isinstance(spec, Mapping):
            self.problems.add(
                f"node {name!r}: expected a mapping with 'states' and 'table', found {spec}", where
            )
            return _Draft(name, [], [], None, where)
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
            return _Draft(name, [], parents or [], None, where, role=kind, fields=fields)
        states = self._states(name, fields["states"]) if "states" in fields else []
        if kind == DECISION:
            observes = self._parents(name, fields["observes"], "observes") if "observes" in fields else []
            return _Draft(name, states, observes or [], None, where, role=kind)
        bins = self._bins(name, fields["bins"]) if "bins" in fields else None
        if bins is not None and "states" not in fields:
            states = list(interval_labels(bins))
        parents = self._parents(name, fields["parents"]) if "parents" in fields else []
        if kind in NOISY_FIELDS:
            read = self.noisy.draft if kind == NOISY_MAX else self.noisy.draft_or
            draft = read(name, states, parents, fields, where) if states and parents is not None else None
            return _Draft(name, states, parents or [], None, where, noisy=draft)
        if kind == DETERMINISTIC:
            rule = None
            if states and parents is not None and "rule" in fields:
                rule = draft_rule(self.document, self.noisy, name, parents, fields)
            return _Draft(name, states, parents or [], None, where, rule=rule)
        table = None
        if "table" in fields and states and parents is not None:
            table = self.tables.read(name, states, fields["table"], bool(parents))
        return _Draft(name, states, parents or [], table, where, bins=bins)

    def _kind(self, name: str, spec: Mapping) -> str:
        """The type of a node, nothing for a table; another type than those there are is a problem."""
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

    def _continuous(self, name: str, fields: dict[str, Node], where: Where) -> _Draft:
        parents = self._parents(name, fields["parents"]) if "parents" in fields else []
        draft = self.gaussians.draft(name, fields) if "table" in fields and parents is not None else None
        return _Draft(name, [], parents or [], None, where, True, draft)

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
        names = [self._string(item, f"node {name!r}: a parent's name") for item in node.items]
        right = [parent for parent in names if parent is not None]
        return right if len(right) == len(names) else None

    # Second pass: the rows, now that the states of all parents are known

    def _raw_nodes(
        self, drafts: SequenceABC[_Draft], lagged: MappingABC[str, _Draft] | None = None
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
        self, draft: _Draft, states: MappingABC[str, list[State]], continuous: set[str]
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
        self, draft: _Draft, states: MappingABC[str, list[State]], continuous: set[str]
    ) -> RawNode:
        discrete = [(parent, states[parent]) for parent in draft.parents if states.get(parent)]
        numbers = [parent for parent in draft.parents if parent in continuous]
        found = None
        if draft.gaussian is not None and len(discrete) + len(numbers) == len(draft.parents):
            found = self.gaussians.arrange(draft.name, discrete, numbers, draft.gaussian, draft.where)
        return RawNode(draft.name, (), draft.parents, None, draft.where, None, found, True)

    def _raw_node(self, draft: _Draft, states: MappingABC[str, list[State]]) -> RawNode:
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

    # Words

    def _string(self, node: Node, what: str) -> str | None:
        value = node.value if isinstance(node, Scalar) else None
        if isinstance(value, str) and value:
            return value
        hint = f'; write "{node.text}"' if isinstance(node, Scalar) and node.text else ""
        self.problems.add(f"{what} must be a string that is not empty, found {node}{hint}", self.where(node))
        return None

    def _text(self, key: str, node: Node) -> str:
        if isinstance(node, Scalar):
            return "" if node.value is None else node.text
        self.problems.add(f"{key!r} must be text, found {node}", self.where(node))
        return ""


def _means_nodes(key: str) -> bool:
    """Whether a key is likely a misspelt `nodes`."""
    return key != "nodes" and "did you mean" in nearest(key, ("nodes",))


def _placeholder(name: str, draft: _Draft) -> RawNode:
    """A root that stands for a variable of an earlier slice."""
    if draft.continuous:
        numbers = RawGaussian(np.array(0.0), np.array(1.0), np.zeros(0), False, False)
        return RawNode(name, (), (), None, draft.where, None, numbers, True)
    values = [1.0 / len(draft.states)] * len(draft.states) if draft.states else None
    return RawNode(name, draft.states or ("?",), (), values, draft.where)
