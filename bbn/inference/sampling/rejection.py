"""Rejection sampling: draw rows from the network as it is, keep those that agree with the evidence.

Henrion 1988 (logic sampling). A likelihood λ on x keeps a row with probability λ(x) / max λ. The rows kept are exact
independent draws given the evidence, so errors are those of plain counting; but only a share P(evidence) is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.sampling.draws import table_draws
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.inference.sampling.weighted import Proposal, WeightedSampling
from bbn.kernels.contracts.moves import Codes
from bbn.model.evidence import Findings, Model
from bbn.model.options import SamplingOptions


class RejectionSampling(WeightedSampling):
    """Rejection sampling: draw rows, keep those that agree with the evidence.

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
    LikelihoodWeighting : Wastes no samples.

    Examples
    --------
    >>> import bbn
    >>> net = bbn.example("burglary")
    >>> p = RejectionSampling(net, n_samples=10_000, seed=1).query("Alarm", {"JohnCalls": "yes"})
    >>> p.n_samples, 0.04 < p.acceptance_rate < 0.065
    (10000, True)
    """

    name = "rejection"

    def __init__(self, model: Model, **options: Unpack[SamplingOptions]) -> None:
        super().__init__(model, **options)

    def _proposal(
        self, names: list[str], findings: Findings, options: Mapping[str, Any], seeds: Seeds
    ) -> Proposal:
        columns = {name: i for i, name in enumerate(names)}
        draws = table_draws(self.net, names, columns, {})

        def accept(bits: np.random.SFC64, codes: Codes, log_weight: Array) -> None:
            refused = np.zeros(len(log_weight), dtype=bool)
            for name, code in findings.hard.items():
                refused |= codes[columns[name]] != code
            rng = np.random.Generator(bits)
            for name, likelihood in findings.likelihood.items():
                chance = (likelihood / likelihood.max())[codes[columns[name]]]
                refused |= rng.random(len(log_weight)) >= chance
            log_weight[refused] = -math.inf

        log_scale = sum(math.log(likelihood.max()) for likelihood in findings.likelihood.values())
        return Proposal(columns, draws, log_scale, accept)
