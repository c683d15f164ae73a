"""Bounds against published numbers, closed formulas, and models that lie between them."""

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_network, surgery

INSTRUMENT = bbn.CausalGraph([("Z", "X"), ("X", "Y")], confounded=[("X", "Y")])
BOW = bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")])


def table_of(p):
    """P(y, x | z) as weighted rows, z even."""
    rows = {"Z": [], "X": [], "Y": [], "w": []}
    for (y, x, z), share in np.ndenumerate(p):
        for name, value in zip(("Z", "X", "Y", "w"), (z, x, y, share / 2), strict=True):
            rows[name].append(value)
    return rows


def closed_form(p):
    """Balke and Pearl (1997), equation 8: the average effect, p[y, x, z] = P(y, x | z)."""

    def q(y, x, z):
        return p[y, x, z]

    low = max(
        q(1, 1, 1) + q(0, 0, 0) - 1,
        q(1, 1, 0) + q(0, 0, 1) - 1,
        q(1, 1, 0) - q(1, 1, 1) - q(1, 0, 1) - q(0, 1, 0) - q(1, 0, 0),
        q(1, 1, 1) - q(1, 1, 0) - q(1, 0, 0) - q(0, 1, 1) - q(1, 0, 1),
        -q(0, 1, 1) - q(1, 0, 1),
        -q(0, 1, 0) - q(1, 0, 0),
        q(0, 0, 1) - q(0, 1, 1) - q(1, 0, 1) - q(0, 1, 0) - q(0, 0, 0),
        q(0, 0, 0) - q(0, 1, 0) - q(1, 0, 0) - q(0, 1, 1) - q(0, 0, 1),
    )
    high = min(
        1 - q(0, 1, 1) - q(1, 0, 0),
        1 - q(0, 1, 0) - q(1, 0, 1),
        -q(0, 1, 0) + q(0, 1, 1) + q(0, 0, 1) + q(1, 1, 0) + q(0, 0, 0),
        -q(0, 1, 1) + q(1, 1, 1) + q(0, 0, 1) + q(0, 1, 0) + q(0, 0, 0),
        q(1, 1, 1) + q(0, 0, 1),
        q(1, 1, 0) + q(0, 0, 0),
        -q(1, 0, 1) + q(1, 1, 1) + q(0, 0, 1) + q(1, 1, 0) + q(1, 0, 0),
        -q(1, 0, 0) + q(1, 1, 0) + q(0, 0, 0) + q(1, 1, 1) + q(1, 0, 1),
    )
    return low, high


def test_the_cholestyramine_study():
    """The Lipid Research Clinics data in Balke and Pearl (1997): the effect lies between 0.392 and 0.780."""
    p = np.zeros((2, 2, 2))
    p[:, :, 0] = [[0.919, 0.000], [0.081, 0.000]]
    p[:, :, 1] = [[0.315, 0.139], [0.073, 0.473]]
    rows = table_of(p)
    found = bbn.effect_bounds(INSTRUMENT, rows, "Y", {"X": 1}, versus={"X": 0}, weights="w")
    assert found[1] == pytest.approx((0.392, 0.780), abs=1e-9)


def test_instruments_by_the_closed_formula():
    rng = np.random.default_rng(0)
    for _ in range(25):
        net = random_network(
            rng, [("Z", "X"), ("X", "Y"), ("U", "X"), ("U", "Y")], ["U", "Z", "X", "Y"], {"U": 5}
        )
        p = surgery(net, ["Y", "X", "Z"])
        p = p / p.sum(axis=(0, 1))
        found = bbn.effect_bounds(INSTRUMENT, net, "Y", {"X": "s1"}, versus={"X": "s0"})
        assert found["s1"] == pytest.approx(closed_form(p), abs=1e-8)
        truth = surgery(net, ["Y"], {"X": "s1"})[1] - surgery(net, ["Y"], {"X": "s0"})[1]
        assert found["s1"][0] - 1e-9 <= truth <= found["s1"][1] + 1e-9


def test_without_an_instrument_the_bounds_are_mansk_s():
    rng = np.random.default_rng(1)
    net = random_network(rng, [("X", "Y"), ("U", "X"), ("U", "Y")], ["U", "X", "Y"], {"U": 4, "Y": 3, "X": 3})
    joint = surgery(net, ["X", "Y"])
    found = bbn.effect_bounds(BOW, net, "Y", {"X": "s2"})
    for k in range(3):
        low = joint[2, k]
        assert found[f"s{k}"] == pytest.approx((low, low + 1 - joint[2].sum()), abs=1e-9)


def random_models(rng, graph, n):
    """Networks on a graph, each hidden cause a variable of several states."""
    arcs = list(graph.arcs)
    hidden = []
    for i, pair in enumerate(graph.confounded):
        hidden.append(f"U{i}")
        arcs += [(f"U{i}", end) for end in pair]
    for _ in range(n):
        yield random_network(rng, arcs, [*hidden, *graph.nodes], dict.fromkeys(hidden, 3))


@pytest.mark.parametrize(
    "graph",
    [
        bbn.CausalGraph([("X", "M"), ("M", "Y")], confounded=[("X", "M")]),
        bbn.CausalGraph(
            [("X", "M"), ("M", "Y"), ("C", "X"), ("C", "Y")], confounded=[("X", "Y"), ("M", "Y")]
        ),
        bbn.CausalGraph(
            [("Z", "X"), ("X", "Y"), ("C", "X"), ("C", "Y"), ("Y", "B")], confounded=[("X", "Y")]
        ),
        bbn.CausalGraph([("X", "Y"), ("Z", "Y"), ("Z", "X")], confounded=[("X", "Y"), ("Z", "X")]),
    ],
)
def test_the_truth_lies_between(graph):
    rng = np.random.default_rng(2)
    widths = []
    for net in random_models(rng, graph, 6):
        found = bbn.effect_bounds(graph, net, "Y", {"X": "s1"})
        truth = surgery(net, ["Y"], {"X": "s1"})
        assert (found.low - 1e-8 <= truth).all()
        assert (truth <= found.high + 1e-8).all()
        widths.append(float((found.high - found.low).max()))
        assert found.low.sum() <= 1 + 1e-8 <= found.high.sum() + 2e-8
    assert max(widths) < 1 - 1e-6


def test_identified_effects_have_no_width():
    graph = bbn.CausalGraph([("X", "M"), ("M", "Y")], confounded=[("X", "Y")])
    (net,) = random_models(np.random.default_rng(3), graph, 1)
    found = bbn.effect_bounds(graph, net, "Y", {"X": "s1"})
    np.testing.assert_allclose(found.low, surgery(net, ["Y"], {"X": "s1"}), atol=1e-10)
    np.testing.assert_allclose(found.high, found.low)
    assert set(found.to_dict()) == {"s0", "s1"}
    assert "least" in str(found)


def test_what_no_model_gives_is_told():
    rows = {"Z": [0, 0, 1, 1], "X": [0, 0, 0, 0], "Y": [0, 0, 1, 1]}
    with pytest.raises(bbn.DataError, match="instrumental inequality"):
        bbn.effect_bounds(INSTRUMENT, rows, "Y", {"X": 0}, states={"X": [0, 1]})


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (("Y", {"X": "maybe"}), bbn.EvidenceError, "no state"),
        (("Y", {"Y": 1}), bbn.EvidenceError, "both outcome and treatment"),
        (("Q", {"X": 1}), bbn.EvidenceError, "no variable 'Q'"),
        (("Y", "X"), bbn.EvidenceError, "mapping"),
        (("Y", {"X": 1}, {"Z": 1}), bbn.EvidenceError, "same variables"),
    ],
)
def test_bad_questions(arguments, error, match):
    rows = {"Z": [0, 1] * 4, "X": [0, 0, 1, 1] * 2, "Y": [0, 1, 1, 0] * 2}
    with pytest.raises(error, match=match):
        bbn.effect_bounds(INSTRUMENT, rows, *arguments)


def test_programs_that_would_not_fit_are_refused():
    names = [f"P{i}" for i in range(6)]
    arcs = [(p, "Y") for p in names] + [("X", "Y")]
    graph = bbn.CausalGraph(arcs, confounded=[("X", "Y")])
    rows = {name: [0, 1] * 10 for name in [*names, "X", "Y"]}
    with pytest.raises(bbn.BudgetError, match="response types"):
        bbn.effect_bounds(graph, rows, "Y", {"X": 1})
    two = bbn.CausalGraph([("X", "M"), ("M", "Y"), ("V", "Y")], confounded=[("X", "M"), ("V", "Y")])
    net = random_network(np.random.default_rng(4), list(two.arcs), list(two.nodes))
    with pytest.raises(bbn.ModelError, match="two districts"):
        bbn.effect_bounds(two, net, "Y", {"X": "s1", "V": "s0"})
