"""Likelihood weighting: draw what is not observed from its table, weigh each row by the probability of what is.

Fung and Chang 1990; Shachter and Peot 1990. A hard finding x_i = e multiplies the weight by P(e | parents). A
likelihood λ on x_i is taken into its own draw: x_i is drawn from P(x_i | parents) λ(x_i) / c(parents) and the weight
is multiplied by c(parents) = Σ P(x_i | parents) λ(x_i), so that no sample is spent on states that λ rules out. Of
observed effects of many causes only the causes are drawn (`bbn.inference.sampling.seen_effects`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.sampling.draws import Draw
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.inference.sampling.seen_effects import looking, seen_effects
from bbn.inference.sampling.weighted import Proposal, WeightedSampling
from bbn.model.evidence import Findings, Model
from bbn.model.network import BayesianNetwork
from bbn.model.options import SamplingOptions


class LikelihoodWeighting(WeightedSampling):
    """Likelihood weighting: draw what is not observed, weigh by the probability of what is.

    Parameters
    ----------
    model : BayesianNetwork
        The network to ask.
    n_samples : int, optional
        How many samples to draw; by default 100,000, or as many as `target_std_error` or `time_limit` allow.
    seed : int or numpy.random.Generator, optional
        The same seed gives the same answer, whatever `n_jobs` is.
    target_std_error : float, optional
        Draw until the standard error of every probability is at most this.
    time_limit : float, optional
        Draw for this many seconds at most, and answer with what there is.
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
    n_jobs : int, optional
        Threads, −1 for one per core; by default OMP_NUM_THREADS if set, otherwise one per core.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal and in a notebook.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond.

    See Also
    --------
    ImportanceSampling : Better where evidence is rare.

    Examples
    --------
    >>> import bbn
    >>> net = bbn.example("burglary")
    >>> p = net.query("Burglary", {"JohnCalls": "yes"}, method="likelihood-weighting", seed=1)
    >>> bool(abs(p["yes"] - 0.016284) < 5 * p.std_error[0]), p.n_samples
    (True, 100000)
    """

    name = "likelihood-weighting"

    def __init__(self, model: Model, **options: Unpack[SamplingOptions]) -> None:
        super().__init__(model, **options)

    def _proposal(
        self, names: list[str], findings: Findings, options: Mapping[str, Any], seeds: Seeds
    ) -> Proposal:
        seen = seen_effects(self.model, self.net, names, findings)
        columns = {name: i for i, name in enumerate(n for n in seen.names if n not in findings.hard)}
        draws, log_scale = weighing_draws(self.net, seen.names, columns, seen.findings)
        if log_scale == -math.inf or seen.scale == 0:
            return Proposal(columns, [], -math.inf)
        draws, hope = looking(draws, seen.effects, columns)
        return Proposal(columns, draws, log_scale + math.log(seen.scale), hope=hope)


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
