"""Tables from complete data: against groupby, against the formulas, against pgmpy."""

from __future__ import annotations

import pickle
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.learning.tables.prior_text import parse_prior

ARCS = [("A", "C"), ("B", "C"), ("C", "D")]


def frame(n=400, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = rng.integers(0, 3, n)
    c = (a + b + rng.integers(0, 2, n)) % 3
    d = (c + (rng.random(n) < 0.2)) % 3
    return pd.DataFrame({"A": np.array(["x", "y"])[a], "B": b, "C": np.array(list("pqr"))[c], "D": d})


def rows_of(cpt):
    """(parents' states) → {state: probability}, by label."""
    from itertools import product

    return {states: cpt.row(*states) for states in product(*(p.states for p in cpt.parents))}


def grouped(data, child, parents):
    """Relative frequencies by pandas, by label."""
    if not parents:
        return {(): data[child].value_counts(normalize=True).to_dict()}
    result = {}
    for key, group in data.groupby(list(parents)):
        result[key] = group[child].value_counts(normalize=True).to_dict()
    return result


def test_maximum_likelihood_equals_a_groupby_exactly():
    data = frame()
    net = bbn.fit(ARCS, data)
    for name in net.names:
        cpt = net[name]
        slow = grouped(data, name, net.parents(name))
        assert set(slow) == set(rows_of(cpt))
        for key, row in rows_of(cpt).items():
            assert row == {state: slow[key].get(state, 0.0) for state in cpt.variable.states}


def test_structures_of_every_kind_give_the_same_network():
    data = frame()
    expected = bbn.fit(ARCS, data)
    graph = nx.DiGraph(ARCS)
    assert bbn.fit(graph, data) == expected
    assert bbn.fit(expected, data) == expected
    assert bbn.fit(expected.graph, data) == expected
    assert bbn.fit(tuple(ARCS), data.to_dict("list")) == expected


def test_a_network_keeps_its_order_of_parents_and_states_and_never_its_tables():
    data = frame()
    a, b, c = bbn.Variable("A", ["y", "x"]), bbn.Variable("B", [2, 1, 0]), bbn.Variable("C", ["r", "p", "q"])
    net = bbn.BayesianNetwork([bbn.CPT.uniform(a), bbn.CPT.uniform(b), bbn.CPT.uniform(c, [b, a])], name="n")
    fitted = bbn.fit(net, data[["A", "B", "C"]])
    assert fitted.name == "n"
    assert fitted["C"].parents == (b, a)
    assert rows_of(fitted["C"])[2, "x"] == {
        s: grouped(data, "C", ["B", "A"])[2, "x"].get(s, 0.0) for s in ("r", "p", "q")
    }
    assert bbn.fit(net.graph, data[["A", "B", "C"]]) == fitted


def test_states_of_a_graph_and_of_the_argument_are_honoured():
    graph = nx.DiGraph()
    graph.add_node("X", states=["c", "b", "a"])
    assert bbn.fit(graph, {"X": ["a", "b"]})["X"].row() == {"c": 0.0, "b": 0.5, "a": 0.5}
    assert bbn.fit(nx.DiGraph([("X", "Y")]), {"X": ["a"], "Y": [0]}, states={"X": ["a"], "Y": [1, 0]})[
        "Y"
    ].row("a") == {
        1: 0.0,
        0: 1.0,
    }
    with pytest.raises(bbn.DataError, match="states= names 'Z'"):
        bbn.fit(graph, {"X": ["a"]}, states={"Z": [0]})


PRIORS = {
    "m-estimate": (bbn.MEstimate(3), lambda n, k, q: (n + 3 / k) / (n.sum(-1, keepdims=True) + 3)),
    "m-estimate 0": (bbn.MEstimate(0), lambda n, k, q: n / n.sum(-1, keepdims=True)),
    "laplace": (bbn.Dirichlet(1), lambda n, k, q: (n + 1) / (n.sum(-1, keepdims=True) + k)),
    "dirichlet": (bbn.Dirichlet(0.3), lambda n, k, q: (n + 0.3) / (n.sum(-1, keepdims=True) + 0.3 * k)),
    "bdeu": (bbn.BDeu(7), lambda n, k, q: (n + 7 / (k * q)) / (n.sum(-1, keepdims=True) + 7 / q)),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_equal_their_formulas(name):
    prior, formula = PRIORS[name]
    data = frame()
    net = bbn.fit(ARCS, data, prior)
    table = pd.crosstab([data["A"], data["B"]], data["C"]).to_numpy().reshape(2, 3, 3)
    np.testing.assert_allclose(net["C"].table, formula(table, 3, 6), rtol=1e-14)


def test_m_estimate_with_a_given_prior():
    data = {"X": ["a", "a", "b"]}
    graph = nx.DiGraph()
    graph.add_node("X")
    for p in ({"a": 0.2, "b": 0.8}, [0.2, 0.8], np.array([0.2, 0.8])):
        net = bbn.fit(graph, data, bbn.MEstimate(4, {"X": p}))
        np.testing.assert_allclose(net["X"].table, [(2 + 4 * 0.2) / 7, (1 + 4 * 0.8) / 7])
    with pytest.raises(bbn.DataError, match=r"sums to 0\.9"):
        bbn.fit(graph, data, bbn.MEstimate(4, {"X": [0.2, 0.7]}))
    with pytest.raises(bbn.DataError, match="names 'Y'"):
        bbn.fit(graph, data, bbn.MEstimate(4, {"Y": [0.2, 0.8]}))


def test_dirichlet_per_node_and_per_entry():
    data = frame()
    alpha = np.arange(18.0).reshape(2, 3, 3)
    net = bbn.fit(ARCS, data, bbn.Dirichlet({"A": 2, "C": alpha, "D": {0: 5.0}}))
    counts = pd.crosstab([data["A"], data["B"]], data["C"]).to_numpy().reshape(2, 3, 3) + alpha
    np.testing.assert_allclose(net["C"].table, counts / counts.sum(-1, keepdims=True))
    a = data["A"].value_counts().sort_index().to_numpy() + 2
    np.testing.assert_allclose(net["A"].table, a / a.sum())
    d = pd.crosstab(data["C"], data["D"]).to_numpy() + np.array([5, 0, 0])
    np.testing.assert_allclose(net["D"].table, d / d.sum(-1, keepdims=True))


@pytest.mark.parametrize(
    "make",
    [
        lambda: bbn.MEstimate(-1),
        lambda: bbn.BDeu(0),
        lambda: bbn.Dirichlet(float("nan")),
        lambda: bbn.MEstimate(1, 0.5),
        lambda: bbn.fit(ARCS, frame(), prior=3),
        lambda: bbn.fit(ARCS, frame(), prior=bbn.BDeu),
        lambda: bbn.fit(ARCS, frame(), prior=bbn.Dirichlet({"C": [1, 2]})),
        lambda: bbn.fit(ARCS, frame(), prior=bbn.Dirichlet({"C": [1, 2, -1]})),
    ],
)
def test_bad_priors_are_refused(make):
    with pytest.raises(bbn.DataError):
        make()


def test_priors_from_text():
    assert parse_prior("bdeu:10") == bbn.BDeu(10)
    assert parse_prior("laplace") == bbn.Dirichlet(1)
    assert parse_prior("m-estimate:2") == bbn.MEstimate(2)
    assert parse_prior("none") is None
    for bad in ("bde:1", "bdeu:x", "m-estimate", "bdeu:0"):
        with pytest.raises(bbn.DataError):
            parse_prior(bad)


def test_rows_never_seen_are_uniform_with_one_warning():
    data = {"A": ["x", "x"], "C": ["p", "q"]}
    states = {"A": ["x", "y", "z"], "C": ["p", "q"]}
    with pytest.warns(bbn.UnseenRowsWarning, match="2 of 3 rows") as caught:
        net = bbn.fit([("A", "C")], data, states=states)
    assert len(caught) == 1
    assert net["C"].table.tolist() == [[0.5, 0.5]] * 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = bbn.fit([("A", "C")], data, bbn.MEstimate(2, {"C": [0.25, 0.75]}), states=states)
    assert net["C"].table[2].tolist() == [0.25, 0.75]


def test_weights_count_as_repeated_rows():
    data = frame(60)
    times = np.random.default_rng(3).integers(0, 4, 60)
    repeated = data.loc[data.index.repeat(times)]
    states = {name: sorted(data[name].unique()) for name in data}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_weight = bbn.fit(ARCS, data, weights=times, states=states)
        by_column = bbn.fit(ARCS, data.assign(w=times), weights="w", states=states)
        by_rows = bbn.fit(ARCS, repeated, states=states)
    assert by_weight == by_rows == by_column


def test_missing_values_point_to_em():
    data = frame(20).astype(object)
    data.loc[3, "C"] = None
    with pytest.raises(bbn.DataError, match=r"'C'.*fit_em"):
        bbn.fit(ARCS, data)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (nx.DiGraph([("A", "B"), ("B", "A")]), "to_dag"),
        (nx.DiGraph([("A", "B"), ("B", "C"), ("C", "A")]), "cycle: .* → "),
        (nx.Graph([("A", "B")]), "undirected"),
        (nx.MultiDiGraph([("A", "B")]), "multigraph"),
        ([("A", "A")], "cycle: A → A"),
        ([("A", "B"), ("A", "B")], "twice"),
        (["AB"], "pair"),
        ([], "no nodes"),
        (nx.DiGraph([(1, 2)]), "name, a string"),
        (7, "list of"),
    ],
)
def test_bad_structures_are_refused(structure, message):
    with pytest.raises(bbn.ModelError, match=message):
        bbn.fit(structure, frame())


def test_columns_must_match_the_structure():
    with pytest.raises(bbn.DataError, match=r"no column 'Z'.*hidden="):
        bbn.fit([("A", "Z")], frame()[["A"]])
    with pytest.raises(bbn.DataError, match="'B'"):
        bbn.fit([("A", "C")], frame()[["A", "B", "C"]])


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_pgmpy_agrees_on_complete_data():
    from pgmpy.estimators import BayesianEstimator, MaximumLikelihoodEstimator
    from pgmpy.models import DiscreteBayesianNetwork

    data = frame(2000).astype(str)
    theirs = DiscreteBayesianNetwork(ARCS)
    for prior, estimator, options in (
        (None, MaximumLikelihoodEstimator, {}),
        (bbn.BDeu(10), BayesianEstimator, {"prior_type": "BDeu", "equivalent_sample_size": 10}),
    ):
        ours = bbn.fit(ARCS, data, prior)
        for node in ours.names:
            cpd = estimator(theirs, data).estimate_cpd(node, **options)
            axes = [cpd.variables[0], *cpd.variables[1:]]
            order = [axes.index(n) for n in (*ours.parents(node), node)]
            np.testing.assert_allclose(ours[node].table, cpd.values.transpose(order), rtol=1e-12)


def test_kept_counts_are_the_dirichlet_posterior():
    data = frame()
    counts = pd.crosstab([data["A"], data["B"]], data["C"]).to_numpy().reshape(2, 3, 3)
    net = bbn.fit(ARCS, data, bbn.BDeu(9), keep_counts=True)
    np.testing.assert_allclose(net["C"].counts, counts + 0.5)
    assert net == bbn.fit(ARCS, data, bbn.BDeu(9))
    again = pickle.loads(pickle.dumps(net))
    assert again == net
    np.testing.assert_array_equal(again["C"].counts, net["C"].counts)
    np.testing.assert_allclose(bbn.fit(ARCS, data, keep_counts=True)["C"].counts, counts + 1)
    draw = np.mean([net["C"].draw(np.random.default_rng(i)).table for i in range(4000)], axis=0)
    np.testing.assert_allclose(draw, net["C"].table, atol=0.01)


def test_updating_adds_rows_to_rows():
    first, second = frame(300, 1), frame(500, 2)
    net = bbn.fit(ARCS, first)
    same = bbn.fit_update(net, first, weight=1000)
    root = bbn.fit(ARCS, pd.concat([first, second]))["A"].table
    np.testing.assert_allclose(bbn.fit_update(net, second, weight=300)["A"].table, root, rtol=1e-12)
    np.testing.assert_allclose(same["A"].table, net["A"].table, rtol=1e-12)
    joint = net.joint().values.sum(axis=-1)  # P(A, B, C)
    counts = pd.crosstab([second["A"], second["B"]], second["C"]).to_numpy().reshape(2, 3, 3)
    total = counts + 40 * np.moveaxis(joint, range(3), [net.names.index(n) for n in "ABC"])
    np.testing.assert_allclose(
        bbn.fit_update(net, second, weight=40)["C"].table, total / total.sum(-1, keepdims=True), rtol=1e-12
    )
    with pytest.raises(bbn.DataError, match="weight is -1"):
        bbn.fit_update(net, second, weight=-1)


def test_every_source_of_data_is_taken():
    from bbn.data import code

    data = frame()
    assert bbn.fit(ARCS, code(data)) == bbn.fit(ARCS, data)
    with pytest.raises(bbn.DataError, match="no column 'D'"):
        bbn.fit(ARCS, code(data[["A", "B", "C"]]))


def test_an_answer_has_a_credible_interval():
    data = frame(200)
    net = bbn.fit(ARCS, data, bbn.Dirichlet(1), keep_counts=True)
    p = net.query("A", interval=0.9, seed=0, n_draws=2000)
    from scipy.stats import beta

    counts = net["A"].counts
    np.testing.assert_allclose(p.low[0], beta.ppf(0.05, *counts), atol=0.01)
    np.testing.assert_allclose(p.high[0], beta.ppf(0.95, *counts), atol=0.01)
    assert p["x"] == net.query("A")["x"]
    assert list(p.to_frame().columns) == ["A", "probability", "low", "high"]
    again = pickle.loads(pickle.dumps(p))
    assert again == p
    np.testing.assert_array_equal(again.low, p.low)
    assert (
        net.query("A", interval=0.9, seed=0).low.tolist() == net.query("A", interval=0.9, seed=0).low.tolist()
    )
    with pytest.raises(bbn.EvidenceError, match="keep_counts=True"):
        bbn.fit(ARCS, data, bbn.Dirichlet(1)).query("A", interval=0.9)
    with pytest.raises(bbn.EvidenceError, match="interval is 95"):
        net.query("A", interval=95)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    covered = 0
    repeats = 100
    for _ in range(repeats):
        root, leaf = rng.dirichlet([1, 1]), rng.dirichlet([1, 1], size=2)
        truth = bbn.BayesianNetwork([bbn.CPT(a, table=root), bbn.CPT(b, [a], leaf)])
        x = (rng.random(40) < root[1]).astype(int)
        y = (rng.random(40) < leaf[x, 1]).astype(int)
        net = bbn.fit(truth, {"A": x, "B": y}, bbn.Dirichlet(1), keep_counts=True)
        p = net.query("A", {"B": 1}, interval=0.8, n_draws=80, seed=rng)
        covered += p.low[1] <= truth.query("A", {"B": 1})[1] <= p.high[1]
    # 0.8 of 100 with a standard deviation of 4; 80 draws make the ends a little uncertain
    assert 80 - 14 <= covered <= 80 + 14


def test_backing_off_keeps_the_shares_of_the_child_and_makes_everything_possible():
    from bbn.learning.tables.priors import BackOff

    rng = np.random.default_rng(0)
    for shape in [(3, 4), (2, 5, 3), (30, 2)]:
        counts = rng.poisson(0.7, shape).astype(float)
        counts[..., 0] += 0.5  # so that each state occurs
        table = counts + BackOff(2.0).backed_off(counts)
        table /= table.sum(axis=-1, keepdims=True)
        rows, own = counts.sum(axis=-1), counts.reshape(-1, shape[-1]).sum(axis=0)
        np.testing.assert_allclose(np.tensordot(rows, table, rows.ndim), own)
        assert (table > 0).all() or not own.all()
    never = np.array([[4.0, 0.0], [2.0, 0.0]])
    table = never + BackOff(2.0).backed_off(never)
    assert (table[:, 1] > 0).all()
    np.testing.assert_allclose(BackOff().backed_off(np.array([3.0, 1.0])), [0.5, 0.5])  # as BDeu(1)
