"""Variables of one state: they say nothing, and so must cost nothing, however many there are.

The truth is the same model without them, its joint written out by numpy.
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bbn
from bbn.kernels import COMPILED

ROOT = Path(__file__).parents[2]
N_SINGLE = 80
"""More than the axes that any kernel counts along."""


def single(k: int) -> bbn.Variable:
    return bbn.Variable(f"s{k}", ["only"])


@pytest.fixture(scope="module")
def graph():
    """Four variables of 6 to 8 states and 80 of one, a factor for each pair; and ln of the product of all."""
    rng = np.random.default_rng(1)
    plain = [bbn.Variable(f"x{k}", range(card)) for k, card in enumerate((8, 7, 6, 7))]
    whole = [*plain, *(single(k) for k in range(N_SINGLE))]
    factors, joint = [], np.zeros([v.card for v in plain])
    for a, b in itertools.combinations(whole, 2):
        factor = bbn.Factor([a, b], rng.uniform(0.2, 2.0, (a.card, b.card)))
        factors.append(factor)
        joint += np.log(factor.values).reshape([v.card if v in (a, b) else 1 for v in plain])
    return bbn.FactorGraph([factors[i] for i in rng.permutation(len(factors))]), joint


def shares(joint, *axes):
    """The normalised marginal of some axes, and ln of the total."""
    peak = joint.max()
    weights = np.exp(joint - peak)
    total = weights.sum()
    return weights.sum(tuple(a for a in range(joint.ndim) if a not in axes)) / total, peak + math.log(total)


def test_a_query_of_a_dense_model_with_many_single_states(graph):
    model, joint = graph
    answer = model.query("x1")
    exact, log_total = shares(joint, 1)
    assert np.abs(answer.values - exact).max() < 1e-12
    assert model.log_partition() == pytest.approx(log_total, abs=1e-9)


def test_evidence_on_single_states_changes_nothing_but_a_likelihood_counts(graph):
    model, joint = graph
    exact, log_total = shares(joint[:, :, 1], 0)
    hard = {f"s{k}": "only" for k in range(0, N_SINGLE, 2)}
    virtual = {f"s{k}": bbn.Virtual({"only": 0.5}) for k in range(1, N_SINGLE, 2)}
    soft = {"s1": bbn.Soft({"only": 1.0})}
    for extra, log_extra in (({}, 0.0), (hard, 0.0), (virtual, N_SINGLE / 2 * math.log(0.5)), (soft, 0.0)):
        answer = model.query("x0", {"x2": 1, **extra})
        assert np.abs(answer.values - exact).max() < 1e-12
        assert answer.log_evidence == pytest.approx(log_total + log_extra, abs=1e-9)
        everything = model.posteriors({"x2": 1, **extra})
        assert np.abs(everything["x0"].values - exact).max() < 1e-12
        unobserved = {name for name in model.names if name != "x2" and not (extra is hard and name in hard)}
        assert set(everything) == unobserved
        assert all(everything[name].values.tolist() == [1.0] for name in unobserved if name[0] == "s")


def test_single_states_among_and_as_the_targets(graph):
    model, joint = graph
    answer = model.query(["s3", "x1", "s0", "x0"])
    assert answer.values.shape == (1, 7, 1, 8)
    assert np.abs(answer.values[0, :, 0, :] - shares(joint, 0, 1)[0].T).max() < 1e-12
    assert model.query(["s3", "s0"]).values.tolist() == [[1.0]]
    assert model.query("s3", {"x0": 1, "s1": "only"}).to_dict() == {"only": 1.0}
    assert model.query("s3").log_evidence == pytest.approx(shares(joint)[1], abs=1e-9)


def test_all_posteriors_and_the_best_assignment_name_single_states(graph):
    model, joint = graph
    everything = model.posteriors()
    assert set(everything) == set(model.names)
    assert all(everything[f"s{k}"].values.tolist() == [1.0] for k in range(N_SINGLE))
    for axis in range(4):
        assert np.abs(everything[f"x{axis}"].values - shares(joint, axis)[0]).max() < 1e-12
    best = model.mpe({"s5": "only"})
    assert best.log_probability == pytest.approx(joint.max(), abs=1e-9)
    place = np.unravel_index(joint.argmax(), joint.shape)
    assert [best[f"x{k}"] for k in range(4)] == list(place)
    assert all(best[f"s{k}"] == "only" for k in range(N_SINGLE) if k != 5)


def test_a_model_of_single_states_alone():
    a, b = single(0), single(1)
    model = bbn.FactorGraph([bbn.Factor([a, b], [[3.0]]), bbn.Factor([b], [0.5])])
    assert model.log_partition() == pytest.approx(math.log(1.5))
    assert model.query(["s1", "s0"]).values.tolist() == [[1.0]]
    assert [p.values.tolist() for p in model.posteriors().values()] == [[1.0], [1.0]]
    assert model.mpe().log_probability == pytest.approx(math.log(1.5))
    assert model.log_partition({"s0": "only"}) == pytest.approx(math.log(1.5))


@pytest.fixture(scope="module")
def network():
    """Two binary roots and 70 of one state; a binary child of each pair of them. And the same without the 70."""
    rng = np.random.default_rng(2)
    roots = [bbn.Variable("a", ["y", "n"]), bbn.Variable("b", ["y", "n"]), *(single(k) for k in range(70))]
    cpts = [bbn.CPT(v, [], rng.dirichlet(np.ones(v.card))) for v in roots]
    small = cpts[:2]
    for k, (v, w) in enumerate(itertools.combinations(roots, 2)):
        if k < 200 or k % 7 == 0:
            table = rng.dirichlet([1.0, 1.0], (v.card, w.card))
            child, parents = bbn.Variable(f"c{k}", ["y", "n"]), [p for p in (v, w) if p.card > 1]
            cpts.append(bbn.CPT(child, [v, w], table))
            small.append(bbn.CPT(child, parents, table.reshape([*(p.card for p in parents), 2])))
    return bbn.BayesianNetwork(cpts), bbn.BayesianNetwork(small)


def test_rows_with_gaps_in_columns_of_single_states(network):
    net, small = network
    data = net.sample(40, seed=3, missing=0.4)
    assert data["s0"].isna().any()
    kept = data[[name for name in data.columns if name in small.names]]
    assert np.allclose(net.log_likelihood(data), small.log_likelihood(kept), rtol=1e-12)
    assert np.allclose(net.predict_proba(data, "a"), small.predict_proba(kept, "a"), atol=1e-12)
    assert (net.predict_proba(data, "s1") == 1.0).all().all()


def test_expected_counts_with_cliques_of_many_single_states(network):
    net, small = network
    data = net.sample(40, seed=4, missing=0.4)
    kept = data[[name for name in data.columns if name in small.names]]
    one, two = bbn.gradient(net, data), bbn.gradient(small, kept)
    for name in small.names:
        assert np.allclose(one[name].ravel(), two[name].ravel(), rtol=1e-9)
    assert np.allclose(one["s0"], 40)  # each row has P(s0 = only) = 1, and the entry is 1
    learnt = [bbn.fit_em(n, d, max_iter=3).log_likelihoods for n, d in ((net, data), (small, kept))]
    assert np.allclose(*learnt, rtol=1e-10)


def dense(n: int) -> bbn.BayesianNetwork:
    """n binary roots, each pair with a child, so that all are in one clique."""
    roots = [bbn.Variable(f"r{k}", ["y", "n"]) for k in range(n)]
    cpts = [bbn.CPT(v, [], [0.5, 0.5]) for v in roots]
    table = [[[0.2, 0.8], [0.3, 0.7]], [[0.4, 0.6], [0.5, 0.5]]]
    for k, pair in enumerate(itertools.combinations(roots, 2)):
        cpts.append(bbn.CPT(bbn.Variable(f"c{k}", ["y", "n"]), pair, table))
    return bbn.BayesianNetwork(cpts)


def test_a_clique_of_more_than_64_axes_is_beyond_the_budget():
    net = dense(70)
    data = {v.name: ["y", "n"] for v in net.variables}
    for ask in (
        lambda: net.query("r0", {v.name: "y" for v in net.variables if v.name[0] == "c"}),
        lambda: net.posteriors(),
        lambda: net.mpe({"c0": "y"}),
        lambda: net.log_likelihood({name: values for name, values in data.items() if name[0] == "c"}),
        lambda: bbn.gradient(net, data),
        lambda: bbn.fit_em(net, data, max_iter=1),
    ):
        with pytest.raises(bbn.BudgetError):
            ask()


@pytest.mark.parametrize("pure", ["0", "1"] if COMPILED else ["1"])
def test_a_file_with_a_dense_block_of_single_states_is_answered(tmp_path, pure):
    """13 binary variables and 200 of one state, a factor for each pair: 350 kB of UAI."""
    cards = [2] * 13 + [1] * 200
    pairs = list(itertools.combinations(range(len(cards)), 2))
    lines = ["MARKOV", str(len(cards)), " ".join(map(str, cards)), str(len(pairs))]
    lines += [f"2 {a} {b}" for a, b in pairs]
    lines += [f"{cards[a] * cards[b]} " + " ".join(["1"] * cards[a] * cards[b]) for a, b in pairs]
    path = tmp_path / "dense.uai"
    path.write_text("\n".join(lines))
    done = subprocess.run(
        [sys.executable, "-m", "bbn", "query", str(path), "0", "--format", "json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "BBN_PURE": pure},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "0.5" in done.stdout
