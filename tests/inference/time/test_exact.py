"""Every question of a dynamic network against the junction tree of the unrolled one."""

import numpy as np
import pytest

import bbn
from tests.support.dynamic_truth import random_dynamic, random_evidence, true_beliefs, unrolled_evidence

EXACT = 1e-10


def check(seed: int, **kind: bool) -> None:
    rng = np.random.default_rng(seed)
    dyn = random_dynamic(rng, **kind)
    steps = int(rng.integers(1, 9))
    columns = random_evidence(rng, dyn, steps)
    net = dyn.unroll(steps + 2)
    whole = unrolled_evidence(dyn, columns, steps)
    total = net.query(dyn.unroll(1).names[0], whole).log_evidence if not dyn.continuous else None
    filtered, smoothed, ahead = dyn.filter(columns), dyn.smooth(columns), dyn.forecast(columns, 2)
    lagged = dyn.smooth(columns, lag=1)
    truth = [true_beliefs(dyn, net, unrolled_evidence(dyn, columns, t + 1), t) for t in range(steps)]
    for t in range(steps):
        for name, values in truth[t].items():
            np.testing.assert_allclose(
                filtered[name][t], values, atol=EXACT, err_msg=f"filter {seed} {name} {t}"
            )
    for t in (0, steps - 1):
        for name, values in true_beliefs(dyn, net, whole, t).items():
            np.testing.assert_allclose(
                smoothed[name][t], values, atol=EXACT, err_msg=f"smooth {seed} {name} {t}"
            )
        near = unrolled_evidence(dyn, columns, min(t + 2, steps))
        for name, values in true_beliefs(dyn, net, near, t).items():
            np.testing.assert_allclose(lagged[name][t], values, atol=EXACT, err_msg=f"lag {seed} {name} {t}")
    for h in range(2):
        for name, values in true_beliefs(dyn, net, whole, steps + h).items():
            np.testing.assert_allclose(
                ahead[name][h], values, atol=EXACT, err_msg=f"forecast {seed} {name} {h}"
            )
    best = dyn.unroll(steps).mpe(whole)
    path = dyn.viterbi(columns)
    assert path.log_probability == pytest.approx(best.log_probability, abs=1e-9)
    listed = dyn.viterbi(columns, k=2)
    expected = dyn.unroll(steps).mpe(whole, 2)
    assert [one.log_probability for one in listed] == pytest.approx(
        [one.log_probability for one in expected], abs=1e-9
    )
    found = {
        name if name in dyn.static else f"{name}[{t}]": s for name in path for t, s in enumerate(path[name])
    }
    if not dyn.continuous:
        assert dyn.log_likelihood(columns) == pytest.approx(total, abs=1e-9)
        weights = np.prod([v.weights[found[k]] for k, v in whole.items() if isinstance(v, bbn.Virtual)])
        assert np.log(dyn.unroll(steps).probability(found) * weights) == pytest.approx(
            best.log_probability, abs=1e-9
        )
    else:
        logs = dyn.unroll(steps).log_likelihood(
            [{k: v for k, v in whole.items() if not isinstance(v, bbn.Virtual)}]
        )
        if not any(isinstance(v, bbn.Virtual) for v in whole.values()):
            assert dyn.log_likelihood(columns) == pytest.approx(
                float(logs.iloc[0] if hasattr(logs, "iloc") else logs[0]), abs=1e-9
            )


@pytest.mark.parametrize("block", range(10))
def test_discrete_networks_equal_the_unrolled_ones(block):
    for seed in range(40 * block, 40 * block + 40):
        check(seed, zeros=seed % 2 == 1)


@pytest.mark.parametrize("block", range(4))
def test_networks_with_numbers_equal_the_unrolled_ones(block):
    for seed in range(1000 + 25 * block, 1000 + 25 * block + 25):
        check(seed, gaussians=True)
