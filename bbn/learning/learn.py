"""Learning in one call: any raw table, structure known or not, data complete or not.

================  ============================================  ============================================
                  complete data                                 missing values or hidden variables
================  ============================================  ============================================
structure known   counting (`fit`)                              EM (`fit_em`)
structure open    hill climbing, then counting                  structural EM (`structural_em`)
================  ============================================  ============================================

(Russell & Norvig, Artificial Intelligence; Friedman 1998 for the last.) Before that, columns are read as `describe`
says; numbers are cut into intervals or become Gaussians, whichever explains held-out rows better (see `candidates`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from time import perf_counter as clock
from typing import Any, NamedTuple

from bbn.core.display import counted
from bbn.core.errors import BBNWarning, DataError, TooManyParametersWarning, nearest
from bbn.core.keywords import unknown_keyword
from bbn.core.threads import all_or_nothing
from bbn.data import DataSource, as_source
from bbn.data.describe import Description
from bbn.data.reading import Reading
from bbn.data.source import is_source
from bbn.data.streams.readers import is_many
from bbn.learning.incomplete.em import fit_em
from bbn.learning.incomplete.gradient import fit_gradient
from bbn.learning.learn_result import LearnResult, arc_lines, column_lines
from bbn.learning.raw.learn_raw import Learned, RawProblem, learn_raw
from bbn.learning.raw.marginals import with_shares
from bbn.learning.raw.raw_columns import RawColumns, read_raw
from bbn.learning.raw.small_families import TOO_MANY, bounded_search, left_out, table_prior
from bbn.learning.structure.chow_liu import chow_liu, tan
from bbn.learning.structure.exact.exact_search import exact_search
from bbn.learning.structure.ges import ges
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.k2 import k2
from bbn.learning.structure.pc import pc
from bbn.learning.structure.structural_em import structural_em
from bbn.learning.structure.structure import read_structure
from bbn.learning.tables.fit import fit
from bbn.learning.tables.priors import BackOff, Prior
from bbn.learning.time.lagged import Told
from bbn.learning.time.learn_sequences import Steps, learn_sequences
from bbn.model.equivalence import is_cpdag, to_dag
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State

TABLES: dict[str, Callable[..., Any]] = {"mle": fit, "em": fit_em, "gradient": fit_gradient}
"""Methods for the tables of a known structure."""
STRUCTURES: dict[str, Callable[..., Any]] = {
    "hill-climb": hill_climb,
    "exact": exact_search,
    "k2": k2,
    "chow-liu": chow_liu,
    "tan": tan,
    "pc": pc,
    "ges": ges,
    "structural-em": structural_em,
}
"""Methods that learn the structure too."""
METHODS = ("auto", *TABLES, *STRUCTURES)
NUMBERS = ("auto", "cut", "gaussian")
"""How numbers may be modelled."""


def learn(
    data: Any,
    structure: Any = None,
    hidden: Mapping[str, Sequence[State]] | None = None,
    method: str = "auto",
    *,
    numbers: str = "auto",
    kinds: Mapping[str, str] | None = None,
    target: str | None = None,
    prior: Prior | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = (),
    decimal: str | Mapping[str, str] | None = None,
    sequence: str | None = None,
    time: str | None = None,
    lag: int | None = None,
    progress: bool | None = None,
    **options: Any,
) -> LearnResult:
    """Learn a network from any table: whatever its columns hold, whatever is known, and whatever is missing.

    Parameters
    ----------
    data
        Anything tabular: a DataFrame of pandas, polars or pyarrow, a dict of columns, a path to CSV or Parquet, a
        folder, a Dask DataFrame, or what `bbn.open_data` gave.
    structure
        A DiGraph, a list of arcs or a network, if the structure is known.
    hidden
        Variables that were never observed, with their states.
    method
        "auto" chooses by what is known (see the report); or "mle", "em", "gradient" for the tables of a known
        structure, "hill-climb", "exact", "k2", "chow-liu", "tan", "pc", "ges", "structural-em" for an unknown
        one.
    numbers
        How columns of numbers are modelled: "cut" into intervals (`Binned`), as they are by "gaussian" distributions,
        or "auto": whichever predicts the target better in held-out rows, or without a target has the better density of
        a row.
    kinds
        Column to its kind, where you know better than `bbn.describe`: "category", "number", "whole number",
        "truth value", "date", "identifier", "constant", "counts", or "drop".
    target
        A column that the network is to predict. With method="auto", hill climbing, TAN and naive Bayes are tried, and
        the one with the best held-out log loss is taken; what predicts better still, but is no joint distribution,
        stands beside it as `predictor`. A target that is a number stays one: the way with the smallest held-out error,
        in the target's own units, is taken, and `network.predict` gives numbers.
    prior
        The prior of the tables: `BDeu`, `Dirichlet` or `MEstimate`. None is maximum likelihood where the structure is
        given. Where it is searched for, None is two rows that do what the child does in other rows with few counts, so
        that no row is impossible for want of counts (or BDeu as the structure was scored, with `score=bbn.BDeu(…)`).
        Tables whose variables then do not have the shares of their columns are raked to them.
    states
        Column to its states, in the order they are to have, or to a variable such as `Binned`.
    weights
        One weight per row, or the name of the column that holds them. A column called Freq, count or n beside
        categories is taken without being named; the report says so.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        Names of columns that are Gaussians, besides those that the structure says are.
    decimal
        The decimal mark of text that is numbers, "," or ".", or column to mark. Needed only where the text does not
        tell: "1,234" is a thousand or 1.234.
    sequence, time
        Where rows are steps of sequences, the columns that say of which, and which step: what is learned is then a
        `DynamicNetwork`. Numbers stay numbers unless numbers="cut".
    lag
        How many steps back arcs may reach: 1 where there are sequences. Given alone, the rows are one sequence.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    **options
        Go to the method: `order` for k2, `restarts`, `seed`, `score`, `max_parents`, `required`, `forbidden`,
        `max_cells` (5 per row unless given, see `hill_climb`), `time_limit`, …

    Returns
    -------
    LearnResult
        With `network`, `report` (print it), `columns` (what was done with each), `strengths` of the arcs, and for a
        target perhaps a `predictor`.

    Raises
    ------
    DataError
        If the data have no rows, no column is left to learn from, or a name is not a column.
    TypeError
        If the method does not take an option; the message names the nearest that it takes.

    Warns
    -----
    TooManyParametersWarning
        If there are more than ten times as many free parameters as rows.

    See Also
    --------
    bbn.describe : what each column holds, before anything is learned.
    bbn.cross_validate : how well what is learned predicts rows that it has not seen.

    >>> result = learn({"Rain": ["yes", "no", "no", "yes"] * 9, "Wet": ["yes", "no", "no", "yes"] * 9})
    >>> result.network
    <BayesianNetwork: 2 nodes, 1 arc>
    >>> print(result.report.splitlines()[0])
    structure unknown, data complete: hill-climb, then counting
    """
    _check(method, numbers)
    continuous = () if continuous is None else continuous
    decided = is_source(data) and not is_many(data)
    if decided and kinds:
        raise DataError("kinds= comes too late for data that are coded already; say it where they are read")
    if any(own is not None for own in (sequence, time, lag)):
        steps = Steps(
            Told(sequence, time), lag, kinds, states, weights, missing, unseen, continuous, decimal, numbers
        )
        if structure is None:
            check_options("hill-climb", options)
        if target is not None:
            raise DataError(
                "target= chooses what predicts a column of rows that do not depend on each other; without it, filter, "
                "smooth and forecast of the dynamic network give any column of any step"
            )
        return learn_sequences(data, structure, hidden, method, prior, options, steps)
    began = clock()
    given = _Given(structure, hidden, method, target, prior, progress, unseen, options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BBNWarning)
        if decided or _declares_all(structure, states, continuous):
            reading = {"states": states, "weights": weights, "missing": missing, "unseen": unseen}
            if decimal is not None:
                reading["decimal"] = decimal
            if continuous:
                reading["continuous"] = continuous
            learned = _learn_coded(data, given, reading)
        else:
            names = None if structure is None else _observed(structure, hidden)
            raw = read_raw(data, kinds, states, weights, missing, continuous, names, target, decimal)
            learned = _learn_raw(raw, given, "gaussian" if continuous else numbers)
        if structure is None and isinstance(table_prior(prior, options), BackOff):
            network, said = with_shares(learned.network, learned.source, bool(learned.holes))
            learned = learned._replace(network=network, notes=(*learned.notes, *([said] if said else [])))
    told = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    return _result(learned, given, told, clock() - began)


class _Given(NamedTuple):
    """What the caller said, besides the data."""

    structure: Any
    hidden: Any
    method: str
    target: str | None
    prior: Any
    progress: bool | None
    unseen: str
    options: dict[str, Any]


def _check(method: str, numbers: str) -> None:
    if method not in METHODS:
        raise ValueError(
            f"unknown method {method!r}{nearest(method, METHODS)}; the methods are {', '.join(METHODS)}"
        )
    if numbers not in NUMBERS:
        raise ValueError(f"numbers is {numbers!r}{nearest(numbers, NUMBERS)}")


def _declares_all(structure: Any, states: Any, continuous: Any) -> bool:
    """Whether a known structure says what each of its columns holds, so that nothing is left to decide."""
    if structure is None:
        return False
    shape = read_structure(structure)
    declared = {*shape.states, *shape.continuous, *(states or ()), *continuous}
    return isinstance(structure, BayesianNetwork) or set(shape.names) <= declared


def _observed(structure: Any, hidden: Any) -> list[str]:
    return [name for name in read_structure(structure).names if name not in set(hidden or ())]


def chosen_method(given: _Given, holes: Sequence[str]) -> str:
    """The method: as it was asked for, or by what is known and what is missing."""
    chosen = given.method
    known = given.structure is not None
    if chosen == "auto":
        chosen = (("mle", "em") if known else ("hill-climb", "structural-em"))[bool(holes)]
    if not known and chosen in TABLES:
        raise DataError(
            f"method={chosen!r} learns the tables of a known structure, but there is no structure=; "
            f"for an unknown one there are {', '.join(STRUCTURES)}"
        )
    if known and chosen in STRUCTURES:
        raise DataError(
            f"method={chosen!r} learns the structure, but structure= gives it; give start= to begin with it"
        )
    check_options(chosen, given.options)
    return chosen


def check_options(chosen: str, options: Mapping[str, Any]) -> None:
    """TypeError for an option that the method does not take, with the nearest that it or `learn` takes."""
    function = {**TABLES, **STRUCTURES}[chosen]
    taken = set(inspect.signature(inspect.unwrap(function)).parameters)
    own = set(inspect.signature(learn).parameters)
    for name in options:
        if name not in taken or name in ("options", "data", "structure"):
            known = sorted((taken | own) - {"options", "data"})
            raise unknown_keyword(f"learn() with method={chosen!r}", name, known)


def _learn_raw(raw: RawColumns, given: _Given, numbers: str) -> Learned:
    """Learn from a table whose columns have been described."""
    holes = [*raw.description.incomplete, *(given.hidden or ())]
    chosen = chosen_method(given, holes)
    runner = RawProblem(
        raw,
        given.structure,
        given.hidden,
        chosen,
        given.method == "auto",
        given.target,
        given.prior,
        given.progress,
        given.options,
        numbers,
        tuple(holes),
    )
    return learn_raw(runner, run)


def _learn_coded(data: Any, given: _Given, reading: dict[str, Any]) -> Learned:
    """Learn from data that are coded, or whose states are all declared."""
    unseen = list(given.hidden or ())
    if given.structure is None:
        source = as_source(data, hidden=unseen, **reading)
    else:
        from bbn.learning.structure.structure import observe

        shape = read_structure(given.structure)
        _, source = observe(shape, data, Reading(**reading), given.hidden)
    holes = (*source.incomplete, *unseen)
    chosen = chosen_method(given, holes)
    options = dict(given.options)
    if reading.get("continuous") and chosen in ("mle", "em"):
        options["continuous"] = reading["continuous"]
    network, detail = run(
        chosen, source, given.structure, given.hidden, given.prior, given.progress, given.target, options
    )
    return Learned(network, chosen, detail, source, holes)


def run(
    chosen: str,
    source: DataSource,
    structure: Any,
    hidden: Any,
    prior: Any,
    progress: bool | None,
    target: str | None,
    options: Mapping[str, Any],
) -> tuple[BayesianNetwork, Any]:
    """The network of a coded source, and what the method gave on the way."""
    if chosen == "mle":
        return fit(structure, source, prior, progress=progress, **options), None
    if chosen in TABLES:
        result = TABLES[chosen](structure, source, hidden, prior, progress=progress, **options)
        return result.network, result
    smooth = table_prior(prior, options)
    if chosen == "structural-em":
        result = bounded_search(structural_em, source, options, hidden=hidden, progress=progress)
        states = {v.name: v.states for v in result.network.variables if v.name in (hidden or {})}
        end = fit_em(result.network, source, states or None, smooth, max_iter=100, seed=0, progress=False)
        return end.network, result
    if hidden:
        raise DataError(f"method={chosen!r} takes no hidden variables; 'structural-em' does")
    settings = dict(options)
    if chosen == "tan":
        if target is None:
            raise DataError("method='tan' needs target=, the class variable")
        settings["target"] = target
    if chosen not in ("chow-liu", "tan"):
        settings.setdefault("progress", progress)
    with all_or_nothing() if chosen == "pc" else nullcontext():  # too many edges are no use
        if chosen == "hill-climb":
            graph = bounded_search(hill_climb, source, settings)
        else:
            graph = STRUCTURES[chosen](source, **settings)
    return fit(to_dag(graph) if is_cpdag(graph) else graph, source, smooth), graph


def _result(learned: Learned, given: _Given, told: tuple[str, ...], seconds: float) -> LearnResult:
    """The result, with its report."""
    network, chosen, detail, source, holes = learned[:5]
    n_rows = int(source.n_rows)
    n_free = network.n_parameters
    if n_free > TOO_MANY * max(source.total, 1):
        worst = max(network.names, key=lambda name: network[name].n_parameters)
        sentence = (
            f"{n_free:,} free parameters from {n_rows:,} rows, most of them in {worst!r}; "
            "leave columns out (kinds=), or allow fewer parents (max_parents=)"
        )
        told = (*told, sentence)
        warnings.warn(sentence, TooManyParametersWarning, stacklevel=3)
    lines = [
        f"structure {'unknown' if given.structure is None else 'known'}, "
        f"data {'incomplete' if holes else 'complete'}: {learned.words or chosen}"
        + (", then counting" if chosen in STRUCTURES and not holes else ""),
        _why(chosen if not learned.words else "", given.method, list(holes), learned.chosen_by),
        f"{counted(n_rows, 'row')}, {counted(len(network), 'variable')}, {counted(len(network.arcs), 'arc')}, "
        f"{counted(n_free, 'free parameter')}",
    ]
    score = getattr(detail, "graph", {}).get("score")
    if score is not None:
        lines.append(f"score of the structure: {score:.6f}")
    if getattr(detail, "graph", {}).get("interrupted"):
        lines.append("the search was stopped: the structure is the best found by then")
    if hasattr(detail, "log_likelihoods"):
        lines.append(
            f"log-likelihood {detail.log_likelihood:.6f} after {counted(detail.n_iter, 'step')}, {detail.reason}"
        )
    passes = getattr(source, "passes", None) if learned.passes is None else learned.passes
    if passes is not None:
        lines.append(f"{passes} pass{'es' * (passes != 1)} over the data")
    lines += [*learned.notes, *left_out(detail, n_rows)]
    lines += [f"note: {sentence}" for sentence in told]
    lines.append(f"{seconds:.2f} s")
    columns: Description | None = learned.columns
    if columns is not None:
        lines += ["", *column_lines(columns, network), "", *arc_lines(learned.strengths, network)]
    return LearnResult(
        network,
        chosen,
        "\n".join(lines),
        detail,
        columns,
        learned.numbers,
        learned.strengths,
        told,
        learned.predictor,
    )


def _why(chosen: str, method: str, holes: list[str], chosen_by: str) -> str:
    """Why this method."""
    if method != "auto":
        return f"method={method!r} was asked for"
    if chosen_by:
        return chosen_by
    shown = ", ".join(map(repr, holes[:4])) + (", …" if len(holes) > 4 else "")
    return {
        "": f"values are missing in {shown}, so arcs are searched on filled-in rows, and EM learns the tables"
        if holes
        else "arcs are added, deleted and reversed by their score",
        "mle": "the structure is given and every value is there, so counting is all there is to do",
        "em": f"the structure is given, but values are missing in {shown}, so EM fills them in by expectation",
        "hill-climb": "nothing is given but complete data, so arcs are added, deleted and reversed by their bdeu score",
        "structural-em": f"no structure is given and values are missing in {shown}, so search and EM alternate",
    }[chosen]
