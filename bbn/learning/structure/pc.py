"""PC: the class of structures that explains which variables are independent given which others.

Spirtes & Glymour (1991), in the order-independent form of Colombo & Maathuis (2014), "PC-stable":

    begin with every pair joined
    for k = 0, 1, 2, …:
        for every pair x – y still joined, given each set of k neighbours of x, or of y, as they were before this k:
            if x and y are independent given it, note it as their separating set and take the edge away
    x – z – y, x and y not joined, z in fewer than half of the sets of neighbours that separate them:  x → z ← y
    direct what follows from that (Meek 1995)

The last but one is their majority rule: one wrong test does not turn an arrow around, as it does where the first
separating set decides alone. A level's tests are counted in a few large batches. Tests of sets with k members cost
tables of k + 2 variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import ModelError
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
    complete_source,
    members,
    ranked,
    to_graph,
)
from bbn.learning.structure.independence import PValues, Triple, independence_test
from bbn.learning.structure.redundant import Redundant, redundant_columns
from bbn.model.equivalence import close_under_meek, has_directed_cycle, may_orient, orient
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

Test = tuple[int, int, tuple[int, ...]]
"""Two variables and a set to condition on."""
WAVE = 64
"""Sets to try for each pair before looking at the results."""
VOTERS = 1024
"""The most sets that vote on the colliders between two variables; of larger ones all of a size are left out."""
BATCH = 4096
"""Tests of voters that are counted at a time."""
PAIR_BYTES = 1000
"""What a pair takes that is still joined: the sets that are left to try, its tests of a round and their results."""
P_TIE = 1e-6
"""P-values that differ by no more than this tie: rounding must not choose among sets that separate equally well."""


@keywords_checked
@limited(INSTEAD)
def pc(
    data: Any,
    alpha: float = 0.05,
    test: str = "auto",
    max_condition: int | None = None,
    *,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn a class of structures from tests of independence.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    alpha
        Edges go where a test of independence has a p-value above this.
    test
        "auto" chooses by the kinds of columns: "g2" for states, "fisher-z" for numbers, "lrt" for both. Of states:
        "g2", the likelihood-ratio test, or "chi2", Pearson's, both with degrees of freedom for the rows and columns
        that have counts; "mi", the statistic of "g2" with degrees of freedom for all settings, seen or not;
        "permutation", "g2" unless small counts are expected, and there the moments of the permutation test. Of numbers:
        "fisher-z", or "cor", Student's t test of the partial correlation. Of both: "lrt", the likelihood
        ratio of conditional Gaussians.
    max_condition
        The most variables to condition on, or None for no limit.
    required, forbidden
        Arcs (parent, child) that must, or must not, be there. An edge forbidden in both directions is never there.
    tiers
        Lists of names, earliest first: no arc goes from a later list to an earlier one.
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
        numbers. They become Gaussians; an edge between one and a variable with states
        always points at the number.

    Returns
    -------
    nx.DiGraph
        A CPDAG: where the direction of an edge is open, it is there in both. `bbn.to_dag` picks a member for
        `bbn.fit`. `graph["sepsets"]` maps each pair that was separated, a frozenset, to its separating set, a
        tuple; `graph["n_tests"]` is the number of tests, and `graph["interrupted"]` whether Ctrl-C or the time
        limit cut them short: then there may be edges that further tests would have taken away, and if so none is
        directed but by what was required or forbidden.

    Columns with more values than half of the rows, identifiers, stay without edges; of columns that are copies of each
    other (one to one, or numbers on a straight line) the first by name stands for all, and the others are joined to it
    alone. A RedundantColumnsWarning names them. Neither is done to a column of a required arc.

    References
    ----------
    Colombo & Maathuis (2014), Order-independent constraint-based causal structure learning.

    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).integers(2, size=(2, 500))
    >>> graph = pc({"A": a, "B": b, "C": a & b})
    >>> sorted(graph.edges), graph.graph["sepsets"][frozenset("AB")]
    ([('A', 'C'), ('B', 'C')], ())
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}; expected a number between 0 and 1")
    source = complete_source(data, "pc", Reading(states, weights, missing, unseen, continuous))
    # by name, so that the result does not depend on the order of the columns; those that are set apart come last
    required, forbidden = ([*getattr(arcs, "edges", arcs)] for arcs in (required, forbidden))
    tiers = [list(tier) for tier in tiers or ()]
    told = Constraints(all_variables(source), required, forbidden, tiers)
    kept = {
        told.names[i] for child, mask in enumerate(told.required) if mask for i in (child, *members(mask))
    }
    columns = [v.name for v in all_variables(source)]
    pairs = len(columns) * (len(columns) - 1) // 2
    require_memory(PAIR_BYTES * pairs, f"the tests of {pairs:,} pairs", "use fewer variables")
    found = redundant_columns(source, sorted(columns, key=lambda name: (name not in kept, name)))
    apart = (found.identifiers.keys() | found.copies.keys()) - kept
    variables = sorted(all_variables(source), key=lambda v: (v.name in apart, v.name))
    constraints = Constraints(variables, required, forbidden, tiers)
    joins = _copy_joins(constraints, found.copies, apart)
    constraints.leave_alone(len(variables) - len(apart), constraints.required)
    p_values = independence_test(source, test)
    skeleton = _find_skeleton(constraints, p_values, alpha, max_condition, progress)
    skeleton, votes = _vote(constraints, skeleton, p_values, alpha, max_condition)
    graph = to_graph(all_variables(source), _both_ways(constraints.names, skeleton.neighbours))
    _direct(graph, constraints, skeleton, votes)
    graph.add_edges_from(joins)
    if joins and skeleton.whole:
        close_under_meek(graph)
    Redundant(
        {name: n for name, n in found.identifiers.items() if name in apart},
        {name: own for name, own in found.copies.items() if name in apart},
    ).warn(source.n_rows)
    names = constraints.names
    graph.graph["sepsets"] = {
        frozenset((names[x], names[y])): tuple(names[z] for z in given)
        for (x, y), (_, given) in sorted(skeleton.separators.items())
    }
    graph.graph["n_tests"] = skeleton.n_tests
    graph.graph["interrupted"] = skeleton.interrupted
    return graph


def _copy_joins(
    constraints: Constraints, copies: Mapping[str, str], apart: Iterable[str]
) -> list[tuple[str, str]]:
    """The arcs between copies and their columns, in the directions that are allowed."""
    place = constraints.position
    pairs = [pair for name in sorted(apart) if name in copies for pair in permutations((copies[name], name))]
    return [(a, b) for a, b in pairs if constraints.allowed[place[b]] >> place[a] & 1]


Votes = dict[tuple[int, int], list[tuple[float, tuple[int, ...]]]]
"""For each pair that was separated, p-values and sets that separate it."""


class Skeleton(NamedTuple):
    """What the tests found."""

    neighbours: list[set[int]]
    separators: dict[tuple[int, int], tuple[float, tuple[int, ...]]]
    """For each pair that was separated, the p-value and the set that separated it."""
    n_tests: int
    interrupted: bool
    whole: bool = True
    """Whether all tests were made that may take edges away."""


def _find_skeleton(
    constraints: Constraints,
    p_values: PValues,
    alpha: float,
    max_condition: int | None,
    progress: bool | None,
) -> Skeleton:
    """Take edges away, level by level."""
    n = len(constraints.names)
    joined = [{y for y in range(n) if y != x and _may_join(constraints, x, y)} for x in range(n)]
    separators: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
    n_tests = 0
    interrupted = False
    level = 0
    with progress_bar(progress, None, "pc", "test") as advance:
        try:
            while max_condition is None or level <= max_condition:
                before = [sorted(near) for near in joined]
                # for each pair the sets that are still to be tried; pairs drop out when they are separated
                trials = {
                    (x, y): _sets(before, x, y, level)
                    for x in range(n)
                    for y in before[x]
                    if x < y and not _must_join(constraints, x, y)
                }
                if all(len(near) <= level for near in before):
                    break
                while trials:
                    check()
                    tests = [(x, y, given) for (x, y), sets in trials.items() for given in islice(sets, WAVE)]
                    # tests that share a second variable and a set share their counting
                    tests.sort(key=lambda trial: (trial[2], trial[1], trial[0]))
                    values = p_values([_named(constraints.names, trial) for trial in tests])
                    found = [(tests[k], float(values[k])) for k in np.flatnonzero(values > alpha)]
                    largest: dict[tuple[int, int], float] = {}
                    for (x, y, _), p in found:
                        largest[x, y] = max(p, largest.get((x, y), p))
                    for (x, y, given), p in found:
                        if p >= largest[x, y] - P_TIE:
                            separators.setdefault((x, y), (p, given))
                    tested = {(x, y) for x, y, _ in tests} - largest.keys()
                    trials = {pair: trials[pair] for pair in trials if pair in tested}
                    n_tests += len(tests)
                    advance(len(tests), level=level)
                for x, y in separators:
                    joined[x].discard(y)
                    joined[y].discard(x)
                level += 1
        except STOPS as stop:
            interrupted = bool(reason_of(stop))
    for x, y in separators:
        joined[x].discard(y)
        joined[y].discard(x)
    return Skeleton(joined, separators, n_tests, interrupted, not interrupted)


def _named(names: Sequence[str], test: Test) -> Triple:
    x, y, given = test
    return names[x], names[y], tuple(names[z] for z in given)


def _sets(before: Sequence[Sequence[int]], x: int, y: int, size: int) -> Iterator[tuple[int, ...]]:
    """The sets of neighbours of x, then of y, without the two, each set once."""
    tried = set()
    for one, other in ((x, y), (y, x)):
        for given in combinations([z for z in before[one] if z != other], size):
            if given not in tried:
                tried.add(given)
                yield given


def _vote(
    constraints: Constraints, skeleton: Skeleton, p_values: PValues, alpha: float, max_condition: int | None
) -> tuple[Skeleton, Votes]:
    """The sets of neighbours that separate each pair with a common neighbour, by tests on the finished skeleton.

    Where none of them does, the set that took the edge away decides alone; so it does everywhere where the vote was
    stopped. There is none on a skeleton that is not whole.
    """
    if not skeleton.whole:
        return skeleton, {}
    alone: Votes = {pair: [found] for pair, found in skeleton.separators.items()}
    near = [sorted(own) for own in skeleton.neighbours]
    tests = [
        (x, y, given)
        for x, y in sorted(alone)
        if skeleton.neighbours[x] & skeleton.neighbours[y]
        for given in _voters(near, x, y, max_condition)
    ]
    # tests that share a second variable and a set share their counting
    tests.sort(key=lambda trial: (trial[2], trial[1], trial[0]))
    votes: Votes = {}
    try:
        for start in range(0, len(tests), BATCH):
            check()
            batch = tests[start : start + BATCH]
            values = p_values([_named(constraints.names, trial) for trial in batch])
            for k in np.flatnonzero(values > alpha).tolist():
                x, y, given = batch[k]
                votes.setdefault((x, y), []).append((float(values[k]), given))
    except STOPS as stop:
        reason_of(stop)
        return skeleton._replace(interrupted=True), alone
    return skeleton._replace(n_tests=skeleton.n_tests + len(tests)), alone | votes


def _voters(
    near: Sequence[Sequence[int]], x: int, y: int, max_condition: int | None
) -> list[tuple[int, ...]]:
    """The sets of neighbours of x or of y, smallest first, all of a size or none of it."""
    found: list[tuple[int, ...]] = []
    most = max(len(near[x]), len(near[y]))
    for size in range(1 + (most if max_condition is None else min(most, max_condition))):
        own = list(islice(_sets(near, x, y, size), VOTERS + 1 - len(found)))
        if len(found) + len(own) > VOTERS:
            break
        found += own
    return found


def _direct(graph: nx.DiGraph[str], constraints: Constraints, skeleton: Skeleton, votes: Votes) -> None:
    """Direct edges, in place: what is known before, then, where the skeleton is whole, v-structures and what follows.

    Finite data may ask for v-structures that contradict each other. The clearest vote goes first, of equal ones the
    pair that was separated with the largest p-value, and no arc is turned around or made to close a cycle.
    """
    names = constraints.names
    for i in range(len(names)):
        for j in sorted(skeleton.neighbours[i]):
            if not constraints.allowed[i] >> j & 1 or constraints.required[j] >> i & 1:
                orient(graph, names[i], names[j])
    if has_directed_cycle(graph):
        raise ModelError(
            "the required and forbidden arcs and the tiers make a cycle of the edges that were found"
        )
    if not skeleton.whole:
        return
    for x, z, y in _v_structures(constraints, skeleton, votes):
        if may_orient(graph, x, z) and may_orient(graph, y, z):
            orient(graph, x, z)
            orient(graph, y, z)
    close_under_meek(graph)


def _v_structures(
    constraints: Constraints, skeleton: Skeleton, votes: Votes
) -> Iterator[tuple[str, str, str]]:
    """x, z, y that should be x → z ← y, the clearest votes first, then the most certainly separated pairs."""
    found: list[tuple[float, float, tuple[int, int, int]]] = []
    for (x, y), sets in sorted(votes.items()):
        for z in sorted(skeleton.neighbours[x] & skeleton.neighbours[y]):
            share = sum(z in given for _, given in sets) / len(sets)
            if share < 0.5:
                found.append((share, max(p for p, _ in sets), (x, z, y)))
    by_p = [found[k] for k in ranked(np.array([p for _, p, _ in found]), P_TIE).tolist()]
    for _, _, (x, z, y) in sorted(by_p, key=lambda one: one[0]):
        yield constraints.names[x], constraints.names[z], constraints.names[y]


def _may_join(constraints: Constraints, x: int, y: int) -> bool:
    return bool(constraints.allowed[x] >> y & 1 or constraints.allowed[y] >> x & 1)


def _must_join(constraints: Constraints, x: int, y: int) -> bool:
    return bool(constraints.required[x] >> y & 1 or constraints.required[y] >> x & 1)


def _both_ways(names: Sequence[str], neighbours: Sequence[set[int]]) -> Iterator[tuple[str, str]]:
    for x, near in enumerate(neighbours):
        for y in sorted(near):
            yield names[x], names[y]
