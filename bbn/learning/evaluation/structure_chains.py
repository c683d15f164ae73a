"""Markov chains over structures, which draw DAGs from their posterior under a uniform prior over DAGs.

    each chain starts from the best DAG of an order drawn at random
    half its steps redraw a variable's parents, half turn an arc round       kernels.structures
    every round takes as many steps as all before it, and it alone counts; the last is the first that is good enough

Turning an arc, with new parents for both its ends (Grzegorczyk & Husmeier 2008), lets a chain cross between the members
of a Markov equivalence class, where smaller steps get stuck. Each chain has random numbers of its own, so threads do
not matter.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import MixingWarning
from bbn.core.frozen import Array
from bbn.core.threads import in_order
from bbn.inference.sampling.accuracy import chain_error, split_r_hat, unseen
from bbn.learning.structure.exact.parent_sets import ScoredSets

Ints = NDArray[np.int64]
BATCHES = 40
"""Parts of a round whose means are compared."""
KEPT = 480
"""Structures that a chain keeps."""
REVERSALS = 0.5
"""The share of steps that turn an arc round."""
FIRST, MOST = 40_000, 2_560_000
"""Steps of the first round and of the last, if `n_samples` is not given."""
GOOD_ERROR, GOOD_R_HAT = 0.005, 1.02
"""Standard errors and R-hat below which a round is good enough."""
HIGH_R_HAT = 1.1
"""Chains with an R-hat above this disagree."""


class Drawn(NamedTuple):
    """What the chains found, by [parent, child], and some of the structures."""

    shares: Array
    std_error: Array
    r_hat: Array
    ess: Array
    structures: Ints

    def worst_r_hat(self) -> float:
        """The largest R-hat among arcs that are neither certain nor ruled out."""
        open_arcs = (self.shares > 0.01) & (self.shares < 0.99)
        return float(self.r_hat[open_arcs].max()) if open_arcs.any() else 1.0

    def good(self) -> bool:
        """Whether the answer is accurate enough to stop."""
        return self.worst_r_hat() < GOOD_R_HAT and float(self.std_error.max()) < GOOD_ERROR


def run_chains(
    families: ScoredSets,
    n_samples: int | None,
    chains: int,
    rng: np.random.Generator,
    advance: Callable[..., object],
) -> Drawn:
    """Run chains from different starts and compare them; MixingWarning if they disagree."""
    if n_samples is not None and n_samples < 10 * BATCHES:
        raise ValueError(f"n_samples is {n_samples}; expected {10 * BATCHES} or more")
    if chains < 2:
        raise ValueError(f"chains is {chains}; expected 2 or more, so that they can be compared")
    walkers = [_Chain(families, child) for child in rng.spawn(chains)]
    if n_samples is not None:
        _round(walkers, n_samples // 5, advance)
        drawn = _round(walkers, n_samples - n_samples // 5, advance)
    else:
        length = FIRST
        drawn = _round(walkers, length, advance)
        while not (drawn.good() and length > FIRST) and length < MOST:
            length *= 2
            drawn = _round(walkers, length, advance)
    if drawn.worst_r_hat() > HIGH_R_HAT:
        warnings.warn(
            f"the chains disagree (R-hat {drawn.worst_r_hat():.2f}): take more n_samples",
            MixingWarning,
            stacklevel=4,
        )
    return drawn


def _round(walkers: list[_Chain], n_samples: int, advance: Callable[..., object]) -> Drawn:
    """Let every chain take some steps, and compare what they saw."""
    n, length = walkers[0].n, max(n_samples // BATCHES, 1)
    means, structures = [], []
    for seen, kept in in_order(lambda chain: chain.batches(length), walkers):
        means.append(seen.reshape(BATCHES, n * n))
        structures += kept
        advance(BATCHES * length)
    batches = np.array(means)
    shares = batches.mean(axis=(0, 1))
    between = batches.mean(axis=1).std(axis=0, ddof=1) / math.sqrt(len(walkers))
    error = np.maximum(chain_error(batches), between)
    ess = np.divide(shares * (1 - shares), error**2, out=np.full(n * n, np.inf), where=error > 0)
    least = min(float(ess.min()), len(walkers) * n_samples)
    error = np.where(np.eye(n, dtype=bool).ravel(), 0.0, unseen(error, shares, least))
    shape = (n, n)
    return Drawn(
        shares.reshape(shape),
        error.reshape(shape),
        split_r_hat(batches, length).reshape(shape),
        np.minimum(ess, len(walkers) * n_samples).reshape(shape),
        np.array(structures),
    )


class _Chain:
    """One chain: the parents of every variable, as masks, and its random numbers."""

    def __init__(self, families: ScoredSets, rng: np.random.Generator) -> None:
        self.families, self.rng, self.n = families, rng, len(families.ptr) - 1
        self.parents = self._start()

    def _start(self) -> Ints:
        """The best parents of each variable in an order drawn at random."""
        sets = [self.families.masks[a:b] for a, b in itertools.pairwise(self.families.ptr.tolist())]
        parents = np.zeros(self.n, dtype=np.int64)
        left = self.rng.permutation(self.n).tolist()
        before = 0
        while left:
            for i in left:
                fitting = np.flatnonzero(sets[i] & ~before == 0)
                if len(fitting):
                    parents[i] = sets[i][fitting[0]]
                    before |= 1 << i
                    left.remove(i)
                    break
            else:
                raise ArithmeticError("no structure satisfies the constraints")
        return parents

    def batches(self, length: int) -> tuple[Array, list[Ints]]:
        """The share of steps at which each arc was there, batch by batch, and some of the structures."""
        shares = np.zeros((BATCHES, self.n, self.n))
        every = max(1, min(self.n, length // 10))
        kept = []
        for batch in shares:
            counted = 0
            for first in range(0, length, max(length * BATCHES // KEPT, every)):
                steps = min(max(length * BATCHES // KEPT, every), length - first)
                uniforms = self.rng.random((steps, 5))
                kernels.structures.walk(*self.families, self.parents, uniforms, REVERSALS, every, batch)
                counted += -(-steps // every)
                kept.append(self.parents.copy())
            batch /= counted
        return shares, kept
