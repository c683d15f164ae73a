"""Where chains start: possible states, spread out as the posterior is.

In a network, rows drawn by likelihood weighting and resampled by weight; where none of them agrees with the
evidence, rows of adaptive importance sampling, then exact draws if they fit in memory. In a factor graph, each
variable in turn from the factors that it completes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn import kernels
from bbn.core.errors import BudgetError
from bbn.inference.sampling.conditioning import conditioned_draws
from bbn.inference.sampling.draws import Draw, code_type, compile_draws
from bbn.inference.sampling.importance import learned_draws
from bbn.inference.sampling.likelihood_weighting import weighing_draws
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.kernels.contracts.moves import Codes
from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork

ROWS = 4096
TRIES = 64
"""Rows of a factor graph that are tried before giving up, per chain."""

Source = Callable[[], tuple[list[Draw], float]]


def starting_states(
    model: Model,
    factors: Sequence[Factor],
    columns: Mapping[str, int],
    findings: Findings,
    n_chains: int,
    seeds: Seeds,
    options: Mapping[str, Any],
) -> tuple[Codes | None, float]:
    """Codes of shape (columns, chains), None if no possible state was found, and an estimate of ln P(findings)."""
    if not isinstance(model, BayesianNetwork):
        return _completed(factors, columns, model, n_chains, seeds), math.nan
    names = [name for name in model.names if name in columns or name in findings.hard]
    every = {name: i for i, name in enumerate(model.names)}
    sources: list[tuple[Mapping[str, int], Source]] = [
        (columns, lambda: weighing_draws(model, names, columns, findings)),
        (columns, lambda: learned_draws(model, names, columns, findings, seeds)),
        (every, lambda: conditioned_draws(model, findings, every, options["memory_limit"])),
    ]
    kind = code_type(v.card for v in model.variables)
    for stream, (where, source) in enumerate(sources, start=2):
        try:
            draws, log_scale = source()
        except BudgetError:
            break
        if log_scale == -math.inf:
            break
        rows = np.zeros((len(where) or 1, ROWS), kind)
        log_weight = np.zeros(ROWS)
        bits = seeds.bits(stream)
        kernels.sample.forward(bits, compile_draws(draws), rows, log_weight)
        top = log_weight.max()
        if top > -math.inf:
            weights = np.exp(log_weight - top)
            chosen = np.random.Generator(bits).choice(ROWS, size=n_chains, p=weights / weights.sum())
            kept = [where[name] for name in columns]
            return rows[kept][:, chosen], float(log_scale + top + np.log(weights.mean()))
    return None, -math.inf


def _completed(
    factors: Sequence[Factor], columns: Mapping[str, int], model: Model, n_chains: int, seeds: Seeds
) -> Codes | None:
    """States drawn one variable after the other, weighed by the factors whose last variable it is."""
    rng = np.random.Generator(seeds.bits(2))
    found = []
    for _ in range(n_chains * TRIES):
        codes: dict[str, int] = {}
        for name in columns:
            weights = np.ones(model.variable(name).card)
            for factor in factors:
                if name in factor.names and all(n in codes or n == name for n in factor.names):
                    weights = weights * factor.values[tuple(codes.get(n, slice(None)) for n in factor.names)]
            if not weights.sum() > 0:
                break
            codes[name] = int(rng.choice(len(weights), p=weights / weights.sum()))
        else:
            found.append([codes[name] for name in columns])
            if len(found) == n_chains:
                return np.array(found).T
    return np.array(found)[rng.integers(len(found), size=n_chains)].T if found else None
