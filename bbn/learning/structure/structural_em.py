"""Structural EM: structure and tables from data with missing values and with variables that nobody has seen.

    repeat
        climb the likelihood of the current structure by EM
        complete every row in all ways, each weighted by its probability given what was observed
        search for the structure that scores best on the completed rows, beginning with the current one
    until the structure stays

Friedman (1997, 1998): counting weighted completions gives the expected counts of every family, so any structure search
works on them unchanged, and with the bic score the score of the observed data never falls. The cost of a round is that
of EM, plus a search on a table with one row for each completion of each distinct row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import REASONS, STOPS, all_or_nothing, limited, reason_of
from bbn.data import CodedTable
from bbn.data.reading import Reading
from bbn.kernels.watch import check
from bbn.learning.evaluation.resample import take
from bbn.learning.incomplete.em import fit_em
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.structure.completions import code_type, complete
from bbn.learning.structure.constraints import INSTEAD, Arcs, all_variables, ranked, tie_of
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.score_cache import score as score_of
from bbn.learning.tables.counted_cpt import normalised
from bbn.learning.tables.fit import fit
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, State, Variable


@keywords_checked
@limited(INSTEAD)
def structural_em(
    data: Any,
    hidden: Mapping[str, Sequence[State]] | None = None,
    *,
    score: Any = "bic",
    start: Any = None,
    max_parents: int | str | None = "auto",
    max_cells: float | None = None,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    restarts: int = 1,
    max_iter: int = 20,
    em_iter: int = 100,
    tol: float = 1e-6,
    seed: int | np.random.Generator = 0,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] = (),
    time_limit: float | None = None,
    progress: bool | None = None,
) -> FitResult:
    """Learn a network, structure and tables, from incomplete data.

    Parameters
    ----------
    data
        Anything tabular in memory; values may be missing anywhere.
    hidden
        Variables that were never observed, with their states.
    score
        The score of a structure on completed rows; see `bbn.score`. "bic" by default: the expected counts of
        completed rows are not observed counts, so a marginal likelihood of them means little.
    start
        The structure to begin with. By default what hill climbing finds in the rows without holes, if there are
        enough; with hidden variables the required arcs, and an arc from every hidden variable to every observed one,
        as a hidden variable without arcs would stay without.
    max_parents, max_cells, required, forbidden, tiers
        As in `bbn.hill_climb`.
    restarts
        How many times to begin with other random tables; the best result is kept.
    max_iter, em_iter
        The most rounds, and the most steps of EM in each.
    tol
        Stop when a round gains less than this share of the score.
    seed
        For the random tables that each start begins with; a number by default, as in `bbn.hill_climb`.
    states, weights, missing, unseen
        How to read the data.
    continuous
        The names of columns that hold numbers, which may be missing too. They become Gaussians, which cannot be parents
        of variables with states.
    time_limit
        The most seconds, after which the best so far is given; TimeLimitError where not even one round has ended.
        None is BBN_TIME_LIMIT, or else any time.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.

    Returns
    -------
    FitResult
        `log_likelihoods` and `objectives`, the log-likelihood less the bic penalty, after each round. Where Ctrl-C or
        the time limit ended it after the first round, it is the best so far, and `reason` tells.

    References
    ----------
    Friedman (1997), Learning belief networks in the presence of missing values and hidden variables.

    >>> rows = {"A": [0, 0, 1, 1, None] * 9, "B": [0, 0, 1, None, 1] * 9}
    >>> len(structural_em(rows).network.arcs)
    1
    """
    unseen_variables = [Variable(name, listed) for name, listed in (hidden or {}).items()]
    reading = Reading(states, weights, missing, unseen, continuous)
    source = reading.source(data, hidden=[v.name for v in unseen_variables])
    if not isinstance(source, CodedTable):
        raise DataError("structural_em completes rows and so needs data in memory")
    observed = [v for v in all_variables(source) if v.name not in (hidden or {})]
    variables = (*observed, *unseen_variables)
    limits = {
        "score": score,
        "max_parents": max_parents,
        "max_cells": max_cells,
        "required": list(required),
        "forbidden": list(forbidden),
        "tiers": tiers,
    }
    if start is None and not hidden:
        start = _from_complete_rows(source, limits)
    first = _start(start, observed, unseen_variables, limits)
    rng = np.random.default_rng(seed)
    results: list[FitResult] = []
    with progress_bar(progress, restarts * max_iter, "structural EM", "round") as advance:
        for _ in range(restarts):
            try:
                result = _run(first, source, variables, limits, max_iter, em_iter, tol, rng, advance)
            except STOPS as stop:  # in its first round
                reason = reason_of(stop)
                if not results:
                    raise
                results[-1] = _told(results[-1], reason)
                break
            results.append(result)
            if result.reason in REASONS:
                break
    finals = [float(result.objectives[-1]) for result in results]
    best = results[ranked(np.array(finals), tie_of(source.total))[0]]
    reason = results[-1].reason if results[-1].reason in REASONS else best.reason
    return _told(best, reason, finals)


def _told(result: FitResult, reason: str, finals: Sequence[float] = ()) -> FitResult:
    """A result with another reason, and the last objective of each start."""
    return FitResult(
        result.network, result.log_likelihoods.tolist(), result.objectives.tolist(), reason, finals
    )


def _run(
    structure: Any,
    source: CodedTable,
    variables: tuple[Variable, ...],
    limits: dict[str, Any],
    max_iter: int,
    em_iter: int,
    tol: float,
    rng: np.random.Generator,
    advance: Any,
) -> FitResult:
    """Rounds of EM and structure search from random tables."""
    unseen = {v.name: v.states for v in variables if v.name not in {*source.codes, *source.numbers}}
    net: Any = structure if source.numbers else _random_tables(structure, rng)
    rounds: list[FitResult] = []
    objectives: list[float] = []
    reason = "max_iter"
    tie = tie_of(source.total)
    try:
        for _ in range(max_iter):
            with all_or_nothing():
                climbed = fit_em(net, source, unseen, max_iter=em_iter, seed=rng, progress=False)
            objective = climbed.log_likelihood - 0.5 * math.log(source.total) * climbed.network.n_parameters
            if objectives and objective <= objectives[-1] + tie:
                reason = "converged"
                break
            small = bool(objectives) and objective <= objectives[-1] + tol * abs(objectives[-1])
            rounds.append(climbed)
            objectives.append(objective)
            advance(1, score=objective)
            check()
            completed = complete(climbed.network, source, variables)
            with all_or_nothing():
                graph = hill_climb(completed, start=climbed.network.graph, progress=False, **limits)
            gained = graph.graph["score"] - score_of(climbed.network, completed, limits["score"])
            if small or gained <= tie:
                reason = "converged"
                break
            net = _tables(graph, completed)
    except STOPS as stop:
        if not rounds:
            raise
        reason = reason_of(stop)
    return FitResult(rounds[-1].network, [r.log_likelihood for r in rounds], objectives, reason)


def _tables(graph: Any, source: CodedTable) -> BayesianNetwork:
    """The network of most likelihood on completed rows."""
    if source.numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the last round's fit says what is to be said
            return fit(graph, source, progress=False)
    variables = {v.name: v for v in source.variables}
    families = [(*graph.predecessors(name), name) for name in variables]
    cpts = []
    for family, counts in zip(families, source.counts(families), strict=True):
        *parents, child = (variables[name] for name in family)
        cpts.append(CPT.trusted(child, tuple(parents), normalised(counts)[0]))
    return BayesianNetwork(cpts)


def _random_tables(net: BayesianNetwork, rng: np.random.Generator) -> BayesianNetwork:
    """The structure with rows drawn near uniform, which breaks the symmetry between hidden states."""
    cpts = []
    for name in net.names:
        cpt = net[name]
        rows = rng.dirichlet(np.full(cpt.variable.card, 10.0), size=cpt.table.shape[:-1])
        cpts.append(CPT.trusted(cpt.variable, cpt.parents, np.asarray(rows)))
    return BayesianNetwork(cpts)


def _from_complete_rows(source: CodedTable, limits: dict[str, Any]) -> Any:
    """The structure that the rows without holes give, if there are enough of them: at least a tenth, and 30."""
    holes = np.zeros(source.n_rows, dtype=np.bool_)
    for v in source.variables:
        holes |= source.codes[v.name] == v.card
    for column in source.numbers.values():
        holes |= np.isnan(column)
    rows = np.flatnonzero(~holes)
    if len(rows) < max(30, source.n_rows // 10):
        return None
    with all_or_nothing():
        return hill_climb(take(source, rows), progress=False, **limits)


def _start(
    start: Any, observed: Sequence[Variable], unseen: Sequence[Variable], limits: dict[str, Any]
) -> Any:
    """The structure to begin with, checked against the constraints: a network with uniform tables, or a graph.

    Where there are numbers it is a graph, as there is no such thing as a uniform Gaussian; EM finds its own start.
    """
    variables = {v.name: v for v in (*observed, *unseen)}
    discrete = {n: v for n, v in variables.items() if not isinstance(v, Continuous)}
    # a table of one row each: the search makes no step, but checks the structure and the constraints
    blank = CodedTable(
        tuple(discrete.values()),
        {n: np.zeros(1, code_type(v.card)) for n, v in discrete.items()},
        1,
        numbers={n: np.zeros(1) for n in variables if n not in discrete},
    )
    arcs: Any = start
    if start is None:
        banned = {tuple(arc) for arc in limits["forbidden"]}
        against = {tuple(arc)[::-1] for arc in limits["required"]}
        arcs = [(h.name, v.name) for h in unseen for v in observed]
        arcs = [arc for arc in arcs if arc not in banned | against]
        if limits["tiers"] is not None:
            level = {name: i for i, tier in enumerate(limits["tiers"]) for name in tier}
            arcs = [(h, v) for h, v in arcs if not (h in level and v in level and level[h] > level[v])]
    graph = hill_climb(blank, start=arcs, max_iter=0, progress=False, **limits)
    if blank.numbers:
        return graph
    return BayesianNetwork(
        [CPT.uniform(variables[name], [variables[p] for p in graph.predecessors(name)]) for name in variables]
    )
