"""Hill climbing: change single arcs, each time those that raise the score most.

    repeat                                                               the climb
        for every child, best first: add, delete or reverse the arc into it that gains most,
        unless that makes a cycle or touches a family that changed in this round
    until no change raises the score
    for every variable x:                                                the escapes
        cut x off from the best structure, turn arcs of the rest around within its equivalence class, climb again

With a decomposable score a change touches one family, or two for a reversal (Heckerman, Geiger & Chickering 1995,
section 7.1), so gains are kept by child and parents and nothing is counted twice: a round costs one request for the
families around the children that it changed. Cutting variables off and putting them back is Moore & Wong's (2003)
optimal reinsertion made greedy; reversals of covered arcs walk through an equivalence class (Chickering 1995, theorem
2). A tabu list (Glover 1989) and random restarts (Lourenço et al. 2003) are options.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import ModelError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.data import DataSource
from bbn.data.reading import Reading
from bbn.learning.structure.constraints import (
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    cycle_of,
    default_score,
    masks_of,
    members,
    ranked,
    tie_of,
    to_graph,
)
from bbn.learning.structure.scores import ScoreCache
from bbn.model.previous import split_name
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

Bools = NDArray[np.bool_]
MOST_PARENTS = 5
"""The most parents of a variable where some columns have states and nothing else is said."""
MOST_ESCAPES = 100
"""How many variables are cut off and put back unless asked otherwise."""


@keywords_checked
def hill_climb(
    data: Any,
    score: Any = None,
    *,
    max_parents: int | str | None = "auto",
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    start: Any = None,
    escapes: int | None = None,
    tabu: int = 0,
    plateau: int = 10,
    restarts: int = 1,
    max_iter: int | None = None,
    seed: int | np.random.Generator = 0,
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

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    score
        The score to climb; see `bbn.score`. None is "bdeu", the marginal likelihood that most searches use, or "bic"
        where columns hold numbers.
    max_parents
        The most parents of a variable, or None for no limit. "auto" is 5, or no limit where all columns hold numbers,
        whose families do not grow with the settings of their parents.
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
        If above 0, go on past each top by the best change there is, a loss or not, and leave a pair of variables
        alone for this many changes once its arc has changed.
    plateau
        How many such changes to make without beating the best structure so far.
    restarts
        How many times to begin again from the best structure with some arcs changed at random; families that have been
        scored are not scored again, so each costs less than the first climb. 5 finds more, in about twice the time.
    max_iter
        The most changes in all, or None.
    seed
        For the escapes and restarts; a number by default, so that the same data give the same structure.
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
        changes, `graph["n_families"]` that of families counted, and `graph["interrupted"]` whether Ctrl-C ended the
        search, which then gives the best found so far. Over time `graph["lag"]` is there too, and `bbn.fit` makes a
        DynamicNetwork of it.

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
    # by name, so that ties fall alike whatever the order of the columns
    variables = sorted(all_variables(source), key=lambda v: v.name)
    constraints = Constraints(variables, required, forbidden, tiers, _limit(max_parents, source))
    cache = ScoreCache(source, default_score(score, source, "bdeu"), constraints.names)
    parents = _start(start, constraints)
    search = _Search(cache, constraints, parents, max_iter)
    rng = np.random.default_rng(seed)
    with progress_bar(progress, max_iter, "hill climbing", "change") as advance:
        try:
            for restart in range(restarts + 1):
                if restart:
                    if max_iter is not None and search.n_iter >= max_iter:
                        break
                    search.move_to(search.perturbed(rng))
                search.climb(advance)
                if tabu:
                    search.wander(tabu, plateau, advance)
                for x in range(len(variables))[: MOST_ESCAPES if escapes is None else escapes]:
                    search.move_to(search.without(x, rng))
                    search.climb(advance)
        except KeyboardInterrupt:
            search.interrupted = True
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
        interrupted=search.interrupted,
    )


def _limit(max_parents: int | str | None, source: DataSource) -> int | None:
    if isinstance(max_parents, str):
        if max_parents != "auto":
            raise ValueError(f"max_parents is {max_parents!r}; expected a number, None or 'auto'")
        return MOST_PARENTS if source.variables else None
    return max_parents


Change = tuple[int, int, int]
"""A kind of change, a parent and a child."""
ADD, DELETE, REVERSE = range(3)


class _Best(NamedTuple):
    score: float
    parents: list[int]


class _Search:
    """A climb in progress: the structure, the gain of every change, and which changes are allowed.

    Matrices are indexed [parent, child].
    """

    def __init__(
        self, cache: ScoreCache, constraints: Constraints, parents: list[int], max_iter: int | None
    ) -> None:
        n = len(constraints.names)
        self.cache, self.constraints, self.max_iter = cache, constraints, max_iter
        self.tie = tie_of(cache.source.total)
        self.bits = [1 << i for i in range(n)]
        self.n_iter, self.interrupted = 0, False
        self.allowed = _matrix(constraints.allowed)
        self.required = _matrix(constraints.required)
        self.add_gain = np.full((n, n), -np.inf)
        self.delete_gain = np.full((n, n), -np.inf)
        self.parents = list(parents)
        self.known: dict[tuple[int, int], tuple[Array, float]] = {}
        self.terms = [0.0] * n
        self.refresh(range(n))
        self.best = _Best(self.total, list(self.parents))

    def move_to(self, parents: list[int]) -> None:
        """Take another structure as the current one."""
        changed = [c for c, mask in enumerate(parents) if mask != self.parents[c]]
        self.parents = list(parents)
        self.refresh(changed)
        self.note_best()

    def climb(self, advance: Callable[..., object]) -> None:
        """Round by round make the best change into every child, the largest gain first, while there are gains.

        Of changes into a child that gain the same the first by kind, then by its parent, is made; of children that gain
        the same the last comes first, which makes arcs point from earlier names to later ones.
        """
        while True:
            before, n = self.n_iter, len(self.parents)
            above = _ancestors(self.parents)
            gains = self.gains(above)
            by_child = gains.transpose(2, 0, 1).reshape(n, -1)
            top = by_child.max(axis=1)
            rising = np.flatnonzero(top > self.tie)
            top = top[rising]
            first = (by_child[rising] >= np.maximum(top - self.tie, self.tie)[:, None]).argmax(axis=1)
            changed: set[int] = set()
            for i in ranked(top, self.tie, last_first=True).tolist():
                if self.max_iter is not None and self.n_iter >= self.max_iter:
                    break
                c = int(rising[i])
                kind, p = divmod(int(first[i]), n)
                if (
                    c in changed
                    or (kind == REVERSE and p in changed)
                    or not self.is_legal((kind, p, c), above)
                ):
                    continue
                changed.update(self.make((kind, p, c)))
                if kind == ADD:
                    above = [mask | above[p] if mask >> c & 1 else mask for mask in above]
                else:
                    above = _ancestors(self.parents)
            if self.n_iter == before:
                return
            self.refresh(sorted(changed))
            self.note_best()
            advance(self.n_iter - before, score=self.best.score)

    def wander(self, tabu: int, plateau: int, advance: Callable[..., object]) -> None:
        """Make the best change that is not tabu, a loss or not, until that has long not beaten the best."""
        self.move_to(self.best.parents)
        free_at = np.zeros(self.allowed.shape, dtype=np.int64)
        idle = 0
        while idle < plateau and (self.max_iter is None or self.n_iter < self.max_iter):
            gains = self.gains(_ancestors(self.parents))
            good_enough = gains > self.best.score - self.total + self.tie
            gains[~good_enough & (free_at > self.n_iter)] = -np.inf
            top = gains.max(initial=-np.inf)
            if top == -np.inf:
                return
            kind, p, c = (int(i) for i in np.argwhere(gains >= top - self.tie)[0])
            self.refresh(self.make((kind, p, c)))
            free_at[p, c] = free_at[c, p] = self.n_iter + tabu
            idle = 0 if self.note_best() else idle + 1
            advance(1, score=self.best.score)

    def note_best(self) -> bool:
        """Keep the current structure if it beats the best so far."""
        if self.total > self.best.score + self.tie:
            self.best = _Best(self.total, list(self.parents))
            return True
        return False

    def gains(self, above: Sequence[int]) -> Array:
        """The gain of every change [kind, parent, child]; −∞ where it is not allowed or makes a cycle."""
        arcs = _matrix(self.parents)
        path = _matrix(above)  # path[i, j]: there is a way from i to j
        room = arcs.sum(axis=0) < self.constraints.max_parents
        gains = np.full((3, *arcs.shape), -np.inf)
        np.copyto(gains[ADD], self.add_gain, where=self.allowed & ~arcs & ~path.T & room)
        removable = arcs & ~self.required
        np.copyto(gains[DELETE], self.delete_gain, where=removable)
        tails, heads = np.nonzero(removable & self.allowed.T & room[:, None])
        only_way = (arcs[tails] & path[:, heads].T).sum(axis=1) == 1
        tails, heads = tails[only_way], heads[only_way]
        gains[REVERSE, tails, heads] = self.delete_gain[tails, heads] + self.add_gain[heads, tails]
        return gains

    def is_legal(self, change: Change, above: Sequence[int]) -> bool:
        """Whether a change makes no cycle in a structure that other changes have been made to."""
        kind, p, c = change
        if kind == ADD:
            return not above[p] >> c & 1
        if kind == DELETE:
            return True
        return not any(above[q] >> p & 1 for q in members(self.parents[c] ^ 1 << p))

    def make(self, change: Change) -> list[int]:
        """Change an arc; the children whose families changed."""
        kind, p, c = change
        self.n_iter += 1
        if kind == ADD:
            self.parents[c] |= 1 << p
            return [c]
        self.parents[c] &= ~(1 << p)
        if kind == DELETE:
            return [c]
        self.parents[p] |= 1 << c
        return sorted([p, c])

    def refresh(self, children: Iterable[int]) -> None:
        """Set the gains of arcs into these children; those not known yet come from one batch of families."""
        listed = list(children)
        new = [c for c in listed if (c, self.parents[c]) not in self.known]
        families: list[tuple[int, int]] = []
        plan = []
        for c in new:
            own = self.parents[c]
            free = self.constraints.allowed[c] & ~own
            if own.bit_count() >= self.constraints.max_parents:
                free = 0
            add = [p for p, bit in enumerate(self.bits) if free & bit]
            delete = list(members(own & ~self.constraints.required[c]))
            plan.append((c, add, delete))
            families += [(c, own | self.bits[p]) for p in add]
            families += [(c, own ^ self.bits[p]) for p in delete]
            families.append((c, own))
        values = np.array(self.cache.many(families, self.parents))
        start = 0
        for c, add, delete in plan:
            middle, end = start + len(add), start + len(add) + len(delete)
            gains = np.full((2, len(self.parents)), -np.inf)
            # a family too large to count scores −∞, which must not be a gain on another such
            term = max(float(values[end]), -sys.float_info.max)
            gains[ADD, add] = values[start:middle] - term
            gains[DELETE, delete] = values[middle:end] - term
            self.known[c, self.parents[c]] = gains, term
            start = end + 1
        for c in listed:
            gains, self.terms[c] = self.known[c, self.parents[c]]
            self.add_gain[:, c], self.delete_gain[:, c] = gains
        # added up anew, as a running sum would carry the rounding of all changes so far
        self.total = sum(self.terms)

    def without(self, x: int, rng: np.random.Generator) -> list[int]:
        """The best structure with x cut off, but for required arcs, and about half of the covered arcs turned around.

        An arc p → c is covered if c has the parents of p and p, no others; reversing it leads to an equivalent
        structure.
        """
        required, allowed = self.constraints.required, self.constraints.allowed
        parents = [mask & ~(1 << x) | must for mask, must in zip(self.best.parents, required, strict=True)]
        parents[x] = required[x]
        arcs = [(p, c) for c, mask in enumerate(parents) for p in members(mask & ~required[c])]
        turns = rng.random(len(arcs)) < 0.5
        for i in rng.permutation(len(arcs)).tolist():
            p, c = arcs[i]
            covered = parents[c] == parents[p] | 1 << p and allowed[p] >> c & 1
            if turns[i] and covered and parents[p].bit_count() < self.constraints.max_parents:
                parents[c] ^= 1 << p
                parents[p] |= 1 << c
        return parents

    def perturbed(self, rng: np.random.Generator) -> list[int]:
        """The best structure with some arcs changed at random."""
        parents = list(self.best.parents)
        arcs = sum(mask.bit_count() for mask in parents)
        for _ in range(max(2, arcs // 4, len(parents) // 4) if len(parents) > 1 else 0):
            p, c = (int(i) for i in rng.choice(len(parents), size=2, replace=False))
            changed = list(parents)
            changed[c] ^= 1 << p
            if parents[c] >> p & 1 and rng.random() < 0.5:
                changed[p] |= 1 << c
            if self.constraints.allow(changed) and not cycle_of(changed):
                parents = changed
        return parents


def _matrix(masks: Sequence[int]) -> Bools:
    """matrix[parent, child] of parents' masks."""
    n = len(masks)
    size = (n + 7) // 8
    packed = np.frombuffer(b"".join(mask.to_bytes(size, "little") for mask in masks), dtype=np.uint8)
    return np.unpackbits(packed.reshape(n, size), axis=1, count=n, bitorder="little").T.astype(np.bool_)


def _ancestors(parents: Sequence[int]) -> list[int]:
    """For each variable of a DAG the mask of those that a directed path leads from, itself among them."""
    above = [0] * len(parents)

    def visit(i: int) -> int:
        if not above[i]:
            mask = parents[i]
            result = 1 << i
            while mask:
                low = mask & -mask
                p = low.bit_length() - 1
                result |= above[p] or visit(p)
                mask ^= low
            above[i] = result
        return above[i]

    for i in range(len(parents)):
        visit(i)
    return above


def _start(start: Any, constraints: Constraints) -> list[int]:
    """The structure to begin with, checked against the constraints, required arcs added."""
    parents = masks_of(start if start is not None else (), constraints, "start")
    parents = [mask | must for mask, must in zip(parents, constraints.required, strict=True)]
    for child, mask in enumerate(parents):
        if mask & ~constraints.allowed[child]:
            parent = next(members(mask & ~constraints.allowed[child]))
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
