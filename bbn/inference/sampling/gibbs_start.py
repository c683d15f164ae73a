"""Where chains start: possible states, spread out as the posterior is.

In a network, rows drawn by likelihood weighting and resampled by weight; where none of them agrees with the
evidence, rows of adaptive importance sampling, then exact draws if they fit in memory. Observed effects of many causes
weigh the causes drawn. In a factor graph, each variable in turn from the factors that it completes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bbn import kernels
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.exact.problem import factored
from bbn.inference.sampling.conditioning import conditioned_draws
from bbn.inference.sampling.draws import Draw, code_type, compile_draws
from bbn.inference.sampling.gibbs_causes import large_families, log_shares
from bbn.inference.sampling.importance import learned_draws
from bbn.inference.sampling.likelihood_weighting import weighing_draws
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.kernels.contracts.moves import Codes
from bbn.kernels.watch import check
from bbn.model import expansion
from bbn.model.evidence import Findings, Model
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork

ROWS = 4096
TRIES = 64
"""Rows of a factor graph that are tried before giving up, per chain."""

Source = Callable[[], tuple[list[Draw], float]]
Weigh = Callable[[Codes], Array]


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
    net = factored(model, expansion.TABLE_CELLS)
    names, drawn = _drawn(net, columns, findings)
    every = {name: i for i, name in enumerate(net.names)}
    sources: list[tuple[Mapping[str, int], Source, Weigh | None]] = [
        (drawn, lambda: weighing_draws(net, names, drawn, findings), None),
        (drawn, lambda: learned_draws(net, names, drawn, findings, seeds)[::2], None),
        (every, lambda: conditioned_draws(net, findings, every, options["memory_limit"]), None),
    ]
    sources = [*_causes_alone(model, columns, findings), *sources]
    kind = code_type(v.card for v in net.variables)
    for stream, (where, source, weigh) in enumerate(sources, start=5 - len(sources)):
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
        if weigh is not None:
            log_weight += weigh(rows)
        top = log_weight.max()
        if top > -math.inf:
            weights = np.exp(log_weight - top)
            chosen = np.random.Generator(bits).choice(ROWS, size=n_chains, p=weights / weights.sum())
            kept = [where[name] for name in columns]
            return rows[kept][:, chosen], float(log_scale + top + np.log(weights.mean()))
    return None, -math.inf


def _drawn(
    net: BayesianNetwork, columns: Mapping[str, int], findings: Findings
) -> tuple[list[str], dict[str, int]]:
    """The variables to draw or weigh, and the columns of those that are drawn: the given ones first."""
    relevant = net.ancestral_set([*columns, *findings.hard])
    names = [name for name in net.names if name in relevant]
    drawn = dict(columns)
    for name in names:
        if name not in findings.hard:
            drawn.setdefault(name, len(drawn))
    return names, drawn


def _causes_alone(
    model: BayesianNetwork, columns: Mapping[str, int], findings: Findings
) -> list[tuple[Mapping[str, int], Source, Weigh | None]]:
    """Causes drawn without their observed effects, and weighed by P(effect | causes) of many causes at once.

    Along a chain the effects that lie between would have to be drawn, and few of them agree with what is seen.
    """
    relevant = model.ancestral_set([*columns, *findings.hard])
    families, beside = large_families(model, relevant, findings.hard)
    observed = [name for name in families if name in findings.hard]
    if not observed:
        return []
    cut = model.do({name: model.states(name)[findings.hard[name]] for name in observed})
    net = factored(cut, expansion.TABLE_CELLS)
    names, drawn = _drawn(net, columns, findings)

    def weigh(rows: Codes) -> Array:
        codes = {name: rows[drawn[name]].astype(np.intp) for name in columns}
        total = np.zeros(rows.shape[1])
        with np.errstate(divide="ignore"):
            for factor in beside:
                total += np.log(factor.values)[tuple(codes[name] for name in factor.names)]
        for name in observed:
            family = families[name]
            if family is not None:
                total += log_shares(family, codes, len(total))
        return total

    return [(drawn, lambda: weighing_draws(net, names, drawn, findings), weigh)]


def _completed(
    factors: Sequence[Factor], columns: Mapping[str, int], model: Model, n_chains: int, seeds: Seeds
) -> Codes | None:
    """States drawn one variable after the other, weighed by the factors whose last variable it is."""
    rng = np.random.Generator(seeds.bits(2))
    turn = {name: i for i, name in enumerate(columns)}
    completed: dict[str, list[tuple[tuple[str, ...], Array]]] = {name: [] for name in columns}
    for factor in factors:
        if factor.names and all(name in turn for name in factor.names):
            completed[max(factor.names, key=turn.__getitem__)].append((factor.names, factor.values))
    found = []
    for _ in range(n_chains * TRIES):
        check()
        codes: dict[str, int] = {}
        for name in columns:
            weights = np.ones(model.variable(name).card)
            for names, values in completed[name]:
                weights = weights * values[tuple(codes.get(n, slice(None)) for n in names)]
            if not weights.sum() > 0:
                break
            codes[name] = int(rng.choice(len(weights), p=weights / weights.sum()))
        else:
            found.append([codes[name] for name in columns])
            if len(found) == n_chains:
                return np.array(found).T
    return np.array(found)[rng.integers(len(found), size=n_chains)].T if found else None
