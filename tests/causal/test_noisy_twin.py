"""Counterfactuals through noisy maxima: against the same model with its noise written out, and a closed form."""

from __future__ import annotations

import numpy as np
import pytest

import bbn
from tests.support.many_causes import function, with_tables


def link(rng, parent, card):
    """Rows that are certain, but for one."""
    rows = np.eye(card)[rng.integers(card, size=parent.card)]
    rows[int(rng.integers(parent.card))] = rng.dirichlet(np.ones(card))
    return rows


def written_out(noisy):
    """The noise of each link as a root, and the child as a function of its causes and the noise, as tables."""
    states = noisy.variable.states
    roots, place = [], []
    for name, own in [
        *zip((p.name for p in noisy.parents), noisy.links, strict=True),
        ("leak", noisy.leak[None]),
    ]:
        uncertain = [x for x, row in enumerate(own) if row.max() < 1]
        row = own[uncertain[0]] if uncertain else np.full(len(states), 1 / len(states))
        roots.append(bbn.CPT(bbn.Variable(f"noise of {noisy.name} by {name}", states), table=row))
        place.append(uncertain)

    def rule(**given):
        effects = []
        for k, own in enumerate((*noisy.links, noisy.leak[None])):
            x = noisy.parents[k].code(given[noisy.parents[k].name]) if k < len(noisy.parents) else 0
            shown = given[roots[k].variable.name]
            effects.append(states.index(shown) if x in place[k] else int(own[x].argmax()))
        return states[max(effects) if noisy.strongest == states[-1] else min(effects)]

    members = [*noisy.parents, *(r.variable for r in roots)]
    table = np.zeros([*(v.card for v in members), len(states)])
    for codes in np.ndindex(table.shape[:-1]):
        given = {v.name: v.states[c] for v, c in zip(members, codes, strict=True)}
        table[(*codes, states.index(rule(**given)))] = 1
    return [*roots, bbn.CPT(noisy.variable, members, table)]


def model(rng):
    a, b, x = (bbn.Variable(n, [f"s{k}" for k in range(int(rng.integers(2, 4)))]) for n in ("A", "B", "X"))
    roots = [bbn.CPT(v, table=rng.dirichlet(np.ones(v.card))) for v in (a, b)]
    roots.append(bbn.CPT(x, [a], rng.dirichlet(np.ones(x.card), a.card)))
    parts = []
    for name, parents in (("Y", [a, x, b]), ("W", [x, b])):
        child = bbn.Variable(name, [f"y{k}" for k in range(int(rng.integers(2, 4)))])
        if name == "W":
            parents = [parts[0].variable, *parents[1:]]
        links = [link(rng, p, child.card) for p in parents]
        leak = rng.dirichlet(np.ones(child.card))
        parts.append(bbn.NoisyMax(child, parents, links, leak, strongest=child.states[-int(rng.integers(2))]))
    parts.append(function(rng, "D", [parts[1].variable, x]))
    return bbn.BayesianNetwork([*roots, *parts])


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_is_that_of_the_noise_written_out(seed):
    rng = np.random.default_rng([22, seed])
    net = model(rng)
    truth = with_tables(
        net.with_cpts([c for n in net.conditionals if isinstance(n, bbn.NoisyMax) for c in written_out(n)])
    )
    for _ in range(3):
        row = net.sample(1, seed=int(rng.integers(2**31))).iloc[0]
        seen = {
            n: v.states[list(v.states).index(row[n])]
            for n in ("A", "X", "Y", "W", "D")
            if (v := net.variable(n))
        }
        seen = {n: state for n, state in seen.items() if rng.random() < 0.6}
        do = {"X": net.states("X")[int(rng.integers(len(net.states("X"))))]}
        if rng.random() < 0.3:
            do["Y"] = net.states("Y")[0]
        for targets in ("Y", "W", ["D", "W"]):
            found, expected = (m.counterfactual(targets, seen, do) for m in (net, truth))
            np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
            assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-10)


def test_a_hundred_causes():
    """Necessity: P(E would not be | E, C0) = q / (1 − q (1 − c_0)), q the chance that nothing else shows."""
    rng = np.random.default_rng(1)
    chances, priors = rng.uniform(0.1, 0.5, 100), rng.uniform(0.001, 0.01, 100)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    effect = bbn.NoisyOr(bbn.Variable("E", ["yes", "no"]), causes, list(chances), leak=0.02)
    net = bbn.BayesianNetwork(
        [*(bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(causes, priors, strict=True)), effect]
    )
    found = net.counterfactual("E", {"E": "yes", "C0": "yes"}, {"C0": "no"})
    quiet = 0.98 * np.prod(1 - priors[1:] * chances[1:])
    assert found["no"] == pytest.approx(chances[0] * quiet / (1 - quiet * (1 - chances[0])), rel=1e-10)
    count = bbn.Deterministic(bbn.Variable("N", [0, 1, 2]), causes, "sum")
    several = bbn.BayesianNetwork([*(c for c in net.conditionals if c.variable.name != "E"), count])
    assert several.counterfactual("N", {"N": 1, "C0": "yes"}, {"C0": "no"}).mode() == 0
    one = several.counterfactual("N", {"N": 1, "C0": "no"}, {"C0": "yes"})
    assert one.values.tolist() == [0, 0, 1]


def test_two_uncertain_rows_are_refused_by_name():
    x, y = bbn.Variable("X", ["low", "mid", "high"]), bbn.Variable("Y", ["no", "yes"])
    noisy = bbn.NoisyMax(y, [x], [[[1, 0], [0.5, 0.5], [0.2, 0.8]]])
    net = bbn.BayesianNetwork([bbn.CPT(x, table=[0.3, 0.3, 0.4]), noisy])
    with pytest.raises(
        bbn.NotIdentifiableError, match="'Y' would have been had 'X' been 'high' and not 'mid'"
    ):
        net.counterfactual("Y", {"X": "mid"}, {"X": "high"})
    # into the state without effect all is decided
    assert net.counterfactual("Y", {"X": "mid", "Y": "yes"}, {"X": "low"}).mode() == "no"
