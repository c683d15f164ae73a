"""Intervals of effects hold the truth as often as they say, of every estimator, where few rows have the treatment."""

import numpy as np
import pytest

import bbn

GRAPH = [("Z", "X"), ("Z", "Y"), ("W", "Y"), ("X", "Y")]
N_SETS = 500
RARE = 0.03


def outcome(rng, rows, slope, states):
    """An outcome that grows with the treatment, Z and W: a state, or a number."""
    x, z, w = rows["X"], rows["Z"], rows["W"]
    if states:
        return (rng.random(len(x)) < 0.1 + slope * x + 0.1 * z + 0.1 * w).astype(int)
    return 1.0 * x + z + w + rng.normal(size=len(x))


def two_states(rng, n, states):
    z, w = rng.integers(0, 3, n), rng.integers(0, 2, n)
    rows = {"Z": z, "W": w, "X": (rng.random(n) < RARE * (0.67 + 0.33 * z)).astype(int)}
    return {**rows, "Y": outcome(rng, rows, 0.15, states)}, {}, 0.15 if states else 1.0


def many_states(rng, n, states):
    z, w, u = rng.integers(0, 3, n), rng.integers(0, 2, n), rng.random(n)
    rare = RARE * (0.67 + 0.33 * z)
    rows = {"Z": z, "W": w, "X": np.where(u < rare, 2, (u < rare + 0.4).astype(int))}
    compared = {"treated": 2, "control": 0}
    return {**rows, "Y": outcome(rng, rows, 0.1, states)}, compared, 0.2 if states else 2.0


def logistic(x):
    return 1 / (1 + np.exp(-x))


def number(rng, n, states):
    """A treatment that is a number, and a confounder with a rare state."""
    z, w = (rng.random(n) < RARE).astype(int), rng.integers(0, 2, n)
    x = z + rng.normal(size=n)
    rows = {"Z": z, "W": w, "X": x}
    compared = {"treated": 1.0, "control": 0.0}
    if not states:
        return {**rows, "Y": outcome(rng, rows, 1.0, False)}, compared, 1.0
    rows["Y"] = (rng.random(n) < logistic(0.7 * x + 0.5 * z + 0.5 * w - 1)).astype(int)
    apart = [
        (1 - RARE if a == 0 else RARE) / 2 * (logistic(0.5 * (a + b) - 0.3) - logistic(0.5 * (a + b) - 1))
        for a in (0, 1)
        for b in (0, 1)
    ]
    return rows, compared, sum(apart)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::bbn.core.errors.OverlapWarning", "ignore::bbn.core.errors.CollapsedWarning"
)
@pytest.mark.parametrize("states", [True, False], ids=["states", "numbers"])
@pytest.mark.parametrize("design", [two_states, many_states, number])
def test_intervals_hold_in_rare_arms(design, states):
    hits: dict[str, list[bool]] = {}
    for seed in range(N_SETS):
        rows, compared, truth = design(np.random.default_rng(seed), 2000, states)
        options = {"event": 1} if states else {}
        found = bbn.effect(rows, GRAPH, "X", "Y", seed=seed, n_draws=300, **compared, **options)
        for method, one in found.estimates.items():
            hits.setdefault(method, []).append(one.average_effect.low <= truth <= one.average_effect.high)
    assert {method: np.mean(own) for method, own in hits.items() if not 0.93 <= np.mean(own) <= 0.97} == {}
