"""Posteriors of networks with Gaussian variables against enumeration, numerical integration and theorems."""

import itertools
import json
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import bbn
from tests.support.gaussian_truth import EXACT, Truth, close, forward, naive, random_evidence, random_network


@pytest.mark.parametrize("seed", range(100))
def test_posteriors_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng)
    evidence = random_evidence(net, rng)
    truth = Truth(net, evidence)
    for engine in EXACT:
        answers = engine(net).posteriors(evidence)
        hard = {n for n, value in evidence.items() if not isinstance(value, bbn.Virtual)}
        assert list(answers) == [n for n in net.names if n not in hard]
        close(answers.log_evidence, truth.log_evidence)
        for name, p in answers.items():
            alone = engine(net).query(name, evidence)
            close(alone.log_evidence, truth.log_evidence)
            if net.states(name):
                close(p.values, list(truth.probability(name).values()))
                close(alone.values, p.values)
                continue
            weight, mean, variance = truth.mixture(name).T
            first = weight @ mean
            close(p.weights.sum(), 1.0)
            close(p.mean, first)
            close(p.variance, weight @ (variance + mean**2) - first**2)
            x = first + np.linspace(-4, 4, 9) * math.sqrt(p.variance)
            close(p.pdf(x), norm.pdf(x[:, None], mean, np.sqrt(variance)) @ weight)
            close(p.cdf(x), norm.cdf(x[:, None], mean, np.sqrt(variance)) @ weight)
            close(p.cdf(p.quantile([0.001, 0.3, 0.99])), [0.001, 0.3, 0.99])
            assert alone == p or np.allclose(alone.pdf(x), p.pdf(x), rtol=1e-12)


def rows_with_holes(net, rng, n, share):
    """Rows drawn from the network as columns, values missing at random."""
    drawn = [forward(net, rng) for _ in range(n)]
    return {name: [None if rng.random() < share else row[name] for row in drawn] for name in net.names}


@pytest.mark.parametrize("seed", range(40))
def test_batches_against_single_queries(seed):
    rng = np.random.default_rng(1000 + seed)
    net = random_network(rng)
    table = rows_with_holes(net, rng, 12, [0.0, 0.3, 0.7][seed % 3])
    rows = [{n: column[i] for n, column in table.items() if column[i] is not None} for i in range(12)]
    close(net.log_likelihood(table), [Truth(net, row).log_evidence for row in rows])
    for target in net.names:
        truths = [Truth(net, {n: x for n, x in row.items() if n != target}) for row in rows]
        if net.states(target):
            columns = net.predict_proba(table, target)
            for state, column in columns.items():
                close(column, [truth.probability(target)[state] for truth in truths])
        else:
            means = [truth.mixture(target)[:, 0] @ truth.mixture(target)[:, 1] for truth in truths]
            close(net.predict(table, target), means)


@pytest.mark.parametrize("seed", range(12))
def test_rows_one_by_one_are_the_same(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    net = random_network(rng, max_discrete=3, max_continuous=4, arcs_between_numbers=bool(seed % 2))
    table = rows_with_holes(net, rng, 8, 0.5)
    together = {name: net.predict(table, name) for name in net.names}
    logs = net.log_likelihood(table)
    monkeypatch.setattr("bbn.inference.rows.mixed_rows.JOINT_CELLS", 0)
    close(net.log_likelihood(table), logs)
    for name, column in together.items():
        again = net.predict(table, name)
        assert list(again) == list(column) if net.states(name) else np.allclose(again, column)


GRID = np.arange(-45, 45, 0.2)
"""Fine enough that the sum over it, by the trapezoidal rule, has these densities' integrals to ten digits."""


def density(net, row):
    """p(row) by the definition, numbers on a grid if they are arrays."""
    total = 1.0
    for name in net.names:
        c = net[name]
        at = tuple(p.code(row[p.name]) for p in c.parents if p.card)
        if isinstance(c, bbn.Gaussian):
            mean = c.means[at] + sum(
                w * row[p.name] for w, p in zip(c.weights[at], c.continuous_parents, strict=True)
            )
            total = total * norm.pdf(row[name], mean, math.sqrt(c.variances[at]))
        else:
            total = total * c.table[(*at, c.variable.code(row[name]))]
    return total


@pytest.mark.parametrize("seed", range(100))
def test_posteriors_against_numerical_integration(seed):
    rng = np.random.default_rng(2000 + seed)
    net = random_network(rng, max_discrete=2, max_card=2, max_continuous=4)
    row = forward(net, rng)
    hidden = [str(n) for n in rng.permutation(net.continuous)[: 1 + seed % 2]]
    evidence = {n: row[n] for n in net.continuous if n not in hidden}
    free = [v for v in net.variables if v.card]
    axes = dict(zip(hidden, np.meshgrid(*[GRID] * len(hidden), indexing="ij", sparse=True), strict=True))
    total = np.zeros([len(GRID)] * len(hidden))
    by_state = {v.name: dict.fromkeys(v.states, 0.0) for v in free}
    for states in itertools.product(*(v.states for v in free)):
        setting = dict(zip([v.name for v in free], states, strict=True))
        part = np.broadcast_to(density(net, {**evidence, **axes, **setting}), total.shape)
        total = total + part
        for name, state in setting.items():
            by_state[name][state] += part.sum()
    whole = total.sum()
    answers = net.posteriors(evidence)
    close(answers.log_evidence, math.log(whole * 0.2 ** len(hidden)), 1e-8)
    for name, sums in by_state.items():
        close(answers[name].values, np.array(list(sums.values())) / whole, 1e-8)
    for axis, name in enumerate(hidden):
        marginal = total.sum(axis=tuple(i for i in range(len(hidden)) if i != axis)) / whole
        close(answers[name].mean, marginal @ GRID, 1e-8)
        close(answers[name].variance, marginal @ (GRID - marginal @ GRID) ** 2, 1e-7)
        close(answers[name].pdf(GRID), marginal / 0.2, 1e-7)


# Evidence of other kinds


def test_soft_virtual_and_set_evidence_beside_numbers():
    net = naive(means=((0.0, 2.0), (1.0, -1.0)))
    likelihood = norm.pdf(1.5, [0.0, 2.0])
    p = net.query("Z", {"X": 1.5, "Z": bbn.Virtual({"a": 3, "b": 1})})
    weights = likelihood * [3, 1] * 0.5
    close(p.values, weights / weights.sum())
    close(p.log_evidence, math.log(weights.sum()))
    assert net.query("Z", {"X": 1.5, "Z": bbn.OneOf("a")}).values.tolist() == [1.0, 0.0]
    p = net.query("Y", {"X": 1.5, "Z": bbn.Soft({"a": 0.25, "b": 0.75})})
    close(p.weights, [0.25, 0.75])
    close(p.log_evidence, math.log((likelihood * 0.5).sum()))
    p = net.query("Z", {"X": 1.5, "Z": "a"})
    close(p.log_evidence, math.log(0.5 * likelihood[0]))


def test_explanations():
    net = naive(means=((0.0, 2.0), (1.0, -1.0)), prior=(0.6, 0.4))
    joint = np.array([0.6, 0.4]) * norm.pdf(1.5, [0.0, 2.0])
    best = net.mpe({"X": 1.5})
    assert best.states == {"Z": "b"}
    close(best.log_probability, math.log(joint[1]))
    assert [a.states["Z"] for a in net.mpe({"X": 1.5}, k=2)] == ["b", "a"]
    assert net.mpe().states == {"Z": "a"}
    assert net.map("Z", {"X": -1.0}).states == {"Z": "a"}
    with pytest.raises(bbn.EvidenceError, match="'X' is continuous"):
        net.map(["Z", "X"])


def test_interventions():
    z = bbn.Variable("Z", ["a", "b"])
    x = bbn.Gaussian("X", [z], [0.0, 4.0], 1.0)
    y = bbn.Gaussian("Y", [x.variable, z], [0.0, 1.0], 0.5, weights=[2.0])
    net = bbn.BayesianNetwork([bbn.CPT(z, table=[0.3, 0.7]), x, y])
    done = net.do({"X": 1.5})
    assert done.parents("X") == ()
    assert (done.query("X").mean, done.query("X").variance) == (1.5, 0.0)
    assert done.query("X").cdf([1.4, 1.5]).tolist() == [0.0, 1.0]
    assert done.query("X").quantile(0.3) == 1.5
    assert done.query("X").pdf([1.4, 1.5]).tolist() == [0.0, math.inf]
    p = done.query("Y")
    close(p.weights, [0.3, 0.7])  # not those given X = 1.5
    close(p.means, [3.0, 4.0])
    assert net.query("Z", {"X": 1.5})["a"] > 0.7
    assert "X" in done.posteriors()
    assert done.query("Z", {"X": 1.5})["a"] == pytest.approx(0.3)
    with pytest.raises(bbn.ImpossibleEvidenceError, match=r"'X' is set to 1\.5"):
        done.query("Z", {"X": 2.0})
    close(done.log_likelihood({"X": [1.5, 2.0]}), [0.0, -math.inf])
    rows = done.sample(2000, {"Y": 3.0}, seed=1)
    assert (rows["X"] == 1.5).all()
    assert net.do({"Z": "a"}).query("X").mean == 0.0


def test_impossible_states_are_named_though_numbers_are_given():
    a, b = bbn.Variable("A", ["x", "y"]), bbn.Variable("B", ["x", "y"])
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(a, table=[0.5, 0.5]),
            bbn.CPT(b, [a], [[1.0, 0.0], [0.0, 1.0]]),
            bbn.Gaussian("X", [a], [0.0, 1.0], 1.0),
        ]
    )
    with pytest.raises(bbn.ImpossibleEvidenceError, match="A='x', B='y'"):
        net.query("X", {"A": "x", "B": "y"})
    with pytest.raises(bbn.ImpossibleEvidenceError) as caught:
        net.posteriors({"A": "x", "B": "y", "X": 3.0})
    assert set(caught.value.findings) == {"A", "B"}
    with pytest.raises(bbn.ImpossibleEvidenceError):
        net.sample(3, {"A": "x", "B": "y", "X": 3.0})
    assert bbn.JunctionTree(net).log_evidence({"A": "x", "B": "y", "X": 3.0}) == -math.inf
    assert net.probability({"A": "x", "B": "x", "X": 0.5}) == pytest.approx(0.5 * norm.pdf(0.5))


@pytest.mark.parametrize(
    "value",
    ["tall", True, math.inf, -math.inf, bbn.Virtual({"a": 1}), bbn.OneOf("a"), [1.0], 1 + 2j, {"a": 1}],
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(bbn.EvidenceError, match="'X' is continuous"):
        naive().query("Z", {"X": value})


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.int64(1), Fraction(1)])
def test_any_real_number_will_do(value):
    assert naive().query("Z", {"X": value}) == naive().query("Z", {"X": 1.0})


@pytest.mark.parametrize("value", [None, math.nan, np.nan])
def test_missing_numbers_are_unobserved(value):
    assert naive().query("Y", {"X": value}) == naive().query("Y")
    assert "X" in naive().posteriors({"X": value})


# The result


def test_the_variances_of_a_leaf_are_those_it_was_given():
    z = bbn.Variable("Z", ["a", "b"])
    leaf = bbn.Gaussian("X", [z], [0.1, 0.3], [2.0, 0.7])
    child = bbn.Gaussian("Y", [leaf.variable], 0.0, 1.0, 0.5)
    net = bbn.BayesianNetwork([bbn.CPT(z, table=[0.3, 0.7]), leaf, child])
    assert [c[:3] for c in net.query("X").components] == [(0.1, 2.0, 0.3), (0.3, 0.7, 0.7)]
    assert [c.variance for c in net.posteriors()["X"].components] == [2.0, 0.7]
    assert [c.variance for c in net.query("X", {"Z": "b"}).components] == [0.7]
    assert [c.variance for c in net.query("Y", {"X": 3.0}).components] == [1.0]
    assert net.query("Y").variances == pytest.approx([1.5, 1.175])


def test_the_posterior_is_a_value():
    net = naive(means=((0.0, 2.0), (1.0, -1.0)))
    p = net.query("X", {"Y": 0.5})
    again = pickle.loads(pickle.dumps(p))
    assert again == p
    assert hash(again) == hash(p)
    assert p != net.query("X")
    with pytest.raises(ValueError, match="read-only"):
        p.weights[0] = 1.0
    with pytest.raises(AttributeError):
        p.mean = 0.0
    assert [c.setting for c in p.components] == [{"Z": "a"}, {"Z": "b"}]
    assert p.to_dict() == {"mean": p.mean, "variance": p.variance, "std": p.std}
    assert list(p.to_frame().columns) == ["Z", "weight", "mean", "variance"]
    assert "mean" in repr(p)
    assert "Z" in str(p)
    assert "<table" in p._repr_html_()
    assert "density of X" in p.plot().description
    answers = net.posteriors({"Y": 0.5})
    again = pickle.loads(pickle.dumps(answers))
    assert dict(again) == dict(answers)
    assert list(again) == ["Z", "X"]
    assert set(answers.to_frame()["variable"]) == {"Z", "X"}
    with pytest.raises(bbn.EvidenceError, match="no posterior of 'Y'"):
        answers["Y"]


def test_distribution_function_and_quantiles_agree_far_out():
    p = naive(means=((-3.0, 5.0), (0.0, 0.0)), variances=((0.01, 4.0), 1.0)).query("X")
    q = np.array([1e-300, 1e-12, 0.001, 0.25, 0.5, 0.500001, 0.9, 1 - 1e-12])
    x = p.quantile(q)
    close(p.cdf(x), q, 1e-12)
    assert (np.diff(x) > 0).all()
    close(np.log(p.cdf(x[0])), math.log(1e-300), 1e-12)
    assert p.quantile(0.0) == -math.inf
    assert p.quantile(1.0) == math.inf
    assert p.cdf(-math.inf) == 0.0
    assert p.cdf(math.inf) == 1.0
    close(p.log_pdf(1e6), math.log(0.5) + norm.logpdf(1e6, 5.0, 2.0))
    low, high = p.interval(0.9)
    close(p.cdf(high) - p.cdf(low), 0.9)
    for bad in (-0.1, 1.1, math.nan, "a"):
        with pytest.raises(bbn.EvidenceError):
            p.quantile(bad)


def test_two_threads_get_the_same_answers():
    rng = np.random.default_rng(11)
    net = random_network(rng, max_discrete=3, max_continuous=4)
    engine = bbn.JunctionTree(net)
    questions = [random_evidence(net, rng) for _ in range(30)]
    alone = [dict(engine.posteriors(evidence)) for evidence in questions]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda evidence: dict(engine.posteriors(evidence)), questions))
    assert together == alone


def test_information_about_a_class_by_a_number():
    net = naive(means=((0.0, 3.0), (0.0, 0.0)))
    bits = net.information("Z")
    x = np.linspace(-10, 13, 20_001)
    parts = norm.pdf(x[:, None], [0.0, 3.0])
    mean = parts.mean(axis=1)
    truth = (parts * np.log2(parts / mean[:, None])).mean(axis=1).sum() * (x[1] - x[0])
    close(bits["X"], truth, 1e-6)
    assert bits["Y"] < 1e-12


def test_sensitivity_given_a_number():
    net = naive(means=((0.0, 1.0), (0.0, 1.0)), prior=(0.3, 0.7))
    found = net.sensitivity("Z", {"X": 0.2}, state="a")
    likelihood = norm.pdf(0.2, [0.0, 1.0])

    def answer(p):
        return p * likelihood[0] / (p * likelihood[0] + (1 - p) * likelihood[1])

    close(found.probability, answer(0.3))
    close(found.derivatives["Z"][0], (answer(0.3 + 1e-6) - answer(0.3 - 1e-6)) / 2e-6, 1e-6)


def test_credible_intervals_are_of_states():
    net = naive()
    learned = bbn.fit(net, net.sample(200, seed=1), keep_counts=True)
    p = learned.query("Z", {"X": 0.3}, interval=0.9, seed=1, n_draws=20)
    assert (p.low <= p.values).all()
    with pytest.raises(bbn.EvidenceError, match="'X' is continuous"):
        learned.query("X", interval=0.9)


def test_options_reach_the_engine_and_unknown_ones_are_refused():
    with pytest.raises(TypeError, match="no option"):
        naive().query("X", nonsense=1)
    with pytest.raises(TypeError, match="no option"):
        naive().posteriors({"X": 1.0}, nonsense=1)
    p = naive().query("X", method="likelihood-weighting", seed=1, n_samples=1000)
    assert p.sampling.n_samples == 1000
    assert p.std_error.shape == (2,)


def test_pictures():
    net = naive()
    assert "Numbers: X = 0.5 ± 1.12, Y = 0.5 ± 1.12." in net.plot().description
    assert "X = 3" in net.plot({"X": 3.0}).description
    assert "X = a number" in net.plot(beliefs=False).description
    assert net.plot(information=True).svg.count("<path") == 2
    assert net.query("Z").plot().description == "The distribution of Z: a 0.5, b 0.5."
    with pytest.raises(bbn.EvidenceError, match="joint of 2 variables"):
        bbn.example("burglary").query(["Alarm", "Burglary"]).plot()
    narrow = bbn.BayesianNetwork([bbn.Gaussian("X", [], 1e9, 1e-300)])
    for drawn in (narrow.plot(), narrow.do({"X": 2.0}).plot(), narrow.query("X").plot()):
        assert "NaN" not in drawn.svg
        assert "nan" not in drawn.svg
    told = net.explore().answer("/beliefs", {"evidence": {"Y": {"number": 2.0}}})
    assert told["beliefs"]["X"]["mean"] == pytest.approx(net.query("X", {"Y": 2.0}).mean)
    assert "NaN" not in json.dumps(narrow.explore().answer("/beliefs", {}))
