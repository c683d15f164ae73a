"""Exact search: a structure that no other beats, proved; or, when time ends first, the best so far and its gap.

    score the parent sets that can matter                                            local_scores
    split the variables where those sets allow no cycle (Fan, Malone & Yuan 2014)
    for each part:
        up to QUICK variables: the best last variable of every subset                kernels.subsets
        beyond: branch and cut over clusters, each of which has a variable without parents in it   cluster_cuts

n variables cost O(n 2^n) steps and bytes by dynamic programming (Silander & Myllymäki 2006). Branch and cut (Cussens
2011; Bartlett & Cussens 2017) has no such bound, but it keeps two numbers that meet: the score of the best structure
so far, and one that no structure exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bbn import kernels
from bbn.core.budget import memory_limit, require_memory
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.data.reading import Reading
from bbn.learning.structure.cluster_cuts import Part, Timer, branch_and_cut
from bbn.learning.structure.constraints import (
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    members,
    to_graph,
)
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.local_scores import LocalScores, Sets, useful_sets
from bbn.learning.structure.scores import ScoreCache
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

DYNAMIC = 26
"""Variables up to which dynamic programming is used, where its memory fits."""
QUICK = 20
"""Variables up to which it comes first; beyond, it follows where branch and cut has taken as long without a proof."""
DYNAMIC_STEP = 1e-8
"""Seconds that dynamic programming takes per subset and variable, about."""

Method = Literal["auto", "dynamic-programming", "branch-and-cut"]


@keywords_checked
def exact_search(
    data: Any,
    score: Any = "bic",
    *,
    max_parents: int | Literal["auto"] | None = "auto",
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    time_limit: float | None = None,
    method: Method = "auto",
    memory_limit: int | float | str | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn the structure of the highest score, and prove that there is none better.

    Parameters
    ----------
    data : table or LocalScores
        Anything tabular, without missing values; or scores that `bbn.load_scores` read.
    score : str or BDeu, default "bic"
        The score of a family; see `bbn.score`.
    max_parents : int, None or "auto", default "auto"
        The most parents of a variable; None for no limit. "auto" is 3 for data, and no limit for given scores. The
        proof is about structures within it.
    required, forbidden : iterable of (parent, child), optional
        Arcs that must, or must not, be there.
    tiers : sequence of lists of names, optional
        Earliest first: no arc goes from a later list to an earlier one.
    time_limit : float, optional
        The most seconds; then the best structure so far is given, with the gap that is left.
    method : {"auto", "dynamic-programming", "branch-and-cut"}, default "auto"
        How to search each part of the variables. "auto" takes dynamic programming up to 20 variables and branch and cut
        beyond; up to 26 dynamic programming follows where that has not ended in the time it would take itself.
    memory_limit : int, float or str, optional
        The most bytes for dynamic programming, such as "2 GB".
    progress : bool, optional
        Whether to show a bar with both bounds; None shows one on a terminal or in a notebook.
    states : mapping, optional
        Column to its states, in the order they are to have; those that occur unless given.
    weights : array or str, optional
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous : str or iterable of str, optional
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers. They become Gaussians, which cannot be parents of variables with
        states: such arcs are never made.

    Returns
    -------
    nx.DiGraph
        One node per variable, with its "states". ``graph.graph["score"]`` is the score, "bound" a number that no
        structure exceeds, "gap" their difference, "optimal" whether it is proved that no structure is better,
        "n_sets" the number of parent sets that could matter, "interrupted" whether Ctrl-C ended the search.

    Raises
    ------
    DataError
        There are missing values, or a name is unknown.
    ModelError
        The constraints contradict each other.
    BudgetError
        `method="dynamic-programming"` would need more memory than allowed.

    See Also
    --------
    hill_climb : A greedy search, for many variables.
    arc_posterior : How probable each arc is.

    Examples
    --------
    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1, 1, 0] * 9}
    >>> graph = exact_search(data)
    >>> sorted(graph.edges), graph.graph["optimal"], graph.graph["gap"]
    ([('B', 'A')], True, 0.0)
    """
    if method not in ("auto", "dynamic-programming", "branch-and-cut"):
        raise ValueError(f"method is {method!r}; expected 'auto', 'dynamic-programming' or 'branch-and-cut'")
    if time_limit is not None and not time_limit >= 0:
        raise ValueError(f"time_limit is {time_limit}; expected seconds, 0 or more")
    if max_parents == "auto":
        max_parents = None if isinstance(data, LocalScores) else 3
    timer = Timer(time_limit)
    with progress_bar(progress, None, "exact search", "step") as advance:
        if isinstance(data, LocalScores):
            scores, constraints = _constrained(data, required, forbidden, tiers, max_parents)
            start = None
        else:
            source = complete_source(
                data, "exact_search", Reading(states, weights, missing, unseen, continuous)
            )
            # by name, so that ties do not depend on the order of the columns
            variables = sorted(all_variables(source), key=lambda v: v.name)
            constraints = Constraints(variables, required, forbidden, tiers, max_parents)
            cache = ScoreCache(source, score, constraints.names)

            def start() -> list[int]:
                """A good structure to beat."""
                graph = hill_climb(
                    source,
                    score,
                    max_parents=max_parents,
                    required=required,
                    forbidden=forbidden,
                    tiers=tiers,
                    progress=False,
                )
                return [
                    sum(1 << constraints.position[p] for p in graph.predecessors(name))
                    for name in constraints.names
                ]

            try:
                sets = useful_sets(cache, constraints, variables, score, advance, timer.check)
            except (TimeoutError, KeyboardInterrupt) as stop:
                return _unproved(source, constraints, cache, start(), isinstance(stop, KeyboardInterrupt))
            scores = LocalScores._of(variables, sets)
        parents, gap, interrupted = _search(scores, start, timer, method, memory_limit, advance)
    total = math.fsum(dict(own)[mask] for own, mask in zip(scores.sets, parents, strict=True))
    kept = scores.variables
    if kept is not None and not isinstance(data, LocalScores):
        kept = all_variables(source)
    graph = _graph(scores.names, kept, parents)
    graph.graph.update(
        score=total,
        bound=total + gap,
        gap=gap,
        optimal=gap == 0.0,
        n_sets=len(scores),
        interrupted=interrupted,
    )
    return graph


def _search(
    scores: LocalScores,
    start: Callable[[], list[int]] | None,
    timer: Timer,
    method: str,
    limit: int | float | str | None,
    advance: Callable[..., object],
) -> tuple[list[int], float, bool]:
    """The parents of every variable, how far the score may be from the best, and whether Ctrl-C ended the search."""
    parents = [0] * len(scores.names)
    gap, interrupted = 0.0, False
    good: list[int] | None = None
    for part in _parts(scores):
        n = len(part.members)
        if method == "dynamic-programming" or (method == "auto" and n <= QUICK):
            chosen = _dynamic(part, limit)
        else:
            if good is None and start is not None:
                good = start()
            second = method == "auto" and n <= DYNAMIC and _dynamic_bytes(part) <= memory_limit(limit) // 2
            patience = timer.within(n * 2**n * DYNAMIC_STEP) if second else timer
            chosen, total, top, stopped = branch_and_cut(part, good, patience, advance)
            if second and top > total and not stopped and timer.left() > 0:
                chosen, top = _dynamic(part, limit), total
            interrupted |= stopped
            gap += max(top - total, 0.0)
        for i, mask in zip(part.members, part.full_sets(chosen), strict=True):
            parents[i] = mask
    return parents, gap, interrupted


def _parts(scores: LocalScores) -> list[Part]:
    """The strongly connected parts of the graph of possible parents: cycles lie within one of them."""
    import networkx as nx

    possible: nx.DiGraph[int] = nx.DiGraph()
    possible.add_nodes_from(range(len(scores.names)))
    for child, own in enumerate(scores.sets):
        union = 0
        for mask, _ in own:
            union |= mask
        possible.add_edges_from((p, child) for p in members(union))
    parts = [sorted(part) for part in nx.strongly_connected_components(possible)]
    return [Part.of(scores, part) for part in sorted(parts)]


def _dynamic_bytes(part: Part) -> int:
    n = len(part.members)
    rank = 2 if max(map(len, part.values)) < 2**16 - 1 else 4
    return (1 << n) * 9 + n * rank * (1 << n >> 1)


def _dynamic(part: Part, limit: int | float | str | None) -> list[int]:
    """The best acyclic choice among the sets of each variable, by position."""
    n = len(part.members)
    require_memory(
        _dynamic_bytes(part),
        f"dynamic programming over {n} variables",
        "method='branch-and-cut' needs little",
        limit,
    )
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in part.values])]).astype(np.int64)
    masks = np.array([mask for own in part.masks for mask in own], dtype=np.int64)
    _, chosen = kernels.subsets.best_network(ptr, masks, np.concatenate(part.values))
    return [int(k) for k in chosen]


def _constrained(
    scores: LocalScores,
    required: Arcs,
    forbidden: Arcs,
    tiers: Sequence[Iterable[str]] | None,
    max_parents: int | None,
) -> tuple[LocalScores, Constraints]:
    """Given scores without the sets that constraints rule out."""
    from bbn.core.errors import ModelError
    from bbn.model.variable import Variable

    variables = scores.variables or tuple(Variable(name, ["?"]) for name in scores.names)
    constraints = Constraints(variables, required, forbidden, tiers, max_parents)
    sets: list[Sets] = []
    for i, own in enumerate(scores.sets):
        fitting = {
            mask: value
            for mask, value in own
            if not mask & ~constraints.allowed[i]
            and not constraints.required[i] & ~mask
            and mask.bit_count() <= constraints.max_parents
        }
        if not fitting:
            raise ModelError(f"no parent set of {scores.names[i]!r} keeps to the constraints")
        sets.append(fitting)
    kept = LocalScores._of(variables, sets)
    return kept, constraints


def _graph(names: Sequence[str], variables: Any, parents: Sequence[int]) -> nx.DiGraph[str]:
    """The structure; nodes have "states" where they are known."""
    if variables is None:
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from(arcs_of(names, parents))
        return graph
    return to_graph(variables, arcs_of(names, parents))


def _unproved(
    source: Any, constraints: Constraints, cache: ScoreCache, parents: list[int], interrupted: bool
) -> nx.DiGraph[str]:
    """A greedy structure, where time ended before the parent sets were scored: no bound is known."""
    graph = to_graph(all_variables(source), arcs_of(constraints.names, parents))
    graph.graph.update(
        score=cache.total(parents),
        bound=math.inf,
        gap=math.inf,
        optimal=False,
        n_sets=0,
        interrupted=interrupted,
    )
    return graph
