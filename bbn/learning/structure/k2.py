"""K2: the best parents of each variable among those before it in an order, added one at a time.

Cooper & Herskovits (1992), section 4.1:

    for each variable i, in order:
        π_i ← ∅;  P_old ← g(i, π_i)
        while |π_i| < u:
            z ← the variable before i, not in π_i, that maximises g(i, π_i ∪ {z})
            if g(i, π_i ∪ {z}) > P_old:  π_i ← π_i ∪ {z};  P_old ← g(i, π_i)
            else stop

Variables do not depend on each other here, so all of them take a step together: one request for counts per number of
parents, whatever the number of variables, and what the search begins with is part of the first. n variables with at
most u parents cost at most u passes over the data and O(u n²) families. Of parents that score the same the first in the
order is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.errors import DataError, ModelError, nearest
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import STOPS, limited, reason_of
from bbn.data.reading import Reading
from bbn.kernels.watch import check
from bbn.learning.structure.constraints import (
    INSTEAD,
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    default_score,
    members,
    ranked,
    tie_of,
    to_graph,
)
from bbn.learning.structure.neighbours import Around
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx


@keywords_checked
@limited(INSTEAD)
def k2(
    data: Any,
    order: Sequence[str] | str | None = None,
    max_parents: int | None = 5,
    score: Any = None,
    *,
    orders: Iterable[Sequence[str]] | None = None,
    restarts: int = 20,
    seed: int | np.random.Generator = 0,
    refine: bool = False,
    required: Arcs = (),
    forbidden: Arcs = (),
    time_limit: float | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn a structure in which every arc goes forward in an order.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    order
        The names of all variables, causes first; None takes the order of the columns. "random" tries `restarts`
        orders drawn with `seed` and keeps the structure that scores best.
    max_parents
        The most parents of a variable, or None for no limit.
    score
        The score of a family; see `bbn.score`. None is "k2", as in the paper, or "bic" where columns hold numbers.
    orders
        Several orders; the structure that scores best is kept.
    restarts, seed
        The number of orders that order="random" draws, and the seed of the draws; a number by default, so that the
        same data give the same structure.
    refine
        Go on where the greedy search stops: remove, add or exchange single parents within the order while that
        raises the score.
    required, forbidden
        Arcs (parent, child) that must, or must not, be there. A required arc must go forward in the order.
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
        states. Without an `order` they come after all others.

    Returns
    -------
    nx.DiGraph
        One node per variable, with its "states"; `graph["score"]` is the score, `graph["order"]` the order and
        `graph["interrupted"]` whether Ctrl-C or the time limit ended the search, which then gives the best found so
        far.

    References
    ----------
    Cooper & Herskovits (1992), A Bayesian method for the induction of probabilistic networks from data.

    >>> data = {"A": [1, 1, 0, 1, 0, 0, 1, 0, 1, 0], "B": [0, 1, 0, 1, 0, 1, 1, 0, 1, 0]}
    >>> k2(data, ["A", "B"]).edges
    OutEdgeView([('A', 'B')])
    """
    source = complete_source(data, "k2", Reading(states, weights, missing, unseen, continuous))
    variables = all_variables(source)
    constraints = Constraints(variables, required, forbidden, max_parents=max_parents)
    rng = np.random.default_rng(seed)
    tried = [
        _checked_order(listed, constraints) for listed in _orders(constraints, order, orders, restarts, rng)
    ]
    cache = ScoreCache(source, default_score(score, source, "k2"))
    found: list[list[int]] = []
    totals: list[float] = []
    interrupted = False
    with progress_bar(progress, len(tried), "k2", "order") as advance:
        for positions in tried:
            parents = list(constraints.required)
            try:
                _grow(cache, constraints, positions, parents)
                if refine:
                    _refine(cache, constraints, positions, parents)
            except STOPS as stop:
                interrupted = bool(reason_of(stop))
            found.append(parents)
            totals.append(cache.total(parents))
            if interrupted:
                break
            advance(1, score=max(totals))
    best = ranked(np.array(totals), tie_of(source.total))[0]
    return to_graph(
        variables,
        arcs_of(cache.names, found[best]),
        score=totals[best],
        order=tuple(cache.names[i] for i in tried[best]),
        interrupted=interrupted,
    )


def _grow(cache: ScoreCache, constraints: Constraints, order: Sequence[int], parents: list[int]) -> None:
    """The greedy search, all variables one step at a time; `parents` are what must be there to begin with."""
    before = _before(constraints, order)
    growing = [i for i in order if parents[i].bit_count() < constraints.max_parents]
    while growing:
        check()
        wanted = [
            Around(i, parents[i], [z for z in order if (before[i] & ~parents[i]) >> z & 1], [])
            for i in growing
        ]
        steps = [(i, own | 1 << z) for i, own, add, _ in wanted for z in add]
        # the families as they are come with each
        values = np.concatenate([terms[:-1] for terms in cache.near(wanted)]).tolist()
        changed = _take_best(cache, steps, values, parents)
        growing = [i for i in changed if parents[i].bit_count() < constraints.max_parents]


def _refine(cache: ScoreCache, constraints: Constraints, order: Sequence[int], parents: list[int]) -> None:
    """Remove, add or exchange one parent at a time, the best change first, until no change raises the score."""
    before = _before(constraints, order)
    active = list(order)
    while active:
        check()
        steps = []
        for i in active:
            fixed = constraints.required[i]
            gone = [0, *(1 << z for z in order if (parents[i] & ~fixed) >> z & 1)]
            new = [0, *(1 << z for z in order if (before[i] & ~parents[i]) >> z & 1)]
            changed = ((parents[i] & ~a) | b for a in gone for b in new if a or b)
            steps += [(i, mask) for mask in changed if mask.bit_count() <= constraints.max_parents]
        active = _take_best(cache, steps, cache.many(steps, parents), parents)


def _take_best(
    cache: ScoreCache, steps: Sequence[tuple[int, int]], values: Sequence[float], parents: list[int]
) -> list[int]:
    """Give each child the parents that raise its score most, the first of several that tie; the children changed.

    `steps` are families and `values` their scores.
    """
    tie = tie_of(cache.source.total)
    top: dict[int, float] = {}
    for (i, _), value in zip(steps, values, strict=True):
        if value > top.get(i, -math.inf):
            top[i] = value
    least: dict[int, float] = {}
    for i, value in top.items():
        current = cache[i, parents[i]]
        if value > current + tie:
            least[i] = max(value - tie, current + tie)
    changed = []
    for (i, mask), value in zip(steps, values, strict=True):
        if value >= least.get(i, math.inf):
            parents[i] = mask
            changed.append(i)
            del least[i]
    return changed


def _before(constraints: Constraints, order: Sequence[int]) -> list[int]:
    """The parents that each variable may have: those before it that are not forbidden."""
    before = [0] * len(order)
    seen = 0
    for i in order:
        before[i] = seen & constraints.allowed[i]
        behind = constraints.required[i] & ~seen
        if behind:
            parent = constraints.names[members(behind)[0]]
            raise ModelError(
                f"the arc {parent!r} → {constraints.names[i]!r} is required, but goes backward in the order"
            )
        seen |= 1 << i
    return before


def _orders(
    constraints: Constraints,
    order: Sequence[str] | str | None,
    orders: Iterable[Sequence[str]] | None,
    restarts: int,
    rng: np.random.Generator,
) -> list[Sequence[str]]:
    """The orders to try."""
    if orders is not None:
        if order is not None:
            raise ValueError("give either order= or orders=, not both")
        listed = list(orders)
        if not listed:
            raise ValueError("orders= is empty; expected at least one order")
        return listed
    if order is None:
        return [constraints.names]
    if not isinstance(order, str):
        return [order]
    if order != "random":
        raise ValueError(f"order is {order!r}; expected a list of names, or 'random'")
    if restarts < 1:
        raise ValueError(f"restarts is {restarts}; expected 1 or more")
    return [_random_order(constraints, rng) for _ in range(restarts)]


def _random_order(constraints: Constraints, rng: np.random.Generator) -> list[str]:
    """An order drawn at random among those in which required arcs go forward; by name, whatever the columns' order."""
    drawn = [constraints.position[str(name)] for name in rng.permutation(sorted(constraints.names))]
    result: list[int] = []
    done = 0
    while drawn:
        i = next(i for i in drawn if not constraints.required[i] & ~done)
        drawn.remove(i)
        result.append(i)
        done |= 1 << i
    return [constraints.names[i] for i in result]


def _checked_order(order: Sequence[str], constraints: Constraints) -> list[int]:
    """The positions of an order that names every variable once."""
    listed = list(order)
    positions = [constraints.index(name, "order") for name in listed]
    if len(set(positions)) < len(positions):
        twice = next(name for i, name in enumerate(listed) if name in listed[:i])
        raise DataError(f"order names {twice!r} twice")
    absent = [name for name in constraints.names if name not in set(listed)]
    if absent:
        raise DataError(
            f"order does not name {absent[0]!r}{nearest(absent[0], listed)}; it must name every variable"
        )
    return positions
