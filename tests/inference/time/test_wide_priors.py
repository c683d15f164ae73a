"""Wide priors beside precise sensors: 300 random models against rational arithmetic."""

import math

import numpy as np
import pytest

import bbn
from bbn.inference.gaussian import components
from tests.support.rational_gaussians import Rational

STEPS, CLOSE = 5, 1e-6


def random_model(rng: np.random.Generator) -> bbn.DynamicNetwork:
    """A level, and often its slope, with a variance of 1e8 to 1e9, and sensors of variances from 1e-7 on."""
    wide, precise = 10 ** rng.uniform(8, 9), 10 ** rng.uniform(-7, -6)
    level, slope = bbn.Continuous("Level"), bbn.Continuous("Slope")
    process = (10 ** rng.uniform(-8, 0, 2)).tolist()
    first, hidden = [bbn.Gaussian(level, means=0, variances=wide)], [level]
    if rng.random() < 0.7:
        hidden.append(slope)
        first.append(bbn.Gaussian(slope, means=0, variances=wide * 10 ** rng.uniform(-6, 0)))
        before = [bbn.Previous(level), bbn.Previous(slope)]
        later = [
            bbn.Gaussian(
                level, before, means=0.1, variances=process[0], weights=[1.0, rng.uniform(0.3, 1.5)]
            ),
            bbn.Gaussian(slope, before[1:], means=0, variances=process[1], weights=[1.0]),
        ]
    else:
        before = [bbn.Previous(level), bbn.Previous(level, 2)][: rng.integers(1, 3)]
        weights = [1.0, -0.5][: len(before)]
        first = [first] if len(before) == 1 else [first, first]
        later = [bbn.Gaussian(level, before, means=0.1, variances=process[0], weights=weights)]
    for k in range(int(rng.integers(1, 4))):
        seen = hidden if rng.random() < 0.4 else hidden[:1]
        noise = precise * 10 ** rng.uniform(0, 2)
        slopes = rng.uniform(0.5, 2, len(seen)).tolist()
        later.append(bbn.Gaussian(f"Sensor{k}", seen, means=0, variances=noise, weights=slopes))
    return bbn.DynamicNetwork(first, later)


def compare(found: np.ndarray, truth: Rational, name: str) -> None:
    mean, variance = truth.moments(name)
    assert found[1] == pytest.approx(variance, rel=CLOSE, abs=0)
    assert found[0] == pytest.approx(mean, rel=1e-12, abs=1e-4 * math.sqrt(variance))


@pytest.mark.parametrize("block", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 30))])
def test_every_way_to_ask_a_chain(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10 * block, 10 * block + 10):
        rng = np.random.default_rng(seed)
        dyn = random_model(rng)
        drawn = dyn.sample(STEPS, seed=seed)
        seen = {
            name: [float(x) if rng.random() < 0.7 else None for x in drawn[name]]
            for name in dyn.names
            if name.startswith("Sensor")
        }
        hidden = [name for name in dyn.names if name not in seen]
        filtered, smoothed, state = dyn.filter(seen), dyn.smooth(seen), dyn.start()
        truth, net = Rational(dyn.unroll(STEPS)), dyn.unroll(STEPS)
        for t in range(STEPS):
            row = {name: own[t] for name, own in seen.items() if own[t] is not None}
            state = state.update(row)
            for name, number in row.items():
                truth.observe(f"{name}[{t}]", number)
            for name in hidden:
                compare(filtered[name][t], truth, f"{name}[{t}]")
                compare(state[name], truth, f"{name}[{t}]")
        assert dyn.log_likelihood(seen) == pytest.approx(truth.log_density, rel=CLOSE, abs=1e-5)
        evidence = {
            f"{name}[{t}]": x for name, own in seen.items() for t, x in enumerate(own) if x is not None
        }
        for dense in (components.DENSE, 0):  # written out, and eliminated variable by variable
            monkeypatch.setattr(components, "DENSE", dense)
            net = dyn.unroll(STEPS)
            unrolled = net.posteriors(evidence)
            assert unrolled.log_evidence == pytest.approx(truth.log_density, rel=CLOSE, abs=1e-5)
            for t in range(STEPS):
                for name in hidden:
                    own = unrolled[f"{name}[{t}]"]
                    compare(np.array([own.mean, own.variance]), truth, f"{name}[{t}]")
        monkeypatch.undo()
        for t in range(STEPS):
            for name in hidden:
                compare(smoothed[name][t], truth, f"{name}[{t}]")


@pytest.mark.parametrize("seed", range(20))
def test_numbers_below_a_hidden_state(seed: int) -> None:
    """The state is hidden and moves nothing, so that the numbers of a slice are those of a plain network."""
    rng = np.random.default_rng(seed)
    wide, precise = 10 ** rng.uniform(8, 9), 10 ** rng.uniform(-7, -6)
    mode, x = bbn.Variable("Mode", ["a", "b"]), bbn.Continuous("X")
    slopes = rng.uniform(0.5, 2, 3)
    numbers = [
        bbn.Gaussian(f"Sensor{k}", [x], means=0, variances=precise, weights=[w]) for k, w in enumerate(slopes)
    ]
    moving = bbn.CPT(mode, [bbn.Previous(mode)], [[0.9, 0.1], [0.2, 0.8]])
    still = [bbn.CPT(mode, table=[0.5, 0.5])]
    below = bbn.Gaussian(x, [mode], means=[0, 0], variances=[wide, wide])
    dyn = bbn.DynamicNetwork(still, [moving, below, *numbers])
    seen = dyn.sample(STEPS, seed=seed)[[f"Sensor{k}" for k in range(3)]]
    smoothed, total = dyn.smooth(seen)["X"], 0.0
    plain = bbn.BayesianNetwork([bbn.Gaussian(x, means=0, variances=wide), *numbers])
    for t in range(STEPS):
        truth = Rational(plain)
        for name in seen.columns:
            truth.observe(name, float(seen[name][t]))
        compare(smoothed[t], truth, "X")
        total += truth.log_density
    assert dyn.log_likelihood(seen) == pytest.approx(total, rel=CLOSE, abs=1e-5)
