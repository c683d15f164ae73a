"""Hill climbing: change single arcs, each time the one that raises the score most.

    repeat                                                               the climb
        add, delete or reverse the arc that gains most, of those that make no cycle
    until no change raises the score
    for every variable x:                                                the escapes
        cut x off from the best structure, turn arcs of the rest around within its equivalence class, climb again
    change some arcs of the best structure at random, and begin again    the restarts

With a decomposable score a change touches one family, or two for a reversal (Heckerman, Geiger & Chickering 1995,
section 7.1), so gains are kept by child and parents and nothing is counted twice: a change costs one request for the
families around the children that it changed. Cutting variables off and putting them back is Moore & Wong's (2003)
optimal reinsertion made greedy; reversals of covered arcs walk through an equivalence class (Chickering 1995, theorem
2). A tabu list (Glover 1989) is an option; random restarts are Lourenço et al.'s (2003). Of few variables the best
structure of all is found in the end, by dynamic programming (Silander & Myllymäki 2006).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import ModelError
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import STOPS, limited, reason_of
from bbn.data import DataSource
from bbn.data.reading import Reading
from bbn.learning.structure.arc_search import ArcSearch, Best
from bbn.learning.structure.constraints import (
    INSTEAD,
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    cycle_of,
    default_score,
    masks_of,
    members,
    to_graph,
)
from bbn.learning.structure.score_cache import ScoreCache, constant_columns
from bbn.model.previous import split_name
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

Bools = NDArray[np.bool_]
MOST_PARENTS = 8
"""The most parents of a variable where some columns have states and nothing else is said.

Five, which is usual, costs hundreds of nats on networks with larger families (win95pts has one of seven parents). With
eight, scores that punish parameters stop by themselves, and a search of the bare likelihood still ends."""
MOST_ESCAPES = 100
"""How many variables are cut off and put back unless asked otherwise."""
FEW = 6
"""Variables up to which the best structure of all is found, if their families have no more than FEW_CELLS cells."""
FEW_CELLS = 2**18


@keywords_checked
@limited(INSTEAD)
def hill_climb(
    data: Any,
    score: Any = None,
    *,
    max_parents: int | str | None = "auto",
    max_cells: float | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    start: Any = None,
    escapes: int | None = None,
    tabu: int = 0,
    plateau: int = 10,
    restarts: int = 5,
    max_iter: int | None = None,
    seed: int | np.random.Generator = 0,
    time_limit: float | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Sequence[int] | None = None,
    lag: int | None = None,
) -> nx.DiGraph[str]:
    """Learn a structure by greedy search over all DAGs.

    Up to 6 variables, unless their tables are large, the structure that comes out is the best of all; with
    `escapes=0` or `max_iter=` it is what plain climbing finds.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    score
        The score to climb; see `bbn.score`. None is "bdeu", the marginal likelihood that most searches use, or "bic"
        where columns hold numbers.
    max_parents
        The most parents of a variable, or None for no limit. "auto" is 8, or no limit where all columns hold numbers,
        whose families do not grow with the settings of their parents.
    max_cells
        The most cells that the table of a variable with several parents may have, or None for no limit; with one parent
        twice as many. Families that have more are neither counted nor chosen, unless `required` asks for them.
    required, forbidden
        Arcs (parent, child) that must, or must not, be there.
    tiers
        Lists of names, earliest first: no arc goes from a later list to an earlier one.
    start
        The structure to begin with: a DiGraph, arcs or a network. By default the required arcs alone.
    escapes
        How many variables to cut off and put back, one after the other, once the first top is reached; None for
        each of them once, but no more than 100, 0 for plain hill climbing.
    tabu
        If above 0, go on past each top that the climbs, escapes and restarts came to, by the best change there is, a
        loss or not, and leave a pair of variables alone for this many changes once its arc has changed. The best of
        all structures on the way is kept, so it is never worse than without.
    plateau
        How many such changes to make without beating the best structure of the walk so far.
    restarts
        How many times to begin again from the best structure with some arcs changed at random; families that have been
        scored are not scored again, so each costs far less than the first climb. 0 takes about half the time.
    max_iter
        The most changes in all, or None.
    seed
        For the escapes and restarts; a number by default, so that the same data give the same structure.
    time_limit
        The most seconds, after which the best found so far is given; None is BBN_TIME_LIMIT, or else any time.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers. They become Gaussians, which cannot be parents of variables with
        states: such arcs are never made.
    sequence, time, lengths
        Where rows are steps of sequences, how they make them, as in `DynamicNetwork.filter`. The search is then over
        arcs within a slice and from slices before it, "Rain[-1]" → "Rain"; scores are of the steps that have `lag`
        steps before them, given those. `weights` are one per sequence.
    lag
        How many slices back arcs may reach: 1 where there are sequences. Given alone, the rows are one sequence.

    Returns
    -------
    nx.DiGraph
        One node per variable, with its "states". `graph["score"]` is the score, `graph["n_iter"]` the number of
        changes, `graph["n_families"]` that of families counted, `graph["n_too_large"]` that of those that `max_cells`
        left out, and `graph["interrupted"]` whether Ctrl-C or the time limit ended the search, which then gives the
        best found so far. Over time `graph["lag"]` is there too, and `bbn.fit` makes a DynamicNetwork of it.

    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1, 1, 0] * 9}
    >>> hill_climb(data).edges
    OutEdgeView([('A', 'B')])
    """
    reading = Reading(states, weights, missing, unseen, continuous)
    over_time = lag is not None or (sequence, time, lengths) != (None, None, None)
    if over_time:
        from bbn.learning.time.lagged import Told, backward_arcs, lagged_source

        lag = 1 if lag is None else lag
        source = lagged_source(data, Told(sequence, time, lengths), lag, reading)
        forbidden = [*getattr(forbidden, "edges", forbidden), *backward_arcs(all_variables(source))]
    else:
        source = complete_source(data, "hill_climb", reading)
    # by name, so that ties fall alike whatever the order of the columns; constant ones, which no arc helps, come last
    still = constant_columns(source)
    variables = sorted(all_variables(source), key=lambda v: (v.name in still, v.name))
    constraints = Constraints(variables, required, forbidden, tiers, _limit(max_parents, source), max_cells)
    cache = ScoreCache(source, default_score(score, source, "bdeu"), constraints.names)
    parents = _start(start, constraints)
    n = constraints.leave_alone(len(variables) - len(still), parents)
    rng = np.random.default_rng(seed)
    with progress_bar(progress, max_iter, "hill climbing", "change") as advance:
        search = ArcSearch(cache, constraints, parents, max_iter, advance)
        try:
            tops: list[Best] = []
            for restart in range(restarts + 1):
                if restart:
                    if search.ended:
                        break
                    search.move_to(search.perturbed(n, rng))
                search.climb()
                tops.append(search.best)
                for x in range(n)[: MOST_ESCAPES if escapes is None else escapes]:
                    search.move_to(search.without(x, rng))
                    search.climb()
                tops.append(search.best)
            # each walk by itself, and none changes what came before: with more of them the result is never worse
            for top in {tuple(own.parents): own for own in tops}.values() if tabu else ():
                search.wander(top, tabu, plateau)
            if n <= FEW and max_iter is None and escapes != 0:
                search.solve(n, FEW_CELLS)
        except STOPS as stop:
            search.interrupted = bool(reason_of(stop))
    best = search.best.parents
    about: dict[str, Any] = {"score": cache.total(best)}
    kept = all_variables(source)
    if over_time:  # of the slice alone, given those before it
        inside = [(i, mask) for i, mask in enumerate(best) if split_name(constraints.names[i])[1] is None]
        used = {constraints.names[p] for mask in best for p in members(mask)}
        about = {"score": sum(cache.many(inside)), "lag": lag}
        kept = tuple(v for v in kept if split_name(v.name)[1] is None or v.name in used)
    return to_graph(
        kept,
        arcs_of(constraints.names, best),
        **about,
        n_iter=search.n_iter,
        n_families=cache.n_evaluated,
        n_too_large=search.n_too_large,
        interrupted=search.interrupted,
    )


def _limit(max_parents: int | str | None, source: DataSource) -> int | None:
    if isinstance(max_parents, str):
        if max_parents != "auto":
            raise ValueError(f"max_parents is {max_parents!r}; expected a number, None or 'auto'")
        return MOST_PARENTS if source.variables else None
    return max_parents


def _start(start: Any, constraints: Constraints) -> list[int]:
    """The structure to begin with, checked against the constraints, required arcs added."""
    parents = masks_of(start if start is not None else (), constraints, "start")
    parents = [mask | must for mask, must in zip(parents, constraints.required, strict=True)]
    for child, mask in enumerate(parents):
        if mask & ~constraints.allowed[child]:
            parent = members(mask & ~constraints.allowed[child])[0]
            raise ModelError(
                f"start has the arc {constraints.names[parent]!r} → {constraints.names[child]!r}, which is forbidden"
            )
        if mask.bit_count() > constraints.max_parents:
            raise ModelError(
                f"start gives {constraints.names[child]!r} {mask.bit_count()} parents, "
                f"more than max_parents={constraints.max_parents}"
            )
    if cycle_of(parents):
        raise ModelError("start and the required arcs together form a cycle")
    return parents
