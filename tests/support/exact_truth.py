"""The exact truth: the joint as a dict of fractions, so that no number is too small or too large for it.

It reads tables and evidence's public attributes and shares no other code with the library.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tests.support.oracle import _likelihood

Weights = dict[tuple[int, ...], Fraction]
"""Codes of all variables, in the model's order, to the exact product of all factors and findings."""


def weights(model: Any, evidence: dict[str, Any] | None = None) -> Weights:
    """The exact weight of each full assignment; assignments that evidence excludes are left out."""
    names = [v.name for v in model.variables]
    position = {name: i for i, name in enumerate(names)}
    tables = []
    for factor in model.factors():
        cells = np.vectorize(Fraction, otypes=[object])(factor.values)
        tables.append((cells, [position[name] for name in factor.names]))
    found = [
        [Fraction(_likelihood((evidence or {}).get(v.name), state)) for state in v.states]
        for v in model.variables
    ]
    whole: Weights = {}
    for codes in product(*(range(v.card) for v in model.variables)):
        weight = Fraction(1)
        for likelihood, code in zip(found, codes, strict=True):
            weight *= likelihood[code]
        for cells, axes in tables:
            if not weight:
                break
            weight *= cells[tuple(codes[axis] for axis in axes)]
        if weight:
            whole[codes] = weight
    return whole


def total(whole: Weights) -> Fraction:
    """The weight of everything: P(evidence)."""
    return sum(whole.values(), Fraction(0))


def marginal(whole: Weights, axis: int, card: int) -> np.ndarray:
    """The exact posterior of one variable, rounded to doubles."""
    parts = [Fraction(0)] * card
    for codes, weight in whole.items():
        parts[codes[axis]] += weight
    everything = total(whole)
    return np.array([float(part / everything) for part in parts])


def log(weight: Fraction) -> float:
    """The natural logarithm of a fraction of any size."""
    return math.log(weight.numerator) - math.log(weight.denominator)
