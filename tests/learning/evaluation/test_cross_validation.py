"""Cross-validation against the likelihood of held-out rows."""

from __future__ import annotations

import math
import pickle

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError
from tests.support.learning_data import sample


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
