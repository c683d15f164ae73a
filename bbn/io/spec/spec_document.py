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

from collections.abc import Mapping as MappingABC
from typing import Any

from bbn.core.errors import nearest
from bbn.io.build import build
from bbn.io.document import Document, Mapping, Node, Scalar
from bbn.io.problems import Problems, Where
from bbn.io.spec.spec_nodes import NodeDraft, NodeReader
from bbn.io.spec.spec_slices import read_slices, split_starts
from bbn.io.writing import VERSION

_RECALL = ("perfect", "implied", "limited")


def read_network(document: Document, strict: bool) -> Any:
    """The network that a document describes, a dynamic one where it has a `slice`; ParseError with all its problems."""
    return _DocumentReader(document).network(strict)


class _DocumentReader:
    """One document: its texts, and its nodes in two passes."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: Problems = document.problems
        self.where = document.where
        self.nodes = NodeReader(document)

    def network(self, strict: bool) -> Any:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            document.fail(f"expected a mapping with 'nodes', found {found}", found)
        texts: dict[str, str] = {}
        metadata: dict[str, str] = {}
        drafts: list[NodeDraft] | None = None
        slices: list[NodeDraft] | None = None
        first: dict[str, Where] = {}
        misnamed: dict[str, Mapping] = {}
        for key in document.each_key():
            name = self.nodes.string(key, "a key of the network")
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
            return read_slices(
                self.problems, drafts or [], slices, self.nodes.raw_nodes, title, about, strict
            )
        if drafts is None:
            near = next((key for key in first if key in misnamed or _means_nodes(key)), None)
            hint = "" if near is None else f"; {near!r} must be called 'nodes'"
            where = (1, 1) if near is None else first[near]
            self.problems.fail(f"there is no 'nodes', the mapping from each node to its table{hint}", where)
        recall = self._recall(texts, first) if any(draft.role for draft in drafts) else "perfect"
        return build(
            self.problems.source,
            self.nodes.raw_nodes(drafts),
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
            name = self.nodes.string(key, "a key of 'metadata'")
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
        return texts | metadata | self.nodes.notes.metadata()

    def _drafts(self, what: str) -> list[NodeDraft]:
        document = self.document
        if not document.next_is_mapping():
            found = document.value()
            if isinstance(found, Scalar) and found.value is None:
                return []
            document.fail(f"{what!r} must be a mapping from name to node, found {found}", found)
        drafts = []
        for key in document.each_key():
            name = self.nodes.string(key, "a node's name")
            spec = document.value()
            if name is not None:
                if what == "slice":
                    spec, starts = split_starts(self.problems, self.where, name, spec)
                    drafts += [self.nodes.draft(own, start, place) for own, start, place in starts]
                drafts.append(self.nodes.draft(name, spec, self.where(key)))
        return drafts

    def _text(self, key: str, node: Node) -> str:
        if isinstance(node, Scalar):
            return "" if node.value is None else node.text
        self.problems.add(f"{key!r} must be text, found {node}", self.where(node))
        return ""


def _means_nodes(key: str) -> bool:
    """Whether a key is likely a misspelt `nodes`."""
    return key != "nodes" and "did you mean" in nearest(key, ("nodes",))
