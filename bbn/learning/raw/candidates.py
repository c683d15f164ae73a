"""Ways to model raw columns, and which of them best explains rows that it has not seen.

Numbers can be cut into intervals or stay numbers with Gaussians, and a target can be predicted by several structures.
Each way learns from two thirds of the rows and is judged on the rest, three times (once where there are many rows): by
the mean log loss of a target with states, by the error of one that is a number, or without a target by the mean log
density of a row. An interval's probability is spread evenly over its width, so that cuts and Gaussians are
comparable. A target that is a number stays one: where the other columns are cut, it is a Gaussian given them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import BBNError, BBNWarning, DataError, TimeLimitError
from bbn.core.threads import all_or_nothing
from bbn.data import CodedTable
from bbn.learning.evaluation.resample import take
from bbn.learning.raw.held_out import Built, loss_of
from bbn.learning.raw.holes import filled, fitted
from bbn.learning.raw.logistic import logistic_network
from bbn.learning.raw.raw_columns import cut, cut_variables
from bbn.learning.raw.small_families import TOO_MANY, bounded_search, is_wide, n_parameters
from bbn.learning.raw.target_structures import linked_gaussians, naive_bayes, selective, target_last
from bbn.learning.structure.chow_liu import tan
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.tables.priors import Prior
from bbn.model.binned import Binned

JUDGED = 6_000
"""The most rows that candidates are judged on."""
JUDGED_WIDE = 1_500
"""The most where there are so many columns that a search is one plain climb."""
FOLDS = 3
BINS = (3, 5, 8)
"""How many intervals quantiles are tried with."""
FEW = 50
"""With fewer rows numbers are cut into three intervals; eight are tried only with ten times as many rows."""
WITH_NUMBERS = (
    "bic",
    "mdl",
    "aic",
    "log-likelihood",
    "bic-cg",
    "aic-cg",
    "loglik-cg",
    "bic-g",
    "aic-g",
    "bge",
)
"""The scores that take columns of numbers; where another is asked for, Gaussians are searched by bic."""
STRENGTHS = (1.0, 0.1)
"""Of naive Bayes trained to predict: one over the weights of the penalty that are tried."""
LINEAR = "linear"
"""Said of cuts: naive Bayes trained to predict takes whole numbers that are states as numbers."""
MOST_STEPS = 2e6
"""Naive Bayes is trained where an iteration takes no more steps than this, of about 2 nanoseconds."""
STEPS_OF_WEIGHT = 20
"""What the search for better weights takes for each of them."""
EM_STEPS = 20
"""The most steps of EM for a candidate; they tell candidates apart, whose tables are learned anew."""
FEW_ROWS = 18
"""With fewer rows than this nothing can be held out, so nothing is tried out."""
MOST_JUDGED_COLUMNS = 100
"""With more columns than this nothing is tried out: a search would take too long to do several times."""


STRUCTURE_WORDS = {
    "hill-climb": "hill climbing",
    "tan": "TAN",
    "naive-bayes": "naive Bayes",
    "selective": "naive Bayes on chosen columns",
    "target-last": "hill climbing with the target last",
    "linked": "naive Bayes with linked numbers",
    "all-numbers": "regression on all numbers",
    "logistic": "naive Bayes trained to predict",
}
"""The structures that are tried, and what they are called."""
TRAINED = "logistic"
"""The one that is fitted to predict, so that it is no joint distribution of the columns: a predictor alone."""
OF_STATES = ("hill-climb", "tan", "naive-bayes", "selective", "target-last", "linked", TRAINED)
"""The structures for a target with states."""
OF_NUMBERS = ("hill-climb", "target-last", "all-numbers")
"""The structures for a target that is a number."""


class Candidate(NamedTuple):
    """One way to model raw columns.

    Attributes
    ----------
    numbers
        "cut" or "gaussian"; empty where there are no numbers.
    cuts, bins
        How numbers are cut, "quantiles" or "mdlp" (towards the target), and into how many intervals. For Gaussians the
        cuts that arcs are searched with.
    structure
        "hill-climb"; for a target also "tan", "naive-bayes", "selective", "target-last", "linked" (Gaussians alone),
        "all-numbers" (a target that is a number) or "logistic".
    strength
        Of "logistic": one over the weight of its penalty.
    """

    numbers: str
    cuts: str = "quantiles"
    bins: int = 5
    structure: str = "hill-climb"
    strength: float = 1.0

    def __str__(self) -> str:
        how = {
            "": "",
            "gaussian": "Gaussians, ",
            "cut": "cuts towards the target, " if self.cuts == "mdlp" else f"{self.bins} intervals, ",
        }[self.numbers]
        linear = ", linear" if self.cuts == LINEAR else ""
        penalty = f" (penalty {1 / self.strength:g}{linear})" if self.structure == "logistic" else ""
        return f"{how}{STRUCTURE_WORDS[self.structure]}{penalty}"


class Judged(NamedTuple):
    """A candidate and its mean loss on rows that it has not seen; infinite where it cannot be learned."""

    candidate: Candidate
    loss: float


def structures_for(target: str | None, numbers: Sequence[str]) -> tuple[str, ...]:
    """The structures that may be chosen from."""
    if target is None:
        return ("hill-climb",)
    return OF_NUMBERS if target in numbers else OF_STATES


def candidates(
    numbers: str, has_numbers: bool, target: bool, structures: Sequence[str], n_rows: int
) -> list[Candidate]:
    """The ways worth trying.

    Parameters
    ----------
    numbers
        "auto", "cut" or "gaussian".
    has_numbers
        Whether some column is a number.
    target
        Whether there is a target with states.
    structures
        The structures that may be chosen from.
    n_rows
        The number of rows.
    """
    tried = BINS[:1] if n_rows < FEW else BINS[:2] if n_rows < 10 * FEW else BINS
    found = []
    for structure in structures:
        if structure == TRAINED:
            found += _logistic(numbers, has_numbers) if target else []
            continue
        if not has_numbers:
            found += [Candidate("", structure=structure)] if structure != "linked" else []
            continue
        if numbers != "gaussian" and structure != "linked":
            found += [Candidate("cut", "mdlp", 5, structure)] if target else []
            bins = tried if not target else (usual_bins(n_rows),)
            found += [Candidate("cut", "quantiles", n, structure) for n in bins]
        if numbers != "cut" and structure in ("hill-climb", "naive-bayes", "linked"):
            found.append(Candidate("gaussian", "quantiles", 5, structure))
    return found


def number_candidates(numbers: str, structures: Sequence[str], n_rows: int) -> list[Candidate]:
    """The ways worth trying where the target is a number that stays one: all numbers Gaussians, or the others cut."""
    found = [Candidate("gaussian", structure=structure) for structure in structures]
    if numbers == "auto" and "target-last" in structures:
        bins = BINS[:1] if n_rows < FEW else BINS[:2]
        found += [Candidate("cut", "quantiles", n, "target-last") for n in bins]
    return found


def _logistic(numbers: str, has_numbers: bool) -> list[Candidate]:
    """The ways to train naive Bayes to predict: on numbers, on cuts, with more or less of a penalty."""
    found = []
    if not has_numbers or numbers != "cut":
        how = "gaussian" if has_numbers else ""
        found += [Candidate(how, LINEAR, structure="logistic", strength=c) for c in STRENGTHS]
        found.append(Candidate(how, structure="logistic", strength=STRENGTHS[-1]))
    if has_numbers and numbers != "gaussian":
        found += [Candidate("cut", "mdlp", 5, "logistic"), Candidate("cut", "quantiles", 5, "logistic", 0.1)]
    return found


def choose(table: CodedTable, numbers: str, target: str | None, prior: Prior) -> Candidate:
    """The candidate that is best on held-out rows; the usual one where rows are too few or columns too many.

    The target, if there is one, has states.
    """
    listed = structures_for(target, ())
    ways = candidates(numbers, bool(table.numbers), target is not None, listed, table.n_rows)
    if len(ways) == 1 or is_small(table):
        return usual(table, numbers) if len(ways) > 1 else ways[0]
    return judge(table, ways, target, {}, prior)[0].candidate


def is_small(table: CodedTable) -> bool:
    """Whether there are too few rows to hold some out, or too many columns to search several times."""
    return table.n_rows < FEW_ROWS or len(table.codes) + len(table.numbers) > MOST_JUDGED_COLUMNS


def usual(table: CodedTable, numbers: str, target: str | None = None) -> Candidate:
    """The candidate where nothing is tried out."""
    how = {"auto": "gaussian" if target in table.numbers else "cut"}.get(numbers, numbers)
    how = how if table.numbers else ""
    return Candidate(how, "quantiles", usual_bins(table.n_rows))


def usual_bins(n_rows: int) -> int:
    """Into how many intervals numbers are cut where nothing is tried out."""
    return BINS[n_rows >= FEW]


def judge(
    table: CodedTable,
    ways: Sequence[Candidate],
    target: str | None,
    options: Mapping[str, Any],
    prior: Prior,
    seed: int = 0,
) -> list[Judged]:
    """Each candidate with its held-out loss, best first; in a tie, the first named.

    Parameters
    ----------
    table
        Coded rows, with numbers as numbers.
    ways
        The candidates.
    target
        The variable that judges, by its log loss or its error, or None for the density of whole rows.
    options
        Of the search, for `hill_climb`.
    prior
        Of the tables.
    seed
        Deals the rows.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(table.n_rows)
    most = JUDGED_WIDE if is_wide(table) else JUDGED
    parts = np.array_split(order[:most], FOLDS)
    folds = range(FOLDS if table.n_rows <= most else 1)
    losses = []
    for way in ways:
        loss = 0.0
        try:
            for i in folds:
                rest = np.sort(np.concatenate([part for j, part in enumerate(parts) if j != i]))
                loss += _held_out(table, rest, np.sort(parts[i]), way, target, options, prior) / len(folds)
        except TimeLimitError:
            raise
        except BBNError:  # such as a table too large
            loss = float("inf")
        losses.append(Judged(way, loss))
    return sorted(losses, key=lambda judged: judged.loss)


def _held_out(
    table: CodedTable,
    rest: Any,
    held: Any,
    way: Candidate,
    target: str | None,
    options: Mapping[str, Any],
    prior: Prior,
) -> float:
    train, test = take(table, rest), take(table, held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BBNWarning)
        with all_or_nothing():
            built = build(train, way, target, options, prior)
        return loss_of(built, test, target)


def build(
    table: CodedTable, way: Candidate, target: str | None, options: Mapping[str, Any], prior: Prior
) -> Built:
    """Learn from rows with numbers as numbers; holes are filled at random for the search, and by EM for the tables."""
    source, cuts = modelled(table, way, target)
    if way.structure == TRAINED:
        if _training_steps(source, str(target)) > MOST_STEPS:
            raise DataError(f"{way}: {target!r} and the columns have too many states")
        return Built(*logistic_network(source, str(target), way.strength, way.cuts == LINEAR), cuts)
    graph = search(filled(source), way, target, options)
    if way.structure != "hill-climb" and n_parameters(graph, source) > TOO_MANY * table.n_rows:
        raise DataError(f"{way}: more parameters than {table.n_rows:,} rows can bear")
    return Built(fitted(graph, source, tuple(source.numbers), prior, EM_STEPS)[0], graph, cuts)


def _training_steps(coded: CodedTable, target: str) -> float:
    """About how many steps an iteration takes: for each class all values of the rows, and all weights."""
    classes = next(v.card for v in coded.variables if v.name == target)
    columns = len(coded.variables) - 1 + len(coded.numbers)
    weights = sum(v.card for v in coded.variables) - classes + len(coded.numbers)
    return float(classes) * (coded.n_rows * columns + STEPS_OF_WEIGHT * weights)


def modelled(table: CodedTable, way: Candidate, target: str | None) -> tuple[CodedTable, dict[str, Binned]]:
    """The table with its numbers as a candidate has them, and the variables of those that are cut.

    A target that is a number is only cut if it is not named here.
    """
    if way.numbers != "cut":
        return table, {}
    states = target if target not in table.numbers else None
    cuts = cut_variables(table, way.cuts, way.bins, states)
    cuts.pop(str(target), None)
    return cut(table, cuts), cuts


def search(coded: CodedTable, way: Candidate, target: str | None, options: Mapping[str, Any]) -> Any:
    """The structure over rows without holes; columns that are still numbers are to be Gaussians."""
    numbers = tuple(coded.numbers)
    names = [*(v.name for v in coded.variables), *numbers]
    predicted = str(target)
    if way.structure == "naive-bayes":
        return naive_bayes(names, predicted)
    if way.structure == "linked":
        return linked_gaussians(names, predicted, numbers)
    if way.structure == "tan":
        return tan(coded, predicted)
    if way.structure == "selective":
        return selective(coded, predicted, options)
    score = options.get("score", "bdeu")
    if numbers and score not in WITH_NUMBERS:
        score = "bic"
    if way.structure in ("target-last", "all-numbers"):
        given = numbers if way.structure == "all-numbers" else ()
        return target_last(coded, predicted, {**options, "score": score}, given)
    return bounded_search(hill_climb, coded, {**options, "score": score})
