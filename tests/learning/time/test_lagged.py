"""Structures over time: searches against every structure scored by hand, and graphs with lags as dynamic networks."""

import itertools
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from tests.support.dynamic_truth import random_dynamic


def lagged_frame(table, lag):
    """Every step with its lags beside it, by plain loops."""
    rows = []
    for _, own in table.groupby("sequence", sort=False):
        steps = own.drop(columns="sequence").to_dict("records")
        for t in range(lag, len(steps)):
            row = [(f"{n}[-{k}]" if k else n, steps[t - k][n]) for k in range(lag + 1) for n in steps[0]]
            rows.append(dict(row))
    return pd.DataFrame(rows)


def bic_by_hand(frame, child, parents, cards):
    """ln P at the best table less half of ln N for each free parameter."""
    n = len(frame)
    joint = frame.groupby([*parents, child]).size()
    total = frame.groupby(list(parents)).size() if parents else None
    log = 0.0
    for key, count in joint.items():
        above = n if total is None else total[key[:-1] if len(parents) > 1 else key[0]]
        log += count * np.log(count / above)
    free = np.prod([cards[p.partition("[")[0]] for p in parents], initial=1.0) * (cards[child] - 1)
    return log - 0.5 * np.log(n) * free


def best_by_hand(frame, names, lag, cards):
    """The best score of all structures: parents of any kind, no cycle within the slice."""
    lagged = [f"{n}[-{k}]" for k in range(1, lag + 1) for n in names]
    terms = {}
    for child in names:
        others = [n for n in names if n != child]
        for inside in itertools.chain.from_iterable(
            itertools.combinations(others, k) for k in range(len(others) + 1)
        ):
            terms[child, inside] = max(
                bic_by_hand(frame, child, (*inside, *back), cards)
                for k in range(len(lagged) + 1)
                for back in itertools.combinations(lagged, k)
            )
    best = -np.inf
    for chosen in itertools.product(*([i for c, i in terms if c == child] for child in names)):
        graph = nx.DiGraph([(p, c) for c, own in zip(names, chosen, strict=True) for p in own])
        if nx.is_directed_acyclic_graph(graph):
            best = max(best, sum(terms[c, own] for c, own in zip(names, chosen, strict=True)))
    return best


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lag", [1, 2])
def test_the_search_finds_the_best_of_all_structures(seed, lag):
    rng = np.random.default_rng(seed)
    while True:
        dyn = random_dynamic(rng)
        if len(dyn.names) - len(dyn.static) == 2 and all(v.card > 1 for v in dyn.variables):
            break
    table = dyn.sample(12, n=25, seed=seed).drop(columns=list(dyn.static))
    names = [n for n in dyn.names if n not in dyn.static]
    table[names] = table[names].astype(str)
    cards = {n: table[n].nunique() for n in names}
    found = bbn.hill_climb(table, "bic", sequence="sequence", lag=lag)
    truth = best_by_hand(lagged_frame(table, lag), names, lag, cards)
    assert found.graph["score"] == pytest.approx(truth, abs=1e-8)
    by_hand = sum(
        bic_by_hand(lagged_frame(table, lag), c, tuple(found.predecessors(c)), cards) for c in names
    )
    assert found.graph["score"] == pytest.approx(by_hand, abs=1e-8)
    assert not any("[-" in child for _, child in found.edges)


def chain_of_two():
    a, b = (bbn.Variable(n, ["x", "y"]) for n in "AB")
    sticky = [[0.9, 0.1], [0.2, 0.8]]
    return bbn.DynamicNetwork(
        [bbn.CPT(a, table=[0.5, 0.5])],
        [
            bbn.CPT(a, [bbn.Previous(a)], sticky),
            bbn.CPT(b, [a], [[0.85, 0.15], [0.1, 0.9]]),
        ],
    )


def test_what_the_search_gives_is_fitted_to_a_dynamic_network():
    dyn = chain_of_two()
    table = dyn.sample(60, n=60, seed=1)
    graph = bbn.hill_climb(table, sequence="sequence")
    assert graph.graph["lag"] == 1
    assert ("A[-1]", "A") in graph.edges
    fitted = bbn.fit(graph, table, sequence="sequence")
    assert isinstance(fitted, bbn.DynamicNetwork)
    frame = lagged_frame(table, 1)
    by_hand = pd.crosstab(frame["A[-1]"], frame["A"], normalize="index").to_numpy()
    parents = fitted["A"].parents
    assert [p.name for p in parents] == ["A[-1]"]
    np.testing.assert_allclose(fitted["A"].table, by_hand, atol=1e-12)
    first = table.groupby("sequence").first()["A"].value_counts(normalize=True)
    np.testing.assert_allclose(fitted.conditional("A", 0).table, first[["x", "y"]], atol=1e-12)


def test_one_sequence_a_list_of_tables_and_a_column_of_sequences_are_the_same():
    table = chain_of_two().sample(40, n=3, seed=2)
    parts = [own.drop(columns="sequence") for _, own in table.groupby("sequence")]
    by_column = bbn.hill_climb(table, sequence="sequence")
    by_list = bbn.hill_climb(parts, lag=1)
    by_length = bbn.hill_climb(table.drop(columns="sequence"), lengths=[40] * 3)
    assert by_column.edges == by_list.edges == by_length.edges
    assert by_column.graph["score"] == by_list.graph["score"] == by_length.graph["score"]
    whole = bbn.hill_climb(parts[0], lag=1)
    assert isinstance(bbn.fit(whole, parts[0], bbn.BDeu(1)), bbn.DynamicNetwork)


def test_sequences_larger_than_memory_give_the_same_structure(tmp_path):
    table = chain_of_two().sample(30, n=40, seed=3).astype({"A": str, "B": str})
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=100)
    source = bbn.open_data(str(tmp_path / "rows.parquet"), batch_rows=100)
    streamed = bbn.hill_climb(source, sequence="sequence")
    memory = bbn.hill_climb(table, sequence="sequence")
    assert streamed.edges == memory.edges
    assert streamed.graph["score"] == pytest.approx(memory.graph["score"], abs=1e-9)
    fitted = bbn.fit(memory, source, bbn.BDeu(1), sequence="sequence")
    assert fitted == bbn.fit(memory, table, bbn.BDeu(1), sequence="sequence")


def test_numbers_are_found_to_follow_themselves():
    rng = np.random.default_rng(0)
    x = np.zeros(2000)
    for t in range(1, 2000):
        x[t] = 0.8 * x[t - 1] + rng.normal()
    data = {"x": x, "y": np.concatenate([[0.0], 2 * x[:-1]]) + 0.1 * rng.normal(size=2000)}
    graph = bbn.hill_climb(data, lag=1, continuous=["x", "y"])
    assert {("x[-1]", "y"), ("x[-1]", "x")} <= set(graph.edges)
    with pytest.warns(bbn.CollapsedWarning):  # of one first step
        fitted = bbn.fit(graph, data)
    assert set(fitted.continuous) == {"x", "y"}
    design = np.column_stack([np.ones(1999), *(data[p[0]][:-1] for p in graph.predecessors("x"))])
    slope = np.linalg.lstsq(design, x[1:], rcond=None)[0]
    np.testing.assert_allclose(fitted["x"].weights, slope[1:], rtol=1e-6)


def test_constraints_reach_back_too():
    table = chain_of_two().sample(40, n=20, seed=4)
    kept = bbn.hill_climb(table, sequence="sequence", forbidden=[("A[-1]", "A")])
    assert ("A[-1]", "A") not in kept.edges
    must = bbn.hill_climb(table, sequence="sequence", required=[("B[-1]", "A")])
    assert ("B[-1]", "A") in must.edges
    with pytest.raises(bbn.ModelError, match="required, but also forbidden"):
        bbn.hill_climb(table, sequence="sequence", required=[("A", "A[-1]")])
    with pytest.raises(bbn.DataError, match=r"'A\[-2\]'"):
        bbn.hill_climb(table, sequence="sequence", required=[("A[-2]", "A")])


def test_weights_are_those_of_sequences():
    table = chain_of_two().sample(20, n=6, seed=5)
    weights = [2, 1, 1, 3, 1, 0.5]
    weighted = bbn.hill_climb(table, "bic", sequence="sequence", weights=weights)
    repeated = pd.concat(
        [
            own.assign(sequence=f"{s} {k}")
            for s, own in table.groupby("sequence")
            for k in range(int(2 * weights[s]))
        ]
    )
    doubled = bbn.hill_climb(table, "bic", sequence="sequence", weights=[2 * w for w in weights])
    plain = bbn.hill_climb(repeated, "bic", sequence="sequence")
    assert doubled.edges == plain.edges
    assert doubled.graph["score"] == pytest.approx(plain.graph["score"], abs=1e-8)
    assert weighted.graph["score"] != doubled.graph["score"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({"A": ["x", None, "y"]}, {"lag": 1}, "missing values"),
        ({"A": ["x", "y"]}, {"lag": 2}, "longer than 2 steps"),
        ({"A": ["x"]}, {"lag": 1}, "longer than 1 step,"),
        ({"A": ["x", "y", "x"]}, {"lag": 10**9}, "longer than 1000000000 steps"),
        ({"id": [0, 0, 1]}, {"sequence": "id"}, "no column besides"),
        ({"A": ["x", "y"], "t": [0, 2]}, {"time": "t"}, "missing values or steps"),
        ({"A": ["x", "y"]}, {"sequence": "id"}, "sequence='id'"),
        ([], {"lag": 1}, "empty"),
        ([{"A": ["x", "y"]}], {"sequence": "id"}, "one sequence each"),
    ],
)
def test_bad_sequences_are_named(data, options, message):
    with pytest.raises(bbn.DataError, match=message):
        bbn.hill_climb(data, **options)


@pytest.mark.parametrize("lag", [0, -1, 1.5, True])
def test_a_lag_is_a_whole_number(lag):
    with pytest.raises(ValueError, match="lag is"):
        bbn.hill_climb({"A": ["x", "y", "x"]}, lag=lag)


@pytest.mark.parametrize(
    ("arcs", "error", "message"),
    [
        ([("A", "B[-1]")], bbn.ModelError, "leads back in time"),
        ([("A[-1]", "B"), ("A[2]", "B")], bbn.ModelError, "negative number"),
        ([("C[-1]", "B")], bbn.DataError, "no column 'C'"),
        ([("A", "B")], bbn.DataError, "structures over time"),
        ([("A", "B"), ("B", "A"), ("A[-1]", "A")], bbn.ModelError, "cycle"),
    ],
)
def test_a_graph_over_time_is_checked(arcs, error, message):
    table = {"A": ["x", "y"] * 3, "B": ["x", "y"] * 3}
    with pytest.raises(error, match=message):
        bbn.fit(arcs, table, lengths=[6])


def test_arcs_and_hidden_states_are_enough_for_baum_welch():
    dyn = bbn.example("umbrella")
    table = dyn.sample(30, n=30, seed=0)[["sequence", "Umbrella"]]
    arcs = [("Rain[-1]", "Rain"), ("Rain", "Umbrella")]
    hidden = {"Rain": ["yes", "no"]}
    result = bbn.fit_em(arcs, table, hidden, sequence="sequence", seed=0, restarts=3)
    assert isinstance(result.network, bbn.DynamicNetwork)
    assert result.log_likelihood == pytest.approx(
        result.network.log_likelihood(table, sequence="sequence").sum(), abs=1e-8
    )
    assert result.log_likelihood > dyn.log_likelihood(table, sequence="sequence").sum()
    with pytest.raises(bbn.DataError, match="without tables"):
        bbn.fit_em(arcs, table, hidden, sequence="sequence", fixed=["Rain"])
    with pytest.raises(bbn.DataError, match="tied over time"):
        bbn.fit_em(dyn, table, sequence="sequence", tied=[["Rain", "Umbrella"]])


def test_states_that_a_dynamic_network_has_already_are_not_declared_anew():
    table = {"Umbrella": ["yes", "no"], "Rain": ["yes", "no"]}
    with pytest.raises(bbn.DataError, match="dry"):
        bbn.fit(bbn.example("umbrella"), table, states={"Rain": ["wet", "dry"]})
    with pytest.raises(bbn.DataError, match="does not say is continuous"):
        bbn.fit(bbn.example("umbrella"), table, continuous=["Rain"])


# Gradient ascent


@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_is_the_slope_of_the_likelihood(seed):
    from bbn.learning.time.baum_welch import SequenceProblem
    from bbn.learning.time.sequence_data import SequenceData

    rng = np.random.default_rng(seed)
    dyn = random_dynamic(rng)
    table = dyn.sample(5, n=4, seed=seed)
    names = [n for n in dyn.names if n not in dyn.static]
    table[names] = table[names].astype(object).mask(rng.random((len(table), len(names))) < 0.3)
    data = SequenceData(dyn, table, "sequence")
    problem = SequenceProblem(dyn, data)
    point = problem.evaluate(problem.start_tables())
    free = np.flatnonzero(problem.free)
    for i in rng.choice(free, min(5, len(free)), replace=False):
        h = 1e-6
        up, down = point.tables.copy(), point.tables.copy()
        up[i] += h
        down[i] -= h
        slope = (problem.evaluate(up).log_likelihood - problem.evaluate(down).log_likelihood) / (2 * h)
        assert point.statistics[i] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_gradient_ascent_reaches_what_em_reaches_and_never_falls():
    dyn = bbn.example("umbrella")
    table = dyn.sample(40, n=20, seed=0).astype(object)
    table.loc[::3, "Rain"] = None
    climbed = bbn.fit_gradient(dyn, table, sequence="sequence", tol=1e-14, max_iter=3000)
    em = bbn.fit_em(dyn, table, sequence="sequence", tol=1e-14, max_iter=3000)
    assert climbed.log_likelihood == pytest.approx(em.log_likelihood, abs=1e-5)
    assert (np.diff(climbed.objectives) >= -1e-9).all()
    own = climbed.network.log_likelihood(table, sequence="sequence").sum()
    assert climbed.log_likelihood == pytest.approx(own, abs=1e-9)


def test_gradient_ascent_takes_priors_fixed_tables_and_checkpoints(tmp_path):
    dyn = bbn.example("umbrella")
    table = dyn.sample(20, n=10, seed=1)[["sequence", "Umbrella"]]
    options = {"hidden": ["Rain"], "prior": bbn.BDeu(2), "sequence": "sequence", "fixed": ["Umbrella"]}
    path = tmp_path / "climb"
    short = bbn.fit_gradient(dyn, table, **options, max_iter=5, tol=-1.0, checkpoint=path)
    resumed = bbn.fit_gradient(dyn, table, **options, max_iter=20, tol=-1.0, checkpoint=path)
    whole = bbn.fit_gradient(dyn, table, **options, max_iter=20, tol=-1.0)
    assert short.network["Umbrella"] == dyn["Umbrella"]
    assert resumed.log_likelihood == whole.log_likelihood
    assert (np.diff(whole.objectives) >= -1e-9).all()


def test_gradient_ascent_says_what_it_does_not_take():
    dyn = bbn.example("umbrella")
    with pytest.raises(bbn.DataError, match="batch_size"):
        bbn.fit_gradient(dyn, {"Umbrella": ["yes", "no"]}, batch_size=1)
    x = bbn.DynamicNetwork([], [bbn.Gaussian("x", means=0.0, variances=1.0)])
    with pytest.raises(bbn.DataError, match="discrete variables only"):
        bbn.fit_gradient(x, {"x": [0.1, 0.2]})


def test_the_structure_does_not_depend_on_the_hash_seed():
    code = (
        "import bbn; t = bbn.example('umbrella').sample(30, n=9, seed=0); "
        "g = bbn.hill_climb(t, sequence='sequence'); print(list(g.edges), g.graph['score'])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "77")
    ]
    assert told[0] == told[1]
    assert "Rain[-1]" in told[0]
