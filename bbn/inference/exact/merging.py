"""Factors over the same variables as one: slicing evidence out of many tables leaves many such."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from bbn.model.factor import Factor


def merged_factors(factors: Iterable[Factor]) -> tuple[list[Factor], float]:
    """The products of the factors that share all their variables, each scaled to a largest entry of 1.

    Returns
    -------
    factors, log_scale
        Scalars are in the scale alone; a product that is zero everywhere stays zero.
    """
    by_scope: dict[frozenset[str], list[Factor]] = {}
    for factor in factors:
        by_scope.setdefault(frozenset(factor.names), []).append(factor)
    merged = []
    log_scale = 0.0
    for group in by_scope.values():
        names, variables = group[0].names, group[0].variables
        with np.errstate(divide="ignore"):
            logs = np.asarray(sum(np.log(factor.permute(names).values) for factor in group))
        highest = float(logs.max())
        log_scale += highest
        if variables:
            merged.append(Factor.trusted(variables, np.exp(logs - highest if highest > -math.inf else logs)))
    return merged, log_scale
