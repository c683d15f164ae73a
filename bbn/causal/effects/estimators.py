"""Inverse weighting and the doubly robust estimator, with their influence functions.

With π(x | z) = P(x | parents z of the treatment), fitted by cells of the parents' states (by logistic regression where
some are numbers), and m(x, o) = E[y | x, predictors o], fitted by cells, and by lines within them:

    inverse weighting   ψ_x = Σ 1(x_i = x) y_i / π_i  /  Σ 1(x_i = x) / π_i                         (Hájek 1971)
    doubly robust       ψ_x = mean of m(x, o_i) + 1(x_i = x) (y_i − m(x, o_i)) / π_i                (Robins et al. 1994)

Each estimate is a mean of influences, whose variance gives the interval; as π is fitted, that of inverse weighting is
less its part along the score of π (Hirano, Imbens and Ridder 2003). A treatment that is a number acts by a slope, that
of residuals on residuals (Robinson 1988); weights by densities vary too much for a trustworthy interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.causal.effects.arm_means import ArmMean, ArmRegression
from bbn.causal.effects.effect_result import EffectQuestion, Estimate, Number
from bbn.core.frozen import Array
from bbn.data import Block, CodedTable, DataSource
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

if TYPE_CHECKING:
    from bbn.causal.effects.effect_models import EffectPlan

MOST_CELLS = 1_000_000
"""The most cells for which rows are merged by counting."""
LOGISTIC_STEPS = 50
"""Newton steps of a logistic regression."""


def inverse_weighting(plan: EffectPlan, source: CodedTable, question: EffectQuestion) -> Estimate:
    """The outcome under both treatments, from rows weighted by how seldom they have the treatment they have."""
    rows = _Rows(plan, source, question)
    states = (question.treated, question.control)
    if rows.numbers(plan.parents or ()).shape[1]:
        return rows.by_influence([rows.weighted(state) for state in states])
    return rows.estimate([rows.standardised(state) for state in states])


def doubly_robust(plan: EffectPlan, source: CodedTable, question: EffectQuestion) -> Estimate:
    """The predicted outcome under both treatments, plus the weighted errors of the predictions."""
    rows = _Rows(plan, source, question)
    if isinstance(question.treatment, Continuous):
        return rows.slope()
    return rows.estimate([rows.augmented(state) for state in (question.treated, question.control)])


class _Rows:
    """The rows of the data as numbers, equal ones merged."""

    def __init__(self, plan: EffectPlan, source: CodedTable, question: EffectQuestion) -> None:
        self.plan, self.question = plan, question
        self.variables = {v.name: v for v in source.variables}
        self.block = _merged(source, (*(plan.parents or ()), *plan.predictors, plan.treatment, plan.outcome))
        self.weights = self.block.weights / self.block.weights.sum()
        self.n = source.total
        """Rows of the data, which say how much a mean varies."""
        y = question.outcome.name
        self.y: Array = (
            self.block.numbers[y]
            if isinstance(question.outcome, Continuous)
            else question.scores[self.block.codes[y]]
        )
        x = question.treatment.name
        self.x: Array = np.asarray(
            self.block.numbers[x] if isinstance(question.treatment, Continuous) else self.block.codes[x],
            dtype=float,
        )

    def mean(self, values: Array) -> float:
        return float(self.weights @ values)

    def cells(self, names: Sequence[str]) -> tuple[NDArray[np.intp], int]:
        """The cell of each row by the states of some variables, numbered as they occur, and how many there are."""
        discrete = [self.variables[name] for name in names if name in self.variables]
        if not discrete:
            return np.zeros(len(self.y), np.intp), 1
        codes = np.ravel_multi_index(
            [self.block.codes[v.name].astype(np.intp) for v in discrete], [v.card for v in discrete]
        )
        found, inverse = np.unique(codes, return_inverse=True)
        return inverse.astype(np.intp), len(found)

    def numbers(self, names: Sequence[str]) -> Array:
        """(rows, k): the columns of numbers among some variables, each of mean 0 and width 1."""
        columns = [self.block.numbers[name] for name in names if name in self.block.numbers]
        scaled = [(c - self.mean(c)) / (np.sqrt(self.mean((c - self.mean(c)) ** 2)) or 1.0) for c in columns]
        return np.column_stack(scaled) if scaled else np.empty((len(self.y), 0))

    def fitted(self, values: Array, names: Sequence[str], where: NDArray[np.bool_] | None = None) -> Array:
        """E[values | names] for each row: a mean, or a line, per cell, from the rows `where`; NaN in cells without."""
        cell, n_cells = self.cells(names)
        weights = self.weights if where is None else self.weights * where
        total = np.bincount(cell, weights, n_cells)
        lines = self.numbers(names)
        if not lines.shape[1]:
            with np.errstate(invalid="ignore"):
                return np.asarray((np.bincount(cell, weights * values, n_cells) / total)[cell])
        found = np.full(len(values), np.nan)
        design = np.column_stack([np.ones(len(values)), lines])
        for c in np.flatnonzero(total > 0):
            here = cell == c
            root = np.sqrt(weights[here])[:, None]
            slopes = np.linalg.lstsq(design[here] * root, values[here] * root[:, 0], rcond=1e-10)[0]
            found[here] = design[here] @ slopes
        return found

    def has(self, state: Any) -> NDArray[np.bool_]:
        """Which rows have this treatment."""
        return np.asarray(self.x == self.question.treatment.code(state))

    def propensity(self, state: Any) -> tuple[Array, Array]:
        """P(treatment = state | parents) for each row, and (rows, k): what its score is made of."""
        parents = self.plan.parents or ()
        has = self.has(state).astype(float)
        lines = self.numbers(parents)
        if not lines.shape[1]:
            return self.fitted(has, parents), np.empty((len(has), 0))
        cell, n_cells = self.cells(parents)
        dummies = np.eye(n_cells)[cell] if n_cells <= 100 else np.ones((len(has), 1))
        design = np.column_stack([dummies, lines])
        return _logistic(design, has, self.weights), design

    def weighted(self, state: Any) -> tuple[float, Array]:
        """The Hájek mean under one treatment, and its influence by row."""
        share, design = self.propensity(state)
        has = self.has(state)
        seen = share > 0
        inverse = np.where(has & seen, 1.0 / np.where(seen, share, 1.0), 0.0)
        whole = self.mean(inverse)
        value = self.mean(inverse * self.y) / whole
        influence = inverse * (self.y - value) / whole
        return value, influence - self._along_score(influence, has - share, design)

    def _along_score(self, influence: Array, error: Array, design: Array) -> Array:
        """The part of an influence that the fitted propensity takes away: its projection on the score."""
        if design.shape[1]:
            score = design * error[:, None]
            root = np.sqrt(self.weights)[:, None]
            slopes = np.linalg.lstsq(score * root, influence * root[:, 0], rcond=1e-10)[0]
            return np.asarray(score @ slopes)
        cell, n_cells = self.cells(self.plan.parents or ())
        top = np.bincount(cell, self.weights * influence * error, n_cells)
        bottom = np.bincount(cell, self.weights * error**2, n_cells)
        slope = np.divide(top, bottom, out=np.zeros(n_cells), where=bottom > 0)
        return np.asarray(slope[cell] * error)

    def regression(self, names: Sequence[str], has: NDArray[np.bool_]) -> ArmRegression:
        """The outcome on some variables, from the rows that have a treatment."""
        cell, _ = self.cells(names)
        return ArmRegression(self.y, self.block.weights * has, cell, self.numbers(names))

    def standardised(self, state: Any) -> ArmMean:
        """The Hájek mean where the propensity is that of cells: the mean of each cell, by the cells' shares."""
        fit = self.regression(self.plan.parents or (), self.has(state))
        shares = self.weights * fit.seen[fit.cell]
        shares /= shares.sum()
        weights = fit.weights_of(shares)
        return fit.mean(float((fit.times * weights) @ self.y), weights)

    def augmented(self, state: Any) -> ArmMean:
        """The doubly robust mean under one treatment."""
        share, _ = self.propensity(state)
        has = self.has(state)
        inverse = np.where(has & (share > 0), 1.0 / np.where(share > 0, share, 1.0), 0.0)
        fit = self.regression(self.plan.predictors, has)
        base = self.weights * (1.0 - inverse)
        weights = self.weights / np.maximum(self.block.weights, 1e-300) * inverse + fit.weights_of(base)
        # cells that never had it, which are warned of, are predicted by the mean of all that did
        blind = float(base[~fit.seen[fit.cell]].sum())
        weights = weights + blind / max(float(fit.times.sum()), 1e-300)
        return fit.mean(float((fit.times * weights) @ self.y), weights)

    def estimate(self, parts: Sequence[ArmMean]) -> Estimate:
        """Two means and their covariance: what each arm's rows leave open, and what the covariates do."""
        predicted = np.column_stack([np.where(np.isnan(p.predicted), p.value, p.predicted) for p in parts])
        apart = predicted - self.weights @ predicted
        covariance = (apart * self.weights[:, None]).T @ apart / self.n
        covariance = covariance + np.diag([p.within for p in parts])
        one, other = (Number(p.value) for p in parts)
        return Estimate(
            one, other, covariance, freedom=(parts[0].freedom, parts[1].freedom), sizes=(parts[0].size, parts[1].size)
        )

    def by_influence(self, parts: Sequence[tuple[float, Array]]) -> Estimate:
        """Two means, and the covariance that their influences give."""
        influence = np.column_stack([part for _, part in parts])
        covariance = (influence * self.weights[:, None]).T @ influence / self.n
        return Estimate(Number(parts[0][0]), Number(parts[1][0]), covariance)

    def slope(self) -> Estimate:
        """The outcome at two numbers on a line, whose slope is that of residuals on residuals."""
        moved = self.x - self.fitted(self.x, self.plan.parents or ())
        left = self.y - self.fitted(self.y, self.plan.predictors)
        square = self.mean(moved**2)
        slope = self.mean(moved * left) / square if square > 0 else 0.0
        influence = moved * (left - slope * moved) / square if square > 0 else np.zeros_like(moved)
        middle, centre = self.mean(self.y), self.mean(self.x)
        treated, control = (float(v) - centre for v in (self.question.treated, self.question.control))
        variance = self.mean(influence**2) / self.n * (treated - control) ** 2
        covariance = np.array([[variance, 0.0], [0.0, 0.0]])
        return Estimate(Number(middle + slope * treated), Number(middle + slope * control), covariance)


def _merged(source: CodedTable, names: Sequence[str]) -> Block:
    """The rows of some columns, equal ones merged: by counting where the table of counts is small."""
    cards = {v.name: v.card for v in source.variables}
    wanted = list(dict.fromkeys(names))
    if any(name not in cards for name in wanted) or math.prod(cards[name] for name in wanted) > MOST_CELLS:
        return source.merged()
    (counts,) = source.counts([wanted])
    filled = np.nonzero(counts)
    return Block(dict(zip(wanted, filled, strict=True)), np.asarray(counts[filled], dtype=np.float64))


def _logistic(design: Array, has: Array, weights: Array) -> Array:
    """P(has) by logistic regression, fitted by Newton's method."""
    slopes = np.zeros(design.shape[1])
    for _ in range(LOGISTIC_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ slopes, -30, 30)))
        spread = weights * np.maximum(p * (1 - p), 1e-12)
        curvature = (design * spread[:, None]).T @ design + 1e-12 * np.eye(design.shape[1])
        step = np.linalg.solve(curvature, design.T @ (weights * (has - p)))
        slopes = slopes + step
        if np.abs(step).max() < 1e-10:
            break
    return np.asarray(1 / (1 + np.exp(-np.clip(design @ slopes, -30, 30))))


def strata_without(plan: EffectPlan, source: DataSource, question: EffectQuestion, models: Any) -> str:
    """What to warn of: groups of rows that never had a treatment, or rows of tables that no data reach; or nothing."""
    x = question.treatment
    if isinstance(x, Continuous) or not isinstance(models, BayesianNetwork):
        return ""
    own = {v.name: v for v in source.variables}
    parents = [own[name] for name in plan.parents or () if name in own]
    if parents:
        (counts,) = source.counts([[*(p.name for p in parents), x.name]])
        for state in (question.treated, question.control):
            told = _group_without(counts, parents, x, state)
            if told:
                return told
    return _unseen_rows(source, question, models)


def _group_without(counts: NDArray[Any], parents: Sequence[Variable], x: Variable, state: Any) -> str:
    """The first group without a treatment, how many there are, and what share of the rows they hold."""
    groups = counts.sum(axis=-1)
    empty = (groups > 0) & (counts[..., x.code(state)] == 0)
    if not empty.any():
        return ""
    first = np.argwhere(empty)[0]
    shown = ", ".join(f"{p.name}={p.states[i]}" for p, i in zip(parents, first, strict=True))
    share = groups[empty].sum() / groups.sum()
    return (
        f"{int(empty.sum())} of {int((groups > 0).sum())} groups of rows ({share:.1%} of the rows) never had "
        f"{x.name}={state}, such as {shown}: there the data say nothing about its effect"
    )


def _unseen_rows(source: DataSource, question: EffectQuestion, net: BayesianNetwork) -> str:
    """Rows of fitted tables that no data reached, but that an intervention does."""
    tables = [v.name for v in net.variables if not isinstance(v, Continuous) and net.parents(v.name)]
    for name, counts in zip(tables, source.counts([(*net.parents(n), n) for n in tables]), strict=True):
        unseen = counts.sum(axis=-1) == 0
        if not unseen.any():
            continue
        for state in (question.treated, question.control):
            share = float(
                net.query(list(net.parents(name)), do={question.treatment.name: state}).values[unseen].sum()
            )
            if share > 1e-9:
                return (
                    f"under do({question.treatment.name}={state}), {share:.1%} of cases reach rows of the table of "
                    f"{name!r} that no row of the data does: there the data say nothing"
                )
    return ""
