"""Structural EM, learning in one call, the bootstrap, cross-validation, and what all learners share."""

from __future__ import annotations

import math
import pickle
from itertools import product

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import BudgetError, DataError, ModelError
from bbn.data import as_source
from bbn.learning.learn import METHODS
from bbn.learning.structure.structural_em import complete
from tests.support.learning_data import random_data, sample


def with_holes(data, share, seed):
    rng = np.random.default_rng(seed)
    return {
        name: [
            None if hole else value
            for value, hole in zip(column, rng.random(len(column)) < share, strict=True)
        ]
        for name, column in data.items()
    }


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


class TestLearn:
    data = random_data(np.random.default_rng(1), 200, [2, 2, 3, 2])
    arcs = (("A", "B"), ("B", "C"), ("B", "D"))

    def test_structure_known_data_complete(self):
        result = bbn.learn(self.data, list(self.arcs))
        assert result.method == "mle"
        assert result.network == bbn.fit(list(self.arcs), self.data)
        assert "structure known, data complete: mle" in result.report

    def test_structure_known_data_incomplete(self):
        rows = with_holes(self.data, 0.1, 0)
        result = bbn.learn(rows, list(self.arcs), seed=0)
        assert result.method == "em"
        assert result.network == bbn.fit_em(list(self.arcs), rows, seed=0).network
        assert "missing in 'A'" in result.report

    def test_structure_known_hidden_variable(self):
        arcs = [("H", name) for name in self.data]
        result = bbn.learn(self.data, arcs, hidden={"H": ["x", "y"]}, seed=0)
        assert result.method == "em"
        assert "'H'" in result.report
        assert "H" in result.network

    def test_structure_unknown_data_complete(self):
        result = bbn.learn(self.data)
        assert result.method == "hill-climb"
        assert set(result.network.arcs) == set(bbn.hill_climb(self.data).edges)
        assert "structure unknown, data complete: hill-climb, then counting" in result.report

    def test_structure_unknown_data_incomplete(self):
        rows = with_holes(self.data, 0.1, 0)
        result = bbn.learn(rows)
        assert result.method == "structural-em"
        assert result.network == bbn.structural_em(rows).network

    @pytest.mark.parametrize(
        ("method", "options"),
        [
            ("k2", {"order": ["A", "B", "C", "D"]}),
            ("chow-liu", {"root": "B"}),
            ("tan", {"target": "A"}),
            ("hill-climb", {"score": "bic", "max_parents": 1}),
            ("pc", {"alpha": 0.01}),
            ("structural-em", {"max_iter": 3}),
        ],
    )
    def test_every_method_by_name(self, method, options):
        result = bbn.learn(self.data, method=method, **options)
        assert result.method == method
        assert isinstance(result.network, bbn.BayesianNetwork)
        assert f"method={method!r} was asked for" in result.report

    def test_rows_never_seen_are_a_note_in_the_report(self):
        data = {"A": [0, 0, 1], "B": [0, 1, 1], "C": [0, 1, 0]}
        result = bbn.learn(data, [("A", "C"), ("B", "C")])
        assert "note: " in result.report
        assert "never seen" in result.report

    def test_results_are_values(self):
        result = bbn.learn(self.data, list(self.arcs))
        assert result == pickle.loads(pickle.dumps(result))
        assert hash(result) == hash(bbn.learn(self.data, list(self.arcs)))

    def test_errors(self):
        with pytest.raises(ValueError, match="did you mean 'chow-liu'"):
            bbn.learn(self.data, method="chowliu")
        with pytest.raises(DataError, match="no structure="):
            bbn.learn(self.data, method="em")
        with pytest.raises(DataError, match="learns the structure, but structure= gives it"):
            bbn.learn(self.data, list(self.arcs), method="k2")
        with pytest.raises(DataError, match="structural_em"):
            bbn.learn(with_holes(self.data, 0.1, 0), method="hill-climb")
        with pytest.raises(DataError, match="'structural-em' does"):
            bbn.learn(self.data, hidden={"H": [0, 1]}, method="hill-climb")
        assert len(METHODS) == 10


class TestArcStrength:
    def test_shares_are_counted(self):
        data = random_data(np.random.default_rng(3), 120, [2, 2, 2])
        flips = iter(range(10**6))

        def learner(rows):
            assert rows.n_rows == 120
            arcs = [[("A", "B")], [("B", "A"), ("A", "C")], [("A", "B"), ("B", "A")], []][next(flips) % 4]
            graph = nx.DiGraph(arcs)
            graph.add_nodes_from("ABC")
            return graph

        found = bbn.arc_strength(data, learner, n=8, seed=0)
        assert found.strengths["A", "B"] == found.strengths["B", "A"] == 0.75
        assert found.directions["A", "B"] == found.directions["B", "A"] == 0.5
        assert found.strengths["A", "C"] == 0.25
        assert found.directions["A", "C"] == 1.0
        assert set(found.network(0.5).edges) == {("A", "B")}
        assert set(found.network(0.2).edges) == {("A", "B"), ("A", "C")}
        assert found.network(0.5).edges["A", "B"]["strength"] == 0.75
        assert list(found.to_frame().columns) == ["from", "to", "strength", "direction"]

    def test_strong_dependence_is_sure_and_independence_is_not(self):
        rng = np.random.default_rng(0)
        a, c = rng.integers(2, size=(2, 400))
        b = np.where(rng.random(400) < 0.9, a, 1 - a)
        data = {"A": a.tolist(), "B": b.tolist(), "C": c.tolist()}
        found = bbn.arc_strength(data, bbn.hill_climb, n=40, seed=1)
        assert found.strengths["A", "B"] == 1.0
        assert found.strengths.get(("A", "C"), 0.0) < 0.5
        assert found == bbn.arc_strength(data, "hill-climb", n=40, seed=1)
        assert found == pickle.loads(pickle.dumps(found))
        assert nx.is_directed_acyclic_graph(found.network())

    def test_no_cycle_in_the_average(self):
        data = random_data(np.random.default_rng(3), 50, [2, 2, 2])
        cycle = iter([("A", "B"), ("B", "C"), ("C", "A")] * 4)

        def learner(rows):
            return nx.DiGraph([next(cycle)])

        assert nx.is_directed_acyclic_graph(bbn.arc_strength(data, learner, n=12, seed=0).network(0.1))

    def test_interrupting_keeps_what_was_counted(self):
        data = random_data(np.random.default_rng(3), 50, [2, 2, 2])
        calls = 0

        def learner(rows):
            nonlocal calls
            calls += 1
            if calls == 4:
                raise KeyboardInterrupt
            return nx.DiGraph([("A", "B")])

        found = bbn.arc_strength(data, learner, n=10, seed=0)
        assert (found.n, found.interrupted, found.strengths["A", "B"]) == (3, True, 1.0)


class TestCrossValidate:
    data = sample(bbn.example("asia"), 300, 0)

    def test_the_held_out_likelihood_is_what_it_says(self):
        seen = []

        def learner(rows):
            net = bbn.fit(nx.DiGraph(bbn.example("asia").arcs), rows, bbn.BDeu(1))
            seen.append((rows.n_rows, net))
            return net

        result = bbn.cross_validate(self.data, learner, k=5, seed=3)
        assert [n for n, _ in seen] == [240] * 5
        parts = np.array_split(np.random.default_rng(3).permutation(300), 5)
        for part, (_, net), value in zip(parts, seen, result.folds, strict=True):
            rows = {name: [column[i] for i in part] for name, column in self.data.items()}
            assert value == pytest.approx(np.mean(net.log_likelihood(rows)), rel=1e-12)
        assert result.mean == pytest.approx(np.mean(result.folds))

    def test_a_structure_is_fitted_inside_each_part(self):
        one = bbn.cross_validate(self.data, "chow-liu", k=3, seed=0)
        other = bbn.cross_validate(
            self.data, lambda rows: bbn.fit(bbn.chow_liu(rows), rows, bbn.BDeu(1)), k=3, seed=0
        )
        assert one == other

    def test_dependence_beats_independence(self):
        empty = bbn.cross_validate(
            self.data, lambda rows: nx.empty_graph(list(self.data), nx.DiGraph), k=5, seed=0
        )
        assert bbn.cross_validate(self.data, k=5, seed=0).mean > empty.mean

    def test_classification(self):
        result = bbn.cross_validate(
            self.data, lambda rows: bbn.tan(rows, "either"), k=4, target="either", seed=0
        )
        assert result.loss == "classification"
        assert 0 <= result.mean < 0.05
        assert result == pickle.loads(pickle.dumps(result))

    def test_a_class_of_structures_is_turned_into_a_member(self):
        assert math.isfinite(bbn.cross_validate(self.data, "pc", k=3, seed=0).mean)

    def test_errors(self):
        with pytest.raises(ValueError, match="k is 1"):
            bbn.cross_validate(self.data, k=1)
        with pytest.raises(DataError, match="no column 'eihter'; did you mean 'either'"):
            bbn.cross_validate(self.data, target="eihter")
        with pytest.raises(ValueError, match="unknown learner"):
            bbn.cross_validate(self.data, "best")


@pytest.mark.parametrize(
    "learner",
    [
        lambda rows: bbn.k2(rows, sorted(n for n in (v.name for v in as_source(rows).variables))),
        bbn.hill_climb,
        bbn.chow_liu,
        bbn.pc,
        lambda rows: bbn.tan(rows, "either"),
    ],
)
class TestEveryLearner:
    data = sample(bbn.example("asia"), 300, 1)

    def test_all_kinds_of_tables_give_the_same(self, learner):
        import pandas as pd

        frame = pd.DataFrame(self.data)
        assert (
            set(learner(frame).edges) == set(learner(self.data).edges) == set(learner(as_source(frame)).edges)
        )

    def test_any_source_that_answers_two_calls_will_do(self, learner):
        class Halves:
            """Two tables that add up, as files or workers would."""

            def __init__(self, data):
                table = as_source(data)
                states = {v.name: v.states for v in table.variables}
                self.parts = [
                    as_source({name: column[half] for name, column in data.items()}, states=states)
                    for half in (slice(0, 100), slice(100, None))
                ]
                self.variables = table.variables
                self.n_rows = table.n_rows
                self.total = table.total
                self.incomplete = ()

            def counts(self, families):
                return [a + b for a, b in zip(*(part.counts(families) for part in self.parts), strict=True)]

            def reduce(self, f):
                return [a + b for a, b in zip(*(part.reduce(f) for part in self.parts), strict=True)]

        assert set(learner(Halves(self.data)).edges) == set(learner(self.data).edges)

    def test_nodes_carry_their_states(self, learner):
        graph = learner(self.data)
        assert graph.nodes["smoke"]["states"] == ("no", "yes")
        assert set(graph) == set(self.data)

    def test_missing_values_are_refused_with_the_way_out(self, learner):
        with pytest.raises(DataError, match="structural_em"):
            learner(with_holes(self.data, 0.1, 0))

    def test_no_rows_are_refused(self, learner):
        with pytest.raises(DataError):
            learner({name: [] for name in self.data})
