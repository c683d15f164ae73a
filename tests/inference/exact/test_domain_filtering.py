"""Answers without the states that cannot occur: against exact fractions, on networks rich in zeros."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import filtered_query, query_compiler
from bbn.inference.exact.domain_filtering import DomainFilter
from bbn.inference.exact.elimination_orders import triangulate
from bbn.inference.exact.filtered_query import FilteredQuery
from bbn.inference.exact.problem import Question, Values, relevant
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import MARGINALS
from tests.benchmarks.bench_inference import evidence_sets
from tests.support import exact_truth

pytestmark = pytest.mark.skipif(not kernels.COMPILED, reason="domains are filtered by compiled kernels alone")


@pytest.fixture
def always(monkeypatch):
    """Prune whatever the size."""
    monkeypatch.setattr(query_compiler, "FILTERED", -1.0)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    for module in (query_compiler, filtered_query):
        monkeypatch.setattr(module, "making", lambda model: -1e-9)
    monkeypatch.setattr(DomainFilter, "gone", lambda self, domain, values: 1)
    monkeypatch.setattr(filtered_query, "GAIN", -1e9)


def filtered(engine):
    """The shapes that are answered without the states that their values rule out."""
    return [query for query in engine.compiler.known._queries.values() if isinstance(query, FilteredQuery)]


def sparse_network(rng, n=7):
    """Tables in which about two thirds of the entries are 0."""
    variables = [bbn.Variable(f"X{i}", [f"s{k}" for k in range(rng.integers(1, 5))]) for i in range(n)]
    parts = []
    for i, v in enumerate(variables):
        parents = [
            variables[j] for j in sorted(rng.permutation(i)[: rng.integers(0, min(i, 3) + 1)].tolist())
        ]
        table = rng.dirichlet(np.ones(v.card), [p.card for p in parents])
        kept = rng.random(table.shape) < 0.35
        kept[..., rng.integers(v.card)] |= ~kept.any(axis=-1)
        table = table * kept
        parts.append(bbn.CPT(v, parents, table / table.sum(axis=-1, keepdims=True)))
    return bbn.BayesianNetwork(parts)


def some_evidence(rng, net):
    """Values that may or may not occur together, and likelihoods with zeros."""
    evidence = {}
    for v in net.variables:
        kind = rng.random()
        if kind < 0.25:
            evidence[v.name] = v.states[int(rng.integers(v.card))]
        elif kind < 0.4:
            weights = np.where(rng.random(v.card) < 0.4, 0.0, rng.uniform(0.1, 2, v.card))
            weights[rng.integers(v.card)] = 1.0
            evidence[v.name] = bbn.Virtual(dict(zip(v.states, weights.tolist(), strict=True)))
    return evidence


@pytest.mark.parametrize("seed", range(150))
def test_answers_are_the_exact_ones(seed, always):
    rng = np.random.default_rng(seed)
    net = sparse_network(rng)
    engine = bbn.JunctionTree(net)
    names = [v.name for v in net.variables]
    for _ in range(2):
        evidence = some_evidence(rng, net)
        whole = exact_truth.weights(net, evidence)
        free = [
            v for v in net.variables if v.name not in evidence or isinstance(evidence[v.name], bbn.Virtual)
        ]
        if not whole:
            with pytest.raises(bbn.ImpossibleEvidenceError):
                engine.posteriors(evidence)
            assert engine.log_evidence(evidence) == -math.inf
            continue
        answers = engine.posteriors(evidence)
        assert list(answers) == [v.name for v in free]
        assert answers.log_evidence == pytest.approx(math.log(exact_truth.total(whole)), abs=1e-10)
        for v in free:
            truth = exact_truth.marginal(whole, names.index(v.name), v.card)
            np.testing.assert_allclose(answers[v.name].values, truth, atol=1e-12)
            np.testing.assert_allclose(engine.query(v.name, evidence).values, truth, atol=1e-12)
        if len(free) > 1:
            pair = [free[0].name, free[-1].name]
            joint = engine.query(pair, evidence)
            np.testing.assert_allclose(joint.values.sum(axis=1), answers[pair[0]].values, atol=1e-12)
            np.testing.assert_allclose(
                joint.values, net.query(pair, evidence, method="enumeration").values, atol=1e-12
            )
    assert filtered(engine)


@pytest.mark.parametrize("seed", range(80))
def test_other_values_of_the_same_variables_are_answered_on_the_tree_of_the_first(seed, always, monkeypatch):
    rng = np.random.default_rng(500 + seed)
    net = sparse_network(rng, 8)
    engine = bbn.JunctionTree(net)
    names = [v.name for v in net.variables]
    observed = [v for v in net.variables if rng.random() < 0.3]
    likely = [v for v in net.variables if v not in observed and rng.random() < 0.2]
    free = [v for v in net.variables if v not in observed]
    planned = []
    search = filtered_query.search_plan
    monkeypatch.setattr(
        filtered_query, "search_plan", lambda *given, **more: planned.append(given) or search(*given, **more)
    )
    answered = 0
    for _ in range(12):
        evidence = {v.name: v.states[int(rng.integers(v.card))] for v in observed}
        for v in likely:
            weights = np.where(rng.random(v.card) < 0.5, 0.0, rng.uniform(0.1, 2, v.card))
            weights[rng.integers(v.card)] = 1.5
            evidence[v.name] = bbn.Virtual(dict(zip(v.states, weights.tolist(), strict=True)))
        whole = exact_truth.weights(net, evidence)
        if not whole:
            with pytest.raises(bbn.ImpossibleEvidenceError):
                engine.posteriors(evidence)
            continue
        answers = engine.posteriors(evidence)
        assert answers.log_evidence == pytest.approx(math.log(exact_truth.total(whole)), abs=1e-10)
        for v in free:
            truth = exact_truth.marginal(whole, names.index(v.name), v.card)
            np.testing.assert_allclose(answers[v.name].values, truth, atol=1e-12)
        pair = [v.name for v in free[:2]]
        if len(pair) == 2:
            joint = engine.query(pair, evidence)
            np.testing.assert_allclose(joint.values.sum(axis=0), answers[pair[1]].values, atol=1e-12)
            np.testing.assert_allclose(joint.values.sum(axis=1), answers[pair[0]].values, atol=1e-12)
            assert joint.log_evidence == pytest.approx(answers.log_evidence, abs=1e-10)
        answered += 1
    shapes = [given[1] for given in planned]
    assert len(shapes) == len(set(shapes))  # a tree of its own is looked for once
    assert answered == 0 or shapes


def assert_restricted(net, needed, domain, state_ptr, found):
    """The tables are those of the model at the states that are left."""
    scope_ptr, scope, table_ptr, tables = found
    number = {v.name: i for i, v in enumerate(net.variables)}
    for k, f in enumerate(needed.tolist()):
        cpt = net.conditionals[f]
        members = [number[v.name] for v in (*cpt.parents, cpt.variable)]
        alive = [np.flatnonzero(domain[state_ptr[v] : state_ptr[v + 1]]) for v in members]
        expected = cpt.table[np.ix_(*alive)]
        assert tables[table_ptr[k] : table_ptr[k + 1]].tolist() == expected.ravel().tolist()
        left = [v for v, own in zip(members, alive, strict=True) if len(own) > 1]
        assert scope[scope_ptr[k] : scope_ptr[k + 1]].tolist() == left


def test_marginals_are_spread_over_all_states():
    module = kernels.consistency
    state_ptr = np.array([0, 2, 5, 7])
    domains = module.Domains(
        state_ptr, np.array([0, 2, 3]), np.array([0, 1, 2]), np.array([0, 6, 8]), np.ones(8)
    )
    domain = domains.find([(2, 1)], [(1, np.array([0.5, 0.0, 2.0]))])
    assert domain.tolist() == [1, 1, 1, 0, 1, 0, 1]
    spread = domains.spread(domain, np.array([2, 0, -1]), np.array([0.1, 0.9, 0.3, 0.7]))
    assert spread.tolist() == [0.3, 0.7, 0.1, 0, 0.9, 0, 1]
    with pytest.raises(ValueError, match="too few"):
        domains.spread(domain, np.array([3, 0, -1]), np.array([0.1, 0.9, 0.3, 0.7]))
    for hard, likelihoods in (([(3, 0)], []), ([(0, 2)], []), ([], [(1, np.ones(2))])):
        with pytest.raises(ValueError, match="variable"):
            domains.find(hard, likelihoods)
    assert domains.find([(0, 1), (0, 0)]) is None
    assert domains.find([], [(0, np.zeros(2))]) is None


@pytest.mark.parametrize("seed", range(60))
def test_states_are_taken_away_and_never_wrongly(seed):
    rng = np.random.default_rng(1000 + seed)
    net = sparse_network(rng)
    flat = bbn.JunctionTree(net).flat
    state_ptr = np.concatenate([[0], np.cumsum(flat.cards)]).astype(np.int64)
    support = (flat.tables != 0).astype(np.uint8)
    given = (flat.scope_ptr, flat.scope, flat.table_ptr)
    code = int(rng.integers(net.variables[3].card))
    whole = exact_truth.weights(net, {net.variables[3].name: net.variables[3].states[code]})
    module = kernels.consistency
    domain = np.ones(state_ptr[-1], np.uint8)
    assert module.prune(state_ptr, *given, support, domain)
    domain[state_ptr[3] : state_ptr[4]] = 0
    domain[state_ptr[3] + code] = 1
    possible = module.prune(state_ptr, *given, support, domain, np.array([3], np.int64))
    assert possible or not whole
    domains = module.Domains(state_ptr, *given, flat.tables)
    again = domains.find([(3, code)])
    assert (again is not None) == possible
    if possible:
        assert again.tolist() == domain.tolist()
        needed = np.arange(seed % 2, len(flat.heads), dtype=np.int64)
        cards, *rest = domains.restrict(domain, needed)
        assert cards.sum() == domain.sum()
        assert_restricted(net, needed, domain, state_ptr, rest)
        for codes in whole:
            assert all(domain[state_ptr[v] + c] for v, c in enumerate(codes))


def test_water_needs_a_hundredth_of_its_cells():
    net = bbn.example("water")
    engine = bbn.JunctionTree(net)
    answers = engine.posteriors()
    assert len(filtered(engine)) == 1
    question, filters = Question(goal=MARGINALS), DomainFilter(engine.flat)
    small, _ = filters.filtered(filters.domain(Values([], [], 0.0)), relevant(engine.flat, question).factors)
    cells = plan_tree(small, question).cells
    assert 50 * cells < engine.stats().total_cells
    whole = bbn.JunctionTree(net, order="min-fill")
    whole.compiler._sparse = False  # as if there were no zeros
    for name, posterior in whole.posteriors().items():
        np.testing.assert_allclose(answers[name].values, posterior.values, atol=1e-12)


def test_tables_without_zeros_are_left_alone():
    engine = bbn.JunctionTree(bbn.example("barley"))
    engine.posteriors()
    assert not filtered(engine)


@pytest.mark.parametrize(
    ("name", "at_once"), [("diabetes", False), ("barley", False), ("water", True), ("munin1", True)]
)
def test_a_first_question_tries_pruning_only_where_it_costs_much(name, at_once, monkeypatch):
    """Others leave the attempt to the second of their shape; without zeros there is none. All give the same answers."""
    tried = []

    class Noted(DomainFilter):
        def __init__(self, model):
            tried.append(model)
            super().__init__(model)

    monkeypatch.setattr(query_compiler, "DomainFilter", Noted)
    net = bbn.example(name)
    leaves = [n for n in net.names if not net.children(n)][:6]
    row = net.sample(1, seed=0).iloc[0]
    seen = {n: row[n] for n in leaves[1:]}
    engine = bbn.JunctionTree(net)
    first = engine.query(leaves[0], seen)
    assert bool(tried) == at_once
    second = engine.query(leaves[0], seen)
    assert len(tried) == any(not np.all(net[n].table) for n in net.names)
    truth = net.query(leaves[0], seen, method="elimination")
    for found in (first, second, engine.query(leaves[0], seen)):
        np.testing.assert_allclose(found.values, truth.values, rtol=1e-9, atol=1e-15)
        assert found.log_evidence == pytest.approx(truth.log_evidence, rel=1e-11)


@pytest.mark.parametrize("first", [0, 1])
def test_the_tree_that_the_second_question_chooses_serves_the_first(first):
    """On link the best tree of one of these cases has seven times the cells that the other needs."""
    net = bbn.example("link")
    cases = evidence_sets(net, 0.1, 2)
    engine = bbn.JunctionTree(net)
    for i in (first, 1 - first, first):
        engine.posteriors(cases[i])
    (query,) = filtered(engine)
    tree = query.shared
    assert tree.elimination is not None
    assert len(tree._samples) == 2
    for cards in tree._samples:
        own = triangulate(cards, tree._needed.ptr, tree._needed.scope, "auto").cells
        assert kernels.triangulate.total_cells(cards, *tree.elimination) < 2 * own
