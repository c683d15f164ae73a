"""The factors of a model with evidence in them: hard findings sliced out, likelihoods beside them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor


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
