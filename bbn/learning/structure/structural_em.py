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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import memory_limit, require_memory
from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.data import CodedTable, DataSource
from bbn.data.reading import Reading
from bbn.learning.evaluation.resample import take
from bbn.learning.incomplete.em import fit_em
from bbn.learning.incomplete.fit_result import FitResult
from bbn.learning.structure.constraints import Arcs, ranked, require_discrete, tie_of
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.scores import score as score_of
from bbn.learning.tables.fit import normalised
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State, Variable


@keywords_checked
def structural_em(
    data: Any,
    hidden: Mapping[str, Sequence[State]] | None = None,
    *,
    score: Any = "bic",
    start: Any = None,
    max_parents: int | None = 5,
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
    max_parents, required, forbidden, tiers
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
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.

    Returns
    -------
    FitResult
        `log_likelihoods` and `objectives`, the log-likelihood less the bic penalty, after each round.

    References
    ----------
    Friedman (1997), Learning belief networks in the presence of missing values and hidden variables.

    >>> rows = {"A": [0, 0, 1, 1, None] * 9, "B": [0, 0, 1, None, 1] * 9}
    >>> len(structural_em(rows).network.arcs)
    1
    """
    unseen_variables = [Variable(name, listed) for name, listed in (hidden or {}).items()]
    reading = Reading(states, weights, missing, unseen)
    source = reading.source(data, hidden=[v.name for v in unseen_variables])
    require_discrete(source, "structural_em")
    if not isinstance(source, CodedTable):
        raise DataError("structural_em completes rows and so needs data in memory")
    observed = [v for v in source.variables if v.name not in (hidden or {})]
    variables = (*observed, *unseen_variables)
    limits = {
        "score": score,
        "max_parents": max_parents,
        "required": list(required),
        "forbidden": list(forbidden),
        "tiers": tiers,
    }
    if start is None and not hidden:
        start = _from_complete_rows(source, limits)
    first = _start(start, observed, unseen_variables, limits)
    rng = np.random.default_rng(seed)
    results = []
    with progress_bar(progress, restarts * max_iter, "structural EM", "round") as advance:
        for _ in range(restarts):
            result = _run(first, source, variables, limits, max_iter, em_iter, tol, rng, advance)
            results.append(result)
            if result.reason == "interrupted":
                break
    finals = [float(result.objectives[-1]) for result in results]
    best = results[ranked(np.array(finals), tie_of(source.total))[0]]
    return FitResult(
        best.network, best.log_likelihoods.tolist(), best.objectives.tolist(), best.reason, finals
    )


def _run(
    structure: BayesianNetwork,
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
    unseen = {v.name: v.states for v in variables if v.name not in source.codes}
    net = _random_tables(structure, rng)
    rounds: list[FitResult] = []
    objectives: list[float] = []
    reason = "max_iter"
    tie = tie_of(source.total)
    try:
        for _ in range(max_iter):
            climbed = fit_em(net, source, unseen, max_iter=em_iter, progress=False)
            objective = climbed.log_likelihood - 0.5 * math.log(source.total) * climbed.network.n_parameters
            if objectives and objective <= objectives[-1] + tie:
                reason = "converged"
                break
            small = bool(objectives) and objective <= objectives[-1] + tol * abs(objectives[-1])
            rounds.append(climbed)
            objectives.append(objective)
            advance(1, score=objective)
            completed = complete(climbed.network, source, variables)
            graph = hill_climb(completed, start=climbed.network.graph, progress=False, **limits)
            gained = graph.graph["score"] - score_of(climbed.network, completed, limits["score"])
            if small or gained <= tie:
                reason = "converged"
                break
            net = _tables(graph, completed)
    except KeyboardInterrupt:
        if not rounds:
            raise
        reason = "interrupted"
    return FitResult(rounds[-1].network, [r.log_likelihood for r in rounds], objectives, reason)


def complete(net: BayesianNetwork, source: CodedTable, variables: Sequence[Variable]) -> CodedTable:
    """Every row in all its completions, each with the row's weight times P(completion | what was observed)."""
    block = source.merged()
    n = block.n_rows
    codes = {v.name: block.codes.get(v.name, np.full(n, v.card, dtype=_dtype(v.card))) for v in variables}
    holes = np.stack([codes[v.name] == v.card for v in variables], axis=1)
    cards = np.array([float(v.card) for v in variables])
    completions = np.where(holes, cards, 1.0).prod(axis=1)
    require_memory(
        int(completions.sum()) * (len(variables) * 2 + 32),
        f"all completions of {n} distinct rows with up to {int(holes.sum(axis=1).max(initial=0))} missing values",
        "leave out columns or rows with many missing values, or learn the tables of a known structure by bbn.fit_em",
        memory_limit(),
    )
    patterns, which = np.unique(holes, axis=0, return_inverse=True)
    parts: list[dict[str, NDArray[Any]]] = []
    shares: list[Array] = []
    for k, pattern in enumerate(patterns):
        rows = np.flatnonzero(which.reshape(-1) == k)
        open_variables = [v for v, hole in zip(variables, pattern, strict=True) if hole]
        shape = [v.card for v in open_variables]
        count = math.prod(shape)
        settings = np.indices(shape).reshape(len(shape), count)
        part = {name: np.repeat(column[rows], count) for name, column in codes.items()}
        for v, states in zip(open_variables, settings, strict=True):
            part[v.name] = np.tile(states.astype(_dtype(v.card)), len(rows))
        logs = log_joint(net, part).reshape(len(rows), count)
        logs -= logs.max(axis=1, keepdims=True)
        share = np.exp(logs)
        share *= (block.weights[rows] / share.sum(axis=1))[:, None]
        keep = share.reshape(-1) > 0
        parts.append({name: column[keep] for name, column in part.items()})
        shares.append(share.reshape(-1)[keep])
    joined = {v.name: np.concatenate([part[v.name] for part in parts]) for v in variables}
    together = np.concatenate(shares)
    return CodedTable(tuple(variables), joined, len(together), together)


def log_joint(net: BayesianNetwork, codes: Mapping[str, NDArray[Any]]) -> Array:
    """ln P of complete rows, by the chain rule."""
    total = np.zeros(len(next(iter(codes.values()))))
    with np.errstate(divide="ignore"):
        for name in net.names:
            cpt = net[name]
            total += np.log(cpt.table)[tuple(codes[v.name] for v in (*cpt.parents, cpt.variable))]
    return total


def _tables(graph: Any, source: DataSource) -> BayesianNetwork:
    """The network of most likelihood on completed rows."""
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
    rows = np.flatnonzero(~holes)
    if len(rows) < max(30, source.n_rows // 10):
        return None
    return hill_climb(take(source, rows), progress=False, **limits)


def _start(
    start: Any, observed: Sequence[Variable], unseen: Sequence[Variable], limits: dict[str, Any]
) -> BayesianNetwork:
    """The structure to begin with, checked against the constraints, as a network with uniform tables."""
    variables = {v.name: v for v in (*observed, *unseen)}
    # a table of one row each: the search makes no step, but checks the structure and the constraints
    blank = CodedTable(
        tuple(variables.values()), {n: np.zeros(1, _dtype(v.card)) for n, v in variables.items()}, 1
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
    return BayesianNetwork(
        [CPT.uniform(variables[name], [variables[p] for p in graph.predecessors(name)]) for name in variables]
    )


def _dtype(card: int) -> type[np.unsignedinteger[Any]]:
    return np.uint8 if card <= 255 else np.uint16
