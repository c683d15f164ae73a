"""EM against an independent one that enumerates completions, and the promises it makes."""

from __future__ import annotations

import itertools
import math
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.data import Block, code
from bbn.inference.rows.expected_counts import Expectation, family_marginals, flat_tables
from bbn.kernels import expect
from bbn.kernels.pure import expect as expect_py


def random_network(rng, n_max=5, zeros=False):
    """A random DAG with random tables, its variables named out of order."""
    n = int(rng.integers(1, n_max + 1))
    variables = [bbn.Variable(f"V{i}", [f"s{k}" for k in range(rng.integers(2, 4))]) for i in range(n)]
    cpts = []
    for i, variable in enumerate(variables):
        parents = [p for p in variables[:i] if rng.random() < 0.5][:3]
        table = rng.dirichlet(np.ones(variable.card), size=[p.card for p in parents])
        if zeros:
            table = np.where(rng.random(table.shape) < 0.2, 0.0, table) + 0.0
            table[..., 0] += table.sum(-1) == 0
            table /= table.sum(-1, keepdims=True)
        cpts.append(bbn.CPT(variable, parents, table))
    return bbn.BayesianNetwork([cpts[i] for i in rng.permutation(n)])


def random_rows(rng, net, n, holes=0.3):
    """Complete rows drawn at random, some values then taken out."""
    rows = []
    for _ in range(n):
        row = {v.name: v.states[rng.integers(v.card)] for v in net.variables}
        rows.append({k: (None if rng.random() < holes else s) for k, s in row.items()})
    return rows


def slow_expected_counts(net, rows, weights=None):
    """Expected counts and log-likelihood by enumerating every completion of every row, with dicts."""
    names = [v.name for v in net.variables]
    counts = {name: {} for name in names}
    log_likelihood = 0.0
    for i, row in enumerate(rows):
        weight = 1.0 if weights is None else weights[i]
        completions = []
        for states in itertools.product(
            *([row[v.name]] if row.get(v.name) is not None else v.states for v in net.variables)
        ):
            full = dict(zip(names, states, strict=True))
            p = 1.0
            for name in names:
                p *= net[name].row(*(full[q] for q in net.parents(name)))[full[name]]
            completions.append((full, p))
        total = sum(p for _, p in completions)
        log_likelihood += weight * math.log(total)
        for full, p in completions:
            for name in names:
                key = (tuple(full[q] for q in net.parents(name)), full[name])
                counts[name][key] = counts[name].get(key, 0.0) + weight * p / total
    return counts, log_likelihood


def slow_m_step(net, counts, alpha=0.0):
    cpts = []
    for v in net.variables:
        table = {}
        parents = net[v.name].parents
        for key in itertools.product(*(p.states for p in parents)):
            row = [counts[v.name].get((key, s), 0.0) + alpha for s in v.states]
            total = sum(row)
            table[key] = [x / total if total > 0 else 1 / v.card for x in row]
        cpts.append(bbn.CPT(v, parents, table if parents else table[()]))
    return bbn.BayesianNetwork(cpts)


def drop_empty(net, rows):
    """Columns without any value are hidden."""
    return [v.name for v in net.variables if all(row.get(v.name) is None for row in rows)]


@pytest.mark.parametrize("seed", range(200))
def test_em_equals_brute_force_step_by_step(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    rows = random_rows(rng, net, int(rng.integers(1, 12)), holes=rng.choice([0.1, 0.4, 0.8]))
    weights = rng.integers(1, 4, len(rows)) if seed % 3 == 0 else None
    alpha = [0.0, 0.5][seed % 2]
    prior = bbn.Dirichlet(alpha) if alpha else None
    hidden = drop_empty(net, rows)
    slow = net
    logs = []
    for _ in range(4):
        counts, log_likelihood = slow_expected_counts(slow, rows, weights)
        logs.append(log_likelihood)
        slow = slow_m_step(slow, counts, alpha)
    fast = bbn.fit_em(net, rows, hidden, prior, weights=weights, max_iter=4, tol=-np.inf)
    np.testing.assert_allclose(fast.log_likelihoods[:4], logs, rtol=1e-9, atol=1e-9)
    for name in net.names:
        np.testing.assert_allclose(fast.network[name].table, slow[name].table, atol=1e-9)
    assert np.diff(fast.objectives).min() >= -1e-9
    assert (fast.reason, fast.n_iter) == ("max_iter", 4)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("prior", [None, bbn.BDeu(2), bbn.MEstimate(1)])
@pytest.mark.parametrize("seed", range(15))
def test_the_objective_never_falls(seed, prior, accelerate):
    rng = np.random.default_rng(seed)
    net = random_network(rng, 6)
    rows = random_rows(rng, net, 30, holes=0.4)
    result = bbn.fit_em(net, rows, drop_empty(net, rows), prior, accelerate=accelerate, max_iter=200)
    assert np.diff(result.objectives).min() >= -1e-9
    if prior is None:
        np.testing.assert_array_equal(result.log_likelihoods, result.objectives)
    total = net.with_cpts([result.network[n] for n in net.names])
    assert slow_expected_counts(total, rows)[1] == pytest.approx(result.log_likelihood, abs=1e-9)


def test_objectives_are_the_likelihood_plus_the_log_prior():
    rng = np.random.default_rng(5)
    net = random_network(rng)
    rows = random_rows(rng, net, 20)
    result = bbn.fit_em(net, rows, drop_empty(net, rows), bbn.Dirichlet(0.7), max_iter=3)
    tables = flat_tables(result.network)
    assert result.objectives[-1] == pytest.approx(result.log_likelihoods[-1] + 0.7 * np.log(tables).sum())


def test_acceleration_reaches_the_same_height_in_fewer_steps():
    net = bbn.example("flu")
    data = sample(net, 2000, seed=3).drop(columns="Sinus")
    plain = bbn.fit_em(net.graph, data, {"Sinus": net.states("Sinus")}, seed=1, max_iter=5000, tol=1e-10)
    fast = bbn.fit_em(
        net.graph, data, {"Sinus": net.states("Sinus")}, seed=1, max_iter=5000, tol=1e-10, accelerate=True
    )
    assert fast.log_likelihood >= plain.log_likelihood - 1e-3
    assert fast.n_iter < plain.n_iter


def sample(net, n, seed=0):
    """Rows drawn from a network, by the chain rule on its tables."""
    rng = np.random.default_rng(seed)
    codes = {}
    for name in net.names:
        cpt = net[name]
        index = tuple(codes[p] for p in net.parents(name))
        rows = cpt.table[index] if index else np.tile(cpt.table, (n, 1))
        codes[name] = (
            (rng.random(n)[:, None] > rows.cumsum(axis=1)).sum(axis=1).clip(max=cpt.variable.card - 1)
        )
    return pd.DataFrame({name: pd.Categorical.from_codes(c, net.states(name)) for name, c in codes.items()})


def hide(data, share, seed=0):
    rng = np.random.default_rng(seed)
    return data.mask(rng.random(data.shape) < share)


def test_complete_data_give_the_maximum_likelihood_at_once():
    net = bbn.example("flu")
    data = sample(net, 500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = bbn.fit(net, data)
    for start in (net, net.graph):
        result = bbn.fit_em(start, data, seed=0)
        for name in net.names:
            np.testing.assert_allclose(result.network[name].table, expected[name].table, atol=1e-12)
        assert result.converged
        assert result.n_iter <= 2


def test_a_hidden_cause_is_recovered_up_to_its_labels():
    net = bbn.example("flu")
    net = net.with_cpts(
        [
            bbn.CPT(net.variable("Flu"), table=[0.4, 0.6]),
            bbn.CPT(net.variable("Allergy"), table=[0.45, 0.55]),
            bbn.CPT(net.variable("Headache"), [net.variable("Sinus")], [[0.9, 0.1], [0.1, 0.9]]),
            bbn.CPT(net.variable("Nose"), [net.variable("Sinus")], [[0.95, 0.05], [0.1, 0.9]]),
        ]
    )
    data = sample(net, 40_000, seed=1).drop(columns="Sinus")
    result = bbn.fit_em(
        net.graph, data, {"Sinus": net.states("Sinus")}, restarts=4, seed=2, max_iter=3000, tol=1e-11
    )
    found = result.network["Sinus"].table
    truth = net["Sinus"].table
    assert min(np.abs(found - truth).max(), np.abs(found[..., ::-1] - truth).max()) < 0.1
    assert result.log_likelihood >= code_log_likelihood(net, data)


def code_log_likelihood(net, data):
    table = code(data, [v for v in net.variables if v.name in data])
    return Expectation(net)(flat_tables(net), table).log_likelihood


def test_held_out_likelihood_beats_the_start():
    net = bbn.example("asia")
    train, test = hide(sample(net, 2000, 1), 0.2), hide(sample(net, 1000, 2), 0.2)
    start = bbn.fit_em(net.graph, train, prior=bbn.BDeu(1), seed=0, max_iter=0).network
    fitted = bbn.fit_em(start, train, prior=bbn.BDeu(1)).network
    assert code_log_likelihood(fitted, test) > code_log_likelihood(start, test) + 1000


def test_a_network_is_the_starting_point_and_a_graph_starts_from_its_seed():
    net = bbn.example("asia")
    data = hide(sample(net, 100), 0.2)
    assert bbn.fit_em(net, data, max_iter=0).network == net
    first, again, other = (bbn.fit_em(net.graph, data, seed=s, max_iter=3) for s in (1, 1, 2))
    assert first == again
    assert hash(first) == hash(again)
    assert first != other
    assert pickle.loads(pickle.dumps(first)) == first


def test_restarts_keep_the_best():
    net = bbn.example("flu")
    data = sample(net, 300).drop(columns="Sinus")
    hidden = {"Sinus": ["yes", "no"]}
    many = bbn.fit_em(net.graph, data, hidden, restarts=5, seed=3)
    assert len(many.restarts) == 5
    assert many.objectives[-1] == many.restarts.max()
    assert bbn.fit_em(net.graph, data, hidden, restarts=1, seed=3).objectives[-1] == many.restarts[0]


def test_hidden_variables_may_be_absent_or_all_missing_and_named_or_declared():
    net = bbn.example("flu")
    data = sample(net, 200).drop(columns="Sinus")
    absent = bbn.fit_em(net, data, {"Sinus": ["yes", "no"]}, max_iter=3)
    empty = data.assign(Sinus=None)
    assert bbn.fit_em(net, empty, ["Sinus"], max_iter=3) == absent
    assert bbn.fit_em(net, empty, "Sinus", states={"Sinus": ["yes", "no"]}, max_iter=3) == absent
    with pytest.raises(bbn.DataError, match=r"'Sinus'.*hidden="):
        bbn.fit_em(net, empty)
    with pytest.raises(bbn.DataError, match=r"no column 'Sinus'.*hidden="):
        bbn.fit_em(net, data)
    with pytest.raises(bbn.DataError, match="needs its states"):
        bbn.fit_em(list(net.arcs), data, ["Sinus"])
    with pytest.raises(bbn.DataError, match="hidden= names 'Sinu'"):
        bbn.fit_em(net, data, ["Sinu"])


def test_fixed_tables_stay_and_tied_ones_agree():
    net = bbn.example("flu")
    data = hide(sample(net, 300), 0.3)
    result = bbn.fit_em(net, data, fixed=["Flu"], tied=[["Headache", "Nose"]])
    assert result.network["Flu"] == net["Flu"]
    np.testing.assert_array_equal(result.network["Headache"].table, result.network["Nose"].table)
    assert np.diff(result.objectives).min() >= -1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = sample(net, 300)
        tied = bbn.fit_em(net, full, tied=[["Headache", "Nose"]]).network["Nose"].table
    counts = sum(pd.crosstab(full["Sinus"], full[n], dropna=False).to_numpy() for n in ("Headache", "Nose"))
    np.testing.assert_allclose(tied, counts / counts.sum(-1, keepdims=True))
    for bad in ({"fixed": ["Fly"]}, {"tied": [["Flu", "Nose"]]}, {"tied": [["Flu", "X"]]}):
        with pytest.raises(bbn.DataError):
            bbn.fit_em(net, data, **bad)
    with pytest.raises(bbn.DataError, match="fixed="):
        bbn.fit_em(list(net.arcs), data, fixed=["Flu"])


def test_an_impossible_row_is_named_as_such():
    x = bbn.Variable("X", ["a", "b"])
    net = bbn.BayesianNetwork([bbn.CPT(x, table=[1.0, 0.0])])
    with pytest.raises(bbn.ImpossibleEvidenceError, match="2 rows"):
        bbn.fit_em(net, {"X": ["a", "b", "b"]})


def test_threads_and_the_order_of_rows_do_not_change_the_result():
    net = bbn.example("asia")
    data = hide(sample(net, 3000), 0.3)
    one = bbn.fit_em(net, data, max_iter=3, n_jobs=1)
    assert bbn.fit_em(net, data, max_iter=3, n_jobs=2) == one
    turned = bbn.fit_em(net, data.iloc[::-1], max_iter=3)
    np.testing.assert_allclose(turned.log_likelihoods, one.log_likelihoods, rtol=1e-12)


class Parts:
    """A source of several blocks: the protocol that learners need, and nothing more."""

    def __init__(self, tables):
        self.tables = tables
        self.variables = tables[0].variables
        self.n_rows = sum(t.n_rows for t in tables)
        self.total = sum(t.total for t in tables)
        self.incomplete = tuple(v.name for v in self.variables if any(v.name in t.incomplete for t in tables))

    def counts(self, families):
        return [sum(parts) for parts in zip(*(t.counts(families) for t in self.tables), strict=True)]

    def reduce(self, f):
        return [
            sum(parts)
            for parts in zip(*(pickle.loads(pickle.dumps(f))(t.merged()) for t in self.tables), strict=True)
        ]


def test_a_source_in_parts_gives_the_same_answers():
    net = bbn.example("asia")
    full = sample(net, 1000)
    data = hide(full, 0.3)
    parts = Parts([code(data.iloc[:300], net.variables), code(data.iloc[300:], net.variables)])
    whole, split = bbn.fit_em(net, data, max_iter=10), bbn.fit_em(net, parts, max_iter=10)
    np.testing.assert_allclose(whole.log_likelihoods, split.log_likelihoods, rtol=1e-12)
    np.testing.assert_allclose(flat_tables(whole.network), flat_tables(split.network), rtol=1e-9, atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = Parts([code(full.iloc[:300], net.variables), code(full.iloc[300:], net.variables)])
        assert bbn.fit(net, parts) == bbn.fit(net, full)


def test_expected_counts_with_nothing_observed_are_the_joint():
    rng = np.random.default_rng(0)
    for _ in range(30):
        net = random_network(rng, 6, zeros=True)
        joint = net.joint().values
        for name, table in family_marginals(net).items():
            axes = [net.names.index(n) for n in (*net.parents(name), name)]
            np.testing.assert_allclose(table, np.einsum(joint, range(len(net)), axes), atol=1e-14)


def test_many_children_do_not_underflow():
    c = bbn.Variable("C", ["a", "b"])
    leaves = [bbn.Variable(f"X{i}", list(range(8))) for i in range(1500)]
    rng = np.random.default_rng(1)
    cpts = [bbn.CPT(c, table=[0.5, 0.5])] + [bbn.CPT(x, [c], rng.dirichlet(np.ones(8), 2)) for x in leaves]
    net = bbn.BayesianNetwork(cpts)
    row = {x.name: [int(rng.integers(8))] for x in leaves}
    logs = [
        sum(math.log(net[x.name].table[k, row[x.name][0]]) for x in leaves) + math.log(0.5) for k in (0, 1)
    ]
    result = bbn.fit_em(net, row, ["C"], max_iter=0)
    assert result.log_likelihood == pytest.approx(np.logaddexp(*logs), rel=1e-12)


def test_the_compiled_kernel_and_its_twin_agree():
    rng = np.random.default_rng(2)
    for _ in range(40):
        net = random_network(rng, 6, zeros=True)
        table = code(random_rows(rng, net, 8, 0.5), net.variables)
        block = Block(table.codes, rng.random(8))
        expectation = Expectation(net, 1)
        codes = np.column_stack([table.codes[n] for n in net.names]).astype(np.int32)
        results = []
        for kernel in (expect.gradient_rows, expect_py.gradient_rows):
            gradient, logs = np.zeros(len(flat_tables(net))), np.empty(8)
            kernel(flat_tables(net), codes, block.weights, expectation.whole.tree, gradient, logs)
            results.append((gradient, logs))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-10)
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12, atol=1e-14)


SCRIPT = """
import sys, time, warnings
import numpy as np, bbn
from tests.learning.incomplete.test_em import sample, hide
net = bbn.example("asia")
data = hide(sample(net, 400), 0.4)
if sys.argv[1] == "slow":
    import bbn.inference.rows.expected_counts as e
    call = e.Expectation.__call__
    e.Expectation.__call__ = lambda self, *a: (time.sleep(0.02), call(self, *a))[1]
bbn.fit_em(net.graph, data, restarts=2, seed=4, max_iter=60, tol=0.0, checkpoint=sys.argv[2])
"""


def test_a_killed_run_resumes_to_the_same_result_bit_for_bit(tmp_path):
    net = bbn.example("asia")
    data = hide(sample(net, 400), 0.4)
    expected = bbn.fit_em(net.graph, data, restarts=2, seed=4, max_iter=60, tol=0.0)
    path = tmp_path / "em.npz"
    root = Path(__file__).parents[3]
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, "slow", str(path)], cwd=root)
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.exists()
    resumed = bbn.fit_em(net.graph, data, restarts=2, seed=4, max_iter=60, tol=0.0, checkpoint=path)
    assert resumed == expected
    np.testing.assert_array_equal(resumed.restarts, expected.restarts)
    assert bbn.fit_em(net.graph, data, restarts=2, seed=4, max_iter=60, tol=0.0, checkpoint=path) == expected


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    net = bbn.example("asia")
    data = hide(sample(net, 100), 0.4)
    path = tmp_path / "em.npz"
    bbn.fit_em(net.graph, data, seed=4, max_iter=20, tol=0.0, restarts=2, checkpoint=path)
    with pytest.raises(bbn.DataError, match="another structure, prior"):
        bbn.fit_em(net.graph, data, seed=5, max_iter=20, checkpoint=path)
    path.write_text("nonsense")
    with pytest.raises(bbn.DataError, match="not a checkpoint"):
        bbn.fit_em(net.graph, data, seed=4, max_iter=20, checkpoint=path)


def test_more_steps_go_on_from_where_fewer_ended(tmp_path):
    net = bbn.example("asia")
    data = hide(sample(net, 100), 0.4)
    path = tmp_path / "em.npz"
    options = {"seed": 4, "tol": 0.0, "restarts": 2}
    for steps in (3, 7, 7, 20):
        result = bbn.fit_em(net.graph, data, max_iter=steps, checkpoint=path, **options)
        assert result == bbn.fit_em(net.graph, data, max_iter=steps, **options)
    with pytest.raises(bbn.DataError, match="written for other data"):
        bbn.fit_em(net.graph, data.iloc[:50], max_iter=20, checkpoint=path, **options)


def test_an_interrupt_returns_the_best_so_far(monkeypatch, tmp_path):
    net = bbn.example("asia")
    data = hide(sample(net, 100), 0.4)
    path = tmp_path / "em.npz"
    calls = itertools.count()
    original = Expectation.__call__

    def interrupted(self, *args):
        if next(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(Expectation, "__call__", interrupted)
    result = bbn.fit_em(net.graph, data, seed=1, restarts=3, checkpoint=path)
    assert (result.reason, result.converged, result.n_iter) == ("interrupted", False, 4)
    monkeypatch.undo()
    assert result.network == bbn.fit_em(net.graph, data, seed=1, max_iter=4, tol=-np.inf).network
    whole = bbn.fit_em(net.graph, data, seed=1, restarts=3)
    assert bbn.fit_em(net.graph, data, seed=1, restarts=3, checkpoint=path) == whole


def test_progress_shows_the_likelihood(capsys):
    bbn.fit_em([("A", "B")], {"A": ["x", None, "y"], "B": [0, 1, None]}, seed=0, progress=True)
    assert "log_likelihood=" in capsys.readouterr().err
    bbn.fit_em([("A", "B")], {"A": ["x", None, "y"], "B": [0, 1, None]}, seed=0)
    assert capsys.readouterr().err == ""


def test_bad_arguments():
    with pytest.raises(ValueError, match="restarts"):
        bbn.fit_em([("A", "B")], {"A": ["x"], "B": [0]}, restarts=0)
    with pytest.raises(bbn.ModelError, match="to_dag"):
        bbn.fit_em(nx.DiGraph([("A", "B"), ("B", "A")]), {"A": ["x"], "B": [0]})


def test_numbers_alone_with_holes_take_a_prior_of_tables_that_there_are_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rows = {"x": np.where(rng.random(60) < 0.2, np.nan, x), "y": x + rng.normal(size=60)}
    options = {"continuous": ["x", "y"], "seed": 0}
    with_prior = bbn.fit_em([("x", "y")], rows, prior=bbn.BDeu(1), **options)
    assert with_prior.network == bbn.fit_em([("x", "y")], rows, **options).network
