"""Continuous variables and Gaussians as values; networks of them; edits; what is refused, and how it is said."""

import os
import pickle
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest

import bbn

Z = bbn.Variable("Z", ["a", "b"])
W = bbn.Variable("W", [1, 2, 3])
X = bbn.Continuous("X")


def mixed():
    x = bbn.Gaussian(X, [Z], means={"a": 0.0, "b": 1.0}, variances=2.0, tied_variance=True)
    y = bbn.Gaussian(
        "Y", [W, X], means=[0, 1, 2], variances=[1, 2, 3], weights={1: 1.0, 2: [2.0], 3: {"X": 3.0}}
    )
    return bbn.BayesianNetwork(
        [y, x, bbn.CPT(W, [Z], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), bbn.CPT(Z, table=[0.3, 0.7])],
        name="mixed",
    )


def test_a_continuous_variable_is_a_value():
    assert bbn.Continuous("X") == X
    assert hash(X) == hash(bbn.Continuous("X"))
    assert bbn.Continuous("Y") != X
    assert bbn.Variable("X", ["a"]) != X
    assert pickle.loads(pickle.dumps(X)) == X
    assert (repr(X), X.states, X.card) == ("Continuous('X')", (), 0)
    for bad in ("", None, 3):
        with pytest.raises(bbn.ModelError):
            bbn.Continuous(bad)
    with pytest.raises(AttributeError):
        X.name = "Y"
    with pytest.raises(bbn.EvidenceError, match="has no states"):
        X.code("a")


def test_a_gaussian_is_a_value():
    for gaussian in (mixed()["X"], mixed()["Y"]):
        again = pickle.loads(pickle.dumps(gaussian))
        assert again == gaussian
        assert hash(again) == hash(gaussian)
        assert not gaussian.means.flags.writeable
        assert not again.variances.flags.writeable
        assert gaussian.means.dtype == gaussian.weights.dtype == np.float64
    y = mixed()["Y"]
    assert (y.parents, y.discrete_parents, y.continuous_parents) == ((W, X), (W,), (X,))
    assert y.weights.tolist() == [[1.0], [2.0], [3.0]]
    assert y != mixed()["X"]
    assert y != bbn.Gaussian("Y", [W, X], [0, 1, 2], [1, 2, 3], [[1], [2], [3]], fixed_variance=True)
    assert repr(y) == "<Gaussian p(Y | W, X), 3 settings>"
    assert str(y).splitlines()[0] == "Y | W, X"
    with pytest.raises(AttributeError):
        y.means = 0


def test_the_ways_to_write_the_numbers_are_one():
    expected = bbn.Gaussian(
        "Y", [Z, X, W], np.arange(6).reshape(2, 3), np.full((2, 3), 2.0), np.ones((2, 3, 1))
    )
    keys = [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    means = dict(zip(keys, range(6), strict=True))
    assert bbn.Gaussian("Y", [Z, X, W], means, 2.0, [1.0]) == expected
    assert bbn.Gaussian("Y", [Z, X, W], means, 2.0, 1.0) == expected
    assert bbn.Gaussian("Y", [Z, X, W], means, 2.0, {"X": 1.0}) == expected
    assert bbn.Gaussian("Y", [Z, X, W], means, 2.0, np.ones((2, 3))) == expected
    assert bbn.Gaussian("Y", [Z, X, W], means, dict.fromkeys(keys, 2.0), dict.fromkeys(keys, 1)) == expected
    lonely = bbn.Gaussian("Y", means=1, variances=2)
    assert (lonely.means.shape, lonely.variances.shape, lonely.weights.shape) == ((), (), (0,))
    assert lonely == bbn.Gaussian("Y", [], {(): 1}, {(): 2}) == bbn.Gaussian("Y", [], [1], [2])
    with pytest.raises(bbn.ModelError, match=r"expected means of shape \(\) \(axes none\), found \(2,\)"):
        bbn.Gaussian("Y", [], [1, 2], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"means": 0}, "no variances given"),
        ({"variances": 1}, "no means given"),
        ({"means": 0, "variances": 0}, "variance is 0; expected a finite number above 0"),
        ({"means": [0, np.nan], "variances": 1}, "row Z=b: the mean is nan"),
        ({"means": [0, np.inf], "variances": 1}, "row Z=b: the mean is inf"),
        ({"means": 0, "variances": {"a": 1, "b": -1}}, "row Z=b: the variance is -1"),
        ({"means": 0, "variances": [1, np.inf]}, "row Z=b: the variance is inf"),
        ({"means": {"a": 0}, "variances": 1}, r"missing rows for Z = \(b\)"),
        ({"means": {"a": 0, "b": 1, "c": 2}, "variances": 1}, "no state 'c'"),
        ({"means": [1, 2, 3], "variances": 1}, r"expected means of shape \(2,\)"),
        ({"means": {"a": [1, 2], "b": 1}, "variances": 1}, "row Z=a: mean: expected a number"),
        ({"means": "high", "variances": 1}, "expected numbers, found 'high'"),
        ({"means": 0, "variances": [1, 2], "tied_variance": True}, "tied variance"),
        ({"means": 0, "variances": 1, "weights": [1.0]}, "has none"),
    ],
)
def test_wrong_numbers_are_named(arguments, message):
    with pytest.raises(bbn.ModelError, match=message) as caught:
        bbn.Gaussian("Y", [Z], **arguments)
    assert "Gaussian 'Y'" in str(caught.value)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "no weights given for its continuous parents X"),
        ([1.0, 2.0, 3.0], r"expected weights of shape \(2, 1\)"),
        ({"a": 1.0}, "missing rows"),
        ({"a": [1.0, 2.0], "b": 1.0}, "row Z=a: weights: expected 1 numbers"),
        ({"a": {"Q": 1.0}, "b": 1.0}, "no continuous parent 'Q'"),
        ({"a": {}, "b": 1.0}, "no weight for X"),
        ([[1.0], [np.nan]], "the weight of 'X' is nan"),
    ],
)
def test_wrong_weights_are_named(weights, message):
    with pytest.raises(bbn.ModelError, match=message):
        bbn.Gaussian("Y", [Z, X], 0, 1, weights)


def test_wrong_families_are_named():
    with pytest.raises(bbn.ModelError, match="has states"):
        bbn.Gaussian(Z, [], 0, 1)
    with pytest.raises(bbn.ModelError, match="its own parent"):
        bbn.Gaussian("X", [X], 0, 1, [1])
    with pytest.raises(bbn.ModelError, match="twice"):
        bbn.Gaussian("Y", [Z, Z], 0, 1)
    with pytest.raises(bbn.ModelError, match="must be a Variable"):
        bbn.Gaussian("Y", ["Z"], 0, 1)
    with pytest.raises(bbn.ModelError, match=r"bbn\.Gaussian"):
        bbn.CPT(X, [], [1.0])
    with pytest.raises(
        bbn.ModelError, match="is continuous; a discrete variable cannot have a continuous parent"
    ):
        bbn.CPT(Z, [X], [[0.5, 0.5]])
    with pytest.raises(bbn.ModelError, match="'X' is continuous"):
        bbn.Factor([X], [])
    many = [bbn.Variable(f"v{i}", range(1000)) for i in range(8)]
    with pytest.raises(bbn.BudgetError):
        bbn.Gaussian("Y", many, 0, 1)


def test_a_network_of_both_kinds():
    net = mixed()
    assert net.names == ("Z", "X", "W", "Y")
    assert net.continuous == ("X", "Y")
    assert net.discrete_part().names == ("Z", "W")
    assert net.discrete_part().query("W") == net.query("W")
    assert net.n_parameters == 1 + 4 + (2 + 1) + (3 + 3 + 3)
    assert net.states("X") == ()
    assert net.markov_blanket("X") == ("Z", "W", "Y")
    assert net.is_d_separated("Z", "Y", given=["X", "W"])
    assert net == pickle.loads(pickle.dumps(net))
    assert hash(net) == hash(pickle.loads(pickle.dumps(net)))
    assert net != net.with_cpts([bbn.Gaussian("X", [Z], [0, 2], 2.0, tied_variance=True)])
    assert net.subnetwork(["X"]).names == ("Z", "X")
    assert net.graph.nodes["X"]["continuous"]
    assert bbn.BayesianNetwork.from_graph(net.graph) == net
    assert bbn.BayesianNetwork.from_graph(bbn.to_networkx(net)) == net
    assert nx.is_directed_acyclic_graph(net.graph)
    for ask in (net.joint, net.factors):
        with pytest.raises(bbn.ModelError, match="'X' is continuous"):
            ask()


def test_parents_must_agree_on_what_is_continuous():
    x = bbn.Gaussian("X", [], 0, 1)
    with pytest.raises(bbn.ModelError, match=r"itself is Continuous\('X'\)"):
        bbn.BayesianNetwork([x, bbn.Gaussian("Y", [bbn.Variable("X", ["a"])], 0, 1)])
    with pytest.raises(bbn.ModelError, match="itself is Variable"):
        bbn.BayesianNetwork(
            [bbn.CPT(Z, table=[0.5, 0.5]), bbn.Gaussian("Y", [bbn.Continuous("Z")], 0, 1, [1])]
        )
    with pytest.raises(bbn.ModelError, match="unknown parent 'X'"):
        bbn.BayesianNetwork([bbn.Gaussian("Y", [X], 0, 1, [1])])
    with pytest.raises(bbn.ModelError, match="cycle"):
        bbn.BayesianNetwork(
            [bbn.Gaussian("Y", [X], 0, 1, [1]), bbn.Gaussian("X", [bbn.Continuous("Y")], 0, 1, [1])]
        )


def test_edits():
    net = mixed()
    renamed = net.rename({"X": "Z", "Z": "class"})
    assert renamed.continuous == ("Z", "Y")
    assert renamed.rename({"Z": "X", "class": "Z"}) == net
    relabelled = net.relabel("Z", {"a": "first"})
    assert relabelled["X"].parents[0].states == ("first", "b")
    with pytest.raises(bbn.EvidenceError, match="'X' is continuous"):
        net.relabel("X", {})
    evidence = {"X": 0.3, "Y": 1.0}
    for parent, child in (("Z", "Y"), ("W", "X")):
        more = net.add_arc(parent, child)
        assert more.parents(child)[-1] == parent
        assert more.query("Z", evidence)["a"] == pytest.approx(net.query("Z", evidence)["a"], abs=1e-12)
    lonely = net.with_cpts([bbn.Gaussian("V", [], 0, 1)]).add_arc("V", "Y")
    assert lonely["Y"].weights[:, 1].tolist() == [0, 0, 0]
    with pytest.raises(bbn.ModelError, match="continuous parent"):
        net.with_cpts([bbn.CPT(bbn.Variable("D", [0, 1]), table=[0.5, 0.5])]).add_arc("X", "D")
    with pytest.raises(bbn.ModelError, match="already"):
        net.add_arc("Z", "X")
    with pytest.raises(bbn.ModelError, match="cannot be edited"):
        net.remove_arc("Z", "X")


def test_a_network_of_numbers_alone():
    x = bbn.Gaussian("X", [], 1.0, 4.0)
    net = bbn.BayesianNetwork([x, bbn.Gaussian("constant", [X], 0.0, 1.0, [2.0])])
    assert net.query("constant").mean == 2.0
    assert net.query("constant").variance == pytest.approx(17.0)
    assert list(net.posteriors()) == ["X", "constant"]
    assert net.query("X", {"constant": 4.0}).mean == pytest.approx(1.0 + 8 / 17 * 2)
    assert net.mpe().states == {}
    assert net.sample(10, seed=1).shape == (10, 2)
    assert net.sample(0).shape == (0, 2)
    with pytest.raises(bbn.ModelError, match="empty"):
        net.discrete_part()


def test_names_that_the_library_could_have_used_itself():
    odd = ["numbers below a, b", "constant", "", "🙂", "a b", "x=1"]
    a, b = bbn.Variable("a", [0, 1]), bbn.Variable("b", [0, 1])
    child = bbn.CPT(bbn.Variable(odd[0], ["seen", "other"]), [a, b], [[[0.5, 0.5]] * 2] * 2)
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(a, table=[0.5, 0.5]),
            bbn.CPT(b, table=[0.5, 0.5]),
            child,
            bbn.Gaussian("🙂 = x", [a, b], [[0, 1], [2, 3]], 1.0),
        ]
    )
    p = net.posteriors({"🙂 = x": 3.0})
    assert list(p) == ["a", "b", "numbers below a, b"]
    assert p["numbers below a, b"]["seen"] == pytest.approx(0.5)
    assert p["a"][1] > 0.9


def test_the_same_answer_on_any_hash_seed():
    program = (
        "import sys; sys.path.insert(0, '.');"
        "import numpy as np; from tests.support.gaussian_truth import *;"
        "rng = np.random.default_rng(3); net = random_network(rng); e = random_evidence(net, rng);"
        "print([repr(p) for p in net.posteriors(e).values()], net.sample(3, e, seed=1).values.tolist())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
