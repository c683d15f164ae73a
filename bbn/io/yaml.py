"""YAML, the format of bbn itself: libyaml's events, read by the rules of YAML 1.2.

libyaml is fast and gives places, but its usual loaders follow YAML 1.1 (`yes` is true), keep the last of
repeated keys and can be asked to make Python objects. Here its events are read directly: only true and false
are booleans, repeated keys are errors, aliases may expand to a limited number of nodes, and tags other than
those of the core schema are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as TypingMapping
from itertools import product
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

from bbn.io.build import Problems, Where
from bbn.io.document import MAX_DEPTH, Mapping, Node, Scalar, Sequence, resolve
from bbn.io.quick import quick_yaml
from bbn.io.source_text import Source
from bbn.io.spec import read_network
from bbn.io.spec_slices import Written
from bbn.io.writing import (
    ChancesOfOr,
    chances_of_or,
    conditionals,
    flags,
    gaussian_rows,
    nested,
    notes,
    row_keys,
    state_fields,
    state_text,
    texts,
    utility_rows,
)
from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.deterministic import Deterministic
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.node_notes import LATENT
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import State, Variable

MAX_ALIASED = 1_000_000
"""The most nodes that the aliases of a file may stand for, all together."""

_TAG = "tag:yaml.org,2002:"
_SAFE = re.compile(r"[^\W\d](?:[\w.+/-]| (?=[\w+/-]))*+")
_SAFE_ROW = re.compile(r"\w(?:[\w.+/-]| (?=[\w+/-])|, (?=[\w+/-]))*+")
_UNPRINTABLE = re.compile(
    r"[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]"
)
_LONGEST_KEY = 900
_SLICE = re.compile(r"^[\"']?slice[\"']?[ \t]*:", re.MULTILINE)


def read(source: Source, strict: bool = False) -> Any:
    """The network in a YAML file, a dynamic one where it has a `slice`."""

    def carefully(source: Source) -> Any:
        return read_network(YamlDocument(source), strict)

    if _SLICE.search(source.text):
        return carefully(source)
    return quick_yaml(source, strict, carefully) or carefully(source)


def write(network: BayesianNetwork | DynamicNetwork) -> str:
    """The network as YAML.

    >>> import bbn
    >>> coin = bbn.CPT(bbn.Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])
    >>> print(write(bbn.BayesianNetwork([coin], name="coin")), end="")
    name: coin
    nodes:
      Coin:
        states: [heads, tails]
        table: [0.5, 0.5]
    """
    top, reserved = texts(network)
    lines = [f"{_key(key, '')}: {_text(value)}" for key, value in top.items()]
    if reserved:
        lines += ["metadata:", *(f"  {key}: {_text(value)}" for key, value in reserved.items())]
    if isinstance(network, DynamicNetwork):
        if network.static:
            lines += ["nodes:", *_lines([network[name] for name in network.static], notes(network))]
        lines.append("slice:")
        for name in network.names:
            if name not in network.static:
                lines += _slice_lines(Written(network, name), notes(network).get(name, {}))
    else:
        lines += ["nodes:", *_lines(conditionals(network), notes(network))]
    lines.append("")
    return "\n".join(lines)


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


def _lines(
    listed: Iterable[CPT | Gaussian | Decision | Utility], said: TypingMapping[str, TypingMapping[str, Any]]
) -> Iterator[str]:
    for conditional in listed:
        own = said.get(conditional.name, {})
        yield from _name_lines(conditional.name, own)
        if isinstance(conditional, NoisyMax):
            chances = chances_of_or(conditional)
            yield from _noisy_lines(conditional) if chances is None else _or_lines(conditional, chances)
        elif isinstance(conditional, Deterministic) and conditional.holds is not None:
            yield from _rule_lines(conditional, conditional.holds)
        elif isinstance(conditional, Decision):
            yield from _decision_lines(conditional)
        elif isinstance(conditional, Utility):
            yield from _utility_lines(conditional)
        else:
            yield from _head_lines(conditional)
            yield from _table_lines(conditional)
        if LATENT in own:
            yield "    latent: true"


def _name_lines(name: str, said: TypingMapping[str, Any]) -> Iterator[str]:
    yield f"  {_key(name, '  ')}:"
    if "description" in said:
        yield f"    description: {_text(said['description'])}"


def _or_lines(noisy: NoisyMax, chances: ChancesOfOr) -> Iterator[str]:
    yield "    type: noisy-or"
    yield f"    states: [{', '.join(map(_state, noisy.variable.states))}]"
    if noisy.parents:
        yield f"    parents: [{', '.join(_text(parent.name) for parent in noisy.parents)}]"
        yield "    links:"
    for parent, chance in chances.links.items():
        yield f"      {_key(parent, '      ')}: {_numbers(chance)}"
    yield f"    leak: {_numbers(chances.leak)}"
    yield from _holds_lines(chances.holds)


def _holds_lines(holds: TypingMapping[str, State]) -> Iterator[str]:
    if holds:
        yield "    holds:"
        yield from (f"      {_key(own, '      ')}: {_state(state)}" for own, state in holds.items())


def _rule_lines(own: Deterministic, holds: TypingMapping[str, State]) -> Iterator[str]:
    yield "    type: deterministic"
    yield f"    states: [{', '.join(map(_state, own.variable.states))}]"
    if own.parents:
        yield f"    parents: [{', '.join(_text(parent.name) for parent in own.parents)}]"
    yield f"    rule: {own.rule}"
    if own.at_least is not None:
        yield f"    at_least: {own.at_least}"
    yield from _holds_lines(holds)


def _noisy_lines(noisy: NoisyMax) -> Iterator[str]:
    yield "    type: noisy-max"
    yield f"    states: [{', '.join(map(_state, noisy.variable.states))}]"
    yield f"    strongest: {_state(noisy.strongest)}"
    if noisy.parents:
        yield f"    parents: [{', '.join(_text(parent.name) for parent in noisy.parents)}]"
        yield "    links:"
    for parent, link in zip(noisy.parents, noisy.links, strict=True):
        yield f"      {_key(parent.name, '      ')}: {_numbers(link.tolist())}"
    yield f"    leak: {_numbers(noisy.leak.tolist())}"


def _decision_lines(decision: Decision) -> Iterator[str]:
    yield "    type: decision"
    yield f"    states: [{', '.join(map(_state, decision.states))}]"
    if decision.observes:
        yield f"    observes: [{', '.join(map(_text, decision.observes))}]"


def _utility_lines(utility: Utility) -> Iterator[str]:
    yield "    type: utility"
    if utility.parents:
        yield f"    parents: [{', '.join(_text(parent.name) for parent in utility.parents)}]"
    if utility.combine is not None:
        yield f"    combine: {utility.combine}"
        if (utility.weights != 1).any():
            yield f"    weights: {_numbers(utility.weights.tolist())}"
        return
    rows = [
        f"{{utility: {_numbers(row['utility'])}, weights: {_numbers(row['weights'])}}}"
        if isinstance(row, dict)
        else _numbers(row)
        for row in utility_rows(utility)
    ]
    yield from _keyed_rows(rows, utility.discrete_parents, utility.table.shape)


def _slice_lines(node: Written, said: TypingMapping[str, Any]) -> Iterator[str]:
    """A node of a slice: as others are, with its table in the first slice before its own."""
    yield from _name_lines(node.usual.name, said)
    yield from _head_lines(node.usual)
    if node.first is not None:
        yield from _table_lines(node.first, "first", flagged=False)
    elif node.starts:
        yield "    starts:"
        for start in node.starts:
            if start is None:
                yield "      - null"
                continue
            parents = [parent.name for parent in start.parents]
            yield f"      - parents: [{', '.join(map(_text, parents))}]"
            yield from _table_lines(start, indent="        ", flagged=False)
    yield from _table_lines(node.usual)


def _head_lines(conditional: CPT | Gaussian) -> Iterator[str]:
    if isinstance(conditional, Gaussian):
        yield "    type: gaussian"
    else:
        for key, values in state_fields(conditional.variable).items():
            yield f"    {key}: [{', '.join(map(_state if key == 'states' else repr, values))}]"
    if conditional.parents:
        yield f"    parents: [{', '.join(_text(parent.name) for parent in conditional.parents)}]"


def _table_lines(
    conditional: CPT | Gaussian, label: str = "table", indent: str = "    ", flagged: bool = True
) -> Iterator[str]:
    if isinstance(conditional, Gaussian):
        parents, shape = conditional.discrete_parents, conditional.means.shape
        rows = [
            "{" + ", ".join(f"{field}: {_numbers(value)}" for field, value in row.items()) + "}"
            for row in gaussian_rows(conditional)
        ]
    else:
        parents, shape = conditional.parents, conditional.table.shape[:-1]
        rows = list(map(_numbers, conditional.table.reshape(-1, conditional.variable.card).tolist()))
    yield from _keyed_rows(rows, parents, shape, label, indent)
    if flagged and isinstance(conditional, Gaussian):
        yield from (f"{indent}{flag}: true" for flag in flags(conditional))


def _keyed_rows(
    rows: list[str],
    parents: tuple[Variable, ...],
    shape: tuple[int, ...],
    label: str = "table",
    indent: str = "    ",
) -> Iterator[str]:
    """The rows under a label, by the states of the discrete parents."""
    keys = _row_keys(parents)
    if not parents:
        yield f"{indent}{label}: {rows[0]}"
    elif max(map(len, keys)) > _LONGEST_KEY:
        yield f"{indent}{label}: {nested(rows, shape)}"
    else:
        yield f"{indent}{label}:"
        yield from (f"{indent}  {key}: {row}" for key, row in zip(keys, rows, strict=True))


def _row_keys(parents: tuple[Variable, ...]) -> list[str]:
    plain = row_keys(parents)
    if plain is not None:
        return [key if _SAFE_ROW.fullmatch(key) else _quote(key) for key in plain]
    settings = product(*(map(_state, parent.states) for parent in parents))
    return [f"[{', '.join(setting)}]" for setting in settings]


def _numbers(values: Any) -> str:
    """A nested list of numbers, each written so that it reads back bit for bit."""
    if isinstance(values, float):
        text = repr(values)
        # YAML 1.1 readers take an exponent only after a point.
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return f"[{', '.join(map(_numbers, values))}]"


def _state(state: State) -> str:
    return _text(state) if isinstance(state, str) else state_text(state)


def _key(text: str, indent: str) -> str:
    """Text as a key; one too long for the usual form is written after a question mark."""
    shown = _text(text)
    return shown if len(shown) <= _LONGEST_KEY else f"? {shown}\n{indent}"


def _text(text: str) -> str:
    """A string, quoted where it could be taken for something else."""
    return text if _SAFE.fullmatch(text) and isinstance(resolve(text), str) else _quote(text)


def _quote(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + _UNPRINTABLE.sub(lambda match: f"\\U{ord(match[0]):08x}", quoted) + '"'
