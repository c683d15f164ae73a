"""Questions answered case by case, where their plan does not fit the memory: as those of the plan that does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn.inference.exact import cases, plan_choice, pruning
from tests.support.pedigrees import pedigree, phenotypes


@pytest.fixture
def small(monkeypatch):
    """Leave states out whatever the size, and let any plan of over 300 cells be too large until cases are taken."""
    monkeypatch.setattr(plan_choice, "CELLS", -1.0)
    monkeypatch.setattr(plan_choice, "MASKED_CELLS", -1.0)
    monkeypatch.setattr(plan_choice, "making", lambda model: -1.0)
    monkeypatch.setattr(plan_choice, "HUGE", 300.0)
    monkeypatch.setattr(pruning.Pruning, "pays", lambda self, whole, pruned: True)


def counted(monkeypatch):
    """How many variables were taken case by case."""
    found = []
    choose = plan_choice.case_variable
    monkeypatch.setattr(
        plan_choice, "case_variable", lambda *given: found.append(choose(*given)) or found[-1]
    )
    return found


@pytest.mark.parametrize("seed", range(6))
def test_cases_together_give_the_answers_of_one_plan(seed, small, monkeypatch):
    net = pedigree(8, 2, seed, alleles=2 + seed % 2, founders=3)
    (case,) = phenotypes(net, 0.5, seed)
    if seed % 3 == 2:
        allele = net.variable("G5p.0")
        case["G5p.0"] = bbn.Virtual({state: 0.3 + k for k, state in enumerate(allele.states)})
    whole = bbn.VariableElimination(net)
    found = counted(monkeypatch)
    monkeypatch.setattr(plan_choice, "memory_limit", lambda given: -1)
    answers = bbn.JunctionTree(net).posteriors(case)
    assert len(found) > 1
    pair = [name for name in net.names if name not in case][1:6:4]
    joint = bbn.JunctionTree(net).query(pair, case)
    monkeypatch.setattr(plan_choice, "memory_limit", lambda given: math.inf)
    monkeypatch.setattr(plan_choice, "HUGE", math.inf)
    apart = bbn.JunctionTree(net).posteriors(case)
    truth = whole.query(pair, case)
    assert answers.log_evidence == pytest.approx(apart.log_evidence, abs=1e-10)
    assert answers.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    np.testing.assert_allclose(joint.values, truth.values, atol=1e-10)
    for name, answer in answers.items():
        np.testing.assert_allclose(answer.values, apart[name].values, atol=1e-10)
    for name in pair:
        np.testing.assert_allclose(answers[name].values, whole.query(name, case).values, atol=1e-10)


def test_a_question_that_needs_too_many_cases_is_refused(small, monkeypatch):
    net = pedigree(8, 2, 1, alleles=2, founders=3)
    (case,) = phenotypes(net, 0.5, 1)
    monkeypatch.setattr(plan_choice, "BEARABLE", 10.0)
    monkeypatch.setattr(plan_choice, "memory_limit", lambda given: -1)
    found = counted(monkeypatch)
    with pytest.raises(bbn.BudgetError):
        bbn.JunctionTree(net, memory_limit="20kB").posteriors(case)
    assert len(found) == 1


def test_weights_of_cases_are_far_below_the_range_of_a_double():
    class Case:
        def __init__(self, log_evidence, values):
            self.log_evidence, self.values = log_evidence, np.array(values)

        def marginals(self):
            return self.values

    several = [
        Case(-math.inf, [0.0, 0.0]),
        Case(-2000.0, [1.0, 0.0]),
        Case(-2000.0 + math.log(3), [0.0, 1.0]),
    ]
    several.append(Case(-math.inf, [0.0, 0.0]))
    answer = cases.together(several, lambda case: case.marginals())
    assert answer.log_evidence == pytest.approx(-2000 + math.log(4), abs=1e-12)
    np.testing.assert_allclose(answer.values, [0.25, 0.75], atol=1e-12)
    assert cases.together([Case(-math.inf, [0.0])], lambda case: case.marginals()).log_evidence == -math.inf
