"""Posteriors of networks with Gaussian variables against enumeration, numerical integration and theorems."""

import itertools
import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from gaussian_truth import Truth, forward, random_evidence, random_network
from scipy.integrate import quad
from scipy.stats import entropy, norm

import bbn

EXACT = [bbn.JunctionTree, bbn.VariableElimination, bbn.Enumeration]


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


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
    monkeypatch.setattr("bbn.inference.mixed_rows.JOINT_CELLS", 0)
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


# Far away, very small, very large


def naive(variances=(1.0, 1.0), means=((0.0, 1.0), (0.0, 1.0)), prior=(0.5, 0.5)):
    z = bbn.Variable("Z", ["a", "b"])
    leaves = [bbn.Gaussian(n, [z], m, v) for n, m, v in zip("XY", means, variances, strict=True)]
    return bbn.BayesianNetwork([bbn.CPT(z, table=list(prior)), *leaves])


@pytest.mark.parametrize("engine", EXACT)
def test_a_million_standard_deviations_away(engine):
    net = naive()
    p = engine(net).query("Z", {"X": 1e6})
    assert p.values.tolist() == [0.0, 1.0]
    close(p.log_evidence, math.log(0.5) + norm.logpdf(1e6, 1.0))
    assert engine(net).query("Y", {"X": -1e6}).mean == 0.0
    p = engine(naive(prior=(1.0, 0.0))).query("Z", {"X": 1e6})
    assert p.values.tolist() == [1.0, 0.0]
    close(p.log_evidence, norm.logpdf(1e6))


@pytest.mark.parametrize("engine", EXACT)
@pytest.mark.parametrize(("first", "second"), [(1000.0, 1000.002), (math.sqrt(2 * 746), math.sqrt(2 * 743))])
def test_numbers_that_contradict_each_other_are_weighed_in_logarithms(engine, first, second):
    """Each number by itself excludes a state as far as doubles can tell; together they do not."""
    a, b = bbn.Variable("A", ["x", "y"]), bbn.Variable("B", ["x", "y"])
    same = bbn.CPT(b, [a], [[1.0, 0.0], [0.0, 1.0]])
    net = bbn.BayesianNetwork(
        [
            bbn.CPT(a, table=[0.5, 0.5]),
            same,
            bbn.Gaussian("X", [a], [0.0, first], 1.0),
            bbn.Gaussian("Y", [b], [0.0, first], 1.0),
            bbn.Gaussian("W", [a], [0.0, 1.0], 1.0),
        ]
    )
    evidence = {"X": 0.0, "Y": second}
    logs = norm.logpdf(0.0, [0, first]) + norm.logpdf(second, [0, first])
    expected = 1 / (1 + math.exp(logs[1] - logs[0]))
    p = engine(net).query("A", evidence)
    close(p["x"], expected, 1e-7)
    close(p.log_evidence, math.log(0.5) + np.logaddexp(*logs))
    answers = engine(net).posteriors(evidence)
    close(answers["B"]["x"], expected, 1e-7)
    close(answers["W"].mean, 1 - expected, 1e-7)
    close(engine(net).log_evidence(evidence), p.log_evidence)
    best = engine(net).mpe(evidence)
    assert best.states["A"] == best.states["B"] == ("x" if expected > 0.5 else "y")
    close(best.log_probability, math.log(0.5) + logs.max())
    assert engine(net).map("B", evidence).states["B"] == best.states["B"]
    drawn = net.sample(4000, evidence, seed=1)
    assert (drawn["A"] == drawn["B"]).all()
    assert abs((drawn["A"] == "x").mean() - expected) < 4 * math.sqrt(0.25 / 4000)
    table = {name: [x] for name, x in evidence.items()}
    close(net.predict_proba(table, "A")["x"], [expected], 1e-7)
    close(net.log_likelihood(table), [p.log_evidence])


def test_tiny_and_huge_variances():
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        net = naive(variances=(scale, 1.0), means=((0.0, math.sqrt(scale)), (0.0, 1.0)))
        p = net.query("Z", {"X": 2 * math.sqrt(scale)})
        close(p["b"] / p["a"], math.exp(-0.5 + 2.0))
        close(
            p.log_evidence,
            np.logaddexp(norm.logpdf(2), norm.logpdf(1)) + math.log(0.5) - 0.5 * math.log(scale),
        )
    x = bbn.Gaussian("X", [], 0.0, 1.0)
    copies = [bbn.Gaussian(n, [x.variable], 0.0, 1e-20, weights=[1.0]) for n in "AB"]
    net = bbn.BayesianNetwork([x, *copies])
    p = net.query("X", {"A": 0.5, "B": 0.5})
    close(p.mean, 0.5)
    close(p.variance, 0.5e-20, 1e-5)


def test_a_number_beyond_all_measure_is_an_error_that_says_so():
    net = naive(variances=(1e-300, 1.0))
    with pytest.raises(bbn.EvidenceError, match="X=1e\\+200: so far"):
        net.query("Z", {"X": 1e200})
    assert net.log_likelihood({"X": [1e200, 0.0]})[0] == -math.inf
    with pytest.raises(bbn.ImpossibleEvidenceError, match="row 0"):
        net.predict({"X": [1e200]}, "Z")
    assert net.predict({"X": [1e200, 0.0]}, "Z", impossible="nan").tolist() == [None, "a"]


def test_a_long_chain_of_numbers():
    """A random walk observed at its end: mean and variance of a bridge."""
    n = 200
    walk = [bbn.Gaussian("x0", [], 0.0, 1.0)]
    for i in range(1, n):
        walk.append(bbn.Gaussian(f"x{i}", [walk[-1].variable], 0.0, 1.0, weights=[1.0]))
    net = bbn.BayesianNetwork(walk)
    p = net.query("x49", {f"x{n - 1}": 40.0})
    close(p.mean, 40.0 * 50 / n)
    close(p.variance, 50 * (n - 50) / n)
    close(p.log_evidence, norm.logpdf(40.0, 0, math.sqrt(n)))
    everything = dict(zip(net.names, np.linspace(0, 1, n), strict=True))
    close(
        net.query("x5", {k: v for k, v in everything.items() if k != "x5"}).mean,
        (everything["x4"] + everything["x6"]) / 2,
    )


def test_regimes_that_follow_each_other_stay_apart_when_all_numbers_are_seen():
    """Forty switches with two states each: their joint would have 2^40 cells, the chain has 4 per step."""
    rng = np.random.default_rng(0)
    n = 40
    switches = [bbn.Variable(f"s{i}", ["a", "b"]) for i in range(n)]
    parts = [bbn.CPT(switches[0], table=[0.5, 0.5]), bbn.Gaussian("x0", [switches[0]], [0.0, 1.0], 1.0)]
    for i in range(1, n):
        parts.append(bbn.CPT(switches[i], [switches[i - 1]], [[0.9, 0.1], [0.2, 0.8]]))
        parts.append(
            bbn.Gaussian(
                f"x{i}", [parts[-2].variable, switches[i]], [0.0, 1.0], [1.0, 0.5], weights=[[0.9], [-0.5]]
            )
        )
    net = bbn.BayesianNetwork(parts)
    x = rng.normal(size=n)
    evidence = {f"x{i}": x[i] for i in range(n)}
    forward_ = np.log([0.5, 0.5]) + norm.logpdf(x[0], [0.0, 1.0])
    for i in range(1, n):
        step = np.logaddexp.reduce(forward_[:, None] + np.log([[0.9, 0.1], [0.2, 0.8]]), axis=0)
        mean = np.array([0.0, 1.0]) + np.array([0.9, -0.5]) * x[i - 1]
        forward_ = step + norm.logpdf(x[i], mean, np.sqrt([1.0, 0.5]))
    p = net.query(f"s{n - 1}", evidence)
    close(p.log_evidence, np.logaddexp.reduce(forward_))
    close(p.values, np.exp(forward_ - p.log_evidence))
    close(net.log_likelihood({k: [v] for k, v in evidence.items()}), [p.log_evidence])
    with pytest.raises(bbn.BudgetError, match="settings of their 39 discrete parents"):
        net.query("x20", {"x39": 1.0, "x0": 0.0}, memory_limit="1GB")


def switching(n, stay, apart):
    """A series of n numbers whose means, 0 and `apart`, follow a switch of two states."""
    parts = []
    for i in range(n):
        switch = bbn.Variable(f"s{i}", ["a", "b"])
        rows = [[stay, 1 - stay], [1 - stay, stay]]
        parts.append(bbn.CPT(switch, [parts[-2].variable], rows) if i else bbn.CPT(switch, table=[0.5, 0.5]))
        parts.append(bbn.Gaussian(f"x{i}", [switch], [0.0, apart], 1.0))
    return bbn.BayesianNetwork(parts)


def forward_backward(x, stay, apart):
    """ln p(x), the posterior of each switch and the most probable path, in logarithms (Rabiner 1989)."""
    emit, move = norm.logpdf(x[:, None], [0.0, apart]), np.log([[stay, 1 - stay], [1 - stay, stay]])
    ahead, best, back, pointers = [np.log(0.5) + emit[0]], np.log(0.5) + emit[0], [np.zeros(2)], []
    for row in emit[1:]:
        ahead.append(np.logaddexp.reduce(ahead[-1][:, None] + move, axis=0) + row)
        pointers.append((best[:, None] + move).argmax(axis=0))
        best = (best[:, None] + move).max(axis=0) + row
    for row in emit[:0:-1]:
        back.append(np.logaddexp.reduce(move + row + back[-1], axis=1))
    path = [int(best.argmax())]
    for pointer in reversed(pointers):
        path.append(int(pointer[path[-1]]))
    total = np.logaddexp.reduce(ahead[-1])
    return total, np.exp(np.array(ahead) + back[::-1] - total), path[::-1], best.max()


@pytest.mark.parametrize(("n", "stay", "apart"), [(76, 0.999, 6.0), (400, 0.95, 1.0), (120, 0.999, 40.0)])
def test_a_switching_series_costs_no_more_than_a_hidden_markov_model(n, stay, apart):
    """Its likelihood leaves the range of a double, and in the last case so does the evidence of one number."""
    net = switching(n, stay, apart)
    x = np.where(np.arange(n) % 2, apart, 0.0) + np.random.default_rng(0).normal(0, 0.01, n)
    evidence = {f"x{i}": x[i] for i in range(n)}
    total, posterior, path, log_best = forward_backward(x, stay, apart)
    answers = net.posteriors(evidence)
    close(answers.log_evidence, total)
    close([answers[f"s{i}"].values for i in range(n)], posterior)
    middle = f"s{n // 2}"
    close(net.query(middle, evidence).values, posterior[n // 2])
    close(bbn.JunctionTree(net).log_evidence(evidence), total)
    best = net.mpe(evidence)
    close(best.log_probability, log_best)
    assert [best.states[f"s{i}"] for i in range(n)] == ["ab"[s] for s in path]
    table = {name: [value] for name, value in evidence.items()}
    close(net.log_likelihood(table), [total])
    close(net.predict_proba(table, middle)["a"], posterior[n // 2, :1])
    drawn = net.sample(2000, evidence, seed=1)
    shares = [(drawn[f"s{i}"] == "a").mean() for i in range(n)]
    assert np.abs(shares - posterior[:, 0]).max() < 5 * math.sqrt(0.25 / 2000)


@pytest.mark.parametrize("seed", range(30))
def test_numbers_very_far_away_are_weighed_to_the_last_digit(seed):
    """Rational arithmetic knows the log-densities; doubles would know them to 1 at a hundred million deviations."""
    rng = np.random.default_rng(seed)
    d0, d2 = bbn.Variable("D0", ["a", "b"]), bbn.Variable("D2", ["a", "b", "c"])
    x_means, y_means = rng.normal(0, 1e-8, (2, 3)), rng.normal(0, 1e-8, 3)
    slope = float(rng.normal())
    x = bbn.Gaussian("X", [d0, d2], x_means, 1.0)
    y = bbn.Gaussian("Y", [d2, x.variable], y_means, 0.25, weights=[slope])
    net = bbn.BayesianNetwork([bbn.CPT(d0, table=[0.5, 0.5]), bbn.CPT.uniform(d2, [d0]), x, y])
    far = {"X": float(rng.choice([-1, 1]) * 10 ** rng.uniform(6, 8.5)), "Y": float(rng.normal(0, 1e8))}
    for seen in (far, {"Y": far["Y"]}):
        exact = []
        for k in range(3):
            if "X" in seen:
                squares = (Fraction(far["X"]) - Fraction(x_means[0, k])) ** 2
                mean = Fraction(y_means[k]) + Fraction(slope) * Fraction(far["X"])
                squares += (Fraction(far["Y"]) - mean) ** 2 * 4
            else:
                mean = Fraction(y_means[k]) + Fraction(slope) * Fraction(x_means[0, k])
                squares = (Fraction(far["Y"]) - mean) ** 2 / (Fraction(1, 4) + Fraction(slope) ** 2)
            exact.append(squares)
        share = np.exp([float(exact[0] - squares) / 2 for squares in exact])
        share /= share.sum()
        close(net.query("D2", {**seen, "D0": "a"}).values, share, 1e-7)
        table = {name: [value] for name, value in seen.items()} | {"D0": ["a"]}
        close(np.array(list(net.predict_proba(table, "D2").values()))[:, 0], share, 1e-7)


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


@pytest.mark.parametrize("seed", range(25))
def test_information_by_numbers_of_any_width_against_integration_by_scipy(seed):
    """Means and deviations over many orders of magnitude; scipy is told where the narrow components are."""
    rng = np.random.default_rng(seed)
    z = bbn.Variable("Z", ["a", "b", "c"])
    prior, means = rng.dirichlet(np.ones(3)), rng.normal(0, 1, 3)
    deviations = 10 ** rng.uniform(-4, 1, 3)
    if seed == 0:
        prior, means, deviations = (
            np.array([0.5, 0.5, 0.0]),
            np.array([0.0, 0.3, 5.0]),
            np.array([1, 0.01, 1]),
        )
    net = bbn.BayesianNetwork([bbn.CPT(z, table=prior), bbn.Gaussian("X", [z], means, deviations**2)])
    edges = np.unique(
        (means[:, None] + deviations[:, None] * np.array([-12, -6, -3, -1, 0, 1, 3, 6, 12])).ravel()
    )
    log_prior = np.log(np.maximum(prior, 1e-300))

    def integrand(x):
        logs = norm.logpdf(x, means, deviations)
        mixed = np.logaddexp.reduce(log_prior + logs)
        return float(np.sum(prior * np.exp(logs) * (logs - mixed)))

    parts = [
        quad(integrand, *ends, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for ends in itertools.pairwise(edges)
    ]
    assert net.information("Z")["X"] == pytest.approx(sum(parts) / math.log(2), abs=2e-9)
    if seed == 0:
        assert net.information("Z")["X"] == pytest.approx(0.9267, abs=5e-5)


def test_information_by_numbers_without_any_overlap():
    """Widths that x cannot resolve, or that leave the range of a double: what is certain tells all there is."""
    z = bbn.Variable("Z", ["a", "b"])
    for means, variances in (
        ([1e9, 1e9 + 1], 1e-300),
        ([0.0, 0.3], [1.0, 1e-200]),
        ([0.0, 0.0], [1.0, 1e300]),
    ):
        net = bbn.BayesianNetwork([bbn.CPT(z, table=[0.25, 0.75]), bbn.Gaussian("X", [z], means, variances)])
        assert net.information("Z")["X"] == pytest.approx(entropy([0.25, 0.75], base=2), abs=1e-8)


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
    with pytest.raises(bbn.ModelError, match="'X' is continuous"):
        net.explore()
