"""Sampling engines against exact posteriors: no bias, honest errors, warnings where an answer is poor."""

from __future__ import annotations

import math
import pickle
import time
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import chi2

import bbn
from bbn.inference.relevant_factors import merged_factors
from bbn.inference.sampling import gibbs_sweep
from bbn.inference.sampling.accuracy import chain_error, split_r_hat
from bbn.inference.sampling.gibbs_blocks import choose_blocks
from bbn.inference.sampling.tail import largest, pareto_k
from bbn.inference.sampling.weighted import Tally
from bbn.kernels.pure import sample as sample_np
from bbn.model.factor import Factor
from tests.inference.sampling.test_sample import random_evidence
from tests.support import oracle
from tests.support.strategies import random_network

METHODS = ["likelihood-weighting", "rejection", "importance", "gibbs"]
INDEPENDENT = METHODS[:3]
"""Those whose samples are independent, and that estimate the probability of the evidence."""


def quiet(function, *args, **options):
    """Call with the library's warnings off: whether they come is another test's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        return function(*args, **options)


def hard_network() -> bbn.BayesianNetwork:
    """Seven variables without zeros, in which evidence on the leaves reaches the roots by several paths."""
    rng = np.random.default_rng(0)
    a, b, c, d, e, f, g = (
        bbn.Variable(n, list(range(k))) for n, k in zip("ABCDEFG", (2, 3, 2, 3, 2, 2, 3), strict=True)
    )
    families = [(a, []), (b, [a]), (c, [a]), (d, [b, c]), (e, [d]), (f, [d, b]), (g, [e, f])]
    return bbn.BayesianNetwork(
        [
            bbn.CPT(v, ps, 0.05 / v.card + 0.95 * rng.dirichlet(np.ones(v.card), [p.card for p in ps]))
            for v, ps in families
        ]
    )


EVIDENCE: dict[str, Any] = {"G": 2, "E": bbn.Virtual({0: 0.9, 1: 0.4})}


# No bias


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_unbiased_on_random_networks(method):
    scores = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        net = random_network(rng, max_nodes=7, max_cells=400, min_card=2, zeros=method != "gibbs")
        evidence = random_evidence(rng, net)
        if oracle.evidence_probability(net, evidence) < 0.01:
            continue
        answers = quiet(net.posteriors, evidence, method=method, n_samples=40_000, seed=seed)
        for name, p in answers.items():
            exact = oracle.posterior(net, [name], evidence)
            truth = np.array([exact[(s,)] for s in net.states(name)])
            common = (truth * p.ess > 25) & ((1 - truth) * p.ess > 25)
            assert (p.values[truth == 0] == 0).all()
            scores += ((p.values - truth) / p.std_error)[common].tolist()
    scores = np.array(scores)
    assert len(scores) > 300
    assert np.abs(scores).max() < 6
    # Entries of one network share their samples: allow for a third as many independent scores.
    assert abs(scores.mean()) < 5 / math.sqrt(len(scores) / 3)
    assert 0.8 < np.mean(scores**2) < 1.25


@pytest.mark.parametrize("method", METHODS)
def test_estimates_are_unbiased_on_alarm(method):
    net = bbn.example("alarm")
    evidence = {"HRBP": "HIGH", "CVP": "LOW"}
    exact = net.posteriors(evidence)
    n_samples = 4_000_000 if method == "gibbs" else 200_000
    answers = quiet(net.posteriors, evidence, method=method, n_samples=n_samples, seed=3)
    scores = np.concatenate(
        [
            ((p.values - exact[name].values) / p.std_error)[exact[name].values * p.ess > 25]
            for name, p in answers.items()
        ]
    )
    assert len(scores) > 60
    assert np.abs(scores).max() < 6
    assert 0.5 < np.mean(scores**2) < 1.9


@pytest.mark.parametrize("method", INDEPENDENT)
def test_the_probability_of_the_evidence_is_unbiased(method):
    net = hard_network()
    exact = oracle.evidence_probability(net, EVIDENCE)
    engine = bbn.inference.engine_class(method)(net, n_samples=2000)
    found = np.array([math.exp(engine.log_evidence(EVIDENCE, seed=seed)) for seed in range(100)])
    assert abs(found.mean() - exact) < 5 * found.std(ddof=1) / math.sqrt(len(found))


@pytest.mark.parametrize("method", INDEPENDENT)
def test_evidence_of_any_length_does_not_underflow(method):
    root = bbn.Variable("R", ["a", "b"])
    leaves = [bbn.Variable(f"L{i}", ["x", "y"]) for i in range(1500)]
    net = bbn.BayesianNetwork(
        [bbn.CPT(root, table=[0.5, 0.5]), *(bbn.CPT(v, [root], [[0.5, 0.5], [0.499, 0.501]]) for v in leaves)]
    )
    evidence = {v.name: "x" for v in leaves}
    if method == "rejection":
        with pytest.raises(bbn.NoSampleError, match="its probability is"):
            net.query("R", evidence, method=method, n_samples=1000, seed=1)
        return
    p = net.query("R", evidence, method=method, n_samples=20_000, seed=1)
    exact = net.query("R", evidence)
    assert abs(p["a"] - exact["a"]) < 5 * p.std_error[0] + 1e-4
    assert p.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)


# Honest errors


@pytest.mark.parametrize(
    ("method", "n_samples", "n_seeds"),
    [
        ("likelihood-weighting", 1500, 500),
        ("rejection", 1500, 500),
        ("importance", 1500, 200),
        ("gibbs", 8000, 300),
    ],
)
def test_intervals_cover_as_often_as_they_say(method, n_samples, n_seeds):
    net = hard_network()
    exact = {
        v.name: np.array([oracle.posterior(net, [v.name], EVIDENCE)[(s,)] for s in v.states])
        for v in net.variables
    }
    engine = bbn.inference.engine_class(method)(net, n_samples=n_samples, n_jobs=1)
    covered, scores = [], []
    for seed in range(n_seeds):
        answers = quiet(engine.posteriors, EVIDENCE, seed=seed)
        for name, p in answers.items():
            low, high = p.interval(0.95)
            assert ((low <= p.values) & (p.values <= high) & (low >= 0) & (high <= 1)).all()
            usual = (exact[name] > 0.02) & (exact[name] < 0.98)
            covered += ((low <= exact[name]) & (exact[name] <= high))[usual].tolist()
            scores += ((p.values - exact[name]) / p.std_error)[usual].tolist()
    assert 0.93 < np.mean(covered) < 0.97
    assert 0.85 < np.std(scores) < 1.15


@pytest.mark.parametrize(("r", "n"), [(0.9, 3200), (0.9, 320), (0.99, 3200)])
def test_batch_means_see_through_correlation(r, n):
    # An autoregressive series whose autocorrelation time (1 + r)/(1 − r) is up to twice the length of a batch.
    rng = np.random.default_rng(0)
    chains = 16
    errors, ends = [], []
    for _ in range(200):
        x = lfilter([1], [1, -r], rng.normal(size=(chains, n + 2000)), axis=1)[:, 2000:]
        errors.append(chain_error(x.reshape(chains, 32, -1).mean(axis=2)[:, :, None])[0])
        ends.append(x.mean())
    assert np.mean(errors) == pytest.approx(np.std(ends), rel=0.2)


def test_sums_of_weights_add_up_whatever_their_scale():
    rng = np.random.default_rng(0)
    logs = [rng.normal(size=50) + shift for shift in (-800.0, 0.0, 700.0, 702.0, -3.0)]
    logs.insert(1, np.full(50, -np.inf))
    whole, weights = Tally.of(np.concatenate(logs), 1)
    whole.cells[0] = weights.sum(), (weights**2).sum()
    total = Tally(1)
    for part in logs:
        tally, weights = Tally.of(part, 1)
        tally.cells[0] = weights.sum(), (weights**2).sum()
        total.add(tally)
    assert (total.n, total.accepted) == (300, 250)
    assert total.top == whole.top
    assert total.total == pytest.approx(whole.total, rel=1e-12)
    assert total.squares == pytest.approx(whole.squares, rel=1e-12)
    assert total.cells == pytest.approx(whole.cells, rel=1e-12)


def test_split_r_hat_is_that_of_the_textbook():
    rng = np.random.default_rng(1)
    draws = (rng.random((6, 400)) < rng.random((6, 1)) * 0.1 + 0.4).astype(float)
    halves = draws.reshape(12, 200)
    w = halves.var(axis=1, ddof=1).mean()
    b = 200 * halves.mean(axis=1).var(ddof=1)
    expected = math.sqrt((199 / 200 * w + b / 200) / w)
    means = draws.reshape(6, 8, 50).mean(axis=2)[:, :, None]
    assert split_r_hat(means, 50)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_carries_its_report(method):
    net = hard_network()
    p = quiet(net.query, ["B", "G", "A"], EVIDENCE, method=method, n_samples=5000, seed=1)
    assert p.names == ("B", "G", "A")
    assert p.values.shape == p.std_error.shape == (3, 3, 2)
    assert p.values[:, :2].sum() == 0  # G is observed
    assert p.values.sum() == pytest.approx(1)
    assert 0 < p.ess <= 1.5 * p.n_samples
    assert p.n_samples >= 5000
    assert not p.interrupted
    assert (p.r_hat is not None) == (method == "gibbs")
    if method != "gibbs":
        assert 0 < p.acceptance_rate <= 1
    assert pickle.loads(pickle.dumps(p)) == p
    assert "std error" in str(p)
    low, high = p.interval()
    narrow_low, narrow_high = p.interval(0.5)
    assert (low <= narrow_low).all()
    assert (narrow_high <= high).all()


def test_an_exact_answer_has_no_error():
    p = hard_network().query("A", EVIDENCE)
    assert (p.sampling, p.std_error, p.interval(), p.ess, p.n_samples, p.r_hat) == (None,) * 6
    assert p.converged
    assert not p.interrupted


def test_a_state_never_seen_is_not_taken_for_certain():
    net = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("V", ["a", "b"]), table=[1 - 1e-7, 1e-7])])
    p = net.query("V", method="likelihood-weighting", n_samples=1000, seed=1)
    assert p["b"] == 0
    assert 0 < p.std_error[1] < 0.01
    low, high = p.interval()
    assert low[1] == 0 < 1e-7 < high[1] < 0.01


# When a run ends


@pytest.mark.parametrize("method", METHODS)
def test_a_run_goes_on_until_the_target_is_reached(method):
    p = quiet(hard_network().query, "A", EVIDENCE, method=method, target_std_error=0.002, seed=1)
    assert p.std_error.max() <= 0.002
    assert p.n_samples > 10_000
    rough = quiet(hard_network().query, "A", EVIDENCE, method=method, target_std_error=0.02, seed=1)
    assert rough.n_samples < p.n_samples


@pytest.mark.parametrize("method", METHODS)
def test_a_run_ends_by_the_clock(method):
    start = time.monotonic()
    p = quiet(hard_network().query, "A", EVIDENCE, method=method, time_limit=0.2, seed=1)
    assert 0.15 < time.monotonic() - start < 5
    assert p.n_samples > 1000


@pytest.mark.parametrize("method", METHODS)
def test_a_target_not_reached_is_said_aloud(method):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p = hard_network().query("A", EVIDENCE, method=method, n_samples=2000, target_std_error=1e-5, seed=1)
    assert any(w.category is bbn.AccuracyWarning and "target" in str(w.message) for w in caught)
    assert all(w.filename == __file__ for w in caught)
    assert not p.converged


@pytest.mark.parametrize("method", METHODS)
def test_threads_change_nothing(method):
    net = bbn.example("alarm")
    options = {"method": method, "n_samples": 60_000, "seed": 9}
    one = quiet(net.posteriors, {"HRBP": "HIGH"}, n_jobs=1, **options)
    for n_jobs in (2, 3):
        other = quiet(net.posteriors, {"HRBP": "HIGH"}, n_jobs=n_jobs, **options)
        assert all(one[name] == other[name] for name in one)
        assert one.log_evidence == other.log_evidence
    target = [
        quiet(net.query, "BP", {"HRBP": "HIGH"}, method=method, seed=9, target_std_error=0.01, n_jobs=n)
        for n in (1, 2)
    ]
    assert target[0] == target[1]


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_gives_back_what_was_reached(method, monkeypatch):
    kernel = "gibbs" if method == "gibbs" else "accumulate"
    calls = 0
    real = getattr(bbn.kernels.sample, kernel)

    def interrupted(*args):
        nonlocal calls
        calls += 1
        if calls > 20:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(bbn.kernels.sample, kernel, interrupted)
    with pytest.warns(bbn.AccuracyWarning, match="interrupted"):
        p = hard_network().query("A", EVIDENCE, method=method, n_samples=10**7, n_jobs=1, seed=1)
    assert p.interrupted
    assert not p.converged
    assert 0 < p.n_samples < 10**7
    assert p.values.sum() == pytest.approx(1)


# Poor answers and faults


def rare_network() -> bbn.BayesianNetwork:
    """Six causes, each of probability 0.01, and a leaf that is on only if they all are, but for noise."""
    causes = [bbn.Variable(f"C{i}", [0, 1]) for i in range(6)]
    leaf = bbn.Variable("Leaf", [0, 1])
    table = np.full([2] * 6 + [2], [1 - 1e-9, 1e-9])
    table[(1,) * 6] = [0.1, 0.9]
    return bbn.BayesianNetwork(
        [*(bbn.CPT(c, table=[0.99, 0.01]) for c in causes), bbn.CPT(leaf, causes, table)]
    )


def test_few_effective_samples_are_said_aloud():
    evidence = {"Leaf": 1, "C1": 1, "C2": 1, "C3": 1, "C4": 1}
    with pytest.warns(bbn.AccuracyWarning, match="worth only"):
        p = rare_network().query("C0", evidence, method="likelihood-weighting", n_samples=100_000, seed=1)
    assert p.ess < 100
    assert not p.converged


def test_weights_that_hide_the_error_are_said_aloud():
    net = bbn.example("alarm")
    likely = net.sample(1, seed=5).iloc[0]
    evidence = {n: likely[n] for n in ("HRBP", "CVP", "BP", "HISTORY", "PAP", "EXPCO2", "MINVOL", "PRESS")}
    exact = net.posteriors(evidence)
    worst = []
    for seed in range(5):
        with pytest.warns(bbn.AccuracyWarning, match="Pareto"):
            answers = net.posteriors(evidence, method="likelihood-weighting", seed=seed)
        assert not answers.sampling.converged
        worst.append(
            max(np.abs((p.values - exact[n].values) / p.std_error).max() for n, p in answers.items())
        )
    assert max(worst) > 5  # the standard errors are too small indeed
    better = net.posteriors(evidence, method="importance", seed=1)
    assert better.sampling.converged
    assert better.sampling.ess > 10_000


def test_the_shape_of_a_known_tail_is_found():
    rng = np.random.default_rng(3)
    for k in (0.3, 0.7, 1.2):
        found = [pareto_k(largest(np.log((1 - rng.random(50_000)) ** -k)), 50_000) for _ in range(20)]
        assert np.mean(found) == pytest.approx(k, abs=0.06)
    assert pareto_k(np.zeros(1000), 50_000) is None


def test_importance_sampling_adapts_to_rare_evidence():
    net = rare_network()
    evidence = {"Leaf": 1, "C1": 1, "C2": 1, "C3": 1}
    exact = net.query("C0", evidence)
    p = net.query("C0", evidence, method="importance", seed=1)
    assert p.ess > 1000
    assert abs(p[1] - exact[1]) < 5 * p.std_error[1]
    assert p.log_evidence == pytest.approx(exact.log_evidence, abs=0.1)


def test_no_accepted_sample_says_how_rare_the_evidence_is():
    with pytest.raises(bbn.NoSampleError, match=r"none of 1,000 samples .* 1 in"):
        rare_network().query("C0", {"Leaf": 1}, method="rejection", n_samples=1000, seed=1)


@pytest.mark.parametrize("method", METHODS)
def test_impossible_evidence_is_named(method):
    net = bbn.example("asia")
    evidence = {"lung": "yes", "either": "no", "smoke": "yes"}
    with pytest.raises(bbn.ImpossibleEvidenceError, match="either"):
        quiet(net.query, "asia", evidence, method=method, n_samples=2000, seed=1)


@pytest.mark.parametrize("method", METHODS)
def test_options_are_checked(method):
    net = hard_network()
    with pytest.raises(TypeError, match="n_samples"):
        net.query("A", method=method, n_sample=10)
    with pytest.raises(ValueError, match="at least 1"):
        net.query("A", method=method, n_samples=0)
    with pytest.raises(TypeError, match="n_samples"):
        net.query("A", method=method, n_samples=1.5)
    with pytest.raises(ValueError, match="target_std_error"):
        net.query("A", method=method, target_std_error=0)
    with pytest.raises(bbn.EvidenceError):
        net.query("Z", method=method)


@pytest.mark.parametrize("method", METHODS)
def test_soft_evidence_holds(method):
    net = hard_network()
    wanted = {0: 0.2, 1: 0.5, 2: 0.3}
    evidence = {"D": bbn.Soft(wanted), "G": 1}
    p = quiet(net.query, "A", evidence, method=method, seed=2)
    exact = oracle.posterior(net, ["A"], evidence)
    assert abs(p[0] - exact[(0,)]) < 5 * p.std_error[0]
    d = quiet(net.query, "D", evidence, method=method, seed=2)
    assert (np.abs(d.values - list(wanted.values())) < 5 * d.std_error).all()


@pytest.mark.parametrize("method", INDEPENDENT)
def test_models_without_arcs_are_refused_by_name(method):
    a = bbn.Variable("A", [0, 1])
    with pytest.raises(bbn.ModelError, match="gibbs"):
        bbn.FactorGraph([bbn.Factor([a], [1, 2])]).query("A", method=method)


# Gibbs sampling


def test_gibbs_works_on_factor_graphs():
    rng = np.random.default_rng(5)
    vs = [bbn.Variable(f"V{i}", list(range(k))) for i, k in enumerate((2, 3, 2, 2))]
    graph = bbn.FactorGraph(
        [
            bbn.Factor([vs[i], vs[j]], rng.random((vs[i].card, vs[j].card)) + 0.2)
            for i, j in ((0, 1), (1, 2), (2, 3), (3, 0))
        ]
    )
    for name in graph.names:
        if name == "V2":
            continue
        p = graph.query(name, {"V2": 1}, method="gibbs", seed=1)
        assert (np.abs(p.values - graph.query(name, {"V2": 1}).values) < 6 * p.std_error).all()


def copies(n: int) -> bbn.BayesianNetwork:
    """A coin, and n exact copies of it in a row."""
    vs = [bbn.Variable(f"V{i}", ["h", "t"]) for i in range(n + 1)]
    return bbn.BayesianNetwork(
        [
            bbn.CPT(vs[0], table=[0.3, 0.7]),
            *(bbn.CPT(b, [a], np.eye(2)) for a, b in pairwise(vs)),
        ]
    )


def gate(function) -> bbn.BayesianNetwork:
    """Two causes, a deterministic gate, and a noisy reading of it."""
    a, b, c, d = (bbn.Variable(n, [False, True]) for n in "ABCD")
    return bbn.BayesianNetwork(
        [
            bbn.CPT(a, table=[0.6, 0.4]),
            bbn.CPT(b, table=[0.7, 0.3]),
            bbn.CPT.deterministic(c, [a, b], function),
            bbn.CPT(d, [c], [[0.8, 0.2], [0.3, 0.7]]),
        ]
    )


def colours() -> bbn.BayesianNetwork:
    """Three nodes that must all differ in three colours: pairwise each is free to move, together none is."""
    a, b, c = (bbn.Variable(n, [0, 1, 2]) for n in "ABC")
    checks = []
    for i, (x, y) in enumerate([(a, b), (b, c), (a, c)]):
        table = np.zeros((3, 3, 2))
        table[..., 1] = 1 - np.eye(3)
        table[..., 0] = np.eye(3)
        checks.append(bbn.CPT(bbn.Variable(f"ok{i}", [False, True]), [x, y], table))
    priors = [[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]
    return bbn.BayesianNetwork(
        [*(bbn.CPT(v, table=p) for v, p in zip((a, b, c), priors, strict=True)), *checks]
    )


def triple() -> bbn.FactorGraph:
    """Three variables that are equal by one factor: no two of them can move without the third."""
    vs = [bbn.Variable(n, [0, 1]) for n in "ABC"]
    values = np.zeros((2, 2, 2))
    values[0, 0, 0], values[1, 1, 1] = 1.0, 3.0
    return bbn.FactorGraph([bbn.Factor(vs, values)])


TRAPS = {
    "copy": (copies(1), {}),
    "copies": (copies(7), {}),
    "and": (gate(lambda a, b: a and b), {"D": True}),
    "xor": (gate(lambda a, b: a != b), {"D": True}),
    "xor observed": (gate(lambda a, b: a != b), {"C": True}),
    "colours": (colours(), {"ok0": True, "ok1": True, "ok2": True}),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_gibbs_moves_blocks_where_zeros_would_trap_it(trap):
    net, evidence = TRAPS[trap]
    with pytest.warns(bbn.MixingWarning, match="zeros"):
        answers = net.posteriors(evidence, method="gibbs", seed=1)
    for name, p in answers.items():
        exact = oracle.posterior(net, [name], evidence)
        for state, value, error in zip(net.states(name), p.values, p.std_error, strict=True):
            assert abs(value - exact[(state,)]) < 6 * error


def test_gibbs_moves_three_together_where_two_cannot_move():
    p = quiet(triple().query, "A", method="gibbs", seed=1)
    assert abs(p[1] - 0.75) < 6 * p.std_error[1]


def test_a_long_chain_of_copies_is_a_block_of_two_states():
    net = copies(40)
    (block,) = choose_blocks(net.factors(), {v.name: v.card for v in net.variables})
    assert len(block.names) == 41
    assert len(block.states) == 2


def test_a_copy_is_found_among_many_variables_with_zeros():
    # Neighbours in a ring of shifts are tied by zeros, yet free to move; the copy of the first is not.
    rng = np.random.default_rng(0)
    vs = [bbn.Variable(f"V{i}", [0, 1, 2]) for i in range(14)]
    copy = bbn.Variable("Copy", [0, 1, 2])
    conditionals = [bbn.CPT(vs[0], table=[0.2, 0.3, 0.5]), bbn.CPT(copy, [vs[0]], np.eye(3))]
    for a, b in pairwise(vs):
        table = rng.dirichlet(np.ones(3), 3) + 0.2
        table[0, 1] = 0
        conditionals.append(bbn.CPT(b, [a], table / table.sum(axis=1, keepdims=True)))
    net = bbn.BayesianNetwork(conditionals)
    blocks = choose_blocks(net.factors(), {v.name: v.card for v in net.variables})
    assert sorted(len(block.names) for block in blocks) == [1] * 13 + [2]
    p = quiet(net.query, "Copy", {"V5": 1}, method="gibbs", seed=1)
    assert (np.abs(p.values - net.query("Copy", {"V5": 1}).values) < 6 * p.std_error).all()


def test_gibbs_refuses_what_it_cannot_mix():
    # The parity of fourteen coins: every state differs from every other in two places.
    coins = [bbn.Variable(f"X{i}", [0, 1]) for i in range(14)]
    parity = bbn.Variable("Parity", [0, 1])
    table = np.indices([2] * 14).sum(axis=0) % 2
    net = bbn.BayesianNetwork(
        [
            *(bbn.CPT(c, table=[0.5, 0.5]) for c in coins),
            bbn.CPT(parity, coins, np.stack([1 - table, table], axis=-1)),
        ]
    )
    with pytest.raises(bbn.EvidenceError, match="tie"):
        quiet(net.query, "Parity", method="gibbs", seed=1)


def test_gibbs_answers_alarm_and_warns_of_its_zeros():
    net = bbn.example("alarm")
    evidence = {"HRBP": "HIGH"}
    with pytest.warns(bbn.MixingWarning, match="PVSAT"):
        p = net.query("SAO2", evidence, method="gibbs", n_samples=1_000_000, seed=1)
    assert (np.abs(p.values - net.query("SAO2", evidence).values) < 6 * p.std_error).all()


def test_chains_that_disagree_are_said_aloud():
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    net = bbn.BayesianNetwork(
        [bbn.CPT(a, table=[0.5, 0.5]), bbn.CPT(b, [a], [[0.9999, 0.0001], [0.0001, 0.9999]])]
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        p = net.query(["A", "B"], method="gibbs", n_samples=50_000, seed=1)
    assert any(w.category is bbn.MixingWarning and "R-hat" in str(w.message) for w in caught)
    assert p.r_hat > 1.01
    assert not p.converged


def test_a_large_blanket_multiplies_its_factors_and_draws_the_same(monkeypatch):
    net = hard_network()
    exact = net.query(["A", "D"], EVIDENCE)
    monkeypatch.setattr(gibbs_sweep, "MOST_CELLS", 0)
    p = net.query(["A", "D"], EVIDENCE, method="gibbs", seed=1)
    assert (np.abs(p.values - exact.values) < 6 * p.std_error).all()


@pytest.mark.parametrize("most_cells", [0, 24, 1 << 16])
def test_the_gibbs_kernel_and_its_twin_draw_alike(most_cells, monkeypatch):
    kernel = pytest.importorskip("bbn.kernels.compiled.sample")
    monkeypatch.setattr(gibbs_sweep, "MOST_CELLS", most_cells)
    for seed, zeros in ((1, False), (2, True), (3, True)):
        net = random_network(np.random.default_rng(seed), max_nodes=8, max_cells=2000, zeros=zeros)
        factors = merged_factors(net.factors())[0]
        columns = {name: i for i, name in enumerate(net.names)}
        blocks = choose_blocks(factors, {v.name: v.card for v in net.variables})
        sweep = gibbs_sweep.compile_sweep(factors, blocks, columns)
        start = np.stack(list(net.sample(5, seed=seed, as_codes=True).values())).astype(np.uint8)
        groups = bbn.inference.sampling.monte_carlo.cells_of([(n,) for n in net.names], net, columns)
        answers = []
        for module in (kernel, sample_np):
            codes, counts = start.copy(), np.zeros((5, groups.n_cells), np.int64)
            module.gibbs(np.random.SFC64(seed), sweep, codes, 50, groups, counts)
            answers.append((codes, counts))
        assert (answers[0][0] == answers[1][0]).all()
        assert (answers[0][1] == answers[1][1]).all()
        assert (answers[0][1].sum(axis=1) == 50 * len(net)).all()


def test_a_variable_of_one_state_and_a_target_alone():
    one, two = bbn.Variable("One", ["only"]), bbn.Variable("Two", [0, 1])
    net = bbn.BayesianNetwork([bbn.CPT(one, table=[1.0]), bbn.CPT(two, [one], [[0.25, 0.75]])])
    for method in METHODS:
        assert quiet(net.query, "One", method=method, n_samples=100, seed=1)["only"] == 1
        assert quiet(net.query, "One", {"Two": 1}, method=method, n_samples=100, seed=1)["only"] == 1
        p = quiet(net.query, ["Two", "One"], {"Two": 1}, method=method, n_samples=100, seed=1)
        assert p[1, "only"] == 1


def test_map_and_options_of_engines():
    net = hard_network()
    engine = bbn.LikelihoodWeighting(net, n_samples=50_000, seed=1)
    best = engine.map(["A", "B"], EVIDENCE)
    exact = net.map(["A", "B"], EVIDENCE)
    assert best.states == exact.states
    assert best.log_probability == pytest.approx(exact.log_probability, abs=0.1)
    assert engine.query("A", EVIDENCE) == engine.query("A", EVIDENCE)
    assert engine.query("A", EVIDENCE, seed=2) != engine.query("A", EVIDENCE)
    with pytest.raises(bbn.EvidenceError, match="explanations"):
        engine.mpe(EVIDENCE)


def test_the_chi_square_of_one_joint():
    net = hard_network()
    p = net.query(["A", "D"], EVIDENCE, method="rejection", n_samples=200_000, seed=4)
    exact = net.query(["A", "D"], EVIDENCE).values
    n = p.acceptance_rate * p.n_samples
    assert chi2.sf(n * ((p.values - exact) ** 2 / exact).sum(), exact.size - 1) > 1e-9


def test_factors_over_the_same_variables_are_multiplied():
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    factors = [Factor([a, b], [[1, 2], [3, 4]]), Factor([], 0.5), Factor([b, a], [[1, 0], [2, 1]])]
    merged, log_scale = merged_factors(factors)
    assert len(merged) == 1
    assert merged[0].values == pytest.approx(np.array([[1, 4], [0, 4]]) / 4)
    assert log_scale == pytest.approx(math.log(4 * 0.5))


def test_a_target_that_no_chain_ever_moved_is_not_called_certain():
    # The second copy is inexact by so little that no chain will see it move, and all may start on the same side.
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1])
    net = bbn.BayesianNetwork(
        [bbn.CPT(a, table=[0.995, 0.005]), bbn.CPT(b, [a], [[1 - 1e-8, 1e-8], [1e-8, 1 - 1e-8]])]
    )
    p = quiet(net.query, ["A", "B"], method="gibbs", n_samples=20_000, seed=3)
    assert p[0, 0] == 1
    assert p.ess <= 16
    assert not p.converged
    low, _ = p.interval()
    assert low[0, 0] < 0.995


def test_what_the_evidence_determines_is_certain():
    net = bbn.example("asia")
    p = quiet(net.query, "either", {"lung": "yes"}, method="gibbs", n_samples=20_000, seed=1)
    assert p["yes"] == 1
    assert p.converged
    blocks = choose_blocks(net.factors(), {v.name: v.card for v in net.variables})
    assert max(len(block.names) for block in blocks) > 1  # without evidence, the gate is a block


def test_importance_sampling_is_never_much_worse_than_likelihood_weighting():
    net = bbn.example("barley")
    leaf = [name for name in net.names if not net.children(name)]
    row = net.sample(1, seed=3).iloc[0]
    evidence = {name: row[name] for name in leaf[:3]}
    target = next(name for name in net.names if name not in evidence and net.children(name))
    worth = {
        method: quiet(net.query, target, evidence, method=method, n_samples=30_000, seed=1).ess
        for method in ("likelihood-weighting", "importance")
    }
    assert worth["importance"] > 0.8 * worth["likelihood-weighting"]
