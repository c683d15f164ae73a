"""Sampling on networks of many causes: intervals that hold, or an answer that says that they may not."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest

import bbn
from bbn.inference.sampling.draws import compile_seen
from bbn.kernels.contracts.moves import Moves
from bbn.kernels.contracts.seen import Seen
from tests.kernels.test_twins import twins
from tests.support.diagnoses import diagnosis, quickscore

METHODS = ["importance", "likelihood-weighting", "gibbs"]


def coverage(method: str, seeds: range, n_samples: int = 20_000) -> tuple[int, int, int, float]:
    """Answers without warning, those of them within two standard errors, all answers, the worst error so claimed."""
    claimed = within = asked = 0
    worst = 0.0
    for seed in seeds:
        net, evidence = diagnosis(seed)
        truth, whole = quickscore(net, evidence)
        if whole <= 0:
            continue
        asked += len(truth)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answers = net.posteriors(evidence, method=method, n_samples=n_samples, seed=seed)
        told = any("zeros" not in str(warning.message) for warning in caught)
        assert answers.sampling.reliable != told, seed
        if told:
            continue
        claimed += len(truth)
        for name, exact in truth.items():
            off = abs(answers[name]["yes"] - exact)
            within += off <= 2 * answers[name].std_error[0]
            worst = max(worst, off)
    return claimed, within, asked, worst


def test_quickscore_is_the_exact_engine():
    for seed in (4, 5, 7):
        net, evidence = diagnosis(seed)
        truth, whole = quickscore(net, evidence)
        exact = net.posteriors(evidence)
        assert exact.log_evidence == pytest.approx(math.log(whole), abs=1e-8)
        assert [exact[name]["yes"] for name in truth] == pytest.approx(list(truth.values()), abs=1e-9)


def test_importance_sampling_needs_no_warning_and_its_errors_hold():
    claimed, within, asked, worst = coverage("importance", range(8), 10_000)
    assert claimed > 0.9 * asked
    assert within > 0.93 * claimed
    assert worst < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_errors_that_are_claimed_hold(method):
    claimed, within, asked, _ = coverage(method, range(60 if method == "gibbs" else 200))
    assert within >= 0.93 * claimed
    if method == "importance":
        assert claimed > 0.95 * asked


@pytest.mark.parametrize("method", METHODS[:2])
@pytest.mark.parametrize("seed", range(6))
def test_maxima_of_several_states_with_other_evidence_are_right(method, seed):
    rng = np.random.default_rng(seed)
    root = bbn.Variable("R", ["a", "b", "c"])
    causes = [bbn.Variable(f"X{i}", [f"s{k}" for k in range(2 + i % 2)]) for i in range(6)]
    parts = [bbn.CPT(root, table=rng.dirichlet(np.ones(3)))]
    parts += [bbn.CPT(v, [root], rng.dirichlet(np.ones(v.card), 3)) for v in causes]
    for j in range(4):
        own = [causes[i] for i in rng.permutation(6)[: 2 + j]]
        child = bbn.Variable(f"Y{j}", ["none", "some", "much"])
        links = [rng.dirichlet(np.ones(3), v.card) for v in own]
        parts.append(bbn.NoisyMax(child, own, links, rng.dirichlet(np.ones(3)), strongest="much"))
    below = bbn.Variable("Z", [0, 1])
    parts.append(
        bbn.CPT(
            below, [causes[0], bbn.Variable("Y3", ["none", "some", "much"])], rng.dirichlet([1, 1], (2, 3))
        )
    )
    net = bbn.BayesianNetwork(parts)
    level = ["none", "some", "much"]
    evidence = {f"Y{j}": level[int(rng.integers(3))] for j in range(4)} | {"Z": 1}
    evidence["X1"] = bbn.Virtual({"s0": 0.9, "s1": 0.4, "s2": 0.2})
    exact = net.posteriors(evidence, method="enumeration")
    answers = net.posteriors(evidence, method=method, n_samples=60_000, seed=seed)
    for name in exact:
        assert (np.abs(answers[name].values - exact[name].values) < 5 * answers[name].std_error).all(), name
    assert answers.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)


def test_findings_that_cannot_be_are_impossible():
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(3)]
    finding = bbn.NoisyOr(bbn.Variable("F", ["yes", "no"]), causes, [0.5] * 3, leak=0.0)
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.1, 0.9]) for v in causes), finding])
    for method in METHODS[:2]:
        with pytest.raises(bbn.ImpossibleEvidenceError):
            net.query(
                "C2", {"F": "yes", "C0": "no", "C1": "no", "C2": bbn.OneOf("no")}, method=method, seed=1
            )
        p = net.query("C2", {"F": "yes", "C0": "no", "C1": "no"}, method=method, seed=1)
        assert p["yes"] == 1


@pytest.mark.skipif(len(twins("sample")) < 2, reason="the kernels are not compiled")
@pytest.mark.parametrize("seed", range(8))
def test_twins_look_at_what_is_left_alike(seed, monkeypatch):
    taken: list[tuple[Moves, Seen]] = []

    def noted(draws, hope):
        from bbn.inference.sampling.draws import compile_draws

        taken.append((compile_draws(draws), compile_seen(draws, hope)))
        return taken[-1][1]

    monkeypatch.setattr("bbn.inference.sampling.weighted.compile_seen", noted)
    net, evidence = diagnosis(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.posteriors(evidence, method=METHODS[seed % 2], n_samples=100, seed=1)
    moves, seen = taken[-1]
    found = []
    for kernel in twins("sample"):
        codes, log_weight = np.zeros((int(moves.member.max()) + 1, 1500), np.uint8), np.zeros(1500)
        with np.errstate(divide="ignore"):
            kernel.forward(np.random.SFC64(seed), moves, codes, log_weight, seen)
        found.append((codes, log_weight))
    assert (found[0][0] == found[1][0]).all()
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9, atol=1e-9)


def test_a_refusal_names_a_method_that_works():
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(40)]
    rng = np.random.default_rng(0)
    findings = [
        bbn.NoisyOr(
            bbn.Variable(f"F{j}", ["yes", "no"]),
            [causes[i] for i in rng.choice(40, 12, replace=False)],
            rng.uniform(0.1, 0.9, 12).tolist(),
            leak=0.01,
        )
        for j in range(11)
    ]
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.05, 0.95]) for v in causes), *findings])
    evidence = {f"F{j}": "yes" for j in range(11)}
    with pytest.raises(bbn.BudgetError, match='method="importance" answers with standard errors of at most'):
        net.query("C0", evidence, memory_limit="10 MB")
    with pytest.raises(bbn.BudgetError, match="pilot run"):
        net.posteriors(evidence, memory_limit="10 MB")


def test_a_refusal_says_of_each_method_why_it_is_no_way_out():
    """A limit that no sampler keeps to is not blamed on the samplers, and each needs what it says it needs."""
    rng = np.random.default_rng(4)
    causes = [bbn.Variable(f"C{i}", ["yes", "no"]) for i in range(14)]
    table = rng.dirichlet([1, 1], (2,) * 14)
    net = bbn.BayesianNetwork(
        [
            *(bbn.CPT(v, table=[0.3, 0.7]) for v in causes),
            bbn.CPT(bbn.Variable("F", ["yes", "no"]), causes, table),
        ]
    )
    with pytest.raises(bbn.BudgetError, match="no sampling method answered it in a pilot run") as caught:
        net.query("C0", {"F": "yes"}, memory_limit="250 kB")
    told = dict(
        re.findall(r"(importance|gibbs|likelihood-weighting) needs ([\d.]+ [kM]?B)", str(caught.value))
    )
    assert set(told) == {"importance", "gibbs", "likelihood-weighting"}
    for method, size in told.items():
        number, unit = size.split()
        less = f"{0.9 * float(number):.3f} {unit}"
        with pytest.raises(bbn.BudgetError):
            net.query("C0", {"F": "yes"}, method=method, n_samples=2000, memory_limit=less)
