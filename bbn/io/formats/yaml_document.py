"""A YAML file as a document: libyaml's events, read by the rules of YAML 1.2.

libyaml is fast and gives places, but its usual loaders follow YAML 1.1 (`yes` is true), keep the last of
repeated keys and can be asked to make Python objects. Here its events are read directly: only true and false
are booleans, repeated keys are errors, aliases may expand to a limited number of nodes, and tags other than
those of the core schema are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from bbn.io.document import MAX_DEPTH, Mapping, Node, Scalar, Sequence, resolve
from bbn.io.problems import Problems, Where
from bbn.io.source_text import Source

MAX_ALIASED = 1_000_000
"""The most nodes that the aliases of a file may stand for, all together."""
_TAG = "tag:yaml.org,2002:"


class YamlDocument:
    """A YAML file being read, event by event."""

    def __init__(self, source: Source) -> None:
        self.problems = Problems(source)
        self._get_event = _parser(source.text).get_event
        self._event: Any = None
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._n_nodes = 0
        self._n_aliased = 0
        self._depth = 0
        self._next()  # the start of the stream, then of the document
        self._next()
        if isinstance(self._event, StreamEndEvent):
            self.problems.fail("the file is empty; expected a mapping with 'nodes'", (1, 1))
        self._next()

    def each_key(self) -> Iterator[Node]:
        """The keys of the mapping that comes next."""
        self._check_tag(self._event)
        self._next()
        self._depth += 1
        while type(self._event) is not MappingEndEvent:
            yield self.value()
        self._next()
        self._depth -= 1
        if not self._depth:
            self._end()

    def value(self) -> Node:
        """The node that comes next."""
        try:
            node = self._compose(self._event, self._depth)
        except yaml.YAMLError as error:
            self._fail_yaml(error)
        self._next()
        return node

    def next_is_mapping(self) -> bool:
        """Whether the node that comes next is a mapping."""
        return type(self._event) is MappingStartEvent

    def where(self, node: Node) -> Where:
        """Line and column of a node."""
        return node.mark.line + 1, node.mark.column + 1

    def fail(self, message: str, node: Node) -> NoReturn:
        """Raise the error that points at a node."""
        self.problems.fail(message, self.where(node))

    def _compose(self, event: Any, depth: int) -> Node:
        """The node that starts with this event."""
        if type(event) is AliasEvent:
            return self._aliased(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        before = self._n_nodes
        self._n_nodes += 1
        self._check_tag(event)
        node: Node
        if type(event) is ScalarEvent:
            node = Scalar(event.value, _is_quoted(event), event.start_mark)
        elif depth >= MAX_DEPTH:
            self._fail_at(event, f"nested more than {MAX_DEPTH} deep")
        elif type(event) is SequenceStartEvent:
            node = Sequence(self._items(SequenceEndEvent, depth + 1), event.start_mark)
        else:
            items = self._items(MappingEndEvent, depth + 1)
            node = Mapping(list(zip(items[::2], items[1::2], strict=True)), event.start_mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._n_nodes - before
        return node

    def _items(self, end: type, depth: int) -> list[Node]:
        """The nodes up to the end of a list or mapping. Most are plain scalars, so these are made on the spot."""
        items: list[Node] = []
        while True:
            event = self._get_event()
            kind = type(event)
            if kind is ScalarEvent and event.tag is None and event.anchor is None:
                items.append(Scalar(event.value, not event.implicit[0], event.start_mark))
            elif kind is end:
                self._n_nodes += len(items)
                return items
            else:
                items.append(self._compose(event, depth))

    def _aliased(self, event: Any) -> Node:
        known = self._anchors.get(event.anchor)
        if known is None:
            what = "inside itself" if event.anchor in self._anchors else "before any anchor of that name"
            self._fail_at(event, f"alias *{event.anchor} stands {what}")
        node, size = known
        self._n_nodes += size
        self._n_aliased += size
        if self._n_aliased > MAX_ALIASED:
            self._fail_at(event, f"aliases stand for more than {MAX_ALIASED:,} nodes")
        return node

    def _check_tag(self, event: Any) -> None:
        tag = event.tag
        if tag is None or tag == "!":
            return
        allowed = {
            ScalarEvent: ("str", "int", "float", "bool", "null"),
            SequenceStartEvent: ("seq",),
            MappingStartEvent: ("map",),
        }[type(event)]
        if tag.removeprefix(_TAG) not in allowed or not tag.startswith(_TAG):
            self._fail_at(event, f"tag {tag!r} is not allowed here; a network needs none")
        expected = tag.removeprefix(_TAG)
        if expected not in ("str", "seq", "map"):
            value = resolve(event.value)
            found = "null" if value is None else type(value).__name__
            if found != expected and (found, expected) != ("int", "float"):
                self._fail_at(event, f"expected a value of type {expected}, found {event.value!r}")

    def _end(self) -> None:
        """Nothing may follow the document's one mapping."""
        self._next()
        if type(self._event) is not StreamEndEvent:
            self._fail_at(self._event, "a second document; a file holds one network")

    def _next(self) -> None:
        try:
            self._event = self._get_event()
        except yaml.YAMLError as error:
            self._fail_yaml(error)

    def _fail_yaml(self, error: yaml.YAMLError) -> NoReturn:
        if isinstance(error, yaml.MarkedYAMLError):
            mark = error.problem_mark or error.context_mark
            message = " ".join(part for part in (error.context, error.problem) if part)
            lines = self.problems.source.text.splitlines()
            if mark is not None and mark.line < len(lines) and lines[mark.line][mark.column :][:1] == "\t":
                message += ", a tab; YAML is indented with spaces"
            place = (mark.line + 1, mark.column + 1) if mark is not None else None
            self.problems.fail(f"not YAML: {message}", place)
        position = getattr(error, "position", 0)
        self.problems.fail(f"not YAML: {getattr(error, 'reason', error)}", position)

    def _fail_at(self, event: Any, message: str) -> NoReturn:
        self.problems.fail(message, (event.start_mark.line + 1, event.start_mark.column + 1))


def _parser(text: str) -> Any:
    """libyaml's parser, or PyYAML's own where it was built without libyaml."""
    if yaml.__with_libyaml__:
        return yaml.CLoader(text)
    return yaml.SafeLoader(text)


def _is_quoted(event: Any) -> bool:
    if event.tag is not None:
        return bool(event.tag in ("!", _TAG + "str"))
    return not event.implicit[0]
