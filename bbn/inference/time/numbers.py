"""Numbers as evidence on a chain: the density of what a step observes, in each of the chain's states.

In a state z the continuous variables of a slice are jointly Gaussian given the numbers of the slices before:
x = (I - B)⁻¹ (a + L x[t-1] + D^½ ε), ε ~ N(0, I), where a, B, L and D are those of z. What is not observed is
integrated out by turning the noises ε (see `square_root`). Numbers that were not observed may matter to later slices
only where no hidden state does too: that is Kalman's case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn import kernels
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array
from bbn.inference.gaussian.square_root import rotated, solved
from bbn.inference.time.sample import in_slice_order
from bbn.inference.time.sequences import Sequences
from bbn.kernels.contracts.types import Ints
from bbn.model.gaussian import Gaussian
from bbn.model.previous import split_name
from bbn.model.variable import Continuous

if TYPE_CHECKING:
    from bbn.inference.time.slices import Slices

LOG_2PI = float(np.log(2 * np.pi))
CHUNK = 1 << 16
"""Steps whose densities are worked out at a time."""


class Numbers:
    """The Gaussians of one kind of slice, in each of the chain's states.

    Attributes
    ----------
    alone
        The variables without continuous relatives: `means` and `variances` are (alone, S).
    linked
        The others, parents first, with intercepts a (S, n), weights B (S, n, n), variances D (S, n), and weights of
        `before`, the (variable, lag) of earlier slices, L (S, n, m).
    """

    def __init__(self, slices: Slices, kind: int) -> None:
        dyn, size = slices.dyn, slices.n_states
        own: dict[str, Any] = {name: dyn.conditional(name, kind) for name in dyn.continuous}
        related = _related(slices)
        self.alone = [name for name in own if name not in related]
        self.linked = [name for name in own if name in related]

        def laid(gaussian: Gaussian, numbers: Array) -> Array:
            index = tuple(slices.of_state[_home(slices, p.name)] for p in gaussian.discrete_parents)
            return np.broadcast_to(numbers[index], (size, *numbers.shape[len(index) :]))

        self.means = np.array([laid(own[n], own[n].means) for n in self.alone]).reshape(-1, size)
        self.variances = np.array([laid(own[n], own[n].variances) for n in self.alone]).reshape(-1, size)
        n = len(self.linked)
        self.before: list[tuple[str, int]] = []
        for name in self.linked:
            for parent in own[name].continuous_parents:
                plain, at = split_name(parent.name)
                if at is not None and (plain, at) not in self.before:
                    self.before.append((plain, at))
        self.a, self.d = np.zeros((size, n)), np.ones((size, n))
        self.b, self.lag = np.zeros((size, n, n)), np.zeros((size, n, len(self.before)))
        for i, name in enumerate(self.linked):
            gaussian = own[name]
            self.a[:, i], self.d[:, i] = laid(gaussian, gaussian.means), laid(gaussian, gaussian.variances)
            weights = laid(gaussian, gaussian.weights)
            for k, parent in enumerate(gaussian.continuous_parents):
                plain, at = split_name(parent.name)
                if at is None:
                    self.b[:, i, self.linked.index(plain)] += weights[:, k]
                else:
                    self.lag[:, i, self.before.index((plain, at))] += weights[:, k]
        reached = np.zeros((size, n, n))
        for name, _ in in_slice_order(dyn, kind):
            if name in self.linked:
                i = self.linked.index(name)
                reached[:, i] = np.einsum("sj,sjk->sk", self.b[:, i], reached)
                reached[:, i, i] = 1.0
        self.shift, self.reach = np.einsum("sij,sj->si", reached, self.a), reached @ self.lag
        self.root = reached * np.sqrt(self.d)[:, None, :]

    def mean(self, lagged: Array) -> Array:
        """The means of the linked variables, (rows, S, n); NaN in `lagged` makes NaN of what depends on it."""
        out = np.broadcast_to(self.shift, (len(lagged), *self.shift.shape))
        if not self.before:
            return out
        out = out + np.einsum("sim,rm->rsi", self.reach, np.nan_to_num(lagged))
        unknown = np.einsum(
            "im,rm->ri", (self.reach != 0).any(axis=0).astype(float), np.isnan(lagged).astype(float)
        )
        return np.where(unknown[:, None, :] > 0, np.nan, out)


def _home(slices: Slices, parent: str) -> str:
    """A discrete parent of a Gaussian as a variable of the chain's state."""
    return parent if parent in slices.of_state else split_name(parent)[0]


def _related(slices: Slices) -> set[str]:
    """The continuous variables with a continuous parent or child, in any slice."""
    found: set[str] = set()
    for conditional in slices.dyn.template.conditionals:
        if isinstance(conditional, Gaussian) and conditional.continuous_parents:
            found.add(split_name(conditional.variable.name)[0])
            found |= {split_name(p.name)[0] for p in conditional.continuous_parents}
    return found


def numbers_of(slices: Slices, kind: int) -> Numbers:
    """The Gaussians of a kind of slice, laid out once."""
    kept: dict[int, Numbers] = slices.__dict__.setdefault("numbers", {})
    if kind not in kept:
        kept[kind] = Numbers(slices, kind)
    return kept[kind]


def column(sequences: Sequences, name: str, lag: int = 0) -> Array:
    """The numbers of a variable `lag` steps back, NaN before the start and where it is not observed."""
    own = sequences.numbers.get(name)
    if own is None:
        return np.full(sequences.n_steps, np.nan)
    if lag == 0:
        return own
    shifted = np.full(len(own), np.nan)
    shifted[lag:] = own[:-lag]
    shifted[sequences.position < lag] = np.nan
    return shifted


def add_densities(slices: Slices, sequences: Sequences, kind: Ints, likelihood: Array, offset: Array) -> None:
    """Multiply the likelihoods by the density of each step's numbers, relative to the largest, which `offset` takes."""
    for k in range(slices.kinds):
        numbers = numbers_of(slices, k)
        steps = np.flatnonzero(kind == k)
        for begin in range(0, len(steps), CHUNK):
            some = steps[begin : begin + CHUNK]
            logs = log_densities(numbers, sequences, some, slices.n_states)
            with np.errstate(divide="ignore"):
                logs += np.log(likelihood[some])
            peak = logs.max(axis=1)
            peak[np.isneginf(peak)] = 0.0
            likelihood[some] = np.exp(logs - peak[:, None])
            offset[some] += peak


def log_densities(numbers: Numbers, sequences: Sequences, steps: Ints, n_states: int) -> Array:
    """ln p(numbers of a step | state), (steps, S)."""
    total = np.zeros((n_states, len(steps)))
    if numbers.alone:
        x = np.array([column(sequences, name)[steps] for name in numbers.alone])
        kernels.gaussians.add_log_densities(x, numbers.means, numbers.variances, total)
    logs = np.ascontiguousarray(total.T)
    if numbers.linked:
        x = np.array([column(sequences, name)[steps] for name in numbers.linked]).T
        lagged = _lagged(numbers, sequences, steps)
        mean = numbers.mean(lagged)
        for seen, rows in hole_patterns(x):
            if len(seen):
                logs[rows] += _log_normal(
                    numbers, sequences, steps[rows], x[rows][:, seen], mean[rows][:, :, seen], seen
                )
    return logs


def _lagged(numbers: Numbers, sequences: Sequences, steps: Ints) -> Array:
    columns = [column(sequences, name, -at)[steps] for name, at in numbers.before]
    return np.array(columns).reshape(len(columns), len(steps)).T


def hole_patterns(x: Array) -> list[tuple[Ints, Ints]]:
    """Which columns are observed, and in which rows, for each pattern there is."""
    there = ~np.isnan(x)
    kinds, index = np.unique(there, axis=0, return_inverse=True)
    return [(np.flatnonzero(own), np.flatnonzero(index.ravel() == k)) for k, own in enumerate(kinds)]


def _log_normal(
    numbers: Numbers, sequences: Sequences, steps: Ints, x: Array, mean: Array, seen: Ints
) -> Array:
    if np.isnan(mean).any():
        row = int(np.flatnonzero(np.isnan(mean).any(axis=(1, 2)))[0])
        refuse_hidden_numbers(sequences, int(steps[row]), [name for name, _ in numbers.before])
    triangle = rotated(numbers.root[:, seen]).triangle
    z = solved(triangle, x[:, None, :] - mean)
    half = np.log(np.diagonal(triangle, axis1=1, axis2=2)).sum(axis=1)
    return np.asarray(-0.5 * (z**2).sum(axis=2) - half - 0.5 * len(seen) * LOG_2PI)


def refuse_hidden_numbers(sequences: Sequences, step: int, names: Sequence[str]) -> None:
    """Say that a number that was not observed matters to a later slice, beside hidden states."""
    at = int(sequences.position[step])
    raise EvidenceError(
        f"step {at} depends on a number before it that was not observed ({', '.join(dict.fromkeys(names))}), and on "
        "hidden states too: the posterior is a mixture that grows with each step; "
        'filter(..., method="particles") samples it'
    )


def moments(slices: Slices, sequences: Sequences, kind: Ints, gamma: Array) -> dict[str, Array]:
    """Mean and variance of each continuous variable and step, (steps, 2), given P(state) of each step."""
    found = {name: np.full((sequences.n_steps, 2), np.nan) for name in slices.dyn.continuous}
    for k in range(slices.kinds):
        numbers = numbers_of(slices, k)
        steps = np.flatnonzero(kind == k)
        for i, name in enumerate(numbers.alone):
            mean, variance = numbers.means[i][None], numbers.variances[i][None]
            _mix(found[name], steps, column(sequences, name)[steps], gamma[steps], mean, variance)
        if not numbers.linked:
            continue
        x = np.array([column(sequences, name)[steps] for name in numbers.linked]).T
        mean = numbers.mean(_lagged(numbers, sequences, steps))
        for seen, rows in hole_patterns(x):
            left = np.setdiff1d(np.arange(len(numbers.linked)), seen)
            turn, triangle = rotated(numbers.root[:, seen])
            levers = numbers.root[:, left] @ turn
            rest = (levers[..., len(seen) :] ** 2).sum(axis=2)
            z = solved(triangle, (x[rows][:, None, :] - mean[rows])[:, :, seen])
            expected = mean[rows][:, :, left] + np.einsum("slk,rsk->rsl", levers[..., : len(seen)], z)
            for i, name in enumerate(numbers.linked):
                if i in seen:
                    _mix(found[name], steps[rows], x[rows, i], gamma[steps[rows]], 0.0, 0.0)
                else:
                    at = int(np.flatnonzero(left == i)[0])
                    _mix(
                        found[name],
                        steps[rows],
                        x[rows, i],
                        gamma[steps[rows]],
                        expected[..., at],
                        rest[:, at][None],
                    )
    return found


def _mix(out: Array, steps: Ints, seen: Array, gamma: Array, mean: Any, variance: Any) -> None:
    """The moments of a mixture where nothing was seen, otherwise the number itself."""
    centre = (gamma * mean).sum(axis=1)
    spread = (gamma * (variance + (mean - centre[:, None]) ** 2)).sum(axis=1)
    there = ~np.isnan(seen)
    out[steps, 0] = np.where(there, seen, centre)
    out[steps, 1] = np.where(there, 0.0, spread)


def hidden_numbers(slices: Slices, sequences: Sequences) -> bool:
    """Whether a number that a later slice, or every slice, depends on is not observed in some step."""
    dyn = slices.dyn
    passed = {
        split_name(p.name)[0]
        for c in dyn.template.conditionals
        for p in c.parents
        if isinstance(p, Continuous) and (split_name(p.name)[1] or 0) < 0
    } | {name for name in dyn.static if name in dyn.continuous}
    return any(
        name not in sequences.numbers or np.isnan(sequences.numbers[name]).any() for name in sorted(passed)
    )
