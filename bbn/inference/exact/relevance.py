"""Relevance: which factors a question needs at all.

In a network, a variable with no descendant among the targets and the findings is barren: its table sums to 1
and can be left out (Shachter 1986). A factor graph has no such freedom; all of it counts.
"""

from __future__ import annotations

from bbn.model.evidence import Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork


def ancestral_factors(model: Model, names: set[str]) -> list[Factor]:
    """The factors of these variables and their ancestors, in the model's order; all of an undirected model's."""
    factors = model.factors()
    if not isinstance(model, BayesianNetwork):
        return factors
    wanted = model.ancestral_set(names)
    return [factor for factor, name in zip(factors, model.names, strict=True) if name in wanted]
