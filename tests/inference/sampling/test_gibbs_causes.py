"""Gibbs sampling through noisy maxima and functions of many parents, without their tables."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import bbn
from bbn.inference.relevant_factors import merged_factors, observed_factors
from bbn.inference.sampling.gibbs_blocks import choose_blocks
from bbn.inference.sampling.gibbs_causes import compile_causes
from bbn.inference.sampling.gibbs_sweep import compile_sweep
from bbn.inference.sampling.gibbs_ties import tied_blocks
from bbn.kernels.contracts.moves import Groups
from bbn.kernels.pure import sample as pure
from bbn.model.evidence import check_evidence
from tests.support import oracle
from tests.support.many_causes import network, some_evidence, with_tables


def compiled(net, seen):
    """The moves of a chain: factors, blocks, columns, sweep and causes, with every conditional as a family."""
    findings = check_evidence(net, seen)
    engine = bbn.GibbsSampling(net)
    relevant, families = engine._parts(set(net.names), findings)
    factors, _ = merged_factors(observed_factors(net, findings, relevant))
    cards = {v.name: v.card for v in net.variables if v.name not in findings.hard}
    columns = {name: i for i, name in enumerate(cards)}
    moves = [b for b in tied_blocks(choose_blocks(factors, cards), families, factors) if len(b.states) > 1]
    caused = {name for own in families for name in (own.child, *(p.name for p in own.parents)) if name}
    sweep = compile_sweep(factors, moves, columns, None, caused)
    return families, factors, moves, columns, sweep, compile_causes(families, moves, columns)


@pytest.fixture
def every_family(monkeypatch):
    """No full table is made."""
    monkeypatch.setattr("bbn.model.expansion.TABLE_CELLS", 1)


@pytest.mark.parametrize("seed", range(60))
def test_each_move_draws_from_the_full_conditional(seed, every_family):
    """The weights of a move's states are, up to a factor, the joint at these states and the others as they are."""
    rng = np.random.default_rng([26, seed])
    net = network(rng, zeros=0.15)
    seen = some_evidence(net, rng, 0.3)
    families, factors, moves, columns, _, causes = compiled(net, seen)
    assert families
    joint = oracle.joint(with_tables(net))
    for _ in range(5):
        row = with_tables(net).sample(1, seen, seed=int(rng.integers(2**31))).iloc[0]
        codes = np.array([list(net.states(name)).index(row[name]) for name in columns], np.uint8)
        for i, move in enumerate(moves):
            expected, found = [], []
            for j, states in enumerate(move.states):
                there = codes.copy()
                there[[columns[name] for name in move.names]] = states
                full = {name: net.states(name)[there[c]] for name, c in columns.items()} | seen
                expected.append(joint[tuple(full[name] for name in net.names)])
                weight = np.prod([f.values[tuple(there[columns[n]] for n in f.names)] for f in factors])
                for t in range(causes.term_ptr[i], causes.term_ptr[i + 1]):
                    weight *= pure.term_weights(causes, t, codes, len(move.states))[j]
                # families that the move leaves alone say the same of all its states
                found.append(weight)
            assert sum(expected) > 0
            np.testing.assert_allclose(
                np.array(found) / sum(found), np.array(expected) / sum(expected), rtol=1e-9, atol=1e-13
            )


@pytest.mark.parametrize("seed", range(12))
def test_compiled_chains_are_those_of_the_twin(seed, every_family):
    sample = pytest.importorskip("bbn.kernels.compiled.sample")
    rng = np.random.default_rng([27, seed])
    net = network(rng, zeros=0.15)
    seen = some_evidence(net, rng, 0.3)
    *_, columns, sweep, causes = compiled(net, seen)
    rows = with_tables(net).sample(5, seen, seed=seed)
    start = np.array([[list(net.states(n)).index(x) for x in rows[n]] for n in columns], np.uint8)
    groups = Groups(*(np.zeros(n, np.int64) for n in (1, 0, 0, 0)), 0)
    ends = []
    for kernel in (pure, sample):
        codes = start.copy()
        kernel.gibbs(np.random.SFC64(seed), sweep, codes, 40, groups, np.zeros((5, 0), np.int64), causes)
        ends.append(codes.tolist())
    assert ends[0] == ends[1]


def close(found, exact, names):
    """Within five of the sampler's own standard errors, but for one in a thousand."""
    for name in names:
        error = np.maximum(found[name].std_error, 1e-4)
        assert (np.abs(found[name].values - exact[name].values) < 5 * error).all(), name


@pytest.mark.parametrize("seed", range(12))
def test_small_networks_agree_with_exact_answers(seed, every_family):
    rng = np.random.default_rng([28, seed])
    net = network(rng, zeros=0.1 * (seed % 2))
    seen = some_evidence(net, rng, 0.3)
    free = [name for name in net.names if name not in seen]
    seen[free[0]] = bbn.Virtual(dict(zip(net.states(free[0]), rng.uniform(0.2, 1, 4), strict=False)))
    exact = bbn.Enumeration(with_tables(net)).posteriors(seen)
    sure = any(exact[name].values.max() > 1 - 1e-4 for name in free)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.MixingWarning)
        if sure:  # then a sampler cannot say how sure
            warnings.simplefilter("ignore", bbn.AccuracyWarning)
        found = net.posteriors(seen, method="gibbs", n_samples=60_000, seed=seed)
    close(found, exact, free)


def causes_of(n, p):
    return [bbn.Variable(f"C{i}", ["no", "yes"]) for i in range(n)], [[1 - q, q] for q in p]


@pytest.mark.parametrize("observed", [{"E": "yes"}, {"E": "no"}, {"F": "yes"}, {"F": "yes", "C3": "yes"}])
def test_a_noisy_or_of_a_hundred_parents(observed):
    rng = np.random.default_rng(5)
    variables, tables = causes_of(100, rng.uniform(0.005, 0.05, 100))
    effect = bbn.NoisyOr(bbn.Variable("E", ["no", "yes"]), variables, list(rng.uniform(0.2, 0.9, 100)))
    sign = bbn.CPT(bbn.Variable("F", ["no", "yes"]), [effect.variable], [[0.95, 0.05], [0.2, 0.8]])
    net = bbn.BayesianNetwork(
        [*(bbn.CPT(v, table=t) for v, t in zip(variables, tables, strict=True)), effect, sign]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.MixingWarning)
        found = net.posteriors(observed, method="gibbs", n_samples=40_000, seed=1)
        again = net.posteriors(observed, method="gibbs", n_samples=40_000, seed=1, n_jobs=2)
    close(found, net.posteriors(observed), [n for n in net.names if n not in observed])
    assert found["C50"].values.tolist() == again["C50"].values.tolist()


@pytest.mark.parametrize(
    ("rule", "observed"),
    [
        ("sum", {"D": 3}),
        ("sum", {"D": 5}),
        ("sum", {}),
        ("or", {"D": 1}),
        ("xor", {"D": 1}),
        ("at-least", {"D": 1}),
        ("at-least", {"D": 0, "C3": "yes"}),
        ("and", {"D": 0}),
        ("max", {"D": 2}),
        ("min", {"F": "yes"}),
    ],
)
def test_functions_of_many_parents(rule, observed):
    rng = np.random.default_rng(6)
    p = rng.uniform(0.9, 0.99, 60) if rule == "and" else rng.uniform(0.01, 0.1, 60)
    variables, tables = causes_of(60, p)
    if rule in ("max", "min"):
        variables = [bbn.Variable(f"C{i}", [0, 1, 2]) for i in range(60)]
        tables = [rng.dirichlet([0.1, 1, 9] if rule == "min" else [9, 1, 0.1]) for _ in variables]
    states = [0, 1, 2] if rule in ("max", "min") else [0, 1, 2, 3, 4, 5] if rule == "sum" else [0, 1]
    at_least = 4 if rule == "at-least" else None
    child = bbn.Deterministic(bbn.Variable("D", states), variables, rule, at_least=at_least)
    sign = bbn.CPT(bbn.Variable("F", ["no", "yes"]), [child.variable], rng.dirichlet([1, 1], len(states)))
    net = bbn.BayesianNetwork(
        [*(bbn.CPT(v, table=t) for v, t in zip(variables, tables, strict=True)), child, sign]
    )
    with pytest.warns(bbn.MixingWarning, match="60 causes|57 causes|59 causes"):
        found = net.posteriors(observed, method="gibbs", n_samples=40_000, seed=2)
    close(found, net.posteriors(observed), [n for n in net.names if n not in observed])


def test_sums_that_pairs_cannot_reach_are_refused_by_name():
    variables = [bbn.Variable(f"C{i}", [0, 2 + i % 2]) for i in range(20)]
    child = bbn.Deterministic(bbn.Variable("D", list(range(51))), variables, "sum")
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.5, 0.5]) for v in variables), child])
    with (
        pytest.warns(bbn.MixingWarning),
        pytest.raises(bbn.EvidenceError, match=r"the numbers of C0, .* \(20 variables\) must make up a sum"),
    ):
        net.query("C0", {"D": 12}, method="gibbs", n_samples=100, seed=1)


def test_many_terms_do_not_vanish():
    """A cause of 400 effects, all of them seen, each of probability 0.001: their product is no double."""
    cause = bbn.Variable("C", ["no", "yes"])
    idle = [bbn.Variable(f"I{k}", ["no", "yes"]) for k in range(16)]
    effects = [
        bbn.NoisyOr(
            bbn.Variable(f"E{k}", ["no", "yes"]), [cause, *idle], [0.002 * (k == 0), *[0.0] * 16], leak=0.001
        )
        for k in range(400)
    ]
    net = bbn.BayesianNetwork([*(bbn.CPT(v, table=[0.5, 0.5]) for v in (cause, *idle)), *effects])
    seen = {f"E{k}": "yes" for k in range(400)}
    found = net.query("C", seen, method="gibbs", n_samples=4000, seed=1)
    shown = 1 - 0.999 * 0.998
    assert found["yes"] == pytest.approx(shown / (shown + 0.001), abs=5 * found.std_error[0])
