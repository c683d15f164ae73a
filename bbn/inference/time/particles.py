"""A particle filter, for what is too wide for exact work (Gordon, Salmond and Smith 1993; Doucet and Johansen 2009).

Each particle is a slice drawn given its past, what is observed taken as it is and weighing the particle by its
likelihood. Where the weights are worth less than half the particles, systematic resampling draws as many again by
weight. The belief in a state is the weight of the particles in it; its standard error is that of a weighted mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import EvidenceError, NoSampleError
from bbn.core.frozen import Array
from bbn.inference.time.numbers import LOG_2PI
from bbn.inference.time.sample import Slice, draw, in_slice_order, mean_and_variance, table_rows
from bbn.inference.time.sequences import Sequences
from bbn.kernels.watch import check
from bbn.model.cpt import Conditional
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian


def particle_filter(
    dyn: DynamicNetwork, sequences: Sequences, n_particles: int = 1000, seed: Any = None, limit: Any = None
) -> Any:
    """Beliefs with `effective_sample_size` and `std_error`, of each sequence."""
    from bbn.inference.time import split_answers

    if isinstance(n_particles, bool) or not isinstance(n_particles, int | np.integer) or n_particles < 2:
        raise EvidenceError(f"n_particles is {n_particles!r}; expected a whole number, at least 2")
    cells = int(n_particles) * len(dyn) * (dyn.order + 3) + sequences.n_steps * sum(
        max(v.card, 2) for v in dyn.variables
    )
    require_memory(16 * cells, f"{n_particles:,} particles", "take fewer", limit)
    generator = np.random.default_rng(seed)
    run = _ParticleRun(dyn, sequences, int(n_particles), generator)
    logs = np.array([run.sequence(s) for s in range(len(sequences.names))])

    def more(first: int, end: int) -> dict[str, Any]:
        errors = {name: own[first:end].copy() for name, own in run.errors.items()}
        return {"effective_sample_size": run.sizes[first:end].copy(), "std_error": errors}

    return split_answers(dyn, sequences, run.beliefs, logs, None, more)


class _ParticleRun:
    """Where the beliefs of all sequences are gathered."""

    def __init__(
        self, dyn: DynamicNetwork, sequences: Sequences, n: int, generator: np.random.Generator
    ) -> None:
        self.dyn, self.sequences, self.n, self.generator = dyn, sequences, n, generator
        shape = {v.name: (sequences.n_steps, v.card or 2) for v in dyn.variables}
        self.beliefs = {name: np.zeros(own) for name, own in shape.items()}
        self.errors = {name: np.zeros(own) for name, own in shape.items()}
        self.sizes = np.zeros(sequences.n_steps)

    def sequence(self, s: int) -> float:
        """Filter one sequence; an estimate of its ln P."""
        total = 0.0
        past: list[Slice] = []
        weights = np.full(self.n, 1.0 / self.n)
        begin, end = int(self.sequences.ptr[s]), int(self.sequences.ptr[s + 1])
        for t in range(begin, end):
            check()
            check()
            now, logs = self.slice(t, t - begin, past)
            with np.errstate(divide="ignore"):
                logs = logs + np.log(weights)
            peak = float(logs.max())
            if peak == -np.inf:
                raise NoSampleError(
                    f"step {t - begin}: none of {self.n:,} particles agrees with the evidence; "
                    "take more with n_particles="
                )
            weights = np.exp(logs - peak)
            total += peak + float(np.log(weights.sum()))
            weights /= weights.sum()
            self.sizes[t] = 1.0 / float((weights**2).sum())
            self.note(t, now, weights)
            past = [now, *past[: max(self.dyn.order - 1, 0)]]
            if self.sizes[t] < self.n / 2:
                chosen = self.resampled(weights)
                past = [{name: values[chosen] for name, values in own.items()} for own in past]
                weights = np.full(self.n, 1.0 / self.n)
        return total

    def slice(self, t: int, step: int, past: Sequence[Slice]) -> tuple[Slice, Array]:
        """A slice of each particle, and the logarithm of what its evidence weighs it by."""
        now: dict[str, Any] = {}
        logs = np.zeros(self.n)
        for name, conditional in in_slice_order(self.dyn, step):
            old = past[0][name] if name in self.dyn.static and step else None
            now[name], weight = self.value(t, name, conditional, now, past, old)
            logs += weight
        return now, logs

    def value(
        self, t: int, name: str, conditional: Conditional, now: Slice, past: Sequence[Slice], old: Any
    ) -> tuple[Any, Any]:
        """The values of a variable and what they weigh: observed, drawn, or those that a static one has already."""
        weight: Any = 0.0
        with np.errstate(divide="ignore"):
            if isinstance(conditional, Gaussian):
                numbers = self.sequences.numbers.get(name)
                if numbers is None or np.isnan(numbers[t]):
                    return (
                        draw(conditional, now, past, self.n, self.generator) if old is None else old
                    ), weight
                seen = np.full(self.n, numbers[t])
                if old is not None:
                    return old, np.where(old == seen, 0.0, -np.inf)
                mean, variance = mean_and_variance(conditional, now, past, self.n)
                return seen, -0.5 * ((seen - mean) ** 2 / variance + np.log(variance) + LOG_2PI)
            codes = self.sequences.codes.get(name)
            if codes is not None and codes[t] < conditional.variable.card:
                seen = np.full(self.n, int(codes[t]))
                if old is not None:
                    return old, np.where(old == seen, 0.0, -np.inf)
                return seen, np.log(table_rows(conditional, now, past, self.n)[:, codes[t]])
            values = draw(conditional, now, past, self.n, self.generator) if old is None else old
            if name in self.sequences.likelihoods:
                weight = np.log(self.sequences.likelihoods[name][t][values])
            return values, weight

    def note(self, t: int, now: Slice, weights: Array) -> None:
        """Write down the beliefs of a step and their standard errors."""
        for v in self.dyn.variables:
            values = now[v.name]
            if v.states:
                belief = np.bincount(values, weights, minlength=v.card)
                squares = np.bincount(values, weights**2, minlength=v.card)
                self.beliefs[v.name][t] = belief
                spread = squares * (1 - belief) ** 2 + (squares.sum() - squares) * belief**2
                self.errors[v.name][t] = np.sqrt(spread)
                continue
            mean = float(weights @ values)
            variance = float(weights @ (values - mean) ** 2)
            self.beliefs[v.name][t] = mean, variance
            each = (values - mean, (values - mean) ** 2 - variance)
            self.errors[v.name][t] = [float(np.sqrt((weights**2) @ own**2)) for own in each]

    def resampled(self, weights: Array) -> Any:
        """Which particles go on: systematic resampling (Kitagawa 1996)."""
        places = (np.arange(self.n) + self.generator.random()) / self.n
        return np.minimum(np.searchsorted(np.cumsum(weights), places), self.n - 1)
