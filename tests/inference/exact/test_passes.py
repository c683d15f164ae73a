"""Passes serve every kind of question: forced on and off, and a toy written by the recipe, against the joint."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from bbn.inference.exact import filtered_query, junction_tree, marginal_map, passes, query_compiler
from bbn.inference.exact.embedding import Embedding
from bbn.inference.exact.passes import PASSES, Pass
from bbn.inference.exact.problem import offsets
from tests.inference.exact.test_cutset_conditioning import every_question_within
from tests.support import sparse_models

PLENTY = 10**7


def shuffled(model, apart):
    """A toy: the states of each variable in another order, those in `apart` as they are."""
    rng = np.random.default_rng(len(model.tables))
    codes = [
        np.arange(card) if v in apart else rng.permutation(card)
        for v, card in enumerate(model.cards.tolist())
    ]
    tables = []
    for (a, b), (start, end) in zip(
        pairwise(model.scope_ptr.tolist()), pairwise(model.table_ptr.tolist()), strict=True
    ):
        scope = model.scope[a:b].tolist()
        table = model.tables[start:end].reshape([model.cards[v] for v in scope])
        tables.append(table[np.ix_(*(codes[v] for v in scope))].ravel() if scope else table.ravel())
    every = np.arange(len(model.cards))
    embedding = Embedding(every, offsets(model.cards), np.concatenate(codes), model.cards, model.cards)
    return model._replace(tables=np.concatenate([np.empty(0), *tables])), embedding


@pytest.fixture(params=["none", "filtering", "all", "toy", "toy, constrained"])
def forced(request, monkeypatch):
    """Which passes are applied, whatever they cost."""
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    if request.param == "none":
        monkeypatch.setattr(query_compiler.Compiler, "filters", lambda self: None)
        return
    monkeypatch.setattr(query_compiler, "FILTERED", -1.0)
    monkeypatch.setattr(filtered_query, "GAIN", -1e9)
    for module in (query_compiler, filtered_query):
        monkeypatch.setattr(module, "making", lambda model: -1e-9)
    if request.param != "filtering":
        monkeypatch.setattr(filtered_query, "MERGED", -1.0)
        monkeypatch.setattr(junction_tree, "JOINT_CELLS", 0)
    if request.param.startswith("toy"):
        monkeypatch.setattr(passes, "PASSES", (Pass("shuffled states", shuffled), *PASSES))
    if request.param == "toy, constrained":
        monkeypatch.setattr(marginal_map, "JOINT_CELLS", 0)


@pytest.mark.parametrize("part", range(3))
def test_every_kind_of_question_says_what_the_joint_says(forced, part):
    answered = 0
    for seed in range(5000 + 12 * part, 5012 + 12 * part):
        rng = np.random.default_rng(seed)
        model = sparse_models.model(rng)
        answered += every_question_within(PLENTY, model, sparse_models.evidence(rng, model))
    assert answered > 200


def test_embeddings_compose():
    """One after the other is what the composition says, for random chains of filters, merges and permutations."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        cards = rng.integers(1, 5, 6)
        first, second = _random(rng, cards), None
        second = _random(rng, first.new)
        both = first.then(second)
        state = np.array([rng.integers(card) for card in second.new])
        middle = second.assignment(state)
        np.testing.assert_array_equal(both.assignment(state), first.assignment(middle))
        np.testing.assert_array_equal(both.old, cards)
        np.testing.assert_array_equal(both.new, second.new)


def _random(rng, cards):
    """An embedding of variables of these cards: some states left out, some variables told by another."""
    n = len(cards)
    new = np.array([rng.integers(1, card + 1) for card in cards])
    source = np.arange(n)
    for v in range(n):
        others = [
            u
            for u in range(n)
            if u != v and source[u] == u and new[u] <= cards[v] and (source == v).sum() <= 1
        ]
        if others and rng.random() < 0.3:
            source[v] = others[int(rng.integers(len(others)))]
            new[v] = 1 if not (source == v).any() else new[v]
    codes = [rng.permutation(cards[v])[: new[source[v]]] for v in range(n)]
    return Embedding(
        source, offsets([len(own) for own in codes]), np.concatenate(codes), np.array(cards), new
    )
