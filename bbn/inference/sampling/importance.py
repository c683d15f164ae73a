"""Adaptive importance sampling: begin where loopy messages point, learn from what is drawn, then draw.

Every ancestor of the evidence is drawn from a table of its own shape, q(x | parents). It starts as p(x | parents)
λ(x), λ the messages that loopy propagation brings from the evidence (EPIS-BN; Yuan and Druzdzel 2006), and moves,
stage by stage, towards P(x | parents, evidence) as the weighted samples so far show it (AIS-BN; Cheng and Druzdzel
2000): q ← q + η (estimate − q),  η falling from 0.4 to 0.14. Rows that no sample reached return to the start, and
what is drawn from is 0.9 q + 0.1 p, which bounds every weight (Hesterberg 1995). While few samples agree with the
evidence, the stage's weights are flattened, w^β, so that what is learned does not rest on a handful of them. The
samples of the stages are thrown away; those of the answer come from the last q, or from p if that turned out to be
better.

Causes of observed effects do not learn: each looks at what is left to explain
(`bbn.inference.sampling.seen_effects`), which no table of its own could say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Unpack

import numpy as np

from bbn import kernels
from bbn.core.frozen import Array
from bbn.inference.sampling.draws import Draw, Hope, code_type, compile_draws, compile_seen, offsets, starts
from bbn.inference.sampling.likelihood_weighting import logs, weighing_draws
from bbn.inference.sampling.loopy import TINY, Messages
from bbn.inference.sampling.seeded_blocks import Seeds
from bbn.inference.sampling.seen_effects import (
    Effect,
    active_share,
    chain_factors,
    looked,
    looking,
    seen_effects,
)
from bbn.inference.sampling.weighted import Proposal, WeightedSampling
from bbn.kernels.contracts.moves import Codes, Groups
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.network import BayesianNetwork
from bbn.model.options import SamplingOptions

STAGES = 12
STAGE_ROWS = 4096
FIRST_RATE, LAST_RATE = 0.4, 0.14
DEFENSIVE = 0.1
"""The share of p in what is drawn from."""
PRIOR_ROWS = 2.0
"""What p counts for against the samples of a stage, in rows per state."""
ITERATIONS = 50
"""The most iterations of loopy propagation: messages that have not settled point somewhere, too."""
LEAST_ESS = STAGE_ROWS / 20
"""Weights are flattened until the stage is worth LEAST_ESS samples."""


LEARNED_COPIES = 10
"""Copies of the tables that are made to learn an importance distribution: its shares, their counts, weights, logs."""


class ImportanceSampling(WeightedSampling):
    """Importance sampling that adapts to the evidence.

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
    LikelihoodWeighting : Simpler, and enough where evidence is common.

    Examples
    --------
    >>> import bbn
    >>> evidence = {"JohnCalls": "yes", "MaryCalls": "yes"}
    >>> p = ImportanceSampling(bbn.example("burglary"), seed=1).query("Burglary", evidence)
    >>> bool(abs(p["yes"] - 0.284172) < 5 * p.std_error[0]), p.ess > 10_000
    (True, True)
    """

    name = "importance"
    table_copies = LEARNED_COPIES

    def __init__(self, model: Model, **options: Unpack[SamplingOptions]) -> None:
        super().__init__(model, **options)

    def _proposal(
        self, names: list[str], findings: Findings, options: Mapping[str, Any], seeds: Seeds
    ) -> Proposal:
        seen = seen_effects(self.model, self.net, names, findings)
        columns = {name: i for i, name in enumerate(n for n in seen.names if n not in findings.hard)}
        if seen.scale == 0:
            return Proposal(columns, [], -math.inf)
        draws, hope, log_scale = learned_draws(
            self.net, seen.names, columns, seen.findings, seeds, seen.effects
        )
        return Proposal(columns, draws, log_scale + math.log(seen.scale), hope=hope)


def learned_draws(
    net: BayesianNetwork,
    names: Iterable[str],
    columns: Mapping[str, int],
    findings: Findings,
    seeds: Seeds,
    effects: Sequence[Effect] = (),
) -> tuple[list[Draw], Hope, float]:
    """Draws of these variables from what is learned, what they look at, and the ln of the weight all rows share."""
    names = list(names)
    draws, log_scale = weighing_draws(net, names, columns, findings)
    draws, unseen = looking(draws, effects, columns)
    causes = {cause.name for effect in effects for cause in effect.causes}
    evidence = {*(name for name in findings.hard if name in names), *findings.likelihood, *causes}
    wanted = net.ancestral_set(evidence)
    if log_scale == -math.inf or not (effects or any(draw.log_weights is not None for draw in draws)):
        return draws, unseen, log_scale
    messages = _Messages(net, [name for name in names if name in wanted], findings, effects)
    draws, hope = messages.looked(draws, columns)
    by_column = {columns[name]: name for name in wanted if name in columns}
    moved = [i for i, draw in enumerate(draws) if draw.column in by_column]
    if not moved:
        return draws, unseen, log_scale
    exact = [_normalised(draws[i].table) for i in moved]
    shares = [messages.shares(by_column[draws[i].column], p) for i, p in zip(moved, exact, strict=True)]
    begun = list(shares)
    weighing = [i for i, draw in enumerate(draws) if draw.column < 0]
    learning = [k for k, i in enumerate(moved) if not draws[i].terms]
    families = _families([draws[moved[k]] for k in learning])
    ends = [*families.offset.tolist(), families.n_cells]
    kind = code_type(net.variable(name).card for name in columns)

    n_rows = STAGE_ROWS if learning else STAGE_ROWS // 4

    def stage_of(staged: list[Draw], hope: Hope, stage: int) -> tuple[Codes, Array]:
        check()
        codes, log_weight = np.empty((len(columns), n_rows), kind), np.zeros(n_rows)
        chosen = [staged[i] for i in sorted([*moved, *weighing])]
        seen = compile_seen(chosen, hope)
        kernels.sample.forward(seeds.bits(1, stage), compile_draws(chosen), codes, log_weight, seen)
        return codes, log_weight

    for stage in range(STAGES if learning else 0):
        codes, log_weight = stage_of(_proposed(draws, moved, exact, shares), hope, stage)
        counts = np.zeros((families.n_cells, 2))
        kernels.sample.accumulate(codes, families, _flattened(log_weight), counts)
        rate = FIRST_RATE * (LAST_RATE / FIRST_RATE) ** (stage / (STAGES - 1))
        for at, k in enumerate(learning):
            p = begun[k]
            seen_rows = counts[ends[at] : ends[at + 1], 0].reshape(p.shape) + PRIOR_ROWS * p.shape[-1] * p
            shares[k] = shares[k] + rate * (_normalised(seen_rows) - shares[k])
    learned = _proposed(draws, moved, exact, shares)
    plain_better = _is_better(stage_of(draws, unseen, STAGES)[1], stage_of(learned, hope, STAGES + 1)[1])
    return (draws, unseen, log_scale) if plain_better else (learned, hope, log_scale)


class _Messages:
    """What loopy propagation says of the evidence, in the network of these variables and their observed effects."""

    def __init__(
        self, net: BayesianNetwork, names: Sequence[str], findings: Findings, effects: Sequence[Effect]
    ) -> None:
        self.effects = effects
        chains = chain_factors(effects, net.names)
        factors = [net[name].factor() for name in names] + [factor for chain in chains for factor in chain]
        self.passed = Messages(factors, (), findings, merged=False)
        self.passed.settle({"max_iter": ITERATIONS, "tol": 1e-6, "damping": None, "schedule": "sequential"})
        for found in (self.passed.to_variable, self.passed.beliefs):  # the last digits are the kernel's own
            found[:] = found.astype(np.float32)
        places = iter(self.passed.place)
        self.own = dict(zip(names, places, strict=False))
        self.links = [
            {cause.name: place for cause, place in zip(effect.causes, places, strict=False)}
            for effect in effects
        ]

    def shares(self, name: str, p: Array) -> Array:
        """p(x | parents) times what comes from below: of a cause, but for its effects."""
        own = self.own[name]
        below = self.passed.without(name, {own, *self._links_of(name)})
        above = (p > 0) if own < 0 else self.passed.tables[own].reshape(p.shape)  # a root's is in `below`
        return _normalised(above * below)

    def looked(self, draws: Sequence[Draw], columns: Mapping[str, int]) -> tuple[list[Draw], Hope]:
        """The draws in an order in which causes come early that explain much, and what they look at."""
        causes = dict.fromkeys(name for links in self.links for name in links)
        alone = {name: self.passed.without(name, self._links_of(name)) for name in causes}
        boost = {}
        for name in causes:
            now = active_share(name, self.effects, self.passed.belief(name))
            boost[name] = math.log(max(now, TINY)) - math.log(
                max(active_share(name, self.effects, alone[name]), TINY)
            )
        ordered = _reordered(draws, {columns[name]: -boost[name] for name in causes})
        towards = [
            {name: self.passed.without(name, {place}) for name, place in links.items()}
            for links in self.links
        ]
        return ordered, looked(ordered, self.effects, columns, alone, towards, boost)

    def _links_of(self, name: str) -> set[int]:
        return {links[name] for links in self.links if name in links}


def _reordered(draws: Sequence[Draw], rank: Mapping[int, float]) -> list[Draw]:
    """The draws, parents first, those with a rank as late as can be and by their rank."""
    turn = {draw.column: i for i, draw in enumerate(draws) if draw.column >= 0}
    waiting = [len(draw.parents) for draw in draws]
    children: dict[int, list[int]] = {}
    for i, draw in enumerate(draws):
        for parent in draw.parents:
            children.setdefault(turn[parent], []).append(i)
    heap = [(rank.get(draw.column, -math.inf), i) for i, draw in enumerate(draws) if not waiting[i]]
    heapify(heap)
    ordered = []
    while heap:
        i = heappop(heap)[1]
        ordered.append(draws[i])
        for child in children.get(i, ()):
            waiting[child] -= 1
            if not waiting[child]:
                heappush(heap, (rank.get(draws[child].column, -math.inf), child))
    return ordered


def _is_better(plain: Array, learned: Array) -> bool:
    """Whether log weights of the network's own draws are worth more samples, and have not missed what others found."""
    top = max(plain.max(), learned.max())
    if top == -math.inf:
        return False
    a, b = np.exp(plain - top), np.exp(learned - top)
    worth = [(w.sum() ** 2 / (w * w).sum()) if w.any() else 0.0 for w in (a, b)]
    return bool(worth[0] > worth[1] and a.mean() > 0.5 * b.mean())


def _proposed(draws: list[Draw], moved: list[int], exact: list[Array], shares: list[Array]) -> list[Draw]:
    """The draws with q in place of p where it is learned, and ln(p/q) in the weights."""
    proposed = list(draws)
    for i, p, q in zip(moved, exact, shares, strict=True):
        draw = draws[i]
        q = (1 - DEFENSIVE) * q + DEFENSIVE * p
        ratio = np.divide(p, q, out=np.zeros_like(p), where=q > 0)
        weights = logs(ratio) + (0.0 if draw.log_weights is None else draw.log_weights)
        proposed[i] = draw._replace(table=q, log_weights=weights)
    return proposed


def _families(draws: Sequence[Draw]) -> Groups:
    """The cells of each draw's table, to be counted."""
    shapes = [draw.table.shape for draw in draws]
    return Groups(
        ptr=offsets([len(shape) for shape in shapes]),
        members=np.array([c for draw in draws for c in (*draw.parents, draw.column)], np.int64),
        strides=np.array([math.prod(s[k + 1 :]) for s in shapes for k in range(len(s))], np.int64),
        offset=starts([math.prod(shape) for shape in shapes]),
        n_cells=sum(math.prod(shape) for shape in shapes),
    )


def _flattened(log_weight: Array) -> Array:
    """Weights w^β that are worth at least LEAST_ESS samples, scaled to add up to that worth; β = 1 if it can be."""
    top = log_weight.max()
    if top == -math.inf:
        return np.zeros_like(log_weight)
    beta = 1.0
    while True:
        weights = np.exp(beta * (log_weight - top))
        ess = weights.sum() ** 2 / (weights * weights).sum()
        if ess >= min(LEAST_ESS, np.count_nonzero(log_weight > -math.inf) / 2):
            return np.asarray(weights * (ess / weights.sum()))
        beta /= 1.5


def _normalised(rows: Array) -> Array:
    total = rows.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(rows, total, out=np.zeros_like(rows), where=total > 0))
