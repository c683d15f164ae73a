"""YAML, the format of bbn itself: a document becomes a network, and a network a text that reads back bit for bit.

`bbn.io.formats.yaml_document` reads the events, `bbn.io.spec` knows what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Mapping as TypingMapping
from itertools import product
from typing import Any

from bbn.io.document import resolve
from bbn.io.formats.quick import quick_yaml
from bbn.io.formats.yaml_document import YamlDocument
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
