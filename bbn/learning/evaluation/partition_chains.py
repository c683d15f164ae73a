"""Markov chains over ordered partitions, which draw DAGs from their posterior under a uniform prior over DAGs.

A DAG has one ordered partition of its variables: the first layer has no parents, and a variable of any other layer has
a parent in the layer before it and none in its own or later ones. So the posterior of a partition is a product over
variables of sums over parent sets (Kuipers & Moffa 2017), and given the partition the parents are independent:

    P(Λ | data) ∝ ∏_i Σ {w_i(Π): Π within the layers before i's, with a member in the one just before}

A step moves one variable to another layer or to a layer of its own, swaps two variables, or weighs all places of one
variable and draws among them. Each proposal is as likely as its reverse. What is added up is the probability of every
arc given the partition, rather than one drawn DAG: less noise at the same price.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import MixingWarning
from bbn.core.frozen import Array
from bbn.inference.sampling.accuracy import chain_error, split_r_hat
from bbn.kernels import watch
from bbn.learning.structure.exact.parent_sets import Families

Ints = NDArray[np.int64]
Layers = list[int]
"""The layers as masks, parents first."""
BATCHES = 40
"""Parts of a chain whose means are compared."""
KEPT = 500
"""Structures that a chain keeps."""
REMEMBERED = 200_000
"""Sums that a chain keeps."""
HIGH_R_HAT = 1.1
"""Chains with an R-hat above this disagree; they are compared on shares, arc by arc."""


class Drawn(NamedTuple):
    """What the chains found: shares, standard errors and R-hat by [parent, child], and some of the structures."""

    shares: Array
    std_error: Array
    r_hat: Array
    structures: Ints


def run_chains(
    families: Families,
    n_samples: int,
    chains: int,
    rng: np.random.Generator,
    advance: Callable[..., object],
) -> Drawn:
    """Run chains from different starts and compare them; MixingWarning if they disagree."""
    if n_samples < 10 * BATCHES:
        raise ValueError(f"n_samples is {n_samples}; expected {10 * BATCHES} or more")
    if chains < 2:
        raise ValueError(f"chains is {chains}; expected 2 or more, so that they can be compared")
    n = len(families.ptr) - 1
    length = n_samples * 4 // 5 // BATCHES
    means = np.empty((chains, BATCHES, n * n))
    structures = []
    for c, child in enumerate(rng.spawn(chains)):
        chain = _Chain(families, child)
        for _ in range(n_samples // 5):
            chain.step()
        every = max(1, BATCHES * length // KEPT)
        for b in range(BATCHES):
            watch.check()
            arcs = np.zeros((n, n))
            for k in range(length):
                chain.step()
                arcs += chain.arcs()
                if (b * length + k) % every == 0:
                    structures.append(chain.draw())
            means[c, b] = arcs.ravel() / length
            advance(length)
    shares = means.mean(axis=(0, 1))
    r_hat = split_r_hat(means, length)
    error = np.maximum(chain_error(means), means.mean(axis=1).std(axis=0, ddof=1) / math.sqrt(chains))
    varied = (shares > 0.01) & (shares < 0.99)
    if varied.any() and r_hat[varied].max() > HIGH_R_HAT:
        warnings.warn(
            f"the chains disagree (R-hat {r_hat[varied].max():.2f}): take more n_samples",
            MixingWarning,
            stacklevel=4,
        )
    shape = (n, n)
    return Drawn(shares.reshape(shape), error.reshape(shape), r_hat.reshape(shape), np.array(structures))


class _Place(NamedTuple):
    """A variable's parent sets that a place allows: the logarithm of their weights' sum, and each parent's share."""

    log_sum: float
    shares: Array


class _Chain:
    """One chain: layers, the place of every variable, and what was worked out before."""

    def __init__(self, families: Families, rng: np.random.Generator) -> None:
        ptr = families.ptr
        self.n, self.rng = len(ptr) - 1, rng
        self.masks = [families.masks[a:b] for a, b in itertools.pairwise(ptr.tolist())]
        self.scores = [families.scores[a:b] for a, b in itertools.pairwise(ptr.tolist())]
        bits = np.arange(self.n)
        self.bits = [(own[:, None] >> bits & 1).astype(np.float64) for own in self.masks]
        self.known: dict[tuple[int, int, int], _Place] = {}
        self.move_to(self.layers_of(self.start()))

    def start(self) -> list[int]:
        """The parents of each variable that are best in an order drawn at random."""
        parents = [0] * self.n
        left = self.rng.permutation(self.n).tolist()
        before = 0
        while left:
            for i in left:
                fitting = np.flatnonzero(self.masks[i] & ~before == 0)
                if len(fitting):
                    parents[i] = int(self.masks[i][fitting[0]])
                    before |= 1 << i
                    left.remove(i)
                    break
            else:
                raise ArithmeticError("no structure keeps to the constraints")
        return parents

    def layers_of(self, parents: Sequence[int]) -> Layers:
        """The ordered partition of a DAG."""
        depth = [-1] * self.n
        while -1 in depth:
            for i, mask in enumerate(parents):
                above = [depth[p] for p in range(self.n) if mask >> p & 1]
                if -1 not in above:
                    depth[i] = 1 + max(above, default=-1)
        return [sum(1 << i for i, d in enumerate(depth) if d == level) for level in range(max(depth) + 1)]

    def places(self, layers: Layers) -> list[_Place]:
        """The place of every variable."""
        found: list[_Place] = [None] * self.n  # type: ignore[list-item]
        before = last = 0
        for layer in layers:
            rest = layer
            while rest:
                low = rest & -rest
                i = low.bit_length() - 1
                found[i] = self.place(i, before, last)
                rest ^= low
            before |= layer
            last = layer
        return found

    def place(self, i: int, before: int, last: int) -> _Place:
        """What i may have as parents: sets within `before`, with a member in `last` unless nothing is before."""
        key = i, before, last
        known = self.known.get(key)
        if known is None:
            masks = self.masks[i]
            fitting = masks & ~before == 0
            if last:
                fitting &= masks & last != 0
            scores = self.scores[i][fitting]
            if len(scores) and scores[0] > -math.inf:
                weights = np.exp(scores - scores[0])
                total = weights.sum()
                known = _Place(float(scores[0] + math.log(total)), weights @ self.bits[i][fitting] / total)
            else:
                known = _Place(-math.inf, np.zeros(self.n))
            if len(self.known) >= REMEMBERED:
                self.known.clear()
            self.known[key] = known
        return known

    def move_to(self, layers: Layers) -> None:
        """Take other layers as the current ones."""
        self.layers = layers
        self.current = self.places(layers)
        self.total = math.fsum(place.log_sum for place in self.current)
        self._arcs: Array | None = None

    def step(self) -> None:
        """One step of the chain."""
        kind = self.rng.random()
        if kind < 0.1:
            self.draw_place(int(self.rng.integers(self.n)))
            return
        proposed = self.relocated() if kind < 0.6 else self.swapped()
        places = self.places(proposed)
        total = math.fsum(place.log_sum for place in places)
        if total > -math.inf and math.log(1.0 - self.rng.random()) < total - self.total:
            self.layers, self.current, self.total, self._arcs = proposed, places, total, None

    def relocated(self) -> Layers:
        """One variable in another layer, or in one of its own."""
        i = int(self.rng.integers(self.n))
        rest = self.without(i)
        return self.put(i, rest, int(self.rng.integers(2 * len(rest) + 1)))

    def draw_place(self, i: int) -> None:
        """Draw one variable's place in proportion to the weights of all its places."""
        rest = self.without(i)
        options = [self.put(i, rest, k) for k in range(2 * len(rest) + 1)]
        totals = np.array([math.fsum(p.log_sum for p in self.places(layers)) for layers in options])
        shares = np.cumsum(np.exp(totals - totals.max()))
        self.move_to(options[int(np.searchsorted(shares, self.rng.random() * shares[-1], side="right"))])

    def without(self, i: int) -> Layers:
        """The layers without a variable."""
        return [layer for layer in (layer & ~(1 << i) for layer in self.layers) if layer]

    @staticmethod
    def put(i: int, layers: Layers, place: int) -> Layers:
        """A variable in the layer ``place // 2`` (odd places), or in one of its own before it (even ones)."""
        at = place // 2
        if place % 2:
            return [*layers[:at], layers[at] | 1 << i, *layers[at + 1 :]]
        return [*layers[:at], 1 << i, *layers[at:]]

    def swapped(self) -> Layers:
        """Two variables in each other's place."""
        if self.n < 2:
            return self.layers
        i, j = (int(k) for k in self.rng.choice(self.n, size=2, replace=False))
        both = 1 << i | 1 << j
        return [layer ^ both if layer & both and layer & both != both else layer for layer in self.layers]

    def arcs(self) -> Array:
        """The probability of each arc [parent, child], given the layers."""
        if self._arcs is None:
            self._arcs = np.column_stack([place.shares for place in self.current])
        return self._arcs

    def draw(self) -> list[int]:
        """A DAG given the layers, as parents' masks."""
        parents = [0] * self.n
        before = last = 0
        for layer in self.layers:
            for i in range(self.n):
                if layer >> i & 1:
                    masks = self.masks[i]
                    fitting = masks & ~before == 0
                    if last:
                        fitting &= masks & last != 0
                    scores = self.scores[i][fitting]
                    shares = np.cumsum(np.exp(scores - scores[0]))
                    at = int(np.searchsorted(shares, self.rng.random() * shares[-1], side="right"))
                    parents[i] = int(masks[fitting][min(at, len(shares) - 1)])
            before |= layer
            last = layer
        return parents
