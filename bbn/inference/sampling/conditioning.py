"""Exact draws given evidence, however rare: eliminate backwards, draw forwards.

Eliminating x from the product ψ of the factors that hold it leaves Σ_x ψ, and ψ / Σ_x ψ is P(x | the rest of its
clique, evidence). Drawing the variables in the reverse of the elimination order from these conditionals gives
independent exact rows (Dawid 1992, sampling from a junction tree; Koller and Friedman 2009, exercise 12.3). Only the
ancestors of the evidence are eliminated; every other variable is drawn from its own table. The cost beyond that of
plain sampling is one elimination.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bbn.core.budget import memory_limit as bytes_allowed
from bbn.core.budget import require_memory
from bbn.inference.log_factor import LogFactor
from bbn.inference.relevant_factors import ancestral_factors, observed_factors
from bbn.inference.sampling.draws import Draw, table_draws
from bbn.model.evidence import Findings
from bbn.model.factor import Factor
from bbn.model.graphs import elimination_order
from bbn.model.network import BayesianNetwork

LARGE = 1_000_000
"""With more cells than this, other elimination orders are tried too."""
BYTES_PER_CELL = 32
"""A product, the message from it, its shares and their thresholds."""


def conditioned_draws(
    net: BayesianNetwork,
    findings: Findings,
    columns: Mapping[str, int],
    memory_limit: int | str | None = None,
) -> tuple[list[Draw], float]:
    """Draws whose product is P(everything | findings), and ln P(findings), −inf if they are impossible."""
    evidence = {*findings.hard, *findings.likelihood}
    sliced = list(observed_factors(net, findings, ancestral_factors(net, evidence))) if evidence else []
    order = _elimination(sliced, memory_limit)
    turn = {name: i for i, name in enumerate(order)}
    buckets: list[list[LogFactor]] = [[] for _ in range(len(order) + 1)]
    """The factors by which of their variables has the first turn; scalars at the end."""
    for factor in map(LogFactor.of, sliced):
        buckets[_first(factor.names, turn)].append(factor)
    draws = []
    for name, bucket in zip(order, buckets, strict=False):
        product = LogFactor.trusted((net.variable(name),), np.zeros(net.variable(name).card))
        for factor in bucket:
            product = factor * product
        rest = [n for n in product.names if n != name]
        logs = product.permute([*rest, name]).values
        highest = logs.max(axis=-1, keepdims=True)
        with np.errstate(under="ignore"):
            weights = np.exp(logs - np.where(highest > -np.inf, highest, 0.0))
        draws.append(Draw(columns[name], tuple(columns[n] for n in rest), weights))
        buckets[_first(rest, turn)].append(product.sum_out(name))
    log_evidence = float(sum(factor.values for factor in buckets[-1]))
    if log_evidence == -math.inf:
        return [], -math.inf
    drawn = {*order, *findings.hard}
    rest = [name for name in net.names if name not in drawn]
    return draws[::-1] + table_draws(net, rest, columns, findings.hard), log_evidence


def _elimination(factors: list[Factor], memory_limit: int | str | None) -> list[str]:
    """An elimination order of the factors' variables; BudgetError if its tables would not fit."""
    cards = {v.name: v.card for factor in factors for v in factor.variables}
    scopes = [f.names for f in factors]
    most = (
        bytes_allowed(memory_limit) / BYTES_PER_CELL
    )  # an order with a larger table is given up there, and refused
    order = elimination_order(scopes, cards, most=most)
    cells = _cells(order, scopes, cards)
    for rule in ("weighted-min-fill", "min-weight") if cells > LARGE else ():
        other = elimination_order(scopes, cards, rule, most=most)
        fewer = _cells(other, scopes, cards)
        if fewer < cells:
            order, cells = other, fewer
    require_memory(
        cells * BYTES_PER_CELL,
        "drawing exactly given this evidence",
        "a sampling method such as importance sampling approximates",
        memory_limit,
    )
    return order


def _cells(order: list[str], scopes: Sequence[tuple[str, ...]], cards: Mapping[str, int]) -> int:
    """The cells of all the tables that this order, or the part of one, makes."""
    turn = {name: i for i, name in enumerate(order)}
    buckets: list[set[str]] = [set() for _ in range(len(order) + 1)]
    for scope in scopes:
        buckets[_first(scope, turn)].update(scope)
    cells = 0
    for name, bucket in zip(order, buckets, strict=False):
        rest = bucket - {name}
        cells += math.prod((cards[n] for n in rest), start=cards[name])
        buckets[_first(rest, turn)].update(rest)
    return cells


def _first(names: Collection[str], turn: Mapping[str, int]) -> int:
    """The turn of the variable that is eliminated first; of none that has a turn, the one after all."""
    return min((turn.get(n, len(turn)) for n in names), default=len(turn))
