"""Messages as products of tables, where numbers leave the range of a double: closed forms and exact fractions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn.inference.time import table_products
from bbn.inference.time.factored import wide_beliefs, wide_logs
from bbn.inference.time.sequences import read_sequences
from tests.inference.time.test_range import coin
from tests.support import exact_truth
from tests.support.dynamic_truth import random_dynamic, random_evidence

TOSSES = np.repeat([0, 1], 900)


@pytest.fixture(autouse=True)
def products_of_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that is tested here, whatever it would cost."""
    monkeypatch.setattr("bbn.inference.time.is_wide", lambda *_, **__: True)


def beside_others(dyn: bbn.DynamicNetwork, n: int = 9) -> bbn.DynamicNetwork:
    """A dynamic network with so many chains beside it that its interface is wide."""
    others = [bbn.Variable(f"C{i:02d}", ["a", "b"]) for i in range(n)]
    first = [bbn.CPT(c, [], [0.25, 0.75]) for c in others]
    later = [bbn.CPT(c, [bbn.Previous(c)], [[0.5, 0.5], [0.125, 0.875]]) for c in others]
    return bbn.DynamicNetwork([*dyn.first, *first], [*dyn.later, *later])


@pytest.mark.parametrize("heads", [(0.3, 0.7), (1e-300, 2e-300)])
def test_evidence_that_pulls_one_way_and_then_the_other(heads: tuple[float, float]) -> None:
    dyn = beside_others(coin([0.5, 0.5], heads))
    seen = {"Toss": np.array(["h", "t"])[TOSSES].tolist()}
    logs = np.log([[p, 1 - p] for p in heads])
    so_far = logs[:, TOSSES].cumsum(axis=1)
    low = np.exp(-np.logaddexp(0, so_far[1] - so_far[0]))  # P(low | tosses so far)
    # sums of logarithms near -900 ln 1e-300 have so many digits left behind the point
    close = 1e-9 if heads[0] > 0.1 else 3e-7
    log = float(np.logaddexp(*so_far[:, -1])) - math.log(2)
    found = dyn.filter(seen)
    np.testing.assert_allclose(found["Bias"][:, 0], low, rtol=close, atol=0)
    assert found.log_evidence == pytest.approx(log, rel=1e-12)
    step = np.array([[0.5, 0.5], [0.125, 0.875]])
    np.testing.assert_allclose(found["C03"][7], [0.25, 0.75] @ np.linalg.matrix_power(step, 7), rtol=1e-9)
    np.testing.assert_allclose(dyn.smooth(seen)["Bias"][:, 0], low[-1], rtol=close, atol=0)
    np.testing.assert_allclose(dyn.forecast(seen, 3)["Bias"][:, 0], low[-1], rtol=close, atol=0)
    assert dyn.log_likelihood(seen) == pytest.approx(log, rel=1e-12)
    if heads == (0.3, 0.7):
        assert low[-1] == pytest.approx(0.5)
        ahead = dyn.smooth({"Toss": seen["Toss"][450:1350]}, 3)["Bias"][:, 0]
        odds = (logs[1] - logs[0])[TOSSES[450:1350]].cumsum()[np.minimum(np.arange(900) + 3, 899)]
        np.testing.assert_allclose(ahead, np.exp(-np.logaddexp(0, odds)), rtol=1e-9, atol=0)


@pytest.mark.parametrize("lag", [None, 0, 5])
@pytest.mark.parametrize(("prior", "toss"), [([1.0, 0.0], "h"), ([0.0, 1.0], "t")])
def test_an_impossible_state_that_evidence_favours(lag: int | None, prior: list[float], toss: str) -> None:
    dyn = coin(prior)
    found, logs = wide_beliefs(dyn, read_sequences(dyn, {"Toss": [toss] * 1800}), lag)
    assert np.array_equal(found["Bias"], np.tile(prior, (1800, 1)))
    assert logs == pytest.approx(1800 * math.log(0.3))


def test_many_small_numbers_of_a_single_step() -> None:
    """Sixty tables whose sums have a product below any double."""
    dyn = bbn.DynamicNetwork([], [c for i in range(60) for c in _sensed(i)])
    seen = {f"S{i:02d}": [1, 1] for i in range(60)}
    log = 2 * 60 * math.log(0.5e-9 + 0.5e-8)
    assert wide_logs(dyn, read_sequences(dyn, seen)) == pytest.approx(log, rel=1e-12)


def _sensed(i: int) -> list[bbn.CPT]:
    cause, sensor = bbn.Variable(f"C{i:02d}", [0, 1]), bbn.Variable(f"S{i:02d}", [0, 1])
    return [
        bbn.CPT(cause, [], [0.5, 0.5]),
        bbn.CPT(sensor, [cause], [[1 - 1e-9, 1e-9], [1 - 1e-8, 1e-8]]),
    ]


def shrunk(rng: np.random.Generator, dyn: bbn.DynamicNetwork) -> bbn.DynamicNetwork:
    """The same network with some entries down to 1e-300."""
    made = []
    for cpt in dyn.template.conditionals:
        if "[-" in cpt.name or cpt.variable.card == 1:
            continue
        table = cpt.table.copy()
        rows = table.reshape(-1, table.shape[-1])
        chosen = rng.random(len(rows)) < 0.5
        rows[chosen, 0] *= 10.0 ** -rng.uniform(0, 300, int(chosen.sum()))
        sums = rows.sum(axis=1, keepdims=True)
        rows[:] = np.where(sums > 0.01, rows / np.where(sums > 0, sums, 1), cpt.table.reshape(rows.shape))
        made.append(bbn.CPT(cpt.variable, cpt.parents, table))
    return dyn.with_template(dyn.template.with_cpts(made))


@pytest.mark.parametrize("block", range(4))
def test_random_networks_against_fractions(block: int) -> None:
    checked = 0
    for seed in range(40 * block, 40 * block + 40):
        rng = np.random.default_rng(seed)
        dyn = random_dynamic(rng, zeros=True)
        steps = int(rng.integers(1, 4))
        if np.prod([float(v.card) for v in dyn.variables]) ** steps > 3000:
            continue
        dyn = shrunk(rng, dyn)
        evidence = random_evidence(rng, dyn, steps)
        for name, own in evidence.items():
            if name in dyn.static:  # said in the first step, or never
                own[1:] = [None] * (steps - 1)
            for t, value in enumerate(own):  # likelihoods of any size
                if isinstance(value, bbn.Virtual) and rng.random() < 0.5:
                    size = 10.0 ** rng.uniform(-300, 300)
                    own[t] = bbn.Virtual({s: w * size for s, w in value.weights.items()})
        net = dyn.unroll(steps)
        named = {
            (n if n in dyn.static else f"{n}[{t}]"): value
            for n, own in evidence.items()
            for t, value in enumerate(own)
            if value is not None
        }
        whole = exact_truth.weights(net, named)
        sequences = read_sequences(dyn, evidence)
        if not whole:
            assert np.isneginf(wide_logs(dyn, sequences)).all()
            continue
        checked += 1
        log = exact_truth.log(exact_truth.total(whole))
        found, logs = wide_beliefs(dyn, sequences, None)
        np.testing.assert_allclose([logs[0], wide_logs(dyn, sequences)[0]], log, rtol=1e-11, atol=1e-11)
        for axis, v in enumerate(net.variables):
            name, _, at = v.name.partition("[")
            truth = exact_truth.marginal(whole, axis, v.card)
            for t in range(steps) if not at else [int(at[:-1])]:
                np.testing.assert_allclose(
                    found[name][t], truth, rtol=1e-9, atol=1e-300, err_msg=f"{seed} {v.name}"
                )
    assert checked > 10


def test_ordinary_evidence_stays_in_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    dyn = beside_others(coin([0.5, 0.5]))
    monkeypatch.setattr(table_products.Logs, "table", None)  # asking for a logarithm fails
    rng = np.random.default_rng(0)
    tosses = rng.choice(["h", "t"], 300).tolist()
    assert math.isfinite(dyn.log_likelihood({"Toss": tosses}))
    dyn.smooth({"Toss": tosses})


def test_a_step_that_is_impossible_is_named_after_small_numbers() -> None:
    dyn = coin([0.5, 0.5], (1e-300, 1.0))
    sequences = read_sequences(dyn, {"Toss": ["h", "h", "h", "h", "h", "t", "t"]})
    found, _ = wide_beliefs(dyn, sequences, 0)
    np.testing.assert_allclose(found["Bias"][-1], [1, 0])
    impossible = coin([0.0, 1.0], (1e-300, 1.0))
    sequences = read_sequences(impossible, {"Toss": ["h", "h", "t"]})
    with pytest.raises(bbn.ImpossibleEvidenceError, match="step 2"):
        wide_beliefs(impossible, sequences, None)
