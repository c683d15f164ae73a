"""Implied independences and refutations: false alarms as rare as promised, wrong graphs and false effects found."""

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.causal.effects.independences import holm
from tests.support.causal_truth import random_arcs, random_hidden_causes, random_network


def test_every_claim_is_a_separation_and_every_pair_that_can_be_is_claimed():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        names, latent, arcs = random_hidden_causes(rng, 5, int(rng.integers(0, 3)), density=0.4)
        net = random_network(rng, arcs, names + latent)
        rows = net.sample(60, seed=seed).drop(columns=latent)
        states = {name: net.states(name) for name in names}
        found = bbn.check_independences(net.graph, rows, latent, states=states)
        whole = nx.DiGraph(arcs)
        whole.add_nodes_from(names)
        claimed = set()
        for one in found:
            assert nx.is_d_separator(whole, {one.x}, {one.y}, set(one.given))
            claimed.add(frozenset((one.x, one.y)))
        for i, a in enumerate(names):
            for b in names[i + 1 :]:
                apart = nx.find_minimal_d_separator(
                    whole, a, b, restricted=set(names) - {a, b} | {a, b} - {a, b}
                )
                assert (frozenset((a, b)) in claimed) == (apart is not None), (seed, a, b)


def test_false_alarms_are_as_rare_as_promised():
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        names = list("ABCDE")
        net = random_network(rng, random_arcs(rng, names, 0.4), names)
        alarms += not bbn.check_independences(net, net.sample(500, seed=seed)).holds
    assert alarms / 200 < 0.09


def gaussian_rows(rng, n):
    a = rng.normal(size=n)
    d = rng.integers(0, 3, n)
    b = 2 * a + d + rng.normal(size=n)
    c = b - 1.5 * d + rng.normal(size=n)
    return {"A": a, "D": d, "B": b, "C": c}


MIXED = [("A", "B"), ("D", "B"), ("B", "C"), ("D", "C")]


def test_numbers_and_states_together():
    found = bbn.check_independences(MIXED, gaussian_rows(np.random.default_rng(1), 2000))
    assert {(one.x, one.y, one.given, one.test) for one in found} == {
        ("A", "D", (), "regression"),
        ("A", "C", ("D", "B"), "partial correlation"),
    }
    assert found.holds
    wrong = [("A", "B"), ("D", "B"), ("B", "C")]
    against = bbn.check_independences(wrong, gaussian_rows(np.random.default_rng(1), 2000)).rejected
    # without D → C both follow: D tells of C, and given B, which both cause, A tells of D
    assert {(one.x, one.y) for one in against} == {("D", "C"), ("A", "C")}
    p = [
        bbn.check_independences(MIXED, gaussian_rows(np.random.default_rng(s), 200))
        .checks[0]
        .adjusted_p_value
        for s in range(200)
    ]
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= 0.09


def test_partial_correlation_by_its_formula():
    from scipy import stats

    rng = np.random.default_rng(2)
    rows = {"A": rng.normal(size=80), "B": rng.normal(size=80)}
    rows["A"], rows["B"] = rows["A"] + 0.1, rows["B"] + 0.05 * rows["A"]
    (one,) = bbn.check_independences(nx.empty_graph(["A", "B"], create_using=nx.DiGraph), rows)
    assert one.p_value == pytest.approx(stats.pearsonr(rows["A"], rows["B"]).pvalue, abs=1e-10)


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.02, 0.5])).tolist() == pytest.approx([0.03, 0.04, 0.5])
    assert holm(np.array([])).size == 0
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_a_wrong_arrow_is_found_and_shown():
    net = bbn.example("asia")
    rows = net.sample(5000, seed=1)
    wrong = [arc for arc in net.arcs if arc != ("smoke", "bronc")]
    found = bbn.check_independences(wrong, rows)
    assert not found
    assert ("smoke", "bronc") in {(one.x, one.y) for one in found.rejected}
    assert "smoke ⫫ bronc" in str(found)
    assert len(found.to_frame()) == len(found)
    with pytest.raises(bbn.EvidenceError, match="between 0 and 1"):
        bbn.check_independences(net, rows, alpha=5)
    with pytest.raises(bbn.DataError, match="no column"):
        bbn.check_independences(net, rows.drop(columns="xray"))
    assert len(bbn.check_independences([("A", "B")], {"A": [0, 1], "B": [1, 0]})) == 0


CONFOUNDED = [("Z", "X"), ("Z", "Y"), ("X", "Y")]


def confounded_rows(rng, n, effect):
    z = rng.integers(0, 2, n)
    x = (rng.random(n) < 0.2 + 0.6 * z).astype(int)
    y = (rng.random(n) < 0.2 + effect * x + 0.4 * z).astype(int)
    return {"Z": z, "X": x, "Y": y}


def test_a_real_effect_survives_and_its_placebo_does_nothing():
    rows = confounded_rows(np.random.default_rng(1), 2000, 0.3)
    found = bbn.refute(rows, CONFOUNDED, "X", "Y", event=1, seed=2)
    assert found.passed
    assert found["placebo"].p_value < 0.05
    assert abs(found["placebo"].new_estimate) < 0.02
    assert found["random common cause"].new_estimate == pytest.approx(found["placebo"].estimate, abs=0.01)
    assert len(found) == 3
    again = bbn.refute(rows, CONFOUNDED, "X", "Y", event=1, seed=2)
    assert again == found
    assert "placebo" in str(found)
    only = bbn.refute(rows, CONFOUNDED, "X", "Y", event=1, kinds="subset", n=5)
    assert [one.kind for one in only] == ["subset"]


def test_no_effect_is_no_better_than_a_placebo():
    rows = confounded_rows(np.random.default_rng(3), 1000, 0.0)
    assert bbn.refute(rows, CONFOUNDED, "X", "Y", event=1, kinds="placebo")["placebo"].p_value > 0.05


def test_numbers_can_be_refuted_too():
    rng = np.random.default_rng(4)
    z = rng.normal(size=400)
    x = z + rng.normal(size=400)
    rows = {"Z": z, "X": x, "Y": x + 2 * z + rng.normal(size=400)}
    found = bbn.refute(rows, CONFOUNDED, "X", "Y", n=15, kinds=["placebo", "subset"])
    assert found.passed
    assert found["placebo"].p_value < 0.1
    with pytest.raises(bbn.EvidenceError, match="did you mean 'placebo'"):
        bbn.refute(rows, CONFOUNDED, "X", "Y", kinds="placebos")
    with pytest.raises(bbn.EvidenceError, match="at least 2"):
        bbn.refute(rows, CONFOUNDED, "X", "Y", n=1)
