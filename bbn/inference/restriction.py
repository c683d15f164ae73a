"""The factors of a model with evidence in them, hard findings sliced out, likelihoods beside them; their product."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from bbn.evidence import Findings, Model
from bbn.factor import Factor

TINY = 1e-100
"""A factor whose largest entry is below this, or above its inverse, is scaled long before a product would fail."""


def observed(model: Model, findings: Findings, factors: Iterable[Factor] | None = None) -> list[Factor]:
    """The factors (the model's unless given), sliced at the hard findings, and one per likelihood."""
    hard = findings.hard
    sliced = [
        Factor.trusted(
            tuple(v for v in factor.variables if v.name not in hard),
            np.array(factor.values[tuple(hard.get(v.name, slice(None)) for v in factor.variables)]),
        )
        for factor in (model.factors() if factors is None else factors)
    ]
    likelihoods = [
        Factor.trusted((model.variable(name),), np.array(weights))
        for name, weights in findings.likelihood.items()
    ]
    return sliced + likelihoods


def product_of(factors: Iterable[Factor], start: Factor) -> tuple[Factor, float]:
    """The product of `start` and the factors, scaled so as not to underflow, and the ln of the scale."""
    product, log_scale = start, 0.0
    for factor in factors:
        small, log_factor = _tamed(factor)
        product, log_product = _tamed(product * small)
        log_scale += log_factor + log_product
    return product, log_scale


def _tamed(factor: Factor) -> tuple[Factor, float]:
    """The factor, scaled to a maximum of 1 if that is of extreme size, and the ln of the scale."""
    highest = float(factor.values.max())
    if highest == 0 or TINY < highest < 1 / TINY:
        return factor, 0.0
    return Factor.trusted(factor.variables, factor.values / highest), math.log(highest)
