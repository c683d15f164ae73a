"""Derivatives in the links of noisy maxima: by the chain rule from those of full tables, and by differences."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from tests.support import oracle
from tests.support.many_causes import network, some_evidence, with_tables


def with_row(noisy, row, values):
    """The NoisyMax with one of its rows replaced."""
    rows = noisy.rows.copy()
    rows[row] = values
    ends = np.cumsum([p.card for p in noisy.parents])
    *links, leak = np.split(rows, ends)
    return bbn.NoisyMax(noisy.variable, noisy.parents, links, leak[0], strongest=noisy.strongest)


def share_of(noisy, row, code):
    """∂ table / ∂ entry: the table is linear in each row, and only settings of the row's state depend on it."""
    table = with_row(noisy, row, np.eye(noisy.variable.card)[code]).table.copy()
    for axis, parent in enumerate(noisy.parents):
        if row < parent.card:
            table[
                tuple(slice(None) if a != axis else np.arange(parent.card) != row for a in range(table.ndim))
            ] = 0
            break
        row -= parent.card
    return table


@pytest.mark.parametrize("seed", range(30))
def test_the_gradient_in_links_follows_from_that_in_tables(seed):
    rng = np.random.default_rng([20, seed])
    net = network(rng, zeros=0.1)
    tables = with_tables(net)
    data = tables.sample(40, seed=seed, missing=0.4)
    found, truth = bbn.gradient(net, data), bbn.gradient(tables, data)
    assert set(found) == set(net.names) - {"D"}
    for name, slope in found.items():
        own = net[name]
        if not isinstance(own, bbn.NoisyMax):
            np.testing.assert_allclose(slope, truth[name], rtol=1e-10, atol=1e-12)
            continue
        for row, code in np.ndindex(slope.shape):
            expected = (truth[name] * share_of(own, row, code)).sum()
            assert slope[row, code] == pytest.approx(expected, rel=1e-9, abs=1e-10)


def moved(net, name, place, change):
    """The network of tables after an entry changed, the others of its row in proportion."""
    own = net[name]
    noisy = isinstance(own, bbn.NoisyMax)
    table = (own.rows if noisy else own.table).copy()
    row = table[place[:-1]]
    others = np.arange(len(row)) != place[-1]
    row[others] *= (1 - row[place[-1]] - change) / (1 - row[place[-1]])
    row[place[-1]] += change
    new = with_row(own, place[0], row).to_cpt() if noisy else bbn.CPT(own.variable, own.parents, table)
    return with_tables(net).with_cpts([new])


@pytest.mark.parametrize("seed", range(8))
def test_sensitivity_is_the_derivative_of_the_answer(seed):
    rng = np.random.default_rng([21, seed])
    net = network(rng)
    seen = some_evidence(net, rng)
    free = [name for name in net.names if name not in seen and name != "D"]
    target = free[int(rng.integers(len(free)))]
    seen.pop("D", None)
    virtual = [name for name in free if name != target][:1]
    for name in virtual:
        seen[name] = bbn.Virtual(dict(zip(net.states(name), rng.uniform(0.2, 1, 4), strict=False)))
    state = net.states(target)[0]
    result = net.sensitivity(target, seen, state=state)

    def answer(other):
        return oracle.posterior(other, [target], seen)[(state,)]

    assert result.probability == pytest.approx(answer(with_tables(net)), abs=1e-12)
    assert "D" not in result.derivatives
    for name, slope in result.derivatives.items():
        for place in [tuple(map(int, rng.integers(slope.shape))) for _ in range(4)]:
            value = (net[name].rows if isinstance(net[name], bbn.NoisyMax) else net[name].table)[place]
            h = 1e-5 * min(value, 1 - value)
            difference = (answer(moved(net, name, place, h)) - answer(moved(net, name, place, -h))) / (2 * h)
            assert slope[place] == pytest.approx(difference, abs=1e-6, rel=1e-5)
    for entry in [e for e in result.largest(99) if isinstance(net[e.variable], bbn.NoisyMax)][:2]:
        for change, there in ((-0.1 * entry.value, entry.low), (0.1 * (1 - entry.value), entry.high)):
            assert answer(moved(net, entry.variable, entry.place, change)) == pytest.approx(there, abs=1e-10)


def test_a_hundred_causes_have_derivatives_in_closed_form():
    """P(E) = 1 − (1 − leak) ∏ (1 − p_i c_i), so ∂ P(E) / ∂ c_i = (1 − leak) p_i ∏ of the others."""
    rng = np.random.default_rng(4)
    chances, priors = rng.uniform(0.05, 0.5, 100), rng.uniform(0.01, 0.05, 100)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, list(chances), leak=0.02)
    parts = [bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, priors, strict=True)]
    net = bbn.BayesianNetwork([*parts, effect])
    found = net.sensitivity("E", state="yes")
    quiet = 0.98 * np.prod(1 - priors * chances)
    for i in (0, 41, 99):
        expected = priors[i] * quiet / (1 - priors[i] * chances[i])
        assert found.derivatives["E"][2 * i, 0] == pytest.approx(expected, rel=1e-10)
    assert found.derivatives["E"][200, 0] == pytest.approx(quiet / 0.98, rel=1e-10)
    names = {entry.name for entry in found.largest(1000)}
    assert {"P(E=yes by C41=yes)", "P(E=yes by itself)", "P(C41=yes)"} <= names
    data = net.sample(30, seed=1, missing=0.3)
    assert bbn.gradient(net, data)["E"].shape == (201, 2)


def test_names_of_rows_and_entries():
    flu, cold = bbn.Variable("Flu", ["no", "yes"]), bbn.Variable("Cold", ["no", "yes"])
    links = [[[1, 0, 0], [0.1, 0.3, 0.6]], [[1, 0, 0], [0.5, 0.4, 0.1]]]
    fever = bbn.NoisyMax(bbn.Variable("Fever", ["none", "mild", "high"]), [flu, cold], links, [0.9, 0.1, 0])
    assert fever.rows.tolist() == [*links[0], *links[1], [0.9, 0.1, 0]]
    assert fever.row_name(1, 2) == "P(Fever=high by Flu=yes)"
    assert fever.row_name(2, 0) == "P(Fever=none by Cold=no)"
    assert fever.row_name(4, 1) == "P(Fever=mild by itself)"
