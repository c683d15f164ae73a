"""Numbers hidden from slice to slice: the Kalman filter and smoother, by square roots of covariances.

The continuous variables of a slice, with copies of those that later slices refer to, are one vector x:

    x[t] = F x[t-1] + c + W e, e ~ N(0, I)          (Kalman 1960)

where F, c and W come from the slice's Gaussians and may depend on observed states. What is known of x is kept as
x = m + G u with u ~ N(0, I). A step makes it m + [F G, W] v, and one rotation v = Q w (see `square_root`) turns the
noises v so that the first of w are what the step observes, the next the u of this step, and the others have no effect
(Kaminski, Bryson and Schmidt 1971). Backwards, what follows says that u ~ N(e, S Sᵀ), and the same rotation gives e and
S of the step before. No covariance is subtracted from another or inverted, and copies may make G singular. Gaussians
whose discrete parents are hidden are not covered here: their posterior is a mixture that grows with every step, and
exact work on it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.gaussian.square_root import rotated, solved
from bbn.inference.time.chain import compile_chain
from bbn.inference.time.numbers import LOG_2PI, refuse_hidden_numbers
from bbn.inference.time.passes import forward
from bbn.inference.time.sample import in_slice_order
from bbn.inference.time.sequences import Sequences
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.previous import in_slice, split_name
from bbn.model.variable import Continuous


class Motion(NamedTuple):
    """How x moves into a step."""

    f: Array
    c: Array
    w: Array


class KalmanStep(NamedTuple):
    """What filtering knew at a step, x = mean + root u, and what the smoother needs."""

    mean: Array
    root: Array
    told: Array
    """z: the noises that the observed numbers fix."""
    back: Array
    """The noises u of the step before as functions of (z, the u of this step, noises without effect on it)."""

    @property
    def variances(self) -> Array:
        """The variance of each number."""
        return np.asarray((self.root**2).sum(axis=1))


class Kalman:
    """The vector of a dynamic network, and its motion for each kind of slice and setting of observed states."""

    def __init__(self, dyn: DynamicNetwork) -> None:
        self.dyn = dyn
        deepest = dict.fromkeys(dyn.continuous, 0)
        for conditional in dyn.template.conditionals:
            for parent in conditional.parents:
                own, at = split_name(parent.name)
                if isinstance(parent, Continuous) and at is not None and at < 0:
                    deepest[own] = max(deepest[own], -at - 1)
        self.names = [
            *deepest,
            *(in_slice(own, -k) for own, depth in deepest.items() for k in range(1, depth + 1)),
        ]
        self.place = {name: i for i, name in enumerate(self.names)}
        self._known: dict[Any, Motion] = {}

    def motion(self, kind: int, codes: Mapping[str, int]) -> Motion:
        """The motion into a slice of this kind, given the codes of the discrete parents of its Gaussians."""
        key = (kind, tuple(sorted(codes.items())))
        if key not in self._known:
            self._known[key] = self._motion(kind, codes)
        return self._known[key]

    def _motion(self, kind: int, codes: Mapping[str, int]) -> Motion:
        n, dyn = len(self.names), self.dyn
        f, c, w = np.zeros((n, n)), np.zeros(n), np.zeros((n, n))
        for i, name in enumerate(self.names):
            plain, lag = split_name(name)
            if lag is not None or (name in dyn.static and kind > 0):
                source = name if lag is None else plain if lag == -1 else in_slice(plain, lag + 1)
                f[i, self.place[source]] = 1.0
        for name, gaussian in in_slice_order(dyn, kind):
            i = self.place.get(name, -1)
            if not isinstance(gaussian, Gaussian) or (name in dyn.static and kind > 0):
                continue
            index = tuple(codes[p.name] for p in gaussian.discrete_parents)
            c[i], w[i, i] = gaussian.means[index], np.sqrt(gaussian.variances[index])
            for parent, weight in zip(gaussian.continuous_parents, gaussian.weights[index], strict=True):
                own, at = split_name(parent.name)
                if at is None:
                    j = self.place[own]
                    f[i], c[i], w[i] = f[i] + weight * f[j], c[i] + weight * c[j], w[i] + weight * w[j]
                else:
                    f[i, self.place[own if at == -1 else in_slice(own, at + 1)]] += weight
        return Motion(f, c, w[:, w.any(axis=0)])

    def parents(self, kind: int) -> list[str]:
        """The discrete parents of the Gaussians of a kind of slice."""
        given = (self.dyn.conditional(name, kind) for name in self.dyn.continuous)
        return list(
            dict.fromkeys(p.name for c in given if isinstance(c, Gaussian) for p in c.discrete_parents)
        )

    def settings(self, sequences: Sequences, s: int) -> list[tuple[int, dict[str, int]]]:
        """The kind of each step of a sequence and the codes of the discrete parents; EvidenceError if one is hidden."""
        begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
        found = []
        for t in range(begin, end):
            check()
            kind = min(t - begin, self.dyn.n_first)
            codes = {}
            for name in self.parents(kind):
                own, at = split_name(name)
                card = self.dyn.variable(own).card
                if own in self.dyn.static:
                    told = sequences.codes.get(own, np.array([], np.int32))[begin:end]
                    told = told[told < card]
                    code = int(told[0]) if len(told) else card
                else:
                    code = int(sequences.codes[own][t + (at or 0)]) if own in sequences.codes else card
                if code == card:
                    refuse_hidden_numbers(sequences, t, self.names)
                codes[name] = code
            found.append((kind, codes))
        return found

    def filter(self, sequences: Sequences, s: int) -> tuple[list[KalmanStep], float]:
        """The forward pass over one sequence, and ln p of its numbers."""
        begin = int(sequences.ptr[s])
        n = len(self.names)
        mean, root, total = np.zeros(n), np.zeros((n, 0)), 0.0
        steps = []
        columns = [sequences.numbers.get(name) for name in self.dyn.continuous]
        fixed = np.array([name in self.dyn.static for name in self.names])
        for k, (kind, codes) in enumerate(self.settings(sequences, s)):
            check()
            given = np.array([np.nan if own is None else own[begin + k] for own in columns])
            step, log = self.advance(self.motion(kind, codes), mean, root, given, fixed)
            mean, root, total = step.mean, step.root, total + log
            steps.append(step)
        return steps, total

    def advance(
        self, motion: Motion, mean: Array, root: Array, given: Array, fixed: Any
    ) -> tuple[KalmanStep, float]:
        """One step of the filter: move, then condition on the numbers given, NaN where there is none."""
        f, c, w = motion
        mean, moved = f @ mean + c, np.hstack([f @ root, w])
        seen = np.flatnonzero(~np.isnan(given))
        told = [i for i in seen.tolist() if fixed[i] and not moved[i].any()]
        for i in told:  # a static number that is known already
            if mean[i] != given[i]:
                raise ImpossibleEvidenceError(
                    f"{self.names[i]!r} is static and was {mean[i]:g}; found {given[i]:g}"
                )
        seen = np.array([i for i in seen.tolist() if i not in told], np.int64)
        n = len(seen)
        rest = np.setdiff1d(np.arange(len(mean)), seen)
        turn, triangle = rotated(moved[[*seen, *rest]])
        z = solved(triangle[:n, :n], given[seen] - mean[seen])
        log = -0.5 * (float(z @ z) + n * LOG_2PI) - float(np.log(triangle[:n, :n].diagonal()).sum())
        left = np.zeros((len(mean), len(triangle) - n))
        left[rest] = triangle[n:, n:].T
        mean[rest] += triangle[:n, n:].T @ z
        mean[seen] = given[seen]
        return KalmanStep(mean, left, z, turn[: root.shape[1]]), log

    def smooth(self, steps: Sequence[KalmanStep], lag: int | None) -> list[tuple[Array, Array]]:
        """Mean and variance of each number in each step given what follows it, all of it or a number of steps."""
        if lag is None:
            return self._backward(steps)
        return [self._backward(steps[t : t + lag + 1])[0] for t in range(len(steps))]

    def _backward(self, steps: Sequence[KalmanStep]) -> list[tuple[Array, Array]]:
        n = steps[-1].root.shape[1]
        expected, spread = np.zeros(n), np.eye(n)
        found = []
        for step in reversed(steps):
            check()
            found.append((step.mean + step.root @ expected, ((step.root @ spread) ** 2).sum(axis=1)))
            known, end = len(step.told), len(step.told) + len(expected)
            expected = step.back[:, :known] @ step.told + step.back[:, known:end] @ expected
            spread = np.hstack([step.back[:, known:end] @ spread, step.back[:, end:]])
            if spread.shape[1] > len(spread):
                spread = np.asarray(np.linalg.qr(spread.T, mode="r")).T
        return found[::-1]


def kalman_logs(dyn: DynamicNetwork, sequences: Sequences, limit: Any = None) -> Array:
    """ln P of each sequence, its states and its numbers."""
    kalman = Kalman(dyn)
    states = forward(compile_chain(dyn, sequences._replace(numbers={}), limit)).logs
    return np.array([states[s] + kalman.filter(sequences, s)[1] for s in range(len(sequences.names))])


def kalman_beliefs(
    dyn: DynamicNetwork, sequences: Sequences, lag: int | None, limit: Any = None, last: int | None = None
) -> Any:
    """The beliefs given what is at most `lag` steps ahead (None: everything); of the last steps asked for, or all."""
    from bbn.inference.time import chain_beliefs, split_answers

    arrays, logs = chain_beliefs(dyn, sequences._replace(numbers={}), lag, limit)
    kalman = Kalman(dyn)
    for name in dyn.continuous:
        arrays[name] = np.empty((sequences.n_steps, 2))
    for s in range(len(sequences.names)):
        steps, log = kalman.filter(sequences, s)
        logs[s] += log
        found = [(step.mean, step.variances) for step in steps] if lag == 0 else kalman.smooth(steps, lag)
        begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
        means = np.array([mean for mean, _ in found])
        variances = np.array([variance for _, variance in found])
        for i, name in enumerate(dyn.continuous):
            given = sequences.numbers.get(name, np.full(sequences.n_steps, np.nan))[begin:end]
            arrays[name][begin:end, 0] = np.where(np.isnan(given), means[:, i], given)
            arrays[name][begin:end, 1] = np.where(np.isnan(given), variances[:, i], 0.0)
    return split_answers(dyn, sequences, arrays, logs, last)
