"""Evidence, checked once against a network."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bbn
from bbn.core.errors import DataError, EvidenceError
from bbn.model.cpt import CPT
from bbn.model.evidence import Not, OneOf, Soft, Virtual, check_evidence, check_targets
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from tests.support.strategies import networks

COLOUR, NUMBER, FLAG = (
    Variable("Colour", ["r", "g", "b"]),
    Variable("Number", [0, 1]),
    Variable("Flag", [False, True]),
)
NET = BayesianNetwork([CPT(COLOUR, table=[0.5, 0.3, 0.2]), CPT.uniform(NUMBER, [COLOUR]), CPT.uniform(FLAG)])


def likelihood(finding):
    return check_evidence(NET, {"Colour": finding}).likelihood["Colour"].tolist()


# what findings mean


@given(networks(), st.data())
def test_a_hard_finding_is_the_code_of_its_state(net, data):
    evidence = {name: data.draw(st.sampled_from(net.states(name))) for name in net.names}
    findings = check_evidence(net, evidence)
    assert findings.hard == {name: net.states(name).index(state) for name, state in evidence.items()}
    assert findings.likelihood == findings.soft == {}


@pytest.mark.parametrize("missing", [None, math.nan, np.nan, np.float32("nan"), pd.NA, pd.NaT])
def test_missing_values_are_unobserved(missing):
    assert check_evidence(NET, {"Colour": missing, "Number": 1}) == ({"Number": 1}, {}, {})
    assert check_evidence(NET, None) == ({}, {}, {})


def test_numpy_scalars_are_states_and_true_is_not_1():
    assert check_evidence(NET, {"Number": np.int64(1), "Flag": np.True_, "Colour": np.str_("b")}).hard == {
        "Number": 1, "Flag": 1, "Colour": 2}  # fmt: skip
    for name, value in [("Number", True), ("Flag", 1), ("Number", 1.0), ("Number", "1"), ("Flag", "True")]:
        with pytest.raises(EvidenceError, match=f"'{name}' has no state"):
            check_evidence(NET, {name: value})


def test_virtual_oneof_and_not_are_likelihoods_in_the_order_of_the_states():
    assert likelihood(Virtual({"b": 3, "g": 0, "r": 0.5})) == [0.5, 0, 3]
    assert likelihood(OneOf("b", "r")) == [1, 0, 1]
    assert likelihood(OneOf("g")) == [0, 1, 0]
    assert likelihood(Not("b")) == [1, 1, 0]
    assert likelihood(Not("b", "r")) == [0, 1, 0]
    assert likelihood(Not()) == [1, 1, 1]


def test_soft_is_a_marginal():
    assert check_evidence(NET, {"Colour": Soft({"g": 0.5, "r": 0.25, "b": 0.25})}).soft[
        "Colour"
    ].tolist() == [0.25, 0.5, 0.25]
    thirds = check_evidence(NET, {"Colour": Soft({"r": 0.3333333, "g": 0.3333333, "b": 0.3333333})}).soft[
        "Colour"
    ]
    assert thirds.sum() == pytest.approx(1, abs=1e-15)


def test_checking_leaves_the_evidence_alone():
    evidence = {"Colour": Virtual({"r": 1, "g": 2, "b": 3}), "Number": None}
    before = dict(evidence)
    check_evidence(NET, evidence)
    assert evidence == before


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (Virtual({"a": 1, "b": 2}), Virtual({"b": 2, "a": 1}), True),
        (Virtual({"a": 1, "b": 2}), Virtual({"a": 1, "b": 3}), False),
        (Virtual({"a": 1, "b": 0}), Soft({"a": 1, "b": 0}), False),
        (OneOf("a", "b"), OneOf("a", "b"), True),
        (OneOf("a"), Not("a"), False),
        (OneOf("a"), "a", False),
    ],
)
def test_findings_are_values(left, right, same):
    assert (left == right) == same
    if same:
        assert hash(left) == hash(right)
    assert pickle.loads(pickle.dumps(left)) == left
    with pytest.raises(AttributeError, match="frozen"):
        left.weights = left.states = None


def test_findings_without_one_of_them():
    findings = check_evidence(
        NET, {"Number": 1, "Flag": OneOf(True), "Colour": Soft({"r": 1, "g": 0, "b": 0})}
    )
    for name in NET.names:
        fewer = findings.without(name)
        assert {n for part in fewer for n in part} == set(NET.names) - {name}


def test_targets():
    assert check_targets(NET, "Flag") == ("Flag",)
    assert check_targets(NET, ["Flag", "Colour"]) == ("Flag", "Colour")
    assert check_targets(NET, (n for n in ["Number"])) == ("Number",)


def test_most_probable_explanations_of_soft_evidence_are_those_of_jeffreys_rule():
    """P'(x) = P(x) q(v) / P(v) for a marginal q of v; its largest entry, and its largest marginal entry."""
    net = bbn.example("asia")
    wanted = {"yes": 0.7, "no": 0.3}
    joint = net.joint()
    axis = joint.names.index("xray")
    prior = net.query("xray")
    weights = np.array([wanted[state] / prior[state] for state in ("yes", "no")])
    shape = [-1 if i == axis else 1 for i in range(joint.values.ndim)]
    adjusted = joint.values * weights.reshape(shape)
    order = np.argsort(-adjusted, axis=None)
    best = net.mpe({"xray": bbn.Soft(wanted)}, k=3)
    for found, flat in zip(best, order, strict=False):
        index = np.unravel_index(flat, adjusted.shape)
        assert found.log_probability == pytest.approx(np.log(adjusted[index]), abs=1e-9)
        assert net.probability(found.states) * weights[("yes", "no").index(found["xray"])] == pytest.approx(
            adjusted[index], rel=1e-9
        )
    pair = ("lung", "bronc")
    others = tuple(i for i, name in enumerate(joint.names) if name not in pair)
    marginal = adjusted.sum(axis=others)
    left = [name for name in joint.names if name in pair]
    index = np.unravel_index(marginal.argmax(), marginal.shape)
    found = net.map(pair, {"xray": bbn.Soft(wanted)})
    assert found.states == {name: net.states(name)[i] for name, i in zip(left, index, strict=True)}
    assert found.log_probability == pytest.approx(np.log(marginal.max()), abs=1e-9)


@pytest.mark.parametrize("make", [lambda t: bbn.CPT(bbn.Variable("A", ["x", "y"]), table=t),
                                  lambda t: bbn.Factor([bbn.Variable("A", ["x", "y"])], t)])  # fmt: skip
def test_masked_numbers_are_no_numbers(make):
    make(np.ma.array([0.5, 0.5], mask=False))
    with pytest.raises(bbn.ModelError, match="not an array of numbers"):
        make(np.ma.array([0.5, 0.5], mask=[False, True]))


@pytest.mark.parametrize("engine", [bbn.JunctionTree, bbn.VariableElimination, bbn.Enumeration])
@pytest.mark.parametrize(
    "weights", [((0.0, 1.0), (1.0, 0.0)), ((0.3, 0.7), (1.0, 0.0)), ((0.3, 0.7), (0.7, 0.3))]
)
def test_soft_findings_that_contradict_each_other_are_impossible(engine, weights):
    a, b = bbn.Variable("A", ["x", "y"]), bbn.Variable("B", ["x", "y"])
    net = bbn.BayesianNetwork([bbn.CPT(a, table=[0.5, 0.5]), bbn.CPT(b, [a], [[1.0, 0.0], [0.0, 1.0]])])
    evidence = {
        name: Soft(dict(zip("xy", own, strict=True))) for name, own in zip("AB", weights, strict=True)
    }
    with pytest.raises(bbn.ImpossibleEvidenceError, match="A, B cannot hold together") as caught:
        engine(net).query("A", evidence)
    assert caught.value.findings == evidence


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("kind", [bbn.Virtual, bbn.Soft])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_weight_beyond_every_float_is_an_evidence_error(kind, digits, sign):
    weights = {"yes": sign * 10**digits, "no": 1}
    with pytest.raises(EvidenceError, match="'smoke': a weight is beyond what a float holds"):
        bbn.example("asia").query("lung", {"smoke": kind(weights)})


@pytest.mark.parametrize("digits", [400, 5000])
def test_integers_too_long_to_print_are_evidence_errors(digits):
    net, huge = bbn.example("asia"), 10**digits
    number = bbn.BayesianNetwork([bbn.Gaussian("x", means=0, variances=1)])
    for ask in (
        lambda: net.query("lung", {"smoke": huge}),
        lambda: net.query("lung", {"smoke": bbn.OneOf(huge)}),
        lambda: net.query("lung", {"smoke": bbn.Not(huge)}),
        lambda: net.query("lung", {"smoke": bbn.Virtual({huge: 1})}),
        lambda: net.query("lung", {huge: 1}),
        lambda: net.query(huge),
        lambda: bbn.Virtual(huge),
        lambda: number.query("x", {"x": huge}),
    ):
        with pytest.raises(EvidenceError) as caught:
            ask()
        assert len(str(caught.value)) < 1000
    with pytest.raises(DataError, match="not a finite number"):
        number.log_likelihood({"x": [huge]})
