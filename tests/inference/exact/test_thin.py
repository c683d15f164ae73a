"""Parts of cliques that a zero rules out are skipped: against exact fractions, and against whole sweeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn
from bbn.inference.exact import query_compiler
from bbn.inference.exact.domain_filtering import DomainFilter
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.problem import Question, Values, relevant
from bbn.inference.exact.tree_plan import plan_tree, slab_of
from bbn.kernels.contracts.tape import MARGINALS, SLAB, THIN_SLAB
from tests.inference.exact.test_domain_filtering import filtered, some_evidence, sparse_network
from tests.support import exact_truth


@pytest.fixture
def tiny(monkeypatch):
    """Cliques are cut into slabs of at most 4 cells, so that many are zero; nothing is pruned."""
    monkeypatch.setattr(query_compiler, "FILTERED", math.inf)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    monkeypatch.setattr(query_compiler, "slab_of", lambda model: 4)
    monkeypatch.setattr(query_compiler, "SLAB", 4)


@pytest.mark.parametrize("seed", range(200))
def test_answers_are_the_exact_ones(seed, tiny):
    rng = np.random.default_rng(9000 + seed)
    net = sparse_network(rng)
    engine = bbn.JunctionTree(net)
    names = [v.name for v in net.variables]
    for evidence in ({}, some_evidence(rng, net), some_evidence(rng, net)):
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
        assert answers.log_evidence == pytest.approx(math.log(exact_truth.total(whole)), abs=1e-10)
        for v in free:
            truth = exact_truth.marginal(whole, names.index(v.name), v.card)
            np.testing.assert_allclose(answers[v.name].values, truth, rtol=0, atol=1e-12)
            np.testing.assert_allclose(engine.query(v.name, evidence).values, truth, rtol=0, atol=1e-12)
        weights = sorted(map(float, whole.values()), reverse=True)
        found = [math.exp(one.log_probability) for one in engine.mpe(evidence, k=3)]
        np.testing.assert_allclose(found, weights[:3], rtol=1e-9)


@pytest.mark.parametrize("name", ["mildew", "munin1", "diabetes", "barley"])
def test_short_slabs_give_the_answers_of_long_ones(name):
    net = bbn.example(name)
    model = bbn.JunctionTree(net).flat
    case = net.sample(1, seed=5).iloc[0]
    observed = net.names[:: max(4, len(net.names) // 40)]
    hard = [(model.number[n], net.variable(n).find(case[n])) for n in observed]
    question = Question(frozenset(v for v, _ in hard), goal=MARGINALS)
    slabs = (10**9, SLAB, THIN_SLAB, 64)
    answers = [open_plan(plan_tree(model, question, slab=slab)).run(hard) for slab in slabs]
    for values, log_evidence in answers[1:]:
        np.testing.assert_allclose(values, answers[0][0], rtol=0, atol=1e-12)
        assert log_evidence == pytest.approx(answers[0][1], abs=1e-10)


def test_only_tables_that_are_mostly_zeros_have_short_slabs():
    slabs = {
        name: slab_of(bbn.JunctionTree(bbn.example(name)).flat) for name in ("mildew", "barley", "alarm")
    }
    assert slabs == {"mildew": THIN_SLAB, "barley": SLAB, "alarm": SLAB}


def test_a_shape_takes_the_smaller_tree_at_its_second_question():
    net = bbn.example("munin")
    engine = bbn.JunctionTree(net)
    observed = net.names[::10]
    cases = net.sample(3, seed=1)[list(observed)].to_dict("records")
    for case in cases:
        engine.posteriors(case)
    (query,) = filtered(engine)
    tree = query.shared
    assert tree.chosen
    question = Question(frozenset(engine.flat.number[n] for n in observed), goal=MARGINALS)
    whole = plan_tree(engine.flat, question)
    hard = [(engine.flat.number[n], net.variable(n).find(cases[2][n])) for n in observed]
    filters = DomainFilter(engine.flat)
    model, _ = filters.filtered(
        filters.domain(Values(hard, (), 0.0)), relevant(engine.flat, question).factors
    )
    cards = model.cards
    cells = [
        bbn.kernels.triangulate.total_cells(cards, *one) for one in (tree.elimination, whole.elimination)
    ]
    assert cells[0] < cells[1]
