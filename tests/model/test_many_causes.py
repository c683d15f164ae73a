"""Questions, edits and learners that take noisy maxima and functions of many parents as they are."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from tests.support.many_causes import network, noisy_max, with_tables


@pytest.mark.parametrize("seed", range(10))
def test_removing_an_arc_keeps_it_factored(seed):
    rng = np.random.default_rng([23, seed])
    net = network(rng, zeros=0.2, functions=False)
    parent = net["Y"].parents[1]
    weights = dict(zip(parent.states, rng.uniform(0.1, 1, parent.card), strict=True)) if seed % 2 else None
    found = net.remove_arc(parent.name, "Y", weights)
    assert isinstance(found["Y"], bbn.NoisyMax)
    expected = with_tables(net).remove_arc(parent.name, "Y", weights)["Y"]
    assert found["Y"].parents == expected.parents
    np.testing.assert_allclose(found["Y"].table, expected.table, atol=1e-14)


def test_removing_one_of_a_hundred_arcs():
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, [0.5] * 100, leak=0.1)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.1, 0.9]) for v in causes), effect])
    less = net.remove_arc("C3", "E", {"yes": 1, "no": 3})
    assert len(less["E"].parents) == 99
    assert less["E"].leak.tolist() == pytest.approx([1 - 0.9 * (1 - 0.25 * 0.5), 0.9 * (1 - 0.25 * 0.5)])


def expected_effects(noisy, data, rows):
    """Expected counts of the effects of each link and the leak, by the sum over all combinations of effects."""
    card = noisy.variable.card
    stronger = np.max if noisy.strongest == noisy.variable.states[-1] else np.min
    combinations = np.array(list(np.ndindex(*[card] * (len(noisy.parents) + 1))))
    shown = stronger(combinations, axis=1)
    starts = np.cumsum([0, *(p.card for p in noisy.parents)])
    counts = np.zeros(rows.shape)
    for _, row in data.iterrows():
        places = [*(starts[k] + p.code(row[p.name]) for k, p in enumerate(noisy.parents)), starts[-1]]
        chances = np.prod([rows[places[k]][combinations[:, k]] for k in range(len(places))], axis=0)
        chances = chances * (shown == noisy.variable.code(row[noisy.name]))
        for k, place in enumerate(places):
            np.add.at(counts[place], combinations[:, k], chances / chances.sum())
    return counts


@pytest.mark.parametrize("seed", range(6))
def test_learning_on_takes_the_old_links_for_rows_seen(seed):
    rng = np.random.default_rng([24, seed])
    parents = [bbn.Variable(f"X{i}", ["a", "b"]) for i in range(3)]
    roots = [bbn.CPT(v, table=rng.dirichlet(np.ones(2))) for v in parents]
    old = bbn.BayesianNetwork([*roots, noisy_max(rng, "Y", parents)])
    data = old.with_cpts([noisy_like(rng, old["Y"])]).sample(300, seed=seed)
    found = bbn.fit_update(old, data, 50)["Y"]
    # the maximum a posteriori stays where it is in a step of EM with the pseudo-counts of the old links
    shares = [50 * root.table for root in roots]
    alpha = np.concatenate(
        [
            *(s[:, None] * link for s, link in zip(shares, old["Y"].links, strict=True)),
            50 * old["Y"].leak[None],
        ]
    )
    counts = expected_effects(found, data, found.rows) + alpha
    np.testing.assert_allclose(found.rows, counts / counts.sum(axis=1, keepdims=True), atol=2e-3)
    heavy = bbn.fit_update(old, data, 1e9)["Y"]
    np.testing.assert_allclose(heavy.rows, old["Y"].rows, atol=1e-5)
    np.testing.assert_allclose(
        bbn.fit_update(old, data, 0)["Y"].rows, bbn.fit(old, data)["Y"].rows, atol=1e-12
    )


def noisy_like(rng, noisy):
    links = [rng.dirichlet(np.ones(noisy.variable.card), p.card) for p in noisy.parents]
    return bbn.NoisyMax(noisy.variable, noisy.parents, links, noisy.leak, strongest=noisy.strongest)


def test_learning_on_with_a_hundred_parents_and_functions():
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, [0.5] * 100, leak=0.1)
    some = bbn.Deterministic(bbn.Variable("D", [0, 1, 2]), causes, "sum")
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.02, 0.98]) for v in causes), effect, some])
    data = net.sample(200, seed=0)
    learned = bbn.fit_update(net, data, 100)
    assert learned["D"] == some
    assert isinstance(learned["E"], bbn.NoisyMax)
    present = (data["C5"] == "yes").sum()
    assert learned["C5"].table[0] == pytest.approx((present + 2) / 300)


def test_pyagrum_is_not_given_a_table_that_does_not_fit():
    pytest.importorskip("pyagrum")
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, [0.5] * 100)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.02, 0.98]) for v in causes), effect])
    with pytest.raises(bbn.BudgetError, match="the full table of NoisyOr 'E'"):
        bbn.to_pyagrum(net)
