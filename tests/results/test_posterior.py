"""The values that answers come in."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bbn
from bbn.core.display import MOST
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from bbn.results.posterior import Assignment, Posterior, Posteriors
from tests.support.strategies import variable_lists

COLOUR, NUMBER, FLAG = (
    Variable("Colour", ["r", "g", "b"]),
    Variable("Number", [0, 1]),
    Variable("Flag", [False, True]),
)
NET = BayesianNetwork([CPT(COLOUR, table=[0.5, 0.3, 0.2]), CPT.uniform(NUMBER, [COLOUR]), CPT.uniform(FLAG)])


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


# What a sampler reports


def test_an_exact_posterior_was_not_stopped_and_reports_no_samples():
    exact, sampled = (
        NET.query("Number"),
        NET.query("Number", method="likelihood-weighting", n_samples=500, seed=0),
    )
    assert (exact.interrupted, exact.converged, exact.sampling, exact.ess) == (False, True, None, None)
    assert not sampled.interrupted
    told = repr(sampled.sampling)
    assert "500 samples" in told
    assert f"{sampled.ess:,.0f} effective" in told
    assert "effective" not in repr(NET.query("Number", method="loopy").sampling)


def test_beliefs_begin_at_step_0():
    net = bbn.example("umbrella")
    rows = net.sample(4, seed=1)
    assert net.filter(rows).steps == net.smooth(rows).steps == range(4)
