"""Chow-Liu trees: the tree-shaped network nearest to the data, and TAN, such a tree under a class variable.

The tree that minimises the divergence KL(P̂ ‖ P_tree) from the empirical distribution P̂ is the spanning tree of most
mutual information Σ I(X; Y) over its edges (Chow & Liu 1968, eqs. 8 to 13); what remains is Σ H(X) − H(all) − Σ I.
All pairs are counted in as few requests as memory allows, O(n²) tables; of a pair with far more cells than there are
rows only the settings that rows have are counted. The tree is found by Kruskal's algorithm.

TAN (Friedman, Geiger & Goldszmidt 1997, section 4) takes I(X; Y | class) instead, and adds an arc from the class to
every attribute.

Numbers are Gaussians given the states: two of them have I = −½ ln(1 − ρ²), and a number x and a variable with states
½ ln σ² − ½ Σ_j p_j ln σ_j². No way between two variables with states may then lead through a number, as the arcs of
such a tree would point from a number to states (Edwards, de Abreu & Labouriau 2010).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError, ModelError, nearest
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import limited
from bbn.data import CodedTable, DataSource, continuous_columns
from bbn.data.reading import Reading
from bbn.data.seen_settings import LEAST, SPARSE, seen_settings
from bbn.learning.structure.constraints import (
    INSTEAD,
    TIE,
    Arcs,
    Constraints,
    all_variables,
    complete_source,
    ranked,
    to_graph,
)
from bbn.learning.structure.discrete_scores import flatten, log_likelihood, seen_alone
from bbn.learning.structure.score_cache import family_scorer
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

Ints = NDArray[np.int64]

BATCH = 2_000_000
"""Pairs to ask for at a time."""
BATCH_CELLS = 2**24
"""The most cells of their tables together, where the data are in memory and one more look at them is cheap."""


@keywords_checked
@limited(INSTEAD)
def chow_liu(
    data: Any,
    root: str | None = None,
    *,
    min_information: float = 0.0,
    required: Arcs = (),
    forbidden: Arcs = (),
    time_limit: float | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn the tree that is nearest to the data, its arcs pointing away from the root.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    root
        The variable that all arcs point away from; the first by name unless given, of those with states if there are
        any.
    min_information
        Leave out edges with less mutual information, in nats; a forest comes out. 0 keeps every edge of the tree.
    required, forbidden
        Pairs of variables that must, or must not, be joined, whichever way the arc then points.
    time_limit
        The most seconds, TimeLimitError beyond; None is BBN_TIME_LIMIT, or else any time.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers.

    Returns
    -------
    nx.DiGraph
        Nodes have their "states", edges their "information". `graph["information"]` is its sum, `graph["kl"]` the
        divergence of the empirical distribution from the tree, in nats (None for data that are not in memory, and
        where there are numbers).

    References
    ----------
    Chow & Liu (1968), Approximating discrete probability distributions with dependence trees.

    >>> data = {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1], "C": [0, 1, 1, 1]}
    >>> tree = chow_liu(data)
    >>> list(tree.edges), round(tree.graph["kl"], 12)
    ([('A', 'B'), ('A', 'C')], 0.0)
    """
    source = complete_source(data, "chow_liu", Reading(states, weights, missing, unseen, continuous))
    names = sorted(v.name for v in all_variables(source))
    first, second = np.triu_indices(len(names), 1)
    information = mutual_information(source, names, first, second)
    edges = _spanning_forest(source, names, first, second, information, min_information, required, forbidden)
    graph = _oriented(source, names, edges, root)
    graph.graph["information"] = float(sum(value for _, _, value in edges))
    graph.graph["kl"] = _divergence(source, names, graph.graph["information"])
    return graph


@keywords_checked
@limited(INSTEAD)
def tan(
    data: Any,
    target: str,
    root: str | None = None,
    *,
    min_information: float = 0.0,
    required: Arcs = (),
    forbidden: Arcs = (),
    time_limit: float | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn a tree-augmented naive Bayes classifier: the target points to every attribute, which form a tree.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    target
        The class variable.
    root
        The attribute that the tree's arcs point away from; the first by name unless given.
    min_information
        Leave out edges between attributes with less mutual information given the target, in nats.
    required, forbidden
        Pairs of attributes that must, or must not, be joined, whichever way the arc then points.
    time_limit
        The most seconds, TimeLimitError beyond; None is BBN_TIME_LIMIT, or else any time.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers.

    Returns
    -------
    nx.DiGraph
        Nodes have their "states", edges of the tree their "information" given the target.

    References
    ----------
    Friedman, Geiger & Goldszmidt (1997), Bayesian network classifiers.

    >>> data = {"A": [0, 0, 1, 1], "B": [0, 0, 1, 1], "C": [0, 1, 1, 1]}
    >>> sorted(tan(data, "C").edges)
    [('A', 'B'), ('C', 'A'), ('C', 'B')]
    """
    source = complete_source(data, "tan", Reading(states, weights, missing, unseen, continuous))
    known = [v.name for v in all_variables(source)]
    if target not in known:
        raise DataError(f"target: the data have no column {target!r}{nearest(target, known)}")
    if target in continuous_columns(source):
        raise DataError(f"target: {target!r} holds numbers; the class of tan is a variable with states")
    names = sorted(name for name in known if name != target)
    first, second = np.triu_indices(len(names), 1)
    information = mutual_information(source, names, first, second, target)
    edges = _spanning_forest(source, names, first, second, information, min_information, required, forbidden)
    graph = _oriented(source, names, edges, root)
    graph.add_edges_from((target, name) for name in names)
    graph.graph["information"] = float(sum(value for _, _, value in edges))
    return graph


def mutual_information(
    source: DataSource, names: Sequence[str], first: Ints, second: Ints, given: str | None = None
) -> Array:
    """I(X; Y), or I(X; Y | given), in nats, of the pairs ``names[first[i]], names[second[i]]``.

    N I(X; Y | Z) = ln L(Y | X, Z) − ln L(Y | Z), the log-likelihoods at their maximum.
    """
    if continuous_columns(source):
        return _mixed_information(source, names, first, second, given)
    rest = () if given is None else (given,)
    card = {v.name: float(v.card) for v in source.variables}
    cards = np.array([card[name] for name in names])
    sizes = cards[first] * cards[second] * math.prod(card[name] for name in rest)
    singles = [(*rest, name) for name in names]
    alone = np.empty(0)
    # pairs with the same second member side by side: they share their counting
    order = np.lexsort((first, second))
    in_memory = isinstance(source, CodedTable)
    sparse = sizes[order] > (SPARSE * source.n_rows + LEAST if in_memory else np.inf)
    result = np.empty(len(first))
    for part in _batches(order[~sparse], sizes, BATCH_CELLS if in_memory else np.inf):
        pairs = [
            (names[i], *rest, names[j])
            for i, j in zip(first[part].tolist(), second[part].tolist(), strict=True)
        ]
        if not len(alone):  # one request for the singles and the first pairs
            pairs += singles
        together = log_likelihood(flatten(source.counts(pairs), source.total))
        if not len(alone):
            together, alone = np.split(together, [len(part)])
        result[part] = together
    for pair in order[sparse].tolist():
        parents = (names[first[pair]], *rest)
        result[pair] = _seen_likelihood(source, parents, names[second[pair]])
    return np.maximum((result - alone[second]) / source.total, 0.0)


def _batches(pairs: Ints, sizes: Array, most_cells: float) -> list[Ints]:
    """The pairs in runs of at most BATCH that together have at most so many cells, or one; one run if there is none."""
    if not len(pairs):
        return [pairs]
    cells = np.cumsum(sizes[pairs])
    found = []
    start = 0
    while start < len(pairs):
        before = cells[start - 1] if start else 0.0
        stop = int(np.searchsorted(cells, before + most_cells, side="right"))
        stop = min(max(stop, start + 1), start + BATCH)
        found.append(pairs[start:stop])
        start = stop
    return found


def _seen_likelihood(source: Any, parents: Sequence[str], child: str) -> float:
    """ln L(child | parents) at its maximum, from the settings that rows have, where a table would be far larger."""
    place = {v.name: i for i, v in enumerate(source.variables)}
    seen = seen_settings(source, [place[name] for name in parents])
    return float(log_likelihood(seen_alone(source, [(seen, place[child])], source.total))[0])


def _mixed_information(
    source: DataSource, names: Sequence[str], first: Ints, second: Ints, given: str | None
) -> Array:
    """The same where there are numbers; of a pair, the likelihoods are those of the number."""
    numeric = set(continuous_columns(source))
    rest = () if given is None else (given,)
    children = [j if names[j] in numeric else i for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    parents = (first + second - np.array(children, dtype=np.int64)).tolist()
    pairs = [(names[p], *rest, names[c]) for p, c in zip(parents, children, strict=True)]
    terms = family_scorer(source, "log-likelihood")([*pairs, *((*rest, name) for name in names)])
    together, alone = np.split(terms, [len(pairs)])
    return np.maximum((together - alone[children]) / source.total, 0.0)


def _spanning_forest(
    source: DataSource,
    names: Sequence[str],
    first: Ints,
    second: Ints,
    information: Array,
    min_information: float,
    required: Arcs,
    forbidden: Arcs,
) -> list[tuple[int, int, float]]:
    """Kruskal's algorithm on the edges by falling information, ties by name; required edges come first.

    Information is in nats per row, as `TIE` is. An edge with a number at an end never joins two parts that each hold a
    variable with states.
    """
    numeric = set(continuous_columns(source))
    has_states = [name not in numeric for name in names]
    position = {name: i for i, name in enumerate(names)}
    must = _pairs(source, position, required, "required")
    never = set(_pairs(source, position, forbidden, "forbidden"))
    component = list(range(len(names)))

    def find(i: int) -> int:
        while component[i] != i:
            component[i] = component[component[i]]
            i = component[i]
        return i

    def may_join(i: int, j: int) -> bool:
        return not (has_states[find(i)] and has_states[find(j)]) or not {names[i], names[j]} & numeric

    def join(i: int, j: int) -> None:
        a, b = find(i), find(j)
        component[a] = b
        has_states[b] = has_states[a] or has_states[b]

    value = {}
    edges: list[tuple[int, int, float]] = []
    if must:
        value = {(i, j): k for k, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True))}
    for pair in dict.fromkeys(must):
        i, j = pair
        if pair in never:
            raise ModelError(
                f"the edge between {names[i]!r} and {names[j]!r} is required, but also forbidden"
            )
        if find(i) == find(j):
            raise ModelError(f"the required edges form a cycle through {names[i]!r} and {names[j]!r}")
        if not may_join(i, j):
            raise ModelError(
                f"the required edge between {names[i]!r} and {names[j]!r} leads from states through a number to states"
            )
        join(i, j)
        edges.append((i, j, float(information[value[pair]])))
    for k in ranked(information, TIE).tolist():
        if len(edges) == len(names) - 1 or information[k] < min_information - TIE:
            break
        i, j = int(first[k]), int(second[k])
        if find(i) != find(j) and (i, j) not in never and may_join(i, j):
            join(i, j)
            edges.append((i, j, float(information[k])))
    return edges


def _pairs(source: DataSource, position: dict[str, int], arcs: Arcs, what: str) -> list[tuple[int, int]]:
    checked = Constraints([v for v in all_variables(source) if v.name in position])
    pairs = [(position[checked.names[a]], position[checked.names[b]]) for a, b in checked.arcs(arcs, what)]
    return [(min(pair), max(pair)) for pair in pairs]


def _oriented(
    source: DataSource, names: Sequence[str], edges: list[tuple[int, int, float]], root: str | None
) -> nx.DiGraph[str]:
    """The forest with arcs away from the root, or from the first by name in the other parts."""
    if root is not None and root not in names:
        raise DataError(f"root: the data have no column {root!r}{nearest(root, names)}")
    near: list[list[tuple[int, float]]] = [[] for _ in names]
    for i, j, value in edges:
        near[i].append((j, value))
        near[j].append((i, value))
    graph = to_graph(all_variables(source), ())
    numeric = set(continuous_columns(source))
    reached: set[int] = set()
    start = [] if root is None else [names.index(root)]
    for top in [*start, *sorted(range(len(names)), key=lambda i: (names[i] in numeric, i))]:
        stack = [top] if top not in reached else []
        reached.add(top)
        while stack:
            i = stack.pop()
            for j, value in sorted(near[i]):
                if j not in reached:
                    if names[i] in numeric and names[j] not in numeric:
                        raise DataError(
                            f"root: {root!r} is a number, but variables with states are below it; choose one of those"
                        )
                    reached.add(j)
                    graph.add_edge(names[i], names[j], information=value)
                    stack.append(j)
    return graph


def _divergence(source: DataSource, names: Sequence[str], information: float) -> float | None:
    """KL(P̂ ‖ P_tree) = Σ H(X) − H(all) − Σ I over the edges."""
    if not isinstance(source, CodedTable) or source.numbers:
        return None
    total = source.total
    alone = -float(log_likelihood(flatten(source.counts([(name,) for name in names]), total)).sum()) / total
    first, inverse = kernels.coding.merge_rows([source.codes[name] for name in names])
    shares = np.bincount(inverse, source.weights, minlength=len(first)) / total
    together = -float(np.dot(shares, np.log(shares, out=np.zeros_like(shares), where=shares > 0)))
    return max(alone - together - information, 0.0)
