"""What all structure learners share: the tables that they take, and the errors that they give."""

from __future__ import annotations

import pytest

import bbn
from bbn.core.errors import DataError
from bbn.data import as_source
from tests.support.learning_data import sample, with_holes


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
