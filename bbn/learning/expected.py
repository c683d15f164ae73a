"""Expected counts under a network: what EM and gradient ascent ask of data with holes.

For a row d with evidence e_d the family of child i adds P(x_i, parents_i | e_d); its sum over rows is the family's
expected count, and Σ_d ln P(e_d) the log-likelihood.
"""

from __future__ import annotations

from bbn.frozen import Array
from bbn.network import BayesianNetwork


def family_marginals(net: BayesianNetwork) -> dict[str, Array]:
    """P(x, parents) of each variable, shaped like its table, with no evidence."""
    marginals = {}
    for name in net.names:
        parents = net.parents(name)
        marginals[name] = net.query([*parents, name]).values
    return marginals
