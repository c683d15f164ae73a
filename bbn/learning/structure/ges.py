"""Greedy equivalence search: over classes of equivalent structures, one edge at a time.

    climb:      the best Delete(X, Y, H) if one gains, else the best Turn(X, Y, C), else the best Insert(X, Y, T),
                until none gains
    escapes:    for each edge of the best class, the weakest first: part it, climb without it, climb on; keep what
                scores higher

Where it ends, no single operator raises the score, and with enough data that is the class of the truth (Chickering
2002, theorem 4). Finite data make it stop short at times; deletions before insertions, and parting edges one by one and
climbing again, mend most of that (XGES, Nazaret & Blei 2024). The operators are in `class_search`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import STOPS, limited, reason_of
from bbn.data.reading import Reading
from bbn.learning.structure.class_search import ClassSearch
from bbn.learning.structure.classes import class_of
from bbn.learning.structure.constraints import (
    INSTEAD,
    Constraints,
    all_variables,
    complete_source,
    to_graph,
)
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import State

if TYPE_CHECKING:
    import networkx as nx

UNEQUAL = ("k2", "bds", "fnml")
"""Scores that give equivalent structures different values, so a class has none."""


@keywords_checked
@limited(INSTEAD)
def ges(
    data: Any,
    score: Any = "bic",
    max_parents: int | None = None,
    *,
    escapes: int | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> nx.DiGraph[str]:
    """Learn a class of equivalent structures by greedy search over such classes.

    Parameters
    ----------
    data
        Anything tabular, without missing values.
    score
        A score that equivalent structures share: "bic" (also "mdl"), "aic", "bdeu", `bbn.BDeu(10)`,
        "log-likelihood"; with numbers "bic", "aic", "bic-cg", "aic-cg", "loglik-cg", or of numbers alone "bic-g",
        "aic-g", "loglik-g", "bge". "bic" by default, for which the search is known to end at the truth as data grow.
    max_parents
        The most parents of a variable in the members that the search looks at, or None for no limit.
    escapes
        How many rounds of escapes to make at most; None until one round finds nothing better, 0 for none.
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
        `bbn.fit`. `graph["score"]` is the score of its members, `graph["n_iter"]` the number of operators applied,
        `graph["n_families"]` that of families scored, and `graph["interrupted"]` whether Ctrl-C or the time limit
        ended the search, which then gives the best class found so far.

    Raises
    ------
    ValueError
        The score is "k2", "bds" or "fnml", which differ between equivalent structures.
    DataError
        Values are missing, or the score does not take the kinds of the columns.

    See Also
    --------
    hill_climb : the same scores, over single structures, with constraints on arcs.
    pc : classes from tests of independence.

    References
    ----------
    Chickering (2002), Optimal structure identification with greedy search.

    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).integers(2, size=(2, 500))
    >>> sorted(ges({"A": a, "B": b, "C": a & b}).edges)
    [('A', 'C'), ('B', 'C')]
    """
    if score in UNEQUAL:
        raise ValueError(
            f"score={score!r} gives equivalent structures different values; bbn.ges takes 'bic', 'aic', 'bdeu' or "
            "another that does not"
        )
    source = complete_source(data, "ges", Reading(states, weights, missing, unseen, continuous))
    # by name, so that ties fall alike whatever the order of the columns
    variables = sorted(all_variables(source), key=lambda v: v.name)
    constraints = Constraints(variables, max_parents=max_parents)
    cache = ScoreCache(source, score, constraints.names)
    search = ClassSearch(cache, constraints)
    interrupted = False
    with progress_bar(progress, None, "ges", "step") as advance:
        try:
            search.climb(advance)
            rounds = 0
            while (escapes is None or rounds < escapes) and search.escape(advance):
                rounds += 1
        except STOPS as stop:
            interrupted = bool(reason_of(stop))
    return to_graph(
        all_variables(source),
        class_of(search.best, constraints.numeric).edges(constraints.names),
        score=search.best_score,
        n_iter=search.n_iter,
        n_families=cache.n_evaluated,
        interrupted=interrupted,
    )
