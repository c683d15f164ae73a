"""Scores of families with numbers, against least squares per setting and against sequential prediction."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_t

import bbn
from bbn.learning.structure.gaussian_scores import pivots, residuals

NUMBERS = ["u", "v", "w", "x"]


def mixed_data(rng, n=80):
    a, b = rng.integers(2, size=n), rng.integers(3, size=n)
    data = {"a": a, "b": np.array(["p", "q", "r"])[b]}
    z = rng.normal(size=(4, n)) * rng.uniform(0.1, 50, size=(4, 1)) + rng.normal(size=(4, 1)) * 100
    z[1] += z[0] * (1 + a)
    z[3] += 0.5 * z[2] - z[1] + 20 * b
    return {**data, **dict(zip(NUMBERS, z, strict=True))}


def random_dag(rng, names, discrete, most=3):
    """Arcs of a random DAG in which no number is a parent of a discrete variable."""
    order = [*rng.permutation(discrete), *rng.permutation([n for n in names if n not in discrete])]
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    for i, child in enumerate(order):
        for parent in order[:i]:
            if rng.random() < 0.5 and graph.in_degree(child) < most:
                graph.add_edge(str(parent), str(child))
    return graph


def slow_family(data, child, parents, penalty):
    """The term of a family: least squares, or counts, in each setting of its discrete parents."""
    n = len(data[child])
    discrete = [p for p in parents if p not in NUMBERS]
    slopes = [p for p in parents if p in NUMBERS]
    total, settings = 0.0, 0
    for states in itertools.product(*(np.unique(data[p]) for p in discrete)):
        settings += 1
        rows = np.ones(n, dtype=bool)
        for parent, state in zip(discrete, states, strict=True):
            rows &= np.asarray(data[parent]) == state
        if not rows.any():
            continue
        own = np.asarray(data[child])[rows]
        if child in NUMBERS:
            design = np.column_stack([np.ones(rows.sum()), *(data[p][rows] for p in slopes)])
            rest = own - design @ np.linalg.lstsq(design, own, rcond=None)[0]
            total -= 0.5 * rows.sum() * (np.log(2 * np.pi * np.mean(rest**2)) + 1)
        else:
            for count in np.unique(own, return_counts=True)[1]:
                total += count * np.log(count / rows.sum())
    size = len(slopes) + 2 if child in NUMBERS else len(np.unique(data[child])) - 1
    return total - penalty * settings * size


@pytest.mark.parametrize(
    ("name", "penalty"),
    [("loglik-cg", 0.0), ("aic-cg", 1.0), ("bic-cg", 0.5 * np.log(80)), ("bic", 0.5 * np.log(80))],
)
def test_mixed_scores_are_least_squares_in_each_setting(name, penalty):
    rng = np.random.default_rng(3)
    for _ in range(200):
        data = mixed_data(rng)
        graph = random_dag(rng, list(data), ["a", "b"])
        found = bbn.family_scores(graph, data, name, continuous=NUMBERS)
        for child, term in found.items():
            slow = slow_family(data, child, list(graph.predecessors(child)), penalty)
            assert term == pytest.approx(slow, rel=1e-9, abs=1e-8), (child, list(graph.predecessors(child)))
        total = bbn.score(graph, data, name, continuous=NUMBERS)
        assert total == pytest.approx(sum(found.values()), rel=1e-12)


def slow_bge(data, names):
    """ln p(data of some columns), row by row: each is a draw from a multivariate t given those before it."""
    n_all = len(data)
    columns = np.column_stack([data[name] for name in names])
    size = len(names)
    t = 1.0 * (n_all + 2 - n_all - 1) / 2.0
    mean, strength = columns.mean(axis=0), 1.0
    freedom, scatter = n_all + 2.0 - n_all + size, t * np.eye(size)
    total = 0.0
    for row in columns:
        own = freedom - size + 1
        total += multivariate_t.logpdf(row, mean, scatter * (strength + 1) / (strength * own), df=own)
        apart = row - mean
        scatter = scatter + strength / (strength + 1) * np.outer(apart, apart)
        mean = (strength * mean + row) / (strength + 1)
        strength, freedom = strength + 1, freedom + 1
    return total


@pytest.mark.parametrize("seed", range(20))
def test_bge_is_the_probability_of_the_rows_one_after_the_other(seed):
    rng = np.random.default_rng(seed)
    data = {name: column for name, column in mixed_data(rng, 30).items() if name in NUMBERS}
    sets = [set_ for size in range(1, 5) for set_ in itertools.combinations(NUMBERS, size)]
    slow = {frozenset(names): slow_bge(data, names) for names in sets} | {frozenset(): 0.0}
    for _ in range(10):
        graph = random_dag(rng, NUMBERS, [])
        found = bbn.family_scores(graph, data, "bge", continuous=NUMBERS)
        for child, term in found.items():
            parents = list(graph.predecessors(child))
            assert term == pytest.approx(
                slow[frozenset([*parents, child])] - slow[frozenset(parents)], rel=1e-10, abs=1e-8
            )


def test_gaussian_bic_is_pgmpys():
    scores = pytest.importorskip("pgmpy.structure_score")
    rng = np.random.default_rng(13)
    data = {name: column for name, column in mixed_data(rng, 200).items() if name in NUMBERS}
    theirs = scores.BICGauss(pd.DataFrame(data))
    for _ in range(10):
        graph = random_dag(rng, NUMBERS, [])
        for child, term in bbn.family_scores(graph, data, "bic-g", continuous=NUMBERS).items():
            parents = tuple(graph.predecessors(child))
            assert term == pytest.approx(float(theirs.local_score(child, parents)), rel=1e-9)


def test_mixed_bic_is_pgmpys_but_for_its_variances():
    """pgmpy takes RSS / (n − 1) for the variance of a setting, which is not the most likely; the rest is the same.

    Its densities of parents are at least 1e-8, so the numbers must not be spread too widely.
    """
    scores = pytest.importorskip("pgmpy.structure_score")
    rng = np.random.default_rng(14)
    kinds = set()
    for _ in range(12):
        data = mixed_data(rng, 150)
        data |= {name: (data[name] - data[name].mean()) / data[name].std() for name in NUMBERS}
        data["a"] = np.where(data["a"], "yes", "no")  # or pgmpy takes it for a number
        theirs = scores.BICCondGauss(pd.DataFrame(data))
        graph = random_dag(rng, [*"ab", *NUMBERS], ["a", "b"], most=2)
        for child, term in bbn.family_scores(graph, data, "bic-cg", continuous=NUMBERS).items():
            parents = tuple(graph.predecessors(child))
            states = [p for p in parents if p not in NUMBERS]
            apart = 0.0
            if child in NUMBERS:
                settings = pd.DataFrame(data).groupby(states).size() if states else pd.Series([150])
                n = settings.to_numpy()
                apart = 0.5 * float((n * np.log(n / (n - 1)) - 1).sum())
            assert term == pytest.approx(float(theirs.local_score(child, parents)) + apart, rel=1e-9)
            kinds.add((child in NUMBERS, len(states), len(parents) - len(states)))
    assert len(kinds) >= 7


def test_gaussian_scores_are_least_squares():
    rng = np.random.default_rng(12)
    for _ in range(200):
        data = {name: column for name, column in mixed_data(rng, 60).items() if name in NUMBERS}
        graph = random_dag(rng, NUMBERS, [])
        for name, penalty in (("loglik-g", 0.0), ("aic-g", 1.0), ("bic-g", 0.5 * np.log(60))):
            for child, term in bbn.family_scores(graph, data, name, continuous=NUMBERS).items():
                slow = slow_family(data, child, list(graph.predecessors(child)), penalty)
                assert term == pytest.approx(slow, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("name", ["bge", "bic-g", "aic-g", "loglik-g"])
def test_equivalent_structures_score_the_same(name):
    rng = np.random.default_rng(5)
    data = {n: column for n, column in mixed_data(rng).items() if n in NUMBERS}
    for _ in range(30):
        graph = random_dag(rng, NUMBERS, [])
        covered = [(p, c) for p, c in graph.edges if {*graph.predecessors(c)} == {*graph.predecessors(p), p}]
        before = bbn.score(graph, data, name, continuous=NUMBERS)
        for p, c in covered:
            turned = graph.copy()
            turned.remove_edge(p, c)
            turned.add_edge(c, p)
            assert bbn.score(turned, data, name, continuous=NUMBERS) == pytest.approx(before, rel=1e-11)


def test_the_likelihood_is_that_of_the_fitted_network():
    rng = np.random.default_rng(6)
    data = mixed_data(rng, 300)
    graph = random_dag(rng, list(data), ["a", "b"])
    net = bbn.fit(graph, data, continuous=NUMBERS)
    expected = float(np.sum(net.log_likelihood(data)))
    assert bbn.score(graph, data, "loglik-cg", continuous=NUMBERS) == pytest.approx(expected, rel=1e-10)


def test_weights_count_as_repeated_rows():
    data = mixed_data(np.random.default_rng(7), 40)
    times = np.random.default_rng(8).integers(1, 4, size=40)
    repeated = {name: np.repeat(column, times) for name, column in data.items()}
    arcs = [("a", "u"), ("b", "x"), ("u", "v"), ("v", "x"), ("w", "x")]
    once = bbn.score(arcs, {**data, "n": times}, weights="n", continuous=NUMBERS)
    assert once == pytest.approx(bbn.score(arcs, repeated, continuous=NUMBERS), rel=1e-11)


def test_batches_give_what_memory_gives():
    data = mixed_data(np.random.default_rng(9), 500)
    tables = [{name: column[i : i + 120] for name, column in data.items()} for i in range(0, 500, 120)]
    source = bbn.open_data(tables, continuous=NUMBERS)
    memory = bbn.hill_climb(data, continuous=NUMBERS)
    stream = bbn.hill_climb(source)
    assert sorted(stream.edges) == sorted(memory.edges)
    assert stream.graph["score"] == pytest.approx(memory.graph["score"], rel=1e-12)


class TestDegenerateColumns:
    def test_scores_stay_finite_and_use_the_floor_of_fit(self):
        rng = np.random.default_rng(10)
        n = 60
        data = {"a": rng.integers(2, size=n), "u": rng.normal(size=n), "c": np.full(n, 7.0)}
        data["v"] = 2 * data["u"]  # collinear with u
        data["x"] = data["u"] + data["v"] + 0.1 * rng.normal(size=n)
        data["s"] = data["a"] * 3.0  # does not vary in a setting
        arcs = [("u", "x"), ("v", "x"), ("u", "v"), ("a", "s"), ("c", "u")]
        numbers = ["u", "v", "x", "c", "s"]
        found = bbn.score(arcs, data, "loglik-cg", continuous=numbers)
        assert np.isfinite(found)
        with pytest.warns(bbn.CollapsedWarning):
            net = bbn.fit(arcs, data, continuous=numbers)
        assert found == pytest.approx(float(np.sum(net.log_likelihood(data))), rel=1e-6)

    @pytest.mark.parametrize("name", ["bic-g", "bic-cg", "bge"])
    def test_the_order_of_collinear_columns_does_not_matter(self, name):
        rng = np.random.default_rng(0)
        u, v, noise = rng.normal(size=(3, 3000))
        data = {"u": u, "v": 7 * v + 100, "w": u + 7 * v + 100, "s": 2 * u - 3}
        data |= {"sum": 3 * u - 2 * data["v"] + 5, "noisy": u + noise}
        numbers = list(data)
        for child in ("sum", "noisy"):
            for parents in (("u", "v"), ("u", "s"), ("u", "v", "w"), ("u", "v", "w", "s")):
                found = set()
                for order in itertools.permutations(parents):
                    graph = nx.DiGraph()
                    graph.add_nodes_from(numbers)
                    graph.add_edges_from((parent, child) for parent in order)
                    columns = numbers if order[0] == parents[0] else numbers[::-1]
                    terms = bbn.family_scores(graph, {n: data[n] for n in columns}, name, continuous=numbers)
                    found.add(terms[child])
                assert np.isfinite(list(found)).all()
                assert max(found) - min(found) <= 1e-11 * 3000, (
                    child,
                    parents,
                )  # less than makes scores differ

    def test_a_child_that_its_parents_determine_scores_the_floor(self):
        u, noise = np.random.default_rng(1).normal(size=(2, 3000))
        data = {"u": u, "near": u + 0.03 * noise}
        data["mix"] = data["near"] - 0.5 * u
        term = bbn.family_scores([("u", "mix"), ("near", "mix")], data, "loglik-g", continuous=list(data))
        floor = 1e-9 * np.var(data["mix"])
        assert term["mix"] == pytest.approx(-0.5 * 3000 * np.log(2 * np.pi * floor), abs=1e-6)

    def test_a_search_leaves_settings_alone_that_have_too_few_rows(self):
        rng = np.random.default_rng(11)
        data = {"k": np.arange(40) // 2, "x": rng.normal(size=40), "y": rng.normal(size=40)}
        graph = bbn.hill_climb(data, continuous=["x", "y"])
        assert not graph.edges
        assert np.isfinite(graph.graph["score"])
        alone = bbn.score([("k", "x"), ("y", "x")], data, continuous=["x", "y"])
        assert np.isfinite(alone)

    def test_a_column_far_from_zero_keeps_its_digits(self):
        rng = np.random.default_rng(12)
        x = rng.normal(size=200)
        y = x + rng.normal(size=200)
        near = bbn.score([("x", "y")], {"x": x, "y": y}, "bic-g", continuous=["x", "y"])
        far = bbn.score([("x", "y")], {"x": x + 1e8, "y": y - 1e8}, "bic-g", continuous=["x", "y"])
        assert far == pytest.approx(near, rel=1e-6)


class TestSearch:
    def test_what_is_found_scores_what_it_says_and_fits(self):
        data = mixed_data(np.random.default_rng(13), 400)
        graph = bbn.hill_climb(data, continuous=NUMBERS, score="aic")
        assert graph.graph["score"] == pytest.approx(
            bbn.score(graph, data, "aic-cg", continuous=NUMBERS), rel=1e-12
        )
        assert all(graph.nodes[name].get("continuous") for name in NUMBERS)
        net = bbn.fit(graph, data)
        assert set(net.continuous) == set(NUMBERS)

    @pytest.mark.parametrize("score", ["bic-g", "bge"])
    def test_a_chain_of_numbers_is_found(self, score):
        rng = np.random.default_rng(14)
        x = rng.normal(size=2000)
        y = x + rng.normal(size=2000)
        z = y + rng.normal(size=2000)
        graph = bbn.hill_climb({"x": x, "y": y, "z": z}, score=score, continuous=["x", "y", "z"])
        assert bbn.compare(graph, nx.DiGraph([("x", "y"), ("y", "z")])).shd_cpdag == 0

    def test_no_number_is_a_parent_of_states(self):
        rng = np.random.default_rng(15)
        x = rng.normal(size=500)
        data = {"x": x, "s": (x > 0).astype(int)}
        assert list(bbn.hill_climb(data, continuous="x").edges) == [("s", "x")]
        assert list(bbn.k2(data, ["x", "s"], continuous="x").edges) == []
        with pytest.raises(bbn.ModelError, match="'s'"):
            bbn.hill_climb(data, continuous="x", required=[("x", "s")])

    def test_the_order_of_the_columns_does_not_matter(self):
        data = mixed_data(np.random.default_rng(16), 300)
        found = bbn.hill_climb(data, continuous=NUMBERS)
        turned = bbn.hill_climb(dict(reversed(data.items())), continuous=NUMBERS)
        assert sorted(found.edges) == sorted(turned.edges)


class TestRefused:
    data = mixed_data(np.random.default_rng(17), 20)

    def test_scores_of_numbers_alone(self):
        for score in ("bic-g", "aic-g", "loglik-g", "bge"):
            with pytest.raises(bbn.DataError, match="takes numbers only, but 'a' is discrete"):
                bbn.hill_climb(self.data, score=score, continuous=NUMBERS)

    @pytest.mark.parametrize("score", ["bdeu", "k2", "fnml", bbn.BDeu(10)])
    def test_scores_of_states_alone(self, score):
        with pytest.raises(bbn.DataError, match="takes discrete variables only, but 'u' holds numbers"):
            bbn.hill_climb(self.data, score=score, continuous=NUMBERS)

    def test_unknown_scores_name_the_nearest(self):
        with pytest.raises(ValueError, match="did you mean 'bic-cg'"):
            bbn.hill_climb(self.data, score="biccg", continuous=NUMBERS)

    def test_missing_numbers(self):
        holed = {**self.data, "u": [None, *self.data["u"][1:]]}
        with pytest.raises(bbn.DataError, match="missing values in 'u'"):
            bbn.hill_climb(holed, continuous=NUMBERS)


def test_elimination():
    rng = np.random.default_rng(18)
    rows = rng.normal(size=(7, 30, 4))
    scatter = np.einsum("bni,bnj->bij", rows, rows)
    for own, found, steps in zip(rows, residuals(scatter), pivots(scatter, 1e-9), strict=True):
        rest = own[:, 3] - own[:, :3] @ np.linalg.lstsq(own[:, :3], own[:, 3], rcond=None)[0]
        assert found == pytest.approx(rest @ rest, rel=1e-10)
        assert np.prod(steps) == pytest.approx(np.linalg.det(own.T @ own), rel=1e-10)


@pytest.mark.filterwarnings("ignore::bbn.core.errors.RedundantColumnsWarning")
class TestStreams:
    """Files and clusters give the structure that memory gives, though their sums are rounded otherwise."""

    @staticmethod
    def tied_frame(n=400):
        """Two numbers are the same but for their units, so scores tie."""
        data = mixed_data(np.random.default_rng(19), n)
        return pd.DataFrame({**data, "x again": 7 * data["x"] + 1e3, "u again": data["u"]})

    def learners(self):
        numbers = [*NUMBERS, "x again", "u again"]
        yield "hill_climb", lambda rows, **o: bbn.hill_climb(rows, escapes=3, restarts=1, **o)
        yield "tabu", lambda rows, **o: bbn.hill_climb(rows, tabu=5, escapes=0, restarts=0, **o)
        yield "k2", lambda rows, **o: bbn.k2(rows, ["a", "b", *numbers], **o)
        yield "chow_liu", lambda rows, **o: bbn.chow_liu(rows, **o)
        yield "ges", lambda rows, **o: bbn.ges(rows, escapes=0, **o)
        yield "pc", lambda rows, **o: bbn.pc(rows, max_condition=1, **o)

    def check(self, source, frame):
        numbers = [*NUMBERS, "x again", "u again"]
        for name, learn in self.learners():
            assert sorted(learn(source).edges) == sorted(learn(frame, continuous=numbers).edges), name

    def test_parquet(self, tmp_path):
        frame = self.tied_frame()
        for part in range(3):
            frame[part::3].to_parquet(tmp_path / f"{part}.parquet")
        paths = sorted(map(str, tmp_path.glob("*.parquet")))
        self.check(bbn.open_data(paths, continuous=[*NUMBERS, "x again", "u again"], batch_rows=90), frame)

    def test_dask(self):
        dask = pytest.importorskip("dask.dataframe")
        frame = self.tied_frame()
        parts = dask.from_pandas(frame, npartitions=3)
        self.check(bbn.open_data(parts, continuous=[*NUMBERS, "x again", "u again"]), frame)
