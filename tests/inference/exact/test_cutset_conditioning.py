"""Questions answered case by case, where their plan does not fit the memory: as those of the plan that does."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import filtered_query, query_compiler
from bbn.inference.exact.cutset_conditioning import together
from bbn.inference.exact.problem import Answer
from tests.support import sparse_models
from tests.support.pedigrees import pedigree, phenotypes

pytestmark = pytest.mark.skipif(
    not kernels.COMPILED, reason="cases come of filtered domains, by compiled kernels"
)


@pytest.fixture
def small(monkeypatch):
    """Leave states out whatever the size."""
    monkeypatch.setattr(query_compiler, "FILTERED", -1.0)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    for module in (query_compiler, filtered_query):
        monkeypatch.setattr(module, "making", lambda model: -1e-9)
    monkeypatch.setattr(filtered_query, "GAIN", -1e9)


def fitting(monkeypatch, size):
    """Let plans of no more bytes than these fit the memory, and others too once there is nothing to tell apart."""
    monkeypatch.setattr(filtered_query.Means, "fit", lambda self, needed: needed <= size)


def counted(monkeypatch):
    """How many variables were taken case by case."""
    found = []
    choose = filtered_query.case_variable
    monkeypatch.setattr(
        filtered_query, "case_variable", lambda *given: found.append(choose(*given)) or found[-1]
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
    fitting(monkeypatch, 6000)
    answers = bbn.JunctionTree(net).posteriors(case)
    assert len(found) > 1
    pair = [name for name in net.names if name not in case][1:6:4]
    joint = bbn.JunctionTree(net).query(pair, case)
    fitting(monkeypatch, math.inf)
    apart = bbn.JunctionTree(net).posteriors(case)
    truth = whole.query(pair, case)
    assert answers.log_evidence == pytest.approx(apart.log_evidence, abs=1e-10)
    assert answers.log_evidence == pytest.approx(truth.log_evidence, abs=1e-10)
    np.testing.assert_allclose(joint.values, truth.values, atol=1e-10)
    for name, answer in answers.items():
        np.testing.assert_allclose(answer.values, apart[name].values, atol=1e-10)
    for name in pair:
        np.testing.assert_allclose(answers[name].values, whole.query(name, case).values, atol=1e-10)


LIMITS = (50, 150, 300, 600, 1200)
"""Bytes beside the model's tables: most of these random models do not fit the first."""


def every_question_within(limit, net, found):
    """What each kind of question says within a memory limit, by what the joint says; how many were not refused."""
    joint = sparse_models.weights(net, found)
    total = joint.sum()
    log_total = math.log(total) if total > 0 else -math.inf
    names = [v.name for v in net.variables]
    engine = bbn.JunctionTree(net, memory_limit=limit)
    free = [name for name in names if not isinstance(found.get(name), str)]
    answered = 0

    def asked(question):
        nonlocal answered
        for _ in range(3):  # the third time goes the short way
            try:
                answer = question()
            except bbn.BudgetError:
                return None
            except bbn.ImpossibleEvidenceError:
                assert total == 0
                answer = None
            answered += 1
        assert answer is None or answer == -math.inf or total > 0
        return answer

    def of(*kept):
        axes = tuple(i for i, name in enumerate(names) if name not in kept)
        return joint.sum(axis=axes) / total

    def weight(states):
        return joint[tuple(net.variable(n).code(states.get(n, found.get(n))) for n in names)]

    log = asked(lambda: engine.log_evidence(found))
    if log is not None:
        assert log == (pytest.approx(log_total, abs=1e-9) if total > 0 else -math.inf)
    for target in free[:3]:
        answer = asked(lambda target=target: engine.query(target, found))
        if answer is not None:
            assert answer.log_evidence == pytest.approx(log_total, abs=1e-9)
            np.testing.assert_allclose(answer.values, of(target), atol=1e-9)
    answers = asked(lambda: engine.posteriors(found))
    if answers is not None:
        assert answers.log_evidence == pytest.approx(log_total, abs=1e-9)
        for name, answer in answers.items():
            np.testing.assert_allclose(answer.values, of(name), atol=1e-9)
    highest = np.sort(joint.ravel())[::-1]
    for k in (1, 5):
        best = asked(lambda k=k: engine.mpe(found, k=k))
        if best is not None:
            own = [each.log_probability for each in best]
            ranked = highest[: min(k, np.count_nonzero(joint))]
            np.testing.assert_allclose(own, np.log(ranked), atol=1e-9)
            np.testing.assert_allclose([weight(each.states) for each in best], ranked, rtol=1e-9)
            assert len({tuple(each.states.items()) for each in best}) == len(best)
    pair = free[-2:]
    chosen = asked(lambda: engine.map(pair, found)) if pair else None
    if chosen is not None:
        assert chosen.log_probability == pytest.approx(math.log(of(*pair).max()) + log_total, abs=1e-9)
    return answered


def every_model_within_each_limit(seeds, monkeypatch):
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    found, answered = counted(monkeypatch), 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        net = sparse_models.model(rng)
        findings = sparse_models.evidence(rng, net)
        tables = 8 * sum(factor.values.size for factor in net.factors())
        for more in LIMITS:
            answered += every_question_within(tables + more, net, findings)
    assert answered > 20 * len(seeds)
    assert len(found) > 5 * len(seeds)


@pytest.mark.parametrize("part", range(4))
def test_whatever_fits_a_small_memory_is_what_the_joint_says(part, monkeypatch):
    every_model_within_each_limit(range(10 * part, 10 * part + 10), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_two_thousand_models_within_a_small_memory_say_what_the_joint_says(part, monkeypatch):
    every_model_within_each_limit(range(1000 + 100 * part, 1100 + 100 * part), monkeypatch)


def test_a_question_that_needs_too_many_cases_is_refused(small, monkeypatch):
    net = pedigree(8, 2, 1, alleles=2, founders=3)
    (case,) = phenotypes(net, 0.5, 1)
    monkeypatch.setattr(filtered_query, "CASES", 1e-8)
    fitting(monkeypatch, 6000)
    found = counted(monkeypatch)
    with pytest.raises(bbn.BudgetError):
        bbn.JunctionTree(net, memory_limit="20kB").posteriors(case)
    assert len(found) == 1


def test_weights_of_cases_are_far_below_the_range_of_a_double():
    def case(log, values):
        return Answer(np.array(values), log)

    several = [
        case(-math.inf, [0.0, 0.0]),
        case(-2000.0, [1.0, 0.0]),
        case(-2000.0 + math.log(3), [0.0, 1.0]),
    ]
    several.append(case(-math.inf, [0.0, 0.0]))
    answer = together(several, 1)
    assert answer.log == pytest.approx(-2000 + math.log(4), abs=1e-12)
    np.testing.assert_allclose(answer.values, [0.25, 0.75], atol=1e-12)
    assert together([case(-math.inf, [0.0])], 1).log == -math.inf


@pytest.mark.parametrize("kind", ["posteriors", "mpe"])
def test_a_larger_memory_limit_refuses_nothing_that_a_smaller_one_answers(kind):
    """Also where the cells of the whole tree fit the limit and its plan does not."""
    net = bbn.example("diabetes")
    row = net.sample(1, seed=3).iloc[0]
    found = {name: row[name] for name in net.names if not net.children(name)}
    whole = getattr(net, kind)(found)
    for limit in ("60 MB", "90 MB", "100 MB", "110 MB", "150 MB"):
        answer = getattr(bbn.example("diabetes"), kind)(found, memory_limit=limit)
        if kind == "mpe":
            assert answer.log_probability == pytest.approx(whole.log_probability, abs=1e-9)
        else:
            assert answer.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
            for name, posterior in answer.items():
                np.testing.assert_allclose(posterior.values, whole[name].values, atol=1e-9)
