"""What may be adjusted for: sets Z with P(y | do(x)) = Σ_z P(y | x, z) P(z).

The generalised criterion (Shpitser, VanderWeele and Robins 2010; Perković et al. 2018) is complete. Z is valid if

    no member of Z is hidden or descends from a variable, other than x, on a causal path from x to y, and
    Z separates x and y in the graph without the first arcs of causal paths (the proper back-door graph).

Pearl's back-door criterion asks for more, and so finds fewer sets. Both are questions of separation, so minimal sets
are minimal cuts: see `separators`. In a CPDAG the first arcs must be directed, or no set serves the whole class.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import networkx as nx

from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.graph.paths import CausalPath, open_path
from bbn.causal.graph.separators import closest_separator, minimal_separators, smallest_separator
from bbn.core.errors import EvidenceError, LeftOutWarning, nearest, warn_user
from bbn.core.keywords import keywords_checked
from bbn.model.equivalence import close_under_meek, is_cpdag, to_dag

MOST_SETS = 1_000
"""As many minimal sets are listed without a limit; k disjoint paths of two variables have 2^k."""
CRITERIA = ("generalised", "back-door")


@keywords_checked
def adjustment_sets(
    graph: Any,
    treatment: str | Iterable[str],
    outcome: str | Iterable[str],
    latent: str | Iterable[str] = (),
    *,
    criterion: str = "generalised",
    optimal: bool = False,
    limit: int | None = None,
) -> list[Names]:
    """List the minimal sets of variables that suffice to adjust for.

    Parameters
    ----------
    graph
        A `CausalGraph`, a network, a DiGraph or a list of arcs. A DiGraph with arcs both ways is a CPDAG, as `bbn.pc`
        gives: the sets are those valid in every DAG of its class.
    treatment, outcome
        A name, or several.
    latent
        Variables that are not measured and cannot be adjusted for, besides those that the graph says are hidden.
    criterion
        "generalised", the complete criterion; or "back-door", Pearl's: no descendants of the treatment.
    optimal
        Give the one set of least asymptotic variance instead: the parents of what lies on causal paths (Rotnitzky and
        Smucler 2020; Henckel et al. 2022). It need not be minimal. If some of those are hidden there may be no best
        set, and the best of the minimal ones is returned (Smucler et al. 2022).
    limit
        The most sets to return, MOST_SETS unless given; a smallest one, found by maximum flow, is always among them.

    Returns
    -------
    list of frozenset
        The smallest first, then by name; empty if there is none. The empty set means that nothing need be adjusted for.

    Raises
    ------
    EvidenceError
        For a name that is unknown or hidden, a variable in two roles, or an unknown criterion.

    Warns
    -----
    LeftOutWarning
        If there are more than MOST_SETS sets and no limit is given.

    See Also
    --------
    check_adjustment : Why a set fails, with the path that it leaves open.
    front_door_sets, instruments : Ways out where no set suffices.
    identify : The complete answer.

    References
    ----------
    Perković, Textor, Kalisch and Maathuis (2018), Complete graphical characterization and construction of adjustment
    sets in Markov equivalence classes of ancestral graphs. Rotnitzky and Smucler (2020), Efficient adjustment sets for
    population average causal treatment effect estimation in graphical models.

    Examples
    --------
    >>> import bbn
    >>> m_graph = [("A", "X"), ("A", "M"), ("B", "M"), ("B", "Y"), ("X", "Y")]
    >>> bbn.adjustment_sets(m_graph, "X", "Y")
    [frozenset()]
    >>> sorted(bbn.adjustment_sets(m_graph, "X", "Y", optimal=True)[0])
    ['B']
    """
    if criterion not in CRITERIA:
        raise EvidenceError(f"unknown criterion {criterion!r}{nearest(criterion, CRITERIA)}")
    if limit is not None and limit < 1:
        raise EvidenceError(f"limit is {limit}; expected at least 1")
    question = _question(graph, treatment, outcome, latent, criterion)
    if question is None:
        return []
    if optimal:
        best = _optimal(question)
        return [] if best is None else [best]
    small = smallest_separator(question.cut, question.x, question.y, question.allowed)
    if small is None:
        return []
    listed = minimal_separators(question.cut, question.x, question.y, question.allowed)
    others = (names for names in listed if names != small)
    found = [small, *islice(others, (limit or MOST_SETS) - 1)]
    if limit is None and next(others, None) is not None:
        warn_user(
            f"there are more than {MOST_SETS:,} minimal adjustment sets, and the rest is left out; a smallest one, of "
            f"{len(small)} variables, is among those listed, limit= lists more, and optimal=True gives the best one",
            LeftOutWarning,
        )
    return sorted(found, key=lambda names: (len(names), sorted(names)))


def smallest_adjustment(graph: CausalGraph, treatment: Names, outcome: Names) -> Names | None:
    """A valid set of the fewest variables; None if there is none."""
    question = _question(graph, treatment, outcome, (), "generalised")
    if question is None:
        return None
    return smallest_separator(question.cut, question.x, question.y, question.allowed)


class AdjustmentCheck(NamedTuple):
    """Whether a set may be adjusted for; its truth value is the answer."""

    valid: bool
    reason: str
    """Why not; empty for a valid set."""
    open_path: CausalPath | None = None
    """A path that is not causal and that the set leaves open, or opens, where there is one."""

    def __bool__(self) -> bool:
        return self.valid


@keywords_checked
def check_adjustment(
    graph: Any,
    treatment: str | Iterable[str],
    outcome: str | Iterable[str],
    adjusted: str | Iterable[str],
    latent: str | Iterable[str] = (),
    *,
    criterion: str = "generalised",
) -> AdjustmentCheck:
    """Tell whether a set suffices to adjust for, and if not, why.

    Parameters
    ----------
    graph, treatment, outcome, latent, criterion
        As in `adjustment_sets`.
    adjusted
        The set.

    Returns
    -------
    AdjustmentCheck
        Its truth value says whether the set is valid; `.reason` says why not, and `.open_path` is a path that it
        leaves open.

    Raises
    ------
    EvidenceError
        For a name that is unknown, or in two roles.

    See Also
    --------
    adjustment_sets : The sets that suffice.

    Examples
    --------
    >>> import bbn
    >>> check = bbn.check_adjustment([("Z", "X"), ("Z", "Y"), ("X", "Y")], "X", "Y", [])
    >>> bool(check), check.reason
    (False, 'the path X ← Z → Y is open')
    """
    if criterion not in CRITERIA:
        raise EvidenceError(f"unknown criterion {criterion!r}{nearest(criterion, CRITERIA)}")
    question = _question(graph, treatment, outcome, latent, criterion)
    chosen = frozenset([adjusted] if isinstance(adjusted, str) else adjusted)
    if question is None:
        edge: Any = _open_first_edge(_closed(graph), _as_names(treatment), _as_names(outcome))
        return AdjustmentCheck(
            False,
            f"the edge {edge[0]} – {edge[1]} has no direction, so members of the class disagree: no set is valid",
        )
    chosen = question.full.names(chosen, "adjusted")
    twice = sorted(chosen & (question.x | question.y))
    if twice:
        raise EvidenceError(f"{twice[0]!r} is treatment or outcome, and cannot be adjusted for")
    hidden = sorted(chosen & set(question.full.latent))
    if hidden:
        return AdjustmentCheck(False, f"{hidden[0]!r} is hidden")
    barred = sorted(chosen - question.allowed)
    if barred:
        what = (
            "is a descendant of the treatment"
            if criterion == "back-door"
            else "lies on a causal path or descends from one"
        )
        return AdjustmentCheck(
            False, f"{barred[0]!r} {what}, so adjusting for it takes away part of the effect"
        )
    if question.cut.is_d_separated(question.x, question.y, chosen):
        return AdjustmentCheck(True, "")
    path = open_path(question.cut, question.x, question.y, chosen)
    return AdjustmentCheck(False, f"the path {path} is open", path)


class _Separation(NamedTuple):
    """Adjustment as a question of separation."""

    full: CausalGraph
    cut: CausalGraph
    """The graph in which the set must separate x and y."""
    x: Names
    y: Names
    allowed: Names
    """What the set may hold."""


def _question(
    graph: Any,
    treatment: str | Iterable[str],
    outcome: str | Iterable[str],
    latent: str | Iterable[str],
    criterion: str,
) -> _Separation | None:
    """The question of separation; None where a CPDAG leaves the direction of a first arc open."""
    forbidden: Names = frozenset()
    if not isinstance(graph, CausalGraph) and hasattr(graph, "predecessors") and is_cpdag(graph):
        x, y = _as_names(treatment), _as_names(outcome)
        _require_known(graph, {*x, *y})
        pattern = _closed(graph)
        if _open_first_edge(pattern, x, y) is not None:
            return None
        forbidden = _possibly_affected(pattern, x, y, criterion)
        graph = to_dag(pattern)
    full = as_causal_graph(graph, latent)
    x, y = full.names(treatment, "treatment"), full.names(outcome, "outcome")
    if not x or not y:
        raise EvidenceError("adjustment needs a treatment and an outcome")
    if x & y:
        raise EvidenceError(f"{sorted(x & y)[0]!r} is both treatment and outcome")
    for name in sorted((x | y) & set(full.latent)):
        raise EvidenceError(f"{name!r} is hidden, so its effect cannot be measured")
    if criterion == "back-door":
        barred = full.descendants(x)
        cut = full.without_arcs(out_of=x)
    else:
        on_way = causal_nodes(full, x, y)
        barred = full.descendants(on_way)
        first = {(a, b) for a, b in full.arcs if a in x and b in on_way}
        cut = CausalGraph(
            [arc for arc in full.arcs if arc not in first], full.confounded, full.latent, full.nodes
        )
    allowed = frozenset(full.observed) - barred - forbidden - x - y
    return _Separation(full, cut, x, y, allowed)


def causal_nodes(graph: CausalGraph, x: Names, y: Names) -> Names:
    """The variables other than x on proper causal paths from x to y: those that meet x only where they begin."""
    others = frozenset(graph.nodes) - x
    below = graph.descendants({child for name in x for child in graph.children(name)} - x, within=others)
    return below & graph.ancestors(y, within=others)


def _optimal(question: _Separation) -> Names | None:
    """The set of least asymptotic variance: parents of what lies on causal paths, less what may not be adjusted for."""
    graph, on_way = question.full, causal_nodes(question.full, question.x, question.y)
    if on_way and not graph.latent and not graph.confounded:
        best = frozenset(p for name in on_way for p in graph.parents(name)) - on_way - question.x
        if best <= question.allowed and question.cut.is_d_separated(question.x, question.y, best):
            return best
    return closest_separator(question.cut, question.x, question.y, question.allowed)


# CPDAGs: arcs both ways are edges without a direction


def _closed(graph: nx.DiGraph[Any]) -> nx.DiGraph[Any]:
    """The graph with every edge directed whose direction follows."""
    copy: nx.DiGraph[Any] = nx.DiGraph(**graph.graph)
    copy.add_nodes_from(graph.nodes(data=True))
    copy.add_edges_from(graph.edges)
    return close_under_meek(copy)


def _open_first_edge(graph: nx.DiGraph[Any], x: Names, y: Names) -> tuple[str, str] | None:
    """An edge without a direction at which a path that may be causal leaves x; None if there is none (amenability)."""
    without = graph.subgraph([name for name in graph if name not in x])
    for name in sorted(x):
        for near in sorted(graph.successors(name)):
            undirected = near not in x and graph.has_edge(near, name)
            if undirected and (near in y or nx.descendants(without, near) & y):
                return name, near
    return None


def _possibly_affected(graph: nx.DiGraph[Any], x: Names, y: Names, criterion: str) -> Names:
    """What may descend from a variable on a path that may be causal; by the back-door criterion, from x."""
    if criterion == "back-door":
        return frozenset(end for name in x for end in nx.descendants(graph, name))
    without = graph.subgraph([name for name in graph if name not in x])
    below = {near for name in x for near in graph.successors(name) if near not in x}
    reached = below | {end for near in below for end in nx.descendants(without, near)}
    above = set(y) | {start for name in y for start in nx.ancestors(without, name)}
    on_way = reached & above
    return frozenset(on_way | {end for name in on_way for end in nx.descendants(graph, name)})


def _as_names(names: str | Iterable[str]) -> Names:
    return frozenset([names] if isinstance(names, str) else names)


def _require_known(graph: nx.DiGraph[Any], names: Iterable[str]) -> None:
    for name in sorted(names, key=str):
        if name not in graph:
            raise EvidenceError(f"the graph has no variable {name!r}{nearest(name, list(graph))}")
