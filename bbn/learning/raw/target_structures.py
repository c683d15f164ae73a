"""Structures for predicting one column: naive Bayes on chosen columns, the target last, or Gaussians linked all round.

Naive Bayes counts what two columns have in common twice, so it grows too sure of itself. Choosing the columns greedily
by the log loss on held-out rows keeps those that add something (Langley & Sage 1994, Induction of selective Bayesian
classifiers; there by accuracy). With the target last, its table given a few parents is exactly what is predicted.
Gaussians linked all round under the target are quadratic discriminant analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.learning.raw.small_families import bounded_search
from bbn.learning.structure.hill_climb import hill_climb

if TYPE_CHECKING:
    import networkx as nx

MOST_CHOSEN = 15
"""The most columns that are chosen for naive Bayes."""
PARTS = 5
"""Parts of the rows for choosing columns."""
MORE_PARENTS = 4
"""The most parents of a number beside all other numbers."""
MOST_LINKED = 12
"""The most numbers that are linked all round."""


def naive_bayes(names: Sequence[str], target: str) -> nx.DiGraph[str]:
    """An arc from the target to every other column."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((target, name) for name in names if name != target)
    return graph


def linked_gaussians(names: Sequence[str], target: str, numbers: Sequence[str]) -> nx.DiGraph[str]:
    """Naive Bayes, with each of the first MOST_LINKED numbers a parent of those after it."""
    graph = naive_bayes(names, target)
    linked = [name for name in names if name in set(numbers) and name != target][:MOST_LINKED]
    graph.add_edges_from((a, b) for i, a in enumerate(linked) for b in linked[i + 1 :])
    return graph


def target_last(
    coded: CodedTable, target: str, options: Mapping[str, Any], given: Sequence[str] = ()
) -> nx.DiGraph[str]:
    """Hill climbing without arcs out of the target, and with arcs into it from those `given`."""
    names = [name for name in (*coded.codes, *coded.numbers) if name != target]
    if 2 * len(given) > coded.n_rows:
        raise DataError(f"{len(given)} numbers are too many parents for {coded.n_rows} rows")
    own: dict[str, Any] = {
        "forbidden": [*options.get("forbidden", ()), *((target, name) for name in names)],
        "required": [*options.get("required", ()), *((name, target) for name in given if name != target)],
    }
    if given:
        own["max_parents"] = options.get("max_parents") or len(given) + MORE_PARENTS
    graph: nx.DiGraph[str] = bounded_search(hill_climb, coded, {**options, **own})
    return graph


def selective(coded: CodedTable, target: str, options: Mapping[str, Any]) -> nx.DiGraph[str]:
    """Naive Bayes on the chosen columns; the others are their children, so that they say nothing about the target."""
    names = [v.name for v in coded.variables if v.name != target]
    chosen = choose_columns(coded, target)
    others = [name for name in names if name not in chosen]
    forbidden = [
        *options.get("forbidden", ()),
        *((a, b) for a in chosen for b in chosen if a != b),
        *((a, b) for a in others for b in chosen),
        *((target, name) for name in others),
        *((name, target) for name in names),
    ]
    required = [(target, name) for name in chosen]
    own = {**options, "forbidden": forbidden, "required": required}
    graph: nx.DiGraph[str] = bounded_search(hill_climb, coded, own)
    return graph


def choose_columns(coded: CodedTable, target: str, seed: int = 0) -> list[str]:
    """The columns that lower the held-out log loss of naive Bayes, added one by one, the best each time.

    Parameters
    ----------
    coded
        The rows; a missing value tells nothing.
    target
        The variable to predict; rows without it are left out.
    seed
        Deals the rows into PARTS.
    """
    card = next(v.card for v in coded.variables if v.name == target)
    classes = coded.codes[target].astype(np.intp)
    known = np.flatnonzero(classes < card)
    classes = classes[known]
    weights = np.ones(len(known)) if coded.weights is None else coded.weights[known]
    part = np.random.default_rng(seed).permutation(len(known)) % PARTS
    rows = np.arange(len(known))
    logs = _held_out_logs(np.zeros(len(known), np.intp), 1, classes, card, weights, part, prior=True)
    columns = {
        v.name: _held_out_logs(
            coded.codes[v.name][known].astype(np.intp), v.card, classes, card, weights, part
        )
        for v in coded.variables
        if v.name != target
    }

    def loss(joint: Array) -> float:
        top = joint.max(axis=1, keepdims=True)
        total = np.log(np.exp(joint - top).sum(axis=1)) + top[:, 0]
        return float(np.average(total - joint[rows, classes], weights=weights))

    chosen: list[str] = []
    best = loss(logs)
    while columns and len(chosen) < MOST_CHOSEN:
        losses = {name: loss(logs + own) for name, own in columns.items()}
        name = min(losses, key=lambda one: (losses[one], one))
        if not losses[name] < best - 1e-6:
            break
        best = losses[name]
        logs = logs + columns.pop(name)
        chosen.append(name)
    return chosen


def _held_out_logs(
    codes: Any, card: int, classes: Any, n_classes: int, weights: Array, part: Any, prior: bool = False
) -> Array:
    """ln P(value | class) of each row and class, from the rows of the other parts; 0 where the value is missing.

    With `prior`, ln P(class) instead.
    """
    found = np.zeros((len(codes), n_classes))
    there = codes < card
    for i in range(PARTS):
        rest = there & (part != i)
        counts = np.bincount(
            codes[rest] * n_classes + classes[rest], weights[rest], minlength=card * n_classes
        ).reshape(card, n_classes)
        smooth = counts + 1.0 / counts.size
        table = np.log(smooth / smooth.sum(axis=1 if prior else 0, keepdims=True))
        held = there & (part == i)
        found[held] = table[codes[held]]
    return found
