"""The junction tree through its public face, against the joint by brute force and against itself."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bbn import kernels
from bbn.core.errors import BudgetError, ImpossibleEvidenceError
from bbn.inference.exact import query_compiler
from bbn.inference.exact.junction_tree import JunctionTree
from bbn.model.cpt import CPT
from bbn.model.evidence import Not, OneOf, Soft, Virtual
from bbn.model.factor import Factor
from bbn.model.factor_graph import FactorGraph
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from tests.support import oracle
from tests.support.strategies import random_network


def random_evidence(rng: np.random.Generator, net: BayesianNetwork, soft: bool = False) -> dict[str, Any]:
    evidence: dict[str, Any] = {}
    for variable, u in zip(net.variables, rng.random(len(net)), strict=True):
        states = variable.states
        pick = states[int(rng.integers(len(states)))]
        if u < 0.2:
            evidence[variable.name] = pick
        elif u < 0.3:
            evidence[variable.name] = Virtual(dict(zip(states, rng.random(len(states)) + 0.01, strict=True)))
        elif u < 0.37:
            evidence[variable.name] = OneOf(*{pick, states[0]})
        elif u < 0.42 and len(states) > 1:
            evidence[variable.name] = Not(pick)
        elif u < 0.47 and soft:
            weights = rng.dirichlet(np.ones(len(states)))
            evidence[variable.name] = Soft(dict(zip(states, weights.tolist(), strict=True)))
        elif u < 0.52:
            evidence[variable.name] = None
    return evidence


def free_names(net: BayesianNetwork, evidence: dict[str, Any]) -> list[str]:
    kinds = (Virtual, OneOf, type(None))
    return [name for name in net.names if isinstance(evidence.get(name), kinds)]


@pytest.mark.parametrize("masks", [True, False])
@pytest.mark.parametrize("seed", range(60))
def test_posteriors_are_those_of_the_joint(seed, masks, monkeypatch):
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", math.inf if masks else 0)
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_cells=1500)
    engine = JunctionTree(net)
    for _ in range(2):
        evidence = random_evidence(rng, net)
        exact = oracle.condition(net, evidence)
        if exact is None:
            with pytest.raises(ImpossibleEvidenceError):
                engine.posteriors(evidence)
            continue
        answers = engine.posteriors(evidence)
        assert list(answers) == free_names(net, evidence)
        assert answers.log_evidence == pytest.approx(
            math.log(oracle.evidence_probability(net, evidence)), abs=1e-10
        )
        for name in answers:
            for (state,), p in oracle.marginal(exact, [net.names.index(name)]).items():
                assert answers[name][state] == pytest.approx(p, abs=1e-10)


@pytest.mark.parametrize("seed", range(100))
def test_joints_explanations_and_maps_are_those_of_the_joint(seed):
    rng = np.random.default_rng(1000 + seed)
    net = random_network(rng, max_cells=1000)
    engine = JunctionTree(net)
    evidence = random_evidence(rng, net, soft=seed % 4 == 0)
    targets = [net.names[int(i)] for i in rng.permutation(len(net))[: rng.integers(1, 4)]]
    exact = oracle.posterior(net, targets, evidence)
    if exact is None:
        with pytest.raises(ImpossibleEvidenceError):
            engine.query(targets, evidence)
        return
    answer = engine.query(targets, evidence)
    for states, p in exact.items():
        assert answer[states] == pytest.approx(p, abs=1e-9)
    if any(isinstance(finding, Soft) for finding in evidence.values()):
        return
    ranked = oracle.explanations(net, evidence)
    best = engine.mpe(evidence)
    assert best.log_probability == pytest.approx(math.log(ranked[0][0]), abs=1e-10)
    states = {**best.states, **{n: v for n, v in evidence.items() if n not in best.states and v is not None}}
    same = [p for p, x in ranked if all(x[name] == state for name, state in states.items())]
    assert math.log(same[0]) == pytest.approx(best.log_probability, abs=1e-10)
    several = engine.mpe(evidence, k=4)
    assert len({tuple(a.states.items()) for a in several}) == len(several)
    assert [a.log_probability for a in several] == pytest.approx(
        [math.log(p) for p, _ in ranked[:4]], abs=1e-10
    )
    highest, table = oracle.marginal_map(net, targets, evidence)
    found = engine.map(targets, evidence)
    assert found.log_probability == pytest.approx(math.log(highest), abs=1e-10)
    assert table[tuple(found.states[name] for name in targets)] == pytest.approx(highest, rel=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_queries(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_cells=1500)
    engine = JunctionTree(net)
    columns = [v for v in net.variables if rng.random() < 0.6]
    free = [name for name in net.names if name not in {v.name for v in columns}]
    gaps = rng.choice([0.0, 0.4])
    n_rows = int(rng.choice([1, 60]))
    codes = {}
    for variable in columns:
        column = rng.integers(0, variable.card, n_rows).astype(np.uint8)
        column[rng.random(n_rows) < gaps] = variable.card
        codes[variable.name] = column
    targets = free[:2]
    joint = engine.rows(codes, n_rows, targets)
    all_of_it = engine.rows(codes, n_rows, everything=True, n_jobs=2)
    for i in range(n_rows):
        evidence = {v.name: v.states[codes[v.name][i]] for v in columns if codes[v.name][i] < v.card}
        log = engine.log_evidence(evidence)
        assert joint.log_evidence[i] == pytest.approx(log, abs=1e-10)
        assert all_of_it.log_evidence[i] == pytest.approx(log, abs=1e-10)
        if log == -math.inf:
            assert not targets or np.isnan(joint.values[i]).all()
            continue
        if targets:
            assert np.abs(joint.values[i] - engine.query(targets, evidence).values.ravel()).max() < 1e-11
        for v, start in zip(net.variables, all_of_it.out, strict=True):
            exact = engine.query(v.name, evidence).values
            assert np.abs(all_of_it.values[i, start : start + v.card] - exact).max() < 1e-11


def test_rows_with_few_patterns_of_gaps_are_grouped():
    net = chain(6)
    rng = np.random.default_rng(0)
    codes = {f"x{i}": rng.integers(0, 2, 400).astype(np.uint8) for i in (0, 1, 3)}
    codes["x3"][:200] = 2
    codes["x1"][100:300] = 2
    answers = JunctionTree(net).rows(codes, 400, ["x2"])
    for i in range(0, 400, 37):
        evidence = {name: int(column[i]) for name, column in codes.items() if column[i] < 2}
        exact = net.query("x2", evidence, method="enumeration")
        assert np.abs(answers.values[i] - exact.values).max() < 1e-12
        assert answers.log_evidence[i] == pytest.approx(exact.log_evidence, abs=1e-12)


def test_rows_of_large_plans_run_one_by_one(monkeypatch):
    import bbn.inference.rows.batch as batch

    monkeypatch.setattr(batch, "BLOCK_CELLS", 0)
    test_rows_with_few_patterns_of_gaps_are_grouped()
    test_rows_are_queries(3)
    test_rows_are_queries(5)


def chain(n: int, stay: float = 0.7) -> BayesianNetwork:
    xs = [Variable(f"x{i}", [0, 1]) for i in range(n)]
    first = CPT(xs[0], table=[0.4, 0.6])
    move = [[stay, 1 - stay], [0.2, 0.8]]
    return BayesianNetwork([first, *(CPT(x, [w], move) for w, x in pairwise(xs))])


def test_ten_thousand_observed_nodes_do_not_underflow():
    hidden = Variable("h", ["a", "b"])
    leaves = [Variable(f"e{i}", [0, 1]) for i in range(10_000)]
    tables = [CPT(leaf, [hidden], [[0.01, 0.99], [0.0101, 0.9899]]) for leaf in leaves]
    net = BayesianNetwork([CPT(hidden, table=[0.5, 0.5]), *tables])
    evidence = {leaf.name: 0 for leaf in leaves}
    a, b = 10_000 * math.log(0.01), 10_000 * math.log(0.0101)
    answer = net.query("h", evidence)
    assert answer.log_evidence == pytest.approx(math.log(0.5) + b + math.log1p(math.exp(a - b)), rel=1e-12)
    assert answer["b"] == pytest.approx(1.0, abs=1e-12)
    assert net.posteriors(evidence)["h"]["b"] == pytest.approx(1.0, abs=1e-12)


def test_evidence_cut_off_from_the_target_counts_and_can_be_impossible():
    a, b, c = (Variable(name, [0, 1]) for name in "abc")
    net = BayesianNetwork(
        [CPT(a, table=[0.3, 0.7]), CPT(b, table=[1.0, 0.0]), CPT(c, [b], [[0.25, 0.75], [0.5, 0.5]])]
    )
    engine = JunctionTree(net)
    answer = engine.query("a", {"c": 0})
    assert answer[0] == pytest.approx(0.3)
    assert answer.log_evidence == pytest.approx(math.log(0.25))
    with pytest.raises(ImpossibleEvidenceError, match="b=1") as caught:
        engine.query("a", {"b": 1, "c": 0})
    assert "c" not in caught.value.findings


def test_undirected_models():
    rng = np.random.default_rng(5)
    xs = [Variable(f"x{i}", range(3)) for i in range(5)]
    factors = [Factor([xs[i], xs[(i + 1) % 5]], rng.random((3, 3))) for i in range(5)]
    graph = FactorGraph(factors)
    whole = np.einsum("ab,bc,cd,de,ea->abcde", *(f.values for f in factors))
    engine = JunctionTree(graph)
    assert engine.log_evidence() == pytest.approx(math.log(whole.sum()), abs=1e-12)
    pair = engine.query(["x3", "x0"], {"x1": 2})
    exact = whole[:, 2].sum(axis=(1, 3)).T
    assert np.abs(pair.values - exact / exact.sum()).max() < 1e-12
    assert engine.mpe().log_probability == pytest.approx(math.log(whole.max()), abs=1e-12)


def test_stats_and_budget():
    n = 7
    roots = [Variable(f"r{i}", range(4)) for i in range(n)]
    sink = Variable("sink", [0, 1])
    table = np.full((*([4] * n), 2), 0.5)
    net = BayesianNetwork([*(CPT(r, table=[0.25] * 4) for r in roots), CPT(sink, roots, table)])
    engine = JunctionTree(net)
    stats = engine.stats()
    assert stats.treewidth == n
    assert stats.cliques == 1
    assert stats.total_cells == stats.largest_cells == 2 * 4**n
    tables = 8 * (2 * 4**n + 4 * n)
    # compiled, the one clique is read as it is made and never stored; in numpy all sweeps are held
    assert tables < stats.predicted_bytes <= tables + 65_536 + (0 if kernels.COMPILED else 6 * tables)
    assert set(stats.largest_clique) == set(net.names)
    with pytest.raises(BudgetError, match="memory_limit"):
        engine.posteriors({"sink": 0}, memory_limit=1000)
    with pytest.raises(BudgetError, match="copy of the model's tables"):
        JunctionTree(net, memory_limit="200 kB").query("r0", {"sink": 0})
    with pytest.raises(BudgetError, match="r0"):
        JunctionTree(net, memory_limit="300 kB").query(["r0", "r1", "r2", "r3", "r4", "r5"], {"sink": 0})
    with pytest.raises(TypeError, match="memory_limt"):
        engine.query("r0", memory_limt=5)
    assert engine.query("r0", {"sink": 0})[1] == pytest.approx(0.25)


def test_networks_beyond_any_memory_are_refused_at_once():
    n = 90
    xs = [Variable(f"x{i}", range(9)) for i in range(n)]
    graph = FactorGraph([Factor([xs[i], xs[j]], np.ones((9, 9))) for i in range(n) for j in range(i + 1, n)])
    with pytest.raises(BudgetError, match="x0"):
        graph.query("x0")


def test_threads_get_the_answers_of_one():
    net = random_network(np.random.default_rng(11), max_nodes=10, max_cells=2000, zeros=False)
    engine = JunctionTree(net)
    rng = np.random.default_rng(0)
    questions = []
    for _ in range(60):
        chosen = rng.permutation(len(net))[:3]
        evidence = {
            net.names[i]: net.variables[i].states[int(rng.integers(net.variables[i].card))] for i in chosen
        }
        questions.append(evidence)
    alone = [engine.posteriors(e) for e in questions]
    with ThreadPoolExecutor(8) as pool:
        fresh = JunctionTree(net)
        together = list(pool.map(fresh.posteriors, questions * 5))
    for i, answers in enumerate(together):
        for name, exact in alone[i % 60].items():
            assert np.array_equal(answers[name].values, exact.values)


@pytest.mark.parametrize("order", ["min-fill", "weighted-min-fill", "min-weight", "min-neighbours"])
def test_orders_change_the_tree_and_not_the_answers(order):
    net = random_network(np.random.default_rng(3), max_nodes=12)
    exact = JunctionTree(net).posteriors()
    answers = JunctionTree(net, order=order).posteriors()
    for name in exact:
        assert np.abs(answers[name].values - exact[name].values).max() < 1e-13


def test_plans_are_dropped_past_the_bound():
    from bbn.inference.exact.prepared_queries import PreparedQueries

    net = chain(8)
    engine = JunctionTree(net)
    engine.compiler.known = PreparedQueries(3)
    for i in range(8):
        engine.query(f"x{i}", {f"x{(i + 1) % 8}": 1})
    assert len(engine.compiler.known._queries) == 3
    assert engine.query("x0", {"x1": 1})[0] == pytest.approx(net.query("x0", {"x1": 1}, "enumeration")[0])
