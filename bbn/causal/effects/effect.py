"""Effects from data: how the outcome changes if the treatment is set, with intervals, by three estimators side by side.

    g-formula            P(y | do(x)) of the network fitted to the data, or of the estimand that `identify` finds, or by
                         regression of an outcome with states on causes that are numbers
    inverse weighting    rows weighted by 1 / P(x | parents of x)                      (Hájek; Robins et al. 1994)
    doubly robust        both: right if either the outcome's or the treatment's model is (Robins et al. 1994)

The first is the estimate to report; the others rest on other parts of the model, so a gap between them is a warning.
The cost is one pass of counting and a query per treatment: draws for the interval are one more axis of the same query.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from bbn.causal.effects.effect_models import EffectPlan, declared_numbers, fitted, numbers_among, plan_of
from bbn.causal.effects.effect_result import Effect
from bbn.causal.effects.estimate import EffectQuestion, Estimate
from bbn.causal.effects.estimators import doubly_robust, inverse_weighting, strata_without
from bbn.causal.effects.outcome_regression import OutcomeRegression
from bbn.causal.effects.uncertainty import bootstrap_draws, credible_draws, of_draws
from bbn.core.errors import DataError, EvidenceError, OverlapWarning, UnseenRowsWarning, nearest
from bbn.core.keywords import keywords_checked
from bbn.data import CodedTable, DataSource, as_source, complete_data
from bbn.data.column_states import holds_fractions
from bbn.learning.tables.priors import Prior
from bbn.model.holding_state import holding_code
from bbn.model.variable import Continuous, State, Variable

INTERVALS = ("credible", "bootstrap")


@keywords_checked
def effect(
    data: Any,
    graph: Any,
    treatment: str,
    outcome: str,
    *,
    latent: str | Iterable[str] = (),
    adjusted: str | Iterable[str] | None = None,
    treated: State | float | None = None,
    control: State | float | None = None,
    event: State | None = None,
    continuous: str | Iterable[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    interval: Literal["credible", "bootstrap"] | None = "credible",
    level: float = 0.95,
    n_draws: int = 1000,
    seed: Any = 0,
    prior: Prior | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
) -> Effect:
    """Estimate the effect of a treatment on an outcome from data.

    Parameters
    ----------
    data
        Any table with complete columns for what the effect needs, which need not be every variable of the graph.
    graph
        A `CausalGraph`, a DiGraph, a network (its tables play no part), a list of arcs, or a CPDAG.
    treatment, outcome
        Names. Both may be columns of numbers.
    latent
        Variables of the graph that are not measured.
    adjusted
        A set to adjust for, instead of what the graph suggests; EvidenceError if it does not suffice.
    treated, control
        The two treatments to compare. By default, of two states, the one whose word says that it holds (True, 1,
        "yes", "treated", …; where the words do not tell, `treated` must), of more the last, against the first other
        one. Of a column of whole numbers the largest and the smallest; of other numbers, or where the graph, `kinds`
        or `continuous` calls the column one, its mean and one more.
    event
        The state of the outcome that is counted, chosen likewise. An outcome whose states are numbers is averaged
        unless an event is named.
    continuous
        Columns of numbers; by default what the graph declares so, and otherwise by the rules of `bbn.describe`: those
        with fractions, or of more whole numbers than could be states; a treatment of more than a handful of whole
        numbers also if hardly any row has some of them.
    kinds
        Column to its kind, as in `bbn.describe`: "number" or "category", where you know better.
    interval
        "credible", from the posterior of the fitted tables (influence functions for the two other estimators);
        "bootstrap", which resamples rows and does everything again; None for no intervals.
    level
        The share that an interval holds.
    n_draws
        Draws from the posterior, or resamples (at most 200 of those unless it is given).
    seed
        The seed of the draws.
    prior
        The prior of the fitted tables, as in `bbn.fit`.
    states, weights, missing
        How to read the data, as in `bbn.fit`.

    Returns
    -------
    Effect
        `.distributions`, the outcome under each treatment; `.average_effect` and `.risk_ratio`, numbers with `.low` and
        `.high`; `.estimates`, by estimator. Prints as a table.

    Raises
    ------
    NotIdentifiableError
        If the effect does not follow from what is measured.
    ImpossibleEvidenceError
        If a formula that is not an adjustment conditions on what never occurs.
    DataError, EvidenceError, ModelError
        For data that lack a column or a value, for unknown names and states, and for graphs that are not causal.
    BudgetError
        If the causes of a variable have so many settings together that their tables, or the draws of them, are too
        large.

    Warns
    -----
    OverlapWarning
        If some groups of rows never had a treatment: what is said about them is a guess, that they are like all rows
        that had it.
    CollapsedWarning
        If the rows leave no spread at all, so that there is an estimate but no interval.

    See Also
    --------
    identify : The formula behind it.
    refute : Whether the estimate survives placebo treatments and random common causes.
    check_independences : Whether the graph fits the data.

    Examples
    --------
    >>> import bbn
    >>> rows = bbn.datasets.ucb_admissions()
    >>> found = bbn.effect(rows, [("Gender", "Department"), ("Gender", "Admitted"), ("Department", "Admitted")],
    ...     "Gender", "Admitted", treated="female", control="male", weights="Count", interval=None)
    >>> round(found.average_effect, 4)
    -0.1416
    """
    if interval is not None and interval not in INTERVALS:
        raise EvidenceError(f"unknown interval {interval!r}{nearest(interval, INTERVALS)}")
    if not 0 < level < 1:
        raise EvidenceError(f"level is {level!r}; expected a share between 0 and 1")
    if n_draws < 2:
        raise EvidenceError(f"n_draws is {n_draws}; expected at least 2")
    plan = plan_of(graph, treatment, outcome, latent, adjusted)
    source = _read(data, graph, plan, continuous, kinds, states, weights, missing)
    plan = plan.suited_to(source)
    told = continuous is not None or treatment in declared_numbers(graph) or treatment in (kinds or {})
    question = _question(source, plan, treated, control, event, levels=not told)
    if plan.arcs is not None:
        _require_both(source, question)
    models = fitted(plan, source, prior, keep_counts=interval == "credible")
    found = Effect(question, plan, models, source)
    for method, value in _others(plan, source, question).items():
        found = found._with_estimate(method, value)
    _warn_of_overlap(plan, source, question, models)
    if interval == "credible" and isinstance(models, OutcomeRegression):
        found = found._with_estimate("g-formula", models.estimate(question))._at_level(level)
    elif interval == "credible" and not isinstance(models, OutcomeRegression):
        draws = credible_draws(plan, source, question, models, prior, n_draws, seed)
        found = found._with_draws("g-formula", *draws, level)
    if interval == "bootstrap":
        most = n_draws if n_draws != 1000 else 200
        again = bootstrap_draws(source, most, seed)

        def everything(rows: CodedTable) -> dict[str, tuple[float, float]]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnseenRowsWarning)
                pair = Effect(question, plan, fitted(plan, rows, prior), rows).pair
                return {"g-formula": pair} | {
                    name: (one.treated, one.control) for name, one in _others(plan, rows, question).items()
                }

        for method, one, other in of_draws(everything(rows) for rows in again):
            found = found._with_draws(method, one, other, level)
    return found._without_empty_intervals()


def _read(
    data: Any,
    graph: Any,
    plan: EffectPlan,
    continuous: str | Iterable[str] | None,
    kinds: Mapping[str, str] | None,
    states: Mapping[str, Sequence[State]] | None,
    weights: Any,
    missing: Any,
) -> DataSource:
    """The columns that the effect needs, coded, complete."""
    known = {**plan.states, **{name: own for name, own in (states or {}).items() if name in plan.columns}}
    numeric = numbers_among(data, plan.columns, graph, continuous, kinds, known, missing, plan.treatment)
    source = as_source(
        data,
        names=list(plan.columns),
        states={name: own for name, own in known.items() if name not in numeric},
        continuous=numeric,
        weights=weights,
        missing=missing,
        extra="ignore",
    )
    return complete_data(
        source,
        plan.columns,
        "column {} has missing values",
        "drop those rows, or fill them in with bbn.fit_em",
    )


def _question(
    source: DataSource,
    plan: EffectPlan,
    treated: State | float | None,
    control: State | float | None,
    event: State | None,
    levels: bool,
) -> EffectQuestion:
    """What is compared with what; of whole numbers that nobody called numbers, the levels at both ends."""
    own: dict[str, Variable] = {v.name: v for v in source.variables}
    numbers = getattr(source, "numbers", {})
    x = own.get(plan.treatment) or Continuous(plan.treatment)
    y = own.get(plan.outcome) or Continuous(plan.outcome)
    if isinstance(x, Continuous):
        _require_spread(x, numbers)
        column = numbers[x.name]
        ends = levels and not holds_fractions(column)
        low = (column.min() if ends else column.mean()) if control is None else x.number(control)
        high = (column.max() if ends else low + 1.0) if treated is None else x.number(treated)
        if high == low:
            raise EvidenceError(f"treated and control are both {low:g}")
        return EffectQuestion(x, y, float(high), float(low), _counted(y, event))
    if x.card < 2:
        raise DataError(f"the treatment {x.name!r} is always {x.states[0]!r}: there is nothing to compare")
    if treated is not None:
        one = _state(x, treated)
    elif x.card == 2 and control is not None:
        one = x.states[1 - x.code(_state(x, control))]
    else:
        one = _good(x, "treated")
    other = next(s for s in x.states if s != one) if control is None else _state(x, control)
    if one == other:
        raise EvidenceError(f"treated and control are both {one!r}")
    return EffectQuestion(x, y, one, other, _counted(y, event))


def _require_spread(x: Continuous, numbers: Mapping[str, Any]) -> None:
    """DataError where a treatment that is a number is the same in all rows."""
    column = numbers.get(x.name)
    if column is not None and (len(column) == 0 or float(column.min()) == float(column.max())):
        always = f"always {float(column[0]):g}" if len(column) else "in no row"
        raise DataError(f"the treatment {x.name!r} is {always}: there is nothing to compare")


def _require_both(source: DataSource, question: EffectQuestion) -> None:
    """DataError where no row at all has one of the two treatments."""
    x = question.treatment
    if isinstance(x, Continuous):
        return
    (counts,) = source.counts([[x.name]])
    for state in (question.treated, question.control):
        if not counts[x.code(state)]:
            raise DataError(f"no row has {x.name}={state}: there is nothing to compare")


def _counted(y: Variable, event: State | None) -> State | None:
    """The state of the outcome that is counted; None where it is averaged."""
    if isinstance(y, Continuous):
        if event is not None:
            raise EvidenceError(f"the outcome {y.name!r} is numbers, and has no event {event!r}")
        return None
    averaged = event is None and isinstance(y.states[0], int) and not isinstance(y.states[0], bool)
    return None if averaged else _good(y, "event") if event is None else _state(y, event)


def _state(variable: Variable, value: Any) -> State:
    """The state that is meant; of whole numbers it may be a float."""
    counting = all(type(state) is int for state in variable.states)
    code = variable.find(
        int(value) if counting and isinstance(value, float) and value.is_integer() else value
    )
    if code is None:
        way_out = f"; kinds={{{variable.name!r}: 'number'}} takes it as a number" if counting else ""
        raise EvidenceError(variable.unknown(value) + way_out)
    return variable.states[code]


def _good(variable: Variable, option: str) -> State:
    """Of two states the one whose word says that it holds, or EvidenceError asks for `option`; otherwise the last."""
    if variable.card != 2:
        return variable.states[-1]
    return variable.states[holding_code(variable, "effect", f"{option}=STATE", EvidenceError)]


def _others(plan: EffectPlan, source: DataSource, question: EffectQuestion) -> dict[str, Estimate]:
    """The estimators besides the g-formula, where an adjustment set makes them possible and rows are in memory."""
    if plan.parents is None or not isinstance(source, CodedTable):
        return {}
    if isinstance(question.treatment, Continuous):
        straight = isinstance(question.outcome, Continuous)  # a probability is no straight line in a number
        return {"doubly robust": doubly_robust(plan, source, question)} if straight else {}
    return {
        "inverse weighting": inverse_weighting(plan, source, question),
        "doubly robust": doubly_robust(plan, source, question),
    }


def _warn_of_overlap(plan: EffectPlan, source: DataSource, question: EffectQuestion, models: Any) -> None:
    """One warning if groups of rows never had a treatment."""
    told = strata_without(plan, source, question, models)
    if told:
        warnings.warn(told, OverlapWarning, stacklevel=4)
