"""Learning in one call: the four problems, and what the report says."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError
from bbn.learning.learn import METHODS
from tests.support.learning_data import random_data, with_holes


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
        result = bbn.learn(rows, prior=bbn.BDeu(1))
        assert result.method == "structural-em"
        found = bbn.structural_em(rows).network
        assert set(result.network.arcs) == set(found.arcs)
        smooth = bbn.fit_em(found, rows, prior=bbn.BDeu(1), max_iter=100).network
        for name in found.names:
            np.testing.assert_allclose(result.network[name].table, smooth[name].table)

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
        assert len(METHODS) == 12
