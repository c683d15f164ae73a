"""The factors that a question needs, with the evidence in them: relevance, restriction, merging.

In a network, a variable with no descendant among the targets and the findings is barren: its table sums to 1 and can be
left out (Shachter 1986). A factor graph has no such freedom; all of it counts. Hard findings are sliced out of the
factors that are left, likelihoods stand beside them, and those that now share all their variables are multiplied.
The cost is the size of the factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork


def ancestral_factors(model: Model, names: set[str]) -> list[Factor]:
    """The factors of these variables and their ancestors, in the model's order; all of an undirected model's."""
    factors = model.factors()
    if not isinstance(model, BayesianNetwork):
        return factors
    wanted = model.ancestral_set(names)
    return [factor for factor, name in zip(factors, model.names, strict=True) if name in wanted]


def observed_factors(
    model: Model, findings: Findings, factors: Iterable[Factor] | None = None
) -> Iterator[Factor]:
    """The factors (the model's unless given), sliced at the hard findings, and one per likelihood, one by one."""
    hard = findings.hard
    for factor in model.factors() if factors is None else factors:
        index = tuple(hard.get(v.name, slice(None)) for v in factor.variables)
        variables = tuple(v for v in factor.variables if v.name not in hard)
        yield Factor.trusted(variables, np.array(factor.values[index]))
    for name, weights in findings.likelihood.items():
        yield Factor.trusted((model.variable(name),), np.array(weights))


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
