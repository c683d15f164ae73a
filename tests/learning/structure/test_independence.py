"""Tests of independence with numbers in them, and the learners that use them, against least squares and scipy."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import bbn
from bbn.data import code
from bbn.learning.structure.independence import independence_test


def regressed(rng, n=200):
    x = rng.normal(size=(5, n))
    x[1] += 0.2 * x[0]
    x[2] += x[0] - x[1]
    return {name: column * 10 + 5 for name, column in zip("abcde", x, strict=True)}


def left(data, name, given):
    design = np.column_stack([np.ones(len(data[name])), *(data[g] for g in given)])
    return data[name] - design @ np.linalg.lstsq(design, data[name], rcond=None)[0]


@pytest.mark.parametrize("given", ["", "c", "cd", "cde"])
def test_correlations_are_those_of_residuals(given):
    data = regressed(np.random.default_rng(1))
    source = code(data, continuous=list(data))
    r, _ = stats.pearsonr(left(data, "a", given), left(data, "b", given))
    k, n = len(given), 200
    z = np.sqrt(n - k - 3) * np.arctanh(abs(r))
    found = independence_test(source, "fisher-z")([("a", "b", tuple(given))])
    assert found[0] == pytest.approx(2 * stats.norm.sf(z), rel=1e-9)
    t = abs(r) * np.sqrt((n - k - 2) / (1 - r**2))
    found = independence_test(source, "cor")([("a", "b", tuple(given))])
    assert found[0] == pytest.approx(2 * stats.t.sf(t, n - k - 2), rel=1e-9)


def test_ratios_are_those_of_regressions_in_each_setting():
    rng = np.random.default_rng(2)
    data = {**regressed(rng), "s": rng.integers(2, size=200), "t": rng.integers(3, size=200)}
    data["a"] = data["a"] + 3 * data["s"]
    source = code(data, continuous=list("abcde"))

    def likelihood(child, numbers, states):
        total, settings = 0.0, 0
        for setting in itertools.product(*(np.unique(data[s]) for s in states)):
            rows = np.ones(200, dtype=bool)
            for s, value in zip(states, setting, strict=True):
                rows &= data[s] == value
            own = {name: np.asarray(column)[rows] for name, column in data.items()}
            total -= 0.5 * rows.sum() * np.log(np.mean(left(own, child, numbers) ** 2))
            settings += 1
        return total, settings * (len(numbers) + 2)

    for (x, y, given), without, with_ in [
        (("s", "a", ("b",)), ("b", ""), ("b", "s")),
        (("s", "a", ("b", "t")), ("b", "t"), ("b", "st")),
        (("c", "a", ("b", "t")), ("b", "t"), ("bc", "t")),
    ]:
        (low, few), (high, many) = likelihood("a", *without), likelihood("a", *with_)
        expected = stats.chi2.sf(2 * (high - low), many - few)
        found = independence_test(source, "auto")([(x, y, given)])[0]
        assert found == pytest.approx(expected, rel=1e-7), (x, y, given)


@pytest.mark.parametrize("given", [(), ("s",), ("y",), ("s", "y")])
@pytest.mark.parametrize("pair", ["tx", "xz", "tu"])
def test_true_independence_is_rejected_about_as_often_as_asked(pair, given):
    rng = np.random.default_rng(3)
    rejected = 0
    for _ in range(200):
        n = 150
        data = {"s": rng.integers(2, size=n), "t": rng.integers(2, size=n), "u": rng.integers(2, size=n)}
        data |= {"x": rng.normal(size=n), "y": rng.normal(size=n), "z": rng.normal(size=n)}
        source = code(data, continuous=["x", "y", "z"])
        rejected += independence_test(source, "auto")([(*pair, given)])[0] < 0.05
    assert 1 <= rejected <= 26  # 10 expected; beyond 26 has a probability below 1e-5


def test_pc_finds_the_class_of_numbers_and_of_mixtures():
    rng = np.random.default_rng(4)
    n = 5000
    x, y, w = rng.normal(size=(3, n))
    data = {"x": x, "y": y, "z": x + y + rng.normal(size=n) * 0.5}
    data["w"] = data["z"] + w
    truth = nx.DiGraph([("x", "z"), ("y", "z"), ("z", "w")])
    for test in ("auto", "fisher-z", "cor", "lrt"):
        graph = bbn.pc(data, alpha=0.01, test=test, continuous=list(data))
        assert bbn.compare(graph, bbn.cpdag(truth)).shd == 0
    s = rng.integers(2, size=n)
    t = np.where(rng.random(n) < 0.8, s, 1 - s)
    mixed = {"s": s, "t": t, "x": x + s, "y": x + s + rng.normal(size=n)}
    graph = bbn.pc(mixed, alpha=0.01, continuous=["x", "y"])
    assert set(graph.edges) == {("s", "t"), ("t", "s"), ("s", "x"), ("x", "y")}


def test_what_a_test_does_not_take_is_refused():
    data = {"s": [0, 1] * 10, "x": np.arange(20.0)}
    for test in ("g2", "chi2", "mi"):
        with pytest.raises(bbn.DataError, match="takes states, but 'x' holds numbers"):
            bbn.pc(data, test=test, continuous="x")
    for test in ("fisher-z", "cor"):
        with pytest.raises(bbn.DataError, match="takes numbers, but 's' has states"):
            bbn.pc(data, test=test, continuous="x")
    with pytest.raises(ValueError, match="did you mean 'fisher-z'"):
        bbn.pc(data, test="fisherz", continuous="x")


class TestTrees:
    def test_information_of_numbers_is_that_of_their_correlation(self):
        data = regressed(np.random.default_rng(5))
        tree = bbn.chow_liu(data, continuous=list(data))
        expected = {
            frozenset(pair): -0.5 * np.log(1 - np.corrcoef(data[pair[0]], data[pair[1]])[0, 1] ** 2)
            for pair in itertools.combinations("abcde", 2)
        }
        best = nx.maximum_spanning_tree(
            nx.Graph([(*pair, {"weight": value}) for pair, value in expected.items()])
        )
        assert {frozenset(edge) for edge in tree.edges} == {frozenset(edge) for edge in best.edges}
        for a, b, value in tree.edges(data="information"):
            assert value == pytest.approx(expected[frozenset((a, b))], rel=1e-9)

    def test_no_way_between_states_leads_through_a_number(self):
        rng = np.random.default_rng(6)
        s, t = rng.integers(2, size=(2, 400))
        data = {"s": s, "t": t, "x": s + t + rng.normal(size=400), "y": rng.normal(size=400)}
        tree = bbn.chow_liu(data, continuous=["x", "y"])
        assert all(a in "st" or b in "xy" for a, b in tree.edges)
        assert nx.is_directed_acyclic_graph(tree)
        assert max(dict(tree.in_degree).values()) == 1
        assert set(bbn.fit(tree, data).continuous) == {"x", "y"}
        with pytest.raises(bbn.ModelError, match="through a number"):
            bbn.chow_liu(data, continuous=["x", "y"], required=[("s", "x"), ("x", "t")])
        with pytest.raises(bbn.DataError, match="is a number"):
            bbn.chow_liu(data, "x", continuous=["x", "y"])

    def test_tan_of_numbers(self):
        rng = np.random.default_rng(7)
        s = rng.integers(2, size=500)
        x = rng.normal(size=500) + s
        data = {"s": s, "x": x, "y": x + rng.normal(size=500), "z": rng.normal(size=500) + 2 * s}
        graph = bbn.tan(data, "s", continuous=["x", "y", "z"], min_information=0.01)
        assert set(graph.edges) == {("s", "x"), ("s", "y"), ("s", "z"), ("x", "y")}
        assert np.mean(np.asarray(bbn.fit(graph, data).predict(data, "s")) == s) > 0.8
        with pytest.raises(bbn.DataError, match="holds numbers"):
            bbn.tan(data, "x", continuous=["x", "y", "z"])


def test_arc_strength_of_numbers():
    rng = np.random.default_rng(8)
    x = rng.normal(size=300)
    data = {"x": x, "y": x + 0.5 * rng.normal(size=300), "z": rng.normal(size=300)}
    found = bbn.arc_strength(data, n=10, seed=0, continuous=list(data))
    assert found.strengths["x", "y"] == 1.0
    averaged = found.network()
    assert set(averaged.nodes) == {"x", "y", "z"}
    assert set(bbn.fit(averaged, data).continuous) == {"x", "y", "z"}
