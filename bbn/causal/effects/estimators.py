"""Inverse weighting and the doubly robust estimator for treatments with states, and a slope for those that are numbers.

With π(x | z) = P(x | parents z of the treatment), fitted by cells of the parents' states (by tilting where some are
numbers), and m(x, o) = E[y | x, predictors o], fitted by cells, and by lines within them:

    inverse weighting   ψ_x = Σ 1(x_i = x) y_i / π_i  /  Σ 1(x_i = x) / π_i                         (Hájek 1971)
    doubly robust       ψ_x = mean of m(x, o_i) + 1(x_i = x) (y_i − m(x, o_i)) / π_i                (Robins et al. 1994)

Both are linear in y, which gives their variance: see `arm_means`. A treatment that is a number acts by a slope, that
of residuals on residuals (Robinson 1988); weights by densities vary too much for a trustworthy interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.causal.effects.arm_means import ArmMean, ArmRegression
from bbn.causal.effects.estimate import EffectQuestion, Estimate, Number
from bbn.core.frozen import Array
from bbn.data import Block, CodedTable, DataSource
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

if TYPE_CHECKING:
    from bbn.causal.effects.effect_models import EffectPlan

MOST_CELLS = 1_000_000
"""The most cells for which rows are merged by counting."""
NEWTON_STEPS = 50
"""Steps of Newton's method at most."""
MOST_DUMMIES = 100
"""As many cells have a column each in a propensity by tilting."""
FAR = 50.0
"""A coefficient beyond this is on its way to infinity."""


def inverse_weighting(plan: EffectPlan, source: CodedTable, question: EffectQuestion) -> Estimate:
    """The outcome under both treatments, from rows weighted by how seldom they have the treatment they have."""
    rows = _Rows(plan, source, question)
    return rows.estimate([rows.weighted(state) for state in (question.treated, question.control)])


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

    def propensity(self, state: Any) -> Array:
        """P(treatment = state | parents) for each row: the share of its cell, or by tilting where some are numbers."""
        parents = self.plan.parents or ()
        has = self.has(state)
        lines = self.numbers(parents)
        cell, n_cells = self.cells(parents)
        if not lines.shape[1]:
            shares = np.bincount(cell, self.weights * has, n_cells) / np.bincount(cell, self.weights, n_cells)
            return np.asarray(shares[cell])
        dummies = np.eye(n_cells)[cell] if n_cells <= MOST_DUMMIES else np.ones((len(has), 1))
        design = np.column_stack([dummies, lines])
        return tilted(design, has, self.weights)

    def inverse(self, state: Any) -> Array:
        """1 / propensity for the rows that have a treatment, 0 for others."""
        share = self.propensity(state)
        seen = self.has(state) & (share > 0)
        return np.where(seen, 1.0 / np.where(seen, share, 1.0), 0.0)

    def weighted(self, state: Any) -> ArmMean:
        """The Hájek mean under one treatment."""
        fit = self.regression(self.plan.parents or (), self.has(state))
        inverse = self.inverse(state)
        weights = inverse / max(float(self.block.weights @ inverse), 1e-300)
        return fit.mean(float((fit.times * weights) @ self.y), weights)

    def regression(self, names: Sequence[str], has: NDArray[np.bool_]) -> ArmRegression:
        """The outcome on some variables, from the rows that have a treatment."""
        cell, _ = self.cells(names)
        return ArmRegression(self.y, self.block.weights * has, cell, self.numbers(names))

    def augmented(self, state: Any) -> ArmMean:
        """The doubly robust mean under one treatment."""
        inverse = self.inverse(state)
        fit = self.regression(self.plan.predictors, self.has(state))
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
            one,
            other,
            covariance,
            freedom=(parts[0].freedom, parts[1].freedom),
            sizes=(parts[0].size, parts[1].size),
        )

    def slope(self) -> Estimate:
        """The outcome at two numbers on a line, whose slope is that of residuals on residuals."""
        moved = self.x - self.fitted(self.x, self.plan.parents or ())
        left = self.y - self.fitted(self.y, self.plan.predictors)
        square = self.mean(moved**2)
        slope = self.mean(moved * left) / square if square > 0 else 0.0
        influence = moved * (left - slope * moved) / square if square > 0 else np.zeros_like(moved)
        middle, centre = self.mean(self.y), self.mean(self.x)
        ahead = np.array([float(v) - centre for v in (self.question.treated, self.question.control)])
        about = self.y - middle - slope * (self.x - centre)
        apart = about[:, None] + influence[:, None] * ahead
        one, other = (Number(middle + slope * step) for step in ahead.tolist())
        return Estimate(one, other, (apart * self.weights[:, None]).T @ apart / self.n)


def _merged(source: CodedTable, names: Sequence[str]) -> Block:
    """The rows of some columns, equal ones merged: by counting where the table of counts is small."""
    cards = {v.name: v.card for v in source.variables}
    wanted = list(dict.fromkeys(names))
    if any(name not in cards for name in wanted) or math.prod(cards[name] for name in wanted) > MOST_CELLS:
        return source.merged()
    (counts,) = source.counts([wanted])
    filled = np.nonzero(counts)
    return Block(dict(zip(wanted, filled, strict=True)), np.asarray(counts[filled], dtype=np.float64))


def tilted(design: Array, has: NDArray[np.bool_], weights: Array) -> Array:
    """P(has) = 1 / (1 + exp(−design · γ)), with γ so that the rows weighted by 1 / P have the means of all rows.

    Inverse probability tilting (Graham, Pinto and Egel 2012): γ minimises Σ_has w exp(−d γ) + Σ_others w d γ, which is
    convex. Where the rows that have the treatment do not surround the others there is no such γ, and logistic
    regression takes its place.

    Parameters
    ----------
    design : array
        (rows, k)
    has : array of bool
        (rows,)
    weights : array
        (rows,)
    """
    others = (weights * ~has) @ design
    inside, own = design[has], weights[has]
    gamma = logistic(design, has.astype(float), weights)

    def loss(at: Array) -> float:
        return float(own @ np.exp(np.minimum(-inside @ at, 700.0)) + others @ at)

    for _ in range(NEWTON_STEPS):
        odds = own * np.exp(np.minimum(-inside @ gamma, 700.0))
        off = others - odds @ inside
        if np.abs(off).max() < 1e-9:
            return np.asarray(_sigmoid(design @ gamma))
        step = np.linalg.lstsq((inside * odds[:, None]).T @ inside, off, rcond=1e-12)[0]
        size, before = 1.0, loss(gamma)
        while size > 1e-6 and not loss(gamma - size * step) < before:
            size /= 2
        if size <= 1e-6 or np.abs(gamma).max() > FAR:
            break
        gamma = gamma - size * step
    return np.asarray(_sigmoid(design @ logistic(design, has.astype(float), weights)))


def logistic(design: Array, has: Array, weights: Array) -> Array:
    """The coefficients of a logistic regression, by Newton's method.

    Parameters
    ----------
    design : array
        (rows, k)
    has : array
        (rows,) 1 or 0.
    weights : array
        (rows,)
    """
    slopes = np.zeros(design.shape[1])
    for _ in range(NEWTON_STEPS):
        p = _sigmoid(design @ slopes)
        spread = weights * np.maximum(p * (1 - p), 1e-12)
        curvature = (design * spread[:, None]).T @ design + 1e-12 * np.eye(design.shape[1])
        step = np.linalg.solve(curvature, design.T @ (weights * (has - p)))
        slopes = slopes + step
        if np.abs(step).max() < 1e-10 or np.abs(slopes).max() > FAR:
            break
    return slopes


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def strata_without(plan: EffectPlan, source: DataSource, question: EffectQuestion, models: Any) -> str:
    """What to warn of: groups of rows that never had a treatment, or rows of tables that no data reach; or nothing."""
    x = question.treatment
    if isinstance(x, Continuous):
        return ""
    own = {v.name: v for v in source.variables}
    parents = [own[name] for name in plan.parents or () if name in own]
    if parents:
        (counts,) = source.counts([[*(p.name for p in parents), x.name]])
        for state in (question.treated, question.control):
            told = _group_without(counts, parents, x, state)
            if told:
                return told
    told = _too_few_for_lines(plan, source, question)
    return told or (_unseen_rows(source, question, models) if isinstance(models, BayesianNetwork) else "")


def _too_few_for_lines(plan: EffectPlan, source: DataSource, question: EffectQuestion) -> str:
    """Groups that had a treatment, but in fewer rows than a line through the numbers adjusted for needs."""
    own = {v.name: v for v in source.variables}
    groups = [name for name in plan.predictors if name in own]
    k = len(plan.predictors) - len(groups)
    x = question.treatment
    if not k or plan.regressed:
        return ""
    (counts,) = source.counts([[*groups, x.name]])
    for state in (question.treated, question.control):
        rows = counts[..., x.code(state)]
        short = (rows > 0) & (rows < k + 2)
        if short.any():
            return (
                f"{int(rows[short].sum())} rows had {x.name}={state} in {int(short.sum())} groups that are too small "
                f"for a line through the {k} number{'s' * (k > 1)} adjusted for: there the effect is not adjusted"
            )
    return ""


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
