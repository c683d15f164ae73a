"""The table of a node for the page: the rows that agree with what is asked for, the first `SHOWN` of them.

Tables may be large, or exist as a formula only (a NoisyMax of a hundred parents), so rows are looked at one by one, at
most `LOOKED`; evidence on parents narrows what is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import prod
from typing import Any

from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.evidence import check_evidence
from bbn.model.gaussian import Gaussian
from bbn.model.variable import Variable
from bbn.view.page.findings import asked

SHOWN = 200
LOOKED = 100_000


def table_rows(model: Any, node: Any, request: Mapping[str, Any], rule: Any = None) -> dict[str, Any]:
    """The rows of a node's table, as the page asks for them.

    Parameters
    ----------
    model
        The network.
    node
        A conditional, decision or utility of it.
    request
        "agree": leave out the rows that contradict the evidence; "words": only rows with these, as in "smoke yes".
    rule
        What a solved decision chooses.

    Returns
    -------
    dict
        "parents", "columns", "rows" (labels, then numbers or a choice; with "codes" of the parents' states),
        "total" rows of the table, "more" whether there are others.

    >>> import bbn
    >>> net = bbn.example("asia")
    >>> made = table_rows(net, net["lung"], {"words": "yes"})
    >>> made["parents"], made["columns"], made["rows"], made["total"]
    (['smoke'], ['yes', 'no'], [['yes', 0.1, 0.9]], 2)
    """
    parents = _parents(node, rule)
    allowed = [range(p.card) for p in parents]
    if request.get("agree"):
        given = asked(model, request)
        hard = check_evidence(model, {**given.evidence, **given.do}).hard
        allowed = [
            range(hard[p.name], hard[p.name] + 1) if p.name in hard else range(p.card) for p in parents
        ]
    words = str(request.get("words", "")).lower().split()
    found = list(islice(_matching(parents, islice(product(*allowed), LOOKED), words), SHOWN + 1))
    values = _values(node, rule)
    return {
        "parents": [p.name for p in parents],
        "columns": _columns(node),
        "rows": [
            [*(str(p.states[c]) for p, c in zip(parents, codes, strict=True)), *values(codes)]
            for codes in found[:SHOWN]
        ],
        "codes": [list(codes) for codes in found[:SHOWN]],
        "total": prod(p.card for p in parents),
        "more": len(found) > SHOWN or prod(map(len, allowed)) > LOOKED,
    }


def _parents(node: Any, rule: Any) -> Sequence[Variable]:
    if isinstance(node, Decision):
        return rule.observes if rule is not None else ()
    if isinstance(node, Utility) and node.combine is not None:
        return ()
    if isinstance(node, Gaussian | Utility):
        return node.discrete_parents
    return tuple(node.parents)


def _columns(node: Any) -> list[str]:
    if isinstance(node, Decision):
        return ["choice"]
    if isinstance(node, Utility):
        return ["utility", *(f"per {p.name}" for p in node.continuous_parents)]
    if isinstance(node, Gaussian):
        return ["mean", "variance", *(f"× {p.name}" for p in node.continuous_parents)]
    return [str(state) for state in node.variable.states]


def _values(node: Any, rule: Any) -> Any:
    """From the codes of the parents to the cells of a row."""
    if isinstance(node, Decision):
        return lambda codes: [] if rule is None else [str(node.states[int(rule.codes[codes])])]
    if isinstance(node, Utility) and node.combine is not None:
        return lambda codes: [f"the {node.combine} of {', '.join(p.name for p in node.parents)}"]
    if isinstance(node, Utility):
        return lambda codes: [float(node.table[codes]), *node.weights[codes].tolist()]
    if isinstance(node, Gaussian):
        return lambda codes: [
            float(node.means[codes]),
            float(node.variances[codes]),
            *node.weights[codes].tolist(),
        ]
    assert isinstance(node, CPT)
    return lambda codes: node.row_at(codes).tolist()


def _matching(
    parents: Sequence[Variable], rows: Iterator[tuple[int, ...]], words: Sequence[str]
) -> Iterator[tuple[int, ...]]:
    """The rows in which each word is part of a parent's name or state."""
    labels = [[f"{p.name}={state}".lower() for state in p.states] for p in parents]
    for codes in rows:
        here = [label[c] for label, c in zip(labels, codes, strict=True)]
        if all(any(word in label for label in here) for word in words):
            yield codes
