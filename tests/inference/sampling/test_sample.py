"""Samples against the exact joint, by chi-square; determinism; missing values; chunks."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

import bbn
from bbn.inference.sampling.draws import compile_draws, table_draws
from bbn.kernels.pure import sample as sample_np
from tests.support import oracle
from tests.support.strategies import random_network

RARE = 1e-9
"""A p-value below this is a failure; with some thousand tests of right code it is met once in a million runs."""


def p_value(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of Pearson's chi-square, cells of a small expectation pooled; 0 if an impossible cell was seen."""
    expected = probabilities * observed.sum()
    if observed[probabilities <= 0].any():
        return 0.0
    small = expected < 5
    observed = np.append(observed[~small], observed[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def joint_p_value(net: Any, rows: pd.DataFrame, exact: dict[tuple[Any, ...], float]) -> float:
    """Chi-square of whole rows against the exact distribution of whole rows."""
    columns = [rows[v.name].cat.codes.to_numpy().astype(np.int64) for v in net.variables]
    shape = [v.card for v in net.variables]
    observed = np.bincount(np.ravel_multi_index(columns, shape), minlength=int(np.prod(shape)))
    probabilities = np.zeros(shape)
    for states, p in exact.items():
        probabilities[tuple(v.code(s) for v, s in zip(net.variables, states, strict=True))] = p
    return p_value(observed, probabilities.ravel())


def random_evidence(rng: np.random.Generator, net: Any) -> dict[str, Any]:
    """Up to three findings of mixed kinds."""
    evidence: dict[str, Any] = {}
    for i in rng.permutation(len(net))[: int(rng.integers(0, 4))]:
        v = net.variables[int(i)]
        kind = rng.integers(4)
        state = v.states[int(rng.integers(v.card))]
        if kind == 0:
            evidence[v.name] = state
        elif kind == 1:
            evidence[v.name] = bbn.Virtual(
                {s: float(w) for s, w in zip(v.states, rng.random(v.card) * 3 + 1e-3, strict=True)}
            )
        elif kind == 2:
            evidence[v.name] = bbn.OneOf(state, v.states[0])
        elif v.card > 1:
            evidence[v.name] = bbn.Not(state)
    return evidence


@pytest.mark.parametrize("seed", range(40))
def test_rows_have_the_exact_joint_distribution_given_any_evidence(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_nodes=8, max_cells=600)
    evidence = random_evidence(rng, net)
    exact = oracle.condition(net, evidence)
    if exact is None:
        with pytest.raises(bbn.ImpossibleEvidenceError):
            net.sample(10, evidence, seed=seed)
        return
    rows = net.sample(20_000, evidence, seed=seed)
    assert joint_p_value(net, rows, exact) > RARE


def test_columns_of_alarm_have_the_exact_marginals():
    net = bbn.example("alarm")
    rows = net.sample(200_000, seed=11)
    exact = net.posteriors()
    for name in net.names:
        observed = np.bincount(rows[name].cat.codes, minlength=net.variable(name).card)
        assert p_value(observed, exact[name].values) > RARE, name


def test_families_of_alarm_have_the_exact_joint():
    net = bbn.example("alarm")
    rows = net.sample(200_000, seed=12)
    for name in net.names:
        family = [*net.parents(name), name]
        exact = net.query(family)
        observed = np.zeros(exact.values.shape)
        np.add.at(observed, tuple(rows[n].cat.codes.to_numpy() for n in family), 1)
        assert p_value(observed.ravel(), exact.values.ravel()) > RARE, name


def test_soft_evidence_fixes_the_marginal():
    net = bbn.example("burglary")
    rows = net.sample(50_000, {"Alarm": bbn.Soft({"yes": 0.3, "no": 0.7})}, seed=1)
    exact = oracle.condition(net, {"Alarm": bbn.Soft({"yes": 0.3, "no": 0.7})})
    assert joint_p_value(net, rows, exact) > RARE


def test_rare_evidence_costs_nothing():
    a, b = bbn.Variable("A", [0, 1]), bbn.Variable("B", [0, 1, 2])
    net = bbn.BayesianNetwork(
        [bbn.CPT(a, table=[1 - 1e-9, 1e-9]), bbn.CPT(b, [a], [[1.0, 0.0, 0.0], [0.5, 0.3, 0.2]])]
    )
    rows = net.sample(10_000, {"B": bbn.Not(0)}, seed=3)
    assert (rows["A"] == 1).all()
    assert p_value(np.bincount(rows["B"].cat.codes, minlength=3), np.array([0, 0.6, 0.4])) > RARE


def test_impossible_states_are_never_drawn_and_tiny_ones_can_be():
    v = bbn.Variable("V", list("abcde"))
    net = bbn.BayesianNetwork([bbn.CPT(v, table=[0.0, 1 - 3e-5, 0.0, 3e-5, 0.0])])
    codes = net.sample(2_000_000, seed=5, as_codes=True)["V"]
    counts = np.bincount(codes, minlength=5)
    assert counts[[0, 2, 4]].sum() == 0
    assert 10 < counts[3] < 150


def test_wide_thresholds_serve_small_probabilities():
    v = bbn.Variable("V", [0, 1])
    w = bbn.Variable("W", [0, 1])
    tiny = bbn.CPT(v, table=[1 - 1e-12, 1e-12])
    net = bbn.BayesianNetwork([tiny, bbn.CPT(w, table=[0.25, 0.75])])
    moves = compile_draws(table_draws(net, net.names, {"V": 0, "W": 1}, {}))
    assert moves.thresholds.dtype == np.int64
    share = 1 - (moves.thresholds[0] + 1) / 2**53
    assert share == pytest.approx(1e-12, rel=1e-3)
    counts = np.bincount(net.sample(100_000, seed=1, as_codes=True)["W"], minlength=2)
    assert p_value(counts, np.array([0.25, 0.75])) > RARE


def test_variables_of_many_states():
    big = bbn.Variable("Big", range(300))
    child = bbn.Variable("Child", ["even", "odd"])
    table = np.zeros((300, 2))
    table[np.arange(300), np.arange(300) % 2] = 1
    weights = np.arange(1, 301) / np.arange(1, 301).sum()
    net = bbn.BayesianNetwork([bbn.CPT(big, table=weights), bbn.CPT(child, [big], table)])
    rows = net.sample(200_000, seed=9, missing={"Child": 0.5})
    assert p_value(np.bincount(rows["Big"].cat.codes, minlength=300), weights) > RARE
    seen = rows["Child"].notna()
    assert ((rows["Big"].cat.codes % 2) == rows["Child"].cat.codes)[seen].all()


# The table that comes out


def test_columns_are_categories_in_declared_order():
    v, w, t = bbn.Variable("V", ["z", "a"]), bbn.Variable("W", [3, 1, 2]), bbn.Variable("T", [True, False])
    net = bbn.BayesianNetwork([bbn.CPT.uniform(v), bbn.CPT.uniform(w), bbn.CPT.uniform(t)])
    rows = net.sample(100, seed=1)
    assert list(rows.columns) == list(net.names)
    for name in net.names:
        assert list(rows[name].cat.categories) == list(net.states(name))
        assert not rows[name].isna().any()
    fitted = bbn.fit(net, rows, prior=bbn.Dirichlet(1.0))
    assert fitted.states("W") == (3, 1, 2)


def test_codes_are_those_of_the_table():
    net = bbn.example("alarm")
    codes = net.sample(500, seed=4, missing=0.1, as_codes=True)
    rows = net.sample(500, seed=4, missing=0.1)
    assert list(codes) == list(net.names)
    for name in net.names:
        assert codes[name].dtype == np.int8
        assert (codes[name] == rows[name].cat.codes).all()


@pytest.mark.parametrize("n", [0, 1, 2, 16_384, 16_385])
def test_any_number_of_rows(n):
    net = bbn.example("burglary")
    assert net.sample(n, seed=1).shape == (n, 5)
    assert net.sample(n, {"Alarm": "yes"}, seed=1).shape == (n, 5)


def test_missing_hides_the_asked_share_completely_at_random():
    net = bbn.example("alarm")
    whole = net.sample(40_000, seed=2)
    rows = net.sample(40_000, seed=2, missing=0.2)
    share = rows.isna().mean()
    assert share.between(0.2 - 6 * 0.002, 0.2 + 6 * 0.002).all()
    for name in net.names:
        seen = rows[name].notna()
        assert (rows[name][seen] == whole[name][seen]).all()  # hiding changes nothing else
        exact = net.query(name).values
        observed = np.bincount(whole[name][~seen].cat.codes, minlength=len(exact))
        assert p_value(observed, exact) > RARE
    some = net.sample(1000, seed=2, missing={"BP": 1.0, "CVP": 0.5})
    assert some["BP"].isna().all()
    assert 350 < some["CVP"].isna().sum() < 650
    assert some.drop(columns=["BP", "CVP"]).notna().all(axis=None)


@pytest.mark.parametrize("size", [1000, 16_384, 20_000, 70_000])
def test_chunks_are_the_same_rows(size):
    net = bbn.example("burglary")
    whole = net.sample(50_000, {"Alarm": "yes"}, seed=8, missing=0.1)
    parts = list(net.sample(50_000, {"Alarm": "yes"}, seed=8, missing=0.1, chunks=size))
    assert all(len(part) == size for part in parts[:-1])
    assert 0 < len(parts[-1]) <= size
    for name in net.names:
        codes = np.concatenate([part[name].cat.codes for part in parts])
        assert (codes == whole[name].cat.codes).all()


def test_chunks_keep_memory_flat():
    net = bbn.example("alarm")
    peaks = []
    for n in (200_000, 1_600_000):
        tracemalloc.start()
        rows = sum(
            len(next(iter(part.values())))
            for part in net.sample(n, seed=1, chunks=50_000, as_codes=True, n_jobs=1)
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == n
    assert peaks[1] < 1.3 * peaks[0]


# The same seed, the same rows


def test_the_number_of_threads_changes_nothing():
    net = bbn.example("alarm")

    def codes(seed, n_jobs):
        return np.stack(list(net.sample(100_000, None, seed, 0.1, as_codes=True, n_jobs=n_jobs).values()))

    one = codes(6, 1)
    for n_jobs in (2, 3):
        assert (codes(6, n_jobs) == one).all()
    assert not (codes(7, 1) == one).all()


def test_a_generator_is_a_seed_and_moves_on():
    net = bbn.example("burglary")
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    one, two = net.sample(1000, seed=first), net.sample(1000, seed=first)
    assert one.equals(net.sample(1000, seed=second))
    assert not one.equals(two)
    assert not net.sample(1000).equals(net.sample(1000))


@pytest.mark.parametrize("bad", [-1, True, 1.5, "x"])
def test_a_bad_seed_is_a_type_error(bad):
    with pytest.raises(TypeError, match="seed"):
        bbn.example("burglary").sample(3, seed=bad)


SCRIPT = """
import hashlib, warnings, bbn
warnings.simplefilter("ignore")
net = bbn.example("alarm")
evidence = {"HRBP": "HIGH", "CVP": bbn.Virtual({"LOW": 0.9, "NORMAL": 0.3, "HIGH": 0.1})}
text = [net.sample(3000, evidence, seed=5, missing=0.1).to_csv(), net.sample(3000, seed=5).to_csv()]
for method, n in (("likelihood-weighting", 3000), ("rejection", 3000), ("importance", 3000), ("gibbs", 640)):
    for targets in ("LVFAILURE", ["BP", "CO"]):
        p = net.query(targets, evidence, method=method, n_samples=n, seed=5)
        text.append(repr((method, p.values.tolist(), p.std_error.tolist(), p.log_evidence, p.ess)))
print(hashlib.sha256("".join(text).encode()).hexdigest())
"""


def test_hash_seed_and_compiled_or_not_give_the_same_numbers():
    digests = set()
    for hash_seed, pure in (("0", "0"), ("1", "0"), ("2", "1")):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "BBN_PURE": pure}
        out = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(out.stdout)
    assert len(digests) == 1


def test_the_kernel_and_its_twin_draw_alike():
    kernel = pytest.importorskip("bbn.kernels.compiled.sample")
    for seed in range(30):
        rng = np.random.default_rng(seed)
        net = random_network(rng, max_nodes=9, max_cells=10**6, max_card=20, max_parents=5)
        moves = compile_draws(table_draws(net, net.names, {n: i for i, n in enumerate(net.names)}, {}))
        answers = []
        for module in (kernel, sample_np):
            codes = np.zeros((len(net), 2500), np.uint8 if seed % 2 else np.uint16)
            module.forward(np.random.SFC64(seed), moves, codes, np.empty(0))
            answers.append(codes)
        assert (answers[0] == answers[1]).all()


# Faults


def test_impossible_evidence_names_the_findings():
    net = bbn.example("asia")
    with pytest.raises(bbn.ImpossibleEvidenceError, match="either"):
        net.sample(5, {"lung": "yes", "either": "no", "smoke": "yes"})


def test_faults_are_named():
    net = bbn.example("burglary")
    with pytest.raises(bbn.EvidenceError, match="Alarm"):
        net.sample(5, {"Alrm": "yes"})
    with pytest.raises(ValueError, match="at least 0"):
        net.sample(-1)
    with pytest.raises(TypeError, match="whole number"):
        net.sample(2.5)
    with pytest.raises(ValueError, match="0 to 1"):
        net.sample(5, missing=1.5)
    with pytest.raises(bbn.EvidenceError, match="Alarm"):
        net.sample(5, missing={"Alrm": 0.5})
    with pytest.raises(bbn.BudgetError, match="chunks"):
        net.sample(10**9, memory_limit="1 MB")


def test_past_the_memory_limit_rows_are_resampled_with_a_warning():
    net = bbn.example("insurance")
    evidence = {"ThisCarCost": "Million", "ILiCost": "Thousand"}
    with pytest.warns(bbn.AccuracyWarning, match="approximate"):
        rows = net.sample(15_000, evidence, seed=4, memory_limit=500_000)
    exact = net.posteriors(evidence)
    for name in exact:
        share = np.bincount(rows[name].cat.codes, minlength=net.variable(name).card) / len(rows)
        assert share == pytest.approx(exact[name].values, abs=0.03), name
    assert (rows["ILiCost"] == "Thousand").all()


def test_evidence_that_no_candidate_agrees_with_is_refused_and_not_made_up():
    """Past the memory limit rows are resampled from candidates; where all of them have weight 0 there is no row."""
    k = 40
    bits = [bbn.Variable(f"b{i:02}", [0, 1]) for i in range(k)]
    sums = [bbn.Variable(f"s{i:02}", [0, 1]) for i in range(k - 1)]
    rng = np.random.default_rng(0)
    cpts = [bbn.CPT(bit, table=[0.5, 0.5]) for bit in bits]
    for total in sums:  # each the parity of three bits: together they fix nearly all
        parents = [bits[int(j)] for j in sorted(rng.choice(k, 3, replace=False))]
        cells = np.indices((2, 2, 2)).sum(axis=0) % 2
        cpts.append(bbn.CPT(total, parents, np.stack([1 - cells, cells], axis=-1).astype(float)))
    net = bbn.BayesianNetwork(cpts)
    row = net.sample(1, seed=3, as_codes=True)
    evidence = {total.name: int(row[total.name][0]) for total in sums}
    with pytest.warns(bbn.AccuracyWarning), pytest.raises(bbn.EvidenceError, match="too rare"):
        net.sample(50, evidence, seed=1, memory_limit=300_000)


# The command


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.csv.gz", "rows.parquet"])
def test_the_command_writes_the_same_rows(name, tmp_path, monkeypatch):
    from bbn.cli import main
    from bbn.cli import sample as command

    monkeypatch.setattr(command, "CHUNK", 700)
    net = bbn.example("burglary")
    path = tmp_path / name
    arguments = [
        "sample",
        "burglary",
        "-n",
        "2000",
        "--seed",
        "7",
        "-e",
        "Alarm=yes",
        "--missing",
        "MaryCalls=0.2",
    ]
    assert main([*arguments, "-o", str(path)]) == 0
    expected = net.sample(2000, {"Alarm": "yes"}, seed=7, missing={"MaryCalls": 0.2})
    if name.endswith("parquet"):
        rows = pd.read_parquet(path)
        assert list(rows["Alarm"].cat.categories) == ["yes", "no"]
    else:
        rows = pd.read_csv(path, sep="\t" if ".tsv" in name else ",", dtype=str)
    assert len(rows) == 2000
    for column in net.names:
        found, wanted = (frame[column].astype(object) for frame in (rows, expected))
        assert (found.isna() == wanted.isna()).all()
        assert (found[wanted.notna()] == wanted[wanted.notna()]).all()


def test_the_command_prints_rows_and_names_faults(capsys):
    from bbn.cli import main

    assert main(["sample", "burglary", "-n", "3", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == ",".join(bbn.example("burglary").names)
    assert len(lines) == 4
    assert main(["sample", "burglary", "-o", "rows.doc"]) == 1
    assert "expected .csv" in capsys.readouterr().err
    assert main(["sample", "burglary", "--missing", "much"]) == 1
    assert "0.2" in capsys.readouterr().err


def test_the_query_command_samples(capsys):
    from bbn.cli import main

    arguments = ["query", "burglary", "Burglary", "-e", "JohnCalls=yes", "--method", "gibbs", "--seed", "1"]
    assert main([*arguments, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "Burglary,probability,std_error"


def test_evidence_too_rare_for_a_double_is_sampled_exactly():
    """900 heads and 900 tails of a coin of bias 0.3 or 0.7 say nothing; nor do 110 findings that are all rare."""
    coin = bbn.Variable("coin", ["low", "high"])
    tosses = [bbn.Variable(f"t{i}", ["h", "t"]) for i in range(1800)]
    cpts = [bbn.CPT(toss, [coin], [[0.3, 0.7], [0.7, 0.3]]) for toss in tosses]
    net = bbn.BayesianNetwork([bbn.CPT(coin, table=[0.25, 0.75]), *cpts])
    evidence = {f"t{i}": "ht"[i % 2] for i in range(1800)}
    drawn = net.sample(4000, evidence, seed=1)["coin"]
    assert abs((drawn == "low").mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)
    rare = [bbn.CPT(bbn.Variable(f"r{i}", ["y", "n"]), [coin], [[1e-3, 1 - 1e-3]] * 2) for i in range(110)]
    net = bbn.BayesianNetwork([bbn.CPT(coin, table=[0.25, 0.75]), *rare])
    drawn = net.sample(4000, {f"r{i}": "y" for i in range(110)}, seed=2)["coin"]
    assert abs((drawn == "low").mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)


def test_states_that_are_equal_but_of_another_kind_stay_what_they_are():
    for states in ([True, False], [1, 0], [True, False]):
        variable = bbn.Variable("X", states)
        rows = bbn.BayesianNetwork([bbn.CPT(variable, [], [0.5, 0.5])]).sample(20, seed=1)
        assert {type(value) for value in rows["X"].cat.categories.tolist()} == {type(states[0])}
        assert rows["X"].cat.categories.tolist() == states
