"""Elimination knows how large its products will be before it makes one, and large ones go by in pieces."""

from __future__ import annotations

import math

import pytest

import bbn
from bbn.inference.exact import elimination
from bbn.kernels import logarithms
from bbn.kernels.watch import watched_by
from tests.inference.exact.test_time_limits import NET
from tests.learning.structure.test_stopped_searches import STOPS, StopAt


def test_what_does_not_fit_is_refused_before_anything_is_multiplied(monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("something was eliminated")

    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(100)]
    rule = bbn.Deterministic(bbn.Variable("Y", ["yes", "no"]), causes, "at-least", at_least=20)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.1, 0.9]) for v in causes), rule])
    monkeypatch.setattr(elimination, "eliminate", never)
    with pytest.raises(bbn.BudgetError, match="elimination's product over"):
        net.mpe({"Y": "yes"}, method="elimination")
    with pytest.raises(bbn.BudgetError, match="elimination's copies of the tables"):
        net.query("C3", {"Y": "yes"}, method="elimination", memory_limit=1000)


@pytest.mark.parametrize("method", ["elimination", "enumeration"])
def test_large_products_go_by_in_pieces(monkeypatch, method):
    evidence = {"xray": "yes", "asia": bbn.Virtual({"yes": 0.9, "no": 0.2})}
    expected = NET.posteriors(evidence)
    best = NET.mpe(evidence)
    n_before = _asks(lambda: NET.query("lung", evidence, method=method))
    monkeypatch.setattr(logarithms, "PIECE", 4)
    assert _asks(lambda: NET.query("lung", evidence, method=method)) > n_before
    for name in ("lung", "smoke", "asia"):
        found = NET.query(name, evidence, method=method)
        assert math.isclose(found["yes"], expected[name]["yes"], abs_tol=1e-12)
    assert NET.mpe(evidence, method=method).states == best.states


def _asks(question):
    """How often a question asks whether to go on."""
    watch = StopAt(10**9, STOPS["Ctrl-C"])
    with watched_by(watch):
        question()
    return 10**9 - watch.left
