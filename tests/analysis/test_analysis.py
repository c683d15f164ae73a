"""Explanations, information and sensitivity: against the joint, and against finite differences."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import bbn
from bbn.model.network import BayesianNetwork
from tests.support import oracle
from tests.support.strategies import random_network


def bits(p: dict, q: dict) -> float:
    return sum(p[k] * math.log2(p[k] / q[k]) for k in p if p[k] > 0)


def test_explanations_are_divergences_of_posteriors() -> None:
    net = bbn.example("asia")
    evidence = {"xray": "yes", "smoke": "no", "dysp": "yes"}
    why = net.explain("lung", evidence)
    for i, step in enumerate(why):
        others = {name: state for name, state in evidence.items() if name != step.finding}
        so_far = dict(list(evidence.items())[: i + 1])
        before = dict(list(evidence.items())[:i])
        alone = bits(oracle.posterior(net, ["lung"], evidence), oracle.posterior(net, ["lung"], others))
        came = bits(oracle.posterior(net, ["lung"], so_far), oracle.posterior(net, ["lung"], before))
        assert step.alone == pytest.approx(alone, abs=1e-12)
        assert step.in_sequence == pytest.approx(came, abs=1e-12)
    assert [step.finding for step in why] == list(evidence)
    assert "xray = yes" in str(why)


@pytest.mark.parametrize("seed", range(20))
def test_information_is_mutual_information(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    net = random_network(rng, max_nodes=6, max_cells=300)
    if len(net) < 2:
        net = bbn.example("sprinkler")
    target = net.names[0]
    told = net.information(target)
    assert list(told.values()) == sorted(told.values(), reverse=True)
    for name, value in told.items():
        pair = oracle.posterior(net, [target, name])
        left = oracle.posterior(net, [target])
        right = oracle.posterior(net, [name])
        expected = sum(p * math.log2(p / (left[(a,)] * right[(b,)])) for (a, b), p in pair.items() if p > 0)
        assert value == pytest.approx(max(0.0, expected), abs=1e-10)


def moved(net: BayesianNetwork, name: str, place: tuple[int, ...], change: float) -> BayesianNetwork:
    """The network with one entry changed, the others of its row in proportion."""
    table = net[name].table.copy()
    row = table[place[:-1]]
    old = row[place[-1]]
    others = np.arange(len(row)) != place[-1]
    row[others] = row[others] * (1 - old - change) / (1 - old) if old < 1 else -change / others.sum()
    row[place[-1]] = old + change
    return net.with_cpts([bbn.CPT(net[name].variable, net[name].parents, table)])


@pytest.mark.parametrize("seed", range(25))
def test_sensitivity_is_the_derivative_of_the_answer(seed: int) -> None:
    rng = np.random.default_rng([9, seed])
    net = random_network(rng, max_nodes=6, max_cells=200, min_card=2, zeros=False)
    target = net.names[int(rng.integers(len(net)))]
    evidence: dict[str, object] = {}
    for v in net.variables:
        if v.name != target and rng.random() < 0.4:
            likelihood = bbn.Virtual(dict(zip(v.states, rng.uniform(0.1, 2, v.card).tolist(), strict=True)))
            evidence[v.name] = v.states[0] if rng.random() < 0.6 else likelihood
    result = net.sensitivity(target, evidence, state=net.states(target)[0])

    def answer(other: BayesianNetwork) -> float:
        return oracle.posterior(other, [target], evidence)[(net.states(target)[0],)]

    assert result.probability == pytest.approx(answer(net), abs=1e-10)
    for name in net.names:
        for place in np.ndindex(net[name].table.shape):
            h = 1e-5 * min(net[name].table[place], 1 - net[name].table[place])
            difference = (answer(moved(net, name, place, h)) - answer(moved(net, name, place, -h))) / (2 * h)
            assert result.derivatives[name][place] == pytest.approx(difference, abs=1e-6, rel=1e-5)
    for entry in result.largest(3):
        for change, there in ((-0.1 * entry.value, entry.low), (0.1 * (1 - entry.value), entry.high)):
            assert answer(moved(net, entry.variable, entry.place, change)) == pytest.approx(there, abs=1e-10)


@pytest.mark.parametrize("rest", [1e-6, 1e-11, 3e-12, 1e-12, 1e-13, 2e-15])
def test_sensitivity_of_an_entry_next_to_one(rest: float) -> None:
    """By rational arithmetic: the answer is Σθql / Σθl, and the others of θ's row shrink in proportion."""
    a, b, e = (bbn.Variable(name, list(states)) for name, states in (("A", "xyz"), ("B", "tf"), ("E", "tf")))
    theta = [1 - rest, 0.3 * rest, 0.7 * rest]
    q, likelihood = [0.5, 0.49, 0.505], [0.2, 0.21, 0.199]
    net = BayesianNetwork(
        [
            bbn.CPT(a, table=theta),
            bbn.CPT(b, [a], [[p, 1 - p] for p in q]),
            bbn.CPT(e, [a], [[p, 1 - p] for p in likelihood]),
        ]
    )
    others = sum(map(Fraction, theta[1:]))
    move = [Fraction(1), *(-Fraction(t) / others for t in theta[1:])]
    above, below, d_above, d_below = (
        sum(
            Fraction(t) * (Fraction(p) if answer else 1) * Fraction(own)
            for t, p, own in zip(ts, q, likelihood, strict=True)
        )
        for ts, answer in ((theta, True), (theta, False), (move, True), (move, False))
    )
    expected = float((d_above - above / below * d_below) / below)
    found = net.sensitivity("B", {"E": "t"}, state="t").derivatives["A"][0]
    assert found == pytest.approx(expected, rel=1e-9)


def test_sensitivity_refuses_what_makes_no_sense() -> None:
    net = bbn.example("asia")
    with pytest.raises(bbn.EvidenceError, match="'lung' is observed"):
        net.sensitivity("lung", {"lung": "yes"})
    with pytest.raises(bbn.EvidenceError, match="not Soft"):
        net.sensitivity("lung", {"xray": bbn.Soft({"yes": 0.5, "no": 0.5})})
    with pytest.raises(bbn.EvidenceError, match="evidence on the target"):
        net.information("lung", {"lung": "yes"})


def test_explanations_and_sensitivities_are_values():
    import pickle

    net = bbn.example("asia")
    for make in (
        lambda evidence: net.explain("lung", evidence),
        lambda evidence: net.sensitivity("lung", evidence, state="yes"),
    ):
        one, same, other = make({"xray": "yes"}), make({"xray": "yes"}), make({"xray": "no"})
        assert one == same == pickle.loads(pickle.dumps(one))
        assert hash(one) == hash(same)
        assert one != other
        assert str(pickle.loads(pickle.dumps(one))) == str(one)


def test_no_evidence_moves_nothing():
    net = bbn.example("asia")
    assert net.explain("lung", None).steps == net.explain("lung", {}).steps == ()
