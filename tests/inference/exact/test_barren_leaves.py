"""All posteriors where effects of many causes are left out of the tree: against joints, fractions and Quickscore."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import bbn
from bbn.inference.exact import barren_leaves, query_compiler
from tests.model.test_noisy_max import diagnosis, quickscore
from tests.support import many_causes, oracle


def layers(rng, n_causes, n_effects):
    """Causes, some of which depend on others, and effects of at least five of them."""
    causes = [
        bbn.Variable(f"X{i}", [f"s{k}" for k in range(int(rng.integers(2, 4)))]) for i in range(n_causes)
    ]
    parts = []
    for i, v in enumerate(causes):
        above = [causes[j] for j in range(max(0, i - 3), i) if rng.random() < 0.3]
        shape = [p.card for p in above]
        table = many_causes.distributions(rng, int(np.prod(shape)), v.card, 0.15)
        parts.append(bbn.CPT(v, above, table.reshape(*shape, v.card)))
    for k in range(n_effects):
        chosen = sorted(
            rng.choice(n_causes, int(rng.integers(n_causes - 1, n_causes + 1)), replace=False).tolist()
        )
        own = [causes[i] for i in chosen]
        if rng.random() < 0.2:
            parts.append(many_causes.function(rng, f"Y{k}", own))
        else:
            parts.append(many_causes.noisy_max(rng, f"Y{k}", own, zeros=0.2))
    return bbn.BayesianNetwork(parts)


def findings(rng, net):
    drawn = net.sample(1, seed=int(rng.integers(1000))).iloc[0]
    seen = {name: drawn[name] for name in net.names if rng.random() < 0.3}
    for name in net.names:
        if name not in seen and rng.random() < 0.15:
            scale = 1e-40 if rng.random() < 0.3 else 1.0
            weights = {state: scale * float(rng.random()) for state in net.states(name)}
            weights[drawn[name]] += scale
            seen[name] = bbn.Virtual(weights)
    return seen


@pytest.fixture
def always(monkeypatch):
    """Every effect that may be left out is; how often that was."""
    count = [0]
    marginals = barren_leaves.BarrenEffects.marginals

    def counted(self, *args):
        count[0] += 1
        return marginals(self, *args)

    monkeypatch.setattr(barren_leaves.BarrenEffects, "_tied", lambda *_: True)
    monkeypatch.setattr(barren_leaves.BarrenEffects, "_pays", lambda *_: True)
    monkeypatch.setattr(barren_leaves.BarrenEffects, "marginals", counted)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", 0)
    return count


@pytest.mark.parametrize("block", range(8))
def test_posteriors_agree_with_the_joint(always, block):
    for seed in range(8 * block, 8 * block + 8):
        rng = np.random.default_rng(seed)
        net = layers(rng, int(rng.integers(5, 7)), int(rng.integers(1, 3)))
        for _ in range(2):
            seen = findings(rng, net)
            found = net.posteriors(seen)
            hidden = [name for name in net.names if name not in seen or isinstance(seen[name], bbn.Virtual)]
            assert list(found) == hidden
            for name in hidden:
                expected = oracle.posterior(net, [name], seen)
                values = [expected.get((state,), 0.0) for state in net.states(name)]
                np.testing.assert_allclose(found[name].values, values, rtol=0, atol=1e-10)
            plain = {name: value for name, value in seen.items() if not isinstance(value, bbn.Virtual)}
            if plain == seen:
                expected = math.log(oracle.evidence_probability(net, seen))
                assert found.log_evidence == pytest.approx(expected, abs=1e-10)
    assert always[0] > 4


def test_rare_states_keep_their_digits(always):
    rng = np.random.default_rng(0)
    causes = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(6)]
    priors = rng.uniform(0.1, 0.9, 6).tolist()
    child = bbn.Variable("Y", ["none", "some", "much", "most"])
    links, leak = [], np.array([1 - 3e-9, 2e-9, 1e-9, 0.0])
    for i in range(6):
        row = rng.uniform(1e-12, 1e-9, 3)
        links.append([[1, 0, 0, 0], [1 - row.sum(), *row] if i else [0.5, 0.5, 0, 0]])
    parts = [bbn.CPT(v, table=[1 - p, p]) for v, p in zip(causes, priors, strict=True)]
    net = bbn.BayesianNetwork([*parts, bbn.NoisyMax(child, causes, links, leak)])
    net = bbn.BayesianNetwork(
        [*net.conditionals, bbn.NoisyMax(bbn.Variable("Z", child.states), causes, links, leak)]
    )
    up_to = []
    for k in range(4):
        product = sum(Fraction(p) for p in leak[: k + 1].tolist())
        for own, prior in zip(net["Y"].links, priors, strict=True):
            below = [sum(Fraction(p) for p in row[: k + 1]) for row in own.tolist()]
            product *= (1 - Fraction(prior)) * below[0] + Fraction(prior) * below[1]
        up_to.append(product)
    expected = [float((b - a) / up_to[-1]) for a, b in zip([Fraction(0), *up_to], up_to, strict=False)]
    found = net.posteriors()
    assert always[0] == 1
    assert expected[3] < 1e-8
    np.testing.assert_allclose(found["Y"].values, expected, rtol=1e-12)
    np.testing.assert_allclose(found["Z"].values, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "m", "causes", "n_positive", "n_negative"),
    [(40, 60, 8, 4, 3), pytest.param(600, 4000, 30, 12, 40, marks=pytest.mark.slow)],
)
def test_all_posteriors_of_a_diagnosis_agree_with_quickscore(n, m, causes, n_positive, n_negative):
    rng = np.random.default_rng(5)
    net, priors, links, leaks = diagnosis(n, m, causes, rng)
    chosen = rng.choice(m, n_positive + n_negative, replace=False).tolist()
    positive, negative = chosen[:n_positive], chosen[n_positive:]
    evidence = {f"F{f}": "yes" for f in positive} | {f"F{f}": "no" for f in negative}
    total, expected = quickscore(priors, links, leaks, positive, negative)
    found = net.posteriors(evidence)
    np.testing.assert_allclose([found[f"D{i}"]["yes"] for i in range(n)], expected, rtol=0, atol=1e-10)
    others = [f for f in range(m) if f not in chosen][:3]
    for f in others:
        absent, _ = quickscore(priors, links, leaks, positive, [*negative, f])
        assert found[f"F{f}"]["no"] == pytest.approx(absent / total, abs=1e-10)
    assert len(found) == n + m - len(chosen)


def test_impossible_findings_are_named():
    causes = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(30)]
    parts = [bbn.CPT(v, table=[0.9, 0.1]) for v in causes]
    effects = [bbn.NoisyOr(bbn.Variable(f"Y{k}", ["no", "yes"]), causes, [0.5] * 30) for k in range(3)]
    net = bbn.BayesianNetwork([*parts, *effects])
    with pytest.raises(bbn.ImpossibleEvidenceError, match="Y0"):
        net.posteriors({"Y0": "yes", **{v.name: "no" for v in causes}})


def test_effects_that_tie_no_causes_stay_in_the_tree():
    causes = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(60)]
    parts = [bbn.CPT(v, table=[0.9, 0.1]) for v in causes]
    one = bbn.NoisyOr(bbn.Variable("Y", ["no", "yes"]), causes[:40], [0.5] * 40)
    two = bbn.NoisyOr(bbn.Variable("Z", ["no", "yes"]), causes[39:], [0.5] * 21)
    engine = bbn.JunctionTree(bbn.BayesianNetwork([*parts, one, two]))
    found = engine.posteriors()
    assert set(engine._effects._left_out.values()) == {()}
    assert found["Y"]["yes"] == pytest.approx(1 - 0.95**40, abs=1e-12)
    assert found["Z"]["yes"] == pytest.approx(1 - 0.95**21, abs=1e-12)


def test_hidden_effects_that_would_tie_all_causes_are_left_out():
    rng = np.random.default_rng(1)
    causes = [bbn.Variable(f"X{i}", ["no", "yes"]) for i in range(80)]
    parts = [bbn.CPT(v, table=[0.9, 0.1]) for v in causes]
    for k in range(300):
        own = [causes[i] for i in sorted(rng.choice(80, 20, replace=False).tolist())]
        parts.append(bbn.NoisyOr(bbn.Variable(f"Y{k}", ["no", "yes"]), own, [0.5] * 20, leak=0.01))
    found = bbn.BayesianNetwork(parts).posteriors()
    for k in range(300):
        assert found[f"Y{k}"]["no"] == pytest.approx(0.99 * 0.95**20, abs=1e-12)


def test_thousands_of_effects_of_two_or_three_causes_are_left_out():
    """Their tables are smaller than their chains, so they are plain tables in a tree, which nothing could hold."""
    rng = np.random.default_rng(0)
    causes = [bbn.Variable(f"D{i}", ["no", "yes"]) for i in range(200)]
    priors = rng.uniform(0.02, 0.2, 200)
    parts = [bbn.CPT(v, table=[1 - p, p]) for v, p in zip(causes, priors, strict=True)]
    effects = []
    for k in range(1500):
        chosen = sorted(rng.choice(200, int(rng.integers(2, 4)), replace=False).tolist())
        strengths = rng.uniform(0.2, 0.9, len(chosen))
        own = [causes[i] for i in chosen]
        parts.append(bbn.NoisyOr(bbn.Variable(f"F{k}", ["no", "yes"]), own, strengths.tolist(), leak=0.01))
        effects.append((chosen, strengths))
    found = bbn.BayesianNetwork(parts).posteriors({"F0": "no"})
    chosen, strengths = effects[0]
    after = priors.copy()  # given an absent effect the causes stay independent
    after[chosen] = priors[chosen] * (1 - strengths) / (1 - priors[chosen] * strengths)
    np.testing.assert_allclose([found[v.name]["yes"] for v in causes], after, rtol=0, atol=1e-12)
    for k, (own, links) in enumerate(effects[1:], start=1):
        absent = 0.99 * np.prod(1 - after[own] * links)
        assert found[f"F{k}"]["no"] == pytest.approx(absent, abs=1e-12)
