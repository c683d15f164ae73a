"""How sure an effect can be: draws from the posterior of what was fitted, or resamples of the rows.

A table's rows have Dirichlet posteriors, a Gaussian's parameters normal-inverse-gamma ones under the usual reference
priors (all of them together, inverse Wishart, where a formula is over numbers), and an estimand's joint of states the
Bayesian bootstrap (Rubin 1981). All draws are answered at once: the number of the draw is one more variable of the
model, which every factor holds, so a thousand draws are one query with a thousand times the cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.causal.effects.arm_means import POOLED
from bbn.causal.effects.arm_rows import by_treatment
from bbn.causal.effects.estimate import EffectQuestion
from bbn.causal.identification.estimand import Estimand
from bbn.causal.identification.gaussian_evaluation import normal_draws
from bbn.core.errors import BudgetError, DataError
from bbn.core.frozen import Array
from bbn.data import CodedTable, DataSource
from bbn.learning.gaussian.estimates import GaussianFamily, Moments, read_gaussians
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.tables.priors import Prior
from bbn.model.cpt import CPT
from bbn.model.factor import Factor
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

if TYPE_CHECKING:
    from bbn.causal.effects.effect_models import EffectPlan

CELLS = 4_000_000
"""As many cells of all tables together are drawn at a time."""
MOST_DRAWN = 1_000_000_000
"""As many cells are drawn in all, which takes a minute or so; more are refused."""
REFERENCE = 0.5
"""What each entry of a table's row begins with, where no prior says more (Jeffreys 1946)."""


def credible_draws(
    plan: EffectPlan,
    source: DataSource,
    question: EffectQuestion,
    models: BayesianNetwork | Estimand,
    prior: Prior | None,
    n_draws: int,
    seed: Any,
) -> tuple[Array, Array]:
    """Draws of the outcome under both treatments."""
    rng = np.random.default_rng(seed)
    pairs = []
    left = n_draws
    if isinstance(models, Estimand):
        size = source.n_rows if not isinstance(source, CodedTable) else source.merged().n_rows
        chunk = max(1, min(n_draws, CELLS // max(1, size)))
    else:
        cells = sum(c.table.size for c in models.conditionals if isinstance(c, CPT))
        _require_few(cells, n_draws, int(source.total))
        chunk = max(1, min(n_draws, CELLS // max(1, cells)))
    moments = _moments(models, source) if isinstance(models, BayesianNetwork) and models.continuous else {}
    while left > 0:
        n = min(chunk, left)
        left -= n
        if isinstance(models, Estimand):
            pairs.append(_estimand_draws(models, source, question, rng, n))
        else:
            pairs.append(_network_draws(models, question, moments, prior, rng, n))
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def _require_few(cells: int, n_draws: int, rows: int) -> None:
    """BudgetError if drawing all tables so often would take minutes or hours."""
    if cells * n_draws > MOST_DRAWN:
        raise BudgetError(
            f"the interval of the g-formula would draw tables of {cells:,} cells, fitted to {rows:,} rows, {n_draws:,} "
            f"times; n_draws={MOST_DRAWN // cells} or fewer, interval=None, or adjusted= with fewer variables"
        )


def bootstrap_draws(source: DataSource, n_draws: int, seed: Any) -> Iterator[CodedTable]:
    """The data with rows drawn again: each row with the number of times that it was drawn."""
    if not isinstance(source, CodedTable):
        raise DataError("the bootstrap draws rows and so needs data in memory; interval='credible' does not")
    rng = np.random.default_rng(seed)
    block = source.merged()
    shares = block.weights / block.weights.sum()
    for _ in range(n_draws):
        times = rng.multinomial(round(source.total), shares).astype(np.float64)
        kept = times > 0
        yield CodedTable(
            source.variables,
            {name: column[kept] for name, column in block.codes.items()},
            int(kept.sum()),
            times[kept],
            source.kind,
            {name: column[kept] for name, column in block.numbers.items()},
        )


def of_draws(found: Iterable[Mapping[str, tuple[float, float]]]) -> list[tuple[str, Array, Array]]:
    """Draws of all estimators, one after the other, by estimator."""
    listed = list(found)
    return [
        (name, np.array([one[name][0] for one in listed]), np.array([one[name][1] for one in listed]))
        for name in listed[0]
    ]


def _network_draws(
    net: BayesianNetwork,
    question: EffectQuestion,
    moments: Mapping[str, tuple[GaussianFamily, Moments]],
    prior: Prior | None,
    rng: np.random.Generator,
    n: int,
) -> tuple[Array, Array]:
    """Draws of the outcome under both treatments, of a network fitted with its counts."""
    draw = _draw_variable(net.names, n)
    x = question.treatment.name
    factors = []
    for conditional in net.conditionals:
        if isinstance(conditional, CPT) and conditional.name != x:
            counts = getattr(conditional, "counts", None)
            assert counts is not None
            # without a prior the counts hold one each
            alpha = _pooled(counts - 1.0, by_treatment(conditional.parents, x)) if prior is None else counts
            gammas = rng.standard_gamma(np.broadcast_to(alpha, (n, *alpha.shape)))
            shares = gammas / np.maximum(gammas.sum(axis=-1, keepdims=True), np.finfo(float).tiny)
            factors.append(Factor.trusted((draw, *conditional.parents, conditional.variable), shares))
    lines = {
        name: _gaussian_draws(net, family, own, by_treatment(family.discrete, x), rng, n)
        for name, (family, own) in moments.items()
    }
    one, other = (
        _under(net, question, draw, factors, lines, value) for value in (question.treated, question.control)
    )
    return one, other


def _pooled(counts: Array, group: NDArray[np.intp]) -> Array:
    """Dirichlet parameters of each row: its counts, and as much as Jeffreys adds to them, in part pooled.

    Of the S rows of a group, each has 1/S of the reference counts, so that a group has them once, and the rest in the
    shares of the whole group: otherwise many short rows would all be drawn towards equal shares. For the same reason
    the spread of many rows is that of shares of n, p (1 − p) / (n − 1), not what the added counts make of it.
    """
    rows = counts.reshape(-1, counts.shape[-1])
    n = rows.sum(axis=1, keepdims=True)
    k = REFERENCE * rows.shape[1]
    whole = np.zeros((int(group.max()) + 1, rows.shape[1]))
    np.add.at(whole, group, rows)
    part = 1.0 / np.maximum(np.bincount(group, n[:, 0] > 0), 1.0)[group][:, None]
    shares = ((whole + REFERENCE) / (whole.sum(axis=1, keepdims=True) + k))[group]
    centre = (rows + REFERENCE * part + k * (1 - part) * shares) / (n + k)
    size = np.maximum(n + k - (1 - part) * (k + 2), REFERENCE)
    return np.asarray((centre * size).reshape(counts.shape))


def _under(
    net: BayesianNetwork,
    question: EffectQuestion,
    draw: Variable,
    factors: list[Factor],
    lines: Mapping[str, tuple[Array, Array]],
    value: Any,
) -> Array:
    """The outcome under one treatment, by draw."""
    x, y = question.treatment, question.outcome
    fixed = {} if isinstance(x, Continuous) else {x.name: value}
    cut = [factor.restrict(fixed) for factor in factors]
    if not isinstance(y, Continuous):
        joint = _joint(cut, draw, (y,))
        return np.asarray(joint @ question.scores)
    # means of continuous variables, by draw and by setting of the discrete ones above them
    above = net.ancestral_set([y.name])
    numeric = [name for name in net.continuous if name in above]
    regime = tuple(
        v
        for v in net.variables
        if any(v.name in net.parents(name) for name in numeric) and not isinstance(v, Continuous)
    )
    shape = tuple(v.card for v in regime)
    free = tuple(v for v in regime if v.name not in fixed)
    shares = _joint(cut, draw, free) if free else np.ones((draw.card,))
    means: dict[str, Array] = {}
    for name in numeric:
        if name == x.name:
            means[name] = np.full((draw.card, *shape), float(value))
            continue
        gaussian: Any = net[name]
        starts, weights = lines[name]
        settings = tuple(v.card for v in gaussian.discrete_parents)
        mean = _spread(starts.reshape(draw.card, *settings), gaussian.discrete_parents, regime)
        for k, parent in enumerate(gaussian.continuous_parents):
            slope = _spread(weights[..., k].reshape(draw.card, *settings), gaussian.discrete_parents, regime)
            mean = mean + slope * means[parent.name]
        means[name] = np.broadcast_to(mean, (draw.card, *shape))
    index = tuple(v.code(fixed[v.name]) if v.name in fixed else slice(None) for v in regime)
    answer = means[y.name][(slice(None), *index)]
    return np.asarray((answer * shares).reshape(draw.card, -1).sum(axis=1))


def _joint(factors: list[Factor], draw: Variable, wanted: tuple[Variable, ...]) -> Array:
    """(draws, \\*states): the joint of some variables for each draw."""
    found = FactorGraph(factors).query([draw.name, *(v.name for v in wanted)]).values
    return np.asarray(found / found.reshape(draw.card, -1).sum(axis=1).reshape(-1, *(1,) * len(wanted)))


def _spread(values: Array, own: tuple[Variable, ...], regime: tuple[Variable, ...]) -> Array:
    """(draws, \\*settings of a Gaussian's parents) as an array that broadcasts over the settings of the regime."""
    order = sorted(range(len(own)), key=lambda k: regime.index(own[k]))
    moved = values.transpose(0, *(1 + k for k in order))
    return moved.reshape(len(values), *(v.card if v in own else 1 for v in regime))


def _moments(net: BayesianNetwork, source: DataSource) -> dict[str, tuple[GaussianFamily, Moments]]:
    """What the data say about each Gaussian."""
    variables = {v.name: v for v in net.variables}
    parents = {name: tuple(variables[p] for p in net.parents(name)) for name in net.names}
    families = read_gaussians(parents, variables, {})
    return {f.name: (f, own) for f, own in zip(families, moments_of(families, source), strict=True)}


def _gaussian_draws(
    net: BayesianNetwork,
    family: GaussianFamily,
    moments: Moments,
    group: NDArray[np.intp],
    rng: np.random.Generator,
    n_draws: int,
) -> tuple[Array, Array]:
    """(draws, settings) intercepts and (draws, settings, k) weights, from their posterior under a reference prior.

    The variance of a setting is also told by the others of its group, as much as by POOLED rows: that of a few rows
    alone would be next to unknown.
    """
    n_settings, q = moments.means.shape
    p = q - 1
    inner = [np.linalg.pinv(s[:p, :p], rcond=1e-12, hermitian=True) for s in moments.scatter]
    slopes = [own @ s[:p, p] for own, s in zip(inner, moments.scatter, strict=True)]
    left = np.array(
        [max(float(s[p, p] - b @ s[:p, p]), 0.0) for b, s in zip(slopes, moments.scatter, strict=True)]
    )
    ranks = [np.linalg.matrix_rank(own, hermitian=True) if p else 0 for own in inner]
    degrees = np.maximum(moments.n - 1 - ranks, 0.0)
    pooled = _pooled_variance(left, degrees, group)
    if not degrees.any():  # a row for each coefficient: the spread of the column, at most
        total = max(float(moments.n.sum()), 2.0)
        apart = moments.means[:, p] - moments.n @ moments.means[:, p] / total
        pooled = np.full(
            n_settings, float(moments.n @ apart**2 + moments.scatter[:, p, p].sum()) / (total - 1)
        )
    centre = (left + POOLED * pooled) / (degrees + POOLED)
    # no setting is known better than its group; an average over many settings is no wider than their variances say
    known = np.minimum(degrees + POOLED, np.maximum(np.bincount(group, degrees)[group], 1.0))
    alone = 1.0 / np.bincount(group)[group]
    spread = known - np.where(known > 2, 2 * (1 - alone), 0.0)
    starts, weights = np.zeros((n_draws, n_settings)), np.zeros((n_draws, n_settings, p))
    fitted: Any = net[family.name]
    for j in range(n_settings):
        n, mean = moments.n[j], moments.means[j]
        variance = centre[j] * spread[j] / rng.chisquare(known[j], n_draws)
        noise = rng.standard_normal(n_draws) * np.sqrt(variance / max(n, 1.0))
        if not n > 0:  # no row: what was fitted there, as if by one
            starts[:, j] = fitted.means.reshape(-1)[j] + noise
            weights[:, j] = fitted.weights.reshape(n_settings, p)[j]
            continue
        weights[:, j] = slopes[j]
        if p:
            values, vectors = np.linalg.eigh(inner[j])
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            weights[:, j] += (rng.standard_normal((n_draws, p)) @ root.T) * np.sqrt(variance)[:, None]
        starts[:, j] = mean[p] + noise - weights[:, j] @ mean[:p]
    return starts, weights


def _pooled_variance(left: Array, degrees: Array, group: NDArray[np.intp]) -> Array:
    """(settings,) The variance of each one's group, or of all settings where the group does not tell."""
    own, known = np.bincount(group, left), np.bincount(group, degrees)
    whole = left.sum() / max(float(degrees.sum()), 1.0)
    return np.asarray(np.where(known > 0, own / np.maximum(known, 1.0), whole)[group])


def _estimand_draws(
    estimand: Estimand, source: DataSource, question: EffectQuestion, rng: np.random.Generator, n: int
) -> tuple[Array, Array]:
    """Draws of the outcome under both treatments, of a formula: each with its own weights of the rows."""
    if not isinstance(source, CodedTable):
        raise DataError(
            "credible intervals of a formula draw rows and so need data in memory; interval=None does not"
        )
    name = question.treatment.name
    if source.numbers:
        normal = normal_draws(source, tuple(dict.fromkeys((*estimand.variables, *estimand.outcome))), rng, n)
        treated, control = (
            estimand.normal_on(normal, {name: value})[0] for value in (question.treated, question.control)
        )
        return np.broadcast_to(treated, n), np.broadcast_to(control, n)
    rows = _Reweighted(source, rng, n, estimand.variables)
    one, other = (
        estimand.value_on(rows, {name: value}, (rows.draw.name,)) @ question.scores
        for value in (question.treated, question.control)
    )
    return one, other


class _Reweighted:
    """The joint of the data under many weightings of its rows at once: the draw is its first axis."""

    def __init__(self, source: CodedTable, rng: np.random.Generator, n: int, names: Iterable[str]) -> None:
        self.own = {v.name: v for v in source.variables}
        self.draw = _draw_variable(self.own, n)
        self.block = source.merged()
        gammas = rng.standard_gamma(np.broadcast_to(self.block.weights, (n, self.block.n_rows)))
        self.shares = gammas / gammas.sum(axis=1, keepdims=True)

    def variable(self, name: str) -> Variable:
        return self.own[name]

    def joint(self, names: tuple[str, ...]) -> Factor:
        variables = tuple(self.own[name] for name in names)
        shape = tuple(v.card for v in variables)
        codes = np.ravel_multi_index([self.block.codes[name].astype(np.intp) for name in names], shape)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        table = np.zeros((self.draw.card, int(np.prod(shape))))
        table[:, codes[order][starts]] = np.add.reduceat(self.shares[:, order], starts, axis=1)
        return Factor.trusted((self.draw, *variables), table.reshape(self.draw.card, *shape))


def _draw_variable(names: Iterable[str], n: int) -> Variable:
    """A variable whose states are the draws, with a name that no other has."""
    name = "draw"
    while name in names:
        name += "'"
    return Variable(name, list(range(n)))
