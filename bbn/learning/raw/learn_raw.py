"""Learning from columns that have been described: choose how numbers are modelled, search, fill in, fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.data import CodedTable, as_source
from bbn.data.describe import Description
from bbn.data.streams.readers import is_many
from bbn.learning.evaluation.resample import take
from bbn.learning.raw.candidates import (
    LINEAR,
    STRUCTURE_WORDS,
    TRAINED,
    Candidate,
    Judged,
    candidates,
    is_small,
    judge,
    modelled,
    number_candidates,
    search,
    structures_for,
    usual,
    usual_bins,
)
from bbn.learning.raw.holes import filled, fitted
from bbn.learning.raw.logistic import logistic_network
from bbn.learning.raw.raw_columns import RawColumns, cut, cut_variables
from bbn.learning.raw.small_families import table_prior
from bbn.learning.structure.score_cache import family_scorer
from bbn.learning.structure.structure import read_structure
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

MOST_COMPLETIONS = 20_000
"""With more ways than this to fill in all holes, arcs are searched on rows whose holes are filled at random."""


class RawProblem(NamedTuple):
    """Everything that learning from raw columns starts from."""

    raw: RawColumns
    structure: Any
    hidden: Any
    method: str
    free: bool
    """Whether the method was left open."""
    target: str | None
    prior: Any
    progress: bool | None
    options: Mapping[str, Any]
    numbers: str
    holes: tuple[str, ...]


class Learned(NamedTuple):
    """What was learned, for the report."""

    network: BayesianNetwork
    method: str
    detail: Any
    source: Any
    holes: tuple[str, ...]
    columns: Description | None = None
    numbers: str = ""
    strengths: dict[tuple[str, str], float] = {}  # noqa: RUF012
    notes: tuple[str, ...] = ()
    words: str = ""
    """The method, where it is not one of those that can be asked for."""
    chosen_by: str = ""
    """Why it was chosen."""
    passes: int | None = None
    """How often data that do not fit in memory were read."""
    predictor: BayesianNetwork | None = None
    """What predicts the target better than the network, if anything does."""


Run = Callable[..., tuple[BayesianNetwork, Any]]


def learn_raw(problem: RawProblem, run: Run) -> Learned:
    """Learn from described columns; `run` runs a method on a coded source."""
    raw = problem.raw
    many = is_many(raw.data)
    table = _counting(raw.coded()) if not many else raw.sample() if _looks_at_rows(problem) else None
    if table is None:  # states alone, all there: counting is enough
        return _counted(problem, run)
    if problem.structure is not None:
        return _known_structure(problem, table, many, run)
    way, judged = _choice(problem, table)
    if problem.method in ("hill-climb", "structural-em"):
        return _searched(problem, table, many, way, judged, run)
    return _by_method(problem, table, many, way, run)


def _counting(table: CodedTable) -> CodedTable:
    """The rows that count: those of weight 0 are no cases, so none is held out or drawn from."""
    if table.weights is None or table.weights.all() or not table.weights.any():
        return table
    return take(table, np.flatnonzero(table.weights))


def _looks_at_rows(problem: RawProblem) -> bool:
    """Whether rows must be seen one by one: for cuts, for choices, or for the search where values are missing."""
    return bool(problem.raw.numbers or problem.holes) or (problem.free and problem.target is not None)


def _counted(problem: RawProblem, run: Run) -> Learned:
    """Any method on data that do not fit in memory, all of whose columns are states without holes."""
    raw = problem.raw
    source = raw.opened(raw.variables)
    network, detail = run(
        problem.method,
        source,
        problem.structure,
        problem.hidden,
        problem.prior,
        problem.progress,
        problem.target,
        problem.options,
    )
    return Learned(
        network, problem.method, detail, source, problem.holes, raw.description, passes=source.passes + 1
    )


def _choice(problem: RawProblem, table: CodedTable) -> tuple[Candidate, list[Judged]]:
    """The candidate that is best on held-out rows, and all of them; the usual one where nothing is to be tried."""
    numbers = tuple(table.numbers)
    if numbers and problem.method not in ("hill-climb", "structural-em"):  # these take states alone
        return Candidate("cut"), []
    target = _predicted(problem)
    several = problem.free and not problem.hidden and not problem.options
    structures = structures_for(target, numbers) if several else ("hill-climb",)
    if target in numbers:
        ways = number_candidates(problem.numbers, structures, table.n_rows)
    else:
        ways = candidates(problem.numbers, bool(numbers), target is not None, structures, table.n_rows)
    if len(ways) == 1:
        return ways[0], []
    if problem.hidden or is_small(table):
        return usual(table, problem.numbers, target), []
    own = {k: v for k, v in problem.options.items() if k not in ("em_iter", "tol", "progress")}
    options = {"restarts": 0, "escapes": 0, **own}  # plain climbs tell the candidates apart
    judged = judge(table, ways, target, options, table_prior(problem.prior, problem.options))
    able = [own.candidate for own in judged if own.candidate.structure != TRAINED and np.isfinite(own.loss)]
    return able[0] if able else usual(table, problem.numbers, target), judged


def _predicted(problem: RawProblem) -> str | None:
    """The target, unless it is a number that is to be cut, or there are hidden variables, which take states alone."""
    number = problem.target in problem.raw.numbers
    return None if number and (problem.numbers == "cut" or problem.hidden) else problem.target


def _searched(
    problem: RawProblem, table: CodedTable, many: bool, way: Candidate, judged: list[Judged], run: Run
) -> Learned:
    """A structure by hill climbing, or the one that was best for the target, and its tables."""
    raw = problem.raw
    target = _predicted(problem)
    coded, cuts = modelled(table, way, target)
    gaussians = tuple(coded.numbers)
    variables: list[Variable] = [*raw.variables, *cuts.values(), *map(Continuous, gaussians)]
    source: Any = raw.opened(variables) if many else coded
    notes = _choice_notes(judged, target, raw.numbers)
    holes = bool(problem.holes)
    detail: Any = None
    words = ""
    options = dict(problem.options)
    exact = not gaussians and way.structure == "hill-climb"
    told = not problem.free and not many and not gaussians
    few = holes and not many and completions(coded) <= MOST_COMPLETIONS
    if told and (problem.method == "structural-em" or holes or problem.hidden):
        network, detail = run(
            problem.method, coded, None, problem.hidden, problem.prior, problem.progress, None, options
        )
    elif exact and (problem.hidden or few):
        network, detail = run(
            "structural-em", coded, None, problem.hidden, problem.prior, problem.progress, None, options
        )
    elif exact and not holes:
        network, detail = run(
            "hill-climb", source, None, None, problem.prior, problem.progress, None, options
        )
    else:
        options = {k: v for k, v in options.items() if k not in ("em_iter", "tol")}
        graph = search(filled(coded), way, target, options)
        prior = table_prior(problem.prior, problem.options)
        network, result, instead = fitted(graph, source, gaussians, prior)
        detail = result or graph
        words = STRUCTURE_WORDS[way.structure] if way.structure != "hill-climb" else "hill-climb"
        words += "" if not holes else ", then counting" if instead else ", then EM"
        notes += (instead,) if instead else ()
        if holes:
            notes += ("for the search, holes were filled with values drawn from their own columns",)
        if many:
            notes += (f"arcs were searched on a sample of {table.n_rows:,} rows",)
    predictor, said = _predictor(judged, table, target, many)
    method = problem.method if not words else "hill-climb"
    return Learned(
        network,
        way.structure if way.structure != "hill-climb" else method,
        detail,
        source,
        problem.holes,
        raw.description,
        way.numbers,
        strengths(network, coded),
        notes + said,
        words,
        f"{way} predicts {target!r} best on held-out rows" if judged and target is not None else "",
        _passes(source),
        predictor,
    )


def _predictor(
    judged: list[Judged], table: CodedTable, target: str | None, many: bool
) -> tuple[BayesianNetwork | None, tuple[str, ...]]:
    """What is fitted to predict the target, where that predicts better than any joint, and what to say of it."""
    if not judged or target is None or judged[0].candidate.structure != TRAINED:
        return None, ()
    way = judged[0].candidate
    source, _ = modelled(table, way, target)
    network, _ = logistic_network(source, target, way.strength, way.cuts == LINEAR)
    sampled = f", trained on a sample of {table.n_rows:,} rows" if many else ""
    return network, (
        f"beside the network, result.predictor: {way}{sampled}. It predicts {target!r} better from all columns, but is "
        "no joint distribution of them: the network answers all other questions",
    )


def _passes(source: Any) -> int | None:
    """The passes over data that do not fit in memory: one described them, one drew a sample."""
    passes = getattr(source, "passes", None)
    return None if passes is None else passes + 2


def _by_method(problem: RawProblem, table: CodedTable, many: bool, way: Candidate, run: Run) -> Learned:
    """Any other search, which takes complete columns of states only."""
    raw = problem.raw
    mdlp = problem.method == "tan" and problem.target is not None and problem.target not in table.numbers
    cuts = cut_variables(table, "mdlp" if mdlp else "quantiles", way.bins, problem.target if mdlp else None)
    coded = cut(table, cuts)
    source = raw.opened([*raw.variables, *cuts.values()]) if many else as_source(coded)
    network, detail = run(
        problem.method,
        source,
        None,
        problem.hidden,
        problem.prior,
        problem.progress,
        problem.target,
        problem.options,
    )
    return Learned(
        network,
        problem.method,
        detail,
        source,
        problem.holes,
        raw.description,
        "cut" if cuts else "",
        strengths(network, coded),
        passes=_passes(source),
    )


def _known_structure(problem: RawProblem, table: CodedTable, many: bool, run: Run) -> Learned:
    """The tables of a known structure: numbers are cut, or Gaussians where the structure allows them."""
    raw = problem.raw
    shape = read_structure(problem.structure)
    numbers = set(table.numbers)
    allowed = all(
        child in numbers
        for child, parents in shape.parents.items()
        for parent in parents
        if parent in numbers
    )
    gaussian = bool(numbers) and (
        problem.numbers == "gaussian" or (problem.numbers == "auto" and bool(shape.continuous))
    )
    if gaussian and not allowed and problem.numbers == "auto":
        gaussian = False
    cuts = {} if gaussian else cut_variables(table, "quantiles", usual_bins(table.n_rows))
    variables = [*raw.variables, *(map(Continuous, raw.numbers) if gaussian else cuts.values())]
    coded = table if gaussian else cut(table, cuts)
    source: Any = raw.opened(variables) if many else coded
    options = dict(problem.options)
    if gaussian:
        options["continuous"] = list(raw.numbers)
    network, detail = run(
        problem.method,
        source,
        problem.structure,
        problem.hidden,
        problem.prior,
        problem.progress,
        None,
        options,
    )
    found = {} if gaussian or problem.hidden else strengths(network, coded)
    how = "gaussian" if gaussian else "cut"
    return Learned(
        network,
        problem.method,
        detail,
        source,
        problem.holes,
        raw.description,
        how if numbers else "",
        found,
        passes=_passes(source),
    )


def completions(coded: CodedTable) -> float:
    """In how many ways all holes of a table can be filled in, added up over its rows."""
    logs = np.zeros(coded.n_rows)
    for variable in coded.variables:
        logs += np.where(coded.codes[variable.name] == variable.card, np.log(variable.card), 0.0)
    return float(np.exp(np.minimum(logs, 600)).sum())


def strengths(network: BayesianNetwork, coded: CodedTable) -> dict[tuple[str, str], float]:
    """By how much the score falls, in nats, if an arc is removed: BDeu, or BIC where there are Gaussians.

    Rows that miss a value of a family are left out of its score; holes of numbers are filled from their own columns.
    """
    there = {*(v.name for v in coded.variables), *coded.numbers}
    arcs = [(a, b) for a, b in network.arcs if {a, b, *network.parents(b)} <= there]
    families: list[tuple[str, ...]] = []
    for parent, child in arcs:
        others = tuple(name for name in network.parents(child) if name != parent)
        families += [(*network.parents(child), child), (*others, child)]
    if not families:
        return {}
    gaussian = bool(coded.numbers)
    terms = family_scorer(filled(coded) if gaussian else coded, "bic" if gaussian else "bdeu")(families)
    found = {arc: float(terms[2 * i] - terms[2 * i + 1]) for i, arc in enumerate(arcs)}
    return {arc: strength for arc, strength in found.items() if np.isfinite(strength)}


def _choice_notes(judged: list[Judged], target: str | None, numbers: Sequence[str]) -> tuple[str, ...]:
    """What was tried, and how well it did on held-out rows."""
    if not judged:
        return ()
    what = "−ln density of a row"
    if target is not None:
        what = (
            f"error of {target!r} (root of its mean square)"
            if target in numbers
            else f"log loss of {target!r}"
        )
    tried = "; ".join(f"{judged_one.candidate} {judged_one.loss:.4g}" for judged_one in judged[:6])
    return (f"held-out {what}, lower is better: {tried}",)
