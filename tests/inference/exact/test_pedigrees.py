"""Linkage networks: each answer against every way in which the genes can have been handed down."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest

import bbn
from bbn.inference.exact import filtered_query, query_compiler, shared_order
from tests.inference.exact.test_domain_filtering import filtered
from tests.support.pedigrees import pedigree, phenotypes


@pytest.fixture
def always(monkeypatch):
    """Prune whatever the size, and climb at every question."""
    monkeypatch.setattr(query_compiler, "FILTERED", -1.0)
    monkeypatch.setattr(query_compiler, "WHOLE_TREE", -1.0)
    for module in (query_compiler, filtered_query):
        monkeypatch.setattr(module, "making", lambda model: -1e-9)
    monkeypatch.setattr(filtered_query, "GAIN", -1e9)
    monkeypatch.setattr(shared_order, "SHARE", 1e9)


def handed_down(net, evidence):
    """The joint, without what cannot be: codes of all variables (rows), and their probabilities."""
    position = {name: i for i, name in enumerate(net.names)}
    rows, weights = np.zeros((1, 0), np.int64), np.ones(1)
    for cpt in net.conditionals:
        chances = cpt.table[tuple(rows[:, position[p.name]] for p in cpt.parents)]
        chances = np.broadcast_to(chances, (len(rows), cpt.variable.card)).copy()
        if cpt.variable.name in evidence:
            seen = cpt.variable.states.index(evidence[cpt.variable.name])
            chances[:, [k for k in range(cpt.variable.card) if k != seen]] = 0
        row, code = np.nonzero(chances)
        rows = np.column_stack([rows[row], code])
        weights = weights[row] * chances[row, code]
    return rows, weights


@pytest.mark.parametrize("huge", [shared_order.HUGE, -1.0])  # on the shared tree, or each question on its own
@pytest.mark.parametrize("seed", range(8))
def test_posteriors_are_those_of_all_ways_to_hand_genes_down(seed, huge, always, monkeypatch):
    monkeypatch.setattr(shared_order, "HUGE", huge)
    net = pedigree(4, 2, seed, alleles=2, founders=2) if seed % 2 else pedigree(3, 2, seed, 3, founders=2)
    engine = bbn.JunctionTree(net)
    for case in phenotypes(net, 0.7, seed, n=6):
        rows, weights = handed_down(net, case)
        answers = engine.posteriors(case)
        assert answers.log_evidence == pytest.approx(math.log(weights.sum()), abs=1e-10)
        for i, v in enumerate(net.variables):
            if v.name not in case:
                truth = np.bincount(rows[:, i], weights, v.card) / weights.sum()
                np.testing.assert_allclose(answers[v.name].values, truth, atol=1e-10)


def test_impossible_phenotypes_are_found_without_a_plan(always, monkeypatch):
    net = pedigree(12, 3, 1, near=6)
    engine = bbn.JunctionTree(net)
    # a child of two parents that are alike and carry one allele alone is like them
    child = next(i for i in range(4, 12) if f"Y{i}.1" in net)
    parents = sorted(
        {int(p.name[1:].split(".")[0][:-1]) for side in "pm" for p in net[f"G{child}{side}.1"].parents[:2]}
    )
    evidence = {f"Y{i}.1": "0|0" for i in parents} | {f"Y{child}.1": "1|1"}
    made = []
    monkeypatch.setattr(filtered_query, "open_plan", lambda *given: made.append(given))
    assert (
        engine._marginals(engine._findings(evidence, engine.options), engine.options).log_evidence
        == -math.inf
    )
    assert not made


def test_trees_get_smaller_while_a_shape_is_used_and_are_the_same_every_time(always):
    net = pedigree(14, 3, 2, near=6)
    cases = phenotypes(net, 0.5, 2, n=24)
    found = []
    for _ in range(2):
        engine = bbn.JunctionTree(net)
        cells = []
        for case in cases:
            engine.posteriors(case)
            tree = filtered(engine)[0].shared
            cells.append(tree.cells)
        found.append((cells, [part.tolist() for part in tree.elimination]))
        known = [c for c in cells if c]
        assert known == sorted(known, reverse=True)
        assert known[-1] < known[0]
    assert found[0] == found[1]


def test_two_threads_ask_about_one_shape(always):
    net = pedigree(10, 3, 3, near=6)
    cases = phenotypes(net, 0.5, 3, n=20)
    expected = [bbn.JunctionTree(net).posteriors(case) for case in cases]
    engine = bbn.JunctionTree(net)
    faults = []

    def ask(order):
        try:
            for k in order:
                answers = engine.posteriors(cases[k])
                assert answers.log_evidence == pytest.approx(expected[k].log_evidence, abs=1e-9)
                for name, found in answers.items():
                    np.testing.assert_allclose(found.values, expected[k][name].values, atol=1e-9)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=ask, args=[order]) for order in (range(20), range(19, -1, -1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
