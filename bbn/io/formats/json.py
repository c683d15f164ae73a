"""JSON: the same keys and meaning as YAML, in strict JSON (RFC 8259).

The standard library's reader gives no places, keeps the last of repeated keys and takes NaN, so a small scanner
reads the text here, token by token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as TypingMapping
from typing import Any, NoReturn

from bbn.io.document import MAX_DEPTH, Mapping, Node, Scalar, Sequence
from bbn.io.formats.quick import quick_json
from bbn.io.problems import Problems, Where
from bbn.io.source_text import Source
from bbn.io.spec.spec_document import read_network
from bbn.io.spec.spec_slices import Written
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
    texts,
    utility_rows,
)
from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.deterministic import Deterministic
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Variable

_TOKEN = re.compile(
    r'[ \t\n\r]*+(?:("[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+")'
    r"|(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?|true|false|null)(?![\w.+-])"
    r"|([\[\]{},:])|\Z)"
)
_WORD = re.compile(r"[\w.+-]+|.", re.DOTALL)


def read(source: Source, strict: bool = False) -> Any:
    """The network in a JSON file, a dynamic one where it has a `slice`."""
    return quick_json(source, strict) or read_network(JsonDocument(source), strict)


def write(network: BayesianNetwork | DynamicNetwork) -> str:
    """The network as JSON.

    >>> import bbn
    >>> coin = bbn.CPT(bbn.Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])
    >>> print(write(bbn.BayesianNetwork([coin])), end="")
    {
      "nodes": {
        "Coin": {
          "states": ["heads", "tails"],
          "table": [0.5, 0.5]
        }
      }
    }
    """
    top, reserved = texts(network)
    more = {"metadata": reserved} if reserved else {}
    head = [f"  {_dump(key)}: {_dump(value)},\n" for key, value in {**top, **more}.items()]
    if not isinstance(network, DynamicNetwork):
        said = notes(network)
        nodes = ",\n".join(
            _node_text(one, said.get(one.name, {}), links=True) for one in conditionals(network)
        )
        return "{\n" + "".join(head) + '  "nodes": {\n' + nodes + "\n  }\n}\n"
    said = notes(network)
    if network.static:
        nodes = ",\n".join(_node_text(network[name], said.get(name, {})) for name in network.static)
        head.append('  "nodes": {\n' + nodes + "\n  },\n")
    written = (Written(network, name) for name in network.names if name not in network.static)
    slices = ",\n".join(
        _node_text(node.usual, said.get(node.usual.name, {}), _start_fields(node)) for node in written
    )
    return "{\n" + "".join(head) + '  "slice": {\n' + slices + "\n  }\n}\n"


class JsonDocument:
    """A JSON file being read, token by token; a mark is an offset into the text."""

    def __init__(self, source: Source) -> None:
        self.problems = Problems(source)
        self._text = source.text
        self._depth = 0
        self._start = self._end = 0
        self._word = ""
        self._next()
        if not self._word:
            self.problems.fail("the file is empty; expected an object with 'nodes'", (1, 1))

    def each_key(self) -> Iterator[Node]:
        """The keys of the object that comes next."""
        self._depth += 1
        yield from self._pairs()
        self._depth -= 1
        if not self._depth and self._word:
            self._expected("the end of the file")

    def value(self) -> Node:
        """The node that comes next."""
        return self._node(self._depth)

    def next_is_mapping(self) -> bool:
        """Whether the node that comes next is an object."""
        return self._word == "{"

    def where(self, node: Node) -> Where:
        """The offset of a node."""
        where: int = node.mark
        return where

    def fail(self, message: str, node: Node) -> NoReturn:
        """Raise the error that points at a node."""
        self.problems.fail(message, self.where(node))

    def _pairs(self) -> Iterator[Node]:
        """The keys of an object; whoever takes one reads its value before the next."""
        self._next()
        while self._word != "}":
            if not self._word.startswith('"'):
                self._expected("a key in double quotes")
            key = self._scalar()
            if self._word != ":":
                self._expected("':' after the key")
            self._next()
            yield key
            self._separator("}")
        self._next()

    def _node(self, depth: int) -> Node:
        word, mark = self._word, self._start
        if word not in ("{", "["):
            return self._scalar()
        if depth >= MAX_DEPTH:
            self.problems.fail(f"nested more than {MAX_DEPTH} deep", mark)
        if word == "{":
            return Mapping([(key, self._node(depth + 1)) for key in self._pairs()], mark)
        items: list[Node] = []
        self._next()
        while self._word != "]":
            items.append(self._node(depth + 1))
            self._separator("]")
        self._next()
        return Sequence(items, mark)

    def _scalar(self) -> Scalar:
        word, mark = self._word, self._start
        if not word or word in "[]{},:":
            self._expected("a value")
        if word[0] == '"':
            try:
                scalar = Scalar(json.loads(word) if "\\" in word else word[1:-1], True, mark)
                scalar.text.encode()
            except json.JSONDecodeError as error:
                self.problems.fail(f"not JSON: {error.msg}", mark + error.pos)
            except UnicodeEncodeError:
                self.problems.fail("half a surrogate pair, which is not a character", mark)
        else:
            scalar = Scalar(word, False, mark)
        self._next()
        return scalar

    def _separator(self, end: str) -> None:
        """Pass a comma that another item follows, or stay before the end."""
        if self._word == ",":
            self._next()
            if self._word == end:
                self._expected("another item after the comma")
        elif self._word != end:
            self._expected(f"',' or '{end}'")

    def _next(self) -> None:
        match = _TOKEN.match(self._text, self._end)
        if match is None:
            start = self._end + len(self._text[self._end :]) - len(self._text[self._end :].lstrip(" \t\n\r"))
            self._start, self._end = start, start
            found = _WORD.match(self._text, start)
            self._word = found[0] if found is not None else ""
            self._expected("a value")
        self._word = match[match.lastindex] if match.lastindex else ""
        self._end = match.end()
        self._start = self._end - len(self._word)

    def _expected(self, what: str) -> NoReturn:
        shown = self._word[:40] + "…" if len(self._word) > 40 else self._word
        found = repr(shown) if shown else "the end of the file"
        self.problems.fail(f"not JSON: expected {what}, found {found}", self._start)


def _start_fields(node: Written) -> dict[str, str]:
    """What a node has in the first slices, as fields."""
    if node.first is not None:
        return {"first": _fields(node.first)["table"]}
    starts = [
        "null"
        if start is None
        else "{"
        + ", ".join(
            f'"{field}": {text}' for field, text in _fields(start).items() if field in ("parents", "table")
        )
        + "}"
        for start in node.starts
    ]
    return {"starts": f"[{', '.join(starts)}]"} if starts else {}


def _fields(conditional: CPT | Gaussian | Decision | Utility) -> dict[str, str]:
    if isinstance(conditional, Decision):
        fields = {"type": '"decision"', "states": _dump(list(conditional.states))}
        return fields | ({"observes": _dump(list(conditional.observes))} if conditional.observes else {})
    if isinstance(conditional, Utility):
        return _utility_fields(conditional)
    return _gaussian_fields(conditional) if isinstance(conditional, Gaussian) else _table_fields(conditional)


def _node_text(
    conditional: CPT | Gaussian | Decision | Utility,
    said: TypingMapping[str, Any],
    more: dict[str, str] | None = None,
    links: bool = False,
) -> str:
    own = None
    if links and isinstance(conditional, NoisyMax):
        own = _noisy_fields(conditional)
    elif links and isinstance(conditional, Deterministic):
        own = _rule_fields(conditional)
    own = _fields(conditional) if own is None else own
    fields = {**{field: _dump(text) for field, text in said.items()}, **own, **(more or {})}
    body = ",\n".join(f'      "{field}": {text}' for field, text in fields.items())
    return f"    {_dump(conditional.name)}: {{\n{body}\n    }}"


def _gaussian_fields(gaussian: Gaussian) -> dict[str, str]:
    fields = {"type": '"gaussian"'}
    if gaussian.parents:
        fields["parents"] = _dump([parent.name for parent in gaussian.parents])
    rows = list(map(_dump, gaussian_rows(gaussian)))
    fields["table"] = _rows_text(rows, gaussian.discrete_parents, gaussian.means.shape)
    return fields | dict.fromkeys(flags(gaussian), "true")


def _noisy_fields(noisy: NoisyMax) -> dict[str, str]:
    chances = chances_of_or(noisy)
    if chances is not None:
        return _or_fields(noisy, chances)
    fields = {"type": '"noisy-max"', "states": _dump(list(noisy.variable.states))}
    fields["strongest"] = _dump(noisy.strongest)
    if noisy.parents:
        fields["parents"] = _dump([parent.name for parent in noisy.parents])
        links = (_dump(link.tolist()) for link in noisy.links)
        fields["links"] = _keyed([parent.name for parent in noisy.parents], links)
    return fields | {"leak": _dump(noisy.leak.tolist())}


def _rule_fields(own: Deterministic) -> dict[str, str] | None:
    """The fields of a node that its parents decide; None if only its table says it."""
    holds = own.holds
    if holds is None:
        return None
    fields = {"type": '"deterministic"', "states": _dump(list(own.variable.states))}
    if own.parents:
        fields["parents"] = _dump([parent.name for parent in own.parents])
    fields["rule"] = _dump(own.rule)
    if own.at_least is not None:
        fields["at_least"] = _dump(own.at_least)
    return fields | ({"holds": _dump(holds)} if holds else {})


def _or_fields(noisy: NoisyMax, chances: ChancesOfOr) -> dict[str, str]:
    fields = {"type": '"noisy-or"', "states": _dump(list(noisy.variable.states))}
    if noisy.parents:
        fields["parents"] = _dump(list(chances.links))
        fields["links"] = _keyed(list(chances.links), map(_dump, chances.links.values()))
    fields["leak"] = _dump(chances.leak)
    return fields | ({"holds": _dump(chances.holds)} if chances.holds else {})


def _utility_fields(utility: Utility) -> dict[str, str]:
    fields = {"type": '"utility"'}
    if utility.parents:
        fields["parents"] = _dump([parent.name for parent in utility.parents])
    if utility.combine is not None:
        fields["combine"] = _dump(utility.combine)
        if (utility.weights != 1).any():
            fields["weights"] = _dump(utility.weights.tolist())
        return fields
    rows = list(map(_dump, utility_rows(utility)))
    fields["table"] = _rows_text(rows, utility.discrete_parents, utility.table.shape)
    return fields


def _rows_text(rows: list[str], parents: tuple[Variable, ...], shape: tuple[int, ...]) -> str:
    """The rows by the states of the discrete parents, nested where these cannot be keys."""
    keys = row_keys(parents)
    if not parents:
        return rows[0]
    return nested(rows, shape) if keys is None else _keyed(keys, rows)


def _table_fields(cpt: CPT) -> dict[str, str]:
    fields = {key: _dump(value) for key, value in state_fields(cpt.variable).items()}
    keys = None
    if cpt.parents:
        fields["parents"] = _dump([parent.name for parent in cpt.parents])
        keys = row_keys(cpt.parents)
    if keys is None:
        fields["table"] = _dump(cpt.table.tolist())
    else:
        fields["table"] = _keyed(keys, map(_dump, cpt.table.reshape(-1, cpt.variable.card).tolist()))
    return fields


def _keyed(keys: list[str], rows: Iterable[str]) -> str:
    lines = [f"        {_dump(key)}: {row}" for key, row in zip(keys, rows, strict=True)]
    return "{\n" + ",\n".join(lines) + "\n      }"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
