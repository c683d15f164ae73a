"""Probabilities of any size: no product is too small for an answer, and none is wrong in silence.

Tables have entries down to 1e-300 and evidence asks for many of them at once, so that weights lie far below the range
of a double. The truth is in exact fractions.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import bbn
from tests.support import exact_truth as truth

NETWORKS = int(os.environ.get("BBN_RANGE_NETWORKS", "60"))
"""Networks of each of the random tests below, times ten seeds."""
SEEDS = range(10)


def tiny_network(rng: np.random.Generator) -> bbn.BayesianNetwork:
    """A small network; all but one entry of each row are small, by up to 300 orders of magnitude, or 0."""
    variables = [
        bbn.Variable(f"V{i}", [f"s{k}" for k in range(rng.choice([1, 2, 2, 2, 3]))])
        for i in range(rng.integers(4, 9))
    ]
    conditionals = []
    for i, v in enumerate(variables):
        parents = [variables[int(p)] for p in rng.permutation(i)[: int(rng.integers(0, min(i, 3) + 1))]]
        shape = [*(p.card for p in parents), v.card]
        rows = 10.0 ** -rng.uniform(0, rng.choice([2.0, 300.0, 300.0]), (math.prod(shape[:-1]), v.card))
        rows[rng.random(rows.shape) < 0.05] = 0.0
        kept = rng.integers(v.card, size=len(rows))
        rows[np.arange(len(rows)), kept] = 0.0
        rows /= np.maximum(2.0 * rows.sum(axis=1, keepdims=True), 1.0)
        rows[np.arange(len(rows)), kept] = 1.0 - rows.sum(axis=1)
        conditionals.append(bbn.CPT(v, parents, rows.reshape(shape)))
    return bbn.BayesianNetwork(conditionals)


def random_evidence(rng: np.random.Generator, model: Any, share: float = 0.7) -> dict[str, Any]:
    """States at random, likely or not, and now and then a likelihood of extreme size."""
    evidence: dict[str, Any] = {}
    for v in model.variables:
        if rng.random() < share:
            evidence[v.name] = v.states[int(rng.integers(v.card))]
            if rng.random() < 0.2:
                sizes = 10.0 ** rng.uniform(-250, 250, v.card)
                evidence[v.name] = bbn.Virtual(dict(zip(v.states, sizes.tolist(), strict=True)))
    return evidence


def close(found: Any, wanted: np.ndarray) -> None:
    """Right to nine digits, however small; below 1e-300 there are none."""
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_exact_engine_gives_the_posteriors_of_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(seed)
    beyond = 0
    for _ in range(NETWORKS):
        net = tiny_network(rng)
        evidence = random_evidence(rng, net)
        whole = truth.weights(net, evidence)
        free = [(i, v) for i, v in enumerate(net.variables) if not isinstance(evidence.get(v.name), str)]
        if not whole:
            for method in ("junction-tree", "elimination", "enumeration"):
                with pytest.raises(bbn.ImpossibleEvidenceError):
                    net.query(net.names[0], evidence, method=method)
            with pytest.raises(bbn.ImpossibleEvidenceError):
                net.posteriors(evidence)
            continue
        log_evidence = truth.log(truth.total(whole))
        beyond += log_evidence < -700
        for method in ("junction-tree", "elimination", "enumeration"):
            i, v = free[int(rng.integers(len(free)))] if free else (0, net.variables[0])
            answer = net.query(v.name, evidence, method=method)
            close(answer.values, truth.marginal(whole, i, v.card))
            assert answer.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-9)
        everything = net.posteriors(evidence)
        for i, v in free:
            close(everything[v.name].values, truth.marginal(whole, i, v.card))
        assert everything.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-9)
    assert beyond >= NETWORKS // 30  # some of these questions are far beyond the range of a double


@pytest.mark.parametrize("seed", SEEDS)
def test_explanations_and_the_next_best_are_those_of_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    for _ in range(NETWORKS):
        net = tiny_network(rng)
        evidence = random_evidence(rng, net, 0.4)
        whole = truth.weights(net, evidence)
        if not whole:
            continue
        ranked = sorted((truth.log(w) for w in whole.values()), reverse=True)[:12]
        for method in ("junction-tree", "elimination", "enumeration"):
            best = net.mpe(evidence, k=12, method=method)
            assert [b.log_probability for b in best] == pytest.approx(ranked, rel=1e-10, abs=1e-9), method
            codes = tuple(v.code(best[0].states.get(v.name, evidence.get(v.name))) for v in net.variables)
            assert truth.log(whole[codes]) == pytest.approx(ranked[0], rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_have_the_posteriors_and_likelihoods_of_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    for _ in range(NETWORKS // 4):
        net = tiny_network(rng)
        at = int(rng.integers(len(net.variables)))
        target = net.variables[at]
        rows = [
            {
                v.name: None if rng.random() < 0.2 else v.states[int(rng.integers(v.card))]
                for v in net.variables
            }
            for _ in range(12)
        ]
        columns = {name: [row[name] for row in rows] for name in net.names}
        logs = net.log_likelihood(columns)
        beliefs = net.predict_proba(columns, target.name, impossible="nan")
        for k, row in enumerate(rows):
            whole = truth.weights(net, row)
            wanted = truth.log(truth.total(whole)) if whole else -math.inf
            assert float(logs[k]) == pytest.approx(wanted, rel=1e-10, abs=1e-9)
            whole = truth.weights(net, {name: value for name, value in row.items() if name != target.name})
            found = np.array([beliefs[state][k] for state in target.states])
            if whole:
                close(found, truth.marginal(whole, at, target.card))
            else:
                assert np.isnan(found).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_and_expected_counts_are_those_of_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng(300 + seed)
    checked = 0
    for _ in range(NETWORKS // 4):
        net = tiny_network(rng)
        row = {
            v.name: None if rng.random() < 0.5 else v.states[int(rng.integers(v.card))] for v in net.variables
        }
        whole = truth.weights(net, row)
        if not whole:
            continue
        everything = truth.total(whole)
        slopes = bbn.gradient(net, {name: [value] for name, value in row.items()})
        position = {name: i for i, name in enumerate(net.names)}
        for cpt in net.conditionals:
            axes = [position[v.name] for v in (*cpt.parents, cpt.variable)]
            expected = np.zeros(cpt.table.shape, object)
            for codes, weight in whole.items():
                expected[tuple(codes[axis] for axis in axes)] += weight / everything
            close(slopes[cpt.variable.name] * cpt.table, expected.astype(float))
            checked += 1
    assert checked > NETWORKS / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_factor_graphs_of_any_scale(seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    for _ in range(NETWORKS // 2):
        variables = [bbn.Variable(f"V{i}", range(int(rng.integers(1, 4)))) for i in range(6)]
        factors = []
        for _ in range(int(rng.integers(4, 12))):
            scope = [variables[int(i)] for i in rng.permutation(6)[: int(rng.integers(1, 4))]]
            sizes = 10.0 ** rng.uniform(-300, 300, [v.card for v in scope])
            factors.append(bbn.Factor(scope, sizes * (rng.random(sizes.shape) < 0.9)))
        graph = bbn.FactorGraph([*factors, *(bbn.Factor([v], np.ones(v.card)) for v in variables)])
        whole = truth.weights(graph)
        if not whole:
            continue
        everything = graph.posteriors()
        for i, v in enumerate(graph.variables):
            close(everything[v.name].values, truth.marginal(whole, i, v.card))
        assert graph.log_partition() == pytest.approx(truth.log(truth.total(whole)), rel=1e-10, abs=1e-9)
        best = max(map(truth.log, whole.values()))
        assert graph.mpe().log_probability == pytest.approx(best, rel=1e-10, abs=1e-9)


@pytest.mark.slow
def test_the_numpy_twins_pass_the_same_checks() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "--no-header",
            "-p",
            "no:cacheprovider",
            __file__,
            "-k",
            "arithmetic or factor_graphs",
        ],
        env={**os.environ, "BBN_PURE": "1", "BBN_RANGE_NETWORKS": "8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count(".") >= 5 * len(SEEDS), done.stdout


def naive_bayes(n: int, p: float) -> bbn.BayesianNetwork:
    """A root and n binary children with P(t | a) = p and P(t | b) = 1.1 p."""
    root = bbn.Variable("A", ["a", "b"])
    children = [bbn.Variable(f"X{i}", ["t", "f"]) for i in range(n)]
    tables = [bbn.CPT(child, [root], [[p, 1 - p], [1.1 * p, 1 - 1.1 * p]]) for child in children]
    return bbn.BayesianNetwork([bbn.CPT(root, table=[0.5, 0.5]), *tables])


@pytest.mark.parametrize(("n", "p"), [(9, 5e-41), (9, 3e-41), (8, 1e-39), (100, 1e-12), (3, 1e-300)])
def test_children_that_are_all_very_unlikely(n: int, p: float) -> None:
    net = naive_bayes(n, p)
    evidence = {f"X{i}": "t" for i in range(n)}
    wanted = 1 / (1 + 1.1**n)
    log_evidence = n * math.log(p) + math.log((1 + 1.1**n) / 2)
    for method in ("junction-tree", "elimination") + (("enumeration",) if n < 50 else ()):
        answer = net.query("A", evidence, method=method)
        assert answer["a"] == pytest.approx(wanted, rel=1e-11)
        assert answer.log_evidence == pytest.approx(log_evidence, rel=1e-12)
    assert net.posteriors(evidence)["A"]["a"] == pytest.approx(wanted, rel=1e-11)
    columns = {name: [state] * 3 for name, state in evidence.items()}
    assert net.predict_proba(columns, "A")["a"] == pytest.approx([wanted] * 3, rel=1e-11)
    assert net.log_likelihood(columns) == pytest.approx([log_evidence] * 3, rel=1e-12)
    assert net.map("A", evidence).states == {"A": "b"}
    rows = net.sample(2000, evidence, seed=0)
    assert (rows["A"] == "a").mean() == pytest.approx(wanted, abs=5 * math.sqrt(wanted * (1 - wanted) / 2000))


def test_evidence_that_pulls_both_ways() -> None:
    """A coin of bias 0.3 or 0.7, as many heads as tails: nothing is learned of it."""
    coin, n = bbn.Variable("Coin", ["low", "high"]), 900
    tosses = [bbn.Variable(f"T{i}", ["h", "t"]) for i in range(2 * n)]
    tables = [bbn.CPT(toss, [coin], [[0.3, 0.7], [0.7, 0.3]]) for toss in tosses]
    net = bbn.BayesianNetwork([bbn.CPT(coin, table=[0.5, 0.5]), *tables])
    evidence = {f"T{i}": "h" if i < n else "t" for i in range(2 * n)}
    log_evidence = n * math.log(0.21)
    for method in ("junction-tree", "elimination", "enumeration"):
        answer = net.query("Coin", evidence, method=method)
        assert answer["low"] == pytest.approx(0.5, abs=1e-10)
        assert answer.log_evidence == pytest.approx(log_evidence, rel=1e-12)
    columns = {name: [state, None] for name, state in evidence.items()}
    assert net.predict_proba(columns, "Coin")["low"] == pytest.approx([0.5, 0.5], abs=1e-10)
    assert net.log_likelihood(columns)[0] == pytest.approx(log_evidence, rel=1e-12)
    slopes = bbn.gradient(net, {name: [state] for name, state in evidence.items()})
    assert slopes["Coin"] == pytest.approx([1.0, 1.0], abs=1e-9)
    step = bbn.fit_em(net, {name: [state] for name, state in evidence.items()}, max_iter=1, hidden=["Coin"])
    assert step.log_likelihoods[0] == pytest.approx(log_evidence, rel=1e-12)
    assert step.network["Coin"].table == pytest.approx([0.5, 0.5], abs=1e-9)


def test_a_long_hidden_markov_model() -> None:
    """Forward and backward, in plain Python with each step normalised, against all posteriors at once."""
    n, stay, right = 1200, 0.9, 0.6
    hidden = [bbn.Variable(f"H{i}", ["a", "b"]) for i in range(n)]
    seen = [bbn.Variable(f"O{i}", ["x", "y"]) for i in range(n)]
    move = [[stay, 1 - stay], [1 - stay, stay]]
    tables = [bbn.CPT(hidden[0], table=[0.5, 0.5])]
    tables += [bbn.CPT(hidden[i], [hidden[i - 1]], move) for i in range(1, n)]
    tables += [bbn.CPT(seen[i], [hidden[i]], [[right, 1 - right], [1 - right, right]]) for i in range(n)]
    net = bbn.BayesianNetwork(tables)
    everything = net.posteriors({f"O{i}": "xy"[i % 2] for i in range(n)})
    likely = [np.array([right, 1 - right] if i % 2 == 0 else [1 - right, right]) for i in range(n)]
    forward, backward, log_evidence = [np.array([0.5, 0.5]) * likely[0]], [np.ones(2)], 0.0
    for i in range(1, n):
        forward.append(forward[-1] @ np.array(move) * likely[i])
        log_evidence += math.log(forward[-1].sum() / forward[-2].sum())
        forward[-1] = forward[-1] / forward[-1].sum()
        if i == 1:
            forward[0] = forward[0] / forward[0].sum()
    for i in range(n - 1, 0, -1):
        message = np.array(move) @ (likely[i] * backward[-1])
        backward.append(message / message.sum())
    for i in range(n):
        product = forward[i] * backward[n - 1 - i]
        assert everything[f"H{i}"].values == pytest.approx(product / product.sum(), rel=1e-10)
    assert math.isfinite(everything.log_evidence)


@pytest.mark.parametrize("scale", [10.0, 0.001, 1e200, 1e-200])
def test_a_long_chain_of_factors_of_any_scale(scale: float) -> None:
    n, table = 1000, np.array([[3.0, 1.0], [1.0, 2.0]])
    variables = [bbn.Variable(f"V{i}", [0, 1]) for i in range(n)]
    graph = bbn.FactorGraph([bbn.Factor(variables[i : i + 2], table * scale) for i in range(n - 1)])
    values, vectors = np.linalg.eigh(table)
    middle = vectors[:, values.argmax()] ** 2  # far from both ends
    everything = graph.posteriors()
    for i in range(n):
        assert everything[f"V{i}"].values.sum() == pytest.approx(1.0, abs=1e-12)
    assert everything["V500"].values == pytest.approx(middle, rel=1e-12)
    power, exponent = np.ones(2), (n - 1) * math.log(scale)
    for _ in range(n - 1):
        power = table @ power
        exponent += math.log(power.sum())
        power = power / power.sum()
    assert graph.log_partition() == pytest.approx(exponent, rel=1e-12)


def test_em_reaches_tiny_entries_and_new_rows_keep_their_probability() -> None:
    """A hidden class over 24 features, fitted until entries vanish: rows are impossible only if a product has a 0."""
    rng = np.random.default_rng(2)
    cluster, profile = rng.integers(0, 4, 600), rng.random((24, 4)) < 0.5
    features = {
        f"F{i}": np.where(rng.random(600) < 0.02, ~profile[i][cluster], profile[i][cluster]).astype(int)
        for i in range(24)
    }
    arcs = [("Z", name) for name in features]
    fitted = bbn.fit_em(arcs, features, hidden={"Z": list(range(10))}, seed=0, max_iter=600, tol=0.0)
    net = fitted.network
    assert min(c.table[c.table > 0].min() for c in net.conditionals) < 1e-250
    assert np.diff(fitted.log_likelihoods).min() > -1e-9
    new = {f"F{i}": rng.integers(0, 2, 60) for i in range(24)}
    with np.errstate(divide="ignore"):
        terms = np.log(net["Z"].table) + sum(np.log(net[name].table[:, new[name]]).T for name in new)
    wanted = np.logaddexp.reduce(terms, axis=1)
    assert (wanted < -700).sum() > 5
    np.testing.assert_allclose(net.log_likelihood(new), wanted, rtol=1e-10)


def test_findings_of_one_in_a_thousand_by_the_hundred() -> None:
    net = naive_bayes(110, 1e-3)
    rows = net.sample(500, {f"X{i}": "t" for i in range(110)}, seed=1)
    assert (rows["A"] == "b").mean() > 0.99  # 1.1^110 to 1


def test_no_answer_leaves_an_engine_that_is_not_a_distribution() -> None:
    """Whatever a plan's two programs give, only distributions pass."""
    engine = bbn.JunctionTree(naive_bayes(3, 0.1))
    engine.query("A")
    plan = next(iter(engine.compiler.known._queries.values())).executor

    class Broken:
        once_log = 0.0

        def run(self, *_: Any) -> tuple[np.ndarray, float]:
            return np.array([np.nan, 0.5]), math.nan

    plan._program = plan._wide = Broken()  # type: ignore[assignment]
    with pytest.raises(ArithmeticError, match="not a distribution"):
        engine.query("A")
