"""What a document says about a dynamic network, in bbn's own format.

    slice: {Rain: {states: [...], parents: ["Rain[-1]"], first: ..., table: ...}}      nodes: the static ones

A node of a slice is like any other, but its parents may lie in an earlier slice ("Rain[-1]", "Rain[-2]"). `first`
is its table in the first slice, over its parents of the same slice; `starts`, a list of {parents, table}, says more:
one for each of the slices 0, 1, … (null where the usual one does). Nodes beside the slice are static.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bbn.core.errors import ModelError
from bbn.io.build import RawNode, build
from bbn.io.document import Mapping as MappingNode
from bbn.io.document import Node, Scalar
from bbn.io.document import Sequence as SequenceNode
from bbn.io.problems import Problems, Where
from bbn.model.cpt import CPT
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.previous import in_slice, split_name

_COPIED = ("states", "type", "tied_variance", "fixed_variance")
_START = ("parents", "table")


def split_starts(
    problems: Problems, where: Callable[[Node], Where], name: str, spec: Node
) -> tuple[Node, list[tuple[str, Node, Where]]]:
    """A node of a slice without `first` and `starts`, and what these say as nodes of their own, "Rain[0]", …."""
    if not isinstance(spec, MappingNode):
        return spec, []
    fields: dict[str, tuple[Node, Node]] = {
        key.text: (key, value) for key, value in spec.pairs if isinstance(key, Scalar)
    }
    rest = MappingNode([pair for pair in spec.pairs if _field(pair[0]) not in ("first", "starts")], spec.mark)
    copied = [fields[field] for field in _COPIED if field in fields]
    if "first" in fields and "starts" in fields:
        problems.add(f"node {name!r}: give either 'first' or 'starts', not both", where(fields["starts"][0]))
    if "first" in fields:
        key, table = fields["first"]
        parents = fields.get("parents")
        pairs: list[tuple[Node, Node]] = [*copied, (Scalar("table", True, key.mark), table)]
        if parents is not None and isinstance(parents[1], SequenceNode):
            kept = [p for p in parents[1].items if not (isinstance(p, Scalar) and _lag(p.text))]
            pairs.append((parents[0], SequenceNode(kept, parents[1].mark)))
        return rest, [(in_slice(name, 0), MappingNode(pairs, table.mark), where(key))]
    if "starts" not in fields:
        return rest, []
    listed = fields["starts"][1]
    if not isinstance(listed, SequenceNode):
        problems.add(
            f"node {name!r}: 'starts' must be a list with one entry per slice, found {listed}", where(listed)
        )
        return rest, []
    starts: list[tuple[str, Node, Where]] = []
    for s, item in enumerate(listed.items):
        if isinstance(item, Scalar) and item.value is None:
            continue
        if not isinstance(item, MappingNode):
            problems.add(
                f"node {name!r}: an entry of 'starts' must be a mapping with 'table', found {item}",
                where(item),
            )
            continue
        for key, _ in item.pairs:
            if _field(key) not in _START:
                problems.add(
                    f"node {name!r}, slice {s}: unknown key {key}{problems.nearest(_field(key), _START)}",
                    where(key),
                )
        own = [pair for pair in item.pairs if _field(pair[0]) in _START]
        starts.append((in_slice(name, s), MappingNode([*copied, *own], item.mark), where(item)))
    return rest, starts


def _field(key: Node) -> str | None:
    return key.text if isinstance(key, Scalar) else None


def _lag(name: str) -> int:
    """How many slices back a name lies; 0 for the same one."""
    return max(0, -(split_name(name)[1] or 0))


def read_slices(
    problems: Problems,
    static: Sequence[Any],
    slices: Sequence[Any],
    raw_nodes: Callable[[Sequence[Any], Mapping[str, Any]], list[RawNode]],
    name: str,
    metadata: Mapping[str, str],
    strict: bool,
) -> DynamicNetwork:
    """The dynamic network of a document's drafts, static nodes and those of a slice."""
    if not slices:
        problems.fail("'slice' is empty; it needs at least one node")
    drafts = {draft.name: draft for draft in slices}
    usual = {own: draft for own, draft in drafts.items() if split_name(own)[1] is None}
    faulty = problems.count > 0  # then a misspelt 'first' may be among what is wrong
    for own, draft in usual.items():
        if any(map(_lag, draft.parents)) and in_slice(own, 0) not in drafts and not faulty:
            problems.add(
                f"node {own!r} depends on an earlier slice, and the first slice has none; give it 'first', its table "
                "there",
                draft.where,
            )
    for own, draft in drafts.items():
        plain, at = split_name(own)
        if plain not in usual:
            problems.add(f"node {own!r}: a node's name must not end in a slice's number", draft.where)
        if at is not None:
            for parent in draft.parents:
                if _lag(parent) > at:
                    problems.add(
                        f"node {plain!r}, slice {at}: its parent {parent!r} lies before the start",
                        draft.where,
                    )
            drafts[own] = draft._replace(parents=[_family(p, at, usual, drafts) for p in draft.parents])
    everything = [*static, *drafts.values()]
    lagged = {}
    for draft in everything:
        for parent in draft.parents:
            own, at = split_name(parent)
            if at is not None and at < 0 and own in usual:
                lagged[parent] = usual[own]
    template = build(problems.source, raw_nodes(everything, lagged), name, metadata, strict, problems)
    try:
        return DynamicNetwork.from_template(template, tuple(draft.name for draft in static), name, metadata)
    except ModelError as error:
        problems.fail(str(error), next(iter(usual.values())).where if usual else None)


def _family(parent: str, step: int, usual: Mapping[str, Any], drafts: Iterable[str]) -> str:
    """Which family a parent of the same slice has in one of the first slices."""
    if _lag(parent) or parent not in usual or in_slice(parent, step) in drafts:
        return in_slice(parent, step) if in_slice(parent, step) in drafts else parent
    if max(map(_lag, usual[parent].parents), default=0) <= step:
        return parent
    given = [in_slice(parent, s) for s in range(step) if in_slice(parent, s) in drafts]
    return given[-1] if given else parent


class Written:
    """A node of a slice as a writer needs it: its usual conditional, and what it has in the first slices.

    Attributes
    ----------
    first
        Its conditional in the first slice where `first` can say it, otherwise None.
    starts
        Otherwise its conditionals in slices 0, 1, …, None where a slice has the usual one.
    """

    def __init__(self, network: DynamicNetwork, name: str) -> None:
        self.usual: CPT | Gaussian = network[name]
        own: dict[int, Any] = {}
        for s in range(network.n_first):
            if network.family(name, s) == in_slice(name, s):
                own[s] = network.conditional(name, s)
        plain = [p for p in self.usual.parents if not _lag(p.name)]
        self.first = own[0] if set(own) == {0} and list(own[0].parents) == plain else None
        self.starts = [own.get(s) for s in range(max(own, default=-1) + 1)] if self.first is None else []
