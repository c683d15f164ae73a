"""Variables that fix each other, taken as one: against the sum over the whole joint, and nothing joined that is not."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.inference.exact import filtered_query, query_compiler
from bbn.inference.exact.problem import flatten
from bbn.inference.exact.variable_merging import merged
from tests.support.pedigrees import pedigree, phenotypes


@pytest.fixture
def always(monkeypatch):
    """Leave states out and join variables whatever the size."""
    monkeypatch.setattr(query_compiler, "FILTERED", -1.0)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    monkeypatch.setattr(query_compiler, "MASKED_VARIABLES", 0)
    for module in (query_compiler, filtered_query):
        monkeypatch.setattr(module, "making", lambda model: -1e-9)
    monkeypatch.setattr(filtered_query, "MERGED", -1.0)
    monkeypatch.setattr(filtered_query, "GAIN", -1e9)


def chained(seed):
    """A factor graph of some variables of few states; half of its factors say what one is, given the other."""
    rng = np.random.default_rng(seed)
    cards = rng.choice([2, 2, 2, 3, 3, 1], 7).tolist()
    variables = [bbn.Variable(f"v{i}", list(range(k))) for i, k in enumerate(cards)]
    factors = [bbn.Factor([v], rng.uniform(0.1, 1, v.card)) for v in variables]
    for _ in range(7):
        size = int(rng.integers(2, 4))
        own = [variables[int(i)] for i in rng.permutation(7)[:size]]
        table = rng.uniform(0.1, 1, [v.card for v in own])
        if own[0].card == own[1].card and rng.random() < 0.7:
            fixed = np.eye(own[0].card)[rng.permutation(own[0].card)]
            table *= fixed.reshape(fixed.shape + (1,) * (size - 2))
        factors.append(bbn.Factor(own, table))
    return bbn.FactorGraph(factors), rng


def joint(graph, evidence):
    """The product of all factors, over all variables, where the evidence holds."""
    whole = np.ones([v.card for v in graph.variables])
    names = [v.name for v in graph.variables]
    for codes in product(*(range(v.card) for v in graph.variables)):
        at = dict(zip(names, codes, strict=True))
        for factor in graph.factors():
            whole[codes] *= factor.values[tuple(at[v.name] for v in factor.variables)]
        for name, seen in evidence.items():
            weights = seen if isinstance(seen, dict) else {seen: 1.0}
            whole[codes] *= weights.get(at[name], 0.0)
    return names, whole


@pytest.mark.parametrize("seed", range(60))
def test_answers_are_those_of_the_whole_joint(seed, always):
    graph, rng = chained(seed)
    evidence = {}
    if seed % 3 == 1:
        evidence["v0"] = 0
    if seed % 3 == 2:
        evidence["v1"] = {k: float(p) for k, p in enumerate(rng.uniform(0.2, 1, graph.variable("v1").card))}
    names, whole = joint(graph, evidence)
    given = {k: bbn.Virtual(v) if isinstance(v, dict) else v for k, v in evidence.items()}
    engine = bbn.JunctionTree(graph)
    if not whole.any():
        with pytest.raises(bbn.ImpossibleEvidenceError):
            engine.posteriors(given)
        return
    for _ in range(2):  # the second time with what is known of the shape
        answers = engine.posteriors(given)
        assert answers.log_evidence == pytest.approx(math.log(whole.sum()), abs=1e-10)
        for i, name in enumerate(names):
            if name in answers:
                truth = whole.sum(axis=tuple(k for k in range(len(names)) if k != i)) / whole.sum()
                np.testing.assert_allclose(answers[name].values, truth, atol=1e-12)
    free = [name for name in names if evidence.get(name) != 0]
    for _ in range(3):
        targets = [free[int(i)] for i in rng.permutation(len(free))[:3]]
        axes = [names.index(name) for name in targets]
        truth = np.moveaxis(whole, axes, range(3)).reshape([*(whole.shape[a] for a in axes), -1]).sum(axis=-1)
        found = engine.query(targets, given)
        np.testing.assert_allclose(found.values, truth / whole.sum(), atol=1e-12)


def test_copies_are_joined_through_others_and_hand_on_which_state_is_which():
    a, b, c, d = (bbn.Variable(name, [0, 1, 2]) for name in "abcd")
    turned = np.eye(3)[[1, 2, 0]]
    graph = bbn.FactorGraph(
        [
            bbn.Factor([a, b], turned * [[1.0], [2.0], [3.0]]),
            bbn.Factor([c, b], turned),
            bbn.Factor([a, c, d], np.arange(1.0, 28.0).reshape(3, 3, 3)),
        ]
    )
    found = merged(flatten(graph))
    assert found is not None
    model, embedding = found
    (one,) = set(embedding.source[:3].tolist())
    assert embedding.source[3] == 3
    assert sorted(model.cards.tolist()) == [1, 1, 3, 3]
    assert (embedding.of(0) == embedding.of(2)).all()
    assert turned[embedding.of(0), embedding.of(1)].all()
    scopes = [model.scope[i:j].tolist() for i, j in pairwise(model.scope_ptr.tolist())]
    assert sorted(map(sorted, scopes)) == [[one], [one], [one, 3]]


def test_what_is_to_stay_apart_stays():
    a, b = (bbn.Variable(name, [0, 1]) for name in "ab")
    flat = flatten(bbn.FactorGraph([bbn.Factor([a, b], np.eye(2))]))
    assert merged(flat) is not None
    assert merged(flat, {1}) is None


@pytest.mark.parametrize(
    "table",
    [
        [[1.0, 0.0], [1.0, 0.0]],  # b is the same whatever a is, and says nothing about it
        [[1.0, 1.0], [0.0, 1.0]],
        [[0.5, 0.5], [0.5, 0.5]],
    ],
)
def test_nothing_is_joined_where_only_one_fixes_the_other(table):
    a, b = (bbn.Variable(name, [0, 1]) for name in "ab")
    assert merged(flatten(bbn.FactorGraph([bbn.Factor([a, b], np.array(table))]))) is None


@pytest.mark.skipif(not kernels.COMPILED, reason="too slow in numpy")
def test_a_large_pedigree_has_fewer_cells_and_the_same_answers(always, monkeypatch):
    net = pedigree(14, 3, 2, near=6)
    (case,) = phenotypes(net, 0.9, 2)
    made, opened = [], filtered_query.open_plan
    monkeypatch.setattr(
        filtered_query, "open_plan", lambda *given: made.append(given[0].cells) or opened(*given)
    )
    joined = bbn.JunctionTree(net).posteriors(case)
    monkeypatch.setattr(filtered_query, "MERGED", math.inf)
    apart = bbn.JunctionTree(net).posteriors(case)
    assert made[0] < 0.8 * made[1]
    assert joined.log_evidence == pytest.approx(apart.log_evidence, abs=1e-9)
    for name, answer in joined.items():
        np.testing.assert_allclose(answer.values, apart[name].values, atol=1e-9)
