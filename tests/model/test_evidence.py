"""Evidence, checked once against a network, and the values that answers come in."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bbn
from bbn.core.display import MOST
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError
from bbn.model.cpt import CPT
from bbn.model.evidence import Not, OneOf, Soft, Virtual, check_evidence, check_targets
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from bbn.results.posterior import Assignment, Posterior, Posteriors
from tests.support.strategies import networks, variable_lists

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


# Posterior


@st.composite
def posteriors(draw):
    variables = draw(variable_lists(1, 3, max_card=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.dirichlet(np.ones(math.prod(v.card for v in variables))).reshape([v.card for v in variables])
    return Posterior(tuple(variables), values, -1.5)


@given(posteriors())
def test_a_posterior_is_read_by_label(p):
    """p[x], to_dict, to_frame and mode tell the same; each cell is the array's."""
    cells = p.to_dict()
    assert len(cells) == p.values.size
    for index in np.ndindex(p.values.shape):
        states = tuple(v.states[i] for v, i in zip(p.variables, index, strict=True))
        assert p[states] == p.values[index] == cells[states if len(states) > 1 else states[0]]
    frame = p.to_frame()
    assert frame.iloc[:, -1].tolist() == list(cells.values())
    assert [*zip(*(frame.iloc[:, i] for i in range(len(p.variables))), strict=True)] == [
        key if len(p.variables) > 1 else (key,) for key in cells
    ]
    assert p[p.mode()] == p.values.max()
    assert isinstance(p.mode(), tuple) == (len(p.variables) > 1)


@given(posteriors())
def test_marginals_and_entropy_of_a_posterior(p):
    for axis, v in enumerate(p.variables):
        marginal = p.marginal(v.name)
        assert marginal.variables == (v,)
        for i, state in enumerate(v.states):
            assert marginal[state] == pytest.approx(np.take(p.values, i, axis).sum(), abs=1e-15)
    nats = -math.fsum(x * math.log(x) for x in p.values.ravel().tolist() if x > 0)
    assert p.entropy() == pytest.approx(nats, abs=1e-12)
    assert p.entropy(base=2) == pytest.approx(nats / math.log(2), abs=1e-12)


@given(posteriors())
def test_a_posterior_is_a_value(p):
    twin = pickle.loads(pickle.dumps(p))
    assert twin == p
    assert hash(twin) == hash(p)
    assert not p.values.flags.writeable
    assert not twin.values.flags.writeable
    assert p != Posterior(p.variables, p.values, -2.5)
    with pytest.raises(AttributeError, match="frozen"):
        p.values = twin.values


@given(posteriors())
def test_a_posterior_prints_every_state_and_escapes_html(p):
    assert len(p._repr_html_().split("<tr>")) == 2 + min(p.values.size, MOST)
    text = str(Posterior((Variable("<b>", ["<i>", "&"]),), np.array([0.25, 0.75]), 0.0)._repr_html_())
    assert "<i>" not in text
    assert "&lt;i&gt;" in text
    assert repr(p).startswith("<Posterior P(")
    assert "probability" in str(p)


def test_a_certain_posterior_has_entropy_zero():
    certain = Posterior((FLAG,), np.array([0.0, 1.0]), 0.0)
    assert certain.entropy() == 0
    assert str(certain.entropy()) == "0.0"


def test_posterior_faults():
    p = Posterior((COLOUR, NUMBER), np.full((3, 2), 1 / 6), 0.0)
    with pytest.raises(EvidenceError, match="'Colour' has no state 'red'"):
        p["red", 0]
    with pytest.raises(EvidenceError, match="Colour, Number needs 2 states, found 1"):
        p["r"]
    with pytest.raises(EvidenceError, match="'Number' has no state True"):
        p["r", True]
    with pytest.raises(EvidenceError, match="no variable 'Color'; did you mean 'Colour'"):
        p.marginal("Color")


def test_a_variable_may_be_called_probability():
    p = Posterior((Variable("probability", ["x", "y"]),), np.array([0.25, 0.75]), 0.0)
    frame = p.to_frame()
    assert frame["probability"].tolist() == ["x", "y"]
    assert frame.iloc[:, 1].tolist() == [0.25, 0.75]


# Posteriors


def test_posteriors_are_a_mapping_of_views():
    all_ = Posteriors(
        {"Colour": (COLOUR, 0, 3), "Flag": (FLAG, 3, 5)}, np.array([0.5, 0.3, 0.2, 0.9, 0.1]), -0.5
    )
    assert list(all_) == ["Colour", "Flag"]
    assert len(all_) == 2
    assert "Flag" in all_
    assert all_["Flag"] == Posterior((FLAG,), np.array([0.9, 0.1]), -0.5)
    assert all_["Colour"]["g"] == 0.3
    assert not all_["Colour"].values.flags.writeable
    twin = pickle.loads(pickle.dumps(all_))
    assert twin == all_
    assert hash(twin) == hash(all_)
    assert twin.log_evidence == -0.5
    assert not twin["Colour"].values.flags.writeable
    assert len(all_.to_frame()) == 5
    assert len(str(all_).splitlines()) == 2 + 5
    with pytest.raises(EvidenceError, match=r"no posterior of 'Flga'.*did you mean 'Flag'"):
        all_["Flga"]


# Assignment and errors


def test_an_assignment_is_a_value():
    best = Assignment({"A": "x", "B": 1}, math.log(0.25))
    assert best["A"] == "x"
    assert best.probability == pytest.approx(0.25)
    assert best == pickle.loads(pickle.dumps(best))
    assert hash(best) == hash(Assignment({"B": 1, "A": "x"}, math.log(0.25)))
    assert best != Assignment({"A": "y", "B": 1}, math.log(0.25))
    assert Assignment({}, -1e6).probability == 0
    with pytest.raises(EvidenceError, match="no variable 'C'"):
        best["C"]
    with pytest.raises(AttributeError, match="frozen"):
        best.states = {}


def test_the_error_of_impossible_evidence_survives_pickling():
    error = ImpossibleEvidenceError("A='x' cannot be", {"A": "x"})
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), twin.findings) == ("A='x' cannot be", {"A": "x"})
    assert isinstance(twin, ValueError)


def test_posteriors_read_in_a_row_are_those_read_by_name():
    answers = bbn.example("asia").posteriors({"xray": "yes"})
    by_name = {name: answers[name] for name in answers}
    assert dict(answers.items()) == by_name
    assert list(answers.values()) == list(by_name.values())
    assert len({posterior.values.tobytes() for posterior in answers.values()}) == len(answers)


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
