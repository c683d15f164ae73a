"""Engines of networks with continuous variables are of the class that was asked for, and answer every question."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import bbn
from bbn.inference import ENGINES, engine, engine_class
from tests.support.gaussian_truth import EXACT, Truth, close, random_evidence, random_network

NUMBERS = bbn.BayesianNetwork([bbn.Gaussian("Dose", means=2.0, variances=1.0)])
SAMPLING = [method for method in ENGINES if not engine_class(method).exact]


def mixed_network():
    """Two discrete variables, a number below both and one below that."""
    ill, old = bbn.Variable("Ill", ["yes", "no"]), bbn.Variable("Old", ["yes", "no"])
    fever = bbn.Gaussian("Fever", [ill, old], means=[[39.0, 38.5], [37.0, 36.8]], variances=0.4)
    pulse = bbn.Gaussian("Pulse", [fever.variable], means=-200.0, variances=30.0, weights=[7.5])
    tables = [bbn.CPT(ill, [old], [[0.3, 0.7], [0.1, 0.9]]), bbn.CPT(old, table=[0.4, 0.6])]
    return bbn.BayesianNetwork([*tables, fever, pulse])


@pytest.mark.parametrize(
    "net", [bbn.example("asia"), mixed_network(), NUMBERS], ids=["discrete", "mixed", "numbers"]
)
@pytest.mark.parametrize("method", ENGINES)
def test_an_engine_is_of_the_class_that_was_asked_for(method, net):
    kind = engine_class(method)
    limits = {"memory_limit": "1 GB"}
    for made in (kind(net, **limits), kind(model=net, **limits), engine(net, method), engine(net, method)):
        assert type(made) is kind
        assert made.model is net
        assert made.name == method
    made = kind(net, **limits)
    assert made.options == {**kind.defaults, **limits}
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert type(again) is kind
        assert again.model == net
        assert again.options == made.options
    assert type(made.discrete) is kind
    assert (made.discrete is made) == (not net.continuous)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", EXACT)
def test_every_kind_of_question_against_enumeration(kind, seed):
    rng = np.random.default_rng(500 + seed)
    net = random_network(rng)
    evidence = random_evidence(net, rng)
    truth = Truth(net, evidence)
    hard = {n for n, value in evidence.items() if not isinstance(value, bbn.Virtual)}
    made = kind(net)
    for asked in (made, pickle.loads(pickle.dumps(made))):
        close(asked.log_evidence(evidence), truth.log_evidence)
        by_weight = sorted(truth.cases, key=lambda case: -case[1])
        close(asked.mpe(evidence).log_probability, by_weight[0][1])
        best = asked.mpe(evidence, 3)
        close([one.log_probability for one in best], [case[1] for case in by_weight[:3]])
        for one, case in zip(best, by_weight, strict=False):
            assert one.states == {n: s for n, s in case[0].items() if n not in hard}
        for v in truth.discrete:
            totals = truth.probability(v.name)
            found = asked.map(v.name, evidence)
            close(found.log_probability, math.log(max(totals.values())) + truth.log_evidence)
            close(asked.query(v.name, evidence).values, list(totals.values()))
        for name in truth.numbers:
            weight, mean, _ = truth.mixture(name).T
            close(asked.query(name, evidence).mean, weight @ mean)
        assert list(asked.posteriors(evidence)) == [n for n in net.names if n not in hard]


@pytest.mark.parametrize("method", SAMPLING)
def test_engines_that_sample_answer_given_numbers(method):
    net, evidence = mixed_network(), {"Pulse": 85.0}
    truth = Truth(net, evidence)
    options = {} if method == "loopy" else {"n_samples": 20_000, "seed": 3}
    made = engine_class(method)(net, **options)
    answer = made.query("Ill", evidence)
    expected = list(truth.probability("Ill").values())
    spread = 6 * answer.std_error if options else 1e-9
    assert np.all(np.abs(answer.values - expected) < spread)


def test_the_tree_of_a_mixed_network_is_that_of_its_discrete_variables():
    net = mixed_network()
    tree, discrete = bbn.JunctionTree(net), bbn.JunctionTree(net.discrete_part())
    assert tree.stats() == discrete.stats()
    codes = {"Old": np.array([0, 1, 2])}
    close(tree.rows(codes, 3, ["Ill"]).values, [[0.3, 0.7], [0.1, 0.9], [0.18, 0.82]])


def test_an_option_that_is_a_number_is_shown_as_evidence():
    with pytest.raises(TypeError, match=r"'Pulse' is a variable, not an option.*evidence=\{'Pulse': 85.0\}"):
        bbn.JunctionTree(mixed_network()).query("Ill", Pulse=85.0)


def test_nothing_but_the_constructor_makes_an_engine():
    for method in ENGINES:
        assert "__new__" not in {n for kind in inspect.getmro(engine_class(method))[:-1] for n in vars(kind)}
