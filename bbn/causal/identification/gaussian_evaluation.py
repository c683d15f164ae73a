"""Evaluation of expressions over numbers: every probability is a normal density in canonical form (Lauritzen 1992).

    f(x) ∝ exp(hᵀx − ½ xᵀKx)        products add (K, h), quotients subtract them, a sum over a is an integral:
    K_bb − K_ba K_aa⁻¹ K_ab,  h_b − K_ba K_aa⁻¹ h_a;        a number fixed at v:  K_bb,  h_b − K_ba v

Constants play no part, as the answer is a distribution. So the front door of a linear model with normal noise comes out
as the product of two slopes, and any other formula as what it is. Arrays may have axes in front, one for draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bbn.causal.identification.expression import Expression, Probability, Product, Quotient, Sum
from bbn.core.errors import DataError, ImpossibleEvidenceError, ModelError
from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous

CONDITION = 1e13
"""A covariance whose condition, in standard units, is beyond this is taken as singular."""


class Normal(NamedTuple):
    """The joint normal distribution of some variables."""

    names: tuple[str, ...]
    mean: Array
    """(..., n)"""
    covariance: Array
    """(..., n, n)"""

    def variable(self, name: str) -> Continuous:
        """The variable of this name."""
        return Continuous(name)


class _Canonical(NamedTuple):
    names: tuple[str, ...]
    k: Array
    h: Array


def normal_of_network(net: BayesianNetwork, names: tuple[str, ...]) -> Normal:
    """The joint of some continuous variables of a network, whose ancestors must all be continuous."""
    order = [name for name in net.names if name in net.ancestral_set(list(names))]
    place = {name: i for i, name in enumerate(order)}
    mean, covariance = np.zeros(len(order)), np.zeros((len(order), len(order)))
    for i, name in enumerate(order):
        own: Any = net[name]
        if not isinstance(own, Gaussian) or own.discrete_parents:
            raise ModelError(
                f"{name!r} has states, or parents with states; an estimand over numbers needs every cause of them "
                "to be a Gaussian"
            )
        before = [place[p.name] for p in own.continuous_parents]
        weights = np.asarray(own.weights).reshape(-1)
        mean[i] = float(own.means) + weights @ mean[before]
        covariance[i, :i] = covariance[:i, i] = weights @ covariance[before, :i]
        covariance[i, i] = float(own.variances) + weights @ covariance[np.ix_(before, before)] @ weights
    at = [place[name] for name in names]
    return Normal(names, mean[at], covariance[np.ix_(at, at)])


def normal_of_data(source: CodedTable, names: tuple[str, ...]) -> Normal:
    """The means and the covariances of columns of numbers."""
    values = np.column_stack([source.numbers[name] for name in names])
    weights = np.ones(len(values)) if source.weights is None else source.weights
    mean = np.average(values, axis=0, weights=weights)
    apart = values - mean
    return Normal(names, mean, (apart * weights[:, None]).T @ apart / weights.sum())


def normal_draws(source: CodedTable, names: tuple[str, ...], rng: np.random.Generator, n: int) -> Normal:
    """Means and covariances from their posterior under the reference prior: an inverse Wishart, then a normal."""
    fitted = normal_of_data(source, names)
    q, total = len(names), source.total
    if total <= q + 1:
        raise DataError(
            f"{total:g} rows do not determine the covariances of {q} variables; expected more than {q + 1}"
        )
    # Bartlett's decomposition of a Wishart with total − 1 degrees of freedom
    corner = np.tril(rng.normal(size=(n, q, q)), -1)
    for i in range(q):
        corner[:, i, i] = np.sqrt(rng.chisquare(total - 1 - i, n))
    root = np.linalg.cholesky(_sound(fitted.covariance, names) * total)
    # Σ = root W⁻¹ rootᵀ, W = corner cornerᵀ
    spread = root @ np.swapaxes(np.linalg.inv(corner), -1, -2)
    covariance = np.asarray(spread @ np.swapaxes(spread, -1, -2), np.float64)
    mean = fitted.mean + (spread @ rng.normal(size=(n, q, 1)))[..., 0] / np.sqrt(total)
    return Normal(names, mean, covariance)


def evaluate_normal(
    expression: Expression, normal: Normal, outcome: str, fixed: Mapping[str, float]
) -> tuple[Array, Array]:
    """The mean and the variance of the outcome, where an expression's other free variables are fixed or averaged."""
    # in standard units, so that large means and odd units cost no digits
    q = len(normal.names)
    centre = normal.mean.reshape(-1, q).mean(axis=0)
    scale = np.sqrt(np.diagonal(normal.covariance, axis1=-2, axis2=-1).reshape(-1, q).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    units = dict(zip(normal.names, zip(centre.tolist(), scale.tolist(), strict=True), strict=True))
    covariance = normal.covariance / scale[:, None] / scale
    normal = Normal(normal.names, (normal.mean - centre) / scale, covariance)
    at = {name: (value - units[name][0]) / units[name][1] for name, value in fixed.items() if name in units}
    found = _value(expression, normal, at)
    extra = [name for name in found.names if name != outcome]
    if extra:  # whose value makes no difference: for each of them a distribution, then their mean
        found = _minus(found, _without(found, (outcome,)))
        found = _without(_plus([found, _probability(Probability(tuple(extra)), normal)]), extra)
    if outcome not in found.names or not (found.k[..., 0, 0] > 0).all():
        raise ImpossibleEvidenceError(
            f"the formula does not determine the distribution of {outcome!r}", dict(fixed)
        )
    variance = 1.0 / found.k[..., 0, 0]
    middle, spread = units[outcome]
    return middle + spread * found.h[..., 0] * variance, spread**2 * variance


def _value(expression: Expression, normal: Normal, fixed: Mapping[str, float]) -> _Canonical:
    if isinstance(expression, Probability):
        return _fixed(_probability(expression, normal), fixed)
    if isinstance(expression, Sum):
        inner = {name: value for name, value in fixed.items() if name not in expression.over}
        return _without(_value(expression.body, normal, inner), expression.over)
    if isinstance(expression, Quotient):
        return _minus(_value(expression.top, normal, fixed), _value(expression.bottom, normal, fixed))
    assert isinstance(expression, Product)
    return _plus([_value(factor, normal, fixed) for factor in expression.factors])


def _probability(asked: Probability, normal: Normal) -> _Canonical:
    """P(targets | given) = P(targets, given) / P(given)."""
    joint = _marginal(normal, (*asked.given, *asked.targets))
    return _minus(joint, _marginal(normal, asked.given)) if asked.given else joint


def _marginal(normal: Normal, names: Iterable[str]) -> _Canonical:
    own = tuple(dict.fromkeys(names))
    at = [normal.names.index(name) for name in own]
    k = np.asarray(np.linalg.inv(_sound(normal.covariance[..., at, :][..., at], own)), np.float64)
    return _Canonical(own, k, (k @ normal.mean[..., at, None])[..., 0])


def _sound(covariance: Array, names: Iterable[str]) -> Array:
    """The covariance; DataError if one variable is a linear function of the others."""
    scale = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    flat = scale <= 0
    if not flat.any():
        standard = covariance / scale[..., :, None] / scale[..., None, :]
        if (np.linalg.cond(standard) < CONDITION).all():
            return covariance
    raise DataError(
        f"one of {', '.join(map(repr, names))} is constant or a linear function of the others; the formula "
        "conditions on it, which then says nothing"
    )


def _plus(parts: list[_Canonical]) -> _Canonical:
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    spread = [_spread(part, names) for part in parts]
    return _Canonical(names, sum(k for k, _ in spread), sum(h for _, h in spread))  # type: ignore[arg-type]


def _minus(top: _Canonical, bottom: _Canonical) -> _Canonical:
    return _plus([top, _Canonical(bottom.names, -bottom.k, -bottom.h)])


def _spread(part: _Canonical, names: tuple[str, ...]) -> tuple[Array, Array]:
    """(K, h) over more variables."""
    at = [names.index(name) for name in part.names]
    k = np.zeros((*part.k.shape[:-2], len(names), len(names)))
    h = np.zeros((*part.h.shape[:-1], len(names)))
    rows, columns = np.ix_(at, at)
    k[..., rows, columns] = part.k
    h[..., at] = part.h
    return k, h


def _split(part: _Canonical, gone: Iterable[str]) -> tuple[list[int], list[int]]:
    listed = set(gone)
    a = [i for i, name in enumerate(part.names) if name in listed]
    return a, [i for i, name in enumerate(part.names) if name not in listed]


def _without(part: _Canonical, over: Iterable[str]) -> _Canonical:
    """The integral over some variables."""
    a, b = _split(part, over)
    if not a:
        return part
    inner, across = part.k[..., a, :][..., a], part.k[..., b, :][..., a]
    share = across @ np.linalg.inv(inner)
    k = part.k[..., b, :][..., b] - share @ np.swapaxes(across, -1, -2)
    h = part.h[..., b] - (share @ part.h[..., a, None])[..., 0]
    return _Canonical(tuple(part.names[i] for i in b), k, h)


def _fixed(part: _Canonical, values: Mapping[str, float]) -> _Canonical:
    """Some variables at given numbers."""
    a, b = _split(part, values)
    if not a:
        return part
    at = np.array([values[part.names[i]] for i in a])
    h = part.h[..., b] - part.k[..., b, :][..., a] @ at
    return _Canonical(tuple(part.names[i] for i in b), part.k[..., b, :][..., b], h)
