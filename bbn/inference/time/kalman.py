"""Numbers hidden from slice to slice: the Kalman filter, and the smoother of Bryson and Frazier.

The continuous variables of a slice, with copies of those that later slices refer to, are one vector x:

    x[t] = F x[t-1] + c + e, e ~ N(0, Q)          (Kalman 1960)

where F, c and Q come from the slice's Gaussians and may depend on observed states. Observing some of its numbers
conditions x on them. Backwards, the smoother carries λ and Λ, the first and second derivatives of what follows
(Bierman 1973), and so never inverts a covariance of x, which copies make singular. Gaussians whose discrete parents
are hidden are not covered here: their posterior is a mixture that grows with every step, and exact work on it is
refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.time.chain import compile_chain
from bbn.inference.time.numbers import LOG_2PI, refuse_hidden_numbers
from bbn.inference.time.passes import forward
from bbn.inference.time.sequences import Sequences
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.previous import in_slice, split_name
from bbn.model.variable import Continuous


class Motion(NamedTuple):
    """How x moves into a step."""

    f: Array
    c: Array
    q: Array


class KalmanStep(NamedTuple):
    """What filtering knew at a step: the mean and covariance after its evidence, and what the smoother needs."""

    mean: Array
    covariance: Array
    motion: Motion
    seen: Ints
    """Which entries were observed."""
    apart: Array
    """How far they were from what was expected."""
    known: Array
    """The inverse of their covariance."""
    gain: Array


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
        inside, before, means, variances = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n), np.zeros(n)
        for i, name in enumerate(self.names):
            plain, lag = split_name(name)
            if lag is not None or (name in dyn.static and kind > 0):
                source = name if lag is None else plain if lag == -1 else in_slice(plain, lag + 1)
                before[i, self.place[source]] = 1.0
                continue
            gaussian: Any = dyn.conditional(name, kind)
            index = tuple(codes[p.name] for p in gaussian.discrete_parents)
            means[i], variances[i] = gaussian.means[index], gaussian.variances[index]
            for k, parent in enumerate(gaussian.continuous_parents):
                own, at = split_name(parent.name)
                weight = gaussian.weights[index][k]
                if at is None:
                    inside[i, self.place[own]] += weight
                else:
                    before[i, self.place[own if at == -1 else in_slice(own, at + 1)]] += weight
        solved = np.linalg.inv(np.eye(n) - inside)
        return Motion(solved @ before, solved @ means, (solved * variances) @ solved.T)

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
        mean, covariance, total = np.zeros(n), np.zeros((n, n)), 0.0
        steps = []
        columns = [sequences.numbers.get(name) for name in self.dyn.continuous]
        fixed = np.array([name in self.dyn.static for name in self.names])
        for k, (kind, codes) in enumerate(self.settings(sequences, s)):
            check()
            given = np.array([np.nan if own is None else own[begin + k] for own in columns])
            step, log = self.advance(self.motion(kind, codes), mean, covariance, given, fixed)
            mean, covariance, total = step.mean, step.covariance, total + log
            steps.append(step)
        return steps, total

    def advance(
        self, motion: Motion, mean: Array, covariance: Array, given: Array, fixed: Any
    ) -> tuple[KalmanStep, float]:
        """One step of the filter: move, then condition on the numbers given, NaN where there is none."""
        f, c, q = motion
        mean, covariance = f @ mean + c, f @ covariance @ f.T + q
        seen = np.flatnonzero(~np.isnan(given))
        told = [i for i in seen.tolist() if fixed[i] and covariance[i, i] == 0]
        for i in told:  # a static number that is known already
            if mean[i] != given[i]:
                raise ImpossibleEvidenceError(
                    f"{self.names[i]!r} is static and was {mean[i]:g}; found {given[i]:g}"
                )
        seen = np.array([i for i in seen.tolist() if i not in told], np.int64)
        apart = given[seen] - mean[seen]
        own = covariance[np.ix_(seen, seen)]
        known = np.asarray(np.linalg.inv(own), np.float64) if len(seen) else np.zeros((0, 0))
        gain = covariance[:, seen] @ known
        log = -0.5 * (float(apart @ known @ apart) + float(np.linalg.slogdet(own)[1]) + len(seen) * LOG_2PI)
        mean = mean + gain @ apart
        covariance = covariance - gain @ own @ gain.T
        mean[seen], covariance[seen], covariance[:, seen] = given[seen], 0.0, 0.0
        covariance = 0.5 * (covariance + covariance.T)
        return KalmanStep(mean, covariance, motion, seen, apart, known, gain), log

    def smooth(self, steps: Sequence[KalmanStep], lag: int | None) -> list[tuple[Array, Array]]:
        """Mean and covariance of each step given what follows it, all of it or a number of steps."""
        if lag is None:
            return self._backward(steps)
        return [self._backward(steps[t : t + lag + 1])[0] for t in range(len(steps))]

    def _backward(self, steps: Sequence[KalmanStep]) -> list[tuple[Array, Array]]:
        n = len(self.names)
        first, second = np.zeros(n), np.zeros((n, n))
        found = []
        for step in reversed(steps):
            check()
            p = step.covariance
            found.append((step.mean - p @ first, p - p @ second @ p))
            kept = np.eye(n)
            kept[:, step.seen] -= step.gain
            first, second = kept.T @ first, kept.T @ second @ kept
            first[step.seen] -= step.known @ step.apart
            second[np.ix_(step.seen, step.seen)] += step.known
            first, second = step.motion.f.T @ first, step.motion.f.T @ second @ step.motion.f
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
        found = [(step.mean, step.covariance) for step in steps] if lag == 0 else kalman.smooth(steps, lag)
        begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
        means = np.array([mean for mean, _ in found])
        variances = np.array([covariance.diagonal() for _, covariance in found])
        for i, name in enumerate(dyn.continuous):
            given = sequences.numbers.get(name, np.full(sequences.n_steps, np.nan))[begin:end]
            arrays[name][begin:end, 0] = np.where(np.isnan(given), means[:, i], given)
            arrays[name][begin:end, 1] = np.where(np.isnan(given), np.maximum(variances[:, i], 0.0), 0.0)
    return split_answers(dyn, sequences, arrays, logs, last)
