"""Formulas over numbers: against surgery on linear models by plain linear algebra, and intervals against the truth."""

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_hidden_causes

FRONT_DOOR = bbn.CausalGraph([("X", "M"), ("M", "Y")], confounded=[("X", "Y")])
NAPKIN = bbn.CausalGraph([("W", "R"), ("R", "X"), ("X", "Y")], confounded=[("W", "X"), ("W", "Y")])


def random_linear(rng, arcs, names):
    """A linear model with normal noise, as a network, and as (starts, weights, variances) for linear algebra."""
    order = {name: i for i, name in enumerate(names)}
    weights = np.zeros((len(names), len(names)))
    for a, b in arcs:
        weights[order[b], order[a]] = rng.normal()
    starts, variances = rng.normal(0, 3, len(names)), rng.uniform(0.3, 2, len(names))
    made = []
    for name in names:
        parents = [a for a, b in arcs if b == name]
        own = [weights[order[name], order[p]] for p in parents]
        made.append(
            bbn.Gaussian(
                name, list(map(bbn.Continuous, parents)), starts[order[name]], variances[order[name]], own
            )
            if parents
            else bbn.Gaussian(name, means=starts[order[name]], variances=variances[order[name]])
        )
    return bbn.BayesianNetwork(made), starts, weights, variances


def linear_surgery(starts, weights, variances, order, y, do, given):
    """Mean and variance of y once rows of the model are replaced, and what is observed is conditioned on."""
    starts, weights, variances = starts.copy(), weights.copy(), variances.copy()
    for name, value in do.items():
        weights[order[name]], starts[order[name]], variances[order[name]] = 0.0, value, 0.0
    whole = np.linalg.inv(np.eye(len(starts)) - weights)
    mean, covariance = whole @ starts, whole @ np.diag(variances) @ whole.T
    i, g = order[y], [order[name] for name in given]
    if not g:
        return mean[i], covariance[i, i]
    share = covariance[i, g] @ np.linalg.inv(covariance[np.ix_(g, g)])
    return mean[i] + share @ (np.array(list(given.values())) - mean[g]), covariance[
        i, i
    ] - share @ covariance[g, i]


def test_formulas_over_numbers_equal_surgery_on_random_linear_models():
    identified = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 7))
        names, latent, arcs = random_hidden_causes(
            rng, n, int(rng.integers(0, 5)), float(rng.uniform(0.3, 0.8))
        )
        picks = [str(name) for name in rng.permutation(names)]
        x, y = picks[:2]
        given = picks[2:3] if n > 3 and rng.random() < 0.4 else []
        net, starts, weights, variances = random_linear(rng, arcs, [*latent, *names])
        try:
            estimand = bbn.identify(net, y, x, given, latent=latent)
        except bbn.NotIdentifiableError:
            continue
        identified += 1
        do, seen = {x: float(rng.normal())}, {name: float(rng.normal()) for name in given}
        found = estimand.evaluate(net, do, seen)
        order = {name: i for i, name in enumerate([*latent, *names])}
        mean, variance = linear_surgery(starts, weights, variances, order, y, do, seen)
        assert found.mean == pytest.approx(mean, abs=1e-7, rel=1e-7), (seed, estimand)
        assert found.variance == pytest.approx(variance, abs=1e-7, rel=1e-7), (seed, estimand)
    assert identified > 200


def front_door_numbers(rng, n, unit=1.0, far=0.0):
    u = rng.normal(size=n)
    x = u + rng.normal(size=n)
    m = 1.5 * x + rng.normal(size=n)
    y = 2 * m + 3 * u + rng.normal(size=n)
    return {"X": unit * x + far, "M": unit * m + far, "Y": unit * y + far}


def test_the_front_door_of_numbers_is_a_product_of_two_slopes():
    rows = front_door_numbers(np.random.default_rng(0), 400)
    found = bbn.effect(rows, FRONT_DOOR, "X", "Y", seed=0)
    x, m, y = (rows[name] for name in "XMY")
    first = np.polyfit(x, m, 1)[0]
    second = np.linalg.lstsq(np.column_stack([np.ones(400), m, x]), y, rcond=None)[0][1]
    assert found.average_effect == pytest.approx(first * second, rel=1e-9)
    assert found.average_effect.low < 3.0 < found.average_effect.high
    assert set(found.estimates) == {"g-formula"}
    naive = np.polyfit(x, y, 1)[0]
    assert abs(naive - 3.0) > 1.0  # what there is to get wrong


@pytest.mark.parametrize(("unit", "far"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (1e-3, -1e3)])
def test_units_and_origins_do_not_matter(unit, far):
    plain = bbn.effect(front_door_numbers(np.random.default_rng(1), 300), FRONT_DOOR, "X", "Y", interval=None)
    rows = front_door_numbers(np.random.default_rng(1), 300, unit, far)
    moved = bbn.effect(rows, FRONT_DOOR, "X", "Y", interval=None, treated=far + unit, control=far)
    assert moved.average_effect == pytest.approx(unit * plain.average_effect, rel=1e-6)


def test_a_formula_whose_extra_variable_may_have_any_value():
    rng = np.random.default_rng(3)
    n = 20_000
    u, v = rng.normal(size=n), rng.normal(size=n)
    w = u + v + rng.normal(size=n)
    r = w + rng.normal(size=n)
    x = 0.7 * r + u + rng.normal(size=n)
    y = 1.2 * x + v + rng.normal(size=n)
    found = bbn.effect({"W": w, "R": r, "X": x, "Y": y}, NAPKIN, "X", "Y", seed=0)
    assert found.average_effect.low < 1.2 < found.average_effect.high
    assert found.average_effect.high - found.average_effect.low < 0.3


def test_the_bootstrap_of_a_formula_over_numbers():
    rows = front_door_numbers(np.random.default_rng(4), 300)
    drawn = bbn.effect(rows, FRONT_DOOR, "X", "Y", interval="bootstrap", n_draws=150, seed=0).average_effect
    posterior = bbn.effect(rows, FRONT_DOOR, "X", "Y", seed=0).average_effect
    assert drawn == pytest.approx(posterior)
    assert drawn.high - drawn.low == pytest.approx(posterior.high - posterior.low, rel=0.3)


def test_weights_are_rows_said_several_times():
    rows = front_door_numbers(np.random.default_rng(5), 60)
    times = np.random.default_rng(6).integers(1, 4, 60)
    repeated = {name: np.repeat(own, times) for name, own in rows.items()}
    weighted = bbn.effect({**rows, "n": times}, FRONT_DOOR, "X", "Y", weights="n", interval=None)
    plain = bbn.effect(repeated, FRONT_DOOR, "X", "Y", interval=None)
    assert weighted.average_effect == pytest.approx(plain.average_effect, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (
            lambda rows: {**rows, "M": np.array(["a", "b"] * 30)},
            bbn.DataError,
            "beside variables with states",
        ),
        (lambda rows: {**rows, "M": 2 * rows["X"] + 1}, bbn.DataError, "linear function"),
        (lambda rows: {**rows, "M": np.full(60, 0.5)}, bbn.DataError, "constant"),
        (lambda rows: {**rows, "M": np.where(rows["M"] > 0, rows["M"], np.nan)}, bbn.DataError, "missing"),
        (
            lambda rows: {name: own[:4] for name, own in rows.items()},
            bbn.DataError,
            "4 rows do not determine",
        ),
    ],
)
def test_data_that_a_formula_over_numbers_cannot_take(change, error, match):
    rows = change(front_door_numbers(np.random.default_rng(7), 60))
    with pytest.raises(error, match=match):
        bbn.effect(rows, FRONT_DOOR, "X", "Y")


def test_bounds_are_of_states():
    rows = front_door_numbers(np.random.default_rng(8), 60)
    with pytest.raises(bbn.DataError, match="discretize"):
        bbn.effect_bounds(bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")]), rows, "Y", do={"X": 1.0})
