"""Exact search: a structure that no other beats, proved; or, when time ends first, the best so far and its gap.

    score the parent sets that can matter                                            parent_sets, score_bounds
    split the variables where those sets allow no cycle (Fan, Malone & Yuan 2014)    parts
    for each part:
        up to QUICK variables: the best last variable of every subset                kernels.subsets
        beyond: branch and cut over clusters, each of which has a first variable     branch_and_cut, clusters

n variables cost O(n 2^n) steps and bytes by dynamic programming (Silander & Myllymäki 2006). Branch and cut (Cussens
2011; Bartlett & Cussens 2017) has no such bound, but it keeps two numbers that meet: the score of the best structure
so far, and one that no structure exceeds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import memory_limit, require_memory
from bbn.core.errors import DataError, ModelError
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import all_or_nothing, default_time_limit, reason_of
from bbn.data.reading import Reading
from bbn.learning.structure.constraints import (
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    masks_of,
    members,
    to_graph,
)
from bbn.learning.structure.exact.branch_and_cut import branch_and_cut
from bbn.learning.structure.exact.local_scores import LocalScores, Sets
from bbn.learning.structure.exact.order_climb import BestChoice
from bbn.learning.structure.exact.parent_sets import bare_sets, useful_sets
from bbn.learning.structure.exact.parts import SearchPart, Timer
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import State, Variable

if TYPE_CHECKING:
    import networkx as nx

DYNAMIC = 26
"""Variables up to which dynamic programming is used, where its memory fits."""
QUICK = 20
"""Variables up to which it comes first; beyond, it follows where branch and cut has taken as long without a proof."""
DYNAMIC_STEP = 1e-8
"""Seconds that dynamic programming takes per subset and variable, about."""
HASTE = 1.0
"""Seconds to find a structure in, once time is up."""

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
        The most seconds; then the best structure so far is given, with the gap that is left. None is BBN_TIME_LIMIT,
        or else any time.
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
    timer = Timer(default_time_limit(time_limit))
    stopped: BaseException | None = None
    start = None
    with progress_bar(progress, None, "exact search", " steps") as advance:
        if isinstance(data, LocalScores):
            scores = _constrained(data, required, forbidden, tiers, max_parents)
            variables = data.variables
        else:
            source = complete_source(
                data, "exact_search", Reading(states, weights, missing, unseen, continuous)
            )
            variables = all_variables(source)
            # by name, so that ties do not depend on the order of the columns
            by_name = sorted(variables, key=lambda v: v.name)
            constraints = Constraints(by_name, required, forbidden, tiers, max_parents)
            cache = ScoreCache(source, score, constraints.names)
            sets: list[Sets] = []
            try:
                with timer.watched():
                    useful_sets(cache, constraints, by_name, score, advance, timer.check, sets)
                    _require_scores(sets, constraints, source.n_rows)
            except (TimeoutError, KeyboardInterrupt) as stop:
                stopped = stop
                if not all(sets):  # nothing was scored yet
                    sets = bare_sets(cache, constraints)
            scores = LocalScores.from_masks(by_name, sets)

            @functools.cache
            def start() -> list[int]:
                """A good structure to beat."""
                with all_or_nothing():
                    graph = hill_climb(
                        source,
                        score,
                        max_parents=max_parents,
                        required=required,
                        forbidden=forbidden,
                        tiers=tiers,
                        progress=False,
                    )
                return masks_of(graph, constraints, "structure")

        found = _search(scores, start, timer, method, memory_limit, advance, stopped)
    if found.interrupted:
        reason_of(KeyboardInterrupt())  # raises it again where a part is of no use
    total = math.fsum(dict(own)[mask] for own, mask in zip(scores.sets, found.parents, strict=True))
    gap = math.inf if stopped is not None else found.gap
    graph = _graph(scores.names, variables, found.parents)
    graph.graph.update(
        score=total,
        bound=total + gap,
        gap=gap,
        optimal=gap == 0.0,
        n_sets=len(scores),
        interrupted=found.interrupted,
    )
    return graph


def _require_scores(sets: Sequence[Sets], constraints: Constraints, n_rows: int) -> None:
    """DataError if a variable has no score with any parents: too few rows for a variance."""
    for name, own, required in zip(constraints.names, sets, constraints.required, strict=True):
        if not own:
            given = f" given its {required.bit_count()} required parents" if required else ""
            raise DataError(
                f"exact_search: {n_rows} row{'s' * (n_rows != 1)} cannot tell the variance of {name!r}{given}, so no "
                "structure has a score; expected at least 2 rows, and with parents 5 for each coefficient"
            )


class _Found(NamedTuple):
    """The parents of every variable, how far the score may be from the best, and whether Ctrl-C ended the search."""

    parents: list[int]
    gap: float
    interrupted: bool


def _search(
    scores: LocalScores,
    start: Callable[[], list[int]] | None,
    timer: Timer,
    method: str,
    limit: int | float | str | None,
    advance: Callable[..., object],
    stopped: BaseException | None,
) -> _Found:
    """Search part by part, the smallest first; once stopped, take what is quick for the rest."""
    parents = [0] * len(scores.names)
    gap, done = 0.0, 0.0
    for part in sorted(_parts(scores), key=lambda part: len(part.members)):
        chosen: list[int] = []
        bound = -math.inf
        if stopped is None:
            show = functools.partial(_show, advance, done)
            chosen, bound, stopped = _solve(part, start, timer, method, limit, show)
        if stopped is not None and not chosen:
            best = BestChoice(part)
            best.offer(best.climb(best.first_order(), Timer(HASTE)))
            chosen, bound = best.chosen, math.fsum(own[0] for own in part.values)
        if not chosen:
            names = ", ".join(repr(scores.names[i]) for i in part.members)
            raise ModelError(f"every choice among the parent sets of {names} has a cycle")
        score = math.fsum(own[k] for own, k in zip(part.values, chosen, strict=True))
        gap += max(bound - score, 0.0)
        done += score
        for i, mask in zip(part.members, part.full_sets(chosen), strict=True):
            parents[i] = mask
    return _Found(parents, gap, isinstance(stopped, KeyboardInterrupt))


def _show(
    advance: Callable[..., object], done: float, steps: int, score: float = -math.inf, bound: float = math.inf
) -> None:
    """Show both bounds, with the scores of the parts that are done."""
    title = f"exact search: best {done + score:,.2f}, at most {done + bound:,.2f}, gap {bound - score:,.2f}"
    advance(steps, title=title)


def _solve(
    part: SearchPart,
    start: Callable[[], list[int]] | None,
    timer: Timer,
    method: str,
    limit: int | float | str | None,
    advance: Callable[..., object],
) -> tuple[list[int], float, BaseException | None]:
    """The chosen sets of a part, a bound that no choice exceeds, and what stopped the search, if anything did."""
    n = len(part.members)
    try:
        with timer.watched():
            if method == "dynamic-programming" or (method == "auto" and n <= QUICK):
                return *_dynamic(part, limit), None
            good = None if start is None else start()
        second = method == "auto" and n <= DYNAMIC and _dynamic_bytes(part) <= memory_limit(limit) // 2
        patience = timer.within(n * 2**n * DYNAMIC_STEP) if second else timer
        chosen, bound, stopped = branch_and_cut(part, good, patience, advance)
        if second and isinstance(stopped, TimeoutError):
            with timer.watched():
                return *_dynamic(part, limit), None
    except (TimeoutError, KeyboardInterrupt) as stop:
        return [], -math.inf, stop
    return chosen, bound, stopped


def _parts(scores: LocalScores) -> list[SearchPart]:
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
    return [SearchPart.of(scores, part) for part in sorted(parts)]


def _dynamic_bytes(part: SearchPart) -> int:
    n = len(part.members)
    rank = 2 if max(map(len, part.values)) < 2**16 - 1 else 4
    return (1 << n) * 9 + n * rank * (1 << n >> 1)


def _dynamic(part: SearchPart, limit: int | float | str | None) -> tuple[list[int], float]:
    """The best acyclic choice among the sets of each variable, by position, and its score; nothing if there is none."""
    n = len(part.members)
    require_memory(
        _dynamic_bytes(part),
        f"dynamic programming over {n} variables",
        "method='branch-and-cut' needs little",
        limit,
    )
    ptr = np.concatenate([[0], np.cumsum([len(own) for own in part.values])]).astype(np.int64)
    masks = np.array([mask for own in part.masks for mask in own], dtype=np.int64)
    score, chosen = kernels.subsets.best_network(ptr, masks, np.concatenate(part.values))
    return ([int(k) for k in chosen], -math.inf) if score > -math.inf else ([], -math.inf)


def _constrained(
    scores: LocalScores,
    required: Arcs,
    forbidden: Arcs,
    tiers: Sequence[Iterable[str]] | None,
    max_parents: int | None,
) -> LocalScores:
    """Given scores without the sets that constraints rule out."""
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
            raise ModelError(f"no parent set of {scores.names[i]!r} satisfies the constraints")
        sets.append(fitting)
    return LocalScores.from_masks(variables, sets)


def _graph(names: Sequence[str], variables: Any, parents: Sequence[int]) -> nx.DiGraph[str]:
    """The structure; nodes have "states" where they are known."""
    if variables is None:
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(names)
        graph.add_edges_from(arcs_of(names, parents))
        return graph
    return to_graph(variables, arcs_of(names, parents))
