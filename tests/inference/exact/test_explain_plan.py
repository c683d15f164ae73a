"""What explain_plan says against what the engine does: its cells, its bytes, its passes, and that it runs nothing."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import bbn
from bbn.inference.exact import executor, explain_plan
from tests.support import sparse_models


@pytest.fixture
def leaves():
    """The water network and a case of its eight leaves."""
    net = bbn.example("water")
    row = net.sample(1, seed=0).iloc[0]
    return net, {name: row[name] for name in net.names if not net.children(name)}


def test_states_that_cannot_occur_are_counted(leaves):
    net, seen = leaves
    report = net.explain_plan(None, seen, "mpe", budget=bbn.Budget(bytes="10 MB"))
    by_name = {one.name: one for one in report.passes}
    assert by_name["barren leaves"].cells is None
    assert "maximum" in by_name["barren leaves"].note
    filtered = by_name["domain filtering"]
    joint = net.posteriors(seen)
    possible = sum(int((joint[name].values > 0).sum()) for name in joint)
    assert (
        possible <= filtered.states[1] < filtered.states[0] == sum(net.variable(name).card for name in joint)
    )
    assert filtered.cells[1] * 100 < filtered.cells[0]
    assert report.plan.bytes < 10e6 < report.rejected[0].bytes
    assert "over the limit" in report.rejected[0].note
    assert report.actual is None


def test_a_plan_is_run_only_where_that_is_asked_for(leaves, monkeypatch):
    net, seen = leaves
    programs = []
    make = executor.Executor._make
    monkeypatch.setattr(executor.Executor, "_make", lambda self: programs.append(self) or make(self))
    net.explain_plan(net.names[0], seen)
    assert not programs
    report = net.explain_plan(net.names[0], seen, run=True)
    assert len(programs) == 1
    assert 0 < report.actual.run < 60
    assert report.actual.bytes == report.plan.bytes


def test_the_cells_are_those_of_the_tree():
    for name in ("asia", "alarm", "barley", "pigs"):
        net = bbn.example(name)
        report = net.explain_plan(budget=bbn.Budget(bytes="20 GB"))
        assert report.plan.cells == bbn.JunctionTree(net).stats().total_cells
        assert report.question.startswith("posteriors of")


@pytest.mark.parametrize("kind", explain_plan.KINDS)
def test_every_kind_on_random_models(kind):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        net = sparse_models.model(rng)
        found = {
            name: value for name, value in sparse_models.evidence(rng, net).items() if isinstance(value, str)
        }
        targets = (
            [v.name for v in net.variables if v.name not in found][:2] if kind in ("query", "map") else None
        )
        possible = sparse_models.weights(net, found).any()
        try:
            report = net.explain_plan(targets, found, kind, run=possible)
        except bbn.ImpossibleEvidenceError:
            assert not possible
            continue
        assert kind in report.question
        json.dumps(report.to_dict())
        assert pickle.loads(pickle.dumps(report)) == report
        assert {one.name for one in report.passes} >= {
            "evidence slicing",
            "barren leaves",
            "domain filtering",
        }
        assert str(report).splitlines()[0] == report.question


def test_mistakes_are_named():
    net = bbn.example("asia")
    with pytest.raises(bbn.EvidenceError, match="did you mean 'posteriors'"):
        net.explain_plan(kind="posterior")
    with pytest.raises(bbn.EvidenceError, match="no variable 'lungs'"):
        net.explain_plan("lungs")


def test_a_budget_is_a_memory_limit_and_a_time_limit():
    net = bbn.example("barley")
    with pytest.raises(bbn.BudgetError, match="limit of 1 MB"):
        net.posteriors(budget=bbn.Budget(bytes="1 MB"))
    with pytest.raises(TypeError, match="say it once"):
        net.query("aks_vgt", budget=bbn.Budget(bytes="1 GB"), memory_limit="1 GB")
    with pytest.raises(TypeError, match=r"bbn\.Budget"):
        net.query("aks_vgt", budget="1 GB")
    for wrong in ({"seconds": 0}, {"seconds": "3"}, {"bytes": "much"}, {"runs": -1}, {"exact": "bounds"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            bbn.Budget(**wrong)
    rough = net.query(
        "aks_vgt", method="likelihood-weighting", n_samples=100, seed=0, budget=bbn.Budget(seconds=60)
    )
    assert rough.sampling.n_samples == 100
    budget = bbn.Budget(seconds=9, bytes="2 GB", runs=100)
    assert budget == pickle.loads(pickle.dumps(budget))
    engine = bbn.JunctionTree(bbn.example("asia"), budget=budget)
    assert engine.time_limit == 9
    assert engine.query("lung") == bbn.example("asia").query("lung")
