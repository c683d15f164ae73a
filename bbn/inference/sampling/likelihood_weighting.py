"""Likelihood weighting: draw what is not observed from its table, weigh each row by the probability of what is.

Fung and Chang 1990; Shachter and Peot 1990. A hard finding x_i = e multiplies the weight by P(e | parents). A
likelihood λ on x_i is taken into its own draw: x_i is drawn from P(x_i | parents) λ(x_i) / c(parents) and the weight
is multiplied by c(parents) = Σ P(x_i | parents) λ(x_i), so that no sample is spent on states that λ rules out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.sampling.draws import Draw
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.inference.sampling.weighted import Proposal, WeightedSampling
from bbn.model.evidence import Findings
from bbn.model.network import BayesianNetwork


class LikelihoodWeighting(WeightedSampling):
    """Likelihood weighting. The options are those of every sampling engine, see `MonteCarlo`.

    >>> import bbn
    >>> net = bbn.example("burglary")
    >>> p = net.query("Burglary", {"JohnCalls": "yes"}, method="likelihood-weighting", seed=1)
    >>> bool(abs(p["yes"] - 0.016284) < 5 * p.std_error[0]), p.n_samples
    (True, 100000)
    """

    name = "likelihood-weighting"

    def _proposal(
        self, names: list[str], findings: Findings, options: Mapping[str, Any], seeds: Seeds
    ) -> Proposal:
        columns = {name: i for i, name in enumerate(n for n in names if n not in findings.hard)}
        draws, log_scale = weighing_draws(self.net, names, columns, findings)
        return Proposal(columns, draws, log_scale)


def weighing_draws(
    net: BayesianNetwork, names: Iterable[str], columns: Mapping[str, int], findings: Findings
) -> tuple[list[Draw], float]:
    """The draws of likelihood weighting, and the ln of the weight that all rows share (−inf: impossible)."""
    draws = []
    log_scale = 0.0
    for name in names:
        cpt = net[name]
        hard = findings.hard
        index = tuple(hard.get(p.name, slice(None)) for p in cpt.parents)
        table = cpt.factor().values[index]
        parents = tuple(columns[p.name] for p in cpt.parents if p.name not in hard)
        if name in hard:
            weights = table[..., hard[name], None]
            table = np.ones_like(weights)
            column = -1
        elif name in findings.likelihood:
            table = table * findings.likelihood[name]
            weights = table.sum(axis=-1, keepdims=True)
            column = columns[name]
        else:
            draws.append(Draw(columns[name], parents, table))
            continue
        if not parents:
            if weights.item() == 0:
                return [], -math.inf
            log_scale += math.log(weights.item())
            if column >= 0:
                draws.append(Draw(column, parents, table))
        else:
            draws.append(Draw(column, parents, table, np.broadcast_to(logs(weights), table.shape)))
    return draws, log_scale


def logs(weights: Array) -> Array:
    """ln of the weights, −inf where they are 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights))
