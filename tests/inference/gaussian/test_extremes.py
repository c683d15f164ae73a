"""Networks with Gaussian variables at the extremes: numbers far away, tiny variances, long series, narrow spikes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import entropy, norm

import bbn
from tests.support.gaussian_truth import EXACT, Truth, close, naive, random_evidence, random_network


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


def kalman(y, move, drift, process, noise):
    """ln p(y) and smoothed moments of x_t = move x_{t−1} + N(0, process), y_t = x_t + drift + N(0, noise)."""
    total, filtered, predicted = 0.0, [], []
    mean, variance = 0.0, process
    for t, number in enumerate(y):
        if t:
            mean, variance = move * mean, move**2 * variance + process
        predicted.append((mean, variance))
        if number is not None:
            total += norm.logpdf(number, mean + drift, math.sqrt(variance + noise))
            gain = variance / (variance + noise)
            mean, variance = mean + gain * (number - drift - mean), (1 - gain) * variance
        filtered.append((mean, variance))
    smoothed = [filtered[-1]]
    for t in range(len(y) - 2, -1, -1):
        lever = filtered[t][1] * move / predicted[t + 1][1]
        mean = filtered[t][0] + lever * (smoothed[-1][0] - predicted[t + 1][0])
        variance = filtered[t][1] + lever**2 * (smoothed[-1][1] - predicted[t + 1][1])
        smoothed.append((mean, variance))
    return total, np.array(smoothed[::-1])


@pytest.mark.parametrize("n", [60, 200])
def test_smoothing_a_linear_chain_is_that_of_rauch_tung_and_striebel(n):
    move, drift, process, noise = 0.95, 0.1, 0.5, 0.25
    parts = []
    for i in range(n):
        x = bbn.Gaussian(f"x{i}", [parts[-2].variable] if i else [], 0.0, process, [move] if i else None)
        parts += [x, bbn.Gaussian(f"y{i}", [x.variable], drift, noise, [1.0])]
    net = bbn.BayesianNetwork(parts)
    rng = np.random.default_rng(n)
    y = [None if i % 7 == 3 or i > n - 6 else float(rng.normal()) for i in range(n)]
    evidence = {f"y{i}": number for i, number in enumerate(y) if number is not None}
    total, smoothed = kalman(y, move, drift, process, noise)
    answers = net.posteriors(evidence)
    close(answers.log_evidence, total)
    close([answers[f"x{i}"].mean for i in range(n)], smoothed[:, 0])
    close([answers[f"x{i}"].variance for i in range(n)], smoothed[:, 1])
    close(answers["y3"].mean, smoothed[3, 0] + drift)
    close(answers["y3"].variance, smoothed[3, 1] + noise)
    table = {name: [value, value + 1] for name, value in evidence.items()}
    other, moved = kalman([None if x is None else x + 1 for x in y], move, drift, process, noise)
    close(net.log_likelihood(table), [total, other])
    close(net.predict(table, "x7"), [smoothed[7, 0], moved[7, 0]])
    drawn = net.sample(4000, evidence, seed=1)
    errors = (drawn[[f"x{i}" for i in range(n)]].mean().to_numpy() - smoothed[:, 0]) / np.sqrt(
        smoothed[:, 1] / 4000
    )
    assert np.abs(errors).max() < 5
    spread = drawn[[f"x{i}" for i in range(n)]].var().to_numpy() / smoothed[:, 1]
    assert np.abs(spread - 1).max() < 5 * math.sqrt(2 / 4000)


@pytest.mark.parametrize("seed", range(60))
def test_elimination_of_continuous_variables_against_enumeration(monkeypatch, seed):
    """As large components are worked out, on small ones."""
    monkeypatch.setattr("bbn.inference.gaussian.components.DENSE", 0)
    rng = np.random.default_rng(3000 + seed)
    net = random_network(rng, max_continuous=7)
    evidence = random_evidence(net, rng)
    truth = Truth(net, evidence)
    answers = net.posteriors(evidence)
    close(answers.log_evidence, truth.log_evidence)
    for name, p in answers.items():
        if net.states(name):
            close(p.values, list(truth.probability(name).values()))
        else:
            weight, mean, variance = truth.mixture(name).T
            close(p.mean, weight @ mean)
            close(p.variance, weight @ (variance + mean**2) - (weight @ mean) ** 2)


def test_many_sensors_of_one_number():
    """A thousand, of very different precision: the mean weighted by precision, in two regimes of the number itself."""
    rng = np.random.default_rng(0)
    n = 1000
    z = bbn.Variable("Z", ["a", "b"])
    x = bbn.Gaussian("X", [z], [0.0, 1.0], 1.0)
    noise = 10.0 ** rng.uniform(-20, 5, n)
    noise[:5] = 1.0
    sensors = [bbn.Gaussian(f"s{i}", [x.variable], 0.0, v, [1.0]) for i, v in enumerate(noise)]
    net = bbn.BayesianNetwork([bbn.CPT(z, table=[0.5, 0.5]), x, *sensors])
    seen = 0.7 + rng.normal(size=n) * np.sqrt(noise)
    seen[:5] = 3.0
    p = net.query("X", {f"s{i}": number for i, number in enumerate(seen)})
    precision = 1 + np.sum(1 / noise)
    close(p.means[0], np.sum(seen / noise) / precision, 1e-13)
    close(p.variances * precision, 1.0)


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
