"""The most probable explanations through noisy maxima: against all states of small networks, and closed forms."""

from __future__ import annotations

import contextlib
import itertools
import math
import tracemalloc

import numpy as np
import pytest

import bbn
from bbn.inference.search import explanations
from bbn.inference.search import noisy_max_search as noisy_best
from bbn.inference.search.exchangeable_variables import Class, rearranged
from bbn.inference.search.noisy_max_search import SINGLE, NoisyBest, bounded


def searched_first(monkeypatch):
    """Search for as long as it takes, however cheap the tree would be."""
    monkeypatch.setattr(explanations, "bounded", lambda model, beyond=SINGLE: bounded(model, SINGLE))
    monkeypatch.setattr(explanations, "LIGHT", -1.0)
    monkeypatch.setattr(explanations, "PATIENCE", math.inf)


@pytest.fixture
def searches(monkeypatch):
    """Bound every NoisyMax, however small; a list of the searches made."""
    made = []
    real = NoisyBest.best
    monkeypatch.setattr("bbn.model.expansion.TABLE_CELLS", 1)
    searched_first(monkeypatch)
    monkeypatch.setattr(NoisyBest, "best", lambda self: made.append(self) or real(self))
    return made


def zeroed(rng, rows, card):
    """Distributions, some of them with zeros."""
    table = rng.dirichlet(np.ones(card), rows)
    table[rng.random(table.shape) < 0.15] = 0.0
    table[table.sum(axis=1) == 0] = 1.0
    return table / table.sum(axis=1, keepdims=True)


def with_equal_causes(rng):
    """Causes of few kinds, most of them equal, above noisy maxima; some with an observed sign or a table below."""
    kinds = [(card := int(rng.integers(2, 4)), rng.dirichlet(np.ones(card))) for _ in range(2)]
    causes, parts, kind_of = [], [], []
    for i in range(int(rng.integers(4, 8))):
        kind = int(rng.integers(2))
        card, table = kinds[kind]
        causes.append(bbn.Variable(f"C{i}", [f"s{k}" for k in range(card)]))
        parts.append(bbn.CPT(causes[-1], table=table))
        kind_of.append(kind)
    sign = zeroed(rng, kinds[0][0], 2)
    for i, cause in enumerate(causes):
        if kind_of[i] == 0 and rng.random() < 0.4:
            parts.append(bbn.CPT(bbn.Variable(f"S{i}", ["a", "b"]), [cause], sign))
    for f in range(int(rng.integers(1, 3))):
        child = bbn.Variable(f"E{f}", [f"e{k}" for k in range(int(rng.integers(2, 4)))])
        links = [zeroed(rng, kinds[k][0], child.card) for k in range(2)]
        chosen = [i for i in range(len(causes)) if rng.random() < 0.9] or [0]
        own = [links[kind_of[i]] for i in chosen]
        if rng.random() < 0.5:  # one that is not like the others
            own[0] = zeroed(rng, causes[chosen[0]].card, child.card)
        strongest = child.states[int(rng.integers(2)) * -1]
        leak = zeroed(rng, 1, child.card)[0]
        parts.append(bbn.NoisyMax(child, [causes[i] for i in chosen], own, leak, strongest=strongest))
        if rng.random() < 0.3:
            below = bbn.Variable(f"Z{f}", ["a", "b"])
            parts.append(bbn.CPT(below, [child], zeroed(rng, child.card, 2)))
    return bbn.BayesianNetwork(parts)


@pytest.mark.parametrize("part", range(6))
def test_explanations_with_equal_causes_are_those_of_the_joint(part, searches):
    for seed in range(25 * part, 25 * part + 25):
        rng = np.random.default_rng(seed)
        net = with_equal_causes(rng)
        joint = net.joint()
        names = [v.name for v in joint.variables]
        possible = np.argwhere(joint.values > 0)
        row = possible[int(rng.integers(len(possible)))].tolist()
        seen = {
            name: net.states(name)[code]
            for name, code in zip(names, row, strict=True)
            if rng.random() < (0.1 if name[0] == "C" else 0.7)
        }
        where = tuple(code if name in seen else slice(None) for name, code in zip(names, row, strict=True))
        rest = joint.values[where]
        ranked = np.sort(rest[rest > 0], axis=None)[::-1]
        best = net.mpe(seen)
        assert best.log_probability == pytest.approx(math.log(ranked[0]), abs=1e-10), seed
        assert net.probability({**seen, **best.states}) == pytest.approx(ranked[0], rel=1e-9)
        several = net.mpe(seen, k=7)
        assert len(several) == min(7, len(ranked)), seed
        assert len({tuple(own.states.items()) for own in several}) == len(several)
        for own, p in zip(several, ranked.tolist(), strict=False):
            assert own.log_probability == pytest.approx(math.log(p), abs=1e-10), seed
            assert net.probability({**seen, **own.states}) == pytest.approx(p, rel=1e-9)
    assert any(own.classes for own in searches)


@pytest.mark.parametrize("numbers", [[(0.45, 0.2)], [(0.3, 0.3), (0.4, 0.1)], [(0.4, 0.02), (0.49, 0.01)]])
def test_a_hundred_causes_of_few_kinds(numbers):
    size, leak = 100 // len(numbers), 0.002
    causes = [bbn.Variable(f"C{i}", ["no", "yes"]) for i in range(size * len(numbers))]
    kind = [numbers[i % len(numbers)] for i in range(len(causes))]
    net = bbn.BayesianNetwork(
        [
            *(bbn.CPT(v, table=[1 - p, p]) for v, (p, _) in zip(causes, kind, strict=True)),
            bbn.NoisyOr(bbn.Variable("E", ["no", "yes"]), causes, [link for _, link in kind], leak),
        ]
    )
    highest = -math.inf
    for counts in itertools.product(range(size + 1), repeat=len(numbers)):
        quiet = math.log1p(-leak) + sum(
            m * math.log1p(-link) for m, (_, link) in zip(counts, numbers, strict=True)
        )
        causes_on = sum(
            m * math.log(p) + (size - m) * math.log1p(-p) for m, (p, _) in zip(counts, numbers, strict=True)
        )
        if causes_on + math.log(-math.expm1(quiet)) > highest:
            highest, best = causes_on + math.log(-math.expm1(quiet)), counts
    found = net.mpe({"E": "yes"})
    assert found.log_probability == pytest.approx(highest, abs=1e-9)
    for k, count in enumerate(best):
        states = [found.states[v.name] for v in causes[k :: len(numbers)]]
        assert states == ["yes"] * count + ["no"] * (size - count)  # the first of each kind


def overlapping(rng, n=9, m=7):
    """Diseases above findings that have many of them in common, and ln P of each setting of the diseases with the best
    states of the findings that are not observed."""
    diseases = [bbn.Variable(f"D{i}", ["no", "yes"]) for i in range(n)]
    priors = rng.uniform(0.02, 0.4, n)
    parts = [bbn.CPT(v, table=[1 - p, p]) for v, p in zip(diseases, priors, strict=True)]
    settings = np.array(list(itertools.product([0, 1], repeat=n)))
    logs = settings @ np.log(priors) + (1 - settings) @ np.log1p(-priors)
    evidence = {}
    for f in range(m):
        chosen = np.sort(rng.permutation(n)[: int(rng.integers(3, n + 1))])
        links, leak = rng.uniform(0.1, 0.9, len(chosen)), float(rng.uniform(0, 0.1))
        child = bbn.Variable(f"F{f}", ["no", "yes"])
        parts.append(bbn.NoisyOr(child, [diseases[i] for i in chosen], links.tolist(), leak))
        off = (1 - leak) * np.prod(np.where(settings[:, chosen] == 1, 1 - links, 1.0), axis=1)
        seen = [None, "no", "yes"][int(rng.integers(3))]
        if seen is not None:
            evidence[child.name] = seen
        with np.errstate(divide="ignore"):
            logs += np.log({"no": off, "yes": 1 - off, None: np.maximum(off, 1 - off)}[seen])
    return bbn.BayesianNetwork(parts), evidence, logs


@pytest.mark.parametrize("seed", range(30))
def test_overlapping_effects_need_no_clique_of_their_causes(seed, monkeypatch):
    monkeypatch.setattr(noisy_best, "LIGHT", 30.0)
    searched_first(monkeypatch)
    net, evidence, logs = overlapping(np.random.default_rng(seed))
    found = net.mpe(evidence)
    assert found.log_probability == pytest.approx(logs.max(), abs=1e-10)
    assert math.log(net.probability({**evidence, **found.states})) == pytest.approx(logs.max(), abs=1e-9)


def test_what_does_not_fit_as_tables_is_bounded():
    net, evidence, logs = overlapping(np.random.default_rng(3), 12, 12)
    found = net.mpe(evidence, memory_limit="100 kB")
    assert found.log_probability == pytest.approx(logs.max(), abs=1e-10)


def test_a_search_that_does_not_end_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(noisy_best, "NODES", 3)
    monkeypatch.setattr(noisy_best, "LIGHT", 30.0)
    searched_first(monkeypatch)
    net, evidence, _ = overlapping(np.random.default_rng(0), 12, 12)
    with pytest.raises(bbn.BudgetError, match=r"not proved within 3 parts .*'F\d+'.*net.subnetwork.*`map`"):
        net.mpe(evidence, memory_limit="60 kB")  # which the tree does not fit


def test_rearranged_gives_each_order_once():
    group = [Class([0, 2, 3], False), Class([1, 4], True)]
    codes = {0: 0, 2: 1, 3: 1, 1: 1, 4: 0, 5: 2}
    found = [tuple(own[i] for i in range(6)) for own in rearranged(codes, group, 100)]
    assert found[0] == (0, 1, 1, 1, 0, 2)
    expected = {
        (a, d, b, c, e, 2)
        for a, b, c in itertools.permutations([0, 1, 1])
        for d, e in itertools.permutations([0, 1])
    }
    assert len(found) == len(expected) == group[0].arrangements(codes) * group[1].arrangements(codes)
    assert set(found) == expected


def test_effects_of_two_causes_need_no_clique_of_them_all():
    """Findings that nobody observed tie 120 diseases two by two, as tables in cliques that do not fit."""
    rng = np.random.default_rng(8)
    diseases = [bbn.Variable(f"D{i}", ["yes", "no"]) for i in range(120)]
    parts = [
        bbn.CPT(v, table=[p, 1 - p]) for v, p in zip(diseases, rng.uniform(0.01, 0.05, 120), strict=True)
    ]
    for f in range(500):
        own = [diseases[i] for i in rng.choice(120, 2, replace=False)]
        child = bbn.Variable(f"F{f}", ["yes", "no"])
        parts.append(bbn.NoisyOr(child, own, rng.uniform(0.2, 0.8, 2).tolist(), leak=0.02))
    net = bbn.BayesianNetwork(parts)
    seen = {f"F{f}": "yes" for f in range(4)}
    best = net.mpe(seen)
    codes = {**best.states, **seen}
    assert best.log_probability == pytest.approx(math.log(net.probability(codes)), abs=1e-9)
    # no change of one disease, with the better state of each finding, is more probable
    for v in diseases:
        other = dict(codes)
        other[v.name] = "no" if codes[v.name] == "yes" else "yes"
        value = 0.0
        for own in net.conditionals:
            row = own.row(*(other[p.name] for p in own.parents)) if own.parents else None
            p = row if row is not None else dict(zip(own.variable.states, own.table, strict=True))
            seen_here = own.variable.name in seen or not own.parents
            value += math.log(p[other[own.variable.name]] if seen_here else max(p.values()))
        assert value <= best.log_probability + 1e-9


def test_a_search_keeps_to_its_memory_limit():
    """Overlapping effects, half of them of causes drawn at random: hundreds of parts wait to be looked at."""
    rng = np.random.default_rng(0)
    causes = [bbn.Variable(f"d{i}", ["no", "yes"]) for i in range(40)]
    parts = [bbn.CPT(v, table=[0.9, 0.1]) for v in causes]
    for j in range(24):
        few = sorted(rng.permutation(range(j, min(40, j + 18)))[:9])
        parents = causes[j : j + 12] if j % 2 else [causes[k] for k in few]
        chances = list(rng.random(len(parents)) * 0.8 + 0.1)
        parts.append(bbn.NoisyOr(bbn.Variable(f"f{j}", ["no", "yes"]), parents, chances, leak=0.02))
    net = bbn.BayesianNetwork(parts)
    seen = {f"f{j}": "yes" for j in range(0, 24, 2)}
    limit = 1_000_000
    net.mpe({"f1": "yes"})  # what is imported late does not count
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with contextlib.suppress(bbn.BudgetError):
            bbn.JunctionTree(net, memory_limit=limit).mpe(seen)
        used = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert used < 1.05 * limit + 2_000_000  # the engine, and its copies of the network
