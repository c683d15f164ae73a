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
