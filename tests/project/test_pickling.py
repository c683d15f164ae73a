"""Every public object can be pickled, and answers the same afterwards."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bbn

STUB = Path(bbn.__file__).with_suffix(".pyi")
NAMES = [
    name.asname or name.name
    for node in ast.parse(STUB.read_text()).body
    if isinstance(node, ast.ImportFrom)
    for name in node.names
]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(bbn, name))]
RAISED = [name for name in CLASSES if issubclass(getattr(bbn, name), Exception)]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(bbn, name))]

ASIA = bbn.example("asia")
SURVEY = bbn.example("survey")
SEEN = {"xray": "yes", "smoke": "no"}
ROWS = ASIA.sample(300, seed=0)
X, Y, Z = bbn.Variable("X", ["a", "b"]), bbn.Variable("Y", [0, 1]), bbn.Continuous("Z")
CX, CY = bbn.CPT(X, table=[0.3, 0.7]), bbn.CPT(Y, [X], [[0.2, 0.8], [0.6, 0.4]])
GZ = bbn.Gaussian(Z, [X], means=[0.0, 2.0], variances=[1.0, 0.5])
MIXED = bbn.BayesianNetwork([CX, CY, GZ])
NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["u", "v"])
CHAIN = bbn.example("umbrella")
WILDCATTER = bbn.example("oil_wildcatter")
STEPS = [[0], [0], [0], [1], [1], [1], [0], [0], [1], [1], [1]]
LINKS = [("X", "M"), ("M", "Y"), ("X", "Y")]
NOISY = bbn.NoisyOr(bbn.Variable("N", ["no", "yes"]), [bbn.Variable("P", ["no", "yes"])], [0.4], leak=0.1)


def posteriors(engine):
    return {name: p.to_dict() for name, p in engine.posteriors(SEEN).items()}


def sampled(kind):
    """Of a network without zeros, so that nothing warns."""
    return lambda: kind(SURVEY, n_samples=2000, seed=1), lambda engine: engine.posteriors()


def fitted(kind, **options):
    return lambda: kind(**options).fit(
        ROWS.drop(columns="lung"), ROWS["lung"]
    ), lambda model: model.predict_proba(ROWS.drop(columns="lung").head(20)).tolist()


def itself(value):
    return value


OBJECTS = {
    "Variable": (lambda: X, itself),
    "Continuous": (lambda: Z, itself),
    "Binned": (lambda: bbn.Binned("B", edges=[0, 1, 2]), itself),
    "Factor": (lambda: bbn.Factor([X], [1.0, 2.0]), itself),
    "CPT": (lambda: CY, itself),
    "Gaussian": (lambda: GZ, itself),
    "Deterministic": (lambda: bbn.Deterministic(bbn.Variable("D", [0, 1]), [Y], "max"), itself),
    "NoisyMax": (
        lambda: bbn.NoisyMax(X, [Y], [[[1.0, 0.0], [0.2, 0.8]]], [0.95, 0.05], strongest="b"),
        itself,
    ),
    "NoisyOr": (lambda: NOISY, itself),
    "BayesianNetwork": (lambda: ASIA, posteriors),
    "FactorGraph": (
        lambda: bbn.FactorGraph([bbn.Factor([X, Y], np.arange(1.0, 5).reshape(2, 2))]),
        lambda model: model.query("X").to_dict(),
    ),
    "Decision": (lambda: bbn.Decision("D", ["go", "stay"]), itself),
    "Utility": (lambda: bbn.Utility("U", [X], [1.0, 2.0]), itself),
    "DecisionNetwork": (lambda: WILDCATTER, lambda net: net.solve().expected_utility),
    "Previous": (lambda: bbn.Previous("X"), itself),
    "DynamicNetwork": (lambda: CHAIN, itself),
    "Virtual": (lambda: bbn.Virtual({"a": 0.2, "b": 0.8}), itself),
    "Soft": (lambda: bbn.Soft({"a": 0.2, "b": 0.8}), itself),
    "OneOf": (lambda: bbn.OneOf("a", "b"), itself),
    "Not": (lambda: bbn.Not("a"), itself),
    "Posterior": (lambda: ASIA.query("lung", SEEN), itself),
    "Assignment": (lambda: ASIA.mpe(SEEN), itself),
    "MixturePosterior": (lambda: MIXED.query("Z", {"Y": 1}), itself),
    "Policy": (lambda: WILDCATTER.solve().policy, itself),
    "Solution": (lambda: WILDCATTER.solve(), itself),
    "Rule": (lambda: next(iter(WILDCATTER.solve().policy.values())), itself),
    "Enumeration": (lambda: bbn.Enumeration(ASIA, time_limit=60), posteriors),
    "VariableElimination": (lambda: bbn.VariableElimination(ASIA, order="min-weight"), posteriors),
    "JunctionTree": (lambda: bbn.JunctionTree(ASIA, memory_limit="1 GB"), posteriors),
    "LikelihoodWeighting": sampled(bbn.LikelihoodWeighting),
    "RejectionSampling": sampled(bbn.RejectionSampling),
    "ImportanceSampling": sampled(bbn.ImportanceSampling),
    "GibbsSampling": sampled(bbn.GibbsSampling),
    "LoopyBeliefPropagation": (lambda: bbn.LoopyBeliefPropagation(ASIA, max_iter=50), posteriors),
    "MEstimate": (lambda: bbn.MEstimate(2.0), itself),
    "Dirichlet": (lambda: bbn.Dirichlet(2.0), itself),
    "BDeu": (lambda: bbn.BDeu(2.0), itself),
    "NormalInverseGamma": (lambda: bbn.NormalInverseGamma(), itself),
    "LocalScores": (lambda: bbn.LocalScores({"A": {(): -3.0}, "B": {(): -4.0, ("A",): -2.5}}), itself),
    "ArcPosterior": (lambda: bbn.arc_posterior(ROWS[["lung", "smoke"]]), itself),
    "Description": (lambda: bbn.describe(ROWS), str),
    "Discretizer": (lambda: bbn.discretize(NUMBERS, bins=3), lambda found: found.apply(NUMBERS).to_dict()),
    "HypothesisSpace": (
        lambda: bbn.HypothesisSpace({"h1": 0.4, "h2": 0.6}, chance),
        lambda space: space.update([1]).probabilities,
    ),
    "NaiveBayes": fitted(bbn.NaiveBayes),
    "TAN": fitted(bbn.TAN),
    "BayesNetClassifier": fitted(bbn.BayesNetClassifier),
    "TextNaiveBayes": (
        lambda: bbn.TextNaiveBayes(min_count=1, drop_top=0).fit(["good fun", "bad film"], ["+", "-"]),
        lambda model: model.predict_proba(["good film"]).tolist(),
    ),
    "GaussianMixture": (
        lambda: bbn.GaussianMixture(2, random_state=0).fit(NUMBERS),
        lambda model: model.predict_proba(NUMBERS).tolist(),
    ),
    "HMM": (
        lambda: bbn.HMM(2, random_state=0, alpha=0.1).fit(STEPS, lengths=[6, 5]),
        lambda hmm: hmm.predict(STEPS, lengths=[6, 5]).tolist(),
    ),
    "CausalGraph": (lambda: bbn.CausalGraph(LINKS), itself),
    "Budget": (lambda: bbn.Budget(seconds=3, bytes="1 GB"), itself),
    "Estimand": (lambda: bbn.identify(bbn.CausalGraph(LINKS), "Y", "X"), str),
}


def chance(hypothesis, datum):
    return 0.9 if (datum == 1) == (hypothesis == "h1") else 0.1


def test_every_public_class_is_here():
    assert set(CLASSES) - set(RAISED) == set(OBJECTS)
    others = set(NAMES) - set(CLASSES) - set(FUNCTIONS)
    assert all(inspect.ismodule(getattr(bbn, name)) for name in others)


@pytest.mark.parametrize("name", OBJECTS)
def test_it_answers_the_same_afterwards(name):
    make, answers = OBJECTS[name]
    made = make()
    expected = answers(made)
    for found in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert type(found) is type(made)
        assert repr(answers(found)) == repr(expected)
        assert answers(found) == expected


@pytest.mark.parametrize("method", bbn.inference.ENGINES)
def test_every_engine_keeps_its_options(method):
    engine = bbn.inference.engine_class(method)(ASIA, memory_limit="123 MB")
    found = pickle.loads(pickle.dumps(engine))
    assert type(found) is type(engine)
    assert found.options == engine.options
    assert found.model == ASIA


def test_engines_of_continuous_variables_too():
    engine = bbn.JunctionTree(MIXED, memory_limit="123 MB")
    found = pickle.loads(pickle.dumps(engine))
    assert type(found) is type(engine)
    assert found.options == engine.options
    assert found.query("Z", {"Y": 1}) == engine.query("Z", {"Y": 1})


@pytest.mark.parametrize("name", RAISED)
def test_what_is_raised_keeps_what_it_says(name):
    error = getattr(bbn, name)("what happened")
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.__dict__ == error.__dict__


def test_what_a_question_raises_keeps_its_attributes():
    with pytest.raises(bbn.ImpossibleEvidenceError) as raised:
        ASIA.query("asia", {"lung": "yes", "either": "no"})
    assert pickle.loads(pickle.dumps(raised.value)).findings == raised.value.findings


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled_by_name(name):
    function = getattr(bbn, name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("seen", [[], [{"Umbrella": "yes"}], [{"Umbrella": "yes"}, {}, {"Umbrella": "no"}]])
def test_beliefs_over_time_are_the_same_afterwards(seen):
    states = [CHAIN.start()]
    for row in seen:
        states.append(states[-1].update(row))
    for state in states:
        for again in (pickle.loads(pickle.dumps(state)), copy.deepcopy(state)):
            assert again == state
            assert hash(again) == hash(state)
            assert again.update({"Umbrella": "no"})["Rain"] == pytest.approx(
                state.update({"Umbrella": "no"})["Rain"], abs=0
            )
    assert len(set(states)) == len(states)
    assert CHAIN.start() == CHAIN.start()
    assert CHAIN.start().update({"Umbrella": "yes"}) != CHAIN.start().update({"Umbrella": "no"})


def test_beliefs_in_numbers_over_time_are_the_same_afterwards():
    level, seen = bbn.Continuous("Level"), bbn.Continuous("Seen")
    prior = bbn.Gaussian(level, means=0.0, variances=1.0)
    moved = bbn.Gaussian(level, [bbn.Previous("Level")], means=0.0, variances=0.5, weights=[0.9])
    sensor = bbn.Gaussian(seen, [level], means=0.0, variances=0.1, weights=[1.0])
    chain = bbn.DynamicNetwork(first=[prior], later=[moved, sensor])
    state = chain.start().update({"Seen": 1.5}).update({"Seen": 0.5})
    again = pickle.loads(pickle.dumps(state))
    assert again == state
    assert again != chain.start().update({"Seen": 1.5}).update({"Seen": 0.4})
    assert again.update({"Seen": 2.0}) == state.update({"Seen": 2.0})
