"""Questions asked again with other values: each answer against the full joint, and every finding that is no state."""

from __future__ import annotations

import math
import pickle
from types import MappingProxyType

import numpy as np
import pytest

import bbn
from bbn.inference.exact import asked_again, query_compiler
from bbn.inference.exact.junction_tree import JunctionTree
from tests.support import oracle
from tests.support.strategies import random_network


@pytest.mark.parametrize("seed", range(40))
def test_answers_asked_again_are_those_of_the_joint(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_nodes=6, max_cells=400)
    engine = JunctionTree(net)
    names = list(net.names)
    for _ in range(4):
        observed = rng.permutation(names)[: rng.integers(0, len(names))].tolist()
        free = [name for name in names if name not in observed]
        targets = rng.permutation(free)[: rng.integers(1, 3)].tolist()
        asked = targets[0] if len(targets) == 1 else targets
        for _ in range(5):
            evidence = {n: net.states(n)[rng.integers(len(net.states(n)))] for n in observed}
            total = oracle.evidence_probability(net, evidence)
            if total == 0:
                with pytest.raises(bbn.ImpossibleEvidenceError):
                    engine.posteriors(evidence)
                with pytest.raises(bbn.ImpossibleEvidenceError):
                    engine.query(asked, evidence)
                continue
            answers = engine.posteriors(evidence)
            assert list(answers) == free
            assert answers.log_evidence == pytest.approx(math.log(total), abs=1e-10)
            for name, found in answers.items():
                truth = oracle.posterior(net, [name], evidence)
                assert found.values == pytest.approx([truth[(s,)] for s in net.states(name)], abs=1e-10)
            found = engine.query(asked, evidence)
            truth = oracle.posterior(net, targets, evidence)
            assert found.to_dict() == pytest.approx(
                {(key if len(targets) > 1 else key[0]): p for key, p in truth.items()}, abs=1e-10
            )
            assert found.log_evidence == pytest.approx(math.log(total), abs=1e-10)
            assert not found.values.flags.writeable


def noisy_network(rng):
    """Some causes, effects that are their noisy-OR, and the same with full tables."""
    causes = [bbn.Variable(f"C{i}", ["no", "yes"]) for i in range(7)]
    priors = [bbn.CPT(c, [], [1 - p, p]) for c, p in zip(causes, rng.uniform(0.1, 0.6, 7), strict=True)]
    effects = []
    for name in ("E0", "E1"):
        parents = [causes[i] for i in sorted(rng.permutation(7)[: rng.integers(5, 8)].tolist())]
        links = rng.uniform(0.2, 0.9, len(parents)).tolist()
        effects.append(bbn.NoisyOr(bbn.Variable(name, ["no", "yes"]), parents, links, leak=0.05))
    net = bbn.BayesianNetwork([*priors, *effects])
    return net, bbn.BayesianNetwork([*priors, *(e.to_cpt() for e in effects)])


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_noisy_effects_come_and_go_between_questions(seed, masked, monkeypatch):
    if not masked:
        monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    rng = np.random.default_rng(seed)
    net, whole = noisy_network(rng)
    engine = JunctionTree(net)
    assert len(engine.flat.cards) > len(net.variables)  # the effects are chains
    for observed in (["E0"], ["E0", "E1"], ["E1", "C2"], ["E0", "C0", "E1"]):
        for _ in range(8):
            evidence = {name: str(rng.choice(["no", "yes"])) for name in observed}
            log = math.log(oracle.evidence_probability(whole, evidence))
            answers = engine.posteriors(evidence)
            for name, found in answers.items():
                truth = oracle.posterior(whole, [name], evidence)
                expected = [truth["no",], truth["yes",]]
                assert found.values == pytest.approx(expected, abs=1e-10)
                assert engine.query(name, evidence).values == pytest.approx(expected, abs=1e-10)
            assert answers.log_evidence == pytest.approx(log, abs=1e-10)
            assert engine.query("C1", evidence).log_evidence == pytest.approx(log, abs=1e-10)
    for evidence in ({"E0": "no"}, {"E0": "yes"}):  # by now each is known, and answered as a repeat
        assert engine._again.posteriors(evidence) is not None
        assert engine._again.query("C1", evidence) is not None


@pytest.fixture
def asked():
    """An engine that has been asked the same question three times."""
    engine = JunctionTree(bbn.example("asia"))
    for _ in range(3):
        engine.posteriors({"xray": "yes", "dysp": "no"})
        engine.query("lung", {"xray": "yes", "dysp": "no"})
    return engine


def test_the_third_time_takes_the_short_way(asked, monkeypatch):
    def long_way(*arguments):
        raise AssertionError("the long way")

    monkeypatch.setattr(asked, "_findings", long_way)
    assert asked.query("lung", {"xray": "no", "dysp": "yes"})["yes"] > 0
    assert asked.posteriors({"xray": "no", "dysp": "yes"})["lung"]["yes"] > 0
    with pytest.raises(AssertionError, match="the long way"):
        asked.query("lung", {"dysp": "yes", "xray": "no"})  # another order of names is another question


@pytest.mark.parametrize(
    "finding",
    [None, math.nan, bbn.Virtual({"yes": 2, "no": 1}), bbn.Soft({"yes": 0.3, "no": 0.7}), bbn.Not("no")],
)
def test_findings_that_are_no_states_are_heard(asked, finding):
    evidence = {"xray": finding, "dysp": "no"}
    truth = oracle.posterior(asked.model, ["lung"], {n: f for n, f in evidence.items() if f == f})
    for _ in range(3):
        assert asked.query("lung", evidence)["yes"] == pytest.approx(truth[("yes",)], abs=1e-10)
        assert asked.posteriors(evidence)["lung"]["yes"] == pytest.approx(truth[("yes",)], abs=1e-10)
        assert "xray" in asked.posteriors(evidence)
    assert "xray" not in asked.posteriors({"xray": "no", "dysp": "no"})


def test_faults_are_told_as_the_first_time(asked):
    with pytest.raises(bbn.EvidenceError, match="'xray' has no state 'yess'; did you mean 'yes'"):
        asked.query("lung", {"xray": "yess", "dysp": "no"})
    with pytest.raises(bbn.EvidenceError, match="'xray' has no state True"):
        asked.posteriors({"xray": True, "dysp": "no"})
    with pytest.raises(bbn.EvidenceError, match="no variable 'xrays'"):
        asked.posteriors({"xrays": "yes", "dysp": "no"})
    with pytest.raises(bbn.EvidenceError, match="must be a mapping"):
        asked.posteriors(["xray"])
    with pytest.raises(bbn.EvidenceError):
        asked.query([["lung"]], {"xray": "yes", "dysp": "no"})
    for _ in range(3):
        with pytest.raises(bbn.ImpossibleEvidenceError):
            asked.query("lung", {"tub": "yes", "either": "no"})
        with pytest.raises(bbn.EvidenceError, match="named twice"):
            asked.query(["lung", "lung"], {"xray": "yes"})


def test_an_observed_target_is_certain_each_time(asked):
    for state in ("yes", "no", "yes"):
        assert asked.query("xray", {"xray": state, "dysp": "no"})[state] == 1.0


def test_a_mapping_that_is_no_dict_and_numpy_text_are_read(asked):
    expected = asked.query("lung", {"xray": "yes", "dysp": "no"})
    assert asked.query("lung", MappingProxyType({"xray": "yes", "dysp": "no"})) == expected
    assert asked.query("lung", {"xray": np.str_("yes"), "dysp": "no"}) == expected


@pytest.mark.parametrize("labels", [None, [10, 20, 30]])
def test_raw_numbers_on_cut_variables(labels):
    mass = bbn.Binned("mass", edges=[15, 25], labels=labels)
    kind = bbn.Variable("kind", ["a", "b"])
    net = bbn.BayesianNetwork(
        [bbn.CPT(mass, [], [0.2, 0.3, 0.5]), bbn.CPT(kind, [mass], [[0.1, 0.9], [0.4, 0.6], [0.8, 0.2]])]
    )
    rows = [0.1, 0.4, 0.8]
    for number, row in [(3, 0), (20, 1), (99.0, 2), (10, 0), (30, 2), (15, 1), (20, 1)] * 2:
        assert net.query("kind", {"mass": number})["a"] == pytest.approx(rows[row])
        assert net.posteriors({"mass": number})["kind"]["a"] == pytest.approx(rows[row])
    for state, p in zip(mass.states, rows, strict=True):
        if labels is None:
            assert net.query("kind", {"mass": state})["a"] == pytest.approx(p)


def test_a_plan_that_is_no_longer_kept_is_made_again(asked):
    expected = asked.query("lung", {"xray": "no", "dysp": "no"})
    asked.compiler.known.make_room(0)
    assert asked.query("lung", {"xray": "no", "dysp": "no"}) == expected
    assert asked.posteriors({"xray": "no", "dysp": "no"})["lung"].values == pytest.approx(expected.values)


def test_no_more_questions_are_known_than_are_kept(monkeypatch):
    monkeypatch.setattr(asked_again, "KEPT", 3)
    engine = JunctionTree(bbn.example("asia"))
    engine.query("lung")  # the first question is not noted
    for name in ("asia", "smoke", "bronc", "dysp", "xray") * 3:
        engine.query("lung", {name: "yes"})
        assert len(engine._again._known) <= 3


def test_options_of_one_call_go_the_long_way(asked):
    with pytest.raises(TypeError, match="n_samples"):
        asked.query("lung", {"xray": "yes", "dysp": "no"}, n_samples=3)
    expected = asked.query("lung", {"xray": "yes", "dysp": "no"})
    assert asked.query("lung", {"xray": "yes", "dysp": "no"}, order="min-weight").values == pytest.approx(
        expected.values
    )


def test_posteriors_behave_like_the_dict_of_them(asked):
    answers = asked.posteriors({"xray": "yes", "dysp": "no"})
    plain = dict(answers)
    assert plain == answers
    assert answers == plain
    assert [name for name, _ in answers.items()] == list(plain) == list(answers.keys())
    assert list(answers.values()) == list(plain.values())
    assert ("lung", plain["lung"]) in answers.items()
    assert plain["lung"] in answers.values()
    assert len(answers.items()) == len(answers.values()) == len(answers) == 6
    assert pickle.loads(pickle.dumps(answers)) == answers
    assert pickle.loads(pickle.dumps(plain["lung"])) == plain["lung"]
    with pytest.raises(AttributeError, match="frozen"):
        plain["lung"].values = None
    with pytest.raises(ValueError, match="read-only"):
        plain["lung"].values[0] = 1.0


@pytest.mark.parametrize("states", [["yes", "no"], ["no", "yes"]])
@pytest.mark.parametrize("everything", [False, True])
def test_what_an_absent_effect_makes_certain_is_told_to_repeated_questions(monkeypatch, states, everything):
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    causes = [bbn.Variable(f"C{i}", states) for i in range(12)]
    effect, seen = bbn.Variable("E", states), bbn.Variable("S", ["a", "b"])
    prior = {"yes": 0.3, "no": 0.7}
    net = bbn.BayesianNetwork(
        [
            *(bbn.CPT(c, table=[prior[s] for s in states]) for c in causes),
            bbn.CPT(seen, [causes[0]], [[0.9, 0.1], [0.2, 0.8]]),
            bbn.NoisyOr(effect, causes, [0.8, *[0.3] * 11], leak=0.1),
        ]
    )
    engine = bbn.JunctionTree(net)
    assert engine._quiet
    for found in ("a", "b", "a", "b", "a"):  # the third time on, by the short way
        evidence = {"E": "no", "S": found}
        answer = engine.posteriors(evidence)["C0"] if everything else engine.query("C0", evidence)
        truth = net.query("C0", evidence, method="enumeration")
        np.testing.assert_allclose(answer.values, truth.values, rtol=0, atol=1e-12)
    short = engine._again.posteriors(evidence) if everything else engine._again.query("C0", evidence)
    assert short is not None
