"""Structural EM: its completions, its climb, and what it finds."""

from __future__ import annotations

import math
from itertools import product

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import BudgetError, ModelError
from bbn.data import as_source
from bbn.learning.structure.structural_em import complete
from tests.support.learning_data import random_data, sample, with_holes


class TestStructuralEM:
    def test_completions_are_weighted_by_the_posterior(self):
        net = bbn.example("burglary")
        rows = with_holes(sample(net, 40, 0), 0.4, 1)
        rows = {name: column for name, column in rows.items() if name != "Alarm"}
        source = as_source(rows, [v for v in net.variables if v.name != "Alarm"])
        table = complete(net, source, net.variables)
        assert table.weights.sum() == pytest.approx(40)
        assert not table.incomplete
        family = ("Burglary", "Earthquake", "Alarm")
        expected = np.zeros((2, 2, 2))
        for i in range(40):
            seen = {name: column[i] for name, column in rows.items() if column[i] is not None}
            total = net.probability(seen)
            for states in product(*(net.states(name) for name in family)):
                asked = dict(zip(family, states, strict=True))
                if all(seen.get(name, state) == state for name, state in asked.items()):
                    cell = tuple(net.variable(name).code(state) for name, state in asked.items())
                    expected[cell] += net.probability({**seen, **asked}) / total
        np.testing.assert_allclose(table.counts([family])[0], expected, atol=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    def test_the_score_never_falls(self, seed):
        rng = np.random.default_rng(seed)
        data = with_holes(random_data(rng, 150, [2, 3, 2, 2]), 0.15, seed)
        hidden = {"H": ["x", "y"]} if seed % 2 else None
        result = bbn.structural_em(data, hidden, seed=seed)
        assert (np.diff(result.objectives) >= -1e-9 * abs(result.objectives[0])).all()
        assert set(result.network.names) == set(data) | set(hidden or ())
        final = float(np.sum(result.network.log_likelihood(data)))
        assert result.log_likelihood == pytest.approx(final, rel=1e-6)
        penalty = 0.5 * math.log(150) * result.network.n_parameters
        assert result.objectives[-1] == pytest.approx(final - penalty, rel=1e-6)

    def test_complete_data_give_what_hill_climbing_gives(self):
        data = sample(bbn.example("asia"), 800, 0)
        result = bbn.structural_em(data)
        best = bbn.hill_climb(data, "bic").graph["score"]
        assert bbn.score(result.network, data, "bic") == pytest.approx(best, rel=1e-3)
        assert result.objectives[-1] == pytest.approx(bbn.score(result.network, data, "bic"), rel=1e-9)

    def test_few_holes_hardly_change_the_structure(self):
        rng = np.random.default_rng(3)
        a, b = rng.integers(2, size=(2, 1500))
        c = np.where(rng.random(1500) < 0.9, a | b, 1 - (a | b))
        data = {"A": a.tolist(), "B": b.tolist(), "C": c.tolist()}
        full = bbn.hill_climb(data, "bic")
        result = bbn.structural_em(with_holes(data, 0.1, 0))
        assert bbn.compare(result.network, full).shd_cpdag == 0

    def test_a_hidden_cause_is_found(self):
        # four effects of one cause that nobody sees are independent given it: a star scores best
        rng = np.random.default_rng(0)
        cause = rng.integers(2, size=3000)
        data = {
            name: np.where(rng.random(3000) < 0.85, cause, 1 - cause).tolist()
            for name in ("E1", "E2", "E3", "E4")
        }
        result = bbn.structural_em(data, hidden={"Cause": ["no", "yes"]}, restarts=2)
        near = nx.Graph(result.network.graph.edges)
        assert set(near["Cause"]) == {"E1", "E2", "E3", "E4"}
        assert near.number_of_edges() == 4
        without = bbn.structural_em(data)
        assert result.objectives[-1] > without.objectives[-1]

    def test_constraints_are_honoured(self):
        data = with_holes(random_data(np.random.default_rng(2), 200, [2, 2, 2, 2]), 0.1, 0)
        result = bbn.structural_em(
            data,
            {"H": [0, 1]},
            required=[("D", "A")],
            forbidden=[("H", "B")],
            tiers=[["H", "D"], ["A", "B", "C"]],
            max_parents=2,
        )
        arcs = set(result.network.arcs)
        assert ("D", "A") in arcs
        assert ("H", "B") not in arcs
        assert not any(a in "ABC" and b in ("H", "D") for a, b in arcs)
        assert max(len(result.network.parents(n)) for n in result.network.names) <= 2
        with pytest.raises(ModelError, match="cycle"):
            bbn.structural_em(data, required=[("A", "B"), ("B", "A")])

    def test_too_many_completions_are_refused(self, monkeypatch):
        monkeypatch.setenv("BBN_MEMORY_LIMIT", "1MB")
        rng = np.random.default_rng(0)
        data = {f"v{i}": [0, 1, *rng.choice([0, 1, None], size=30).tolist()] for i in range(30)}
        with pytest.raises(BudgetError, match="completions"):
            bbn.structural_em(data)

    def test_the_same_seed_gives_the_same_network(self):
        data = with_holes(random_data(np.random.default_rng(5), 120, [2, 2, 3]), 0.1, 0)
        results = [bbn.structural_em(data, {"H": [0, 1]}, seed=7) for _ in range(2)]
        assert results[0] == results[1]


class TestNumbers:
    """States and numbers, both with holes."""

    NAMES = ("x", "y", "z")

    def data(self, n=250, seed=0, share=0.2):
        rng = np.random.default_rng(seed)
        s = rng.integers(2, size=n)
        t = np.where(rng.random(n) < 0.85, s, 1 - s)
        x = rng.normal(size=n) + 2 * s
        y = 10 * (x + rng.normal(size=n)) + 300
        z = rng.normal(size=n) + 0.07 * y - x * (t == 1)
        rows = {"s": ["ab"[i] for i in s], "t": ["ab"[i] for i in t], "x": x, "y": y, "z": z}
        return rows, {
            name: [None if rng.random() < share else value for value in column]
            for name, column in rows.items()
        }

    def test_completions_have_the_expected_counts_and_moments(self):
        """Against the posterior of each row, asked of the network for every way to fill its states."""
        full, holed = self.data(40, 1, 0.3)
        arcs = [("s", "t"), ("s", "x"), ("x", "y"), ("t", "z"), ("y", "z"), ("x", "z")]
        net = bbn.fit(arcs, full, continuous=self.NAMES)
        source = as_source(holed, continuous=self.NAMES)
        table = complete(net, source, net.variables)
        counts, first, second = np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((2, 2, 3, 3))
        order = [v.name for v in net.variables if v.name in self.NAMES]
        for i in range(40):
            seen = {name: column[i] for name, column in holed.items() if column[i] is not None}
            for a, b in product("ab", repeat=2):
                case = {"s": a, "t": b}
                if any(seen.get(name, state) != state for name, state in case.items()):
                    continue
                states = {name: value for name, value in seen.items() if name in case}
                share = 1.0
                left = [name for name in case if name not in states]
                if left:
                    numbers = {name: value for name, value in seen.items() if name not in case}
                    given = {**numbers, **states}
                    for name in left:
                        share *= net.query(name, given)[case[name]]
                        given[name] = case[name]
                mean, cov = self.moments(net, order, case, seen)
                cell = "ab".index(a), "ab".index(b)
                counts[cell] += share
                first[cell] += share * mean
                second[cell] += share * (np.outer(mean, mean) + cov)
        np.testing.assert_allclose(table.counts([("s", "t")])[0], counts, rtol=1e-8, atol=1e-10)
        z = np.column_stack([table.numbers[name] for name in order])
        for a, b in product(range(2), repeat=2):
            rows = (table.codes["s"] == a) & (table.codes["t"] == b)
            w = table.weights[rows]
            np.testing.assert_allclose(w @ z[rows], first[a, b], rtol=1e-8)
            np.testing.assert_allclose((z[rows] * w[:, None]).T @ z[rows], second[a, b], rtol=1e-8)

    def moments(self, net, order, case, seen):
        """Mean and covariance of the numbers of a row given the others and its states, one question at a time."""
        given = {**case, **{name: value for name, value in seen.items() if name in order}}
        mean = np.array([given.get(name, np.nan) for name in order], dtype=float)
        cov = np.zeros((3, 3))
        gone = [i for i, name in enumerate(order) if name not in given]
        for i in gone:
            mean[i] = net.query(order[i], given).mean
            cov[i, i] = net.query(order[i], given).variance
        for i in gone:
            for j in gone:
                if i < j:  # the mean of one moves with the other in proportion to their covariance
                    moved = net.query(order[i], {**given, order[j]: mean[j] + 1.0}).mean - mean[i]
                    cov[i, j] = cov[j, i] = moved * cov[j, j]
        return mean, cov

    @pytest.mark.parametrize("hidden", [None, {"h": ["p", "q"]}])
    def test_the_score_never_falls_and_the_network_explains_the_rows(self, hidden):
        _, holed = self.data()
        result = bbn.structural_em(holed, hidden, continuous=self.NAMES)
        assert (np.diff(result.objectives) >= -1e-9 * abs(result.objectives[0])).all()
        final = float(np.sum(result.network.log_likelihood(holed)))
        assert result.log_likelihood == pytest.approx(final, rel=1e-6)
        assert set(result.network.continuous) == set(self.NAMES)

    def test_few_holes_hardly_change_the_structure(self):
        full, holed = self.data(1500, 3, 0.1)
        best = bbn.hill_climb(full, continuous=self.NAMES)
        found = bbn.structural_em(holed, continuous=self.NAMES)
        assert bbn.compare(found.network, best).shd_cpdag == 0

    def test_constraints_and_kinds_are_honoured(self):
        _, holed = self.data()
        result = bbn.structural_em(
            holed, continuous=self.NAMES, required=[("z", "x")], forbidden=[("s", "t")]
        )
        assert ("z", "x") in result.network.arcs
        assert ("s", "t") not in result.network.arcs
        assert not any(a in self.NAMES and b in "st" for a, b in result.network.arcs)
        with pytest.raises(ModelError, match="'s'"):
            bbn.structural_em(holed, continuous=self.NAMES, required=[("x", "s")])
