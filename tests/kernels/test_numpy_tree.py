"""The junction tree in numpy, in place of the compiled kernels: all kinds of questions against exact fractions."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.core.errors import BudgetError, ImpossibleEvidenceError, ModelError
from tests.inference.exact.test_range import close, naive_bayes, random_evidence, tiny_network
from tests.support import exact_truth as truth


@pytest.fixture(autouse=True)
def in_numpy(monkeypatch):
    """No kernel of planner or interpreter is there."""
    monkeypatch.setattr(kernels, "COMPILED", False)
    for name in kernels.COMPILED_ONLY:
        monkeypatch.setattr(kernels, name, None, raising=False)


def plain_network(rng: np.random.Generator) -> bbn.BayesianNetwork:
    """Five to eight variables of one to three states; a fifth of the entries are zero."""
    variables = [
        bbn.Variable(f"V{i}", [f"s{k}" for k in range(rng.choice([1, 2, 2, 3]))])
        for i in range(rng.integers(5, 9))
    ]
    conditionals = []
    for i, v in enumerate(variables):
        parents = [variables[int(p)] for p in rng.permutation(i)[: int(rng.integers(0, min(i, 3) + 1))]]
        rows = rng.random((math.prod(p.card for p in parents), v.card))
        rows[rng.random(rows.shape) < 0.2] = 0.0
        rows[rows.sum(axis=1) == 0, 0] = 1.0
        rows /= rows.sum(axis=1, keepdims=True)
        conditionals.append(bbn.CPT(v, parents, rows.reshape([*(p.card for p in parents), v.card])))
    return bbn.BayesianNetwork(conditionals)


def joint_of(whole: dict[tuple[int, ...], Fraction], axes: list[int], cards: list[int]) -> np.ndarray:
    """The normalised joint of some axes."""
    sums: dict[tuple[int, ...], Fraction] = {}
    for codes, weight in whole.items():
        key = tuple(codes[axis] for axis in axes)
        sums[key] = sums.get(key, Fraction(0)) + weight
    total = sum(sums.values(), Fraction(0))
    found = np.zeros(cards)
    for key, weight in sums.items():
        found[key] = float(weight / total)
    return found


@pytest.mark.parametrize("made", [plain_network, tiny_network])
@pytest.mark.parametrize("seed", range(15))
def test_every_kind_of_question_is_answered_as_enumeration_does(seed: int, made: Any) -> None:
    rng = np.random.default_rng(4000 + seed)
    answered = impossible = 0
    for _ in range(6):
        net = made(rng)
        evidence = random_evidence(rng, net, float(rng.choice([0.0, 0.3, 0.6])))
        whole = truth.weights(net, evidence)
        engine = bbn.JunctionTree(net)
        if not whole:
            impossible += 1
            assert engine.log_evidence(evidence) == -math.inf
            for ask in (engine.posteriors, engine.mpe):
                with pytest.raises(ImpossibleEvidenceError):
                    ask(evidence)
            continue
        answered += 1
        log_evidence = truth.log(truth.total(whole))
        free = [(i, v) for i, v in enumerate(net.variables) if not isinstance(evidence.get(v.name), str)]
        everything = engine.posteriors(evidence)
        assert everything.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-9)
        for i, v in free:
            close(everything[v.name].values, truth.marginal(whole, i, v.card))
        if free:
            some = [free[int(k)] for k in rng.permutation(len(free))[: int(rng.integers(1, 4))]]
            names, axes = [v.name for _, v in some], [i for i, _ in some]
            exact = joint_of(whole, axes, [v.card for _, v in some])
            answer = engine.query(names, evidence)
            close(answer.values, exact)
            assert answer.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-9)
            best = engine.map(names, evidence).states
            assert exact[tuple(v.code(best[v.name]) for _, v in some)] == pytest.approx(exact.max(), rel=1e-9)
        ranked = sorted((truth.log(w) for w in whole.values()), reverse=True)[:12]
        found = engine.mpe(evidence, k=12)
        assert [one.log_probability for one in found] == pytest.approx(ranked, rel=1e-10, abs=1e-9)
        assert len({tuple(sorted(one.states.items())) for one in found}) == len(found)
        for one in found:
            codes = tuple(v.code(one.states.get(v.name, evidence.get(v.name))) for v in net.variables)
            assert truth.log(whole[codes]) == pytest.approx(one.log_probability, rel=1e-10, abs=1e-9)
    assert answered >= 1
    assert answered + impossible == 6


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_expected_counts_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(4100 + seed)
    net = plain_network(rng)
    target = net.variables[-1]
    drawn = net.sample(40, seed=seed).astype(object)
    drawn[rng.random(drawn.shape) < 0.3] = None
    logs, beliefs = net.log_likelihood(drawn), net.predict_proba(drawn, target.name)
    slopes = bbn.gradient(net, drawn)
    counts = {name: np.zeros(net[name].table.shape) for name in net.names}
    for k, row in enumerate(drawn.to_dict("records")):
        seen = {name: state for name, state in row.items() if isinstance(state, str)}
        whole = truth.weights(net, seen)
        assert float(logs[k]) == pytest.approx(truth.log(truth.total(whole)), abs=1e-10)
        for i, name in enumerate(net.names):
            family = [*(net.names.index(p) for p in net.parents(name)), i]
            counts[name] += joint_of(whole, family, list(net[name].table.shape))
        others = {name: state for name, state in seen.items() if name != target.name}
        close(
            [beliefs[state][k] for state in target.states],
            truth.marginal(truth.weights(net, others), len(net.names) - 1, target.card),
        )
    for name in net.names:
        np.testing.assert_allclose(slopes[name] * net[name].table, counts[name], rtol=1e-9, atol=1e-12)


def test_ten_thousand_observations_neither_underflow_nor_overflow() -> None:
    n, p = 10_000, 0.01
    net = naive_bayes(n, p)
    evidence = {f"X{i}": "t" for i in range(n)}
    answer = bbn.JunctionTree(net).query("A", evidence)
    ratio = n * math.log1p(0.1)
    assert answer.log_evidence == pytest.approx(n * math.log(p) + ratio + math.log(0.5), rel=1e-12)
    assert answer["a"] == pytest.approx(math.exp(-ratio), rel=1e-9, abs=1e-300)
    half = {f"X{i}": bbn.Virtual({"t": 1e300, "f": 1e300}) for i in range(200)}
    assert bbn.JunctionTree(naive_bayes(200, 0.3)).posteriors(half)["A"]["a"] == pytest.approx(0.5, abs=1e-12)


def test_factors_of_any_scale_overflow_nothing() -> None:
    a, b = bbn.Variable("a", range(2)), bbn.Variable("b", range(2))
    tables = [[[1e300, 2e300], [3e300, 4e300]], [[1e-300, 1e-300], [1e300, 5e299]]]
    graph = bbn.FactorGraph([bbn.Factor([a, b], np.array(t)) for t in tables * 3])
    weight = np.array([[0.0, 0.0], [3.0**3, 2.0**3]])  # the first row is 1e1800 times smaller
    answers = bbn.JunctionTree(graph).posteriors()
    assert answers["b"].values == pytest.approx(weight[1] / weight[1].sum(), rel=1e-12)
    assert answers.log_evidence == pytest.approx(1800 * math.log(10) + math.log(weight.sum()), rel=1e-13)


@pytest.mark.parametrize("seen", [None, bbn.Virtual({0: 0.25, 1: 1.0})])
def test_what_is_taken_out_of_many_constant_factors_is_counted(seen: Any) -> None:
    a = bbn.Variable("a", range(2))
    graph = bbn.FactorGraph([bbn.Factor([a], np.array([0.01, 0.02]))] * 20)
    engine, evidence = bbn.JunctionTree(graph), {} if seen is None else {"a": seen}
    weights = Fraction(1, 100) ** 20 * (1 if seen is None else Fraction(1, 4)), Fraction(2, 100) ** 20
    assert engine.log_evidence(evidence) == pytest.approx(truth.log(sum(weights, Fraction(0))), rel=1e-13)
    found = engine.query("a", evidence)
    assert found[0] == pytest.approx(float(weights[0] / (weights[0] + weights[1])), rel=1e-12)


def test_states_that_tie_come_first_come_first() -> None:
    coins = [bbn.CPT(bbn.Variable(f"C{i}", ["x", "y"]), [], [0.5, 0.5]) for i in range(3)]
    found = bbn.JunctionTree(bbn.BayesianNetwork(coins)).mpe(k=8)
    assert found[0].states == dict.fromkeys(["C0", "C1", "C2"], "x")
    assert len({tuple(one.states.values()) for one in found}) == 8
    assert [one.log_probability for one in found] == pytest.approx([math.log(1 / 8)] * 8)


def test_threads_ask_one_tree() -> None:
    net = bbn.example("alarm")
    engine, cases = bbn.JunctionTree(net), net.sample(30, seed=0)[list(net.names[::4])].to_dict("records")
    alone = [bbn.JunctionTree(net).posteriors(case).log_evidence for case in cases]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda case: engine.posteriors(case).log_evidence, cases))
    assert together == alone


def test_what_does_not_fit_is_refused_and_a_page_needs_the_tapes() -> None:
    net = bbn.example("water")
    with pytest.raises(BudgetError, match="junction tree"):
        bbn.JunctionTree(net, memory_limit="10 MB").posteriors()
    with pytest.raises(ModelError, match="compiled kernels"):
        bbn.example("asia").export_html("never.html")
