"""Messages as products of tables: against the chain over joint states, and where no chain would fit."""

import numpy as np
import pytest

import bbn
from bbn.inference.time import chain_beliefs, log_evidences
from bbn.inference.time.factored import wide_beliefs, wide_logs
from bbn.inference.time.sequences import read_sequences
from tests.support.dynamic_truth import random_dynamic, random_evidence


@pytest.mark.parametrize("block", range(4))
def test_beliefs_are_those_of_the_chain(block, monkeypatch):
    monkeypatch.setattr("bbn.inference.time.is_wide", lambda *_, **__: False)
    for seed in range(30 * block, 30 * block + 30):
        rng = np.random.default_rng(seed)
        dyn = random_dynamic(rng, zeros=True)
        sequences = read_sequences(dyn, random_evidence(rng, dyn, int(rng.integers(1, 7))))
        for lag in (None, 0, 2):
            try:
                exact, logs = chain_beliefs(dyn, sequences, lag)
            except bbn.ImpossibleEvidenceError as impossible:
                with pytest.raises(bbn.ImpossibleEvidenceError, match=str(impossible).split(":")[0]):
                    wide_beliefs(dyn, sequences, lag)
                assert np.isneginf(wide_logs(dyn, sequences)).all()
                break
            found, own = wide_beliefs(dyn, sequences, lag)
            np.testing.assert_allclose(own, logs, atol=1e-10, rtol=0)
            np.testing.assert_allclose(wide_logs(dyn, sequences), logs, atol=1e-10, rtol=0)
            for name in dyn.names:
                np.testing.assert_allclose(
                    found[name], exact[name], atol=1e-10, rtol=0, err_msg=f"{seed} {name}"
                )


def chains(n, coupled, states=2, seed=0):
    """So many hidden chains, each seen through a sensor; coupled ones also listen to the chain before them."""
    rng = np.random.default_rng(seed)
    hidden = [bbn.Variable(f"C{i:02d}", list(range(states))) for i in range(n)]
    first = [bbn.CPT(c, table=rng.dirichlet(np.ones(states))) for c in hidden]
    later = []
    for i, c in enumerate(hidden):
        others = [bbn.Previous(hidden[i - 1])] if coupled and i else []
        parents = [bbn.Previous(c), *others]
        later.append(bbn.CPT(c, parents, rng.dirichlet(np.ones(states), [states] * len(parents))))
        sensor = bbn.Variable(f"S{i:02d}", [0, 1])
        later.append(bbn.CPT(sensor, [c], rng.dirichlet(np.ones(2), states)))
    return bbn.DynamicNetwork(first, later)


def test_many_chains_that_do_not_meet_are_as_cheap_as_they_are_apart():
    dyn = chains(30, coupled=False)
    rng = np.random.default_rng(1)
    columns = {f"S{i:02d}": rng.integers(0, 2, 25) for i in range(30)}
    found, log = dyn.smooth(columns), 0.0
    for i in range(30):
        c = dyn[f"C{i:02d}"]
        alone = bbn.DynamicNetwork([dyn.conditional(c.name, 0)], [c, dyn[f"S{i:02d}"]])
        own = alone.smooth({f"S{i:02d}": columns[f"S{i:02d}"]})
        np.testing.assert_allclose(found[c.name], own[c.name], atol=1e-10)
        log += own.log_evidence
    assert found.log_evidence == pytest.approx(log, abs=1e-8)
    assert dyn.log_likelihood(columns) == pytest.approx(log, abs=1e-8)


def test_coupled_chains_equal_the_chain_over_their_joint_states(monkeypatch):
    dyn = chains(10, coupled=True)
    rng = np.random.default_rng(2)
    columns = {f"S{i:02d}": rng.integers(0, 2, 6) for i in range(10)}
    sequences = read_sequences(dyn, columns)
    monkeypatch.setattr("bbn.inference.time.is_wide", lambda *_, **__: True)
    found = dyn.smooth(columns)
    monkeypatch.setattr("bbn.inference.time.is_wide", lambda *_, **__: False)  # the chain of 1,024 states
    exact, logs = chain_beliefs(dyn, sequences, None)
    assert found.log_evidence == pytest.approx(float(logs[0]), abs=1e-9)
    assert log_evidences(dyn, sequences) == pytest.approx(logs)
    for name in dyn.names:
        np.testing.assert_allclose(found[name], exact[name], atol=1e-10)


def test_sixteen_coupled_chains_fit_where_their_transitions_do_not():
    dyn = chains(16, coupled=True)  # S² would be 34 GB
    rng = np.random.default_rng(3)
    columns = {f"S{i:02d}": rng.integers(0, 2, 3) for i in range(16)}
    found = dyn.filter(columns, memory_limit="1 GB")
    unrolled = dyn.unroll(3)
    seen = {f"{name}[{t}]": int(own[t]) for name, own in columns.items() for t in range(3)}
    for name in ("C00", "C07", "C15"):
        exact = unrolled.query(f"{name}[2]", seen)
        np.testing.assert_allclose(found[name][2], exact.values, atol=1e-10)
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=1e-9)
    # of one step everything factors
    one = dyn.filter({name: own[:1] for name, own in columns.items()})
    prior, sees = dyn.conditional("C15", 0).table, dyn["S15"].table[:, columns["S15"][0]]
    np.testing.assert_allclose(one["C15"][0], prior * sees / (prior @ sees), atol=1e-12)


def test_what_is_observed_takes_no_room():
    dyn = chains(30, coupled=True)
    rng = np.random.default_rng(4)
    columns = {f"C{i:02d}": rng.integers(0, 2, 4) for i in range(1, 30)}
    found = dyn.smooth(columns, memory_limit="100 MB")
    assert found["C00"].shape == (4, 2)
    with pytest.raises(bbn.BudgetError, match=r"interface \('C00'.*particles"):
        dyn.smooth({"S00": [0] * 40}, memory_limit="100 MB")
    with pytest.raises(bbn.BudgetError, match=r"interface \('C00'"):
        dyn.viterbi({"S00": [0] * 40}, memory_limit="100 MB")
    path = dyn.viterbi({"S00": [0] * 4}, memory_limit="100 MB")  # four steps fit as one network
    assert path.log_probability == pytest.approx(
        dyn.unroll(4).mpe({f"S00[{t}]": 0 for t in range(4)}).log_probability, abs=1e-9
    )


def test_sixty_variables_of_one_state_take_no_axes(monkeypatch):
    monkeypatch.setattr("bbn.inference.time.is_wide", lambda *_, **__: True)
    lone = [bbn.Variable(f"L{i:02d}", ["only"]) for i in range(60)]
    dyn = chains(10, coupled=True)
    later = [
        *dyn.later,
        *(bbn.CPT(v, [bbn.Previous(v), *lone[:i]][:1], np.ones((1, 1))) for i, v in enumerate(lone)),
    ]
    joint = bbn.CPT(bbn.Variable("J", [0, 1]), lone[:20], np.full((1,) * 20 + (2,), 0.5))
    first = [*dyn.first, *(bbn.CPT(v, table=[1.0]) for v in lone)]
    wide = bbn.DynamicNetwork(first, [*later, joint])
    found, exact = wide.filter({"S00": [0, 1]}), dyn.filter({"S00": [0, 1]})
    np.testing.assert_allclose(found["C09"], exact["C09"], atol=1e-12)
    np.testing.assert_allclose(found["L33"], 1.0)


def test_several_sequences_forecasts_and_queries_of_a_wide_interface():
    dyn = chains(30, coupled=False)
    table = dyn.sample(5, n=3, seed=0)[["sequence", "S00", "S01"]]
    found = dyn.filter(table, sequence="sequence")
    assert list(found) == [0, 1, 2]
    ahead = dyn.forecast({"S00": [0, 1]}, 3)["C00"]
    step = dyn["C00"].table
    last = dyn.filter({"S00": [0, 1]})["C00"][-1]
    np.testing.assert_allclose(ahead, [last @ np.linalg.matrix_power(step, k) for k in (1, 2, 3)], atol=1e-12)
    assert dyn.query("C07[2]", {"C07[2]": 1})[1] == 1.0


def helped(n, states, lag=1):
    """Chains coupled to their neighbours, each seen through a hidden variable, and maybe one that looks far back."""
    rng = np.random.default_rng(n)
    first, later = [], []
    for i in range(n):
        own = bbn.Variable(f"C{i}", list(range(states)))
        parents = [bbn.Previous(own), *([bbn.Previous(later[-3].variable)] if i else [])]
        parents += [bbn.Previous(own, lag)] if lag > 1 and not i else []
        helper, sensor = bbn.Variable(f"H{i}", [0, 1, 2]), bbn.Variable(f"S{i}", [0, 1, 2])
        first.append(bbn.CPT(own, table=rng.dirichlet(np.ones(states))))
        later.append(bbn.CPT(own, parents, rng.dirichlet(np.ones(states), [states] * len(parents))))
        later.append(bbn.CPT(helper, [own], rng.dirichlet(np.ones(3), states)))
        later.append(bbn.CPT(sensor, [helper], rng.dirichlet(np.ones(3), 3)))
    return bbn.DynamicNetwork(first, later)


@pytest.mark.parametrize(("n", "states", "lag"), [(9, 2, 1), (6, 3, 1), (3, 2, 7), (2, 5, 3)])
def test_what_the_unrolled_network_answers_at_once_never_waits_for_a_chain(n, states, lag, monkeypatch):
    """Interfaces of 512 to 729 joint states, seen otherwise in every step: each would be a matrix of its own."""
    monkeypatch.setattr("bbn.inference.time.compile_chain", None)  # asking for a chain fails
    dyn = helped(n, states, lag)
    data = dyn.sample(20, seed=1)[[f"S{i}" for i in range(n)]]
    found = dyn.smooth(data)
    evidence = {f"{name}[{t}]": value for name in data for t, value in enumerate(data[name])}
    unrolled = dyn.unroll(20).posteriors(evidence)
    assert found.log_evidence == pytest.approx(unrolled.log_evidence, abs=1e-8)
    for i in range(n):
        for t in (0, 7, 19):
            for name in (f"C{i}", f"H{i}"):
                np.testing.assert_allclose(found[name][t], unrolled[f"{name}[{t}]"].values, atol=1e-9)
    assert dyn.log_likelihood(data) == pytest.approx(unrolled.log_evidence, abs=1e-8)


@pytest.mark.parametrize(("n", "states", "lag"), [(9, 2, 1), (3, 2, 7), (1, 2, 12)])
def test_the_best_path_never_waits_for_a_chain_either(n, states, lag, monkeypatch):
    """Interfaces of 512 to 4,096 joint states: the path is that of the unrolled network, and none is better."""
    monkeypatch.setattr("bbn.inference.time.best_paths._maximised", None)  # asking for a chain fails
    dyn = helped(n, states, lag)
    data = dyn.sample(20, seed=1)[[f"S{i}" for i in range(n)]]
    path = dyn.viterbi(data)
    unrolled = dyn.unroll(20)
    whole = {f"{name}[{t}]": path[name][t] for name in dyn.names for t in range(20)}
    assert all(path[name] == data[name].tolist() for name in data)
    log = sum(
        np.log(own.factor().values[tuple(unrolled.variable(v).code(whole[v]) for v in own.factor().names)])
        for own in unrolled.conditionals
    )
    assert path.log_probability == pytest.approx(float(log), abs=1e-9)
    rng = np.random.default_rng(0)
    rows = unrolled.sample(200, {k: v for k, v in whole.items() if k[0] == "S"}, seed=rng)
    names = list(rows.columns)
    factors = [own.factor() for own in unrolled.conditionals]
    codes = {v: np.array([unrolled.variable(v).code(s) for s in rows[v]]) for v in names}
    others = sum(np.log(f.values[tuple(codes[v] for v in f.names)]) for f in factors)
    assert others.max() <= path.log_probability + 1e-9
